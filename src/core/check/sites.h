/* SPDX-License-Identifier: Apache-2.0 */
/* The sites of checked kernels (struct ptx2spv_check_site): where their faults come from. */
#ifndef CT_CORE_CHECK_SITES_H
#define CT_CORE_CHECK_SITES_H

#include "core/backing/memory_backing.h"
#include "core/code/function.h"

/* The sites of one compiled kernel, in host memory that the kernel writes. They exist until the context is destroyed. */
struct ct_check_sites {
    struct ct_check_sites *next;
    struct ct_context *context; /* borrowed: it destroys them */
    struct ct_code *code;       /* a reference */
    const char *name;           /* of the kernel; the code's */
    uint64_t image;             /* CUDA address of its module's variables; 0: there are none */
    struct ct_backing memory;
    uint32_t n;
};

/* Those of a compiled function, which are made the first time. OUT_OF_MEMORY. */
CUresult ct_check_sites_of(struct ct_function *function, struct ct_check_sites **out);
/* Reports what kernels of the context (NULL: of all) have counted since the last time. */
void ct_check_flush(struct ct_context *context_or_null);
/* Frees those of a context, whose kernels are complete. */
void ct_check_sites_destroy_all(struct ct_context *context);
/* The number of reports about kernels, and how often it happened. */
void ct_check_totals(uint64_t *out_reports, uint64_t *out_times);

#endif
