/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUTTLE_TESTS_SHIM_PAGES_H
#define CUTTLE_TESTS_SHIM_PAGES_H

#include <stdint.h>

#define DRM_PAGES_WRITTEN 1u   /* the device writes them */
#define DRM_PAGES_ANONYMOUS 2u /* they must not be those of a file */

/* Returns 0, or the error with which a kernel driver rejects the pages of the process. */
int drm_pages_check(uint64_t start, uint64_t bytes, unsigned wanted);

#endif
