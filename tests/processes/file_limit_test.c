/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on the size of files (ulimit -f), beyond which the kernel ends a process by a signal: on CPU devices memory consists of pages of a
 * file. Memory can still be allocated; memory that does not fit into the file cannot be shared. A plain program of the driver API. */
#include "../api/memory/seeds.h"

#include <sys/resource.h>

#define FILE_BYTES ((size_t)64 << 20)
#define BYTES ((size_t)20 << 20)
#define COUNT 6u

static void memory_still_works(void **state)
{
    CUdeviceptr parts[COUNT];
    uint32_t word;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            ok(cuMemAlloc(&parts[i], BYTES));
            ok(cuMemsetD32(parts[i], i, BYTES / 4));
            seeds_step(parts[i], 10);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            ok(cuMemcpyDtoH(&word, parts[i], sizeof word));
            assert_int_equal(word, i * 3 + 1);
            ok(cuMemcpyDtoH(&word, parts[i] + BYTES - 4, sizeof word));
            assert_int_equal(word, i);
            ok(cuMemFree(parts[i]));
        }
    }
}

/* Returns a handle or the error; the attribute describes the device, not the file. */
static void handles_are_true(void **state)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    CUresult r;

    (void)state;
    ok(cuMemAlloc(&pointer, BYTES));
    r = cuIpcGetMemHandle(&handle, pointer);
    assert_true(r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_SUPPORTED);
    ok(cuMemFree(pointer));
}

int main(void)
{
    const struct rlimit limit = {FILE_BYTES, FILE_BYTES};
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_still_works), cmocka_unit_test(handles_are_true)};

    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 77;
    return cmocka_run_group_tests(tests, with_context, without_context);
}
