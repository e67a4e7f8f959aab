/* SPDX-License-Identifier: Apache-2.0 */
#include "gl_shared.h"

#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/copy/copy.h"
#include "gl_names.h"

#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "graphics"

/* Exports the memory of a range as an opaque descriptor. */
static CUresult export(const struct ct_context *context, uint64_t address, struct ct_memory_share *out, uint64_t *out_offset)
{
    struct ct_range range;
    CUresult r = ct_address_find(address, 0, &range);

    if (r != CUDA_SUCCESS)
        return r;
    if (!context->device->info.memory_fd)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not export memory", context->device->info.name);
    if ((r = context->backend->sharing->export(range.memory, 0, out)) != CUDA_SUCCESS)
        return r;
    *out_offset = out->offset + range.memory_offset + (address - range.start);
    if (!out->pages && out->n_parts == 1)
        return CUDA_SUCCESS;
    close(out->fd);
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "memory that is pages of a file, or several pieces, is not shared with OpenGL");
}

/* Makes the descriptor a memory object, which owns it then. */
static CUresult import(const struct ct_gl *gl, const struct ct_memory_share *share, unsigned *out_memory)
{
    CUresult r;

    gl->CreateMemoryObjectsEXT(1, out_memory);
    gl->ImportMemoryFdEXT(*out_memory, share->total_bytes, GL_HANDLE_TYPE_OPAQUE_FD_EXT, share->fd);
    if ((r = ct_gl_check(gl, "memory cannot be imported")) == CUDA_SUCCESS)
        return r;
    close(share->fd);
    gl->DeleteMemoryObjectsEXT(1, out_memory);
    *out_memory = 0;
    return r;
}

static CUresult make_buffer(const struct ct_gl *gl, unsigned memory, uint64_t size_bytes, unsigned *out_buffer)
{
    int before = 0;

    gl->GetIntegerv(GL_COPY_READ_BUFFER, &before);
    gl->GenBuffers(1, out_buffer);
    gl->BindBuffer(GL_COPY_READ_BUFFER, *out_buffer);
    gl->BufferStorageMemEXT(GL_COPY_READ_BUFFER, (intptr_t)size_bytes, memory, 0);
    gl->BindBuffer(GL_COPY_READ_BUFFER, (unsigned)before);
    return ct_gl_check(gl, "imported memory cannot be a buffer");
}

/* A range of a buffer. */
struct part {
    unsigned buffer;
    uint64_t offset;
};

/* Waits for the copy: no semaphore of OpenGL is shared with the streams. */
static CUresult copy(const struct ct_gl *gl, struct part from, struct part to, uint64_t size_bytes)
{
    int read = 0, write = 0;

    gl->GetIntegerv(GL_COPY_READ_BUFFER, &read);
    gl->GetIntegerv(GL_COPY_WRITE_BUFFER, &write);
    gl->BindBuffer(GL_COPY_READ_BUFFER, from.buffer);
    gl->BindBuffer(GL_COPY_WRITE_BUFFER, to.buffer);
    gl->CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, (intptr_t)from.offset, (intptr_t)to.offset, (intptr_t)size_bytes);
    gl->BindBuffer(GL_COPY_READ_BUFFER, (unsigned)read);
    gl->BindBuffer(GL_COPY_WRITE_BUFFER, (unsigned)write);
    gl->Finish();
    return ct_gl_check(gl, "a buffer cannot be copied");
}

CUresult ct_gl_shared_load(const struct ct_gl *gl, const struct ct_gl_shared *shared, unsigned buffer, uint64_t size_bytes)
{
    return copy(gl, (struct part){buffer, 0}, (struct part){shared->buffer, shared->offset}, size_bytes);
}

CUresult ct_gl_shared_store(const struct ct_gl *gl, const struct ct_gl_shared *shared, unsigned buffer, uint64_t size_bytes)
{
    return copy(gl, (struct part){shared->buffer, shared->offset}, (struct part){buffer, 0}, size_bytes);
}

void ct_gl_shared_finish(const struct ct_gl *gl, struct ct_gl_shared *shared)
{
    if (shared->buffer)
        gl->DeleteBuffers(1, &shared->buffer);
    if (shared->memory)
        gl->DeleteMemoryObjectsEXT(1, &shared->memory);
    *shared = (struct ct_gl_shared){0};
}

/* Whether bytes that OpenGL writes to the buffer arrive in CUDA's memory. A driver may accept memory and use it in another way (gl_shared.h). */
static CUresult check_bytes(const struct ct_gl *gl, struct ct_context *context, uint64_t address, uint64_t size_bytes,
                            const struct ct_gl_shared *shared)
{
    const uint64_t sent = ct_process_new_id() * UINT64_C(0x9e3779b97f4a7c15); /* bytes that the memory does not have by chance */
    const uint64_t n = size_bytes < sizeof sent ? size_bytes : sizeof sent;
    const unsigned uses = ct_address_uses_begin();
    struct ct_copy_command command;
    unsigned source = 0;
    uint64_t got = ~sent;
    int before = 0;
    CUresult r;

    gl->GetIntegerv(GL_COPY_READ_BUFFER, &before);
    gl->GenBuffers(1, &source);
    gl->BindBuffer(GL_COPY_READ_BUFFER, source);
    gl->BufferData(GL_COPY_READ_BUFFER, sizeof sent, &sent, GL_STREAM_COPY);
    gl->BindBuffer(GL_COPY_READ_BUFFER, (unsigned)before);
    r = ct_gl_shared_load(gl, shared, source, n);
    gl->DeleteBuffers(1, &source);
    if (r == CUDA_SUCCESS)
        r = ct_copy_command_linear(CT_POINTER_HOST, (uint64_t)(uintptr_t)&got, CT_POINTER_DEVICE, address, n, CT_COPY_SYNC, &command);
    if (r == CUDA_SUCCESS)
        r = ct_copy_execute(context->legacy_stream, &command);
    ct_address_uses_end(uses);
    if (r == CUDA_SUCCESS && memcmp(&got, &sent, n))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "OpenGL imports memory, but does not use the same bytes");
    return r;
}

CUresult ct_gl_shared_init(const struct ct_gl *gl, struct ct_context *context, uint64_t address, uint64_t size_bytes,
                           struct ct_gl_shared *out)
{
    struct ct_gl_shared shared = {0};
    struct ct_memory_share share;
    CUresult r;

    if (!gl->CopyBufferSubData || !ct_gl_has_extension(gl, "GL_EXT_memory_object_fd") || !ct_gl_draws_with(gl, context->device->info.uuid))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "OpenGL draws with another device than %s, or imports no memory",
                       context->device->info.name);
    if ((r = export(context, address, &share, &shared.offset)) == CUDA_SUCCESS && (r = import(gl, &share, &shared.memory)) == CUDA_SUCCESS)
        r = make_buffer(gl, shared.memory, shared.offset + size_bytes, &shared.buffer);
    if (r == CUDA_SUCCESS)
        r = check_bytes(gl, context, address, size_bytes, &shared);
    if (r == CUDA_SUCCESS)
        *out = shared;
    else
        ct_gl_shared_finish(gl, &shared);
    return r;
}
