/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL loader and the list of usable devices: created once, kept until the process ends. The loader is opened at run time; a
 * machine without it simply has no OpenCL devices. */
#include "cl.h"

#include "core/device/driver_environment.h"
#include "core/base/log.h"
#include "runtimes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "opencl"
#define LOADER "libOpenCL.so.1"

static struct {
    pthread_once_t once;
    struct ct_cl_api api;
    struct ct_cl_instance instance;
} state = {.once = PTHREAD_ONCE_INIT};

static const struct {
    const char *name;
    size_t offset; /* in struct ct_cl_api */
} functions[] = {
#define CL_FUNCTION(name) {#name, offsetof(struct ct_cl_api, name)},
#include "functions.def"
};

static bool load_api(struct ct_cl_api *api)
{
    void *library = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL); /* never closed: runtimes have threads of their own */

    if (!library) {
        ct_absence_note(&state.instance.absence, "there is no OpenCL loader (%s)", LOADER);
        return false;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function) {
            ct_absence_note(&state.instance.absence, "the OpenCL loader is too old: it lacks %s", functions[i].name);
            return false;
        }
        memcpy((char *)api + functions[i].offset, &function, sizeof function);
    }
    return true;
}

static void add_device(struct ct_cl_instance *instance, cl_platform_id platform, cl_device_id handle)
{
    unsigned at = instance->n_devices;
    struct ct_device_info *info = &instance->infos[at];
    const char *reason;

    if (ct_cl_device_examine(instance->api, platform, handle, &instance->physical[at], info, &reason)) {
        ct_log(CT_LOG_INFO, "device %u: %s, %s", at, info->name, info->driver);
        instance->n_devices++;
    } else {
        ct_absence_note(&instance->absence, "%s (%s) is not used: it lacks %s", info->name, info->driver, reason);
    }
}

static bool reserve_devices(struct ct_cl_instance *instance, unsigned more)
{
    size_t count = (size_t)instance->n_devices + more;
    struct ct_cl_physical *physical = realloc(instance->physical, count * sizeof *physical);
    struct ct_device_info *infos;

    if (!physical)
        return false;
    instance->physical = physical;
    if (!(infos = realloc(instance->infos, count * sizeof *infos)))
        return false;
    instance->infos = infos;
    return true;
}

static void add_platform(struct ct_cl_instance *instance, cl_platform_id platform)
{
    const struct ct_cl_api *api = instance->api;
    cl_device_id *devices;
    cl_uint count = 0;

    if (api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count) != CL_SUCCESS || !count)
        return; /* CL_DEVICE_NOT_FOUND is a normal result */
    devices = calloc(count, sizeof *devices);
    if (devices && reserve_devices(instance, count) &&
        ct_cl_result(api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices, NULL), "clGetDeviceIDs") == CUDA_SUCCESS) {
        for (cl_uint i = 0; i < count; i++)
            add_device(instance, platform, devices[i]);
    }
    free(devices);
}

static void find_devices(struct ct_cl_instance *instance)
{
    cl_platform_id *platforms;
    cl_uint count = 0;

    if (instance->api->clGetPlatformIDs(0, NULL, &count) != CL_SUCCESS || !count) {
        ct_absence_note(&instance->absence, "the OpenCL loader finds no runtime that works");
        return;
    }
    platforms = calloc(count, sizeof *platforms);
    if (platforms && instance->api->clGetPlatformIDs(count, platforms, NULL) == CL_SUCCESS) {
        for (cl_uint i = 0; i < count; i++)
            add_platform(instance, platforms[i]);
    }
    free(platforms);
}

/* Devices that report no identifier get one that is derived from their properties; identical devices are distinguished by their index. */
static void make_uuids_unique(struct ct_cl_instance *instance)
{
    for (unsigned i = 1; i < instance->n_devices; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (!memcmp(instance->infos[i].uuid, instance->infos[k].uuid, sizeof instance->infos[i].uuid))
                instance->infos[i].uuid[15] ^= (uint8_t)i;
        }
    }
}

/* The loader is there, and finds no device that can be used. */
static void explain_absence(struct ct_cl_instance *instance)
{
    static const char *const variables[] = {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES"};

    if (!*instance->absence.text)
        ct_absence_add(&instance->absence, "the OpenCL runtimes have no device");
    ct_absence_add_variables(&instance->absence, variables, sizeof variables / sizeof *variables);
}

static void start_loader(void)
{
    const size_t stacks = ct_cl_stacks_enlarge();

    if (load_api(&state.api)) {
        state.instance.api = &state.api;
        find_devices(&state.instance);
        make_uuids_unique(&state.instance);
        if (!state.instance.n_devices)
            explain_absence(&state.instance);
    }
    ct_cl_stacks_restore(stacks);
}

static void start(void)
{
    struct ct_cl_signals *signals = ct_cl_signals_save();
    const char *folder = NULL, *reason = NULL;

    switch (ct_cl_runtimes_choose(&folder, &reason)) {
    case CT_CL_ALL:
        ct_driver_environment_enter();
        break;
    case CT_CL_SOME: {
        const struct ct_variable listed[] = {{"OCL_ICD_VENDORS", folder, true}, {"OPENCL_VENDOR_PATH", folder, true}};

        ct_driver_environment_enter_with(listed, sizeof listed / sizeof *listed);
        break;
    }
    case CT_CL_NONE:
        ct_absence_note(&state.instance.absence, "%s", reason);
        ct_cl_signals_restore(signals);
        return;
    }
    start_loader();
    ct_driver_environment_leave();
    ct_cl_runtimes_remove_folder();
    ct_cl_signals_restore(signals);
}

#ifdef __SANITIZE_THREAD__ /* ThreadSanitizer ends a forked child that starts threads. */
void ct_cl_prepare(void)
{
}
#else
/* What a child process does: the same. */
static void try_start(void *user)
{
    (void)user;
    ct_driver_environment_enter();
    start_loader();
}

void ct_cl_prepare(void)
{
    ct_cl_runtimes_try(try_start);
}
#endif

const struct ct_cl_instance *ct_cl_instance_get(void)
{
    pthread_once(&state.once, start);
    return &state.instance;
}
