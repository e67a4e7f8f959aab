/* SPDX-License-Identifier: Apache-2.0 */
/* The texture and surface objects of a context: a table on the host, and the records that kernels read (struct ptx2spv_texture). */
#ifndef CT_CORE_TEXTURE_TABLE_H
#define CT_CORE_TEXTURE_TABLE_H

#include "core/device/context.h"

/* An object as the application described it. */
struct ct_texture {
    struct ct_sampled *image; /* its image, or NULL; owned by the object */
    uint32_t image_bits;      /* enum ptx2spv_image_generation; 0 without an image */
    bool is_surface;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
};

/* Returns the CUDA address of the context's directory (PTX2SPV_TEXTURES_VARIABLE), which is created if needed. OUT_OF_MEMORY. */
CUresult ct_textures_prepare(struct ct_context *context, uint64_t *out_address);
/* Creates an object, which owns the image on success; the record's generation is set here. OUT_OF_MEMORY. */
CUresult ct_texture_publish(struct ct_context *context, const struct ct_texture *texture, const struct ptx2spv_texture *record,
                            unsigned long long *out_handle);
/* Copies the description of an object. INVALID_VALUE: there is no such object of that kind in the context. */
CUresult ct_texture_describe(struct ct_context *context, unsigned long long handle, bool is_surface, struct ct_texture *out);
/* INVALID_VALUE. Kernels that still use the object then read zeros. */
CUresult ct_texture_remove(struct ct_context *context, unsigned long long handle, bool is_surface);
void ct_textures_destroy(struct ct_context *context); /* with the context; the device memory is freed with its arena */

#endif
