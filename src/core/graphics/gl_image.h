/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of textures and renderbuffers of OpenGL. No binding and no setting that the application has made changes. */
#ifndef CT_CORE_GL_IMAGE_H
#define CT_CORE_GL_IMAGE_H

#include "gl.h"

/* How texels are transferred, and what they are in CUDA. */
struct ct_gl_format {
    CUarray_format format;
    unsigned channels, texel_bytes;
    unsigned layout, type; /* of glGetTexImage */
};

struct ct_gl_image {
    unsigned name, target;
    unsigned internal_format; /* of a renderbuffer */
    struct ct_gl_format format;
    unsigned levels;
    unsigned width, height, depth; /* of level 0; `depth`: also the number of layers or faces; 0: two dimensions */
};

/* The extent of a level. Layers are not fewer in smaller levels. */
struct ct_gl_extent {
    unsigned width, height, slices;
};
struct ct_gl_extent ct_gl_image_extent(const struct ct_gl_image *image, unsigned level);

/* INVALID_HANDLE: there is no such image in the context; INVALID_VALUE: the target is not its own, or CUDA has no such images (formats of three
 * channels, with depth, in the colour space sRGB, compressed; several samples; nothing is stored in it). */
CUresult ct_gl_image_init(const struct ct_gl *gl, unsigned name, unsigned target, struct ct_gl_image *out);

enum ct_gl_direction { CT_GL_READ, CT_GL_WRITE };

/* The memory to which texels are read, or from which they are written. */
struct ct_gl_texels {
    unsigned buffer; /* of OpenGL; 0: `bytes` is memory of the host */
    char *bytes;     /* or an offset in the buffer */
};

/* Reads or writes a level, whose rows and slices follow each other without gaps. UNKNOWN: OpenGL reports an error. */
CUresult ct_gl_image_move(const struct ct_gl *gl, const struct ct_gl_image *image, unsigned level, enum ct_gl_direction direction,
                          struct ct_gl_texels texels);

#endif
