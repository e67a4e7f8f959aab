/* SPDX-License-Identifier: Apache-2.0 */
/* Host pages of the library that become device memory by import.
 *
 * On a CPU device the address of imported memory is that of the imported mapping. A file in memory (memfd) that is mapped twice therefore
 * gives the host and the device different addresses for the same pages: so the pointer rules of GPUs are tested without a GPU. */
#include "memory.h"

#include "core/base/log.h"

#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static uint64_t whole_pages(uint64_t size_bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return size_bytes > UINT64_MAX - page ? 0 : (size_bytes + page - 1) & ~(page - 1);
}

/* Reserves addresses without memory: exactly at `at`, which must be unmapped, or at a multiple of `align`. MAP_FAILED. */
static void *reserve(uint64_t at, uint64_t size_bytes, uint64_t align)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t room = at || align <= (uint64_t)sysconf(_SC_PAGESIZE) ? 0 : align;
    char *start, *aligned;

    if (size_bytes > UINT64_MAX - room)
        return MAP_FAILED;
    start = mmap((void *)(uintptr_t)at, size_bytes + room, PROT_NONE, flags | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (start == MAP_FAILED)
        return MAP_FAILED;
    if (at && (uintptr_t)start != at) { /* Linux before 4.17 ignores NOREPLACE, so that the address is a hint */
        munmap(start, size_bytes);
        return MAP_FAILED;
    }
    aligned = start + (room ? -(uintptr_t)start & (align - 1) : 0);
    if (aligned > start)
        munmap(start, (size_t)(aligned - start));
    if (aligned < start + room)
        munmap(aligned + size_bytes, (size_t)(start + room - aligned));
    return aligned;
}

/* Maps pages over a reservation. */
static bool fill(void *reserved, const struct ct_vk_pages_plan *plan)
{
    const uint64_t bytes = whole_pages(plan->size_bytes);
    int kind = plan->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

    if (mmap(reserved, bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED, plan->fd, (off_t)plan->file_offset) == MAP_FAILED)
        return false;
    if (plan->huge)
        (void)madvise(reserved, bytes, MADV_HUGEPAGE); /* optional: small pages work as well */
    return true;
}

static CUresult no_memory(uint64_t size_bytes)
{
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes of host memory", (unsigned long long)size_bytes);
}

/* Creates the host's mapping, in the caller's reservation or in a new one. NULL: no memory. */
static void *map_host(const struct ct_vk_pages_plan *plan)
{
    uint64_t bytes = whole_pages(plan->size_bytes);
    uint64_t align = plan->huge && plan->align < CT_VK_HUGE_PAGE_BYTES ? CT_VK_HUGE_PAGE_BYTES : plan->align;
    void *host = plan->host_at ? (void *)(uintptr_t)plan->host_at : reserve(0, bytes, align);

    if (host == MAP_FAILED)
        return NULL;
    if (fill(host, plan))
        return host;
    if (!plan->host_at)
        munmap(host, bytes);
    return NULL;
}

CUresult ct_vk_pages_map(const struct ct_vk_pages_plan *plan, struct ct_vk_pages *out)
{
    uint64_t bytes = whole_pages(plan->size_bytes);
    void *host = bytes ? map_host(plan) : NULL;

    if (!host)
        return no_memory(plan->size_bytes);
    *out = (struct ct_vk_pages){.host = host, .device = host, .size_bytes = bytes, .reserved = plan->host_at != 0};
    return CUDA_SUCCESS;
}

CUresult ct_vk_pages_map_twice(const struct ct_vk_pages_plan *plan, uint64_t device_at, struct ct_vk_pages *out)
{
    uint64_t bytes = whole_pages(plan->size_bytes);
    void *device = bytes ? reserve(device_at, bytes, plan->align) : MAP_FAILED, *host;

    if (device == MAP_FAILED)
        return no_memory(plan->size_bytes);
    if (!fill(device, plan) || !(host = map_host(plan))) {
        munmap(device, bytes);
        return no_memory(plan->size_bytes);
    }
    *out = (struct ct_vk_pages){.host = host, .device = device, .size_bytes = bytes, .reserved = plan->host_at != 0};
    return CUDA_SUCCESS;
}

CUresult ct_vk_pages_map_again(void *from, uint64_t size_bytes, uint64_t at, bool reserved, struct ct_vk_pages *out)
{
    uint64_t bytes = whole_pages(size_bytes);
    void *to = reserved ? (void *)(uintptr_t)at : reserve(at, bytes, 0);

    if (to == MAP_FAILED)
        return no_memory(bytes);
    if (mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) { /* with an old size of 0 the old mapping stays */
        if (!reserved)
            munmap(to, bytes);
        return no_memory(bytes);
    }
    *out = (struct ct_vk_pages){.host = to, .device = to, .size_bytes = bytes, .reserved = reserved};
    return CUDA_SUCCESS;
}

void ct_vk_pages_unmap(struct ct_vk_pages *pages)
{
    if (pages->device && pages->device != pages->host)
        munmap(pages->device, pages->size_bytes);
    if (pages->host && pages->reserved)
        mmap(pages->host, pages->size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    else if (pages->host)
        munmap(pages->host, pages->size_bytes);
    *pages = (struct ct_vk_pages){0};
}
