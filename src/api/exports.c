/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols that applications call, generated from entry_points.def. Each forwards the call to its implementation, unless the caller
 * is a host function or a callback of a stream, which may call only the functions that host_functions.def lists. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/thread.h"

#define CT_CHANNEL "api"

static const bool allowed_in_host_functions[CT_ROW_COUNT] = {
#define ALLOWED(symbol) [CT_ROW_##symbol] = true,
#include "host_functions.def"
};

static bool is_refused(enum ct_entry_row row)
{
    return ct_thread_is_in_host_function() && !allowed_in_host_functions[row];
}

static CUresult refuse(const char *symbol)
{
    return ct_fail(CUDA_ERROR_NOT_PERMITTED, "%s must not be called in a host function of a stream", symbol);
}

#define EXPORT(row, symbol, params, args)                                                                                                  \
    CUresult CUDAAPI ct_exported_##symbol params                                                                                           \
    {                                                                                                                                      \
        return is_refused(CT_ROW_##row) ? refuse(#symbol) : symbol args;                                                                   \
    }
#define ENTRY(symbol, name, version, params, args) EXPORT(symbol, symbol, params, args)
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args)                                                                \
    EXPORT(symbol, symbol, params, args)                                                                                                   \
    EXPORT(symbol, symbol##_ptds, params, args)
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams)                                                       \
    ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args)
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args)                                                            \
    EXPORT(symbol, symbol, params, args)                                                                                                   \
    EXPORT(symbol, symbol##_ptsz, params, args)
#include "entry_points.def"
