/* SPDX-License-Identifier: Apache-2.0 */
/* How many kernels Cuttle's compiler and the driver's compile in a second, apart, on the first device.
 * usage: bench_compile FILE.ptx...
 *
 * The driver's share is the creation of the kernel and, with Vulkan, of a pipeline for blocks of 256 threads (or of the kernel's own size); and a
 * dispatch of no blocks, since lavapipe compiles when a kernel is dispatched for the first time. No cache on disk is used but the driver's own: switch
 * that off, too (MESA_SHADER_CACHE_DISABLE=true, __GL_SHADER_DISK_CACHE=0). Kernels that do not compile are counted and left out. */
#include "backend_vk/queue.h"
#include "backend_vk/variants.h"
#include "core/base/process.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct times {
    unsigned n_kernels, n_refused;
    double ours_s, driver_s;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static char *read_file_or_null(const char *path, size_t *out_length)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long length;

    if (file && fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && (text = malloc((size_t)length + 1)) != NULL) {
        rewind(file);
        *out_length = fread(text, 1, (size_t)length, file);
        text[*out_length] = 0;
    }
    if (file)
        fclose(file);
    return text;
}

/* Dispatches no blocks, and waits. */
static CUresult dispatch_nothing(struct ct_backend_device *device, VkCommandPool pool, VkPipeline pipeline)
{
    const VkCommandBufferAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                    .commandPool = pool,
                                                    .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                    .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBuffer commands;
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    VkResult result = device->vk.vkAllocateCommandBuffers(device->handle, &allocation, &commands);

    if (result == VK_SUCCESS)
        result = device->vk.vkBeginCommandBuffer(commands, &begin);
    if (result != VK_SUCCESS)
        return ct_vk_result(result, "command buffer");
    device->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    device->vk.vkCmdDispatch(commands, 0, 0, 0);
    result = device->vk.vkEndCommandBuffer(commands);
    if (result == VK_SUCCESS)
        result = device->vk.vkQueueSubmit(device->queues[0], 1, &submit, VK_NULL_HANDLE);
    if (result == VK_SUCCESS)
        result = device->vk.vkQueueWaitIdle(device->queues[0]);
    device->vk.vkFreeCommandBuffers(device->handle, pool, 1, &commands);
    return ct_vk_result(result, "vkQueueSubmit");
}

static CUresult compile_by_driver(struct ct_context *context, VkCommandPool pool, const struct ptx2spv_kernel_decl *decl,
                                  const struct ptx2spv_kernel *kernel)
{
    const struct ct_kernel_calls *calls = context->backend->kernels;
    struct ct_launch launch = {.grid = {1, 1, 1}, .block = {256, 1, 1}};
    struct ct_kernel_variant *variant;
    CUresult r = calls->create(context->backend_device, decl->name, kernel, &launch.kernel);

    for (int i = 0; i < 3 && decl->req_ntid[0]; i++)
        launch.block[i] = decl->req_ntid[i] ? decl->req_ntid[i] : 1;
    if (r != CUDA_SUCCESS || !calls->prepare)
        return r;
    if ((r = calls->prepare(&launch, &variant)) != CUDA_SUCCESS)
        return r;
    r = dispatch_nothing(context->backend_device, pool, variant->pipeline);
    calls->variant_release(variant);
    return r; /* the kernel stays: the process ends soon */
}

static void compile_kernel(struct ct_context *context, VkCommandPool pool, const struct ptx2spv_module *module, unsigned index,
                           struct times *times)
{
    const double begin_s = now_s();
    double translated_s;
    struct ptx2spv_kernel kernel;

    times->n_kernels++;
    if (ptx2spv_kernel_compile(module, index, &context->device->info.target, NULL, &kernel) != PTX2SPV_OK) {
        times->n_refused++;
        return;
    }
    translated_s = now_s();
    if (compile_by_driver(context, pool, ptx2spv_module_kernel(module, index), &kernel) == CUDA_SUCCESS) {
        times->ours_s += translated_s - begin_s;
        times->driver_s += now_s() - translated_s;
    } else {
        times->n_refused++;
    }
    ptx2spv_kernel_finish(&kernel);
}

static bool compile_file(struct ct_context *context, VkCommandPool pool, const char *path, struct times *times)
{
    size_t length = 0;
    char *text = read_file_or_null(path, &length);
    const double begin_s = now_s();
    struct ptx2spv_module *module;
    const bool good = text && ptx2spv_module_create(text, length, NULL, &module) == PTX2SPV_OK;

    if (!good)
        fprintf(stderr, "%s: cannot be read, or is not PTX\n", path);
    times->ours_s += now_s() - begin_s; /* parsing, once for all kernels */
    for (unsigned i = 0; good && i < ptx2spv_module_kernel_count(module); i++)
        compile_kernel(context, pool, module, i, times);
    if (good)
        ptx2spv_module_destroy(module);
    free(text);
    return good;
}

static struct ct_context *open_context_or_null(VkCommandPool *out_pool)
{
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    struct ct_backend_device *opened;
    struct ct_context *context;
    CUcontext handle;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&handle, 0) != CUDA_SUCCESS)
        return NULL;
    context = ct_process.devices[0].primary;
    opened = context->backend_device;
    ct_probe_ensure(context->device, opened);
    if (context->backend == &ct_backend_vk && opened->vk.vkCreateCommandPool(opened->handle, &info, NULL, out_pool) != VK_SUCCESS)
        return NULL;
    return context;
}

int main(int argc, char **argv)
{
    VkCommandPool pool = VK_NULL_HANDLE;
    struct ct_context *context;
    struct times all = {0};
    unsigned n_compiled;
    bool good = argc > 1;

    setenv("CUDA_CACHE_DISABLE", "1", 1);
    if (argc < 2 || (context = open_context_or_null(&pool)) == NULL) {
        fprintf(stderr, argc < 2 ? "usage: bench_compile FILE.ptx...\n" : "no device\n");
        return 1;
    }
    for (int i = 1; i < argc; i++)
        good &= compile_file(context, pool, argv[i], &all);
    n_compiled = all.n_kernels - all.n_refused;
    printf("%s: %u kernels, of which %u were refused\n", context->device->info.name, all.n_kernels, all.n_refused);
    printf("Cuttle's compiler %9.1f kernels/s (%.3f s)\n", n_compiled / all.ours_s, all.ours_s);
    printf("the driver's      %9.1f kernels/s (%.3f s)\n", n_compiled / all.driver_s, all.driver_s);
    fflush(NULL);
    _Exit(!good); /* without destroying the kernels */
}
