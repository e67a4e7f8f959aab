/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of fetch_kernels.cu and surface_kernels.cu take: shared with the programs that launch them. */
#ifndef CUTTLE_TESTS_COMPILED_PLACES_H
#define CUTTLE_TESTS_COMPILED_PLACES_H

struct fetch_place {
    float x, y, z, level;
    float ddx[2], ddy[2]; /* derivatives of (x, y) */
    int layer, padding[3];
};

struct surface_place {
    int x, y, z, layer; /* x in elements; layer: of a cubemap, its face */
};

enum surface_mode { SURFACE_TRAP, SURFACE_CLAMP, SURFACE_ZERO };

#endif
