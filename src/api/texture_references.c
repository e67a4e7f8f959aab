/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Texture Reference Management (deprecated). Every function: NOT_INITIALIZED; INVALID_HANDLE: there is no such reference;
 * INVALID_VALUE: a pointer for a result is NULL.
 *
 * What the functions set takes effect at the next launch of a kernel of the module, which waits for earlier work of the context if a kernel used
 * the reference before (core/texture/texture_reference.h). Error codes were compared with NVIDIA's driver 580. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/texture/texture_reference.h"

#define CT_CHANNEL "memory"
#define ALL_FLAGS (CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | 4u)

static CUresult get(CUtexref handle, struct ct_reference_settings *out)
{
    CUresult r = ct_process_check();

    return r == CUDA_SUCCESS ? ct_texture_reference_get(CT_OBJECT_TEXTURE_REFERENCE, handle, out) : r;
}

static CUresult set(CUtexref handle, const struct ct_reference_settings *settings)
{
    return ct_texture_reference_set(CT_OBJECT_TEXTURE_REFERENCE, handle, settings);
}

/* ---- what is read ---- */

static CUresult set_resource(CUtexref handle, struct ct_reference_settings *settings, const CUDA_RESOURCE_DESC *resource)
{
    settings->resource = *resource;
    settings->has_resource = true;
    return set(handle, settings);
}

/* Binds an array, whose format the reference takes over, whether or not Flags has CU_TRSA_OVERRIDE_FORMAT. INVALID_VALUE: other flags;
 * INVALID_HANDLE: there is no such array; NOT_SUPPORTED: its format. */
CUresult CUDAAPI cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = hArray};
    struct ct_reference_settings settings;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (Flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", Flags);
    if ((r = cuArray3DGetDescriptor_v2(&desc, hArray)) != CUDA_SUCCESS)
        return r;
    settings.format = desc.Format;
    settings.channels = (int)desc.NumChannels;
    return set_resource(hTexRef, &settings, &resource);
}

/* The same with a mipmapped array. */
CUresult CUDAAPI cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, .res.mipmap.hMipmappedArray = hMipmappedArray};
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (Flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", Flags);
    return set_resource(hTexRef, &settings, &resource);
}

/* The part of an address below the alignment of textures. */
static CUresult offset_of(CUdeviceptr address, size_t *out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    *out = address % (unsigned)ct_device_limit(context->device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    ct_context_release(context);
    return CUDA_SUCCESS;
}

/* Binds linear memory of the reference's format; 0 unbinds. *ByteOffset: the distance of the first texel that kernels read to dptr, in bytes, since the
 * texture begins at an aligned address. INVALID_VALUE: ByteOffset is NULL and that is not 0, or there are too many bytes. */
CUresult CUDAAPI cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
    struct ct_reference_settings settings;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    size_t offset, end;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS || (r = offset_of(dptr, &offset)) != CUDA_SUCCESS)
        return r;
    if ((offset && !ByteOffset) || __builtin_add_overflow(bytes, offset, &end))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not aligned, and there is no place for the offset", (unsigned long long)dptr);
    resource.res.linear.devPtr = dptr - offset;
    resource.res.linear.format = settings.format;
    resource.res.linear.numChannels = (unsigned)settings.channels;
    resource.res.linear.sizeInBytes = end;
    settings.has_resource = false;
    r = dptr ? set_resource(hTexRef, &settings, &resource) : set(hTexRef, &settings);
    if (r == CUDA_SUCCESS && ByteOffset)
        *ByteOffset = offset;
    return r;
}

/* Binds rows of linear memory, whose format the reference takes over; 0 unbinds. Pitch in bytes. INVALID_VALUE: dptr or Pitch is not aligned, or the
 * texture is too large. */
CUresult CUDAAPI cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
    struct ct_reference_settings settings;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!desc)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "desc is NULL");
    resource.res.pitch2D.devPtr = dptr;
    resource.res.pitch2D.format = settings.format = desc->Format;
    resource.res.pitch2D.numChannels = desc->NumChannels;
    resource.res.pitch2D.width = desc->Width;
    resource.res.pitch2D.height = desc->Height;
    resource.res.pitch2D.pitchInBytes = Pitch;
    settings.channels = (int)desc->NumChannels;
    settings.has_resource = false;
    return dptr ? set_resource(hTexRef, &settings, &resource) : set(hTexRef, &settings);
}

/* The form of CUDA 3.2 to 4.0, which aligned the address down. */
CUresult CUDAAPI cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
    return cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch);
}

/* The format of linear memory that is bound later. INVALID_VALUE: NumPackedComponents is not 1, 2 or 4. */
CUresult CUDAAPI cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (NumPackedComponents != 1 && NumPackedComponents != 2 && NumPackedComponents != 4)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "texels of %d channels", NumPackedComponents);
    settings.format = fmt;
    settings.channels = NumPackedComponents;
    return set(hTexRef, &settings);
}

static bool is_linear(const struct ct_reference_settings *settings)
{
    return settings->resource.resType == CU_RESOURCE_TYPE_LINEAR || settings->resource.resType == CU_RESOURCE_TYPE_PITCH2D;
}

/* The address at which the texture begins. INVALID_VALUE: no linear memory is bound. */
CUresult CUDAAPI cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pdptr || !settings.has_resource || !is_linear(&settings))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pdptr is NULL, or no linear memory is bound to the texture reference");
    *pdptr =
        settings.resource.resType == CU_RESOURCE_TYPE_LINEAR ? settings.resource.res.linear.devPtr : settings.resource.res.pitch2D.devPtr;
    return CUDA_SUCCESS;
}

/* INVALID_VALUE: no array is bound. */
CUresult CUDAAPI cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!phArray || !settings.has_resource || settings.resource.resType != CU_RESOURCE_TYPE_ARRAY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "phArray is NULL, or no array is bound to the texture reference");
    *phArray = settings.resource.res.array.hArray;
    return CUDA_SUCCESS;
}

/* INVALID_VALUE: no mipmapped array is bound. */
CUresult CUDAAPI cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!phMipmappedArray || !settings.has_resource || settings.resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "phMipmappedArray is NULL, or no mipmapped array is bound to the texture reference");
    *phMipmappedArray = settings.resource.res.mipmap.hMipmappedArray;
    return CUDA_SUCCESS;
}

/* Either pointer may be NULL. */
CUresult CUDAAPI cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r == CUDA_SUCCESS && pFormat)
        *pFormat = settings.format;
    if (r == CUDA_SUCCESS && pNumChannels)
        *pNumChannels = settings.channels;
    return r;
}

/* ---- how it is read ---- */

/* Defines the function that sets a member of the texture's description to `value` if `condition` holds. */
#define SETTER(function, parameters, condition, member, value)                                                                             \
    CUresult CUDAAPI function parameters                                                                                                   \
    {                                                                                                                                      \
        struct ct_reference_settings settings;                                                                                             \
        CUresult r = get(hTexRef, &settings);                                                                                              \
                                                                                                                                           \
        if (r != CUDA_SUCCESS)                                                                                                             \
            return r;                                                                                                                      \
        if (!(condition))                                                                                                                  \
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "the value that " #function " got is invalid");                                       \
        settings.texture.member = (value);                                                                                                 \
        return set(hTexRef, &settings);                                                                                                    \
    }
/* Defines the function that returns a member. */
#define GETTER(function, parameters, condition, pointer, member)                                                                           \
    CUresult CUDAAPI function parameters                                                                                                   \
    {                                                                                                                                      \
        struct ct_reference_settings settings;                                                                                             \
        CUresult r = get(hTexRef, &settings);                                                                                              \
                                                                                                                                           \
        if (r != CUDA_SUCCESS)                                                                                                             \
            return r;                                                                                                                      \
        if (!pointer || !(condition))                                                                                                      \
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer that " #function " got is NULL, or its dimension invalid");              \
        *pointer = settings.texture.member;                                                                                                \
        return CUDA_SUCCESS;                                                                                                               \
    }

SETTER(cuTexRefSetAddressMode, (CUtexref hTexRef, int dim, CUaddress_mode am),
       dim >= 0 && dim < 3 && (unsigned)am <= CU_TR_ADDRESS_MODE_BORDER, addressMode[dim], am)
SETTER(cuTexRefSetFilterMode, (CUtexref hTexRef, CUfilter_mode fm), (unsigned)fm <= CU_TR_FILTER_MODE_LINEAR, filterMode, fm)
SETTER(cuTexRefSetMipmapFilterMode, (CUtexref hTexRef, CUfilter_mode fm), (unsigned)fm <= CU_TR_FILTER_MODE_LINEAR, mipmapFilterMode, fm)
SETTER(cuTexRefSetMipmapLevelBias, (CUtexref hTexRef, float bias), true, mipmapLevelBias, bias)
SETTER(cuTexRefSetMaxAnisotropy, (CUtexref hTexRef, unsigned int maxAniso), true, maxAnisotropy, maxAniso)
SETTER(cuTexRefSetFlags, (CUtexref hTexRef, unsigned int Flags), !(Flags & ~ALL_FLAGS), flags, Flags)

GETTER(cuTexRefGetAddressMode, (CUaddress_mode * pam, CUtexref hTexRef, int dim), dim >= 0 && dim < 3, pam, addressMode[dim])
GETTER(cuTexRefGetFilterMode, (CUfilter_mode * pfm, CUtexref hTexRef), true, pfm, filterMode)
GETTER(cuTexRefGetMipmapFilterMode, (CUfilter_mode * pfm, CUtexref hTexRef), true, pfm, mipmapFilterMode)
GETTER(cuTexRefGetMipmapLevelBias, (float *pbias, CUtexref hTexRef), true, pbias, mipmapLevelBias)
GETTER(cuTexRefGetFlags, (unsigned int *pFlags, CUtexref hTexRef), true, pFlags, flags)

CUresult CUDAAPI cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pmaxAniso)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pmaxAniso is NULL");
    *pmaxAniso = (int)settings.texture.maxAnisotropy;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    settings.texture.minMipmapLevelClamp = minMipmapLevelClamp;
    settings.texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return set(hTexRef, &settings);
}

CUresult CUDAAPI cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pminMipmapLevelClamp || !pmaxMipmapLevelClamp)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    *pminMipmapLevelClamp = settings.texture.minMipmapLevelClamp;
    *pmaxMipmapLevelClamp = settings.texture.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pBorderColor)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pBorderColor is NULL");
    for (int i = 0; i < 4; i++)
        settings.texture.borderColor[i] = pBorderColor[i];
    return set(hTexRef, &settings);
}

CUresult CUDAAPI cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    CUresult r = get(hTexRef, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pBorderColor)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pBorderColor is NULL");
    for (int i = 0; i < 4; i++)
        pBorderColor[i] = settings.texture.borderColor[i];
    return CUDA_SUCCESS;
}

/* ---- references without a module ---- */

/* Creates a reference that no kernel uses. */
CUresult CUDAAPI cuTexRefCreate(CUtexref *pTexRef)
{
    struct ct_texture_reference *reference;
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pTexRef ? ct_texture_reference_create(context, CT_OBJECT_TEXTURE_REFERENCE, &reference)
                : ct_fail(CUDA_ERROR_INVALID_VALUE, "pTexRef is NULL");
    if (r == CUDA_SUCCESS) {
        *pTexRef = (CUtexref)reference->object.handle;
        ct_object_release(&reference->object); /* the table of handles keeps it */
    }
    ct_context_release(context);
    return r;
}

/* INVALID_VALUE: the reference belongs to a module. */
CUresult CUDAAPI cuTexRefDestroy(CUtexref hTexRef)
{
    struct ct_texture_reference *reference;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_texture_reference_lookup(CT_OBJECT_TEXTURE_REFERENCE, hTexRef, &reference)) != CUDA_SUCCESS)
        return r;
    r = reference->belongs_to_module ? ct_fail(CUDA_ERROR_INVALID_VALUE, "the texture reference belongs to a module")
                                     : ct_object_unpublish(&reference->object);
    ct_texture_reference_release(reference);
    return r;
}
