/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and images of OpenGL that CUDA maps (Driver API: Graphics Interoperability). OpenGL cannot hand out the memory of a buffer or a texture that
 * exists, so a resource has memory or an array of CUDA's, and its contents are copied when it is mapped and when it is unmapped: by the device, if it
 * is the one with which OpenGL draws and CUDA's memory can be shared with it, else through memory of the host. */
#ifndef CT_CORE_GRAPHICS_RESOURCE_H
#define CT_CORE_GRAPHICS_RESOURCE_H

#include "core/device/context.h"
#include "core/stream/stream.h"

struct ct_graphics_resource;

/* Whether the resource is also known by the name of its buffer: the functions before CUDA 3.0. */
enum ct_graphics_kind { CT_GRAPHICS_BY_HANDLE, CT_GRAPHICS_BY_NAME };

/* Register a buffer or an image of the OpenGL context that is current in the calling thread. flags: CUgraphicsRegisterFlags.
 * OPERATING_SYSTEM: there is no such context; ALREADY_MAPPED: it is mapped, or registered by its name; INVALID_HANDLE and INVALID_VALUE: as
 * ct_gl_buffer_size and ct_gl_image_init; OUT_OF_MEMORY; NOT_SUPPORTED: as ct_gl_enter. */
CUresult ct_graphics_register_buffer(struct ct_context *context, unsigned buffer, unsigned flags, enum ct_graphics_kind kind,
                                     CUgraphicsResource *out);
CUresult ct_graphics_register_image(struct ct_context *context, unsigned image, unsigned target, unsigned flags, CUgraphicsResource *out);

/* Looks up a resource, with a reference to its context; release releases both. INVALID_HANDLE, and errors of ct_context_enter. */
CUresult ct_graphics_lookup(CUgraphicsResource handle, struct ct_graphics_resource **out);
/* The resource of the context that was registered by its name. INVALID_VALUE. */
CUresult ct_graphics_lookup_name(struct ct_context *context, unsigned buffer, struct ct_graphics_resource **out);
void ct_graphics_release(struct ct_graphics_resource *resource); /* takes NULL */

/* The resources of a call. */
struct ct_graphics_batch {
    struct ct_stream *stream;
    struct ct_graphics_resource **resources; /* references */
    unsigned count;
};

/* INVALID_HANDLE: one is not registered, or twice in the list; INVALID_CONTEXT: one belongs to another context than the stream; OUT_OF_MEMORY. */
CUresult ct_graphics_batch_init(struct ct_graphics_batch *batch, struct ct_stream *stream, const CUgraphicsResource *handles,
                                unsigned count);
void ct_graphics_batch_finish(struct ct_graphics_batch *batch);

/* Map or unmap all resources or none. The copies are in the order of the stream; unmapping waits for it. ALREADY_MAPPED, NOT_MAPPED; UNKNOWN: there is no
 * OpenGL context, its object is gone or has changed, or OpenGL reports an error. After an error while contents are copied, resources remain as they
 * were. */
CUresult ct_graphics_map(const struct ct_graphics_batch *batch);
CUresult ct_graphics_unmap(const struct ct_graphics_batch *batch);

CUgraphicsResource ct_graphics_handle(const struct ct_graphics_resource *resource);
/* INVALID_VALUE: unknown flags; ALREADY_MAPPED. */
CUresult ct_graphics_set_map_flags(struct ct_graphics_resource *resource, unsigned flags);
/* UNKNOWN: it is mapped. */
CUresult ct_graphics_unregister(struct ct_graphics_resource *resource);

/* The memory or the arrays of a mapped resource. NOT_MAPPED; NOT_MAPPED_AS_POINTER, NOT_MAPPED_AS_ARRAY: it is of the other kind; INVALID_VALUE: there is
 * no such layer or level. */
CUresult ct_graphics_pointer(struct ct_graphics_resource *resource, uint64_t *out_address, uint64_t *out_bytes);
CUresult ct_graphics_mipmapped_array(struct ct_graphics_resource *resource, CUmipmappedArray *out);
CUresult ct_graphics_array(struct ct_graphics_resource *resource, unsigned layer, unsigned level, CUarray *out);

/* Destroys those of a context that is being destroyed. */
void ct_graphics_destroy_all(const struct ct_context *context);

#endif
