/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of addresses that kernels may access. */
#ifndef CT_CORE_CHECK_RANGES_H
#define CT_CORE_CHECK_RANGES_H

#include "core/device/context.h"

struct ct_module;

/* In ascending order, without overlaps; `items` begins with an empty range at 0. */
struct ct_check_ranges {
    struct ptx2spv_check_range *items;
    size_t n, capacity;
};

/* What the stores of a launch lead to. */
struct ct_check_stored {
    bool is_known; /* else they may lead anywhere */
    unsigned n;
    uint64_t addresses[PTX2SPV_STORED_PARAMS + 1];
};
struct ct_check_stored ct_check_stored(const struct ptx2spv_stored *stored, const unsigned char *params, const struct ct_module *module);

/* All ranges at this moment: those of the address map, where the variables of the context's modules take the places of their images, and `extra`, which
 * the map does not contain. Only those to which stores lead have marks of accesses. Finish it on success. OUT_OF_MEMORY. */
CUresult ct_check_ranges_init(struct ct_check_ranges *ranges, struct ct_context *context, const struct ct_check_stored *stored,
                              const struct ptx2spv_check_range *extra, size_t n_extra);
void ct_check_ranges_finish(struct ct_check_ranges *ranges);
/* Where the marks of a module's variables are, for one of its kernels: struct ptx2spv_check.variables. */
uint64_t ct_check_variable_accesses(const struct ct_module *module, const struct ct_check_stored *stored);
/* The range that contains an address; NULL: none. */
const struct ptx2spv_check_range *ct_check_ranges_find(const struct ct_check_ranges *ranges, uint64_t address);

#endif
