/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <string.h>

static FILE *output(const struct json *json)
{
    return json->to ? json->to : stdout;
}

/* The length of the character that begins here, at most `length`; 0: it is no UTF-8. Overlong forms and surrogates are not told apart from others. */
static size_t character_length(const unsigned char *text, size_t length)
{
    const size_t wanted = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : *text < 0xf5 ? 4 : 0;

    if (wanted > length)
        return 0;
    for (size_t i = 1; i < wanted; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return wanted;
}

static void write_text(FILE *to, const char *text, size_t length)
{
    putc('"', to);
    for (size_t i = 0, n; i < length; i += n ? n : 1) {
        const unsigned char *at = (const unsigned char *)text + i;

        n = character_length(at, length - i);
        if (!n)
            fputs("\\ufffd", to);
        else if (*at < ' ' || *at == 0x7f)
            fprintf(to, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else
            fwrite(at, 1, n, to);
    }
    putc('"', to);
}

static void break_line(const struct json *json)
{
    if (!json->one_line || json->depth <= json->one_line)
        fprintf(output(json), "\n%*s", (int)json->depth * 2, "");
}

static void begin(struct json *json, const char *key)
{
    if (json->has_element)
        putc(',', output(json));
    if (json->depth)
        break_line(json);
    json->has_element = true;
    if (key) {
        write_text(output(json), key, strlen(key));
        fputs(": ", output(json));
    }
}

static void open_with(struct json *json, const char *key, char character)
{
    begin(json, key);
    putc(character, output(json));
    json->depth++;
    json->has_element = false;
}

void json_object(struct json *json, const char *key)
{
    open_with(json, key, '{');
}

void json_array(struct json *json, const char *key)
{
    open_with(json, key, '[');
}

void json_end(struct json *json, char character)
{
    const bool is_broken = !json->one_line || json->depth <= json->one_line;

    json->depth--;
    if (json->has_element && is_broken)
        fprintf(output(json), "\n%*s", (int)json->depth * 2, "");
    putc(character, output(json));
    json->has_element = true;
    if (!json->depth)
        putc('\n', output(json));
}

void json_text(struct json *json, const char *key, const char *text, size_t length)
{
    begin(json, key);
    write_text(output(json), text, length);
}

void json_string(struct json *json, const char *key, const char *text)
{
    if (text) {
        json_text(json, key, text, strlen(text));
    } else {
        begin(json, key);
        fputs("null", output(json));
    }
}

void json_number(struct json *json, const char *key, uint64_t number)
{
    begin(json, key);
    fprintf(output(json), "%" PRIu64, number);
}

void json_decimal(struct json *json, const char *key, double number, unsigned decimals)
{
    begin(json, key);
    if (number - number == 0) /* else it is no number of JSON's */
        fprintf(output(json), "%.*f", (int)decimals, number);
    else
        fputs("null", output(json));
}

void json_address(struct json *json, const char *key, uint64_t address)
{
    begin(json, key);
    fprintf(output(json), "\"0x%" PRIx64 "\"", address);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", output(json));
}
