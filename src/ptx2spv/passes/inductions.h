/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTX2SPV_INDUCTIONS_H
#define PTX2SPV_INDUCTIONS_H

#include "ptx2spv/ir/ir.h"

/* What the pass `inductions` does, for phis that another pass has made. Returns whether anything changed. */
bool ct_merge_inductions(struct ct_fn *fn);

#endif
