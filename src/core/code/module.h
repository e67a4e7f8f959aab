/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: code in a context, with the device memory of its variables. Its kernels are functions (function.h). */
#ifndef CT_CORE_MODULE_H
#define CT_CORE_MODULE_H

#include "code.h"
#include "core/device/context.h"
#include "core/base/locks.h"

/* Parts: module_references.c. */

struct ct_function;
struct ct_texture_reference;

/* A texture or surface reference for which the application asked. */
struct ct_module_reference {
    struct ct_module_reference *next;
    struct ct_texture_reference *reference; /* a reference */
    uint64_t offset;                        /* of its variable in the image */
};

struct ct_module {
    struct ct_object object;
    struct ct_context *context; /* a reference */
    struct ct_module *next_in_context;
    _Atomic bool loaded;           /* false: unloaded. Launches read it with their stream locked, see ct_module_unload */
    atomic_bool is_compiled_ahead; /* its kernels are, or were, given to compile_ahead.c */
    struct ct_code *code;          /* a reference */
    struct ptx2spv_module *ptx;    /* code's */
    uint64_t image_address;        /* CUDA address of the variables; 0 none */
    uint64_t managed_address;      /* of the managed variables, which belong to the code; 0: none */
    uint64_t constant_bytes;
    bool prints, allocates;                         /* has kernels that may call printf, or malloc and free */
    bool has_textures;                              /* has kernels that may access textures and surfaces */
    struct ct_mutex lock;                           /* also guards the compilation states of the functions */
    pthread_cond_t compiled;                        /* signals that a compilation succeeded or failed, and that `n_ahead` became 0 */
    unsigned n_ahead;                               /* threads that compile its kernels ahead at the moment; guarded by `lock` */
    struct ct_module_reference *_Atomic references; /* a list that only grows, at its beginning, under `lock` */
    struct ct_function **functions;                 /* a reference to one for each kernel; NULL once unloaded */
};

/* The mode that CUDA_MODULE_LOADING selects. */
CUmoduleLoadingMode ct_module_loading_mode(void);
/* Loads the code in a context: allocates its variables and, if modules load eagerly, compiles its kernels. On success *out is the
 * handle. INVALID_PTX, OUT_OF_MEMORY. */
CUresult ct_module_load(struct ct_context *context, struct ct_code *code, CUmodule *out);
/* Invalidates the handles, waits for the work of the context, and frees the variables. INVALID_HANDLE: another thread has unloaded it. */
CUresult ct_module_unload(struct ct_module *module);
/* See ct_context.name_kernel. */
bool ct_modules_name_kernel(struct ct_context *context, uint32_t tag, char *out, size_t size);
void ct_modules_destroy_all(struct ct_context *context); /* after its streams were destroyed */

/* Returns a loaded module of any context, retained, with a reference to its context. INVALID_HANDLE, CONTEXT_IS_DESTROYED. */
CUresult ct_module_lookup(CUmodule handle, struct ct_module **out);
void ct_module_release(struct ct_module *module); /* releases both; NULL is a no-op */

/* Returns the handle of the kernel with that name. NOT_FOUND. */
CUresult ct_module_function(struct ct_module *module, const char *name, CUfunction *out);
/* Returns the function of kernel `index`, retained, without a reference to its context. INVALID_HANDLE: the module has been unloaded. */
CUresult ct_module_function_at(struct ct_module *module, unsigned index, struct ct_function **out);
/* Between the two calls a thread may compile kernels of the module ahead: unloading waits for it. False: the module is being unloaded. */
bool ct_module_begin_ahead(struct ct_module *module);
void ct_module_end_ahead(struct ct_module *module);
/* Returns the handle of the texture or surface reference with that name, the same one each time. NOT_FOUND, OUT_OF_MEMORY. */
CUresult ct_module_reference(struct ct_module *module, const char *name, enum ct_object_kind kind, void **out);
/* Before a launch of one of its kernels, without locks: ct_texture_reference_update. */
CUresult ct_module_update_references(struct ct_module *module);
void ct_module_retire_references(struct ct_module *module); /* when it is unloaded: no kernel runs, and none can be launched */
/* Returns the handles of at most the first `count` kernels. */
CUresult ct_module_list_functions(struct ct_module *module, CUfunction *out, unsigned count);
/* Looks up a variable, .visible or not: its CUDA address and its size in bytes. NOT_FOUND; INVALID_VALUE: the name is a kernel's or a texture, surface
 * or sampler reference's. */
CUresult ct_module_variable(const struct ct_module *module, const char *name, uint64_t *out_address, uint64_t *out_size);

#endif
