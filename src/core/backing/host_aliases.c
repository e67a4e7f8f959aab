/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases of host memory. Kernels of all devices must access it through one pointer, but a device can access only memory that its driver
 * allocated or imported. So pages that are memory of one device are also imported into the others, at the same CUDA address: no pointer
 * needs translation on another device. Devices that use the host's own address space need no aliases. If a device cannot map that address,
 * its kernels cannot access the memory, and cuMemHostGetDevicePointer fails on that device.
 *
 * With one device, or if no other device needs aliases, nothing is recorded. */
#include "host_aliases.h"

#include "address_rule.h"
#include "host_mappings.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "reservation.h"

#include <stdlib.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

struct ct_host_aliases {
    struct ct_host_aliases *next, **link; /* in the list of all; link points at the pointer to this one */
    const struct ct_device *owner;
    const struct ct_memory *memory; /* the owner's */
    void *pages;
    uint64_t address, size_bytes;  /* CUDA address on all devices but the owner; whole pages */
    bool registered, io_memory;    /* pages of the application; CU_MEMHOSTREGISTER_IOMEMORY */
    bool refused;                  /* by a device: its driver must never get another request for that address */
    struct ct_memory *of_device[]; /* by ordinal; NULL: the device has none */
};

/* Guards the list, the aliases themselves, and ct_device.takes_aliases. */
static struct ct_mutex lock = CT_MUTEX_INITIALIZER(CT_RANK_HOST_ALIASES);
static struct ct_host_aliases *all;

static bool needs_aliases(const struct ct_device_info *info)
{
    return info->can_import_host && !info->pageable_access && ct_address_is_placed(info->address_rule);
}

static bool others_need_aliases(const struct ct_device *device)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        if (&ct_process.devices[i] != device && needs_aliases(&ct_process.devices[i].info))
            return true;
    return false;
}

/* Some drivers accept any page address; all of them accept addresses that reservation.c reserves. */
static bool can_have_address(const struct ct_device_info *info, const struct ct_host_aliases *aliases)
{
    return info->import_at_pointer ||
           ((aliases->address & (CT_RESERVATION_ALIGN - 1)) == 0 && ct_arenas_hold(info, aliases->address, aliases->size_bytes));
}

/* On CPU devices with their own addresses (the address rules for tests) the memory is also mapped at the device address. */
static void *pages_for(const struct ct_device_info *info, const struct ct_host_aliases *aliases)
{
    const uint64_t at = ct_rule_devaddr(&info->target, aliases->address).v;

    return info->kind == CT_DEVICE_CPU && at == aliases->memory->address.v ? (void *)(uintptr_t)at : aliases->pages;
}

/* Whether to try the import. Pages of the application are checked with Linux first. Memory that a driver allocated and mapped belongs to a
 * device file, which that check would reject, although NVIDIA's driver imports such pages of another device (580.159.04, two H200s). */
static bool may_import(const struct ct_device_info *info, const struct ct_host_aliases *aliases)
{
    return can_have_address(info, aliases) && (!info->import_failures_are_sticky || !aliases->registered || aliases->io_memory ||
                                               ct_pages_can_be_locked((uint64_t)(uintptr_t)aliases->pages, aliases->size_bytes));
}

static void import_locked(struct ct_device *device, struct ct_host_aliases *aliases)
{
    const struct ct_host_import import = {.pages = pages_for(&device->info, aliases),
                                          .size_bytes = aliases->size_bytes,
                                          .want_address = aliases->address,
                                          .io_memory = aliases->io_memory};
    CUresult r;

    if (device == aliases->owner || !device->takes_aliases || !may_import(&device->info, aliases))
        return;
    r = device->backend->memory->import_host(device->opened, &import, &aliases->of_device[device->ordinal]);
    if (r == CUDA_SUCCESS)
        return;
    ct_log(CT_LOG_INFO, "device %d cannot access the host memory at 0x%llx, which belongs to device %d", device->ordinal,
           (unsigned long long)aliases->address, aliases->owner->ordinal);
    aliases->refused = true;
    device->takes_aliases = !device->info.import_failures_are_sticky;
}

static void add_locked(struct ct_host_aliases *aliases)
{
    aliases->next = all;
    aliases->link = &all;
    if (all)
        all->link = &aliases->next;
    all = aliases;
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        import_locked(&ct_process.devices[i], aliases);
}

void ct_host_aliases_make(struct ct_device *device, const struct ct_host_import *registered, struct ct_backing *backing)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), host = (uint64_t)(uintptr_t)backing->host;
    const uint64_t address = device->info.address_rule == CT_ADDRESS_OWN ? host : backing->address;
    struct ct_host_aliases *aliases;

    if (!others_need_aliases(device) || !host || ((host | address) & (page - 1)))
        return;
    aliases = calloc(1, sizeof *aliases + ct_process.n_devices * sizeof *aliases->of_device);
    if (!aliases) {
        ct_log(CT_LOG_WARN, "out of memory: no other device can access the host memory at 0x%llx", (unsigned long long)address);
        return;
    }
    aliases->owner = device;
    aliases->memory = backing->memory;
    aliases->pages = backing->host;
    aliases->address = address;
    aliases->size_bytes = (backing->memory->size_bytes + page - 1) & ~(page - 1);
    aliases->registered = registered;
    aliases->io_memory = registered && registered->io_memory;
    backing->aliases = aliases;
    ct_mutex_lock(&lock);
    add_locked(aliases);
    ct_mutex_unlock(&lock);
}

void ct_host_aliases_drop(struct ct_backing *backing)
{
    struct ct_host_aliases *aliases = backing->aliases;

    if (!aliases)
        return;
    ct_mutex_lock(&lock);
    *aliases->link = aliases->next;
    if (aliases->next)
        aliases->next->link = aliases->link;
    ct_mutex_unlock(&lock);
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        ct_process.devices[i].backend->memory->destroy(aliases->of_device[i]);
    if (aliases->refused)
        backing->reserved = NULL; /* stays reserved for good */
    backing->aliases = NULL;
    free(aliases);
}

void ct_host_aliases_open(struct ct_device *device)
{
    if (!needs_aliases(&device->info))
        return;
    ct_mutex_lock(&lock);
    device->takes_aliases = true;
    for (struct ct_host_aliases *aliases = all; aliases; aliases = aliases->next)
        import_locked(device, aliases);
    ct_mutex_unlock(&lock);
}

static const struct ct_host_aliases *find_locked_or_null(const struct ct_memory *memory)
{
    const struct ct_host_aliases *aliases = all;

    while (aliases && aliases->memory != memory) /* recent memory is in front */
        aliases = aliases->next;
    return aliases;
}

bool ct_host_aliases_exist(const struct ct_memory *memory)
{
    bool exist;

    ct_mutex_lock(&lock);
    exist = find_locked_or_null(memory) != NULL;
    ct_mutex_unlock(&lock);
    return exist;
}

bool ct_host_aliases_find(const struct ct_device *device, const struct ct_memory *memory, uint64_t *out_address)
{
    const struct ct_host_aliases *aliases;
    bool found;

    if (!needs_aliases(&device->info))
        return false;
    ct_mutex_lock(&lock);
    aliases = find_locked_or_null(memory);
    found = aliases && aliases->of_device[device->ordinal];
    if (found)
        *out_address = aliases->address;
    ct_mutex_unlock(&lock);
    return found;
}
