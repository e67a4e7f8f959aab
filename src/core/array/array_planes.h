/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of formats with several planes (NV12 and others): each plane is an array of its own, and the whole one has no memory besides. */
#ifndef CT_CORE_ARRAY_PLANES_H
#define CT_CORE_ARRAY_PLANES_H

#include "array_descriptor.h"
#include "core/base/object.h"

struct ct_array_group;

/* Returns the same handle each time. INVALID_HANDLE; INVALID_VALUE: the array has no such plane. */
CUresult ct_array_plane(CUarray handle, unsigned plane, CUarray *out);

/* Parts of creating and of destroying an array. The first one leaves what it has created to the second one. */
CUresult ct_array_planes_create(struct ct_array_group *group, const struct ct_array_planes *planes);
void ct_array_planes_drop(struct ct_array_group *group, void (*drop)(struct ct_object *object));

#endif
