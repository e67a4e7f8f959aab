/* SPDX-License-Identifier: Apache-2.0 */
/* tex.grad on cubes, and anisotropy. Level n of the textures here has the value n everywhere and levels are filtered, so a fetch returns the level that
 * its derivatives choose. */
#include "texture_kernels.h"

#include <math.h>
#include <stdbool.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SIDE 64u
#define LEVELS 7u
#define TOLERANCE 0.02 /* filters have 8 bits, logarithms are approximate */

/* The derivatives: cubes (l, 2l, -l) in x and (0, -l, l) in y; planes (z, 0) and (0, l), or (l, z) and (0, 0). */
#define ZERO "0f00000000"
static const char kernels[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
#define TWICE "neg.f32 f0,l;add.f32 f1,l,l;"
    FETCH_KERNEL("cube", TWICE "tex.grad.cube.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y,z,z}],{l,f1,f0,f0},{" ZERO ",f0,l,l};")
        FETCH_KERNEL("acube", TWICE "tex.grad.acube.v4.f32.f32 {f0,f1,f2,f3},[d0,{r0,x,y,z}],{l,f1,f0,f0},{" ZERO ",f0,l,l};")
            FETCH_KERNEL("plane", "tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{z," ZERO "},{" ZERO ",l};")
                FETCH_KERNEL("line", "tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{x,y}],{l,z},{" ZERO "," ZERO "};")
                    FETCH_KERNEL("layer", "tex.grad.a2d.v4.f32.f32 {f0,f1,f2,f3},[d0,{r0,x,y,y}],{z," ZERO "},{" ZERO ",l};");

static CUmodule module;

static float value_of(uint32_t word)
{
    float value;

    memcpy(&value, &word, sizeof value);
    return value;
}

/* ---- textures ---- */

static CUmipmappedArray make_levels(unsigned depth, unsigned flags)
{
    static float texels[SIDE * SIDE * 12];
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = SIDE, .Height = SIDE, .Depth = depth, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = flags};
    CUmipmappedArray mipmap;

    ok(cuMipmappedArrayCreate(&mipmap, &desc, LEVELS));
    for (unsigned level = 0; level < LEVELS; level++) {
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = texels,
                              .srcPitch = (SIDE >> level) * sizeof *texels,
                              .srcHeight = SIDE >> level,
                              .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                              .WidthInBytes = (SIDE >> level) * sizeof *texels,
                              .Height = SIDE >> level,
                              .Depth = depth ? depth : 1};

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

/* ---- cubes ---- */

/* Coordinates on the face that the direction `of` points to, from 0 to 1 (Programming Guide, "Cubemap Textures"). */
static void face_place(const double of[3], const double at[3], double out[2])
{
    const double ax = fabs(of[0]), ay = fabs(of[1]), az = fabs(of[2]);
    const unsigned axis = az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
    const double major = fabs(at[axis]);

    out[0] = (at[axis == 0 ? 2 : 0] / major + 1) / 2; /* but for signs */
    out[1] = (at[axis == 1 ? 2 : 1] / major + 1) / 2;
}

/* The length of a small step from a direction, in texels for the whole derivative. */
static double face_length(const double from[3], const double derivative[3])
{
    const double small = 1e-6, to[3] = {from[0] + small * derivative[0], from[1] + small * derivative[1], from[2] + small * derivative[2]};
    double a[2], b[2];

    face_place(from, from, a);
    face_place(from, to, b);
    return hypot(b[0] - a[0], b[1] - a[1]) / small * SIDE;
}

/* As Vulkan defines it ("Cube Map Derivative Transformation"); CUDA's manual leaves it open. NVIDIA's driver (580, H200) makes the instruction of
 * fetches by four lanes and gives levels that are up to 0.2 lower and 1 higher. */
static void cubes_have_derivatives(void **state)
{
    static const double directions[][3] = {{1, 0, 0},       {-1, 0, 0},       {0, 1, 0},       {0, -1, 0},      {0, 0, 1},
                                           {0, 0, -1},      {2, 0.5, -1},     {-3, 1, 2},      {0.3, 0.9, 0.1}, {0.4, -1, 0.6},
                                           {0.1, 0.2, 0.7}, {0.5, 0.5, -0.9}, {10, 3.5, -2.5}, {0.1, -.03, .02}};
    struct place places[COUNT(directions) * 4];
    uint32_t results[COUNT(places)][4];
    unsigned wrong = 0;

    (void)state;
    if (!on_cuttle())
        skip();
    for (int layered = 0; layered < 2; layered++) {
        CUmipmappedArray mipmap =
            layered ? make_levels(12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED) : make_levels(6, CUDA_ARRAY3D_CUBEMAP);
        CUtexObject object = make_texture(mipmap, 0);

        for (unsigned i = 0; i < COUNT(places); i++) {
            const double *to = directions[i / 4];

            places[i] = (struct place){.x = (float)to[0],
                                       .y = (float)to[1],
                                       .z = (float)to[2],
                                       .level = (float)(0.01 * pow(3, i % 4) * fmax(fabs(to[0]), fmax(fabs(to[1]), fabs(to[2])))),
                                       .layer = (int)(i & 1)};
        }
        fetch_by(module, layered ? "acube" : "cube", object, places, COUNT(places), *results);
        for (unsigned i = 0; i < COUNT(places); i++) {
            const double l = places[i].level, in_x[3] = {l, 2 * l, -l}, in_y[3] = {0, -l, l};
            const double longer = fmax(face_length(directions[i / 4], in_x), face_length(directions[i / 4], in_y));
            const double wanted = limited(log2(longer)), found = value_of(results[i][0]);

            if (fabs(found - wanted) > TOLERANCE) {
                print_error("direction %u, derivative %g: level %g, expected %g\n", i / 4, l, found, wanted);
                wrong++;
            }
        }
        ok(cuTexObjectDestroy(object));
        ok(cuMipmappedArrayDestroy(mipmap));
    }
    assert_int_equal(wrong, 0);
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
    CUmipmappedArray plane = make_levels(0, 0), layers = make_levels(2, CUDA_ARRAY3D_LAYERED);

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
        cmocka_unit_test(cubes_have_derivatives),
        cmocka_unit_test(anisotropy_lowers_the_level),
        cmocka_unit_test(anisotropy_takes_places_along_the_derivative),
    };

    return cmocka_run_group_tests(tests, set_up, textures_tear_down);
}
