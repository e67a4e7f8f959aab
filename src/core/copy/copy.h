/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between any two locations. */
#ifndef CT_CORE_COPY_H
#define CT_CORE_COPY_H
/* Parts: copy_place.c. */

#include "core/memory/memory.h"
#include "core/stream/stream.h"
#include "copy_plan.h"

/* The caller's claim about a pointer; the address map determines its actual kind. */
enum ct_pointer_role {
    CT_POINTER_HOST,    /* may be pageable memory, which is not in the map */
    CT_POINTER_DEVICE,  /* must be in the map */
    CT_POINTER_UNIFIED, /* either */
};

struct ct_place_changes;

/* One end of a copy. */
struct ct_place {
    struct ct_memory *memory;                 /* NULL: pageable host memory */
    uint64_t offset;                          /* in `memory` */
    char *host;                               /* NULL: the host cannot access it */
    bool is_device;                           /* device memory, not page-locked host memory */
    bool read_only;                           /* mapped or registered as read-only */
    bool synchronous;                         /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: SYNC copies always wait */
    CUcontext owner;                          /* the memory's context */
    uint64_t address;                         /* the CUDA address, if it is in one allocation; else 0 */
    struct ct_place_changes *changes_or_null; /* the record of copies that write there: place_changes.h */
};

/* Finds the location of `span_bytes` bytes, which stays valid until the caller's ct_address_uses_end (address_uses.h). INVALID_VALUE: NULL, not in the map although required, or beyond its allocation. */
CUresult ct_place_find(enum ct_pointer_role role, uint64_t address, uint64_t span_bytes, struct ct_place *out);

/* The location that is so many bytes further on. */
struct ct_place ct_place_moved(const struct ct_place *place, uint64_t bytes);

/* Tells shadows.h that a command of a stream writes `bytes` bytes there. */
void ct_place_note_write(const struct ct_stream *stream, const struct ct_place *place, uint64_t bytes);

/* `slices` slices of `rows` rows of `row_bytes`, from each location's offset on. The counts are at least 1. */
struct ct_copy {
    struct ct_place dst, src;
    uint64_t row_bytes, rows, slices;
    uint64_t dst_pitch, src_pitch; /* distance between rows */
    uint64_t dst_slice, src_slice; /* distance between slices */
};

/* Number of bytes from the first to the last byte accessed on one side. INVALID_VALUE: it does not fit in 64 bits. */
CUresult ct_copy_span(uint64_t row_bytes, uint64_t rows, uint64_t pitch, uint64_t slices, uint64_t slice, uint64_t *out);

/* A copy with resolved locations. With 0 bytes it is a no-op. */
struct ct_copy_command {
    struct ct_copy copy;
    enum ct_copy_mode mode;
    enum ct_copy_source source;
};
/* Resolves the locations of a one-dimensional copy. Errors: those of ct_place_find. */
CUresult ct_copy_command_linear(enum ct_pointer_role dst_role, uint64_t dst, enum ct_pointer_role src_role, uint64_t src,
                                uint64_t size_bytes, enum ct_copy_mode mode, struct ct_copy_command *out);
/* INVALID_VALUE: the destination is read-only. */
CUresult ct_copy_execute(struct ct_stream *stream, const struct ct_copy_command *command);

/* Whether the copy accesses each byte once, and bytes on one side only as its source or destination, so that it needs no staging. *out: the same
 * with adjacent rows merged. It may still be between devices, or with pageable memory. */
bool ct_copy_is_direct(const struct ct_copy_command *command, struct ct_copy *out);
/* Whether the host can read and write this device's memory as fast as the device's own copies. */
bool ct_copy_host_is_fast(const struct ct_context *context);

/* A synchronous copy for core's own use (module images). */
CUresult ct_copy_to_device(struct ct_context *context, uint64_t dst, const void *src, uint64_t size_bytes);

#endif
