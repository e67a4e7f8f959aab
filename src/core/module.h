/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: PTX that was parsed, and the device memory of its variables. Their kernels are functions (function.h). */
#ifndef CT_CORE_MODULE_H
#define CT_CORE_MODULE_H

#include "context.h"
#include "jit.h"
#include "locks.h"

struct ct_function;

struct ct_module {
    struct ct_object object;
    struct ct_context *context; /* a reference */
    struct ct_module *next_in_context;
    _Atomic bool loaded; /* false: unloaded. Launches read it with their stream locked, see ct_module_unload */
    struct ptx2spv_module *ptx;
    unsigned isa, sm;       /* of the PTX: 75 is .version 7.5, sm_75 */
    uint64_t image_address; /* CUDA address of the variables; 0 none */
    uint64_t constant_bytes;
    struct ct_mutex lock;           /* also guards what functions know of their compilation */
    pthread_cond_t compiled;        /* a function was compiled, or failed to be */
    struct ct_function **functions; /* one for each kernel, a reference each; NULL once unloaded */
};

/* Loads PTX text of `length` bytes (a NUL ends it earlier). On success *out is the handle. INVALID_PTX, UNSUPPORTED_PTX_VERSION,
 * NOT_SUPPORTED, OUT_OF_MEMORY. Kernels are compiled later, so what is wrong inside of one is found at its first launch. */
CUresult ct_module_load(struct ct_context *context, const char *text, size_t length, struct ct_jit *jit, CUmodule *out);
/* Whether an image, as cuModuleLoadData takes it, is PTX text; if so its length. INVALID_IMAGE, NOT_SUPPORTED (fat binaries),
 * NO_BINARY_FOR_GPU (NVIDIA's machine code). Reads no further than it must, since the length is not known. */
CUresult ct_module_identify(const void *image, size_t *out_length);
/* Takes the handles away, waits for the work of the context, frees the variables. INVALID_HANDLE: another thread was faster. */
CUresult ct_module_unload(struct ct_module *module);
void ct_modules_destroy_all(struct ct_context *context); /* its streams are gone */

/* A loaded module of any context, retained, with one use of its context. INVALID_HANDLE, CONTEXT_IS_DESTROYED. */
CUresult ct_module_lookup(CUmodule handle, struct ct_module **out);
void ct_module_release(struct ct_module *module); /* gives both back; takes NULL */

/* The handle of the kernel of that name. NOT_FOUND. */
CUresult ct_module_function(struct ct_module *module, const char *name, CUfunction *out);
/* Handles of the first `count` kernels at most. */
CUresult ct_module_list_functions(struct ct_module *module, CUfunction *out, unsigned count);
/* A variable, .visible or not: its CUDA address and size in bytes. NOT_FOUND; INVALID_VALUE: the name of a kernel. */
CUresult ct_module_variable(const struct ct_module *module, const char *name, uint64_t *out_address, uint64_t *out_size);

#endif
