/* SPDX-License-Identifier: Apache-2.0 */
/* A model of texture fetches in double precision, by the CUDA C++ Programming Guide ("Texture Fetching", "Texture Functions"). Where the guide is
 * silent it says what an H100 does: missing channels are 0; a line with a border is filtered like the row y = 0 of a plane. */
#ifndef CUTTLE_TEXTURE_MODEL_H
#define CUTTLE_TEXTURE_MODEL_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

enum model_geometry { MODEL_1D, MODEL_2D, MODEL_3D, MODEL_1D_LAYERED, MODEL_2D_LAYERED, MODEL_CUBE, MODEL_CUBE_LAYERED };
#define MODEL_LEVELS 8

struct model {
    enum model_geometry geometry;
    CUarray_format format;
    unsigned channels;
    CUaddress_mode address;
    bool linear, normalized_coordinates, as_integer, linear_levels, seamless;
    double border[4];
    double bias, min_level, max_level;
    unsigned n_levels;
    struct {
        unsigned width, height, depth; /* depth: planes, layers, or faces */
        const unsigned char *texels;   /* without padding */
    } levels[MODEL_LEVELS];
};

struct model_place {
    double x, y, z;
    int layer;
    bool has_level;
    double level;
    int offset[3]; /* in texels of the level */
};

struct model_result {
    double values[4];
    double tolerance;  /* of each value; 0: exact, after rounding to float */
    bool is_uncertain; /* the place is too near the border of two texels, levels or faces: rounding decides */
};

unsigned model_texel_bytes(const struct model *model);
bool model_reads_floats(const struct model *model);
struct model_result model_fetch(const struct model *model, const struct model_place *place);

#endif
