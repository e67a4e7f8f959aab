/* SPDX-License-Identifier: Apache-2.0 */
/* The texture and surface references of a module: its variables of these types for which the application asked. */
#include "module.h"

#include "core/base/log.h"
#include "core/texture/texture_reference.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "module"

static const struct ptx2spv_variable *find_variable_or_null(const struct ct_module *module, const char *name, enum ct_object_kind kind)
{
    const enum ptx2spv_reference wanted = kind == CT_OBJECT_TEXTURE_REFERENCE ? PTX2SPV_TEXREF : PTX2SPV_SURFREF;

    for (unsigned i = 0; i < ptx2spv_module_variable_count(module->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module->ptx, i);

        if (variable->reference == wanted && !variable->external && !strcmp(variable->name, name))
            return variable;
    }
    return NULL;
}

static struct ct_module_reference *find_locked(const struct ct_module *module, uint64_t offset)
{
    struct ct_module_reference *found = atomic_load_explicit(&module->references, memory_order_relaxed); /* under the lock */

    while (found && found->offset != offset)
        found = found->next;
    return found;
}

/* Adds a reference unless another thread was faster. */
static CUresult add(struct ct_module *module, enum ct_object_kind kind, uint64_t offset, void **out)
{
    struct ct_module_reference *made = calloc(1, sizeof *made), *found;
    CUresult r;

    if (!made)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a texture reference");
    if ((r = ct_texture_reference_create(module->context, kind, &made->reference)) != CUDA_SUCCESS) {
        free(made);
        return r;
    }
    made->reference->belongs_to_module = true;
    made->offset = offset;
    ct_mutex_lock(&module->lock);
    if ((found = find_locked(module, offset)) == NULL) {
        made->next = atomic_load_explicit(&module->references, memory_order_relaxed);
        atomic_store_explicit(&module->references, made, memory_order_release); /* pairs with ct_module_update_references */
        found = made;
        made = NULL;
    }
    *out = found->reference->object.handle;
    ct_mutex_unlock(&module->lock);
    if (made)
        ct_texture_reference_retire(made->reference);
    free(made);
    return CUDA_SUCCESS;
}

CUresult ct_module_reference(struct ct_module *module, const char *name, enum ct_object_kind kind, void **out)
{
    const struct ptx2spv_variable *variable = find_variable_or_null(module, name, kind);
    struct ct_module_reference *found;

    if (!variable)
        return ct_fail(CUDA_ERROR_NOT_FOUND, "the module has no texture or surface reference \"%s\"", name);
    ct_mutex_lock(&module->lock);
    if ((found = find_locked(module, variable->offset)) != NULL)
        *out = found->reference->object.handle;
    ct_mutex_unlock(&module->lock);
    return found ? CUDA_SUCCESS : add(module, kind, variable->offset, out);
}

CUresult ct_module_update_references(struct ct_module *module)
{
    CUresult r = CUDA_SUCCESS;

    for (struct ct_module_reference *at = atomic_load_explicit(&module->references, memory_order_acquire); at && r == CUDA_SUCCESS;
         at = at->next)
        r = ct_texture_reference_update(at->reference, module->image_address + at->offset);
    return r;
}

void ct_module_retire_references(struct ct_module *module)
{
    struct ct_module_reference *at = atomic_exchange(&module->references, NULL), *next;

    for (; at; at = next) {
        next = at->next;
        ct_texture_reference_retire(at->reference);
        free(at);
    }
}
