/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up of the process: enumerates, selects and sorts the devices of all backends. */
#include "startup.h"

#include "core/base/config.h"
#include "core/check/check.h"
#include "core/base/float_environment.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/resource_limits.h"
#include "core/device/compute_capability.h"
#include "core/device/absence.h"
#include "core/device/workarounds.h"
#include "cpu_order.h"
#include "device_setup.h"
#include "visible_devices.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CT_CHANNEL "process"
#define ALL "all"              /* what CUDA_VISIBLE_DEVICES is if it is not set */
#define BASE_MIB UINT64_C(352) /* lavapipe crashed with 256 where the loader had loaded all of Mesa's drivers */
#define THREAD_MIB UINT64_C(72)

static const struct ct_backend *const backends[] = {
    &ct_backend_vk,
#ifdef CT_WITH_OPENCL
    &ct_backend_cl,
#endif
};
#define CT_N_BACKENDS (sizeof backends / sizeof *backends)

/* An enumerated device that may become a device of the process. */
struct candidate {
    const struct ct_backend *backend;
    const struct ct_device_info *info;
    unsigned backend_index;
};

struct candidates {
    struct candidate *items;
    unsigned count;
};

/* A GPU that two backends enumerate is one device: that of the first backend. */
static bool is_listed(const struct candidates *list, const struct ct_backend *backend, const struct ct_device_info *info)
{
    for (unsigned i = 0; i < list->count; i++) {
        const struct ct_device_info *other = list->items[i].info;
        bool same_place = info->has_pci && other->has_pci && info->pci_domain == other->pci_domain && info->pci_bus == other->pci_bus &&
                          info->pci_device == other->pci_device;

        if (list->items[i].backend != backend && (same_place || !memcmp(info->uuid, other->uuid, sizeof info->uuid))) {
            ct_log(CT_LOG_INFO, "%s of backend %s is ignored: another backend already provides it", info->name, backend->name);
            return true;
        }
    }
    return false;
}

static CUresult add_backend(struct candidates *list, const struct ct_backend *backend)
{
    const struct ct_device_info *infos;
    struct candidate *items;
    unsigned count;
    struct ct_float_environment before;
    CUresult r;

    ct_float_environment_enter(&before); /* drivers may start threads */
    r = backend->enumerate(&infos, &count);
    ct_float_environment_restore(&before);
    if (r != CUDA_SUCCESS || count == 0)
        return r;
    items = realloc(list->items, (list->count + count) * sizeof *items);
    if (!items)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of devices");
    list->items = items;
    for (unsigned i = 0; i < count; i++) {
        if (!is_listed(list, backend, &infos[i]))
            items[list->count++] = (struct candidate){backend, &infos[i], i};
    }
    return CUDA_SUCCESS;
}

static bool is_asked(const struct ct_backend *backend)
{
    const char *only = ct_config()->backend;

    return !*only || !strcasecmp(only, backend->name);
}

/* Best kind first; CPU devices in their own order. */
static bool is_before(const struct ct_device_info *a, const struct ct_device_info *b)
{
    if (a->kind != b->kind || a->kind != CT_DEVICE_CPU)
        return a->kind < b->kind;
    return ct_cpu_order_place(ct_process.cpu_order, a) < ct_cpu_order_place(ct_process.cpu_order, b);
}

static void sort(struct candidates *list)
{
    for (unsigned i = 1; i < list->count; i++) { /* insertion sort: stable, and the list is short */
        struct candidate item = list->items[i];
        unsigned at = i;

        for (; at > 0 && is_before(item.info, list->items[at - 1].info); at--)
            list->items[at] = list->items[at - 1];
        list->items[at] = item;
    }
}

/* Lists all devices, sorted; equal ones keep their backends' order. If one backend fails, the others are still used. */
static CUresult find_candidates(struct candidates *list)
{
    CUresult first_error = CUDA_SUCCESS;

    if (ct_process.cpu_order == CT_CPU_ORDER_NOT_CHOSEN)
        ct_process.cpu_order = ct_cpu_order_choose();

    for (size_t i = 0; i < CT_N_BACKENDS; i++)
        if (is_asked(backends[i]) && backends[i]->prepare)
            backends[i]->prepare();
    for (size_t i = 0; i < CT_N_BACKENDS; i++) {
        CUresult r;

        if (!is_asked(backends[i]))
            continue;
        r = add_backend(list, backends[i]);
        if (r != CUDA_SUCCESS)
            ct_log(CT_LOG_WARN, "backend %s cannot enumerate its devices: error %d", backends[i]->name, (int)r);
        if (r != CUDA_SUCCESS && first_error == CUDA_SUCCESS)
            first_error = r;
    }
    sort(list);
    return list->count ? CUDA_SUCCESS : first_error;
}

static bool contains_ignoring_case(const char *text, const char *part, size_t length)
{
    for (; *text; text++)
        if (!strncasecmp(text, part, length))
            return true;
    return false;
}

static bool is_number(const char *word, size_t length)
{
    while (length > 0 && isdigit((unsigned char)word[length - 1]))
        length--;
    return length == 0;
}

/* A number selects its device each time that it occurs; a name selects the matching devices that no earlier word selected. */
static bool word_takes(const char *word, size_t length, unsigned number, const char *name, bool taken)
{
    if (is_number(word, length))
        return strtoul(word, NULL, 10) == number;
    return !taken && contains_ignoring_case(name, word, length);
}

/* Upper bound of the selected devices: a number selects one device, and all names together select each of `count` at most once. */
static size_t most_devices(const char *words, size_t count)
{
    for (; *words; words++)
        count += *words == ',';
    return count + 1;
}

/* Values that no option can have are ignored, and reported once: cuInit may be called again after it has failed. */
static void check_options(void)
{
    struct ct_option_fault fault;
    int length;
    const char *word = ct_workarounds_unknown_or_null(ct_config()->workarounds, &length);

    if (ct_process.options_checked)
        return;
    ct_process.options_checked = true;
    for (unsigned i = 0; ct_config_fault(i, &fault); i++)
        ct_log(CT_LOG_WARN, "%s=%s is not a value that this variable can have: %s", fault.variable, fault.text, fault.expected);
    if (word)
        ct_log(CT_LOG_WARN, "CUTTLE_WORKAROUNDS: there is no workaround %.*s; `cuttle workarounds` lists them", length, word);
}

static void name_devices(const struct candidates *list, char *out, size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; i < list->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%u: %s", i ? ", " : "", i, list->items[i].info->name);
}

/* The words of CUTTLE_DEVICE that name none of the devices, each in a warning; if no word names one, only one error. */
static void report_words(const struct candidates *list, bool any)
{
    const char *all = ct_config()->device;
    char names[1024] = "";

    if (ct_process.absence_logged)
        return;
    name_devices(list, names, sizeof names);
    if (!any)
        ct_log(CT_LOG_ERROR, "no CUDA device: CUTTLE_DEVICE=%s names none of the devices: %s", all, names);
    ct_process.absence_logged = !any;
    for (const char *word = all; any && *word; word += *word == ',') {
        const size_t length = strcspn(word, ",");
        bool is_known = !length;

        for (unsigned i = 0; i < list->count; i++)
            is_known |= word_takes(word, length, i, list->items[i].info->name, false);
        if (!is_known)
            ct_log(CT_LOG_WARN, "CUTTLE_DEVICE=%s: \"%.*s\" names none of the devices: %s", all, (int)length, word, names);
        word += length;
    }
}

/* Keeps the devices that CUTTLE_DEVICE names, in the order of its words. */
static CUresult apply_choice(struct candidates *list)
{
    const char *word = ct_config()->device;
    struct candidates chosen = {NULL, 0};
    bool *taken;

    if (!*word || !list->count)
        return CUDA_SUCCESS;
    chosen.items = calloc(most_devices(word, list->count), sizeof *chosen.items);
    taken = calloc(list->count, sizeof *taken);
    while (chosen.items && taken && *word) {
        size_t length = strcspn(word, ",");

        for (unsigned i = 0; length && i < list->count; i++) {
            if (!word_takes(word, length, i, list->items[i].info->name, taken[i]))
                continue;
            taken[i] = true;
            chosen.items[chosen.count++] = list->items[i];
        }
        word += length + (word[length] == ',');
    }
    if (chosen.items && taken)
        report_words(list, chosen.count > 0);
    free(list->items);
    *list = chosen;
    if (!chosen.items || !taken)
        list->count = 0;
    free(taken);
    return list->items ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of devices");
}

/* A device that is listed more than once gets different UUIDs and PCI domains, by which programs distinguish devices: NCCL refuses ranks on devices of
 * one address. Domains are counted from the last one down, so that no address is that of a device which exists. */
enum { LAST_PCI_DOMAIN = 0xffff };
static struct ct_device_info info_of(const struct candidates *list, unsigned index)
{
    const struct candidate *item = &list->items[index];
    struct ct_device_info info = *item->info;
    unsigned before = 0;

    for (unsigned i = 0; i < index; i++)
        before += list->items[i].info == item->info;
    info.uuid[sizeof info.uuid - 1] ^= (uint8_t)before;
    if (before)
        info.pci_domain = LAST_PCI_DOMAIN + 1 - before;
    return info;
}

/* The numbers in the list of the devices that CUDA_VISIBLE_DEVICES names. The caller frees *out. */
static CUresult find_visible(const struct candidates *list, unsigned **out, unsigned *n_out)
{
    unsigned *visible = calloc(list->count, sizeof *visible);
    uint8_t(*uuids)[16] = calloc(list->count, sizeof *uuids);
    CUresult r = CUDA_SUCCESS;

    if (!visible || !uuids)
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of devices");
    for (unsigned i = 0; r == CUDA_SUCCESS && i < list->count; i++) {
        const struct ct_device_info info = info_of(list, i);

        memcpy(uuids[i], info.uuid, sizeof uuids[i]);
        visible[i] = i;
    }
    *n_out = list->count;
    if (r == CUDA_SUCCESS && strcmp(ct_config()->visible_devices, ALL) != 0)
        r = ct_visible_devices(ct_config()->visible_devices, uuids, list->count, visible, n_out);
    free(uuids);
    *out = visible;
    return r;
}

static CUresult make_devices(const struct candidates *list, const unsigned *visible, unsigned n_visible)
{
    struct ct_device *devices = calloc(n_visible, sizeof *devices);
    unsigned made = 0;
    CUresult r = CUDA_SUCCESS;

    if (!devices)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for the devices");
    for (; made < n_visible && r == CUDA_SUCCESS; made++) {
        const struct candidate *item = &list->items[visible[made]];
        const struct ct_device_info info = info_of(list, visible[made]);

        r = ct_device_init(&devices[made], (int)made, item->backend, item->backend_index, &info);
    }
    if (r != CUDA_SUCCESS) {
        while (made > 0)
            ct_device_finish(&devices[--made]);
        free(devices);
        return r;
    }
    ct_process.devices = devices;
    ct_process.n_devices = n_visible;
    if (n_visible)
        ct_compute_capability_note_first(&devices[0].info);
    return CUDA_SUCCESS;
}

/* Says what was tried and what may help, at the default log level: many programs only say that there is no device. Once, since some of them
 * try again. */
static void report_no_device(void)
{
    struct ct_absence tried = {""};

    if (ct_process.absence_logged)
        return;
    ct_process.absence_logged = true;
    for (size_t i = 0; i < CT_N_BACKENDS; i++)
        if (is_asked(backends[i]))
            ct_absence_add(&tried, "%s: %s", backends[i]->name, backends[i]->absence());
    if (!*tried.text)
        ct_log(CT_LOG_ERROR, "no CUDA device: CUTTLE_BACKEND=%s leaves out all backends", ct_config()->backend);
    else
        ct_log(
            CT_LOG_ERROR,
            "no CUDA device%s%s: %s. Correct or remove these variables, or install a driver for Vulkan 1.3 or OpenCL 3.0: Mesa's lavapipe "
            "(in Debian and Ubuntu: libvulkan1 and mesa-vulkan-drivers) runs on any CPU",
            *ct_config()->backend ? " with CUTTLE_BACKEND=" : "", ct_config()->backend, tried.text);
}

/* Drivers of CPU devices crash when they cannot map memory. What lavapipe maps until it has run a small kernel: Mesa 25.0 and LLVM, and for
 * each of its threads (one for a processor, at most 32, and a few others) a stack and a heap of the C library. With
 * 2 processors it crashed with less than 600 MiB at times. */
static CUresult check_address_space(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t threads = 4 + (uint64_t)(processors < 1 ? 1 : processors > 32 ? 32 : processors);
    const uint64_t bytes = BASE_MIB + THREAD_MIB * threads;

    if (ct_limit_allows_mapping(bytes << 20))
        return CUDA_SUCCESS;
    if (!ct_process.absence_logged)
        ct_log(CT_LOG_ERROR, "no CUDA device: the limit on memory (ulimit -v or -d) leaves less than the %llu MiB that drivers may need",
               (unsigned long long)bytes);
    ct_process.absence_logged = true;
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "drivers cannot be started with so little memory");
}

/* Makes the devices of a list that the process is to see. */
static CUresult make_visible(const struct candidates *list)
{
    unsigned *visible, n_visible;
    CUresult r = find_visible(list, &visible, &n_visible);

    if (r == CUDA_SUCCESS && !n_visible) {
        if (!ct_process.absence_logged)
            ct_log(CT_LOG_ERROR, "no CUDA device: CUDA_VISIBLE_DEVICES=%s names none of %u devices", ct_config()->visible_devices,
                   list->count);
        ct_process.absence_logged = true;
        r = ct_fail(CUDA_ERROR_NO_DEVICE, "no device is visible");
    }
    if (r == CUDA_SUCCESS)
        r = make_devices(list, visible, n_visible);
    free(visible);
    return r;
}

static CUresult start_locked(void)
{
    struct candidates list = {NULL, 0};
    CUresult r;

    check_options();
    r = check_address_space();
    if (r == CUDA_SUCCESS)
        r = find_candidates(&list);
    if (r == CUDA_SUCCESS && list.count == 0)
        report_no_device();
    if (r == CUDA_SUCCESS)
        r = apply_choice(&list);
    if (r == CUDA_SUCCESS && list.count == 0)
        r = ct_fail(CUDA_ERROR_NO_DEVICE, "no device found (CUTTLE_BACKEND \"%s\", CUTTLE_DEVICE \"%s\")", ct_config()->backend,
                    ct_config()->device);
    if (r == CUDA_SUCCESS)
        r = make_visible(&list);
    free(list.items);
    if (r == CUDA_SUCCESS) {
        ct_process_watch();
        ct_check_watch_exit(); /* later, so that it is called before */
    }
    return r;
}

CUresult ct_process_init(unsigned flags)
{
    CUresult r = CUDA_SUCCESS;

    if (flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not 0x%x", flags);
    /* checks for FORKED and GONE without the lock, which a thread that no longer exists may have held */
    if (atomic_load_explicit(&ct_process.state, memory_order_acquire) != CT_PROCESS_NEW)
        return ct_process_check();
    ct_log_init();
    ct_mutex_lock(&ct_process.lock);
    if (atomic_load_explicit(&ct_process.state, memory_order_relaxed) == CT_PROCESS_NEW) {
        r = start_locked();
        if (r == CUDA_SUCCESS)
            atomic_store_explicit(&ct_process.state, CT_PROCESS_READY, memory_order_release);
    }
    ct_mutex_unlock(&ct_process.lock);
    return r;
}
