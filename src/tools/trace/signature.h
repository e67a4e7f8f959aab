/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols of the driver API with their parameters, from src/api/entry_points.def. */
#ifndef CT_TOOLS_SIGNATURE_H
#define CT_TOOLS_SIGNATURE_H

#include "api_types.h"

#include <stdbool.h>

#define SIGNATURE_PARAMETERS_MAX 16

struct signature_parameter {
    const struct api_type *type; /* without its pointers; NULL: void or unknown */
    const char *name;            /* not terminated: `name_length` bytes */
    unsigned name_length;
    unsigned pointers; /* how many * follow the type */
    bool is_const;     /* it begins with const */
    bool is_text;      /* char, with its pointers */
};

struct signature {
    unsigned count;
    struct signature_parameter parameters[SIGNATURE_PARAMETERS_MAX];
};

/* Of a symbol by its index in entry_points.def. */
const char *signature_symbol(unsigned symbol);
void signature_parse(unsigned symbol, struct signature *out);
/* The index of the parameter of this name, or -1. */
int signature_find(const struct signature *signature, const char *name);

#endif
