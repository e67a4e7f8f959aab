/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that another API or process made, and its buffers in ours. */
#ifndef CT_CORE_EXTERNAL_MEMORY_H
#define CT_CORE_EXTERNAL_MEMORY_H

#include "core/device/context.h"

/* Published, of the context. Takes the descriptor on success. INVALID_VALUE: size, flags, no such type; OPERATING_SYSTEM: a descriptor
 * that is not of such memory; NOT_SUPPORTED: a type that the device does not import. */
CUresult ct_external_memory_import(struct ct_context *context, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc, CUexternalMemory *out);
/* A range of device memory of its own: ct_memory_free frees it. INVALID_HANDLE; INVALID_VALUE: flags, or beyond the memory. */
CUresult ct_external_memory_map_buffer(CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc, CUdeviceptr *out);
/* A mipmapped array of its own. INVALID_HANDLE, and what ct_mipmapped_array_import gives. */
CUresult ct_external_memory_map_array(CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc,
                                      CUmipmappedArray *out);
/* INVALID_HANDLE: no such memory. */
CUresult ct_external_memory_check(CUexternalMemory handle);
/* Buffers that were mapped stay until they are freed. INVALID_HANDLE. */
CUresult ct_external_memory_destroy(CUexternalMemory handle);
/* Those of a context that goes. */
void ct_external_memories_destroy_all(const struct ct_context *context);

#endif
