/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerants of SPIR-V that the headers of SDK 1.3.239 (the oldest that we build with) lack; the numbers are from the extensions' texts. */
#ifndef PTX2SPV_SPIRV_NEWER_H
#define PTX2SPV_SPIRV_NEWER_H

/* SPV_KHR_maximal_reconvergence */
#define CT_SPV_EXECUTION_MODE_MAXIMALLY_RECONVERGES_KHR 6023

#endif
