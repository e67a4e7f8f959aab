/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: code in a context, with the device memory of its variables. Their kernels are functions (function.h). */
#ifndef CT_CORE_MODULE_H
#define CT_CORE_MODULE_H

#include "code.h"
#include "core/device/context.h"
#include "core/base/locks.h"

struct ct_function;

struct ct_module {
    struct ct_object object;
    struct ct_context *context; /* a reference */
    struct ct_module *next_in_context;
    _Atomic bool loaded; /* false: unloaded. Launches read it with their stream locked, see ct_module_unload */
    struct ct_code *code;       /* a reference */
    struct ptx2spv_module *ptx; /* code's */
    uint64_t image_address;   /* CUDA address of the variables; 0 none */
    uint64_t managed_address; /* of the managed ones, which are the code's; 0 none */
    uint64_t constant_bytes;
    bool prints, allocates; /* has kernels that may call printf, or malloc and free */
    struct ct_mutex lock;           /* also guards what functions know of their compilation */
    pthread_cond_t compiled;        /* a function was compiled, or failed to be */
    struct ct_function **functions; /* one for each kernel, a reference each; NULL once unloaded */
};

/* As CUDA_MODULE_LOADING says. */
CUmoduleLoadingMode ct_module_loading_mode(void);
/* Makes a module of the code in a context: places its variables and, if modules load eagerly, compiles its kernels. On success *out is the handle. INVALID_PTX, OUT_OF_MEMORY. */
CUresult ct_module_load(struct ct_context *context, struct ct_code *code, CUmodule *out);
/* Takes the handles away, waits for the work of the context, frees the variables. INVALID_HANDLE: another thread was faster. */
CUresult ct_module_unload(struct ct_module *module);
void ct_modules_destroy_all(struct ct_context *context); /* its streams are gone */

/* A loaded module of any context, retained, with one use of its context. INVALID_HANDLE, CONTEXT_IS_DESTROYED. */
CUresult ct_module_lookup(CUmodule handle, struct ct_module **out);
void ct_module_release(struct ct_module *module); /* gives both back; takes NULL */

/* The handle of the kernel of that name. NOT_FOUND. */
CUresult ct_module_function(struct ct_module *module, const char *name, CUfunction *out);
/* The function of kernel `index`, retained, without a use of its context. INVALID_HANDLE: unloaded meanwhile. */
CUresult ct_module_function_at(struct ct_module *module, unsigned index, struct ct_function **out);
/* Handles of the first `count` kernels at most. */
CUresult ct_module_list_functions(struct ct_module *module, CUfunction *out, unsigned count);
/* A variable, .visible or not: its CUDA address and size in bytes. NOT_FOUND; INVALID_VALUE: the name of a kernel. */
CUresult ct_module_variable(const struct ct_module *module, const char *name, uint64_t *out_address, uint64_t *out_size);

#endif
