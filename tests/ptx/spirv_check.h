/* SPDX-License-Identifier: Apache-2.0 */
/* spirv-val as a library. */
#ifndef CUTTLE_SPIRV_CHECK_H
#define CUTTLE_SPIRV_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: spirv-val does not take the module for Vulkan 1.3 or OpenCL, as its head says, and `why` tells the reason. True where the library
 * is not there. */
bool spirv_check(const uint32_t *words, size_t n_words, char *why, size_t why_size);

#endif
