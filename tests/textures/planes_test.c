/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays for video: several planes (NV12 and others), whose descriptors, planes, copies and textures of planes are tested, and what the whole array
 * refuses; and words of four bytes (YUY2 and others). The same holds on NVIDIA's driver (asked on an H200). */
#include "texture_kernels.h"

#include <stdbool.h>

#define WIDTH 64u
#define HEIGHT 32u
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define VIDEO CUDA_ARRAY3D_VIDEO_ENCODE_DECODE

static const struct row {
    CUarray_format format, plane;
    unsigned planes, channels, x, y; /* those after the first one have so many channels, and are smaller by x and y */
} rows[] = {
    {CU_AD_FORMAT_NV12, CU_AD_FORMAT_UNSIGNED_INT8, 2, 2, 2, 2},
    {CU_AD_FORMAT_P010, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2, 2, 2},
    {CU_AD_FORMAT_P016, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2, 2, 2},
    {CU_AD_FORMAT_NV16, CU_AD_FORMAT_UNSIGNED_INT8, 2, 2, 2, 1},
    {CU_AD_FORMAT_P210, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2, 2, 1},
    {CU_AD_FORMAT_P216, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2, 2, 1},
    {CU_AD_FORMAT_Y444_PLANAR8, CU_AD_FORMAT_UNSIGNED_INT8, 3, 1, 1, 1},
    {CU_AD_FORMAT_Y444_PLANAR10, CU_AD_FORMAT_UNSIGNED_INT16, 3, 1, 1, 1},
    {CU_AD_FORMAT_YUV444_8bit_SemiPlanar, CU_AD_FORMAT_UNSIGNED_INT8, 2, 2, 1, 1},
    {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2, 1, 1},
};

static CUarray make_array(CUarray_format format)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {WIDTH, HEIGHT, 0, format, 3, VIDEO};
    CUarray array;

    ok(cuArray3DCreate(&array, &desc));
    return array;
}

static void check_contents(CUarray plane, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned number)
{
    const bool is_wide = desc->Format == CU_AD_FORMAT_UNSIGNED_INT16;
    const CUDA_RESOURCE_DESC resource = of_array(plane);
    const struct place place = {.x = 3.5f, .y = 0.5f};
    unsigned char row[4 * WIDTH];
    CUtexObject object;
    CUsurfObject surface;
    float texel[4];

    for (unsigned i = 0; i < sizeof row; i++)
        row[i] = (unsigned char)(7 * i + number);
    ok(copy_to_row(plane, row, desc->Width * desc->NumChannels * (is_wide ? 2 : 1)));
    ok(cuTexObjectCreate(&object, &resource, &point, NULL));
    fetch("fetch_2d", object, &place, 1, (uint32_t *)texel);
    for (unsigned c = 0; c < desc->NumChannels; c++) {
        const unsigned at = (3 * desc->NumChannels + c) * (is_wide ? 2 : 1);

        assert_true(texel[c] == (is_wide ? (float)(row[at] | row[at + 1] << 8) / 65535.0f : (float)row[at] / 255.0f));
    }
    ok(cuTexObjectDestroy(object));
    ok(cuSurfObjectCreate(&surface, &resource));
    ok(cuSurfObjectDestroy(surface));
}

static void planes_are_arrays(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        CUarray array = make_array(row->format), plane, again;

        for (unsigned number = 0; number < row->planes; number++) {
            CUDA_ARRAY3D_DESCRIPTOR desc;

            ok(cuArrayGetPlane(&plane, array, number));
            ok(cuArrayGetPlane(&again, array, number));
            if (on_cuttle())
                assert_ptr_equal(plane, again);
            ok(cuArray3DGetDescriptor(&desc, plane));
            assert_int_equal(desc.Width, WIDTH / (number ? row->x : 1));
            assert_int_equal(desc.Height, HEIGHT / (number ? row->y : 1));
            assert_int_equal(desc.Depth, 0);
            assert_int_equal(desc.Format, row->plane);
            assert_int_equal(desc.NumChannels, number ? row->channels : 1);
            assert_int_equal(desc.Flags, VIDEO);
            check_contents(plane, &desc, number);
            ok(cuArrayDestroy(plane)); /* without effect */
            if (on_cuttle())
                ok(cuArray3DGetDescriptor(&desc, plane));
        }
        gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, row->planes));
        ok(cuArrayGetPlane(&plane, array, 0));
        ok(cuArrayDestroy(array));
        if (on_cuttle()) /* NVIDIA's driver dereferences handles */
            gives(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(plane));
    }
}

static void the_whole_array_is_refused(void **state)
{
    CUarray array = make_array(CU_AD_FORMAT_NV12);
    const CUDA_RESOURCE_DESC resource = of_array(array);
    static const unsigned char zeros[WIDTH];
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUtexObject object;

    (void)state;
    ok(cuArray3DGetDescriptor(&desc, array));
    assert_int_equal(desc.Format, CU_AD_FORMAT_NV12);
    assert_int_equal(desc.NumChannels, 3);
    gives(CUDA_ERROR_INVALID_VALUE, copy_to_row(array, zeros, WIDTH));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&object, &resource, &point, NULL));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(NULL, array, 0));
    ok(cuArrayDestroy(array));
}

static void descriptors_are_checked(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR bad[] = {
        {WIDTH, HEIGHT, 0, CU_AD_FORMAT_NV12, 3, 0},     {WIDTH, HEIGHT, 0, CU_AD_FORMAT_NV12, 1, VIDEO},
        {WIDTH, HEIGHT, 0, CU_AD_FORMAT_NV12, 4, VIDEO}, {WIDTH, HEIGHT, 0, CU_AD_FORMAT_P010, 2, VIDEO},
        {WIDTH, 0, 0, CU_AD_FORMAT_NV12, 3, 0},          {WIDTH - 1, HEIGHT, 0, CU_AD_FORMAT_NV12, 3, 0},
    };
    CUarray array;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        gives(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &bad[i]));
    ok(cuArray3DCreate(&array, &(CUDA_ARRAY3D_DESCRIPTOR){WIDTH, HEIGHT, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}));
    gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&(CUarray){NULL}, array, 0));
    ok(cuArrayDestroy(array));
}

/* Words of four bytes, whatever they contain. */
static void words_are_for_surfaces(void **state)
{
    static const struct {
        CUarray_format format;
        unsigned channels;
    } words[] = {{CU_AD_FORMAT_YUY2, 4}, {CU_AD_FORMAT_Y210, 2}, {CU_AD_FORMAT_Y216, 2}, {CU_AD_FORMAT_AYUV, 4}, {CU_AD_FORMAT_Y410, 1}};
    static const unsigned char row[4 * WIDTH + 4];

    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        CUDA_ARRAY3D_DESCRIPTOR desc = {WIDTH, HEIGHT, 0, words[i].format, words[i].channels, VIDEO}, found;
        CUDA_RESOURCE_DESC resource;
        CUsurfObject surface;
        CUtexObject object;
        CUarray array;

        for (unsigned flags = 0; flags <= CUDA_ARRAY3D_SURFACE_LDST; flags += CUDA_ARRAY3D_SURFACE_LDST) {
            desc.Flags = VIDEO | flags;
            ok(cuArray3DCreate(&array, &desc));
            resource = of_array(array);
            ok(cuArray3DGetDescriptor(&found, array));
            assert_int_equal(found.Width, WIDTH);
            assert_int_equal(found.Height, HEIGHT);
            assert_int_equal(found.Depth, 0);
            assert_int_equal(found.Format, desc.Format);
            assert_int_equal(found.NumChannels, desc.NumChannels);
            assert_int_equal(found.Flags, desc.Flags);
            ok(copy_to_row(array, row, 4 * WIDTH));
            gives(CUDA_ERROR_INVALID_VALUE, copy_to_row(array, row, 4 * WIDTH + 4));
            gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&object, &resource, &point, NULL));
            ok(cuSurfObjectCreate(&surface, &resource));
            ok(cuSurfObjectDestroy(surface));
            ok(cuArrayDestroy(array));
        }
        desc.Flags = CUDA_ARRAY3D_SURFACE_LDST;
        gives(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &desc));
        desc.Flags = VIDEO;
        desc.NumChannels = words[i].channels % 4 + 1; /* another one */
        gives(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &desc));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_are_arrays),
        cmocka_unit_test(the_whole_array_is_refused),
        cmocka_unit_test(descriptors_are_checked),
        cmocka_unit_test(words_are_for_surfaces),
    };

    return cmocka_run_group_tests_name("planes", tests, textures_set_up, textures_tear_down);
}
