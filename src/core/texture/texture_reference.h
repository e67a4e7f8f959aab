/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references: variables of a module with the settings of a texture or surface object. The object is created when a kernel of
 * the module is launched after a change. All kernels read its handle in the variable, so a change takes effect when all earlier work of the
 * context is complete. */
#ifndef CT_CORE_TEXTURE_REFERENCE_H
#define CT_CORE_TEXTURE_REFERENCE_H

#include "core/base/exclusive.h"
#include "core/base/object.h"
#include "core/device/context.h"

struct ct_reference_settings {
    bool has_resource;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUarray_format format; /* of linear memory that is bound later */
    int channels;
};

struct ct_texture_reference {
    struct ct_object object;    /* of kind TEXTURE_REFERENCE or SURFACE_REFERENCE */
    struct ct_context *context; /* a reference */
    bool belongs_to_module;
    struct ct_mutex lock; /* rank CT_RANK_REFERENCE; guards `settings` */
    struct ct_reference_settings settings;
    struct ct_exclusive update; /* whoever enters may change what follows */
    unsigned long long handle;  /* of the object that kernels use; 0: none */
    atomic_bool is_changed;     /* the object does not have the present settings. release: pairs with ct_texture_reference_update */
};

/* Creates and publishes a reference of the kind; the caller receives a reference to it. OUT_OF_MEMORY. */
CUresult ct_texture_reference_create(struct ct_context *context, enum ct_object_kind kind, struct ct_texture_reference **out);
/* Invalidates the handle, destroys the object, and releases the caller's reference. No kernel uses the object any more. NULL is a no-op. */
void ct_texture_reference_retire(struct ct_texture_reference *reference);
/* Returns the reference of a handle, retained, with a reference to its context. INVALID_HANDLE, CONTEXT_IS_DESTROYED. */
CUresult ct_texture_reference_lookup(enum ct_object_kind kind, const void *handle, struct ct_texture_reference **out);
void ct_texture_reference_release(struct ct_texture_reference *reference); /* releases both */

CUresult ct_texture_reference_get(enum ct_object_kind kind, const void *handle, struct ct_reference_settings *out);
/* INVALID_HANDLE, and for a resource that is set the errors of ct_texture_record_resource. */
CUresult ct_texture_reference_set(enum ct_object_kind kind, const void *handle, const struct ct_reference_settings *settings);
/* Before a launch, without locks: if settings were changed, waits for the work of the context, creates the object, and stores its handle at the address
 * of the variable. Errors of ct_texture_object_create. */
CUresult ct_texture_reference_update(struct ct_texture_reference *reference, uint64_t address);

#endif
