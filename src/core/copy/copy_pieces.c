/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in pieces that fit into a buffer. */
#include "copy_pieces.h"

#include <string.h>

/* See is_slow_in_one. */
#define ALIAS_BYTES ((uintptr_t)4096) /* addresses at this distance seem to alias */
#define ALIAS_REACH 64
#define WITHOUT_STRING_BYTES ((uint64_t)2048)  /* up to this size memmove uses vectors anyway */
#define WITH_VECTORS_BYTES ((uint64_t)1 << 20) /* and from this size on */

uint64_t ct_copy_bytes(const struct ct_copy *copy)
{
    return copy->row_bytes * copy->rows * copy->slices; /* not more than the spans, which fit in 64 bits */
}

bool ct_copy_next_piece(const struct ct_copy *copy, struct ct_copy_cursor *cursor, uint64_t limit, struct ct_copy_piece *out)
{
    if (cursor->slice == copy->slices)
        return false;
    *out = (struct ct_copy_piece){.at = *cursor};
    if (copy->row_bytes <= limit) {
        uint64_t fit = limit / copy->row_bytes, left = copy->rows - cursor->row;

        out->rows = fit < left ? fit : left;
        out->bytes = copy->row_bytes;
        cursor->row += out->rows;
    } else {
        uint64_t left = copy->row_bytes - cursor->column;

        out->rows = 1;
        out->bytes = limit < left ? limit : left;
        cursor->column += out->bytes;
        if (cursor->column == copy->row_bytes) {
            cursor->column = 0;
            cursor->row++;
        }
    }
    if (cursor->row == copy->rows) {
        cursor->row = 0;
        cursor->slice++;
    }
    return true;
}

uint64_t ct_copy_dst_distance(const struct ct_copy *copy, const struct ct_copy_cursor *at)
{
    return at->slice * copy->dst_slice + at->row * copy->dst_pitch + at->column;
}

uint64_t ct_copy_src_distance(const struct ct_copy *copy, const struct ct_copy_cursor *at)
{
    return at->slice * copy->src_slice + at->row * copy->src_pitch + at->column;
}

/* Whether one memmove would be slow. If page-aligned memory, such as ours, is copied to a large block of malloc, which begins 16 bytes
 * after a page boundary, AMD's Zen 3 executes `rep movsb` at a twentieth of its speed, since the stores seem to alias the next loads
 * (glibc's bug 30994). glibc 2.36 uses that instruction from 2,112 bytes to just below 1 MiB. */
static bool is_slow_in_one(const char *dst, const char *src, uint64_t bytes)
{
    const uintptr_t ahead = (uintptr_t)dst - (uintptr_t)src;

    return (ahead & (ALIAS_BYTES - 1)) < ALIAS_REACH && ahead >= bytes && bytes > WITHOUT_STRING_BYTES && bytes < WITH_VECTORS_BYTES;
}

/* As memmove. */
static void copy_row(char *dst, const char *src, uint64_t bytes)
{
    if (is_slow_in_one(dst, src, bytes))
        for (; bytes > WITHOUT_STRING_BYTES; bytes -= WITHOUT_STRING_BYTES, dst += WITHOUT_STRING_BYTES, src += WITHOUT_STRING_BYTES)
            memmove(dst, src, WITHOUT_STRING_BYTES);
    memmove(dst, src, bytes);
}

void ct_copy_rows(char *dst, uint64_t dst_pitch, const char *src, uint64_t src_pitch, uint64_t bytes, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++)
        copy_row(dst + row * dst_pitch, src + row * src_pitch, bytes);
}

struct ct_copy_region ct_copy_region_of(const struct ct_copy_piece *piece, uint64_t dst, uint64_t dst_pitch, uint64_t src,
                                        uint64_t src_pitch)
{
    return (struct ct_copy_region){
        .dst_offset = dst,
        .src_offset = src,
        .row_bytes = piece->bytes,
        .rows = piece->rows,
        .dst_pitch = dst_pitch,
        .src_pitch = src_pitch,
        .slices = 1,
    };
}
