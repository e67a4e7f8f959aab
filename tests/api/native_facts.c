/* SPDX-License-Identifier: Apache-2.0 */
/* Checks native_facts.def against the loaded libcuda. */
#include "api_kernels.h"

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char good_ptx[] =
    PTX_HEADER ".visible .global .align 4 .u32 seen = 1;\n"
               ".global .align 4 .u32 hidden = 2;\n" PTX_NOTHING PTX_RAMP PTX_BOUNDED PTX_REQUIRED PTX_COUNTED PTX_TRAP;

/* Objects that rows refer to. */
static CUdevice device;
static CUcontext context;
static CUmodule module, loaded;
static CUfunction function, nothing, ramp, bounded, required, counted;
static CUdeviceptr address, memory;
static char text[256];
static int number;
static unsigned word;
static size_t size;
static unsigned long long id;
static CUjit_option bad_option = (CUjit_option)1000;
static void *values[1];
static uint32_t one = 1;
static void *params[3] = {&memory, &one, &one};
static struct {
    CUdeviceptr out;
    uint32_t a, count;
    char more[16];
} block;
static size_t exact = 16, one_more = 17, large = 32, small = 8;
static void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &exact, CU_LAUNCH_PARAM_END};
static void *extra_one_more[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &one_more, CU_LAUNCH_PARAM_END};
static void *extra_large[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &large, CU_LAUNCH_PARAM_END};
static void *extra_small[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &small, CU_LAUNCH_PARAM_END};
static void *extra_sizeless[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_END};
static void *extra_unknown[] = {(void *)17, NULL, CU_LAUNCH_PARAM_END};

static CUresult shape(CUfunction f, unsigned grid, unsigned threads, unsigned shared, CUstream stream)
{
    return cuLaunchKernel(f, grid, 1, 1, threads, 1, 1, shared, stream, NULL, NULL);
}

static CUresult with_attribute(int which, int value)
{
    CUlaunchAttribute attribute;
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .attrs = &attribute, .numAttrs = 1};

    memset(&attribute, 0, sizeof attribute);
    attribute.id = (CUlaunchAttributeID)which;
    memcpy(&attribute.value, &value, sizeof value);
    return cuLaunchKernelEx(&config, nothing, NULL, NULL);
}

static CUresult in_another_context(CUfunction f)
{
    CUcontext other;
    CUresult r = cuCtxCreate(&other, NULL, 0, device);

    if (r != CUDA_SUCCESS)
        return r;
    r = shape(f, 1, 1, 0, NULL);
    cuCtxDestroy(other);
    return r;
}

/* A context that is destroyed while it is twice on the calling thread's stack: it remains current. */
static CUresult device_of_destroyed(void)
{
    CUresult r;

    if ((r = cuCtxCreate(&context, NULL, 0, device)) != CUDA_SUCCESS || (r = cuCtxPushCurrent(context)) != CUDA_SUCCESS ||
        (r = cuCtxDestroy(context)) != CUDA_SUCCESS)
        return r;
    r = cuCtxGetDevice(&number);
    cuCtxPopCurrent(NULL);
    return r;
}

static CUresult unload_after_context(void)
{
    CUcontext other;
    CUresult r;

    if ((r = cuCtxCreate(&other, NULL, 0, device)) != CUDA_SUCCESS || (r = cuModuleLoadData(&module, good_ptx)) != CUDA_SUCCESS ||
        (r = cuCtxDestroy(other)) != CUDA_SUCCESS)
        return r;
    return cuModuleUnload(module);
}

/* Into `word`. */
static CUresult count_threads(void)
{
    CUresult r;

    if ((r = cuMemsetD32(memory, 0, 1)) != CUDA_SUCCESS ||
        (r = cuLaunchKernel(counted, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)) != CUDA_SUCCESS)
        return r;
    return cuMemcpyDtoH(&word, memory, sizeof word);
}

static CUresult largest_block_is_64(CUfunction f)
{
    CUresult r = cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);

    return r == CUDA_SUCCESS && number != 64 ? CUDA_ERROR_UNKNOWN : r;
}

static CUresult shared_limit_is_devices(void)
{
    CUresult r = cuCtxGetLimit(&size, CU_LIMIT_SHMEM_SIZE);

    if (r == CUDA_SUCCESS)
        r = cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    return r == CUDA_SUCCESS && size != (size_t)number ? CUDA_ERROR_UNKNOWN : r;
}

/* A copy of 16 bytes within `memory`, with the members in `with` changed. */
static CUDA_MEMCPY3D small_box(const CUDA_MEMCPY3D *with)
{
    CUDA_MEMCPY3D copy = *with;

    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory;
    copy.dstDevice = memory + 64;
    copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 16;
    copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
    return copy;
}

static CUresult box(const CUDA_MEMCPY3D *with)
{
    CUDA_MEMCPY3D copy = small_box(with);

    return cuMemcpy3D(&copy);
}

static CUresult box_async(const CUDA_MEMCPY3D *with)
{
    CUDA_MEMCPY3D copy = small_box(with);

    return cuMemcpy3DAsync(&copy, NULL);
}

static CUresult pool(const CUmemPoolProps *with)
{
    CUmemPoolProps properties = *with;
    CUmemoryPool made;

    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE};
    return cuMemPoolCreate(&made, &properties);
}

/* ---- fixtures ---- */
enum group { GROUP_device, GROUP_primary, GROUP_context, GROUP_module, GROUP_launch, GROUP_ignored, GROUP_trap, GROUP_COUNT };

static bool prepare(enum group group)
{
    CUfunction stops;

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS)
        return false;
    if (group < GROUP_module)
        return true;
    if (cuCtxCreate(&context, NULL, 0, device) != CUDA_SUCCESS)
        return false;
    if (group == GROUP_module)
        return true;
    if (cuModuleLoadData(&loaded, good_ptx) != CUDA_SUCCESS || cuModuleGetFunction(&nothing, loaded, "nothing") != CUDA_SUCCESS ||
        cuModuleGetFunction(&ramp, loaded, "ramp") != CUDA_SUCCESS || cuModuleGetFunction(&bounded, loaded, "bounded") != CUDA_SUCCESS ||
        cuModuleGetFunction(&required, loaded, "required") != CUDA_SUCCESS ||
        cuModuleGetFunction(&counted, loaded, "counted") != CUDA_SUCCESS || cuMemAlloc(&memory, 4096) != CUDA_SUCCESS)
        return false;
    block.out = memory;
    block.count = 1;
    if (group != GROUP_trap)
        return true;
    return cuModuleGetFunction(&stops, loaded, "stops") == CUDA_SUCCESS && shape(stops, 1, 32, 0, NULL) == CUDA_SUCCESS;
}

#define FACTS_FILE "native_facts.def"
#include "facts.h"

int main(int count, char **arguments)
{
    return check_facts(count, arguments);
}
