/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between any two places. */
#ifndef CT_CORE_COPY_H
#define CT_CORE_COPY_H
/* Parts: copy_place.c. */

#include "core/memory/memory.h"
#include "core/stream/stream.h"
#include "copy_plan.h"

/* What the caller says of a pointer; the map of addresses says what it is. */
enum ct_pointer_role {
    CT_POINTER_HOST,    /* may be pageable memory, which the map does not know */
    CT_POINTER_DEVICE,  /* must be in the map */
    CT_POINTER_UNIFIED, /* either */
};

/* One end of a copy. */
struct ct_place {
    struct ct_memory *memory; /* NULL: pageable host memory */
    uint64_t offset;          /* in memory */
    char *host;               /* NULL: the host cannot reach it */
    bool is_device;           /* device memory, not page-locked host memory */
    bool read_only;           /* mapped or registered so: may not be written */
    bool synchronous;         /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: SYNC means it, always */
    CUcontext owner;          /* context of the memory */
};

/* Finds the place of `span_bytes` bytes. INVALID_VALUE: NULL, not in the map though it must be, or beyond its allocation. */
CUresult ct_place_find(enum ct_pointer_role role, uint64_t address, uint64_t span_bytes, struct ct_place *out);

/* The place so many bytes further on. */
struct ct_place ct_place_moved(const struct ct_place *place, uint64_t bytes);

/* `slices` of `rows` of `row_bytes`; the first byte is at each place's offset. Counts of at least 1. */
struct ct_copy {
    struct ct_place dst, src;
    uint64_t row_bytes, rows, slices;
    uint64_t dst_pitch, src_pitch; /* bytes from row to row */
    uint64_t dst_slice, src_slice; /* bytes from slice to slice */
};

/* Bytes from the first to the last that a copy touches on one side. INVALID_VALUE: more than 64 bits. */
CUresult ct_copy_span(uint64_t row_bytes, uint64_t rows, uint64_t pitch, uint64_t slices, uint64_t slice, uint64_t *out);

/* A copy with its ends found. 0 bytes: it does nothing. */
struct ct_copy_command {
    struct ct_copy copy;
    enum ct_copy_mode mode;
    enum ct_copy_source source;
};
/* The one-dimensional form; finds the ends. What ct_place_find gives. */
CUresult ct_copy_command_linear(enum ct_pointer_role dst_role, uint64_t dst, enum ct_pointer_role src_role, uint64_t src,
                                uint64_t size_bytes, enum ct_copy_mode mode, struct ct_copy_command *out);
/* INVALID_VALUE: the destination may only be read. */
CUresult ct_copy_execute(struct ct_stream *stream, const struct ct_copy_command *command);

/* Whether the host may read and write this device's memory as fast as the device's own copies. */
bool ct_copy_host_is_fast(const struct ct_context *context);

/* A synchronous copy for core's own use (module images). */
CUresult ct_copy_to_device(struct ct_context *context, uint64_t dst, const void *src, uint64_t size_bytes);

#endif
