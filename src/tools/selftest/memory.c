/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of all kinds, and streams that wait for each other. */
#include "selftest.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Adds 1 to each of `count` words. */
static const char increment_ptx[] =
    SELFTEST_HEAD ".visible .entry check(.param .u64 to, .param .u32 count)\n{\n"
                  "    .reg .b64 %to, %offset;\n    .reg .b32 %i, %block, %size, %count, %value;\n    .reg .pred %p;\n"
                  "    ld.param.u64 %to, [to];\n    ld.param.u32 %count, [count];\n    mov.u32 %i, %tid.x;\n    mov.u32 %block, %ctaid.x;\n"
                  "    mov.u32 %size, %ntid.x;\n    mad.lo.u32 %i, %block, %size, %i;\n    setp.ge.u32 %p, %i, %count;\n    @%p ret;\n"
                  "    mul.wide.u32 %offset, %i, 4;\n    add.u64 %to, %to, %offset;\n    ld.global.u32 %value, [%to];\n"
                  "    add.u32 %value, %value, 1;\n    st.global.u32 [%to], %value;\n    ret;\n}\n";

static CUresult increment(CUfunction function, CUdeviceptr memory, unsigned count, CUstream stream)
{
    void *params[] = {&memory, &count};

    return cuLaunchKernel(function, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL);
}

/* Whether each word is its pattern plus `more`. */
static bool is_pattern(const uint32_t *words, unsigned count, uint32_t more)
{
    for (unsigned i = 0; i < count; i++)
        if (words[i] != i * 2654435761u + more)
            return false;
    return true;
}

static void write_pattern(uint32_t *words, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        words[i] = i * 2654435761u;
}

/* Through device memory and back: pageable memory, a kernel, a copy on the device, page-locked memory; then a fill of one part. */
static enum selftest_result check_device(struct selftest *test, CUfunction function, unsigned count, uint32_t *pageable, uint32_t *locked)
{
    const size_t bytes = count * sizeof *pageable;
    CUdeviceptr first, second;
    bool is_right;

    write_pattern(pageable, count);
    TRY(cuMemAlloc(&first, bytes));
    TRY(cuMemAlloc(&second, bytes));
    TRY(cuMemcpyHtoD(first, pageable, bytes));
    TRY(increment(function, first, count, NULL));
    TRY(cuMemcpyDtoD(second, first, bytes));
    memset(locked, 0, bytes);
    TRY(cuMemcpyDtoHAsync(locked, second, bytes, NULL));
    TRY(cuCtxSynchronize());
    is_right = is_pattern(locked, count, 1);
    TRY(cuMemsetD32(second, 0x01020304, count));
    TRY(cuMemcpyDtoH(pageable, second, bytes));
    for (unsigned i = 0; i < count; i++)
        is_right &= pageable[i] == 0x01020304;
    TRY(cuMemFree(first));
    TRY(cuMemFree(second));
    if (!is_right)
        selftest_say(test, "%zu bytes changed on the way through device memory", bytes);
    return is_right ? SELFTEST_PASSED : SELFTEST_FAILED;
}

static enum selftest_result check_managed(struct selftest *test, CUfunction function)
{
    enum { COUNT = 10000 };
    CUdeviceptr managed;
    bool is_right;

    TRY(cuMemAllocManaged(&managed, COUNT * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL));
    write_pattern((uint32_t *)(uintptr_t)managed, COUNT);
    TRY(increment(function, managed, COUNT, NULL));
    TRY(cuCtxSynchronize());
    is_right = is_pattern((const uint32_t *)(uintptr_t)managed, COUNT, 1);
    TRY(cuMemFree(managed));
    if (!is_right)
        selftest_say(test, "a kernel changed managed memory wrongly");
    return is_right ? SELFTEST_PASSED : SELFTEST_FAILED;
}

enum selftest_result selftest_memory(struct selftest *test)
{
    static const unsigned counts[] = {1, 1000, 65536, 2 << 20}; /* words */
    const size_t most = (size_t)counts[3] * sizeof(uint32_t);
    enum selftest_result result = SELFTEST_PASSED;
    uint32_t *pageable = malloc(most);
    void *locked;
    CUmodule module;
    CUfunction function;
    int managed;

    if (!pageable)
        return SELFTEST_FAILED;
    TRY(selftest_load(increment_ptx, &module, &function));
    TRY(cuMemAllocHost(&locked, most));
    for (unsigned i = 0; i < sizeof counts / sizeof *counts && result == SELFTEST_PASSED; i++)
        result = check_device(test, function, counts[i], pageable, locked);
    free(pageable);
    TRY(cuMemFreeHost(locked));
    TRY(cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, test->device));
    if (managed && result == SELFTEST_PASSED)
        result = check_managed(test, function);
    TRY(cuModuleUnload(module));
    if (result == SELFTEST_PASSED)
        selftest_say(test, "up to %zu MiB%s", most >> 20, managed ? "" : "; no managed memory");
    return result;
}

/* Two streams increment the same memory in turn, and wait for each other by events. */
enum selftest_result selftest_streams(struct selftest *test)
{
    enum { COUNT = 65536, TURNS = 20 };
    static uint32_t words[COUNT];
    CUstream streams[2];
    CUevent event;
    CUdeviceptr memory;
    CUmodule module;
    CUfunction function;

    TRY(selftest_load(increment_ptx, &module, &function));
    TRY(cuMemAlloc(&memory, sizeof words));
    write_pattern(words, COUNT);
    TRY(cuMemcpyHtoD(memory, words, sizeof words));
    TRY(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    TRY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < TURNS; i++) {
        TRY(increment(function, memory, COUNT, streams[i % 2]));
        TRY(cuEventRecord(event, streams[i % 2]));
        TRY(cuStreamWaitEvent(streams[(i + 1) % 2], event, 0));
    }
    TRY(cuMemcpyDtoHAsync(words, memory, sizeof words, streams[TURNS % 2]));
    TRY(cuStreamSynchronize(streams[TURNS % 2]));
    TRY(cuEventDestroy(event));
    TRY(cuStreamDestroy(streams[0]));
    TRY(cuStreamDestroy(streams[1]));
    TRY(cuMemFree(memory));
    TRY(cuModuleUnload(module));
    if (is_pattern(words, COUNT, TURNS)) {
        selftest_say(test, "%u kernels in turn", TURNS);
        return SELFTEST_PASSED;
    }
    selftest_say(test, "kernels in two streams did not run in turn");
    return SELFTEST_FAILED;
}
