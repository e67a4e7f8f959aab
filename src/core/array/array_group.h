/* SPDX-License-Identifier: Apache-2.0 */
/* The groups to which arrays belong as levels. */
#ifndef CT_CORE_ARRAY_GROUP_H
#define CT_CORE_ARRAY_GROUP_H

#include "array.h"
#include "core/backing/memory_backing.h"
#include "core/copy/place_changes.h"

#define CT_ARRAY_LEVEL_ALIGN ((uint64_t)512) /* of levels in plain memory, as CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT */

#define CT_ARRAY_PLANES 3

struct ct_array_decoded;
struct ct_array_mirror;
struct ct_array_tiles;

struct ct_array_group {
    struct ct_object object;                           /* it has a handle only if it is a mipmapped array */
    struct ct_context *context;                        /* a reference, which keeps the struct alive */
    struct ct_array_group *next, **link;               /* in the context's list; link NULL: in none. Guarded by context->lock */
    struct ct_texel_image *image;                      /* opaque images, or NULL */
    struct ct_backing backing;                         /* plain memory, or only the budget that an image is charged */
    struct ct_array_tiles *tiles;                      /* of an image whose memory is bound later, otherwise NULL */
    _Atomic(struct ct_array_mirror *) mirror;          /* of an image, or NULL: array_mirror.c */
    _Atomic(struct ct_array_decoded *) decoded;        /* a list: array_decoded.c */
    _Atomic(struct ct_texel_image *) tiled;            /* or NULL: array_tiled.c */
    struct ct_place_changes changes;                   /* the writes of copies to plain memory, of which `tiled` is a copy */
    struct ct_array *layers;                           /* by level and layer, or NULL; guarded by context->lock: array_layers.c */
    struct ct_array_group *planes[CT_ARRAY_PLANES];    /* the planes of a format with several, else NULL: array_planes.c; constant */
    void (*free_copies)(struct ct_array_group *group); /* or NULL: frees mirror, decoded and tiled, with the group */
    bool is_plane;
    bool is_mipmapped, of_resource; /* of_resource: of a graphics resource, with which it is destroyed; constant once it is known */
    unsigned n_levels;
    struct ct_array levels[];
};

/* Looks up the group of a mipmapped array's handle, with a reference to its context; release releases both. INVALID_HANDLE. */
CUresult ct_array_group_lookup(CUmipmappedArray handle, struct ct_array_group **out);
void ct_array_group_release(struct ct_array_group *group);

/* Where a level is in plain memory that has one level after another, in bytes; with n_levels the size of them all. */
uint64_t ct_array_plain_offset(const struct ct_array_group *group, unsigned level);
/* The extent of the image that may be a texture of so many levels, from this one on. */
struct ct_sampled_extent ct_array_sampled_extent(const struct ct_array *first, unsigned n_levels);

#endif
