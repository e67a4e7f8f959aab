/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in pieces that fit a buffer. */
#include "copy_pieces.h"

#include <string.h>

uint64_t ct_copy_bytes(const struct ct_copy *copy)
{
    return copy->row_bytes * copy->rows * copy->slices; /* no more than the spans, which fit */
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

void ct_copy_rows(char *dst, uint64_t dst_pitch, const char *src, uint64_t src_pitch, uint64_t bytes, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++)
        memmove(dst + row * dst_pitch, src + row * src_pitch, bytes);
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
