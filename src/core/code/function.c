/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: compiling kernels, once each, and telling what is known of them. */
#include "function.h"

#include "core/device/compute_capability.h"
#include "core/base/config.h"
#include "core/device/device.h"
#include "core/base/float_environment.h"
#include "library.h"
#include "core/base/log.h"
#include "core/launch/occupancy.h"
#include "core/device/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "function"

static void free_function(struct ct_object *object)
{
    struct ct_function *function = (struct ct_function *)object;

    function->module->context->backend->kernel_destroy(function->image); /* its module was unloaded: no launch is under way */
    if (function->cooperative)
        ct_object_release(&function->cooperative->object);
    ct_object_release(&function->module->object);
    free(function->setup);
    free(function);
}

static struct ct_function *make_or_null(struct ct_module *module, unsigned index)
{
    struct ct_function *function = calloc(1, sizeof *function);

    if (!function)
        return NULL;
    ct_object_init(&function->object, CT_OBJECT_FUNCTION, free_function);
    ct_object_retain(&module->object);
    function->module = module;
    function->index = index;
    function->decl = ptx2spv_module_kernel(module->ptx, index);
    atomic_init(&function->state, CT_COMPILE_NONE);
    atomic_init(&function->max_dynamic_shared, -1);
    atomic_init(&function->carveout, -1);
    return function;
}

CUresult ct_function_create(struct ct_module *module, unsigned index, struct ct_function **out)
{
    struct ct_function *function = make_or_null(module, index);
    CUresult r;

    if (!function)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "function");
    r = ct_object_publish(&function->object);
    if (r == CUDA_SUCCESS)
        *out = function;
    else
        ct_object_release(&function->object);
    return r;
}

void ct_function_retire(struct ct_function *function)
{
    if (!function)
        return;
    ct_object_unpublish(&function->object);
    ct_object_release(&function->object);
}

static CUresult lookup_kernel(CUkernel handle, struct ct_context *context, struct ct_function **out)
{
    struct ct_kernel *kernel = (struct ct_kernel *)ct_object_find_or_null(CT_OBJECT_KERNEL, handle);
    CUresult r;

    if (!kernel)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is no function, nor a kernel", (void *)handle);
    r = ct_kernel_function(kernel, context, out);
    ct_object_release(&kernel->object);
    return r;
}

CUresult ct_function_lookup(CUfunction handle, struct ct_context *context, struct ct_function **out)
{
    struct ct_function *function = (struct ct_function *)ct_object_find_or_null(CT_OBJECT_FUNCTION, handle);
    CUresult r;

    if (!function)
        return lookup_kernel((CUkernel)handle, context, out);
    r = ct_context_use(function->module->context);
    if (r == CUDA_SUCCESS)
        *out = function;
    else
        ct_object_release(&function->object);
    return r;
}

CUresult ct_function_lookup_current(CUfunction handle, bool is_valid, struct ct_function **out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = is_valid ? ct_function_lookup(handle, context, out) : ct_fail(CUDA_ERROR_INVALID_VALUE, "arguments of a call for a function");
    ct_context_release(context);
    return r;
}

void ct_function_release(struct ct_function *function)
{
    struct ct_context *context = function ? function->module->context : NULL;

    if (!function)
        return;
    ct_object_release(&function->object);
    ct_context_release(context); /* the use kept the struct */
}

/* For CUTTLE_SPIRV_DIR: a debugging aid, so a failure is told and does no harm. */
static void write_words(const struct ct_function *function, const struct ptx2spv_kernel *kernel)
{
    char path[1024];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.spv", ct_config()->spirv_dir, function->decl->name);
    file = fopen(path, "wb");
    if (!file || fwrite(kernel->words, sizeof *kernel->words, kernel->n_words, file) != kernel->n_words)
        ct_log(CT_LOG_WARN, "cannot write %s: %s", path, strerror(errno));
    if (file)
        fclose(file);
}

static CUresult translate(struct ct_function *function, const struct ptx2spv_target *target, struct ptx2spv_kernel *out)
{
    struct ptx2spv_options options = ct_jit_compiler_options(NULL);
    enum ptx2spv_status status;

    options.cooperative = function->is_cooperative;
    status = ptx2spv_kernel_compile(function->module->ptx, function->index, target, &options, out);
    if (status != PTX2SPV_OK)
        return ct_fail(ct_jit_result(status), "kernel %s does not compile: %s", function->decl->name, ptx2spv_status_string(status));
    if (*ct_config()->spirv_dir)
        write_words(function, out);
    return CUDA_SUCCESS;
}

static CUresult make_image(struct ct_function *function, const struct ptx2spv_kernel *kernel)
{
    const struct ct_context *context = function->module->context;
    struct ct_kernel_image *image;
    CUresult r = context->backend->kernel_create(context->backend_device, function->decl->name, kernel, &image);

    if (r == CUDA_SUCCESS) {
        function->info = kernel->info;
        function->image = image;
    }
    return r;
}

static CUresult compile(struct ct_function *function)
{
    const struct ct_context *context = function->module->context;
    struct ptx2spv_target target;
    struct ptx2spv_kernel kernel;
    CUresult r;

    if (!context->device->info.maps_host)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "kernels on a device that reaches no host memory: they could not tell of traps");
    ct_probe_settle(context->device, context->backend_device);
    target = context->device->info.target;
    if ((r = translate(function, &target, &kernel)) != CUDA_SUCCESS)
        return r;
    r = make_image(function, &kernel);
    ptx2spv_kernel_finish(&kernel);
    if (r != CUDA_ERROR_NOT_SUPPORTED || target.warp_form != PTX2SPV_WARP_NATIVE)
        return r;
    target.warp_form = PTX2SPV_WARP_COLLECTIVE; /* what the driver's warps cannot, ours can */
    if ((r = translate(function, &target, &kernel)) != CUDA_SUCCESS)
        return r;
    r = make_image(function, &kernel);
    ptx2spv_kernel_finish(&kernel);
    return r;
}

static void finish_compile(struct ct_function *function, CUresult r)
{
    struct ct_module *module = function->module;
    enum ct_compile_state state = r == CUDA_SUCCESS               ? CT_COMPILE_DONE
                                  : r == CUDA_ERROR_OUT_OF_MEMORY ? CT_COMPILE_NONE /* there may be more another time */
                                                                  : CT_COMPILE_FAILED;

    ct_mutex_lock(&module->lock);
    function->compile_error = r;
    atomic_store_explicit(&function->state, (int)state, memory_order_release); /* pairs with ct_function_is_compiled */
    pthread_cond_broadcast(&module->compiled);
    ct_mutex_unlock(&module->lock);
}

bool ct_function_is_compiled(const struct ct_function *function)
{
    return atomic_load_explicit(&function->state, memory_order_acquire) == CT_COMPILE_DONE; /* pairs with finish_compile */
}

CUresult ct_function_compile(struct ct_function *function)
{
    struct ct_module *module = function->module;
    struct ct_float_environment before;
    int state;
    CUresult r;

    if (ct_function_is_compiled(function))
        return CUDA_SUCCESS;
    ct_mutex_lock(&module->lock);
    while ((state = atomic_load(&function->state)) == CT_COMPILE_RUNNING)
        ct_mutex_wait(&module->lock, &module->compiled);
    if (state == CT_COMPILE_NONE)
        atomic_store(&function->state, CT_COMPILE_RUNNING);
    r = function->compile_error;
    ct_mutex_unlock(&module->lock);
    if (state == CT_COMPILE_DONE)
        return CUDA_SUCCESS;
    if (state == CT_COMPILE_FAILED)
        return ct_fail(r, "kernel %s did not compile before", function->decl->name);
    ct_float_environment_enter(&before);
    r = compile(function);
    ct_float_environment_restore(&before);
    finish_compile(function, r);
    return r;
}

CUresult ct_function_cooperative(struct ct_function *function, struct ct_function **out)
{
    struct ct_function *cooperative;
    CUresult r;

    ct_mutex_lock(&function->module->lock);
    cooperative = function->cooperative;
    if (!cooperative && (cooperative = make_or_null(function->module, function->index)) != NULL) {
        cooperative->is_cooperative = true;
        function->cooperative = cooperative;
    }
    ct_mutex_unlock(&function->module->lock);
    if (!cooperative)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "function");
    r = ct_function_compile(cooperative);
    if (r == CUDA_SUCCESS)
        *out = cooperative;
    return r;
}

/* Threads of a block by a dimension directive; 0: the directive is not there. */
static unsigned threads_of(const uint32_t size[3])
{
    uint64_t threads = size[0];

    for (int i = 1; i < 3; i++)
        threads = threads * (size[i] ? size[i] : 1) > UINT32_MAX ? UINT32_MAX : threads * (size[i] ? size[i] : 1);
    return (unsigned)threads;
}

unsigned ct_function_block_limit(const struct ct_function *function)
{
    const struct ct_device *device = function->module->context->device;
    unsigned limit = (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    unsigned asked = threads_of(function->decl->req_ntid);

    if (!asked)
        asked = threads_of(function->decl->max_ntid);
    return asked && asked < limit ? asked : limit;
}

/* What is left of a block's shared memory of `total` bytes beside the static part. */
static unsigned beside_static(const struct ct_function *function, CUdevice_attribute total)
{
    unsigned bytes = (unsigned)ct_device_limit(function->module->context->device, total);
    unsigned used = function->info.static_shared_bytes;

    return used < bytes ? bytes - used : 0;
}

unsigned ct_function_dynamic_shared_limit(const struct ct_function *function)
{
    int asked = atomic_load_explicit(&function->max_dynamic_shared, memory_order_relaxed); /* one number, nothing to order */

    return asked >= 0 ? (unsigned)asked : beside_static(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
}

unsigned ct_function_shared_base(const struct ct_function *function)
{
    const struct ptx2spv_kernel_info *info = &function->info;

    return info->dynamic_shared_offset > info->static_shared_bytes ? info->dynamic_shared_offset : info->static_shared_bytes;
}

static int static_attribute(const struct ct_function *function, CUfunction_attribute attribute)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return (int)ct_function_block_limit(function);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        return (int)function->module->constant_bytes;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        return (int)function->module->code->sm;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return (int)ct_compute_capability()->number;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return atomic_load_explicit(&function->carveout, memory_order_relaxed); /* one number, nothing to order */
    default:
        return 0; /* CACHE_MODE_CA and clusters: there is no such thing */
    }
}

CUresult ct_function_attribute(struct ct_function *function, CUfunction_attribute attribute, int *out)
{
    CUresult r = CUDA_SUCCESS;

    if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "there is no function attribute %d", (int)attribute);
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)function->info.static_shared_bytes;
        return r;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)function->info.local_bytes;
        return r;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)ct_function_dynamic_shared_limit(function);
        return r;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)ct_occupancy_registers(function);
        return r;
    default:
        *out = static_attribute(function, attribute);
        return r;
    }
}

static CUresult set_dynamic_shared(struct ct_function *function, int value)
{
    CUresult r = ct_function_compile(function);
    unsigned limit;

    if (r != CUDA_SUCCESS)
        return r;
    limit = beside_static(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    if (value < 0 || (unsigned)value > limit)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s cannot have %d bytes of dynamic shared memory, %u at most",
                       function->decl->name, value, limit);
    atomic_store_explicit(&function->max_dynamic_shared, value, memory_order_relaxed);
    return CUDA_SUCCESS;
}

CUresult ct_function_set_attribute(struct ct_function *function, CUfunction_attribute attribute, int value)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return set_dynamic_shared(function, value);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "a carveout of %d percent", value);
        atomic_store_explicit(&function->carveout, value, memory_order_relaxed);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return value == 0 ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "clusters of blocks (function attribute %d)", (int)attribute);
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "function attribute %d cannot be set", (int)attribute);
    }
}
