/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that was freed and is kept for the next allocation of its size: some drivers take long to make memory (NVIDIA 580 on an
 * H200: 170 us for 1 MiB, 1.5 ms for 64 MiB), and programs allocate the same sizes again and again. On CPU devices it keeps its pages. What
 * is kept counts as free, and goes as soon as the device has no other. Memory without addresses (cuMemCreate) is kept beside it: 1 ms for
 * 64 MiB there. */
#ifndef CT_CORE_MEMORY_SPARES_H
#define CT_CORE_MEMORY_SPARES_H

#include "memory_backing.h"
#include "core/vmm/vmm_backing.h"

struct ct_spares; /* of a device */

CUresult ct_spares_create(struct ct_device *device, struct ct_spares **out);
void ct_spares_destroy(struct ct_spares *spares); /* before the device is closed; takes NULL */

/* Memory for who may give it back here, spare or new, of at least this size; of other kinds than DEVICE always new. OUT_OF_MEMORY. No lock
 * is held: a driver may take its time. */
CUresult ct_spares_backing(struct ct_context *context, enum ct_memory_kind kind, uint64_t size_bytes, uint64_t align,
                           struct ct_backing *out);
/* Keeps device memory that no work uses; the oldest goes where it becomes too much. False: it stays the caller's. */
bool ct_spares_put(struct ct_spares *spares, const struct ct_backing *backing);
/* The same for physical memory, which is counted (memory_budget.h) and stays so while it is kept. Nobody else may have it. */
bool ct_spares_take_physical(struct ct_spares *spares, uint64_t size_bytes, struct ct_vmm_memory *out);
bool ct_spares_put_physical(struct ct_spares *spares, const struct ct_vmm_implementation *way, const struct ct_vmm_memory *memory);
/* Gives everything back to the driver. False: there was nothing. */
bool ct_spares_trim(struct ct_spares *spares);

#endif
