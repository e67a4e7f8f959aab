/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON (RFC 8259), indented, to standard output. Members have a key; elements of an array have NULL. */
#ifndef CT_TOOLS_JSON_H
#define CT_TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>

struct json {
    unsigned depth;
    bool has_element; /* at this depth */
};

void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/* Ends the innermost object or array with this character, } or ]; the outermost one with a newline. */
void json_end(struct json *json, char character);
/* NULL is written as null. Text must be UTF-8; the names of drivers are. */
void json_string(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, uint64_t number);
void json_bool(struct json *json, const char *key, bool value);

#endif
