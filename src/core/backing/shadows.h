/* SPDX-License-Identifier: Apache-2.0 */
/* Shadows of memory, for `cuttle check`. Checked kernels read and write them (struct ptx2spv_check_range).
 *   --initcheck     a byte for each byte of an allocation, 0 until something is written there. For everything else that writes to device memory the host marks
 *                   the bytes when it enqueues the command.
 *   --global-races  32 bytes for each 4 bytes: the blocks, threads and launches that wrote and read there last
 *   --host-accesses 8 bytes for each 4 bytes of page-locked and managed memory: the launches that read them and that wrote them last
 * Without these options nothing here does anything.
 *
 * For --initcheck only memory of cuMemAlloc and cuMemAllocAsync (and their relatives) has a shadow, and only as long as nothing writes to it that is not seen here:
 * other processes, other APIs, and kernels that are not checked. No memory has one that kernels of several contexts access. */
#ifndef CT_CORE_SHADOWS_H
#define CT_CORE_SHADOWS_H

#include "address_space.h"

struct ct_shadow_places {
    uint64_t written, accesses, launches; /* as in struct ptx2spv_check_range; 0: there is none */
};
/* For a kernel of a context, which needs `accesses` or does not. They stay valid until the context has been idle after the range was removed. Of a mapping in a
 * reservation (vmm.h) the range has its start, its size, the id of its memory, and that context as the owner. */
struct ct_shadow_places ct_shadow_places(struct ct_context *context, const struct ct_range *range, bool needs_accesses);
/* A command of a context that is being enqueued writes to [address, address + size_bytes). */
void ct_shadow_note_write(struct ct_context *context, uint64_t address, uint64_t size_bytes);
/* The numbers of the launches of a context that read and wrote the word of 4 bytes at an address last; 0: none, or not known. */
struct ct_word_launches {
    uint32_t reader, writer;
};
struct ct_word_launches ct_shadow_launches(struct ct_context *context, uint64_t address);
/* The allocation with that byte counts as written from now on, as does every one that there is. */
void ct_shadow_forget(uint64_t address);
void ct_shadow_forget_all(void);

/* Nothing is mapped there any more, and no work uses it. */
void ct_shadows_unmapped(uint64_t address, uint64_t size_bytes);

/* Shadows of memory that is gone: taken before the wait for all work of the context, and freed after it. */
struct ct_shadow;
struct ct_shadow *ct_shadows_take_removed(struct ct_context *context);
void ct_shadows_free(struct ct_context *context, struct ct_shadow *list);
/* All shadows of a context, whose kernels are complete. */
void ct_shadows_destroy_all(struct ct_context *context);

#endif
