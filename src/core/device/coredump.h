/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on kernels that failed (Driver API: Coredump Attributes Control API). A report is a text file with what is known: the error, the
 * kernel or the address, and the latest failures of calls. Memory and registers are not in it. */
#ifndef CT_CORE_COREDUMP_H
#define CT_CORE_COREDUMP_H

#include "context.h"

struct ct_coredump_settings;

/* The size of an attribute in bytes: that of a number, or the most of a text. INVALID_VALUE: there is no such attribute, or contexts do not
 * have it. NULL: the attributes of the process. */
CUresult ct_coredump_size(const struct ct_context *context_or_null, CUcoredumpSettings attribute, size_t *out);
/* INVALID_VALUE, also if size_bytes is not the size of a number, or a text does not fit. A context whose attributes were not set has those of the process. */
CUresult ct_coredump_get(struct ct_context *context_or_null, CUcoredumpSettings attribute, void *value, size_t size_bytes);
/* Sets an attribute. OUT_OF_MEMORY. */
CUresult ct_coredump_set(struct ct_context *context_or_null, CUcoredumpSettings attribute, const void *value, size_t size_bytes);

/* Writes the report if that is enabled, for a context, or for a device and so with the attributes of the process. `what` is a line. */
void ct_coredump_write(const struct ct_context *context_or_null, const struct ct_device *device, const char *what);

#endif
