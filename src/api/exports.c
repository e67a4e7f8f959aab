/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols that applications call, generated from entry_points.def. Each forwards the call to its implementation, unless the caller
 * is a host function or a callback of a stream, which may call only the functions that host_functions.def lists, or a stream is captured and
 * capture_unsafe.def lists the function. `cuttle check` learns here what calls return. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/check/calls.h"
#include "core/graph/capture_state.h"

#define CT_CHANNEL "api"

static const bool allowed_in_host_functions[CT_ROW_COUNT] = {
#define ALLOWED(symbol) [CT_ROW_##symbol] = true,
#include "host_functions.def"
};

static const bool unsafe_in_captures[CT_ROW_COUNT] = {
#define UNSAFE(symbol) [CT_ROW_##symbol] = true,
#include "capture_unsafe.def"
};

/* What these functions do depends on the library that calls them (core/device/library_capability.h). */
static const bool asks_for_caller[CT_ROW_COUNT] = {
    [CT_ROW_cuDeviceGetAttribute] = true,
    [CT_ROW_cuFuncSetAttribute] = true,
    [CT_ROW_cuKernelSetAttribute] = true,
};

static inline CUresult check(enum ct_entry_row row, const char *symbol, const void *caller)
{
    if (ct_check_watches_calls())
        ct_thread_enter_call();
    if (asks_for_caller[row])
        ct_thread_set_caller(caller);
    if (ct_thread_is_in_host_function() && !allowed_in_host_functions[row])
        return ct_fail(CUDA_ERROR_NOT_PERMITTED, "%s must not be called in a host function of a stream", symbol);
    return unsafe_in_captures[row] && ct_captures_exist() ? ct_capture_check_unsafe(symbol) : CUDA_SUCCESS;
}

/* `cuttle check` reports calls that fail, and after which the program goes on. */
static inline CUresult ended(const char *symbol, CUresult r)
{
    const char *name = "success";

    if (!ct_check_watches_calls())
        return r;
    ct_thread_leave_call();
    if (r != CUDA_SUCCESS && cuGetErrorName(r, &name) != CUDA_SUCCESS)
        name = "an unknown error";
    ct_check_call(symbol, r, name);
    return r;
}

#define EXPORT(row, symbol, params, args)                                                                                                  \
    CUresult CUDAAPI ct_exported_##symbol params                                                                                           \
    {                                                                                                                                      \
        CUresult r_ = check(CT_ROW_##row, #symbol, __builtin_return_address(0));                                                           \
                                                                                                                                           \
        return ended(#symbol, r_ == CUDA_SUCCESS ? symbol args : r_);                                                                      \
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
