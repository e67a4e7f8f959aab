/* SPDX-License-Identifier: Apache-2.0 */
/* The pointer rules of PTX2SPV_POINTER_*, from CUDA addresses to device addresses and back. */
#include "address_rule.h"

/* What PTX2SPV_POINTER_WINDOWS adds to an address. */
static uint64_t distance_at(const struct ptx2spv_target *target, uint64_t address)
{
    for (unsigned i = 0; i < PTX2SPV_WINDOWS_MAX && target->windows[i].size_bytes; i++)
        if (address - target->windows[i].base < target->windows[i].size_bytes)
            return target->windows[i].distance;
    return 0;
}

/* The same for a device address, which lies in the window's image. */
static uint64_t distance_to(const struct ptx2spv_target *target, uint64_t device_address)
{
    for (unsigned i = 0; i < PTX2SPV_WINDOWS_MAX && target->windows[i].size_bytes; i++)
        if (device_address - target->windows[i].distance - target->windows[i].base < target->windows[i].size_bytes)
            return target->windows[i].distance;
    return 0;
}

ct_devaddr ct_rule_devaddr(const struct ptx2spv_target *target, uint64_t address)
{
    switch (target->pointer_rule) {
    case PTX2SPV_POINTER_OR:
        return (ct_devaddr){address | target->pointer_mask};
    case PTX2SPV_POINTER_WINDOWS:
        return (ct_devaddr){address + distance_at(target, address)};
    }
    return (ct_devaddr){address};
}

uint64_t ct_rule_address(const struct ptx2spv_target *target, ct_devaddr address)
{
    switch (target->pointer_rule) {
    case PTX2SPV_POINTER_OR:
        return address.v & ~target->pointer_mask;
    case PTX2SPV_POINTER_WINDOWS:
        return address.v - distance_to(target, address.v);
    }
    return address.v;
}

const char *ct_rule_name(enum ct_address_rule rule)
{
    static const char *const names[] = {
        [CT_ADDRESS_CHOSEN] = "chosen",   [CT_ADDRESS_CHOSEN_MASK] = "mask", [CT_ADDRESS_SHARED] = "shared",
        [CT_ADDRESS_WINDOWS] = "windows", [CT_ADDRESS_OWN] = "own",
    };

    return names[rule];
}
