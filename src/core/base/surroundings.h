/* SPDX-License-Identifier: Apache-2.0 */
/* What a process finds around it: the kernel, the root of its files (a container may share the user's cache), and its limits on memory. Facts
 * about devices that are kept for later processes depend on it. */
#ifndef CT_CORE_SURROUNDINGS_H
#define CT_CORE_SURROUNDINGS_H

#include "hash.h"

struct ct_hash ct_surroundings(void);

#endif
