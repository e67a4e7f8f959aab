/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan backend's pipelines in the disk cache. lavapipe's pipeline caches are empty, so that this test puts functions into the device's table
 * that behave as those of a driver whose caches are not: what it "compiled" depends on nothing, what it gets back is compared. With the argument
 * "real" the driver is as it is, and says itself whether it found its code in the cache: tests/judge has one that compiles without a GPU. */
#include "backend_vk/queue.h"
#include "core/base/disk_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOAD_BYTES 1000

static const struct ct_backend *const vk = &ct_backend_vk;
static struct ct_backend_device *device;
static struct VolkDeviceTable real;
static char folder[64];

/* ---- the driver ---- */

static struct {
    VkPipelineCacheHeaderVersionOne header;
    unsigned char payload[PAYLOAD_BYTES];
} content;
static size_t content_bytes;
static VkResult create_result, get_result;
static unsigned n_created, n_asked, n_compiled;
static size_t initial_bytes; /* of the last cache */

static VKAPI_ATTR VkResult VKAPI_CALL create_cache(VkDevice handle, const VkPipelineCacheCreateInfo *info,
                                                   const VkAllocationCallbacks *allocator, VkPipelineCache *out)
{
    const VkPipelineCacheCreateInfo plain = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};

    n_created++;
    initial_bytes = info->initialDataSize;
    if (initial_bytes)
        assert_true(initial_bytes == content_bytes && !memcmp(info->pInitialData, &content, content_bytes));
    return create_result == VK_SUCCESS ? real.vkCreatePipelineCache(handle, &plain, allocator, out) : create_result;
}

static VKAPI_ATTR VkResult VKAPI_CALL get_data(VkDevice handle, VkPipelineCache cache, size_t *size, void *data)
{
    (void)handle, (void)cache;
    n_asked++;
    if (data)
        memcpy(data, &content, *size < content_bytes ? *size : content_bytes);
    *size = content_bytes;
    return get_result;
}

static VKAPI_ATTR VkResult VKAPI_CALL compile(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                              const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *allocator,
                                              VkPipeline *out)
{
    n_compiled++;
    return real.vkCreateComputePipelines(handle, cache, count, infos, allocator, out);
}

static void fill_content(void)
{
    content.header = (VkPipelineCacheHeaderVersionOne){.headerSize = sizeof content.header,
                                                       .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                                                       .vendorID = device->info->vendor_id,
                                                       .deviceID = device->info->device_id};
    memcpy(content.header.pipelineCacheUUID, device->physical->cache_uuid, VK_UUID_SIZE);
    for (unsigned i = 0; i < PAYLOAD_BYTES; i++)
        content.payload[i] = (unsigned char)(i * 37);
    content_bytes = sizeof content;
}

/* ---- kernels ---- */

static struct ptx2spv_kernel translate(const char *name)
{
    char text[256];
    struct ptx2spv_module *module;
    struct ptx2spv_kernel kernel;

    snprintf(text, sizeof text, ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry %s()\n{\n    ret;\n}\n", name);
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &device->info->target, NULL, &kernel), PTX2SPV_OK);
    ptx2spv_module_destroy(module);
    return kernel;
}

static CUresult prepare(unsigned threads)
{
    struct ptx2spv_kernel kernel = translate("nothing");
    struct ct_launch launch = {.grid = {1, 1, 1}, .block = {threads, 1, 1}};
    struct ct_kernel_variant *variant;
    CUresult r;

    assert_int_equal(vk->kernels->create(device, "nothing", &kernel, &launch.kernel), CUDA_SUCCESS);
    ptx2spv_kernel_finish(&kernel);
    n_created = n_asked = n_compiled = 0;
    initial_bytes = 0;
    r = vk->kernels->prepare(&launch, &variant);
    if (r == CUDA_SUCCESS)
        vk->kernels->variant_release(variant);
    vk->kernels->destroy(launch.kernel);
    return r;
}

static unsigned count_files(void)
{
    char path[80];
    const struct dirent *entry;
    unsigned count = 0;
    DIR *listing;

    snprintf(path, sizeof path, "%s/cuttle", folder);
    listing = opendir(path);
    while (listing && (entry = readdir(listing)))
        count += strncmp(entry->d_name, "pipeline-", 9) == 0;
    if (listing)
        closedir(listing);
    return count;
}

/* ---- tests ---- */

static void what_was_compiled_comes_back(void **state)
{
    (void)state;
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(n_created, 1);
    assert_int_equal(initial_bytes, 0);
    assert_int_equal(count_files(), 1);
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(initial_bytes, content_bytes);
    assert_int_equal(n_compiled, 1);
    assert_int_equal(n_asked, 1); /* for the size, which has not changed */
    assert_int_equal(count_files(), 1);
}

static void other_pipelines_have_other_entries(void **state)
{
    (void)state;
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(prepare(64), CUDA_SUCCESS);
    assert_int_equal(initial_bytes, 0);
    assert_int_equal(count_files(), 2);
}

static void the_header_is_checked(void **state)
{
    static const size_t offsets[] = {
        offsetof(VkPipelineCacheHeaderVersionOne, headerSize), offsetof(VkPipelineCacheHeaderVersionOne, headerVersion),
        offsetof(VkPipelineCacheHeaderVersionOne, vendorID), offsetof(VkPipelineCacheHeaderVersionOne, deviceID),
        offsetof(VkPipelineCacheHeaderVersionOne, pipelineCacheUUID) + VK_UUID_SIZE - 1};

    (void)state;
    for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        ((unsigned char *)&content)[offsets[i]] ^= 1;
        assert_int_equal(prepare(32 + i), CUDA_SUCCESS);
        assert_int_equal(count_files(), i + 1);
        assert_int_equal(prepare(32 + i), CUDA_SUCCESS);
        assert_int_equal(initial_bytes, 0);
        ((unsigned char *)&content)[offsets[i]] ^= 1;
    }
}

static void empty_caches_are_not_stored(void **state)
{
    (void)state;
    content_bytes = sizeof content.header;
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(n_created, 1);
    assert_int_equal(prepare(64), CUDA_SUCCESS);
    assert_int_equal(n_created, 0); /* the driver is not asked again */
    assert_int_equal(n_asked, 0);
    assert_int_equal(count_files(), 0);
}

static void a_driver_that_fails_still_compiles(void **state)
{
    (void)state;
    create_result = VK_ERROR_OUT_OF_HOST_MEMORY;
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(n_compiled, 1);
    assert_int_equal(count_files(), 0);
    create_result = VK_SUCCESS;
    get_result = VK_ERROR_OUT_OF_HOST_MEMORY;
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(count_files(), 0);
    get_result = VK_SUCCESS;
    assert_int_equal(prepare(32), CUDA_SUCCESS);
    assert_int_equal(count_files(), 1);
}

/* ---- a real driver, which only compiles (RADV without a GPU) ---- */

static VkPipelineCreationFeedbackFlags feedback_flags; /* of the last compilation */

static VKAPI_ATTR VkResult VKAPI_CALL compile_with_feedback(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                                            const VkComputePipelineCreateInfo *infos,
                                                            const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    VkPipelineCreationFeedback feedback = {0}, stage = {0};
    VkPipelineCreationFeedbackCreateInfo request = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
                                                    .pPipelineCreationFeedback = &feedback,
                                                    .pipelineStageCreationFeedbackCount = 1,
                                                    .pPipelineStageCreationFeedbacks = &stage};
    VkComputePipelineCreateInfo info = *infos;
    VkResult result;

    assert_true(count == 1 && !info.pNext);
    info.pNext = &request;
    result = real.vkCreateComputePipelines(handle, cache, 1, &info, allocator, out);
    feedback_flags = feedback.flags;
    return result;
}

static void a_real_driver_finds_its_code(void **state)
{
    (void)state;
    for (unsigned threads = 32; threads <= 64; threads += 32) {
        assert_int_equal(prepare(threads), CUDA_SUCCESS);
        assert_true(feedback_flags & VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT);
        assert_false(feedback_flags & VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT);
        assert_int_equal(count_files(), threads / 32);
        assert_int_equal(prepare(threads), CUDA_SUCCESS);
        assert_true(feedback_flags & VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT);
        assert_int_equal(count_files(), threads / 32);
    }
}

static int setup_real(void **state)
{
    const struct ct_vk_instance *instance = ct_vk_instance_get();

    (void)state;
    strcpy(folder, "/tmp/cuttle-pipelines-XXXXXX");
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0 || !instance->n_devices ||
        ct_vk_device_open_compiler(&instance->physical[0], &instance->infos[0], &device) != CUDA_SUCCESS)
        return -1;
    real = device->vk;
    device->capture_statistics = false; /* such pipelines are not kept */
    device->vk.vkCreateComputePipelines = compile_with_feedback;
    return 0;
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/cuttle-pipelines-XXXXXX");
    if (!mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) != 0 || vk->device_open(0, &device) != CUDA_SUCCESS)
        return -1;
    real = device->vk;
    device->vk.vkCreatePipelineCache = create_cache;
    device->vk.vkGetPipelineCacheData = get_data;
    device->vk.vkCreateComputePipelines = compile;
    create_result = get_result = VK_SUCCESS;
    fill_content();
    return 0;
}

static int teardown(void **state)
{
    char command[96];

    (void)state;
    device->vk = real;
    vk->device_close(device);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest real_tests[] = {cmocka_unit_test_setup_teardown(a_real_driver_finds_its_code, setup_real, teardown)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_compiled_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(other_pipelines_have_other_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(the_header_is_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_caches_are_not_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_fails_still_compiles, setup, teardown),
    };
    const struct ct_device_info *infos;
    unsigned count;

    unsetenv("CUDA_CACHE_DISABLE");
    unsetenv("CUDA_CACHE_PATH");
    unsetenv("CUDA_CACHE_MAXSIZE");
    if (argc > 1 && !strcmp(argv[1], "real"))
        return cmocka_run_group_tests(real_tests, NULL, NULL);
    if (vk->enumerate(&infos, &count) != CUDA_SUCCESS || !count)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
