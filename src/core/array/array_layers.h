/* SPDX-License-Identifier: Apache-2.0 */
/* The layers and faces of a mipmapped array as arrays of two dimensions, for the subresources of graphics resources. They exist from the first
 * look-up until the mipmapped array is destroyed. */
#ifndef CT_CORE_ARRAY_LAYERS_H
#define CT_CORE_ARRAY_LAYERS_H

#include "array_group.h"

/* Returns the same handle each time. INVALID_HANDLE; INVALID_VALUE: the layer or the level does not exist. OUT_OF_MEMORY. */
CUresult ct_mipmapped_array_layer(CUmipmappedArray handle, unsigned level, unsigned layer, CUarray *out);

/* Part of destroying a group, which is in its context's list no longer: invalidates the handles of its layers with `drop`. */
void ct_array_layers_drop(struct ct_array_group *group, void (*drop)(struct ct_object *object));
/* Part of freeing a group. */
void ct_array_layers_free(struct ct_array_group *group);

#endif
