/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays: which ones can be created, their descriptors, and requests that are rejected. array_copies_test.c tests
 * the copies. */
#include "arrays.h"

#include <stdbool.h>

#define MIB ((size_t)1 << 20)

/* Copies all of a host buffer to an array or back, with the most general function. */
static void copy_all(CUarray array, void *host, size_t row_bytes, size_t rows, size_t slices, bool to_array)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = row_bytes, .Height = rows, .Depth = slices};

    copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    copy.srcHost = copy.dstHost = host;
    copy.srcArray = copy.dstArray = array;
    copy.srcPitch = copy.dstPitch = row_bytes;
    copy.srcHeight = copy.dstHeight = rows;
    ok(cuMemcpy3D(&copy));
}

static void check_holds_its_bytes(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR *desc, size_t element_bytes)
{
    size_t row = desc->Width * element_bytes, rows = at_least_one(desc->Height), slices = at_least_one(desc->Depth);
    unsigned char *there = malloc(row * rows * slices), *back = malloc(row * rows * slices);

    fill_with_noise(there, row * rows * slices, (unsigned)(uintptr_t)array);
    memset(back, 0, row * rows * slices);
    copy_all(array, there, row, rows, slices, true);
    copy_all(array, back, row, rows, slices, false);
    assert_memory_equal(there, back, row * rows * slices);
    free(there);
    free(back);
}

static void assert_descriptor(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    CUDA_ARRAY3D_DESCRIPTOR got;
    CUDA_ARRAY_DESCRIPTOR flat;

    memset(&got, 0xee, sizeof got);
    memset(&flat, 0xee, sizeof flat);
    ok(cuArray3DGetDescriptor(&got, array));
    assert_int_equal(got.Width, want->Width);
    assert_int_equal(got.Height, want->Height);
    assert_int_equal(got.Depth, want->Depth);
    assert_int_equal(got.Format, want->Format);
    assert_int_equal(got.NumChannels, want->NumChannels);
    assert_int_equal(got.Flags, want->Flags);
    ok(cuArrayGetDescriptor(&flat, array));
    assert_int_equal(flat.Width, want->Width);
    assert_int_equal(flat.Height, want->Height);
    assert_int_equal(flat.Format, want->Format);
    assert_int_equal(flat.NumChannels, want->NumChannels);
}

/* ---- supported arrays ---- */

static void every_kind_holds_every_format(void **state)
{
    static const unsigned channels[] = {1, 2, 4};

    (void)state;
    for (size_t k = 0; k < N_ARRAY_KINDS; k++) {
        for (size_t f = 0; f < N_ARRAY_FORMATS; f++) {
            for (size_t c = 0; c < 3; c++) {
                CUDA_ARRAY3D_DESCRIPTOR desc = array_desc(&array_kinds[k], array_formats[f].format, channels[c]);
                CUarray array;

                ok(cuArray3DCreate(&array, &desc));
                assert_descriptor(array, &desc);
                check_holds_its_bytes(array, &desc, array_formats[f].channel_bytes * channels[c]);
                ok(cuArrayDestroy(array));
            }
        }
    }
}

static void two_dimensional_form(void **state)
{
    static const CUDA_ARRAY_DESCRIPTOR rows = {40, 9, CU_AD_FORMAT_FLOAT, 2}, row = {40, 0, CU_AD_FORMAT_HALF, 4};
    CUarray array;

    (void)state;
    ok(cuArrayCreate(&array, &rows));
    assert_descriptor(array, &(CUDA_ARRAY3D_DESCRIPTOR){40, 9, 0, CU_AD_FORMAT_FLOAT, 2, 0});
    ok(cuArrayDestroy(array));
    ok(cuArrayCreate(&array, &row));
    assert_descriptor(array, &(CUDA_ARRAY3D_DESCRIPTOR){40, 0, 0, CU_AD_FORMAT_HALF, 4, 0});
    ok(cuArrayDestroy(array));
}

/* The functions of CUDA before 3.2, whose extents and offsets have 32 bits: for contexts of that version. */
static struct {
    CUresult (*ctx_create)(CUcontext *, unsigned, CUdevice);
    CUresult (*create)(CUarray *, const CUDA_ARRAY_DESCRIPTOR_v1 *);
    CUresult (*create_3d)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR_v1 *);
    CUresult (*get)(CUDA_ARRAY_DESCRIPTOR_v1 *, CUarray);
    CUresult (*get_3d)(CUDA_ARRAY3D_DESCRIPTOR_v1 *, CUarray);
    CUresult (*to_array)(CUarray, unsigned, const void *, unsigned);
    CUresult (*from_array)(void *, CUarray, unsigned, unsigned);
    CUresult (*between)(CUarray, unsigned, CUarray, unsigned, unsigned);
} old;

static void find_old_forms(void)
{
    *(void **)&old.ctx_create = dlsym(RTLD_DEFAULT, "cuCtxCreate");
    *(void **)&old.create = dlsym(RTLD_DEFAULT, "cuArrayCreate");
    *(void **)&old.create_3d = dlsym(RTLD_DEFAULT, "cuArray3DCreate");
    *(void **)&old.get = dlsym(RTLD_DEFAULT, "cuArrayGetDescriptor");
    *(void **)&old.get_3d = dlsym(RTLD_DEFAULT, "cuArray3DGetDescriptor");
    *(void **)&old.to_array = dlsym(RTLD_DEFAULT, "cuMemcpyHtoA");
    *(void **)&old.from_array = dlsym(RTLD_DEFAULT, "cuMemcpyAtoH");
    *(void **)&old.between = dlsym(RTLD_DEFAULT, "cuMemcpyAtoA");
    assert_true(old.ctx_create && old.create && old.create_3d && old.get && old.get_3d && old.to_array && old.from_array && old.between);
}

static void old_forms_are_not_for_new_contexts(void **state)
{
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {24, 0, CU_AD_FORMAT_SIGNED_INT16, 4};
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {24, 8, 5, CU_AD_FORMAT_SIGNED_INT16, 2, CUDA_ARRAY3D_LAYERED};
    unsigned char bytes[64] = {0};
    CUarray array, none;

    (void)state;
    find_old_forms();
    ok(cuArrayCreate(&array, &(CUDA_ARRAY_DESCRIPTOR){24, 0, CU_AD_FORMAT_SIGNED_INT16, 4}));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.create(&none, &flat));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.create_3d(&none, &deep));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.get(&flat, array));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.get_3d(&deep, array));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.to_array(array, 0, bytes, 64));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.from_array(bytes, array, 0, 64));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.between(array, 0, array, 64, 64));
    ok(cuArrayDestroy(array));
}

/* Known for our driver only. */
static void old_forms_in_old_contexts(void **state)
{
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {24, 0, CU_AD_FORMAT_SIGNED_INT16, 4};
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {24, 8, 5, CU_AD_FORMAT_SIGNED_INT16, 2, CUDA_ARRAY3D_LAYERED};
    unsigned char there[64], back[64];
    CUcontext context;
    CUarray array;

    if (!on_cuttle())
        skip();
    find_old_forms();
    ok(old.ctx_create(&context, 0, 0));
    ok(old.create(&array, &flat));
    memset(&flat, 0xee, sizeof flat);
    ok(old.get(&flat, array));
    assert_true(flat.Width == 24 && flat.Height == 0 && flat.Format == CU_AD_FORMAT_SIGNED_INT16 && flat.NumChannels == 4);
    gives(CUDA_ERROR_INVALID_VALUE, old.get(NULL, array));
    fill_with_noise(there, sizeof there, 5);
    ok(old.to_array(array, 8, there, 64));
    ok(old.between(array, 96, array, 8, 64));
    ok(old.from_array(back, array, 96, 64));
    assert_memory_equal(there, back, 64);
    ok(cuArrayDestroy(array));
    ok(old.create_3d(&array, &deep));
    memset(&deep, 0xee, sizeof deep);
    ok(old.get_3d(&deep, array));
    assert_true(deep.Width == 24 && deep.Height == 8 && deep.Depth == 5 && deep.Flags == CUDA_ARRAY3D_LAYERED);
    gives(CUDA_ERROR_INVALID_VALUE, old.get_3d(NULL, array));
    gives(CUDA_ERROR_INVALID_VALUE, old.create(&array, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, old.create(NULL, &flat));
    gives(CUDA_ERROR_INVALID_VALUE, old.create_3d(&array, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, old.create_3d(NULL, &deep));
    ok(cuCtxDestroy(context)); /* and the array is destroyed with it */
    ok(cuCtxSetCurrent(*state));
}

/* ---- limits ---- */

#define L CUDA_ARRAY3D_LAYERED
#define C CUDA_ARRAY3D_CUBEMAP
#define GATHER CUDA_ARRAY3D_TEXTURE_GATHER
#define SURFACE CUDA_ARRAY3D_SURFACE_LDST
#define UINT8 CU_AD_FORMAT_UNSIGNED_INT8
#define FLOAT CU_AD_FORMAT_FLOAT

static const struct {
    const char *name;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult want;
} requests[] = {
    {"1D surface", {64, 0, 0, FLOAT, 1, SURFACE}, CUDA_SUCCESS},
    {"2D surface", {64, 32, 0, UINT8, 4, SURFACE}, CUDA_SUCCESS},
    {"3D surface", {16, 8, 4, FLOAT, 4, SURFACE}, CUDA_SUCCESS},
    {"1D layered surface", {64, 0, 3, FLOAT, 2, SURFACE | L}, CUDA_SUCCESS},
    {"2D layered surface", {16, 8, 3, UINT8, 2, SURFACE | L}, CUDA_SUCCESS},
    {"cubemap surface", {8, 8, 6, UINT8, 1, SURFACE | C}, CUDA_SUCCESS},
    {"2D for gathers", {64, 32, 0, FLOAT, 1, GATHER}, CUDA_SUCCESS},
    {"2D that is rendered into", {64, 32, 0, UINT8, 4, CUDA_ARRAY3D_COLOR_ATTACHMENT}, CUDA_ERROR_INVALID_VALUE},
    {"2D of depths", {64, 32, 0, FLOAT, 1, CUDA_ARRAY3D_DEPTH_TEXTURE}, CUDA_ERROR_INVALID_VALUE},
    {"no width", {0, 0, 0, FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    {"no width, but a height", {0, 16, 0, FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    {"a depth without a height", {64, 0, 5, FLOAT, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    {"layered without layers", {64, 32, 0, FLOAT, 1, L}, CUDA_ERROR_INVALID_VALUE},
    {"1D layered without layers", {64, 0, 0, FLOAT, 1, L}, CUDA_ERROR_INVALID_VALUE},
    {"cubemap that is no square", {16, 8, 6, FLOAT, 1, C}, CUDA_ERROR_INVALID_VALUE},
    {"cubemap of five faces", {16, 16, 5, FLOAT, 1, C}, CUDA_ERROR_INVALID_VALUE},
    {"cubemap of twelve faces", {16, 16, 12, FLOAT, 1, C}, CUDA_ERROR_INVALID_VALUE},
    {"cubemap without faces", {16, 16, 0, FLOAT, 1, C}, CUDA_ERROR_INVALID_VALUE},
    {"layered cubemap of seven faces", {16, 16, 7, FLOAT, 1, C | L}, CUDA_ERROR_INVALID_VALUE},
    {"gathers from 1D", {64, 0, 0, FLOAT, 1, GATHER}, CUDA_ERROR_INVALID_VALUE},
    {"gathers from 3D", {16, 16, 16, FLOAT, 1, GATHER}, CUDA_ERROR_INVALID_VALUE},
    {"gathers from layers", {16, 16, 16, FLOAT, 1, GATHER | L}, CUDA_ERROR_INVALID_VALUE},
    {"an unknown flag", {64, 32, 0, FLOAT, 1, 0x10000}, CUDA_ERROR_INVALID_VALUE},
    {"no channels", {64, 32, 0, FLOAT, 0, 0}, CUDA_ERROR_INVALID_VALUE},
    {"three channels", {64, 32, 0, FLOAT, 3, 0}, CUDA_ERROR_INVALID_VALUE},
    {"five channels", {64, 32, 0, FLOAT, 5, 0}, CUDA_ERROR_INVALID_VALUE},
    {"no format", {64, 32, 0, (CUarray_format)0, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    {"an unknown format", {64, 32, 0, (CUarray_format)0x7f, 1, 0}, CUDA_ERROR_INVALID_VALUE},
    {"UNORM of another number of channels", {64, 32, 0, CU_AD_FORMAT_UNORM_INT8X4, 2, 0}, CUDA_ERROR_INVALID_VALUE},
    {"UNORM of four channels", {64, 32, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0}, CUDA_SUCCESS},
    {"SNORM of two channels", {64, 32, 0, CU_AD_FORMAT_SNORM_INT16X2, 2, 0}, CUDA_SUCCESS},
};

static void requests_by_the_manual(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        CUarray array = NULL;
        CUresult r = cuArray3DCreate(&array, &requests[i].desc);

        if (r != requests[i].want) {
            print_error("%s: %s, not %s\n", requests[i].name, api_error_name(r), api_error_name(requests[i].want));
            wrong++;
        }
        assert_true((array != NULL) == (r == CUDA_SUCCESS));
        if (array)
            ok(cuArrayDestroy(array));
    }
    assert_int_equal(wrong, 0);
}

/* For each side of each kind, a request one above the attribute is rejected, and the first sides are accepted at the attribute's value. */
static void limits_are_those_of_the_attributes(void **state)
{
    static const struct {
        const char *name;
        CUDA_ARRAY3D_DESCRIPTOR desc;
        int side; /* 0 width, 1 height, 2 depth; 3 width and height */
        CUdevice_attribute limit;
        size_t step;
    } limits[] = {
        {"1D", {1, 0, 0, UINT8, 1, 0}, 0, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 1},
        {"2D width", {1, 1, 0, UINT8, 1, 0}, 0, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 1},
        {"2D height", {1, 1, 0, UINT8, 1, 0}, 1, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 1},
        {"1D layers", {1, 0, 1, UINT8, 1, L}, 2, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 1},
        {"2D layers", {1, 1, 1, UINT8, 1, L}, 2, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 1},
        {"cubemap", {1, 1, 6, UINT8, 1, C}, 3, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 1},
        {"cubemap layers", {1, 1, 6, UINT8, 1, C | L}, 2, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 6},
    };

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        CUDA_ARRAY3D_DESCRIPTOR desc = limits[i].desc;
        size_t most = (size_t)attribute(limits[i].limit), *sides[] = {&desc.Width, &desc.Height, &desc.Depth};
        size_t *side = sides[limits[i].side % 3];
        CUarray array = NULL;
        CUresult r;

        assert_true(most > 0);
        *side = most / limits[i].step * limits[i].step;
        if (limits[i].side < 3) { /* a whole cubemap of that size is large */
            ok(cuArray3DCreate(&array, &desc));
            ok(cuArrayDestroy(array));
        }
        *side += limits[i].step;
        if (limits[i].side == 3)
            desc.Height = desc.Width = *side;
        r = cuArray3DCreate(&array, &desc);
        if (r != CUDA_ERROR_INVALID_VALUE)
            print_error("%s beyond %zu: %s\n", limits[i].name, most, api_error_name(r));
        assert_int_equal(r, CUDA_ERROR_INVALID_VALUE);
    }
}

static void nulls_are_refused(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR deep = {16, 16, 4, FLOAT, 1, 0};
    static const CUDA_ARRAY_DESCRIPTOR flat = {16, 16, FLOAT, 1};
    CUmipmappedArray mipmap;
    CUarray array;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(NULL, &flat));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(NULL, &deep));
    gives(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(NULL, &deep, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&mipmap, NULL, 1));
    ok(cuArrayCreate(&array, &flat));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetDescriptor(NULL, array));
    gives(CUDA_ERROR_INVALID_VALUE, cuArray3DGetDescriptor(NULL, array));
    ok(cuArrayDestroy(array));
    ok(cuMipmappedArrayCreate(&mipmap, &deep, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(NULL, mipmap, 0));
    ok(cuMipmappedArrayDestroy(mipmap));
}

static void no_context_is_refused(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR deep = {16, 16, 4, FLOAT, 1, 0};
    static const CUDA_ARRAY_DESCRIPTOR flat = {16, 16, FLOAT, 1};
    CUmipmappedArray mipmap;
    CUarray array;

    ok(cuCtxSetCurrent(NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuArrayCreate(&array, &flat));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuArray3DCreate(&array, &deep));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMipmappedArrayCreate(&mipmap, &deep, 1));
    ok(cuCtxSetCurrent(*state));
}

/* The manual's results for arrays that are neither sparse, nor without memory, nor of several planes. */
static void ordinary_arrays_have_no_special_properties(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {32, 32, 0, FLOAT, 1, 0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUmipmappedArray mipmap;
    CUarray array, plane;

    (void)state;
    ok(cuArray3DCreate(&array, &desc));
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 3));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&sparse, array));
    gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetSparseProperties(&sparse, mipmap));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&needed, array, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements(&needed, mipmap, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, 5));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(NULL, array, 0));
    ok(cuArrayDestroy(array));
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* The attribute reports that there are none. */
static void sparse_and_deferred_arrays_follow_their_attributes(void **state)
{
    static const struct {
        CUdevice_attribute attribute;
        unsigned flag;
    } rows[] = {{CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, CUDA_ARRAY3D_SPARSE},
                {CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, CUDA_ARRAY3D_DEFERRED_MAPPING}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        CUDA_ARRAY3D_DESCRIPTOR desc = {512, 512, 0, FLOAT, 1, rows[i].flag};
        CUmipmappedArray mipmap;
        CUarray array;

        if (attribute(rows[i].attribute)) {
            ok(cuArray3DCreate(&array, &desc));
            ok(cuArrayDestroy(array));
        } else {
            gives(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate(&array, &desc));
            gives(CUDA_ERROR_NOT_SUPPORTED, cuMipmappedArrayCreate(&mipmap, &desc, 2));
        }
    }
}

/* ---- memory ---- */

static void memory_runs_out_and_is_freed(void **state)
{
    size_t side = (size_t)attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH);
    CUDA_ARRAY3D_DESCRIPTOR desc = {side, side, side, FLOAT, 4, 0};
    CUmipmappedArray mipmap;
    CUarray array;

    (void)state;
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuArray3DCreate(&array, &desc));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMipmappedArrayCreate(&mipmap, &desc, 3));
    desc.Width = desc.Height = desc.Depth = 16;
    ok(cuArray3DCreate(&array, &desc));
    check_holds_its_bytes(array, &desc, 16);
    ok(cuArrayDestroy(array));
}

static void free_memory_shrinks_by_an_array(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {2048, 2048, 0, FLOAT, 4, 0}; /* 64 MiB */
    size_t before, with, after, total;
    CUarray array;

    (void)state;
    if (attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED))
        return; /* other processes change it, too */
    ok(cuMemGetInfo(&before, &total));
    ok(cuArray3DCreate(&array, &desc));
    ok(cuMemGetInfo(&with, &total));
    ok(cuArrayDestroy(array));
    ok(cuMemGetInfo(&after, &total));
    assert_true(before - with >= 60 * MIB && before - with <= 80 * MIB);
    assert_true(after - with >= 60 * MIB);
}

static void many_are_made_and_destroyed(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {64, 64, 0, UINT8, 4, SURFACE};
    enum { N = 64 };
    CUarray arrays[N];

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            ok(cuArray3DCreate(&arrays[i], &desc));
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(arrays[i], arrays[j]);
        check_holds_its_bytes(arrays[N - 1], &desc, 4);
        for (int i = 0; i < N; i++)
            ok(cuArrayDestroy(arrays[(i * 7) % N]));
    }
}

/* ---- mipmapped arrays ---- */

static void levels_are_halved(void **state)
{
    static const struct {
        CUDA_ARRAY3D_DESCRIPTOR desc;
        unsigned asked, levels;
    } rows[] = {
        {{100, 0, 0, UINT8, 4, 0}, 100, 7},    {{40, 17, 0, FLOAT, 1, 0}, 100, 6},     {{8, 9, 33, FLOAT, 2, 0}, 100, 6},
        {{16, 8, 5, UINT8, 2, L}, 100, 5},     {{16, 0, 40, FLOAT, 1, L}, 100, 5},     {{16, 16, 6, UINT8, 4, C}, 100, 5},
        {{8, 8, 12, FLOAT, 1, C | L}, 100, 4}, {{64, 64, 0, FLOAT, 4, SURFACE}, 3, 3}, {{64, 64, 0, FLOAT, 4, 0}, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUDA_ARRAY3D_DESCRIPTOR want = rows[i].desc;
        CUmipmappedArray mipmap;
        CUarray level;

        ok(cuMipmappedArrayCreate(&mipmap, &want, rows[i].asked));
        for (unsigned l = 0; l < rows[i].levels; l++) {
            ok(cuMipmappedArrayGetLevel(&level, mipmap, l));
            assert_descriptor(level, &want);
            check_holds_its_bytes(level, &want, (want.Format == FLOAT ? 4 : 1) * want.NumChannels);
            want.Width = at_least_one(want.Width / 2);
            want.Height = want.Height ? at_least_one(want.Height / 2) : 0;
            if (!(want.Flags & (L | C)))
                want.Depth = want.Depth ? at_least_one(want.Depth / 2) : 0;
        }
        gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mipmap, rows[i].levels));
        ok(cuMipmappedArrayDestroy(mipmap));
    }
}

static void levels_are_memory_of_their_own(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {32, 32, 0, UINT8, 4, 0};
    unsigned char texels[32 * 32 * 4], back[sizeof texels];
    CUmipmappedArray mipmap;
    CUarray levels[6], again;

    (void)state;
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 6));
    for (unsigned i = 0; i < 6; i++) {
        size_t side = 32u >> i;

        ok(cuMipmappedArrayGetLevel(&levels[i], mipmap, i));
        memset(texels, (int)(0x10 + i), sizeof texels);
        copy_all(levels[i], texels, side * 4, side, 1, true);
    }
    for (unsigned i = 0; i < 6; i++) {
        size_t side = 32u >> i;

        ok(cuMipmappedArrayGetLevel(&again, mipmap, i)); /* whatever the handle is, it denotes that level */
        copy_all(again, back, side * 4, side, 1, false);
        memset(texels, (int)(0x10 + i), sizeof texels);
        assert_memory_equal(back, texels, side * side * 4);
    }
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* ---- invalid handles; NVIDIA's driver dereferences them ---- */

static void dead_and_foreign_handles(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {16, 16, 0, FLOAT, 1, 0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUarray array, level, bad[3];
    CUmipmappedArray mipmap;
    CUDA_ARRAY3D_DESCRIPTOR deep;
    CUDA_ARRAY_DESCRIPTOR flat;
    CUevent event;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuEventCreate(&event, 0));
    ok(cuArray3DCreate(&array, &desc));
    ok(cuArrayDestroy(array));
    bad[0] = array;
    bad[1] = (CUarray)event;
    bad[2] = MADE_UP(CUarray);
    for (int i = 0; i < 3; i++) {
        gives(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(bad[i]));
        gives(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor(&flat, bad[i]));
        gives(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&deep, bad[i]));
        gives(CUDA_ERROR_INVALID_HANDLE, cuArrayGetSparseProperties(&sparse, bad[i]));
        gives(CUDA_ERROR_INVALID_HANDLE, cuArrayGetMemoryRequirements(&needed, bad[i], 0));
        gives(CUDA_ERROR_INVALID_HANDLE, cuArrayGetPlane(&level, bad[i], 0));
        gives(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy((CUmipmappedArray)bad[i]));
        gives(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&level, (CUmipmappedArray)bad[i], 0));
        gives(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetSparseProperties(&sparse, (CUmipmappedArray)bad[i]));
        gives(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetMemoryRequirements(&needed, (CUmipmappedArray)bad[i], 0));
    }
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 2));
    ok(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    ok(cuArrayDestroy(level)); /* this has no effect on it */
    ok(cuArray3DGetDescriptor(&deep, level));
    gives(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy((CUarray)mipmap));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy((CUmipmappedArray)level));
    ok(cuMipmappedArrayDestroy(mipmap));
    gives(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&deep, level));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(mipmap));
    ok(cuEventDestroy(event));
}

static void a_context_takes_its_arrays_along(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {64, 64, 0, FLOAT, 1, 0};
    unsigned type;
    CUDA_ARRAY3D_DESCRIPTOR deep;
    CUmipmappedArray mipmap;
    CUarray array, level;
    CUcontext context;

    if (!on_cuttle())
        skip();
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuArray3DCreate(&array, &desc));
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 3));
    ok(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    check_holds_its_bytes(array, &desc, 4);
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)array));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(*state));
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuArray3DGetDescriptor(&deep, array));
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuArray3DGetDescriptor(&deep, level));
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMipmappedArrayDestroy(mipmap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_holds_every_format),
        cmocka_unit_test(two_dimensional_form),
        cmocka_unit_test(old_forms_are_not_for_new_contexts),
        cmocka_unit_test(old_forms_in_old_contexts),
        cmocka_unit_test(requests_by_the_manual),
        cmocka_unit_test(limits_are_those_of_the_attributes),
        cmocka_unit_test(nulls_are_refused),
        cmocka_unit_test(no_context_is_refused),
        cmocka_unit_test(ordinary_arrays_have_no_special_properties),
        cmocka_unit_test(sparse_and_deferred_arrays_follow_their_attributes),
        cmocka_unit_test(memory_runs_out_and_is_freed),
        cmocka_unit_test(free_memory_shrinks_by_an_array),
        cmocka_unit_test(many_are_made_and_destroyed),
        cmocka_unit_test(levels_are_halved),
        cmocka_unit_test(levels_are_memory_of_their_own),
        cmocka_unit_test(dead_and_foreign_handles),
        cmocka_unit_test(a_context_takes_its_arrays_along),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
