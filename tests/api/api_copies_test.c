/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of all kinds, sizes, alignments and pitches, compared with the same copy on the host; memset; and arguments that are rejected. */
#include "api_test.h"

#include <stdbool.h>
#include <unistd.h>

#define BYTES ((size_t)3 << 20) /* several pieces of any staging buffer */

static CUdeviceptr device_a, device_b;
static unsigned char *pinned, *pageable, *expected;

static void fill_with_noise(unsigned char *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static int set_up(void **state)
{
    if (with_context(state))
        return -1;
    pageable = malloc(BYTES);
    expected = malloc(BYTES);
    return cuMemAlloc(&device_a, BYTES) || cuMemAlloc(&device_b, BYTES) || cuMemAllocHost((void **)&pinned, BYTES);
}

static int take_down(void **state)
{
    free(pageable);
    free(expected);
    if (cuMemFree(device_a) || cuMemFree(device_b) || cuMemFreeHost(pinned))
        return -1;
    return without_context(state);
}

static const struct {
    size_t offset, bytes;
} spans[] = {{0, 1},     {1, 1},          {3, 2}, {0, 4}, {2, 7}, {5, 4096}, {4093, 65536}, {1, 65537}, {7, (1 << 20) - 3},
             {0, BYTES}, {13, BYTES - 13}};
#define N_SPANS (sizeof spans / sizeof *spans)

static void check_device(CUdeviceptr device)
{
    static unsigned char got[BYTES];

    ok(cuMemcpyDtoH(got, device, BYTES));
    assert_memory_equal(got, expected, BYTES);
}

/* Copies from `source` (host memory of any kind) to the device and checks that the rest of the device's memory is unchanged. */
static void check_to_device(unsigned char *source, bool async)
{
    for (size_t i = 0; i < N_SPANS; i++) {
        size_t offset = spans[i].offset, bytes = spans[i].bytes;

        fill_with_noise(source, BYTES, (unsigned)i);
        memset(expected, 0xee, BYTES);
        memcpy(expected + offset, source + BYTES - bytes, bytes);
        ok(cuMemsetD8(device_a, 0xee, BYTES));
        ok(async ? cuMemcpyHtoDAsync(device_a + offset, source + BYTES - bytes, bytes, NULL)
                 : cuMemcpyHtoD(device_a + offset, source + BYTES - bytes, bytes));
        check_device(device_a);
    }
}

static void pageable_to_device(void **state)
{
    (void)state;
    check_to_device(pageable, false);
    check_to_device(pageable, true);
}

static void pinned_to_device(void **state)
{
    (void)state;
    check_to_device(pinned, false);
    check_to_device(pinned, true);
}

static void check_from_device(unsigned char *destination, bool async)
{
    fill_with_noise(pageable, BYTES, 77);
    memcpy(expected, pageable, BYTES);
    ok(cuMemcpyHtoD(device_a, pageable, BYTES));
    for (size_t i = 0; i < N_SPANS; i++) {
        size_t offset = spans[i].offset, bytes = spans[i].bytes;

        memset(destination, 0x11, BYTES);
        ok(async ? cuMemcpyDtoHAsync(destination + offset, device_a + BYTES - bytes, bytes, NULL)
                 : cuMemcpyDtoH(destination + offset, device_a + BYTES - bytes, bytes));
        ok(cuStreamSynchronize(NULL));
        assert_memory_equal(destination + offset, expected + BYTES - bytes, bytes);
        for (size_t k = 0; k < offset; k++)
            assert_int_equal(destination[k], 0x11);
        for (size_t k = offset + bytes; k < BYTES; k++)
            assert_int_equal(destination[k], 0x11);
    }
}

static void device_to_pageable(void **state)
{
    (void)state;
    check_from_device(pageable, false);
    check_from_device(pageable, true);
}

static void device_to_pinned(void **state)
{
    (void)state;
    check_from_device(pinned, false);
    check_from_device(pinned, true);
}

static void device_to_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SPANS; i++) {
        size_t offset = spans[i].offset, bytes = spans[i].bytes;

        fill_with_noise(pageable, BYTES, (unsigned)i + 100);
        ok(cuMemcpyHtoD(device_a, pageable, BYTES));
        ok(cuMemsetD8(device_b, 0x33, BYTES));
        memset(expected, 0x33, BYTES);
        memcpy(expected + offset, pageable + BYTES - bytes, bytes);
        ok(i & 1 ? cuMemcpyDtoDAsync(device_b + offset, device_a + BYTES - bytes, bytes, NULL)
                 : cuMemcpyDtoD(device_b + offset, device_a + BYTES - bytes, bytes));
        check_device(device_b);
    }
}

/* cuMemcpy accepts any two pointers. */
static void unified_copies(void **state)
{
    unsigned char *copy = malloc(BYTES);

    (void)state;
    fill_with_noise(pageable, BYTES, 5);
    ok(cuMemcpy(device_a, (CUdeviceptr)(uintptr_t)pageable, BYTES));
    ok(cuMemcpy(device_b, device_a, BYTES));
    ok(cuMemcpy((CUdeviceptr)(uintptr_t)pinned, device_b, BYTES));
    ok(cuMemcpyHtoD(device_b, (void *)(uintptr_t)device_a, BYTES)); /* the pointers determine the kind of memory */
    ok(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)pinned, pageable, BYTES));
    ok(cuMemcpy((CUdeviceptr)(uintptr_t)copy, (CUdeviceptr)(uintptr_t)pinned, BYTES));
    assert_memory_equal(copy, pageable, BYTES);
    memset(copy, 0, BYTES);
    ok(cuMemcpy((CUdeviceptr)(uintptr_t)copy, (CUdeviceptr)(uintptr_t)pageable, BYTES));
    assert_memory_equal(copy, pageable, BYTES);
    memset(copy, 0, BYTES);
    ok(cuMemcpyAsync((CUdeviceptr)(uintptr_t)copy, device_a, BYTES, NULL));
    ok(cuStreamSynchronize(NULL));
    assert_memory_equal(copy, pageable, BYTES);
    free(copy);
}

static void peer_copies_on_one_device(void **state)
{
    CUcontext context = *state;

    fill_with_noise(pageable, BYTES, 6);
    memcpy(expected, pageable, BYTES);
    ok(cuMemcpyHtoD(device_a, pageable, BYTES));
    ok(cuMemcpyPeer(device_b, context, device_a, context, BYTES));
    check_device(device_b);
    ok(cuMemsetD8(device_b, 0, BYTES));
    ok(cuMemcpyPeerAsync(device_b, context, device_a, context, BYTES, NULL));
    check_device(device_b);
    ok(cuMemcpyPeer(device_b, NULL, device_a, context, 16)); /* NULL: the current one */
}

static void copies_of_nothing_succeed(void **state)
{
    (void)state;
    ok(cuMemcpyHtoD(device_a, pageable, 0));
    ok(cuMemcpyDtoH(pageable, device_a, 0));
    ok(cuMemcpyDtoD(device_b, device_a, 0));
    ok(cuMemcpyHtoDAsync(device_a, pageable, 0, NULL));
    ok(cuMemsetD8(device_a, 1, 0));
    ok(cuMemsetD2D32(device_a, 64, 1, 0, 5));
    ok(cuMemsetD2D32(device_a, 64, 1, 5, 0));
}

static void copies_refuse(void **state)
{
    CUdeviceptr freed;
    int local = 0;

    (void)state;
    ok(cuMemAlloc(&freed, 4096));
    ok(cuMemFree(freed));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, pageable, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(device_a, NULL, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(NULL, device_a, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(pageable, 0, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(device_a, 0, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(pageable, freed, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(freed, pageable, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(device_a, pageable, BYTES + 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(pageable, device_a + BYTES - 15, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(pageable, device_a + 1, SIZE_MAX));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(device_a, device_b + BYTES - 8, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)&local, pageable, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(device_a, (CUdeviceptr)(uintptr_t)&local, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(device_a + BYTES, pageable, 1, NULL));
    ok(cuMemcpyHtoD(device_a + BYTES - 1, pageable, 1));
}

static void copies_in_a_stream_of_their_own(void **state)
{
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    memset(pinned, 5, 64);
    ok(cuMemcpyHtoDAsync(device_a, pinned, 64, stream));
    ok(cuMemsetD8Async(device_a + 8, 1, 16, stream));
    ok(cuMemcpyDtoDAsync(device_b, device_a, 64, stream));
    ok(cuMemcpyDtoHAsync(pinned + 100, device_b, 64, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(pinned[107], 5);
    assert_int_equal(pinned[108], 1);
    assert_int_equal(pinned[123], 1);
    assert_int_equal(pinned[124], 5);
    ok(cuStreamDestroy(stream));
}

#define SLOW_BYTES ((size_t)1 << 20) /* NVIDIA's driver reads small sources during the call if the stream is idle */

/* A slow host function, which writes if it gets an address. */
struct slow {
    unsigned char *out, value;
};

static void CUDA_CB take_a_while(void *user)
{
    const struct slow *slow = user;

    usleep(20000);
    if (slow->out)
        memset(slow->out, slow->value, SLOW_BYTES);
}

/* Work of a blocking stream waits for the work of the default stream, also if the host executes it: each form reads what a slow host
 * function wrote, or a fill after it. */
static void copies_in_a_blocking_stream_wait_for_the_default_stream(void **state)
{
    static unsigned char pageable_bytes[2][SLOW_BYTES];
    unsigned char *pinned;
    CUdeviceptr from, to;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    ok(cuMemAlloc(&from, SLOW_BYTES));
    ok(cuMemAlloc(&to, SLOW_BYTES));
    ok(cuMemAllocHost((void **)&pinned, SLOW_BYTES));
    for (unsigned form = 1; form <= 4; form++) {
        CUdeviceptr dst = form == 1 || form == 2 ? (CUdeviceptr)(uintptr_t)pageable_bytes[0] : to;
        CUdeviceptr src = form == 1 || form == 3 ? from : (CUdeviceptr)(uintptr_t)pinned;

        struct slow slow = {src == from ? NULL : pinned, (unsigned char)form};

        ok(cuLaunchHostFunc(NULL, take_a_while, &slow));
        if (src == from)
            ok(cuMemsetD8Async(src, (unsigned char)form, SLOW_BYTES, NULL));
        ok(cuMemcpyAsync(dst, src, SLOW_BYTES, stream));
        ok(cuStreamSynchronize(stream));
        ok(cuMemcpy((CUdeviceptr)(uintptr_t)pageable_bytes[1], dst, SLOW_BYTES));
        assert_int_equal(pageable_bytes[1][0], form);
        assert_int_equal(pageable_bytes[1][SLOW_BYTES - 1], form);
    }
    ok(cuMemFree(from));
    ok(cuMemFree(to));
    ok(cuMemFreeHost(pinned));
    ok(cuStreamDestroy(stream));
}

static void overlapping_copies_do_no_harm(void **state)
{
    unsigned char edges[2] = {0};

    (void)state;
    ok(cuMemsetD8(device_a, 0x77, BYTES));
    ok(cuMemcpyDtoD(device_a + 100, device_a + 1, BYTES - 200));
    ok(cuMemcpyDtoD(device_a + 1, device_a + 100, BYTES - 200));
    ok(cuMemcpyDtoD(device_a, device_a, BYTES));
    ok(cuMemcpyDtoH(&edges[0], device_a, 1));
    ok(cuMemcpyDtoH(&edges[1], device_a + BYTES - 1, 1));
    assert_int_equal(edges[0], 0x77);
    assert_int_equal(edges[1], 0x77);
}

/* ---- two and three dimensions ---- */

struct shape {
    size_t width, height, depth;
    size_t src_pitch, dst_pitch, src_height, dst_height;
    size_t src_x, src_y, src_z, dst_x, dst_y, dst_z;
};

static const struct shape shapes[] = {
    {1, 1, 1, 64, 64, 1, 1, 0, 0, 0, 0, 0, 0},       {17, 5, 1, 32, 64, 8, 8, 3, 1, 0, 5, 2, 0},
    {64, 16, 1, 64, 64, 16, 16, 0, 0, 0, 0, 0, 0},   {1000, 300, 1, 1024, 2048, 301, 302, 1, 1, 0, 2, 2, 0},
    {513, 7, 5, 768, 1024, 9, 11, 2, 1, 1, 7, 3, 1}, {64, 8, 4, 64, 64, 8, 8, 0, 0, 0, 0, 0, 0},
    {5, 500, 3, 32, 64, 501, 500, 4, 0, 0, 3, 0, 0}, {700000, 2, 1, 700032, 800000, 2, 2, 9, 0, 0, 1, 0, 0},
};

static void copy_by_host(const struct shape *s, unsigned char *dst, const unsigned char *src)
{
    for (size_t z = 0; z < s->depth; z++)
        for (size_t y = 0; y < s->height; y++)
            memcpy(dst + ((z + s->dst_z) * s->dst_height + y + s->dst_y) * s->dst_pitch + s->dst_x,
                   src + ((z + s->src_z) * s->src_height + y + s->src_y) * s->src_pitch + s->src_x, s->width);
}

static CUDA_MEMCPY3D copy_of(const struct shape *s)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = s->src_x,
        .srcY = s->src_y,
        .srcZ = s->src_z,
        .srcPitch = s->src_pitch,
        .srcHeight = s->src_height,
        .dstXInBytes = s->dst_x,
        .dstY = s->dst_y,
        .dstZ = s->dst_z,
        .dstPitch = s->dst_pitch,
        .dstHeight = s->dst_height,
        .WidthInBytes = s->width,
        .Height = s->height,
        .Depth = s->depth,
    };
}

static CUresult run_2d_or_3d(const CUDA_MEMCPY3D *c, unsigned way)
{
    const CUDA_MEMCPY2D flat = {
        .srcXInBytes = c->srcXInBytes,
        .srcY = c->srcY,
        .srcMemoryType = c->srcMemoryType,
        .srcHost = c->srcHost,
        .srcDevice = c->srcDevice,
        .srcPitch = c->srcPitch,
        .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY,
        .dstMemoryType = c->dstMemoryType,
        .dstHost = c->dstHost,
        .dstDevice = c->dstDevice,
        .dstPitch = c->dstPitch,
        .WidthInBytes = c->WidthInBytes,
        .Height = c->Height,
    };

    if (c->Depth > 1)
        return way & 1 ? cuMemcpy3DAsync(c, NULL) : cuMemcpy3D(c);
    switch (way % 4) {
    case 0:
        return cuMemcpy2DUnaligned(&flat);
    case 1:
        return cuMemcpy2DAsync(&flat, NULL);
    case 2:
        return cuMemcpy3D(c);
    default:
        return cuMemcpy3DAsync(c, NULL);
    }
}

/* Every shape, to and from every kind of memory. */
static void pitched_copies(void **state)
{
    unsigned char *source = malloc(BYTES);

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (unsigned way = 0; way < 20; way++) {
            CUDA_MEMCPY3D copy = copy_of(&shapes[i]);
            unsigned from = way % 3, to = way / 3 % 3;
            unsigned char *host_from = from == 1 ? pinned : source, *result = to == 1 ? pinned : pageable;

            if (from == 1 && to == 1)
                continue; /* one buffer as both source and destination */
            fill_with_noise(source, BYTES, (unsigned)(i * 100 + way));
            memset(expected, 0x44, BYTES);
            copy_by_host(&shapes[i], expected, source);
            if (from == 1)
                memcpy(pinned, source, BYTES);
            ok(cuMemcpyHtoD(device_a, source, BYTES));
            ok(cuMemsetD8(device_b, 0x44, BYTES));
            memset(result, 0x44, BYTES);
            copy.srcMemoryType = from == 2 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
            copy.dstMemoryType = to == 2 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
            copy.srcHost = host_from;
            copy.srcDevice = device_a;
            copy.dstHost = result;
            copy.dstDevice = device_b;
            if (way & 1 && from == 2)
                copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
            ok(run_2d_or_3d(&copy, way));
            ok(cuStreamSynchronize(NULL));
            if (to == 2)
                check_device(device_b);
            else
                assert_memory_equal(result, expected, BYTES);
        }
    }
    free(source);
}

static void pitched_copies_refuse(void **state)
{
    const CUDA_MEMCPY2D good = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = pageable,
        .srcPitch = 64,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = device_a,
        .dstPitch = 64,
        .WidthInBytes = 64,
        .Height = 16,
    };
    CUDA_MEMCPY2D bad;

    (void)state;
    ok(cuMemcpy2D(&good));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(NULL));
    bad = good, bad.srcPitch = 63;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    bad = good, bad.dstPitch = 63;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    bad = good, bad.srcMemoryType = (CUmemorytype)9;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    bad = good, bad.dstDevice = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    bad = good, bad.dstDevice = device_a + BYTES - 64;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&bad));
    bad = good, bad.Height = 0;
    ok(cuMemcpy2D(&bad));
    bad = good, bad.WidthInBytes = 0;
    ok(cuMemcpy2D(&bad));
}

/* ---- memset ---- */

static void set_by_host(size_t offset, unsigned element, unsigned value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(expected + offset + i * element, &value, element); /* little endian, as every machine that CUDA runs on */
}

static CUresult set_linear(CUdeviceptr p, unsigned element, unsigned value, size_t count, bool async)
{
    switch (element) {
    case 1:
        return async ? cuMemsetD8Async(p, (unsigned char)value, count, NULL) : cuMemsetD8(p, (unsigned char)value, count);
    case 2:
        return async ? cuMemsetD16Async(p, (unsigned short)value, count, NULL) : cuMemsetD16(p, (unsigned short)value, count);
    default:
        return async ? cuMemsetD32Async(p, value, count, NULL) : cuMemsetD32(p, value, count);
    }
}

static void memset_linear(void **state)
{
    (void)state;
    for (unsigned element = 1; element <= 4; element *= 2) {
        for (size_t i = 0; i < N_SPANS; i++) {
            size_t offset = spans[i].offset / element * element, count = spans[i].bytes / element;

            count = offset + count * element > BYTES ? (BYTES - offset) / element : count;
            ok(cuMemcpyHtoD(device_a, pageable, BYTES));
            memcpy(expected, pageable, BYTES);
            set_by_host(offset, element, 0x81c2a304u, count);
            ok(set_linear(device_a + offset, element, 0x81c2a304u, count, i & 1));
            check_device(device_a);
        }
    }
}

static CUresult set_rows(CUdeviceptr p, size_t pitch, unsigned element, unsigned value, size_t width, size_t height, bool async)
{
    switch (element) {
    case 1:
        return async ? cuMemsetD2D8Async(p, pitch, (unsigned char)value, width, height, NULL)
                     : cuMemsetD2D8(p, pitch, (unsigned char)value, width, height);
    case 2:
        return async ? cuMemsetD2D16Async(p, pitch, (unsigned short)value, width, height, NULL)
                     : cuMemsetD2D16(p, pitch, (unsigned short)value, width, height);
    default:
        return async ? cuMemsetD2D32Async(p, pitch, value, width, height, NULL) : cuMemsetD2D32(p, pitch, value, width, height);
    }
}

static void memset_rows(void **state)
{
    static const struct {
        size_t offset, pitch, width, height;
    } rows[] = {{0, 64, 3, 5},   {8, 64, 16, 100},      {4, 68, 17, 3000}, {12, 132, 33, 1},
                {0, 64, 16, 64}, {4, 300000, 60000, 3}, {4, 8, 1, 20}};

    (void)state;
    for (unsigned element = 1; element <= 4; element *= 2) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            ok(cuMemcpyHtoD(device_a, pageable, BYTES));
            memcpy(expected, pageable, BYTES);
            for (size_t y = 0; y < rows[i].height; y++)
                set_by_host(rows[i].offset + y * rows[i].pitch, element, 0x91827364u, rows[i].width);
            ok(set_rows(device_a + rows[i].offset, rows[i].pitch, element, 0x91827364u, rows[i].width, rows[i].height, i & 1));
            check_device(device_a);
        }
    }
}

static void memset_of_pinned_memory(void **state)
{
    CUdeviceptr mapped;

    (void)state;
    memset(pinned, 0, BYTES);
    ok(cuMemHostGetDevicePointer(&mapped, pinned, 0));
    ok(cuMemsetD8(mapped + 1, 0xab, BYTES - 2)); /* synchronous: returns when it is done */
    assert_int_equal(pinned[0], 0);
    assert_int_equal(pinned[1], 0xab);
    assert_int_equal(pinned[BYTES - 2], 0xab);
    assert_int_equal(pinned[BYTES - 1], 0);
}

static void memset_refuses(void **state)
{
    int local = 0;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(0, 1, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8((CUdeviceptr)(uintptr_t)&local, 1, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(device_a, 1, BYTES + 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(device_a + BYTES, 1, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(device_a + 1, 1, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(device_a + 2, 1, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(device_a, 1, (size_t)1 << 40));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(device_a, 4, 1, 8, 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(device_a, 63, 1, 4, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(device_a, 64, 1, 64, BYTES / 64 + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pageable_to_device),
        cmocka_unit_test(pinned_to_device),
        cmocka_unit_test(device_to_pageable),
        cmocka_unit_test(device_to_pinned),
        cmocka_unit_test(device_to_device),
        cmocka_unit_test(unified_copies),
        cmocka_unit_test(peer_copies_on_one_device),
        cmocka_unit_test(copies_of_nothing_succeed),
        cmocka_unit_test(copies_refuse),
        cmocka_unit_test(copies_in_a_stream_of_their_own),
        cmocka_unit_test(copies_in_a_blocking_stream_wait_for_the_default_stream),
        cmocka_unit_test(overlapping_copies_do_no_harm),
        cmocka_unit_test(pitched_copies),
        cmocka_unit_test(pitched_copies_refuse),
        cmocka_unit_test(memset_linear),
        cmocka_unit_test(memset_rows),
        cmocka_unit_test(memset_of_pinned_memory),
        cmocka_unit_test(memset_refuses),
    };

    return cmocka_run_group_tests(tests, set_up, take_down);
}
