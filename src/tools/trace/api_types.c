/* SPDX-License-Identifier: Apache-2.0 */
#include "api_types.h"

#include "entry_points.h"

#include <string.h>

static const struct api_type types[] = {
    {"int", API_SIGNED, sizeof(int)},
    {"unsigned int", API_UNSIGNED, sizeof(unsigned int)},
    {"unsigned char", API_UNSIGNED, sizeof(unsigned char)},
    {"unsigned short", API_UNSIGNED, sizeof(unsigned short)},
    {"unsigned long long", API_UNSIGNED, sizeof(unsigned long long)},
    {"size_t", API_UNSIGNED, sizeof(size_t)},
    {"uint32_t", API_UNSIGNED, sizeof(uint32_t)},
    {"cuuint32_t", API_UNSIGNED, sizeof(cuuint32_t)},
    {"cuuint64_t", API_UNSIGNED, sizeof(cuuint64_t)},
    {"float", API_FLOAT, sizeof(float)},
    {"CUdevice", API_SIGNED, sizeof(CUdevice)},
    {"CUlogIterator", API_UNSIGNED, sizeof(CUlogIterator)},
    {"CUdeviceptr", API_ADDRESS, sizeof(CUdeviceptr)},
    {"CUdeviceptr_v1", API_ADDRESS, sizeof(CUdeviceptr_v1)},
    {"CUtexObject", API_ADDRESS, sizeof(CUtexObject)},
    {"CUsurfObject", API_ADDRESS, sizeof(CUsurfObject)},
    {"CUgraphConditionalHandle", API_ADDRESS, sizeof(CUgraphConditionalHandle)},
    {"CUmemGenericAllocationHandle", API_ADDRESS, sizeof(CUmemGenericAllocationHandle)},
    {"CUeglStreamConnection", API_ADDRESS, sizeof(CUeglStreamConnection)},
#define HANDLE(type) {#type, API_ADDRESS, sizeof(type)},
#define ENUMERATION(type) {#type, API_ENUM, sizeof(type)},
#define ENUMERATOR(type, name)
#define STRUCTURE(type) {#type, API_STRUCT, sizeof(type)},
#define MEMBER(type, member_type, member)
#define ALIAS(name, type)
#include "api_types.def"
#undef HANDLE
#undef ENUMERATION
#undef ENUMERATOR
#undef STRUCTURE
#undef MEMBER
#undef ALIAS
};

#define HANDLE(type)
#define ENUMERATION(type)
#define STRUCTURE(type)

static const struct {
    const char *name, *type;
} aliases[] = {
#define ENUMERATOR(type, name)
#define MEMBER(type, member_type, member)
#define ALIAS(name, type) {#name, #type},
#include "api_types.def"
#undef ENUMERATOR
#undef MEMBER
#undef ALIAS
};

/* Those of one type are adjacent. */
static const struct {
    const char *type, *name;
    int64_t value;
} enumerators[] = {
#define ENUMERATOR(type, name) {#type, #name, (int64_t)name},
#define MEMBER(type, member_type, member)
#define ALIAS(name, type)
#include "api_types.def"
#undef ENUMERATOR
#undef MEMBER
};

/* Those of one type are adjacent. */
static const struct api_member members[] = {
#define ENUMERATOR(type, name)
#define MEMBER(type, member_type, member) {#type, #member_type, #member, offsetof(type, member), sizeof(((type *)0)->member)},
#include "api_types.def"
};

enum {
    TYPE_COUNT = sizeof types / sizeof *types,
    ALIAS_COUNT = sizeof aliases / sizeof *aliases,
    ENUMERATOR_COUNT = sizeof enumerators / sizeof *enumerators,
    MEMBER_COUNT = sizeof members / sizeof *members,
};

static const struct api_type *find_type(const char *name, size_t length)
{
    for (unsigned i = 0; i < TYPE_COUNT; i++)
        if (strlen(types[i].name) == length && !memcmp(types[i].name, name, length))
            return &types[i];
    return NULL;
}

const struct api_type *api_type_find(const char *name, size_t length)
{
    const struct api_type *type = find_type(name, length);

    for (unsigned i = 0; !type && i < ALIAS_COUNT; i++)
        if (strlen(aliases[i].name) == length && !memcmp(aliases[i].name, name, length))
            type = find_type(aliases[i].type, strlen(aliases[i].type));
    return type;
}

const char *api_enumerator(const struct api_type *type, int64_t value)
{
    for (unsigned i = 0; i < ENUMERATOR_COUNT; i++)
        if (enumerators[i].value == value && !strcmp(enumerators[i].type, type->name))
            return enumerators[i].name;
    return NULL;
}

const struct api_member *api_next_member(const struct api_type *type, const struct api_member *member)
{
    for (unsigned i = member ? (unsigned)(member - members) + 1 : 0; i < MEMBER_COUNT; i++)
        if (!strcmp(members[i].type, type->name))
            return &members[i];
        else if (member)
            break;
    return NULL;
}

uint64_t api_integer(const void *bytes, size_t size_bytes)
{
    uint64_t value = 0;

    memcpy(&value, bytes, size_bytes); /* the hosts that Cuttle runs on are little-endian */
    return value;
}
