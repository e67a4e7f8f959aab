/* SPDX-License-Identifier: Apache-2.0 */
/* What SPIR-V has and the headers of SDK 1.3.239 (the oldest that we build with) lack, by number from the extensions' texts. */
#ifndef PTX2SPV_SPIRV_NEWER_H
#define PTX2SPV_SPIRV_NEWER_H

/* SPV_KHR_maximal_reconvergence */
#define CT_SPV_EXECUTION_MODE_MAXIMALLY_RECONVERGES_KHR 6023

#endif
