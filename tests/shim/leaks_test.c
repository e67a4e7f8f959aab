/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of the kernel driver is left behind: each kind of work is done some times, so that everything that is kept for later exists, and then
 * many more times, after which the kernel driver has as many buffers, synchronization objects, contexts and mappings as before, but for some that
 * wait for their reuse: far fewer than the work was repeated. The preloaded library counts them (preload/preload.h). Whether work was submitted
 * at all is counted, too. */
#include "preload/preload.h"

#include "../api/api_kernels.h"
#include "../api/api_test.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_LAUNCHES 10000
#define N_STREAMS 3
#define BYTES ((size_t)1 << 20)
#define KIB_PER_LAUNCHES 4096 /* growth of the process by N_LAUNCHES that is allowed: less than half a KiB each */

static const char *const kind_names[] = {
    [DRM_SHIM_BUFFERS] = "buffers",
    [DRM_SHIM_SYNCOBJS] = "synchronization objects",
    [DRM_SHIM_CONTEXTS] = "contexts",
    [DRM_SHIM_MAPPINGS] = "mappings",
};

static int64_t (*live)(enum drm_shim_kind kind);
static CUmodule module;
static CUfunction ramp;

struct objects {
    int64_t n[DRM_SHIM_N_KINDS];
};

static struct objects count(void)
{
    struct objects now;

    for (unsigned i = 0; i < DRM_SHIM_N_KINDS; i++)
        now.n[i] = live((enum drm_shim_kind)i);
    return now;
}

/* Less than one object was left behind by each of eight repetitions. */
static void have_not_grown(const struct objects *before, unsigned repetitions)
{
    const struct objects now = count();

    for (unsigned i = 0; i < DRM_SHIM_SUBMISSIONS; i++)
        if (now.n[i] > before->n[i] + repetitions / 8)
            fail_msg("%lld %s, and %lld before %u repetitions", (long long)now.n[i], kind_names[i], (long long)before->n[i], repetitions);
}

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void launch(CUdeviceptr out, CUstream stream)
{
    unsigned a = 1, n = 256;

    ok(cuLaunchKernel(ramp, 2, 1, 1, 128, 1, 1, 0, stream, (void *[]){&out, &a, &n}, NULL));
}

/* ---- launches ---- */

struct work {
    CUdeviceptr memory;
    CUstream streams[N_STREAMS];
    CUevent event;
};

static void launch_many(const struct work *work, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        launch(work->memory, work->streams[i % N_STREAMS]);
        if (i % 16 == 0) {
            ok(cuEventRecord(work->event, work->streams[i % N_STREAMS]));
            ok(cuStreamWaitEvent(work->streams[(i + 1) % N_STREAMS], work->event, 0));
        }
        if (i % 100 == 99)
            ok(cuStreamSynchronize(work->streams[i % N_STREAMS]));
    }
    ok(cuCtxSynchronize());
    ok(cuEventQuery(work->event));
}

static void ten_thousand_launches(void **state)
{
    struct objects before;
    struct work work;
    long kib;

    (void)state;
    ok(cuMemAlloc(&work.memory, BYTES));
    ok(cuEventCreate(&work.event, CU_EVENT_DEFAULT));
    for (unsigned i = 0; i < N_STREAMS; i++)
        ok(cuStreamCreate(&work.streams[i], CU_STREAM_NON_BLOCKING));
    launch_many(&work, N_LAUNCHES / 10);
    before = count();
    kib = resident_kib();
    launch_many(&work, N_LAUNCHES);
    have_not_grown(&before, 64); /* as if there were so few */
    assert_in_range(count().n[DRM_SHIM_SUBMISSIONS] - before.n[DRM_SHIM_SUBMISSIONS], N_LAUNCHES / 100, 4 * N_LAUNCHES);
    if (resident_kib() > kib + KIB_PER_LAUNCHES)
        fail_msg("%d launches: the process has grown from %ld to %ld KiB", N_LAUNCHES, kib, resident_kib());
    for (unsigned i = 0; i < N_STREAMS; i++)
        ok(cuStreamDestroy(work.streams[i]));
    ok(cuEventDestroy(work.event));
    ok(cuMemFree(work.memory));
}

/* ---- objects that come and go ---- */

static void use_streams_and_events(void)
{
    CUdeviceptr memory;
    CUstream stream;
    CUevent event;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, CU_EVENT_DEFAULT));
    ok(cuMemAllocAsync(&memory, BYTES, stream));
    launch(memory, stream);
    ok(cuMemFreeAsync(memory, stream));
    ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(stream));
}

static void use_memory(void)
{
    static char pageable[BYTES];
    CUdeviceptr device, managed, small;
    CUarray array;
    void *host;

    ok(cuMemAlloc(&device, 3 * BYTES));
    ok(cuMemAlloc(&small, 100));
    ok(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemAllocHost(&host, BYTES));
    ok(cuArrayCreate(&array, &(CUDA_ARRAY_DESCRIPTOR){.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1}));
    ok(cuMemcpyHtoD(device, pageable, BYTES));
    ok(cuMemcpyDtoH(host, device, BYTES));
    ok(cuMemsetD8(small, 1, 100));
    launch(managed, NULL);
    ok(cuArrayDestroy(array));
    ok(cuMemFreeHost(host));
    ok(cuMemFree(managed));
    ok(cuMemFree(small));
    ok(cuMemFree(device));
}

static void use_registered_memory(void)
{
    void *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr device;

    assert_ptr_not_equal(pages, MAP_FAILED);
    ok(cuMemHostRegister(pages, BYTES, 0));
    ok(cuMemHostGetDevicePointer(&device, pages, 0));
    launch(device, NULL);
    ok(cuCtxSynchronize());
    ok(cuMemHostUnregister(pages));
    munmap(pages, BYTES);
}

static void use_mappings(void)
{
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr start;
    size_t granule;

    ok(cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemAddressReserve(&start, 4 * granule, 0, 0, 0));
    ok(cuMemCreate(&handle, granule, &properties, 0));
    for (unsigned i = 0; i < 2; i++)
        ok(cuMemMap(start + 2 * i * granule, granule, 0, handle, 0));
    ok(cuMemRelease(handle));
    for (unsigned i = 0; i < 2; i++) {
        ok(cuMemSetAccess(start + 2 * i * granule, granule, &access, 1));
        launch(start + 2 * i * granule, NULL);
    }
    ok(cuCtxSynchronize());
    for (unsigned i = 0; i < 2; i++)
        ok(cuMemUnmap(start + 2 * i * granule, granule));
    ok(cuMemAddressFree(start, 4 * granule));
}

static void use_graphs(void)
{
    CUdeviceptr memory;
    CUgraphExec exec;
    CUstream stream;
    CUgraph graph;

    ok(cuMemAlloc(&memory, BYTES));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned i = 0; i < 10; i++)
        launch(memory, stream);
    ok(cuMemsetD8Async(memory, 1, BYTES, stream));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiate(&exec, graph, 0));
    for (unsigned i = 0; i < 10; i++)
        ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(memory));
}

static void use_modules(void)
{
    CUmodule other;
    CUfunction function;

    ok(cuModuleLoadData(&other, PTX_HEADER ".visible .global .align 4 .b8 room[100000];\n" PTX_NOTHING));
    ok(cuModuleGetFunction(&function, other, "nothing"));
    ok(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    ok(cuModuleUnload(other));
}

static void use_contexts(void)
{
    CUcontext before, context;
    CUdeviceptr memory;
    CUstream stream;
    void *host;

    ok(cuCtxGetCurrent(&before));
    ok(create_context(&context, 0));
    use_modules();
    ok(cuMemAlloc(&memory, 3 * BYTES)); /* they end with the context */
    ok(cuMemAlloc(&memory, 100));
    ok(cuMemAllocHost(&host, BYTES));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemsetD8Async(memory, 1, 100, stream));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(before));
}

static const struct use {
    const char *name;
    void (*use)(void);
    unsigned n;
    CUdevice_attribute needed; /* 0: none */
} uses[] = {
    {"streams and events", use_streams_and_events, 500, 0},
    {"memory", use_memory, 200, 0},
    {"registered memory", use_registered_memory, 200, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"mappings", use_mappings, 200, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"graphs", use_graphs, 200, 0},
    {"modules", use_modules, 40, 0},
    {"contexts", use_contexts, 20, 0},
};

static void nothing_is_left_behind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        struct objects before;
        int is_there = 1;

        if (uses[i].needed)
            ok(cuDeviceGetAttribute(&is_there, uses[i].needed, 0));
        print_message("%s%s\n", uses[i].name, is_there ? "" : ": the device has none");
        for (unsigned k = 0; is_there && k < uses[i].n; k++) {
            if (k == uses[i].n / 4)
                before = count();
            uses[i].use();
        }
        ok(cuCtxSynchronize());
        if (is_there)
            have_not_grown(&before, uses[i].n - uses[i].n / 4);
    }
}

static int set_up(void **state)
{
    if (with_context(state))
        return -1;
    return cuModuleLoadData(&module, PTX_HEADER PTX_RAMP) == CUDA_SUCCESS && cuModuleGetFunction(&ramp, module, "ramp") == CUDA_SUCCESS
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    return cuModuleUnload(module) == CUDA_SUCCESS ? without_context(state) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_launches),
        cmocka_unit_test(nothing_is_left_behind),
    };

    *(void **)&live = dlsym(RTLD_DEFAULT, "drm_shim_live");
    if (!live)
        return 77;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
