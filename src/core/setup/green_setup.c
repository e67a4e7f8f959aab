/* SPDX-License-Identifier: Apache-2.0 */
#include "green_setup.h"

#include "context_setup.h"
#include "core/base/log.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "context"

static void free_green(struct ct_object *object)
{
    struct ct_green_context *green = (struct ct_green_context *)object;

    ct_object_release(&green->primary->object);
    free(green);
}

CUresult ct_green_create(struct ct_device *device, unsigned sm_count, CUgreenCtx *out)
{
    struct ct_green_context *green = calloc(1, sizeof *green);
    CUcontext primary;
    CUresult r;

    if (!green)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a green context");
    if ((r = ct_context_retain_primary(device, &primary)) != CUDA_SUCCESS) {
        free(green);
        return r;
    }
    ct_object_init(&green->object, CT_OBJECT_GREEN_CONTEXT, free_green);
    ct_object_retain(&device->primary->object);
    green->primary = device->primary;
    green->sm_count = sm_count;
    green->id = ct_process_new_id();
    r = ct_object_publish(&green->object);
    if (r == CUDA_SUCCESS) {
        *out = green->object.handle;
        return r; /* the reference is released when it is destroyed */
    }
    (void)ct_context_release_primary(device);
    ct_object_release(&green->object);
    return r;
}

CUresult ct_green_destroy(struct ct_green_context *green)
{
    struct ct_device *device = green->primary->device;

    if (ct_object_unpublish(&green->object) != CUDA_SUCCESS)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "the green context was destroyed");
    ct_object_release(&green->object);
    return ct_context_release_primary(device);
}
