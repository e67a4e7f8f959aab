/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a buffer of OpenGL. No binding that the application has made changes. */
#ifndef CT_CORE_GL_BUFFER_H
#define CT_CORE_GL_BUFFER_H

#include "gl.h"

/* INVALID_HANDLE: there is no such buffer in the context; INVALID_VALUE: it has no bytes. */
CUresult ct_gl_buffer_size(const struct ct_gl *gl, unsigned buffer, uint64_t *out);
/* Read or write all of the buffer, which has `size_bytes` bytes. UNKNOWN: it is mapped by the application, or OpenGL reports an error. */
CUresult ct_gl_buffer_read(const struct ct_gl *gl, unsigned buffer, void *bytes, uint64_t size_bytes);
CUresult ct_gl_buffer_write(const struct ct_gl *gl, unsigned buffer, const void *bytes, uint64_t size_bytes);

#endif
