/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and contexts. */
#ifndef CT_CORE_CONTEXT_H
#define CT_CORE_CONTEXT_H
/* Parts: context_stack.c. */

#include "backend.h"
#include "core/base/locks.h"
#include "core/base/object.h"
#include "core/base/once.h"

struct ct_device;
struct ct_stream;
struct ct_event;
struct ct_module;
struct ct_context_local;
struct ct_copy_kernel;
struct ct_builtin_kernels;
struct ct_spares;
struct ct_heap;
struct ct_texture_table;
struct ct_array_group;
struct ct_print;
struct ct_recorded_slots;
struct ct_running;

/* Functions of a device's higher-level parts that lower-level files call. They are set when the device is set up. */
struct ct_device_hooks {
    /* Called when memory is short: free the unused memory that pools, or spares, keep. No lock is held. False: there was none. */
    bool (*trim_pools)(struct ct_device *device);
    bool (*trim_spares)(struct ct_device *device);
    /* The host has waited for `point` of `stream`: the device's pools may reuse or release memory that was freed in it up to that point. */
    void (*observe_wait)(struct ct_device *device, struct ct_stream *stream, uint64_t point);
};

/* A device that the process may use: an entry of ct_process.devices, which lives until the process ends. */
struct ct_device {
    int ordinal;
    const struct ct_backend *backend;
    unsigned backend_index;
    struct ct_device_info info;
    struct ct_mutex lock;          /* guards opening and the primary context's state */
    struct ct_device_pools *pools; /* memory pools: memory_pool.c */
    struct ct_spares *spares;      /* memory_spares.c */
    struct ct_device_hooks hooks;
    struct ct_backend_device *opened; /* NULL until the first context */
    bool takes_aliases;               /* guarded by host_aliases.c */
    atomic_ullong given_bytes;        /* device memory in use: memory_budget.c */
    atomic_ullong spare_bytes;        /* how many of these are spares: memory_spares.c */
    struct ct_context *primary;       /* created at start-up, active while primary_retains > 0; its handle never changes */
    unsigned primary_retains;         /* a reset destroys the context's parts, but does not change this count */
    unsigned primary_flags;           /* of the next activation; of the context while it is active */
    pthread_cond_t primary_destroyed; /* signalled when the primary context was destroyed: see context_setup.c */
    struct ct_once probed;            /* ct_probe_ensure */
    struct ct_once timer_measured;    /* ct_timer_ensure */
    struct ptx2spv_timer timer;       /* written once */
    atomic_int lost;                  /* the CUresult of all calls in its contexts; CUDA_SUCCESS: it is not lost (device_loss.h) */
    atomic_bool watched;              /* faults are caught: kernel_faults.h */
    struct ct_mutex running_lock;
    struct ct_running *running;                          /* lists of kernels that may be running: running.h */
    _Atomic(struct ct_copy_kernel *) copy_kernel;        /* copy_kernel.c; NULL until a copy needs it */
    _Atomic(struct ct_builtin_kernels *) memory_kernels; /* memory_kernels.c; NULL until a recording needs one */
    _Atomic(struct ct_builtin_kernels *) block_kernels;  /* block_decoder.c; NULL until a texture has compressed blocks */
};

struct ct_context {
    struct ct_object object;
    struct ct_device *device; /* borrowed: outlives every context */
    const struct ct_backend *backend;
    struct ct_backend_device *backend_device;
    bool is_primary;
    _Atomic bool active;                           /* false: destroyed, or primary and not retained */
    bool is_up;                                    /* primary: its parts exist; under device->lock */
    atomic_uint uses;                              /* calls that use it now, plus one while active; at 0 its parts are destroyed */
    void (*take_down)(struct ct_context *context); /* destroys the parts */
    /* Copies the name of the loaded kernel with that tag (ptx2spv_kernel_tag); false: there is none. */
    bool (*name_kernel)(struct ct_context *context, uint32_t tag, char *out, size_t size);
    _Atomic unsigned flags; /* CUctx_flags */
    unsigned long long id;
    _Atomic uint64_t launches;                        /* of kernels: %gridid is the number of a launch, from 1 on */
    atomic_bool has_cross_context_work;               /* it has copied or filled memory of other contexts */
    _Atomic int sticky_error;                         /* the CUresult that calls return from now on; CUDA_SUCCESS: none */
    struct ct_backing *fault;                         /* host memory that contains fault_words: memory_backing.h */
    atomic_bool needs_reference;                      /* timer.c keeps the timer's reference there up to date */
    const volatile struct ptx2spv_fault *fault_words; /* the error that a kernel reported */
    struct ct_stream *legacy_stream;
    struct ct_memory_arena *arena; /* device memory of this context: memory.c */
    struct ct_mutex lock;          /* guards the lists and the settings below */
    struct ct_stream *streams;     /* linked through stream->next_in_context, legacy and per-thread ones included */
    struct ct_stream *barrier;     /* one of `streams`: waits for the events of cuCtxWaitEvent, new streams wait for it; or NULL */
    struct ct_event *events;       /* linked through event->next_in_context: event.c */
    struct ct_module *modules;
    struct ct_array_group *arrays;                            /* array.c */
    _Atomic(struct ct_context_local *) locals;                /* context_local.c */
    _Atomic(struct ct_heap *) heap;                           /* heap.c; NULL until a module that allocates is loaded */
    _Atomic(struct ct_texture_table *) textures;              /* texture_table.c; NULL until it is needed */
    _Atomic(struct ct_array_mirrors *) mirrors;               /* array_mirror.c; NULL until one exists */
    _Atomic(struct ct_print *) print;                         /* print.c; NULL until a module that prints is loaded */
    _Atomic(struct ct_recorded_slots *) recorded_slots;       /* graph/recorded_slots.c; NULL until a recording needs them */
    void (*_Atomic flush_prints)(struct ct_context *context); /* writes their output; NULL: no kernel prints */
    void (*_Atomic flush_checks)(struct ct_context *context); /* reports what kernels must not do; NULL: none is checked */
    size_t limits[CU_LIMIT_MAX];
    _Atomic CUfunc_cache cache_config;
    _Atomic CUsharedconfig shared_config;
    unsigned api_version;                  /* 3010 from the first cuCtxCreate, else 3020 */
    struct ct_coredump_settings *coredump; /* coredump.c; NULL: those of the process */
    unsigned long long deferred_work;      /* deferred_work.c, which guards it */
    unsigned attaches;                     /* number of cuCtxAttach calls that cuCtxDetach has not undone */
};

/* A context has two reference counts. A use keeps its parts alive: its holder may access every member. A reference to the object keeps
 * only the struct alive; modules and the threads' stacks hold references, and acquire a use with ct_context_use when they need one. */

/* The calling thread's current context, with one use; also checks cuInit and the sticky error.
 * NOT_INITIALIZED, DEINITIALIZED, INVALID_CONTEXT (no context is current), CONTEXT_IS_DESTROYED, or the sticky error; NOT_PERMITTED in a
 * host function of a stream, which has no current context. */
CUresult ct_context_current(struct ct_context **out);
/* The same, but if no context is current *out is NULL. */
CUresult ct_context_current_or_null(struct ct_context **out);
/* The same for calls that still work after a kernel has failed: the sticky error is not checked. */
CUresult ct_context_failed_or_null(struct ct_context **out);
/* Releases a use; takes NULL. The caller holds no lock, since it may be the last use. */
void ct_context_release(struct ct_context *context);
/* Acquires a use of the context of a stream or an event that the application names; it need not be the current context.
 * CONTEXT_IS_DESTROYED, or the sticky error. */
CUresult ct_context_enter(struct ct_context *context);
/* Acquires a use of a context whose struct the caller keeps alive. CONTEXT_IS_DESTROYED. */
CUresult ct_context_use(struct ct_context *context);
/* The active context of a handle, with one use. INVALID_CONTEXT, CONTEXT_IS_DESTROYED. */
CUresult ct_context_lookup(CUcontext handle, struct ct_context **out);
/* The largest CU_LIMIT_STACK_SIZE: as much local memory as a thread may have (CUDA C++ Programming Guide, "Technical Specifications per Compute
 * Capability"). */
#define CT_STACK_BYTES_MAX (512u << 10)
/* What a thread has for activations of recursive functions: twice CU_LIMIT_STACK_SIZE, since Cuttle may store more registers than NVIDIA's
 * driver; a power of two, since kernels are compiled for it; at most what the device's driver compiles. */
uint32_t ct_context_stack_bytes(struct ct_context *context);
/* The error that calls in the context return because of an earlier one; CUDA_SUCCESS: none. */
CUresult ct_context_error(const struct ct_context *context);
/* Turns a device error or a fault word into the context's sticky error and returns it; returns `result` if there is no such error. */
CUresult ct_context_check(struct ct_context *context, CUresult result);
/* Notes that the context accesses memory of `owner`, which may be the context itself or NULL. */
void ct_context_note_access(struct ct_context *context, CUcontext owner);
bool ct_contexts_have_cross_context_work(void); /* whether any context has ever accessed another's memory, which is rare */

/* The context of a handle, or the current one for NULL, with one use. The sticky error is not checked. */
CUresult ct_context_lookup_or_current(CUcontext handle, struct ct_context **out);

/* The calling thread's stack of contexts (context_stack.c). Its entries may be destroyed contexts, or primary contexts that are not
 * retained. */
struct ct_context *ct_context_top_or_null(void); /* borrowed: until the calling thread changes its stack */
/* The handle of the current context, which may be that of a green context; and the latter, borrowed. NULL: there is none. */
CUcontext ct_context_top_handle(void);
struct ct_green_context *ct_context_top_green_or_null(void);
/* The device of a context, or of the current one for NULL, active or not. INVALID_CONTEXT. */
CUresult ct_context_ordinal(CUcontext handle_or_null, CUdevice *out);
CUresult ct_context_push(CUcontext handle);      /* INVALID_CONTEXT */
CUresult ct_context_pop(CUcontext *out_or_null); /* INVALID_CONTEXT: the stack is empty */
CUresult ct_context_set_current(CUcontext handle_or_null);

#endif
