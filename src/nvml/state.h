/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the library: how often it was initialized, and the devices. A mutex guards it; functions copy the facts that they need, and hold
 * no lock while they read files or run the helper. Handles stay the same from one initialization to the next. */
#ifndef CT_NVML_STATE_H
#define CT_NVML_STATE_H

#include "facts.h"
#include "nvml_abi.h"

#include <limits.h>

/* One more user of the library; the first one reads the facts. */
nvmlReturn_t nvml_retain(void);
nvmlReturn_t nvml_release(void);

/* UNINITIALIZED, or INVALID_ARGUMENT if the caller found its arguments wrong. */
nvmlReturn_t nvml_check(bool are_arguments_valid);
/* The same, and the facts of a device; INVALID_ARGUMENT: it is no handle. out_index may be NULL. */
nvmlReturn_t nvml_look_up(nvmlDevice_t device, bool are_arguments_valid, struct nvml_facts *out, unsigned *out_index);
/* The first device for which `matches` returns true. NOT_FOUND: none. */
nvmlReturn_t nvml_find(bool (*matches)(const struct nvml_facts *facts, const void *what), const void *what, nvmlDevice_t *out);
nvmlReturn_t nvml_count(unsigned *out);
nvmlReturn_t nvml_by_index(unsigned index, nvmlDevice_t *out);

/* The path of a file beside the library. */
bool nvml_beside(const char *name, char out[PATH_MAX]);
/* For programs that contain this code: the folder that nvml_beside uses. Before the first nvml_retain. */
void nvml_use_folder(const char *folder);

#endif
