/* SPDX-License-Identifier: Apache-2.0 */
/* assert in kernels (CUDA C++ Programming Guide, "Assertion"): one line per thread reports a failed assertion. The records are
 * transferred through the ring of print.h; a kernel with a failed assertion fails with CUDA_ERROR_ASSERT through the context's fault
 * word. */
#ifndef CT_CORE_ASSERTION_H
#define CT_CORE_ASSERTION_H

#include "core/device/context.h"

#include <stdio.h>

/* Assertions in the order in which they were read; a zeroed struct is empty. */
struct ct_assertions {
    struct ptx2spv_assertion *items;
    size_t count, capacity;
};

/* Adds a record with `n` words after the header. */
void ct_assertions_add(struct ct_assertions *list, const uint64_t *words, unsigned n);
/* Writes their lines and empties the list. The caller holds no lock. */
void ct_assertions_print(struct ct_assertions *list, struct ct_context *context, FILE *to);

#endif
