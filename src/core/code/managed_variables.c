/* SPDX-License-Identifier: Apache-2.0 */
/* Managed variables (PTX ISA, ".attribute directive"; Driver API, cuLibraryGetManaged).
 *
 * They belong to no context: the runtime queries their addresses before it has one, and all contexts of a library share them. So their
 * memory is allocated on a device, charged to its primary context, and lives as long as the code. */
#include "managed_variables.h"

#include "core/backing/address_uses.h"
#include "core/backing/device_open.h"
#include "core/memory/advice.h"
#include "core/device/device.h"
#include "core/memory/host_memory.h"
#include "core/base/log.h"
#include "core/memory/managed.h"
#include "core/memory/memory.h"
#include "core/base/process.h"
#include "core/stream/context_streams.h"

#include <string.h>

#define CT_CHANNEL "memory"

void ct_managed_variables_init(struct ct_managed_variables *variables)
{
    *variables = (struct ct_managed_variables){0};
    ct_mutex_init(&variables->lock, CT_RANK_MANAGED);
}

/* The members of a context that memory_backing.c reads: the context need not be active. */
static struct ct_context place_of(struct ct_device *device)
{
    return (struct ct_context){.device = device, .backend = device->backend, .backend_device = device->opened};
}

static void destroy_backing(struct ct_device *device, struct ct_backing *backing)
{
    struct ct_context place = place_of(device);

    ct_backing_destroy(&place, backing);
}

void ct_managed_variables_finish(struct ct_managed_variables *variables)
{
    struct ct_range range;

    if (variables->device && ct_address_remove(variables->backing.address, CT_RANGE_MANAGED_VARIABLES, &range) == CUDA_SUCCESS) {
        ct_address_uses_await(range.start, range.size_bytes);
        ct_contexts_synchronize_except(NULL); /* any context may have copied them */
        ct_advice_forget(range.start, range.size_bytes);
        destroy_backing(variables->device, &variables->backing);
    }
    ct_mutex_finish(&variables->lock);
}

static CUresult relocate(const struct ptx2spv_module *ptx, uint64_t address, unsigned char *bytes)
{
    unsigned count;
    const struct ptx2spv_relocation *relocations = ptx2spv_module_relocations(ptx, &count);

    for (unsigned i = 0; i < count; i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(ptx, relocations[i].variable);
        uint64_t value;

        if (!relocations[i].in_managed)
            continue;
        if (!variable || variable->external || !variable->managed)
            return ct_fail(CUDA_ERROR_NOT_SUPPORTED,
                           "the initializer of a managed variable is the address of %s, which differs between contexts",
                           variable ? variable->name : "nothing");
        value = address + variable->offset + (uint64_t)relocations[i].addend;
        memcpy(bytes + relocations[i].offset, &value, relocations[i].width); /* little-endian, like every supported host and device */
    }
    return CUDA_SUCCESS;
}

static CUresult publish(const struct ct_backing *backing, const struct ct_device *device, uint64_t size_bytes)
{
    const struct ct_range range = {
        .start = backing->address,
        .size_bytes = size_bytes,
        .kind = CT_RANGE_MANAGED_VARIABLES,
        .context = device->primary,
        .owner = device->primary->object.handle,
        .device = device->ordinal,
        .memory = backing->memory,
        .host = backing->host,
        .device_pointer = backing->address,
        .id = ct_process_new_id(),
    };

    ct_advice_forget(range.start, range.size_bytes);
    return ct_address_insert(&range);
}

static void write_image(const struct ptx2spv_image *image, char *to)
{
    memset(to, 0, image->size_bytes);
    for (unsigned i = 0; i < image->n_pieces; i++)
        memcpy(to + image->pieces[i].offset, image->pieces[i].bytes, image->pieces[i].size_bytes);
}

static CUresult make(const struct ptx2spv_module *ptx, struct ct_device *device, struct ct_backing *out)
{
    struct ct_context place = place_of(device);
    struct ct_backing backing;
    const struct ptx2spv_image *image = ptx2spv_module_managed_image(ptx);
    CUresult r = ct_backing_create_portable(&place, image->size_bytes, CT_MEMORY_HOST, &backing);

    if (r != CUDA_SUCCESS)
        return r;
    if ((backing.address & (image->align - 1)) != 0)
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "managed variables aligned to %u bytes are not supported", image->align);
    if (r == CUDA_SUCCESS) {
        write_image(image, backing.host);
        r = relocate(ptx, backing.address, backing.host);
    }
    if (r == CUDA_SUCCESS)
        r = publish(&backing, device, image->size_bytes);
    if (r == CUDA_SUCCESS)
        *out = backing;
    else
        destroy_backing(device, &backing);
    return r;
}

static CUresult open_device(struct ct_device *device)
{
    if (!ct_managed_is_supported(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "managed variables are not supported: the device has no managed memory");
    return ct_device_open(device);
}

CUresult ct_managed_variables_place(struct ct_managed_variables *variables, const struct ptx2spv_module *ptx, struct ct_device *device,
                                    uint64_t *out_address)
{
    CUresult r = open_device(device);
    struct ct_range range;
    uint64_t there;

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&variables->lock);
    if (!variables->device && (r = make(ptx, device, &variables->backing)) == CUDA_SUCCESS)
        variables->device = device;
    ct_mutex_unlock(&variables->lock);
    if (r != CUDA_SUCCESS || (r = ct_address_find(variables->backing.address, 0, &range)) != CUDA_SUCCESS)
        return r;
    if (!ct_host_memory_reach(device, &range, &there))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "managed variables of device %d cannot be accessed on device %d",
                       variables->device->ordinal, device->ordinal);
    *out_address = variables->backing.address; /* constant once it is allocated */
    return CUDA_SUCCESS;
}
