/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the driver API's parameters: how large they are and how a trace shows them. Enumerations, structs and handles come from include/cuda.h
 * (api_types.cmake). */
#ifndef CT_TOOLS_API_TYPES_H
#define CT_TOOLS_API_TYPES_H

#include <stddef.h>
#include <stdint.h>

enum api_kind {
    API_SIGNED,
    API_UNSIGNED,
    API_ADDRESS, /* a handle or an address: what differs between two runs */
    API_FLOAT,
    API_ENUM,
    API_STRUCT,
};

struct api_type {
    const char *name;
    enum api_kind kind;
    unsigned size_bytes;
};

struct api_member {
    const char *type; /* the struct's name */
    const char *member_type, *name;
    unsigned offset, size_bytes;
};

/* The type of this name, which may be an alias; `length` bytes of it count. NULL: unknown. */
const struct api_type *api_type_find(const char *name, size_t length);
/* The name of a value of an enumeration. NULL: it has none. */
const char *api_enumerator(const struct api_type *type, int64_t value);
/* The next member of a struct after this one; NULL stands for the one before the first, and for the one after the last. */
const struct api_member *api_next_member(const struct api_type *type, const struct api_member *member);
/* The value of an integer of 1 to 8 bytes. */
uint64_t api_integer(const void *bytes, size_t size_bytes);

#endif
