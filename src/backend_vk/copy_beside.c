/* SPDX-License-Identifier: Apache-2.0 */
/* What a copy runtime knows of memory, and the copies that it makes. Device memory is imported by its descriptor; host memory is pinned
 * once more (a buffer on its pages, which is never used for anything else), and copies name its bytes by their pointers.
 *
 * Both take time: on an H200 (580.159.04) 30 to 47 us a MiB of host memory, 4 to 10 us a MiB of device memory, where a copy by the runtime
 * saves 0.8 us a MiB back, 1.3 us to the device, 10 us both ways at once. So a runtime that was not named learns of memory that has been
 * copied as often as earns that back: what is used once never pays, and what is used for long pays at most twice what it had to. */
#include "copy_runtime.h"
#include "memory.h"

#include "core/exit_gate.h"
#include "core/host_mappings.h"

#include <unistd.h>

#define CT_CHANNEL "copy"
#define HOST_TIMES 32 /* that all of a memory has been copied */
#define DEVICE_TIMES 8

static CUresult check(cl_int status, const char *call)
{
    return status == CL_SUCCESS ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_UNKNOWN, "%s of the copy runtime: %d", call, (int)status);
}

/* ---- what it knows of memory ---- */

/* What was made, if it was. */
static cl_mem made(const struct ct_vk_copy_runtime *runtime, cl_mem object, cl_int status, const char *what)
{
    if (status == CL_SUCCESS)
        return object;
    ct_log(runtime->complaint, "the copy runtime refuses %s: %d", what, (int)status);
    return NULL;
}

/* Device memory of one piece, by its descriptor, which the runtime keeps if it takes it. */
static cl_mem import_piece(struct ct_backend_device *device, const struct ct_vk_piece *piece)
{
    const struct ct_vk_copy_runtime *runtime = device->copier.runtime;
    cl_int status = CL_SUCCESS;
    cl_mem object;
    int fd;

    if (ct_vk_get_fd(device, piece->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, &fd) != CUDA_SUCCESS)
        return NULL;
    object = runtime->cl->clCreateBufferWithProperties(
        runtime->context, (const cl_mem_properties[]){CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, (cl_mem_properties)fd, 0}, CL_MEM_READ_WRITE,
        piece->charged_bytes, NULL, &status);
    object = made(runtime, object, status, "device memory");
    if (!object)
        close(fd);
    return object;
}

/* Pages that cannot be locked the runtime would take, too, and copy by way of its own at a tenth of the speed. */
static cl_mem pin_host(struct ct_backend_device *device, const struct ct_vk_memory *memory)
{
    const struct ct_vk_copy_runtime *runtime = device->copier.runtime;
    const struct ct_memory *base = &memory->base;
    cl_int status = CL_SUCCESS;
    cl_mem object;

    if (!ct_pages_can_be_locked((uintptr_t)base->host, base->size_bytes))
        return NULL;
    object = runtime->cl->clCreateBuffer(runtime->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, base->size_bytes, base->host, &status);
    return made(runtime, object, status, "host memory");
}

/* Host memory that is pages of the process. What a GPU's driver made and mapped is not. */
static bool is_pages(const struct ct_vk_memory *memory)
{
    const struct ct_vk_piece *first = &memory->pieces[0];

    return memory->base.host && memory->n_pieces && !first->exportable &&
           (!first->charged_bytes || memory->base.device->info->kind == CT_DEVICE_CPU);
}

static bool is_importable(const struct ct_vk_memory *memory)
{
    return memory->n_pieces == 1 && memory->pieces[0].exportable;
}

static void link_in(struct ct_vk_memory **first, struct ct_vk_memory *memory)
{
    struct ct_vk_copy_part *part = &memory->copy_part;

    part->link = first;
    part->next = *first;
    if (part->next)
        part->next->copy_part.link = &part->next;
    *first = memory;
}

static bool knows_locked(struct ct_backend_device *device, struct ct_vk_memory *memory)
{
    struct ct_vk_copy_part *part = &memory->copy_part;

    if (!part->tried) {
        part->tried = true;
        part->object = is_pages(memory) ? pin_host(device, memory) : import_piece(device, &memory->pieces[0]);
        if (part->object)
            link_in(&device->copier.known, memory);
    }
    return part->object;
}

/* Whether the memory has been copied often enough, now that these bytes are to be. */
static bool pays_locked(const struct ct_vk_copier *copier, struct ct_vk_memory *memory, uint64_t bytes)
{
    const unsigned times = is_pages(memory) ? HOST_TIMES : DEVICE_TIMES;

    memory->copy_part.copied_bytes += bytes;
    return !copier->automatic || memory->copy_part.copied_bytes / times >= memory->base.size_bytes;
}

static bool takes_locked(struct ct_backend_device *device, struct ct_vk_memory *to, struct ct_vk_memory *from, uint64_t bytes)
{
    struct ct_vk_copier *copier = &device->copier;
    const bool to_pays = pays_locked(copier, to, bytes), from_pays = pays_locked(copier, from, bytes);

    if (!ct_vk_copier_is_ready_locked(device, bytes) || !to_pays || !from_pays || !ct_exit_gate_enter())
        return false;
    if (knows_locked(device, to) && knows_locked(device, from)) {
        copier->accepted++;
        return true;
    }
    ct_exit_gate_leave();
    return false;
}

bool ct_vk_copy_beside_takes(struct ct_memory *dst, struct ct_memory *src, uint64_t size_bytes)
{
    struct ct_vk_memory *to = (struct ct_vk_memory *)dst, *from = (struct ct_vk_memory *)src;
    struct ct_backend_device *device = dst->device;
    bool takes;

    if (!device->copier.library || !((is_pages(to) && is_importable(from)) || (is_pages(from) && is_importable(to))))
        return false;
    ct_mutex_lock(&device->copier.lock);
    takes = takes_locked(device, to, from, size_bytes);
    ct_mutex_unlock(&device->copier.lock);
    return takes;
}

void ct_vk_copy_beside_leave(struct ct_memory *dst)
{
    struct ct_vk_copier *copier = &dst->device->copier;

    ct_mutex_lock(&copier->lock);
    copier->accepted--;
    ct_mutex_unlock(&copier->lock);
    ct_exit_gate_leave();
}

/* ---- what it no longer knows ---- */

static void forget_locked(const struct ct_vk_copy_runtime *runtime, struct ct_vk_memory *memory)
{
    struct ct_vk_copy_part *part = &memory->copy_part;

    *part->link = part->next;
    if (part->next)
        part->next->copy_part.link = part->link;
    runtime->cl->clReleaseMemObject(part->object);
    part->object = NULL;
}

void ct_vk_copy_beside_forget(struct ct_vk_memory *memory)
{
    struct ct_vk_copier *copier = &memory->base.device->copier;

    if (!copier->library)
        return;
    ct_mutex_lock(&copier->lock);
    if (memory->copy_part.object && ct_exit_gate_enter()) {
        forget_locked(copier->runtime, memory);
        ct_exit_gate_leave();
    }
    ct_mutex_unlock(&copier->lock);
}

void ct_vk_copy_beside_forget_all_locked(struct ct_backend_device *device)
{
    while (device->copier.known)
        forget_locked(device->copier.runtime, device->copier.known);
}

/* ---- copying ---- */

/* Bytes of device memory that the runtime knows, and where the host has theirs. */
struct transfer {
    enum ct_vk_copy_way way;
    cl_mem part;
    uint64_t offset, size_bytes;
    char *host;
};

static struct transfer transfer_of(struct ct_memory *dst, uint64_t dst_offset, struct ct_memory *src, uint64_t src_offset, uint64_t bytes)
{
    const bool up = is_pages((struct ct_vk_memory *)src);
    const struct ct_vk_memory *there = (const struct ct_vk_memory *)(up ? dst : src);

    return (struct transfer){
        .way = up ? CT_VK_COPY_UP : CT_VK_COPY_DOWN,
        .part = there->copy_part.object,
        .offset = there->pieces[0].buffer_offset + (up ? dst_offset : src_offset),
        .size_bytes = bytes,
        .host = up ? (char *)src->host + src_offset : (char *)dst->host + dst_offset,
    };
}

static cl_int enqueue(const struct ct_vk_copy_runtime *runtime, const struct transfer *t)
{
    const cl_command_queue queue = runtime->queues[t->way];

    if (t->way == CT_VK_COPY_UP)
        return runtime->cl->clEnqueueWriteBuffer(queue, t->part, CL_FALSE, t->offset, t->size_bytes, t->host, 0, NULL, NULL);
    return runtime->cl->clEnqueueReadBuffer(queue, t->part, CL_FALSE, t->offset, t->size_bytes, t->host, 0, NULL, NULL);
}

/* The memory is the runtime's for the copy alone; nobody else's hand-over comes between, since the lock is held. */
static CUresult start_locked(const struct ct_vk_copy_runtime *runtime, const struct transfer *t, cl_event *out)
{
    const cl_command_queue queue = runtime->queues[t->way];
    CUresult copied, released, r = check(runtime->acquire(queue, 1, &t->part, 0, NULL, NULL), "taking memory over");

    if (r != CUDA_SUCCESS)
        return r;
    copied = check(enqueue(runtime, t), "a copy");
    released = check(runtime->release(queue, 1, &t->part, 0, NULL, out), "handing memory back");
    if (released == CUDA_SUCCESS && copied != CUDA_SUCCESS)
        runtime->cl->clReleaseEvent(*out);
    return copied != CUDA_SUCCESS ? copied : released;
}

CUresult ct_vk_copy_beside_start(struct ct_memory *dst, uint64_t dst_offset, struct ct_memory *src, uint64_t src_offset,
                                 uint64_t size_bytes, struct ct_started_copy **out)
{
    const struct transfer t = transfer_of(dst, dst_offset, src, src_offset, size_bytes);
    struct ct_vk_copier *copier = &dst->device->copier;
    cl_event done;
    CUresult r;

    ct_mutex_lock(&copier->lock);
    r = start_locked(copier->runtime, &t, &done);
    ct_mutex_unlock(&copier->lock);
    if (r == CUDA_SUCCESS)
        *out = (struct ct_started_copy *)done;
    return r;
}

CUresult ct_vk_copy_beside_finish(struct ct_memory *dst, struct ct_started_copy *started)
{
    const struct _cl_icd_dispatch *cl = dst->device->copier.runtime->cl; /* there as long as a copy is accepted */
    cl_event done = (cl_event)started;
    CUresult r = check(cl->clWaitForEvents(1, &done), "waiting for a copy");

    cl->clReleaseEvent(done);
    ct_vk_copy_beside_leave(dst);
    return r;
}
