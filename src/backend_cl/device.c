/* SPDX-License-Identifier: Apache-2.0 */
/* An opened device: it has its own context, and knows whether the device is lost. Two open instances of one device are independent of
 * each other. */
#include "cl.h"

#include "core/device/driver_environment.h"
#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "opencl"

static void CL_CALLBACK on_error(const char *text, const void *details, size_t size, void *user)
{
    (void)details, (void)size, (void)user;
    ct_log(CT_LOG_WARN, "the runtime reports: %s", text);
}

static CUresult create_context(struct ct_backend_device *device)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->physical->platform, 0};
    struct ct_cl_signals *signals = ct_cl_signals_save();
    cl_int result;

    ct_driver_environment_enter();
    device->context = device->api->clCreateContext(properties, 1, &device->physical->handle, on_error, NULL, &result);
    ct_driver_environment_leave();
    ct_cl_signals_restore(signals);
    return ct_cl_result(result, "clCreateContext");
}

CUresult ct_cl_device_open(unsigned index, struct ct_backend_device **out)
{
    const struct ct_cl_instance *instance = ct_cl_instance_get();
    struct ct_backend_device *device;
    CUresult r;

    if (index >= instance->n_devices)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "device %u of %u", index, instance->n_devices);
    if (!(device = calloc(1, sizeof *device)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "device object");
    device->api = instance->api;
    device->physical = &instance->physical[index];
    device->info = &instance->infos[index];
    ct_mutex_init(&device->lock, CT_RANK_BACKEND);
    atomic_init(&device->generation, device->physical->memory_form == CT_CL_BUFFER);
    if ((r = create_context(device)) != CUDA_SUCCESS ||
        (device->physical->memory_form == CT_CL_SYSTEM && (r = ct_memory_file_open(&device->file)) != CUDA_SUCCESS)) {
        ct_cl_device_close(device);
        return r;
    }
    device->compiler = ct_cl_compiler_identity(device);
    *out = device;
    return CUDA_SUCCESS;
}

void ct_cl_device_close(struct ct_backend_device *device)
{
    if (!device)
        return;
    if (device->context)
        device->api->clReleaseContext(device->context);
    ct_memory_file_close(&device->file);
    ct_mutex_finish(&device->lock);
    free(device);
}
