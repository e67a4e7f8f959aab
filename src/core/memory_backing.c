/* SPDX-License-Identifier: Apache-2.0 */
/* Backend memory at a CUDA address, by the device's address rule:
 *
 *   CHOSEN, CHOSEN_MASK  host address space is reserved, then the memory is made at that address. NVIDIA's driver 580 spoils later
 *                        allocations when it is asked for an address in use, so an address that failed stays reserved for good:
 *                        it is never asked for again.
 *   SHARED               the mapping's host pointer is the address
 *   OWN                  the driver's address is the CUDA address; host memory has two
 *   WINDOWS              refused: NOT_SUPPORTED
 */
#include "memory_backing.h"

#include "log.h"
#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

/* Free in PIE and non-PIE processes, and within what every driver with chosen addresses grants (the design, "Address space"). */
#define ARENA_FIRST 0x100000000000u
#define ARENA_END 0x3fff00000000u
#define ARENA_ALIGN ((uint64_t)2 << 20) /* as CUDA aligns large allocations */
#define RESERVE_TRIES 4096
#define MAX_STEP ((uint64_t)64 << 30)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static atomic_ullong next_address = ARENA_FIRST; /* grows, and starts again at the end; process-wide as addresses are */

static bool round_up(uint64_t value, uint64_t align, uint64_t *out)
{
    if (__builtin_add_overflow(value, align - 1, out))
        return false;
    *out &= ~(align - 1);
    return true;
}

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- host address space for the CHOSEN rules ---- */

static uint64_t take_address(uint64_t size_bytes)
{
    unsigned long long address = atomic_load_explicit(&next_address, memory_order_relaxed), next;

    do { /* relaxed: only uniqueness matters */
        if (address > ARENA_END - size_bytes)
            address = ARENA_FIRST;
        next = address + size_bytes;
    } while (!atomic_compare_exchange_weak_explicit(&next_address, &address, next, memory_order_relaxed, memory_order_relaxed));
    return next - size_bytes;
}

/* `size_bytes` (a multiple of ARENA_ALIGN) of host address space without access, held until munmap. */
static CUresult reserve(uint64_t size_bytes, void **out)
{
    uint64_t step = ARENA_ALIGN;

    if (size_bytes > ARENA_END - ARENA_FIRST)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no address space for %llu bytes", (unsigned long long)size_bytes);
    for (int i = 0; i < RESERVE_TRIES; i++) {
        void *want = (void *)(uintptr_t)take_address(size_bytes);
        void *got = mmap(want, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

        if (got == want) {
            *out = got;
            return CUDA_SUCCESS;
        }
        if (got != MAP_FAILED) /* Linux before 4.17 takes NOREPLACE for a hint */
            munmap(got, size_bytes);
        take_address(step); /* something else lies there: skip ahead in growing steps */
        step = step < MAX_STEP ? step * 2 : step;
    }
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no free address space for %llu bytes", (unsigned long long)size_bytes);
}

static bool is_chosen(const struct ct_context *context)
{
    enum ct_address_rule rule = context->device->info.address_rule;

    return rule == CT_ADDRESS_CHOSEN || rule == CT_ADDRESS_CHOSEN_MASK;
}

/* After a backend gave memory for a chosen address: is it there? If it failed or is elsewhere the address stays reserved. */
static CUresult check_chosen(struct ct_context *context, CUresult r, struct ct_backing *backing)
{
    uint64_t want;

    if (r != CUDA_SUCCESS)
        return r;
    want = ct_devaddr_of(context, backing->address).v;
    if (backing->memory->address.v == want)
        return CUDA_SUCCESS;
    ct_log(CT_LOG_WARN, "memory wanted at 0x%llx came at 0x%llx", (unsigned long long)want, (unsigned long long)backing->memory->address.v);
    context->backend->memory_destroy(backing->memory);
    backing->memory = NULL;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- device memory ---- */

/* Asking a driver for more than there is may leave an address spoiled, and on CPU devices would end the process much later. */
static CUresult check_free(struct ct_context *context, uint64_t size_bytes)
{
    uint64_t free_bytes, total_bytes;
    CUresult r = context->backend->memory_info(context->backend_device, &free_bytes, &total_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    if (size_bytes > free_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes wanted, %llu of %llu free", (unsigned long long)size_bytes,
                       (unsigned long long)free_bytes, (unsigned long long)total_bytes);
    return CUDA_SUCCESS;
}

static CUresult create_chosen(struct ct_context *context, struct ct_memory_request *request, struct ct_backing *backing)
{
    CUresult r;

    if (!round_up(request->size_bytes, ARENA_ALIGN, &backing->reserved_bytes))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes", (unsigned long long)request->size_bytes);
    r = reserve(backing->reserved_bytes, &backing->reserved);
    if (r != CUDA_SUCCESS)
        return r;
    backing->address = request->want_address = (uint64_t)(uintptr_t)backing->reserved;
    r = context->backend->memory_create(context->backend_device, request, &backing->memory);
    return check_chosen(context, r, backing);
}

static CUresult create_placed_by_driver(struct ct_context *context, const struct ct_memory_request *request, struct ct_backing *backing)
{
    CUresult r = context->backend->memory_create(context->backend_device, request, &backing->memory);

    if (r != CUDA_SUCCESS)
        return r;
    backing->address = ct_address_of(context, backing->memory->address);
    if ((backing->address & (request->align - 1)) == 0)
        return CUDA_SUCCESS;
    context->backend->memory_destroy(backing->memory);
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory came at 0x%llx, which is not aligned to %llu", (unsigned long long)backing->address,
                   (unsigned long long)request->align);
}

CUresult ct_backing_create_device(struct ct_context *context, uint64_t size_bytes, uint64_t align, struct ct_backing *out)
{
    const struct ct_device_info *info = &context->device->info;
    struct ct_memory_request request = {.size_bytes = size_bytes, .align = align, .kind = CT_MEMORY_DEVICE};
    struct ct_backing backing = {0};
    CUresult r;

    if (info->address_rule == CT_ADDRESS_WINDOWS)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "device memory by the address rule \"windows\"");
    if (size_bytes > info->max_allocation_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes wanted, the device gives at most %llu at once", (unsigned long long)size_bytes,
                       (unsigned long long)info->max_allocation_bytes);
    r = check_free(context, size_bytes);
    if (r == CUDA_SUCCESS)
        r = is_chosen(context) ? create_chosen(context, &request, &backing) : create_placed_by_driver(context, &request, &backing);
    if (r != CUDA_SUCCESS)
        return r;
    backing.host = backing.memory->host;
    *out = backing;
    return CUDA_SUCCESS;
}

/* ---- host memory ---- */

/* Anonymous pages in the arena, which the device takes at their own address. */
static CUresult create_host_chosen(struct ct_context *context, uint64_t size_bytes, struct ct_backing *backing)
{
    const struct ct_backend *backend = context->backend;
    CUresult r;

    if (!round_up(size_bytes, page_bytes(), &backing->pages_bytes) || !round_up(size_bytes, ARENA_ALIGN, &backing->reserved_bytes))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes", (unsigned long long)size_bytes);
    r = reserve(backing->reserved_bytes, &backing->reserved);
    if (r != CUDA_SUCCESS)
        return r;
    backing->pages = mmap(backing->reserved, backing->pages_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (backing->pages == MAP_FAILED) {
        munmap(backing->reserved, backing->reserved_bytes);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes of host memory", (unsigned long long)size_bytes);
    }
    backing->host = backing->pages;
    backing->address = (uint64_t)(uintptr_t)backing->pages;
    r = backend->memory_import_host(context->backend_device, backing->pages, backing->pages_bytes, backing->address, &backing->memory);
    r = check_chosen(context, r, backing);
    if (r != CUDA_SUCCESS) /* gives the pages back, keeps the addresses */
        mmap(backing->pages, backing->pages_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return r;
}

CUresult ct_backing_create_host(struct ct_context *context, uint64_t size_bytes, enum ct_memory_kind kind, struct ct_backing *out)
{
    const struct ct_device_info *info = &context->device->info;
    struct ct_memory_request request = {.size_bytes = size_bytes, .align = page_bytes(), .kind = kind};
    struct ct_backing backing = {0};
    CUresult r;

    if (info->address_rule == CT_ADDRESS_WINDOWS)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "host memory by the address rule \"windows\"");
    if (size_bytes / page_bytes() >= (uint64_t)sysconf(_SC_PHYS_PAGES)) /* it could never be locked */
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes of host memory", (unsigned long long)size_bytes);
    if (is_chosen(context) && info->can_import_host) {
        r = create_host_chosen(context, size_bytes, &backing);
    } else {
        r = create_placed_by_driver(context, &request, &backing);
        if (r == CUDA_SUCCESS)
            backing.host = backing.memory->host;
    }
    if (r == CUDA_SUCCESS)
        *out = backing;
    return r;
}

/* On CHOSEN devices the pages get an address of the arena: the pages' own may be less aligned than a driver takes, and a refusal may
 * not be followed by a second try there. */
CUresult ct_backing_import(struct ct_context *context, void *pages, uint64_t size_bytes, struct ct_backing *out)
{
    const struct ct_backend *backend = context->backend;
    struct ct_backing backing = {.host = pages};
    uint64_t want = 0;
    CUresult r;

    if (!context->device->info.can_import_host || context->device->info.address_rule == CT_ADDRESS_WINDOWS)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the device cannot use host memory that it did not allocate");
    if (is_chosen(context)) {
        if (!round_up(size_bytes, ARENA_ALIGN, &backing.reserved_bytes))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes", (unsigned long long)size_bytes);
        r = reserve(backing.reserved_bytes, &backing.reserved);
        if (r != CUDA_SUCCESS)
            return r;
        backing.address = want = (uint64_t)(uintptr_t)backing.reserved;
    }
    r = backend->memory_import_host(context->backend_device, pages, size_bytes, want, &backing.memory);
    if (want)
        r = check_chosen(context, r, &backing);
    else if (r == CUDA_SUCCESS)
        backing.address = ct_address_of(context, backing.memory->address);
    if (r == CUDA_SUCCESS)
        *out = backing;
    return r;
}

void ct_backing_destroy(struct ct_context *context, struct ct_backing *backing)
{
    if (backing->memory)
        context->backend->memory_destroy(backing->memory);
    if (backing->reserved) /* the pages lie in it */
        munmap(backing->reserved, backing->reserved_bytes);
    *backing = (struct ct_backing){0};
}
