/* SPDX-License-Identifier: Apache-2.0 */
/* The result of the trials of address_rule.c in the disk cache, since making a device for them takes a third of the time of a start. */
#ifndef CT_VK_ADDRESS_RULE_CACHE_H
#define CT_VK_ADDRESS_RULE_CACHE_H

#include "vk.h"

bool ct_vk_address_rule_load(const struct ct_vk_physical *physical, const struct ct_device_info *info, uint32_t *out_candidate);
void ct_vk_address_rule_store(const struct ct_vk_physical *physical, const struct ct_device_info *info, uint32_t candidate);

#endif
