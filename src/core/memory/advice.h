/* SPDX-License-Identifier: Apache-2.0 */
/* The advice that programs gave about managed memory (cuMemAdvise, cuMemPrefetchAsync), per page; cuMemRangeGetAttribute reports it. */
#ifndef CT_CORE_ADVICE_H
#define CT_CORE_ADVICE_H

#include "cuda.h"

#include <stdbool.h>
#include <stdint.h>

/* The advice for one page. Zero means no advice. A location of type INVALID means no location. */
struct ct_advice {
    bool read_mostly;
    CUmemLocation preferred, prefetched;
    uint64_t accessed_by; /* bit 0: the host, bit 1 + n: device n */
};

typedef void (*ct_advice_change)(struct ct_advice *advice, const void *user);
/* Changes the advice of every page of [start, start + size_bytes). OUT_OF_MEMORY. */
CUresult ct_advice_apply(uint64_t start, uint64_t size_bytes, ct_advice_change change, const void *user);
/* The advice that all pages of the range have in common: a location is included only if all pages have the same one. */
struct ct_advice ct_advice_common(uint64_t start, uint64_t size_bytes);
/* Clears the advice of a range, when memory is allocated or freed there. Cannot fail. */
void ct_advice_forget(uint64_t start, uint64_t size_bytes);
/* Replaces it by a preferred location, which memory of a pool has from the start. OUT_OF_MEMORY. */
CUresult ct_advice_start(uint64_t start, uint64_t size_bytes, CUmemLocation preferred);

#endif
