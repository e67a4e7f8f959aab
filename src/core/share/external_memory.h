/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that another API or process allocated, and its buffers in this one. */
#ifndef CT_CORE_EXTERNAL_MEMORY_H
#define CT_CORE_EXTERNAL_MEMORY_H

#include "core/device/context.h"

/* Creates and publishes the object in the context. Takes ownership of the descriptor on success. INVALID_VALUE: invalid size, flags or
 * type; OPERATING_SYSTEM: the descriptor does not refer to such memory; NOT_SUPPORTED: a type that the device does not import. */
CUresult ct_external_memory_import(struct ct_context *context, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc, CUexternalMemory *out);
/* Maps a buffer as a separate range of device memory, which ct_memory_free frees. INVALID_HANDLE; INVALID_VALUE: nonzero flags, or the
 * buffer exceeds the memory. */
CUresult ct_external_memory_map_buffer(CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc, CUdeviceptr *out);
/* Creates a separate mipmapped array. INVALID_HANDLE, and errors of ct_mipmapped_array_import. */
CUresult ct_external_memory_map_array(CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc,
                                      CUmipmappedArray *out);
/* INVALID_HANDLE: the handle is not that of external memory. */
CUresult ct_external_memory_check(CUexternalMemory handle);
/* Mapped buffers stay valid until they are freed. INVALID_HANDLE. */
CUresult ct_external_memory_destroy(CUexternalMemory handle);
/* Destroys those of a context that is being destroyed. */
void ct_external_memories_destroy_all(const struct ct_context *context);

#endif
