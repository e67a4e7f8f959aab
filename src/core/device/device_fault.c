/* SPDX-License-Identifier: Apache-2.0 */
#include "device_fault.h"

#include "core/backing/address_space.h"
#include "core/base/log.h"
#include "device.h"

#include <inttypes.h>
#include <stdio.h>

#define CT_CHANNEL "device"
#define NEAR_BYTES (UINT64_C(1) << 32) /* allocations farther away say nothing */
#define LINE_BYTES 320

/* The CUDA address of a device address; for windows, of which there are several, the device address. */
static uint64_t cuda_address(const struct ct_device_info *info, uint64_t address)
{
    return info->address_rule == CT_ADDRESS_CHOSEN_MASK ? address & ~info->target.pointer_mask : address;
}

static void describe_place(const struct ct_range *range, uint64_t first, uint64_t last, char *out, size_t size)
{
    const uint64_t distance = ct_range_distance(range, first, last);

    if (distance)
        snprintf(out, size, ", %" PRIu64 " bytes %s", distance, first < range->start ? "before" : "behind");
    else if (first == last)
        snprintf(out, size, ", byte %" PRIu64 " of", first - range->start);
    else
        snprintf(out, size, ", at");
}

void ct_device_fault_describe(const struct ct_device_info *info, const struct ct_fault_address *address, char *out, size_t size)
{
    static const char *const accesses[] = {"an access to", "a read from", "a write to", "an execution at"};
    const uint64_t first = cuda_address(info, address->first), last = cuda_address(info, address->last);
    char place[64], between[32] = "";
    struct ct_range range;

    if (first != last)
        snprintf(between, sizeof between, " to 0x%" PRIx64, last);
    if (!ct_address_find_nearest(first, last, NEAR_BYTES, &range)) {
        snprintf(out, size, "%s address 0x%" PRIx64 "%s, where no allocation is near", accesses[address->access], first, between);
        return;
    }
    describe_place(&range, first, last, place, sizeof place);
    snprintf(out, size, "%s address 0x%" PRIx64 "%s%s an allocation of %" PRIu64 " bytes at 0x%" PRIx64, accesses[address->access], first,
             between, place, range.size_bytes, range.start);
}

void ct_device_fault_log(struct ct_device *device)
{
    const struct ct_backend *backend = device->backend;
    struct ct_device_fault fault;
    char line[LINE_BYTES];

    if (!backend->device_fault || !device->opened || !backend->device_fault(device->opened, &fault))
        return;
    if (*fault.description)
        ct_log(CT_LOG_WARN, "the driver of device %d says: %s", device->ordinal, fault.description);
    for (unsigned i = 0; i < fault.n_addresses; i++) {
        ct_device_fault_describe(&device->info, &fault.addresses[i], line, sizeof line);
        ct_log(CT_LOG_WARN, "device %d stopped at %s; `cuttle check` finds the place in the code", device->ordinal, line);
    }
}
