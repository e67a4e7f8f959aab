/* SPDX-License-Identifier: Apache-2.0 */
#include "green_context.h"

#include "context.h"
#include "core/base/log.h"
#include "device.h"

#include <string.h>

#define CT_CHANNEL "context"
#define DESCRIPTOR 0x43556472u /* the upper half of descriptors */

CUresult ct_green_lookup(const void *handle, struct ct_green_context **out)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_GREEN_CONTEXT, handle);

    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not a green context", handle);
    *out = (struct ct_green_context *)object;
    return CUDA_SUCCESS;
}

struct ct_green_context *ct_green_find_or_null(CUcontext handle)
{
    return (struct ct_green_context *)ct_object_find_or_null(CT_OBJECT_GREEN_CONTEXT, handle);
}

void ct_green_release(struct ct_green_context *green)
{
    if (green)
        ct_object_release(&green->object);
}

/* ---- resources ---- */

/* What the bytes reserved for the driver say about a resource. */
enum origin { WHOLE = 1, PART };

/* The smallest part, and the multiple of all parts, by the compute capability (CUDA C++ Programming Guide, "Green Contexts"). */
static unsigned part_of(const struct ct_device *device)
{
    const int major = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);

    return major >= 9 ? 8 : major == 8 ? 4 : major == 7 ? 2 : 1;
}

static void make_resource(const CUdevSmResource *sm, enum origin origin, CUdevResource *out)
{
    *out = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_SM};
    out->_internal_padding[0] = (unsigned char)origin;
    out->sm = *sm;
}

static void resource_of(const struct ct_device *device, unsigned count, enum origin origin, CUdevResource *out)
{
    make_resource(&(CUdevSmResource){count, part_of(device), part_of(device)}, origin, out);
}

void ct_green_device_resource(const struct ct_device *device, CUdevResource *out)
{
    resource_of(device, (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), WHOLE, out);
}

void ct_green_resource(const struct ct_green_context *green, CUdevResource *out)
{
    resource_of(green->primary->device, green->sm_count, PART, out);
}

static unsigned round_up(unsigned value, unsigned unit)
{
    return (value + unit - 1) / unit * unit;
}

/* The number of multiprocessors of each group. It is a multiple of the unit, unless the resource has fewer multiprocessors than one unit. */
static unsigned group_size(const CUdevSmResource *sm, unsigned flags, unsigned min_count)
{
    const unsigned unit =
        flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING && sm->minSmPartitionSize > 2 ? 2 : sm->minSmPartitionSize;
    const unsigned size = round_up(min_count ? min_count : 1, unit ? unit : 1);

    return size > sm->smCount && min_count <= sm->smCount ? sm->smCount : size;
}

CUresult ct_green_split(CUdevResource *groups, unsigned *n_groups, const CUdevResource *input, CUdevResource *rest, unsigned flags,
                        unsigned min_count)
{
    CUdevSmResource left;
    unsigned size, most;

    if (!n_groups || !input || (groups && !*n_groups))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no groups to split a resource into");
    if (input->type != CU_DEV_RESOURCE_TYPE_SM)
        return ct_fail(CUDA_ERROR_INVALID_RESOURCE_TYPE, "a resource of type %d cannot be split", (int)input->type);
    left = input->sm;
    size = group_size(&left, flags, min_count);
    if (input->_internal_padding[0] != WHOLE || !size || size > left.smCount)
        return ct_fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "groups of %u multiprocessors of %u", min_count, left.smCount);
    most = left.smCount / size;
    *n_groups = groups && *n_groups < most ? *n_groups : most;
    for (unsigned i = 0; i < *n_groups && groups; i++)
        make_resource(&(CUdevSmResource){size, left.minSmPartitionSize, left.smCoscheduledAlignment}, PART, &groups[i]);
    left.smCount -= *n_groups * size;
    if (!rest)
        return CUDA_SUCCESS;
    if (left.smCount)
        make_resource(&left, PART, rest);
    else
        *rest = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_INVALID};
    return CUDA_SUCCESS;
}

CUresult ct_green_describe(const CUdevResource *resources, unsigned count, CUdevResourceDesc *out)
{
    uint32_t total = 0;

    for (unsigned i = 0; i < count; i++) {
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
            return ct_fail(CUDA_ERROR_INVALID_RESOURCE_TYPE, "resource %u has type %d", i, (int)resources[i].type);
        if ((resources[i]._internal_padding[0] != PART && count > 1) || total + resources[i].sm.smCount < total)
            return ct_fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "resource %u cannot be combined with others", i);
        total += resources[i].sm.smCount;
    }
    *out = (CUdevResourceDesc)(uintptr_t)((uint64_t)DESCRIPTOR << 32 | total);
    return CUDA_SUCCESS;
}

CUresult ct_green_described(CUdevResourceDesc desc, unsigned *out_sm_count)
{
    const uint64_t bits = (uint64_t)(uintptr_t)desc;

    if (bits >> 32 != DESCRIPTOR)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not a descriptor of resources", (void *)desc);
    *out_sm_count = (unsigned)bits;
    return CUDA_SUCCESS;
}
