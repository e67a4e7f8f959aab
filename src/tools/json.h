/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259). Members have a key; elements of an array have NULL. A zeroed struct json writes to standard output, indented. */
#ifndef CT_TOOLS_JSON_H
#define CT_TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *to;          /* NULL: standard output */
    unsigned one_line; /* values deeper than this are written without line breaks; 0: none are */
    unsigned depth;
    bool has_element; /* at this depth */
};

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/* Ends the innermost object or array with this character, } or ]; the outermost one with a newline. */
void json_end(struct json *json, char character);
/* NULL is written as null. What is not UTF-8 becomes U+FFFD. */
void json_string(struct json *json, const char *key, const char *text);
void json_text(struct json *json, const char *key, const char *text, size_t length);
void json_number(struct json *json, const char *key, uint64_t number);
/* With this many decimals. */
void json_decimal(struct json *json, const char *key, double number, unsigned decimals);
void json_address(struct json *json, const char *key, uint64_t address);
void json_bool(struct json *json, const char *key, bool value);

#endif
