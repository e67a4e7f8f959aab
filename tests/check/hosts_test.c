/* SPDX-License-Identifier: Apache-2.0 */
/* What `cuttle check --host-accesses` reports about the programs of hosts.h: their fault once, with the function that makes the access; and nothing without it. */
#include "hosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check_command.h"

static const char *cuttle, *hosts;

static const struct row {
    const char *name, *operation, *command, *command_operation;
} rows[] = {
#define HOST(name, host, command, operation) {#name, host, command, operation},
    HOSTS
#undef HOST
};

static int check(const char *name, const char *form, char *out, size_t size)
{
    char command[4096];

    snprintf(command, sizeof command, "CUTTLE_CHECK_HOST_WAIT_MS=3000 '%s' check --json --no-leaks --host-accesses -- '%s' %s %s 2>&1",
             cuttle, hosts, name, form);
    return run(command, out, size);
}

static void expect(const struct row *row)
{
    char out[16384], facts[256], frame[128];
    const int status = check(row->name, "", out, sizeof out);
    const char *line;

    if (is_left_out(status)) {
        print_message("%s is left out on this device\n", row->name);
        return;
    }
    if (status != 0 || !*out)
        fail_msg("%s: %s", row->name, *out ? out : "no report");
    snprintf(facts, sizeof facts, "{\"kind\": \"host-access\", \"operation\": \"%s\", \"command\": \"%s\", \"command_operation\": \"%s\", ",
             row->operation, row->command, row->command_operation);
    snprintf(frame, sizeof frame, "\"accessed_by\": [\"%s+0x", row->name);
    line = strchr(out, '\n');
    if (!strstr(out, facts) || !strstr(out, frame) || !line || line[1])
        fail_msg("%s: %s", row->name, out);
    if (check(row->name, "good", out, sizeof out) != 0 || *out)
        fail_msg("%s good: %s", row->name, out);
}

static void test_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(&rows[i]);
}

static void test_allowed(void **state)
{
    static const char *const names[] = {"neighbours",    "conversation",      "flag_of_kernel",
                                        "host_function", "asked_until_ready", "calls_that_wait"};
    char out[16384];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (check(names[i], "", out, sizeof out) != 0 || *out)
            fail_msg("%s: %s", names[i], out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_allowed)};

    if (argc != 3) {
        fprintf(stderr, "usage: check_hosts_test CUTTLE HOSTS\n");
        return 2;
    }
    cuttle = argv[1];
    hosts = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
