/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as dma-bufs, which every other API takes. */
#ifndef CT_CORE_DMA_BUF_H
#define CT_CORE_DMA_BUF_H

#include "core/device/context.h"

/* A new file descriptor of the bytes [address, address + size_bytes), which are whole pages. INVALID_VALUE: no memory of a device's own, or
 * not in one piece. NOT_SUPPORTED: the device's driver gives no dma-bufs, or none of these bytes. */
CUresult ct_dma_buf_export(uint64_t address, uint64_t size_bytes, int *out_fd);

#endif
