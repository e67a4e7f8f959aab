/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Library Management. A library needs no context; its module, functions and addresses in a context are created on demand in
 * the current one. NOT_INITIALIZED before cuInit; INVALID_HANDLE: the handle is not that of a library or kernel, or the library was
 * unloaded; INVALID_VALUE: a null pointer. */
#include "entry_points.h"

#include "core/code/image.h"
#include "core/library/library.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/thread.h"
#include "core/device/device.h"

#include <stdlib.h>

#define CT_CHANNEL "library"

static CUresult check_option(CUlibraryOption option, const void *value)
{
    switch ((int)option) {
    case CU_LIBRARY_BINARY_IS_PRESERVED:
        return CUDA_SUCCESS; /* the image may stay valid, but is not needed any more */
    case CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE:
        return value ? ct_fail(CUDA_ERROR_NOT_SUPPORTED, "tables of functions for host and device are not supported") : CUDA_SUCCESS;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "library option %d does not exist", (int)option);
}

static CUresult check_options(unsigned count, const CUlibraryOption *options, void **values)
{
    CUresult r = CUDA_SUCCESS;

    if (count && !options)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the list of %u library options is NULL", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check_option(options[i], values ? values[i] : NULL);
    return r;
}

/* Options as the API receives them. */
struct options {
    unsigned n_jit, n_library;
    CUjit_option *jit;
    void **jit_values;
    CUlibraryOption *library;
    void **library_values;
};

static CUresult load(CUlibrary *library, const void *image, size_t size, const struct options *options)
{
    struct ct_jit jit;
    CUresult r = check_options(options->n_library, options->library, options->library_values);

    if (r != CUDA_SUCCESS || (r = ct_jit_init(&jit, options->n_jit, options->jit, options->jit_values)) != CUDA_SUCCESS)
        return r;
    r = ct_library_load(image, size, &jit, library);
    ct_jit_finish(&jit);
    return r;
}

static CUresult check_two(const void *first, const void *second)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    return first && second ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
}

/* cuLibraryLoadData. Accepts the images, options and errors of cuModuleLoadDataEx; the image is not needed afterwards. The log buffers
 * receive messages of the load only: kernels are compiled later. INVALID_VALUE: also an unknown library option. */
CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
                                   unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    const struct options options = {numJitOptions, numLibraryOptions, jitOptions, jitOptionsValues, libraryOptions, libraryOptionValues};
    CUresult r = check_two(library, code);

    return r == CUDA_SUCCESS ? load(library, code, CT_SIZE_UNKNOWN, &options) : r;
}

/* cuLibraryLoadFromFile. The same from a file; see cuModuleLoad. FILE_NOT_FOUND: the file does not exist. */
CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
                                       unsigned int numLibraryOptions)
{
    const struct options options = {numJitOptions, numLibraryOptions, jitOptions, jitOptionsValues, libraryOptions, libraryOptionValues};
    size_t size;
    char *bytes;
    CUresult r = check_two(library, fileName);

    if (r != CUDA_SUCCESS || (r = ct_image_read_file(fileName, &bytes, &size)) != CUDA_SUCCESS)
        return r;
    r = load(library, bytes, size, &options);
    free(bytes);
    return r;
}

/* Looks up the library of a call; `is_valid` says whether its pointers are not NULL. */
static CUresult find(CUlibrary handle, bool is_valid, struct ct_library **out)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_library_lookup(handle, out)) != CUDA_SUCCESS)
        return r;
    if (is_valid)
        return CUDA_SUCCESS;
    ct_object_release(&(*out)->object);
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
}

static CUresult find_kernel(CUkernel handle, bool is_valid, struct ct_kernel **out)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_kernel_lookup(handle, out)) != CUDA_SUCCESS)
        return r;
    if (is_valid)
        return CUDA_SUCCESS;
    ct_object_release(&(*out)->object);
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
}

/* cuLibraryUnload. Also unloads its kernels, and its modules in all contexts, after the work of those contexts. */
CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
    struct ct_library *found;
    CUresult r = find(library, true, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_library_unload(found);
    ct_object_release(&found->object);
    return r;
}

/* cuLibraryGetKernel. Returns the same handle each time; it may be used wherever a CUfunction may. NOT_FOUND: no kernel has this name. */
CUresult CUDAAPI cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    struct ct_library *found;
    CUresult r = find(library, pKernel && name && *name, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_library_kernel(found, name, pKernel);
    ct_object_release(&found->object);
    return r;
}

/* cuLibraryGetKernelCount. */
CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    struct ct_library *found;
    CUresult r = find(lib, count, &found);

    if (r != CUDA_SUCCESS)
        return r;
    *count = ptx2spv_module_kernel_count(found->code->ptx);
    ct_object_release(&found->object);
    return CUDA_SUCCESS;
}

/* cuLibraryEnumerateKernels. Returns at most numKernels handles, in the order of the PTX. */
CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    struct ct_library *found;
    CUresult r = find(lib, kernels, &found);

    if (r != CUDA_SUCCESS)
        return r;
    ct_library_list_kernels(found, kernels, numKernels);
    ct_object_release(&found->object);
    return CUDA_SUCCESS;
}

/* Returns the module of a library in the current context, retained, together with a reference to the context. */
static CUresult find_module(CUlibrary handle, bool is_valid, struct ct_context **out_context, struct ct_module **out)
{
    struct ct_library *library;
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = find(handle, is_valid, &library);
    if (r == CUDA_SUCCESS) {
        r = ct_library_module(library, context, out);
        ct_object_release(&library->object);
    }
    if (r == CUDA_SUCCESS)
        *out_context = context;
    else
        ct_context_release(context);
    return r;
}

/* cuLibraryGetModule. INVALID_CONTEXT: no context is current. */
CUresult CUDAAPI cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    struct ct_context *context;
    struct ct_module *module;
    CUresult r = find_module(library, pMod, &context, &module);

    if (r != CUDA_SUCCESS)
        return r;
    *pMod = module->object.handle;
    ct_object_release(&module->object);
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* cuKernelGetFunction. Returns the function in the current context. INVALID_CONTEXT: no context is current. */
CUresult CUDAAPI cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    struct ct_context *context;
    struct ct_function *function;
    struct ct_kernel *found;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = find_kernel(kernel, pFunc, &found);
    if (r == CUDA_SUCCESS) {
        r = ct_kernel_function(found, context, &function);
        ct_object_release(&found->object);
    }
    if (r == CUDA_SUCCESS) {
        *pFunc = function->object.handle;
        ct_function_release(function);
    }
    ct_context_release(context);
    return r;
}

/* cuKernelGetLibrary. */
CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct ct_kernel *found;
    CUresult r = find_kernel(kernel, pLib, &found);

    if (r != CUDA_SUCCESS)
        return r;
    *pLib = found->library->object.handle;
    ct_object_release(&found->object);
    return CUDA_SUCCESS;
}

/* cuLibraryGetGlobal. Returns the address in the current context and the size in bytes of a variable; one of the two pointers may be
 * NULL. NOT_FOUND: no variable has this name; INVALID_CONTEXT: no context is current. */
CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct ct_context *context;
    struct ct_module *module;
    uint64_t address, size;
    CUresult r = find_module(library, (dptr || bytes) && name, &context, &module);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_module_variable(module, name, &address, &size);
    if (r == CUDA_SUCCESS && dptr)
        *dptr = address;
    if (r == CUDA_SUCCESS && bytes)
        *bytes = size;
    ct_object_release(&module->object);
    ct_context_release(context);
    return r;
}

/* cuLibraryGetManaged. Returns the address, valid on the host and all devices, and the size in bytes of a managed variable; one of the
 * two pointers may be NULL. No context need be current. NOT_FOUND: no managed variable has this name; NOT_SUPPORTED: the device has no
 * managed memory. */
CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct ct_library *found;
    uint64_t address, size;
    CUdevice ordinal;
    CUresult r = find(library, (dptr || bytes) && name, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_context_ordinal(NULL, &ordinal) != CUDA_SUCCESS)
        ordinal = 0; /* no context is current */
    r = ct_code_managed_variable(found->code, &ct_process.devices[ordinal], name, &address, &size);
    ct_object_release(&found->object);
    if (r == CUDA_SUCCESS && dptr)
        *dptr = address;
    if (r == CUDA_SUCCESS && bytes)
        *bytes = size;
    return r;
}

/* cuLibraryGetUnifiedFunction. INVALID_VALUE, as with NVIDIA's driver: devices have no functions that the host could call by pointer
 * (CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS is 0). */
CUresult CUDAAPI cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
    struct ct_library *found;
    CUresult r = find(library, fptr && symbol, &found);

    if (r != CUDA_SUCCESS)
        return r;
    ct_object_release(&found->object);
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "unified function %s does not exist", symbol);
}

/* cuKernelGetAttribute. As cuFuncGetAttribute, for all contexts of a device. INVALID_DEVICE: the device does not exist. */
CUresult CUDAAPI cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
    struct ct_device *device;
    struct ct_kernel *found;
    CUresult r = find_kernel(kernel, pi, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_device_lookup(dev, &device);
    if (r == CUDA_SUCCESS)
        r = ct_kernel_attribute(found, device, attrib, pi);
    ct_object_release(&found->object);
    return r;
}

/* cuKernelSetAttribute. As cuFuncSetAttribute, for all contexts of a device, including those created later. INVALID_DEVICE: the device
 * does not exist. */
CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
    struct ct_device *device;
    struct ct_kernel *found;
    CUresult r = find_kernel(kernel, true, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_device_lookup(dev, &device);
    if (r == CUDA_SUCCESS)
        r = ct_kernel_set_attribute(found, device, attrib, val, ct_thread_caller());
    ct_object_release(&found->object);
    return r;
}

/* cuKernelSetCacheConfig. A preference without effect. INVALID_VALUE: config does not exist; INVALID_DEVICE. */
CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    struct ct_device *device;
    struct ct_kernel *found;
    CUresult r = find_kernel(kernel, true, &found);

    if (r != CUDA_SUCCESS)
        return r;
    ct_object_release(&found->object);
    r = ct_device_lookup(dev, &device);
    if (r == CUDA_SUCCESS && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "configuration %d does not exist", (int)config);
    return r;
}

/* cuKernelGetName. The name as in the PTX; it stays valid as long as the library is loaded. */
CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel hfunc)
{
    struct ct_kernel *found;
    CUresult r = find_kernel(hfunc, name, &found);

    if (r != CUDA_SUCCESS)
        return r;
    *name = found->decl->name;
    ct_object_release(&found->object);
    return CUDA_SUCCESS;
}

/* cuKernelGetParamInfo. The offset and the size in bytes of a parameter in the parameter block; paramSize may be NULL. INVALID_VALUE:
 * paramIndex is too large. */
CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    struct ct_kernel *found;
    CUresult r = find_kernel(kernel, paramOffset, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (paramIndex >= found->decl->n_params) {
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "parameter index %zu of a kernel with %u parameters", paramIndex, found->decl->n_params);
    } else {
        *paramOffset = found->decl->params[paramIndex].offset;
        if (paramSize)
            *paramSize = found->decl->params[paramIndex].size;
    }
    ct_object_release(&found->object);
    return r;
}
