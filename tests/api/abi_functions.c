/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with NVIDIA's headers: declares every function of entry_points.def again. If a parameter or the result differs, compilation
 * fails. The library itself checks that our own cuda.h agrees with the table (src/api/entry_points.h). */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#ifndef __CUDA_API_PTDS
#error "this is not NVIDIA's cuda.h"
#endif

/* Types of interfaces whose own headers need those of OpenGL, EGL or VDPAU; no function of cuda.h takes them. */
typedef struct CUeglStreamConnection_st *CUeglStreamConnection;
typedef struct CUeglFrame_st {
    int unused;
} CUeglFrame;
typedef int VdpGetProcAddress(uint32_t device, uint32_t function_id, void **function);

#define SYMBOL(symbol, name, version, flavour, params, args) CUresult CUDAAPI symbol params;
#include "entry_points.def"
