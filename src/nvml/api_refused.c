/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that exist so that programs find them, and say that they do nothing. Their parameters do not matter to the calling conventions of
 * Linux, where the caller removes them. */
#include "nvml_abi.h"

#include "state.h"

static nvmlReturn_t refuse(void)
{
    const nvmlReturn_t r = nvml_check(true);

    return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

#define REFUSED(name)                                                                                                                      \
    NVML_EXPORT nvmlReturn_t name(void);                                                                                                   \
    nvmlReturn_t name(void)                                                                                                                \
    {                                                                                                                                      \
        return refuse();                                                                                                                   \
    }
#include "functions.def"
