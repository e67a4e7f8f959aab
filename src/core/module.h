/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and functions. A module is PTX that was parsed and the device memory of its variables; its kernels are compiled one at a
 * time, when they are first launched or asked about. */
#ifndef CT_CORE_MODULE_H
#define CT_CORE_MODULE_H

#include "context.h"
#include "jit.h"
#include "locks.h"

enum ct_compile_state { CT_COMPILE_NONE, CT_COMPILE_RUNNING, CT_COMPILE_DONE, CT_COMPILE_FAILED };

/* A kernel of a module. Part of its module while that is loaded; a call may hold it longer, and then finds the module unloaded. */
struct ct_function {
    struct ct_object object;
    struct ct_module *module; /* a reference */
    unsigned index;           /* in the compiler's module */
    const struct ptx2spv_kernel_decl *decl;
    unsigned max_registers;   /* as the JIT options ask; 0 not stated */

    /* guarded by module->lock; fixed once DONE or FAILED */
    enum ct_compile_state state;
    CUresult compile_error;
    struct ptx2spv_kernel_info info;
    struct ct_kernel_image *image;

    atomic_int max_dynamic_shared; /* bytes that a launch may ask for; -1: as the device allows unasked */
    atomic_int carveout;           /* percent, a hint; -1 */
    atomic_int cluster_policy, non_portable_cluster, cluster_size[3]; /* kept for cuFuncGetAttribute; clusters are not launched */
};

struct ct_module {
    struct ct_object object;
    struct ct_context *context; /* a reference */
    struct ct_module *next_in_context;
    _Atomic bool loaded;        /* false: unloaded. Read with a stream locked by launches, see ct_module_unload */
    struct ptx2spv_module *ptx;
    unsigned isa, sm, n_functions;
    struct ct_function **functions; /* in the order of the PTX */
    uint64_t image_address;     /* CUDA address of the variables; 0 none */
    uint64_t image_bytes;
    struct ct_mutex lock;
    pthread_cond_t compiled;    /* a function became DONE or FAILED */
};

/* Loads PTX text of `length` bytes (a NUL ends it earlier) into the context; on success *out is the handle. */
CUresult ct_module_load(struct ct_context *context, const char *text, size_t length, struct ct_jit *jit, CUmodule *out);
/* What an image of cuModuleLoadData is, by its first bytes; PTX is CUDA_SUCCESS, *out_length its length. */
CUresult ct_module_identify(const void *image, size_t *out_length);
/* Takes the handles away, waits for the work of the context, frees the variables. INVALID_HANDLE: another thread was faster. */
CUresult ct_module_unload(struct ct_module *module);
void ct_modules_destroy_all(struct ct_context *context); /* the context is LEAVING, its streams are gone */

/* A loaded module, retained, with one use of its context (any context of the process). INVALID_HANDLE. */
CUresult ct_module_lookup(CUmodule handle, struct ct_module **out);
void ct_module_release(struct ct_module *module); /* gives both back; takes NULL */

/* borrowed, or NULL */
struct ct_function *ct_module_function_or_null(const struct ct_module *module, const char *name);
/* A variable that may be looked up: its CUDA address and size in bytes. NOT_FOUND. */
CUresult ct_module_variable(const struct ct_module *module, const char *name, uint64_t *out_address, uint64_t *out_size);

/* A function of a loaded module, retained, with one use of its context. INVALID_HANDLE. */
CUresult ct_function_lookup(CUfunction handle, struct ct_function **out);
void ct_function_release(struct ct_function *function); /* gives both back; takes NULL */
/* Compiles it unless that was done; the result is the same for all threads and calls. No lock is held by the caller. */
CUresult ct_function_compile(struct ct_function *function);
CUresult ct_function_attribute(struct ct_function *function, CUfunction_attribute attribute, int *out);
CUresult ct_function_set_attribute(struct ct_function *function, CUfunction_attribute attribute, int value);
/* Dynamic shared memory that a launch may ask for, in bytes. The function is compiled. */
uint32_t ct_function_dynamic_shared_limit(const struct ct_function *function);
/* Threads that a block may have. */
unsigned ct_function_block_limit(const struct ct_function *function);
bool ct_function_is_compiled(struct ct_function *function);

/* For module.c: makes the object of kernel `index` and publishes it. */
CUresult ct_function_create(struct ct_module *module, unsigned index, unsigned max_registers, struct ct_function **out);

#endif
