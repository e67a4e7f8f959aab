/* SPDX-License-Identifier: Apache-2.0 */
/* What distinguishes this build of the library from all others: the linker's hash of its contents (the GNU build ID). Results that depend on our
 * code have it in their keys: another build does not use them. */
#ifndef CT_CORE_BUILD_ID_H
#define CT_CORE_BUILD_ID_H

#include "hash.h"

/* Of size 0 if it was linked without one. */
struct ct_bytes ct_build_id(void);

#endif
