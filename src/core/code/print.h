/* SPDX-License-Identifier: Apache-2.0 */
/* printf in kernels (CUDA C++ Programming Guide, "Formatted Output"): the context's ring that kernels write records to, and their text on
 * the standard output. The ring is made when the first module that prints is loaded. */
#ifndef CT_CORE_PRINT_H
#define CT_CORE_PRINT_H
/* Parts: print_format.c. */

#include "core/device/context.h"

#include <stdio.h>

struct ct_print;

/* The CUDA address of the context's ring (struct ptx2spv_print_ring), which is made if it is not there. OUT_OF_MEMORY. */
CUresult ct_print_prepare(struct ct_context *context, uint64_t *out_address);
/* A kernel that may print is about to be launched: the size of the ring stays as it is from now on. */
void ct_print_note_launch(struct ct_context *context);
/* CU_LIMIT_PRINTF_FIFO_SIZE in bytes, as it will be: a power of two. INVALID_VALUE: a kernel that may print was launched. */
CUresult ct_print_resize(struct ct_context *context, size_t *size_bytes);
/* Writes what kernels have printed, in order, up to the first record that is not complete. The caller holds no lock. */
void ct_print_flush(struct ct_context *context);
void ct_print_destroy(struct ct_context *context); /* its memory goes with the context's */

/* The text of a record: `words` behind its header. Reads no further than `n`, whatever they hold. */
void ct_print_record(const uint64_t *words, unsigned n, FILE *to);

#endif
