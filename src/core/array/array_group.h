/* SPDX-License-Identifier: Apache-2.0 */
/* What arrays are levels of, for those who make and map them: array.c and array_tiles.c. */
#ifndef CT_CORE_ARRAY_GROUP_H
#define CT_CORE_ARRAY_GROUP_H

#include "array.h"
#include "core/backing/memory_backing.h"

struct ct_array_tiles;

struct ct_array_group {
    struct ct_object object;             /* with a handle only if it is a mipmapped array */
    struct ct_context *context;          /* a reference: keeps the struct */
    struct ct_array_group *next, **link; /* in the context's list; link NULL: in none. Guarded by context->lock */
    struct ct_texel_image *image;        /* opaque images, or NULL */
    struct ct_backing backing;           /* plain memory, or nothing but what an image is counted for */
    struct ct_array_tiles *tiles;        /* of an image whose memory is bound later, or NULL */
    bool is_mipmapped;
    unsigned n_levels;
    struct ct_array levels[];
};

/* The group behind the handle of a mipmapped array, with a use of its context, which release gives back. INVALID_HANDLE. */
CUresult ct_array_group_lookup(CUmipmappedArray handle, struct ct_array_group **out);
void ct_array_group_release(struct ct_array_group *group);

#endif
