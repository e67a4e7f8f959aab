/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: creating them, and compiling each kernel once. */
#include "function.h"

#include "core/base/config.h"
#include "core/base/float_environment.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/thread.h"
#include "core/device/probe.h"
#include "core/device/timer.h"
#include "kernel_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "function"
/* Of SPIR-V. Drivers may take seconds for larger kernels, and unloading a module and exit wait for a compilation ahead. */
#define MOST_WORDS_AHEAD 16384
#define NAME_BYTES 200 /* of a file that CUTTLE_SPIRV_DIR asks for */

static void free_function(struct ct_object *object)
{
    struct ct_function *function = (struct ct_function *)object;

    function->module->context->backend->kernels->destroy(function->image); /* its module was unloaded: no launch is pending */
    if (function->cooperative)
        ct_object_release(&function->cooperative->object);
    if (function->clustered)
        ct_object_release(&function->clustered->object);
    if (function->in_memory)
        ct_object_release(&function->in_memory->object);
    if (function->any_grid)
        ct_object_release(&function->any_grid->object);
    if (function->deeper)
        ct_object_release(&function->deeper->object);
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
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a function");
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

void ct_function_release(struct ct_function *function)
{
    struct ct_context *context = function ? function->module->context : NULL;

    if (!function)
        return;
    ct_object_release(&function->object);
    ct_context_release(context); /* the reference to the context kept the struct alive */
}

/* A kernel's name, or, since names of files are limited and those of C++ templates are not, its beginning and a hash of all of it. */
static void name_file(const char *name, char *out, size_t size)
{
    const struct ct_bytes all = {name, strlen(name)};

    if (all.size <= NAME_BYTES)
        snprintf(out, size, "%s/%s.spv", ct_config()->spirv_dir, name);
    else
        snprintf(out, size, "%s/%.*s-%016llx.spv", ct_config()->spirv_dir, NAME_BYTES, name,
                 (unsigned long long)ct_hash_parts(&all, 1).low);
}

/* For CUTTLE_SPIRV_DIR, a debugging aid: a failure is logged and otherwise ignored. */
static void write_words(const struct ct_function *function, const struct ptx2spv_kernel *kernel)
{
    char path[1024];
    FILE *file;

    name_file(function->decl->name, path, sizeof path);
    file = fopen(path, "wb");
    if (!file || fwrite(kernel->words, sizeof *kernel->words, kernel->n_words, file) != kernel->n_words)
        ct_log(CT_LOG_WARN, "cannot write %s: %s", path, strerror(errno));
    if (file)
        fclose(file);
}

static enum ptx2spv_shared_form shared_form(const struct ct_function *function)
{
    const bool in_memory = function->is_in_memory || !strcmp(ct_config()->shared_memory, "device");

    return in_memory ? PTX2SPV_SHARED_IN_MEMORY : PTX2SPV_SHARED_AS_NEEDED;
}

/* Passes the compiler's messages on, and counts them. */
struct listener {
    struct ptx2spv_options options;
    unsigned n_messages;
};

static void on_message(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct listener *listener = user;

    listener->n_messages++;
    listener->options.on_diagnostic(listener->options.user, diagnostic);
}

/* A kernel about which the compiler had something to say is not cached, so that later processes get the messages, too. */
static enum ptx2spv_status run_compiler(const struct ct_function *function, const struct ptx2spv_target *target,
                                        const struct ptx2spv_options *options, struct ptx2spv_kernel *out)
{
    const struct ct_module *module = function->module;
    struct listener listener = {*options, 0};
    struct ptx2spv_options listening = *options;
    struct ct_progress progress;
    struct ct_disk_key key;
    const bool is_cached = ct_kernel_cache_key(module->code, function->index, target, options, &key);
    enum ptx2spv_status status;

    if (is_cached && ct_kernel_cache_load(&key, out)) {
        ct_log(CT_LOG_DEBUG, "kernel %s comes from the disk cache", function->decl->name);
        return PTX2SPV_OK;
    }
    listening.on_diagnostic = on_message;
    listening.user = &listener;
    ct_progress_begin(&progress, "Cuttle's compiler", function->decl->name);
    status = ptx2spv_kernel_compile(module->ptx, function->index, target, &listening, out);
    ct_progress_end(&progress);
    if (status == PTX2SPV_OK && is_cached && !listener.n_messages)
        ct_kernel_cache_store(&key, out);
    if (status == PTX2SPV_OK && listener.n_messages && ct_thread_compiles_ahead()) {
        ptx2spv_kernel_finish(out); /* so that the thread that launches it gets the messages */
        return PTX2SPV_UNSUPPORTED;
    }
    return status;
}

bool ct_function_is_checked(const struct ct_function *function)
{
    return ct_config()->check && strstr(function->decl->name, ct_config()->check_kernel) != NULL;
}

static CUresult translate(struct ct_function *function, const struct ptx2spv_target *target, struct ptx2spv_kernel *out)
{
    struct ptx2spv_options options = ct_jit_compiler_options(NULL);
    enum ptx2spv_status status;

    options.cooperative = function->is_cooperative;
    options.clusters = function->is_clustered;
    options.shared_form = shared_form(function);
    options.any_grid = function->is_any_grid;
    options.stack_bytes = function->stack_bytes;
    options.inline_max = (uint32_t)ct_config()->inline_max;
    options.check = ct_function_is_checked(function);
    options.check_races = options.check && ct_config()->check_races;
    options.check_blocks = options.check && ct_config()->check_blocks;
    options.check_written = options.check && ct_config()->check_written;
    options.check_launches = options.check && ct_config()->check_host;
    status = run_compiler(function, target, &options, out);
    if (status != PTX2SPV_OK)
        return ct_fail(ct_jit_result(status), "kernel %s could not be compiled: %s", function->decl->name, ptx2spv_status_string(status));
    if (ct_thread_compiles_ahead() && out->n_words > MOST_WORDS_AHEAD) {
        ptx2spv_kernel_finish(out);
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "kernel %s is too large to be compiled ahead", function->decl->name);
    }
    if (*ct_config()->spirv_dir)
        write_words(function, out);
    return CUDA_SUCCESS;
}

static CUresult make_image(struct ct_function *function, const struct ptx2spv_kernel *kernel)
{
    const struct ct_context *context = function->module->context;
    struct ct_kernel_image *image;
    CUresult r = context->backend->kernels->create(context->backend_device, function->decl->name, kernel, &image);

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
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the device cannot access host memory, which kernels need to report traps");
    ct_probe_ensure(context->device, context->backend_device);
    target = context->device->info.target;
    if (!function->stack_bytes)
        function->stack_bytes = ct_context_stack_bytes(function->module->context);
    if ((r = translate(function, &target, &kernel)) != CUDA_SUCCESS)
        return r;
    if (kernel.info.uses_timer && (r = ct_timer_ensure(function->module->context)) != CUDA_SUCCESS) {
        ptx2spv_kernel_finish(&kernel);
        return r;
    }
    r = make_image(function, &kernel);
    ptx2spv_kernel_finish(&kernel);
    if (r != CUDA_ERROR_NOT_SUPPORTED || target.warp_form != PTX2SPV_WARP_NATIVE)
        return r;
    target.warp_form = PTX2SPV_WARP_COLLECTIVE; /* the compiler's warps are used if the driver's are not sufficient */
    if ((r = translate(function, &target, &kernel)) != CUDA_SUCCESS)
        return r;
    r = make_image(function, &kernel);
    ptx2spv_kernel_finish(&kernel);
    return r;
}

static void finish_compile(struct ct_function *function, CUresult r)
{
    struct ct_module *module = function->module;
    const bool may_succeed_later = r == CUDA_ERROR_OUT_OF_MEMORY || ct_thread_compiles_ahead();
    const enum ct_compile_state state = r == CUDA_SUCCESS ? CT_COMPILE_DONE : may_succeed_later ? CT_COMPILE_NONE : CT_COMPILE_FAILED;

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
        return ct_fail(r, "an earlier compilation of kernel %s failed", function->decl->name);
    ct_float_environment_enter(&before);
    r = compile(function);
    ct_float_environment_restore(&before);
    finish_compile(function, r);
    return r;
}

/* A function that is the same kernel in another form, in one of the function's members. stack_bytes: 0: as the function has. */
static CUresult compile_form(struct ct_function *function, struct ct_function **place, uint32_t stack_bytes, struct ct_function **out)
{
    struct ct_function *form;
    CUresult r;

    ct_mutex_lock(&function->module->lock);
    form = *place;
    if (!form && (form = make_or_null(function->module, function->index)) != NULL) {
        form->is_clustered = function->is_clustered || place == &function->clustered;
        form->is_cooperative = function->is_cooperative || form->is_clustered || place == &function->cooperative;
        form->is_in_memory = place == &function->in_memory;
        form->is_any_grid = function->is_any_grid || place == &function->any_grid;
        form->stack_bytes = stack_bytes ? stack_bytes : function->stack_bytes;
        *place = form;
    }
    ct_mutex_unlock(&function->module->lock);
    if (!form)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a function");
    r = ct_function_compile(form);
    if (r == CUDA_SUCCESS)
        *out = form;
    return r;
}

CUresult ct_function_cooperative(struct ct_function *function, struct ct_function **out)
{
    return compile_form(function, &function->cooperative, 0, out);
}

CUresult ct_function_clustered(struct ct_function *function, struct ct_function **out)
{
    return compile_form(function, &function->clustered, 0, out);
}

CUresult ct_function_in_memory(struct ct_function *function, struct ct_function **out)
{
    return compile_form(function, &function->in_memory, 0, out);
}

CUresult ct_function_any_grid(struct ct_function *function, struct ct_function **out)
{
    return compile_form(function, &function->any_grid, 0, out);
}

CUresult ct_function_deeper(struct ct_function *function, uint32_t stack_bytes, struct ct_function **out)
{
    CUresult r = CUDA_SUCCESS;

    for (*out = function; r == CUDA_SUCCESS && (*out)->info.stack_bytes < stack_bytes;)
        r = compile_form(*out, &(*out)->deeper, stack_bytes, out);
    return r;
}
