/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that check the manual's specification of page-locked memory sentence by sentence. They are plain programs of the driver API:
 * the same binaries run with NVIDIA's own driver, which must pass them, too. */
#ifndef CUTTLE_TESTS_MEMORY_SEEDS_H
#define CUTTLE_TESTS_MEMORY_SEEDS_H

#include "../api_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEEDS_WORDS 3000u

/* clang-format off */
static const char seeds_ptx[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    /* p[thread] = p[thread] * 3 + 1 */
    ".visible .entry step(.param .u64 p, .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<6>;\n    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [p];\n    ld.param.u32 %r2, [count];\n"
    "    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %tid.x;\n"
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n    setp.ge.u32 %p, %r3, %r2;\n    @%p bra done;\n"
    "    mul.wide.u32 %d2, %r3, 4;\n    add.u64 %d3, %d1, %d2;\n"
    "    ld.global.u32 %r1, [%d3];\n    mad.lo.u32 %r1, %r1, 3, 1;\n    st.global.u32 [%d3], %r1;\n"
    "done:\n    ret;\n}\n"
    /* to[thread] = from[thread] */
    ".visible .entry move(.param .u64 to, .param .u64 from, .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<6>;\n    .reg .b64 %d<6>;\n"
    "    ld.param.u64 %d1, [to];\n    ld.param.u64 %d4, [from];\n    ld.param.u32 %r2, [count];\n"
    "    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %tid.x;\n"
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n    setp.ge.u32 %p, %r3, %r2;\n    @%p bra done;\n"
    "    mul.wide.u32 %d2, %r3, 4;\n    add.u64 %d3, %d1, %d2;\n    add.u64 %d5, %d4, %d2;\n"
    "    ld.global.u32 %r1, [%d5];\n    st.global.u32 [%d3], %r1;\n"
    "done:\n    ret;\n}\n"
    ".visible .entry stops()\n{\n    trap;\n    ret;\n}\n"
    /* Waits until *question is not 0, then writes twice that to answer[1], and 1 to answer[0] once answer[1] is visible to all
     * observers. */
    ".visible .entry replies(.param .u64 question, .param .u64 answer)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<4>;\n    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [question];\n    ld.param.u64 %d2, [answer];\n"
    "wait:\n    ld.volatile.global.u32 %r1, [%d1];\n    setp.eq.u32 %p, %r1, 0;\n    @%p bra wait;\n"
    "    membar.sys;\n    shl.b32 %r1, %r1, 1;\n    st.volatile.global.u32 [%d2+4], %r1;\n"
    "    membar.sys;\n    mov.u32 %r2, 1;\n    st.volatile.global.u32 [%d2], %r2;\n"
    "    ret;\n}\n";
/* clang-format on */

static inline int seeds_attribute(CUdevice_attribute attribute)
{
    CUdevice device;
    int value = -1;

    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetAttribute(&value, attribute, device));
    return value;
}

/* Runs a kernel of seeds_ptx in the current context and waits for it. */
static inline CUresult seeds_run(const char *name, void **params, unsigned threads)
{
    CUfunction function;
    CUmodule module;
    CUresult r;

    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&function, module, name));
    r = cuLaunchKernel(function, (threads + 127) / 128, 1, 1, threads < 128 ? threads : 128, 1, 1, 0, NULL, params, NULL);
    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    cuModuleUnload(module);
    return r;
}

static inline void seeds_step(CUdeviceptr p, unsigned count)
{
    ok(seeds_run("step", (void *[]){&p, &count}, count));
}

/* Memory of a pool that host and device use at one address, in the order of a stream. */
static inline void seeds_use_pool(CUmemoryPool pool)
{
    unsigned count = SEEDS_WORDS;
    CUfunction function;
    CUmodule module;
    CUstream stream;
    uint32_t *words;
    CUdeviceptr p;

    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&function, module, "step"));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned turn = 0; turn < 3; turn++) {
        ok(cuMemAllocFromPoolAsync(&p, SEEDS_WORDS * 4, pool, stream));
        assert_int_equal(p % 512, 0);
        ok(cuStreamSynchronize(stream));
        words = (uint32_t *)(uintptr_t)p;
        for (uint32_t i = 0; i < SEEDS_WORDS; i++)
            words[i] = i + turn;
        ok(cuLaunchKernel(function, (count + 63) / 64, 1, 1, 64, 1, 1, 0, stream, (void *[]){&p, &count}, NULL));
        ok(cuStreamSynchronize(stream));
        for (uint32_t i = 0; i < SEEDS_WORDS; i++)
            assert_int_equal(words[i], (i + turn) * 3 + 1);
        ok(cuMemFreeAsync(p, stream));
    }
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuModuleUnload(module));
}

/* Frees memory of a pool, which is possible once, at its start, and not by cuMemFreeHost. */
static inline void seeds_free_once(CUdeviceptr p)
{
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)p));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 4));
    ok(cuMemFree(p));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}

/* The host writes at `host`, a kernel works at `device`, and the host sees the result: both denote the same memory. */
static inline void seeds_shared_words(uint32_t *host, CUdeviceptr device, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        host[i] = i ^ 0x5a5a;
    seeds_step(device, count);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(host[i], (i ^ 0x5a5a) * 3 + 1);
}

/* A stream whose work does not begin until the gate is opened. */
struct seeds_gate {
    CUstream stream;
    atomic_int open;
};

static inline void seeds_gate_wait(void *gate)
{
    while (!atomic_load(&((struct seeds_gate *)gate)->open))
        usleep(100);
}

static inline void seeds_gate_make(struct seeds_gate *gate)
{
    atomic_store(&gate->open, 0);
    ok(cuStreamCreate(&gate->stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(gate->stream, seeds_gate_wait, gate));
}

static inline void seeds_gate_finish(struct seeds_gate *gate)
{
    atomic_store(&gate->open, 1);
    ok(cuStreamSynchronize(gate->stream));
    ok(cuStreamDestroy(gate->stream));
}

/* An asynchronous copy from page-locked memory reads it when the copy is executed, not during the call: nothing is staged. */
static inline void seeds_copy_is_direct(uint32_t *host)
{
    struct seeds_gate gate;
    uint32_t back[2] = {0, 0};
    CUdeviceptr device;

    ok(cuMemAlloc(&device, 8));
    seeds_gate_make(&gate);
    host[0] = host[1] = 1;
    ok(cuMemcpyHtoDAsync(device, host, 8, gate.stream));
    host[0] = host[1] = 2;
    seeds_gate_finish(&gate);
    ok(cuMemcpyDtoH(back, device, 8));
    assert_int_equal(back[0], 2);
    assert_int_equal(back[1], 2);
    ok(cuMemFree(device));
}

/* After `code` ended with an error in a context of its own, `call` returns that error. To be used once, at the end: `call` runs in that
 * context. */
#define seeds_tells_earlier_error(call)                                                                                                    \
    do {                                                                                                                                   \
        CUcontext seeds_context;                                                                                                           \
        CUresult seeds_error;                                                                                                              \
        ok(cuCtxCreate(&seeds_context, NULL, 0, 0));                                                                                       \
        seeds_error = seeds_run("stops", NULL, 1);                                                                                         \
        assert_int_not_equal(seeds_error, CUDA_SUCCESS);                                                                                   \
        gives(seeds_error, call);                                                                                                          \
        cuCtxDestroy(seeds_context);                                                                                                       \
    } while (0)

#endif
