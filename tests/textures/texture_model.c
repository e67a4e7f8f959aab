/* SPDX-License-Identifier: Apache-2.0 */
#include "texture_model.h"

#include <math.h>
#include <string.h>

#define BEYOND ((CUaddress_mode)99) /* of seamless cubes: indices beyond an edge remain */
#define NEAR 2e-3                   /* texels: nearer than this to a border, the rounding of a normalized coordinate decides */

/* ---- texels ---- */

static unsigned channel_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNORM_INT_101010_2: /* a channel on its own */
        return 2;
    default:
        return 4;
    }
}

unsigned model_texel_bytes(const struct model *model)
{
    return model->format == CU_AD_FORMAT_UNORM_INT_101010_2 ? 4 : channel_bytes(model->format) * model->channels;
}

bool model_reads_floats(const struct model *model)
{
    return model->format == CU_AD_FORMAT_FLOAT || model->format == CU_AD_FORMAT_HALF ||
           (!model->as_integer && channel_bytes(model->format) <= 2);
}

static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double magnitude = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

    return bits & 0x8000 ? -magnitude : magnitude;
}

static double integer_value(const struct model *model, const unsigned char *at)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;

    memcpy(&u8, at, sizeof u8);
    if (model->format == CU_AD_FORMAT_UNSIGNED_INT8)
        return u8;
    if (model->format == CU_AD_FORMAT_SIGNED_INT8)
        return (int8_t)u8;
    memcpy(&u16, at, sizeof u16);
    if (model->format == CU_AD_FORMAT_UNSIGNED_INT16)
        return u16;
    if (model->format == CU_AD_FORMAT_SIGNED_INT16)
        return (int16_t)u16;
    memcpy(&u32, at, sizeof u32);
    return model->format == CU_AD_FORMAT_SIGNED_INT32 ? (double)(int32_t)u32 : (double)u32;
}

static double largest(CUarray_format format)
{
    return format == CU_AD_FORMAT_UNSIGNED_INT8    ? 255
           : format == CU_AD_FORMAT_SIGNED_INT8    ? 127
           : format == CU_AD_FORMAT_UNSIGNED_INT16 ? 65535
                                                   : 32767;
}

/* Three channels of 10 bits from the lowest one on, and one of 2. */
static double packed_value(const unsigned char *texel, unsigned channel)
{
    uint32_t word;

    memcpy(&word, texel, sizeof word);
    return channel == 3 ? (word >> 30) / 3.0 : (word >> (10 * channel) & 1023) / 1023.0;
}

static double channel_value(const struct model *model, const unsigned char *texel, unsigned channel)
{
    const unsigned char *at = texel + channel * channel_bytes(model->format);
    float single;
    uint16_t half;

    if (model->format == CU_AD_FORMAT_UNORM_INT_101010_2)
        return packed_value(texel, channel);

    if (model->format == CU_AD_FORMAT_FLOAT) {
        memcpy(&single, at, sizeof single);
        return single;
    }
    if (model->format == CU_AD_FORMAT_HALF) {
        memcpy(&half, at, sizeof half);
        return half_value(half);
    }
    if (!model_reads_floats(model))
        return integer_value(model, at);
    return integer_value(model, at) / largest(model->format); /* the least integer is below -1 */
}

/* Index -1 is the border. */
static double texel(const struct model *model, unsigned level, int x, int y, int z, unsigned channel)
{
    const unsigned bytes = model_texel_bytes(model);
    const uint64_t row = model->levels[level].width, plane = row * model->levels[level].height;

    if (channel >= model->channels)
        return 0;
    if (x < 0 || y < 0 || z < 0)
        return model->border[channel];
    return channel_value(model, model->levels[level].texels + ((uint64_t)z * plane + (uint64_t)y * row + (uint64_t)x) * bytes, channel);
}

/* ---- coordinates ---- */

static int address(int i, int size, CUaddress_mode mode)
{
    if ((i >= 0 && i < size) || mode == BEYOND)
        return i;
    if (mode == CU_TR_ADDRESS_MODE_BORDER)
        return -1;
    if (mode == CU_TR_ADDRESS_MODE_WRAP)
        return ((i % size) + size) % size;
    if (mode == CU_TR_ADDRESS_MODE_MIRROR) {
        const int folded = ((i % (2 * size)) + 2 * size) % (2 * size);

        return folded < size ? folded : 2 * size - 1 - folded;
    }
    return i < 0 ? 0 : size - 1;
}

struct axis {
    int low, high;
    double fraction; /* weight of `high` */
    int before;      /* the texel before `low` if a position one unit of the fraction below has a part of it; else `low` */
};

/* The two texels beside a position in texels, and whether the position is uncertain. */
static struct axis place_axis(const struct model *model, double position, int size, CUaddress_mode mode, bool is_rounded, bool *uncertain)
{
    struct axis axis = {0};
    double low;

    if (model->linear)
        position = floor((position - 0.5) * 256 + 0.5) / 256;
    else if (is_rounded && fabs(position - nearbyint(position)) < NEAR)
        *uncertain = true;
    low = floor(position);
    axis.fraction = model->linear ? position - low : 0;
    axis.low = address((int)low, size, mode);
    axis.high = address((int)low + 1, size, mode);
    axis.before = model->linear && axis.fraction == 0 && mode != BEYOND ? address((int)low - 1, size, mode) : axis.low;
    return axis;
}

/* Layers are unsigned numbers: -1 is the last one. */
static int clamp_layer(int i, int n)
{
    return i < 0 || i >= n ? n - 1 : i;
}

static bool is_cube(const struct model *model)
{
    return model->geometry == MODEL_CUBE || model->geometry == MODEL_CUBE_LAYERED;
}

/* Face, and coordinates on it from 0 to 1 (Programming Guide, "Cubemap Textures"). */
static int find_face(const struct model_place *place, double *s, double *t, bool *uncertain)
{
    const double x = place->x, y = place->y, z = place->z, ax = fabs(x), ay = fabs(y), az = fabs(z);
    const double m = fmax(ax, fmax(ay, az));

    if ((ax == m) + (ay == m) + (az == m) > 1)
        *uncertain = true;
    if (ax == m) {
        *s = (x < 0 ? z : -z) / m;
        *t = -y / m;
    } else if (ay == m) {
        *s = x / m;
        *t = (y < 0 ? -z : z) / m;
    } else {
        *s = (z < 0 ? -x : x) / m;
        *t = -y / m;
    }
    *s = (*s + 1) / 2;
    *t = (*t + 1) / 2;
    return ax == m ? x < 0 : ay == m ? 2 + (y < 0) : 4 + (z < 0);
}

/* ---- seamless cubes ---- */

/* The texel of a face, or beyond one of its edges: the nearest texel of the other face, which lies in the direction of the middle of the
 * edge of texel (x, y). */
static double texel_across(const struct model *model, unsigned level, int x, int y, int first, int face, unsigned channel)
{
    const int side = (int)model->levels[level].width;
    const double beyond = 1 + 1e-6;
    const double s = x < 0 ? -beyond : x >= side ? beyond : (2.0 * x + 1) / side - 1;
    const double t = y < 0 ? -beyond : y >= side ? beyond : (2.0 * y + 1) / side - 1;
    const struct model_place directions[] = {{.x = 1, .y = -t, .z = -s}, {.x = -1, .y = -t, .z = s}, {.x = s, .y = 1, .z = t},
                                             {.x = s, .y = -1, .z = -t}, {.x = s, .y = -t, .z = 1},  {.x = -s, .y = -t, .z = -1}};
    bool uncertain;
    double u, v;
    int other;

    if (x >= 0 && x < side && y >= 0 && y < side)
        return texel(model, level, x, y, first + face, channel);
    other = find_face(&directions[face], &u, &v, &uncertain);
    return texel(model, level, (int)fmin(u * side, side - 1), (int)fmin(v * side, side - 1), first + other, channel);
}

/* Where three faces meet there are three texels, of which the missing fourth one is the mean (measured on an H100). */
static double texel_of_cube(const struct model *model, unsigned level, int x, int y, int slice, unsigned channel)
{
    const int side = (int)model->levels[level].width, first = slice / 6 * 6, face = slice % 6;
    const int inner_x = x < 0 ? 0 : x >= side ? side - 1 : x, inner_y = y < 0 ? 0 : y >= side ? side - 1 : y;

    if (x == inner_x || y == inner_y)
        return texel_across(model, level, x, y, first, face, channel);
    return (texel_across(model, level, inner_x, inner_y, first, face, channel) +
            texel_across(model, level, x, inner_y, first, face, channel) + texel_across(model, level, inner_x, y, first, face, channel)) /
           3;
}

/* ---- a level ---- */

static bool is_normalized(const struct model *model)
{
    return model_reads_floats(model) && model->format != CU_AD_FORMAT_FLOAT && model->format != CU_AD_FORMAT_HALF;
}

/* NVIDIA's GPUs filter normalized integers with 16 bits, halves to halves, and integers to integers. */
static double filter_precision(const struct model *model, double magnitude)
{
    return !model_reads_floats(model)           ? 1
           : is_normalized(model)               ? 1.0 / 32768
           : model->format == CU_AD_FORMAT_HALF ? magnitude / 2048
                                                : 2e-6 * magnitude;
}

/* The texels along an axis that a position has a part of, or may have within the tolerance. */
static int pick(const struct axis *axis, unsigned which)
{
    return which == 0 ? axis->low : which == 1 ? axis->high : axis->before;
}

static struct model_result fetch_level(const struct model *model, const struct model_place *place, unsigned level)
{
    const int width = (int)model->levels[level].width, height = (int)model->levels[level].height, depth = (int)model->levels[level].depth;
    const bool is_line = model->geometry == MODEL_1D || model->geometry == MODEL_1D_LAYERED;
    const bool scaled = model->normalized_coordinates || is_cube(model);
    const bool folds = model->address == CU_TR_ADDRESS_MODE_WRAP || model->address == CU_TR_ADDRESS_MODE_MIRROR;
    const bool seamless = is_cube(model) && model->seamless && model->linear;
    const CUaddress_mode mode = seamless ? BEYOND : is_cube(model) || (folds && !scaled) ? CU_TR_ADDRESS_MODE_CLAMP : model->address;
    struct model_result out = {.tolerance = 0};
    struct axis x, y = {0}, z = {0};
    double u = place->x, v = place->y;
    int face = 0;

    if (is_cube(model))
        face = find_face(place, &u, &v, &out.is_uncertain);
    x = place_axis(model, (scaled ? u * width : u) + place->offset[0], width, mode, scaled, &out.is_uncertain);
    if (!is_line)
        y = place_axis(model, (scaled ? v * height : v) + place->offset[1], height, mode, scaled, &out.is_uncertain);
    else if (model->geometry == MODEL_1D)
        y = place_axis(model, 0, 1, mode, false, &out.is_uncertain);
    if (model->geometry == MODEL_3D)
        z = place_axis(model, (scaled ? place->z * depth : place->z) + place->offset[2], depth, mode, scaled, &out.is_uncertain);
    else if (is_cube(model))
        z.low = z.high = z.before = face + 6 * (model->geometry == MODEL_CUBE_LAYERED ? clamp_layer(place->layer, depth / 6) : 0);
    else if (model->geometry != MODEL_1D && model->geometry != MODEL_2D)
        z.low = z.high = z.before = clamp_layer(place->layer, depth);
    for (unsigned c = 0; c < 4; c++) {
        double sum = 0, least = INFINITY, most = -INFINITY;

        for (unsigned k = 0; k < 8; k++) {
            const int i = k & 1 ? x.high : x.low, j = k & 2 ? y.high : y.low;
            const double value =
                seamless ? texel_of_cube(model, level, i, j, z.low, c) : texel(model, level, i, j, k & 4 ? z.high : z.low, c);
            const double weight =
                (k & 1 ? x.fraction : 1 - x.fraction) * (k & 2 ? y.fraction : 1 - y.fraction) * (k & 4 ? z.fraction : 1 - z.fraction);

            sum += weight * value;
            least = fmin(least, value);
            most = fmax(most, value);
        }
        for (unsigned k = 0; k < 27 && !seamless; k++) {
            const int i = pick(&x, k % 3), j = pick(&y, k / 3 % 3);
            const double value = texel(model, level, i, j, pick(&z, k / 9), c);

            least = fmin(least, value);
            most = fmax(most, value);
        }
        out.values[c] = model->linear ? sum : texel(model, level, x.low, y.low, z.low, c);
        if (is_normalized(model)) /* after filtering, as on an H100 */
            out.values[c] = fmax(out.values[c], -1);
        if (model->linear) /* one unit of the fraction in each dimension */
            out.tolerance = fmax(out.tolerance, 3 * (most - least) / 256 + filter_precision(model, fmax(fabs(most), fabs(least))));
    }
    return out;
}

/* ---- levels ---- */

static double clamp_level(const struct model *model, const struct model_place *place)
{
    double level = place->has_level ? place->level + model->bias : 0;

    level = fmin(fmax(level, model->min_level), model->max_level);
    return fmin(fmax(level, 0), model->n_levels - 1);
}

struct model_result model_fetch(const struct model *model, const struct model_place *place)
{
    const double level = model->n_levels > 1 ? clamp_level(model, place) : 0, low = floor(model->linear_levels ? level : level + 0.5);
    const double fraction = model->linear_levels ? floor((level - low) * 256 + 0.5) / 256 : 0;
    struct model_result out = fetch_level(model, place, (unsigned)low), next;

    if (!model->linear_levels && fabs(level + 0.5 - nearbyint(level + 0.5)) < NEAR)
        out.is_uncertain = true;
    if (!model->linear_levels || low + 1 >= model->n_levels)
        return out;
    next = fetch_level(model, place, (unsigned)low + 1);
    out.is_uncertain |= next.is_uncertain;
    out.tolerance += next.tolerance; /* which is that of both, and more than that of their mixture */
    for (unsigned c = 0; c < 4; c++) {
        out.tolerance = fmax(out.tolerance, 2 * fabs(next.values[c] - out.values[c]) / 256 + 1e-5 * fabs(out.values[c]));
        out.values[c] += fraction * (next.values[c] - out.values[c]);
    }
    return out;
}
