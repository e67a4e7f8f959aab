/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that was freed and is kept for the next allocation of its size: some drivers are slow to allocate memory (NVIDIA 580 on an
 * H200: 170 us for 1 MiB, 1.5 ms for 64 MiB), and programs allocate the same sizes again and again. On CPU devices it keeps its pages.
 * Spare memory counts as free, and is released when the device has no other free memory. Physical memory (cuMemCreate), which takes 1 ms
 * for 64 MiB there, is kept in the same list. */
#ifndef CT_CORE_MEMORY_SPARES_H
#define CT_CORE_MEMORY_SPARES_H

#include "memory_backing.h"
#include "core/vmm/vmm_backing.h"

struct ct_spares; /* of a device */

CUresult ct_spares_create(struct ct_device *device, struct ct_spares **out);
void ct_spares_destroy(struct ct_spares *spares); /* before the device is closed; accepts NULL */

/* Returns memory of at least this size, which ct_spares_put may take back: spare or new; kinds other than DEVICE are always new.
 * OUT_OF_MEMORY. The caller holds no lock, since a driver may be slow. */
CUresult ct_spares_backing(struct ct_context *context, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                           struct ct_backing *out);
/* Keeps device memory that no work uses; the oldest is released if the limit is exceeded. False: the caller still owns the memory. */
bool ct_spares_put(struct ct_spares *spares, const struct ct_backing *backing);
/* The same for physical memory, which stays counted (memory_budget.h) while it is kept. It must not be shared. */
bool ct_spares_take_physical(struct ct_spares *spares, uint64_t size_bytes, struct ct_vmm_memory *out);
bool ct_spares_put_physical(struct ct_spares *spares, const struct ct_vmm_implementation *implementation,
                            const struct ct_vmm_memory *memory);
/* Returns all spare memory to the driver. False: there was none. */
bool ct_spares_trim(struct ct_spares *spares);

#endif
