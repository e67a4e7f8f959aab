/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as dma-bufs, which all other APIs can import. */
#ifndef CT_CORE_DMA_BUF_H
#define CT_CORE_DMA_BUF_H

#include "core/device/context.h"

/* Returns a new file descriptor of the bytes [address, address + size_bytes), which are whole pages. INVALID_VALUE: not memory that the
 * device allocated, or not in one allocation. NOT_SUPPORTED: the device's driver exports no dma-bufs, or not of these bytes. */
CUresult ct_dma_buf_export(uint64_t address, uint64_t size_bytes, int *out_fd);

#endif
