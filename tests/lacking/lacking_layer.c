/* SPDX-License-Identifier: Apache-2.0 */
/* A layer that takes abilities from a device, for tests of what Cuttle does on drivers that have less than lavapipe. LACKING_LAYER lists them, with
 * spaces between: names of features or of extensions, and limits as NAME=VALUE. At most maxMemoryAllocationCount allocations exist at a time. What
 * it takes away is printed, so that a test sees that the device had it. */
#define FUNCTIONS(F)                                                                                                                       \
    F(vkEnumerateDeviceExtensionProperties)                                                                                                \
    F(vkGetPhysicalDeviceFeatures2)                                                                                                        \
    F(vkGetPhysicalDeviceProperties)                                                                                                       \
    F(vkGetPhysicalDeviceProperties2)                                                                                                      \
    F(vkAllocateMemory)                                                                                                                    \
    F(vkFreeMemory)
#include "../vulkan_layer.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- what is lacking ---- */

/* Of the word in LACKING_LAYER, its value behind "=" or "1"; NULL if it is not listed. */
static const char *find_word(const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = getenv("LACKING_LAYER"); at; at = strchr(at, ' ')) {
        at += strspn(at, " ");
        if (strncmp(at, name, length))
            continue;
        if (at[length] == '=')
            return at + length + 1;
        if (!at[length] || at[length] == ' ')
            return "1";
    }
    return NULL;
}

static void report(const char *name)
{
    fprintf(stderr, "lacking_layer: %s\n", name);
}

/* The value of a limit in LACKING_LAYER; UINT32_MAX: it is not listed. */
static uint32_t most_of(const char *name)
{
    const char *word = find_word(name);

    return word ? (uint32_t)strtoul(word, NULL, 10) : UINT32_MAX;
}

static void limit(const char *name, uint32_t *value)
{
    const uint32_t most = most_of(name);

    if (*value <= most)
        return;
    *value = most;
    report(name);
}

/* ---- features ---- */

#define CORE VkPhysicalDeviceFeatures2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2
#define V11 VkPhysicalDeviceVulkan11Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES
#define V12 VkPhysicalDeviceVulkan12Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES
#define V13 VkPhysicalDeviceVulkan13Features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES
#define ROW(...) ROW_(__VA_ARGS__)
#define ROW_(type, id, member, name) {name, id, offsetof(type, member)}

static const struct feature {
    const char *name;
    VkStructureType structure;
    size_t offset;
} features[] = {
    ROW(CORE, features.shaderFloat64, "shaderFloat64"),
    ROW(CORE, features.shaderInt64, "shaderInt64"),
    ROW(CORE, features.shaderInt16, "shaderInt16"),
    ROW(CORE, features.sparseBinding, "sparseBinding"),
    ROW(CORE, features.imageCubeArray, "imageCubeArray"),
    ROW(CORE, features.textureCompressionBC, "textureCompressionBC"),
    ROW(CORE, features.shaderSampledImageArrayDynamicIndexing, "shaderSampledImageArrayDynamicIndexing"),
    ROW(V11, storageBuffer16BitAccess, "storageBuffer16BitAccess"),
    ROW(V12, shaderFloat16, "shaderFloat16"),
    ROW(V12, shaderInt8, "shaderInt8"),
    ROW(V12, storageBuffer8BitAccess, "storageBuffer8BitAccess"),
    ROW(V12, shaderBufferInt64Atomics, "shaderBufferInt64Atomics"),
    ROW(V12, shaderSharedInt64Atomics, "shaderSharedInt64Atomics"),
    ROW(V12, bufferDeviceAddressCaptureReplay, "bufferDeviceAddressCaptureReplay"),
    ROW(V12, vulkanMemoryModelDeviceScope, "vulkanMemoryModelDeviceScope"),
    ROW(V12, descriptorBindingSampledImageUpdateAfterBind, "descriptorBindingSampledImageUpdateAfterBind"),
    ROW(V12, scalarBlockLayout, "scalarBlockLayout"),
    ROW(V13, subgroupSizeControl, "subgroupSizeControl"),
    ROW(V13, computeFullSubgroups, "computeFullSubgroups"),
};

static void take(VkBool32 *feature, const char *name)
{
    if (*feature)
        report(name);
    *feature = VK_FALSE;
}

static VKAPI_ATTR void VKAPI_CALL get_features2(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out)
{
    find_link(physical, false).vkGetPhysicalDeviceFeatures2(physical, out);
    for (VkBaseOutStructure *block = (VkBaseOutStructure *)out; block; block = block->pNext)
        for (size_t i = 0; i < sizeof features / sizeof *features; i++)
            if (block->sType == features[i].structure && find_word(features[i].name))
                take((VkBool32 *)((char *)block + features[i].offset), features[i].name);
}

/* ---- extensions ---- */

static VKAPI_ATTR VkResult VKAPI_CALL enumerate_extensions(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                                                           VkExtensionProperties *out)
{
    const struct link link = find_link(physical, false);
    VkExtensionProperties *all;
    uint32_t n_all = 0, n = 0;

    if (layer)
        return link.vkEnumerateDeviceExtensionProperties(physical, layer, count, out);
    link.vkEnumerateDeviceExtensionProperties(physical, NULL, &n_all, NULL);
    all = calloc(n_all + 1, sizeof *all);
    if (!all)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    link.vkEnumerateDeviceExtensionProperties(physical, NULL, &n_all, all);
    for (uint32_t i = 0; i < n_all; i++) {
        if (find_word(all[i].extensionName)) {
            report(all[i].extensionName);
            continue;
        }
        if (out && n < *count)
            out[n] = all[i];
        n++;
    }
    free(all);
    if (out && n > *count)
        return VK_INCOMPLETE;
    *count = n;
    return VK_SUCCESS;
}

/* ---- limits ---- */

static void lower_limits(VkPhysicalDeviceLimits *limits)
{
    limit("maxPushConstantsSize", &limits->maxPushConstantsSize);
    limit("maxComputeSharedMemorySize", &limits->maxComputeSharedMemorySize);
    limit("maxMemoryAllocationCount", &limits->maxMemoryAllocationCount);
    limit("maxComputeWorkGroupInvocations", &limits->maxComputeWorkGroupInvocations);
    for (unsigned i = 0; i < 2; i++) /* a line of such a block */
        limit("maxComputeWorkGroupInvocations", &limits->maxComputeWorkGroupSize[i]);
}

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties *out)
{
    find_link(physical, false).vkGetPhysicalDeviceProperties(physical, out);
    lower_limits(&out->limits);
}

static VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out)
{
    find_link(physical, false).vkGetPhysicalDeviceProperties2(physical, out);
    lower_limits(&out->properties.limits);
}

static atomic_uint allocations;

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *allocator, VkDeviceMemory *out)
{
    const uint32_t most = most_of("maxMemoryAllocationCount");
    VkResult result;

    if (atomic_fetch_add(&allocations, 1) >= most) {
        atomic_fetch_sub(&allocations, 1);
        return VK_ERROR_TOO_MANY_OBJECTS;
    }
    result = find_link(device, false).vkAllocateMemory(device, info, allocator, out);
    if (result != VK_SUCCESS)
        atomic_fetch_sub(&allocations, 1);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *allocator)
{
    if (memory)
        atomic_fetch_sub(&allocations, 1);
    find_link(device, false).vkFreeMemory(device, memory, allocator);
}

static const struct layer_function layer_functions[] = {
    {"vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction)enumerate_extensions, false},
    {"vkGetPhysicalDeviceFeatures2", (PFN_vkVoidFunction)get_features2, false},
    {"vkGetPhysicalDeviceProperties", (PFN_vkVoidFunction)get_properties, false},
    {"vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)get_properties2, false},
    {"vkAllocateMemory", (PFN_vkVoidFunction)allocate_memory, true},
    {"vkFreeMemory", (PFN_vkVoidFunction)free_memory, true},
    {0},
};
