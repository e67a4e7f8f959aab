/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle api`, whose output is docs/api.md. It queries the library itself for what is implemented. */
#include "entry_points.h"

#include "nvml_table.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WIDTH 120

/* The table of symbols with its chapters: a row is the title of a chapter or, in the order of ct_entry_point, a symbol. */
static const char *const titles[] = {
#define CHAPTER(title) title,
#define SYMBOL(symbol, name, version, flavour, params, args) NULL,
#include "entry_points.def"
};
#define ROW_COUNT (sizeof titles / sizeof *titles)

/* The symbols of one chapter: [first, end), numbered as in ct_entry_point. */
struct chapter {
    const char *title;
    unsigned first, end;
};

/* The chapter whose title is in `row`; `first` symbols precede it. */
static struct chapter chapter_at(size_t row, unsigned first)
{
    struct chapter chapter = {titles[row], first, first};

    for (size_t i = row + 1; i < ROW_COUNT && !titles[i]; i++)
        chapter.end++;
    return chapter;
}

/* ---- what a symbol does ---- */

enum state { IMPLEMENTED, WITHOUT_EFFECT, NOT_SUPPORTED, STATE_COUNT };

static const char *const lead_ins[] = {
    [IMPLEMENTED] = "Implemented:",
    [WITHOUT_EFFECT] = "Accepted without effect:",
    [NOT_SUPPORTED] = "Not supported:",
};

static const struct note {
    const char *symbol, *why;
    enum state state;
} notes[] = {
#define NO_EFFECT(symbol, why) {#symbol, why, WITHOUT_EFFECT},
#define REFUSED(symbol, why) {#symbol, why, NOT_SUPPORTED},
#include "effects.def"
};
#define NOTE_COUNT (sizeof notes / sizeof *notes)

/* Functions without a definition. */
static const struct reason {
    const char *symbol, *why;
} reasons[] = {
#define MISSING(symbol, why) {#symbol, why},
#include "effects.def"
};
#define REASON_COUNT (sizeof reasons / sizeof *reasons)

static const struct promise {
    const char *prefix, *what;
} promises[] = {
#define PROMISE(prefix, what) {#prefix, what},
#include "effects.def"
};
#define PROMISE_COUNT (sizeof promises / sizeof *promises)

static const char *const attributes[] = {
#define CONSTANT(name, value) #name,
#define FIELD(name, member) #name,
#define CAPABILITY(name, member) #name,
#define RULE(name, function) #name,
#include "core/device/device_attributes.def"
};
#define ATTRIBUTE_COUNT (sizeof attributes / sizeof *attributes)

static enum state state_of(const struct ct_entry_point *entry)
{
    if (!ct_entry_point_is_implemented(entry))
        return NOT_SUPPORTED;
    for (size_t i = 0; i < NOTE_COUNT; i++)
        if (!strcmp(notes[i].symbol, entry->symbol))
            return notes[i].state;
    return IMPLEMENTED;
}

/* A _ptds or _ptsz symbol belongs to the one that it is a variant of, and is not counted. */
static bool counts(const struct ct_entry_point *entry, enum state state)
{
    return entry->flavour != CT_FLAVOUR_PER_THREAD && state_of(entry) == state;
}

static unsigned count(struct chapter chapter, enum state state)
{
    unsigned n = 0;

    for (unsigned i = chapter.first; i < chapter.end; i++)
        n += counts(ct_entry_point(i), state);
    return n;
}

/* ---- checking the table ---- */

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* NULL: there is no such symbol. */
static const struct ct_entry_point *find_symbol(const char *symbol)
{
    for (unsigned i = 0; i < CT_ENTRY_POINT_COUNT; i++)
        if (!strcmp(ct_entry_point(i)->symbol, symbol))
            return ct_entry_point(i);
    return NULL;
}

/* Prints and returns false unless the symbol exists and has a definition, or has none. */
static bool check_symbol(const char *symbol, bool has_definition)
{
    const struct ct_entry_point *entry = find_symbol(symbol);

    if (entry && ct_entry_point_is_implemented(entry) == has_definition)
        return true;
    fprintf(stderr, "effects.def: %s %s\n", symbol, entry ? has_definition ? "has no definition" : "has a definition" : "does not exist");
    return false;
}

/* Whether every row of effects.def is about something that exists. */
static bool check_rows(void)
{
    bool is_right = true;

    for (size_t i = 0; i < NOTE_COUNT; i++)
        is_right &= check_symbol(notes[i].symbol, true);
    for (size_t i = 0; i < REASON_COUNT; i++)
        is_right &= check_symbol(reasons[i].symbol, false);
    for (size_t i = 0; i < PROMISE_COUNT; i++) {
        bool found = false;

        for (size_t k = 0; k < ATTRIBUTE_COUNT; k++)
            found |= begins_with(attributes[k], promises[i].prefix);
        if (!found)
            fprintf(stderr, "effects.def: no attribute begins with %s\n", promises[i].prefix);
        is_right &= found;
    }
    return is_right;
}

/* ---- printing ---- */

/* A list of names, wrapped. */
struct list {
    int column;
};

static void print_name(struct list *list, const char *name)
{
    if (list->column + (int)strlen(name) + 1 > LINE_WIDTH) {
        printf("\n");
        list->column = 0;
    }
    list->column += printf("%s%s", list->column > 0 ? " " : "", name);
}

/* Prints a wrapped paragraph with the names; nothing if there are none. */
static void print_symbols(struct chapter chapter, enum state state)
{
    struct list list;

    if (count(chapter, state) == 0)
        return;
    list.column = printf("\n%s", lead_ins[state]) - 1;
    for (unsigned i = chapter.first; i < chapter.end; i++)
        if (counts(ct_entry_point(i), state))
            print_name(&list, ct_entry_point(i)->symbol);
    printf("\n");
}

static void print_chapter(struct chapter chapter)
{
    printf("\n## %s: %u implemented, %u without effect, %u not supported\n", chapter.title, count(chapter, IMPLEMENTED),
           count(chapter, WITHOUT_EFFECT), count(chapter, NOT_SUPPORTED));
    for (unsigned state = 0; state < STATE_COUNT; state++)
        print_symbols(chapter, (enum state)state);
}

static void print_notes(enum state state)
{
    printf("\n| function | reason |\n| --- | --- |\n");
    for (size_t i = 0; i < NOTE_COUNT; i++)
        if (notes[i].state == state)
            printf("| %s | %s |\n", notes[i].symbol, notes[i].why);
}

static void print_reasons(void)
{
    printf("\n## Why some functions have no definition\n\n| function | reason |\n| --- | --- |\n");
    for (size_t i = 0; i < REASON_COUNT; i++)
        printf("| %s | %s |\n", reasons[i].symbol, reasons[i].why);
}

static void print_promises(void)
{
    printf("\n## Attributes that promise more than kernels can do\n\nNames lack their prefix CU_DEVICE_ATTRIBUTE_.\n\n"
           "| attributes | what they describe |\n| --- | --- |\n");
    for (size_t i = 0; i < PROMISE_COUNT; i++) {
        const char *separator = "| ";

        for (size_t k = 0; k < ATTRIBUTE_COUNT; k++)
            if (begins_with(attributes[k], promises[i].prefix)) {
                printf("%s%s", separator, attributes[k]);
                separator = ", ";
            }
        printf(" | %s |\n", promises[i].what);
    }
}

static void print_head(void)
{
    const struct chapter all = {"", 0, CT_ENTRY_POINT_COUNT};
    const unsigned n[] = {count(all, IMPLEMENTED), count(all, WITHOUT_EFFECT), count(all, NOT_SUPPORTED)};

    printf("# The CUDA driver API in Cuttle\n\n"
           "Generated by `cuttle api` from src/api/entry_points.def, src/api/effects.def and the library itself;\n"
           "`cmake --build build --target docs_api` regenerates it, and a test checks that it is up to date and that its figures are "
           "right.\n\n"
           "All %u symbols of CUDA %d.%d and earlier are exported. Of the %u that are not the per-thread variant of another\n\n"
           "* %u are implemented;\n"
           "* %u are accepted without effect: they validate their arguments and return CUDA_SUCCESS, and nothing else happens;\n"
           "* %u are not supported: they return CUDA_ERROR_NOT_SUPPORTED, and those without a definition log their name once.\n",
           CT_ENTRY_POINT_COUNT, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, n[0] + n[1] + n[2], n[0], n[1], n[2]);
}

int verb_api(const struct tool_arguments *arguments)
{
    if (arguments->values[CUTTLE_API_NVML]) {
        tool_print_nvml();
        return EXIT_SUCCESS;
    }
    if (!check_rows())
        return EXIT_FAILURE;
    print_head();
    printf("\n## Why some functions have no effect\n");
    print_notes(WITHOUT_EFFECT);
    printf("\n## Why some functions with a definition are not supported\n");
    print_notes(NOT_SUPPORTED);
    print_reasons();
    print_promises();
    for (size_t row = 0, symbols = 0; row < ROW_COUNT; row++) {
        if (titles[row])
            print_chapter(chapter_at(row, (unsigned)symbols));
        else
            symbols++;
    }
    return EXIT_SUCCESS;
}
