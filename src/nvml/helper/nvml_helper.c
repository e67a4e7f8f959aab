/* SPDX-License-Identifier: Apache-2.0 */
/* The helper program of libnvidia-ml.so.1: it initializes Cuttle and prints the facts of all devices or, with the arguments "memory INDEX", the
 * free and the total memory of one. Drivers are started here, since the threads of some do not survive a fork, and an application that has only
 * called NVML may fork and call cuInit in the child. */
#include "nvml/facts.h"

#include "core/base/process.h"
#include "core/device/device.h"
#include "core/setup/startup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t limit(const struct ct_device *device, CUdevice_attribute attribute)
{
    const int value = ct_device_limit(device, attribute);

    return value > 0 ? (uint64_t)value : 0;
}

static void find_facts(const struct ct_device *device, struct nvml_facts *out)
{
    const struct ct_device_info *info = &device->info;
    char uuid[CT_UUID_CHARACTERS + 1];

    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, info->name);
    snprintf(out->driver, sizeof out->driver, "%s", info->driver);
    ct_uuid_text(info->uuid, uuid);
    snprintf(out->uuid, sizeof out->uuid, "GPU-%s", uuid);
    out->is_cpu = info->kind == CT_DEVICE_CPU;
    out->has_pci = info->has_pci;
    out->pci_domain = info->pci_domain;
    out->pci_bus = info->pci_bus;
    out->pci_device = info->pci_device;
    out->pci_ids = (uint32_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID);
    out->memory_bytes = info->memory_bytes;
    out->capability_major = limit(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    out->capability_minor = limit(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    out->clock_khz = limit(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    out->memory_clock_khz = limit(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    out->memory_bus_bits = limit(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
}

static CUresult print_facts(FILE *to)
{
    static struct nvml_facts devices[NVML_MAX_DEVICES];
    const CUresult r = ct_process_init(0);
    unsigned count = 0;

    if (r != CUDA_SUCCESS && r != CUDA_ERROR_NO_DEVICE)
        return r;
    if (r == CUDA_SUCCESS)
        for (; count < ct_process.n_devices && count < NVML_MAX_DEVICES; count++)
            find_facts(&ct_process.devices[count], &devices[count]);
    nvml_facts_write(devices, count, to);
    return CUDA_SUCCESS;
}

static CUresult print_memory(CUdevice device, FILE *to)
{
    size_t free_bytes, total_bytes;
    CUcontext context;
    CUresult r = cuInit(0);

    if (r == CUDA_SUCCESS)
        r = cuDevicePrimaryCtxRetain(&context, device);
    if (r == CUDA_SUCCESS)
        r = cuCtxSetCurrent(context);
    if (r == CUDA_SUCCESS)
        r = cuMemGetInfo(&free_bytes, &total_bytes);
    if (r == CUDA_SUCCESS)
        nvml_memory_write(free_bytes, total_bytes, to);
    return r;
}

int main(int argc, char **argv)
{
    /* What drivers print to standard output must not come between. */
    const int out = dup(STDOUT_FILENO);
    FILE *to = out < 0 ? NULL : fdopen(out, "w");
    char *end;
    CUresult r;

    if (!to || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        fprintf(stderr, "%s: no standard output: %s\n", NVML_HELPER, strerror(errno));
        return EXIT_FAILURE;
    }
    if (argc == 1) {
        r = print_facts(to);
    } else if (argc == 3 && !strcmp(argv[1], NVML_HELPER_MEMORY)) {
        const long device = strtol(argv[2], &end, 10);

        r = *end || end == argv[2] || device < 0 || device >= NVML_MAX_DEVICES ? CUDA_ERROR_INVALID_DEVICE
                                                                               : print_memory((CUdevice)device, to);
    } else {
        fprintf(stderr, "%s is a part of libnvidia-ml.so.1, and of no use by itself; `cuttle smi` shows what it knows.\n", NVML_HELPER);
        return EXIT_FAILURE;
    }
    if (r != CUDA_SUCCESS)
        fprintf(stderr, "%s: CUDA error %d\n", NVML_HELPER, (int)r);
    /* The drivers are not taken down: that takes time, and everything ends here. */
    _exit(fflush(to) == 0 && r == CUDA_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE);
}
