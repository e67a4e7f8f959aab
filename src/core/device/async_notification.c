/* SPDX-License-Identifier: Apache-2.0 */
#include "async_notification.h"

#include "core/base/log.h"
#include "core/base/object.h"

#include <stdlib.h>

#define CT_CHANNEL "device"

struct ct_async_notification {
    struct ct_object object;
    const struct ct_device *device;
};

static void free_registration(struct ct_object *object)
{
    free(object);
}

CUresult ct_async_notification_register(const struct ct_device *device, CUasyncCallbackHandle *out)
{
    struct ct_async_notification *registration = calloc(1, sizeof *registration);
    CUresult r;

    if (!registration)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the registration of a callback");
    ct_object_init(&registration->object, CT_OBJECT_ASYNC_NOTIFICATION, free_registration);
    registration->device = device;
    r = ct_object_publish(&registration->object);
    if (r == CUDA_SUCCESS)
        *out = registration->object.handle; /* the table of handles refers to it from now on */
    else
        ct_object_release(&registration->object);
    return r;
}

CUresult ct_async_notification_unregister(const struct ct_device *device, CUasyncCallbackHandle handle)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_ASYNC_NOTIFICATION, handle);
    const struct ct_async_notification *registration = (const struct ct_async_notification *)object;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (registration && registration->device == device && (r = ct_object_unpublish(object)) == CUDA_SUCCESS)
        ct_object_release(object); /* that of the registration */
    ct_object_release(object);
    return r == CUDA_SUCCESS ? r
                             : ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not registered with device %d", (void *)handle, device->ordinal);
}
