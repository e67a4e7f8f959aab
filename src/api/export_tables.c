/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetExportTable: tables of functions without a public name, by which NVIDIA's runtime communicates with its driver. This file implements
 * the functions that libcudart 11.8 to 13.0 was observed to call; docs/interoperability.md gives the sources of the facts.
 *
 * A table is an array of words: its size in bytes, then functions. The parameters of functions that were never observed in use are
 * unknown; their entries point to a function that returns CUDA_ERROR_NOT_SUPPORTED. */
#include "entry_points.h"

#include "cudart_self_test.h"
#include "trace_table.h"

#include "core/device/context_local.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/progress.h"
#include "core/base/thread.h"
#include "core/command/command.h"
#include "core/device/device.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "api"

/* A word of a table: as wide as a pointer, whatever it contains. */
typedef union word {
    uintptr_t number;
    ct_function function;
} word;
_Static_assert(sizeof(word) == 8, "tables are made of words of 64 bits");
#define FUNCTION(name) {.function = (ct_function)(name)}
#define UNKNOWN {.function = (ct_function)unknown_function}
#define SIZE_OF(table) {.number = sizeof(table)}

static CUresult unknown_function(void)
{
    static atomic_bool is_logged;

    if (!atomic_exchange_explicit(&is_logged, true, memory_order_relaxed)) /* the flag only limits the message to one */
        ct_log(CT_LOG_WARN, "the program calls an unknown function of an export table");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- runtime: contexts and, for CUDA 11, modules ---- */

/* Returns the handle of a device's primary context without activating the context. */
static CUresult runtime_primary_context(CUcontext *out, CUdevice ordinal)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(ordinal, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the context is NULL");
    *out = device->primary->object.handle;
    return CUDA_SUCCESS;
}

/* Loads an image that nvcc registered into the current context. The runtime passes NULL, NULL and 0 for the unused parameters. */
static CUresult runtime_load_module(CUmodule *out, const void *wrapper, void *unused1, void *unused2, int unused3)
{
    (void)unused1;
    (void)unused2;
    (void)unused3;
    return cuModuleLoadData(out, wrapper);
}

/* A no-op: modules are unloaded with their context. */
static CUresult runtime_forget_module(const void *wrapper)
{
    (void)wrapper;
    return CUDA_SUCCESS;
}

/* The runtime 13.5 calls this at its start, without arguments, and fails if it gets an error. */
static CUresult runtime_starts(void)
{
    return CUDA_SUCCESS;
}

static const word runtime_table[13] = {SIZE_OF(runtime_table),
                                       UNKNOWN,
                                       FUNCTION(runtime_primary_context),
                                       UNKNOWN,
                                       UNKNOWN,
                                       UNKNOWN,
                                       FUNCTION(runtime_load_module),
                                       FUNCTION(runtime_forget_module),
                                       UNKNOWN,
                                       UNKNOWN,
                                       UNKNOWN,
                                       UNKNOWN,
                                       FUNCTION(runtime_starts)};

/* ---- tools: the functions of the runtime that a profiler subscribes to; none ---- */

/* Flags: the runtime 11.8 requires exactly this number, later ones at least the number of their functions. */
#define CT_RUNTIME_FUNCTIONS 1024
#define CT_TOOL_DOMAINS 14

static CUresult tools_function_flags(const uint32_t **out_flags, size_t *out_count)
{
    static const uint32_t flags[CT_RUNTIME_FUNCTIONS];

    *out_flags = flags;
    *out_count = CT_RUNTIME_FUNCTIONS;
    return CUDA_SUCCESS;
}

static CUresult tools_domain_flags(const uint32_t **out_flags, size_t *out_count)
{
    static const uint32_t flags[CT_TOOL_DOMAINS];

    *out_flags = flags;
    *out_count = CT_TOOL_DOMAINS;
    return CUDA_SUCCESS;
}

static const word tools_table[7] = {SIZE_OF(tools_table),        UNKNOWN, FUNCTION(tools_function_flags), UNKNOWN, UNKNOWN, UNKNOWN,
                                    FUNCTION(tools_domain_flags)};

/* ---- thread-local values of tools: cuBLAS reads the current context from here ---- */

static const word thread_table[4] = {SIZE_OF(thread_table), UNKNOWN, FUNCTION(cuCtxGetCurrent), UNKNOWN};

/* ---- context-local storage; this table has no size ---- */

/* The context of a call, active or not, with a reference if it is not the current one. */
struct local_context {
    struct ct_context *context; /* NULL: not found */
    struct ct_object *retained; /* NULL: there is no reference to release */
};

static struct local_context find_local_context(CUcontext handle)
{
    struct local_context found = {ct_context_top_or_null(), NULL};

    if (!handle || (found.context && found.context->object.handle == handle))
        return found; /* without a lock, since this is called very often */
    found.retained = ct_object_find_or_null(CT_OBJECT_CONTEXT, handle);
    found.context = (struct ct_context *)found.retained;
    return found;
}

static CUresult local_put(CUcontext handle, void *key, void *value, ct_context_local_fn on_end)
{
    const struct local_context found = find_local_context(handle);
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS)
        r = found.context ? ct_context_local_put(found.context, key, value, on_end) : ct_fail(CUDA_ERROR_INVALID_CONTEXT, "no context");
    ct_object_release(found.retained);
    return r;
}

static CUresult local_remove(CUcontext handle, void *key)
{
    const struct local_context found = find_local_context(handle);
    CUresult r = CUDA_ERROR_INVALID_CONTEXT;

    if (found.context)
        r = ct_context_local_remove(found.context, key);
    ct_object_release(found.retained);
    return r;
}

static CUresult local_get(void **out, CUcontext handle, void *key)
{
    const struct local_context found = find_local_context(handle);
    CUresult r = CUDA_ERROR_INVALID_CONTEXT;

    if (found.context)
        r = ct_context_local_get(found.context, key, out);
    ct_object_release(found.retained);
    return r;
}

static const word local_table[4] = {FUNCTION(local_put), FUNCTION(local_remove), FUNCTION(local_get), UNKNOWN};

/* ---- checks of a context: they always succeed ---- */

static CUresult check_context(CUcontext context, uint32_t *out, const void **out_more)
{
    (void)context;
    (void)out_more;
    *out = 0;
    return CUDA_SUCCESS;
}

static uint32_t check_process(void)
{
    return 0;
}

static const word check_table[4] = {SIZE_OF(check_table), UNKNOWN, FUNCTION(check_context), FUNCTION(check_process)};

/* ---- the self-test ---- */

static CUresult integrity_answer(uint32_t version, uint64_t unix_seconds, uint64_t *out);

static const word integrity_table[3] = {SIZE_OF(integrity_table), FUNCTION(integrity_answer), UNKNOWN};

static CUresult integrity_answer(uint32_t version, uint64_t unix_seconds, uint64_t *out)
{
    const struct ct_self_test question = {
        .version = version,
        .unix_seconds = unix_seconds,
        .runtime_table = (uintptr_t)runtime_table,
        .integrity_table = (uintptr_t)integrity_table,
        .integrity_function = integrity_table[1].number,
    };

    return ct_self_test_answer(&question, out);
}

/* ---- ids of contexts, for cuBLAS ---- */

/* cuBLAS asks twice for something of a context before its first product, passes 0, and uses its own kernels if the answer is 0. */
static CUresult context_answer(CUcontext context, uintptr_t zero, uint64_t *out)
{
    (void)context;
    (void)zero;
    *out = 0;
    return CUDA_SUCCESS;
}

static const word id_table[95] = {SIZE_OF(id_table),
                                  UNKNOWN,
                                  UNKNOWN,
                                  UNKNOWN,
                                  FUNCTION(cuCtxGetId),
                                  [5 ... 38] = UNKNOWN,
                                  FUNCTION(context_answer),
                                  [40 ... 50] = UNKNOWN,
                                  FUNCTION(context_answer),
                                  [52 ... 94] = UNKNOWN};

/* ---- functions of modules, for cuFFT ---- */

/* Calls `visit` for each function of a module; returns 1, or 0 after an error. cuFFT loads modules of one function and takes its handle. */
static uint32_t visit_functions(CUcontext context, CUmodule module, void (*visit)(void *user, CUfunction function, uintptr_t unused),
                                void *user)
{
    CUfunction *functions;
    unsigned n = 0;
    bool ok;

    (void)context;
    if (cuModuleGetFunctionCount(&n, module) != CUDA_SUCCESS || !n)
        return 0;
    functions = malloc(n * sizeof *functions);
    ok = functions && cuModuleEnumerateFunctions(functions, n, module) == CUDA_SUCCESS;
    for (unsigned i = 0; i < n && ok; i++)
        visit(user, functions[i], 0);
    free(functions);
    return ok;
}

static const word function_table[64] = {SIZE_OF(function_table), [1 ... 6] = UNKNOWN, FUNCTION(visit_functions), [8 ... 63] = UNKNOWN};

/* ---- for the library that traces calls: trace_table.h ---- */

static CUresult trace_record_before_next(CUevent handle)
{
    struct ct_event *event = NULL;
    const CUresult r = handle ? ct_event_lookup(handle, &event) : CUDA_SUCCESS;

    if (r != CUDA_SUCCESS)
        return r;
    return ct_commands_mark_next(event) || handle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult trace_observe_compilations(ct_compilation_observer observer)
{
    ct_progress_observe(observer);
    return CUDA_SUCCESS;
}

static const struct ct_trace_table trace_table = {sizeof trace_table, trace_record_before_next, trace_observe_compilations,
                                                  ct_thread_call_for};

static const struct {
    unsigned char id[16];
    const void *table;
} tables[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9}, runtime_table},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66}, tools_table},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc}, thread_table},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93}, local_table},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e}, check_table},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2}, integrity_table},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2}, id_table},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e}, function_table},
    {CT_TRACE_TABLE_ID, &trace_table},
};

/* cuGetExportTable (declared in cuda.h, in no chapter of the manual). Works before cuInit. INVALID_VALUE: ppExportTable or the id is
 * NULL, or the id is unknown; *ppExportTable is untouched on failure. */
CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    const unsigned char *id = pExportTableId ? (const unsigned char *)pExportTableId->bytes : NULL;

    if (!ppExportTable || !id)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetExportTable: ppExportTable or pExportTableId is NULL");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (memcmp(tables[i].id, id, sizeof tables[i].id) != 0)
            continue;
        *ppExportTable = tables[i].table;
        return CUDA_SUCCESS;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetExportTable: no table with an id that begins with %02x%02x%02x%02x", id[0], id[1], id[2],
                   id[3]);
}
