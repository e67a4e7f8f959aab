/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle info`: the devices and their capabilities, as text, as JSON with the same facts, and as a report with more of them. */
#include "verbs.h"

#include "core/base/process.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/workarounds.h"
#include "core/setup/cpu_order.h"
#include "core/setup/startup.h"
#include "info.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What --json and the text call a fact. */
struct name {
    const char *key, *text;
};

static const struct name kind_names[] = {
    [CT_DEVICE_DISCRETE] = {"discrete", "discrete GPU"},
    [CT_DEVICE_INTEGRATED] = {"integrated", "integrated GPU"},
    [CT_DEVICE_VIRTUAL] = {"virtual", "virtual GPU"},
    [CT_DEVICE_OTHER] = {"other", "other device"},
    [CT_DEVICE_CPU] = {"cpu", "CPU device"},
};

static const struct name rule_names[] = {
    [CT_ADDRESS_CHOSEN] = {"chosen", "unified, memory is allocated at the CUDA address"},
    [CT_ADDRESS_CHOSEN_MASK] = {"mask", "unified, the device address is the CUDA address OR a constant"},
    [CT_ADDRESS_SHARED] = {"shared", "unified, host and device have the same addresses"},
    [CT_ADDRESS_WINDOWS] = {"windows", "unified, a table of windows gives the device address"},
    [CT_ADDRESS_OWN] = {"own", "not unified, the driver chooses device addresses"},
};

enum group {
#define GROUP(id, label, key) GROUP_##id,
#include "info_features.def"
    GROUP_COUNT
};

static const struct group_name {
    const char *label, *key;
} groups[] = {
#define GROUP(id, label, key) [GROUP_##id] = {label, key},
#include "info_features.def"
};

/* The features of a device, in the order of info_features.def. */
struct feature {
    enum group group;
    const char *name, *key;
    bool is_present;
};

#define FEATURE(group, name, key, value) +1
enum {
    FEATURE_COUNT = 0
#include "info_features.def"
};

static void list_features(const struct ct_device_info *info, struct feature out[FEATURE_COUNT])
{
    const struct ptx2spv_target *target = &info->target;
    unsigned n = 0;

#define FEATURE(group, name, key, value) out[n++] = (struct feature){GROUP_##group, name, key, value};
#include "info_features.def"
}

static struct name warp_name(const struct ct_device_info *info)
{
    static const struct name collective = {"collective", "collective"}, native = {"native", "native"},
                             probed = {"probed", "native if a probe finds them right"};

    return info->target.warp_form != PTX2SPV_WARP_NATIVE ? collective : info->unproven_warps ? probed : native;
}

static void name_pci(const struct ct_device_info *info, char out[32])
{
    snprintf(out, 32, "%04x:%02x:%02x", info->pci_domain, info->pci_bus, info->pci_device);
}

/* ---- text ---- */

static void print_workarounds(uint32_t mask, FILE *to)
{
    fprintf(to, "  %-12s", "workarounds");
    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++)
        if (mask >> i & 1)
            fprintf(to, " %s", ct_workaround((enum ct_workaround_index)i)->name);
    fprintf(to, "%s\n", mask ? "" : " none");
}

/* What CUDA promises, and up to which size of a block the device's own memory is used. */
static void print_shared_memory(const struct ct_device *device, FILE *to)
{
    fprintf(to, "  %-12s %d KiB for a block, %d by opt-in; blocks with up to %u KiB use the device's own, others device memory\n", "shared",
            ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) / 1024,
            ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) / 1024, device->info.shared_bytes / 1024);
}

static void print_features(const struct ct_device_info *info, FILE *to)
{
    struct feature features[FEATURE_COUNT];

    list_features(info, features);
    for (unsigned group = 0; group < GROUP_COUNT; group++) {
        fprintf(to, "  %-12s", groups[group].label);
        for (unsigned i = 0; i < FEATURE_COUNT; i++)
            if (features[i].group == group)
                fprintf(to, "%s%s", features[i].is_present ? " +" : " -", features[i].name);
        fprintf(to, "\n");
    }
}

static void print_device(const struct ct_device *device, FILE *to)
{
    const struct ct_device_info *info = &device->info;
    const struct name rule = rule_names[info->address_rule];
    char uuid[CT_UUID_CHARACTERS + 1], pci[32];

    ct_uuid_text(info->uuid, uuid);
    name_pci(info, pci);
    fprintf(to, "device %d: %s\n", device->ordinal, info->name);
    fprintf(to, "  %-12s %s, through %s: %s\n", "kind", kind_names[info->kind].text, device->backend->name, info->driver);
    fprintf(to, "  %-12s %s%s%s\n", "uuid", uuid, info->has_pci ? ", PCI " : "", info->has_pci ? pci : "");
    fprintf(to, "  %-12s %.1f GiB, at most %.1f GiB in one allocation\n", "memory", (double)info->memory_bytes / (1 << 30),
            (double)info->max_allocation_bytes / (1 << 30));
    fprintf(to, "  %-12s %s: %s", "addresses", rule.key, rule.text);
    if (info->target.pointer_rule == PTX2SPV_POINTER_OR)
        fprintf(to, ": 0x%llx", (unsigned long long)info->target.pointer_mask);
    fprintf(to, "\n");
    fprintf(to, "  %-12s up to %u threads, on %u multiprocessors\n", "blocks", info->max_block_threads, info->compute_units);
    print_shared_memory(device, to);
    fprintf(to, "  %-12s subgroups of %u lanes, warp instructions %s\n", "warps", info->target.subgroup_size, warp_name(info).text);
    print_features(info, to);
    print_workarounds(info->workarounds, to);
}

/* What the order of CPU devices follows from. NULL: there are not two of them. */
static const char *cpu_order(void)
{
    return ct_process.n_devices > 1 && ct_process.devices[1].info.kind == CT_DEVICE_CPU ? ct_cpu_order_reason(ct_process.cpu_order) : NULL;
}

void tool_print_info(FILE *to)
{
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        print_device(&ct_process.devices[i], to);
    if (cpu_order())
        fprintf(to, "%s; CUTTLE_DEVICE and CUTTLE_BACKEND select others\n", cpu_order());
}

/* ---- JSON ---- */

static void write_features(struct json *json, const struct ct_device_info *info)
{
    struct feature features[FEATURE_COUNT];

    list_features(info, features);
    for (unsigned group = 0; group < GROUP_COUNT; group++) {
        json_object(json, groups[group].key);
        for (unsigned i = 0; i < FEATURE_COUNT; i++)
            if (features[i].group == group)
                json_bool(json, features[i].key, features[i].is_present);
        json_end(json, '}');
    }
}

static void write_shared_memory(struct json *json, const struct ct_device *device)
{
    json_object(json, "shared_bytes");
    json_number(json, "block", (uint64_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    json_number(json, "block_opt_in", (uint64_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    json_number(json, "device", device->info.shared_bytes);
    json_end(json, '}');
}

/* The mask is text: numbers of JSON need not be exact beyond 53 bits. */
static void write_addresses(struct json *json, const struct ct_device_info *info)
{
    char mask[32];

    snprintf(mask, sizeof mask, "0x%llx", (unsigned long long)info->target.pointer_mask);
    json_object(json, "addresses");
    json_string(json, "rule", rule_names[info->address_rule].key);
    json_bool(json, "unified", info->address_rule != CT_ADDRESS_OWN);
    json_string(json, "mask", info->target.pointer_rule == PTX2SPV_POINTER_OR ? mask : NULL);
    json_end(json, '}');
}

/* What only reports have: what distinguishes models of a vendor, and what decides how work is arranged. */
static void write_more(struct json *json, const struct ct_device_info *info)
{
    json_number(json, "vendor_id", info->vendor_id);
    json_number(json, "device_id", info->device_id);
    json_number(json, "clock_khz", info->clock_khz);
    json_number(json, "memory_clock_khz", info->memory_clock_khz);
    json_number(json, "l2_bytes", info->l2_bytes);
    json_number(json, "push_constant_bytes", info->target.push_constant_bytes);
    json_array(json, "max_grid");
    for (int i = 0; i < 3; i++)
        json_number(json, NULL, info->max_grid[i]);
    json_end(json, ']');
    json_object(json, "images");
    json_number(json, "side_1d", info->images.side_1d);
    json_number(json, "side_2d", info->images.side_2d);
    json_number(json, "side_3d", info->images.side_3d);
    json_number(json, "side_cube", info->images.side_cube);
    json_number(json, "layers", info->images.layers);
    json_end(json, '}');
}

static void write_device(struct json *json, const struct ct_device *device, bool is_report)
{
    const struct ct_device_info *info = &device->info;
    char uuid[CT_UUID_CHARACTERS + 1], pci[32];

    ct_uuid_text(info->uuid, uuid);
    name_pci(info, pci);
    json_object(json, NULL);
    json_number(json, "ordinal", (uint64_t)device->ordinal);
    json_string(json, "name", info->name);
    json_string(json, "kind", kind_names[info->kind].key);
    json_string(json, "backend", device->backend->name);
    json_string(json, "driver", info->driver);
    json_string(json, "uuid", is_report ? NULL : uuid); /* which names one card, not a model */
    json_string(json, "pci", info->has_pci ? pci : NULL);
    json_number(json, "memory_bytes", info->memory_bytes);
    json_number(json, "max_allocation_bytes", info->max_allocation_bytes);
    write_addresses(json, info);
    json_number(json, "max_block_threads", info->max_block_threads);
    json_number(json, "multiprocessors", info->compute_units);
    write_shared_memory(json, device);
    json_number(json, "subgroup_size", info->target.subgroup_size);
    json_string(json, "warps", warp_name(info).key);
    write_features(json, info);
    json_array(json, "workarounds");
    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++)
        if (info->workarounds >> i & 1)
            json_string(json, NULL, ct_workaround((enum ct_workaround_index)i)->name);
    json_end(json, ']');
    if (is_report)
        write_more(json, info);
    json_end(json, '}');
}

/* No names of the machine or of users: what follows the version of a kernel may say who built it. */
static void write_system(struct json *json)
{
    struct utsname system = {0};

    (void)uname(&system);
    system.release[strspn(system.release, "0123456789.")] = 0;
    json_object(json, "system");
    json_string(json, "kernel", system.release);
    json_string(json, "machine", system.machine);
    json_number(json, "processors", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    json_number(json, "memory_bytes", (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    json_end(json, '}');
}

static void write_json(bool is_report)
{
    struct json json = {0};

    json_object(&json, NULL);
    json_string(&json, "version", CUTTLE_VERSION);
    if (is_report)
        write_system(&json);
    json_array(&json, "devices");
    for (unsigned i = 0; i < ct_process.n_devices; i++)
        write_device(&json, &ct_process.devices[i], is_report);
    json_end(&json, ']');
    json_string(&json, "cpu_order", cpu_order());
    json_end(&json, '}');
}

int verb_info(const struct tool_arguments *arguments)
{
    const bool is_report = arguments->values[CUTTLE_INFO_REPORT], is_json = is_report || arguments->values[CUTTLE_INFO_JSON];
    CUresult result;

    if (is_json && arguments->values[CUTTLE_INFO_NAME])
        return tool_wrong_usage(arguments, "--json, --report and --name exclude each other", "");
    result = ct_process_init(0);
    if (is_json && (result == CUDA_SUCCESS || result == CUDA_ERROR_NO_DEVICE)) {
        write_json(is_report);
    } else if (result == CUDA_ERROR_NO_DEVICE) {
        printf("No device found. A driver for Vulkan 1.3 or OpenCL 3.0 is needed; Mesa's lavapipe runs on any CPU.\n");
    } else if (result != CUDA_SUCCESS) {
        fprintf(stderr, "cuttle: start-up failed with CUDA error %d\n", (int)result);
    } else if (arguments->values[CUTTLE_INFO_NAME]) {
        printf("%s\n", ct_process.devices[0].info.name);
    } else {
        tool_print_info(stdout);
    }
    return result == CUDA_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
