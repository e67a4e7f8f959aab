/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries and their kernels.
 *
 * An instance is a module that the library loaded in a context. A context that is destroyed unloads the module like all of its modules;
 * the library then has an instance that is no longer loaded, which it removes when it finds it. Loading happens without the lock: if two
 * threads load at once, the slower one discards its module, which no other code has seen. */
#include "library.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/deferred_work.h"
#include "core/setup/context_setup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "library"

struct ct_instance {
    struct ct_module *module; /* a reference */
    struct ct_instance *next;
};

/* The settings of a kernel on a device, which are passed to functions that are created later. CT_UNSET: no setting. */
struct ct_kernel_settings {
    int max_dynamic_shared, carveout;
};
#define CT_UNSET INT32_MIN

static void free_library(struct ct_object *object)
{
    struct ct_library *library = (struct ct_library *)object;

    assert(!library->instances && !library->kernels);
    if (library->code)
        ct_object_release(&library->code->object);
    ct_mutex_finish(&library->lock);
    free(library);
}

static void free_kernel(struct ct_object *object)
{
    struct ct_kernel *kernel = (struct ct_kernel *)object;

    ct_object_release(&kernel->library->object);
    free(kernel->settings);
    free(kernel);
}

static CUresult make_kernel(struct ct_library *library, unsigned index, struct ct_kernel **out)
{
    struct ct_kernel *kernel = calloc(1, sizeof *kernel);
    CUresult r;

    if (!kernel)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a kernel");
    ct_object_init(&kernel->object, CT_OBJECT_KERNEL, free_kernel);
    ct_object_retain(&library->object);
    kernel->library = library;
    kernel->index = index;
    kernel->decl = ptx2spv_module_kernel(library->code->ptx, index);
    kernel->settings = calloc(ct_process.n_devices, sizeof *kernel->settings);
    for (unsigned i = 0; kernel->settings && i < ct_process.n_devices; i++)
        kernel->settings[i] = (struct ct_kernel_settings){CT_UNSET, CT_UNSET};
    r = kernel->settings ? ct_object_publish(&kernel->object) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the settings of a kernel");
    if (r == CUDA_SUCCESS)
        *out = kernel;
    else
        ct_object_release(&kernel->object);
    return r;
}

static unsigned kernel_count(const struct ct_library *library)
{
    return ptx2spv_module_kernel_count(library->code->ptx);
}

static CUresult make_kernels(struct ct_library *library)
{
    unsigned count = kernel_count(library);
    CUresult r = CUDA_SUCCESS;

    library->kernels = calloc(count ? count : 1, sizeof(struct ct_kernel *));
    if (!library->kernels)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u kernels", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = make_kernel(library, i, &library->kernels[i]);
    return r;
}

static void unload_module(struct ct_module *module)
{
    if (ct_context_use(module->context) != CUDA_SUCCESS)
        return; /* its context is being destroyed, and unloads it */
    if (atomic_load(&module->loaded))
        ct_module_unload(module); /* fails if the application unloads it at the same time */
    ct_context_release(module->context);
}

static void drop_instances(struct ct_instance *instance)
{
    while (instance) {
        struct ct_instance *next = instance->next;

        ct_object_release(&instance->module->object);
        free(instance);
        instance = next;
    }
}

/* Frees the contents of a library that no longer has a handle, or has none yet. */
static void free_contents(struct ct_library *library)
{
    struct ct_instance *instances;
    struct ct_kernel **kernels;

    ct_mutex_lock(&library->lock);
    instances = library->instances;
    kernels = library->kernels;
    library->instances = NULL;
    library->kernels = NULL;
    ct_mutex_unlock(&library->lock);
    for (unsigned i = 0; kernels && i < kernel_count(library); i++) {
        if (!kernels[i])
            continue;
        ct_object_unpublish(&kernels[i]->object);
        ct_object_release(&kernels[i]->object);
    }
    free(kernels);
    for (const struct ct_instance *instance = instances; instance; instance = instance->next)
        unload_module(instance->module);
    drop_instances(instances);
}

CUresult ct_library_load(const void *image, size_t size, struct ct_jit *jit, CUlibrary *out)
{
    struct ct_library *library = calloc(1, sizeof *library);
    CUresult r;

    if (!library)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a library");
    ct_object_init(&library->object, CT_OBJECT_LIBRARY, free_library);
    ct_mutex_init(&library->lock, CT_RANK_LIBRARY);
    r = ct_code_create(image, size, jit, &library->code);
    if (r == CUDA_SUCCESS)
        r = make_kernels(library);
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&library->object);
    if (r == CUDA_SUCCESS)
        *out = library->object.handle;
    else if (library->code)
        free_contents(library);
    ct_object_release(&library->object);
    return r;
}

CUresult ct_library_unload(struct ct_library *library)
{
    CUresult r;

    ct_deferred_work_await(NULL);
    r = ct_object_unpublish(&library->object);
    if (r == CUDA_SUCCESS)
        free_contents(library);
    return r;
}

CUresult ct_library_lookup(CUlibrary handle, struct ct_library **out)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_LIBRARY, handle);

    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a library", (void *)handle);
    *out = (struct ct_library *)object;
    return CUDA_SUCCESS;
}

CUresult ct_kernel_lookup(CUkernel handle, struct ct_kernel **out)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_KERNEL, handle);

    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a kernel", (void *)handle);
    *out = (struct ct_kernel *)object;
    return CUDA_SUCCESS;
}

/* Returns the loaded module in that context, or NULL. Moves instances that are no longer loaded to *dead. */
static struct ct_module *find_locked(struct ct_library *library, const struct ct_context *context, struct ct_instance **dead)
{
    struct ct_instance **at = &library->instances;
    struct ct_module *found = NULL;

    assert(ct_mutex_held(&library->lock));
    while (*at) {
        struct ct_instance *instance = *at;

        if (!atomic_load(&instance->module->loaded)) {
            *at = instance->next;
            instance->next = *dead;
            *dead = instance;
            continue;
        }
        if (instance->module->context == context)
            found = instance->module;
        at = &instance->next;
    }
    return found;
}

static void apply_settings(const struct ct_kernel_settings *settings, struct ct_function *function)
{
    if (settings->max_dynamic_shared != CT_UNSET)
        atomic_store_explicit(&function->max_dynamic_shared, settings->max_dynamic_shared, memory_order_relaxed); /* a single value */
    if (settings->carveout != CT_UNSET)
        atomic_store_explicit(&function->carveout, settings->carveout, memory_order_relaxed);
}

static void apply_all_settings_locked(struct ct_library *library, struct ct_module *module)
{
    for (unsigned i = 0; i < kernel_count(library); i++) {
        struct ct_function *function;

        if (ct_module_function_at(module, i, &function) != CUDA_SUCCESS)
            return; /* unloaded already */
        apply_settings(&library->kernels[i]->settings[module->context->device->ordinal], function);
        ct_object_release(&function->object);
    }
}

/* Makes a module that was just loaded the library's module in its context, unless another thread has loaded one; *out is then that one. */
static CUresult adopt(struct ct_library *library, struct ct_module *module, struct ct_module **out)
{
    struct ct_instance *instance = calloc(1, sizeof *instance), *dead = NULL;
    struct ct_module *found;
    bool is_loaded;

    if (!instance)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an instance of a library");
    ct_mutex_lock(&library->lock);
    is_loaded = library->kernels != NULL;
    found = find_locked(library, module->context, &dead);
    if (!found && is_loaded) {
        apply_all_settings_locked(library, module);
        ct_object_retain(&module->object);
        *instance = (struct ct_instance){module, library->instances};
        library->instances = instance;
        instance = NULL;
        found = module;
    }
    if (found)
        ct_object_retain(&found->object);
    ct_mutex_unlock(&library->lock);
    free(instance);
    drop_instances(dead);
    if (!found)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "another thread has unloaded the library");
    *out = found;
    return CUDA_SUCCESS;
}

static CUresult instantiate(struct ct_library *library, struct ct_context *context, struct ct_module **out)
{
    struct ct_module *module;
    CUmodule handle;
    CUresult r = ct_module_load(context, library->code, &handle);

    if (r != CUDA_SUCCESS)
        return r;
    module = (struct ct_module *)ct_object_find_or_null(CT_OBJECT_MODULE, handle);
    if (!module)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the module was unloaded before its handle was returned");
    r = adopt(library, module, out);
    if (r != CUDA_SUCCESS || *out != module)
        unload_module(module);
    ct_object_release(&module->object);
    return r;
}

CUresult ct_library_module(struct ct_library *library, struct ct_context *context, struct ct_module **out)
{
    struct ct_instance *dead = NULL;
    struct ct_module *module;

    ct_mutex_lock(&library->lock);
    module = find_locked(library, context, &dead);
    if (module)
        ct_object_retain(&module->object);
    ct_mutex_unlock(&library->lock);
    drop_instances(dead);
    if (!module)
        return instantiate(library, context, out);
    *out = module;
    return CUDA_SUCCESS;
}

CUresult ct_library_kernel(struct ct_library *library, const char *name, CUkernel *out)
{
    CUresult r = CUDA_ERROR_NOT_FOUND;

    ct_mutex_lock(&library->lock);
    for (unsigned i = 0; library->kernels && i < kernel_count(library) && r != CUDA_SUCCESS; i++) {
        if (strcmp(library->kernels[i]->decl->name, name))
            continue;
        *out = library->kernels[i]->object.handle;
        r = CUDA_SUCCESS;
    }
    ct_mutex_unlock(&library->lock);
    return r == CUDA_SUCCESS ? r : ct_fail(r, "the library has no kernel \"%s\"", name);
}

void ct_library_list_kernels(struct ct_library *library, CUkernel *out, unsigned count)
{
    ct_mutex_lock(&library->lock);
    for (unsigned i = 0; library->kernels && i < count && i < kernel_count(library); i++)
        out[i] = library->kernels[i]->object.handle;
    ct_mutex_unlock(&library->lock);
}

CUresult ct_kernel_function(struct ct_kernel *kernel, struct ct_context *context, struct ct_function **out)
{
    struct ct_function *function;
    struct ct_module *module;
    CUresult r = ct_library_module(kernel->library, context, &module);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_module_function_at(module, kernel->index, &function);
    ct_object_release(&module->object);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_use(context);
    if (r == CUDA_SUCCESS)
        *out = function;
    else
        ct_object_release(&function->object);
    return r;
}

/* A kernel in a context of a device, with a reference to the context. */
struct visit {
    struct ct_context *context;
    struct ct_device *retained; /* its primary context was retained for the visit; NULL: it was not */
    struct ct_function *function;
};

static void leave(const struct visit *visit)
{
    ct_function_release(visit->function);
    ct_context_release(visit->context);
    if (visit->retained)
        ct_context_release_primary(visit->retained);
}

static CUresult enter_context(struct ct_device *device, struct visit *visit)
{
    struct ct_context *top = ct_context_top_or_null();
    CUcontext handle;
    CUresult r;

    if (top && top->device == device)
        return ct_context_current(&visit->context);
    r = ct_context_retain_primary(device, &handle);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_lookup(handle, &visit->context);
    if (r == CUDA_SUCCESS)
        visit->retained = device;
    else
        ct_context_release_primary(device);
    return r;
}

static CUresult enter(struct ct_kernel *kernel, struct ct_device *device, struct visit *out)
{
    struct visit visit = {NULL, NULL, NULL};
    CUresult r = enter_context(device, &visit);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_kernel_function(kernel, visit.context, &visit.function);
    if (r == CUDA_SUCCESS)
        *out = visit;
    else
        leave(&visit);
    return r;
}

CUresult ct_kernel_attribute(struct ct_kernel *kernel, struct ct_device *device, CUfunction_attribute attribute, int *out)
{
    struct visit visit;
    CUresult r = enter(kernel, device, &visit);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_attribute(visit.function, attribute, out);
    leave(&visit);
    return r;
}

/* Applies to the device's contexts that have the kernel already, and to later ones. */
static void keep_setting(struct ct_kernel *kernel, const struct ct_device *device, CUfunction_attribute attribute, int value)
{
    struct ct_kernel_settings *settings = &kernel->settings[device->ordinal];
    struct ct_library *library = kernel->library;

    ct_mutex_lock(&library->lock);
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        settings->max_dynamic_shared = value;
    else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        settings->carveout = value;
    for (const struct ct_instance *instance = library->instances; instance; instance = instance->next) {
        struct ct_function *function;

        if (instance->module->context->device != device ||
            ct_module_function_at(instance->module, kernel->index, &function) != CUDA_SUCCESS)
            continue;
        apply_settings(settings, function);
        ct_object_release(&function->object);
    }
    ct_mutex_unlock(&library->lock);
}

CUresult ct_kernel_set_attribute(struct ct_kernel *kernel, struct ct_device *device, CUfunction_attribute attribute, int value,
                                 const void *caller)
{
    struct visit visit;
    CUresult r = enter(kernel, device, &visit);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_set_attribute(visit.function, attribute, value, caller);
    if (r == CUDA_SUCCESS)
        keep_setting(kernel, device, attribute, value);
    leave(&visit);
    return r;
}
