/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>

static void write_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            printf("\\u%04x", (unsigned char)*text);
        else if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void begin(struct json *json, const char *key)
{
    if (json->has_element)
        putchar(',');
    if (json->depth)
        printf("\n%*s", (int)json->depth * 2, "");
    json->has_element = true;
    if (key) {
        write_text(key);
        printf(": ");
    }
}

static void open_with(struct json *json, const char *key, char character)
{
    begin(json, key);
    putchar(character);
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
    json->depth--;
    if (json->has_element)
        printf("\n%*s", (int)json->depth * 2, "");
    putchar(character);
    json->has_element = true;
    if (!json->depth)
        putchar('\n');
}

void json_string(struct json *json, const char *key, const char *text)
{
    begin(json, key);
    if (text)
        write_text(text);
    else
        printf("null");
}

void json_number(struct json *json, const char *key, uint64_t number)
{
    begin(json, key);
    printf("%" PRIu64, number);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    printf(value ? "true" : "false");
}
