/* SPDX-License-Identifier: Apache-2.0 */
/* The levels that tex.grad chooses, and anisotropy. Level n of the textures here has the value n everywhere and levels are filtered, so a fetch returns the level that
 * its derivatives choose. */
#include "texture_kernels.h"

#include <math.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SIDE 64u
#define LEVELS 7u
#define TOLERANCE 0.02 /* filters have 8 bits, logarithms are approximate */

/* Every third thread has derivatives, a and b, which are the places behind its own; or (z, 0) and (0, l), or (l, z) and (0, 0). */
/* clang-format off */
#define ZERO "0f00000000"
#define GRAD(geometry, place, a, b) \
    FETCH_KERNEL("grad_" geometry, ".reg .f32 a<3>,b<3>,u;rem.u32 r5,r2,3;setp.ne.u32 p,r5,0;@p bra done;" \
        "ld.global.v4.f32 {a0,a1,a2,u},[d1+32];ld.global.v4.f32 {b0,b1,b2,u},[d1+64];" \
        "tex.grad." geometry ".v4.f32.f32 {f0,f1,f2,f3},[d0," place "]," a "," b ";")
static const char kernels[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    GRAD("1d", "{x}", "{a0}", "{b0}") GRAD("2d", "{x,y}", "{a0,a1}", "{b0,b1}") GRAD("a2d", "{r0,x,y,y}", "{a0,a1}", "{b0,b1}")
    GRAD("3d", "{x,y,z,z}", "{a0,a1,a2,a2}", "{b0,b1,b2,b2}") GRAD("cube", "{x,y,z,z}", "{a0,a1,a2,a2}", "{b0,b1,b2,b2}")
    GRAD("acube", "{r0,x,y,z}", "{a0,a1,a2,a2}", "{b0,b1,b2,b2}")
    FETCH_KERNEL("plane", "tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{z," ZERO "},{" ZERO ",l};")
    FETCH_KERNEL("line", "tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{l,z},{" ZERO "," ZERO "};")
    FETCH_KERNEL("layer", "tex.grad.a2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{r0,x,y,y}],{z," ZERO "},{" ZERO ",l};");
/* clang-format on */

static CUmodule module;

static float value_of(uint32_t word)
{
    float value;

    memcpy(&value, &word, sizeof value);
    return value;
}

/* ---- textures ---- */

static unsigned at_least_1(unsigned extent)
{
    return extent ? extent : 1;
}

static CUmipmappedArray make_levels(unsigned height, unsigned depth, unsigned flags)
{
    static float texels[SIDE * SIDE * SIDE];
    const bool is_volume = depth && !flags;
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = SIDE, .Height = height, .Depth = depth, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = flags};
    CUmipmappedArray mipmap;

    ok(cuMipmappedArrayCreate(&mipmap, &desc, LEVELS));
    for (unsigned level = 0; level < LEVELS; level++) {
        const unsigned rows = at_least_1(height >> level), slices = at_least_1(is_volume ? depth >> level : depth);
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = texels,
                              .srcPitch = (SIDE >> level) * sizeof *texels,
                              .srcHeight = rows,
                              .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                              .WidthInBytes = (SIDE >> level) * sizeof *texels,
                              .Height = rows,
                              .Depth = slices};

        for (size_t i = 0; i < COUNT(texels); i++)
            texels[i] = (float)level;
        ok(cuMipmappedArrayGetLevel(&copy.dstArray, mipmap, level));
        ok(cuMemcpy3D(&copy));
    }
    return mipmap;
}

static CUtexObject make_texture(CUmipmappedArray mipmap, unsigned anisotropy)
{
    const CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP;
    const CUDA_TEXTURE_DESC how = {.addressMode = {clamp, clamp, clamp},
                                   .filterMode = CU_TR_FILTER_MODE_LINEAR,
                                   .flags = CU_TRSF_NORMALIZED_COORDINATES,
                                   .maxAnisotropy = anisotropy,
                                   .mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR,
                                   .maxMipmapLevelClamp = LEVELS};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUtexObject object;

    resource.res.mipmap.hMipmappedArray = mipmap;
    ok(cuTexObjectCreate(&object, &resource, &how, NULL));
    return object;
}

static double limited(double level)
{
    return fmin(fmax(level, 0), LEVELS - 1);
}

/* ---- derivatives ---- */

#define N_RANDOM 300u

static double random_number(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) / 16777216.0;
}

/* The estimate of a length: weights for the components in the order of their sizes. Of this function and the next one the manual says nothing: they
 * are what an H200 does, within 0.008. */
static double length_of(const double v[3])
{
    const double x = fabs(v[0]), y = fabs(v[1]), z = fabs(v[2]), most = fmax(x, fmax(y, z)), least = fmin(x, fmin(y, z));

    return most + (x + y + z - most - least) * 11 / 32 + least / 4;
}

static double level_of(const double a[3], const double b[3], bool has_diagonals)
{
    const double sum[3] = {a[0] + b[0], a[1] + b[1], a[2] + b[2]}, difference[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    const double diagonal = has_diagonals ? fmax(length_of(sum), length_of(difference)) * 11 / 16 : 0;

    return limited(log2(fmax(diagonal, fmax(length_of(a), length_of(b)))));
}

static void choose_place(struct place *place, uint32_t *seed, double largest)
{
    place->x = (float)(largest * (2 * random_number(seed) - 1));
    place->y = (float)(largest * (2 * random_number(seed) - 1));
    place->z = (float)(largest * (2 * random_number(seed) - 1));
}

/* One derivative of four is 0, and one is along an axis. */
static void choose_derivatives(struct place *places, unsigned number, uint32_t *seed, double unit)
{
    choose_place(&places[1], seed, unit * pow(2, 6 * random_number(seed)));
    choose_place(&places[2], seed, unit * pow(2, 6 * random_number(seed)));
    if (number % 4 == 0)
        places[2] = (struct place){0};
    if (number % 4 == 1)
        places[1].y = places[1].z = 0;
}

static void compare(const char *kernel, const struct place *place, double wanted, uint32_t result)
{
    const double found = value_of(result);

    if (fabs(found - wanted) > TOLERANCE)
        fail_msg("%s at %g %g %g, derivatives %g %g %g and %g %g %g: level %g, expected %g", kernel, place->x, place->y, place->z,
                 place[1].x, place[1].y, place[1].z, place[2].x, place[2].y, place[2].z, found, wanted);
}

static void derivatives_choose_levels(void **state)
{
    static const struct {
        const char *kernel;
        unsigned height, depth, flags, dimensions;
    } rows[] = {{"grad_1d", 0, 0, 0, 1},
                {"grad_2d", SIDE, 0, 0, 2},
                {"grad_2d", SIDE / 2, 0, 0, 2},
                {"grad_a2d", SIDE, 3, CUDA_ARRAY3D_LAYERED, 2},
                {"grad_3d", SIDE, SIDE, 0, 3}};
    static struct place places[3 * N_RANDOM];
    static uint32_t results[COUNT(places)][4];
    uint32_t seed = 1;

    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        CUmipmappedArray mipmap = make_levels(rows[r].height, rows[r].depth, rows[r].flags);
        CUtexObject object = make_texture(mipmap, 0);

        for (unsigned i = 0; i < N_RANDOM; i++) {
            choose_place(&places[3 * i], &seed, 1);
            choose_derivatives(&places[3 * i], i, &seed, 1.0 / SIDE);
        }
        fetch_by(module, rows[r].kernel, object, places, COUNT(places), *results);
        for (unsigned i = 0; i < N_RANDOM; i++) {
            const struct place *a = &places[3 * i + 1], *b = &places[3 * i + 2];
            const unsigned dimensions = rows[r].dimensions;
            const double in_x[3] = {a->x * SIDE, dimensions > 1 ? a->y * rows[r].height : 0, dimensions > 2 ? a->z * SIDE : 0};
            const double in_y[3] = {b->x * SIDE, dimensions > 1 ? b->y * rows[r].height : 0, dimensions > 2 ? b->z * SIDE : 0};

            compare(rows[r].kernel, &places[3 * i], level_of(in_x, in_y, true), results[3 * i][0]);
        }
        ok(cuTexObjectDestroy(object));
        ok(cuMipmappedArrayDestroy(mipmap));
    }
}

/* Where a direction leads: 0 to 2 for the axis of the face, and the point on the cube from -1 to 1. */
static unsigned project(float x, float y, float z, double out[3])
{
    const double to[3] = {x, y, z}, ax = fabs(to[0]), ay = fabs(to[1]), az = fabs(to[2]);
    const unsigned axis = az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;

    for (unsigned i = 0; i < 3; i++)
        out[i] = to[i] / fabs(to[axis]);
    return axis;
}

/* The step to the direction behind the derivative, in texels, on the face of `at`, whose plane continues with the neighbouring face folded down. Returns
 * whether it ends on the face; *opposite: on the one opposite, which the test leaves out. */
static bool step(const struct place *at, const struct place *derivative, double out[3], bool *opposite)
{
    double p[3], q[3];
    const unsigned face = project(at->x, at->y, at->z, p);
    const unsigned axis = project(at->x + derivative->x, at->y + derivative->y, at->z + derivative->z, q);

    if (axis == face && p[face] != q[face])
        *opposite = true;
    if (axis != face)
        q[axis] = copysign(2 - p[face] * q[face], q[axis]);
    for (unsigned i = 0; i < 3; i++)
        out[i] = i == face ? 0 : (q[i] - p[i]) * SIDE / 2;
    return axis == face;
}

/* The middles of the faces, and random directions. NVIDIA's driver makes the instruction of fetches by four lanes, so a derivative is a step. */
static void cubes_have_derivatives(void **state)
{
    static struct place places[3 * N_RANDOM];
    static uint32_t results[COUNT(places)][4];
    uint32_t seed = 2;

    (void)state;
    for (int layered = 0; layered < 2; layered++) {
        CUmipmappedArray mipmap =
            layered ? make_levels(SIDE, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED) : make_levels(SIDE, 6, CUDA_ARRAY3D_CUBEMAP);
        CUtexObject object = make_texture(mipmap, 0);

        for (unsigned i = 0; i < N_RANDOM; i++) {
            struct place *place = &places[3 * i];

            *place = (struct place){.layer = (int)(i & 1)};
            choose_place(place, &seed, 10);
            if (i < 6)
                *place = (struct place){.x = i / 2 == 0, .y = i / 2 == 1 ? 2 : 0, .z = i / 2 == 2 ? -3 : 0};
            choose_derivatives(place, i, &seed, 2.0 / SIDE * fmax(fabs(place->x), fmax(fabs(place->y), fabs(place->z))));
        }
        fetch_by(module, layered ? "grad_acube" : "grad_cube", object, places, COUNT(places), *results);
        for (unsigned i = 0; i < N_RANDOM; i++) {
            double in_x[3], in_y[3];
            bool opposite = false, ends_on_face = step(&places[3 * i], &places[3 * i + 1], in_x, &opposite);

            ends_on_face = step(&places[3 * i], &places[3 * i + 2], in_y, &opposite) && ends_on_face;
            if (!opposite)
                compare(layered ? "grad_acube" : "grad_cube", &places[3 * i], level_of(in_x, in_y, ends_on_face), results[3 * i][0]);
        }
        ok(cuTexObjectDestroy(object));
        ok(cuMipmappedArrayDestroy(mipmap));
    }
}

/* ---- anisotropy ---- */

/* Derivatives in texels along x and y. The level is that of the longer one, divided by the number of places along it: as many as it is longer than the
 * shorter one, and no more than allowed (Vulkan, "Texel Anisotropic Filtering"; the manual of CUDA leaves it open). */
static void anisotropy_lowers_the_level(void **state)
{
    static const struct {
        unsigned most;
        float x, y;
        double level;
    } rows[] = {
        {0, 8, 1, 3},  {1, 8, 1, 3},   {16, 8, 1, 0},  {4, 8, 1, 1},   {16, 1, 8, 0},      {16, 8, 8, 3}, {2, 16, 4, 3},
        {8, 32, 4, 2}, {16, 32, 0, 1}, {99, 32, 0, 1}, {16, 12, 4, 2}, {16, 10, 4, 1.737}, {16, 0, 0, 0}, {16, 64, 2, 2},
    };
    CUmipmappedArray plane = make_levels(SIDE, 0, 0), layers = make_levels(SIDE, 2, CUDA_ARRAY3D_LAYERED);

    (void)state;
    if (!on_cuttle()) /* NVIDIA's GPUs choose in their own way */
        skip();
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct place place = {.x = 0.4f, .y = 0.6f, .z = rows[i].x / SIDE, .level = rows[i].y / SIDE, .layer = 1};
        CUtexObject of_plane = make_texture(plane, rows[i].most), of_layers = make_texture(layers, rows[i].most);
        uint32_t results[2][4];

        fetch_by(module, "plane", of_plane, &place, 1, results[0]);
        fetch_by(module, "layer", of_layers, &place, 1, results[1]);
        for (unsigned k = 0; k < 2; k++)
            if (fabs(value_of(results[k][0]) - rows[i].level) > TOLERANCE)
                fail_msg("at most %u, derivatives %g and %g: level %g, expected %g", rows[i].most, rows[i].x, rows[i].y,
                         value_of(results[k][0]), rows[i].level);
        ok(cuTexObjectDestroy(of_plane));
        ok(cuTexObjectDestroy(of_layers));
    }
    ok(cuMipmappedArrayDestroy(plane));
    ok(cuMipmappedArrayDestroy(layers));
}

/* Texel x of a single level is (x - 32)^2: the mean of n places along a derivative of d texels around the middle is that of their squared distances,
 * apart from the filter's straight lines between texels, which add a quarter at most. In texels, too. */
static void anisotropy_takes_places_along_the_derivative(void **state)
{
    static float texels[SIDE][SIDE];
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = SIDE, .Height = SIDE, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUarray array;

    (void)state;
    if (!on_cuttle())
        skip();
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        texels[i / SIDE][i % SIDE] = powf((float)(i % SIDE) + 0.5f - 32, 2);
    ok(cuArrayCreate(&array, &desc));
    resource.res.array.hArray = array;
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = texels,
                                .srcPitch = sizeof *texels,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes = sizeof *texels,
                                .Height = SIDE};
    ok(cuMemcpy2D(&copy));
    for (unsigned most = 1; most <= 16; most *= 2)
        for (int normalized = 0; normalized < 2; normalized++) {
            const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                                           .filterMode = CU_TR_FILTER_MODE_LINEAR,
                                           .flags = normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0,
                                           .maxAnisotropy = most};
            const float unit = normalized ? 1.0f / SIDE : 1.0f, length = 20;
            const struct place place = {.x = 32 * unit, .y = 32 * unit, .z = 0, .level = length * unit};
            double wanted = 0;
            uint32_t results[4];
            CUtexObject object;

            for (unsigned i = 1; i <= most; i++)
                wanted += pow(length * ((double)i / (most + 1) - 0.5), 2) / most;
            ok(cuTexObjectCreate(&object, &resource, &how, NULL));
            fetch_by(module, "line", object, &place, 1, results);
            if (fabs(value_of(results[0]) - wanted) > 0.3)
                fail_msg("at most %u: %g, expected %g", most, value_of(results[0]), wanted);
            ok(cuTexObjectDestroy(object));
        }
    ok(cuArrayDestroy(array));
}

static int set_up(void **state)
{
    return textures_set_up(state) || cuModuleLoadData(&module, kernels) != CUDA_SUCCESS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_choose_levels),
        cmocka_unit_test(cubes_have_derivatives),
        cmocka_unit_test(anisotropy_lowers_the_level),
        cmocka_unit_test(anisotropy_takes_places_along_the_derivative),
    };

    return cmocka_run_group_tests(tests, set_up, textures_tear_down);
}
