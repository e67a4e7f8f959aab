/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL runtimes that end the process when they start (crashing_runtime.c) leave programs the devices that they have without them. The
 * argument is the folder of the runtimes' libraries; a further one is the library of a good runtime, whose device has to be found beside
 * them. Each case is a process of its own. */
#include "api_test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES_MAX 4

static const char *libraries_folder, *good_or_null;
static char folder[] = "/tmp/crashing_runtimes_XXXXXX"; /* with vendors/, cache/, the file of the log and that of the count */

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static unsigned size_of(const char *name)
{
    struct stat status;

    assert_int_equal(stat(in_folder(name), &status), 0);
    return (unsigned)status.st_size;
}

/* The loader finds these libraries of the folder, and the good one, if it is wanted and there. */
static void install(const char *const names[LIBRARIES_MAX], bool with_good)
{
    char name[32], text[600];

    for (int i = 0; i <= LIBRARIES_MAX; i++) {
        snprintf(name, sizeof name, "vendors/%d.icd", i);
        unlink(in_folder(name));
        if (i < LIBRARIES_MAX && names[i])
            snprintf(text, sizeof text, "%s/lib%s.so\n", libraries_folder, names[i]);
        else if (i == LIBRARIES_MAX && with_good && good_or_null)
            snprintf(text, sizeof text, "%s\n", good_or_null);
        else
            continue;
        write_text(in_folder(name), text);
    }
    write_text(in_folder("log"), "");
    write_text(in_folder("count"), "");
}

/* The number of devices, or 100 and a CUresult; 200: the process died. */
static int devices(const char *backend)
{
    int status, count = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        CUresult r;

        signal(SIGABRT, SIG_DFL); /* cmocka would go on with the tests, in the child */
        signal(SIGSEGV, SIG_DFL);
        setenv("CUTTLE_BACKEND", backend, 1);
        setenv("OCL_ICD_VENDORS", in_folder("vendors"), 1);
        setenv("XDG_CACHE_HOME", in_folder("cache"), 1);
        setenv("CUTTLE_LOG_FILE", in_folder("log"), 1);
        setenv("CRASH_COUNT", in_folder("count"), 1);
        unsetenv("CUTTLE_LOG");
        if ((r = cuInit(0)) == CUDA_SUCCESS)
            r = cuDeviceGetCount(&count);
        if (strcmp(getenv("OCL_ICD_VENDORS"), in_folder("vendors")) != 0)
            _exit(199); /* it was not put back */
        _exit(r == CUDA_SUCCESS ? count : 100 + (int)r % 90);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

static bool log_has(const char *text)
{
    char log[8192];
    int file = open(in_folder("log"), O_RDONLY | O_CLOEXEC);
    ssize_t n = read(file, log, sizeof log - 1);

    assert_true(n >= 0);
    close(file);
    log[n] = 0;
    return strstr(log, text) != NULL;
}

static void each_is_left_out(void **state)
{
    static const char *const names[] = {"crash_abort", "crash_fault", "crash_exit"};
    const char *none[LIBRARIES_MAX] = {NULL};
    int usual;

    (void)state;
    install(none, false);
    usual = devices("");
    for (size_t i = 0; i < 3; i++) {
        install((const char *const[LIBRARIES_MAX]){names[i]}, false);
        assert_int_equal(devices(""), usual);
        assert_true(log_has(names[i]));
        assert_true(log_has("left out"));
    }
}

static void it_is_tried_once(void **state)
{
    static const char *const names[LIBRARIES_MAX] = {"crash_abort", "crash_not"};
    unsigned first;

    (void)state;
    install(names, false);
    assert_int_equal(devices("opencl"), 100 + CUDA_ERROR_NO_DEVICE % 90);
    first = size_of("count");
    assert_int_equal(devices("opencl"), 100 + CUDA_ERROR_NO_DEVICE % 90);
    assert_in_range(first, 1, 3);                  /* crash_abort may be in the cache already; the other one is tried and loaded */
    assert_int_equal(size_of("count") - first, 1); /* the good one, by the loader alone */
}

static void none_is_left(void **state)
{
    static const char *const names[LIBRARIES_MAX] = {"crash_abort", "crash_fault", "crash_exit"};

    (void)state;
    install(names, false);
    assert_int_equal(devices("opencl"), 100 + CUDA_ERROR_NO_DEVICE % 90);
    assert_true(log_has("all OpenCL runtimes crash"));
}

static void a_good_one_stays(void **state)
{
    static const char *const none[LIBRARIES_MAX] = {NULL}, *const bad[LIBRARIES_MAX] = {"crash_abort", "crash_fault", NULL, "crash_exit"};
    int usual;

    (void)state;
    if (!good_or_null)
        skip();
    install(none, true);
    usual = devices("opencl");
    assert_in_range(usual, 1, 50);
    install(bad, true);
    assert_int_equal(devices("opencl"), usual);
    assert_int_equal(devices("opencl"), usual);
}

static int make_folders(void **state)
{
    (void)state;
    return !mkdtemp(folder) || mkdir(in_folder("vendors"), 0700) != 0 || mkdir(in_folder("cache"), 0700) != 0 ? -1 : 0;
}

static int remove_folders(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_left_out),
        cmocka_unit_test(it_is_tried_once),
        cmocka_unit_test(none_is_left),
        cmocka_unit_test(a_good_one_stays),
    };

    if (argc < 2 || !on_cuttle())
        return 77;
    libraries_folder = argv[1];
    good_or_null = argc > 2 ? argv[2] : NULL;
    return cmocka_run_group_tests_name("crashing_runtimes", tests, make_folders, remove_folders);
}
