/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of test programs (cmocka) on a device that executes nothing. SHIM_CASES names a file (cases.txt) with a line for each case that does
 * not run as ever: the program, the case or * for all others, one of these words, and, if the line is for one driver only, "amdgpu" or "i915".
 *   unread   the case runs to its end, whatever is in memory: cmocka's comparisons have no effect. Whether calls return what they should is
 *            checked as ever, since tests do that with fail().
 *   absent   the case does not run
 * Functions of cmocka are replaced by their names, since cmocka has no list of filters. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_CASES 512
#define LINE_BYTES 256

typedef int fixture(void **state);

struct test { /* struct CMUnitTest */
    const char *name;
    void (*run)(void **state);
    fixture *setup, *teardown;
    void *initial_state;
};

typedef int run_group(const char *name, const struct test *tests, size_t n_tests, fixture *setup, fixture *teardown);
typedef void compare_ints(uintmax_t a, uintmax_t b, const char *file, int line);
typedef void compare_bytes(const void *a, const void *b, size_t size, const char *file, int line);
typedef void compare_strings(const char *a, const char *b, const char *file, int line);
typedef void check_truth(uintmax_t result, const char *expression, const char *file, int line);

run_group _cmocka_run_group_tests;
compare_ints _assert_int_equal, _assert_int_not_equal;
compare_bytes _assert_memory_equal, _assert_memory_not_equal;
compare_strings _assert_string_equal;
check_truth _assert_true;

enum how { AS_EVER, UNREAD, ABSENT };

/* The cases that run, of the group that runs now. */
static struct {
    fixture *setup;
    enum how how;
} plan[N_CASES];
static size_t next_case;
static bool is_unread;

static void find_function(const char *name, void *out)
{
    if (!(*(void **)out = dlsym(RTLD_NEXT, name)))
        abort();
}

/* What a line says of a case. The first that fits counts. */
static enum how read_line(const char *line, const char *test)
{
    char program[LINE_BYTES], name[LINE_BYTES], how[LINE_BYTES], driver[LINE_BYTES] = "";
    const char *const ours = getenv("INTEL_STUB_GPU_PLATFORM") ? "i915" : "amdgpu";

    if (sscanf(line, "%255s %255s %255s %255s", program, name, how, driver) < 3 || strcmp(program, program_invocation_short_name) ||
        (strcmp(name, test) && strcmp(name, "*")) || (*driver && strcmp(driver, ours)))
        return AS_EVER;
    return strcmp(how, "absent") ? UNREAD : ABSENT;
}

static enum how look_up(const char *list, const char *test)
{
    char line[LINE_BYTES];
    enum how found = AS_EVER;
    FILE *file = fopen(list, "re");

    if (!file)
        abort();
    while (found == AS_EVER && fgets(line, sizeof line, file))
        found = read_line(line, test);
    fclose(file);
    return found;
}

/* Called before each case. */
static int begin(void **state)
{
    fixture *setup = plan[next_case].setup;
    int result;

    is_unread = false;
    result = setup ? setup(state) : 0;
    is_unread = plan[next_case++].how == UNREAD;
    return result;
}

int _cmocka_run_group_tests(const char *name, const struct test *tests, size_t n_tests, fixture *setup, fixture *teardown)
{
    const char *list = getenv("SHIM_CASES");
    static struct test kept[N_CASES];
    size_t n_kept = 0;
    run_group *next;
    int result;

    find_function("_cmocka_run_group_tests", &next);
    if (!list || !*list)
        return next(name, tests, n_tests, setup, teardown);
    next_case = 0;
    for (size_t i = 0; i < n_tests && n_kept < N_CASES; i++) {
        const enum how how = look_up(list, tests[i].name);

        if (how != AS_EVER)
            printf("shim: %s: %s\n", tests[i].name, how == ABSENT ? "absent" : "unread");
        if (how == ABSENT)
            continue;
        plan[n_kept].setup = tests[i].setup;
        plan[n_kept].how = how;
        kept[n_kept] = tests[i];
        kept[n_kept++].setup = begin;
    }
    result = next(name, kept, n_kept, setup, teardown);
    is_unread = false;
    return result;
}

#define PASS_ON(type, name, ...)                                                                                                           \
    do {                                                                                                                                   \
        type *next;                                                                                                                        \
                                                                                                                                           \
        find_function(name, &next);                                                                                                        \
        next(__VA_ARGS__);                                                                                                                 \
    } while (0)

void _assert_int_equal(uintmax_t a, uintmax_t b, const char *file, int line)
{
    if (!is_unread)
        PASS_ON(compare_ints, "_assert_int_equal", a, b, file, line);
}

void _assert_int_not_equal(uintmax_t a, uintmax_t b, const char *file, int line)
{
    if (!is_unread)
        PASS_ON(compare_ints, "_assert_int_not_equal", a, b, file, line);
}

void _assert_memory_equal(const void *a, const void *b, size_t size, const char *file, int line)
{
    if (!is_unread)
        PASS_ON(compare_bytes, "_assert_memory_equal", a, b, size, file, line);
}

void _assert_memory_not_equal(const void *a, const void *b, size_t size, const char *file, int line)
{
    if (!is_unread)
        PASS_ON(compare_bytes, "_assert_memory_not_equal", a, b, size, file, line);
}

void _assert_string_equal(const char *a, const char *b, const char *file, int line)
{
    if (!is_unread)
        PASS_ON(compare_strings, "_assert_string_equal", a, b, file, line);
}

void _assert_true(uintmax_t result, const char *expression, const char *file, int line)
{
    if (!is_unread)
        PASS_ON(check_truth, "_assert_true", result, expression, file, line);
}
