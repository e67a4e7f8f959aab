/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerants of SPIR-V that the headers of SDK 1.3.239 (the oldest that we build with) lack; the numbers are from the extensions' texts. */
#ifndef PTX2SPV_SPIRV_NEWER_H
#define PTX2SPV_SPIRV_NEWER_H

/* SPV_KHR_maximal_reconvergence */
#define CT_SPV_EXECUTION_MODE_MAXIMALLY_RECONVERGES_KHR 6023

/* SPV_KHR_cooperative_matrix */
#define CT_SPV_CAPABILITY_COOPERATIVE_MATRIX_KHR 6022
#define CT_SPV_OP_TYPE_COOPERATIVE_MATRIX_KHR 4456
#define CT_SPV_OP_COOPERATIVE_MATRIX_LOAD_KHR 4457
#define CT_SPV_OP_COOPERATIVE_MATRIX_MUL_ADD_KHR 4459
#define CT_SPV_OP_COOPERATIVE_MATRIX_LENGTH_KHR 4460
#define CT_SPV_MATRIX_ROW_MAJOR_KHR 0
#define CT_SPV_MATRIX_FACTORS_SIGNED_KHR 0x3u /* A and B */
#define CT_SPV_MATRIX_SUMS_SIGNED_KHR 0xcu    /* C and the result */

/* SPV_KHR_bfloat16 */
#define CT_SPV_CAPABILITY_BFLOAT16_TYPE_KHR 5116
#define CT_SPV_CAPABILITY_BFLOAT16_COOPERATIVE_MATRIX_KHR 5118
#define CT_SPV_FP_ENCODING_BFLOAT16_KHR 0

#endif
