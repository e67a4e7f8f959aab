/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of start-up: how long processes take from their start to their end, of which one uses Vulkan and does the least that is possible,
 * and one uses CUDA, in turn. Prints the medians in milliseconds and their ratios: for a device alone (with CUDA also an allocation), and for a
 * first launch of a small kernel whose result is checked; with one queue for kernels, and with as many as Cuttle creates. `bench_startup SPIRV WHAT` is
 * one of these processes. */
#include "example.h"
#include "startup/vulkan.h"
#include "timing.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ROUNDS = 21, COUNT = 1 << 18, THREADS = 64, CONNECTIONS = 8 };

extern char **environ;

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry add(.param .u64 words)\n{\n.reg .b32 %r<5>;\n"
                          ".reg .b64 %d<3>;\nld.param.u64 %d1, [words];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
                          "mad.lo.u32 %r1, %r1, 64, %r2;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\nld.global.u32 %r3, [%d1];\n"
                          "add.u32 %r3, %r3, %r1;\nst.global.u32 [%d1], %r3;\nret;\n}\n";

/* ---- the processes ---- */

static int launch(CUdeviceptr words)
{
    static uint32_t out[COUNT];
    void *params[] = {&words};
    CUfunction add;
    CUmodule module;

    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuMemsetD32(words, 1, COUNT));
    CHECK(cuLaunchKernel(add, COUNT / THREADS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
    CHECK(cuMemcpyDtoH(out, words, sizeof out));
    for (uint32_t i = 0; i < COUNT; i++)
        if (out[i] != i + 1)
            return EXIT_FAILURE;
    CHECK(cuModuleUnload(module));
    return 0;
}

static int run_cuda(bool launches)
{
    CUcontext context;
    CUdeviceptr memory;
    CUdevice device;
    int status = 0;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc(&memory, COUNT * sizeof(uint32_t)));
    if (launches)
        status = launch(memory);
    CHECK(cuMemFree(memory));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return status;
}

static int run_vulkan_kernel(uint32_t n_queues, const char *path)
{
    static uint32_t code[4096];
    FILE *file = fopen(path, "rb");
    size_t bytes;

    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        return EXIT_FAILURE;
    }
    bytes = fread(code, 1, sizeof code, file);
    fclose(file);
    return run_vulkan(n_queues, code, bytes, COUNT);
}

/* What a process does. Those with several queues have as many as Cuttle uses by default. */
static const struct {
    const char *name;
    uint32_t n_queues; /* 0: CUDA */
    bool launches;
} processes[] = {
    {"vulkan-device", 1, false}, {"vulkan-device-queues", CONNECTIONS, false}, {"cuda-device", 0, false},
    {"vulkan-launch", 1, true},  {"vulkan-launch-queues", CONNECTIONS, true},  {"cuda-launch", 0, true},
};

static int run_process(const char *spirv, const char *what)
{
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++) {
        if (strcmp(what, processes[i].name) != 0)
            continue;
        if (!processes[i].n_queues)
            return run_cuda(processes[i].launches);
        return processes[i].launches ? run_vulkan_kernel(processes[i].n_queues, spirv) : run_vulkan(processes[i].n_queues, NULL, 0, 0);
    }
    fprintf(stderr, "%s is no process of bench_startup\n", what);
    return EXIT_FAILURE;
}

/* ---- measurement ---- */

static double time_child(const char *spirv, const char *what)
{
    char *arguments[] = {"bench_startup", (char *)spirv, (char *)what, NULL};
    const double start = now_us();
    int status;
    pid_t child;

    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_startup %s failed\n", what);
        exit(EXIT_FAILURE);
    }
    return (now_us() - start) * 1e-3;
}

static void compare(const char *spirv, const char *vulkan, const char *cuda)
{
    double of_vulkan[ROUNDS], of_cuda[ROUNDS];

    (void)time_child(spirv, vulkan); /* fills caches of files and of code */
    (void)time_child(spirv, cuda);
    for (int round = 0; round < ROUNDS; round++) {
        of_vulkan[round] = time_child(spirv, vulkan);
        of_cuda[round] = time_child(spirv, cuda);
    }
    printf("%-14s %8.2f ms\n%-14s %8.2f ms, %.2f times as long\n", vulkan, median(of_vulkan, ROUNDS), cuda, median(of_cuda, ROUNDS),
           median(of_cuda, ROUNDS) / median(of_vulkan, ROUNDS));
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return run_process(argv[1], argv[2]);
    if (argc != 2) {
        fprintf(stderr, "usage: bench_startup SPIRV [WHAT]\n");
        return EXIT_FAILURE;
    }
    compare(argv[1], "vulkan-device", "cuda-device");
    compare(argv[1], "vulkan-device-queues", "cuda-device");
    compare(argv[1], "vulkan-launch", "cuda-launch");
    compare(argv[1], "vulkan-launch-queues", "cuda-launch");
    return 0;
}
