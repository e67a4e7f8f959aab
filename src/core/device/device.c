/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: look-up and attributes. */
#include "device.h"

#include "compute_capability.h"
#include "core/base/config.h"
#include "core/base/decompressor.h"
#include "core/base/log.h"
#include "core/base/process.h"

#include <limits.h>
#include <stdio.h>

#define CT_CHANNEL "device"

#define CT_VENDOR_NVIDIA 0x10deu

static int clamp_to_int(uint64_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

static int block_threads(const struct ct_device_info *info)
{
    return clamp_to_int(info->max_block_threads < 1024 ? info->max_block_threads : 1024);
}

static int block_depth(const struct ct_device_info *info)
{
    return block_threads(info) < 64 ? block_threads(info) : 64;
}

static int has_copy_queue(const struct ct_device_info *info)
{
    return info->copy_queues > 0;
}

static int multiprocessors(const struct ct_device_info *info)
{
    return info->compute_units ? clamp_to_int(info->compute_units) : 1; /* programs divide by it */
}

/* The kernel drivers of other GPUs abort a submission after some seconds; NVIDIA's has a time limit only on a GPU with a display. */
static int has_watchdog(const struct ct_device_info *info)
{
    return info->kind != CT_DEVICE_CPU && info->vendor_id != CT_VENDOR_NVIDIA;
}

/* Checked kernels may access only memory that CUDA has allocated or registered. The library does not know the extent of other host memory (malloc), so with
 * CUTTLE_CHECK the attribute says that kernels cannot access it. */
static int accesses_pageable(const struct ct_device_info *info)
{
    return info->pageable_access && !ct_config()->check;
}

/* No GPU API reports how many threads are resident on a multiprocessor, so this is the figure of the compute capability: programs choose
 * their launch sizes by it, and no launch is refused due to it. At least one block of any size fits. */
static int resident_threads(const struct ct_device_info *info)
{
    const unsigned threads = ct_compute_capability(info)->threads;

    return clamp_to_int(info->max_block_threads > threads ? info->max_block_threads : threads);
}

static int has_unified_addressing(const struct ct_device_info *info)
{
    return info->address_rule != CT_ADDRESS_OWN;
}

/* Their memory has one address for host and device. */
static int has_host_pools(const struct ct_device_info *info)
{
    return has_unified_addressing(info) && info->maps_host;
}

static int has_virtual_memory(const struct ct_device_info *info)
{
    return info->virtual_memory != CT_VIRTUAL_NONE;
}

static int pool_handle_types(const struct ct_device_info *info)
{
    return info->memory_fd ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
}

static int decompression_formats(const struct ct_device_info *info)
{
    (void)info;
    return (int)ct_decompressor_formats();
}

/* Whether kernels access registered memory at the host's own pointers. This is false if the driver only accepts addresses that are
 * multiples of 64 KiB, which host pages need not be: then a registration gets an address in the arena (ct_backing_import). */
static int has_registered_pointers(const struct ct_device_info *info)
{
    return info->can_import_host && (info->address_rule == CT_ADDRESS_SHARED || info->import_at_pointer);
}

static int capability_major(const struct ct_device_info *info)
{
    return (int)ct_compute_capability(info)->number / 10;
}

/* They work on every device, but programs expect them of those alone that have them on NVIDIA's. */
static int has_clusters(const struct ct_device_info *info)
{
    return ct_compute_capability(info)->number >= 90;
}

static int capability_minor(const struct ct_device_info *info)
{
    return (int)ct_compute_capability(info)->number % 10;
}

static int is_cpu(const struct ct_device_info *info)
{
    return info->kind == CT_DEVICE_CPU;
}

/* Concurrent managed access means more than coherent memory, which every device has: it promises that operations of system scope are
 * atomic between kernels and the host. No API reports that for a GPU, so only CPU devices have it. */
static int shares_managed_memory(const struct ct_device_info *info)
{
    return is_cpu(info) && has_unified_addressing(info);
}

/* No API reports it. CPUs have half as many vector lanes for double. Without f64 a multiply-add is some thousand instructions, whose rate on an H200
 * was 1/109 to 1/170 of that of f32 (bench_math, CUTTLE_MATH=single). */
static int double_ratio(const struct ct_device_info *info)
{
    if (!info->target.float64)
        return 128;
    return info->kind == CT_DEVICE_CPU ? 2 : (int)ct_compute_capability(info)->ratio;
}

static int pci_ids(const struct ct_device_info *info)
{
    return (int)((info->device_id & 0xffff) << 16 | (info->vendor_id & 0xffff));
}

#define CONSTANT(name, value)                                                                                                              \
    static int read_##name(const struct ct_device_info *info)                                                                              \
    {                                                                                                                                      \
        (void)info;                                                                                                                        \
        return (value);                                                                                                                    \
    }
#define FIELD(name, member)                                                                                                                \
    static int read_##name(const struct ct_device_info *info)                                                                              \
    {                                                                                                                                      \
        return clamp_to_int(info->member);                                                                                                 \
    }
#define CAPABILITY(name, member)                                                                                                           \
    static int read_##name(const struct ct_device_info *info)                                                                              \
    {                                                                                                                                      \
        return (int)ct_compute_capability(info)->member;                                                                                   \
    }
#define RULE(name, function)                                                                                                               \
    static int read_##name(const struct ct_device_info *info)                                                                              \
    {                                                                                                                                      \
        return function(info);                                                                                                             \
    }
#include "device_attributes.def"

typedef int (*attribute_fn)(const struct ct_device_info *info);
static const attribute_fn attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
#define CONSTANT(name, value) [CU_DEVICE_ATTRIBUTE_##name] = read_##name,
#define FIELD(name, member) [CU_DEVICE_ATTRIBUTE_##name] = read_##name,
#define CAPABILITY(name, member) [CU_DEVICE_ATTRIBUTE_##name] = read_##name,
#define RULE(name, function) [CU_DEVICE_ATTRIBUTE_##name] = read_##name,
#include "device_attributes.def"
};

enum {
    CT_N_ATTRIBUTES = 0
#define CONSTANT(name, value) +1
#define FIELD(name, member) +1
#define CAPABILITY(name, member) +1
#define RULE(name, function) +1
#include "device_attributes.def"
};
_Static_assert(CT_N_ATTRIBUTES == CU_DEVICE_ATTRIBUTE_MAX - 1, "device_attributes.def has one row for each attribute from 1 on");

CUresult ct_device_attribute(const struct ct_device *device, CUdevice_attribute attribute, int *out)
{
    if ((unsigned)attribute >= CU_DEVICE_ATTRIBUTE_MAX || !attributes[attribute])
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown device attribute %d", (int)attribute);
    *out = attributes[attribute](&device->info);
    return CUDA_SUCCESS;
}

int ct_device_limit(const struct ct_device *device, CUdevice_attribute attribute)
{
    return attributes[attribute](&device->info);
}

void ct_uuid_text(const uint8_t uuid[16], char out[CT_UUID_CHARACTERS + 1])
{
    for (int i = 0; i < 16; i++)
        out += sprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

CUresult ct_device_lookup(CUdevice ordinal, struct ct_device **out)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (ordinal < 0 || (unsigned)ordinal >= ct_process.n_devices)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %d does not exist; there are %u", (int)ordinal, ct_process.n_devices);
    *out = &ct_process.devices[ordinal];
    return CUDA_SUCCESS;
}
