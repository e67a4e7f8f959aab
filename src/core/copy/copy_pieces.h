/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in pieces, for copy*.c: a copy through a buffer is executed one part at a time. */
#ifndef CT_CORE_COPY_PIECES_H
#define CT_CORE_COPY_PIECES_H
/* Parts: copy_download.c. */

#include "copy.h"

struct ct_copy_cursor {
    uint64_t slice, row, column;
};

/* A part of a copy: `rows` rows of `bytes` each. */
struct ct_copy_piece {
    struct ct_copy_cursor at;
    uint64_t rows, bytes;
};

uint64_t ct_copy_bytes(const struct ct_copy *copy); /* total number of bytes */
/* The next part of at most `limit` bytes. False: there is no further part. */
bool ct_copy_next_piece(const struct ct_copy *copy, struct ct_copy_cursor *cursor, uint64_t limit, struct ct_copy_piece *out);
/* Byte offset from the first byte of a side. */
uint64_t ct_copy_dst_distance(const struct ct_copy *copy, const struct ct_copy_cursor *at);
uint64_t ct_copy_src_distance(const struct ct_copy *copy, const struct ct_copy_cursor *at);
/* The region for a copy between a side and a buffer in which the piece is stored without gaps. */
struct ct_copy_region ct_copy_region_of(const struct ct_copy_piece *piece, uint64_t dst, uint64_t dst_pitch, uint64_t src,
                                        uint64_t src_pitch);
/* Copies on the host. */
void ct_copy_rows(char *dst, uint64_t dst_pitch, const char *src, uint64_t src_pitch, uint64_t bytes, uint64_t rows);

/* copy_download.c: device to pageable memory. The call waits. */
CUresult ct_copy_download(struct ct_stream *stream, const struct ct_copy *copy);

#endif
