/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects (Driver API: Texture Object Management, Surface Object Management): descriptors and their errors, many objects,
 * threads, contexts. */
#include "texture_kernels.h"

#include <pthread.h>
#include <stdbool.h>

static CUarray array, surface_array;
static CUmipmappedArray mipmap;
static CUdeviceptr memory;
#define MEMORY_BYTES 65536u

static CUDA_RESOURCE_DESC of_linear(void)
{
    CUDA_RESOURCE_DESC desc = {.resType = CU_RESOURCE_TYPE_LINEAR};

    desc.res.linear.devPtr = memory;
    desc.res.linear.format = CU_AD_FORMAT_FLOAT;
    desc.res.linear.numChannels = 1;
    desc.res.linear.sizeInBytes = 4096;
    return desc;
}

static CUDA_RESOURCE_DESC of_pitched(void)
{
    CUDA_RESOURCE_DESC desc = {.resType = CU_RESOURCE_TYPE_PITCH2D};

    desc.res.pitch2D.devPtr = memory;
    desc.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
    desc.res.pitch2D.numChannels = 4;
    desc.res.pitch2D.width = 32;
    desc.res.pitch2D.height = 16;
    desc.res.pitch2D.pitchInBytes = 256;
    return desc;
}

static CUDA_RESOURCE_DESC of_mipmap(void)
{
    CUDA_RESOURCE_DESC desc = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};

    desc.res.mipmap.hMipmappedArray = mipmap;
    return desc;
}

static const CUDA_TEXTURE_DESC plain = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                                        .filterMode = CU_TR_FILTER_MODE_POINT};
static const CUDA_RESOURCE_VIEW_DESC whole = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, .width = 16, .height = 8};

static void create_and_destroy(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
    CUtexObject object = 0;

    ok(cuTexObjectCreate(&object, resource, texture, view));
    assert_int_not_equal(object, 0);
    ok(cuTexObjectDestroy(object));
}

static void all_resources_work(void **state)
{
    const CUDA_RESOURCE_DESC resources[] = {of_array(array), of_linear(), of_pitched(), of_mipmap()};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        create_and_destroy(&resources[i], &plain, NULL);
    create_and_destroy(&resources[0], &plain, &whole);
}

static void descriptors_are_read_back(void **state)
{
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUDA_TEXTURE_DESC texture = plain, got_texture;
    CUDA_RESOURCE_VIEW_DESC got_view;
    CUDA_RESOURCE_DESC got;
    CUtexObject object;

    (void)state;
    texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
    texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
    texture.addressMode[1] = CU_TR_ADDRESS_MODE_MIRROR;
    texture.maxAnisotropy = 4;
    texture.borderColor[2] = 0.5f;
    ok(cuTexObjectCreate(&object, &resource, &texture, &whole));
    ok(cuTexObjectGetResourceDesc(&got, object));
    assert_int_equal(got.resType, CU_RESOURCE_TYPE_ARRAY);
    assert_ptr_equal(got.res.array.hArray, array);
    ok(cuTexObjectGetTextureDesc(&got_texture, object));
    assert_int_equal(got_texture.filterMode, CU_TR_FILTER_MODE_LINEAR);
    assert_int_equal(got_texture.flags & CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_NORMALIZED_COORDINATES);
    assert_int_equal(got_texture.addressMode[1], CU_TR_ADDRESS_MODE_MIRROR);
    if (on_cuttle()) /* NVIDIA's driver leaves this member as it was */
        assert_true(got_texture.borderColor[2] == 0.5f);
    ok(cuTexObjectGetResourceViewDesc(&got_view, object));
    assert_int_equal(got_view.format, whole.format);
    assert_int_equal(got_view.width, 16);
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(NULL, object));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetTextureDesc(NULL, object));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceViewDesc(NULL, object));
    ok(cuTexObjectDestroy(object));
    ok(cuTexObjectCreate(&object, &resource, &plain, NULL));
    if (on_cuttle()) {
        ok(cuTexObjectGetResourceViewDesc(&got_view, object));
        assert_int_equal(got_view.format, CU_RES_VIEW_FORMAT_NONE);
    }
    ok(cuTexObjectDestroy(object));
}

/* ---- errors ---- */

static void expect_error(CUresult code, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                         const CUDA_RESOURCE_VIEW_DESC *view)
{
    CUtexObject object = 99;

    gives(code, cuTexObjectCreate(&object, resource, texture, view));
}

static void null_pointers_are_refused(void **state)
{
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUsurfObject surface;

    (void)state;
    if (!on_cuttle()) /* NVIDIA's driver dereferences them */
        skip();
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(NULL, &resource, &plain, NULL));
    expect_error(CUDA_ERROR_INVALID_VALUE, NULL, &plain, NULL);
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, NULL, NULL);
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(NULL, &resource));
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, NULL));
}

static void invalid_resources_are_refused(void **state)
{
    CUDA_RESOURCE_DESC resource = of_linear();

    (void)state;
    resource.res.linear.devPtr += 4; /* not aligned */
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    resource = of_linear();
    resource.res.linear.numChannels = 3;
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    resource = of_linear();
    resource.res.linear.format = (CUarray_format)0x7777;
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    resource = of_linear();
    resource.flags = 1;
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    resource = of_linear();
    resource.resType = (CUresourcetype)17;
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    resource = of_pitched();
    resource.res.pitch2D.pitchInBytes = 100; /* less than a row */
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    resource = of_pitched();
    resource.res.pitch2D.pitchInBytes = 257;
    expect_error(CUDA_ERROR_INVALID_VALUE, &resource, &plain, NULL);
    if (!on_cuttle()) /* NVIDIA's driver dereferences handles */
        return;
    resource = of_array(MADE_UP(CUarray));
    expect_error(CUDA_ERROR_INVALID_HANDLE, &resource, &plain, NULL);
    resource = of_array(NULL);
    expect_error(CUDA_ERROR_INVALID_HANDLE, &resource, &plain, NULL);
}

static void invalid_samplers_are_refused(void **state)
{
    const CUDA_RESOURCE_DESC real = of_array(array), bytes = of_pitched();
    CUDA_TEXTURE_DESC texture = plain;

    (void)state;
    texture.addressMode[0] = (CUaddress_mode)4;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &texture, NULL);
    texture = plain;
    texture.filterMode = (CUfilter_mode)2;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &texture, NULL);
    texture = plain;
    texture.flags = 0x100;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &texture, NULL);
    texture.flags = CU_TRSF_SEAMLESS_CUBEMAP; /* of a plane */
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &texture, NULL);
    texture.flags = CU_TRSF_READ_AS_INTEGER; /* what has no effect is accepted */
    texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
    create_and_destroy(&bytes, &texture, NULL);
    texture = plain;
    texture.addressMode[2] = (CUaddress_mode)4;
    create_and_destroy(&real, &texture, NULL);
    texture = plain;
    texture.flags = CU_TRSF_SRGB;
    create_and_destroy(&real, &texture, NULL);
}

static void invalid_views_are_refused(void **state)
{
    const CUDA_RESOURCE_DESC real = of_array(array), linear = of_linear();
    CUDA_RESOURCE_VIEW_DESC view = whole;

    (void)state;
    create_and_destroy(&linear, &plain, &view); /* it has no effect */
    view.width = 15;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &plain, &view);
    view = whole;
    view.format = CU_RES_VIEW_FORMAT_FLOAT_2X32;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &plain, &view);
    view = whole;
    view.depth = 1;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &plain, &view);
    view = whole;
    view.format = CU_RES_VIEW_FORMAT_NONE;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &plain, &view);
    view = whole;
    view.lastMipmapLevel = 3;
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &plain, &view);
    view = whole;
    view.format = CU_RES_VIEW_FORMAT_UINT_4X8; /* of the same size */
    create_and_destroy(&real, &plain, &view);
    view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1; /* of another size */
    expect_error(CUDA_ERROR_INVALID_VALUE, &real, &plain, &view);
}

static void invalid_handles_are_refused(void **state)
{
    const CUDA_RESOURCE_DESC resource = of_array(surface_array);
    CUDA_RESOURCE_DESC desc;
    CUsurfObject surface;
    CUtexObject texture;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuTexObjectCreate(&texture, &resource, &plain, NULL));
    ok(cuSurfObjectCreate(&surface, &resource));
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(texture));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(surface));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&desc, surface));
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&desc, texture));
    ok(cuTexObjectDestroy(texture));
    ok(cuSurfObjectDestroy(surface));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(texture));
    ok(cuTexObjectDestroy(0));
    ok(cuSurfObjectDestroy(0));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&desc, ~0ull));
}

/* ---- surfaces ---- */

static void surfaces_need_an_array(void **state)
{
    CUDA_RESOURCE_DESC resource = of_array(surface_array), got;
    CUsurfObject surface;

    (void)state;
    ok(cuSurfObjectCreate(&surface, &resource));
    ok(cuSurfObjectGetResourceDesc(&got, surface));
    assert_ptr_equal(got.res.array.hArray, surface_array);
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(NULL, surface));
    ok(cuSurfObjectDestroy(surface));
    resource = of_linear();
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, &resource));
    resource = of_array(array); /* which was not created for surfaces */
    ok(cuSurfObjectCreate(&surface, &resource));
    ok(cuSurfObjectDestroy(surface));
}

/* ---- many ---- */

/* More than a chunk of records; handles differ, and each leads to its own texel, also after others were destroyed and created again. */
static void many_objects_live(void **state)
{
    enum { MANY = 600 };
    static CUtexObject objects[MANY];
    float texels[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        texels[i] = (float)i;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            CUDA_RESOURCE_DESC resource = of_linear();

            if (round && i % 3 != round)
                continue;
            if (round)
                ok(cuTexObjectDestroy(objects[i]));
            resource.res.linear.devPtr = memory + 512u * (unsigned)(i % 100);
            resource.res.linear.sizeInBytes = 4;
            ok(cuTexObjectCreate(&objects[i], &resource, &plain, NULL));
        }
    }
    for (int i = 0; i < 100; i++)
        ok(cuMemcpyHtoD(memory + 512u * (unsigned)i, &texels[i], sizeof *texels));
    for (int i = 0; i < MANY; i += 7) {
        uint32_t result[4];

        for (int k = 0; k < i; k++)
            assert_true(objects[k] != objects[i]);
        fetch("texel_1d", objects[i], &(struct place){0}, 1, result);
        assert_memory_equal(result, &texels[i % 100], sizeof *texels);
    }
    for (int i = 0; i < MANY; i++)
        ok(cuTexObjectDestroy(objects[i]));
}

static void *create_many(void *context)
{
    const CUDA_RESOURCE_DESC resource = of_linear();
    CUtexObject objects[40];
    uintptr_t failures = cuCtxSetCurrent(context) != CUDA_SUCCESS;

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 40; i++)
            failures += cuTexObjectCreate(&objects[i], &resource, &plain, NULL) != CUDA_SUCCESS;
        for (int i = 0; i < 40; i++)
            failures += cuTexObjectDestroy(objects[i]) != CUDA_SUCCESS;
    }
    return (void *)failures;
}

static void threads_create_objects(void **state)
{
    pthread_t threads[4];
    CUcontext context;

    (void)state;
    if (!on_cuttle()) /* this takes NVIDIA's driver over a minute */
        skip();
    ok(cuCtxGetCurrent(&context));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_many, context), 0);
    for (int i = 0; i < 4; i++) {
        void *failures;

        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_null(failures);
    }
}

/* An object belongs to the context in which it was created, and ends with it. */
static void contexts_have_objects_of_their_own(void **state)
{
    const CUDA_RESOURCE_DESC resource = of_linear();
    CUDA_RESOURCE_DESC desc;
    CUcontext context, before;
    CUtexObject object;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuTexObjectCreate(&object, &resource, &plain, NULL));
    ok(cuCtxGetCurrent(&before));
    ok(create_context(&context, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(object));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(before));
    ok(cuTexObjectGetResourceDesc(&desc, object));
    ok(cuTexObjectDestroy(object));
}

static int set_up(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR plane = {.Width = 16, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR writable = plane;

    if (textures_set_up(state))
        return -1;
    writable.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    return cuArray3DCreate(&array, &plane) == CUDA_SUCCESS && cuArray3DCreate(&surface_array, &writable) == CUDA_SUCCESS &&
                   cuMipmappedArrayCreate(&mipmap, &plane, 4) == CUDA_SUCCESS && cuMemAlloc(&memory, MEMORY_BYTES) == CUDA_SUCCESS
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    return cuArrayDestroy(array) == CUDA_SUCCESS && cuArrayDestroy(surface_array) == CUDA_SUCCESS &&
                   cuMipmappedArrayDestroy(mipmap) == CUDA_SUCCESS && cuMemFree(memory) == CUDA_SUCCESS
               ? textures_tear_down(state)
               : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_resources_work),
        cmocka_unit_test(descriptors_are_read_back),
        cmocka_unit_test(null_pointers_are_refused),
        cmocka_unit_test(invalid_resources_are_refused),
        cmocka_unit_test(invalid_samplers_are_refused),
        cmocka_unit_test(invalid_views_are_refused),
        cmocka_unit_test(invalid_handles_are_refused),
        cmocka_unit_test(surfaces_need_an_array),
        cmocka_unit_test(many_objects_live),
        cmocka_unit_test(threads_create_objects),
        cmocka_unit_test(contexts_have_objects_of_their_own),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
