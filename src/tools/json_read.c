/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive descent over the grammar of RFC 8259. Values lie in an arena that is emptied after each value that was handed out. */
#include "json_read.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, BLOCK_BYTES = 64 << 10 };

struct block {
    struct block *next;
    size_t used, size;
    max_align_t bytes[];
};

struct reader {
    const char *begin, *at, *end;
    const char *error; /* NULL: none */
    struct block *blocks;
    const char *array;
    bool (*take)(void *user, const struct json_value *value);
    void *user;
};

/* ---- memory ---- */

static void *allocate(struct reader *reader, size_t size_bytes)
{
    struct block *block = reader->blocks;
    void *result;

    size_bytes = (size_bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!block || block->size - block->used < size_bytes) {
        const size_t size = size_bytes > BLOCK_BYTES ? size_bytes : BLOCK_BYTES;

        block = malloc(sizeof *block + size);
        if (!block) {
            reader->error = "no memory";
            return NULL;
        }
        *block = (struct block){.next = reader->blocks, .size = size};
        reader->blocks = block;
    }
    result = (char *)block->bytes + block->used;
    block->used += size_bytes;
    return result;
}

/* Keeps one block. */
static void empty(struct reader *reader)
{
    while (reader->blocks && reader->blocks->next) {
        struct block *next = reader->blocks->next;

        free(reader->blocks);
        reader->blocks = next;
    }
    if (reader->blocks)
        reader->blocks->used = 0;
}

/* ---- the grammar ---- */

static const struct json_value *parse_value(struct reader *reader, unsigned depth);

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

/* Whether this character comes next; it is skipped. */
static bool accept(struct reader *reader, char character)
{
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != character)
        return false;
    reader->at++;
    return true;
}

static bool expect(struct reader *reader, char character, const char *error)
{
    if (!reader->error && !accept(reader, character))
        reader->error = error;
    return !reader->error;
}

static bool accept_word(struct reader *reader, const char *word)
{
    const size_t length = strlen(word);

    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

/* Four hexadecimal digits, or -1. */
static int parse_unit(struct reader *reader)
{
    int unit = 0;

    for (int i = 0; i < 4; i++, reader->at++) {
        const char digit = reader->at < reader->end ? *reader->at : 0;

        if (digit >= '0' && digit <= '9')
            unit = unit * 16 + digit - '0';
        else if ((digit | 32) >= 'a' && (digit | 32) <= 'f')
            unit = unit * 16 + (digit | 32) - 'a' + 10;
        else
            return -1;
    }
    return unit;
}

/* Writes a code point as UTF-8. */
static char *put_character(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* What follows a backslash. NULL: an error. */
static char *parse_escape(struct reader *reader, char *to)
{
    static const char names[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
    const char name = reader->at < reader->end ? *reader->at++ : 0;
    const char *found = name ? strchr(names, name) : NULL;
    int unit, low;

    if (found) {
        *to = characters[found - names];
        return to + 1;
    }
    if (name != 'u' || (unit = parse_unit(reader)) < 0)
        return NULL;
    if ((unit & 0xfc00) != 0xd800)
        return put_character(to, (unit & 0xfc00) == 0xdc00 ? 0xfffd : (uint32_t)unit);
    if (!accept_word(reader, "\\u") || (low = parse_unit(reader)) < 0 || (low & 0xfc00) != 0xdc00)
        return NULL;
    return put_character(to, 0x10000u + (((uint32_t)unit & 0x3ff) << 10 | ((uint32_t)low & 0x3ff)));
}

/* A string behind its first quotation mark. */
static const char *parse_string(struct reader *reader)
{
    const char *end = reader->at;
    char *text, *to;

    while (end < reader->end && *end != '"')
        end += *end == '\\' && end + 1 < reader->end ? 2 : 1;
    text = to = allocate(reader, (size_t)(end - reader->at) + 1); /* no escape is shorter than its character */
    if (!text)
        return NULL;
    while (reader->at < reader->end && *reader->at != '"') {
        const unsigned char c = (unsigned char)*reader->at++;

        if (c < ' ')
            reader->error = "a control character in a string";
        else if (c == '\\' && !(to = parse_escape(reader, to)))
            reader->error = "an unknown escape";
        else if (c != '\\')
            *to++ = (char)c;
        if (reader->error)
            return NULL;
    }
    *to = 0;
    return expect(reader, '"', "a string without an end") ? text : NULL;
}

static bool parse_number(struct reader *reader, struct json_value *value)
{
    const char *begin = reader->at;
    char *copy, *end;

    while (reader->at < reader->end && strchr("+-0123456789.eE", *reader->at) && *reader->at)
        reader->at++;
    copy = allocate(reader, (size_t)(reader->at - begin) + 1);
    if (!copy)
        return false;
    memcpy(copy, begin, (size_t)(reader->at - begin));
    copy[reader->at - begin] = 0;
    value->type = JSON_NUMBER;
    value->text = copy;
    value->number = strtod(copy, &end);
    if (!*copy || *end || *copy == '+')
        reader->error = "no value";
    return !reader->error;
}

/* Whether this value is to be handed out: an element of the array, or another member of the outermost object. */
static void hand_out(struct reader *reader, const struct json_value *value)
{
    if (!reader->error && !reader->take(reader->user, value))
        reader->error = "no memory";
    empty(reader);
}

/* The elements of an array, or the members of an object, behind its first character. */
static bool parse_elements(struct reader *reader, struct json_value *parent, unsigned depth, bool is_handed_out)
{
    const char last = parent->type == JSON_OBJECT ? '}' : ']';
    const struct json_value **end = &parent->first;

    if (accept(reader, last))
        return true;
    do {
        const char *key = NULL;
        struct json_value *value;

        if (parent->type == JSON_OBJECT &&
            (!expect(reader, '"', "no key") || !(key = parse_string(reader)) || !expect(reader, ':', "no colon")))
            return false;
        if (depth == 1 && key && !strcmp(key, reader->array) && accept(reader, '[')) {
            struct json_value array = {.type = JSON_ARRAY};

            if (!parse_elements(reader, &array, depth + 1, true))
                return false;
            continue;
        }
        if (!(value = (struct json_value *)parse_value(reader, depth + 1)))
            return false;
        value->key = key;
        if (is_handed_out || depth == 1) {
            hand_out(reader, value);
        } else {
            *end = value;
            end = &value->next;
        }
    } while (!reader->error && accept(reader, ','));
    return expect(reader, last, "neither a comma nor the end");
}

static const struct json_value *parse_value(struct reader *reader, unsigned depth)
{
    struct json_value *value = depth < DEPTH_MAX ? allocate(reader, sizeof *value) : NULL;

    if (!value) {
        reader->error = reader->error ? reader->error : "values are nested too deep";
        return NULL;
    }
    *value = (struct json_value){.type = JSON_NULL};
    skip_space(reader);
    if (accept(reader, '"')) {
        value->type = JSON_STRING;
        value->text = parse_string(reader);
    } else if (accept(reader, '{')) {
        value->type = JSON_OBJECT;
        parse_elements(reader, value, depth, false);
    } else if (accept(reader, '[')) {
        value->type = JSON_ARRAY;
        parse_elements(reader, value, depth, false);
    } else if (accept_word(reader, "true") || accept_word(reader, "false")) {
        value->type = JSON_BOOL;
        value->number = reader->at[-2] == 'u';
    } else if (!accept_word(reader, "null")) {
        parse_number(reader, value);
    }
    return reader->error ? NULL : value;
}

const char *json_read(const char *text, size_t length, const char *array, bool (*take)(void *user, const struct json_value *value),
                      void *user, size_t *out_offset)
{
    struct reader reader = {.begin = text, .at = text, .end = text + length, .array = array, .take = take, .user = user};
    struct json_value outermost = {.type = JSON_OBJECT};

    if (expect(&reader, '{', "the file is no JSON object") && parse_elements(&reader, &outermost, 1, false)) {
        skip_space(&reader);
        if (reader.at != reader.end)
            reader.error = "something follows the end";
    }
    *out_offset = (size_t)(reader.at - reader.begin);
    empty(&reader);
    free(reader.blocks);
    return reader.error;
}

const struct json_value *json_member(const struct json_value *value, const char *key)
{
    const struct json_value *member = value && value->type == JSON_OBJECT ? value->first : NULL;

    while (member && strcmp(member->key, key) != 0)
        member = member->next;
    return member;
}

const char *json_member_text(const struct json_value *value, const char *key, const char *otherwise)
{
    const struct json_value *member = json_member(value, key);

    return member && member->type == JSON_STRING ? member->text : otherwise;
}

double json_member_number(const struct json_value *value, const char *key, double otherwise)
{
    const struct json_value *member = json_member(value, key);

    return member && member->type == JSON_NUMBER ? member->number : otherwise;
}
