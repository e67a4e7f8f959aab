/* SPDX-License-Identifier: Apache-2.0 */
/* printf in kernels (CUDA C++ Programming Guide, "Formatted Output"): the context's ring, to which kernels write records, and the output
 * of their text on standard output. The ring is created when the first module that prints is loaded. */
#ifndef CT_CORE_PRINT_H
#define CT_CORE_PRINT_H
/* Parts: print_format.c. */

#include "core/device/context.h"

#include <stdio.h>

struct ct_print;

/* Returns the CUDA address of the context's ring (struct ptx2spv_print_ring), which is created if needed. OUT_OF_MEMORY. */
CUresult ct_print_prepare(struct ct_context *context, uint64_t *out_address);
/* Called before the launch of a kernel that may print: the size of the ring is fixed from now on. */
void ct_print_note_launch(struct ct_context *context);
/* Sets CU_LIMIT_PRINTF_FIFO_SIZE in bytes, and returns the adjusted value, a power of two. INVALID_VALUE: a kernel that may print was
 * launched. */
CUresult ct_print_resize(struct ct_context *context, size_t *size_bytes);
/* Writes the output of kernels, in order, up to the first incomplete record. The caller holds no lock. */
void ct_print_flush(struct ct_context *context);
void ct_print_destroy(struct ct_context *context); /* its memory is freed with the context's */

/* Writes the text of a record: the words after its header. Never reads more than `n` words, whatever their contents. */
void ct_print_record(const uint64_t *words, unsigned n, FILE *to);

#endif
