/* SPDX-License-Identifier: Apache-2.0 */
/* Texts are whole or not at all. */
#include "text.h"

#include <string.h>

nvmlReturn_t nvml_copy_text(const char *text, char *out, unsigned size)
{
    const size_t bytes = strlen(text) + 1;

    if (bytes > size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(out, text, bytes);
    return NVML_SUCCESS;
}
