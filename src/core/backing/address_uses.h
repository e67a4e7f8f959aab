/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes under races: what an API call looks up stays alive until the call's command is complete. This is the rule for all kinds of
 * objects, and where each part of it is implemented:
 *
 *   objects with handles   A look-up returns a reference (base/object.h). An object that commands use frees its parts only after it has
 *                          waited for the streams of its context (ct_streams_synchronize): arrays with their last reference, modules
 *                          when they are unloaded (module.c).
 *   streams, contexts      Streams live, and are waited for, until their work is complete; then a thread that found one before it was
 *                          destroyed can record no more (stream_life.c). Contexts wait for the calls that use them (device/context.h).
 *   memory by address      Look-ups are lock-free and take no reference. A call announces the addresses here before it looks them up, and
 *                          revokes that when its command is recorded, or has been executed by the host. A thread that frees memory
 *                          (1) removes its range from the address map, (2) waits until no call uses a byte of the range (ct_address_uses_await),
 *                          (3) waits for the work of all contexts that may use the memory, and (4) frees it.
 *
 * Proof for memory: a full fence separates the announcement from the look-up, and another one the removal from the wait. In the total order
 * of fences, either the announcement's fence is first: then the wait sees it, and ends only after the command was recorded, so that step 3
 * waits for the command. Or the removal's fence is first: then the look-up sees that the range is gone, and fails. (Mappings in
 * reservations are marked as closing instead of being removed: vmm_mapping.c.) */
#ifndef CT_CORE_ADDRESS_USES_H
#define CT_CORE_ADDRESS_USES_H

#include "cuda.h"

#include <stdint.h>

/* The number of the calling thread's uses, for ct_address_uses_end. */
unsigned ct_address_uses_begin(void);
/* Announces a use of the bytes. Call it before their look-up, between begin and end. OUT_OF_MEMORY. */
CUresult ct_address_use(uint64_t address, uint64_t size_bytes);
/* Revokes the uses that were announced since ct_address_uses_begin returned `begin`. */
void ct_address_uses_end(unsigned begin);
/* Waits until no other thread uses a byte of a range that can no longer be found. The caller holds no lock. */
void ct_address_uses_await(uint64_t start, uint64_t size_bytes);

#endif
