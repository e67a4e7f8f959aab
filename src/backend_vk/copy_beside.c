/* SPDX-License-Identifier: Apache-2.0 */
/* What a copy runtime knows of memory, and the copies that it makes. Device memory is imported by its descriptor; host memory is pinned
 * once more (a buffer on its pages, which is never used for anything else), and copies name its bytes by their pointers. It knows pieces of
 * memory, and copies are cut where these meet.
 *
 * Both take time: on an H200 (580.159.04) 30 to 49 us a MiB of host memory, 4 to 11 us a MiB of device memory, where a copy by the runtime
 * saves 0.8 us a MiB back, 1.3 us to the device, 10 us both ways at once. So a runtime that was not named learns of memory that has been
 * copied as often as earns that back: what is used once never pays, and what is used for long pays at most twice what it had to. */
#include "copy_runtime.h"
#include "memory.h"

#include "core/exit_gate.h"
#include "core/host_mappings.h"

#include <unistd.h>

#define CT_CHANNEL "copy"
#define HOST_TIMES 32 /* that all of a piece has been copied */
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

/* Device memory by its descriptor, which the runtime keeps if it takes it. */
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
static cl_mem pin_piece(const struct ct_vk_memory *memory, const struct ct_vk_piece *piece)
{
    const struct ct_vk_copy_runtime *runtime = memory->base.device->copier.runtime;
    const uint64_t bytes = ct_vk_piece_bytes(memory, piece);
    char *host = (char *)memory->base.host + piece->offset;
    cl_int status = CL_SUCCESS;
    cl_mem object;

    if (!ct_pages_can_be_locked((uintptr_t)host, bytes))
        return NULL;
    object = runtime->cl->clCreateBuffer(runtime->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, host, &status);
    return made(runtime, object, status, "host memory");
}

/* Host memory that is pages of the process. What a GPU's driver made and mapped is not. */
static bool is_pages(const struct ct_memory *base)
{
    const struct ct_vk_memory *memory = (const struct ct_vk_memory *)base;
    const struct ct_vk_piece *first = &memory->pieces[0];

    return base->host && memory->n_pieces && !first->exportable && (!first->charged_bytes || base->device->info->kind == CT_DEVICE_CPU);
}

static bool is_importable(const struct ct_memory *base)
{
    const struct ct_vk_memory *memory = (const struct ct_vk_memory *)base;

    return memory->n_pieces && memory->pieces[0].exportable;
}

static void link_in(struct ct_vk_copy_part **first, struct ct_vk_copy_part *part)
{
    part->link = first;
    part->next = *first;
    if (part->next)
        part->next->link = &part->next;
    *first = part;
}

static bool knows_locked(struct ct_vk_memory *memory, struct ct_vk_piece *piece)
{
    struct ct_backend_device *device = memory->base.device;
    struct ct_vk_copy_part *part = &piece->copy_part;

    if (!part->tried) {
        part->tried = true;
        part->object = is_pages(&memory->base) ? pin_piece(memory, piece) : import_piece(device, piece);
        if (part->object)
            link_in(&device->copier.known, part);
    }
    return part->object;
}

/* ---- the parts of a copy: each lies in one piece of either memory ---- */

struct part {
    struct ct_vk_piece *here, *there; /* of the host, of the device */
    uint64_t offset, size_bytes;      /* in the piece there, with its buffer */
    char *host;
};

static bool goes_up(const struct ct_copy_beside *copy)
{
    return is_pages(copy->src);
}

static struct ct_vk_memory *memory_here(const struct ct_copy_beside *copy)
{
    return (struct ct_vk_memory *)(goes_up(copy) ? copy->src : copy->dst);
}

static struct ct_vk_memory *memory_there(const struct ct_copy_beside *copy)
{
    return (struct ct_vk_memory *)(goes_up(copy) ? copy->dst : copy->src);
}

static struct ct_vk_piece *piece_at(struct ct_vk_memory *memory, uint64_t offset)
{
    return &memory->pieces[ct_vk_memory_piece(memory, offset) - memory->pieces];
}

/* What comes next when so many bytes of a copy are dealt with. */
static struct part part_at(const struct ct_copy_beside *copy, uint64_t done)
{
    const uint64_t here = (goes_up(copy) ? copy->src_offset : copy->dst_offset) + done;
    const uint64_t there = (goes_up(copy) ? copy->dst_offset : copy->src_offset) + done;
    struct ct_vk_memory *const host = memory_here(copy);
    struct part part = {.here = piece_at(host, here), .there = piece_at(memory_there(copy), there), .host = (char *)host->base.host + here};
    const uint64_t here_left = part.here->offset + part.here->size_bytes - here;
    const uint64_t there_left = part.there->offset + part.there->size_bytes - there;

    part.size_bytes = here_left < there_left ? here_left : there_left;
    if (part.size_bytes > copy->size_bytes - done)
        part.size_bytes = copy->size_bytes - done;
    part.offset = part.there->buffer_offset + there - part.there->offset;
    return part;
}

/* ---- which copies ---- */

/* Whether the piece has been copied often enough, now that these bytes are to be. */
static bool piece_pays_locked(struct ct_vk_piece *piece, unsigned times, uint64_t bytes)
{
    piece->copy_part.copied_bytes += bytes;
    return piece->copy_part.copied_bytes / times >= piece->size_bytes;
}

static bool pays_locked(const struct ct_vk_copier *copier, const struct ct_copy_beside *copy)
{
    bool pays = true;
    struct part part;

    for (uint64_t done = 0; done < copy->size_bytes; done += part.size_bytes) {
        part = part_at(copy, done);
        pays &= piece_pays_locked(part.here, HOST_TIMES, part.size_bytes);
        pays &= piece_pays_locked(part.there, DEVICE_TIMES, part.size_bytes);
    }
    return pays || !copier->automatic;
}

static bool knows_all_locked(const struct ct_copy_beside *copy)
{
    struct part part;

    for (uint64_t done = 0; done < copy->size_bytes; done += part.size_bytes) {
        part = part_at(copy, done);
        if (!knows_locked(memory_there(copy), part.there) || !knows_locked(memory_here(copy), part.here))
            return false;
    }
    return true;
}

static bool takes_locked(struct ct_backend_device *device, const struct ct_copy_beside *copy)
{
    struct ct_vk_copier *copier = &device->copier;
    const bool pays = pays_locked(copier, copy);

    if (!ct_vk_copier_is_ready_locked(device, copy->size_bytes) || !pays || !ct_exit_gate_enter())
        return false;
    if (knows_all_locked(copy)) {
        copier->accepted++;
        return true;
    }
    ct_exit_gate_leave();
    return false;
}

bool ct_vk_copy_beside_takes(const struct ct_copy_beside *copy)
{
    struct ct_backend_device *device = copy->dst->device;
    bool takes;

    if (!device->copier.library ||
        !((is_pages(copy->src) && is_importable(copy->dst)) || (is_pages(copy->dst) && is_importable(copy->src))))
        return false;
    ct_mutex_lock(&device->copier.lock);
    takes = takes_locked(device, copy);
    ct_mutex_unlock(&device->copier.lock);
    return takes;
}

void ct_vk_copy_beside_leave(const struct ct_copy_beside *copy)
{
    struct ct_vk_copier *copier = &copy->dst->device->copier;

    ct_mutex_lock(&copier->lock);
    copier->accepted--;
    ct_mutex_unlock(&copier->lock);
    ct_exit_gate_leave();
}

/* ---- what it no longer knows ---- */

static void forget_locked(const struct ct_vk_copy_runtime *runtime, struct ct_vk_copy_part *part)
{
    *part->link = part->next;
    if (part->next)
        part->next->link = part->link;
    runtime->cl->clReleaseMemObject(part->object);
    part->object = NULL;
}

void ct_vk_copy_beside_forget(struct ct_vk_memory *memory)
{
    struct ct_vk_copier *copier = &memory->base.device->copier;

    if (!copier->library)
        return;
    ct_mutex_lock(&copier->lock);
    for (unsigned i = 0; i < memory->n_made; i++) {
        if (memory->pieces[i].copy_part.object && ct_exit_gate_enter()) {
            forget_locked(copier->runtime, &memory->pieces[i].copy_part);
            ct_exit_gate_leave();
        }
    }
    ct_mutex_unlock(&copier->lock);
}

void ct_vk_copy_beside_forget_all_locked(struct ct_backend_device *device)
{
    while (device->copier.known)
        forget_locked(device->copier.runtime, device->copier.known);
}

/* ---- copying ---- */

static cl_int enqueue(const struct ct_vk_copy_runtime *runtime, enum ct_vk_copy_way way, const struct part *part)
{
    const cl_command_queue queue = runtime->queues[way];
    const cl_mem there = part->there->copy_part.object;

    if (way == CT_VK_COPY_UP)
        return runtime->cl->clEnqueueWriteBuffer(queue, there, CL_FALSE, part->offset, part->size_bytes, part->host, 0, NULL, NULL);
    return runtime->cl->clEnqueueReadBuffer(queue, there, CL_FALSE, part->offset, part->size_bytes, part->host, 0, NULL, NULL);
}

/* The memory is the runtime's for the copy alone; nobody else's hand-over comes between, since the lock is held. */
static CUresult start_part_locked(const struct ct_vk_copy_runtime *runtime, enum ct_vk_copy_way way, const struct part *part, cl_event *out)
{
    const cl_mem there = part->there->copy_part.object;
    const cl_command_queue queue = runtime->queues[way];
    CUresult copied, released, r = check(runtime->acquire(queue, 1, &there, 0, NULL, NULL), "taking memory over");

    if (r != CUDA_SUCCESS)
        return r;
    copied = check(enqueue(runtime, way, part), "a copy");
    released = check(runtime->release(queue, 1, &there, 0, NULL, out), "handing memory back");
    if (out && released == CUDA_SUCCESS && copied != CUDA_SUCCESS)
        runtime->cl->clReleaseEvent(*out);
    return copied != CUDA_SUCCESS ? copied : released;
}

/* The queue keeps the order, so the last part's event tells of all. */
static CUresult start_locked(const struct ct_vk_copy_runtime *runtime, const struct ct_copy_beside *copy, cl_event *out)
{
    const enum ct_vk_copy_way way = goes_up(copy) ? CT_VK_COPY_UP : CT_VK_COPY_DOWN;
    CUresult r = CUDA_SUCCESS;
    struct part part;

    for (uint64_t done = 0; done < copy->size_bytes && r == CUDA_SUCCESS; done += part.size_bytes) {
        part = part_at(copy, done);
        r = start_part_locked(runtime, way, &part, done + part.size_bytes == copy->size_bytes ? out : NULL);
    }
    if (r != CUDA_SUCCESS)
        runtime->cl->clFinish(runtime->queues[way]); /* the parts before */
    return r;
}

CUresult ct_vk_copy_beside_start(const struct ct_copy_beside *copy, struct ct_started_copy **out)
{
    struct ct_vk_copier *copier = &copy->dst->device->copier;
    cl_event done;
    CUresult r;

    ct_mutex_lock(&copier->lock);
    r = start_locked(copier->runtime, copy, &done);
    ct_mutex_unlock(&copier->lock);
    if (r == CUDA_SUCCESS)
        *out = (struct ct_started_copy *)done;
    return r;
}

CUresult ct_vk_copy_beside_finish(const struct ct_copy_beside *copy, struct ct_started_copy *started)
{
    const struct _cl_icd_dispatch *cl = copy->dst->device->copier.runtime->cl; /* there as long as a copy is accepted */
    cl_event done = (cl_event)started;
    CUresult r = check(cl->clWaitForEvents(1, &done), "waiting for a copy");

    cl->clReleaseEvent(done);
    ct_vk_copy_beside_leave(copy);
    return r;
}
