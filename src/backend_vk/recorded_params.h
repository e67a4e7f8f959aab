/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of recorded launches that do not fit into push constants: in memory that belongs to the recording, since any number of replays
 * reads them. */
#ifndef CT_VK_RECORDED_PARAMS_H
#define CT_VK_RECORDED_PARAMS_H

#include "vk.h"

/* A zeroed struct has no memory. */
struct ct_vk_recorded_params {
    struct ct_vk_params_piece *last; /* the one that is being filled, and through it all others */
};

/* Copies the parameters of a launch. *out_address: where kernels find them, until ct_vk_recorded_params_finish. OUT_OF_MEMORY. */
CUresult ct_vk_recorded_params_add(struct ct_backend_device *device, struct ct_vk_recorded_params *params, const void *bytes, uint32_t size,
                                   uint64_t *out_address);
void ct_vk_recorded_params_finish(struct ct_vk_recorded_params *params);

#endif
