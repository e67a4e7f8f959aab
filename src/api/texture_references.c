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

#include <stddef.h>
#include <string.h>

#define CT_CHANNEL "memory"
/* NVIDIA's driver also takes 4. */
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

/* The format of linear memory that is bound (as in NVIDIA's driver, asked on an H200), or that will be. Rows keep their number of texels. The
 * format of an array does not change. INVALID_VALUE: NumPackedComponents is not 1, 2 or 4, or what is bound cannot have the format. */
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
    if (settings.has_resource && settings.resource.resType == CU_RESOURCE_TYPE_LINEAR) {
        settings.resource.res.linear.format = fmt;
        settings.resource.res.linear.numChannels = (unsigned)NumPackedComponents;
    } else if (settings.has_resource && settings.resource.resType == CU_RESOURCE_TYPE_PITCH2D) {
        settings.resource.res.pitch2D.format = fmt;
        settings.resource.res.pitch2D.numChannels = (unsigned)NumPackedComponents;
    }
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

/* The settings of a reference to which a resource of that type is bound. INVALID_VALUE: it is not, or `out` is NULL. */
static CUresult get_bound(CUtexref handle, CUresourcetype type, const void *out, struct ct_reference_settings *settings)
{
    CUresult r = get(handle, settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out || !settings->has_resource || settings->resource.resType != type)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer, or no such resource is bound to the texture reference");
    return CUDA_SUCCESS;
}

/* INVALID_VALUE: no array is bound. */
CUresult CUDAAPI cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    const CUresult r = get_bound(hTexRef, CU_RESOURCE_TYPE_ARRAY, phArray, &settings);

    if (r == CUDA_SUCCESS)
        *phArray = settings.resource.res.array.hArray;
    return r;
}

/* INVALID_VALUE: no mipmapped array is bound. */
CUresult CUDAAPI cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
    struct ct_reference_settings settings;
    const CUresult r = get_bound(hTexRef, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, phMipmappedArray, &settings);

    if (r == CUDA_SUCCESS)
        *phMipmappedArray = settings.resource.res.mipmap.hMipmappedArray;
    return r;
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

/* A member of the texture's description: its offset and size. */
struct member {
    size_t offset, size;
};
#define MEMBER(name) ((struct member){offsetof(CUDA_TEXTURE_DESC, name), sizeof((CUDA_TEXTURE_DESC *)NULL)->name})

static CUresult set_member(CUtexref handle, struct member member, const void *value, bool is_valid)
{
    struct ct_reference_settings settings;
    CUresult r = get(handle, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!is_valid)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a setting of a texture reference that does not exist");
    memcpy((char *)&settings.texture + member.offset, value, member.size);
    return set(handle, &settings);
}

static CUresult get_member(CUtexref handle, struct member member, void *out, bool is_valid)
{
    struct ct_reference_settings settings;
    CUresult r = get(handle, &settings);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out || !is_valid)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer, or a dimension that does not exist");
    memcpy(out, (const char *)&settings.texture + member.offset, member.size);
    return CUDA_SUCCESS;
}

static bool is_filter(CUfilter_mode mode)
{
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

static bool is_dimension(int dim)
{
    return dim >= 0 && dim < 3;
}

/* INVALID_VALUE: dim is not 0, 1 or 2, or there is no such mode. */
CUresult CUDAAPI cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
    const bool is_valid = is_dimension(dim) && (unsigned)am <= CU_TR_ADDRESS_MODE_BORDER;

    return set_member(hTexRef, is_valid ? MEMBER(addressMode[dim]) : MEMBER(addressMode[0]), &am, is_valid);
}

CUresult CUDAAPI cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
    return get_member(hTexRef, is_dimension(dim) ? MEMBER(addressMode[dim]) : MEMBER(addressMode[0]), pam, is_dimension(dim));
}

/* INVALID_VALUE: there is no such mode. */
CUresult CUDAAPI cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    return set_member(hTexRef, MEMBER(filterMode), &fm, is_filter(fm));
}

CUresult CUDAAPI cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    return get_member(hTexRef, MEMBER(filterMode), pfm, true);
}

/* INVALID_VALUE: there is no such mode. */
CUresult CUDAAPI cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
    return set_member(hTexRef, MEMBER(mipmapFilterMode), &fm, is_filter(fm));
}

CUresult CUDAAPI cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
    return get_member(hTexRef, MEMBER(mipmapFilterMode), pfm, true);
}

CUresult CUDAAPI cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
    return set_member(hTexRef, MEMBER(mipmapLevelBias), &bias, true);
}

CUresult CUDAAPI cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
    return get_member(hTexRef, MEMBER(mipmapLevelBias), pbias, true);
}

CUresult CUDAAPI cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
    const CUresult r = set_member(hTexRef, MEMBER(minMipmapLevelClamp), &minMipmapLevelClamp, true);

    return r == CUDA_SUCCESS ? set_member(hTexRef, MEMBER(maxMipmapLevelClamp), &maxMipmapLevelClamp, true) : r;
}

CUresult CUDAAPI cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
    const CUresult r = get_member(hTexRef, MEMBER(minMipmapLevelClamp), pminMipmapLevelClamp, pmaxMipmapLevelClamp != NULL);

    return r == CUDA_SUCCESS ? get_member(hTexRef, MEMBER(maxMipmapLevelClamp), pmaxMipmapLevelClamp, true) : r;
}

/* Without effect on fetches. */
CUresult CUDAAPI cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
    return set_member(hTexRef, MEMBER(maxAnisotropy), &maxAniso, true);
}

CUresult CUDAAPI cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
    return get_member(hTexRef, MEMBER(maxAnisotropy), pmaxAniso, true);
}

CUresult CUDAAPI cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
    return set_member(hTexRef, MEMBER(borderColor), pBorderColor, pBorderColor != NULL);
}

CUresult CUDAAPI cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
    return get_member(hTexRef, MEMBER(borderColor), pBorderColor, true);
}

/* INVALID_VALUE: there is no such flag. */
CUresult CUDAAPI cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
    return set_member(hTexRef, MEMBER(flags), &Flags, !(Flags & ~ALL_FLAGS));
}

CUresult CUDAAPI cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
    return get_member(hTexRef, MEMBER(flags), pFlags, true);
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
