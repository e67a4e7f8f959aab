/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Surface Reference Management (deprecated). Both functions: NOT_INITIALIZED; INVALID_HANDLE: there is no such reference. As with texture
 * references a change takes effect at the next launch of a kernel of the module. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/texture/texture_reference.h"

#define CT_CHANNEL "memory"

/* Binds an array. INVALID_VALUE: Flags is not 0; INVALID_HANDLE: there is no such array; NOT_SUPPORTED: its format. */
CUresult CUDAAPI cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
    struct ct_reference_settings settings;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_texture_reference_get(CT_OBJECT_SURFACE_REFERENCE, hSurfRef, &settings)) != CUDA_SUCCESS)
        return r;
    if (Flags)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x, which must be 0", Flags);
    settings.resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = hArray};
    settings.has_resource = true;
    return ct_texture_reference_set(CT_OBJECT_SURFACE_REFERENCE, hSurfRef, &settings);
}

/* INVALID_VALUE: no array is bound, or phArray is NULL. */
CUresult CUDAAPI cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
    struct ct_reference_settings settings;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS || (r = ct_texture_reference_get(CT_OBJECT_SURFACE_REFERENCE, hSurfRef, &settings)) != CUDA_SUCCESS)
        return r;
    if (!phArray || !settings.has_resource)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "phArray is NULL, or no array is bound to the surface reference");
    *phArray = settings.resource.res.array.hArray;
    return CUDA_SUCCESS;
}
