/* SPDX-License-Identifier: Apache-2.0 */
/* The internal header of the OpenCL backend. Core includes only backend.h.
 *
 * Locks: each lock of the backend has rank CT_RANK_BACKEND, no lock is taken while another one is held, and none is held during a call
 * that may run a callback (clSetUserEventStatus, clFlush, clWaitForEvents). */
#ifndef CT_CL_CL_H
#define CT_CL_CL_H
/* Parts: backend.c, device.c, device_info.c, device_loss.c, instance.c, kernel.c, memory.c, program_cache.c, result.c, signals.c,
 * thread_stacks.c, timestamp.c, waiter.c. */

#include "core/device/absence.h"
#include "core/device/backend.h"
#include "core/base/disk_cache.h"
#include "core/base/locks.h"
#include "core/backing/memory_file.h"
#include "opencl_compat.h"

#include <stdatomic.h>

/* The functions of the OpenCL loader. */
struct ct_cl_api {
#define CL_FUNCTION(name) __typeof__(&name) name;
#include "functions.def"
};

/* How kernels access memory through pointers that are stored in memory. */
enum ct_cl_memory_form {
    CT_CL_SYSTEM, /* fine-grained system SVM: any host memory */
    CT_CL_BUFFER, /* fine-grained buffer SVM: memory from clSVMAlloc; each kernel needs the list of all allocations */
};

/* A usable device; its struct ct_device_info is at the same index. */
struct ct_cl_physical {
    cl_device_id handle;
    cl_platform_id platform;
    enum ct_cl_memory_form memory_form;
    cl_svm_mem_flags svm_flags; /* for clSVMAlloc */
    bool has_native_kernels;    /* executes host functions in a queue's order, on the host */
};

/* Everything that lives as long as the process: created on first use, never freed (the application may call us until it ends). */
struct ct_cl_instance {
    const struct ct_cl_api *api; /* NULL: no loader */
    struct ct_cl_physical *physical;
    struct ct_device_info *infos;
    unsigned n_devices;
    struct ct_absence absence; /* of usable devices */
};

/* Loads OpenCL and finds the devices, once. Never fails: without OpenCL there are no devices. */
const struct ct_cl_instance *ct_cl_instance_get(void);
/* Finds out which runtimes can be loaded, before the first ct_cl_instance_get (runtimes.h). */
void ct_cl_prepare(void);
/* Examines a device. False: it lacks a required feature; *out_reason then names it (valid as long as the process lives). */
bool ct_cl_device_examine(const struct ct_cl_api *api, cl_platform_id platform, cl_device_id handle, struct ct_cl_physical *out,
                          struct ct_device_info *out_info, const char **out_reason);

/* CPU runtimes replace the process's signal handlers when they start. We are a guest in the application's process, so every call that
 * may be the first one into a runtime is enclosed by these two. */
struct ct_cl_signals;
struct ct_cl_signals *ct_cl_signals_save(void);            /* NULL if out of memory */
void ct_cl_signals_restore(struct ct_cl_signals *signals); /* frees it; takes NULL */

/* Threads that are started between these two have large stacks (thread_stacks.c). */
size_t ct_cl_stacks_enlarge(void);
void ct_cl_stacks_restore(size_t before);
/* Bytes of private memory that all work-items of a group may have together, where it is on the stack of one of these threads. */
uint64_t ct_cl_stacks_room(void);

/* Converts OpenCL's error codes to CUDA's; nothing else does. Logs failures with the name of the call. */
CUresult ct_cl_result(cl_int result, const char *call);

struct ct_backend_device {
    const struct ct_cl_api *api;           /* borrowed: lives as long as the process */
    const struct ct_cl_physical *physical; /* borrowed: the same */
    const struct ct_device_info *info;     /* borrowed: the same */
    cl_context context;
    struct ct_hash compiler;         /* ct_cl_compiler_identity */
    atomic_uint_fast64_t used_bytes; /* relaxed: statistics */
    /* the CUresult that every queue returns from now on; CUDA_SUCCESS: the device is not lost. release: pairs with ct_cl_device_check */
    atomic_int lost;
    atomic_bool given_up;             /* the runtime will never finish its work: nothing that it may use is freed */
    struct ct_memory_file file;       /* CT_CL_SYSTEM: the pages of memory of kind DEVICE */
    struct ct_mutex lock;             /* guards what follows */
    struct ct_cl_memory *allocations; /* CT_CL_BUFFER: all of them */
    uint64_t n_allocations;
    /* of the list; 0: this form needs no list. relaxed: a thread that launches learned of its memory by other synchronization */
    atomic_uint_fast64_t generation;
};

CUresult ct_cl_device_open(unsigned index, struct ct_backend_device **out);
void ct_cl_device_close(struct ct_backend_device *device); /* takes NULL and a half-made device */
/* CUDA_SUCCESS, or the reason why the device is lost. */
CUresult ct_cl_device_check(struct ct_backend_device *device);
/* Marks the device as lost (the first cause stays); returns `cause`. */
CUresult ct_cl_device_lose(struct ct_backend_device *device, CUresult cause);
/* The same, and its objects are not freed any more. */
void ct_cl_device_give_up(struct ct_backend_device *device, CUresult cause);
bool ct_cl_device_is_given_up(struct ct_backend_device *device);

/* waiter.c. Waits for an event; *out_result is the result of the wait. It ends early, with the cause, when the device is given up. */
CUresult ct_cl_wait(struct ct_backend_device *device, cl_event event, cl_int *out_result);
/* Whether other threads, with the routine ct_cl_waiter_main, wait in place of the caller. */
bool ct_cl_device_needs_waiters(const struct ct_device_info *info);
void *ct_cl_waiter_main(void *argument);

struct ct_cl_memory {
    struct ct_memory base;
    struct ct_cl_memory *next, **link; /* in device->allocations */
    void *allocation;                  /* what to free: pages or SVM; NULL if the pages are the application's */
    uint64_t allocation_bytes;
    uint64_t file_offset, file_bytes; /* the part of device->file that holds the pages; 0 bytes: they are not in the file */
};

CUresult ct_cl_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total);
CUresult ct_cl_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out);
CUresult ct_cl_memory_import_host(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out);
CUresult ct_cl_memory_import_fd(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out);
CUresult ct_cl_memory_export(struct ct_memory *memory, unsigned part, struct ct_memory_share *out);
void ct_cl_memory_destroy(struct ct_memory *memory);
/* CT_CL_BUFFER: the start address of every allocation, and the list's generation. *out is malloc'd. */
CUresult ct_cl_memory_list(struct ct_backend_device *device, void ***out, size_t *out_count, uint64_t *out_generation);

/* A launch in the form that the OpenCL queue needs. */
struct ct_cl_dispatch {
    struct ct_kernel_image *kernel;
    void *arguments;       /* the argument block */
    uint32_t shared_bytes; /* size of .shared */
    size_t argument_bytes; /* size of the argument in work-group memory; 0: there is none */
    size_t global[3], local[3];
};

CUresult ct_cl_kernel_create(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                             struct ct_kernel_image **out);
void ct_cl_kernel_destroy(struct ct_kernel_image *kernel);
const struct ptx2spv_kernel_info *ct_cl_kernel_info(const struct ct_kernel_image *kernel);
/* Checks the dimensions of a launch, and computes the rest of *out from them. INVALID_VALUE: the launch exceeds the device's threads or
 * shared memory. */
CUresult ct_cl_kernel_shape(const struct ct_launch *launch, struct ct_cl_dispatch *out);
CUresult ct_cl_kernel_enqueue(const struct ct_cl_dispatch *dispatch, cl_command_queue queue, cl_event *out_event);

/* program_cache.c. What the binaries of a device depend on besides their programs. */
struct ct_hash ct_cl_compiler_identity(const struct ct_backend_device *device);
/* False: the program is not cached. */
bool ct_cl_program_key(const struct ct_backend_device *device, const struct ptx2spv_kernel *source, const char *options,
                       struct ct_disk_key *out);
enum ct_cl_cached {
    CT_CL_NOT_CACHED,
    CT_CL_CACHED,            /* *out is a program that has been built */
    CT_CL_CACHED_UNSUITABLE, /* an earlier process found what the runtime makes of it unsuitable */
};
enum ct_cl_cached ct_cl_program_load(const struct ct_backend_device *device, const struct ct_disk_key *key, const char *options,
                                     cl_program *out);
void ct_cl_program_store(const struct ct_backend_device *device, const struct ct_disk_key *key, cl_program program);
void ct_cl_program_store_unsuitable(const struct ct_disk_key *key);

CUresult ct_cl_timestamp_create(struct ct_backend_device *device, struct ct_timestamp **out);
void ct_cl_timestamp_destroy(struct ct_timestamp *timestamp);
CUresult ct_cl_timestamp_read(struct ct_timestamp *timestamp, double *out_ns);
/* Sets the event, a marker, whose completion time the timestamp returns. */
void ct_cl_timestamp_set(struct ct_timestamp *timestamp, cl_event event);

#endif
