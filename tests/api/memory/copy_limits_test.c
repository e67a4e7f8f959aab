/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills at their limits: the last byte that may be accessed and the first that may not, the smallest and largest pitches, and
 * more than 4 GiB. Large memory is accessed in few places only: on a CPU device the rest has no pages.
 *
 *     memory_copy_limits_test [--long]
 *
 * The long form also copies and fills more than 4 GiB at once, in addresses nearly all of which are mapped to the same 2 MiB. A plain
 * program of the driver API: NVIDIA's own driver must pass, too. */
#include "virtual_memory.h"

#define GIB ((size_t)1 << 30)
#define MIB ((size_t)1 << 20)
#define BYTES ((size_t)40000)

static bool long_form;

static CUdeviceptr device, other;
static unsigned char *pinned, source[BYTES], result[BYTES];

static int make(void **state)
{
    if (with_context(state))
        return -1;
    for (size_t i = 0; i < BYTES; i++)
        source[i] = (unsigned char)(i * 31 + i / 251);
    ok(cuMemAlloc(&device, BYTES));
    ok(cuMemAlloc(&other, BYTES));
    ok(cuMemAllocHost((void **)&pinned, BYTES));
    return 0;
}

static int destroy(void **state)
{
    ok(cuMemFree(device));
    ok(cuMemFree(other));
    ok(cuMemFreeHost(pinned));
    return without_context(state);
}

/* ---- the last byte ---- */

/* The last row ends at the end of the allocation: the rest of its pitch is not accessed, so it need not exist. `over`: one byte more. */
static CUDA_MEMCPY3D to_the_end(const size_t extent[3], size_t pitch, size_t height, bool dst_is_device, size_t over)
{
    size_t span = ((extent[2] - 1) * height + extent[1] - 1) * pitch + extent[0];
    CUdeviceptr at = device + BYTES - span + over;
    CUDA_MEMCPY3D copy = {.WidthInBytes = extent[0], .Height = extent[1], .Depth = extent[2]};

    copy.srcPitch = copy.dstPitch = pitch;
    copy.srcHeight = copy.dstHeight = height;
    copy.srcMemoryType = dst_is_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = dst_is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcHost = source;
    copy.dstHost = result;
    copy.srcDevice = copy.dstDevice = at;
    return copy;
}

static CUDA_MEMCPY2D flat(const CUDA_MEMCPY3D *c)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = c->srcMemoryType,
                           .srcHost = c->srcHost,
                           .srcDevice = c->srcDevice,
                           .srcPitch = c->srcPitch,
                           .dstMemoryType = c->dstMemoryType,
                           .dstHost = c->dstHost,
                           .dstDevice = c->dstDevice,
                           .dstPitch = c->dstPitch,
                           .WidthInBytes = c->WidthInBytes,
                           .Height = c->Height};
}

static void the_last_byte_counts(void **state)
{
    static const struct {
        size_t extent[3], pitch, height;
    } rows[] = {
        {{1, 1, 1}, 1, 1},     {{1, 1, 1}, 512, 3}, {{7, 5, 1}, 7, 5},     {{7, 5, 1}, 8, 5},       {{100, 3, 1}, 101, 3},
        {{512, 4, 2}, 512, 4}, {{13, 3, 3}, 17, 4}, {{1, 100, 2}, 3, 101}, {{1000, 2, 4}, 1024, 2}, {{BYTES, 1, 1}, BYTES, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned way = 0; way < 2; way++) {
            const size_t *e = rows[i].extent, pitch = rows[i].pitch, height = rows[i].height;
            CUDA_MEMCPY3D copy = to_the_end(e, pitch, height, way == 0, 0);
            CUDA_MEMCPY3D beyond = to_the_end(e, pitch, height, way == 0, 1);
            CUDA_MEMCPY2D rows_beyond = flat(&beyond);

            memset(result, 0, BYTES);
            ok(cuMemcpy3D(&copy));
            if (way == 1) /* it is copied back from the destination */
                for (size_t z = 0; z < e[2]; z++)
                    for (size_t y = 0; y < e[1]; y++)
                        assert_memory_equal(result + (z * height + y) * pitch, source + (z * height + y) * pitch, e[0]);
            if (e[0] == BYTES || !on_cuttle())
                continue; /* NVIDIA's allocations end at larger multiples */
            gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&beyond));
            gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync(&beyond, CU_STREAM_PER_THREAD));
            if (e[2] == 1) {
                gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows_beyond));
                gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned(&rows_beyond));
                gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&rows_beyond, CU_STREAM_PER_THREAD));
            }
        }
}

static void fills_to_the_last_byte(void **state)
{
    unsigned char *expected = malloc(BYTES);

    (void)state;
    assert_non_null(expected);
    for (unsigned element = 1; element <= 4; element *= 2)
        for (size_t pitch = element; pitch < 9 * element; pitch += element)
            for (size_t height = 1; height <= 40; height += 13) {
                size_t width = pitch / element < 5 ? 1 : 5, span = (height - 1) * pitch + width * element;
                CUdeviceptr at = device + BYTES - span;

                memset(expected, 0x11, BYTES);
                for (size_t row = 0; row < height; row++)
                    memset(expected + BYTES - span + row * pitch, 0x77, width * element);
                ok(cuMemsetD8(device, 0x11, BYTES));
                if (element == 1)
                    ok(cuMemsetD2D8(at, pitch, 0x77, width, height));
                else if (element == 2)
                    ok(cuMemsetD2D16(at, pitch, 0x7777, width, height));
                else
                    ok(cuMemsetD2D32(at, pitch, 0x77777777, width, height));
                ok(cuMemcpyDtoH(result, device, BYTES));
                assert_memory_equal(result, expected, BYTES);
                if (on_cuttle()) {
                    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(at, pitch, 1, width * element, height + 1));
                    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(at + 1, pitch, 1, width * element, height));
                }
            }
    free(expected);
}

/* Each 16- and 32-bit element is written completely, in rows that begin at any permitted alignment. */
static void elements_keep_their_bytes(void **state)
{
    (void)state;
    for (size_t offset = 0; offset < 8; offset += 2) {
        ok(cuMemsetD8(device, 0, 1024));
        ok(cuMemsetD2D16(device + offset, 22, 0xa1b2, 3, 30));
        ok(cuMemcpyDtoH(result, device, 1024));
        for (size_t row = 0; row < 30; row++)
            for (size_t i = 0; i < 6; i++)
                assert_int_equal(result[offset + row * 22 + i], i % 2 ? 0xa1 : 0xb2);
        assert_int_equal(result[offset + 6], 0);
    }
    ok(cuMemsetD8(device, 0, 1024));
    ok(cuMemsetD2D32(device + 4, 20, 0xa1b2c3d4, 3, 40));
    ok(cuMemcpyDtoH(result, device, 1024));
    for (size_t row = 0; row < 40; row++)
        for (size_t i = 0; i < 12; i++)
            assert_int_equal(result[4 + row * 20 + i], 0xa1b2c3d4u >> i % 4 * 8 & 0xff);
    assert_int_equal(result[16], 0);
}

/* Modulo the page size the ends are some bytes apart; processors may be slow there, so copies use another method. */
static void ends_a_few_bytes_apart(void **state)
{
    static const size_t distances[] = {0, 1, 16, 63, 64, 4080}, lengths[] = {2047, 2048, 2049, 2113, 6000, 65536, MIB - 1, MIB};
    unsigned char *from = aligned_alloc(4096, 2 * MIB), *to = aligned_alloc(4096, 2 * MIB);
    CUdeviceptr p;

    (void)state;
    assert_true(from && to);
    for (size_t i = 0; i < 2 * MIB; i++)
        from[i] = (unsigned char)(i * 31 + i / 251 + 1);
    ok(cuMemAlloc(&p, 2 * MIB));
    ok(cuMemcpyHtoD(p, from, 2 * MIB));
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            unsigned char *at = to + 4096 + distances[i];
            size_t length = lengths[k];

            at[-1] = at[length] = 0;
            memset(at, 0, length);
            ok(cuMemcpyDtoH(at, p + 4096, length));
            assert_memory_equal(at, from + 4096, length);
            assert_true(at[-1] == 0 && at[length] == 0);
        }
    ok(cuMemFree(p));
    free(from);
    free(to);
}

/* ---- pitches ---- */

/* "cuMemcpy2D() returns an error if any pitch is greater than the maximum allowed (CU_DEVICE_ATTRIBUTE_MAX_PITCH)"; cuMemcpy3D, too. */
static void a_pitch_has_a_maximum(void **state)
{
    const size_t most = (size_t)seeds_attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH), extent[3] = {16, 1, 1};
    CUDA_MEMCPY3D good = to_the_end(extent, 16, 1, true, 0);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        CUDA_MEMCPY3D copy = good;
        CUDA_MEMCPY2D rows;

        *(i ? &copy.srcPitch : &copy.dstPitch) = most;
        rows = flat(&copy);
        ok(cuMemcpy2D(&rows));
        ok(cuMemcpy2DUnaligned(&rows));
        ok(cuMemcpy3D(&copy));
        if (!on_cuttle())
            continue; /* NVIDIA's driver accepts any pitch for a single row */
        *(i ? &copy.srcPitch : &copy.dstPitch) = most + 1;
        rows = flat(&copy);
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&rows, CU_STREAM_PER_THREAD));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync(&copy, CU_STREAM_PER_THREAD));
    }
}

/* cuMemAllocPitch: "The pitch returned [...] is guaranteed to work with cuMemcpy2D() under all circumstances"; ElementSizeBytes "may be 4,
 * 8 or 16". */
static void pitched_memory(void **state)
{
    static const size_t widths[] = {1, 3, 511, 512, 513, 4000, 100000};
    CUdeviceptr p = 7, last;
    size_t pitch = 7;

    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (unsigned element = 4; element <= 16; element *= 2) {
            CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                  .srcHost = source,
                                  .srcPitch = 0,
                                  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .WidthInBytes = widths[i] < 9000 ? widths[i] : 9000,
                                  .Height = 4};

            ok(cuMemAllocPitch(&p, &pitch, widths[i], 4, element));
            assert_true(pitch >= widths[i] && pitch % element == 0 && p % element == 0);
            assert_int_equal(pitch % (size_t)seeds_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT), 0);
            copy.dstDevice = p;
            copy.dstPitch = pitch;
            ok(cuMemcpy2D(&copy));
            ok(cuMemcpyDtoH(result, p + 3 * pitch, copy.WidthInBytes));
            assert_memory_equal(result, source + 3 * copy.WidthInBytes, copy.WidthInBytes);
            ok(cuMemFree(p));
        }
    last = p, p = 7, pitch = 7;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(NULL, &pitch, 100, 100, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, NULL, 100, 100, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 0, 100, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 100, 0, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 100, 100, 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 100, 100, 32));
    if (on_cuttle()) /* NVIDIA's driver writes 0 */
        assert_true(p == 7 && pitch == 7 && last != 7);
}

/* Sizes whose products exceed 64 bits are rejected, and no memory is accessed. */
static void products_do_not_wrap(void **state)
{
    const size_t extent[3] = {16, 2, 2}, half = (size_t)1 << 63, third = (size_t)1 << 33;
    CUDA_MEMCPY3D good = to_the_end(extent, 16, 2, true, 0), bad;
    CUDA_MEMCPY2D rows;

    (void)state;
    if (!on_cuttle())
        skip(); /* NVIDIA's driver truncates such numbers to 64 bits, or reads out of bounds */
    bad = good, bad.dstY = half;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&bad));
    bad = good, bad.srcZ = half;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&bad));
    bad = good, bad.Height = bad.dstHeight = bad.srcHeight = half;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&bad));
    bad = good, bad.Depth = SIZE_MAX;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&bad));
    rows = flat(&good), rows.dstXInBytes = SIZE_MAX - 3, rows.dstPitch = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
    rows = flat(&good), rows.WidthInBytes = SIZE_MAX, rows.srcPitch = rows.dstPitch = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(device, 1, half));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(device, 1, half / 2 + 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(device, third, 1, 1, third));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(device, third, 1, half / 2, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(device, source, SIZE_MAX));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(device, other, SIZE_MAX - 100));
    ok(cuMemcpy3D(&good));
    ok(cuCtxSynchronize());
}

/* "If specified, srcHeight must be greater than or equal to Height + srcY, and dstHeight [..]": also for one slice, where it is not
 * used. */
static void heights_of_one_slice(void **state)
{
    const size_t extent[3] = {16, 4, 1};
    CUDA_MEMCPY3D good = to_the_end(extent, 16, 4, true, 0), bad;

    (void)state;
    ok(cuMemcpy3D(&good));
    good.srcHeight = good.dstHeight = 0; /* not specified */
    ok(cuMemcpy3D(&good));
    bad = good, bad.srcHeight = 3;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&bad));
    bad = good, bad.dstHeight = 3;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync(&bad, CU_STREAM_PER_THREAD));
    bad = good, bad.srcHeight = 4, bad.srcY = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&bad));
    bad.srcHeight = 5;
    ok(cuMemcpy3D(&bad));
}

/* An empty copy is not an error, whatever the pointers are. */
static void extents_of_nothing(void **state)
{
    const size_t extent[3] = {16, 2, 2};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        CUDA_MEMCPY3D copy = to_the_end(extent, 16, 2, true, 0);
        CUDA_MEMCPY2D rows;

        *(i == 0 ? &copy.WidthInBytes : i == 1 ? &copy.Height : &copy.Depth) = 0;
        rows = flat(&copy);
        ok(cuMemcpy3D(&copy));
        ok(cuMemcpy3DAsync(&copy, CU_STREAM_PER_THREAD));
        if (i < 2) {
            ok(cuMemcpy2D(&rows));
            ok(cuMemcpy2DAsync(&rows, CU_STREAM_PER_THREAD));
        }
    }
    ok(cuMemsetD8(device, 1, 0));
    ok(cuMemsetD2D8(device, 16, 1, 0, 5));
    ok(cuMemsetD2D32(device, 16, 1, 5, 0));
    ok(cuMemcpyHtoD(device, source, 0));
    ok(cuMemcpyDtoDAsync(device, other, 0, CU_STREAM_PER_THREAD));
}

/* Copies within one allocation whose rows are interleaved: no byte is both read and written. */
static void rows_between_rows(void **state)
{
    static const size_t pitches[] = {20, 64, 100, 700};

    (void)state;
    for (size_t i = 0; i < sizeof pitches / sizeof *pitches; i++) {
        size_t pitch = pitches[i], width = pitch / 2 - 1, height = 30;
        CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = device,
                              .srcPitch = pitch,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = device + pitch / 2,
                              .dstPitch = pitch,
                              .WidthInBytes = width,
                              .Height = height};

        ok(cuMemcpyHtoD(device, source, BYTES));
        ok(cuMemcpy2D(&copy));
        ok(cuMemcpyDtoH(result, device, BYTES));
        for (size_t row = 0; row < height; row++) {
            assert_memory_equal(result + row * pitch, source + row * pitch, width);
            assert_memory_equal(result + row * pitch + pitch / 2, source + row * pitch, width);
            assert_int_equal(result[row * pitch + width], source[row * pitch + width]);
        }
    }
}

/* ---- more than 4 GiB ---- */

static bool can_have(size_t bytes)
{
    size_t free_bytes, total;

    ok(cuMemGetInfo(&free_bytes, &total));
    return free_bytes >= bytes;
}

/* 5 GiB in which offsets beyond 4 GiB are filled, copied both ways, and used by a kernel. */
static void work_far_inside(CUdeviceptr p)
{
    static const size_t far = 4 * GIB + 12340;
    uint32_t words[SEEDS_WORDS], back[SEEDS_WORDS];

    for (unsigned i = 0; i < SEEDS_WORDS; i++)
        words[i] = i * 7 + 1;
    ok(cuMemsetD32(p + 12340, 5, SEEDS_WORDS)); /* the address if it were truncated to 32 bits */
    ok(cuMemsetD32(p + far, 9, SEEDS_WORDS));
    ok(cuMemcpyDtoH(back, p + 12340, sizeof back));
    assert_int_equal(back[0], 5);
    assert_int_equal(back[SEEDS_WORDS - 1], 5);
    ok(cuMemcpyDtoH(back, p + far, sizeof back));
    assert_int_equal(back[0], 9);
    ok(cuMemcpyHtoD(p + far, words, sizeof words));
    seeds_step(p + far, SEEDS_WORDS);
    ok(cuMemcpyDtoD(p + 2 * GIB + 4, p + far, sizeof words));
    ok(cuMemcpyDtoH(back, p + 2 * GIB + 4, sizeof back));
    for (unsigned i = 0; i < SEEDS_WORDS; i++)
        assert_int_equal(back[i], words[i] * 3 + 1);
    ok(cuMemcpyDtoH(back, p + 12340, sizeof back));
    assert_int_equal(back[0], 5);
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)) /* otherwise the address may be unrelated pageable memory */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back, p + 5 * GIB, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(p + far, 1, GIB));
}

/* Rows that are slightly more than 1 GiB apart. */
static void rows_far_apart(CUdeviceptr p)
{
    const size_t pitch = GIB + 4096;
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = p + 64,
                          .srcPitch = pitch,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = result,
                          .dstPitch = 100,
                          .WidthInBytes = 90,
                          .Height = 5};

    ok(cuMemsetD2D8(p + 64, pitch, 0x5a, 90, 5));
    for (size_t row = 0; row < 5; row++)
        ok(cuMemsetD8(p + 64 + row * pitch + 89, (unsigned char)row, 1));
    memset(result, 0, 500);
    ok(cuMemcpy2D(&copy));
    for (size_t row = 0; row < 5; row++) {
        assert_int_equal(result[row * 100], 0x5a);
        assert_int_equal(result[row * 100 + 88], 0x5a);
        assert_int_equal(result[row * 100 + 89], row);
        assert_int_equal(result[row * 100 + 90], 0);
    }
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE; /* and on the device: every row is moved right by one */
    copy.dstDevice = p + 64 + 200;
    copy.dstPitch = pitch;
    ok(cuMemcpy2D(&copy));
    ok(cuMemcpyDtoH(result, p + 64 + 200 + 4 * pitch, 90));
    assert_int_equal(result[0], 0x5a);
    assert_int_equal(result[89], 4);
}

static void beyond_4_gib_in_one_allocation(void **state)
{
    CUdeviceptr p = 0;
    CUresult r;

    (void)state;
    if (!can_have(11 * GIB / 2))
        skip();
    r = cuMemAlloc(&p, 5 * GIB);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        skip(); /* a device without such large allocations */
    ok(r);
    work_far_inside(p);
    rows_far_apart(p);
    ok(cuMemFree(p));
}

/* The same in addresses that are reserved, but mapped in three places only. */
static void beyond_4_gib_in_reserved_addresses(void **state)
{
    size_t granule, offsets[3];
    CUdeviceptr start = 0;

    (void)state;
    if (!vm_is_there())
        skip();
    granule = vm_granule();
    ok(cuMemAddressReserve(&start, 6 * GIB, 0, 0, 0));
    offsets[0] = 0;
    offsets[1] = 4 * GIB;
    offsets[2] = 6 * GIB - granule;
    for (unsigned i = 0; i < 3; i++) {
        CUmemGenericAllocationHandle handle = vm_create(1);

        ok(cuMemMap(start + offsets[i], granule, 0, handle, 0));
        ok(cuMemRelease(handle));
        ok(vm_access(start + offsets[i], granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        ok(cuMemsetD32(start + offsets[i], 100 + i, granule / 4));
    }
    for (unsigned i = 0; i < 3; i++) {
        uint32_t word = 0;

        seeds_step(start + offsets[i] + granule - SEEDS_WORDS * 4, SEEDS_WORDS);
        ok(cuMemcpyDtoH(&word, start + offsets[i] + granule - 4, 4));
        assert_int_equal(word, (100 + i) * 3 + 1);
    }
    ok(cuMemcpyDtoD(start + offsets[2], start + offsets[1], granule));
    ok(cuMemcpyDtoH(result, start + offsets[2] + 8, 4));
    assert_int_equal(result[0], 101);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(start + offsets[1], 1, granule + 1)); /* nothing is mapped there */
    for (unsigned i = 0; i < 3; i++)
        ok(cuMemUnmap(start + offsets[i], granule));
    ok(cuMemAddressFree(start, 6 * GIB));
}

/* More than 2^32 bytes of addresses. All granules but the last are mapped to the same memory, so that little is needed; the last one is
 * where no data would arrive if sizes were truncated to 32 bits. */
struct wide {
    CUdeviceptr start;
    size_t granule, count, size;
};

static struct wide wide_make(void)
{
    struct wide wide = {.granule = vm_granule()};
    CUmemGenericAllocationHandle body = vm_create(1), last = vm_create(1);

    wide.count = 4 * GIB / wide.granule + 3;
    wide.size = wide.count * wide.granule;
    ok(cuMemAddressReserve(&wide.start, wide.size, 0, 0, 0));
    for (size_t i = 0; i < wide.count; i++)
        ok(cuMemMap(wide.start + i * wide.granule, wide.granule, 0, i == wide.count - 1 ? last : body, 0));
    ok(cuMemRelease(body));
    ok(cuMemRelease(last));
    ok(vm_access(wide.start, wide.size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return wide;
}

static void wide_free(const struct wide *wide)
{
    ok(cuMemUnmap(wide->start, wide->size));
    ok(cuMemAddressFree(wide->start, wide->size));
}

/* Fills both memories with calls of their full size. */
static void wide_fill(const struct wide *wide, unsigned char body, unsigned char last)
{
    ok(cuMemsetD8(wide->start, body, wide->granule));
    ok(cuMemsetD8(wide->start + wide->size - wide->granule, last, wide->granule));
    ok(cuCtxSynchronize());
}

static void wide_holds(const struct wide *wide, unsigned char body, unsigned char last)
{
    ok(cuMemcpyDtoH(result, wide->start, 4));
    assert_int_equal(result[0], body);
    ok(cuMemcpyDtoH(result, wide->start + wide->size - wide->granule, 4));
    assert_int_equal(result[0], last);
    ok(cuMemcpyDtoH(result, wide->start + wide->size - 4, 4));
    assert_int_equal(result[3], last);
}

/* The same for host memory. */
static unsigned char *wide_host(const struct wide *like)
{
    char *start = mmap(NULL, like->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int file = memfd_create("wide", MFD_CLOEXEC);

    assert_ptr_not_equal(start, MAP_FAILED);
    assert_int_equal(ftruncate(file, (off_t)(2 * like->granule)), 0);
    for (size_t i = 0; i < like->count; i++) {
        void *at = start + i * like->granule;
        off_t offset = i == like->count - 1 ? (off_t)like->granule : 0;

        assert_ptr_equal(mmap(at, like->granule, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset), at);
    }
    close(file);
    return (unsigned char *)start;
}

static void more_than_2_to_the_32_bytes_filled(void **state)
{
    struct wide wide;

    (void)state;
    if (!long_form || !vm_is_there())
        skip();
    wide = wide_make();
    wide_fill(&wide, 1, 1);
    ok(cuMemsetD8(wide.start, 0x21, wide.size));
    wide_holds(&wide, 0x21, 0x21);
    ok(cuMemsetD16(wide.start, 0x3232, wide.size / 2));
    wide_holds(&wide, 0x32, 0x32);
    ok(cuMemsetD32Async(wide.start, 0x43434343, wide.size / 4, NULL));
    wide_holds(&wide, 0x43, 0x43);
    ok(cuMemsetD2D32(wide.start, wide.granule, 0x54545454, wide.granule / 4, wide.count));
    wide_holds(&wide, 0x54, 0x54);
    wide_free(&wide);
}

/* All of it, in both directions, and between two places of the device, linear and in rows. */
static void more_than_2_to_the_32_bytes_copied(void **state)
{
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE};
    struct wide from, to;
    unsigned char *host;

    (void)state;
    if (!long_form || !vm_is_there())
        skip();
    from = wide_make();
    to = wide_make();
    host = wide_host(&from);
    wide_fill(&from, 0x11, 0x12);
    wide_fill(&to, 1, 1);
    ok(cuMemcpyDtoD(to.start, from.start, from.size));
    wide_holds(&to, 0x11, 0x12);
    ok(cuMemcpyDtoH(host, to.start, to.size));
    assert_true(host[0] == 0x11 && host[to.size - to.granule] == 0x12 && host[to.size - 1] == 0x12);
    memset(host, 0x21, to.granule);
    memset(host + to.size - to.granule, 0x22, to.granule);
    ok(cuMemcpyHtoD(to.start, host, to.size));
    wide_holds(&to, 0x21, 0x22);
    ok(cuMemcpyAsync(from.start, to.start, to.size, NULL));
    wide_holds(&from, 0x21, 0x22);
    memset(host + to.size - to.granule, 0x33, to.granule);
    rows.srcHost = host;
    rows.dstDevice = to.start;
    rows.srcPitch = rows.dstPitch = rows.WidthInBytes = to.granule;
    rows.Height = to.count;
    ok(cuMemcpy2D(&rows));
    wide_holds(&to, 0x21, 0x33);
    munmap(host, to.size);
    wide_free(&to);
    wide_free(&from);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_byte_counts),
        cmocka_unit_test(fills_to_the_last_byte),
        cmocka_unit_test(elements_keep_their_bytes),
        cmocka_unit_test(ends_a_few_bytes_apart),
        cmocka_unit_test(a_pitch_has_a_maximum),
        cmocka_unit_test(pitched_memory),
        cmocka_unit_test(products_do_not_wrap),
        cmocka_unit_test(heights_of_one_slice),
        cmocka_unit_test(extents_of_nothing),
        cmocka_unit_test(rows_between_rows),
        cmocka_unit_test(beyond_4_gib_in_one_allocation),
        cmocka_unit_test(beyond_4_gib_in_reserved_addresses),
        cmocka_unit_test(more_than_2_to_the_32_bytes_filled),
        cmocka_unit_test(more_than_2_to_the_32_bytes_copied),
    };

    long_form = argc > 1 && strcmp(argv[1], "--long") == 0;
    return cmocka_run_group_tests(tests, make, destroy);
}
