/* SPDX-License-Identifier: Apache-2.0 */
#include "signature.h"

#include "entry_points.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *symbol, *parameters;
} symbols[] = {
#define SYMBOL(symbol, name, version, flavour, params, args) {#symbol, #params},
#include "entry_points.def"
};

const char *signature_symbol(unsigned symbol)
{
    return symbols[symbol].symbol;
}

/* Parses "const CUstream *name" of this length. */
static struct signature_parameter parse_parameter(const char *text, size_t length)
{
    struct signature_parameter parameter = {.name = text};
    size_t type_length;

    while (length && isspace((unsigned char)*text))
        text++, length--;
    for (type_length = length; type_length && (isalnum((unsigned char)text[type_length - 1]) || text[type_length - 1] == '_');)
        type_length--;
    parameter.name = text + type_length;
    parameter.name_length = (unsigned)(length - type_length);
    for (; type_length && (text[type_length - 1] == ' ' || text[type_length - 1] == '*'); type_length--)
        parameter.pointers += text[type_length - 1] == '*';
    if (type_length > 6 && !strncmp(text, "const ", 6)) {
        parameter.is_const = true;
        text += 6;
        type_length -= 6;
    }
    parameter.is_text = type_length == 4 && !strncmp(text, "char", 4);
    parameter.type = api_type_find(text, type_length);
    return parameter;
}

void signature_parse(unsigned symbol, struct signature *out)
{
    const char *text = symbols[symbol].parameters + 1; /* after the parenthesis */

    out->count = 0;
    if (!strcmp(text, "void)"))
        return;
    while (*text && *text != ')' && out->count < SIGNATURE_PARAMETERS_MAX) {
        const size_t length = strcspn(text, ",)");

        out->parameters[out->count++] = parse_parameter(text, length);
        text += length + (text[length] == ',');
    }
}

int signature_find(const struct signature *signature, const char *name)
{
    const size_t length = strlen(name);

    for (unsigned i = 0; i < signature->count; i++)
        if (signature->parameters[i].name_length == length && !memcmp(signature->parameters[i].name, name, length))
            return (int)i;
    return -1;
}
