/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and contexts: what a CUDA thread is "in". */
#ifndef CT_CORE_CONTEXT_H
#define CT_CORE_CONTEXT_H
/* Parts: context_stack.c. */

#include "backend.h"
#include "core/base/locks.h"
#include "core/base/object.h"

struct ct_device;
struct ct_stream;
struct ct_event;
struct ct_module;
struct ct_context_local;
struct ct_copy_kernel;
struct ct_spares;
struct ct_heap;
struct ct_array_group;
struct ct_print;

/* What is called of parts of a device by files that these parts are made of. They are set when the device is made. */
struct ct_device_hooks {
    /* Memory runs out: gives back what pools keep and nobody uses; no lock is held. The same of spares. False: there was nothing. */
    bool (*trim_pools)(struct ct_device *device);
    bool (*trim_spares)(struct ct_device *device);
    /* The host has waited for `stream` until `point`: its pools let go of what was freed in it until then. */
    void (*observe_wait)(struct ct_device *device, struct ct_stream *stream, uint64_t point);
};

/* A device that the process may use: entry of ct_process.devices, alive until the process ends. */
struct ct_device {
    int ordinal;
    const struct ct_backend *backend;
    unsigned backend_index;
    struct ct_device_info info;
    struct ct_mutex lock;          /* guards opening and the primary context's state */
    struct ct_device_pools *pools; /* of memory: memory_pool.c */
    struct ct_spares *spares;      /* memory_spares.c */
    struct ct_device_hooks hooks;
    struct ct_backend_device *opened; /* NULL until the first context */
    bool takes_aliases;               /* guarded by host_aliases.c */
    atomic_ullong given_bytes;        /* of its memory: memory_budget.c */
    atomic_ullong spare_bytes;        /* of these: memory_spares.c */
    struct ct_context *primary;       /* made with the process, active while primary_retains > 0; its handle never changes */
    unsigned primary_retains;         /* a reset takes the context down, but not the retains back */
    unsigned primary_flags;           /* of the next activation; while active the context's own */
    pthread_cond_t primary_gone;      /* a primary context was taken down: see context_setup.c */
    atomic_int probe_state;           /* see ct_probe_settle; changed under the lock */
    pthread_cond_t probe_over;        /* and that of timer_state */
    int timer_state;                  /* see timer.c; guarded by the lock, as is the timer */
    struct ptx2spv_timer timer;
    _Atomic(struct ct_copy_kernel *) copy_kernel; /* copy_kernel.c; NULL until a copy is for it */
};

struct ct_context {
    struct ct_object object;
    struct ct_device *device; /* borrowed: outlives every context */
    const struct ct_backend *backend;
    struct ct_backend_device *backend_device;
    bool is_primary;
    _Atomic bool active;                           /* false: destroyed, or primary that nobody retains */
    bool is_up;                                    /* primary: its parts exist; under device->lock */
    atomic_uint uses;                              /* calls that work in it now, plus one while active; its parts are taken down at 0 */
    void (*take_down)(struct ct_context *context); /* what does that */
    _Atomic unsigned flags;                        /* CUctx_flags */
    unsigned long long id;
    atomic_bool has_cross_context_work;               /* it has copied or filled memory of other contexts */
    _Atomic int sticky_error;                         /* CUresult that calls give from now on; CUDA_SUCCESS none */
    struct ct_backing *fault;                         /* host memory for the next: memory_backing.h */
    const volatile struct ptx2spv_fault *fault_words; /* what kernels failed at */
    struct ct_stream *legacy_stream;
    struct ct_memory_arena *arena; /* device memory of this context: memory.c */
    struct ct_mutex lock;          /* guards the lists and the settings below */
    struct ct_stream *streams;     /* linked through stream->next_in_context, legacy and per-thread ones included */
    struct ct_stream *barrier;     /* one of them that waits for the events of cuCtxWaitEvent, for streams made later; NULL: none yet */
    struct ct_event *events;       /* linked through event->next_in_context: event.c */
    struct ct_module *modules;
    struct ct_array_group *arrays;                            /* array.c */
    _Atomic(struct ct_context_local *) locals;                /* context_local.c */
    _Atomic(struct ct_heap *) heap;                           /* heap.c; NULL until a module that allocates is loaded */
    _Atomic(struct ct_print *) print;                         /* print.c; NULL until a module that prints is loaded */
    void (*_Atomic flush_prints)(struct ct_context *context); /* writes what they printed; NULL: nothing could */
    size_t limits[CU_LIMIT_MAX];
    _Atomic CUfunc_cache cache_config;
    _Atomic CUsharedconfig shared_config;
    unsigned api_version; /* 3010 from the first cuCtxCreate, else 3020 */
    unsigned attaches;    /* cuCtxAttach: how many cuCtxDetach it takes to destroy it, less one */
};

/* A context has two counts. `uses` keeps it working: who holds one may touch every member below. The object's references only keep
 * the struct; modules and the threads' stacks hold those, and turn one into a use with ct_context_use when they need it. */

/* The calling thread's current context, with one use held; also checks cuInit and the sticky error.
 * NOT_INITIALIZED, DEINITIALIZED, INVALID_CONTEXT (none current), CONTEXT_IS_DESTROYED, or the sticky error; NOT_PERMITTED in a host
 * function of a stream, which has no current context. */
CUresult ct_context_current(struct ct_context **out);
/* The same where none need be current: *out is NULL if none is. */
CUresult ct_context_current_or_null(struct ct_context **out);
/* The same for what goes on answering where a kernel failed: the sticky error is not checked. */
CUresult ct_context_failed_or_null(struct ct_context **out);
/* Gives the use back; takes NULL. The caller holds no lock: it may be the last use. */
void ct_context_release(struct ct_context *context);
/* One use of a context other than the current one for a call of the application: that of a stream or an event it names.
 * CONTEXT_IS_DESTROYED, or the sticky error. */
CUresult ct_context_enter(struct ct_context *context);
/* One use of a context that the caller knows to exist as a struct. CONTEXT_IS_DESTROYED. */
CUresult ct_context_use(struct ct_context *context);
/* The live context behind a handle, with one use held. INVALID_CONTEXT, CONTEXT_IS_DESTROYED. */
CUresult ct_context_lookup(CUcontext handle, struct ct_context **out);
/* Turns a device error or a fault word into the context's sticky error and returns it; CUDA_SUCCESS if all is well. */
CUresult ct_context_check(struct ct_context *context, CUresult result);
/* The context works in memory of `owner`, which may be itself or NULL. */
void ct_context_reach(struct ct_context *context, CUcontext owner);
bool ct_contexts_have_cross_context_work(void); /* whether any context ever worked in memory of another: few programs have several */

/* The context behind a handle, or the current one for NULL; one use held, the sticky error not checked. */
CUresult ct_context_lookup_or_current(CUcontext handle, struct ct_context **out);

/* The calling thread's stack (context_stack.c). Its entries may be contexts that are destroyed meanwhile, or primary ones that nobody
 * retains. */
struct ct_context *ct_context_top_or_null(void); /* borrowed: until the calling thread changes its stack */
/* The device of a context, or of the current one for NULL, active or not. INVALID_CONTEXT. */
CUresult ct_context_ordinal(CUcontext handle_or_null, CUdevice *out);
CUresult ct_context_push(CUcontext handle);      /* INVALID_CONTEXT */
CUresult ct_context_pop(CUcontext *out_or_null); /* INVALID_CONTEXT: the stack is empty */
CUresult ct_context_set_current(CUcontext handle_or_null);

#endif
