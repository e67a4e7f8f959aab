/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of malloc and free in kernels (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"): one for each context, made
 * when the first module that uses it is loaded. Kernels do everything else: ptx2spv/module/system_functions.c. */
#ifndef CT_CORE_HEAP_H
#define CT_CORE_HEAP_H

#include "core/device/context.h"

struct ct_heap;

/* The CUDA address of the context's struct ptx2spv_heap, which is made if it is not there. OUT_OF_MEMORY. */
CUresult ct_heap_prepare(struct ct_context *context, uint64_t *out_address);
/* A kernel that may use the heap is about to be launched: its size stays as it is from now on. */
void ct_heap_note_launch(struct ct_context *context);
/* CU_LIMIT_MALLOC_HEAP_SIZE in bytes, as it will be. INVALID_VALUE: a kernel that may use the heap was launched; OUT_OF_MEMORY. */
CUresult ct_heap_resize(struct ct_context *context, size_t *size_bytes);
void ct_heap_destroy(struct ct_context *context); /* its memory goes with the context's */

#endif
