/* SPDX-License-Identifier: Apache-2.0 */
#include "texture_object.h"

#include "core/base/log.h"
#include "texture_image.h"
#include "texture_record.h"

#include <stddef.h>

#define CT_CHANNEL "memory"
#define ALL_FLAGS                                                                                                                          \
    (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |                    \
     CU_TRSF_SEAMLESS_CUBEMAP)

static bool is_filter(CUfilter_mode mode)
{
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

static CUresult check_sampler(const CUDA_TEXTURE_DESC *texture, unsigned dimensions)
{
    for (unsigned i = 0; i < dimensions; i++)
        if ((unsigned)texture->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "address mode %d does not exist", (int)texture->addressMode[i]);
    if (!is_filter(texture->filterMode) || !is_filter(texture->mipmapFilterMode))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "filter mode %d or %d does not exist", (int)texture->filterMode,
                       (int)texture->mipmapFilterMode);
    if (texture->flags & ~(unsigned)ALL_FLAGS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a texture do not exist", texture->flags);
    return CUDA_SUCCESS;
}

CUresult ct_texture_object_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                                  const CUDA_RESOURCE_VIEW_DESC *view, uint32_t flags, CUtexObject *out)
{
    const bool is_array = resource->resType == CU_RESOURCE_TYPE_ARRAY || resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    struct ct_texture object = {.resource = *resource, .texture = *texture};
    struct ptx2spv_texture record;
    CUresult r;

    if ((r = ct_texture_record_resource(context, resource, is_array ? view : NULL, &record)) != CUDA_SUCCESS ||
        (r = check_sampler(texture, record.dimensions)) != CUDA_SUCCESS)
        return r;
    if (view && is_array && (r = ct_texture_record_view(view, &record)) != CUDA_SUCCESS)
        return r;
    if ((r = ct_texture_record_sampler(resource, texture, &record)) != CUDA_SUCCESS)
        return r;
    record.flags |= flags;
    if (view)
        object.view = *view;
    ct_texture_image_create(context, resource, is_array ? view : NULL, &record, &object);
    if ((r = ct_texture_publish(context, &object, &record, out)) != CUDA_SUCCESS && object.image)
        context->backend->images->sampled_destroy(object.image);
    return r;
}

CUresult ct_surface_object_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, uint32_t flags, CUsurfObject *out)
{
    const struct ct_texture object = {.is_surface = true, .resource = *resource};
    struct ptx2spv_texture record;
    CUresult r;

    if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a surface of resource type %d", (int)resource->resType);
    if ((r = ct_texture_record_surface(context, resource, &record)) != CUDA_SUCCESS)
        return r;
    record.flags |= flags | PTX2SPV_TEXTURE_SURFACE;
    return ct_texture_publish(context, &object, &record, out);
}
