/* SPDX-License-Identifier: Apache-2.0 */
/* assert in kernels (CUDA C++ Programming Guide, "Assertion"): what failed is told in a line for each thread. The records come through the
 * ring of print.h; a kernel with one fails with CUDA_ERROR_ASSERT by the context's fault word. */
#ifndef CT_CORE_ASSERTION_H
#define CT_CORE_ASSERTION_H

#include "core/device/context.h"

#include <stdio.h>

/* Assertions in the order in which they were found; zeros: none. */
struct ct_assertions {
    struct ptx2spv_assertion *items;
    size_t count, capacity;
};

/* Adds a record, of which `n` words lie behind the header. */
void ct_assertions_add(struct ct_assertions *list, const uint64_t *words, unsigned n);
/* Writes their lines and empties the list. The caller holds no lock. */
void ct_assertions_tell(struct ct_assertions *list, struct ct_context *context, FILE *to);

#endif
