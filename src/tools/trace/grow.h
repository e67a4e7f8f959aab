/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by one element at a time. */
#ifndef CT_TOOLS_GROW_H
#define CT_TOOLS_GROW_H

#include <stdlib.h>

/* The array of `count` elements with room for one more; the capacity doubles. NULL: no memory, and the array is as it was. */
#define GROW(array, count) ((count) & ((count) - 1) ? (array) : realloc((array), ((count) ? 2 * (size_t)(count) : 1) * sizeof *(array)))

#endif
