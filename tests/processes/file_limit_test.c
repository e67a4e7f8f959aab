/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on the size of files (ulimit -f), beyond which the kernel ends a process by a signal: on CPU devices memory consists of pages of a
 * file, of ours or of the driver. Memory can still be allocated; memory that does not fit into the file cannot be shared. With the argument
 * "none" no file may have a single byte. A plain program of the driver API. */
#include "../api/memory/seeds.h"

#include <sys/resource.h>
#include <unistd.h>

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

static bool is_refused(CUresult r)
{
    if (r != CUDA_ERROR_OUT_OF_MEMORY && r != CUDA_ERROR_NOT_SUPPORTED)
        ok(r);
    return r != CUDA_SUCCESS;
}

/* What needs a file is made and works, or is refused. */
static void other_objects_too(void **state)
{
    const CUDA_ARRAY_DESCRIPTOR texels = {.Width = 1024, .Height = 256, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    const CUmemPoolProps pool_shape = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAllocationProp physical_shape = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    uint32_t words[1024];
    CUarray array;
    CUevent event;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle physical;
    void *pinned;
    int fd;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        if (is_refused(cuArrayCreate(&array, &texels)))
            continue;
        memset(words, 5, sizeof words);
        ok(cuMemcpyHtoA(array, 0, words, sizeof words));
        memset(words, 0, sizeof words);
        ok(cuMemcpyAtoH(words, array, 0, sizeof words));
        assert_int_equal(words[1023], 0x05050505);
        ok(cuArrayDestroy(array));
    }
    if (!is_refused(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)))
        ok(cuEventDestroy(event));
    if (!is_refused(cuMemPoolCreate(&pool, &pool_shape))) {
        if (!is_refused(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
            close(fd);
        ok(cuMemPoolDestroy(pool));
    }
    if (!is_refused(cuMemCreate(&physical, (size_t)2 << 20, &physical_shape, 0)))
        ok(cuMemRelease(physical));
    ok(cuMemHostAlloc(&pinned, BYTES, 0));
    memset(pinned, 1, BYTES);
    ok(cuMemFreeHost(pinned));
}

int main(int argc, char **argv)
{
    const rlim_t bytes = argc > 1 && !strcmp(argv[1], "none") ? 0 : FILE_BYTES;
    const struct rlimit limit = {bytes, bytes};
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_still_works), cmocka_unit_test(handles_are_true),
                                       cmocka_unit_test(other_objects_too)};

    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 77;
    return cmocka_run_group_tests(tests, with_context, without_context);
}
