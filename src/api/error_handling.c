/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Error Handling. Names and words of result codes; both functions work before cuInit. */
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

/* cuGetErrorString (Driver API: Error Handling). *pStr becomes a sentence on `error` that lives as long as the library.
 * INVALID_VALUE: no such code, *pStr becomes NULL; or pStr is NULL. */
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr)
{
    const struct code_text *found = find_or_null(error);

    if (!pStr)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorString: no place for the text");
    *pStr = found ? found->text : NULL;
    return found ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorString: there is no code %d", (int)error);
}

/* cuGetErrorName (Driver API: Error Handling). *pStr becomes the enumerator's name, e.g. "CUDA_ERROR_NOT_READY".
 * INVALID_VALUE: no such code, *pStr becomes NULL; or pStr is NULL. */
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr)
{
    const struct code_text *found = find_or_null(error);

    if (!pStr)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorName: no place for the name");
    *pStr = found ? found->name : NULL;
    return found ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetErrorName: there is no code %d", (int)error);
}
