/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of malloc and free in kernels (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"): one for each context, created
 * when the first module that uses it is loaded. The kernels' part is in ptx2spv/module/system_functions.c. */
#ifndef CT_CORE_HEAP_H
#define CT_CORE_HEAP_H

#include "core/device/context.h"

struct ct_heap;

/* Returns the CUDA address of the context's struct ptx2spv_heap, which is created if needed. OUT_OF_MEMORY. */
CUresult ct_heap_prepare(struct ct_context *context, uint64_t *out_address);
/* Called before the launch of a kernel that may use the heap: its size is fixed from now on. */
void ct_heap_note_launch(struct ct_context *context);
/* Sets CU_LIMIT_MALLOC_HEAP_SIZE in bytes, and returns the adjusted value. INVALID_VALUE: a kernel that may use the heap was launched;
 * OUT_OF_MEMORY. */
CUresult ct_heap_resize(struct ct_context *context, size_t *size_bytes);
void ct_heap_destroy(struct ct_context *context); /* its memory is freed with the context's */

#endif
