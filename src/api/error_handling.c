/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Error Handling. Names and descriptions of result codes; both functions work before cuInit. */
#include "entry_points.h"

#include "core/base/log.h"

#define CT_CHANNEL "api"

struct code_text {
    CUresult code;
    const char *name, *text;
};

static const struct code_text codes[] = {
#define CODE(name_, text_) {.code = name_, .name = #name_, .text = text_},
#include "errors.def"
};

static const struct code_text *find_or_null(CUresult code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return &codes[i];
    return NULL;
}

/* cuGetErrorString (Driver API: Error Handling). Sets *pStr to a description of `error` that stays valid as long as the library is
 * loaded. INVALID_VALUE: the code does not exist, and *pStr is set to NULL; or pStr is NULL. */
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr)
{
    const struct code_text *found = find_or_null(error);

    if (!pStr)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorString: pStr is NULL");
    *pStr = found ? found->text : NULL;
    return found ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorString: error code %d does not exist", (int)error);
}

/* cuGetErrorName (Driver API: Error Handling). Sets *pStr to the enumerator's name, e.g. "CUDA_ERROR_NOT_READY". INVALID_VALUE: the code
 * does not exist, and *pStr is set to NULL; or pStr is NULL. */
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr)
{
    const struct code_text *found = find_or_null(error);

    if (!pStr)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorName: pStr is NULL");
    *pStr = found ? found->name : NULL;
    return found ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorName: error code %d does not exist", (int)error);
}
