/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions a kernel may call, which of those may come to call themselves again, and which are not to be inlined. */
#ifndef PTX2SPV_CALL_GRAPH_H
#define PTX2SPV_CALL_GRAPH_H

#include "ptx2spv/ir/ir.h"

/* PTX instructions of all functions that one call by address may reach; a call with more traps. Without a limit NCCL's first kernel took
 * 50 s to be refused. */
#define CT_DISPATCHED_MAX 500000u

/* The functions that a call by address may reach, indexed by address number, from `first` on; NULL where a function does not fit. */
struct ct_candidates {
    struct ptx_function **functions;
    uint32_t first, n;
    uint64_t instructions; /* of all together, without what they call */
    uint32_t cycle;        /* the cycle that such calls belong to; 0: none */
};

struct ct_call_graph;
/* The graph of all functions that the kernel may reach, in scratch memory. */
struct ct_call_graph *ct_call_graph_create(struct ct_fn *fn);
/* Those of calls by address with the parameters and results of `signature`; of the functions in `targets` only, unless that is NULL. */
const struct ct_candidates *ct_call_graph_candidates(struct ct_call_graph *graph, const struct ptx_function *signature,
                                                     const struct ptx_targets *targets);
struct ct_cycle {
    uint32_t number; /* the same for functions that may call each other in a cycle; 0: the function never calls itself */
    bool by_address; /* some of these calls are by address, so perhaps there is never such a call */
};
struct ct_cycle ct_call_graph_cycle(struct ct_call_graph *graph, const struct ptx_function *function);
/* Whether all calls of the function are to share one instance of it, as the kernel would be too large otherwise. */
bool ct_call_graph_is_out_of_line(struct ct_call_graph *graph, const struct ptx_function *function);

#endif
