/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the address rule of a device. Each candidate is tried on a VkDevice of its own: memory is allocated where the rule requires it,
 * and the resulting address is compared. The order of preference: chosen addresses, chosen with a mask, shared, windows, the driver's own.
 * What a device grants without reservation is kept for later processes (address_rule_cache.h).
 *
 * If CUTTLE_ADDRESS_RULE names a rule, the candidates that exist only for tests are considered, too: with an artificial mask or artificial
 * windows on drivers that accept any address, and on CPU devices with pages that are mapped twice. No known driver needs windows: each
 * grants addresses or shares the host's. */
#include "address_rule_cache.h"
#include "virtual_memory.h"

#include "core/backing/address_rule.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/backing/reservation.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "vulkan"
#define GIB ((uint64_t)1 << 30)
#define DEVICE_BYTES ((uint64_t)2 << 20)
#define HOST_BYTES ((uint64_t)64 << 10)
#define PIECE_ALIGN ((uint64_t)64 << 10)
/* No driver is known to fail at imports below 4 GiB; ANV keeps the size in 32 bits. */
#define MAX_PIECE_BYTES (4 * GIB - ((uint64_t)2 << 20))

/* Free in PIE and non-PIE processes, and accepted by all drivers that grant addresses of the host. */
#define HIGH_ARENA {{0x100000000000, 0x3fff00000000}}
/* RADV on GFX8 has at least 64 GiB of addresses, Raven 512 GiB in the upper half; the driver's own addresses begin at 4 GiB. */
#define LOW_ARENA                                                                                                                          \
    {                                                                                                                                      \
        {                                                                                                                                  \
            16 * GIB, 62 * GIB                                                                                                             \
        }                                                                                                                                  \
    }
/* For tests: a bit that is set in the addresses of heap, stack and mappings anyway, so that the mask does not change registered memory. */
#define TEST_MASK UINT64_C(0x400000000000)
#define TEST_MASK_ARENA {{0x280000000000, 0x2fff00000000}}
/* For tests: two windows with different offsets; the arenas lie well inside. */
#define TEST_WINDOWS {{0x200000000000, 512 * GIB, 0x480000000000}, {0x240000000000, 512 * GIB, 0x460000000000}}
#define TEST_WINDOW_ARENAS                                                                                                                 \
    {                                                                                                                                      \
        {0x200000000000 + GIB, 0x200000000000 + 511 * GIB},                                                                                \
        {                                                                                                                                  \
            0x240000000000 + GIB, 0x240000000000 + 511 * GIB                                                                               \
        }                                                                                                                                  \
    }
/* RADV from GFX9 on grants addresses in the upper half only. It is not tried on other vendors' drivers: a refusal may have side effects (see
 * memory_piece.c). */
#define RADV_MASK UINT64_C(0xffff800000000000)
#define VENDOR_AMD 0x1002u

struct candidate {
    enum ct_address_rule rule;
    enum ct_vk_placement placement;
    bool for_tests;     /* considered only if CUTTLE_ADDRESS_RULE names its rule */
    bool sparse_import; /* imports need a sparse buffer: a driver known to grant this rule ignores the address chosen for an import */
    uint64_t mask;
    struct ct_address_arena arenas[CT_ADDRESS_ARENAS];
    struct ptx2spv_window windows[PTX2SPV_WINDOWS_MAX];
};

static const struct candidate candidates[] = {
    {CT_ADDRESS_CHOSEN, CT_VK_PLACED_OPAQUE, false, false, 0, HIGH_ARENA, {{0}}},
    {CT_ADDRESS_CHOSEN, CT_VK_PLACED_OPAQUE, false, true, 0, LOW_ARENA, {{0}}},
    {CT_ADDRESS_CHOSEN, CT_VK_PLACED_PAGES, true, false, 0, HIGH_ARENA, {{0}}},
    {CT_ADDRESS_CHOSEN_MASK, CT_VK_PLACED_OPAQUE, false, true, RADV_MASK, HIGH_ARENA, {{0}}},
    {CT_ADDRESS_CHOSEN_MASK, CT_VK_PLACED_OPAQUE, false, true, RADV_MASK, LOW_ARENA, {{0}}},
    {CT_ADDRESS_CHOSEN_MASK, CT_VK_PLACED_OPAQUE, true, false, TEST_MASK, TEST_MASK_ARENA, {{0}}},
    {CT_ADDRESS_CHOSEN_MASK, CT_VK_PLACED_PAGES, true, false, TEST_MASK, TEST_MASK_ARENA, {{0}}},
    {CT_ADDRESS_SHARED, CT_VK_PLACED_BY_DRIVER, false, false, 0, {{0}}, {{0}}},
    {CT_ADDRESS_WINDOWS, CT_VK_PLACED_OPAQUE, true, false, 0, TEST_WINDOW_ARENAS, TEST_WINDOWS},
    {CT_ADDRESS_WINDOWS, CT_VK_PLACED_PAGES, true, false, 0, TEST_WINDOW_ARENAS, TEST_WINDOWS},
    {CT_ADDRESS_OWN, CT_VK_PLACED_PAGES, true, false, 0, {{0}}, {{0}}},
    {CT_ADDRESS_OWN, CT_VK_PLACED_BY_DRIVER, false, false, 0, {{0}}, {{0}}},
};
#define N_CANDIDATES (sizeof candidates / sizeof *candidates)

/* ---- candidates ---- */

static void apply(const struct candidate *candidate, struct ct_vk_physical *physical, struct ct_device_info *info)
{
    struct ptx2spv_target *target = &info->target;
    bool has_import = physical->has[CT_VK_EXT_EXTERNAL_MEMORY_HOST];

    physical->placement = candidate->placement;
    physical->sparse_import = candidate->sparse_import;
    physical->uses_file =
        has_import && info->kind == CT_DEVICE_CPU && (candidate->rule == CT_ADDRESS_SHARED || candidate->placement == CT_VK_PLACED_PAGES);
    info->address_rule = candidate->rule;
    memcpy(info->arenas, candidate->arenas, sizeof info->arenas);
    target->pointer_rule = candidate->mask                         ? PTX2SPV_POINTER_OR
                           : candidate->rule == CT_ADDRESS_WINDOWS ? PTX2SPV_POINTER_WINDOWS
                                                                   : PTX2SPV_POINTER_SAME;
    target->pointer_mask = candidate->mask;
    memcpy(target->windows, candidate->windows, sizeof target->windows);
    info->maps_host = true; /* every device has a host-visible, coherent type for buffers (Vulkan, "Resource Memory Association") */
    info->can_import_host = has_import;
    physical->concatenates = false;
    info->import_at_pointer = false;
    info->virtual_memory = CT_VIRTUAL_NONE;
    info->import_read_only = has_import && info->kind == CT_DEVICE_CPU; /* such a device pins no pages for writing */
    info->pageable_access = candidate->rule == CT_ADDRESS_SHARED;
}

static bool has_what_it_needs(const struct candidate *candidate, const struct ct_vk_physical *physical, const struct ct_device_info *info)
{
    if (candidate->mask == RADV_MASK && info->vendor_id != VENDOR_AMD)
        return false;
    switch (candidate->placement) {
    case CT_VK_PLACED_OPAQUE:
        return physical->address_capture_replay && physical->has[CT_VK_EXT_EXTERNAL_MEMORY_HOST] &&
               (!candidate->sparse_import || physical->has_sparse_family);
    case CT_VK_PLACED_PAGES:
        return info->kind == CT_DEVICE_CPU && physical->has[CT_VK_EXT_EXTERNAL_MEMORY_HOST];
    case CT_VK_PLACED_BY_DRIVER:
        return candidate->rule != CT_ADDRESS_SHARED || info->kind == CT_DEVICE_CPU;
    }
    return false;
}

/* ---- trials ---- */

/* Reserves a part of the arena for one trial. It is released only after a successful trial: a refused address is not requested again. */
static bool reserve(const struct ct_backend_device *device, void **out, uint64_t *out_bytes)
{
    *out = NULL;
    *out_bytes = 0;
    if (!ct_address_is_placed(device->info->address_rule))
        return true;
    return ct_reserve(device->info, DEVICE_BYTES, 1, out, out_bytes) == CUDA_SUCCESS;
}

/* Whether memory of one kind can be allocated at its address; host memory also at its host pointer. */
static bool makes(struct ct_backend_device *device, enum ct_memory_kind kind, uint64_t size_bytes)
{
    struct ct_memory_request request = {.size_bytes = size_bytes, .align = PIECE_ALIGN, .kind = kind};
    struct ct_memory *memory;
    uint64_t reserved_bytes;
    void *reserved;
    bool good;

    if (!reserve(device, &reserved, &reserved_bytes))
        return false;
    request.want_address = (uint64_t)(uintptr_t)reserved;
    if (ct_vk_memory_create(device, &request, &memory) != CUDA_SUCCESS)
        return false;
    good = kind == CT_MEMORY_DEVICE || !reserved || memory->host == reserved;
    ct_vk_memory_destroy(memory);
    ct_unreserve(reserved, reserved_bytes);
    return good;
}

/* Whether memory can be concatenated from several allocations, each at the address behind the one before. */
static bool concatenates(struct ct_backend_device *device, struct ct_vk_physical *physical)
{
    const uint64_t piece_bytes = physical->piece_bytes;
    bool good;

    physical->piece_bytes = DEVICE_BYTES / 2;
    good = makes(device, CT_MEMORY_DEVICE, DEVICE_BYTES);
    physical->piece_bytes = piece_bytes;
    return good;
}

/* Whether a sparse buffer of one page, to which imported pages can be bound, can be created at a page of the arena. Nothing is bound, since
 * binding itself is known to work; and with RADV without a GPU (Mesa's drm-shim), no wait for a binding succeeds. */
static bool makes_sparse(struct ct_backend_device *device, uint64_t address)
{
    struct ct_vk_piece_plan plan = {.size_bytes = (uint64_t)sysconf(_SC_PAGESIZE), .sparse = true, .unbound = true};
    struct ct_vk_piece piece;

    plan.chosen_address = plan.wanted_address = ct_rule_devaddr(&device->info->target, address).v;
    if (ct_vk_piece_create(device, &plan, &piece, &address) != CUDA_SUCCESS)
        return false;
    ct_vk_piece_destroy(device, &piece);
    return true;
}

static bool imports(struct ct_backend_device *device, void *page, uint64_t page_bytes)
{
    const struct ct_host_import import = {.pages = page, .size_bytes = page_bytes, .want_address = (uint64_t)(uintptr_t)page};
    struct ct_memory *memory;

    if (ct_vk_memory_import_host(device, &import, &memory) != CUDA_SUCCESS)
        return false;
    ct_vk_memory_destroy(memory);
    return true;
}

/* Whether any page of the application can be imported at its own address: tried with a page that has no more than the required alignment. */
static bool imports_at_pointer(struct ct_backend_device *device)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    char *pages, *odd;
    bool good;

    if (device->physical->placement ==
        CT_VK_PLACED_PAGES) /* such a page's device address is its host address, and the test rules do not change it */
        return true;
    if (device->physical->address_granule > page_bytes)
        return false;
    pages = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return false;
    odd = (uintptr_t)pages & page_bytes ? pages : pages + page_bytes;
    good = device->physical->sparse_import ? makes_sparse(device, (uint64_t)(uintptr_t)odd) : imports(device, odd, page_bytes);
    munmap(pages, 2 * page_bytes);
    return good;
}

static bool makes_host(struct ct_backend_device *device)
{
    uint64_t reserved_bytes;
    void *reserved;

    if (!device->physical->sparse_import)
        return makes(device, CT_MEMORY_HOST, HOST_BYTES);
    if (!reserve(device, &reserved, &reserved_bytes) || !makes_sparse(device, (uint64_t)(uintptr_t)reserved))
        return false;
    ct_unreserve(reserved, reserved_bytes);
    return true;
}

/* Whether addresses can be reserved without memory: ANV with i915 grants sparse buffers no addresses of the host. */
static bool reserves_sparse(struct ct_backend_device *device)
{
    uint64_t reserved_bytes;
    struct ct_memory *range;
    void *reserved;

    if (!device->info->sparse || !device->physical->has_sparse_family || !reserve(device, &reserved, &reserved_bytes) ||
        ct_vk_range_create(device, (uint64_t)(uintptr_t)reserved, DEVICE_BYTES, &range) != CUDA_SUCCESS)
        return false;
    ct_vk_memory_destroy(range);
    ct_unreserve(reserved, reserved_bytes);
    return true;
}

static bool works(const struct candidate *candidate, struct ct_vk_physical *physical, struct ct_device_info *info)
{
    struct ct_backend_device *device;
    bool good;

    apply(candidate, physical, info);
    if (physical->memory_missing || (candidate->rule == CT_ADDRESS_OWN && !candidate->for_tests)) /* there is nothing to try */
        return true;
    if (ct_vk_device_open_compiler(physical, info, &device) != CUDA_SUCCESS)
        return false;
    ct_thread_set_tries(true); /* a refusal is no fault of the driver */
    good = makes(device, CT_MEMORY_DEVICE, DEVICE_BYTES) && makes_host(device);
    if (good && ct_address_is_placed(candidate->rule)) {
        physical->concatenates = concatenates(device, physical);
        info->import_at_pointer = imports_at_pointer(device);
    }
    if (good && candidate->placement == CT_VK_PLACED_OPAQUE && reserves_sparse(device))
        info->virtual_memory = CT_VIRTUAL_SPARSE;
    ct_thread_set_tries(false);
    ct_vk_device_close(device);
    return good;
}

/* ---- selection ---- */

static bool may_import_at_pointer(const struct candidate *candidate, const struct ct_vk_physical *physical)
{
    return ct_address_is_placed(candidate->rule) && physical->address_granule <= (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool may_reserve(const struct candidate *candidate, const struct ct_vk_physical *physical, const struct ct_device_info *info)
{
    return candidate->placement == CT_VK_PLACED_OPAQUE && info->sparse && physical->has_sparse_family;
}

/* The candidate grants all that it may: then another trial, by another process, would find the same. Anything less may have passing causes, such
 * as a shortage of memory. */
static bool is_complete(const struct candidate *candidate, const struct ct_vk_physical *physical, const struct ct_device_info *info)
{
    return candidate->rule != CT_ADDRESS_OWN && !physical->memory_missing &&
           (physical->concatenates || !ct_address_is_placed(candidate->rule)) &&
           (info->import_at_pointer || !may_import_at_pointer(candidate, physical)) &&
           (info->virtual_memory == CT_VIRTUAL_SPARSE || !may_reserve(candidate, physical, info));
}

/* The candidate that an earlier process found to grant all that it may. */
static bool use_cached(struct ct_vk_physical *physical, struct ct_device_info *info, enum ct_address_rule likely)
{
    const struct candidate *candidate;
    uint32_t i;

    if (!ct_vk_address_rule_load(physical, info, &i) || i >= N_CANDIDATES)
        return false;
    candidate = &candidates[i];
    if (candidate->for_tests || candidate->rule != likely || !has_what_it_needs(candidate, physical, info))
        return false;
    apply(candidate, physical, info);
    physical->concatenates = ct_address_is_placed(candidate->rule);
    info->import_at_pointer = may_import_at_pointer(candidate, physical);
    if (may_reserve(candidate, physical, info))
        info->virtual_memory = CT_VIRTUAL_SPARSE;
    ct_log(CT_LOG_DEBUG, "%s: the address rule comes from the disk cache", info->name);
    return true;
}

static bool find(struct ct_vk_physical *physical, struct ct_device_info *info, enum ct_address_rule rule, bool for_tests)
{
    for (size_t i = 0; i < N_CANDIDATES; i++)
        if (candidates[i].rule == rule && (for_tests || !candidates[i].for_tests) && has_what_it_needs(&candidates[i], physical, info) &&
            works(&candidates[i], physical, info)) {
            if (!candidates[i].for_tests && is_complete(&candidates[i], physical, info))
                ct_vk_address_rule_store(physical, info, (uint32_t)i);
            return true;
        }
    return false;
}

static bool find_forced(struct ct_vk_physical *physical, struct ct_device_info *info)
{
    const char *name = ct_config()->address_rule;

    if (!*name)
        return false;
    for (int rule = CT_ADDRESS_CHOSEN; rule <= CT_ADDRESS_OWN; rule++) {
        if (strcmp(name, ct_rule_name((enum ct_address_rule)rule)))
            continue;
        if (find(physical, info, (enum ct_address_rule)rule, true))
            return true;
        ct_log(CT_LOG_WARN, "%s does not support the address rule \"%s\"", info->name, name);
        return false;
    }
    return false;
}

static void find_best(struct ct_vk_physical *physical, struct ct_device_info *info, enum ct_address_rule likely)
{
    if (use_cached(physical, info, likely) || find(physical, info, likely, false))
        return;
    for (int rule = CT_ADDRESS_CHOSEN; rule <= CT_ADDRESS_OWN; rule++)
        if ((enum ct_address_rule)rule != likely && find(physical, info, (enum ct_address_rule)rule, false))
            return;
}

/* Determines the maximum size of a piece, and whether larger memory can be concatenated from several. */
static void choose_sizes(struct ct_vk_physical *physical, struct ct_device_info *info)
{
    uint64_t forced = (uint64_t)(ct_config()->piece_bytes > 0 ? ct_config()->piece_bytes : 0) & ~(PIECE_ALIGN - 1);
    bool own_pages = info->can_import_host && (info->address_rule == CT_ADDRESS_SHARED || physical->placement == CT_VK_PLACED_PAGES);

    physical->piece_bytes = info->max_allocation_bytes < MAX_PIECE_BYTES ? info->max_allocation_bytes : MAX_PIECE_BYTES;
    physical->piece_bytes &= ~(PIECE_ALIGN - 1);
    if (forced && forced < physical->piece_bytes)
        physical->piece_bytes = forced;
    if (physical->concatenates || own_pages)
        info->max_allocation_bytes = info->memory_bytes;
    else
        info->max_allocation_bytes = physical->piece_bytes;
}

/* CPU devices access whatever is mapped at addresses that were imported before; others have sparse memory, if works() found it usable. */
static void choose_virtual_memory(const struct ct_vk_physical *physical, struct ct_device_info *info)
{
    bool bind = !strcmp(ct_config()->virtual_memory, "sparse") && info->sparse && physical->has_sparse_family;

    if (info->kind == CT_DEVICE_CPU && info->address_rule == CT_ADDRESS_SHARED && bind)
        info->virtual_memory = CT_VIRTUAL_SPARSE;
    else if (info->kind == CT_DEVICE_CPU && info->can_import_host && info->address_rule != CT_ADDRESS_OWN)
        info->virtual_memory = CT_VIRTUAL_PAGES;
    info->virtual_aliases = info->virtual_memory == CT_VIRTUAL_PAGES || physical->features.core.features.sparseResidencyAliased;
    info->virtual_memory_fd =
        info->virtual_memory == CT_VIRTUAL_PAGES || (info->virtual_memory == CT_VIRTUAL_SPARSE && ct_vk_shares_ranges(physical, info));
    info->driver_pages = info->virtual_memory == CT_VIRTUAL_PAGES && ct_vk_export_types(physical);
}

/* On CPU devices memory consists of pages of a file of the library, which other processes and other drivers can map. Memory that a driver
 * exports would need a file descriptor for each allocation. */
static void choose_sharing(struct ct_vk_physical *physical, struct ct_device_info *info)
{
    physical->export_types = info->kind != CT_DEVICE_CPU && ct_config()->share_memory ? ct_vk_export_types(physical) : 0;
    info->memory_fd = physical->uses_file || physical->export_types;
    info->exports_dma_bufs = physical->export_types & VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
}

void ct_vk_address_rule_probe(struct ct_vk_physical *physical, struct ct_device_info *info, enum ct_address_rule likely)
{
    const uint64_t driver_max = info->max_allocation_bytes;

    physical->piece_bytes = driver_max;
    if (!find_forced(physical, info))
        find_best(physical, info, likely);
    choose_sizes(physical, info);
    choose_virtual_memory(physical, info);
    choose_sharing(physical, info);
    ct_log(CT_LOG_INFO, "%s: address rule \"%s\"", info->name, ct_rule_name(info->address_rule));
}
