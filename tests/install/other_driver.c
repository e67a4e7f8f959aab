/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that is Cuttle but for the table by which it helps `cuttle trace`: it stands for NVIDIA's. dlsym finds the other functions in the library that
 * this one is linked with. */
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>

CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    CUresult (*real)(const void **, const CUuuid *) = (CUresult(*)(const void **, const CUuuid *))dlsym(RTLD_NEXT, "cuGetExportTable");

    return pExportTableId && !memcmp(pExportTableId->bytes, "Cuttle's tracing", 16) ? CUDA_ERROR_INVALID_VALUE
                                                                                    : real(ppExportTable, pExportTableId);
}
