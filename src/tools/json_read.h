/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON (RFC 8259). The elements of one array are handed out one by one, so that a trace of millions of events needs no more memory than its longest one. */
#ifndef CT_TOOLS_JSON_READ_H
#define CT_TOOLS_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_type type;
    const char *key;                /* of a member of an object; otherwise NULL */
    const char *text;               /* of a string, UTF-8; of a number, as it was written */
    double number;                  /* of a number; 1 or 0 of a bool */
    const struct json_value *first; /* of an array or object */
    const struct json_value *next;  /* in the same array or object */
};

/* Reads a text. Each element of the array that is the member `array` of the outermost object is passed to `take`, which returns false to give up, and is
 * then forgotten; other members of the outermost object are passed to it, too, with their keys. Returns NULL, or what is wrong; *out_offset says where. */
const char *json_read(const char *text, size_t length, const char *array, bool (*take)(void *user, const struct json_value *value),
                      void *user, size_t *out_offset);

/* The member of an object. NULL: there is none, or `value` is NULL or no object. */
const struct json_value *json_member(const struct json_value *value, const char *key);
/* Its text if it is a string, or its number if it is one; otherwise the default. */
const char *json_member_text(const struct json_value *value, const char *key, const char *otherwise);
double json_member_number(const struct json_value *value, const char *key, double otherwise);

#endif
