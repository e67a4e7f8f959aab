/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and parsing by the same table, so that both sides agree about the rows and their order. */
#include "facts.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES "devices"
#define END "end"

/* ---- the helper's side ---- */

/* A line break in a driver's text would end the value. */
static void write_text(const char *key, const char *text, FILE *to)
{
    fprintf(to, "%s ", key);
    for (; *text; text++)
        fputc(*text == '\n' || *text == '\r' ? ' ' : *text, to);
    fputc('\n', to);
}

static void write_device(const struct nvml_facts *facts, FILE *to)
{
#define TEXT(member, size) write_text(#member, facts->member, to);
#define NUMBER(member) fprintf(to, "%s %llu\n", #member, (unsigned long long)facts->member);
#include "facts.def"
}

void nvml_facts_write(const struct nvml_facts *devices, unsigned count, FILE *to)
{
    fprintf(to, "%s %u\n", DEVICES, count);
    for (unsigned i = 0; i < count; i++)
        write_device(&devices[i], to);
    fprintf(to, "%s\n", END);
}

void nvml_memory_write(uint64_t free_bytes, uint64_t total_bytes, FILE *to)
{
    fprintf(to, "%s %llu %llu\n%s\n", NVML_HELPER_MEMORY, (unsigned long long)free_bytes, (unsigned long long)total_bytes, END);
}

/* ---- the library's side ---- */

/* The value of the next line, which must have this key. NULL: it has not, or there is none. */
static char *next_value(char **at, const char *key)
{
    char *line = *at, *end = strchr(line, '\n');
    const size_t length = strlen(key);

    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return strncmp(line, key, length) || line[length] != ' ' ? NULL : line + length + 1;
}

/* Parses digits, and nothing before them; *at becomes what follows. */
static bool take_number(char **at, uint64_t *out)
{
    char *end = *at;

    if (**at < '0' || **at > '9')
        return false;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

static bool read_text(char **at, const char *key, char *out, size_t size)
{
    const char *value = next_value(at, key);

    return value && snprintf(out, size, "%s", value) < (int)size;
}

static bool read_number(char **at, const char *key, uint64_t *out)
{
    char *value = next_value(at, key);

    return value && take_number(&value, out) && !*value;
}

static bool read_device(char **at, struct nvml_facts *out)
{
#define TEXT(member, size)                                                                                                                 \
    if (!read_text(at, #member, out->member, size))                                                                                        \
        return false;
#define NUMBER(member)                                                                                                                     \
    if (!read_number(at, #member, &out->member))                                                                                           \
        return false;
#include "facts.def"
    return true;
}

bool nvml_facts_read(char *text, struct nvml_facts out[NVML_MAX_DEVICES], unsigned *out_count)
{
    uint64_t count;

    if (!read_number(&text, DEVICES, &count) || count > NVML_MAX_DEVICES)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!read_device(&text, &out[i]))
            return false;
    *out_count = (unsigned)count;
    return !strcmp(text, END "\n");
}

bool nvml_memory_read(char *text, uint64_t *out_free_bytes, uint64_t *out_total_bytes)
{
    char *value = next_value(&text, NVML_HELPER_MEMORY);

    return value && take_number(&value, out_free_bytes) && *value++ == ' ' && take_number(&value, out_total_bytes) && !*value &&
           !strcmp(text, END "\n");
}
