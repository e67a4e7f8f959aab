/* SPDX-License-Identifier: Apache-2.0 */
/* What programs said about managed memory (cuMemAdvise, cuMemPrefetchAsync), page by page, to be told again by cuMemRangeGetAttribute. */
#ifndef CT_CORE_ADVICE_H
#define CT_CORE_ADVICE_H

#include "cuda.h"

#include <stdbool.h>
#include <stdint.h>

/* Of one page. Zero: nothing was said. A location of type INVALID is none. */
struct ct_advice {
    bool read_mostly;
    CUmemLocation preferred, prefetched;
    uint64_t accessed_by; /* bit 0: the host, bit 1 + n: device n */
};

typedef void (*ct_advice_change)(struct ct_advice *advice, const void *user);
/* Changes the advice of every page of [start, start + size_bytes). OUT_OF_MEMORY. */
CUresult ct_advice_apply(uint64_t start, uint64_t size_bytes, ct_advice_change change, const void *user);
/* What all pages have in common: a location only if it is that of each. */
struct ct_advice ct_advice_common(uint64_t start, uint64_t size_bytes);
/* Memory comes there, or goes: nothing was said about it. */
void ct_advice_forget(uint64_t start, uint64_t size_bytes);

#endif
