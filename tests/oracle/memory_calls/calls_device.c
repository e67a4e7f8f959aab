/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, page-locked and registered host memory; contexts. */
#include "rows.h"

/* ---- device memory ---- */
static size_t some_size(struct calls *c)
{
    return CALLS_PICK(c, 0, 1, 100, 512, 4096, 65536, 100000, CALLS_MIB, 2 * CALLS_MIB, 3 * CALLS_MIB + 4, 4 * CALLS_MIB, (size_t)1 << 46);
}

static void made(struct calls *c, enum calls_kind kind, CUdeviceptr at, size_t size)
{
    if (at)
        calls_fill(c, calls_add(c, kind, at, size, 0));
    else
        calls_append(c, " null");
}

void calls_mem_alloc(struct calls *c)
{
    const size_t size = some_size(c);
    CUdeviceptr at = 0;

    calls_begin(c, "cuMemAlloc(%zu", size);
    if (calls_result(c, cuMemAlloc(&at, size)))
        made(c, CALLS_DEVICE, at, size);
    calls_line(c);
}

void calls_mem_alloc_pitch(struct calls *c)
{
    const size_t width = CALLS_PICK(c, 0, 1, 100, 512, 513, 4000, 65536, (size_t)1 << 44), height = CALLS_PICK(c, 0, 1, 3, 16, 100);
    const unsigned element = (unsigned)CALLS_PICK(c, 0, 1, 2, 3, 4, 4, 8, 8, 16, 16, 32);
    CUdeviceptr at = 0;
    size_t pitch = 0;

    calls_begin(c, "cuMemAllocPitch(width %zu, height %zu, element %u", width, height, element);
    if (calls_result(c, cuMemAllocPitch(&at, &pitch, width, height, element))) {
        calls_append(c, " pitch=%zu", pitch);
        made(c, CALLS_DEVICE, at, pitch * height);
    }
    calls_line(c);
}

void calls_mem_free(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_DEVICE | CALLS_MANAGED | CALLS_POOLED, CALLS_ANYTHING);

    calls_begin(c, "cuMemFree(%s", p.text);
    if (calls_end(c, cuMemFree(p.at)))
        calls_mark_freed_at(c, CALLS_ADDRESSED & ~(CALLS_RESERVED | CALLS_MAPPED), p.at);
}

void calls_mem_get_address_range(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_ADDRESSED, CALLS_ANYTHING);
    const unsigned asked = (unsigned)CALLS_PICK(c, 3, 3, 3, 1, 2, 0);
    CUdeviceptr base = 0;
    size_t size = 0;

    calls_begin(c, "cuMemGetAddressRange(%s%s, %s", asked & 1 ? "base, " : "", asked & 2 ? "size" : "", p.text);
    if (calls_result(c, cuMemGetAddressRange(asked & 1 ? &base : NULL, asked & 2 ? &size : NULL, p.at))) {
        calls_append_address(c, "base", base);
        calls_append(c, " size=%zu", size);
    }
    calls_line(c);
}

void calls_mem_get_info(struct calls *c)
{
    size_t left = 0, total = 0;

    calls_begin(c, "cuMemGetInfo(");
    if (calls_result(c, cuMemGetInfo(&left, &total)))
        calls_append(c, "%s", left > 0 && left <= total ? "" : " impossible");
    calls_line(c);
}

/* ---- host memory ---- */
static unsigned host_flags(struct calls *c)
{
    return (unsigned)(calls_chance(c, 12) ? CALLS_PICK(c, 0x8, 0x10, 0x18, 0x20, 0x80000000U, 0x47) : calls_number(c, 8));
}

void calls_mem_host_alloc(struct calls *c)
{
    const size_t size = CALLS_PICK(c, 0, 1, 100, 4096, 5000, 65536, 262144, 262144, CALLS_MIB, (size_t)1 << 46);
    const unsigned flags = host_flags(c);
    const bool old = calls_chance(c, 15);
    void *at = NULL;
    CUresult r;

    calls_begin(c, old ? "cuMemAllocHost(%zu" : "cuMemHostAlloc(%zu, %#x", size, flags);
    r = old ? cuMemAllocHost(&at, size) : cuMemHostAlloc(&at, size, flags);
    if (calls_result(c, r))
        made(c, CALLS_HOST, (uintptr_t)at, size);
    calls_line(c);
}

void calls_mem_free_host(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_HOST, CALLS_ANYTHING);

    calls_begin(c, "cuMemFreeHost(%s", p.text);
    if (calls_end(c, cuMemFreeHost((void *)(uintptr_t)p.at)))
        calls_mark_freed_at(c, CALLS_ADDRESSED & ~(CALLS_RESERVED | CALLS_MAPPED), p.at);
}

void calls_mem_host_get_device_pointer(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_HOST | CALLS_REGISTERED, CALLS_ANYTHING);
    const unsigned flags = calls_chance(c, 6) ? 1 : 0;
    CUdeviceptr at = 0;

    calls_begin(c, "cuMemHostGetDevicePointer(%s, %u", p.text, flags);
    if (calls_result(c, cuMemHostGetDevicePointer(&at, (void *)(uintptr_t)p.at, flags)))
        calls_append_address(c, "at", at);
    calls_line(c);
}

void calls_mem_host_get_flags(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_HOST | CALLS_REGISTERED, CALLS_ANYTHING);
    unsigned flags = 0;

    calls_begin(c, "cuMemHostGetFlags(%s", p.text);
    if (calls_result(c, cuMemHostGetFlags(&flags, (void *)(uintptr_t)p.at)))
        calls_append(c, " flags=%#x", flags);
    calls_line(c);
}

/* Mostly in the window, in whole pages or not; sometimes memory that is not plain memory, or that is already CUDA's. */
static struct calls_place to_register(struct calls *c)
{
    if (calls_chance(c, 6))
        return calls_place(c, CALLS_ADDRESSED, CALLS_ANYTHING);
    return calls_host_place(c, calls_chance(c, 80) ? CALLS_WINDOW
                                                   : (enum calls_area)CALLS_PICK(c, CALLS_CONSTANT, CALLS_CONSTANT, CALLS_HOLE));
}

void calls_mem_host_register(struct calls *c)
{
    const struct calls_place p = to_register(c);
    const size_t bytes = CALLS_PICK(c, 0, 1, 100, 4096, 4096, 4097, 8192, 65536, 65536, 100000);
    const unsigned flags =
        calls_chance(c, 70) ? (unsigned)CALLS_PICK(c, 0, 1, 2, 3) : (unsigned)CALLS_PICK(c, 4, 8, 9, 10, 11, 12, 15, 16, 0x20);

    calls_begin(c, "cuMemHostRegister(%s, %zu, %#x", p.text, bytes, flags);
    if (calls_end(c, cuMemHostRegister((void *)(uintptr_t)p.at, bytes, flags)))
        calls_add(c, CALLS_REGISTERED, p.at, bytes, 0)->plain = true;
}

void calls_mem_host_unregister(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_REGISTERED, CALLS_ANYTHING);

    calls_begin(c, "cuMemHostUnregister(%s", p.text);
    if (calls_end(c, cuMemHostUnregister((void *)(uintptr_t)p.at)))
        calls_mark_freed_at(c, CALLS_REGISTERED, p.at);
}

/* ---- contexts ---- */
static const char *const context_names[CALLS_CONTEXTS] = {"primary", "second", "third"};

static unsigned some_context(struct calls *c)
{
    return (unsigned)calls_number(c, c->contexts[2] ? 3 : 2);
}

void calls_ctx_push(struct calls *c)
{
    const unsigned i = some_context(c);

    calls_begin(c, "cuCtxPushCurrent(%s", context_names[i]);
    calls_end(c, cuCtxPushCurrent(c->contexts[i]));
}

void calls_ctx_pop(struct calls *c)
{
    CUcontext popped = NULL;

    calls_begin(c, "cuCtxPopCurrent(");
    if (calls_result(c, cuCtxPopCurrent(&popped)))
        calls_append_context(c, "popped", popped);
    calls_line(c);
}

void calls_ctx_set(struct calls *c)
{
    const unsigned i = some_context(c);
    const bool none = calls_chance(c, 35);

    calls_begin(c, "cuCtxSetCurrent(%s", none ? "null" : context_names[i]);
    calls_end(c, cuCtxSetCurrent(none ? NULL : c->contexts[i]));
}

void calls_ctx_recreate(struct calls *c)
{
    CUresult r;

    if (!c->contexts[2] && calls_chance(c, 60))
        return; /* creating a context takes long */
    if (!c->contexts[2]) {
        calls_begin(c, "cuCtxCreate(");
        calls_end(c, cuCtxCreate(&c->contexts[2], NULL, 0, 0));
        return;
    }
    calls_begin(c, "cuCtxDestroy(third");
    r = cuCtxDestroy(c->contexts[2]);
    for (unsigned i = 0; i < c->n_objects && r == CUDA_SUCCESS; i++)
        if (c->objects[i].live && c->objects[i].context == c->contexts[2] &&
            (c->objects[i].kind &
             (CALLS_DEVICE | CALLS_HOST | CALLS_REGISTERED | CALLS_MANAGED | CALLS_ARRAY | CALLS_MIPMAP | CALLS_OPENED)))
            calls_mark_freed(c, &c->objects[i]);
    c->contexts[2] = NULL;
    calls_end(c, r);
}

void calls_ctx_synchronize(struct calls *c)
{
    calls_begin(c, "cuCtxSynchronize(");
    calls_end(c, cuCtxSynchronize());
}

void calls_stream_synchronize(struct calls *c)
{
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuStreamSynchronize(%s", calls_stream_name(c, stream));
    calls_end(c, cuStreamSynchronize(stream));
}
