/* SPDX-License-Identifier: Apache-2.0 */
/* spirv-val as a library. */
#ifndef CUTTLE_SPIRV_CHECK_H
#define CUTTLE_SPIRV_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Validates a module for Vulkan 1.3 or OpenCL, as its header declares. Returns false if it is invalid, with the reason in `why`; true if it
 * is valid or the library is not available. */
bool spirv_check(const uint32_t *words, size_t n_words, char *why, size_t why_size);

#endif
