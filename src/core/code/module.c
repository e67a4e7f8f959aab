/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and unloading modules.
 *
 * Unloading while other threads launch: a launch reads module->loaded with its stream locked; unloading clears it first and then waits
 * for all streams, taking the lock of each (ct_streams_synchronize). So a launch either saw the module loaded, and unloading waits for it,
 * or finds the module unloaded. */
#include "module.h"

#include "core/base/config.h"
#include "function.h"
#include "core/texture/texture_table.h"
#include "heap.h"
#include "core/base/log.h"
#include "core/device/compute_capability.h"
#include "core/device/deferred_work.h"
#include "core/memory/memory.h"
#include "print.h"
#include "core/stream/stream.h"
#include "core/stream/context_streams.h"
#include "core/copy/copy.h"
#include "core/copy/memset.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CT_CHANNEL "module"

static void free_module(struct ct_object *object)
{
    struct ct_module *module = (struct ct_module *)object;

    assert(!module->functions);
    ct_object_release(&module->code->object);
    pthread_cond_destroy(&module->compiled);
    ct_mutex_finish(&module->lock);
    ct_object_release(&module->context->object);
    free(module);
}

static struct ct_module *make_or_null(struct ct_context *context, struct ct_code *code)
{
    struct ct_module *module = calloc(1, sizeof *module);

    if (!module)
        return NULL;
    ct_object_init(&module->object, CT_OBJECT_MODULE, free_module);
    ct_object_retain(&context->object);
    module->context = context;
    ct_object_retain(&code->object);
    module->code = code;
    module->ptx = code->ptx;
    ct_mutex_init(&module->lock, CT_RANK_MODULE);
    pthread_cond_init(&module->compiled, NULL);
    return module;
}

static uint64_t image_of(const struct ct_module *module, const struct ptx2spv_variable *variable)
{
    return variable->managed ? module->managed_address : module->image_address;
}

/* Where the host's copy of the pieces has the byte at an offset of the image. */
static unsigned char *byte_at(const struct ptx2spv_image *image, unsigned char *pieces, uint64_t offset)
{
    const struct ptx2spv_piece *piece = ptx2spv_image_piece(image, offset);

    assert(piece);
    return pieces + ((const char *)piece->bytes - (const char *)image->pieces->bytes) + (offset - piece->offset);
}

/* Writes the addresses of variables into the initial bytes of others that are not managed. */
static CUresult relocate(const struct ct_module *module, const struct ptx2spv_image *image, unsigned char *pieces)
{
    unsigned count;
    const struct ptx2spv_relocation *relocations = ptx2spv_module_relocations(module->ptx, &count);

    for (unsigned i = 0; i < count; i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module->ptx, relocations[i].variable);
        uint64_t address;

        if (relocations[i].in_managed)
            continue;
        if (!variable || variable->external)
            return ct_fail(CUDA_ERROR_INVALID_PTX, "initializer refers to undefined variable %s", variable ? variable->name : "");
        assert(relocations[i].width <= sizeof address);
        address = image_of(module, variable) + variable->offset + (uint64_t)relocations[i].addend;
        /* little-endian, like every supported host and device */
        memcpy(byte_at(image, pieces, relocations[i].offset), &address, relocations[i].width);
    }
    return CUDA_SUCCESS;
}

/* Writes the addresses of the context's resources for system functions into the image of a module that uses them. */
static CUresult connect_system(struct ct_module *module, const struct ptx2spv_image *image, unsigned char *pieces)
{
    const struct {
        const char *variable;
        CUresult (*prepare)(struct ct_context *context, uint64_t *out_address);
        bool *is_used;
    } parts[] = {
        {PTX2SPV_PRINT_VARIABLE, ct_print_prepare, &module->prints},
        {PTX2SPV_HEAP_VARIABLE, ct_heap_prepare, &module->allocates},
        {PTX2SPV_TEXTURES_VARIABLE, ct_textures_prepare, &module->has_textures},
    };
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < ptx2spv_module_variable_count(module->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module->ptx, i);
        uint64_t address;

        for (size_t k = 0; k < sizeof parts / sizeof *parts && r == CUDA_SUCCESS; k++) {
            if (strcmp(variable->name, parts[k].variable) || variable->external || variable->size != sizeof address)
                continue;
            r = parts[k].prepare(module->context, &address);
            if (r == CUDA_SUCCESS)
                memcpy(byte_at(image, pieces, variable->offset), &address, sizeof address);
            *parts[k].is_used = true;
        }
    }
    return r;
}

/* Copies the initial values of the pieces, which `pieces` has room for, with all addresses in them. */
static CUresult copy_pieces(struct ct_module *module, const struct ptx2spv_image *image, unsigned char *pieces, uint64_t n_bytes)
{
    CUresult r;

    memcpy(pieces, image->pieces->bytes, n_bytes);
    if (module->managed_address) /* the layout of ptx2spv_module_managed_image */
        memcpy(byte_at(image, pieces, 0), &module->managed_address, sizeof module->managed_address);
    r = relocate(module, image, pieces);
    if (r == CUDA_SUCCESS)
        r = connect_system(module, image, pieces);
    for (unsigned i = 0; i < image->n_pieces && r == CUDA_SUCCESS; i++) {
        const struct ptx2spv_piece *piece = &image->pieces[i];

        r = ct_copy_to_device(module->context, module->image_address + piece->offset, byte_at(image, pieces, piece->offset),
                              piece->size_bytes);
    }
    return r;
}

/* Fills the memory of the image: with zeros on the device, if there are any outside of the pieces, and with the pieces. */
static CUresult fill_image(struct ct_module *module, const struct ptx2spv_image *image)
{
    unsigned char *pieces;
    uint64_t n_bytes = 0;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < image->n_pieces; i++)
        n_bytes += image->pieces[i].size_bytes;
    if (n_bytes < image->size_bytes)
        r = ct_clear_device(module->context, module->image_address, image->size_bytes);
    if (r != CUDA_SUCCESS || n_bytes == 0)
        return r;
    pieces = malloc(n_bytes);
    if (!pieces)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the initial values of %llu bytes of variables",
                       (unsigned long long)n_bytes);
    r = copy_pieces(module, image, pieces, n_bytes);
    free(pieces);
    return r;
}

static CUresult place_variables(struct ct_module *module)
{
    const struct ptx2spv_image *image = ptx2spv_module_image(module->ptx);
    CUresult r;

    for (unsigned i = 0; i < ptx2spv_module_variable_count(module->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module->ptx, i);

        if (variable->space == PTX2SPV_VAR_CONST && !variable->external)
            module->constant_bytes += variable->size;
    }
    r = ct_code_managed(module->code, module->context->device, &module->managed_address);
    if (r != CUDA_SUCCESS || image->size_bytes == 0)
        return r;
    r = ct_memory_alloc(module->context, image->size_bytes, image->align, CT_RANGE_MODULE, &module->image_address);
    return r == CUDA_SUCCESS ? fill_image(module, image) : r;
}

static CUresult make_functions(struct ct_module *module)
{
    unsigned count = ptx2spv_module_kernel_count(module->ptx);
    CUresult r = CUDA_SUCCESS;

    module->functions = calloc(count ? count : 1, sizeof(struct ct_function *));
    if (!module->functions)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %u functions", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = ct_function_create(module, i, &module->functions[i]);
    return r;
}

bool ct_module_begin_ahead(struct ct_module *module)
{
    bool is_there;

    ct_mutex_lock(&module->lock);
    is_there = module->functions && module->loaded;
    module->n_ahead += is_there;
    ct_mutex_unlock(&module->lock);
    return is_there;
}

void ct_module_end_ahead(struct ct_module *module)
{
    ct_mutex_lock(&module->lock);
    if (--module->n_ahead == 0)
        pthread_cond_broadcast(&module->compiled);
    ct_mutex_unlock(&module->lock);
}

/* Frees the functions and variables of a module, which no longer has a handle, or has none yet. */
static void free_contents(struct ct_module *module)
{
    struct ct_function **functions;
    unsigned count = ptx2spv_module_kernel_count(module->ptx);

    bool was_loaded = atomic_exchange(&module->loaded, false); /* before the wait: see the top of this file */

    ct_mutex_lock(&module->lock);
    functions = module->functions;
    module->functions = NULL;
    while (module->n_ahead)
        ct_mutex_wait(&module->lock, &module->compiled);
    ct_mutex_unlock(&module->lock);
    if (was_loaded)
        ct_context_synchronize(module->context); /* an error belongs to the context, whose calls report it */
    for (unsigned i = 0; functions && i < count; i++)
        ct_function_retire(functions[i]);
    free(functions);
    ct_module_retire_references(module);
    if (module->image_address)
        ct_memory_free(module->context, module->image_address, CT_RANGE_MODULE);
}

static void link_to_context(struct ct_module *module)
{
    struct ct_context *context = module->context;

    ct_mutex_lock(&context->lock);
    module->next_in_context = context->modules;
    context->modules = module;
    ct_object_retain(&module->object);
    ct_mutex_unlock(&context->lock);
}

static void unlink_from_context(struct ct_module *module)
{
    struct ct_context *context = module->context;
    struct ct_module **at = &context->modules;

    ct_mutex_lock(&context->lock);
    while (*at && *at != module)
        at = &(*at)->next_in_context;
    assert(*at);
    *at = module->next_in_context;
    ct_mutex_unlock(&context->lock);
    ct_object_release(&module->object);
}

CUmoduleLoadingMode ct_module_loading_mode(void)
{
    return strcasecmp(ct_config()->module_loading, "EAGER") ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
}

/* A kernel that cannot be compiled does not affect the others: its own launch reports the error. */
static void compile_all(struct ct_module *module)
{
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module->ptx); i++) {
        struct ct_function *function;

        if (ct_module_function_at(module, i, &function) != CUDA_SUCCESS)
            return; /* another thread guessed the handle and unloaded it */
        ct_function_compile(function);
        ct_object_release(&function->object);
    }
}

/* NVIDIA's driver would refuse such PTX. Here it runs if nothing in it is refused. */
static void note_newer_target(const struct ct_context *context, const struct ct_code *code)
{
    const unsigned reported = ct_compute_capability(&context->device->info)->number;

    if (code->sm > reported)
        ct_log(CT_LOG_INFO, "a module has PTX for compute capability %u.%u, which is newer than the %u.%u that device %d reports",
               code->sm / 10, code->sm % 10, reported / 10, reported % 10, context->device->ordinal);
}

CUresult ct_module_load(struct ct_context *context, struct ct_code *code, CUmodule *out)
{
    struct ct_module *module = make_or_null(context, code);
    CUresult r;

    if (!module)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a module");
    if ((r = place_variables(module)) != CUDA_SUCCESS || (r = make_functions(module)) != CUDA_SUCCESS)
        goto fail;
    note_newer_target(context, code);
    atomic_store(&module->loaded, true);
    link_to_context(module);
    r = ct_object_publish(&module->object);
    if (r != CUDA_SUCCESS) {
        unlink_from_context(module);
        goto fail;
    }
    *out = module->object.handle;
    if (ct_module_loading_mode() == CU_MODULE_EAGER_LOADING)
        compile_all(module);
fail:
    if (r != CUDA_SUCCESS)
        free_contents(module);
    ct_object_release(&module->object);
    return r;
}

CUresult ct_module_unload(struct ct_module *module)
{
    CUresult r;

    ct_deferred_work_await(module->context);
    r = ct_object_unpublish(&module->object);
    if (r != CUDA_SUCCESS)
        return r;
    free_contents(module);
    unlink_from_context(module);
    return CUDA_SUCCESS;
}

static bool name_kernel(const struct ct_module *module, uint32_t tag, char *out, size_t size)
{
    const struct ptx2spv_kernel_decl *decl;

    for (unsigned i = 0; (decl = ptx2spv_module_kernel(module->ptx, i)); i++)
        if (ptx2spv_kernel_tag(decl->name) == tag) {
            snprintf(out, size, "%s", decl->name);
            return true;
        }
    return false;
}

bool ct_modules_name_kernel(struct ct_context *context, uint32_t tag, char *out, size_t size)
{
    bool found = false;

    ct_mutex_lock(&context->lock);
    for (const struct ct_module *module = context->modules; module && !found; module = module->next_in_context)
        found = name_kernel(module, tag, out, size);
    ct_mutex_unlock(&context->lock);
    return found;
}

void ct_modules_destroy_all(struct ct_context *context)
{
    struct ct_module *module;

    while ((module = context->modules) != NULL) { /* no other thread uses the context */
        ct_object_retain(&module->object);
        ct_module_unload(module);
        ct_object_release(&module->object);
    }
}

CUresult ct_module_lookup(CUmodule handle, struct ct_module **out)
{
    struct ct_module *module = (struct ct_module *)ct_object_find_or_null(CT_OBJECT_MODULE, handle);
    CUresult r;

    if (!module)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a module", (void *)handle);
    r = ct_context_use(module->context);
    if (r == CUDA_SUCCESS)
        *out = module;
    else
        ct_object_release(&module->object);
    return r;
}

void ct_module_release(struct ct_module *module)
{
    struct ct_context *context = module ? module->context : NULL;

    if (!module)
        return;
    ct_object_release(&module->object);
    ct_context_release(context); /* the reference to the context kept the struct alive */
}

CUresult ct_module_function(struct ct_module *module, const char *name, CUfunction *out)
{
    CUresult r = CUDA_ERROR_NOT_FOUND;

    ct_mutex_lock(&module->lock);
    for (unsigned i = 0; module->functions && i < ptx2spv_module_kernel_count(module->ptx); i++) {
        if (strcmp(module->functions[i]->decl->name, name))
            continue;
        *out = module->functions[i]->object.handle;
        r = CUDA_SUCCESS;
        break;
    }
    ct_mutex_unlock(&module->lock);
    return r == CUDA_SUCCESS ? r : ct_fail(r, "the module has no kernel \"%s\"", name);
}

CUresult ct_module_function_at(struct ct_module *module, unsigned index, struct ct_function **out)
{
    struct ct_function *function = NULL;

    assert(index < ptx2spv_module_kernel_count(module->ptx));
    ct_mutex_lock(&module->lock);
    if (module->functions) {
        function = module->functions[index];
        ct_object_retain(&function->object);
    }
    ct_mutex_unlock(&module->lock);
    if (!function)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the module of a kernel was unloaded");
    *out = function;
    return CUDA_SUCCESS;
}

CUresult ct_module_list_functions(struct ct_module *module, CUfunction *out, unsigned count)
{
    unsigned there = ptx2spv_module_kernel_count(module->ptx);

    ct_mutex_lock(&module->lock);
    for (unsigned i = 0; module->functions && i < count && i < there; i++)
        out[i] = module->functions[i]->object.handle;
    ct_mutex_unlock(&module->lock);
    return CUDA_SUCCESS;
}

static bool is_kernel(const struct ct_module *module, const char *name)
{
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module->ptx); i++)
        if (!strcmp(ptx2spv_module_kernel(module->ptx, i)->name, name))
            return true;
    return false;
}

CUresult ct_module_variable(const struct ct_module *module, const char *name, uint64_t *out_address, uint64_t *out_size)
{
    for (unsigned i = 0; i < ptx2spv_module_variable_count(module->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module->ptx, i);

        if (variable->external || strcmp(variable->name, name)) /* .visible or not: NVIDIA's driver 580 finds all */
            continue;
        if (variable->reference)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s is a texture, surface or sampler reference", name);
        *out_address = image_of(module, variable) + variable->offset;
        *out_size = variable->size;
        return CUDA_SUCCESS;
    }
    if (is_kernel(module, name))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s is a kernel, not a variable", name);
    return ct_fail(CUDA_ERROR_NOT_FOUND, "the module has no variable \"%s\"", name);
}
