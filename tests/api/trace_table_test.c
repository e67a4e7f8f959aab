/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cuGetExportTable for the library that traces calls (src/api/trace_table.h): events that commands record, and compilations. */
#include "api_test.h"

#include "api_kernels.h"

#include "api/trace_table.h"

#include <time.h>

static const struct ct_trace_table *table;

static int with_table(void **state)
{
    const CUuuid id = {CT_TRACE_TABLE_ID};

    return with_context(state) || cuGetExportTable((const void **)&table, &id) != CUDA_SUCCESS || table->size_bytes != sizeof *table;
}

static CUfunction load(CUmodule *out_module, const char *text, const char *name)
{
    CUfunction function;

    ok(cuModuleLoadData(out_module, text));
    ok(cuModuleGetFunction(&function, *out_module, name));
    return function;
}

/* The event is recorded by the next command and by no other one: behind what the stream did before, and before the command itself. */
static void the_next_command_records_the_event(void **state)
{
    enum { COUNT = 1 << 16 };
    unsigned first = 1, count = COUNT;
    CUevent begin, mark, end;
    CUdeviceptr memory;
    CUmodule module;
    CUstream stream;
    CUfunction ramp = load(&module, PTX_HEADER PTX_RAMP, "ramp");
    float before, behind;
    void *params[] = {&memory, &first, &count};

    (void)state;
    ok(cuMemAlloc(&memory, COUNT * sizeof(unsigned)));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&begin, 0));
    ok(cuEventCreate(&mark, 0));
    ok(cuEventCreate(&end, 0));
    ok(cuEventRecord(begin, stream));
    ok(table->record_before_next(mark));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&before, begin, mark)); /* not recorded yet */
    ok(cuLaunchKernel(ramp, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
    ok(table->record_before_next(NULL));
    ok(cuEventRecord(end, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuEventElapsedTime(&before, begin, mark));
    ok(cuEventElapsedTime(&behind, mark, end));
    assert_true(before >= 0 && behind > 0);
    ok(cuMemsetD32Async(memory, 0, COUNT, stream));
    ok(cuEventRecord(end, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuEventElapsedTime(&before, begin, mark));
    ok(cuEventElapsedTime(&behind, begin, end));
    assert_true(before < behind);
    ok(cuEventDestroy(begin));
    ok(cuEventDestroy(mark));
    ok(cuEventDestroy(end));
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(memory));
    ok(cuModuleUnload(module));
}

static void a_call_without_commands_records_nothing(void **state)
{
    CUevent mark;
    size_t available, total;

    (void)state;
    ok(cuEventCreate(&mark, 0));
    ok(table->record_before_next(mark));
    ok(cuMemGetInfo(&available, &total));
    gives(CUDA_ERROR_NOT_READY, table->record_before_next(NULL));
    ok(table->record_before_next(NULL)); /* nothing was given since */
    gives(CUDA_ERROR_INVALID_HANDLE, table->record_before_next((CUevent)&mark));
    ok(cuEventDestroy(mark));
}

static struct {
    unsigned count;
    uint64_t begin_ns, end_ns;
} seen;

static void observe(const char *compiler, const char *kernel, uint64_t begin_ns, uint64_t end_ns)
{
    if (strcmp(kernel, "nothing") != 0 || !*compiler)
        return;
    seen.count++;
    seen.begin_ns = begin_ns;
    seen.end_ns = end_ns;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void compilations_are_observed(void **state)
{
    const uint64_t before = now_ns();
    CUmodule module;
    CUfunction nothing = load(&module, PTX_HEADER PTX_NOTHING, "nothing");
    unsigned count;

    (void)state;
    ok(table->observe_compilations(observe));
    ok(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    count = seen.count;
    assert_true(count >= 1 && seen.begin_ns >= before && seen.end_ns > seen.begin_ns && seen.end_ns <= now_ns());
    ok(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL)); /* compiled already */
    ok(cuCtxSynchronize());
    ok(table->observe_compilations(NULL));
    ok(cuLaunchKernel(nothing, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(seen.count, count);
    ok(cuModuleUnload(module));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_command_records_the_event),
        cmocka_unit_test(a_call_without_commands_records_nothing),
        cmocka_unit_test(compilations_are_observed),
    };

    return cmocka_run_group_tests(tests, with_table, without_context);
}
