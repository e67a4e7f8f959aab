/* SPDX-License-Identifier: Apache-2.0 */
#include "every_call.h"

#include "api_kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char ptx[] = PTX_HEADER ".visible .global .align 4 .u32 seen = 1;\n" PTX_NOTHING PTX_RAMP;

/* ---- objects that calls refer to ---- */
struct every_call_objects at;

static unsigned char buffers[32][8192]; /* results, and arguments that are zeros */
static unsigned next_buffer;

static void *zeros(void)
{
    return buffers[next_buffer++ % 32];
}

static void do_nothing(void *user)
{
    (void)user;
}

static void call_nothing(CUstream stream, CUresult status, void *user)
{
    (void)stream, (void)status, (void)user;
}

static CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUmemPoolProps pool_props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUmemAccessDesc access_here = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static CUDA_ARRAY_DESCRIPTOR square = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUDA_ARRAY_DESCRIPTOR line_desc = {.Width = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUDA_ARRAY_DESCRIPTOR_v1 square_v1 = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUDA_ARRAY3D_DESCRIPTOR cube = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUDA_ARRAY3D_DESCRIPTOR_v1 cube_v1 = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
static CUlaunchConfig one_block = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
static CUDA_MEMCPY2D rows;
static CUDA_MEMCPY3D box;
static CUDA_MEMCPY3D_PEER peers;
static CUDA_MEMCPY3D_BATCH_OP boxes;
static CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
static CUDA_RESOURCE_DESC resource;
static CUDA_TEXTURE_DESC texture_desc;
static CUDA_KERNEL_NODE_PARAMS launch_params = {
    .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
static CUDA_KERNEL_NODE_PARAMS_v1 launch_params_v1 = {
    .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
static CUDA_MEMSET_NODE_PARAMS fill_params = {.elementSize = 1, .width = 16, .height = 1};
static CUDA_HOST_NODE_PARAMS host_params = {.fn = do_nothing};
static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params = {
    .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}}, .bytesize = 4096};
static CUstreamBatchMemOpParams operation = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32}};
static CUDA_BATCH_MEM_OP_NODE_PARAMS operations;
static CUdeviceptr sources[1], destinations[1];
static size_t sizes[1] = {16}, firsts[1];
static CUpointer_attribute pointer_attributes[1] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
static CUmem_range_attribute range_attributes[1] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY};
static void *values[1] = {buffers[31]};
static CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
static CUgraphNodeParams node_params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
static char ptx_path[64], bus_id[32];
static CUipcMemHandle memory_handle;
static CUipcEventHandle event_handle;

/* With NVIDIA's driver all of these exist; here unsupported objects remain 0, and so do the calls that would need them. */
static void make_graph(void)
{
    if (cuGraphCreate(&at.graph, 0) != CUDA_SUCCESS)
        return;
    cuGraphCreate(&at.child, 0);
    launch_params.func = launch_params_v1.func = at.function;
    fill_params.dst = at.memory;
    cuGraphAddEmptyNode(&at.empty, at.graph, NULL, 0);
    cuGraphAddKernelNode_v2(&at.launch, at.graph, NULL, 0, &launch_params);
    cuGraphAddMemcpyNode(&at.copy, at.graph, NULL, 0, &box, at.context);
    cuGraphAddMemsetNode(&at.fill, at.graph, NULL, 0, &fill_params, at.context);
    cuGraphAddHostNode(&at.host, at.graph, NULL, 0, &host_params);
    cuGraphAddChildGraphNode(&at.sub, at.graph, NULL, 0, at.child);
    cuGraphAddEventRecordNode(&at.record, at.graph, NULL, 0, at.event);
    cuGraphAddEventWaitNode(&at.wait, at.graph, NULL, 0, at.event);
    cuGraphInstantiateWithFlags(&at.exec, at.graph, 0);
    cuUserObjectCreate(&at.user, zeros(), do_nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
}

static void make_copies(void)
{
    rows = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = at.memory,
                           .srcPitch = 16,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = at.memory + 64,
                           .dstPitch = 16,
                           .WidthInBytes = 16,
                           .Height = 1};
    box = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = at.memory,
                          .srcPitch = 16,
                          .srcHeight = 1,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = at.memory + 64,
                          .dstPitch = 16,
                          .dstHeight = 1,
                          .WidthInBytes = 16,
                          .Height = 1,
                          .Depth = 1};
    peers = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = at.memory,
                                 .srcContext = at.context,
                                 .srcPitch = 16,
                                 .srcHeight = 1,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = at.memory + 64,
                                 .dstContext = at.context,
                                 .dstPitch = 16,
                                 .dstHeight = 1,
                                 .WidthInBytes = 16,
                                 .Height = 1,
                                 .Depth = 1};
    boxes = (CUDA_MEMCPY3D_BATCH_OP){.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = at.memory}},
                                     .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = at.memory + 64}},
                                     .extent = {16, 1, 1},
                                     .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    sources[0] = at.memory;
    destinations[0] = at.memory + 64;
    resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = at.array};
    operation.writeValue.address = at.memory;
    operations = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = at.context, .count = 1, .paramArray = &operation};
}

bool every_call_make_objects(void)
{
    CUDA_ARRAY3D_DESCRIPTOR storage = cube;

    memset(&at, 0, sizeof at);
    memset(buffers, 0, sizeof buffers);
    storage.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&at.device, 0) != CUDA_SUCCESS ||
        cuCtxCreate_v4(&at.context, NULL, 0, at.device) != CUDA_SUCCESS ||
        cuStreamCreate(&at.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
        cuStreamCreate(&at.runner, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || cuEventCreate(&at.event, 0) != CUDA_SUCCESS ||
        cuMemAlloc_v2(&at.memory, 1 << 16) != CUDA_SUCCESS || cuModuleLoadData(&at.module, ptx) != CUDA_SUCCESS ||
        cuModuleGetFunction(&at.function, at.module, "nothing") != CUDA_SUCCESS || cuMemHostAlloc(&at.pinned, 4096, 0) != CUDA_SUCCESS)
        return false;
    at.pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        cuEventCreate(&at.timed[i], 0);
        cuEventRecord(at.timed[i], at.stream);
    }
    cuMemAllocManaged(&at.managed, 65536, CU_MEM_ATTACH_GLOBAL);
    cuArray3DCreate_v2(&at.array, &storage);
    cuMipmappedArrayCreate(&at.mipmap, &cube, 3);
    cuLibraryLoadData(&at.library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    cuLibraryGetKernel(&at.kernel, at.library, "nothing");
    cuMemPoolCreate(&at.pool, &pool_props);
    cuMemAllocFromPoolAsync(&at.allocated, 4096, at.pool, at.stream);
    cuLinkCreate_v2(0, NULL, NULL, &at.link);
    cuMemAddressReserve(&at.reserved, 4 << 20, 0, 0, 0);
    cuMemCreate(&at.physical, 2 << 20, &props, 0);
    cuMemMap(at.reserved, 2 << 20, 0, at.physical, 0);
    cuMemSetAccess(at.reserved, 2 << 20, &access_here, 1);
    cuMemAddressReserve(&at.unused, 2 << 20, 0, 0, 0);
    cuModuleGetFunction(&at.ramp, at.module, "ramp");
    cuLibraryGetKernel(&at.ramp_kernel, at.library, "ramp");
    cuArrayCreate_v2(&at.line, &line_desc);
    cuEventCreate(&at.shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    at.registered = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cuMemHostRegister_v2(at.registered, 65536, 0);
    make_copies();
    cuTexObjectCreate(&at.texture, &resource, &texture_desc, NULL);
    cuSurfObjectCreate(&at.surface, &resource);
    cuTexRefCreate(&at.texref);
    make_graph();
    return cuCtxSynchronize() == CUDA_SUCCESS;
}

/* ---- arguments by their types ---- */
#define FILL_ONE(a)                                                                                                                        \
    a = _Generic((a),                                                                                                                      \
        unsigned int: 1,                                                                                                                   \
        int: 0,                                                                                                                            \
        unsigned char: 0,                                                                                                                  \
        unsigned short: 0,                                                                                                                 \
        float: 0,                                                                                                                          \
        unsigned long: 16,                                                                                                                 \
        unsigned long long: at.memory,                                                                                                     \
        CUstream: at.stream,                                                                                                               \
        CUevent: at.event,                                                                                                                 \
        CUcontext: at.context,                                                                                                             \
        CUmodule: at.module,                                                                                                               \
        CUfunction: at.function,                                                                                                           \
        CUlibrary: at.library,                                                                                                             \
        CUkernel: at.kernel,                                                                                                               \
        CUmemoryPool: at.pool,                                                                                                             \
        CUlinkState: at.link,                                                                                                              \
        CUarray: at.array,                                                                                                                 \
        CUmipmappedArray: at.mipmap,                                                                                                       \
        CUgraph: at.graph,                                                                                                                 \
        CUgraphNode: at.empty,                                                                                                             \
        CUgraphExec: at.exec,                                                                                                              \
        CUtexref: at.texref,                                                                                                               \
        CUuserObject: at.user,                                                                                                             \
        CUhostFn: do_nothing,                                                                                                              \
        CUstreamCallback: call_nothing,                                                                                                    \
        CUmemLocation: here,                                                                                                               \
        CUipcMemHandle: memory_handle,                                                                                                     \
        CUipcEventHandle: event_handle,                                                                                                    \
        CUeglFrame: (CUeglFrame){0},                                                                                                       \
        CUgraphicsResource: NULL,                                                                                                          \
        CUgreenCtx: NULL,                                                                                                                  \
        CUsurfref: NULL,                                                                                                                   \
        CUexternalMemory: NULL,                                                                                                            \
        CUexternalSemaphore: NULL,                                                                                                         \
        CUasyncCallback: NULL,                                                                                                             \
        CUasyncCallbackHandle: NULL,                                                                                                       \
        CUoccupancyB2DSize: NULL,                                                                                                          \
        CUlogsCallback: NULL,                                                                                                              \
        CUlogsCallbackHandle: NULL,                                                                                                        \
        CUdevResourceDesc: NULL,                                                                                                           \
        VdpGetProcAddress *: NULL,                                                                                                         \
        const char *: "nothing",                                                                                                           \
        const CUmemAllocationProp *: &props,                                                                                               \
        const CUmemPoolProps *: &pool_props,                                                                                               \
        const CUmemAccessDesc *: &access_here,                                                                                             \
        const CUmemLocation *: &here,                                                                                                      \
        CUmemLocation *: &here,                                                                                                            \
        const CUDA_ARRAY_DESCRIPTOR *: &square,                                                                                            \
        const CUDA_ARRAY_DESCRIPTOR_v1 *: &square_v1,                                                                                      \
        const CUDA_ARRAY3D_DESCRIPTOR *: &cube,                                                                                            \
        const CUDA_ARRAY3D_DESCRIPTOR_v1 *: &cube_v1,                                                                                      \
        const CUlaunchConfig *: &one_block,                                                                                                \
        const CUDA_MEMCPY2D *: &rows,                                                                                                      \
        const CUDA_MEMCPY3D *: &box,                                                                                                       \
        const CUDA_MEMCPY3D_PEER *: &peers,                                                                                                \
        CUDA_MEMCPY3D_BATCH_OP *: &boxes,                                                                                                  \
        CUmemcpyAttributes *: &how,                                                                                                        \
        const CUDA_RESOURCE_DESC *: &resource,                                                                                             \
        const CUDA_TEXTURE_DESC *: &texture_desc,                                                                                          \
        const CUDA_RESOURCE_VIEW_DESC *: NULL,                                                                                             \
        const CUDA_KERNEL_NODE_PARAMS *: &launch_params,                                                                                   \
        const CUDA_KERNEL_NODE_PARAMS_v1 *: &launch_params_v1,                                                                             \
        const CUDA_MEMSET_NODE_PARAMS *: &fill_params,                                                                                     \
        const CUDA_HOST_NODE_PARAMS *: &host_params,                                                                                       \
        CUDA_MEM_ALLOC_NODE_PARAMS *: &alloc_params,                                                                                       \
        const CUDA_BATCH_MEM_OP_NODE_PARAMS *: &operations,                                                                                \
        CUstreamBatchMemOpParams *: &operation,                                                                                            \
        CUgraphNodeParams *: &node_params,                                                                                                 \
        CUctxCreateParams *: NULL,                                                                                                         \
        CUexecAffinityParam *: NULL,                                                                                                       \
        const CUgraphNode *: NULL,                                                                                                         \
        const CUgraphEdgeData *: NULL,                                                                                                     \
        default: zeros());

#define FILL_0()
#define FILL_1(a) FILL_ONE(a)
#define FILL_2(a, ...) FILL_ONE(a) FILL_1(__VA_ARGS__)
#define FILL_3(a, ...) FILL_ONE(a) FILL_2(__VA_ARGS__)
#define FILL_4(a, ...) FILL_ONE(a) FILL_3(__VA_ARGS__)
#define FILL_5(a, ...) FILL_ONE(a) FILL_4(__VA_ARGS__)
#define FILL_6(a, ...) FILL_ONE(a) FILL_5(__VA_ARGS__)
#define FILL_7(a, ...) FILL_ONE(a) FILL_6(__VA_ARGS__)
#define FILL_8(a, ...) FILL_ONE(a) FILL_7(__VA_ARGS__)
#define FILL_9(a, ...) FILL_ONE(a) FILL_8(__VA_ARGS__)
#define FILL_10(a, ...) FILL_ONE(a) FILL_9(__VA_ARGS__)
#define FILL_11(a, ...) FILL_ONE(a) FILL_10(__VA_ARGS__)
#define FILL_12(a, ...) FILL_ONE(a) FILL_11(__VA_ARGS__)
#define FILL_13(a, ...) FILL_ONE(a) FILL_12(__VA_ARGS__)
#define FILL_14(a, ...) FILL_ONE(a) FILL_13(__VA_ARGS__)
#define FILL_15(a, ...) FILL_ONE(a) FILL_14(__VA_ARGS__)
#define FILL_16(a, ...) FILL_ONE(a) FILL_15(__VA_ARGS__)
#define FILL_17(a, ...) FILL_ONE(a) FILL_16(__VA_ARGS__)
#define FILL_18(a, ...) FILL_ONE(a) FILL_17(__VA_ARGS__)
#define COUNTED(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, n, ...) n
#define FILL(...)                                                                                                                          \
    __VA_OPT__(COUNTED(__VA_ARGS__, FILL_18, FILL_17, FILL_16, FILL_15, FILL_14, FILL_13, FILL_12, FILL_11, FILL_10, FILL_9, FILL_8,       \
                       FILL_7, FILL_6, FILL_5, FILL_4, FILL_3, FILL_2, FILL_1, )(__VA_ARGS__))

/* Each symbol with the values above as arguments. NVIDIA's library lacks some symbols. */
#define SYMBOL(symbol, name, version, flavour, params, args)                                                                               \
    static CUresult fill_##symbol params                                                                                                   \
    {                                                                                                                                      \
        __typeof__(&symbol) found = (__typeof__(&symbol))dlsym(RTLD_DEFAULT, #symbol);                                                     \
                                                                                                                                           \
        FILL args return found ? found args : CUDA_ERROR_NOT_FOUND;                                                                        \
    }
#include "entry_points.def"

#define CALL(symbol, call)                                                                                                                 \
    static CUresult call_##symbol(void)                                                                                                    \
    {                                                                                                                                      \
        return call;                                                                                                                       \
    }
#define OTHERWISE(symbol, reason)
#include "host_function_calls.def"

const struct every_call_subject every_call_subjects[CT_ENTRY_POINT_COUNT] = {
#define SUBJECT(row, symbol) {#symbol, CT_ROW_##row, (ct_function)fill_##symbol},
#define ENTRY(symbol, name, version, params, args) SUBJECT(symbol, symbol)
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args) SUBJECT(symbol, symbol) SUBJECT(symbol, symbol##_ptds)
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams) SUBJECT(symbol, symbol) SUBJECT(symbol, symbol##_ptsz)
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args) SUBJECT(symbol, symbol) SUBJECT(symbol, symbol##_ptsz)
#include "entry_points.def"
};

static const struct {
    const char *symbol;
    CUresult (*call)(void);
} calls[] = {
#define CALL(symbol, call) {#symbol, call_##symbol},
#define OTHERWISE(symbol, reason)
#include "host_function_calls.def"
};

CUresult every_call(const struct every_call_subject *subject)
{
    typedef CUresult any(uint64_t, ...); /* at most 18 arguments, each of which is overwritten */

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].symbol, subject->symbol))
            return calls[i].call();
    return ((any *)subject->fill)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* ---- files ---- */

void every_call_make_file(void)
{
    int file = memfd_create("ptx", 0);

    snprintf(ptx_path, sizeof ptx_path, "/proc/self/fd/%d", file);
    if (write(file, ptx, sizeof ptx - 1) != (ssize_t)sizeof ptx - 1)
        exit(EXIT_FAILURE);
}
