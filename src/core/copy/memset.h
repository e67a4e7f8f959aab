/* SPDX-License-Identifier: Apache-2.0 */
/* Memset: filling memory with a pattern. */
#ifndef CT_CORE_MEMSET_H
#define CT_CORE_MEMSET_H

#include "copy.h"

/* Sets `height` rows of `width` elements of element_bytes (1, 2, 4) to `value`; rows are `pitch` bytes apart. */
struct ct_fill_request {
    uint64_t address, pitch, width, height;
    unsigned element_bytes;
    uint32_t value;
    enum ct_copy_mode mode;
};

/* The same with its memory resolved. Rows and the memory begin at multiples of the element size. With 0 rows it is a no-op. */
struct ct_fill {
    struct ct_place place;
    uint32_t pattern; /* the element's bytes, repeated to 4 */
    uint64_t row_bytes, rows, pitch;
    enum ct_copy_mode mode; /* SYNC: waits only if the memory is host memory or `synchronous` */
};

/* INVALID_VALUE: misaligned address or pitch, beyond the allocation, in no allocation, or read-only memory. */
CUresult ct_fill_init(struct ct_fill *out, const struct ct_fill_request *request);
CUresult ct_fill_execute(struct ct_stream *stream, const struct ct_fill *fill);
/* Sets new device memory, which no command uses, to zero, and waits. */
CUresult ct_clear_device(struct ct_context *context, uint64_t address, uint64_t size_bytes);

#endif
