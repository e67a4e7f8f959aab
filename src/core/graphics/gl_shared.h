/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of CUDA's as a buffer of OpenGL (GL_EXT_memory_object_fd), through which the device itself copies the contents of resources. The other way
 * round is not possible: OpenGL exports nothing. */
#ifndef CT_CORE_GL_SHARED_H
#define CT_CORE_GL_SHARED_H

#include "core/device/context.h"
#include "gl.h"

/* The names of OpenGL are those of the context that is current when it is made; 0: none. The buffer begins with the driver's allocation, since llvmpipe
 * of Mesa 25.0 ignores the offset of a buffer in imported memory. */
struct ct_gl_shared {
    unsigned memory, buffer;
    uint64_t offset; /* of CUDA's memory in the buffer */
};

/* Imports `size_bytes` of the memory of a range of the map of addresses. NOT_SUPPORTED: OpenGL draws with another device than the context's, or this
 * memory cannot be shared with it. */
CUresult ct_gl_shared_init(const struct ct_gl *gl, struct ct_context *context, uint64_t address, uint64_t size_bytes,
                           struct ct_gl_shared *out);
void ct_gl_shared_finish(const struct ct_gl *gl, struct ct_gl_shared *shared);

/* Copy all of the application's buffer to the shared one, or from it. */
CUresult ct_gl_shared_load(const struct ct_gl *gl, const struct ct_gl_shared *shared, unsigned buffer, uint64_t size_bytes);
CUresult ct_gl_shared_store(const struct ct_gl *gl, const struct ct_gl_shared *shared, unsigned buffer, uint64_t size_bytes);

#endif
