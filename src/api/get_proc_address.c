/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Driver Entry Point Access. Names and versions are looked up in entry_points.def. Neither a context nor cuInit is needed,
 * since runtimes look up cuInit here, too. */
#include "entry_lookup.h"

#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "api"

static CUresult make_query(const char *symbol, int version, cuuint64_t flags, struct ct_entry_query *out)
{
    if (!symbol)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: symbol is NULL");
    if (version > CUDA_VERSION)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: %s of CUDA %d, which is newer than this library's %d", symbol, version,
                       CUDA_VERSION);
    if (flags != CU_GET_PROC_ADDRESS_DEFAULT && flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
        flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: flags %#llx for %s", (unsigned long long)flags, symbol);
    *out = (struct ct_entry_query){symbol, strlen(symbol), version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
    return CUDA_SUCCESS;
}

/* cuGetProcAddress since CUDA 12.0 (Driver API: Driver Entry Point Access). Sets *pfn to the newest function of the name that a program for
 * `cudaVersion` can call, or to NULL if there is none; *symbolStatus, if not NULL, says which. A function that is not implemented counts as
 * present: calling it returns NOT_SUPPORTED.
 * INVALID_VALUE: symbol or pfn is NULL, flags are not one of CUdriverProcAddress_flags, or cudaVersion is newer than the driver. */
CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *symbolStatus)
{
    struct ct_entry_query query;
    struct ct_entry_answer answer;
    CUresult result;

    if (!pfn)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: pfn is NULL");
    if ((result = make_query(symbol, cudaVersion, flags, &query)) != CUDA_SUCCESS)
        return result;
    answer = ct_entry_point_find(ct_entry_point(0), &query);
    *pfn = answer.entry ? (void *)answer.entry->address : NULL;
    if (symbolStatus)
        *symbolStatus = answer.status;
    return CUDA_SUCCESS;
}

/* cuGetProcAddress before CUDA 12.0: as above, but a missing function is an error.
 * NOT_FOUND: no function of that name exists in that version; *pfn is set to NULL. INVALID_VALUE: as above. */
CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult result = cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);

    if (result == CUDA_SUCCESS && !*pfn)
        return ct_fail(CUDA_ERROR_NOT_FOUND, "cuGetProcAddress: %s does not exist in CUDA %d", symbol, cudaVersion);
    return result;
}
