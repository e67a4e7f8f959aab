/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface instructions (PTX ISA, "Texture Instructions", "Surface Instructions"): what their words say. */
#ifndef PTX2SPV_TEXTURE_ACCESS_H
#define PTX2SPV_TEXTURE_ACCESS_H

#include "ptx2spv/syntax/ast.h"

enum ct_texture_kind {
    CT_TEXTURE_BASE,   /* tex with float coordinates */
    CT_TEXTURE_LEVEL,  /* tex.level */
    CT_TEXTURE_GRAD,   /* tex.grad */
    CT_TEXTURE_TEXEL,  /* tex and tex.level with integer coordinates */
    CT_TEXTURE_GATHER, /* tld4 */
    CT_TEXTURE_QUERY,  /* txq, suq, istypep */
    CT_SURFACE_LOAD,   /* suld.b */
    CT_SURFACE_STORE,  /* sust.b */
    CT_SURFACE_FORMAT, /* sust.p */
    CT_SURFACE_REDUCE, /* sured.b */
};

struct ct_texture_geometry {
    const char *word;    /* a2d */
    uint8_t coordinates; /* without the layer */
    uint8_t operands;    /* of the vector of coordinates with the sample, the layer and, from 3 on, padding to 4 */
    bool layered;        /* an operand before the coordinates is the layer */
    uint8_t derivatives; /* coordinates of a derivative */
    uint8_t offsets;     /* coordinates of an offset */
    bool multisample;    /* the first operand is the number of a sample */
};

struct ct_texture_access {
    enum ct_texture_kind kind;
    const struct ct_texture_geometry *geometry; /* NULL for queries */
    enum ptx_type type;                         /* of the data */
    uint8_t vector;                             /* number of elements of a surface access: 1, 2 or 4 */
    uint8_t channel;                            /* GATHER */
    uint8_t boundary;                           /* surfaces: 0 trap, 1 clamp, 2 zero, as in fetch.cu */
    uint8_t query;                              /* as in fetch.cu */
    bool has_level;                             /* TEXEL, QUERY: of a level */
    bool is_type;                               /* QUERY: istypep, whose result is a predicate */
    enum ptx_operation operation;               /* REDUCE */
};

bool ct_is_texture_opcode(enum ptx_opcode opcode);
/* Reads the words of an instruction. False: it has forms that are not supported. */
bool ct_texture_access_read(const struct ptx_instruction *insn, struct ct_texture_access *out);
/* Whether the results of a fetch are halves. */
bool ct_texture_has_halves(const struct ct_texture_access *access);
/* The function of fetch.cu that sampling an image calls first, or NULL: for a cube the one that finds the face; for layers and volumes, whose samplers do
 * not take coordinates in texels, the one that reads the factors that normalize them. Gathers do not sample images. */
const char *ct_texture_image_function_or_null(const struct ct_texture_access *access);

#endif
