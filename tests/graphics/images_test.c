/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and renderbuffers of OpenGL in CUDA (Driver API: OpenGL Interoperability, Graphics Interoperability). */
#include "gl_context.h"
#include "textures/texture_kernels.h"

#define FACES 6u

/* ---- formats: cudaGL.h, cuGraphicsGLRegisterImage ---- */

static const struct format {
    GLenum internal, layout, type;
    CUarray_format format;
    unsigned channels, channel_bytes;
} formats[] = {
    {GL_R8, GL_RED, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
    {GL_RG8, GL_RG, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 2, 1},
    {GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 4, 1},
    {GL_R16, GL_RED, GL_UNSIGNED_SHORT, CU_AD_FORMAT_UNSIGNED_INT16, 1, 2},
    {GL_RG16, GL_RG, GL_UNSIGNED_SHORT, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2},
    {GL_RGBA16, GL_RGBA, GL_UNSIGNED_SHORT, CU_AD_FORMAT_UNSIGNED_INT16, 4, 2},
    {GL_R16F, GL_RED, GL_HALF_FLOAT, CU_AD_FORMAT_HALF, 1, 2},
    {GL_RG16F, GL_RG, GL_HALF_FLOAT, CU_AD_FORMAT_HALF, 2, 2},
    {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, CU_AD_FORMAT_HALF, 4, 2},
    {GL_R32F, GL_RED, GL_FLOAT, CU_AD_FORMAT_FLOAT, 1, 4},
    {GL_RG32F, GL_RG, GL_FLOAT, CU_AD_FORMAT_FLOAT, 2, 4},
    {GL_RGBA32F, GL_RGBA, GL_FLOAT, CU_AD_FORMAT_FLOAT, 4, 4},
    {GL_R8UI, GL_RED_INTEGER, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
    {GL_RG8UI, GL_RG_INTEGER, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 2, 1},
    {GL_RGBA8UI, GL_RGBA_INTEGER, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 4, 1},
    {GL_R16UI, GL_RED_INTEGER, GL_UNSIGNED_SHORT, CU_AD_FORMAT_UNSIGNED_INT16, 1, 2},
    {GL_RG16UI, GL_RG_INTEGER, GL_UNSIGNED_SHORT, CU_AD_FORMAT_UNSIGNED_INT16, 2, 2},
    {GL_RGBA16UI, GL_RGBA_INTEGER, GL_UNSIGNED_SHORT, CU_AD_FORMAT_UNSIGNED_INT16, 4, 2},
    {GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, CU_AD_FORMAT_UNSIGNED_INT32, 1, 4},
    {GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT, CU_AD_FORMAT_UNSIGNED_INT32, 2, 4},
    {GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, CU_AD_FORMAT_UNSIGNED_INT32, 4, 4},
    {GL_R8I, GL_RED_INTEGER, GL_BYTE, CU_AD_FORMAT_SIGNED_INT8, 1, 1},
    {GL_RG8I, GL_RG_INTEGER, GL_BYTE, CU_AD_FORMAT_SIGNED_INT8, 2, 1},
    {GL_RGBA8I, GL_RGBA_INTEGER, GL_BYTE, CU_AD_FORMAT_SIGNED_INT8, 4, 1},
    {GL_R16I, GL_RED_INTEGER, GL_SHORT, CU_AD_FORMAT_SIGNED_INT16, 1, 2},
    {GL_RG16I, GL_RG_INTEGER, GL_SHORT, CU_AD_FORMAT_SIGNED_INT16, 2, 2},
    {GL_RGBA16I, GL_RGBA_INTEGER, GL_SHORT, CU_AD_FORMAT_SIGNED_INT16, 4, 2},
    {GL_R32I, GL_RED_INTEGER, GL_INT, CU_AD_FORMAT_SIGNED_INT32, 1, 4},
    {GL_RG32I, GL_RG_INTEGER, GL_INT, CU_AD_FORMAT_SIGNED_INT32, 2, 4},
    {GL_RGBA32I, GL_RGBA_INTEGER, GL_INT, CU_AD_FORMAT_SIGNED_INT32, 4, 4},
};
#define N_FORMATS (sizeof formats / sizeof *formats)

static unsigned texel_bytes(const struct format *format)
{
    return format->channels * format->channel_bytes;
}

/* ---- images ---- */

/* depth: also of layers and faces; 0: two dimensions. */
struct extent {
    unsigned width, height, depth;
};

struct image {
    GLuint name;
    GLenum target;
    const struct format *format;
    struct extent extent;
    CUgraphicsResource resource;
};

static unsigned at_least_one(unsigned n)
{
    return n ? n : 1;
}

static struct extent level_extent(const struct image *image, unsigned level)
{
    struct extent e = {at_least_one(image->extent.width >> level), at_least_one(image->extent.height >> level), image->extent.depth};

    if (image->target == GL_TEXTURE_3D)
        e.depth = at_least_one(image->extent.depth >> level);
    return e;
}

static size_t level_bytes(const struct image *image, unsigned level)
{
    const struct extent e = level_extent(image, level);

    return (size_t)e.width * e.height * at_least_one(e.depth) * texel_bytes(image->format);
}

/* Any numbers but NaNs and infinities, which need not keep their bits. */
static unsigned char *make_texels(const struct image *image, unsigned level)
{
    const size_t bytes = level_bytes(image, level);
    unsigned char *texels = malloc(bytes);

    for (size_t i = 0; i < bytes; i++)
        texels[i] = (unsigned char)gl_random();
    for (size_t i = 0; i < bytes; i++) /* the upper byte of a half or a float */
        if ((image->format->type == GL_HALF_FLOAT && i % 2 == 1) || (image->format->type == GL_FLOAT && i % 4 == 3))
            texels[i] &= 0xb8 | 7;        /* one bit of the exponent is 0 */
    for (size_t i = 0; i < bytes; i += 4) /* and one is 1, so that it is not denormal */
        if (image->format->type == GL_FLOAT)
            texels[i + 3] |= 0x10;
    for (size_t i = 0; i < bytes; i += 2)
        if (image->format->type == GL_HALF_FLOAT)
            texels[i + 1] |= 0x10;
    return texels;
}

/* Stores a level in the bound texture. */
static void store_level(const struct image *image, unsigned level, const unsigned char *texels)
{
    const struct format *f = image->format;
    const struct extent e = level_extent(image, level);
    const GLsizei width = (GLsizei)e.width, height = (GLsizei)e.height;

    if (image->target == GL_TEXTURE_3D || image->target == GL_TEXTURE_2D_ARRAY)
        gl.TexImage3D(image->target, (GLint)level, (GLint)f->internal, width, height, (GLsizei)e.depth, 0, f->layout, f->type, texels);
    else if (image->target != GL_TEXTURE_CUBE_MAP)
        gl.TexImage2D(image->target, (GLint)level, (GLint)f->internal, width, height, 0, f->layout, f->type, texels);
    for (unsigned face = 0; face < FACES && image->target == GL_TEXTURE_CUBE_MAP; face++)
        gl.TexImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, (GLint)level, (GLint)f->internal, width, height, 0, f->layout, f->type,
                      texels + face * level_bytes(image, level) / FACES);
}

static void load_level(const struct image *image, unsigned level, unsigned char *texels)
{
    const struct format *f = image->format;

    gl.BindTexture(image->target, image->name);
    if (image->target != GL_TEXTURE_CUBE_MAP)
        gl.GetTexImage(image->target, (GLint)level, f->layout, f->type, texels);
    for (unsigned face = 0; face < FACES && image->target == GL_TEXTURE_CUBE_MAP; face++)
        gl.GetTexImage(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, (GLint)level, f->layout, f->type,
                       texels + face * level_bytes(image, level) / FACES);
    gl.BindTexture(image->target, 0);
    gl_ok();
}

/* A texture whose `levels` levels have the texels. */
static struct image make_texture(GLenum target, const struct format *format, struct extent extent, unsigned levels, unsigned char **texels)
{
    struct image image = {.target = target, .format = format, .extent = extent};

    gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
    gl.PixelStorei(GL_PACK_ALIGNMENT, 1);
    gl.GenTextures(1, &image.name);
    gl.BindTexture(target, image.name);
    for (unsigned level = 0; level < levels; level++) {
        texels[level] = make_texels(&image, level);
        store_level(&image, level, texels[level]);
    }
    gl.BindTexture(target, 0);
    gl_ok();
    return image;
}

static void check_level(const struct image *image, unsigned level, const unsigned char *expected)
{
    unsigned char *got = malloc(level_bytes(image, level));

    load_level(image, level, got);
    assert_memory_equal(got, expected, level_bytes(image, level));
    free(got);
}

/* ---- arrays ---- */

enum direction { FROM_ARRAY, TO_ARRAY };

/* Copies all of an array. */
static void copy_array(CUarray array, struct extent e, unsigned bytes_of_texel, unsigned char *host, enum direction direction)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = (size_t)e.width * bytes_of_texel, .Height = e.height, .Depth = at_least_one(e.depth)};

    if (direction == TO_ARRAY) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host;
        copy.srcPitch = copy.WidthInBytes;
        copy.srcHeight = e.height;
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = array;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = array;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = host;
        copy.dstPitch = copy.WidthInBytes;
        copy.dstHeight = e.height;
    }
    ok(cuMemcpy3D(&copy));
}

static bool is_layered(const struct image *image)
{
    return image->target == GL_TEXTURE_2D_ARRAY || image->target == GL_TEXTURE_CUBE_MAP;
}

static void check_descriptor(CUarray array, const struct image *image, struct extent expected)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;

    ok(cuArray3DGetDescriptor(&desc, array));
    assert_int_equal(desc.Width, expected.width);
    assert_int_equal(desc.Height, expected.height);
    assert_int_equal(desc.Depth, expected.depth);
    assert_int_equal(desc.Format, image->format->format);
    assert_int_equal(desc.NumChannels, image->format->channels);
}

/* The subresources of a level have the texels; each then gets the others. */
static void exchange_subresources(const struct image *image, unsigned level, const unsigned char *expected, const unsigned char *others)
{
    const struct extent e = level_extent(image, level);
    const struct extent part = {e.width, e.height, is_layered(image) ? 0 : e.depth};
    const unsigned n = is_layered(image) ? e.depth : 1;
    const size_t bytes = level_bytes(image, level) / n;
    unsigned char *got = malloc(bytes);

    for (unsigned i = 0; i < n; i++) {
        CUarray array, again;

        ok(cuGraphicsSubResourceGetMappedArray(&array, image->resource, i, level));
        ok(cuGraphicsSubResourceGetMappedArray(&again, image->resource, i, level));
        assert_ptr_equal(array, again);
        check_descriptor(array, image, part);
        copy_array(array, part, texel_bytes(image->format), got, FROM_ARRAY);
        assert_memory_equal(got, expected + i * bytes, bytes);
        copy_array(array, part, texel_bytes(image->format), (unsigned char *)others + i * bytes, TO_ARRAY);
    }
    free(got);
}

/* The mipmapped array has the same texels as the subresources. */
static void check_mipmapped(const struct image *image, unsigned level, const unsigned char *expected)
{
    const size_t bytes = level_bytes(image, level);
    unsigned char *got = malloc(bytes);
    CUmipmappedArray mipmapped;
    CUarray array;

    ok(cuGraphicsResourceGetMappedMipmappedArray(&mipmapped, image->resource));
    ok(cuMipmappedArrayGetLevel(&array, mipmapped, level));
    check_descriptor(array, image, level_extent(image, level));
    copy_array(array, level_extent(image, level), texel_bytes(image->format), got, FROM_ARRAY);
    assert_memory_equal(got, expected, bytes);
    free(got);
}

/* Maps a texture, checks all of its levels, changes them, and checks in OpenGL that they have changed. */
static void exchange(GLenum target, const struct format *format, struct extent extent, unsigned levels)
{
    unsigned char *texels[8], *others[8];
    struct image image = make_texture(target, format, extent, levels, texels);
    CUarray none;

    ok(cuGraphicsGLRegisterImage(&image.resource, image.name, target, CU_GRAPHICS_REGISTER_FLAGS_NONE));
    ok(cuGraphicsMapResources(1, &image.resource, NULL));
    for (unsigned level = 0; level < levels; level++) {
        others[level] = make_texels(&image, level);
        check_mipmapped(&image, level, texels[level]);
        exchange_subresources(&image, level, texels[level], others[level]);
        check_mipmapped(&image, level, others[level]);
    }
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsSubResourceGetMappedArray(&none, image.resource, 0, levels));
        gives(CUDA_ERROR_INVALID_VALUE,
              cuGraphicsSubResourceGetMappedArray(&none, image.resource, is_layered(&image) ? extent.depth : 1, 0));
    }
    ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
    ok(cuGraphicsUnregisterResource(image.resource));
    for (unsigned level = 0; level < levels; level++) {
        check_level(&image, level, others[level]);
        free(texels[level]);
        free(others[level]);
    }
    gl.DeleteTextures(1, &image.name);
}

static void every_format(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_FORMATS; i++)
        exchange(GL_TEXTURE_2D, &formats[i], (struct extent){37, 19, 0}, 1);
}

static void every_target(void **state)
{
    static const unsigned some[] = {2, 11, 18}; /* GL_RGBA8, GL_RGBA32F, GL_R32UI */

    (void)state;
    for (unsigned i = 0; i < sizeof some / sizeof *some; i++) {
        const struct format *format = &formats[some[i]];

        exchange(GL_TEXTURE_RECTANGLE, format, (struct extent){33, 5, 0}, 1);
        exchange(GL_TEXTURE_3D, format, (struct extent){9, 14, 7}, 1);
        exchange(GL_TEXTURE_2D_ARRAY, format, (struct extent){12, 10, 5}, 1);
        exchange(GL_TEXTURE_CUBE_MAP, format, (struct extent){16, 16, FACES}, 1);
        exchange(GL_TEXTURE_2D, format, (struct extent){1, 1, 0}, 1);
    }
}

static void every_level(void **state)
{
    (void)state;
    exchange(GL_TEXTURE_2D, &formats[2], (struct extent){32, 12, 0}, 6);
    exchange(GL_TEXTURE_2D, &formats[9], (struct extent){20, 20, 0}, 3); /* not down to one texel */
    exchange(GL_TEXTURE_3D, &formats[2], (struct extent){8, 4, 16}, 5);
    exchange(GL_TEXTURE_2D_ARRAY, &formats[14], (struct extent){8, 8, 3}, 4);
    exchange(GL_TEXTURE_CUBE_MAP, &formats[2], (struct extent){8, 8, FACES}, 4);
}

/* ---- textures of CUDA ---- */

static void fetch_diagonal(CUarray array, const unsigned char *expected, unsigned side)
{
    const CUtexObject object = point_texture_of(array);
    struct place places[16];
    float results[16][4];

    for (unsigned i = 0; i < side; i++)
        places[i] = (struct place){.x = (float)i + 0.5f, .y = (float)i + 0.5f};
    fetch("fetch_2d", object, places, side, (uint32_t *)results);
    for (unsigned i = 0; i < side; i++)
        for (unsigned c = 0; c < 4; c++)
            assert_true(results[i][c] == (float)expected[(i * side + i) * 4 + c] / 255);
    ok(cuTexObjectDestroy(object));
}

static void layers_are_textures(void **state)
{
    static const struct {
        GLenum target;
        unsigned layers;
    } rows[] = {{GL_TEXTURE_2D_ARRAY, 3}, {GL_TEXTURE_CUBE_MAP, FACES}};

    ok(cuMemAlloc(&texture_places, PLACES_MAX * sizeof(struct place)));
    ok(cuMemAlloc(&texture_results, PLACES_MAX * 16));
    ok(cuModuleLoadData(&texture_module, TEXTURE_KERNELS));
    (void)state;
    for (unsigned r = 0; r < 2; r++) {
        unsigned char *texels[2];
        struct image image = make_texture(rows[r].target, &formats[2], (struct extent){16, 16, rows[r].layers}, 2, texels);

        ok(cuGraphicsGLRegisterImage(&image.resource, image.name, rows[r].target, CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST));
        ok(cuGraphicsMapResources(1, &image.resource, NULL));
        for (unsigned level = 0; level < 2; level++)
            for (unsigned layer = 0; layer < rows[r].layers; layer++) {
                CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
                CUsurfObject surface;

                ok(cuGraphicsSubResourceGetMappedArray(&resource.res.array.hArray, image.resource, layer, level));
                fetch_diagonal(resource.res.array.hArray, texels[level] + level_bytes(&image, level) / rows[r].layers * layer, 16 >> level);
                ok(cuSurfObjectCreate(&surface, &resource));
                ok(cuSurfObjectDestroy(surface));
            }
        ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
        ok(cuGraphicsUnregisterResource(image.resource));
        free(texels[0]);
        free(texels[1]);
        gl.DeleteTextures(1, &image.name);
    }
    ok(cuModuleUnload(texture_module));
    ok(cuMemFree(texture_places));
    ok(cuMemFree(texture_results));
}

/* ---- what OpenGL draws ---- */

static GLuint make_shader(GLenum kind, const char *text)
{
    GLuint shader = gl.CreateShader(kind);

    gl.ShaderSource(shader, 1, &text, NULL);
    gl.CompileShader(shader);
    return shader;
}

/* Draws texels (x, y, 7, 255) into the bound framebuffer. */
static void draw_gradient(unsigned width, unsigned height)
{
    GLuint program = gl.CreateProgram(), triangle, shaders[2];
    GLint linked = 0;

    shaders[0] = make_shader(GL_VERTEX_SHADER, "#version 330\n"
                                               "void main()\n"
                                               "{\n"
                                               "    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);\n"
                                               "    gl_Position = vec4(corner * 4.0 - 1.0, 0.0, 1.0);\n"
                                               "}\n");
    shaders[1] = make_shader(GL_FRAGMENT_SHADER, "#version 330\n"
                                                 "out vec4 colour;\n"
                                                 "void main()\n"
                                                 "{\n"
                                                 "    colour = vec4(floor(gl_FragCoord.xy), 7.0, 255.0) / 255.0;\n"
                                                 "}\n");
    for (unsigned i = 0; i < 2; i++) {
        gl.AttachShader(program, shaders[i]);
        gl.DeleteShader(shaders[i]);
    }
    gl.LinkProgram(program);
    gl.GetProgramiv(program, GL_LINK_STATUS, &linked);
    assert_true(linked);
    gl.UseProgram(program);
    gl.GenVertexArrays(1, &triangle);
    gl.BindVertexArray(triangle);
    gl.Viewport(0, 0, (GLsizei)width, (GLsizei)height);
    gl.DrawArrays(GL_TRIANGLES, 0, 3);
    gl.BindVertexArray(0);
    gl.DeleteVertexArrays(1, &triangle);
    gl.UseProgram(0);
    gl.DeleteProgram(program);
    gl_ok();
}

/* A kernel inverts the pixels that OpenGL has drawn, and OpenGL reads them. */
static void invert_pixels(CUgraphicsResource resource, unsigned width, unsigned height)
{
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstPitch = (size_t)width * 4,
                          .WidthInBytes = (size_t)width * 4,
                          .Height = height};
    CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcPitch = (size_t)width * 4,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = (size_t)width * 4,
                          .Height = height};
    CUstream stream;
    CUdeviceptr words;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAlloc(&words, (size_t)width * height * 4));
    ok(cuGraphicsMapResources(1, &resource, stream));
    ok(cuGraphicsSubResourceGetMappedArray(&copy.srcArray, resource, 0, 0));
    back.dstArray = copy.srcArray;
    copy.dstDevice = back.srcDevice = words;
    ok(cuMemcpy2DAsync(&copy, stream));
    gl_invert(words, width * height, stream);
    ok(cuMemcpy2DAsync(&back, stream));
    ok(cuGraphicsUnmapResources(1, &resource, stream));
    ok(cuMemFree(words));
    ok(cuStreamDestroy(stream));
}

static void check_pixels(unsigned width, unsigned height)
{
    unsigned char *pixels = malloc((size_t)width * height * 4);

    gl.ReadPixels(0, 0, (GLsizei)width, (GLsizei)height, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    gl_ok();
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++) {
            const unsigned char *pixel = &pixels[(y * width + x) * 4];

            assert_int_equal(pixel[0], 255 - x);
            assert_int_equal(pixel[1], 255 - y);
            assert_int_equal(pixel[2], 255 - 7);
            assert_int_equal(pixel[3], 0);
        }
    free(pixels);
}

enum { WIDTH = 201, HEIGHT = 123 };

static void a_drawn_texture(void **state)
{
    CUgraphicsResource resource;
    GLuint framebuffer, texture;

    (void)state;
    gl.GenTextures(1, &texture);
    gl.BindTexture(GL_TEXTURE_2D, texture);
    gl.TexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, WIDTH, HEIGHT);
    gl.GenFramebuffers(1, &framebuffer);
    gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    assert_int_equal(gl.CheckFramebufferStatus(GL_FRAMEBUFFER), GL_FRAMEBUFFER_COMPLETE);
    ok(cuGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_2D, CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST));
    for (unsigned frame = 0; frame < 3; frame++) {
        draw_gradient(WIDTH, HEIGHT);
        invert_pixels(resource, WIDTH, HEIGHT);
        check_pixels(WIDTH, HEIGHT);
    }
    ok(cuGraphicsUnregisterResource(resource));
    gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
    gl.DeleteFramebuffers(1, &framebuffer);
    gl.DeleteTextures(1, &texture);
}

static void a_drawn_renderbuffer(void **state)
{
    CUgraphicsResource resource;
    GLuint framebuffer, renderbuffer;

    (void)state;
    gl.GenRenderbuffers(1, &renderbuffer);
    gl.BindRenderbuffer(GL_RENDERBUFFER, renderbuffer);
    gl.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, WIDTH, HEIGHT);
    gl.BindRenderbuffer(GL_RENDERBUFFER, 0);
    gl.GenFramebuffers(1, &framebuffer);
    gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer);
    assert_int_equal(gl.CheckFramebufferStatus(GL_FRAMEBUFFER), GL_FRAMEBUFFER_COMPLETE);
    ok(cuGraphicsGLRegisterImage(&resource, renderbuffer, GL_RENDERBUFFER, 0));
    draw_gradient(WIDTH, HEIGHT);
    invert_pixels(resource, WIDTH, HEIGHT);
    check_pixels(WIDTH, HEIGHT);
    ok(cuGraphicsUnregisterResource(resource));
    gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
    gl.DeleteFramebuffers(1, &framebuffer);
    gl.DeleteRenderbuffers(1, &renderbuffer);
}

/* ---- flags, settings, the profile for old programs ---- */

static void flags_of_mapping(void **state)
{
    unsigned char *texels, *others;
    struct image image = make_texture(GL_TEXTURE_2D, &formats[2], (struct extent){30, 20, 0}, 1, &texels);
    CUarray array;

    (void)state;
    others = make_texels(&image, 0);
    ok(cuGraphicsGLRegisterImage(&image.resource, image.name, GL_TEXTURE_2D, CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY));
    ok(cuGraphicsMapResources(1, &image.resource, NULL));
    exchange_subresources(&image, 0, texels, others);
    ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
    if (on_cuttle())
        check_level(&image, 0, texels);
    ok(cuGraphicsResourceSetMapFlags(image.resource, CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD));
    ok(cuGraphicsMapResources(1, &image.resource, NULL));
    ok(cuGraphicsSubResourceGetMappedArray(&array, image.resource, 0, 0));
    copy_array(array, image.extent, 4, others, TO_ARRAY);
    ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
    check_level(&image, 0, others);
    ok(cuGraphicsUnregisterResource(image.resource));
    free(texels);
    free(others);
    gl.DeleteTextures(1, &image.name);
}

/* Settings of transfers, and bindings, neither disturb the copies nor change. */
static void settings_stay(void **state)
{
    static const GLenum settings[] = {GL_PACK_ROW_LENGTH,   GL_PACK_SKIP_ROWS,      GL_PACK_SKIP_PIXELS,   GL_PACK_ALIGNMENT,
                                      GL_UNPACK_ROW_LENGTH, GL_UNPACK_SKIP_ROWS,    GL_UNPACK_SKIP_PIXELS, GL_UNPACK_ALIGNMENT,
                                      GL_PACK_IMAGE_HEIGHT, GL_UNPACK_IMAGE_HEIGHT, GL_PACK_SWAP_BYTES,    GL_UNPACK_SWAP_BYTES};
    static const GLint values[] = {100, 2, 3, 8, 200, 4, 5, 2, 50, 60, 1, 1};
    unsigned char *texels, *others;
    struct image image = make_texture(GL_TEXTURE_3D, &formats[18], (struct extent){11, 9, 4}, 1, &texels);
    GLuint buffers[2], texture;
    GLint value;

    (void)state;
    others = make_texels(&image, 0);
    gl.GenBuffers(2, buffers);
    gl.GenTextures(1, &texture);
    ok(cuGraphicsGLRegisterImage(&image.resource, image.name, GL_TEXTURE_3D, 0));
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++)
        gl.PixelStorei(settings[i], values[i]);
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, buffers[0]);
    gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, buffers[1]);
    gl.BindTexture(GL_TEXTURE_3D, texture);
    ok(cuGraphicsMapResources(1, &image.resource, NULL));
    exchange_subresources(&image, 0, texels, others);
    ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
    for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
        gl.GetIntegerv(settings[i], &value);
        assert_int_equal(value, values[i]);
        gl.PixelStorei(settings[i], settings[i] == GL_PACK_ALIGNMENT || settings[i] == GL_UNPACK_ALIGNMENT);
    }
    gl.GetIntegerv(GL_PIXEL_PACK_BUFFER_BINDING, &value);
    assert_int_equal(value, buffers[0]);
    gl.GetIntegerv(GL_PIXEL_UNPACK_BUFFER_BINDING, &value);
    assert_int_equal(value, buffers[1]);
    gl.GetIntegerv(GL_TEXTURE_BINDING_3D, &value);
    assert_int_equal(value, texture);
    gl.BindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    gl.BindTexture(GL_TEXTURE_3D, 0);
    check_level(&image, 0, others);
    ok(cuGraphicsUnregisterResource(image.resource));
    free(texels);
    free(others);
    gl.DeleteBuffers(2, buffers);
    gl.DeleteTextures(1, &texture);
    gl.DeleteTextures(1, &image.name);
}

/* Formats that only the compatibility profile has, and those without a size. */
static void old_formats(void **state)
{
    static const struct format old[] = {
        {0x8040 /* GL_LUMINANCE8 */, 0x1909 /* GL_LUMINANCE */, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
        {0x803c /* GL_ALPHA8 */, GL_ALPHA, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
        {0x804b /* GL_INTENSITY8 */, GL_RED, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
        {0x8045 /* GL_LUMINANCE8_ALPHA8 */, 0x190a /* GL_LUMINANCE_ALPHA */, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 2, 1},
        {0x8818 /* GL_LUMINANCE32F_ARB */, 0x1909, GL_FLOAT, CU_AD_FORMAT_FLOAT, 1, 4},
        {GL_RGBA, GL_RGBA, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 4, 1},
        {GL_RED, GL_RED, GL_UNSIGNED_BYTE, CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
    };
    EGLContext core = eglGetCurrentContext(), compatibility = gl_create(GL_COMPATIBILITY, EGL_NO_CONTEXT);

    (void)state;
    if (compatibility == EGL_NO_CONTEXT)
        skip();
    for (unsigned i = 0; i < sizeof old / sizeof *old; i++)
        exchange(GL_TEXTURE_2D, &old[i], (struct extent){13, 17, 0}, 1);
    gl_make_current(core);
    gl_destroy(compatibility);
}

/* ---- errors ---- */

static void formats_that_cuda_lacks(void **state)
{
    static const GLenum others[] = {
        GL_RGB8,           GL_RGB32F,  GL_RGB10_A2,       GL_SRGB8_ALPHA8, GL_DEPTH_COMPONENT24,         GL_DEPTH24_STENCIL8,
        GL_R11F_G11F_B10F, GL_RGB5_A1, GL_STENCIL_INDEX8, GL_RGBA8_SNORM,  GL_COMPRESSED_RGBA_BPTC_UNORM};
    CUgraphicsResource resource = MADE_UP(CUgraphicsResource);

    (void)state;
    if (!on_cuttle())
        skip();
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        GLuint texture;

        gl.GenTextures(1, &texture);
        gl.BindTexture(GL_TEXTURE_2D, texture);
        gl.TexStorage2D(GL_TEXTURE_2D, 1, others[i], 16, 16);
        gl.BindTexture(GL_TEXTURE_2D, 0);
        gl_ok();
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_2D, 0));
        gl_ok();
        gl.DeleteTextures(1, &texture);
    }
    assert_ptr_equal(resource, MADE_UP(CUgraphicsResource));
}

static void errors_of_registration(void **state)
{
    CUgraphicsResource resource, other;
    EGLContext context = eglGetCurrentContext();
    GLuint empty, many, samples;
    unsigned char *texels;
    struct image image = make_texture(GL_TEXTURE_2D, &formats[2], (struct extent){16, 16, 0}, 1, &texels);

    (void)state;
    free(texels);
    if (!on_cuttle())
        skip();
    gl.GenTextures(1, &empty);
    gl.BindTexture(GL_TEXTURE_2D, empty);
    gl.BindTexture(GL_TEXTURE_2D, 0);
    gl.GenTextures(1, &many);
    gl.BindTexture(GL_TEXTURE_2D_MULTISAMPLE, many);
    gl.TexStorage2DMultisample(GL_TEXTURE_2D_MULTISAMPLE, 4, GL_RGBA8, 16, 16, GL_TRUE);
    gl.BindTexture(GL_TEXTURE_2D_MULTISAMPLE, 0);
    gl.GenRenderbuffers(1, &samples);
    gl.BindRenderbuffer(GL_RENDERBUFFER, samples);
    gl.RenderbufferStorageMultisample(GL_RENDERBUFFER, 4, GL_RGBA8, 16, 16);
    gl.BindRenderbuffer(GL_RENDERBUFFER, 0);
    gl_ok();
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(NULL, image.name, GL_TEXTURE_2D, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsGLRegisterImage(&resource, 0, GL_TEXTURE_2D, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsGLRegisterImage(&resource, 12345, GL_TEXTURE_2D, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsGLRegisterImage(&resource, 12345, GL_RENDERBUFFER, 0));
    gives(CUDA_ERROR_INVALID_VALUE,
          cuGraphicsGLRegisterImage(&resource, image.name, GL_TEXTURE_3D, 0)); /* "must match the type of the object" */
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, image.name, GL_TEXTURE_1D, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, image.name, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, many, GL_TEXTURE_2D_MULTISAMPLE, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, samples, GL_RENDERBUFFER, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, empty, GL_TEXTURE_2D, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, image.name, GL_TEXTURE_2D, 3));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterImage(&resource, image.name, GL_TEXTURE_2D, 16));
    gl_make_current(EGL_NO_CONTEXT);
    gives(CUDA_ERROR_OPERATING_SYSTEM, cuGraphicsGLRegisterImage(&resource, image.name, GL_TEXTURE_2D, 0));
    gl_make_current(context);
    ok(cuGraphicsGLRegisterImage(&resource, image.name, GL_TEXTURE_2D, CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER));
    ok(cuGraphicsMapResources(1, &resource, NULL));
    gives(CUDA_ERROR_ALREADY_MAPPED, cuGraphicsGLRegisterImage(&other, image.name, GL_TEXTURE_2D, 0));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    ok(cuGraphicsUnregisterResource(resource));
    gl_ok();
    gl.DeleteTextures(1, &image.name);
    gl.DeleteTextures(1, &empty);
    gl.DeleteTextures(1, &many);
    gl.DeleteRenderbuffers(1, &samples);
}

/* Arrays belong to their resource: they end with it. */
static void arrays_end_with_their_resource(void **state)
{
    unsigned char *texels;
    struct image image = make_texture(GL_TEXTURE_2D_ARRAY, &formats[2], (struct extent){16, 16, 3}, 1, &texels);
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUmipmappedArray mipmapped;
    CUdeviceptr pointer;
    CUarray array, layer;
    size_t bytes;

    (void)state;
    ok(cuGraphicsGLRegisterImage(&image.resource, image.name, GL_TEXTURE_2D_ARRAY, 0));
    if (on_cuttle()) {
        gives(CUDA_ERROR_NOT_MAPPED, cuGraphicsSubResourceGetMappedArray(&array, image.resource, 0, 0));
        gives(CUDA_ERROR_NOT_MAPPED, cuGraphicsResourceGetMappedMipmappedArray(&mipmapped, image.resource));
        gives(CUDA_ERROR_NOT_MAPPED_AS_POINTER, cuGraphicsResourceGetMappedPointer(&pointer, &bytes, image.resource));
    }
    ok(cuGraphicsMapResources(1, &image.resource, NULL));
    if (on_cuttle())
        gives(CUDA_ERROR_NOT_MAPPED_AS_POINTER, cuGraphicsResourceGetMappedPointer(&pointer, &bytes, image.resource));
    ok(cuGraphicsSubResourceGetMappedArray(&layer, image.resource, 2, 0));
    ok(cuGraphicsResourceGetMappedMipmappedArray(&mipmapped, image.resource));
    ok(cuMipmappedArrayGetLevel(&array, mipmapped, 0));
    if (on_cuttle()) {
        gives(CUDA_ERROR_ARRAY_IS_MAPPED, cuMipmappedArrayDestroy(mipmapped));
        gives(CUDA_ERROR_ARRAY_IS_MAPPED, cuArrayDestroy(array));
        gives(CUDA_ERROR_ARRAY_IS_MAPPED, cuArrayDestroy(layer));
    }
    ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
    ok(cuGraphicsUnregisterResource(image.resource));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&desc, layer));
        gives(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor(&desc, array));
    }
    free(texels);
    gl.DeleteTextures(1, &image.name);
}

/* A texture that was deleted, or made anew with another size. */
static void textures_that_changed(void **state)
{
    unsigned char *texels;
    struct image image = make_texture(GL_TEXTURE_2D, &formats[2], (struct extent){16, 16, 0}, 1, &texels);

    (void)state;
    free(texels);
    if (!on_cuttle())
        skip();
    ok(cuGraphicsGLRegisterImage(&image.resource, image.name, GL_TEXTURE_2D, 0));
    gl.BindTexture(GL_TEXTURE_2D, image.name);
    gl.TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 64, 64, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsMapResources(1, &image.resource, NULL));
    gl.TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 16, 16, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    ok(cuGraphicsMapResources(1, &image.resource, NULL));
    ok(cuGraphicsUnmapResources(1, &image.resource, NULL));
    gl.BindTexture(GL_TEXTURE_2D, 0);
    gl.DeleteTextures(1, &image.name);
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsMapResources(1, &image.resource, NULL));
    ok(cuGraphicsUnregisterResource(image.resource));
    gl_ok();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format),
        cmocka_unit_test(every_target),
        cmocka_unit_test(every_level),
        cmocka_unit_test(layers_are_textures),
        cmocka_unit_test(a_drawn_texture),
        cmocka_unit_test(a_drawn_renderbuffer),
        cmocka_unit_test(flags_of_mapping),
        cmocka_unit_test(settings_stay),
        cmocka_unit_test(old_formats),
        cmocka_unit_test(formats_that_cuda_lacks),
        cmocka_unit_test(errors_of_registration),
        cmocka_unit_test(arrays_end_with_their_resource),
        cmocka_unit_test(textures_that_changed),
    };

    return cmocka_run_group_tests(tests, gl_with_context, gl_without_context);
}
