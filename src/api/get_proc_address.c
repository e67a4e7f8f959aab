/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Driver Entry Point Access. Names and versions are looked up in entry_points.def. Neither a context nor cuInit is needed,
 * since runtimes look up cuInit here, too. */
#include "entry_points.h"

#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "api"

struct query {
    const char *name;
    size_t name_length;
    int version;
    bool per_thread;
};

/* The result of a look-up: the best symbol or NULL, and why there is none. */
struct answer {
    const struct ct_entry_point *entry;
    CUdriverProcAddressQueryResult status;
};

/* Prefers the newest symbol that is old enough; if both variants have the same version, the requested flavour. */
static bool is_better(const struct ct_entry_point *entry, const struct ct_entry_point *than, bool per_thread)
{
    if (!than || entry->version != than->version)
        return !than || entry->version > than->version;
    return per_thread && entry->flavour == CT_FLAVOUR_PER_THREAD;
}

/* Searches the whole table: the lengths differ for most names, so a look-up takes at most one or two microseconds. */
static struct answer look_up(const struct query *query)
{
    struct answer answer = {NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};

    for (unsigned i = 0; i < CT_ENTRY_POINT_COUNT; i++) {
        const struct ct_entry_point *entry = ct_entry_point(i);

        if (entry->name_length != query->name_length || memcmp(entry->name, query->name, query->name_length) != 0)
            continue;
        if (entry->flavour == CT_FLAVOUR_PER_THREAD && !query->per_thread)
            continue;
        if (answer.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
            answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (entry->version <= query->version && is_better(entry, answer.entry, query->per_thread))
            answer = (struct answer){entry, CU_GET_PROC_ADDRESS_SUCCESS};
    }
    return answer;
}

static CUresult make_query(const char *symbol, int version, cuuint64_t flags, struct query *out)
{
    if (!symbol)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: symbol is NULL");
    if (version > CUDA_VERSION)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: %s of CUDA %d, which is newer than this library's %d", symbol, version,
                       CUDA_VERSION);
    if (flags != CU_GET_PROC_ADDRESS_DEFAULT && flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
        flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: flags %#llx for %s", (unsigned long long)flags, symbol);
    *out = (struct query){symbol, strlen(symbol), version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
    return CUDA_SUCCESS;
}

/* cuGetProcAddress since CUDA 12.0 (Driver API: Driver Entry Point Access). Sets *pfn to the newest function of the name that a program for
 * `cudaVersion` can call, or to NULL if there is none; *symbolStatus, if not NULL, says which. A function that is not implemented counts as
 * present: calling it returns NOT_SUPPORTED.
 * INVALID_VALUE: symbol or pfn is NULL, flags are not one of CUdriverProcAddress_flags, or cudaVersion is newer than the driver. */
CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *symbolStatus)
{
    struct query query;
    struct answer answer;
    CUresult result;

    if (!pfn)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress: pfn is NULL");
    if ((result = make_query(symbol, cudaVersion, flags, &query)) != CUDA_SUCCESS)
        return result;
    answer = look_up(&query);
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
