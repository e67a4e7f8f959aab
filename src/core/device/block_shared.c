/* SPDX-License-Identifier: Apache-2.0 */
#include "block_shared.h"

#define GRANULE_BYTES 1024u /* GPUs allocate in units of 256 bytes to 1 KiB, so the rounding costs next to nothing */

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

struct ct_block_shared ct_block_shared(const struct ptx2spv_kernel_info *info, uint32_t dynamic_bytes, uint64_t threads,
                                       uint64_t device_bytes)
{
    const uint64_t exchange = info->exchange_bytes + info->exchange_thread_bytes * threads;
    const uint64_t exact =
        round_up(info->uses_dynamic_shared ? (uint64_t)info->dynamic_shared_offset + dynamic_bytes : info->static_shared_bytes, 4);
    const uint64_t with_shadow =
        info->shared_copies * (info->shared_copies > 1 ? round_up(exact, 16) : exact) + info->check_thread_bytes * threads;
    const uint64_t rounded = round_up(exact, GRANULE_BYTES);
    const bool may_round = info->uses_dynamic_shared && !info->reads_shared_size;
    const uint64_t own = may_round && (info->shared_in_memory || rounded + exchange <= device_bytes) ? rounded : exact;

    if (info->shared_copies)
        return (struct ct_block_shared){with_shadow, with_shadow + exchange};
    return (struct ct_block_shared){own, own + exchange};
}
