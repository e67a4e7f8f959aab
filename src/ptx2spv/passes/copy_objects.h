/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTX2SPV_COPY_OBJECTS_H
#define PTX2SPV_COPY_OBJECTS_H

#include "ptx2spv/ir/ir.h"

struct object_copy {
    uint32_t from, to;      /* local objects, index + 1 */
    struct ct_insn *before; /* where the copy is made */
};

/* Emits loads and stores for each copy. Register form; all other accesses to the objects must be there already. */
void ct_copy_objects(struct ct_fn *fn, const struct object_copy *copies, uint32_t n);

#endif
