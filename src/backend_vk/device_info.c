/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of a physical device: struct ct_vk_physical for the backend, struct ct_device_info for core and the compiler.
 * They come from features.def, float_controls.def, extensions.def and, for what drivers do not report, drivers.def. */
#include "queue.h"
#include "vk.h"

#include "backend_vk/drivers/intel_topology.h"
#include "core/base/config.h"
#include "core/device/workarounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CUDA's limits of a grid; a grid beyond the device's limits is split. */
#define CUDA_MAX_GRID_X 0x7fffffffu
#define CUDA_MAX_GRID_YZ 65535u
#define CUDA_MAX_BLOCK_THREADS 1024u
#define UNKNOWN_GRANULE 65536u        /* granted by every driver that was tried */
#define MAX_PUSH_CONSTANT_BYTES 4096u /* more than any driver has; bounds a buffer on the stack in record.c */
#define GUESSED_UNITS_DISCRETE 32u
#define GUESSED_UNITS 8u
#define DEFAULT_QUEUES 8 /* as many connections as CUDA has by default */
#define VENDOR_INTEL 0x8086u
#define INTEL_REGISTER_WORDS 64 /* for each lane: 128 registers of 32 bytes for 16 lanes, or, from Xe2 on, of 64 bytes for 32 */
#define MESA_HONEYKRISP 26u     /* VK_DRIVER_ID_MESA_HONEYKRISP, which older headers lack */

struct properties {
    VkPhysicalDeviceProperties2 core;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceVulkan13Properties v13;
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT import;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv;
    VkPhysicalDeviceShaderCoreProperties2AMD amd;
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm;
    VkPhysicalDeviceDrmPropertiesEXT drm;
};

/* Values of columns of drivers.def. */
enum { FLUSHES = 2, SPLITS = 3, PROBED = 4, REFINED = 2, SLOW = 2, FIXED = PTX2SPV_OFFSETS_SHORT_FIXED };
enum {
    EX2 = PTX2SPV_NEAR_EX2,
    LG2 = PTX2SPV_NEAR_LG2,
    SIN = PTX2SPV_NEAR_SIN,
    RSQRT = PTX2SPV_NEAR_RSQRT,
    SQRT = PTX2SPV_NEAR_SQRT,
    MEASURED = PTX2SPV_NEAR_ALL + 1
};
enum { CT_VK_EXT_ANY = CT_VK_EXT_COUNT }; /* marks a row of drivers.def for all devices of a driver */

enum { FMA16, FMA32, FMA64, DIV32, DIV64, SQRT32, SQRT64, OPERATIONS };

static const struct driver_facts {
    VkDriverId id;
    unsigned mark;
    enum ct_address_rule rule;
    uint64_t granule;
    uint8_t exact[OPERATIONS], subnormals32, near, zeros, kernel, refresh, unroll, warps, inlines, offsets, dedicates, few_registers;
    uint32_t stack;
} drivers[] = {
#define DRIVER(id, mark, rule, granule, fma16, fma32, fma64, div32, div64, sqrt32, sqrt64, subnormals32, near, zeros, kernel, refresh,     \
               unroll, warps, inlines, offsets, dedicates, few_registers, stack)                                                           \
    {id,                                                                                                                                   \
     CT_VK_EXT_##mark,                                                                                                                     \
     rule,                                                                                                                                 \
     granule,                                                                                                                              \
     {fma16, fma32, fma64, div32, div64, sqrt32, sqrt64},                                                                                  \
     subnormals32,                                                                                                                         \
     near,                                                                                                                                 \
     zeros,                                                                                                                                \
     kernel,                                                                                                                               \
     refresh,                                                                                                                              \
     unroll,                                                                                                                               \
     warps,                                                                                                                                \
     inlines,                                                                                                                              \
     offsets,                                                                                                                              \
     dedicates,                                                                                                                            \
     few_registers,                                                                                                                        \
     stack},
#include "backend_vk/drivers/drivers.def"
};

static const struct driver_facts *find_driver(VkDriverId id, const bool has[CT_VK_EXT_COUNT])
{
    static const struct driver_facts unknown = {.rule = CT_ADDRESS_CHOSEN, .granule = UNKNOWN_GRANULE, .near = MEASURED};

    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (drivers[i].id == id && (drivers[i].mark == CT_VK_EXT_ANY || has[drivers[i].mark]))
            return &drivers[i];
    return &unknown;
}

/* Returns the driver's name in the table of workarounds. */
static enum ct_driver driver_of(VkDriverId id)
{
    switch ((unsigned)id) {
    case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
        return CT_DRIVER_NVIDIA;
    case VK_DRIVER_ID_MESA_LLVMPIPE:
        return CT_DRIVER_LAVAPIPE;
    case VK_DRIVER_ID_MESA_RADV:
    case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
    case VK_DRIVER_ID_MESA_TURNIP:
    case VK_DRIVER_ID_MESA_V3DV:
    case VK_DRIVER_ID_MESA_PANVK:
    case VK_DRIVER_ID_MESA_VENUS:
    case VK_DRIVER_ID_MESA_DOZEN:
    case VK_DRIVER_ID_MESA_NVK:
    case VK_DRIVER_ID_IMAGINATION_OPEN_SOURCE_MESA:
    case MESA_HONEYKRISP:
        return CT_DRIVER_MESA;
    default:
        return CT_DRIVER_OTHER_VULKAN;
    }
}

/* All extensible structures of Vulkan begin with the members of VkBaseOutStructure. */
static void link_property(struct properties *properties, void *block, VkStructureType type)
{
    VkBaseOutStructure *base = block;

    base->sType = type;
    base->pNext = properties->core.pNext;
    properties->core.pNext = base;
}

static void get_properties(VkPhysicalDevice handle, const bool has[CT_VK_EXT_COUNT], struct properties *out)
{
    memset(out, 0, sizeof *out);
    out->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    link_property(out, &out->v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    link_property(out, &out->v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    link_property(out, &out->v13, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
    if (has[CT_VK_EXT_PCI_BUS_INFO])
        link_property(out, &out->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
    if (has[CT_VK_EXT_EXTERNAL_MEMORY_HOST])
        link_property(out, &out->import, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
    if (has[CT_VK_EXT_SM_BUILTINS])
        link_property(out, &out->nv, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
    if (has[CT_VK_EXT_CORE_PROPERTIES2])
        link_property(out, &out->amd, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD);
    if (has[CT_VK_EXT_CORE_BUILTINS])
        link_property(out, &out->arm, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM);
    if (has[CT_VK_EXT_PHYSICAL_DEVICE_DRM])
        link_property(out, &out->drm, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT);
    vkGetPhysicalDeviceProperties2(handle, &out->core);
}

static void mark_extension(const char *name, bool has[CT_VK_EXT_COUNT])
{
    static const char *const names[] = {
#define EXTENSION(id, name, use) [CT_VK_EXT_##id] = name,
#include "extensions.def"
    };

    for (unsigned i = 0; i < CT_VK_EXT_COUNT; i++)
        if (!strcmp(name, names[i]))
            has[i] = true;
}

/* A validation layer that is older than an extension knows neither its structures nor its instructions, and reports every device or kernel
 * with them as invalid. The versions are those of Vulkan's headers in which the extensions appeared. */
static void leave_to_newer_layers(uint32_t layer_spec_version, bool has[CT_VK_EXT_COUNT])
{
    static const struct {
        unsigned extension;
        uint32_t version;
    } known_since[] = {
        {CT_VK_EXT_COOPERATIVE_MATRIX, VK_MAKE_API_VERSION(0, 1, 3, 255)},
        {CT_VK_EXT_MAXIMAL_RECONVERGENCE, VK_MAKE_API_VERSION(0, 1, 3, 276)},
        {CT_VK_EXT_SHADER_BFLOAT16, VK_MAKE_API_VERSION(0, 1, 4, 311)},
    };

    for (size_t i = 0; i < sizeof known_since / sizeof *known_since; i++)
        has[known_since[i].extension] &= layer_spec_version >= known_since[i].version;
}

static void find_extensions(const struct ct_vk_instance *instance, VkPhysicalDevice handle, bool has[CT_VK_EXT_COUNT])
{
    VkExtensionProperties *list;
    uint32_t count = 0;

    if (vkEnumerateDeviceExtensionProperties(handle, NULL, &count, NULL) != VK_SUCCESS || !(list = calloc(count + 1, sizeof *list)))
        return;
    if (vkEnumerateDeviceExtensionProperties(handle, NULL, &count, list) >= VK_SUCCESS) {
        for (uint32_t i = 0; i < count; i++)
            mark_extension(list[i].extensionName, has);
    }
    free(list);
    if (instance->validating)
        leave_to_newer_layers(instance->layer_spec_version, has);
    has[CT_VK_EXT_EXTERNAL_MEMORY_HOST] &= ct_config()->host_import;
}

static const char *missing_feature_or_null(const struct ct_vk_features *features)
{
#define REQUIRE(block, field)                                                                                                              \
    if (!features->block.field)                                                                                                            \
        return "feature " #field;
#define TARGET(block, field, member)
#define ENABLE(block, field)
#include "features.def"
    return NULL;
}

struct families {
    VkQueueFamilyProperties of[32];
    uint32_t count;
};

static void get_families(VkPhysicalDevice handle, struct families *out)
{
    out->count = sizeof out->of / sizeof *out->of;
    vkGetPhysicalDeviceQueueFamilyProperties(handle, &out->count, out->of);
}

/* The queues of a family that are used. CUDA documents 1 to 32 connections; what is outside of it is ignored. */
static uint32_t used_queues(uint32_t available)
{
    const int wanted = ct_config()->max_connections;
    const uint32_t most = wanted >= 1 && wanted <= CT_VK_MAX_QUEUES ? (uint32_t)wanted : DEFAULT_QUEUES;

    return available < most ? available : most;
}

/* Finds a compute family, if possible one without graphics: such families run beside a desktop and have longer time limits. */
static bool find_family(const struct families *families, struct ct_vk_physical *out)
{
    bool found = false;

    for (uint32_t i = 0; i < families->count; i++) {
        bool graphics = families->of[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;

        if (!(families->of[i].queueFlags & VK_QUEUE_COMPUTE_BIT) || !families->of[i].queueCount || (found && graphics))
            continue;
        out->family = i;
        out->n_queues = used_queues(families->of[i].queueCount);
        out->timestamp_bits = families->of[i].timestampValidBits;
        found = true;
        if (!graphics)
            break;
    }
    return found;
}

/* Finds a family that binds sparse memory, if possible the compute family in use. */
static void find_sparse_family(const struct families *families, struct ct_vk_physical *out)
{
    if (!out->features.core.features.sparseBinding)
        return;
    for (uint32_t i = 0; i < families->count; i++) {
        if (!(families->of[i].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT) || !families->of[i].queueCount ||
            (out->has_sparse_family && i != out->family))
            continue;
        out->sparse_family = i;
        out->has_sparse_family = true;
    }
}

/* Finds a family whose queues can only copy. */
static void find_refresh_family(const struct families *families, struct ct_vk_physical *out)
{
    const VkQueueFlags allowed = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;

    for (uint32_t i = 0; i < families->count && out->needs_host_store_refresh && !out->has_refresh_family; i++) {
        if (!(families->of[i].queueFlags & VK_QUEUE_TRANSFER_BIT) || (families->of[i].queueFlags & ~allowed) || !families->of[i].queueCount)
            continue;
        out->refresh_family = i;
        out->has_refresh_family = !out->has_sparse_family || out->sparse_family != i;
    }
}

static enum ct_device_kind device_kind(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return CT_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return CT_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return CT_DEVICE_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return CT_DEVICE_CPU;
    default: /* OTHER, and values newer than the headers */
        return CT_DEVICE_OTHER;
    }
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A driver without an entry in the table must support maximal reconvergence, and pass the probe afterwards. */
static bool takes_native_warps(const struct ct_vk_physical *physical, const struct driver_facts *driver, const struct ct_device_info *info)
{
    if (info->target.subgroup_size < 32 || info->kind == CT_DEVICE_CPU)
        return false;
    return driver->warps || physical->features.reconvergence.shaderMaximalReconvergence;
}

static bool is_exact(const struct driver_facts *driver, unsigned operation, const struct ct_device_info *info)
{
    const uint8_t fact = driver->exact[operation];

    return fact == 1 || fact == FLUSHES || (fact == PROBED && info->unproven_fma);
}

/* VK_KHR_shader_fma promises one rounding. Whether subnormals are kept is a matter of the mode; the driver's facts tell it where there is none. */
static void take_promised_fma(struct ptx2spv_target *target)
{
    target->exact_fma16 |= target->fused16 && target->float16;
    target->exact_fma64 |= target->fused64;
    if (target->fused32 && target->denorm_preserve32) {
        target->exact_fma32 = 1;
        target->splits_fma32 = 0;
    }
}

static void fill_target(const struct ct_vk_physical *physical, const struct properties *properties, const struct driver_facts *driver,
                        const struct ct_device_info *info, struct ptx2spv_target *target)
{
    const VkPhysicalDeviceLimits *limits = &properties->core.properties.limits;

    target->dialect = PTX2SPV_VULKAN;
    target->workarounds = info->workarounds & PTX2SPV_WORKAROUNDS;
    target->subgroup_size = physical->require_subgroup_32 ? 32 : properties->v11.subgroupSize;
    target->warp_form = takes_native_warps(physical, driver, info) ? PTX2SPV_WARP_NATIVE : PTX2SPV_WARP_COLLECTIVE;
    target->push_constant_bytes = min_u32(limits->maxPushConstantsSize, MAX_PUSH_CONSTANT_BYTES);
    target->shared_bytes = limits->maxComputeSharedMemorySize;
    target->max_block_threads = info->max_block_threads;
#define REQUIRE(block, field)
#define TARGET(block, field, member) target->member = physical->features.block.field != 0;
#define ENABLE(block, field)
#include "features.def"
#define FLOAT_CONTROL(member, property) target->member = properties->v12.property != 0;
#include "float_controls.def"
    if (properties->v12.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE)
        target->denorm_flush32 = 0; /* subnormals of f16 and f64 must be kept */
    /* Without f64 the compiler's sequence is of integers, ten times as slow. GPUs that lack f64 have a fused multiply-add of f32: the probe tells whether
     * the driver uses it. */
    target->exact_fma16 = driver->exact[FMA16] && target->float16;
    target->exact_fma32 = is_exact(driver, FMA32, info) || (!target->float64 && info->kind != CT_DEVICE_CPU);
    target->splits_fma32 = driver->exact[FMA32] == SPLITS;
    target->fma32_flushes = target->guards_fma32 = driver->exact[FMA32] == FLUSHES;
    target->exact_fma64 = is_exact(driver, FMA64, info);
    take_promised_fma(target);
    target->exact_div32 = driver->exact[DIV32];
    target->exact_div64 = driver->exact[DIV64];
    target->exact_sqrt32 = driver->exact[SQRT32] == 1;
    target->refined_sqrt32 = driver->exact[SQRT32] == REFINED;
    target->exact_sqrt64 = driver->exact[SQRT64] != 0;
    target->refined_roots64 = driver->exact[SQRT64] == SLOW;
    target->keeps_subnormals32 = target->denorm_preserve32 || driver->subnormals32;
    target->near_functions = driver->near & PTX2SPV_NEAR_ALL;
    target->unroll_hint = driver->unroll;
    target->exact_zeros = driver->zeros;
    target->inlines = driver->inlines;
    target->short_offsets = driver->offsets;
    target->register_words = driver->few_registers ? INTEL_REGISTER_WORDS : 0;
    target->vectors = info->kind == CT_DEVICE_CPU ? PTX2SPV_VECTORS_SPLIT : PTX2SPV_VECTORS_WHOLE;
}

/* Used if no source reports a number. Programs launch a few blocks per unit, or loop over their data with that many: too few leave most of
 * the device idle, too many cost almost nothing. So these are the numbers of larger devices of each kind. */
static uint32_t guess_compute_units(enum ct_device_kind kind)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);

    switch (kind) {
    case CT_DEVICE_CPU:
        return processors > 0 ? (uint32_t)processors : 1;
    case CT_DEVICE_DISCRETE:
        return GUESSED_UNITS_DISCRETE;
    case CT_DEVICE_INTEGRATED:
    case CT_DEVICE_VIRTUAL:
    case CT_DEVICE_OTHER:
        break;
    }
    return GUESSED_UNITS;
}

static uint32_t count_compute_units(const struct properties *properties, enum ct_device_kind kind)
{
    uint32_t reported = properties->nv.shaderSMCount;

    reported = reported ? reported : properties->amd.activeComputeUnitCount;
    reported = reported ? reported : properties->arm.shaderCoreCount;
    if (!reported && properties->drm.hasRender && properties->core.properties.vendorID == VENDOR_INTEL)
        reported = ct_vk_intel_subslices(properties->drm.renderMajor, properties->drm.renderMinor);
    return reported ? reported : guess_compute_units(kind);
}

static uint32_t largest_local_heap(const VkPhysicalDeviceMemoryProperties *memory)
{
    uint32_t best = 0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
        if ((memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && memory->memoryHeaps[i].size > bytes) {
            best = i;
            bytes = memory->memoryHeaps[i].size;
        }
    }
    return best;
}

static void fill_identity(const struct properties *properties, const bool has[CT_VK_EXT_COUNT], struct ct_device_info *info)
{
    const VkPhysicalDeviceProperties *core = &properties->core.properties;

    snprintf(info->name, sizeof info->name, "%s", core->deviceName);
    snprintf(info->driver, sizeof info->driver, "%.120s %.120s", properties->v12.driverName, properties->v12.driverInfo);
    info->kind = device_kind(core->deviceType);
    if (properties->v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE)
        info->thread_library = "libvulkan_lvp.so";
    info->vendor_id = core->vendorID;
    info->device_id = core->deviceID;
    memcpy(info->uuid, properties->v11.deviceUUID, sizeof info->uuid);
    info->has_luid = properties->v11.deviceLUIDValid;
    if (info->has_luid) {
        memcpy(info->luid, properties->v11.deviceLUID, sizeof info->luid);
        info->node_mask = properties->v11.deviceNodeMask;
    }
    info->has_pci = has[CT_VK_EXT_PCI_BUS_INFO];
    info->pci_domain = properties->pci.pciDomain;
    info->pci_bus = properties->pci.pciBus;
    info->pci_device = properties->pci.pciDevice;
}

static struct ct_image_limits image_limits(const struct ct_vk_physical *physical, const VkPhysicalDeviceLimits *limits)
{
    return (struct ct_image_limits){
        .side_1d = limits->maxImageDimension1D,
        .side_2d = limits->maxImageDimension2D,
        .side_3d = limits->maxImageDimension3D,
        .side_cube = limits->maxImageDimensionCube,
        .layers = limits->maxImageArrayLayers,
        .cube_layers = physical->features.core.features.imageCubeArray ? limits->maxImageArrayLayers / 6 * 6 : 0,
    };
}

static void fill_capabilities(const struct ct_vk_physical *physical, const struct properties *properties, struct ct_device_info *info)
{
    const VkPhysicalDeviceLimits *limits = &properties->core.properties.limits;
    uint64_t max_buffer = properties->v13.maxBufferSize, max_memory = properties->v11.maxMemoryAllocationSize;
    uint32_t threads = min_u32(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]);

    info->memory_bytes = physical->memory.memoryHeaps[physical->local_heap].size;
    info->max_allocation_bytes =
        max_memory < max_buffer ? max_memory : max_buffer; /* address_rule.c raises it if pieces can be concatenated */
    info->compute_units = count_compute_units(properties, info->kind);
    info->max_block_threads = min_u32(threads, CUDA_MAX_BLOCK_THREADS);
    info->shared_bytes = limits->maxComputeSharedMemorySize;
    info->max_grid[0] = CUDA_MAX_GRID_X;
    info->max_grid[1] = info->max_grid[2] = CUDA_MAX_GRID_YZ;
    info->concurrent_kernels = physical->n_queues > 1;
    info->copy_queues = physical->n_queues > 1 ? 1 : 0; /* copies of one stream run beside kernels of another */
    info->stream_priorities = ct_vk_queue_is_urgent(physical->n_queues - 1, physical->n_queues) && limits->discreteQueuePriorities > 1;
    info->integrated_memory = info->kind == CT_DEVICE_INTEGRATED || info->kind == CT_DEVICE_CPU;
    info->host_visible_device_memory = info->integrated_memory;
    info->sparse = physical->features.core.features.sparseBinding && physical->features.core.features.sparseResidencyBuffer;
    info->external_memory_fd = physical->has[CT_VK_EXT_EXTERNAL_MEMORY_FD];
    info->external_semaphore_fd =
        physical->has[CT_VK_EXT_EXTERNAL_SEMAPHORE_FD] && ct_vk_imports_semaphores(physical, VK_SEMAPHORE_TYPE_BINARY);
    info->external_timeline_fd = info->external_semaphore_fd && ct_vk_imports_semaphores(physical, VK_SEMAPHORE_TYPE_TIMELINE);
    info->dma_buf = physical->has[CT_VK_EXT_EXTERNAL_MEMORY_DMA_BUF];
    info->timestamps = physical->timestamp_bits != 0;
    info->timestamp_period_ns = limits->timestampPeriod;
    info->images = image_limits(physical, limits);
    info->opaque_images = true;
}

/* Whether kernels can read textures through descriptors that change while other work runs. */
static bool has_texture_descriptors(const struct ct_vk_physical *physical, const struct properties *properties)
{
    const VkPhysicalDeviceVulkan12Features *v12 = &physical->features.v12;
    const VkPhysicalDeviceVulkan12Properties *most = &properties->v12;
    const uint32_t limits[] = {most->maxPerStageDescriptorUpdateAfterBindSamplers, most->maxPerStageDescriptorUpdateAfterBindSampledImages,
                               most->maxDescriptorSetUpdateAfterBindSamplers, most->maxDescriptorSetUpdateAfterBindSampledImages,
                               most->maxPerStageUpdateAfterBindResources};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i] / PTX2SPV_IMAGE_SHAPES < PTX2SPV_IMAGE_DESCRIPTORS)
            return false;
    return physical->features.core.features.shaderSampledImageArrayDynamicIndexing && v12->shaderSampledImageArrayNonUniformIndexing &&
           v12->descriptorBindingSampledImageUpdateAfterBind && v12->descriptorBindingUpdateUnusedWhilePending &&
           v12->descriptorBindingPartiallyBound && properties->core.properties.limits.subTexelPrecisionBits >= 8;
}

static void fill_physical(const struct properties *properties, struct ct_vk_physical *out)
{
    const VkPhysicalDeviceVulkan13Properties *v13 = &properties->v13;

    vkGetPhysicalDeviceMemoryProperties(out->handle, &out->memory);
    out->local_heap = largest_local_heap(&out->memory);
    for (int i = 0; i < 3; i++)
        out->max_group_count[i] = properties->core.properties.limits.maxComputeWorkGroupCount[i];
    memcpy(out->cache_uuid, properties->core.properties.pipelineCacheUUID, sizeof out->cache_uuid);
    out->driver_version = properties->core.properties.driverVersion;
    out->import_alignment = properties->import.minImportedHostPointerAlignment;
    out->address_capture_replay = out->features.v12.bufferDeviceAddressCaptureReplay;
    out->require_subgroup_32 = out->features.v13.subgroupSizeControl && v13->minSubgroupSize <= 32 && v13->maxSubgroupSize >= 32 &&
                               (v13->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
}

bool ct_vk_device_examine(const struct ct_vk_instance *instance, VkPhysicalDevice handle, struct ct_vk_physical *out,
                          struct ct_device_info *out_info, const char **out_reason)
{
    struct properties properties;
    const struct driver_facts *driver;
    VkPhysicalDeviceProperties core;
    struct families families;

    memset(out, 0, sizeof *out);
    memset(out_info, 0, sizeof *out_info);
    out->handle = handle;
    vkGetPhysicalDeviceProperties(handle, &core);
    if (core.apiVersion < VK_API_VERSION_1_3) {
        *out_reason = "Vulkan 1.3";
        return false;
    }
    get_families(handle, &families);
    if (!find_family(&families, out)) {
        *out_reason = "a compute queue";
        return false;
    }
    find_extensions(instance, handle, out->has);
    ct_vk_features_init(&out->features, out->has);
    vkGetPhysicalDeviceFeatures2(handle, &out->features.core);
    out->has[CT_VK_EXT_DEVICE_FAULT] &= out->features.fault.deviceFault; /* without the feature its function must not be called */
    if ((*out_reason = missing_feature_or_null(&out->features)))
        return false;
    get_properties(handle, out->has, &properties);
    fill_physical(&properties, out);
    out->max_memory_bytes = properties.v11.maxMemoryAllocationSize;
    driver = find_driver(properties.v12.driverID, out->has);
    out->address_granule = driver->granule;
    out_info->driver_id = driver_of(properties.v12.driverID);
    out_info->workarounds = ct_workarounds_of(out_info->driver_id, properties.v12.driverInfo);
    out_info->import_failures_are_sticky = (out_info->workarounds & CT_WORKAROUND(STICKY_IMPORT_FAILURES)) != 0;
    out_info->copies_by_kernel = driver->kernel;
    out_info->stack_bytes = driver->stack;
    out->needs_host_store_refresh = driver->refresh || ct_config()->host_store_refresh;
    out->raw_aliases = (out_info->workarounds & CT_WORKAROUND(COMPRESSED_SPARSE)) != 0;
    out->dedicates = driver->dedicates || out->raw_aliases;
    out->subgroups_as_needed = driver->few_registers;
    fill_identity(&properties, out->has, out_info);
    fill_capabilities(out, &properties, out_info);
    out_info->unproven_fma = driver->exact[FMA32] == PROBED && (out_info->workarounds & CT_WORKAROUND(CONSTANT_FACTORS));
    fill_target(out, &properties, driver, out_info, &out_info->target);
    out_info->unproven_warps = !driver->warps;
    out_info->unproven_functions = (driver->near & MEASURED) != 0;
    ct_vk_find_matrices(instance, out, &out_info->target);
    out_info->target.sampled_images = has_texture_descriptors(out, &properties);
    out_info->target.images_take_any_place = out_info->driver_id == CT_DRIVER_NVIDIA; /* its texture units are CUDA's */
    out_info->exact_normalized = out_info->driver_id == CT_DRIVER_NVIDIA;
    find_sparse_family(&families, out);
    find_refresh_family(&families, out);
    out_info->sparse_images = out_info->sparse && out->has_sparse_family && out->features.core.features.sparseResidencyImage2D;
    out->memory_missing = !out->memory.memoryTypeCount;
    ct_vk_address_rule_probe(out, out_info, driver->rule);
    if (out->memory_missing)
        *out_reason = "memory";
    return !out->memory_missing;
}
