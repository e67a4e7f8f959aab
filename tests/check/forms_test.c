/* SPDX-License-Identifier: Apache-2.0 */
/* What `cuttle check` reports about the accesses of forms.h: one report for each form with each fault, with the right kernel, line, thread and block; and none
 * without the fault. */
#include "forms.h"

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

static const char *cuttle, *forms;

static const struct form {
    const char *name, *space, *operation;
    unsigned bytes, classes;
} all_forms[] = {
#define FORM(name, space, operation, bytes, classes, code) {#name, space, operation, bytes, classes},
    ALL_FORMS
#undef FORM
};

static const struct fault {
    const char *name, *kind, *options;
    unsigned classes, min_bytes;
} faults[] = {
#define FAULT(name, kind, options, classes, min_bytes) {#name, kind, options, classes, min_bytes},
    FORM_FAULTS
#undef FAULT
};

static int check(const struct fault *fault, const struct form *form, const char *good, char *out, size_t size)
{
    char command[4096];

    snprintf(command, sizeof command, "'%s' check --json %s -- '%s' %s %s %s 2>&1", cuttle, fault->options, forms, fault->name, form->name,
             good);
    return run(command, out, size);
}

/* False: the device cannot have the fault. */
static bool expect(const struct fault *fault, const struct form *form, unsigned line)
{
    char out[16384], text[512];
    const int status = check(fault, form, "", out, sizeof out);

    if (is_left_out(status))
        return false;
    if (status != 0)
        fail_msg("%s %s: the program failed: %s", fault->name, form->name, out);
    if (!*out || strchr(out, '\n')[1])
        fail_msg("%s %s: not one report: %s", fault->name, form->name, out);
    snprintf(text, sizeof text, "{\"kind\": \"%s\", \"space\": \"%s\", \"operation\": \"%s\", \"bytes\": %u, ", fault->kind, form->space,
             form->operation, form->bytes);
    if (!strstr(out, text))
        fail_msg("%s %s: no %s in %s", fault->name, form->name, text, out);
    snprintf(text, sizeof text, "\"kernel\": \"%s\", \"ptx_line\": %u, ", form->name, line);
    if (!strstr(out, text))
        fail_msg("%s %s: no %s in %s", fault->name, form->name, text, out);
    if (!strstr(out, "\"thread\": [3, 0, 0], \"block\": [1, 0, 0], \"count\": 1"))
        fail_msg("%s %s: another thread: %s", fault->name, form->name, out);
    if (check(fault, form, "good", out, sizeof out) != 0 || *out)
        fail_msg("%s %s good: %s", fault->name, form->name, out);
    return true;
}

/* Each fault in ten forms at least. */
static void test_all(void **state)
{
    char command[4096], lines[8192];

    (void)state;
    snprintf(command, sizeof command, "'%s' lines", forms);
    assert_int_equal(run(command, lines, sizeof lines), 0);
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        unsigned n = 0;

        for (size_t i = 0; i < sizeof all_forms / sizeof *all_forms; i++) {
            const struct form *form = &all_forms[i];

            if (!(faults[k].classes & form->classes) || form->bytes < faults[k].min_bytes)
                continue;
            if (!expect(&faults[k], form, (unsigned)strtoul(behind_name(lines, form->name), NULL, 10))) {
                print_message("%s is left out\n", faults[k].name);
                n = LEFT_OUT;
                break;
            }
            n++;
        }
        if (n < 10)
            fail_msg("%s: only %u forms", faults[k].name, n);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};

    if (argc != 3) {
        fprintf(stderr, "usage: check_forms_test CUTTLE FORMS\n");
        return 2;
    }
    cuttle = argv[1];
    forms = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
