/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of an image. Spans of bytes are noted in any order; those that are close to each other become one piece, so that the image of
 * a module without large variables is a single piece, which the host copies at once. */
#include "image.h"

#include <assert.h>
#include <stdlib.h>

#define GAP_BYTES ((uint64_t)64 << 10) /* zeros between two pieces; copying fewer costs less than another copy */

void ct_image_note(struct ct_compilation *compilation, struct ct_module_image *image, uint64_t start, uint64_t size_bytes)
{
    struct ct_span *last = image->spans.n ? &image->spans.v[image->spans.n - 1] : NULL;

    if (!size_bytes)
        return;
    if (last && start >= last->start && start <= last->end)
        last->end = start + size_bytes > last->end ? start + size_bytes : last->end;
    else
        *CT_PUSH(&compilation->scratch, &image->spans) = (struct ct_span){start, start + size_bytes};
}

static int compare_starts(const void *a, const void *b)
{
    const struct ct_span *left = a, *right = b;

    return left->start < right->start ? -1 : left->start > right->start;
}

/* Sorts the spans, and joins those with small gaps between them, before the first or after the last one. Returns how many remain. */
static uint32_t join_spans(struct ct_module_image *image)
{
    struct ct_span *spans = image->spans.v;
    uint32_t n = 0;

    if (!image->spans.n)
        return 0;
    qsort(spans, image->spans.n, sizeof *spans, compare_starts);
    if (spans[0].start <= GAP_BYTES)
        spans[0].start = 0;
    for (uint32_t i = 1; i < image->spans.n; i++) {
        if (spans[i].start > spans[n].end && spans[i].start - spans[n].end > GAP_BYTES)
            spans[++n] = spans[i];
        else if (spans[i].end > spans[n].end)
            spans[n].end = spans[i].end;
    }
    if (image->contents.size_bytes - spans[n].end <= GAP_BYTES)
        spans[n].end = image->contents.size_bytes;
    return n + 1;
}

void ct_image_make_pieces(struct ct_compilation *compilation, struct ct_module_image *image)
{
    const uint32_t n = join_spans(image);
    struct ptx2spv_piece *pieces = CT_ARENA_ARRAY(&compilation->arena, struct ptx2spv_piece, n);
    uint64_t total = 0;

    for (uint32_t i = 0; i < n; i++)
        total += image->spans.v[i].end - image->spans.v[i].start;
    if (total && !(image->bytes = calloc(1, total)))
        longjmp(compilation->exhausted, 1);
    total = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct ct_span *span = &image->spans.v[i];

        pieces[i] = (struct ptx2spv_piece){span->start, span->end - span->start, image->bytes + total};
        total += pieces[i].size_bytes;
    }
    image->contents.pieces = pieces;
    image->contents.n_pieces = n;
    image->spans.v = NULL; /* the scratch arena is reset */
    image->spans.n = image->spans.cap = 0;
}

const struct ptx2spv_piece *ptx2spv_image_piece(const struct ptx2spv_image *image, uint64_t offset)
{
    unsigned first = 0, end = image->n_pieces;

    while (first < end) {
        const unsigned middle = first + (end - first) / 2;
        const struct ptx2spv_piece *piece = &image->pieces[middle];

        if (offset < piece->offset)
            end = middle;
        else if (offset - piece->offset < piece->size_bytes)
            return piece;
        else
            first = middle + 1;
    }
    return NULL;
}

uint8_t *ct_image_at(const struct ct_module_image *image, uint64_t offset)
{
    const struct ptx2spv_piece *piece = ptx2spv_image_piece(&image->contents, offset);

    assert(piece);
    return image->bytes + ((const uint8_t *)piece->bytes - image->bytes) + (offset - piece->offset); /* without its const */
}
