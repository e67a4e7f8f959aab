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

/* ---- build_bulk.c ---- */
/* Begins code for the case that the mask operand of .multicast::cluster, if there is one at `index`, names this block; the result is the
 * block that ends it. */
struct ct_block *ct_bulk_begin_chosen(struct ct_build *b, unsigned index);
void ct_bulk_end_chosen(struct ct_build *b, struct ct_block *after);

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
void ct_build_async_fence(struct ct_build *b);
void ct_build_cluster_arrive(struct ct_build *b);
void ct_build_cluster_wait(struct ct_build *b);

#endif
