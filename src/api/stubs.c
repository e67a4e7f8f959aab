/* SPDX-License-Identifier: Apache-2.0 */
/* Stubs: the definitions of symbols of entry_points.def that are not implemented. Each is a weak definition that logs its name once and
 * returns CUDA_ERROR_NOT_SUPPORTED; a definition elsewhere in src/api replaces it at link time. The objects of src/api are linked directly,
 * never through an archive, where a weak definition would hide a later strong one.
 * A stub also exists under a private name, by which the table at the end can detect whether it was replaced. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <assert.h>

#define CT_CHANNEL "api"

/* The table names the parameters, which stubs do not use. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum entry_id {
#define SYMBOL(symbol, name, version, flavour, params, args) ID_##symbol,
#include "entry_points.def"
};

/* Which stubs have been called. Relaxed, since the flag orders nothing; it only prevents that two threads both log. */
static atomic_bool called[CT_ENTRY_POINT_COUNT];

static CUresult stub_called(enum entry_id id)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!atomic_exchange_explicit(&called[id], true, memory_order_relaxed))
        ct_log(CT_LOG_WARN, "%s is not supported and returned CUDA_ERROR_NOT_SUPPORTED", ct_entry_point(id)->symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define STUB(id, function, params)                                                                                                         \
    static CUresult stub_##function params                                                                                                 \
    {                                                                                                                                      \
        return stub_called(id);                                                                                                            \
    }                                                                                                                                      \
    CUresult CUDAAPI function params __attribute__((weak, alias("stub_" #function)));
#define ENTRY(symbol, name, version, params, args) STUB(ID_##symbol, symbol, params)
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args)                                                                \
    STUB(ID_##symbol, ct_##symbol, (CT_UNPAREN params, CUstream stream))
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams) STUB(ID_##symbol, symbol, params)
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args) STUB(ID_##symbol, symbol, params)
#include "entry_points.def"

#define ROW(symbol_, name_, version_, flavour_, worker)                                                                                    \
    [ID_##symbol_] = {.symbol = #symbol_,                                                                                                  \
                      .name = #name_,                                                                                                      \
                      .name_length = sizeof #name_ - 1,                                                                                    \
                      .flavour = CT_FLAVOUR_##flavour_,                                                                                    \
                      .version = (version_),                                                                                               \
                      .address = (ct_function)ct_exported_##symbol_,                                                                       \
                      .implementation = (ct_function)worker,                                                                               \
                      .stub = (ct_function)stub_##worker},
static const struct ct_entry_point entry_points[] = {
#define ENTRY(symbol, name, version, params, args) ROW(symbol, name, version, ANY, symbol)
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args)                                                                \
    ROW(symbol, name, version, LEGACY, ct_##symbol)                                                                                        \
    ROW(symbol##_ptds, name, per_thread_version, PER_THREAD, ct_##symbol)
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams)                                                       \
    ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args)
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args)                                                            \
    ROW(symbol, name, version, LEGACY, symbol)                                                                                             \
    ROW(symbol##_ptsz, name, per_thread_version, PER_THREAD, symbol)
#include "entry_points.def"
};
_Static_assert(sizeof entry_points / sizeof *entry_points == CT_ENTRY_POINT_COUNT, "a row for every symbol");

const struct ct_entry_point *ct_entry_point(unsigned index)
{
    assert(index < CT_ENTRY_POINT_COUNT);
    return &entry_points[index];
}

bool ct_entry_point_is_implemented(const struct ct_entry_point *entry)
{
    return entry->implementation != entry->stub;
}
