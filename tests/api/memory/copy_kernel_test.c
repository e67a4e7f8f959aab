/* SPDX-License-Identifier: Apache-2.0 */
/* Copies within device memory, from and to every alignment, with sizes around the blocks of the kernel that executes them on some devices
 * (core/copy/copy_kernel.c); CUTTLE_COPY_BY_KERNEL makes all devices use it. The memory around the destination is unchanged. */
#include "../api_test.h"

#define BYTES 70000u

static unsigned char source[BYTES], expected[BYTES], got[BYTES];
static CUdeviceptr from, to;

static int make(void **state)
{
    if (with_context(state))
        return -1;
    for (size_t i = 0; i < BYTES; i++)
        source[i] = (unsigned char)(i * 7 + i / 251);
    return cuMemAlloc(&from, BYTES) || cuMemAlloc(&to, BYTES) || cuMemcpyHtoD(from, source, BYTES);
}

static int finish(void **state)
{
    return cuMemFree(from) || cuMemFree(to) || without_context(state);
}

static void check_copy(size_t dst, size_t src, size_t bytes)
{
    ok(cuMemsetD8(to, 0xa5, BYTES));
    memset(expected, 0xa5, BYTES);
    memcpy(expected + dst, source + src, bytes);
    ok(cuMemcpyDtoDAsync(to + dst, from + src, bytes, NULL));
    ok(cuMemcpyDtoH(got, to, BYTES));
    assert_memory_equal(got, expected, BYTES);
}

static void alignments_alike(void **state)
{
    (void)state;
    for (size_t offset = 0; offset < 20; offset += 3)
        check_copy(offset, offset + 16 * offset, 40000 + offset);
}

static void alignments_of_their_own(void **state)
{
    (void)state;
    check_copy(0, 4, 40000);
    check_copy(1, 0, 40000);
    check_copy(15, 16, 40000);
}

static void sizes_around_blocks(void **state)
{
    static const size_t sizes[] = {4095, 4096, 4097, 8191, 8192, 8193, 8192 + 4095, 12288, 65536, 65537};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_copy(1600, 3200, sizes[i]);
    check_copy(0, 0, BYTES);
}

static void what_overlaps_does_no_harm(void **state)
{
    (void)state;
    ok(cuMemcpyDtoD(to, from, BYTES));
    ok(cuMemcpyDtoD(to + 4096, to, 40960)); /* like memmove, although CUDA leaves it undefined */
    ok(cuMemcpyDtoH(got, to, BYTES));
    assert_memory_equal(got, source, 4096);
    assert_memory_equal(got + 4096 + 40960, source + 4096 + 40960, BYTES - 4096 - 40960);
}

/* Downloads to pageable memory that several threads execute together. */
static void large_downloads(void **state)
{
    const size_t bytes = ((size_t)9 << 20) + 13, pitch = 70001, rows = 130, width = 65537;
    unsigned char *sent = malloc(bytes), *received = calloc(1, bytes);
    CUdeviceptr device;

    (void)state;
    assert_non_null(sent);
    assert_non_null(received);
    for (size_t i = 0; i < bytes; i++)
        sent[i] = (unsigned char)(i * 5 + i / 65537);
    ok(cuMemAlloc(&device, bytes));
    ok(cuMemcpyHtoD(device, sent, bytes));
    ok(cuMemcpyDtoH(received, device + 3, bytes - 3));
    assert_memory_equal(received, sent + 3, bytes - 3);
    memset(received, 0, bytes);
    ok(cuMemcpy2D(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .srcDevice = device,
                                   .srcPitch = pitch,
                                   .dstMemoryType = CU_MEMORYTYPE_HOST,
                                   .dstHost = received,
                                   .dstPitch = pitch + 1,
                                   .WidthInBytes = width,
                                   .Height = rows}));
    for (size_t row = 0; row < rows; row++) {
        assert_memory_equal(received + row * (pitch + 1), sent + row * pitch, width);
        assert_int_equal(received[row * (pitch + 1) + width], 0);
    }
    ok(cuMemFree(device));
    free(sent);
    free(received);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alignments_alike),           cmocka_unit_test(alignments_of_their_own), cmocka_unit_test(sizes_around_blocks),
        cmocka_unit_test(what_overlaps_does_no_harm), cmocka_unit_test(large_downloads),
    };

    return cmocka_run_group_tests(tests, make, finish);
}
