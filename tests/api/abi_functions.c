/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with NVIDIA's headers: declares every function of entry_points.def once more. Where a parameter or the result differs, the
 * compiler says so. That our own cuda.h agrees with the table, the library itself sees to (src/api/entry_points.h). */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#ifndef __CUDA_API_PTDS
#error "this is not NVIDIA's cuda.h"
#endif

/* Of interfaces whose own headers need those of OpenGL, EGL or VDPAU; no function of cuda.h takes them. */
typedef struct CUeglStreamConnection_st *CUeglStreamConnection;
typedef struct CUeglFrame_st {
    int unused;
} CUeglFrame;
typedef int VdpGetProcAddress(uint32_t device, uint32_t function_id, void **function);

#define SYMBOL(symbol, name, version, flavour, params, args) CUresult CUDAAPI symbol params;
#include "entry_points.def"
