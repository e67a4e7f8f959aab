/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that host and device share at one address: pages of the process if the device accepts any host pointer (fine-grained system
 * SVM), else memory from clSVMAlloc. All kinds of memory are the same here. */
#include "cl.h"

#include "core/base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

static bool uses_pages(const struct ct_backend_device *device)
{
    return device->physical->memory_form == CT_CL_SYSTEM;
}

/* NULL: out of memory. */
static void *map_anonymous(uint64_t size_bytes)
{
    void *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

static void *map_file(int fd, uint64_t offset, uint64_t size_bytes)
{
    void *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

    return pages == MAP_FAILED ? NULL : pages;
}

/* Pages that can be shared with other processes; private pages when the file is full. */
static void *map_shareable(struct ct_cl_memory *memory)
{
    struct ct_memory_file *file = &memory->base.device->file;
    void *pages;

    if (ct_memory_file_claim(file, memory->allocation_bytes, &memory->file_offset) != CUDA_SUCCESS)
        return map_anonymous(memory->allocation_bytes);
    if ((pages = map_file(file->fd, memory->file_offset, memory->allocation_bytes)))
        memory->file_bytes = memory->allocation_bytes;
    return pages;
}

static CUresult allocate(struct ct_cl_memory *memory, enum ct_memory_kind kind)
{
    struct ct_backend_device *device = memory->base.device;
    const struct ct_cl_physical *physical = device->physical;

    if (uses_pages(device))
        memory->allocation = kind == CT_MEMORY_DEVICE ? map_shareable(memory) : map_anonymous(memory->allocation_bytes);
    else
        memory->allocation = device->api->clSVMAlloc(device->context, physical->svm_flags, memory->allocation_bytes, 0);
    if (!memory->allocation)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes", (unsigned long long)memory->allocation_bytes);
    atomic_fetch_add_explicit(&device->used_bytes, memory->allocation_bytes, memory_order_relaxed);
    return CUDA_SUCCESS;
}

static void link_memory(struct ct_cl_memory *memory)
{
    struct ct_backend_device *device = memory->base.device;

    if (uses_pages(device))
        return;
    ct_mutex_lock(&device->lock);
    memory->next = device->allocations;
    memory->link = &device->allocations;
    if (memory->next)
        memory->next->link = &memory->next;
    device->allocations = memory;
    device->n_allocations++;
    atomic_fetch_add_explicit(&device->generation, 1, memory_order_relaxed);
    ct_mutex_unlock(&device->lock);
}

static void unlink_memory(struct ct_cl_memory *memory)
{
    struct ct_backend_device *device = memory->base.device;

    if (!memory->link)
        return;
    ct_mutex_lock(&device->lock);
    *memory->link = memory->next;
    if (memory->next)
        memory->next->link = memory->link;
    device->n_allocations--;
    atomic_fetch_add_explicit(&device->generation, 1, memory_order_relaxed);
    ct_mutex_unlock(&device->lock);
}

CUresult ct_cl_memory_list(struct ct_backend_device *device, void ***out, size_t *out_count, uint64_t *out_generation)
{
    void **list;
    size_t count = 0;

    ct_mutex_lock(&device->lock);
    if ((list = malloc((device->n_allocations + 1) * sizeof *list))) {
        for (const struct ct_cl_memory *memory = device->allocations; memory; memory = memory->next)
            list[count++] = memory->allocation;
        *out = list;
        *out_count = count;
        *out_generation = atomic_load_explicit(&device->generation, memory_order_relaxed);
    }
    ct_mutex_unlock(&device->lock);
    return list ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of allocations");
}

/* Adds space for the alignment: mappings are aligned to pages, SVM to OpenCL's largest type. */
static CUresult choose_size(const struct ct_backend_device *device, const struct ct_memory_request *request, uint64_t align, uint64_t *out)
{
    uint64_t size = (request->size_bytes + 3) & ~UINT64_C(3); /* fills operate on whole words */
    uint64_t given = uses_pages(device) ? (uint64_t)sysconf(_SC_PAGESIZE) : 1;
    uint64_t alignment_bytes = align > given ? align - given : 0;

    if (uses_pages(device))
        size = (size + given - 1) & ~(given - 1);
    if (size < request->size_bytes || __builtin_add_overflow(size, alignment_bytes, &size) ||
        request->size_bytes > device->info->max_allocation_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes in one allocation", (unsigned long long)request->size_bytes);
    *out = size;
    return CUDA_SUCCESS;
}

CUresult ct_cl_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out)
{
    uint64_t align = request->align ? request->align : 1, bytes, address;
    struct ct_cl_memory *memory;
    CUresult r;

    if (!request->size_bytes || (align & (align - 1)) || (request->want_address & (align - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory of %llu bytes, aligned to %llu, at %#llx", (unsigned long long)request->size_bytes,
                       (unsigned long long)align, (unsigned long long)request->want_address);
    if (request->want_address)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support chosen addresses", device->info->name);
    if ((r = choose_size(device, request, align, &bytes)) != CUDA_SUCCESS)
        return r;
    if (!(memory = calloc(1, sizeof *memory)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory object");
    memory->base.device = device;
    memory->base.size_bytes = request->size_bytes;
    memory->allocation_bytes = bytes;
    if ((r = allocate(memory, request->kind)) != CUDA_SUCCESS) {
        free(memory);
        return r;
    }
    address = ((uintptr_t)memory->allocation + align - 1) & ~(align - 1);
    memory->base.host = (char *)memory->allocation + (address - (uintptr_t)memory->allocation);
    memory->base.address.v = address;
    link_memory(memory);
    *out = &memory->base;
    return CUDA_SUCCESS;
}

CUresult ct_cl_memory_import_host(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out)
{
    void *const pointer = import->pages;
    const uint64_t size_bytes = import->size_bytes, want_address = import->want_address;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct ct_cl_memory *memory;

    if (!device->info->can_import_host)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import host memory", device->info->name);
    if (!pointer || !size_bytes || (((uintptr_t)pointer | size_bytes) & (page - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "import of %llu bytes at %p: not multiples of a page", (unsigned long long)size_bytes,
                       pointer);
    if (want_address && want_address != (uintptr_t)pointer)
        return ct_fail(CUDA_ERROR_MAP_FAILED, "host memory at %p cannot have device address %#llx", pointer,
                       (unsigned long long)want_address);
    if (!(memory = calloc(1, sizeof *memory)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory object");
    memory->base = (struct ct_memory){.device = device, .size_bytes = size_bytes, .address = {(uintptr_t)pointer}, .host = pointer};
    *out = &memory->base;
    return CUDA_SUCCESS;
}

void ct_cl_memory_destroy(struct ct_memory *base)
{
    struct ct_cl_memory *memory = (struct ct_cl_memory *)base;
    struct ct_backend_device *device;

    if (!memory || ct_cl_device_is_given_up(base->device))
        return;
    device = base->device;
    unlink_memory(memory);
    if (memory->allocation && uses_pages(device))
        munmap(memory->allocation, memory->allocation_bytes);
    else if (memory->allocation)
        device->api->clSVMFree(device->context, memory->allocation);
    ct_memory_file_drop(&device->file, memory->file_offset, memory->file_bytes);
    atomic_fetch_sub_explicit(&device->used_bytes, memory->allocation_bytes, memory_order_relaxed);
    free(memory);
}

/* Pages of another process's file. */
CUresult ct_cl_memory_import_fd(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out)
{
    struct ct_cl_memory *memory;

    if (!import->pages || import->next || !uses_pages(device) || import->want_address)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s can import only pages of files", device->info->name);
    if (!(memory = calloc(1, sizeof *memory)) || !(memory->allocation = map_file(import->fd, import->pages_offset, import->size_bytes))) {
        free(memory);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes of a file", (unsigned long long)import->size_bytes);
    }
    memory->base = (struct ct_memory){
        .device = device, .size_bytes = import->size_bytes, .address = {(uintptr_t)memory->allocation}, .host = memory->allocation};
    memory->allocation_bytes = import->size_bytes;
    atomic_fetch_add_explicit(&device->used_bytes, memory->allocation_bytes, memory_order_relaxed);
    *out = &memory->base;
    return CUDA_SUCCESS;
}

CUresult ct_cl_memory_export(struct ct_memory *base, unsigned part, struct ct_memory_share *out)
{
    const struct ct_cl_memory *memory = (const struct ct_cl_memory *)base;
    int fd;

    if (!memory->file_bytes || part)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s cannot share this memory", base->device->info->name);
    if ((fd = fcntl(base->device->file.fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no more file descriptors");
    *out = (struct ct_memory_share){
        .fd = fd,
        .pages = true,
        .offset = memory->file_offset + (uint64_t)((char *)base->host - (char *)memory->allocation),
        .size_bytes = base->size_bytes,
        .n_parts = 1,
    };
    return CUDA_SUCCESS;
}

CUresult ct_cl_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total)
{
    uint64_t total = device->info->memory_bytes, used = atomic_load_explicit(&device->used_bytes, memory_order_relaxed);

    *out_free = used < total ? total - used : 0;
    *out_total = total;
    return CUDA_SUCCESS;
}
