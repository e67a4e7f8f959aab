/* SPDX-License-Identifier: Apache-2.0 */
/* The active workarounds for faults of drivers. */
#include "workarounds.h"

#include "core/base/config.h"

#include <stdlib.h>
#include <string.h>

#define VERSION_PARTS 3

static const struct ct_workaround rows[] = {
#define COMPILER(id, name, drivers, first, last, fault, proof, test)                                                                       \
    [CT_WORKAROUND_INDEX_##id] = {name, drivers, first, last, fault, proof, test, true},
#define LIBRARY(id, name, drivers, first, last, fault, proof, test)                                                                        \
    [CT_WORKAROUND_INDEX_##id] = {name, drivers, first, last, fault, proof, test, false},
#include <cuttle/workarounds.def>
};

_Static_assert(CT_WORKAROUND_COUNT <= 32, "a mask has 32 bits");
#define COMPILER(id, name, drivers, first, last, fault, proof, test)                                                                       \
    _Static_assert(CT_WORKAROUND(id) == PTX2SPV_WORKAROUND_##id, "the compiler's rows come first");
#include <cuttle/workarounds.def>

const struct ct_workaround *ct_workaround(enum ct_workaround_index index)
{
    return &rows[index];
}

/* ---- versions ---- */

struct version {
    unsigned long parts[VERSION_PARTS];
    bool is_known;
};

/* Missing parts get the value `missing`: as a first version 25.0 means 25.0.0, and as a last version it includes 25.0.7. */
static struct version parse_version(const char *text, unsigned long missing)
{
    struct version version = {.is_known = false};
    const char *at = text + strcspn(text, "0123456789");
    bool has_more = *at != '\0';

    version.is_known = has_more;
    for (unsigned i = 0; i < VERSION_PARTS; i++) {
        char *end;

        version.parts[i] = has_more ? strtoul(at, &end, 10) : missing;
        has_more = has_more && *end == '.' && end[1] >= '0' && end[1] <= '9';
        if (has_more)
            at = end + 1;
    }
    return version;
}

/* Whether a <= b. */
static bool is_not_above(const struct version *a, const struct version *b)
{
    for (unsigned i = 0; i < VERSION_PARTS; i++)
        if (a->parts[i] != b->parts[i])
            return a->parts[i] < b->parts[i];
    return true;
}

bool ct_workaround_is_of(const char *first, const char *last, const char *version)
{
    const struct version from = parse_version(first, 0), to = parse_version(last, ~0ul), at = parse_version(version, 0);

    if (!at.is_known)
        return true;
    return (!from.is_known || is_not_above(&from, &at)) && (!to.is_known || is_not_above(&at, &to));
}

static uint32_t by_table(unsigned driver, const char *version)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++)
        if ((rows[i].drivers & driver) && ct_workaround_is_of(rows[i].first, rows[i].last, version))
            mask |= UINT32_C(1) << i;
    return mask;
}

/* ---- the option ---- */

/* The option consists of words separated by commas. False: there is no further word. */
static bool next_word(const char **at, const char **out, int *length)
{
    *at += strspn(*at, ", ");
    *out = *at;
    *length = (int)strcspn(*at, ", ");
    *at += *length;
    return *length != 0;
}

static bool is_word(const char *name, const char *word, int length)
{
    return strlen(name) == (size_t)length && !memcmp(name, word, (size_t)length);
}

/* The bit of the workaround of that name; 0: there is none. */
static uint32_t named(const char *word, int length)
{
    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++)
        if (is_word(rows[i].name, word, length))
            return UINT32_C(1) << i;
    return 0;
}

/* `all` means the table's workarounds for the driver. A choice that is empty or begins with a disabled name starts with these, too. */
uint32_t ct_workarounds_choose(unsigned driver, const char *version, const char *choice)
{
    const uint32_t all = by_table(driver, version);
    const char *at = choice, *word;
    uint32_t mask;
    int length;

    at += strspn(at, ", ");
    mask = !*at || *at == '-' ? all : 0;
    while (next_word(&at, &word, &length)) {
        if (*word == '-')
            mask &= ~named(word + 1, length - 1);
        else
            mask |= is_word("all", word, length) ? all : named(word, length);
    }
    return mask;
}

uint32_t ct_workarounds_of(unsigned driver, const char *version)
{
    return ct_workarounds_choose(driver, version, ct_config()->workarounds);
}

const char *ct_workarounds_unknown_or_null(const char *choice, int *length)
{
    const char *at = choice, *word;

    while (next_word(&at, &word, length)) {
        const int sign = *word == '-';

        if (!named(word + sign, *length - sign) && (sign || (!is_word("all", word, *length) && !is_word("none", word, *length))))
            return word;
    }
    return NULL;
}
