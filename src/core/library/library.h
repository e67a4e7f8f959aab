/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: code that was loaded without a context. The library is loaded as a module in each context where one of its kernels or
 * variables is first used. */
#ifndef CT_CORE_LIBRARY_H
#define CT_CORE_LIBRARY_H

#include "core/code/function.h"

struct ct_instance;
struct ct_kernel_settings;

struct ct_library {
    struct ct_object object;
    struct ct_code *code;          /* a reference */
    struct ct_mutex lock;          /* guards the members below, and the settings of kernels */
    struct ct_instance *instances; /* one module each, in different contexts */
    struct ct_kernel **kernels;    /* a reference to one for each kernel of the code; NULL once unloaded */
};

/* A kernel of a library. Its handle may be used as a function's, and then refers to the function in the applicable context. */
struct ct_kernel {
    struct ct_object object;
    struct ct_library *library; /* a reference */
    unsigned index;             /* in the code */
    const struct ptx2spv_kernel_decl *decl;
    struct ct_kernel_settings *settings; /* one for each device */
};

/* Accepts the images of ct_code_create. On success *out is the handle. */
CUresult ct_library_load(const void *image, size_t size, struct ct_jit *jit, CUlibrary *out);
/* Invalidates the handles of the library and its kernels, and unloads its modules after the work of their contexts. INVALID_HANDLE:
 * another thread has unloaded it. */
CUresult ct_library_unload(struct ct_library *library);
/* Returns a loaded library, retained; ct_object_release releases it. INVALID_HANDLE. */
CUresult ct_library_lookup(CUlibrary handle, struct ct_library **out);
/* Returns its module in a context to which the caller holds a reference; loads it if needed. *out is retained. Errors of ct_module_load. */
CUresult ct_library_module(struct ct_library *library, struct ct_context *context, struct ct_module **out);
/* NOT_FOUND. */
CUresult ct_library_kernel(struct ct_library *library, const char *name, CUkernel *out);
/* Returns the handles of at most the first `count` kernels. */
void ct_library_list_kernels(struct ct_library *library, CUkernel *out, unsigned count);

/* Returns a kernel, retained; ct_object_release releases it. INVALID_HANDLE. */
CUresult ct_kernel_lookup(CUkernel handle, struct ct_kernel **out);
/* Returns its function in a context to which the caller holds a reference, in the form of ct_function_lookup: with its own reference to
 * the context. */
CUresult ct_kernel_function(struct ct_kernel *kernel, struct ct_context *context, struct ct_function **out);
/* Attributes are the same in all contexts of a device. Errors of ct_function_attribute and ct_function_set_attribute. If the current
 * context belongs to another device, the device's primary context is retained during the call, since the kernel may have to be compiled. */
CUresult ct_kernel_attribute(struct ct_kernel *kernel, struct ct_device *device, CUfunction_attribute attribute, int *out);
CUresult ct_kernel_set_attribute(struct ct_kernel *kernel, struct ct_device *device, CUfunction_attribute attribute, int value,
                                 const void *caller);

#endif
