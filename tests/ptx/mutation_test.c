/* SPDX-License-Identifier: Apache-2.0 */
/* Valid modules (samples/) with thousands of small mutations: each is accepted, or rejected with a message at a position in the text,
 * and nothing else happens; under a sanitizer also nothing leaks. The mutations come from a fixed seed, so a failure can be repeated. */
#include "cuttle/ptx2spv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "samples"
#ifdef SANITIZED
#define MUTATIONS_OF_A_FILE 500
#else
#define MUTATIONS_OF_A_FILE 1500
#endif
#define MAX_BYTES 65536
#define ROOM 256 /* bytes that mutations may add */

const char *__asan_default_options(void);

/* A mutated array size may request more memory than there is: malloc must return NULL, not abort. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const char *const words[] = {
    ";",     ",",
    "{",     "}",
    "(",     ")",
    "[",     "]",
    ".reg ", ".global ",
    ".u32 ", ".f64 ",
    "%r1",   "0x7fffffffffffffff",
    "-1",    "1.5",
    ".v4",   "<999999999>",
    "@%p1 ", "bra ",
    "call ", ".param .b32 x",
    "/*",    "\"",
    "|",     "!",
    "=",     ".align 4 ",
    "_",     "generic(",
    "%tid",  ".x",
    "\0",
};

struct text {
    char bytes[MAX_BYTES];
    size_t length;
};

struct messages {
    unsigned errors, lines_beyond_the_text, lines;
};

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13; /* Marsaglia's xorshift64 */
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct messages *messages = user;

    messages->errors += diagnostic->severity == PTX2SPV_ERROR;
    messages->lines_beyond_the_text += diagnostic->line == 0 || diagnostic->line > messages->lines;
}

static void insert(struct text *text, size_t at, const char *bytes, size_t length)
{
    memmove(text->bytes + at + length, text->bytes + at, text->length - at);
    memcpy(text->bytes + at, bytes, length);
    text->length += length;
}

static void cut(struct text *text, size_t at, size_t length)
{
    if (length > text->length - at)
        length = text->length - at;
    memmove(text->bytes + at, text->bytes + at + length, text->length - at - length);
    text->length -= length;
}

static void mutate(struct text *text)
{
    const size_t at = random_below((uint32_t)text->length);
    const char *word = words[random_below(sizeof words / sizeof words[0])];
    char piece[ROOM / 8];
    size_t length = 1 + random_below(sizeof piece - 1);

    if (length > text->length - at)
        length = text->length - at;
    switch (random_below(6)) {
    case 0:
        text->bytes[at] = (char)random_below(256);
        break;
    case 1:
        cut(text, at, 1 + random_below(3));
        break;
    case 2:
        cut(text, at, 1 + random_below(80));
        break;
    case 3:
        insert(text, at, word, strlen(word) ? strlen(word) : 1);
        break;
    case 4: /* repeats a part of the text elsewhere */
        memcpy(piece, text->bytes + at, length);
        insert(text, random_below((uint32_t)text->length), piece, length);
        break;
    default:
        text->bytes[at] ^= (char)(1 << random_below(7));
        break;
    }
}

static unsigned count_lines(const struct text *text)
{
    unsigned lines = 1;

    for (size_t i = 0; i < text->length; i++)
        lines += text->bytes[i] == '\n';
    return lines;
}

static enum ptx2spv_status try_text(const struct text *text, struct messages *messages)
{
    const struct ptx2spv_options options = {.on_diagnostic = on_diagnostic, .user = messages};
    struct ptx2spv_module *module = NULL;
    char *exact = malloc(text->length); /* of the exact size, so that a sanitizer detects reads beyond the end */
    enum ptx2spv_status status;

    assert_non_null(exact);
    memcpy(exact, text->bytes, text->length);
    *messages = (struct messages){.lines = count_lines(text)};
    status = ptx2spv_module_create(exact, text->length, &options, &module);
    free(exact);
    assert_true((status == PTX2SPV_OK) == (module != NULL));
    ptx2spv_module_destroy(module);
    return status;
}

static void check(const struct text *text, const char *name, unsigned number)
{
    struct messages messages;
    const enum ptx2spv_status status = try_text(text, &messages);
    const bool refused = status == PTX2SPV_INVALID_PTX || status == PTX2SPV_UNSUPPORTED || status == PTX2SPV_UNSUPPORTED_VERSION;

    if (messages.lines_beyond_the_text || (refused ? !messages.errors : status != PTX2SPV_OK && status != PTX2SPV_OUT_OF_MEMORY) ||
        (status == PTX2SPV_OK && messages.errors))
        fail_msg("%s, mutation %u: status %d, %u errors, %u outside of the text", name, number, (int)status, messages.errors,
                 messages.lines_beyond_the_text);
}

static void read_sample(const char *name, struct text *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, FOLDER "/%s", name);
    file = fopen(path, "rb");
    assert_non_null(file);
    text->length = fread(text->bytes, 1, sizeof text->bytes - ROOM, file);
    assert_true(feof(file));
    fclose(file);
}

/* Calls `visit` for each sample; there must be at least one. */
static void each_sample(void (*visit)(const char *name, const struct text *text))
{
    struct text *text = malloc(sizeof *text);
    DIR *folder = opendir(FOLDER);
    const struct dirent *entry;
    unsigned n = 0;

    assert_non_null(text);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        read_sample(entry->d_name, text);
        visit(entry->d_name, text);
        n++;
    }
    closedir(folder);
    free(text);
    assert_true(n > 0);
}

static void expect_good(const char *name, const struct text *text)
{
    struct messages messages;

    if (try_text(text, &messages) != PTX2SPV_OK || messages.errors)
        fail_msg("%s is refused", name);
}

static void samples_are_taken(void **state)
{
    (void)state;
    each_sample(expect_good);
}

static void damage(const char *name, const struct text *text)
{
    struct text *damaged = malloc(sizeof *damaged);

    assert_non_null(damaged);
    random_state = UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < MUTATIONS_OF_A_FILE; i++) {
        const unsigned n = 1 + random_below(3);

        *damaged = *text;
        for (unsigned k = 0; k < n && damaged->length; k++)
            mutate(damaged);
        check(damaged, name, i);
    }
    free(damaged);
}

static void damaged_samples_are_taken_or_refused(void **state)
{
    (void)state;
    each_sample(damage);
}

static void cut_off(const char *name, const struct text *text)
{
    struct text *damaged = malloc(sizeof *damaged);

    assert_non_null(damaged);
    for (size_t length = 0; length < text->length; length += 1 + text->length / 400) {
        *damaged = *text;
        damaged->length = length;
        check(damaged, name, (unsigned)length);
    }
    free(damaged);
}

static void samples_may_end_anywhere(void **state)
{
    (void)state;
    each_sample(cut_off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_taken),
        cmocka_unit_test(damaged_samples_are_taken_or_refused),
        cmocka_unit_test(samples_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
