/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: code that was loaded without a context. In each context where one of its kernels or variables is asked for it becomes a
 * module, then and there. */
#ifndef CT_CORE_LIBRARY_H
#define CT_CORE_LIBRARY_H

#include "core/code/function.h"

struct ct_instance;
struct ct_kernel_settings;

struct ct_library {
    struct ct_object object;
    struct ct_code *code;          /* a reference */
    struct ct_mutex lock;          /* guards the members below, and the settings of kernels */
    struct ct_instance *instances; /* a module each, of different contexts */
    struct ct_kernel **kernels;    /* one for each of the code, a reference each; NULL once unloaded */
};

/* A kernel of a library. Its handle passes for a function's, and then means the function in the context at hand. */
struct ct_kernel {
    struct ct_object object;
    struct ct_library *library; /* a reference */
    unsigned index;             /* in the code */
    const struct ptx2spv_kernel_decl *decl;
    struct ct_kernel_settings *settings; /* one for each device */
};

/* Takes images as ct_code_create does. On success *out is the handle. */
CUresult ct_library_load(const void *image, size_t size, struct ct_jit *jit, CUlibrary *out);
/* Takes the handles away, its kernels' too, and unloads its modules, which waits for the work of their contexts.
 * INVALID_HANDLE: another thread was faster. */
CUresult ct_library_unload(struct ct_library *library);
/* A loaded library, retained: to be given back with ct_object_release. INVALID_HANDLE. */
CUresult ct_library_lookup(CUlibrary handle, struct ct_library **out);
/* Its module in a context of which the caller holds a use; made now if need be. *out is retained. What ct_module_load gives. */
CUresult ct_library_module(struct ct_library *library, struct ct_context *context, struct ct_module **out);
/* NOT_FOUND. */
CUresult ct_library_kernel(struct ct_library *library, const char *name, CUkernel *out);
/* Handles of the first `count` kernels at most. */
void ct_library_list_kernels(struct ct_library *library, CUkernel *out, unsigned count);

/* A kernel, retained: to be given back with ct_object_release. INVALID_HANDLE. */
CUresult ct_kernel_lookup(CUkernel handle, struct ct_kernel **out);
/* Its function in a context of which the caller holds a use; as ct_function_lookup gives it: with a use of its own. */
CUresult ct_kernel_function(struct ct_kernel *kernel, struct ct_context *context, struct ct_function **out);
/* Attributes are the same in all contexts of a device. What ct_function_attribute and ct_function_set_attribute give. Where the current
 * context is of another device, the device's primary context is retained meanwhile, since the kernel may have to be compiled. */
CUresult ct_kernel_attribute(struct ct_kernel *kernel, struct ct_device *device, CUfunction_attribute attribute, int *out);
CUresult ct_kernel_set_attribute(struct ct_kernel *kernel, struct ct_device *device, CUfunction_attribute attribute, int value);

#endif
