/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CT_CORE_TEXTURE_SRGB_H
#define CT_CORE_TEXTURE_SRGB_H

#include "cuttle/ptx2spv.h"

/* The linear values of all sRGB values, from 0 to 1, as textures with CU_TRSF_SRGB return them. */
void ct_srgb_get_linear(float out[PTX2SPV_SRGB_VALUES]);

#endif
