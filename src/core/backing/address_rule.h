/* SPDX-License-Identifier: Apache-2.0 */
/* The host's implementation of the compiler's pointer rule. */
#ifndef CT_CORE_ADDRESS_RULE_H
#define CT_CORE_ADDRESS_RULE_H

#include "core/device/backend.h"

/* The device address that a kernel computes from a CUDA address. Device addresses are unchanged: a kernel may apply the rule twice. */
ct_devaddr ct_rule_devaddr(const struct ptx2spv_target *target, uint64_t address);
/* The CUDA address of a device address. */
uint64_t ct_rule_address(const struct ptx2spv_target *target, ct_devaddr address);
/* "chosen", "mask", "shared", "windows", "own": the values of the option CUTTLE_ADDRESS_RULE. */
const char *ct_rule_name(enum ct_address_rule rule);

#endif
