/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in the buffers of callers. */
#ifndef CT_NVML_TEXT_H
#define CT_NVML_TEXT_H

#include "nvml_abi.h"

/* INSUFFICIENT_SIZE: the text and its NUL do not fit; the buffer is unchanged. */
nvmlReturn_t nvml_copy_text(const char *text, char *out, unsigned size);

#endif
