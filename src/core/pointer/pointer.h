/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of CUDA pointers. */
#ifndef CT_CORE_POINTER_H
#define CT_CORE_POINTER_H

#include "core/device/context.h"

/* Writes the attribute's value to `data`, in the attribute's type. INVALID_VALUE: no such attribute, a pointer that CUDA does not know, or
 * the attribute is undefined for this kind of memory; INVALID_CONTEXT: the attribute depends on the current context and there is none;
 * NOT_SUPPORTED. `context` is the current one, or NULL. */
CUresult ct_pointer_attribute(const struct ct_context *context, CUpointer_attribute attribute, uint64_t pointer, void *data);
/* Writes the attribute's default for pointers where ct_pointer_attribute fails: 0, NULL, CU_DEVICE_INVALID; the host pointer of memory
 * that CUDA does not know is the pointer itself. INVALID_VALUE: no such attribute. */
CUresult ct_pointer_attribute_default(CUpointer_attribute attribute, uint64_t pointer, void *data);
/* Sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
CUresult ct_pointer_set_synchronous(uint64_t pointer, bool synchronous);

#endif
