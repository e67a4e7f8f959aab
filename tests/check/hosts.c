/* SPDX-License-Identifier: Apache-2.0 */
/* check_hosts NAME [good]: a program of hosts.h with its fault, or without it; or one of those below in which nothing is wrong. Status LEFT_OUT: on this
 * device it cannot be run, or its fault is not found. */
#include "hosts.h"

#include "check_program.h"

#include <stdbool.h>
#include <stdint.h>

#define WORDS 65536u /* more than a small allocation, of which whole pages are watched */
#define USED 64u     /* words that the kernels access: those of their threads */

#define HEADER ".version 7.4\n.target sm_80\n.address_size 64\n"
#define KERNEL(name, code)                                                                                                                 \
    ".visible .entry " name "(.param .u64 buffer)\n{\n.reg .pred %p; .reg .b32 %t, %v; .reg .b64 %a, %b;\n"                                \
    "ld.param.u64 %b, [buffer];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %a, %t, 4;\nadd.u64 %a, %b, %a;\n" code "ret;\n}\n"
static const char variable_ptx[] = HEADER ".visible .global .attribute(.managed) .align 4 .b32 variable;\n" KERNEL(
    "store_variable", "setp.eq.u32 %p, %t, 0;\n@%p st.global.u32 [variable], 7;\n");
static const char ptx[] = HEADER KERNEL("store", "st.global.u32 [%a], 7;\n")
    KERNEL("load", "ld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\nst.global.u32 [%a+4096], %v;\n")
        KERNEL("add", "red.global.add.u32 [%b], 1;\n") KERNEL("store_bytes", "st.global.u8 [%a], 7;\n")
            KERNEL("store_vector", "setp.eq.u32 %p, %t, 0;\n@%p st.global.v4.u32 [%b], {7, 7, 7, 7};\n")
    /* These two talk to the host. */
    KERNEL("answer", "setp.eq.u32 %p, %t, 0;\n@!%p ret;\nW: ld.volatile.global.u32 %v, [%b];\nsetp.eq.u32 %p, %v, 0;\n@%p bra W;\n"
                     "st.volatile.global.u32 [%b+4], 7;\n")
        KERNEL("publish", "setp.eq.u32 %p, %t, 0;\n@!%p ret;\nst.global.u32 [%b+4], 7;\nmembar.sys;\nst.volatile.global.u32 [%b], 1;\n");
#undef KERNEL
#undef HEADER

static CUmodule module;
static CUstream stream;
static bool waits; /* the program has no fault */
static volatile unsigned seen;

static CUfunction kernel(const char *name)
{
    CUfunction f;

    ok(cuModuleGetFunction(&f, module, name));
    return f;
}

/* By which kernels access memory of the host. */
static CUdeviceptr device_pointer(const void *host)
{
    CUdeviceptr p = 0;

    if (host)
        ok(cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)host));
    return p;
}

static void launch_in(CUstream in, const char *name, const void *buffer)
{
    CUdeviceptr p = device_pointer(buffer);
    void *params[] = {&p};

    ok(cuLaunchKernel(kernel(name), 1, 1, 1, USED, 1, 1, 0, in, params, NULL));
}

static void launch(const char *name, const void *buffer)
{
    launch_in(stream, name, buffer);
}

static void wait_if_good(void)
{
    if (waits)
        ok(cuStreamSynchronize(stream));
}

static unsigned *pinned(void)
{
    void *p;

    ok(cuMemHostAlloc(&p, WORDS * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    memset(p, 0, WORDS * sizeof(unsigned));
    return p;
}

/* Page-locked, if the device has no managed memory. */
static unsigned *managed(void)
{
    CUdeviceptr p;

    if (!has(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        return pinned();
    ok(cuMemAllocManaged(&p, WORDS * sizeof(unsigned), CU_MEM_ATTACH_GLOBAL));
    memset((void *)p, 0, WORDS * sizeof(unsigned));
    return (unsigned *)p;
}

static void free_managed(unsigned *host)
{
    if (has(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        ok(cuMemFree((CUdeviceptr)host));
    else
        ok(cuMemFreeHost(host));
}

static CUdeviceptr device(void)
{
    CUdeviceptr p;

    ok(cuMemAlloc(&p, WORDS * sizeof(unsigned)));
    ok(cuMemsetD32(p, 7, WORDS));
    return p;
}

/* ---- with faults ---- */

/* So that stacks name them. */
#define HOST(name, host, command, operation) __attribute__((visibility("default"))) void name(void);
HOSTS
#undef HOST

void read_of_copy(void)
{
    unsigned *host = pinned();

    ok(cuMemcpyDtoHAsync(host, device(), WORDS * 4, stream));
    wait_if_good();
    seen = host[1000];
}

void write_of_source(void)
{
    unsigned *host = pinned();

    ok(cuMemcpyHtoDAsync(device(), host, WORDS * 4, stream));
    seen = host[1000]; /* reading is allowed */
    wait_if_good();
    host[1000] = 1;
}

void write_of_copy(void)
{
    unsigned *host = pinned();

    ok(cuMemcpyDtoHAsync(host + 4096, device(), 4096 * 4, stream));
    host[0] = host[8192] = 1; /* these are not copied */
    wait_if_good();
    host[5000] = 1;
}

void read_of_row(void)
{
    unsigned *host = pinned();
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = device(),
                                .srcPitch = 8192,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = host,
                                .dstPitch = 16384,
                                .WidthInBytes = 8192,
                                .Height = 4};

    ok(cuMemcpy2DAsync(&copy, stream));
    host[4096 + 2500] = 1; /* behind the second row */
    wait_if_good();
    seen = host[4096];
}

void read_of_fill(void)
{
    unsigned *host = managed();

    ok(cuMemsetD32Async(device_pointer(host), 7, 4096, stream));
    wait_if_good();
    seen = host[4095];
}

void read_of_managed(void)
{
    unsigned *host = managed();

    launch("store", host);
    wait_if_good();
    seen = host[3];
}

void write_of_managed(void)
{
    unsigned *host = managed();

    launch("load", host);
    seen = host[3];
    wait_if_good();
    host[3] = 1;
}

void read_of_mapped(void)
{
    unsigned *host = pinned();

    launch("store", host);
    wait_if_good();
    seen = host[3];
}

void read_of_registered(void)
{
    unsigned *host = aligned_alloc(4096, WORDS * sizeof *host);

    require(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS); /* of CPU devices */
    memset(host, 0, WORDS * sizeof *host);
    ok(cuMemHostRegister(host, WORDS * sizeof *host, CU_MEMHOSTREGISTER_DEVICEMAP));
    launch("store", host);
    wait_if_good();
    seen = host[3];
    ok(cuStreamSynchronize(stream));
    ok(cuMemHostUnregister(host));
}

void read_of_variable(void)
{
    CUdeviceptr variable;
    size_t bytes;

    require(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    ok(cuModuleLoadData(&module, variable_ptx));
    ok(cuModuleGetGlobal(&variable, &bytes, module, "variable"));
    launch("store_variable", NULL);
    wait_if_good();
    seen = *(unsigned *)variable;
}

void read_of_sum(void)
{
    unsigned *host = managed();

    launch("add", host);
    wait_if_good();
    seen = *host;
}

void read_of_bytes(void)
{
    unsigned *host = managed();

    launch("store_bytes", host);
    wait_if_good();
    seen = *(unsigned char *)(host + 5);
}

void read_of_vector(void)
{
    unsigned *host = managed();

    launch("store_vector", host);
    wait_if_good();
    seen = host[3];
}

void read_in_graph(void)
{
    unsigned *host = managed();
    CUgraphExec exec;
    CUgraph graph;

    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch("store", host);
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiate(&exec, graph, 0));
    ok(cuGraphLaunch(exec, stream));
    wait_if_good();
    seen = host[3];
    ok(cuStreamSynchronize(stream));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

void wrong_stream(void)
{
    unsigned *host = managed();
    CUstream other;

    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    launch_in(other, "store", host);
    ok(cuStreamSynchronize(stream));
    if (waits)
        ok(cuStreamSynchronize(other));
    seen = host[3];
    ok(cuStreamDestroy(other));
}

void wrong_event(void)
{
    unsigned *host = pinned();
    const CUdeviceptr from = device();
    CUevent event;

    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuEventRecord(event, stream));
    ok(cuMemcpyDtoHAsync(host, from, WORDS * 4, stream));
    if (waits)
        ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    seen = host[1000];
    ok(cuEventDestroy(event));
}

/* ---- without faults ---- */

/* Words that the kernel does not use, before and behind those that it does. */
static void neighbours(void)
{
    unsigned *host = managed();

    launch("store", host + 1024);
    host[0] = host[1023] = seen = host[1024 + USED];
    host[WORDS - 1] = 1;
}

/* A kernel and the host that wait for each other, without a call. */
static void conversation(void)
{
    volatile unsigned *host = pinned();

    launch("answer", (void *)host);
    host[0] = 1;
    while (!host[1])
        ;
}

static void flag_of_kernel(void)
{
    volatile unsigned *host = pinned();

    launch("publish", (void *)host);
    while (!host[0])
        ;
    seen = host[1];
}

static void CUDA_CB add_one(void *user)
{
    ++*(unsigned *)user;
}

/* A host function comes after a kernel, and before another one, in stream order. */
static void host_function(void)
{
    unsigned *host = managed();

    launch("store", host);
    ok(cuLaunchHostFunc(stream, add_one, host));
    launch("add", host);
    ok(cuStreamSynchronize(stream));
    if (*host != 7 + 1 + USED)
        exit(4);
}

static void asked_until_ready(void)
{
    unsigned *host = managed();

    launch("store", host);
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        ;
    seen = host[3];
}

static void calls_that_wait(void)
{
    unsigned *host = managed();
    CUdeviceptr p = device();

    launch("store", host);
    ok(cuMemcpyHtoD(p, host, USED * 4)); /* in the legacy stream */
    ok(cuMemsetD32(device_pointer(host), 5, USED));
    seen = host[3];
    ok(cuMemcpyDtoH(host, p, USED * 4));
    host[3] = 1;
    launch("store", host);
    ok(cuCtxSynchronize());
    seen = host[3];
    launch("store", host);
    free_managed(host);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } rows[] = {
#define HOST(name, host, command, operation) {#name, name},
        HOSTS
#undef HOST
        {"neighbours", neighbours},
        {"conversation", conversation},
        {"flag_of_kernel", flag_of_kernel},
        {"host_function", host_function},
        {"asked_until_ready", asked_until_ready},
        {"calls_that_wait", calls_that_wait},
    };
    CUcontext context;
    CUdevice device;

    if (argc < 2)
        return 2;
    waits = argc > 2;
    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&module, ptx));
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, argv[1])) {
            rows[i].run();
            ok(cuStreamSynchronize(stream));
            return 0;
        }
    return 2;
}
