/* SPDX-License-Identifier: Apache-2.0 */
/* traced [WAY]: makes known calls of the driver API, for traces. First a child process, then the process itself: three launches in a stream with copies around
 * them, one launch by another thread, and a call that fails. WAY: "killed" ends the process by a signal after the launches, "longer" makes one call
 * more, "graph" launches a graph of two kernels, too, "range" calls cuProfilerStart and cuProfilerStop around the launch in the other thread. */
#include "cuda.h"
#include "cudaProfiler.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 4096
#define CHECK(call) check(call, #call)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry add_number(.param .u64 array, .param .u32 number)\n{\n"
                          " .reg .u64 %rd<3>;\n .reg .u32 %r<6>;\n"
                          " ld.param.u64 %rd0, [array];\n ld.param.u32 %r0, [number];\n"
                          " mov.u32 %r1, %ctaid.x;\n mov.u32 %r2, %ntid.x;\n mov.u32 %r3, %tid.x;\n mad.lo.u32 %r1, %r1, %r2, %r3;\n"
                          " mul.wide.u32 %rd1, %r1, 4;\n add.u64 %rd1, %rd0, %rd1;\n"
                          " ld.global.u32 %r4, [%rd1];\n add.u32 %r4, %r4, %r0;\n st.global.u32 [%rd1], %r4;\n ret;\n}\n";

static CUcontext context;
static CUfunction function;
static CUdeviceptr memory;

static void check(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %d\n", call, (int)result);
    exit(1);
}

static void launch(CUstream stream, unsigned number)
{
    void *params[] = {&memory, &number};

    CHECK(cuLaunchKernel(function, COUNT / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

static void *launch_in_thread(void *unused)
{
    CHECK(cuCtxSetCurrent(context));
    launch(NULL, 7);
    CHECK(cuStreamSynchronize(NULL));
    return unused;
}

static void launch_graph(CUstream stream)
{
    CUgraph graph;
    CUgraphExec executable;

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(stream, 100);
    launch(stream, 200);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&executable, graph, 0));
    CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
    static unsigned numbers[COUNT];
    const char *way = argc > 1 ? argv[1] : "";
    const unsigned wanted = strcmp(way, "graph") ? 1 + 2 + 3 + 7 : 1 + 2 + 3 + 7 + 300;
    const pid_t child = fork();
    CUmodule module;
    CUstream stream;
    CUdevice device;
    pthread_t thread;
    int count, status;

    if (child == 0) {
        CHECK(cuInit(0));
        CHECK(cuDeviceGetCount(&count));
        _exit(count == 0); /* no exit handlers */
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return 2;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&function, module, "add_number"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&memory, sizeof numbers));
    CHECK(cuMemsetD32Async(memory, 0, COUNT, stream));
    for (unsigned i = 1; i <= 3; i++)
        launch(stream, i);
    CHECK(cuStreamSynchronize(stream));
    if (!strcmp(way, "killed"))
        kill(getpid(), SIGKILL);
    if (!strcmp(way, "longer"))
        CHECK(cuCtxSynchronize());
    if (!strcmp(way, "graph"))
        launch_graph(stream);
    if (!strcmp(way, "range"))
        CHECK(cuProfilerStart());
    if (pthread_create(&thread, NULL, launch_in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 2;
    if (!strcmp(way, "range"))
        CHECK(cuProfilerStop());
    CHECK(cuMemcpyDtoHAsync(numbers, memory, sizeof numbers, stream));
    CHECK(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < COUNT; i++)
        if (numbers[i] != wanted)
            return 3;
    if (cuMemFree(memory + 1) != CUDA_ERROR_INVALID_VALUE)
        return 4;
    CHECK(cuMemFree(memory));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
