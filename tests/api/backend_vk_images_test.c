/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of images in copies of the Vulkan backend: boxes of texels by offsets and pitches, and regions that are not boxes. The behaviour
 * of arrays is tested in tests/api/memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend_vk/vk.h"
#include "counted_objects.h"
#include "core/device/backend.h"

#include <stdlib.h>
#include <string.h>

#define LONG_ENOUGH UINT64_C(60000000000)
#define BYTES 65536
#define ok(call) assert_int_equal((call), CUDA_SUCCESS)

static const struct ct_backend *const vk = &ct_backend_vk;

struct fixture {
    struct ct_backend_device *device;
    struct ct_queue *queue;
    struct ct_memory *memory; /* mapped */
};

/* 32 x 16 texels of 4 bytes, 3 layers, 3 levels. */
static const struct ct_image_request layers = {.format = CU_AD_FORMAT_FLOAT,
                                               .channels = 1,
                                               .texel_bytes = 4,
                                               .block_side = 1,
                                               .shape = CT_IMAGE_2D,
                                               .width = 32,
                                               .height = 16,
                                               .depth = 1,
                                               .layers = 3,
                                               .levels = 3};

static int setup(void **state)
{
    static const struct ct_memory_request request = {.size_bytes = BYTES, .align = 256, .kind = CT_MEMORY_HOST};
    static struct fixture fixture;

    ok(vk->device_open(0, &fixture.device));
    ok(vk->queues->create(fixture.device, &(struct ct_queue_desc){0}, &fixture.queue));
    ok(vk->memory->create(fixture.device, &request, &fixture.memory));
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    vk->memory->destroy(f->memory);
    vk->queues->destroy(f->queue);
    vk->device_close(f->device);
    return 0;
}

static struct ct_texel_image *make(struct fixture *f, const struct ct_image_request *request)
{
    struct ct_texel_image *image;

    ok(vk->images->create(f->device, request, &image));
    return image;
}

static void await_all(struct fixture *f)
{
    ok(vk->queues->await(f->queue, vk->queues->point(f->queue), LONG_ENOUGH, false));
}

static void levels_tell_their_texels(void **state)
{
    struct ct_texel_image *image = make(*state, &layers);

    assert_true(image->size_bytes >= 32 * 16 * 4 * 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct ct_memory *level = vk->images->level(image, i);

        assert_non_null(level->texels);
        assert_null(level->host);
        assert_int_equal(level->texels->texel_bytes, 4);
        assert_int_equal(level->texels->row_bytes, 128u >> i);
        assert_int_equal(level->texels->slice_bytes, 2048u >> 2 * i);
        assert_int_equal(level->size_bytes, 3 * (2048u >> 2 * i));
    }
    vk->images->destroy(image);
}

/* A box is copied in and out with different pitches; its surroundings are unchanged. */
static void boxes_lie_where_their_offsets_say(void **state)
{
    struct fixture *f = *state;
    struct ct_texel_image *image = make(f, &layers);
    struct ct_memory *level = vk->images->level(image, 0);
    unsigned char *bytes = f->memory->host;
    const struct ct_copy_region clear = {.src_offset = 32768,
                                         .row_bytes = 128,
                                         .rows = 16,
                                         .dst_pitch = 128,
                                         .src_pitch = 128,
                                         .slices = 3,
                                         .dst_slice = 2048,
                                         .src_slice = 2048};
    const struct ct_copy_region in = {.dst_offset = 2048 + 3 * 128 + 20,
                                      .row_bytes = 40,
                                      .rows = 5,
                                      .dst_pitch = 128,
                                      .src_pitch = 48,
                                      .slices = 2,
                                      .dst_slice = 2048,
                                      .src_slice = 48 * 7};
    const struct ct_copy_region out = {.dst_offset = 8192,
                                       .row_bytes = 128,
                                       .rows = 16,
                                       .dst_pitch = 128,
                                       .src_pitch = 128,
                                       .slices = 3,
                                       .dst_slice = 2048,
                                       .src_slice = 2048};

    memset(bytes, 0xcc, BYTES);
    for (int i = 0; i < 1024; i++)
        bytes[i] = (unsigned char)(i % 199);
    ok(vk->queues->copy(f->queue, level, f->memory, &clear, 1));
    ok(vk->queues->copy(f->queue, level, f->memory, &in, 1));
    ok(vk->queues->copy(f->queue, f->memory, level, &out, 1));
    await_all(f);
    for (unsigned i = 0; i < 3 * 2048; i++) {
        unsigned z = i / 2048, y = i % 2048 / 128, x = i % 128, inside = z >= 1 && y >= 3 && y < 8 && x >= 20 && x < 60;

        assert_int_equal(bytes[8192 + i], inside ? ((z - 1) * 48 * 7 + (y - 3) * 48 + x - 20) % 199 : 0xcc);
    }
    vk->images->destroy(image);
}

static void what_is_no_box_is_refused(void **state)
{
    static const struct {
        const char *name;
        struct ct_copy_region region; /* to level 0 */
    } rows[] = {
        {"a part of a texel", {.row_bytes = 6, .rows = 1, .slices = 1}},
        {"from within a texel", {.dst_offset = 2, .row_bytes = 4, .rows = 1, .slices = 1}},
        {"over the end of a row", {.dst_offset = 124, .row_bytes = 8, .rows = 1, .slices = 1}},
        {"over the last row", {.dst_offset = 15 * 128, .row_bytes = 4, .rows = 2, .dst_pitch = 128, .src_pitch = 4, .slices = 1}},
        {"over the last layer", {.dst_offset = 2 * 2048, .row_bytes = 4, .rows = 1, .slices = 2, .dst_slice = 2048, .src_slice = 4}},
        {"beyond the image", {.dst_offset = 3 * 2048, .row_bytes = 4, .rows = 1, .slices = 1}},
        {"no bytes", {.rows = 1, .slices = 1}},
        {"no rows", {.row_bytes = 4, .slices = 1}},
        {"memory that is not aligned", {.src_offset = 2, .row_bytes = 4, .rows = 1, .slices = 1}},
        {"a pitch that is not aligned", {.row_bytes = 4, .rows = 2, .dst_pitch = 128, .src_pitch = 6, .slices = 1}},
        {"beyond the memory", {.src_offset = BYTES - 4, .row_bytes = 8, .rows = 1, .slices = 1}},
        {"distances that wrap around", {.row_bytes = 4, .rows = 3, .dst_pitch = 128, .src_pitch = UINT64_MAX - 3, .slices = 1}},
    };
    struct fixture *f = *state;
    struct ct_texel_image *image = make(f, &layers);
    uint64_t point = vk->queues->point(f->queue);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUresult r = vk->queues->copy(f->queue, vk->images->level(image, 0), f->memory, &rows[i].region, 1);

        if (r != CUDA_ERROR_INVALID_VALUE)
            print_error("%s: %d\n", rows[i].name, (int)r);
        assert_int_equal(r, CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(vk->queues->point(f->queue), point);
    vk->images->destroy(image);
}

static void images_that_do_not_suit_each_other(void **state)
{
    static const struct ct_copy_region one = {.row_bytes = 8, .rows = 1, .slices = 1};
    struct ct_image_request wide = layers, row = layers;
    struct ct_texel_image *image = make(*state, &layers), *other;
    struct fixture *f = *state;

    wide.channels = 2;
    wide.texel_bytes = 8;
    other = make(f, &wide);
    assert_int_equal(vk->queues->copy(f->queue, vk->images->level(image, 0), vk->images->level(other, 0), &one, 1),
                     CUDA_ERROR_INVALID_VALUE);
    vk->images->destroy(other);
    row.shape = CT_IMAGE_1D;
    row.height = 1;
    other = make(f, &row);
    assert_int_equal(vk->queues->copy(f->queue, vk->images->level(image, 0), vk->images->level(other, 0), &one, 1),
                     CUDA_ERROR_INVALID_VALUE);
    vk->images->destroy(other);
    vk->images->destroy(image);
}

static void images_that_there_are_not(void **state)
{
    struct fixture *f = *state;
    struct ct_image_request request = layers;
    struct ct_texel_image *image;

    request.channels = 3;
    assert_int_equal(vk->images->create(f->device, &request, &image), CUDA_ERROR_NOT_SUPPORTED);
    request = layers;
    request.layers = 1 << 20;
    assert_int_equal(vk->images->create(f->device, &request, &image), CUDA_ERROR_NOT_SUPPORTED);
    vk->images->destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_tell_their_texels),  cmocka_unit_test(boxes_lie_where_their_offsets_say),
        cmocka_unit_test(what_is_no_box_is_refused), cmocka_unit_test(images_that_do_not_suit_each_other),
        cmocka_unit_test(images_that_there_are_not),
    };
    const struct ct_device_info *infos;
    unsigned count;
    int failed;

    if (vk->enumerate(&infos, &count) != CUDA_SUCCESS || !count)
        return 77;
    counted_objects_begin();
    failed = cmocka_run_group_tests(tests, setup, teardown);
    /* Not in the teardown: cmocka's result does not include a group's teardown. */
    return failed || counted_objects_leaked() || ct_vk_validation_messages();
}
