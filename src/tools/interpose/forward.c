/* SPDX-License-Identifier: Apache-2.0 */
/* The libcuda.so.1 that programs get under `cuttle trace`: every symbol of entry_points.def as a wrapper, which records the call, and calls the driver
 * that TRACE_DRIVER_VARIABLE names: Cuttle's or NVIDIA's. It knows nothing of either but the API, so traces of both are alike and can be compared.
 *
 * Functions that a driver hands out as pointers are replaced as well (cuGetProcAddress), but not those of cuGetExportTable, which have no public
 * signature; and a function that is newer than our table is called directly. */
#include "forward.h"

#include "arguments.h"
#include "device_work.h"
#include "kernels.h"
#include "recorder.h"
#include "spans.h"

#include "api/entry_lookup.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic ct_function
    drivers_functions[CT_ENTRY_POINT_COUNT]; /* written before `once` is over, then only where missing_function stands */
static _Atomic(struct forward_plan *) plans[CT_ENTRY_POINT_COUNT];
static atomic_uint_least64_t last_correlation; /* relaxed: only the numbers matter */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct ct_entry_point entry_points[] = {
#define SYMBOL(symbol_, name_, version_, flavour_, params, args)                                                                           \
    {.symbol = #symbol_,                                                                                                                   \
     .name = #name_,                                                                                                                       \
     .name_length = sizeof #name_ - 1,                                                                                                     \
     .flavour = CT_FLAVOUR_##flavour_,                                                                                                     \
     .version = (version_),                                                                                                                \
     .address = (ct_function)symbol_},
#include "entry_points.def"
};

static CUresult missing_function(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult no_driver(void)
{
    return CUDA_ERROR_STUB_LIBRARY;
}

static void after_fork(void)
{
    kernels_after_fork();
    spans_after_fork();
}

static void open_driver(void)
{
    const char *path = getenv(TRACE_DRIVER_VARIABLE);
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!library)
        fprintf(stderr, "cuttle trace: no libcuda.so.1 to call: %s\n", path ? dlerror() : TRACE_DRIVER_VARIABLE " is not set");
    for (unsigned i = 0; i < CT_ENTRY_POINT_COUNT; i++) {
        ct_function function = library ? (ct_function)dlsym(library, signature_symbol(i)) : (ct_function)no_driver;

        if (!function)
            function = (ct_function)missing_function;
        atomic_store_explicit(&drivers_functions[i], function, memory_order_relaxed); /* ordered by `once` */
    }
    pthread_atfork(NULL, NULL, after_fork);
}

/* Also asks the driver what only Cuttle has. */
static void start(void)
{
    pthread_once(&once, open_driver);
    spans_start();
}

ct_function forward_driver(enum forward_symbol symbol)
{
    pthread_once(&once, open_driver);
    return atomic_load_explicit(&drivers_functions[symbol], memory_order_relaxed);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static void make_plan(enum forward_symbol symbol, struct forward_plan *plan)
{
    static const char *const context_ends[] = {"cuCtxDestroy", "cuCtxDetach", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset",
                                               "cuGreenCtxDestroy"};
    const char *name = entry_points[symbol].name;

    signature_parse(symbol, &plan->signature);
    plan->base_name = name;
    plan->is_per_thread = entry_points[symbol].flavour == CT_FLAVOUR_PER_THREAD;
    plan->kernel_parameter = strncmp(name, "cuLaunch", 8) ? -1 : signature_find(&plan->signature, "f");
    plan->work = device_work_find(name);
    plan->ends_contexts = is_one_of(name, context_ends, sizeof context_ends / sizeof *context_ends);
    plan->ends_kernels = plan->ends_contexts || !strcmp(name, "cuModuleUnload") || !strcmp(name, "cuLibraryUnload");
    plan->waits = strstr(name, "Synchronize") || (plan->work && !strncmp(name, "cuMemcpy", 8) && !strstr(name, "Async"));
}

static const struct forward_plan *plan_of(enum forward_symbol symbol)
{
    struct forward_plan *plan = atomic_load_explicit(&plans[symbol], memory_order_acquire); /* pairs with the exchange below */
    struct forward_plan *other = NULL;

    if (plan)
        return plan;
    plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    make_plan(symbol, plan);
    if (atomic_compare_exchange_strong_explicit(&plans[symbol], &other, plan, memory_order_acq_rel, memory_order_acquire))
        return plan;
    free(plan); /* another thread was faster */
    return other;
}

bool forward_number(const struct forward_call *call, const char *name, uint64_t *out)
{
    const struct signature *signature = &call->plan->signature;
    const int index = signature_find(signature, name);

    if (index >= 0) {
        *out = api_integer(call->values[index].address, call->values[index].size_bytes);
        return true;
    }
    for (unsigned i = 0; i < signature->count; i++) {
        const struct signature_parameter *parameter = &signature->parameters[i];
        char bytes[8];

        if (parameter->pointers != 1 || !parameter->is_const || !parameter->type)
            continue;
        for (const struct api_member *member = NULL; (member = api_next_member(parameter->type, member));)
            if (!strcmp(member->name, name) && member->size_bytes <= sizeof bytes &&
                arguments_read(bytes, *(const char *const *)call->values[i].address + member->offset, member->size_bytes)) {
                *out = api_integer(bytes, member->size_bytes);
                return true;
            }
    }
    return false;
}

uint64_t forward_argument(const struct forward_call *call, const char *name)
{
    const struct forward_value *value = &call->values[signature_find(&call->plan->signature, name)];

    return api_integer(value->address, value->size_bytes);
}

/* ---- cuGetProcAddress ---- */

/* Puts our wrapper in the place of the function that the driver gave. The driver's own choice decides if it may be of a version that we do not know. */
static void replace_function(const struct forward_call *call)
{
    const char *name = (const char *)forward_argument(call, "symbol");
    ct_function *given = (ct_function *)forward_argument(call, "pfn");
    const int version = (int)forward_argument(call, "cudaVersion");
    const bool per_thread = forward_argument(call, "flags") == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct ct_entry_point *entry;
    ct_function exported;
    unsigned symbol;

    if (!*given)
        return;
    entry = ct_entry_point_find(entry_points, &(struct ct_entry_query){name, strlen(name), version, per_thread}).entry;
    if (!entry)
        return;
    symbol = (unsigned)(entry - entry_points);
    exported = forward_driver(symbol);
    if (exported == (ct_function)missing_function)
        atomic_store_explicit(&drivers_functions[symbol], *given, memory_order_relaxed); /* a pointer to code, which was there before */
    else if (exported != *given && version > CUDA_VERSION)
        return;
    *given = entry->address;
}

/* ---- calls ---- */

/* Records that the call begins. */
static void begin(struct forward_call *call, struct span *span)
{
    static pthread_once_t started = PTHREAD_ONCE_INIT;
    struct trace_record *record;
    struct kernel kernel;
    bool is_launch;

    pthread_once(&started, start);
    span->is_open = false;
    call->correlation = 1 + atomic_fetch_add_explicit(&last_correlation, 1, memory_order_relaxed);
    call->plan = plan_of(call->symbol);
    if (!call->plan)
        return;
    kernels_before(call);
    is_launch = kernels_find(call, &kernel);
    spans_begin(call, span);
    call->begin_ns = recorder_now_ns();
    record = recorder_open(TRACE_BEGIN, call->symbol);
    if (record) {
        arguments_record_inputs(record, call);
        if (is_launch)
            kernels_record(record, call, &kernel);
        record->correlation = call->correlation;
        record->begin_ns = call->begin_ns;
        recorder_close(record);
    }
}

static void end(struct forward_call *call, CUresult result, struct span *span)
{
    const uint64_t now = recorder_now_ns();
    struct trace_record *record;

    if (!call->plan)
        return;
    if (result == CUDA_SUCCESS && !strcmp(call->plan->base_name, "cuGetProcAddress"))
        replace_function(call);
    record = recorder_open(TRACE_END, call->symbol);
    if (record) {
        record->end_ns = now;
        record->correlation = call->correlation;
        record->result = (int32_t)result;
        if (result == CUDA_SUCCESS)
            arguments_record_outputs(record, call);
        recorder_close(record);
    }
    if (result == CUDA_SUCCESS)
        kernels_after(call);
    spans_end(call, result, span);
}

/* FOR_EACH(macro, a, b ..) is macro(a) macro(b) .. for up to 16 arguments: EXPAND scans its argument as often. */
#define PARENTHESES ()
#define EXPAND(...) EXPAND_4(EXPAND_4(EXPAND_4(EXPAND_4(__VA_ARGS__))))
#define EXPAND_4(...) EXPAND_1(EXPAND_1(EXPAND_1(EXPAND_1(__VA_ARGS__))))
#define EXPAND_1(...) __VA_ARGS__
#define FOR_EACH(macro, ...) __VA_OPT__(EXPAND(FOR_EACH_STEP(macro, __VA_ARGS__)))
#define FOR_EACH_STEP(macro, first, ...) macro(first) __VA_OPT__(FOR_EACH_AGAIN PARENTHESES(macro, __VA_ARGS__))
#define FOR_EACH_AGAIN() FOR_EACH_STEP
#define ARGUMENT(name) {&(name), sizeof(name)},

#define SYMBOL(symbol_, name, version, flavour, params, args)                                                                              \
    CUresult CUDAAPI symbol_ params                                                                                                        \
    {                                                                                                                                      \
        const struct forward_value values_[] = {FOR_EACH(ARGUMENT, CT_UNPAREN args){NULL, 0}};                                             \
        struct forward_call call_ = {.symbol = FORWARD_##symbol_, .values = values_};                                                      \
        struct span span_;                                                                                                                 \
        CUresult result_;                                                                                                                  \
                                                                                                                                           \
        begin(&call_, &span_);                                                                                                             \
        spans_call_for(__builtin_return_address(0));                                                                                       \
        result_ = DRIVER(symbol_) args;                                                                                                    \
        spans_call_for(NULL);                                                                                                              \
        end(&call_, result_, &span_);                                                                                                      \
        return result_;                                                                                                                    \
    }
#include "entry_points.def"
