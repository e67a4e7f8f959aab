/* SPDX-License-Identifier: Apache-2.0 */
#include "lifetime_kinds.h"

#include "api_kernels.h"

#include <sys/mman.h>
#include <unistd.h>

uint64_t number(struct user *user, uint64_t below)
{
    user->random = user->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (user->random >> 33) % below;
}

static void set(struct slot *slot, unsigned index, uint64_t value)
{
    atomic_store(&slot->values[index], value);
}

CUresult launch(CUfunction function, CUstream stream, CUdeviceptr memory)
{
    uint32_t a = 1, count = 64;
    void *params[] = {&memory, &a, &count};

    return cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, params, NULL);
}

/* ---- modules and libraries ---- */

static const char ptx[] = PTX_HEADER ".visible .global .align 4 .b8 variable[8192];\n" PTX_RAMP;

static CUresult make_module(struct slot *slot, struct user *by)
{
    CUmodule module;
    CUfunction function = NULL;
    CUdeviceptr variable = 0;
    CUresult r = cuModuleLoadData(&module, ptx);

    (void)by;
    if (r != CUDA_SUCCESS)
        return r;
    cuModuleGetFunction(&function, module, "ramp");
    cuModuleGetGlobal(&variable, NULL, module, "variable");
    set(slot, 0, (uintptr_t)module);
    set(slot, 1, (uintptr_t)function);
    set(slot, 2, variable);
    return CUDA_SUCCESS;
}

static CUresult destroy_module(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuModuleUnload((CUmodule)(uintptr_t)values[0]);
}

static CUresult use_module(struct user *user, const uint64_t *values, unsigned way)
{
    CUfunction function;
    int value;

    switch (way) {
    case 0:
        return cuModuleGetFunction(&function, (CUmodule)(uintptr_t)values[0], "ramp");
    case 1:
        return cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)(uintptr_t)values[1]);
    case 2:
        return cuMemcpyDtoHAsync(user->bytes, values[2], BYTES, user->stream);
    case 3:
        return cuMemsetD8Async(values[2], 1, BYTES, user->stream);
    default:
        return launch((CUfunction)(uintptr_t)values[1], way & 1 ? user->stream : NULL, user->memory);
    }
}

static CUresult make_library(struct slot *slot, struct user *by)
{
    CUlibrary library;
    CUkernel kernel = NULL;
    CUresult r = cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);

    (void)by;
    if (r != CUDA_SUCCESS)
        return r;
    cuLibraryGetKernel(&kernel, library, "ramp");
    set(slot, 0, (uintptr_t)library);
    set(slot, 1, (uintptr_t)kernel);
    return CUDA_SUCCESS;
}

static CUresult destroy_library(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuLibraryUnload((CUlibrary)(uintptr_t)values[0]);
}

static CUresult use_library(struct user *user, const uint64_t *values, unsigned way)
{
    CUfunction function;
    CUkernel kernel;

    switch (way) {
    case 0:
        return cuLibraryGetKernel(&kernel, (CUlibrary)(uintptr_t)values[0], "ramp");
    case 1:
        return cuKernelGetFunction(&function, (CUkernel)(uintptr_t)values[1]);
    default:
        return launch((CUfunction)(uintptr_t)values[1], user->stream, user->memory);
    }
}

/* ---- memory: values[0] is its address ---- */

static CUresult use_memory(struct user *user, const uint64_t *values, unsigned way)
{
    const CUdeviceptr at = values[0];
    size_t size;

    switch (way) {
    case 0:
        return cuMemcpyHtoD(at, user->bytes, BYTES);
    case 1:
        return cuMemcpyDtoH(user->bytes, at, BYTES);
    case 2:
        return cuMemcpyHtoDAsync(at, user->bytes, BYTES, user->stream);
    case 3:
        return cuMemcpyDtoDAsync(user->memory, at, BYTES, user->stream);
    case 4:
        return cuMemcpyDtoDAsync(at, user->memory, BYTES, NULL);
    case 5:
        return cuMemsetD32Async(at, 7, BYTES / 4, user->stream);
    case 6:
        return cuStreamWriteValue32(user->stream, at, 1, 0);
    case 7:
        return cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at);
    default:
        return cuMemGetAddressRange(NULL, &size, at);
    }
}
enum { MEMORY_WAYS = 9 };

static CUresult make_device(struct slot *slot, struct user *by)
{
    CUdeviceptr at;
    CUresult r = cuMemAlloc(&at, number(by, 2) ? BYTES : 2 << 20);

    set(slot, 0, r == CUDA_SUCCESS ? at : 0);
    return r;
}

static CUresult make_managed(struct slot *slot, struct user *by)
{
    CUdeviceptr at;
    CUresult r = cuMemAllocManaged(&at, BYTES, CU_MEM_ATTACH_GLOBAL);

    (void)by;
    set(slot, 0, r == CUDA_SUCCESS ? at : 0);
    return r;
}

static CUresult make_pooled(struct slot *slot, struct user *by)
{
    CUdeviceptr at;
    CUresult r = cuMemAllocAsync(&at, BYTES, by->stream);

    set(slot, 0, r == CUDA_SUCCESS ? at : 0);
    return r;
}

static CUresult free_device(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuMemFree(values[0]);
}

static CUresult free_pooled(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot;
    return number(by, 2) ? cuMemFreeAsync(values[0], by->stream) : cuMemFree(values[0]);
}

static CUresult make_host(struct slot *slot, struct user *by)
{
    void *pages;
    CUresult r = cuMemAllocHost(&pages, BYTES);

    (void)by;
    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)pages : 0);
    return r;
}

static CUresult free_host(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuMemFreeHost((void *)(uintptr_t)values[0]);
}

static CUresult make_registered(struct slot *slot, struct user *by)
{
    void *pages = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUresult r;

    (void)by;
    if (pages == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = cuMemHostRegister(pages, 2 * BYTES, 0);
    if (r != CUDA_SUCCESS)
        munmap(pages, 2 * BYTES);
    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)pages : 0);
    return r;
}

static CUresult unregister(struct slot *slot, struct user *by, const uint64_t *values)
{
    void *pages = (void *)(uintptr_t)values[0];
    CUresult r = cuMemHostUnregister(pages);

    (void)slot, (void)by;
    munmap(pages, 2 * BYTES);
    return r;
}

size_t granule(CUmemAllocationProp *properties)
{
    size_t bytes = 0;

    *properties = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    cuMemGetAllocationGranularity(&bytes, properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return bytes;
}

/* The slot keeps its reservation: values[1]. */
static CUresult make_mapped(struct slot *slot, struct user *by)
{
    CUmemAllocationProp properties;
    const size_t bytes = granule(&properties);
    CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = atomic_load(&slot->values[1]);
    CUresult r = CUDA_SUCCESS;

    (void)by;
    if (!at && (r = cuMemAddressReserve(&at, bytes, 0, 0, 0)) != CUDA_SUCCESS)
        return r;
    set(slot, 1, at);
    if ((r = cuMemCreate(&handle, bytes, &properties, 0)) != CUDA_SUCCESS)
        return r;
    r = cuMemMap(at, bytes, 0, handle, 0);
    cuMemRelease(handle);
    if (r == CUDA_SUCCESS)
        r = cuMemSetAccess(at, bytes, &access, 1);
    set(slot, 0, r == CUDA_SUCCESS ? at : 0);
    return r;
}

static CUresult unmap(struct slot *slot, struct user *by, const uint64_t *values)
{
    CUmemAllocationProp properties;
    const size_t bytes = granule(&properties);
    CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};

    (void)slot;
    if (number(by, 2))
        cuMemSetAccess(values[0], bytes, &access, 1);
    return cuMemUnmap(values[0], bytes);
}

/* ---- pools and arrays ---- */

static CUresult make_pool(struct slot *slot, struct user *by)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool pool;
    CUresult r;

    (void)by;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    r = cuMemPoolCreate(&pool, &properties);
    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)pool : 0);
    return r;
}

static CUresult destroy_pool(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuMemPoolDestroy((CUmemoryPool)(uintptr_t)values[0]);
}

static CUresult use_pool(struct user *user, const uint64_t *values, unsigned way)
{
    CUmemoryPool pool = (CUmemoryPool)(uintptr_t)values[0];
    CUdeviceptr at;
    CUresult r;

    if (way == 0)
        return cuMemPoolTrimTo(pool, 0);
    if ((r = cuMemAllocFromPoolAsync(&at, BYTES, pool, user->stream)) != CUDA_SUCCESS)
        return r;
    cuMemsetD8Async(at, 3, BYTES, user->stream);
    return cuMemFreeAsync(at, user->stream);
}

static CUresult make_array(struct slot *slot, struct user *by)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = 64, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUarray array;
    CUresult r = cuArrayCreate(&array, &desc);

    (void)by;
    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)array : 0);
    return r;
}

static CUresult destroy_array(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuArrayDestroy((CUarray)(uintptr_t)values[0]);
}

static CUresult use_array(struct user *user, const uint64_t *values, unsigned way)
{
    CUarray array = (CUarray)(uintptr_t)values[0];
    CUDA_ARRAY_DESCRIPTOR desc;

    switch (way) {
    case 0:
        return cuMemcpyHtoA(array, 0, user->bytes, 256);
    case 1:
        return cuMemcpyAtoH(user->bytes, array, 0, 256);
    case 2:
        return cuMemcpyHtoAAsync(array, 0, user->bytes, 256, user->stream);
    case 3:
        return cuMemcpyAtoD(user->memory, array, 0, 256);
    default:
        return cuArrayGetDescriptor(&desc, array);
    }
}

static CUresult make_mipmapped(struct slot *slot, struct user *by)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUmipmappedArray array;
    CUresult r = cuMipmappedArrayCreate(&array, &desc, 3);

    (void)by;
    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)array : 0);
    return r;
}

static CUresult destroy_mipmapped(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)values[0]);
}

static CUresult use_mipmapped(struct user *user, const uint64_t *values, unsigned way)
{
    uint64_t level[MAX_VALUES] = {0};
    CUarray array;
    CUresult r = cuMipmappedArrayGetLevel(&array, (CUmipmappedArray)(uintptr_t)values[0], 0);

    if (r != CUDA_SUCCESS)
        return r;
    level[0] = (uintptr_t)array;
    return use_array(user, level, way);
}

/* ---- physical memory: each use maps it at an address of its own ---- */

static CUresult make_physical(struct slot *slot, struct user *by)
{
    CUmemAllocationProp properties;
    const size_t bytes = granule(&properties);
    CUmemGenericAllocationHandle handle;
    CUresult r = cuMemCreate(&handle, bytes, &properties, 0);

    (void)by;
    set(slot, 0, r == CUDA_SUCCESS ? handle : 0);
    return r;
}

static CUresult release_physical(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuMemRelease(values[0]);
}

static CUresult map_and_fill(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle, const CUmemAllocationProp *properties)
{
    const CUmemAccessDesc access = {.location = properties->location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult r = cuMemMap(at, bytes, 0, handle, 0);

    if (r != CUDA_SUCCESS)
        return r;
    r = cuMemSetAccess(at, bytes, &access, 1);
    if (r == CUDA_SUCCESS)
        r = cuMemsetD8(at, 3, BYTES);
    cuMemUnmap(at, bytes);
    return r;
}

static CUresult use_physical(struct user *user, const uint64_t *values, unsigned way)
{
    CUmemAllocationProp properties;
    const size_t bytes = granule(&properties);
    CUdeviceptr at;
    CUresult r;

    (void)user;
    if (way == 0)
        return cuMemGetAllocationPropertiesFromHandle(&properties, values[0]);
    if ((r = cuMemAddressReserve(&at, bytes, 0, 0, 0)) != CUDA_SUCCESS)
        return r;
    r = map_and_fill(at, bytes, values[0], &properties);
    cuMemAddressFree(at, bytes);
    return r;
}

/* ---- states of the linker: a call gives NOT_PERMITTED while another thread's call uses the same one ---- */

static CUresult make_link(struct slot *slot, struct user *by)
{
    CUlinkState state;
    CUresult r = cuLinkCreate(0, NULL, NULL, &state);

    (void)by;
    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)state : 0);
    return r;
}

static CUresult destroy_link(struct slot *slot, struct user *by, const uint64_t *values)
{
    CUresult r;

    (void)slot, (void)by;
    while ((r = cuLinkDestroy((CUlinkState)(uintptr_t)values[0])) == CUDA_ERROR_NOT_PERMITTED)
        usleep(100);
    return r;
}

static CUresult use_link(struct user *user, const uint64_t *values, unsigned way)
{
    static char nothing[] = PTX_HEADER; /* which can be added many times */
    CUlinkState state = (CUlinkState)(uintptr_t)values[0];
    void *image;
    size_t bytes;
    CUresult r;

    (void)user;
    if (way == 0)
        r = cuLinkComplete(state, &image, &bytes); /* whoever destroys the state frees the image, so nobody reads it */
    else
        r = cuLinkAddData(state, CU_JIT_INPUT_PTX, nothing, sizeof nothing, "nothing", 0, NULL, NULL);
    return r == CUDA_ERROR_NOT_PERMITTED ? CUDA_SUCCESS : r;
}

/* ---- streams, events, contexts ---- */

static CUresult make_stream(struct slot *slot, struct user *by)
{
    CUstream stream;
    CUresult r = cuStreamCreate(&stream, number(by, 2) ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);

    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)stream : 1);
    return r;
}

static CUresult destroy_stream(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuStreamDestroy((CUstream)(uintptr_t)values[0]);
}

static void CUDA_CB do_nothing(void *unused)
{
    (void)unused;
}

/* Other threads may add nodes to the same capture, invalidate it or end it. */
static CUresult capture(CUstream stream, struct user *user)
{
    CUgraph graph = NULL;
    CUresult r = cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);

    if (r != CUDA_SUCCESS)
        return r;
    (void)cuMemsetD8Async(user->memory, 1, BYTES, stream);
    (void)launch(user->function, stream, user->memory);
    r = cuStreamEndCapture(stream, &graph);
    return r == CUDA_SUCCESS ? cuGraphDestroy(graph) : r;
}

static CUresult use_stream(struct user *user, const uint64_t *values, unsigned way)
{
    CUstream stream = (CUstream)(uintptr_t)values[0];
    CUdeviceptr at;
    CUresult r;

    switch (way) {
    case 0:
        return cuMemsetD8Async(user->memory, 1, BYTES, stream);
    case 1:
        return launch(user->function, stream, user->memory);
    case 2:
        return cuStreamSynchronize(stream);
    case 3:
        return cuStreamQuery(stream);
    case 4:
        return cuLaunchHostFunc(stream, do_nothing, NULL);
    case 5:
        return cuMemcpyHtoDAsync(user->memory, user->bytes, BYTES, stream);
    case 6:
        return capture(stream, user);
    default:
        r = cuMemAllocAsync(&at, BYTES, stream);
        return r == CUDA_SUCCESS ? cuMemFree(at) : r;
    }
}

static CUresult make_event(struct slot *slot, struct user *by)
{
    CUevent event;
    CUresult r = cuEventCreate(&event, number(by, 2) ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT);

    set(slot, 0, r == CUDA_SUCCESS ? (uintptr_t)event : 0);
    return r;
}

static CUresult destroy_event(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuEventDestroy((CUevent)(uintptr_t)values[0]);
}

static CUresult use_event(struct user *user, const uint64_t *values, unsigned way)
{
    CUevent event = (CUevent)(uintptr_t)values[0];
    float ms;

    switch (way) {
    case 0:
        return cuEventRecord(event, user->stream);
    case 1:
        return cuStreamWaitEvent(user->stream, event, 0);
    case 2:
        return cuEventQuery(event);
    case 3:
        return cuEventSynchronize(event);
    default:
        cuEventElapsedTime(&ms, event, event);
        return CUDA_SUCCESS;
    }
}

static CUresult make_context(struct slot *slot, struct user *by)
{
    CUcontext context;
    CUdeviceptr at = 0;
    CUstream stream = NULL;
    CUresult r = create_context(&context, 0);

    if (r != CUDA_SUCCESS)
        return r;
    cuMemAlloc(&at, BYTES);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuCtxSetCurrent(by->context);
    set(slot, 0, (uintptr_t)context);
    set(slot, 1, at);
    set(slot, 2, (uintptr_t)stream);
    return CUDA_SUCCESS;
}

static CUresult destroy_context(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    return cuCtxDestroy((CUcontext)(uintptr_t)values[0]);
}

static CUresult use_context(struct user *user, const uint64_t *values, unsigned way)
{
    CUstream stream = (CUstream)(uintptr_t)values[2];
    CUdeviceptr at;
    CUresult r;

    if (way == 0)
        return cuMemcpyDtoDAsync(user->memory, values[1], BYTES, user->stream);
    if (way == 1)
        return cuMemcpyDtoDAsync(values[1], user->memory, BYTES, stream);
    if ((r = cuCtxSetCurrent((CUcontext)(uintptr_t)values[0])) == CUDA_SUCCESS && (r = cuMemAlloc(&at, BYTES)) == CUDA_SUCCESS) {
        r = way == 2 ? cuMemsetD8Async(at, 1, BYTES, stream) : cuCtxSynchronize();
        cuMemFree(at);
    }
    cuCtxSetCurrent(user->context);
    return r;
}

/* ---- external memory: values[0] is a mapped buffer, values[1] the object ---- */

static CUresult make_external(struct slot *slot, struct user *by)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = BYTES};
    CUmemAllocationProp properties;
    CUmemGenericAllocationHandle handle;
    CUexternalMemory memory;
    CUdeviceptr at = 0;
    CUresult r;

    (void)by;
    desc.size = granule(&properties);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if ((r = cuMemCreate(&handle, desc.size, &properties, 0)) != CUDA_SUCCESS)
        return r;
    r = cuMemExportToShareableHandle(&desc.handle.fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (r == CUDA_SUCCESS && (r = cuImportExternalMemory(&memory, &desc)) != CUDA_SUCCESS)
        close(desc.handle.fd);
    cuMemRelease(handle);
    if (r != CUDA_SUCCESS)
        return r;
    cuExternalMemoryGetMappedBuffer(&at, memory, &buffer);
    set(slot, 0, at);
    set(slot, 1, (uintptr_t)memory);
    return CUDA_SUCCESS;
}

static CUresult destroy_external(struct slot *slot, struct user *by, const uint64_t *values)
{
    (void)slot, (void)by;
    cuMemFree(values[0]);
    return cuDestroyExternalMemory((CUexternalMemory)(uintptr_t)values[1]);
}

static CUresult use_external(struct user *user, const uint64_t *values, unsigned way)
{
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = BYTES};
    CUdeviceptr at;
    CUresult r;

    if (way < MEMORY_WAYS)
        return use_memory(user, values, way);
    r = cuExternalMemoryGetMappedBuffer(&at, (CUexternalMemory)(uintptr_t)values[1], &buffer);
    return r == CUDA_SUCCESS ? cuMemFree(at) : r;
}

/* ---- graphs: values[0] is the graph, values[1] its first node, values[2] an executable graph ---- */

static CUresult fill_graph(CUgraph graph, struct user *by, CUgraphNode *out_node)
{
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = by->memory, .value = 1, .elementSize = 1, .width = BYTES, .height = 1};
    uint32_t a = 1, count = 64;
    void *params[] = {&by->memory, &a, &count};
    const CUDA_KERNEL_NODE_PARAMS kernel = {.func = by->function,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 64,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .kernelParams = params};
    CUgraphNode node;
    CUresult r = cuGraphAddMemsetNode(out_node, graph, NULL, 0, &fill, by->context);

    return r == CUDA_SUCCESS ? cuGraphAddKernelNode(&node, graph, out_node, 1, &kernel) : r;
}

static CUresult make_graph(struct slot *slot, struct user *by)
{
    CUgraphNode node = NULL;
    CUgraphExec exec = NULL;
    CUgraph graph;
    CUresult r = cuGraphCreate(&graph, 0);

    if (r != CUDA_SUCCESS)
        return r;
    r = fill_graph(graph, by, &node);
    if (r == CUDA_SUCCESS)
        r = cuGraphInstantiate(&exec, graph, 0);
    set(slot, 0, (uintptr_t)graph);
    set(slot, 1, (uintptr_t)node);
    set(slot, 2, (uintptr_t)exec);
    return r;
}

static CUresult destroy_graph(struct slot *slot, struct user *by, const uint64_t *values)
{
    CUresult r = cuGraphExecDestroy((CUgraphExec)(uintptr_t)values[2]);

    (void)slot, (void)by;
    return r == CUDA_SUCCESS ? cuGraphDestroy((CUgraph)(uintptr_t)values[0]) : r;
}

static CUresult use_graph(struct user *user, const uint64_t *values, unsigned way)
{
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = user->memory, .value = 2, .elementSize = 1, .width = BYTES, .height = 1};
    CUgraph graph = (CUgraph)(uintptr_t)values[0], copy;
    CUgraphNode node = (CUgraphNode)(uintptr_t)values[1], other, nodes[4];
    CUgraphExec exec = (CUgraphExec)(uintptr_t)values[2];
    CUgraphExecUpdateResultInfo info;
    size_t count = 4;
    CUresult r;

    switch (way) {
    case 0:
        return cuGraphAddEmptyNode(&other, graph, &node, 1);
    case 1:
        return cuGraphGetNodes(graph, nodes, &count);
    case 2:
        r = cuGraphInstantiate(&exec, graph, 0);
        return r == CUDA_SUCCESS ? cuGraphExecDestroy(exec) : r;
    case 3:
        r = cuGraphClone(&copy, graph);
        return r == CUDA_SUCCESS ? cuGraphDestroy(copy) : r;
    case 4:
        return cuGraphExecMemsetNodeSetParams(exec, node, &fill, user->context);
    case 5:
        r = cuGraphExecUpdate(exec, graph, &info);
        return r == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_SUCCESS : r; /* empty nodes were added */
    case 6:
        return cuGraphMemsetNodeSetParams(node, &fill);
    default:
        return cuGraphLaunch(exec, user->stream);
    }
}

/* ---- the table ---- */

const struct kind kinds[KINDS] = {
    {"module", make_module, destroy_module, use_module, 8, 0},
    {"library", make_library, destroy_library, use_library, 5, 0},
    {"device memory", make_device, free_device, use_memory, MEMORY_WAYS, 0},
    {"managed memory", make_managed, free_device, use_memory, MEMORY_WAYS, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {"page-locked memory", make_host, free_host, use_memory, MEMORY_WAYS, 0},
    {"registered memory", make_registered, unregister, use_memory, MEMORY_WAYS, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"memory of a pool", make_pooled, free_pooled, use_memory, MEMORY_WAYS, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {"mapped memory", make_mapped, unmap, use_memory, MEMORY_WAYS, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"external memory", make_external, destroy_external, use_external, MEMORY_WAYS + 1,
     CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
    {"pool", make_pool, destroy_pool, use_pool, 4, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {"array", make_array, destroy_array, use_array, 5, 0},
    {"mipmapped array", make_mipmapped, destroy_mipmapped, use_mipmapped, 5, 0},
    {"physical memory", make_physical, release_physical, use_physical, 3, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"linker's state", make_link, destroy_link, use_link, 3, 0},
    {"stream", make_stream, destroy_stream, use_stream, 8, 0},
    {"event", make_event, destroy_event, use_event, 5, 0},
    {"context", make_context, destroy_context, use_context, 4, 0},
    {"graph", make_graph, destroy_graph, use_graph, 9, 0},
};

/* ---- for the tests ---- */

bool is_expected(CUresult r)
{
    switch ((int)r) {
    case CUDA_SUCCESS:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_ILLEGAL_STATE: /* these of captures */
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
        return true;
    default:
        return false;
    }
}

bool is_there(const struct kind *kind)
{
    int value = 0;

    return !kind->needs || (cuDeviceGetAttribute(&value, kind->needs, 0) == CUDA_SUCCESS && value);
}

void copy_values(const struct slot *slot, uint64_t *out)
{
    for (unsigned i = 0; i < MAX_VALUES; i++)
        out[i] = atomic_load(&slot->values[i]);
}

CUresult start_user(struct user *user)
{
    CUmodule module;
    CUresult r = cuCtxSetCurrent(user->context);

    if (r == CUDA_SUCCESS)
        r = cuStreamCreate(&user->stream, CU_STREAM_NON_BLOCKING);
    if (r == CUDA_SUCCESS)
        r = cuMemAlloc(&user->memory, BYTES);
    if (r == CUDA_SUCCESS)
        r = cuModuleLoadData(&module, PTX_HEADER PTX_RAMP);
    return r == CUDA_SUCCESS ? cuModuleGetFunction(&user->function, module, "ramp") : r;
}

/* ---- the objects ---- */

struct slot slots[SLOTS];
atomic_uint unexpected;

void check(const struct kind *kind, const char *what, unsigned way, CUresult r)
{
    if (is_expected(r))
        return;
    atomic_fetch_add(&unexpected, 1);
    print_error("%s: %s %u gave %s\n", kind->name, what, way, api_error_name(r));
}

void change_slot(struct slot *slot, struct user *by)
{
    uint64_t values[MAX_VALUES];
    CUresult r;

    pthread_mutex_lock(&slot->lock);
    copy_values(slot, values);
    if (slot->is_made)
        check(slot->kind, "destroying", 0, slot->kind->destroy(slot, by, values));
    r = slot->kind->make(slot, by);
    slot->is_made = r == CUDA_SUCCESS;
    check(slot->kind, "making", 0, r);
    pthread_mutex_unlock(&slot->lock);
}

void prepare_slots(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        slots[i].kind = &kinds[i / SLOTS_OF_KIND];
        pthread_mutex_init(&slots[i].lock, NULL);
    }
}

void empty_slots(struct user *by)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        uint64_t values[MAX_VALUES];

        copy_values(&slots[i], values);
        if (slots[i].is_made)
            check(slots[i].kind, "destroying", 0, slots[i].kind->destroy(&slots[i], by, values));
    }
}
