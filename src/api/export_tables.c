/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetExportTable: tables of functions without a public name, by which NVIDIA's runtime talks to its driver. */
#include "entry_points.h"

#include "core/log.h"

#define CT_CHANNEL "api"

/* cuGetExportTable (declared in cuda.h, in no chapter of the manual). There are no tables: a caller that needs one must do without.
 * INVALID_VALUE: no place for the table, no id, or an id that is not known; *ppExportTable stays as it is. */
CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    const unsigned char *id = pExportTableId ? (const unsigned char *)pExportTableId->bytes : NULL;

    if (!ppExportTable || !id)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetExportTable: no place for the table, or no id");
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuGetExportTable: no table with an id that begins with %02x%02x%02x%02x", id[0], id[1], id[2],
                   id[3]);
}
