/* SPDX-License-Identifier: Apache-2.0 */
/* build: fetches from textures that may be images. The handle says whether the object is one, which geometry and channels it has, and what becomes of
 * the operands; an object that does not fit the instruction is read by generated code. */
#include "build_image.h"

#include <string.h>

#define LARGEST_PLACE 0x4b800000u        /* 2^24: larger floats are even numbers, at which a folded texture begins */
#define LARGEST_NARROW_PLACE 0x41800000u /* 16 */
#define LARGEST_LEVEL 0x42800000u        /* 64 */
#define LARGEST_LAYER 0xffffu            /* more than any device has */
#define INFINITE_PLACE 0x7f800000u
#define HALF 0x3f000000u
#define FACES 6

/* An image's operands; all are floats. z is the layer where there are layers. */
struct place {
    ct_value x, y, z, level;
};

static const struct geometry {
    const char *word;
    enum ptx2spv_image_geometry geometry;
    enum ptx2spv_image_shape shape;
    uint8_t axes; /* coordinates that are in texels or normalized; 0: a direction */
} geometries[] = {
    {"1d", PTX2SPV_IMAGE_1D, PTX2SPV_IMAGE_PLANE, 1},        {"2d", PTX2SPV_IMAGE_2D, PTX2SPV_IMAGE_PLANE, 2},
    {"3d", PTX2SPV_IMAGE_3D, PTX2SPV_IMAGE_VOLUME, 3},       {"a1d", PTX2SPV_IMAGE_A1D, PTX2SPV_IMAGE_LAYERS, 1},
    {"a2d", PTX2SPV_IMAGE_A2D, PTX2SPV_IMAGE_LAYERS, 2},     {"cube", PTX2SPV_IMAGE_CUBE, PTX2SPV_IMAGE_LAYERS, 0},
    {"acube", PTX2SPV_IMAGE_ACUBE, PTX2SPV_IMAGE_LAYERS, 0},
};

static const struct geometry *geometry_of(const struct ct_texture_access *access)
{
    const struct geometry *geometry = geometries;

    while (strcmp(geometry->word, access->geometry->word) != 0)
        geometry++;
    return geometry;
}

/* ---- what the handle says ---- */

static enum ptx2spv_image_channels image_channels(enum ptx_type type)
{
    return type == PTX_S32 ? PTX2SPV_IMAGE_SIGNED : type == PTX_U32 ? PTX2SPV_IMAGE_UNSIGNED : PTX2SPV_IMAGE_FLOAT;
}

/* The type of an instruction that accesses the image. */
static enum ptx_type channel_type(const struct ct_texture_access *access)
{
    return access->type == PTX_S32 || access->type == PTX_U32 ? access->type : PTX_F32;
}

static ct_value bits_of(struct ct_build *b, ct_value generation, unsigned shift, unsigned n)
{
    return ct_and_imm(&b->at, ct_shr_imm(&b->at, generation, shift), (1u << n) - 1);
}

static ct_value use_of(struct ct_build *b, ct_value generation)
{
    return bits_of(b, generation, PTX2SPV_IMAGE_USE_SHIFT, 3);
}

static ct_value has_levels(struct ct_build *b, ct_value generation)
{
    return ct_icmp_imm(&b->at, PTX_U32, PTX_LT, ct_add_imm(&b->at, use_of(b, generation), (uint64_t)-PTX2SPV_IMAGE_POINT_LEVELS), 2);
}

/* Goes on if the object is an image that fits the instruction. Derivatives choose among levels by CUDA's formula only in generated code. */
static void check_handle(struct ct_build *b, const struct ct_texture_access *access, ct_value generation, struct ct_block *code)
{
    const uint32_t mask = 1u << PTX2SPV_IMAGE_SHIFT | 3u << PTX2SPV_IMAGE_CHANNELS_SHIFT | 7u << PTX2SPV_IMAGE_GEOMETRY_SHIFT;
    const uint32_t wanted = 1u << PTX2SPV_IMAGE_SHIFT | (uint32_t)image_channels(access->type) << PTX2SPV_IMAGE_CHANNELS_SHIFT |
                            (uint32_t)geometry_of(access)->geometry << PTX2SPV_IMAGE_GEOMETRY_SHIFT;
    struct ct_block *image = ct_build_block(b);
    ct_value fits = ct_equals(&b->at, ct_and_imm(&b->at, generation, mask), wanted);

    if (access->kind == CT_TEXTURE_GRAD)
        fits = ct_and(&b->at, fits, ct_bits1(&b->at, CT_OP_NOT, has_levels(b, generation)));
    ct_build_branch(b, fits, image, code);
    ct_build_enter(b, image);
}

/* ---- operands ---- */

/* A coordinate that every driver takes: 0 for one that is not a number, and none that is larger than the bound. As integers, positive floats are
 * in order, and negative ones in reverse order above them all if they have no sign. */
static ct_value bounded(struct ct_build *b, ct_value place, ct_value bound)
{
    struct ct_cursor *at = &b->at;
    const ct_value below = ct_op2(at, CT_OP_MIN, PTX_S32, place, bound);
    const ct_value within = ct_op2(at, CT_OP_MIN, PTX_U32, below, ct_or_imm(at, bound, 0x80000000));
    const ct_value is_number = ct_icmp_imm(at, PTX_U32, PTX_LE, ct_and_imm(at, place, 0x7fffffff), INFINITE_PLACE);

    return ct_select(at, is_number, within, ct_const32(at, 0));
}

static void get_size(struct ct_build *b, const struct ct_image_fetch *fetch, ct_value number, ct_value *out)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_IMAGESIZE, channel_type(fetch->access), 3, 1);

    insn->imm = geometry_of(fetch->access)->shape;
    insn->operands[0] = number;
    for (unsigned i = 0; i < 3; i++)
        out[i] = insn->results[i] = ct_value_create(b->fn, CT_W_32);
}

/* The coordinates as the instruction has them. A line is the row y = 0 of a plane, or the middle of each layer's only row. */
static void get_coordinates(struct ct_build *b, const struct ct_image_fetch *fetch, ct_value generation, struct place *out)
{
    const struct geometry *geometry = geometry_of(fetch->access);
    const ct_value *coordinates = fetch->arguments + 1 + fetch->access->geometry->layered;
    const ct_value is_narrow = bits_of(b, generation, PTX2SPV_IMAGE_NARROW_SHIFT, 1);
    const ct_value bound =
        ct_select(&b->at, ct_equals(&b->at, is_narrow, 0), ct_const32(&b->at, LARGEST_PLACE), ct_const32(&b->at, LARGEST_NARROW_PLACE));
    ct_value *const places[] = {&out->x, &out->y, &out->z};

    out->y = ct_const32(&b->at, geometry->shape == PTX2SPV_IMAGE_LAYERS ? HALF : 0);
    out->z = ct_const32(&b->at, 0);
    for (unsigned i = 0; i < geometry->axes; i++)
        *places[i] = b->fn->target->images_take_any_place ? coordinates[i] : bounded(b, coordinates[i], bound);
    if (geometry->shape == PTX2SPV_IMAGE_LAYERS)
        out->z = ct_converted(&b->at, CT_OP_ITOF, PTX_S32, PTX_F32,
                              ct_op2(&b->at, CT_OP_MIN, PTX_U32, fetch->arguments[1], ct_const32(&b->at, LARGEST_LAYER)));
}

/* The layer and the place of a direction. */
static void find_face(struct ct_build *b, const struct ct_image_fetch *fetch, ct_value number, struct place *out)
{
    struct ct_cursor *at = &b->at;
    const bool is_layered = fetch->access->geometry->layered;
    ct_value found[4], size[3], layer;

    ct_build_function_call(b, fetch->function, fetch->arguments + 1 + is_layered, 3, PTX_B32, found, 4);
    layer = found[0];
    if (is_layered) {
        get_size(b, fetch, number, size);
        const ct_value last = ct_add_imm(at, ct_op2(at, CT_OP_UDIV, PTX_U32, size[2], ct_const32(at, FACES)), (uint64_t)-1);
        const ct_value cube = ct_op2(at, CT_OP_MIN, PTX_U32, fetch->arguments[1], last);

        layer = ct_add(at, layer, ct_op2(at, CT_OP_MUL, PTX_U32, cube, ct_const32(at, FACES)));
    }
    out->z = ct_converted(&b->at, CT_OP_ITOF, PTX_S32, PTX_F32, layer);
    out->x = bounded(b, found[1], ct_const32(at, LARGEST_NARROW_PLACE));
    out->y = bounded(b, found[2], ct_const32(at, LARGEST_NARROW_PLACE));
}

/* Coordinates in texels become normalized ones: without a filter, that of the texel's middle, so that rounding does not lead to another one. */
static void normalize(struct ct_build *b, const struct ct_image_fetch *fetch, ct_value number, ct_value generation, struct place *place)
{
    const ct_value use = use_of(b, generation), half = ct_const32(&b->at, HALF);
    const ct_value is_point = ct_equals(&b->at, use, PTX2SPV_IMAGE_POINT_TEXELS);
    const ct_value has_texels = ct_icmp_imm(&b->at, PTX_U32, PTX_GE, use, PTX2SPV_IMAGE_POINT_TEXELS);
    struct ct_block *in_texels = ct_build_block(b), *after = ct_build_block(b);
    ct_value *const places[] = {&place->x, &place->y, &place->z}, scale[4];
    const unsigned n = geometry_of(fetch->access)->axes;

    for (unsigned i = 0; i < n; i++) {
        const ct_value variable = ct_value_create(b->fn, CT_W_32);

        ct_assign(&b->at, variable, *places[i]);
        *places[i] = variable;
    }
    ct_build_branch(b, has_texels, in_texels, after);
    ct_build_enter(b, in_texels);
    ct_build_function_call(b, fetch->function, &number, 1, PTX_B32, scale, 4);
    for (unsigned i = 0; i < n; i++) {
        const ct_value whole = ct_op1(&b->at, CT_OP_FFLOOR, PTX_F32, *places[i]);
        const ct_value at = ct_select(&b->at, is_point, ct_op2(&b->at, CT_OP_FADD, PTX_F32, whole, half), *places[i]);

        ct_assign(&b->at, *places[i], ct_op2(&b->at, CT_OP_FMUL, PTX_F32, at, scale[i]));
    }
    ct_build_jump(b, after);
    ct_build_enter(b, after);
}

/* The level; drivers disagree on which of two is the nearest in the middle, where it is the upper one. */
static ct_value get_level(struct ct_build *b, const struct ct_image_fetch *fetch, ct_value generation)
{
    struct ct_cursor *at = &b->at;
    const struct ct_texture_access *access = fetch->access;
    const ct_value zero = ct_const32(at, 0);

    if (access->kind != CT_TEXTURE_LEVEL)
        return zero;
    const unsigned index = 1u + access->geometry->layered + access->geometry->coordinates + access->geometry->offsets;
    const ct_value level = bounded(b, fetch->arguments[index], ct_const32(at, LARGEST_LEVEL));
    const ct_value nearest = ct_op1(at, CT_OP_FFLOOR, PTX_F32, ct_op2(at, CT_OP_FADD, PTX_F32, level, ct_const32(at, HALF)));
    const ct_value is_point = ct_equals(at, use_of(b, generation), PTX2SPV_IMAGE_POINT_LEVELS);

    return ct_select(at, has_levels(b, generation), ct_select(at, is_point, nearest, level), zero);
}

/* ---- the fetch ---- */

static void sample(struct ct_build *b, const struct ct_image_fetch *fetch, ct_value number, const struct place *place)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_SAMPLE, channel_type(fetch->access), 4, 5);

    insn->imm = geometry_of(fetch->access)->shape;
    insn->operands[0] = number;
    insn->operands[1] = place->x;
    insn->operands[2] = place->y;
    insn->operands[3] = place->z;
    insn->operands[4] = place->level;
    for (unsigned i = 0; i < 4; i++)
        insn->results[i] = fetch->channels[i];
}

void ct_build_image_fetch(struct ct_build *b, const struct ct_image_fetch *fetch, struct ct_block *code)
{
    const ct_value generation = ct_low32(&b->at, ct_shr_imm(&b->at, fetch->arguments[0], 32));
    const struct geometry *geometry = geometry_of(fetch->access);
    struct place place;
    ct_value number;

    check_handle(b, fetch->access, generation, code);
    number = bits_of(b, generation, PTX2SPV_IMAGE_DESCRIPTOR_SHIFT, 12);
    if (geometry->axes)
        get_coordinates(b, fetch, generation, &place);
    else
        find_face(b, fetch, number, &place);
    if (geometry->axes && geometry->shape != PTX2SPV_IMAGE_PLANE)
        normalize(b, fetch, number, generation, &place);
    place.level = get_level(b, fetch, generation);
    sample(b, fetch, number, &place);
}
