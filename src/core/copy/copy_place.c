/* SPDX-License-Identifier: Apache-2.0 */
/* Locations: resolves the application's pointers for copies and fills. */
#include "copy.h"

#include "core/backing/address_uses.h"
#include "core/backing/shadows.h"
#include "core/base/log.h"
#include "core/vmm/vmm.h"

#define CT_CHANNEL "copy"

static bool is_device_kind(enum ct_range_kind kind)
{
    return kind == CT_RANGE_DEVICE || kind == CT_RANGE_POOL || kind == CT_RANGE_IPC || kind == CT_RANGE_MODULE;
}

static CUresult find_virtual(uint64_t address, uint64_t span_bytes, bool synchronous, struct ct_place *out)
{
    struct ct_vmm_extent spot;
    CUresult r = ct_vmm_extent_at(address, span_bytes, &spot);

    if (r == CUDA_SUCCESS)
        *out = (struct ct_place){.memory = spot.memory,
                                 .offset = spot.offset,
                                 .host = spot.host,
                                 .is_device = true,
                                 .read_only = spot.read_only,
                                 .synchronous = synchronous,
                                 .owner = spot.owner};
    return r;
}

CUresult ct_place_find(enum ct_pointer_role role, uint64_t address, uint64_t span_bytes, struct ct_place *out)
{
    struct ct_range range;
    CUresult r;

    if (!address)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer is NULL");
    if ((r = ct_address_use(address, span_bytes)) != CUDA_SUCCESS)
        return r;
    if (role == CT_POINTER_DEVICE) {
        r = ct_address_find(address, span_bytes, &range);
    } else if (ct_address_find_any(address, 1, &range)) {
        r = ct_range_check(&range, address, span_bytes);
    } else {
        *out = (struct ct_place){.host = (char *)(uintptr_t)address};
        return CUDA_SUCCESS;
    }
    if (r != CUDA_SUCCESS && role == CT_POINTER_HOST && range.kind == CT_RANGE_REGISTERED &&
        (uint64_t)(uintptr_t)range.host == range.start) {
        *out = (struct ct_place){.host = (char *)(uintptr_t)address}; /* only its beginning is registered, so it is pageable memory */
        return CUDA_SUCCESS;
    }
    if (r != CUDA_SUCCESS)
        return r;
    if (range.kind == CT_RANGE_VIRTUAL)
        return find_virtual(address, span_bytes, range.synchronous, out);
    *out = (struct ct_place){
        .memory = range.memory,
        .offset = range.memory_offset + (address - range.start),
        .host = range.host ? (char *)range.host + (address - range.start) : NULL,
        .is_device = is_device_kind(range.kind),
        .read_only = ct_range_is_read_only(&range),
        .synchronous = range.synchronous,
        .owner = range.owner,
        .address = address,
    };
    return CUDA_SUCCESS;
}

void ct_place_note_write(const struct ct_stream *stream, const struct ct_place *place, uint64_t bytes)
{
    if (place->address)
        ct_shadow_note_write(stream->context, place->address, bytes);
}

struct ct_place ct_place_moved(const struct ct_place *place, uint64_t distance)
{
    struct ct_place p = *place;

    p.offset += distance;
    p.host = p.host ? p.host + distance : NULL;
    p.address = p.address ? p.address + distance : 0;
    return p;
}

CUresult ct_copy_span(uint64_t row_bytes, uint64_t rows, uint64_t pitch, uint64_t slices, uint64_t slice, uint64_t *out)
{
    uint64_t in_rows, in_slices;

    if (__builtin_mul_overflow(rows - 1, pitch, &in_rows) || __builtin_mul_overflow(slices - 1, slice, &in_slices) ||
        __builtin_add_overflow(in_rows, in_slices, &in_rows) || __builtin_add_overflow(in_rows, row_bytes, out))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the extent of the copy exceeds 64 bits");
    return CUDA_SUCCESS;
}
