/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and contexts: what a CUDA thread is "in". */
#ifndef CT_CORE_CONTEXT_H
#define CT_CORE_CONTEXT_H

#include "backend.h"
#include "locks.h"
#include "object.h"

struct ct_stream;
struct ct_event;
struct ct_module;

/* A device that the process may use: entry of ct_process.devices, alive until the process ends. */
struct ct_device {
    int ordinal;
    const struct ct_backend *backend;
    unsigned backend_index;
    struct ct_device_info info;
    struct ct_mutex lock;             /* guards opening and the primary context's state */
    struct ct_backend_device *opened; /* NULL until the first context */
    struct ct_context *primary;       /* made with the process, active while primary_retains > 0 */
    unsigned primary_retains;
};

struct ct_context {
    struct ct_object object;
    struct ct_device *device;  /* borrowed: outlives every context */
    const struct ct_backend *backend;
    struct ct_backend_device *backend_device;
    bool is_primary;
    _Atomic bool active;       /* false: destroyed, or primary that nobody retains */
    unsigned flags;
    unsigned long long id;
    _Atomic int sticky_error;  /* CUresult that every call gives from now on; CUDA_SUCCESS none */
    struct ct_memory *fault_memory; /* struct ptx2spv_fault, host-visible */
    struct ct_stream *legacy_stream;
    struct ct_memory_arena *arena;  /* device memory of this context: memory.c */
    struct ct_mutex lock;           /* guards the lists and the settings below */
    struct ct_stream *streams;      /* linked through stream->next_in_context, legacy and per-thread ones included */
    struct ct_module *modules;
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    unsigned api_version;
};

/* The calling thread's current context, retained; also checks cuInit and the sticky error.
 * NOT_INITIALIZED, DEINITIALIZED, INVALID_CONTEXT (none current), CONTEXT_IS_DESTROYED, or the sticky error. */
CUresult ct_context_current(struct ct_context **out);
void ct_context_release(struct ct_context *context);
/* The live context behind a handle, retained. INVALID_CONTEXT, CONTEXT_IS_DESTROYED. */
CUresult ct_context_lookup(CUcontext handle, struct ct_context **out);
/* Turns a device error or a fault word into the context's sticky error and returns it; CUDA_SUCCESS if all is well. */
CUresult ct_context_check(struct ct_context *context, CUresult result);
/* Waits for all streams of the context. */
CUresult ct_context_synchronize(struct ct_context *context);

#endif
