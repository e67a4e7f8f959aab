/* SPDX-License-Identifier: Apache-2.0 */
#include "texture_reference.h"

#include "core/base/log.h"
#include "core/copy/copy.h"
#include "core/stream/context_streams.h"
#include "texture_object.h"
#include "texture_record.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

static void free_reference(struct ct_object *object)
{
    struct ct_texture_reference *reference = (struct ct_texture_reference *)object;

    ct_exclusive_finish(&reference->update);
    ct_mutex_finish(&reference->lock);
    ct_object_release(&reference->context->object);
    free(reference);
}

static bool is_surface(const struct ct_texture_reference *reference)
{
    return reference->object.kind == CT_OBJECT_SURFACE_REFERENCE;
}

CUresult ct_texture_reference_create(struct ct_context *context, enum ct_object_kind kind, struct ct_texture_reference **out)
{
    struct ct_texture_reference *reference = calloc(1, sizeof *reference);
    CUDA_TEXTURE_DESC *texture;
    CUresult r;

    if (!reference)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a texture reference");
    ct_object_init(&reference->object, kind, free_reference);
    ct_object_retain(&context->object);
    reference->context = context;
    ct_mutex_init(&reference->lock, CT_RANK_REFERENCE);
    ct_exclusive_init(&reference->update);
    atomic_init(&reference->is_changed, false);
    reference->settings = (struct ct_reference_settings){.format = CU_AD_FORMAT_FLOAT, .channels = 1}; /* as of NVIDIA's driver 580 */
    texture = &reference->settings.texture;
    for (int i = 0; i < 3; i++)
        texture->addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    if ((r = ct_object_publish(&reference->object)) == CUDA_SUCCESS)
        *out = reference;
    else
        ct_object_release(&reference->object);
    return r;
}

static void destroy_object(struct ct_texture_reference *reference, unsigned long long handle)
{
    if (handle)
        (void)ct_texture_remove(reference->context, handle, is_surface(reference)); /* a failure is the context's, whose calls report it */
}

void ct_texture_reference_retire(struct ct_texture_reference *reference)
{
    if (!reference)
        return;
    ct_object_unpublish(&reference->object);
    destroy_object(reference, reference->handle);
    ct_object_release(&reference->object);
}

CUresult ct_texture_reference_lookup(enum ct_object_kind kind, const void *handle, struct ct_texture_reference **out)
{
    struct ct_texture_reference *found = (struct ct_texture_reference *)ct_object_find_or_null(kind, handle);
    CUresult r;

    if (!found)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a texture or surface reference", handle);
    if ((r = ct_context_use(found->context)) == CUDA_SUCCESS)
        *out = found;
    else
        ct_object_release(&found->object);
    return r;
}

void ct_texture_reference_release(struct ct_texture_reference *reference)
{
    struct ct_context *context = reference->context;

    ct_object_release(&reference->object);
    ct_context_release(context); /* the reference to the context kept the struct alive */
}

CUresult ct_texture_reference_get(enum ct_object_kind kind, const void *handle, struct ct_reference_settings *out)
{
    struct ct_texture_reference *reference;
    CUresult r = ct_texture_reference_lookup(kind, handle, &reference);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&reference->lock);
    *out = reference->settings;
    ct_mutex_unlock(&reference->lock);
    ct_texture_reference_release(reference);
    return CUDA_SUCCESS;
}

CUresult ct_texture_reference_set(enum ct_object_kind kind, const void *handle, const struct ct_reference_settings *settings)
{
    struct ct_texture_reference *reference;
    struct ptx2spv_texture record;
    CUresult r = ct_texture_reference_lookup(kind, handle, &reference);

    if (r != CUDA_SUCCESS)
        return r;
    if (settings->has_resource)
        r = ct_texture_record_resource(reference->context, &settings->resource, NULL, &record);
    if (r == CUDA_SUCCESS) {
        ct_mutex_lock(&reference->lock);
        reference->settings = *settings;
        ct_mutex_unlock(&reference->lock);
        atomic_store_explicit(&reference->is_changed, true, memory_order_release);
    }
    ct_texture_reference_release(reference);
    return r;
}

/* ---- launches ---- */

static CUresult create_object(struct ct_texture_reference *reference, unsigned long long *out)
{
    struct ct_reference_settings settings;

    ct_mutex_lock(&reference->lock);
    settings = reference->settings;
    ct_mutex_unlock(&reference->lock);
    *out = 0;
    if (!settings.has_resource)
        return CUDA_SUCCESS; /* kernels read zeros, as with NVIDIA's driver */
    if (is_surface(reference))
        return ct_surface_object_create(reference->context, &settings.resource, PTX2SPV_TEXTURE_REFERENCE, out);
    return ct_texture_object_create(reference->context, &settings.resource, &settings.texture, NULL, PTX2SPV_TEXTURE_REFERENCE, out);
}

static CUresult replace(struct ct_texture_reference *reference, uint64_t address)
{
    const unsigned long long before = reference->handle;
    unsigned long long handle;
    CUresult r = before ? ct_context_synchronize(reference->context) : CUDA_SUCCESS; /* kernels that run still use the object */

    if (r != CUDA_SUCCESS || (r = create_object(reference, &handle)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_copy_to_device(reference->context, address, &handle, sizeof handle)) != CUDA_SUCCESS) {
        destroy_object(reference, handle);
        return r;
    }
    reference->handle = handle;
    destroy_object(reference, before);
    return CUDA_SUCCESS;
}

CUresult ct_texture_reference_update(struct ct_texture_reference *reference, uint64_t address)
{
    CUresult r = CUDA_SUCCESS;

    if (!atomic_load_explicit(&reference->is_changed, memory_order_acquire))
        return CUDA_SUCCESS;
    ct_exclusive_enter(&reference->update);
    if (atomic_exchange(&reference->is_changed, false) && (r = replace(reference, address)) != CUDA_SUCCESS)
        atomic_store(&reference->is_changed, true); /* the next launch tries again */
    ct_exclusive_leave(&reference->update);
    return r;
}
