/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle selftest`: runs the checks of selftest/checks.def on a device, and writes a report. */
#include "verbs.h"

#include "core/base/config.h"
#include "core/base/process.h"
#include "info.h"
#include "selftest/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { EXIT_FILE = 3, LIMIT_S = 115 };

static const struct {
    const char *title;
    enum selftest_result (*run)(struct selftest *test);
} checks[] = {
#define CHECK(name, title) {title, selftest_##name},
#include "selftest/checks.def"
};

/* Where the report goes: standard output, and a file if one is wanted. */
static FILE *outputs[2];

static void write_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void write_report(const char *format, ...)
{
    for (unsigned i = 0; i < 2; i++) {
        va_list arguments;

        if (!outputs[i])
            continue;
        va_start(arguments, format);
        vfprintf(outputs[i], format, arguments);
        va_end(arguments);
        fflush(outputs[i]);
    }
}

/* A check did not end: the report so far is complete, since it is flushed line by line. */
static void time_is_up(int signal)
{
    static const char text[] = "FAILED (the time is up: the whole test may take 115 seconds)\n";

    (void)signal;
    for (unsigned i = 0; i < 2; i++)
        if (outputs[i] && write(fileno(outputs[i]), text, sizeof text - 1) < 0)
            continue;
    _exit(EXIT_FAILURE);
}

/* The options that are not as they are by default: they explain a report. */
static void write_options(void)
{
    struct ct_option_help help;

    for (unsigned i = 0; ct_config_help(i, &help); i++)
        if (getenv(help.variable))
            write_report("%s=%s\n", help.variable, getenv(help.variable));
}

static void write_head(void)
{
    struct utsname system;

    write_report("cuttle %s selftest\n", CUTTLE_VERSION);
    if (uname(&system) == 0)
        write_report("%s %s on %s\n", system.sysname, system.release, system.machine);
    write_options();
    for (unsigned i = 0; i < 2; i++)
        if (outputs[i])
            tool_print_info(outputs[i]);
}

/* Runs all checks on a device whose context is current. Returns the number of those that failed. */
static unsigned run_checks(CUdevice device)
{
    static const char *const names[] = {[SELFTEST_PASSED] = "passed", [SELFTEST_FAILED] = "FAILED", [SELFTEST_ABSENT] = "absent"};
    unsigned n_failed = 0;

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct selftest test = {.device = device};
        const double start = selftest_now();
        enum selftest_result result;

        write_report("%s: ", checks[i].title);
        result = checks[i].run(&test);
        write_report("%s (%s%s%.1f s)\n", names[result], test.detail, *test.detail ? "; " : "", selftest_now() - start);
        n_failed += result == SELFTEST_FAILED;
    }
    return n_failed;
}

/* The device that an option names. False: it names none. */
static bool take_device(const char *text, CUdevice *out)
{
    char *end;
    unsigned long number;

    if (!text) {
        *out = 0;
        return true;
    }
    errno = 0;
    number = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || number >= ct_process.n_devices)
        return false;
    *out = (CUdevice)number;
    return true;
}

static int test_device(CUdevice device)
{
    struct selftest test = {.device = device};
    CUcontext context;
    unsigned n_failed;

    write_report("== device %d ==\n", device);
    if (!selftest_try(&test, cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain") ||
        !selftest_try(&test, cuCtxSetCurrent(context), "cuCtxSetCurrent")) {
        write_report("FAILED (%s)\n", test.detail);
        return EXIT_FAILURE;
    }
    n_failed = run_checks(device);
    (void)cuDevicePrimaryCtxRelease(device);
    if (n_failed)
        write_report("result: %u checks FAILED\n", n_failed);
    else
        write_report("result: all checks passed\n");
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int verb_selftest(const struct tool_arguments *arguments)
{
    const char *path = arguments->values[CUTTLE_SELFTEST_OUTPUT], *name = arguments->values[CUTTLE_SELFTEST_DEVICE];
    CUdevice device;
    CUresult result;
    int status;

    outputs[0] = stdout;
    outputs[1] = path ? fopen(path, "w") : NULL;
    if (path && !outputs[1]) {
        fprintf(stderr, "cuttle selftest: cannot write %s: %s\n", path, strerror(errno));
        return EXIT_FILE;
    }
    signal(SIGALRM, time_is_up);
    alarm(LIMIT_S);
    result = cuInit(0);
    write_head();
    if (result != CUDA_SUCCESS) {
        write_report("result: there is no device that can be used (CUDA error %d)\n", (int)result);
        status = EXIT_FAILURE;
    } else if (!take_device(name, &device)) {
        status = tool_wrong_usage(arguments, "there is no device ", name);
    } else {
        status = test_device(device);
    }
    if (path && fclose(outputs[1]) != 0) {
        fprintf(stderr, "cuttle selftest: cannot write %s: %s\n", path, strerror(errno));
        return EXIT_FILE;
    }
    return status;
}
