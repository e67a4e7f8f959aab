/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle api`, which writes docs/api.md. The library itself is asked what it implements. */
#include "entry_points.h"

#include "cuttle_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WIDTH 120

/* The table once more, with its chapters: a row is a chapter's title or, in the order of ct_entry_point, a symbol. */
static const char *const titles[] = {
#define CHAPTER(title) title,
#define SYMBOL(symbol, name, version, flavour, params, args) NULL,
#include "entry_points.def"
};
#define ROW_COUNT (sizeof titles / sizeof *titles)

/* The symbols of one chapter: [first, end) as ct_entry_point counts. */
struct chapter {
    const char *title;
    unsigned first, end;
};

/* The chapter whose title stands in `row`, where `first` symbols stand before it. */
static struct chapter chapter_at(size_t row, unsigned first)
{
    struct chapter chapter = {titles[row], first, first};

    for (size_t i = row + 1; i < ROW_COUNT && !titles[i]; i++)
        chapter.end++;
    return chapter;
}

/* A _ptds or _ptsz symbol goes with the one that it is a variant of, and is not told of. */
static bool counts(const struct ct_entry_point *entry, bool implemented)
{
    return entry->flavour != CT_FLAVOUR_PER_THREAD && ct_entry_point_is_implemented(entry) == implemented;
}

static unsigned count(struct chapter chapter, bool implemented)
{
    unsigned n = 0;

    for (unsigned i = chapter.first; i < chapter.end; i++)
        n += counts(ct_entry_point(i), implemented);
    return n;
}

/* A paragraph with the names, wrapped; nothing if there are none. */
static void print_symbols(const char *lead_in, struct chapter chapter, bool implemented)
{
    int column;

    if (count(chapter, implemented) == 0)
        return;
    column = printf("\n%s", lead_in);
    for (unsigned i = chapter.first; i < chapter.end; i++) {
        const struct ct_entry_point *entry = ct_entry_point(i);

        if (!counts(entry, implemented))
            continue;
        if (column + (int)strlen(entry->symbol) + 1 > LINE_WIDTH) {
            printf("\n");
            column = 0;
        }
        column += printf("%s%s", column > 0 ? " " : "", entry->symbol);
    }
    printf("\n");
}

static void print_chapter(struct chapter chapter)
{
    const unsigned there = count(chapter, true), missing = count(chapter, false);

    printf("\n## %s: %u of %u\n", chapter.title, there, there + missing);
    print_symbols("There:", chapter, true);
    print_symbols("Stubs:", chapter, false);
}

int command_api(int argc, char **argv)
{
    const struct chapter all = {"", 0, CT_ENTRY_POINT_COUNT};
    const unsigned there = count(all, true), missing = count(all, false);

    (void)argc;
    (void)argv;
    printf("# The CUDA driver API in Cuttle\n\n"
           "Made by `cuttle api` from src/api/entry_points.def and the library itself; `cmake --build build --target docs_api` writes\n"
           "it anew, and a test sees to it that it is up to date.\n\n"
           "All %u symbols of CUDA %d.%d and before are exported. Of the %u that are not the per-thread variant of another, %u are\n"
           "there; the others answer CUDA_ERROR_NOT_SUPPORTED and log their name once.\n",
           CT_ENTRY_POINT_COUNT, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, there + missing, there);
    for (size_t row = 0, symbols = 0; row < ROW_COUNT; row++) {
        if (titles[row])
            print_chapter(chapter_at(row, (unsigned)symbols));
        else
            symbols++;
    }
    return EXIT_SUCCESS;
}
