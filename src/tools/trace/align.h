/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements of two sequences belong together. */
#ifndef CT_TOOLS_ALIGN_H
#define CT_TOOLS_ALIGN_H

#include <stddef.h>

#define ALIGN_DIFFERENCES_MAX                                                                                                              \
    4000 /* beyond that the rest of the sequences is left without partners: the time and memory grow with the square */

/* For each element of a the index of its partner in b, which is equal and the longest common subsequence has, or ALIGN_NONE. Returns 0, 1 if the
 * sequences differ in more than ALIGN_DIFFERENCES_MAX elements, or -1 if there is no memory. */
#define ALIGN_NONE ((size_t)-1)
int align(const unsigned *a, size_t n_a, const unsigned *b, size_t n_b, size_t *partners);

#endif
