/* SPDX-License-Identifier: Apache-2.0 */
/* What the compiler's pointer rule does to an address, done by the host. */
#ifndef CT_CORE_ADDRESS_RULE_H
#define CT_CORE_ADDRESS_RULE_H

#include "core/device/backend.h"

/* The device address that a kernel makes of a CUDA address. Device addresses are left as they are: a kernel may do it twice. */
ct_devaddr ct_rule_devaddr(const struct ptx2spv_target *target, uint64_t address);
/* The CUDA address of a device address. */
uint64_t ct_rule_address(const struct ptx2spv_target *target, ct_devaddr address);
/* "chosen", "mask", "shared", "windows", "own": as the option CUTTLE_ADDRESS_RULE has it. */
const char *ct_rule_name(enum ct_address_rule rule);

#endif
