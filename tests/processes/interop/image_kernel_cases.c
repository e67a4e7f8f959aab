/* SPDX-License-Identifier: Apache-2.0 */
/* Images of a Vulkan program that kernels of CUDA read as textures and change as surfaces: each API sees what the other, and copies, wrote before. */
#include "app_image.h"
#include "interop.h"

#include <string.h>

#define WIDTH 96u
#define HEIGHT 60u
#define LEVELS 3u
#define SIDE 8u

/* add: texel (x, y) of a surface becomes that of a level of a texture and `more`, both of 32-bit integers. add_3d: the same with a volume of SIDE^3 texels
 * that is its own source, with 64 threads in each of SIDE blocks. */
static const char kernels[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                              ".visible .entry add(.param .u64 texture, .param .u64 surface, .param .u32 level, .param .u32 width,\n"
                              "    .param .u32 height, .param .u32 more)\n{\n"
                              ".reg .pred p; .reg .b32 r<16>; .reg .f32 f<8>; .reg .b64 d<2>;\n"
                              "ld.param.u64 d0,[texture]; ld.param.u64 d1,[surface]; ld.param.u32 r0,[level]; ld.param.u32 r1,[width];\n"
                              "ld.param.u32 r2,[height]; ld.param.u32 r3,[more];\n"
                              "mov.u32 r4,%ctaid.x; mov.u32 r5,%ntid.x; mov.u32 r6,%tid.x; mad.lo.u32 r4,r4,r5,r6; mov.u32 r5,%ctaid.y;\n"
                              "setp.ge.u32 p,r4,r1; @p ret;\n"
                              "cvt.rn.f32.u32 f0,r4; cvt.rn.f32.u32 f1,r5; cvt.rn.f32.u32 f2,r1; cvt.rn.f32.u32 f3,r2;\n"
                              "add.f32 f0,f0,0f3F000000; add.f32 f1,f1,0f3F000000; div.approx.f32 f0,f0,f2; div.approx.f32 f1,f1,f3;\n"
                              "cvt.rn.f32.u32 f4,r0;\n"
                              "tex.level.2d.v4.u32.f32 {r8,r9,r10,r11},[d0,{f0,f1}],f4;\n"
                              "add.u32 r8,r8,r3; shl.b32 r4,r4,2; sust.b.2d.b32.trap [d1,{r4,r5}],{r8};\n"
                              "ret;\n}\n"
                              ".visible .entry add_3d(.param .u64 surface, .param .u32 more)\n{\n"
                              ".reg .b32 r<8>; .reg .b64 d;\n"
                              "ld.param.u64 d,[surface]; ld.param.u32 r0,[more]; mov.u32 r1,%tid.x; mov.u32 r3,%ctaid.x;\n"
                              "shr.u32 r2,r1,3; and.b32 r1,r1,7; shl.b32 r1,r1,2; suld.b.3d.b32.trap {r4},[d,{r1,r2,r3,r3}];\n"
                              "add.u32 r4,r4,r0; sust.b.3d.b32.trap [d,{r1,r2,r3,r3}],{r4};\n"
                              "ret;\n}\n";

struct shared { /* an image, and what CUDA has of it */
    struct app_image image;
    CUexternalMemory memory;
    CUmipmappedArray mipmap;
    CUmodule module;
    CUtexObject texture;
    CUsurfObject surfaces[LEVELS];
    uint32_t *wanted, *got; /* texels of all levels */
};

static CUfunction function_of(const struct shared *shared, const char *name)
{
    CUfunction function;

    ok(cuModuleGetFunction(&function, shared->module, name));
    return function;
}

static void import(struct app *app, struct shared *shared)
{
    const struct app_image_desc *image = &shared->image.desc;
    const bool is_volume = image->type == VK_IMAGE_TYPE_3D;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {.offset = shared->image.offset, .numLevels = image->levels};
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle =
        memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, app_image_export(app, &shared->image), shared->image.memory_bytes);

    handle.flags = image->dedicated ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0;
    ok(cuImportExternalMemory(&shared->memory, &handle));
    desc.arrayDesc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = image->extent.width,
                                               .Height = image->extent.height,
                                               .Depth = is_volume ? image->extent.depth : 0,
                                               .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                               .NumChannels = 1,
                                               .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    ok(cuExternalMemoryGetMappedMipmappedArray(&shared->mipmap, shared->memory, &desc));
}

static void create_objects(struct shared *shared)
{
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
                                   .flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES,
                                   .maxMipmapLevelClamp = LEVELS};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};

    resource.res.mipmap.hMipmappedArray = shared->mipmap;
    ok(cuTexObjectCreate(&shared->texture, &resource, &how, NULL));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    for (unsigned i = 0; i < shared->image.desc.levels; i++) {
        ok(cuMipmappedArrayGetLevel(&resource.res.array.hArray, shared->mipmap, i));
        ok(cuSurfObjectCreate(&shared->surfaces[i], &resource));
    }
}

static void open_shared(struct app *app, const struct app_image_desc *desc, struct shared *out)
{
    *out = (struct shared){.module = NULL};
    ok(cuModuleLoadData(&out->module, kernels));
    app_image_create(app, desc, &out->image);
    out->wanted = malloc(out->image.texels_bytes);
    out->got = malloc(out->image.texels_bytes);
    for (uint64_t i = 0; i < out->image.texels_bytes / 4; i++)
        out->wanted[i] = (uint32_t)(i * 2654435761u);
    app_image_write(app, &out->image, out->wanted);
    import(app, out);
    create_objects(out);
}

static void close_shared(struct app *app, struct shared *shared)
{
    ok(cuTexObjectDestroy(shared->texture));
    for (unsigned i = 0; i < shared->image.desc.levels; i++)
        ok(cuSurfObjectDestroy(shared->surfaces[i]));
    ok(cuMipmappedArrayDestroy(shared->mipmap));
    ok(cuDestroyExternalMemory(shared->memory));
    ok(cuModuleUnload(shared->module));
    app_image_destroy(app, &shared->image);
    free(shared->wanted);
    free(shared->got);
}

/* Adds to the texels of a level, in a stream. */
static void add(struct shared *shared, CUstream stream, unsigned level, unsigned more)
{
    const VkExtent3D extent = app_image_level(&shared->image, level);
    unsigned width = extent.width, height = extent.height;
    void *params[] = {&shared->texture, &shared->surfaces[level], &level, &width, &height, &more};

    ok(cuLaunchKernel(function_of(shared, "add"), (width + 63) / 64, height, 1, 64, 1, 1, 0, stream, params, NULL));
}

static void want_more(struct shared *shared, unsigned level, unsigned more)
{
    uint32_t *texels = shared->wanted;

    for (unsigned i = 0; i < level; i++)
        texels += app_image_level_bytes(&shared->image, i) / 4;
    for (uint64_t i = 0; i < app_image_level_bytes(&shared->image, level) / 4; i++)
        texels[i] += more;
}

static void expect_image(struct app *app, struct shared *shared)
{
    ok(cuCtxSynchronize());
    app_image_read(app, &shared->image, shared->got);
    expect(memcmp(shared->got, shared->wanted, shared->image.texels_bytes) == 0);
}

/* The first level becomes other texels by a copy of CUDA. */
static void copy_in(struct shared *shared, unsigned seed)
{
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = shared->wanted,
                          .srcPitch = 4 * WIDTH,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = 4 * WIDTH,
                          .Height = HEIGHT};

    for (unsigned i = 0; i < WIDTH * HEIGHT; i++)
        shared->wanted[i] = i * seed;
    ok(cuMipmappedArrayGetLevel(&copy.dstArray, shared->mipmap, 0));
    ok(cuMemcpy2D(&copy));
}

static void change_planes(struct app *app, struct shared *shared)
{
    CUgraphExec exec;
    CUgraph graph;
    CUstream streams[2];

    for (unsigned level = 0; level < LEVELS; level++) {
        add(shared, NULL, level, 7 + level);
        want_more(shared, level, 7 + level);
    }
    expect_image(app, shared);
    for (uint64_t i = 0; i < shared->image.texels_bytes / 4; i++)
        shared->wanted[i] = (uint32_t)(i * 40503u);
    app_image_write(app, &shared->image, shared->wanted); /* once more, while there are objects */
    add(shared, NULL, 1, 5);
    want_more(shared, 1, 5);
    expect_image(app, shared);
    copy_in(shared, 77);
    add(shared, NULL, 0, 1);
    add(shared, NULL, 0, 2);
    want_more(shared, 0, 3);
    expect_image(app, shared);
    for (unsigned i = 0; i < 2; i++)
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 20; i++) /* each level in a stream of its own */
        add(shared, streams[i % 2], i % 2, i);
    want_more(shared, 0, 90);
    want_more(shared, 1, 100);
    expect_image(app, shared);
    ok(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    add(shared, streams[0], 2, 3);
    add(shared, streams[0], 2, 4);
    ok(cuStreamEndCapture(streams[0], &graph));
    ok(cuGraphInstantiate(&exec, graph, 0));
    ok(cuGraphLaunch(exec, streams[1]));
    ok(cuGraphLaunch(exec, streams[1]));
    want_more(shared, 2, 14);
    expect_image(app, shared);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    for (unsigned i = 0; i < 2; i++)
        ok(cuStreamDestroy(streams[i]));
}

static void change_volume(struct app *app, struct shared *shared)
{
    for (unsigned more = 1; more < 4; more++) {
        void *params[] = {&shared->surfaces[0], &more};

        ok(cuLaunchKernel(function_of(shared, "add_3d"), SIDE, 1, 1, SIDE * SIDE, 1, 1, 0, NULL, params, NULL));
        want_more(shared, 0, more);
        expect_image(app, shared);
    }
}

int image_kernels(struct app *app, struct cuda *cuda)
{
    static const struct {
        struct app_image_desc image;
        void (*change)(struct app *app, struct shared *shared);
    } rows[] = {
        {{VK_IMAGE_TYPE_2D, VK_FORMAT_R32_UINT, 4, {WIDTH, HEIGHT, 1}, 1, LEVELS, 0, VK_IMAGE_USAGE_STORAGE_BIT, true, 0}, change_planes},
        {{VK_IMAGE_TYPE_2D, VK_FORMAT_R32_UINT, 4, {WIDTH, HEIGHT, 1}, 1, LEVELS, 0, VK_IMAGE_USAGE_STORAGE_BIT, false, 2}, change_planes},
        {{VK_IMAGE_TYPE_3D, VK_FORMAT_R32_UINT, 4, {SIDE, SIDE, SIDE}, 1, 1, 0, VK_IMAGE_USAGE_STORAGE_BIT, true, 0}, change_volume},
    };
    unsigned changed = 0;

    (void)cuda;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shared shared;

        if (!app_image_is_possible(app, &rows[i].image))
            continue;
        open_shared(app, &rows[i].image, &shared);
        rows[i].change(app, &shared);
        close_shared(app, &shared);
        changed++;
    }
    return changed ? PASSED : LEFT_OUT;
}
