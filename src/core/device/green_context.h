/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts (Driver API: Green Contexts): parts of a device. No driver below confines work to a part, so a green context is a name for the
 * primary context with its own streams: memory, modules and events are those of the primary context, as on NVIDIA's driver, and the resources
 * are counted as documented.
 *
 * Its handle is also the CUcontext that cuCtxFromGreenCtx returns. */
#ifndef CT_CORE_GREEN_CONTEXT_H
#define CT_CORE_GREEN_CONTEXT_H

#include "core/base/object.h"

#include <stdbool.h>

struct ct_context;

struct ct_green_context {
    struct ct_object object;
    struct ct_context *primary; /* a reference; the green context also retains the primary context */
    unsigned sm_count;
    unsigned long long id;
};

/* The green context of a handle, retained. INVALID_CONTEXT. */
CUresult ct_green_lookup(const void *handle, struct ct_green_context **out);
void ct_green_release(struct ct_green_context *green); /* takes NULL */
/* The same for a CUcontext, which need not be a green context: NULL. */
struct ct_green_context *ct_green_find_or_null(CUcontext handle);

/* ---- resources ---- */

/* The multiprocessors of a device that nothing has divided. */
struct ct_device;
void ct_green_device_resource(const struct ct_device *device, CUdevResource *out);
void ct_green_resource(const struct ct_green_context *green, CUdevResource *out);
/* cuDevSmResourceSplitByCount; `groups_or_null` NULL: only the number of groups. INVALID_VALUE; INVALID_RESOURCE_TYPE: the input is not a resource of
 * multiprocessors; INVALID_RESOURCE_CONFIGURATION: it has too few, or is the result of another split. */
CUresult ct_green_split(CUdevResource *groups_or_null, unsigned *n_groups, const CUdevResource *input, CUdevResource *rest_or_null,
                        unsigned flags, unsigned min_count);
/* A descriptor is a number, which needs no memory. INVALID_RESOURCE_TYPE; INVALID_RESOURCE_CONFIGURATION: more than the device has. */
CUresult ct_green_describe(const CUdevResource *resources, unsigned count, CUdevResourceDesc *out);
/* INVALID_VALUE: it is not a descriptor. */
CUresult ct_green_described(CUdevResourceDesc desc, unsigned *out_sm_count);

#endif
