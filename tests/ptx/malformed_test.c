/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed modules: each file of malformed/ is rejected, at the position and with the words that its first line states:
 *     // STATUS line:column words of the message
 * The position is that of the first token for which the PTX ISA has no rule. Lines count from 1, the comment's own included. */
#include "cuttle/ptx2spv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "malformed"
#define AT_LEAST 40 /* files: running in a wrong folder must not pass */

static const struct {
    const char *name;
    enum ptx2spv_status status;
} statuses[] = {
    {"INVALID_PTX", PTX2SPV_INVALID_PTX}, {"UNSUPPORTED", PTX2SPV_UNSUPPORTED}, {"UNSUPPORTED_VERSION", PTX2SPV_UNSUPPORTED_VERSION}};

struct expectation {
    char status[32], words[128];
    unsigned line, column;
};

/* The first message of a compilation. */
struct first_message {
    bool seen;
    enum ptx2spv_status status;
    unsigned line, column;
    char text[1024];
};

static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct first_message *first = user;

    if (first->seen || diagnostic->severity != PTX2SPV_ERROR)
        return;
    first->seen = true;
    first->status = diagnostic->status;
    first->line = diagnostic->line;
    first->column = diagnostic->column;
    snprintf(first->text, sizeof first->text, "%s", diagnostic->text);
}

static char *read_file(const char *name, size_t *length)
{
    char path[512];
    FILE *file;
    char *text;

    snprintf(path, sizeof path, FOLDER "/%s", name);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    text = malloc(*length + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *length, file), *length);
    text[*length] = 0;
    fclose(file);
    return text;
}

static enum ptx2spv_status status_of(const char *name)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (strcmp(statuses[i].name, name) == 0)
            return statuses[i].status;
    fail_msg("unknown status %s", name);
    return PTX2SPV_OK;
}

static void check_file(const char *name)
{
    size_t length;
    char *text = read_file(name, &length);
    struct expectation want;
    struct first_message got = {0};
    const struct ptx2spv_options options = {.on_diagnostic = on_diagnostic, .user = &got};
    struct ptx2spv_module *const untouched = (struct ptx2spv_module *)&want, *module = untouched;
    enum ptx2spv_status status;

    assert_int_equal(sscanf(text, "// %31s %u:%u %127[^\n]", want.status, &want.line, &want.column, want.words), 4);
    status = ptx2spv_module_create(text, length, &options, &module);
    if (status != status_of(want.status) || !got.seen || got.line != want.line || got.column != want.column ||
        !strstr(got.text, want.words))
        fail_msg("%s: wanted %s at %u:%u with '%s', got status %d at %u:%u: %s", name, want.status, want.line, want.column, want.words,
                 (int)status, got.line, got.column, got.text);
    assert_int_equal(got.status, status);
    assert_ptr_equal(module, untouched); /* untouched on failure */
    free(text);
}

static void each_file_is_refused_where_it_says(void **state)
{
    DIR *folder = opendir(FOLDER);
    const struct dirent *entry;
    unsigned n = 0;

    (void)state;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        check_file(entry->d_name);
        n++;
    }
    closedir(folder);
    assert_true(n >= AT_LEAST);
}

static void no_text_at_all(void **state)
{
    struct first_message got = {0};
    const struct ptx2spv_options options = {.on_diagnostic = on_diagnostic, .user = &got};
    struct ptx2spv_module *module = NULL;

    (void)state;
    assert_int_equal(ptx2spv_module_create("", 0, &options, &module), PTX2SPV_INVALID_PTX);
    assert_null(module);
    assert_int_equal(got.line, 1);
    assert_int_equal(got.column, 1);
}

struct error_lines {
    unsigned n, lines[32];
};

static void collect_line(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct error_lines *seen = user;

    if (diagnostic->severity == PTX2SPV_ERROR && seen->n < 32)
        seen->lines[seen->n++] = diagnostic->line;
}

/* Several errors of one module are all reported, and correct lines between them are not. */
static void errors_do_not_hide_each_other(void **state)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".entry k()\n{\n.reg .b32 %r<3>;\n"
                               "add.u32 %r1, %x, 1;\n" /* line 7 */
                               "foo %r1;\n"            /* line 8 */
                               "mov.u32 %r1, 5;\n"
                               "mov.b64 {%r1, ?}, 5;\n"      /* line 10: a brace of an operand does not end the function */
                               "mov.u32 %r1, %y;\nret;\n}\n" /* line 11 */
                               ".global .u32 z = q;\n"       /* line 14 */
                               ".global .u32 fine;\n";
    static const unsigned want[] = {7, 8, 10, 11, 14};
    struct error_lines seen = {0};
    const struct ptx2spv_options options = {.on_diagnostic = collect_line, .user = &seen};
    struct ptx2spv_module *module = NULL;

    (void)state;
    assert_int_equal(ptx2spv_module_create(text, sizeof text - 1, &options, &module), PTX2SPV_INVALID_PTX);
    assert_int_equal(seen.n, sizeof want / sizeof want[0]);
    assert_memory_equal(seen.lines, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_is_refused_where_it_says),
        cmocka_unit_test(no_text_at_all),
        cmocka_unit_test(errors_do_not_hide_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
