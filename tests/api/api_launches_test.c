/* SPDX-License-Identifier: Apache-2.0 */
/* Execution control and occupancy. */
#include "loaded_module.h"

#include "api_kernels.h"

#include <pthread.h>

static const char ptx[] =
    PTX_HEADER PTX_RAMP PTX_NOTHING PTX_SHARED("room", 1024) PTX_DYNAMIC PTX_REQUIRED PTX_COUNTED PTX_BOUNDED PTX_WHERE PTX_PARAMS PTX_MANY;

#define OUT_BYTES 65536

static int load(void **state)
{
    return load_module(state, ptx, OUT_BYTES);
}

static int device_limit(CUdevice_attribute which)
{
    int value = 0;

    ok(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

/* One launch of a kernel without parameters. */
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared)
{
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, NULL, NULL);
}

static void read_words(uint32_t *words, size_t count)
{
    ok(cuMemcpyDtoH(words, out, count * 4)); /* waits for the preceding kernels */
}

static void a_kernel_writes_what_it_should(void **state)
{
    uint32_t a = 1000, count = 1003, words[1024];
    void *params[] = {&out, &a, &count};

    (void)state;
    ok(cuMemsetD32(out, 5, 1024));
    ok(cuLaunchKernel(get("ramp"), 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    read_words(words, 1024);
    for (uint32_t i = 0; i < 1024; i++)
        assert_int_equal(words[i], i < count ? a + i : 5);
}

static void parameters_as_one_block(void **state)
{
    struct {
        CUdeviceptr out;
        uint32_t a, count;
    } block = {out, 7, 100};
    size_t size = sizeof block;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void *params[] = {&block.out, &block.a, &block.count}, *unknown[] = {(void *)17, NULL, CU_LAUNCH_PARAM_END};
    uint32_t words[100];

    (void)state;
    ok(cuMemsetD32(out, 0, 100));
    ok(cuLaunchKernel(get("ramp"), 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    read_words(words, 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(words[i], 7 + i);
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(get("ramp"), 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(get("ramp"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(get("ramp"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown));
    size = 32;
    gives(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(get("ramp"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    if (!on_cuttle())
        return;
    size = 12; /* is accepted; the missing count is 0 here, but could be anything */
    ok(cuMemsetD32(out, 5, 1));
    ok(cuLaunchKernel(get("ramp"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    read_words(words, 1);
    assert_int_equal(words[0], 5);
}

static void parameters_of_all_sizes(void **state)
{
    uint8_t b = 0xab;
    uint16_t h = 0xbeef;
    uint32_t w = 0xdeadbeef, three[3] = {1, 2, 0xffffffff};
    uint64_t q = 0x0123456789abcdef;
    void *params[] = {&b, &out, &h, &w, &q, three};
    unsigned char bytes[28];

    (void)state;
    ok(cuLaunchKernel(get("params"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(bytes, out, sizeof bytes));
    assert_int_equal(bytes[0], b);
    assert_memory_equal(bytes + 2, &h, 2);
    assert_memory_equal(bytes + 4, &w, 4);
    assert_memory_equal(bytes + 8, &q, 8);
    assert_memory_equal(bytes + 16, three, 12);
}

/* Parameters are copied during the call: each launch has its own while later ones are prepared. */
static void many_bytes_of_parameters(void **state)
{
    static uint32_t words[996], got[200];
    CUfunction many = get("many");

    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        CUdeviceptr place = out + 4 * i;
        uint32_t index = i * 4 + 3;
        void *params[] = {&place, &index, words};

        for (uint32_t j = 0; j < 996; j++)
            words[j] = i * 1000 + j;
        ok(cuLaunchKernel(many, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    }
    read_words(got, 200);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(got[i], i * 1000 + i * 4 + 3);
}

static void indices_and_dimensions(void **state)
{
    static const uint32_t shapes[][6] = {
        {1, 1, 1, 1, 1, 1}, {7, 5, 3, 4, 3, 2}, {1, 1, 9, 1, 1, 64}, {3, 70, 2, 5, 13, 1}, {70000, 1, 1, 2, 1, 1}, {1, 65535, 1, 1, 1, 1},
    };
    CUfunction where = get("where");
    void *params[] = {&out};
    uint32_t words[12];

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint32_t *s = shapes[i];

        ok(cuMemsetD32(out, 0xffffffff, 12));
        ok(cuLaunchKernel(where, s[0], s[1], s[2], s[3], s[4], s[5], 0, NULL, params, NULL));
        read_words(words, 12);
        for (int j = 0; j < 6; j++) {
            assert_int_equal(words[j], s[j]);
            assert_int_equal(words[6 + j], s[j] - 1);
        }
    }
}

static void grids_and_blocks_out_of_bounds(void **state)
{
    CUfunction f = get("nothing");
    unsigned threads = (unsigned)device_limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    unsigned z = (unsigned)device_limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    unsigned gy = (unsigned)device_limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 0, 1, 1, 1, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 0, 1, 1, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 0, 1, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, 0, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, 1, 0, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, 1, 1, 0, 0));
    ok(launch(f, 1, 1, 1, threads, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, threads + 1, 1, 1, 0));
    ok(launch(f, 1, 1, 1, 2, threads / 2, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, 2, threads / 2 + 1, 1, 0));
    ok(launch(f, 1, 1, 1, 1, 1, z, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, 1, 1, z + 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 1, 0x80000000, 2, 1, 0)); /* a product that overflows */
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, gy + 1, 1, 1, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(f, 1, 1, 0xffffffff, 1, 1, 1, 0));
    ok(cuCtxSynchronize());
}

static void what_a_kernel_declares_is_a_limit(void **state)
{
    (void)state;
    ok(launch(get("bounded"), 2, 1, 1, 64, 1, 1, 0));
    ok(launch(get("bounded"), 2, 1, 1, 8, 8, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(get("bounded"), 2, 1, 1, 65, 1, 1, 0));
    ok(launch(get("required"), 2, 1, 1, 8, 4, 2, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(get("required"), 2, 1, 1, 4, 8, 2, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(get("required"), 2, 1, 1, 2, 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, launch(get("required"), 2, 1, 1, 64, 1, 1, 0));
    ok(cuCtxSynchronize());
}

/* A block of 1 x 1 x 1 is the one that the kernel requires. */
static void a_required_block_may_be_left_out(void **state)
{
    CUfunction counted = get("counted");
    void *params[] = {&out};
    uint32_t threads;

    (void)state;
    ok(cuMemsetD32(out, 0, 1));
    ok(cuLaunchKernel(counted, 3, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    read_words(&threads, 1);
    assert_int_equal(threads, 3 * 8 * 4 * 2);
}

static void static_shared_memory(void **state)
{
    void *params[] = {&out};
    uint32_t word;

    (void)state;
    ok(cuLaunchKernel(get("room"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    read_words(&word, 1);
    assert_int_equal(word, 77);
}

static void dynamic_shared_memory(void **state)
{
    CUfunction reverse = get("reverse");
    void *params[] = {&out};
    uint32_t words[64];
    unsigned unasked = (unsigned)device_limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    unsigned asked = (unsigned)device_limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

    (void)state;
    for (unsigned bytes = 256; bytes <= unasked; bytes = bytes < unasked ? unasked : bytes + 1) {
        ok(cuMemsetD32(out, 0, 64));
        ok(cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, bytes, NULL, params, NULL));
        read_words(words, 64);
        for (uint32_t i = 0; i < 64; i++)
            assert_int_equal(words[i], 63 - i);
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, unasked + 4, NULL, params, NULL));
    ok(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)asked));
    ok(cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, asked, NULL, params, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, asked + 4, NULL, params, NULL));
    ok(cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(reverse, 1, 1, 1, 64, 1, 1, 1028, NULL, params, NULL));
    ok(cuCtxSynchronize());
}

static void handles_that_cannot_be_launched(void **state)
{
    CUfunction nothing = get("nothing");
    CUcontext context;

    (void)state;
    gives(CUDA_ERROR_INVALID_HANDLE, launch(NULL, 1, 1, 1, 1, 1, 1, 0));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_HANDLE, launch(MADE_UP(CUfunction), 1, 1, 1, 1, 1, 1, 0));
        gives(CUDA_ERROR_INVALID_HANDLE, launch((CUfunction)module, 1, 1, 1, 1, 1, 1, 0));
    }
    ok(cuCtxPopCurrent(&context));
    gives(CUDA_ERROR_INVALID_CONTEXT, launch(nothing, 1, 1, 1, 1, 1, 1, 0));
    ok(cuCtxPushCurrent(context));
}

static void launch_with_attributes(void **state)
{
    CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}, {.id = CU_LAUNCH_ATTRIBUTE_IGNORE}};
    CUlaunchConfig config = {
        .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 50, .blockDimY = 1, .blockDimZ = 1, .attrs = attributes, .numAttrs = 2};
    uint32_t a = 3, count = 100, words[100];
    void *params[] = {&out, &a, &count};

    (void)state;
    ok(cuMemsetD32(out, 0, 100));
    ok(cuLaunchKernelEx(&config, get("ramp"), params, NULL));
    read_words(words, 100);
    assert_true(words[0] == 3 && words[99] == 102);
    config.numAttrs = 0;
    config.attrs = NULL;
    ok(cuLaunchKernelEx(&config, get("ramp"), params, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(NULL, get("ramp"), params, NULL));
    config.numAttrs = 1;
    config.attrs = attributes;
    attributes[0].id = (CUlaunchAttributeID)1000;
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, get("ramp"), params, NULL));
    ok(cuCtxSynchronize());
}

/* Hints are accepted, and disabled features may be stated explicitly; attributes that would change the launch are rejected. */
static void every_attribute_is_taken_or_refused(void **state)
{
    static const struct {
        CUlaunchAttribute attribute;
        CUresult here;
    } rows[] = {
        {{.id = CU_LAUNCH_ATTRIBUTE_IGNORE}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 0}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY}, CUDA_ERROR_INVALID_VALUE},
        {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}}, CUDA_ERROR_INVALID_CLUSTER_SIZE},
        {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT}, CUDA_ERROR_INVALID_HANDLE},
        {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}, CUDA_ERROR_INVALID_HANDLE},
        {{.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, .value.deviceUpdatableKernelNode.deviceUpdatable = 0}, CUDA_SUCCESS},
        {{.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, .value.deviceUpdatableKernelNode.deviceUpdatable = 1},
         CUDA_ERROR_NOT_SUPPORTED},
        {{.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, .value.sharedMemCarveout = 50}, CUDA_SUCCESS},
        {{.id = (CUlaunchAttributeID)15}, CUDA_ERROR_INVALID_VALUE},
    };

    (void)state;
    if (!on_cuttle())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUlaunchAttribute attribute = rows[i].attribute;
        CUlaunchConfig config = {.gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 1,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .attrs = &attribute,
                                 .numAttrs = 1};

        gives(rows[i].here, cuLaunchKernelEx(&config, get("nothing"), NULL, NULL));
    }
    ok(cuCtxSynchronize());
}

/* Both kinds of event may complete as late as the end of the kernel, but not before it begins. */
static void events_in_launches(void **state)
{
    CUlaunchAttribute attributes[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT}, {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}};
    CUlaunchConfig config = {
        .gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 64, .blockDimY = 1, .blockDimZ = 1, .attrs = attributes, .numAttrs = 2};
    uint32_t a = 17, count = 256, words[256] = {0};
    void *params[] = {&out, &a, &count};
    CUevent events[2], timed;
    CUstream stream;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&events[0], CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&events[1], CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&timed, 0));
    attributes[0].value.programmaticEvent.event = events[0];
    attributes[1].value.launchCompletionEvent.event = events[1];
    ok(cuMemsetD32(out, 0, 256));
    ok(cuCtxSynchronize());
    ok(cuLaunchKernelEx(&config, get("ramp"), params, NULL));
    ok(cuStreamWaitEvent(stream, events[0], 0));
    ok(cuMemcpyDtoHAsync(words, out, sizeof words, stream));
    ok(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(words[i], a + i);
    ok(cuEventSynchronize(events[1]));
    ok(cuEventQuery(events[1]));
    attributes[0].value.programmaticEvent.event = timed;
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, get("ramp"), params, NULL));
    ok(cuEventDestroy(events[0]));
    ok(cuEventDestroy(events[1]));
    ok(cuEventDestroy(timed));
    ok(cuStreamDestroy(stream));
}

static void launches_run_in_order(void **state)
{
    CUfunction ramp = get("ramp");
    uint32_t words[16], count = 16;

    (void)state;
    for (uint32_t a = 0; a < 1000; a++) {
        void *params[] = {&out, &a, &count};

        ok(cuLaunchKernel(ramp, 1, 1, 1, 16, 1, 1, 0, NULL, params, NULL));
    }
    read_words(words, 16);
    for (uint32_t i = 0; i < 16; i++)
        assert_int_equal(words[i], 999 + i);
}

/* The legacy stream waits for the others, and so does a copy in it, even if the legacy stream has never been used. */
static void a_copy_waits_for_other_streams(void **state)
{
    CUfunction ramp = get("ramp");
    uint32_t count = OUT_BYTES / 4, word;

    (void)state;
    for (uint32_t a = 1; a <= 100; a++) {
        void *params[] = {&out, &a, &count};
        CUstream stream;

        ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
        ok(cuLaunchKernel(ramp, count / 64, 1, 1, 64, 1, 1, 0, stream, params, NULL));
        ok(cuMemcpyDtoH(&word, out + OUT_BYTES - 4, 4));
        assert_int_equal(word, a + count - 1);
        ok(cuStreamDestroy(stream));
    }
}

struct worker {
    CUcontext context;
    CUfunction ramp;
    uint32_t number;
    int wrong;
};

static void *launch_often(void *argument)
{
    struct worker *worker = argument;
    CUdeviceptr mine = out + worker->number * 1024;
    uint32_t count = 256, words[256];

    cuCtxSetCurrent(worker->context);
    for (uint32_t round = 0; round < 50; round++) {
        uint32_t a = worker->number * 1000000 + round;
        void *params[] = {&mine, &a, &count};

        worker->wrong += cuLaunchKernel(worker->ramp, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL) != CUDA_SUCCESS;
        worker->wrong += cuMemcpyDtoH(words, mine, sizeof words) != CUDA_SUCCESS;
        for (uint32_t i = 0; i < 256; i++)
            worker->wrong += words[i] != a + i;
    }
    return NULL;
}

static void threads_launch_at_once(void **state)
{
    struct worker workers[4];
    pthread_t threads[4];

    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){*state, get("ramp"), i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
}

static size_t a_kilobyte_for_each_warp(int block)
{
    return (size_t)block / 32 * 1024;
}

static void occupancy(void **state)
{
    CUfunction nothing = get("nothing"), room = get("room"), bounded = get("bounded");
    int blocks, grid, block, threads = device_limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    int resident = device_limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    int most_blocks = device_limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    int shared = device_limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    size_t bytes;

    (void)state;
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, threads, 0));
    assert_int_equal(blocks, resident / threads);
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
    assert_int_equal(blocks, most_blocks < resident / 32 ? most_blocks : resident / 32);
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, room, 32, (size_t)shared - 1024));
    assert_true(blocks >= 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0));
    ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, NULL, 0, 0));
    assert_true(block >= 32 && block <= threads && resident / block * block == resident);
    assert_true(grid >= device_limit(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, NULL, 0, 100));
    assert_in_range(block, 1, 100);
    ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, NULL, 0, 0));
    assert_in_range(block, 1, 64);
    ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, a_kilobyte_for_each_warp, 0, 0));
    assert_true(a_kilobyte_for_each_warp(block) <= (size_t)shared);
    ok(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, nothing, 1, 32));
    if (on_cuttle()) /* up to the function's limit, which may be raised; NVIDIA's driver may allow the device's limit at once */
        assert_int_equal(bytes, shared);
    assert_true(bytes >= (size_t)shared);
}

/* A kernel that has 100 bytes of shared memory and reads the size of its dynamic part. */
static void special_registers_of_launches(void **state)
{
    static const char sizes[] = PTX_HEADER ".visible .entry sizes(.param .u64 out)\n{\n"
                                           "    .shared .align 4 .b8 own[100];\n    .reg .b32 %r<4>;\n    .reg .b64 %d1;\n"
                                           "    ld.param.u64 %d1, [out];\n    mov.u32 %r1, 1;\n    st.shared.u32 [own], %r1;\n"
                                           "    mov.u32 %r2, %dynamic_smem_size;\n    mov.u32 %r3, %total_smem_size;\n"
                                           "    st.global.u32 [%d1], %r2;\n    st.global.u32 [%d1+4], %r3;\n    ret;\n}\n";
    static const unsigned given[] = {0, 4, 1000};
    void *params[] = {&out};
    uint32_t got[2];
    CUmodule local;
    CUfunction function;

    (void)state;
    ok(cuModuleLoadData(&local, sizes));
    ok(cuModuleGetFunction(&function, local, "sizes"));
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        ok(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, given[i], NULL, params, NULL));
        ok(cuMemcpyDtoH(got, out, sizeof got));
        assert_int_equal(got[0], given[i]);
        assert_true(got[1] >= got[0] + 100);
    }
    ok(cuModuleUnload(local));
}

static int64_t host_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Reads the timer at the beginning, after some work, and once more in two halves; and the clock, before and after. */
static const char timer_text[] =
    PTX_HEADER ".visible .entry timer(.param .u64 out)\n{\n    .reg .b64 %d<8>;\n    .reg .b32 %r<6>;\n    .reg .pred %p1;\n"
               "    ld.param.u64 %d1, [out];\n    mov.u64 %d4, %clock64;\n    mov.u64 %d2, %globaltimer;\n    st.global.u64 [%d1], %d2;\n"
               "    mov.u32 %r1, 0;\nL:\n    ld.volatile.global.u32 %r2, [%d1+32];\n    add.u32 %r2, %r2, 1;\n"
               "    st.volatile.global.u32 [%d1+32], %r2;\n    add.u32 %r1, %r1, 1;\n    setp.lt.u32 %p1, %r1, 20000;\n    @%p1 bra L;\n"
               "    mov.u64 %d3, %globaltimer;\n    st.global.u64 [%d1+8], %d3;\n    mov.u32 %r3, %globaltimer_lo;\n"
               "    mov.u32 %r4, %globaltimer_hi;\n    st.global.u32 [%d1+16], %r3;\n    st.global.u32 [%d1+20], %r4;\n"
               "    mov.u64 %d5, %clock64;\n    sub.u64 %d5, %d5, %d4;\n    st.global.u64 [%d1+24], %d5;\n    ret;\n}\n";

struct times {
    uint64_t first, second, halves, cycles;
};

/* One launch, and the host's times before and after it. */
static void read_timer(CUfunction function, struct times *out_times, int64_t *before, int64_t *after)
{
    void *params[] = {&out};

    *before = host_ns();
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuCtxSynchronize());
    *after = host_ns();
    ok(cuMemcpyDtoH(out_times, out, sizeof *out_times));
}

/* PTX ISA, "%globaltimer": nanoseconds. The duration of a launch lies within the interval that the host measures, and so does the time
 * between two launches, with a tolerance of a third: on a busy machine the length of a tick cannot be measured more precisely. */
static void timer_is_nanoseconds(void **state)
{
    enum { PAUSE_NS = 50000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct times first, second;
    int64_t before[2], after[2], between;
    CUfunction function;
    CUmodule local;

    (void)state;
    ok(cuModuleLoadData(&local, timer_text));
    ok(cuModuleGetFunction(&function, local, "timer"));
    read_timer(function, &first, &before[0], &after[0]); /* the first launch compiles it */
    read_timer(function, &first, &before[0], &after[0]);
    nanosleep(&pause, NULL);
    read_timer(function, &second, &before[1], &after[1]);
    assert_true(first.second >= first.first && first.halves >= first.second);
    assert_true(first.cycles > 0);
    assert_true((double)(first.second - first.first) <= 1.33 * (double)(after[0] - before[0]) + 2000);
    between = (int64_t)(second.first - first.second);
    assert_true((double)between >= 0.75 * (double)(before[1] - after[0]) - 2000);
    assert_true((double)between <= 1.33 * (double)(after[1] - before[0]) + 2000);
    assert_true(between >= PAUSE_NS / 4 * 3);
    ok(cuModuleUnload(local));
}

/* Clusters of up to 8 blocks, or 16 where the function allows it (tests/programs/clusters_test.c). */
static void occupancy_of_clusters(void **state)
{
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {.clusterDim = {1, 1, 1}}};
    CUlaunchConfig config = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    CUfunction nothing = get("nothing");
    int number = -1, blocks;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuOccupancyMaxPotentialClusterSize(&number, nothing, &config));
    assert_int_equal(number, 8);
    gives(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&number, nothing, &config)); /* no size set */
    config.attrs = &cluster;
    config.numAttrs = 1;
    ok(cuOccupancyMaxActiveClusters(&number, nothing, &config));
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
    assert_int_equal(number, blocks * device_limit(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    cluster.value.clusterDim.x = 2;
    ok(cuOccupancyMaxActiveClusters(&number, nothing, &config));
    assert_int_equal(number, blocks * device_limit(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) / 2);
    cluster.value.clusterDim.x = 9;
    gives(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&number, nothing, &config));
    config.blockDimX = 1 << 20;
    ok(cuOccupancyMaxPotentialClusterSize(&number, nothing, &config));
    assert_int_equal(number, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialClusterSize(NULL, nothing, &config));
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialClusterSize(&number, nothing, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(&number, nothing, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuOccupancyMaxActiveClusters(&number, NULL, &config));
}

/* With NVIDIA's driver these end the process. */
static void occupancy_without_a_place_for_it(void **state)
{
    CUfunction nothing = get("nothing");
    int number;

    (void)state;
    if (!on_cuttle())
        skip();
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, nothing, 32, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&number, nothing, 32, 0, 0x100));
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(NULL, &number, nothing, NULL, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSize(&number, NULL, nothing, NULL, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(NULL, nothing, 1, 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_writes_what_it_should),
        cmocka_unit_test(parameters_as_one_block),
        cmocka_unit_test(parameters_of_all_sizes),
        cmocka_unit_test(many_bytes_of_parameters),
        cmocka_unit_test(indices_and_dimensions),
        cmocka_unit_test(grids_and_blocks_out_of_bounds),
        cmocka_unit_test(what_a_kernel_declares_is_a_limit),
        cmocka_unit_test(a_required_block_may_be_left_out),
        cmocka_unit_test(static_shared_memory),
        cmocka_unit_test(dynamic_shared_memory),
        cmocka_unit_test(handles_that_cannot_be_launched),
        cmocka_unit_test(launch_with_attributes),
        cmocka_unit_test(every_attribute_is_taken_or_refused),
        cmocka_unit_test(events_in_launches),
        cmocka_unit_test(launches_run_in_order),
        cmocka_unit_test(a_copy_waits_for_other_streams),
        cmocka_unit_test(threads_launch_at_once),
        cmocka_unit_test(occupancy),
        cmocka_unit_test(special_registers_of_launches),
        cmocka_unit_test(timer_is_nanoseconds),
        cmocka_unit_test(occupancy_of_clusters),
        cmocka_unit_test(occupancy_without_a_place_for_it),
    };

    return cmocka_run_group_tests_name("launches", tests, load, unload_module);
}
