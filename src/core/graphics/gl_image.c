/* SPDX-License-Identifier: Apache-2.0 */
/* Textures are read by glGetTexImage and written by glTexSubImage2D or 3D. These functions do not know renderbuffers, whose texels are therefore copied
 * from and to a texture of the same format by glCopyImageSubData. */
#include "gl_image.h"

#include "core/base/log.h"
#include "gl_names.h"

#include <string.h>

#define CT_CHANNEL "graphics"
#define N_CHANNELS 6 /* red, green, blue, alpha, luminance, intensity */
#define FACES 6

/* ---- formats ---- */

/* By which channels there are, with the layouts for numbers that are converted to floats in shaders, and for integers. */
static const struct {
    bool has[N_CHANNELS];
    unsigned count, layout, integer_layout;
} layouts[] = {
    {{1, 0, 0, 0, 0, 0}, 1, GL_RED, GL_RED_INTEGER},
    {{1, 1, 0, 0, 0, 0}, 2, GL_RG, GL_RG_INTEGER},
    {{1, 1, 1, 1, 0, 0}, 4, GL_RGBA, GL_RGBA_INTEGER},
    {{0, 0, 0, 1, 0, 0}, 1, GL_ALPHA, GL_ALPHA_INTEGER},
    {{0, 0, 0, 0, 1, 0}, 1, GL_LUMINANCE, GL_LUMINANCE_INTEGER},
    {{0, 0, 0, 1, 1, 0}, 2, GL_LUMINANCE_ALPHA, GL_LUMINANCE_ALPHA_INTEGER},
    {{0, 0, 0, 0, 0, 1}, 1, GL_RED, GL_RED_INTEGER},
};

/* By the bits and the type of every channel. */
static const struct {
    int bits, type;
    CUarray_format format;
    unsigned transfer;
} types[] = {
    {8, GL_UNSIGNED_NORMALIZED, CU_AD_FORMAT_UNSIGNED_INT8, GL_UNSIGNED_BYTE},
    {8, GL_UNSIGNED_INT, CU_AD_FORMAT_UNSIGNED_INT8, GL_UNSIGNED_BYTE},
    {8, GL_INT, CU_AD_FORMAT_SIGNED_INT8, GL_BYTE},
    {16, GL_UNSIGNED_NORMALIZED, CU_AD_FORMAT_UNSIGNED_INT16, GL_UNSIGNED_SHORT},
    {16, GL_UNSIGNED_INT, CU_AD_FORMAT_UNSIGNED_INT16, GL_UNSIGNED_SHORT},
    {16, GL_INT, CU_AD_FORMAT_SIGNED_INT16, GL_SHORT},
    {16, GL_FLOAT, CU_AD_FORMAT_HALF, GL_HALF_FLOAT},
    {32, GL_UNSIGNED_INT, CU_AD_FORMAT_UNSIGNED_INT32, GL_UNSIGNED_INT},
    {32, GL_INT, CU_AD_FORMAT_SIGNED_INT32, GL_INT},
    {32, GL_FLOAT, CU_AD_FORMAT_FLOAT, GL_FLOAT},
};

/* What OpenGL says of a level. */
struct level_facts {
    int width, height, depth, internal_format, compressed, depth_bits;
    int bits[N_CHANNELS], type[N_CHANNELS];
};

static struct level_facts read_facts(const struct ct_gl *gl, unsigned target)
{
    struct level_facts facts = {0};
    unsigned n = 4; /* luminance and intensity are not names of the core profile; every format of it has one of these four, or depth */

    gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_WIDTH, &facts.width);
    gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_HEIGHT, &facts.height);
    gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_DEPTH, &facts.depth);
    gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_INTERNAL_FORMAT, &facts.internal_format);
    gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_COMPRESSED, &facts.compressed);
    gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_DEPTH_SIZE, &facts.depth_bits);
    for (unsigned i = 0; i < n; i++) {
        gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_RED_SIZE + i, &facts.bits[i]);
        if (facts.bits[i])
            gl->GetTexLevelParameteriv(target, 0, GL_TEXTURE_RED_TYPE + i, &facts.type[i]);
        if (i == 3 && facts.width && !facts.bits[0] && !facts.depth_bits)
            n = N_CHANNELS;
    }
    if (n == N_CHANNELS)
        (void)gl->GetError(); /* a stencil of the core profile, which has neither */
    return facts;
}

static bool fits(const struct level_facts *facts, size_t layout, int *out_bits, int *out_type)
{
    *out_bits = *out_type = 0;
    for (unsigned i = 0; i < N_CHANNELS; i++) {
        if ((facts->bits[i] != 0) != layouts[layout].has[i])
            return false;
        if (!facts->bits[i])
            continue;
        if (*out_bits && (facts->bits[i] != *out_bits || facts->type[i] != *out_type))
            return false;
        *out_bits = facts->bits[i];
        *out_type = facts->type[i];
    }
    return true;
}

static CUresult find_format(const struct level_facts *facts, struct ct_gl_format *out)
{
    const bool is_srgb = facts->internal_format >= GL_SRGB && facts->internal_format <= GL_SLUMINANCE8;
    int bits, type;

    for (size_t i = 0; i < sizeof layouts / sizeof *layouts && !is_srgb && !facts->compressed && !facts->depth_bits; i++) {
        if (!fits(facts, i, &bits, &type))
            continue;
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (types[k].bits == bits && types[k].type == type) {
                *out = (struct ct_gl_format){
                    .format = types[k].format,
                    .channels = layouts[i].count,
                    .texel_bytes = layouts[i].count * (unsigned)bits / 8,
                    .layout = type == GL_INT || type == GL_UNSIGNED_INT ? layouts[i].integer_layout : layouts[i].layout,
                    .type = types[k].transfer,
                };
                return CUDA_SUCCESS;
            }
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "CUDA has no format for OpenGL's 0x%x (red has %d bits, green %d, blue %d, alpha %d)",
                   (unsigned)facts->internal_format, facts->bits[0], facts->bits[1], facts->bits[2], facts->bits[3]);
}

/* ---- settings ---- */

/* Of pixel transfers; all are 0 while the library transfers, but the alignments. */
static const unsigned stores[] = {
    GL_PACK_SWAP_BYTES,    GL_PACK_LSB_FIRST,      GL_PACK_ROW_LENGTH,  GL_PACK_SKIP_ROWS,    GL_PACK_SKIP_PIXELS, GL_PACK_SKIP_IMAGES,
    GL_PACK_IMAGE_HEIGHT,  GL_UNPACK_SWAP_BYTES,   GL_UNPACK_LSB_FIRST, GL_UNPACK_ROW_LENGTH, GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS,
    GL_UNPACK_SKIP_IMAGES, GL_UNPACK_IMAGE_HEIGHT, GL_PACK_ALIGNMENT,   GL_UNPACK_ALIGNMENT,
};
#define N_STORES (sizeof stores / sizeof *stores)
#define N_ALIGNMENTS 2 /* the last ones */

struct settings {
    int stores[N_STORES], pack_buffer, unpack_buffer;
};

static void settings_change(const struct ct_gl *gl, unsigned buffer, struct settings *before)
{
    for (size_t i = 0; i < N_STORES; i++) {
        gl->GetIntegerv(stores[i], &before->stores[i]);
        gl->PixelStorei(stores[i], i >= N_STORES - N_ALIGNMENTS);
    }
    gl->GetIntegerv(GL_PIXEL_PACK_BUFFER_BINDING, &before->pack_buffer);
    gl->GetIntegerv(GL_PIXEL_UNPACK_BUFFER_BINDING, &before->unpack_buffer);
    gl->BindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
    gl->BindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
}

static void settings_restore(const struct ct_gl *gl, const struct settings *before)
{
    for (size_t i = 0; i < N_STORES; i++)
        gl->PixelStorei(stores[i], before->stores[i]);
    gl->BindBuffer(GL_PIXEL_PACK_BUFFER, (unsigned)before->pack_buffer);
    gl->BindBuffer(GL_PIXEL_UNPACK_BUFFER, (unsigned)before->unpack_buffer);
}

/* The texture targets that CUDA supports, each with the name by which glGetIntegerv returns the texture that is bound to it. */
static const struct {
    unsigned target, binding;
} targets[] = {
    {GL_TEXTURE_2D, GL_TEXTURE_BINDING_2D},
    {GL_TEXTURE_RECTANGLE, GL_TEXTURE_BINDING_RECTANGLE},
    {GL_TEXTURE_CUBE_MAP, GL_TEXTURE_BINDING_CUBE_MAP},
    {GL_TEXTURE_3D, GL_TEXTURE_BINDING_3D},
    {GL_TEXTURE_2D_ARRAY, GL_TEXTURE_BINDING_2D_ARRAY},
};

/* 0: there is no such target. */
static unsigned binding_of(unsigned target)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].target == target)
            return targets[i].binding;
    return 0;
}

/* Whether the levels have slices, in depth or as layers, that are transferred together. */
static bool has_slices(unsigned target)
{
    return target == GL_TEXTURE_3D || target == GL_TEXTURE_2D_ARRAY;
}

static unsigned bind(const struct ct_gl *gl, unsigned target, unsigned texture)
{
    int before = 0;

    gl->GetIntegerv(binding_of(target), &before);
    gl->BindTexture(target, texture);
    return (unsigned)before;
}

/* ---- description ---- */

static unsigned halved(unsigned side, unsigned level)
{
    return side >> level ? side >> level : 1;
}

struct ct_gl_extent ct_gl_image_extent(const struct ct_gl_image *image, unsigned level)
{
    const unsigned depth = image->depth ? image->depth : 1;

    return (struct ct_gl_extent){halved(image->width, level), halved(image->height, level),
                                 image->target == GL_TEXTURE_3D ? halved(depth, level) : depth};
}

/* The number of levels of the bound texture that follow each other without a gap, each half as large as the one before. */
static unsigned count_levels(const struct ct_gl *gl, const struct ct_gl_image *image, unsigned face)
{
    unsigned levels = 1;
    int most = 0;

    if (image->target == GL_TEXTURE_RECTANGLE)
        return 1;
    gl->GetTexParameteriv(image->target, GL_TEXTURE_MAX_LEVEL, &most);
    while ((int)levels <= most && (image->width >> levels || image->height >> levels || image->depth >> levels)) {
        const struct ct_gl_extent extent = ct_gl_image_extent(image, levels);
        int width = 0, height = 0;

        gl->GetTexLevelParameteriv(face, (int)levels, GL_TEXTURE_WIDTH, &width);
        gl->GetTexLevelParameteriv(face, (int)levels, GL_TEXTURE_HEIGHT, &height);
        if (width != (int)extent.width || height != (int)extent.height)
            break;
        levels++;
    }
    return levels;
}

/* Describes the bound texture. */
static CUresult describe(const struct ct_gl *gl, struct ct_gl_image *image)
{
    const unsigned face = image->target == GL_TEXTURE_CUBE_MAP ? GL_TEXTURE_CUBE_MAP_POSITIVE_X : image->target;
    const struct level_facts facts = read_facts(gl, face);
    CUresult r;

    if (facts.width <= 0 || facts.height <= 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "image %u of OpenGL has no texels", image->name);
    if ((r = find_format(&facts, &image->format)) != CUDA_SUCCESS)
        return r;
    image->width = (unsigned)facts.width;
    image->height = (unsigned)facts.height;
    image->depth = has_slices(image->target) ? (unsigned)facts.depth : 0;
    if (image->target == GL_TEXTURE_CUBE_MAP)
        image->depth = FACES;
    image->levels = count_levels(gl, image, face);
    return ct_gl_check(gl, "a texture has no description");
}

static CUresult init_texture(const struct ct_gl *gl, struct ct_gl_image *image)
{
    unsigned before;
    CUresult r;

    if (!gl->IsTexture(image->name))
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%u is not a texture of the OpenGL context", image->name);
    before = bind(gl, image->target, image->name);
    if (gl->GetError() != GL_NO_ERROR)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "texture %u of OpenGL has not the target 0x%x", image->name, image->target);
    else
        r = describe(gl, image);
    gl->BindTexture(image->target, before);
    return r;
}

/* ---- renderbuffers ---- */

/* A texture like the renderbuffer. The caller deletes it, also after a failure. */
static CUresult make_texture(const struct ct_gl *gl, const struct ct_gl_image *image, struct ct_gl_image *out)
{
    unsigned before;

    *out = *image;
    out->target = GL_TEXTURE_2D;
    gl->GenTextures(1, &out->name);
    before = bind(gl, GL_TEXTURE_2D, out->name);
    gl->TexStorage2D(GL_TEXTURE_2D, 1, image->internal_format, (int)image->width, (int)image->height);
    gl->BindTexture(GL_TEXTURE_2D, before);
    return gl->GetError() == GL_NO_ERROR
               ? CUDA_SUCCESS
               : ct_fail(CUDA_ERROR_INVALID_VALUE, "there are no textures of a renderbuffer's format 0x%x", image->internal_format);
}

static void copy_texels(const struct ct_gl *gl, const struct ct_gl_image *from, const struct ct_gl_image *to)
{
    gl->CopyImageSubData(from->name, from->target, 0, 0, 0, 0, to->name, to->target, 0, 0, 0, 0, (int)from->width, (int)from->height, 1);
}

static CUresult describe_renderbuffer(const struct ct_gl *gl, struct ct_gl_image *image)
{
    int before = 0, width = 0, height = 0, format = 0, samples = 0;

    gl->GetIntegerv(GL_RENDERBUFFER_BINDING, &before);
    gl->BindRenderbuffer(GL_RENDERBUFFER, image->name);
    gl->GetRenderbufferParameteriv(GL_RENDERBUFFER, GL_RENDERBUFFER_WIDTH, &width);
    gl->GetRenderbufferParameteriv(GL_RENDERBUFFER, GL_RENDERBUFFER_HEIGHT, &height);
    gl->GetRenderbufferParameteriv(GL_RENDERBUFFER, GL_RENDERBUFFER_INTERNAL_FORMAT, &format);
    gl->GetRenderbufferParameteriv(GL_RENDERBUFFER, GL_RENDERBUFFER_SAMPLES, &samples);
    gl->BindRenderbuffer(GL_RENDERBUFFER, (unsigned)before);
    if (width <= 0 || height <= 0 || samples > 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "renderbuffer %u of OpenGL has %d x %d texels and %d samples", image->name, width, height,
                       samples);
    image->width = (unsigned)width;
    image->height = (unsigned)height;
    image->internal_format = (unsigned)format;
    image->levels = 1;
    return CUDA_SUCCESS;
}

static CUresult init_renderbuffer(const struct ct_gl *gl, struct ct_gl_image *image)
{
    struct ct_gl_image texture;
    CUresult r;

    if (!gl->IsRenderbuffer(image->name))
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%u is not a renderbuffer of the OpenGL context", image->name);
    if (!gl->CopyImageSubData || !gl->TexStorage2D)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "renderbuffers need OpenGL 4.3");
    if ((r = describe_renderbuffer(gl, image)) != CUDA_SUCCESS)
        return r;
    if ((r = make_texture(gl, image, &texture)) == CUDA_SUCCESS)
        r = init_texture(gl, &texture);
    if (r == CUDA_SUCCESS)
        image->format = texture.format;
    gl->DeleteTextures(1, &texture.name);
    return r;
}

CUresult ct_gl_image_init(const struct ct_gl *gl, unsigned name, unsigned target, struct ct_gl_image *out)
{
    struct ct_gl_image image = {.name = name, .target = target};
    CUresult r;

    if (target != GL_RENDERBUFFER && !binding_of(target))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "CUDA has no images of OpenGL's target 0x%x", target);
    r = target == GL_RENDERBUFFER ? init_renderbuffer(gl, &image) : init_texture(gl, &image);
    if (r == CUDA_SUCCESS)
        *out = image;
    return r;
}

/* ---- texels ---- */

static void read_bound(const struct ct_gl *gl, const struct ct_gl_image *image, unsigned level, char *texels)
{
    const struct ct_gl_extent extent = ct_gl_image_extent(image, level);
    const uint64_t face_bytes = (uint64_t)extent.width * extent.height * image->format.texel_bytes;

    if (image->target != GL_TEXTURE_CUBE_MAP)
        gl->GetTexImage(image->target, (int)level, image->format.layout, image->format.type, texels);
    for (unsigned face = 0; face < FACES && image->target == GL_TEXTURE_CUBE_MAP; face++)
        gl->GetTexImage(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, (int)level, image->format.layout, image->format.type,
                        texels + face * face_bytes);
}

static void write_bound(const struct ct_gl *gl, const struct ct_gl_image *image, unsigned level, const char *texels)
{
    const struct ct_gl_extent extent = ct_gl_image_extent(image, level);
    const uint64_t face_bytes = (uint64_t)extent.width * extent.height * image->format.texel_bytes;
    const int width = (int)extent.width, height = (int)extent.height;

    if (has_slices(image->target))
        gl->TexSubImage3D(image->target, (int)level, 0, 0, 0, width, height, (int)extent.slices, image->format.layout, image->format.type,
                          texels);
    else if (image->target != GL_TEXTURE_CUBE_MAP)
        gl->TexSubImage2D(image->target, (int)level, 0, 0, width, height, image->format.layout, image->format.type, texels);
    for (unsigned face = 0; face < FACES && image->target == GL_TEXTURE_CUBE_MAP; face++)
        gl->TexSubImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, (int)level, 0, 0, width, height, image->format.layout, image->format.type,
                          texels + face * face_bytes);
}

static CUresult move_texture(const struct ct_gl *gl, const struct ct_gl_image *texture, unsigned level, enum ct_gl_direction direction,
                             struct ct_gl_texels texels)
{
    struct settings settings;
    unsigned before;

    settings_change(gl, texels.buffer, &settings);
    before = bind(gl, texture->target, texture->name);
    if (direction == CT_GL_READ)
        read_bound(gl, texture, level, texels.bytes);
    else
        write_bound(gl, texture, level, texels.bytes);
    gl->BindTexture(texture->target, before);
    settings_restore(gl, &settings);
    return ct_gl_check(gl, "the texels of a texture cannot be transferred");
}

static CUresult move_renderbuffer(const struct ct_gl *gl, const struct ct_gl_image *image, enum ct_gl_direction direction,
                                  struct ct_gl_texels texels)
{
    struct ct_gl_image texture;
    CUresult r = make_texture(gl, image, &texture);

    if (r == CUDA_SUCCESS && direction == CT_GL_READ)
        copy_texels(gl, image, &texture);
    if (r == CUDA_SUCCESS)
        r = move_texture(gl, &texture, 0, direction, texels);
    if (r == CUDA_SUCCESS && direction == CT_GL_WRITE) {
        copy_texels(gl, &texture, image);
        r = ct_gl_check(gl, "the texels of a renderbuffer cannot be written");
    }
    gl->DeleteTextures(1, &texture.name);
    return r;
}

CUresult ct_gl_image_move(const struct ct_gl *gl, const struct ct_gl_image *image, unsigned level, enum ct_gl_direction direction,
                          struct ct_gl_texels texels)
{
    return image->target == GL_RENDERBUFFER ? move_renderbuffer(gl, image, direction, texels)
                                            : move_texture(gl, image, level, direction, texels);
}
