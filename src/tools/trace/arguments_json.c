/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments_json.h"

#include "signature.h"

#include <string.h>

#define EXACT_IN_DOUBLES (1ull << 53) /* readers in JavaScript round larger numbers */

static void write_structure(struct json *json, const char *key, const struct api_type *type, const unsigned char *bytes, unsigned depth);

static void write_unsigned(struct json *json, const char *key, uint64_t number)
{
    if (number <= EXACT_IN_DOUBLES)
        json_number(json, key, number);
    else
        json_address(json, key, number);
}

static void write_value(struct json *json, const char *key, const struct api_type *type, const unsigned char *bytes, unsigned depth)
{
    const uint64_t number = type->size_bytes <= sizeof number ? api_integer(bytes, type->size_bytes) : 0;
    const char *name;
    float real;

    switch (type->kind) {
    case API_SIGNED:
        json_decimal(json, key, (int32_t)number, 0); /* the only signed type is int */
        break;
    case API_UNSIGNED:
        write_unsigned(json, key, number);
        break;
    case API_ADDRESS:
        json_address(json, key, number);
        break;
    case API_FLOAT:
        memcpy(&real, bytes, sizeof real);
        json_decimal(json, key, (double)real, 6);
        break;
    case API_ENUM:
        name = api_enumerator(type, (int32_t)number);
        if (name)
            json_string(json, key, name);
        else
            write_unsigned(json, key, number);
        break;
    case API_STRUCT:
        write_structure(json, key, type, bytes, depth);
        break;
    }
}

/* A struct without members that we know (a UUID, an opaque handle) is its bytes. */
static void write_structure(struct json *json, const char *key, const struct api_type *type, const unsigned char *bytes, unsigned depth)
{
    const struct api_member *member = api_next_member(type, NULL);
    char digits[2 * 64 + 1] = "";

    if (!member || depth > 4) {
        for (unsigned i = 0; i < type->size_bytes && i < 64; i++)
            snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
        json_string(json, key, digits);
        return;
    }
    json_object(json, key);
    for (; member; member = api_next_member(type, member)) {
        const size_t length = strlen(member->member_type);
        const struct api_type *member_type = api_type_find(member->member_type, length);

        if (member->member_type[length - 1] == '*')
            json_address(json, member->name, api_integer(bytes + member->offset, member->size_bytes));
        else if (member_type)
            write_value(json, member->name, member_type, bytes + member->offset, depth + 1);
        else if (member->size_bytes <= 8)
            write_unsigned(json, member->name, api_integer(bytes + member->offset, member->size_bytes));
    }
    json_end(json, '}');
}

static void write_kernel_params(struct json *json, const char *key, const struct trace_record *record)
{
    json_array(json, key);
    for (const struct trace_field *field = NULL; (field = records_next_field(record, field));) {
        char digits[2 * 16 + 3] = "0x";

        if (field->kind != TRACE_PARAM)
            continue;
        for (unsigned i = 0; i < field->size_bytes && i < 16; i++) /* the most significant digit first */
            snprintf(digits + 2 + 2 * i, 3, "%02x", ((const unsigned char *)(field + 1))[field->size_bytes - 1 - i]);
        json_string(json, NULL, digits);
    }
    json_end(json, ']');
}

static const struct trace_field *find_field(const struct records_entry *call, enum trace_field_kind kind, unsigned argument)
{
    const struct trace_field *field = records_field(call->record, kind, argument);

    return field || !call->end ? field : records_field(call->end, kind, argument);
}

static void write_parameter(struct json *json, const struct records_entry *call, const struct signature_parameter *parameter, unsigned i)
{
    const struct trace_field *value = records_field(call->record, TRACE_VALUE, i), *text = find_field(call, TRACE_TEXT, i);
    const struct trace_field *pointee = find_field(call, TRACE_POINTEE, i);
    char key[64];

    snprintf(key, sizeof key, "%.*s", (int)parameter->name_length, parameter->name);
    if (!strcmp(key, "kernelParams") && records_field(call->record, TRACE_PARAM, 0))
        write_kernel_params(json, key, call->record);
    else if (text)
        json_text(json, key, (const char *)(text + 1), text->size_bytes);
    else if (pointee && parameter->pointers == 1 && parameter->type && pointee->size_bytes == parameter->type->size_bytes)
        write_value(json, key, parameter->type, (const unsigned char *)(pointee + 1), 0);
    else if (pointee)
        json_address(json, key, api_integer(pointee + 1, pointee->size_bytes));
    else if (value && !parameter->pointers && parameter->type && value->size_bytes == parameter->type->size_bytes)
        write_value(json, key, parameter->type, (const unsigned char *)(value + 1), 0);
    else if (value && value->size_bytes <= 8)
        json_address(json, key, api_integer(value + 1, value->size_bytes));
}

void arguments_write(struct json *json, const struct records_entry *call)
{
    static struct signature signature; /* of the symbol of the last call: most calls are followed by one of the same */
    static int last_symbol = -1;
    const struct trace_field *field = NULL;

    if (call->record->symbol != last_symbol)
        signature_parse(call->record->symbol, &signature);
    last_symbol = call->record->symbol;
    while ((field = records_next_field(call->record, field)))
        if (field->kind == TRACE_NAME)
            json_text(json, "kernelName", (const char *)(field + 1), field->size_bytes);
    for (unsigned i = 0; i < signature.count; i++)
        write_parameter(json, call, &signature.parameters[i], i);
}

const char *arguments_result_name(int result)
{
    return api_enumerator(api_type_find("CUresult", strlen("CUresult")), result);
}
