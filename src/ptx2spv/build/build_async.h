/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the families of async_forms.def: asynchronous barriers, bulk copies, clusters. */
#ifndef PTX2SPV_BUILD_ASYNC_H
#define PTX2SPV_BUILD_ASYNC_H
/* Parts: build_bulk.c, build_cluster.c, build_mbarrier.c, build_tensor.c. */

#include "build_address.h"

/* Whether an instruction has one of the forms; if so, ct_build_async builds it. */
bool ct_is_async_form(const struct ptx_instruction *insn);
void ct_build_async(struct ct_build *b);
/* Whether a word is among those of the instruction. */
bool ct_async_has(const struct ct_build *b, const char *word);
/* The address of an operand in global or shared memory, whatever spaces the instruction names; a generic address where shared memory is
 * wanted is converted. False after an error was reported. */
bool ct_async_address(struct ct_build *b, unsigned index, enum ptx_space space, struct ct_address *out);

/* ---- build_mbarrier.c ---- */
/* Reports that `bytes` have arrived to the barrier at operand `index`, after everything that this thread has written. */
void ct_mbarrier_complete_bytes(struct ct_build *b, unsigned index, ct_value bytes);

/* An arrival at a barrier, which drops out of it if `drops`. The result is the word before. */
ct_value ct_mbarrier_arrive(struct ct_build *b, const struct ct_address *at, bool drops);
/* A loop until the phase is complete that had the sign of a 32-bit value; `at` is the address of the barrier. */
void ct_mbarrier_await(struct ct_build *b, const struct ct_address *at, ct_value sign);

/* ---- build_cluster.c: at the entry of a kernel, and where a thread ends ---- */
void ct_build_enter_cluster(struct ct_build *b);
void ct_build_leave_cluster(struct ct_build *b);

/* ---- build_bulk.c ---- */
/* Begins code that runs for each block that the mask operand of .multicast::cluster, if there is one at `index`, names; without one it runs once. */
struct ct_chosen {
    struct ct_block *next, *after; /* NULL: there is no mask */
    ct_value rank;                 /* in clusters of several blocks; else none */
    struct ct_block *head;
};
void ct_bulk_begin_chosen(struct ct_build *b, unsigned index, struct ct_chosen *out);
void ct_bulk_end_chosen(struct ct_build *b, const struct ct_chosen *chosen);

#define CT_TENSOR_MAP_BYTES 128

/* ---- families ---- */
void ct_build_mbarrier_init(struct ct_build *b);
void ct_build_mbarrier_inval(struct ct_build *b);
void ct_build_mbarrier_expect(struct ct_build *b);
void ct_build_mbarrier_complete(struct ct_build *b);
void ct_build_mbarrier_arrive(struct ct_build *b);
void ct_build_mbarrier_arrive_expect(struct ct_build *b);
void ct_build_mbarrier_drop(struct ct_build *b);
void ct_build_mbarrier_drop_expect(struct ct_build *b);
void ct_build_mbarrier_wait(struct ct_build *b);
void ct_build_mbarrier_wait_parity(struct ct_build *b);
void ct_build_mbarrier_pending(struct ct_build *b);
void ct_build_mbarrier_copies(struct ct_build *b);
void ct_build_bulk_load(struct ct_build *b);
void ct_build_bulk_store(struct ct_build *b);
void ct_build_async_nothing(struct ct_build *b);
void ct_build_bulk_reduce(struct ct_build *b);
void ct_build_async_store(struct ct_build *b);
void ct_build_async_reduce(struct ct_build *b);
void ct_build_tensor_load(struct ct_build *b);
void ct_build_tensor_store(struct ct_build *b);
void ct_build_tensor_reduce(struct ct_build *b);
void ct_build_tensor_map_copy(struct ct_build *b);
void ct_build_async_fence(struct ct_build *b);
void ct_build_cluster_arrive(struct ct_build *b);
void ct_build_cluster_wait(struct ct_build *b);

#endif
