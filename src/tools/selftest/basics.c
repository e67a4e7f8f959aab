/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, warps, blocks: the execution of kernels. */
#include "selftest.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void selftest_say(struct selftest *test, const char *format, ...)
{
    const size_t used = strlen(test->detail);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(test->detail + used, sizeof test->detail - used, format, arguments);
    va_end(arguments);
}

bool selftest_try(struct selftest *test, CUresult result, const char *call)
{
    const char *name = "?";

    if (result == CUDA_SUCCESS)
        return true;
    cuGetErrorName(result, &name);
    selftest_say(test, "%.80s: %s", call, name);
    return false;
}

CUresult selftest_load(const char *ptx, CUmodule *out_module, CUfunction *out_function)
{
    const CUresult r = cuModuleLoadData(out_module, ptx);

    return r == CUDA_SUCCESS ? cuModuleGetFunction(out_function, *out_module, "check") : r;
}

double selftest_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs a kernel with one parameter, memory for n_words words, which are then copied to `out`. */
static enum selftest_result run(struct selftest *test, const char *ptx, unsigned blocks, unsigned threads, uint32_t *out, size_t n_words)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    void *params[] = {&memory};

    TRY(selftest_load(ptx, &module, &function));
    TRY(cuMemAlloc(&memory, n_words * sizeof *out));
    TRY(cuMemsetD32(memory, 0, n_words));
    TRY(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
    TRY(cuMemcpyDtoH(out, memory, n_words * sizeof *out));
    TRY(cuMemFree(memory));
    TRY(cuModuleUnload(module));
    return SELFTEST_PASSED;
}

/* ---- addresses ---- */

/* A list in device memory: each element points to the next one, which the kernel follows; it stores the address of the last. */
static const char addresses_ptx[] =
    SELFTEST_HEAD ".visible .entry check(.param .u64 first, .param .u64 to)\n{\n"
                  "    .reg .b64 %at, %next, %to;\n    .reg .pred %p;\n"
                  "    ld.param.u64 %at, [first];\n    ld.param.u64 %to, [to];\n"
                  "    cvta.to.global.u64 %to, %to;\n"
                  "NEXT:\n    ld.u64 %next, [%at];\n    setp.eq.u64 %p, %next, 0;\n    @%p bra DONE;\n"
                  "    mov.u64 %at, %next;\n    bra NEXT;\nDONE:\n    st.global.u64 [%to], %at;\n    ret;\n}\n";

enum selftest_result selftest_addresses(struct selftest *test)
{
    enum { LENGTH = 8 };
    CUdeviceptr elements[LENGTH], to, last = 0;
    CUmodule module;
    CUfunction function;
    void *params[] = {&elements[0], &to};
    int unified;

    TRY(selftest_load(addresses_ptx, &module, &function));
    TRY(cuMemAlloc(&to, sizeof last));
    for (unsigned i = 0; i < LENGTH; i++)
        TRY(cuMemAlloc(&elements[i], (size_t)1 << (4 + 2 * i))); /* 16 bytes to 256 KiB */
    for (unsigned i = 0; i < LENGTH; i++) {
        const CUdeviceptr next = i + 1 < LENGTH ? elements[i + 1] : 0;

        TRY(cuMemcpyHtoD(elements[i], &next, sizeof next));
    }
    TRY(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    TRY(cuMemcpyDtoH(&last, to, sizeof last));
    for (unsigned i = 0; i < LENGTH; i++)
        TRY(cuMemFree(elements[i]));
    TRY(cuMemFree(to));
    TRY(cuModuleUnload(module));
    TRY(cuDeviceGetAttribute(&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, test->device));
    selftest_say(test, "%s", unified ? "unified" : "not unified");
    if (last == elements[LENGTH - 1])
        return SELFTEST_PASSED;
    selftest_say(test, "; the kernel found 0x%llx, not 0x%llx", last, elements[LENGTH - 1]);
    return SELFTEST_FAILED;
}

/* ---- warps ---- */

/* Each lane stores a vote and a shuffle from two sides of a branch, and a shuffle of all lanes after it. */
static const char warps_ptx[] = SELFTEST_HEAD
    ".visible .entry check(.param .u64 to)\n{\n"
    "    .reg .b64 %to, %offset;\n    .reg .b32 %t, %lane, %value, %vote, %got, %all, %block, %size;\n    .reg .pred %p, %odd;\n"
    "    ld.param.u64 %to, [to];\n    mov.u32 %t, %tid.x;\n    mov.u32 %block, %ctaid.x;\n    mov.u32 %size, %ntid.x;\n"
    "    mad.lo.u32 %value, %block, %size, %t;\n    mul.wide.u32 %offset, %value, 12;\n    add.u64 %to, %to, %offset;\n"
    "    and.b32 %lane, %t, 31;\n    and.b32 %got, %lane, 1;\n    setp.ne.u32 %odd, %got, 0;\n    setp.lt.u32 %p, %lane, 13;\n"
    "    @%p bra LOW;\n"
    "    vote.sync.ballot.b32 %vote, %odd, 0xffffe000;\n    shfl.sync.idx.b32 %got, %value, 20, 31, 0xffffe000;\n    bra JOIN;\n"
    "LOW:\n    vote.sync.ballot.b32 %vote, %odd, 0x1fff;\n    shfl.sync.idx.b32 %got, %value, 5, 31, 0x1fff;\n"
    "JOIN:\n    bar.warp.sync 0xffffffff;\n    shfl.sync.bfly.b32 %all, %value, 17, 31, 0xffffffff;\n"
    "    st.global.u32 [%to], %vote;\n    st.global.u32 [%to+4], %got;\n    st.global.u32 [%to+8], %all;\n    ret;\n}\n";

enum selftest_result selftest_warps(struct selftest *test)
{
    enum { BLOCKS = 4, THREADS = 96 };
    static uint32_t words[BLOCKS * THREADS][3];
    unsigned n_wrong = 0;
    const enum selftest_result result = run(test, warps_ptx, BLOCKS, THREADS, &words[0][0], BLOCKS * THREADS * 3);

    if (result != SELFTEST_PASSED)
        return result;
    for (unsigned i = 0; i < BLOCKS * THREADS; i++) {
        const unsigned lane = i % 32, warp = i - lane; /* blocks are whole warps */

        n_wrong += words[i][0] != (lane < 13 ? 0x0aaau : 0xaaaaa000u) || words[i][1] != warp + (lane < 13 ? 5 : 20) ||
                   words[i][2] != warp + (lane ^ 17);
    }
    selftest_say(test, "%u of %u lanes right", BLOCKS * THREADS - n_wrong, BLOCKS * THREADS);
    return n_wrong ? SELFTEST_FAILED : SELFTEST_PASSED;
}

/* ---- blocks ---- */

/* Each block adds the numbers of its threads in shared memory, halving the active threads, and counts its threads by an atomic operation. */
static const char blocks_ptx[] = SELFTEST_HEAD
    ".visible .entry check(.param .u64 to)\n{\n"
    "    .shared .align 4 .b32 sums[256];\n"
    "    .reg .b64 %to, %at;\n    .reg .b32 %t, %half, %base, %mine, %other, %a, %b, %block;\n    .reg .pred %p;\n"
    "    ld.param.u64 %to, [to];\n    mov.u32 %t, %tid.x;\n    mov.u32 %block, %ctaid.x;\n    mov.u32 %base, sums;\n"
    "    shl.b32 %mine, %t, 2;\n    add.u32 %mine, %base, %mine;\n    st.shared.u32 [%mine], %t;\n    mov.u32 %half, 128;\n"
    "HALVE:\n    bar.sync 0;\n    setp.ge.u32 %p, %t, %half;\n    @%p bra SKIP;\n    shl.b32 %other, %half, 2;\n"
    "    add.u32 %other, %mine, %other;\n    ld.shared.u32 %a, [%mine];\n    ld.shared.u32 %b, [%other];\n    add.u32 %a, %a, %b;\n"
    "    st.shared.u32 [%mine], %a;\nSKIP:\n    shr.u32 %half, %half, 1;\n    setp.ne.u32 %p, %half, 0;\n    @%p bra HALVE;\n"
    "    bar.sync 0;\n    red.global.add.u32 [%to], 1;\n    setp.ne.u32 %p, %t, 0;\n    @%p ret;\n    ld.shared.u32 %a, [sums];\n"
    "    mul.wide.u32 %at, %block, 4;\n    add.u64 %at, %to, %at;\n    st.global.u32 [%at+4], %a;\n    ret;\n}\n";

enum selftest_result selftest_blocks(struct selftest *test)
{
    enum { BLOCKS = 64, THREADS = 256 };
    static uint32_t words[1 + BLOCKS];
    unsigned n_wrong = 0;
    const enum selftest_result result = run(test, blocks_ptx, BLOCKS, THREADS, words, 1 + BLOCKS);

    if (result != SELFTEST_PASSED)
        return result;
    for (unsigned i = 0; i < BLOCKS; i++)
        n_wrong += words[1 + i] != THREADS * (THREADS - 1) / 2;
    selftest_say(test, "%u of %u sums right, %u of %u atomic additions", BLOCKS - n_wrong, BLOCKS, words[0], BLOCKS * THREADS);
    return n_wrong || words[0] != BLOCKS * THREADS ? SELFTEST_FAILED : SELFTEST_PASSED;
}
