/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer or an image of OpenGL, the memory or array of CUDA's that corresponds to it, and copies between the two. */
#ifndef CT_CORE_GRAPHICS_CONTENTS_H
#define CT_CORE_GRAPHICS_CONTENTS_H

#include "core/device/context.h"
#include "core/stream/stream.h"
#include "gl_image.h"
#include "gl_shared.h"

struct ct_graphics_contents {
    struct ct_context *context; /* borrowed */
    unsigned name;              /* of the object of OpenGL */
    bool is_image;
    struct ct_gl_image image;
    CUmipmappedArray array;       /* of an image */
    uint64_t address, size_bytes; /* the memory of a buffer; for an image, shared memory, or 0 */
    struct ct_gl_shared shared;   /* the same memory in OpenGL, if it can be shared */
};

enum ct_graphics_direction { CT_GRAPHICS_NOWHERE, CT_GRAPHICS_TO_CUDA, CT_GRAPHICS_TO_GL };

/* Create the memory or the array, with undefined contents. flags: CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST, TEXTURE_GATHER. OUT_OF_MEMORY, and errors
 * of ct_mipmapped_array_create. Call ct_graphics_contents_finish after a failure, too. */
CUresult ct_graphics_contents_init_buffer(struct ct_graphics_contents *contents, const struct ct_gl *gl, struct ct_context *context,
                                          unsigned name, uint64_t bytes);
CUresult ct_graphics_contents_init_image(struct ct_graphics_contents *contents, const struct ct_gl *gl, struct ct_context *context,
                                         unsigned name, const struct ct_gl_image *image, unsigned flags);
/* The CUDA context is in use. NULL: the OpenGL context is not current; what is shared with it goes when it is destroyed. */
void ct_graphics_contents_finish(struct ct_graphics_contents *contents, const struct ct_gl *gl_or_null);

/* Copies all of it, in the order of the stream; NOWHERE: only validates the object of OpenGL. UNKNOWN: it was deleted, or given other memory, or
 * OpenGL reports an error; OUT_OF_MEMORY. */
CUresult ct_graphics_contents_move(const struct ct_graphics_contents *contents, const struct ct_gl *gl, struct ct_stream *stream,
                                   enum ct_graphics_direction direction);

#endif
