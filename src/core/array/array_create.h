/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys groups with their levels and memory: for array.c, and for the arrays that the library keeps behind one of the application's
 * (array_decoded.c, array_planes.c). */
#ifndef CT_CORE_ARRAY_CREATE_H
#define CT_CORE_ARRAY_CREATE_H

#include "array_descriptor.h"
#include "array_group.h"

/* A group without memory, which the caller owns with its levels. OUT_OF_MEMORY. */
CUresult ct_array_group_make(struct ct_context *context, const struct ct_array_shape *shape, struct ct_array_group **out);
CUresult ct_array_group_make_memory(struct ct_array_group *group, const struct ct_image_request *request);
/* A `drop` for the next function: the handle becomes invalid. */
void ct_array_forget_handle(struct ct_object *object);
/* Invalidates the existing handles with `drop`, and releases the creator's references to the levels. */
void ct_array_group_drop_handles(struct ct_array_group *group, void (*drop)(struct ct_object *object));

/* A group with memory that is in no list and has no handles; it is destroyed by ct_array_group_drop_unlisted. Errors of ct_array_create. */
CUresult ct_array_group_create_unlisted(struct ct_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                                        struct ct_array_group **out);
void ct_array_group_drop_unlisted(struct ct_array_group *group);

#endif
