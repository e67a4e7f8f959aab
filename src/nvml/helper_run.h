/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper program. The application's signal dispositions and descriptors are not touched, and no zombie remains. */
#ifndef CT_NVML_HELPER_RUN_H
#define CT_NVML_HELPER_RUN_H

#include "nvml_abi.h"

#include <stddef.h>

enum { NVML_HELPER_TIMEOUT_MS = 60000, NVML_HELPER_TEXT_BYTES = 1 << 17 };

/* Runs the program with up to two arguments (NULL: none) and the environment without CUDA_VISIBLE_DEVICES, and reads what it prints to
 * standard output, as a string, into `text`. DRIVER_NOT_LOADED: it does not exist, failed, or printed more than fits; TIMEOUT: it did not end in
 * time, and was killed; MEMORY; OPERATING_SYSTEM: a pipe or process cannot be made. */
nvmlReturn_t nvml_helper_run(const char *program, const char *first, const char *second, int timeout_ms, char *text, size_t size);

#endif
