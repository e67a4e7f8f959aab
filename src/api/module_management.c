/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Module Management. All functions but cuModuleGetLoadingMode work in the current context (INVALID_CONTEXT: there is none).
 * INVALID_HANDLE: the handle is not that of a module, or the module was unloaded; INVALID_VALUE: a null pointer. */
#include "entry_points.h"

#include "core/code/function.h"
#include "core/code/image.h"
#include "core/base/log.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "module"

static CUresult load(struct ct_context *context, const void *image, size_t size, struct ct_jit *jit, CUmodule *out)
{
    struct ct_code *code;
    CUresult r = ct_code_create(image, size, jit, &code);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_module_load(context, code, out);
    ct_object_release(&code->object);
    return r;
}

/* JIT options as the API receives them. */
struct options {
    unsigned count;
    CUjit_option *options;
    void **values;
};

static CUresult load_with_options(CUmodule *module, const void *image, size_t size, struct options options)
{
    struct ct_context *context;
    struct ct_jit jit;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (!module || !image)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    else
        r = ct_jit_init(&jit, options.count, options.options, options.values);
    if (r == CUDA_SUCCESS) {
        r = load(context, image, size, &jit, module);
        ct_jit_finish(&jit);
    }
    ct_context_release(context);
    return r;
}

/* cuModuleLoadDataEx. image: PTX text that ends with NUL, a fat binary, or the wrapper of one that nvcc registers with the runtime. The log
 * buffers and CU_JIT_WALL_TIME are written even if the load fails.
 * INVALID_PTX, UNSUPPORTED_PTX_VERSION; NOT_SUPPORTED: PTX features that the compiler lacks, several PTX modules to be linked,
 * unsupported options; NO_BINARY_FOR_GPU: machine code without PTX; INVALID_IMAGE: the image is of none of these kinds; OUT_OF_MEMORY. */
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
                                    void **optionValues)
{
    return load_with_options(module, image, CT_SIZE_UNKNOWN, (struct options){numOptions, options, optionValues});
}

/* cuModuleLoadData. The same without options. */
CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    return load_with_options(module, image, CT_SIZE_UNKNOWN, (struct options){0});
}

/* cuModuleLoadFatBinary. The same as cuModuleLoadData, which detects the kind of the image. */
CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return load_with_options(module, fatCubin, CT_SIZE_UNKNOWN, (struct options){0});
}

/* cuModuleLoad. Loads a file that contains an image of cuModuleLoadData, or a host program or library with an embedded fat binary.
 * FILE_NOT_FOUND: the file does not exist. */
CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *fname)
{
    struct ct_context *context;
    size_t size;
    char *bytes;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!module || !fname)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    r = ct_image_read_file(fname, &bytes, &size);
    if (r != CUDA_SUCCESS)
        return r;
    r = load_with_options(module, bytes, size, (struct options){0});
    free(bytes);
    return r;
}

/* Looks up the module of a call that works in the current context. */
static CUresult find(CUmodule handle, struct ct_module **out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_module_lookup(handle, out);
    ct_context_release(context);
    return r;
}

/* cuModuleUnload. Waits for the work of the module's context. */
CUresult CUDAAPI cuModuleUnload(CUmodule hmod)
{
    struct ct_module *module;
    CUresult r = find(hmod, &module);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_module_unload(module);
    ct_module_release(module);
    return r;
}

/* cuModuleGetLoadingMode. Lazy unless CUDA_MODULE_LOADING is EAGER: kernels are compiled at their first use. */
CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!mode)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "mode is NULL");
    *mode = ct_module_loading_mode();
    return CUDA_SUCCESS;
}

/* cuModuleGetFunction. Returns the same handle each time. NOT_FOUND: no kernel has this name; INVALID_VALUE: also an empty name. */
CUresult CUDAAPI cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    struct ct_module *module;
    CUresult r = find(hmod, &module);

    if (r != CUDA_SUCCESS)
        return r;
    if (hfunc && name && *name)
        r = ct_module_function(module, name, hfunc);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "hfunc or name is NULL");
    ct_module_release(module);
    return r;
}

/* cuModuleGetFunctionCount. */
CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct ct_module *module;
    CUresult r = find(mod, &module);

    if (r != CUDA_SUCCESS)
        return r;
    if (count)
        *count = ptx2spv_module_kernel_count(module->ptx);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "count is NULL");
    ct_module_release(module);
    return r;
}

/* cuModuleEnumerateFunctions. Returns at most numFunctions handles, in the order of the PTX. */
CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
    struct ct_module *module;
    CUresult r = find(mod, &module);

    if (r != CUDA_SUCCESS)
        return r;
    if (functions)
        r = ct_module_list_functions(module, functions, numFunctions);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "functions is NULL");
    ct_module_release(module);
    return r;
}

static CUresult find_reference(CUmodule hmod, const char *name, enum ct_object_kind kind, void **out_or_null)
{
    struct ct_module *module;
    CUresult r = find(hmod, &module);

    if (r != CUDA_SUCCESS)
        return r;
    r = out_or_null && name ? ct_module_reference(module, name, kind, out_or_null) : ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    ct_module_release(module);
    return r;
}

/* cuModuleGetTexRef (deprecated). The same handle each time, which is valid as long as the module is loaded. NOT_FOUND: no .texref variable has this
 * name. */
CUresult CUDAAPI cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
    return find_reference(hmod, name, CT_OBJECT_TEXTURE_REFERENCE, (void **)pTexRef);
}

/* cuModuleGetSurfRef (deprecated). Likewise of a .surfref variable. */
CUresult CUDAAPI cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
    return find_reference(hmod, name, CT_OBJECT_SURFACE_REFERENCE, (void **)pSurfRef);
}

/* cuModuleGetGlobal_v2. Returns the address and the size in bytes of a variable; one of the two pointers may be NULL. NOT_FOUND: no
 * variable has this name; INVALID_VALUE: the name is a kernel's, or both pointers are NULL; NOT_SUPPORTED: a managed variable. */
CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
    struct ct_module *module;
    uint64_t address, size;
    CUresult r = find(hmod, &module);

    if (r != CUDA_SUCCESS)
        return r;
    if (name && (dptr || bytes))
        r = ct_module_variable(module, name, &address, &size);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "name, or both dptr and bytes, are NULL");
    if (r == CUDA_SUCCESS && dptr)
        *dptr = address;
    if (r == CUDA_SUCCESS && bytes)
        *bytes = size;
    ct_module_release(module);
    return r;
}
