/* SPDX-License-Identifier: Apache-2.0 */
/* What `cuttle check` reports about the faults of planted.h: one report each, with the right kernel, block, thread and line; and none about the same
 * programs without the faults. */
#include "planted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check_command.h"

static const char *cuttle, *planted;

static const struct row {
    const char *name, *kernel, *kind, *space, *operation;
    unsigned bytes;
} rows[] = {
#define PLANTED(name, kernel, good, bad, kind, space, operation, bytes) {#name, #kernel, kind, space, operation, bytes},
    PLANTED_ROWS
#undef PLANTED
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static unsigned line_of(const char *name)
{
    char command[4096], out[4096];

    snprintf(command, sizeof command, "'%s' lines", planted);
    assert_int_equal(run(command, out, sizeof out), 0);
    return (unsigned)strtoul(behind_name(out, name), NULL, 10);
}

static int check(const char *options, const char *name, const char *form, char *out, size_t size)
{
    char command[4096];

    snprintf(command, sizeof command, "'%s' check --json %s -- '%s' %s %s 2>&1", cuttle, options, planted, name, form);
    return run(command, out, size);
}

static void expect(const char *name, const char *out, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!strstr(out, text))
        fail_msg("%s: no %s in %s", name, text, out);
}

/* The program succeeds, and nothing is reported. */
static void expect_nothing(const char *options, const char *name, const char *form)
{
    char out[16384];

    if (check(options, name, form, out, sizeof out) != 0 || *out)
        fail_msg("%s %s %s: %s", options, name, form, out);
}

static void expect_one_report(const char *name, const char *out)
{
    if (!*out || strchr(out, '\n')[1])
        fail_msg("%s: not one report: %s", name, out);
}

static void test_each_fault(void **state)
{
    char out[16384];

    (void)state;
    for (int i = 0; i < N_ROWS; i++) {
        const struct row *row = &rows[i];

        if (check("", row->name, "", out, sizeof out) != 0)
            fail_msg("%s: the program failed: %s", row->name, out);
        expect_one_report(row->name, out);
        expect(row->name, out, "\"kind\": \"%s\", \"space\": \"%s\", \"operation\": \"%s\", \"bytes\": %u, ", row->kind, row->space,
               row->operation, row->bytes);
        expect(row->name, out, "\"kernel\": \"%s\", \"ptx_line\": %u, ", row->kernel, line_of(row->name));
        expect(row->name, out, "\"thread\": [3, 0, 0], \"block\": [1, 0, 0], \"count\": 1");
    }
}

/* A warp instruction that is executed by a thread which its mask lacks. */
static void test_mask(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("", "mask", "", out, sizeof out), 0);
    expect("mask", out, "{\"kind\": \"mask\", \"operation\": \"warp instruction\", \"mask\": 16, \"kernel\": \"mask\", \"ptx_line\": %u, ",
           line_of("mask"));
    expect("mask", out, "\"thread\": [3, 0, 0], \"block\": [1, 0, 0], \"count\": 1");
    expect_one_report("mask", out);
    expect_nothing("", "mask", "good");
}

/* Only with --races; and no other report about the shadow of shared memory. */
static void test_races(void **state)
{
    static const char *const names[] = {"race", "race_in_warp"};
    char out[16384];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(check("--races", names[i], "", out, sizeof out), 0);
        expect(names[i], out, "{\"kind\": \"race\", \"space\": \"shared\", \"operation\": \"read\", \"bytes\": 4, ");
        expect(names[i], out, "\"kernel\": \"%s\", \"ptx_line\": %u, ", names[i], line_of(names[i]));
        expect_nothing("--races", names[i], "good");
        expect_nothing("", names[i], "");
    }
}

/* Other faults are found as well, with the limits that the program knows (rounded up to 16 bytes). */
static void test_faults_with_races(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("--races", "shared_behind", "", out, sizeof out), 0);
    expect("shared_behind", out, "{\"kind\": \"out-of-bounds\", \"space\": \"shared\"");
    expect_nothing("--races", "shared_behind", "good");
}

static void test_none_without_faults(void **state)
{
    (void)state;
    for (int i = 0; i < N_ROWS; i++)
        expect_nothing("", rows[i].name, "good");
}

static void test_source_places(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("", "inlined", "", out, sizeof out), 0);
    expect("inlined", out,
           "\"source\": [{\"file\": \"folder/inner.cuh\", \"line\": 12, \"column\": 9, \"function\": \"store\"}, "
           "{\"file\": \"folder/planted.cu\", \"line\": 30, \"column\": 5, \"function\": \"\"}]");
}

/* The allocation nearby, and who made it. */
static void test_allocations(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("", "write_behind", "", out, sizeof out), 0);
    expect("write_behind", out, "\"bytes\": 256}, \"allocated_by\": [\"planted_allocation+0x");
    assert_int_equal(check("", "freed", "", out, sizeof out), 0);
    expect("freed", out, "\"allocated_by\": [\"planted_allocation+0x");
    expect("freed", out, "\"freed_by\": [\"");
}

static void test_variables(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("", "constant_write", "", out, sizeof out), 0);
    expect("constant_write", out, "\"bytes\": 64}, \"variable\": \"fixed\"");
    assert_int_equal(check("", "variable_before", "", out, sizeof out), 0);
    expect("variable_before", out, "\"bytes\": 64}, \"variable\": \"table\"");
}

/* What the program does after a call has failed. */
static void test_calls(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("", "call_goes_on", "", out, sizeof out), 0);
    expect("call_goes_on", out,
           "{\"kind\": \"api-error\", \"call\": \"cuMemcpyDtoH_v2\", \"error\": \"CUDA_ERROR_INVALID_VALUE\", \"reason\": \"");
    expect_one_report("call_goes_on", out);
    assert_int_equal(check("", "call_exits", "", out, sizeof out), 0);
    expect("call_exits", out, "\"kind\": \"api-error\"");
    expect_nothing("", "call_asks", "");
    assert_int_not_equal(check("", "call_gives_up", "", out, sizeof out), 0);
    assert_string_equal(out, "");
}

static void test_leaks(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(check("", "leak", "", out, sizeof out), 0);
    expect("leak", out, "{\"kind\": \"leak\", ");
    expect("leak", out, "\"bytes\": 256, \"memory\": \"device memory\", \"allocated_by\": [\"planted_allocation+0x");
    expect_nothing("--no-leaks", "leak", "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault),
        cmocka_unit_test(test_none_without_faults),
        cmocka_unit_test(test_source_places),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_faults_with_races),
        cmocka_unit_test(test_leaks),
    };

    if (argc != 3) {
        fprintf(stderr, "usage: check_reports_test CUTTLE PLANTED\n");
        return 2;
    }
    cuttle = argv[1];
    planted = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
