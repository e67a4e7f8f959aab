/* SPDX-License-Identifier: Apache-2.0 */
/* What `cuttle check` reports about the kernels of syncs.h: their fault, at one of the two places where it lies, with the right thread and block; and nothing
 * without the fault. */
#include "syncs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check_command.h"

static const char *cuttle, *syncs;
static char lines[16384];

static const struct row {
    const char *name, *kind, *options;
    unsigned here, there; /* threads */
} rows[] = {
#define SYNC(name, kind, options, first, last, here, there, code) {#name, kind, options, here, there},
    BARRIER_SYNCS MASK_SYNCS RACE_SYNCS LOADS_SYNCS THREADS_SYNCS BLOCKS_SYNCS
#undef SYNC
};

static int check(const char *options, const char *name, const char *form, char *out, size_t size)
{
    char command[4096];

    snprintf(command, sizeof command, "'%s' check --json --no-leaks %s -- '%s' %s %s 2>&1", cuttle, options, syncs, name, form);
    return run(command, out, size);
}

static int is_about(const char *report, const struct row *row, unsigned line, unsigned thread)
{
    char kind[64], place[128], who[128];

    snprintf(kind, sizeof kind, "{\"kind\": \"%s\", ", row->kind);
    snprintf(place, sizeof place, "\"kernel\": \"%s\", \"ptx_line\": %u, ", row->name, line);
    snprintf(who, sizeof who, "\"thread\": [%u, 0, 0], \"block\": [1, 0, 0], \"count\": 1", thread);
    return strstr(report, kind) && strstr(report, place) && strstr(report, who);
}

/* Each report is about one of the two places. False: the device has no such memory. */
static bool expect(const struct row *row, const char *memory)
{
    unsigned line[2];
    char out[16384], form[64];
    int status;

    assert_int_equal(sscanf(behind_name(lines, row->name), "%u %u", &line[0], &line[1]), 2);
    snprintf(form, sizeof form, "bad %s", memory);
    status = check(row->options, row->name, form, out, sizeof out);
    if (is_left_out(status))
        return false;
    if (status != 0 || !*out)
        fail_msg("%s %s: %s", row->name, memory, *out ? out : "no report");
    for (char *report = strtok(out, "\n"); report; report = strtok(NULL, "\n"))
        if (!is_about(report, row, line[0], row->here) && !is_about(report, row, line[1], row->there))
            fail_msg("%s %s: not line %u and thread %u, or line %u and thread %u: %s", row->name, memory, line[0], row->here, line[1],
                     row->there, report);
    snprintf(form, sizeof form, "good %s", memory);
    if (check(row->options, row->name, form, out, sizeof out) != 0 || *out)
        fail_msg("%s good %s: %s", row->name, memory, out);
    return true;
}

static void test_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(&rows[i], "device");
}

/* Races in memory of every kind. */
static void test_memories(void **state)
{
    static const char *const memories[] = {"pool", "managed", "pinned", "registered", "mapped", "mapped_twice"};
    static const char *const names[] = {"blocks_load_u32", "blocks_store_v4", "blocks_store_after_load", "threads_load_u8"};
    bool is_here = true;

    (void)state;
    for (size_t m = 0; m < sizeof memories / sizeof *memories; m++) {
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (!strcmp(rows[i].name, names[n]))
                    is_here = expect(&rows[i], memories[m]);
        if (!is_here)
            print_message("the device has no memory of the kind %s\n", memories[m]);
    }
}

static void test_allowed(void **state)
{
    static const char *const names[] = {
        "early_end", "two_ways", "warp_step",           "many_barriers",           "own_bytes", "volatile_flag", "bytes_of_a_word",
        "same_flag", "fenced",   "own_bytes_of_a_word", "written_behind_a_barrier"};
    char out[16384];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (check("--races --global-races", names[i], "good", out, sizeof out) != 0 || *out)
            fail_msg("%s: %s", names[i], out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_memories), cmocka_unit_test(test_allowed)};
    char command[4096];

    if (argc != 3) {
        fprintf(stderr, "usage: check_syncs_test CUTTLE SYNCS\n");
        return 2;
    }
    cuttle = argv[1];
    syncs = argv[2];
    snprintf(command, sizeof command, "'%s' lines", syncs);
    if (run(command, lines, sizeof lines) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
