/* SPDX-License-Identifier: Apache-2.0 */
/* Times. Nothing here fails because a device is slow; the figures are for reports. */
#include "selftest.h"

#include <stdint.h>
#include <stdlib.h>

#define SECONDS_EACH 0.3 /* for which a measurement is repeated, after one warm-up */
#define COPY_BYTES ((size_t)32 << 20)

/* What is repeated: it enqueues one unit of work. */
typedef CUresult (*work_fn)(void *user);

/* *out_seconds: the time of one unit, when many are enqueued and waited for together. */
static CUresult measure(work_fn work, void *user, double *out_seconds)
{
    CUresult r = work(user);
    double start, end;
    unsigned count = 0;

    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    start = end = selftest_now();
    for (unsigned batch = 1; r == CUDA_SUCCESS && end - start < SECONDS_EACH; batch = batch < 64 ? batch * 2 : batch) {
        for (unsigned i = 0; i < batch && r == CUDA_SUCCESS; i++)
            r = work(user);
        if (r == CUDA_SUCCESS)
            r = cuCtxSynchronize();
        count += batch;
        end = selftest_now();
    }
    *out_seconds = (end - start) / count;
    return r;
}

/* ---- copies ---- */

struct copy {
    CUdeviceptr device, other;
    void *locked, *pageable;
};

static CUresult copy_up(void *user)
{
    const struct copy *copy = user;

    return cuMemcpyHtoDAsync(copy->device, copy->locked, COPY_BYTES, NULL);
}

static CUresult copy_down(void *user)
{
    const struct copy *copy = user;

    return cuMemcpyDtoHAsync(copy->locked, copy->device, COPY_BYTES, NULL);
}

static CUresult copy_up_pageable(void *user)
{
    const struct copy *copy = user;

    return cuMemcpyHtoD(copy->device, copy->pageable, COPY_BYTES);
}

static CUresult copy_within(void *user)
{
    const struct copy *copy = user;

    return cuMemcpyDtoDAsync(copy->other, copy->device, COPY_BYTES, NULL);
}

enum selftest_result selftest_copies(struct selftest *test)
{
    static const struct {
        const char *name;
        work_fn work;
    } kinds[] = {
        {"to the device", copy_up}, {"from it", copy_down}, {"to it from pageable memory", copy_up_pageable}, {"within it", copy_within}};
    struct copy copy = {.pageable = calloc(1, COPY_BYTES)};

    if (!copy.pageable)
        return SELFTEST_FAILED;
    TRY(cuMemAlloc(&copy.device, COPY_BYTES));
    TRY(cuMemAlloc(&copy.other, COPY_BYTES));
    TRY(cuMemAllocHost(&copy.locked, COPY_BYTES));
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double seconds;

        TRY(measure(kinds[i].work, &copy, &seconds));
        selftest_say(test, "%s%s %.2f", i ? ", " : "GB/s: ", kinds[i].name, (double)COPY_BYTES / seconds / 1e9);
    }
    TRY(cuMemFreeHost(copy.locked));
    TRY(cuMemFree(copy.other));
    TRY(cuMemFree(copy.device));
    free(copy.pageable);
    return SELFTEST_PASSED;
}

/* ---- kernels ---- */

struct launch {
    CUfunction function;
    unsigned blocks;
    CUdeviceptr from, to;
};

static CUresult launch(void *user)
{
    struct launch *what = user;
    void *params[] = {&what->from, &what->to};

    return cuLaunchKernel(what->function, what->blocks, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
}

static CUresult launch_and_wait(void *user)
{
    const CUresult r = launch(user);

    return r == CUDA_SUCCESS ? cuCtxSynchronize() : r;
}

static const char empty_ptx[] = SELFTEST_HEAD ".visible .entry check(.param .u64 from, .param .u64 to)\n{\n    ret;\n}\n";

enum selftest_result selftest_launches(struct selftest *test)
{
    struct launch what = {.blocks = 1};
    double together, alone;
    CUmodule module;

    TRY(selftest_load(empty_ptx, &module, &what.function));
    TRY(measure(launch, &what, &together));
    TRY(measure(launch_and_wait, &what, &alone));
    TRY(cuModuleUnload(module));
    selftest_say(test, "an empty kernel takes %.2f us, %.2f if it is waited for", together * 1e6, alone * 1e6);
    return SELFTEST_PASSED;
}

#define THREAD                                                                                                                             \
    "    .reg .b64 %from, %to, %offset;\n    .reg .b32 %i, %block, %size;\n"                                                               \
    "    ld.param.u64 %from, [from];\n    ld.param.u64 %to, [to];\n    mov.u32 %i, %tid.x;\n    mov.u32 %block, %ctaid.x;\n"               \
    "    mov.u32 %size, %ntid.x;\n    mad.lo.u32 %i, %block, %size, %i;\n    mul.wide.u32 %offset, %i, 4;\n"                               \
    "    add.u64 %from, %from, %offset;\n    add.u64 %to, %to, %offset;\n"

static const char copy_ptx[] = SELFTEST_HEAD ".visible .entry check(.param .u64 from, .param .u64 to)\n{\n" THREAD
                                             "    .reg .b32 %value;\n    ld.global.u32 %value, [%from];\n    st.global.u32 [%to], %value;\n"
                                             "    ret;\n}\n";

/* 64 times four multiply-adds, whose results differ for each thread. */
enum { FMA_PER_THREAD = 64 * 4 };
static const char fma_ptx[] =
    SELFTEST_HEAD ".visible .entry check(.param .u64 from, .param .u64 to)\n{\n" THREAD
                  "    .reg .f32 %a, %b, %c, %d, %x;\n    .reg .b32 %n;\n    .reg .pred %p;\n    cvt.rn.f32.u32 %a, %i;\n"
                  "    mov.f32 %b, %a;\n    mov.f32 %c, %a;\n    mov.f32 %d, %a;\n    mov.f32 %x, 0f3f7fff00;\n    mov.u32 %n, 0;\n"
                  "NEXT:\n    fma.rn.f32 %a, %a, %x, %b;\n    fma.rn.f32 %b, %b, %x, %c;\n    fma.rn.f32 %c, %c, %x, %d;\n"
                  "    fma.rn.f32 %d, %d, %x, %a;\n    add.u32 %n, %n, 1;\n    setp.lt.u32 %p, %n, 64;\n    @%p bra NEXT;\n"
                  "    add.f32 %a, %a, %b;\n    add.f32 %c, %c, %d;\n    add.f32 %a, %a, %c;\n    st.global.f32 [%to], %a;\n    ret;\n}\n";

enum selftest_result selftest_arithmetic(struct selftest *test)
{
    enum { THREADS = 1 << 20, FMA_THREADS = 1 << 16 };
    struct launch what = {.blocks = THREADS / 256};
    double copy_seconds, fma_seconds;
    uint32_t first = 0, last = 0;
    CUmodule copy_module, fma_module;

    TRY(selftest_load(copy_ptx, &copy_module, &what.function));
    TRY(cuMemAlloc(&what.from, THREADS * sizeof(uint32_t)));
    TRY(cuMemAlloc(&what.to, THREADS * sizeof(uint32_t)));
    TRY(cuMemsetD32(what.from, 0x12345678, THREADS));
    TRY(cuMemsetD32(what.to, 0, THREADS));
    TRY(measure(launch, &what, &copy_seconds));
    TRY(cuMemcpyDtoH(&first, what.to, sizeof first));
    TRY(cuMemcpyDtoH(&last, what.to + (THREADS - 1) * sizeof last, sizeof last));
    TRY(selftest_load(fma_ptx, &fma_module, &what.function));
    what.blocks = FMA_THREADS / 256;
    TRY(measure(launch, &what, &fma_seconds));
    TRY(cuMemFree(what.from));
    TRY(cuMemFree(what.to));
    TRY(cuModuleUnload(copy_module));
    TRY(cuModuleUnload(fma_module));
    selftest_say(test, "a kernel copies %.2f GB/s, multiply-adds of f32 run at %.2f GFLOP/s", THREADS * 4.0 / copy_seconds / 1e9,
                 2.0 * FMA_PER_THREAD * FMA_THREADS / fma_seconds / 1e9);
    if (first == 0x12345678 && last == 0x12345678)
        return SELFTEST_PASSED;
    selftest_say(test, "; the copy is wrong");
    return SELFTEST_FAILED;
}
