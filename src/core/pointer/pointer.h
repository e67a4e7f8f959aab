/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a CUDA pointer. */
#ifndef CT_CORE_POINTER_H
#define CT_CORE_POINTER_H

#include "core/device/context.h"

/* Writes the attribute's value to `data`, in its type. INVALID_VALUE: no such attribute, a pointer that CUDA does not know, or
 * nothing to tell of this kind of memory; INVALID_CONTEXT: it asks for the current context and there is none; NOT_SUPPORTED. `context` is
 * the current one, or NULL. */
CUresult ct_pointer_attribute(const struct ct_context *context, CUpointer_attribute attribute, uint64_t pointer, void *data);
/* Writes what the attribute is where ct_pointer_attribute has nothing to tell: 0, NULL, CU_DEVICE_INVALID; the host pointer of memory
 * that CUDA does not know is itself. INVALID_VALUE: no such attribute. */
CUresult ct_pointer_attribute_default(CUpointer_attribute attribute, uint64_t pointer, void *data);
/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
CUresult ct_pointer_set_synchronous(uint64_t pointer, bool synchronous);

#endif
