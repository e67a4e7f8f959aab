/* SPDX-License-Identifier: Apache-2.0 */
/* Reserving host address space. A counter advances through each arena and wraps at its end, so an address is reused late; Linux
 * reports whether something else is already mapped there. */
#include "reservation.h"

#include "core/base/log.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define CT_CHANNEL "memory"
#define RESERVE_TRIES 4096
/* Between reservations: RADV takes 64 KiB more than an allocation has on GFX9 (Mesa 26.2), and refuses the address behind it. */
#define GAP_BYTES CT_RESERVATION_ALIGN
#define MAX_STEP ((uint64_t)64 << 30)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Process-wide, as addresses are. One for all arenas: it only has to grow. Relaxed: only uniqueness matters. */
static atomic_ullong next_offset, next_arena;

static uint64_t take_address(const struct ct_address_arena *arena, uint64_t size_bytes, uint64_t align)
{
    uint64_t span = arena->end - arena->first, address;
    uint64_t offset = atomic_fetch_add_explicit(&next_offset, size_bytes + GAP_BYTES, memory_order_relaxed) % span;

    address = (arena->first + offset + align - 1) & ~(align - 1);
    return address + size_bytes <= arena->end ? address : (arena->first + align - 1) & ~(align - 1);
}

static bool try_address(uint64_t address, uint64_t size_bytes, void **out)
{
    void *want = (void *)(uintptr_t)address;
    void *got = mmap(want, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == want)
        *out = got;
    else if (got != MAP_FAILED) /* Linux before 4.17 ignores NOREPLACE and treats the address as a hint */
        munmap(got, size_bytes);
    return got == want;
}

static bool reserve_in(const struct ct_address_arena *arena, uint64_t size_bytes, uint64_t align, void **out)
{
    uint64_t step = CT_RESERVATION_ALIGN;

    if (size_bytes > arena->end - arena->first || align > arena->end - arena->first)
        return false;
    for (int i = 0; i < RESERVE_TRIES; i++) {
        if (try_address(take_address(arena, size_bytes, align), size_bytes, out))
            return true;
        take_address(arena, step, align); /* something else is mapped there: skip ahead in growing steps */
        step = step < MAX_STEP ? step * 2 : step;
    }
    return false;
}

/* For devices that accept any host address. */
static bool reserve_anywhere(uint64_t size_bytes, uint64_t align, void **out)
{
    uint64_t room;
    char *start, *aligned;

    if (__builtin_add_overflow(size_bytes, align, &room))
        return false;
    start = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return false;
    aligned = start + (-(uintptr_t)start & (align - 1));
    if (aligned > start)
        munmap(start, (size_t)(aligned - start));
    munmap(aligned + size_bytes, (size_t)(start + room - (aligned + size_bytes)));
    *out = aligned;
    return true;
}

static CUresult round_up(uint64_t size_bytes, uint64_t *out)
{
    if (__builtin_add_overflow(size_bytes, CT_RESERVATION_ALIGN - 1, out))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no address space for %llu bytes", (unsigned long long)size_bytes);
    *out &= ~(CT_RESERVATION_ALIGN - 1);
    return CUDA_SUCCESS;
}

static unsigned count_arenas(const struct ct_device_info *info)
{
    unsigned n = 0;

    while (n < CT_ADDRESS_ARENAS && info->arenas[n].end)
        n++;
    return n;
}

CUresult ct_reserve(const struct ct_device_info *info, uint64_t size_bytes, uint64_t align, void **out, uint64_t *out_bytes)
{
    uint64_t first = atomic_fetch_add_explicit(&next_arena, 1, memory_order_relaxed), n = count_arenas(info), bytes;
    CUresult r = round_up(size_bytes, &bytes);
    bool found;

    if (r != CUDA_SUCCESS)
        return r;
    align = align > CT_RESERVATION_ALIGN ? align : CT_RESERVATION_ALIGN;
    found = n == 0 && reserve_anywhere(bytes, align, out);
    for (uint64_t i = 0; i < n && !found; i++)
        found = reserve_in(&info->arenas[(first + i) % n], bytes, align, out);
    if (!found)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no free address space for %llu bytes", (unsigned long long)size_bytes);
    *out_bytes = bytes;
    return CUDA_SUCCESS;
}

bool ct_arenas_hold(const struct ct_device_info *info, uint64_t address, uint64_t size_bytes)
{
    const unsigned n = count_arenas(info);
    bool inside = n == 0;

    for (unsigned i = 0; i < n && !inside; i++)
        inside = address >= info->arenas[i].first && address < info->arenas[i].end && size_bytes <= info->arenas[i].end - address;
    return inside;
}

CUresult ct_reserve_at(const struct ct_device_info *info, uint64_t address, uint64_t size_bytes, void **out, uint64_t *out_bytes)
{
    uint64_t bytes;
    CUresult r = round_up(size_bytes, &bytes);

    if (r != CUDA_SUCCESS)
        return r;
    if (!ct_arenas_hold(info, address, bytes) || !try_address(address, bytes, out))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes at 0x%llx are not free", (unsigned long long)bytes,
                       (unsigned long long)address);
    *out_bytes = bytes;
    return CUDA_SUCCESS;
}

void ct_unreserve(void *start, uint64_t reserved_bytes)
{
    if (start)
        munmap(start, reserved_bytes);
}
