/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan backend's pipelines of a kernel: those of the block shapes that were launched last are kept, others live as long as they are used. */
#include "backend_vk/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 64 /* MOST_VARIANTS in kernel.c */

static const struct ct_backend *const vk = &ct_backend_vk;
static struct ct_backend_device *device;
static struct VolkDeviceTable real;
static struct ct_kernel_image *image;
static unsigned n_compiled, n_destroyed;

static VKAPI_ATTR VkResult VKAPI_CALL compile(VkDevice handle, VkPipelineCache cache, uint32_t count,
                                              const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *allocator,
                                              VkPipeline *out)
{
    n_compiled++;
    return real.vkCreateComputePipelines(handle, cache, count, infos, allocator, out);
}

static VKAPI_ATTR void VKAPI_CALL destroy(VkDevice handle, VkPipeline pipeline, const VkAllocationCallbacks *allocator)
{
    n_destroyed++;
    real.vkDestroyPipeline(handle, pipeline, allocator);
}

static int set_up(void **state)
{
    static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";
    struct ptx2spv_module *module;
    struct ptx2spv_kernel kernel;

    (void)state;
    if (vk->device_open(0, &device) != CUDA_SUCCESS)
        return -1;
    real = device->vk;
    device->vk.vkCreateComputePipelines = compile;
    device->vk.vkDestroyPipeline = destroy;
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &device->info->target, NULL, &kernel), PTX2SPV_OK);
    ptx2spv_module_destroy(module);
    assert_int_equal(vk->kernels->create(device, "nothing", &kernel, &image), CUDA_SUCCESS);
    ptx2spv_kernel_finish(&kernel);
    n_compiled = n_destroyed = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    vk->kernels->destroy(image);
    vk->device_close(device); /* the last reference may be that of work whose end nobody has noticed */
    assert_int_equal(n_destroyed, n_compiled);
    return 0;
}

static struct ct_launch launch_of(unsigned threads)
{
    return (struct ct_launch){.kernel = image, .grid = {1, 1, 1}, .block = {threads, 1, 1}};
}

static struct ct_kernel_variant *prepare(unsigned threads)
{
    const struct ct_launch launch = launch_of(threads);
    struct ct_kernel_variant *variant;

    assert_int_equal(vk->kernels->prepare(&launch, &variant), CUDA_SUCCESS);
    return variant;
}

static void touch(unsigned threads)
{
    vk->kernels->variant_release(prepare(threads));
}

static void the_last_are_kept(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= KEPT; threads++)
        touch(threads);
    for (unsigned threads = 1; threads <= KEPT; threads++)
        touch(threads);
    assert_int_equal(n_compiled, KEPT);
    assert_int_equal(n_destroyed, 0);
    touch(KEPT + 1); /* in the place of 1, which was not used for the longest time */
    touch(2);
    assert_int_equal(n_compiled, KEPT + 1);
    assert_int_equal(n_destroyed, 1);
    touch(1);
    assert_int_equal(n_compiled, KEPT + 2);
    assert_int_equal(n_destroyed, 2);
}

static void others_live_while_they_are_held(void **state)
{
    struct ct_kernel_variant *held = prepare(1);

    (void)state;
    for (unsigned threads = 2; threads <= 2 * KEPT; threads++)
        touch(threads);
    assert_int_equal(n_destroyed, KEPT - 1);
    vk->kernels->variant_release(held);
    assert_int_equal(n_destroyed, KEPT);
}

/* All launches run after one for which the queue waits, so none of the pipelines may be destroyed before. */
static void others_live_while_work_uses_them(void **state)
{
    struct ct_timeline *timeline;
    struct ct_queue *queue;

    (void)state;
    assert_int_equal(vk->timelines->create(device, &timeline), CUDA_SUCCESS);
    assert_int_equal(vk->queues->create(device, &(struct ct_queue_desc){.priority = 0}, &queue), CUDA_SUCCESS);
    assert_int_equal(vk->queues->wait(queue, timeline, 1), CUDA_SUCCESS);
    for (unsigned threads = 1; threads <= 2 * KEPT; threads++) {
        const struct ct_launch launch = launch_of(threads);

        assert_int_equal(vk->queues->launch(queue, &launch), CUDA_SUCCESS);
    }
    assert_int_equal(vk->queues->flush(queue), CUDA_SUCCESS);
    assert_int_equal(n_destroyed, 0);
    assert_int_equal(vk->timelines->signal(timeline, 1), CUDA_SUCCESS);
    assert_int_equal(vk->queues->await(queue, vk->queues->point(queue), UINT64_MAX, false), CUDA_SUCCESS);
    vk->queues->destroy(queue);
    assert_int_equal(n_destroyed, KEPT);
    vk->timelines->destroy(timeline);
}

static void recordings_hold_them(void **state)
{
    const struct ct_recording_calls *calls = vk->recordings;
    struct ct_recording *recording;
    struct ct_launch launch = launch_of(1);

    (void)state;
    assert_int_equal(calls->create(device, &recording), CUDA_SUCCESS);
    launch.variant = prepare(1);
    assert_int_equal(calls->launch(recording, &launch), CUDA_SUCCESS);
    vk->kernels->variant_release(launch.variant);
    assert_int_equal(calls->finish(recording), CUDA_SUCCESS);
    for (unsigned threads = 2; threads <= KEPT + 1; threads++)
        touch(threads);
    assert_int_equal(n_destroyed, 0);
    calls->destroy(recording);
    assert_int_equal(n_destroyed, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_last_are_kept),
        TEST(others_live_while_they_are_held),
        TEST(others_live_while_work_uses_them),
        TEST(recordings_hold_them),
    };

    return cmocka_run_group_tests_name("variants of kernels", tests, NULL, NULL);
}
