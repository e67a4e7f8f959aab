/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle info`: the devices and their capabilities. */
#include "verbs.h"

#include "core/base/process.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/workarounds.h"
#include "core/setup/cpu_order.h"
#include "core/setup/startup.h"

#include <stdlib.h>

static const char *const kind_names[] = {
    [CT_DEVICE_DISCRETE] = "discrete GPU", [CT_DEVICE_INTEGRATED] = "integrated GPU",
    [CT_DEVICE_VIRTUAL] = "virtual GPU",   [CT_DEVICE_OTHER] = "other device",
    [CT_DEVICE_CPU] = "CPU device",
};

static const char *const rule_names[] = {
    [CT_ADDRESS_CHOSEN] = "chosen: unified, memory is allocated at the CUDA address",
    [CT_ADDRESS_CHOSEN_MASK] = "mask: unified, the device address is the CUDA address OR a constant",
    [CT_ADDRESS_SHARED] = "shared: unified, host and device have the same addresses",
    [CT_ADDRESS_WINDOWS] = "windows: unified, a table of windows gives the device address",
    [CT_ADDRESS_OWN] = "own: not unified, the driver chooses device addresses",
};

static void print_feature(const char *name, unsigned present)
{
    printf("%s%s", present ? " +" : " -", name);
}

static void print_workarounds(uint32_t mask)
{
    printf("  %-12s", "workarounds");
    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++)
        if (mask >> i & 1)
            printf(" %s", ct_workaround((enum ct_workaround_index)i)->name);
    printf("%s\n", mask ? "" : " none");
}

/* What CUDA promises, and up to which size of a block the device's own memory is used. */
static void print_shared_memory(const struct ct_device *device)
{
    printf("  %-12s %d KiB for a block, %d by opt-in; blocks with up to %u KiB use the device's own, others device memory\n", "shared",
           ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) / 1024,
           ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) / 1024, device->info.shared_bytes / 1024);
}

static void print_device(const struct ct_device *device)
{
    const struct ct_device_info *info = &device->info;
    const struct ptx2spv_target *target = &info->target;

    printf("device %d: %s\n", device->ordinal, info->name);
    printf("  %-12s %s, through %s: %s\n", "kind", kind_names[info->kind], device->backend->name, info->driver);
    printf("  %-12s ", "uuid");
    for (int i = 0; i < 16; i++)
        printf("%02x%s", info->uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
    if (info->has_pci)
        printf(", PCI %04x:%02x:%02x", info->pci_domain, info->pci_bus, info->pci_device);
    printf("\n  %-12s %.1f GiB, at most %.1f GiB in one allocation\n", "memory", (double)info->memory_bytes / (1 << 30),
           (double)info->max_allocation_bytes / (1 << 30));
    printf("  %-12s %s", "addresses", rule_names[info->address_rule]);
    if (target->pointer_rule == PTX2SPV_POINTER_OR)
        printf(": 0x%llx", (unsigned long long)target->pointer_mask);
    printf("\n");
    printf("  %-12s up to %u threads, on %u multiprocessors\n", "blocks", info->max_block_threads, info->compute_units);
    print_shared_memory(device);
    printf("  %-12s subgroups of %u lanes, warp instructions %s\n", "warps", target->subgroup_size,
           target->warp_form != PTX2SPV_WARP_NATIVE ? "collective"
           : info->unproven_warps                   ? "native if a probe finds them right"
                                                    : "native");
    printf("  %-12s", "arithmetic");
    print_feature("fp64", target->float64);
    print_feature("fp16", target->float16);
    print_feature("int64 atomics", target->atomic_int64_global);
    print_feature("fp32 atomic add", target->atomic_float32_add_global);
    printf("\n  %-12s", "exact ops");
    print_feature("fma32", target->exact_fma32);
    print_feature("div32", target->exact_div32);
    print_feature("sqrt32", target->exact_sqrt32);
    print_feature("fma64", target->exact_fma64);
    print_feature("div64", target->exact_div64);
    print_feature("sqrt64", target->exact_sqrt64);
    printf("\n  %-12s", "memory model");
    print_feature("host import", info->can_import_host);
    print_feature("pageable access", info->pageable_access);
    print_feature("sparse", info->sparse);
    print_feature("external memory", info->external_memory_fd);
    print_feature("external semaphores", info->external_semaphore_fd);
    print_feature("timestamps", info->timestamps);
    printf("\n");
    print_workarounds(info->workarounds);
}

int verb_info(const struct tool_arguments *arguments)
{
    const CUresult result = ct_process_init(0);

    if (result == CUDA_ERROR_NO_DEVICE) {
        printf("No device found. A driver for Vulkan 1.3 or OpenCL 3.0 is needed; Mesa's lavapipe runs on any CPU.\n");
        return EXIT_FAILURE;
    }
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "cuttle: start-up failed with CUDA error %d\n", (int)result);
        return EXIT_FAILURE;
    }
    if (arguments->values[CUTTLE_INFO_NAME]) {
        printf("%s\n", ct_process.devices[0].info.name);
        return EXIT_SUCCESS;
    }
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        print_device(&ct_process.devices[i]);
    if (ct_process.n_devices > 1 && ct_process.devices[1].info.kind == CT_DEVICE_CPU)
        printf("%s; CUTTLE_DEVICE and CUTTLE_BACKEND select others\n", ct_cpu_order_reason(ct_process.cpu_order));
    return EXIT_SUCCESS;
}
