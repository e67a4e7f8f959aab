/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of start-up: the total run time of a process that creates a Vulkan device and ends, and of one that initializes CUDA, allocates,
 * frees and ends, alternately. Prints the median of each in milliseconds and their ratio. `bench_startup vulkan` and `bench_startup cuda`
 * are these processes. */
#include "example.h"
#include "timing.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#define ROUNDS 21

extern char **environ;

/* ---- the two processes ---- */

static int run_cuda(void)
{
    CUcontext context;
    CUdeviceptr memory;
    CUdevice device;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc(&memory, 1 << 20));
    CHECK(cuMemFree(memory));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}

static PFN_vkGetInstanceProcAddr instance_address;
#define OF_INSTANCE(instance, name) PFN_##name name = (PFN_##name)instance_address(instance, #name)

/* A device with one queue and no features: the minimum that a program can create. */
static int make_device(VkInstance instance)
{
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue};
    VkPhysicalDevice physical;
    VkDevice device;
    uint32_t count = 1;
    OF_INSTANCE(instance, vkEnumeratePhysicalDevices);
    OF_INSTANCE(instance, vkCreateDevice);
    OF_INSTANCE(instance, vkDestroyDevice);

    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < VK_SUCCESS || count == 0 ||
        vkCreateDevice(physical, &info, NULL, &device) != VK_SUCCESS)
        return 1;
    vkDestroyDevice(device, NULL);
    return 0;
}

static int run_vulkan(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    void *library = dlopen("libvulkan.so.1", RTLD_NOW);
    VkInstance instance;
    int status;

    if (!library || !(instance_address = (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr")))
        return 1;
    OF_INSTANCE(NULL, vkCreateInstance);
    if (vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS)
        return 1;
    status = make_device(instance);
    OF_INSTANCE(instance, vkDestroyInstance);
    vkDestroyInstance(instance, NULL);
    return status;
}

/* ---- measurement ---- */

static double time_child(const char *self, const char *what)
{
    char *arguments[] = {(char *)self, (char *)what, NULL};
    double start = now_us();
    int status;
    pid_t child;

    if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_startup %s failed\n", what);
        exit(EXIT_FAILURE);
    }
    return (now_us() - start) * 1e-3;
}

int main(int argc, char **argv)
{
    double vulkan[ROUNDS], cuda[ROUNDS];

    if (argc > 1)
        return !strcmp(argv[1], "cuda") ? run_cuda() : run_vulkan();
    for (int round = -1; round < ROUNDS; round++) { /* the first round fills the file cache */
        double of_vulkan = time_child("/proc/self/exe", "vulkan"), of_cuda = time_child("/proc/self/exe", "cuda");

        if (round < 0)
            continue;
        vulkan[round] = of_vulkan;
        cuda[round] = of_cuda;
    }
    printf("a Vulkan device      %8.2f ms\n", median(vulkan, ROUNDS));
    printf("allocate and free    %8.2f ms\n", median(cuda, ROUNDS));
    printf("ratio                %8.2f\n", median(cuda, ROUNDS) / median(vulkan, ROUNDS));
    return 0;
}
