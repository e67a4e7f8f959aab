/* SPDX-License-Identifier: Apache-2.0 */
#include "gl_buffer.h"

#include "core/base/log.h"
#include "gl_names.h"

#define CT_CHANNEL "graphics"

/* Binds the buffer; returns the binding from before. */
static unsigned bind(const struct ct_gl *gl, unsigned buffer)
{
    int before = 0;

    gl->GetIntegerv(GL_ARRAY_BUFFER_BINDING, &before);
    gl->BindBuffer(GL_ARRAY_BUFFER, buffer);
    return (unsigned)before;
}

static uint64_t size_of_bound(const struct ct_gl *gl)
{
    int64_t wide = 0;
    int bytes = 0;

    if (gl->GetBufferParameteri64v)
        gl->GetBufferParameteri64v(GL_ARRAY_BUFFER, GL_BUFFER_SIZE, &wide);
    else
        gl->GetBufferParameteriv(GL_ARRAY_BUFFER, GL_BUFFER_SIZE, &bytes);
    return gl->GetBufferParameteri64v ? (uint64_t)wide : (uint64_t)bytes;
}

static CUresult check_unmapped(const struct ct_gl *gl, unsigned buffer)
{
    int is_mapped = 0;

    gl->GetBufferParameteriv(GL_ARRAY_BUFFER, GL_BUFFER_MAPPED, &is_mapped);
    return is_mapped ? ct_fail(CUDA_ERROR_UNKNOWN, "the application has mapped buffer %u of OpenGL", buffer) : CUDA_SUCCESS;
}

/* Whether the bound buffer's bytes can only be changed by the device (glBufferStorage without GL_DYNAMIC_STORAGE_BIT). */
static bool is_immutable(const struct ct_gl *gl)
{
    int immutable = 0, flags = 0;

    if (gl->version < 44)
        return false;
    gl->GetBufferParameteriv(GL_ARRAY_BUFFER, GL_BUFFER_IMMUTABLE_STORAGE, &immutable);
    gl->GetBufferParameteriv(GL_ARRAY_BUFFER, GL_BUFFER_STORAGE_FLAGS, &flags);
    return immutable && !(flags & GL_DYNAMIC_STORAGE_BIT);
}

/* Writes to the bound buffer by a copy from a buffer that can be written. */
static void write_by_copy(const struct ct_gl *gl, const void *bytes, uint64_t size_bytes)
{
    unsigned source = 0;
    int before = 0;

    gl->GetIntegerv(GL_COPY_READ_BUFFER, &before);
    gl->GenBuffers(1, &source);
    gl->BindBuffer(GL_COPY_READ_BUFFER, source);
    gl->BufferData(GL_COPY_READ_BUFFER, (intptr_t)size_bytes, bytes, GL_STREAM_COPY);
    gl->CopyBufferSubData(GL_COPY_READ_BUFFER, GL_ARRAY_BUFFER, 0, 0, (intptr_t)size_bytes);
    gl->BindBuffer(GL_COPY_READ_BUFFER, (unsigned)before);
    gl->DeleteBuffers(1, &source);
}

CUresult ct_gl_buffer_size(const struct ct_gl *gl, unsigned buffer, uint64_t *out)
{
    unsigned before;
    uint64_t bytes;

    if (!gl->IsBuffer(buffer)) /* also a name that was never bound */
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%u is not a buffer of the OpenGL context", buffer);
    before = bind(gl, buffer);
    bytes = size_of_bound(gl);
    gl->BindBuffer(GL_ARRAY_BUFFER, before);
    if (bytes == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "buffer %u of OpenGL has no bytes", buffer);
    *out = bytes;
    return CUDA_SUCCESS;
}

CUresult ct_gl_buffer_read(const struct ct_gl *gl, unsigned buffer, void *bytes, uint64_t size_bytes)
{
    const unsigned before = bind(gl, buffer);
    CUresult r = check_unmapped(gl, buffer);

    if (r == CUDA_SUCCESS) {
        gl->GetBufferSubData(GL_ARRAY_BUFFER, 0, (intptr_t)size_bytes, bytes);
        r = ct_gl_check(gl, "a buffer cannot be read");
    }
    gl->BindBuffer(GL_ARRAY_BUFFER, before);
    return r;
}

CUresult ct_gl_buffer_write(const struct ct_gl *gl, unsigned buffer, const void *bytes, uint64_t size_bytes)
{
    const unsigned before = bind(gl, buffer);
    CUresult r = check_unmapped(gl, buffer);

    if (r == CUDA_SUCCESS) {
        if (is_immutable(gl))
            write_by_copy(gl, bytes, size_bytes);
        else
            gl->BufferSubData(GL_ARRAY_BUFFER, 0, (intptr_t)size_bytes, bytes);
        r = ct_gl_check(gl, "a buffer cannot be written");
    }
    gl->BindBuffer(GL_ARRAY_BUFFER, before);
    return r;
}
