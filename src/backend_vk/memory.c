/* SPDX-License-Identifier: Apache-2.0 */
/* Memory at an address: how memory is placed where the address rule requires it (enum ct_vk_placement), and how memory larger than the
 * driver's largest allocation is concatenated from pieces.
 *
 * Pieces of a sparse buffer of at least 2 MiB begin and end at multiples of 2 MiB: libdrm rounds larger ranges to the fragments of
 * its page tables, and two registrations must not share such a fragment. */
#include "memory.h"

#include "core/backing/address_rule.h"
#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
#define COHERENT VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define FRAGMENT_BYTES ((uint64_t)2 << 20)
#define SPARSE_GRAIN_BYTES ((uint64_t)64 << 10) /* RADV of Mesa 26 binds multiples of this to sparse buffers */

static const struct ct_vk_type_preferences import_preferences = {VISIBLE | COHERENT, CACHED, 0};

static struct ct_vk_type_preferences preferences_of(const struct ct_backend_device *device, enum ct_memory_kind kind)
{
    static const struct ct_vk_type_preferences by_kind[] = {
        [CT_MEMORY_DEVICE] = {0, LOCAL, VISIBLE},
        [CT_MEMORY_HOST] = {VISIBLE | COHERENT, CACHED, LOCAL},
        [CT_MEMORY_HOST_WC] = {VISIBLE | COHERENT, 0, LOCAL | CACHED},
    };
    static const struct ct_vk_type_preferences visible_device = {VISIBLE | COHERENT, LOCAL | CACHED, 0};

    return kind == CT_MEMORY_DEVICE && device->info->host_visible_device_memory ? visible_device : by_kind[kind];
}

/* ---- pieces ---- */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The size in bytes of the piece at `offset`. */
static uint64_t next_piece(const struct ct_backend_device *device, const struct ct_vk_piece_plan *whole, uint64_t offset)
{
    uint64_t left = whole->size_bytes - offset, to_fragment = -(whole->chosen_address + offset) & (FRAGMENT_BYTES - 1);

    if (whole->sparse && to_fragment)
        return min_u64(left, to_fragment);
    if (whole->sparse && left > FRAGMENT_BYTES)
        left &= ~(FRAGMENT_BYTES - 1);
    return min_u64(left, device->physical->piece_bytes);
}

static unsigned count_pieces(const struct ct_backend_device *device, const struct ct_vk_piece_plan *whole)
{
    unsigned n = 0;

    for (uint64_t offset = 0; offset < whole->size_bytes; offset += next_piece(device, whole, offset))
        n++;
    return n;
}

static CUresult add_piece(struct ct_vk_memory *memory, const struct ct_vk_piece_plan *whole, uint64_t offset)
{
    struct ct_backend_device *device = memory->base.device;
    struct ct_vk_piece *piece = &memory->pieces[memory->n_made];
    struct ct_vk_piece_plan plan = *whole;
    uint64_t address;
    CUresult r;

    plan.size_bytes = next_piece(device, whole, offset);
    plan.chosen_address = whole->chosen_address ? whole->chosen_address + offset : 0;
    plan.wanted_address = whole->wanted_address ? whole->wanted_address + offset : offset ? memory->base.address.v + offset : 0;
    plan.import = whole->import ? (char *)whole->import + offset : NULL;
    if ((r = ct_vk_piece_create(device, &plan, piece, &address)) != CUDA_SUCCESS)
        return r;
    piece->offset = offset;
    if (!offset)
        memory->base.address.v = address;
    memory->n_made++;
    return CUDA_SUCCESS;
}

CUresult ct_vk_memory_concatenate(struct ct_backend_device *device, const struct ct_vk_piece_plan *whole, struct ct_vk_memory **out)
{
    unsigned n = count_pieces(device, whole);
    struct ct_vk_memory *memory = calloc(1, sizeof *memory + n * sizeof *memory->pieces);
    CUresult r = CUDA_SUCCESS;

    if (!memory)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory object");
    memory->base.device = device;
    memory->base.size_bytes = whole->size_bytes;
    memory->n_pieces = n;
    for (uint64_t offset = 0; offset < whole->size_bytes && r == CUDA_SUCCESS; offset += next_piece(device, whole, offset))
        r = add_piece(memory, whole, offset);
    if (r != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

const struct ct_vk_piece *ct_vk_memory_piece(const struct ct_vk_memory *memory, uint64_t offset)
{
    unsigned low = 0, high = memory->n_pieces;

    while (high - low > 1) {
        unsigned middle = (low + high) / 2;

        if (memory->pieces[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return &memory->pieces[low];
}

uint64_t ct_vk_piece_bytes(const struct ct_vk_memory *memory, const struct ct_vk_piece *piece)
{
    const uint64_t left = memory->base.size_bytes - piece->offset;

    return left < piece->size_bytes ? left : piece->size_bytes;
}

/* ---- the driver's own address ---- */

/* Creates memory at a multiple of `align`: if the driver's address is not one, the memory is created again with padding. */
static CUresult create_aligned(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, uint64_t align,
                               struct ct_vk_memory **out)
{
    struct ct_vk_piece_plan padded = *plan;
    struct ct_vk_memory *memory;
    CUresult r = ct_vk_memory_concatenate(device, plan, &memory);

    if (r == CUDA_SUCCESS && (memory->base.address.v & (align - 1))) {
        ct_vk_memory_destroy(&memory->base);
        if (__builtin_add_overflow(plan->size_bytes, align, &padded.size_bytes) || padded.size_bytes > device->physical->piece_bytes)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes, aligned to %llu", (unsigned long long)plan->size_bytes,
                           (unsigned long long)align);
        r = ct_vk_memory_concatenate(device, &padded, &memory);
    }
    if (r != CUDA_SUCCESS)
        return r;
    memory->pieces[0].buffer_offset = -memory->base.address.v & (align - 1);
    memory->pieces[0].size_bytes = plan->size_bytes;
    memory->base.address.v += memory->pieces[0].buffer_offset;
    *out = memory;
    return CUDA_SUCCESS;
}

/* Maps memory of a single piece; several pieces have no contiguous mapping. */
static CUresult map_if_visible(struct ct_vk_memory *memory, enum ct_memory_kind kind)
{
    struct ct_backend_device *device = memory->base.device;
    void *start;
    CUresult r;

    if (memory->n_pieces > 1 || (kind == CT_MEMORY_DEVICE && !device->info->host_visible_device_memory))
        return CUDA_SUCCESS;
    r = ct_vk_result(device->vk.vkMapMemory(device->handle, memory->pieces[0].handle, 0, VK_WHOLE_SIZE, 0, &start), "vkMapMemory");
    if (r != CUDA_SUCCESS)
        return r;
    memory->base.host = (char *)start + memory->pieces[0].buffer_offset;
    if (device->info->address_rule == CT_ADDRESS_SHARED && (uintptr_t)memory->base.host != memory->base.address.v)
        return ct_fail(CUDA_ERROR_MAP_FAILED, "%s: device address %#llx is not the host's %p", device->info->name,
                       (unsigned long long)memory->base.address.v, memory->base.host);
    return CUDA_SUCCESS;
}

static CUresult create_by_driver(struct ct_backend_device *device, const struct ct_memory_request *request,
                                 const struct ct_vk_piece_plan *plan, struct ct_vk_memory **out)
{
    struct ct_vk_memory *memory;
    CUresult r = create_aligned(device, plan, request->align ? request->align : 1, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = map_if_visible(memory, request->kind)) != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

/* ---- chosen addresses ---- */

static CUresult create_opaque(struct ct_backend_device *device, const struct ct_memory_request *request,
                              const struct ct_vk_piece_plan *plan, struct ct_vk_memory **out)
{
    struct ct_vk_piece_plan chosen = *plan;
    struct ct_vk_memory *memory;
    CUresult r;

    chosen.chosen_address = chosen.wanted_address = ct_rule_devaddr(&device->info->target, request->want_address).v;
    if ((r = ct_vk_memory_concatenate(device, &chosen, &memory)) != CUDA_SUCCESS)
        return r;
    if ((r = map_if_visible(memory, request->kind)) != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

/* ---- imported pages ---- */

static CUresult import_pages(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_vk_memory **out)
{
    const struct ct_vk_physical *physical = device->physical;
    VkMemoryHostPointerPropertiesEXT properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    struct ct_vk_piece_plan plan = {
        .size_bytes = import->size_bytes,
        .import = import->pages,
        .import_type = import->io_memory ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT
                                         : VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .preferences = import_preferences,
    };
    CUresult r;

    if (device->info->kind == CT_DEVICE_CPU)
        plan.import_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT; /* any memory that the host can access */
    r = ct_vk_result(device->vk.vkGetMemoryHostPointerPropertiesEXT(device->handle, plan.import_type, import->pages, &properties),
                     "vkGetMemoryHostPointerPropertiesEXT");
    if (r == CUDA_ERROR_NO_DEVICE) /* NVIDIA 580.159.04 returns INITIALIZATION_FAILED if the memory is not I/O memory */
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import such pages", device->info->name);
    if (r != CUDA_SUCCESS)
        return r;
    plan.allowed_types = properties.memoryTypeBits;
    if (import->want_address)
        plan.wanted_address = ct_rule_devaddr(&device->info->target, import->want_address).v;
    if (physical->placement == CT_VK_PLACED_OPAQUE)
        plan.chosen_address = plan.wanted_address;
    plan.sparse = physical->sparse_import && plan.chosen_address;
    return ct_vk_memory_concatenate(device, &plan, out);
}

static CUresult create_on_pages(struct ct_backend_device *device, struct ct_vk_pages *pages, uint64_t want_address,
                                struct ct_vk_memory **out)
{
    const struct ct_host_import import = {.pages = pages->device, .size_bytes = pages->size_bytes, .want_address = want_address};
    struct ct_vk_memory *memory;
    CUresult r = import_pages(device, &import, &memory);

    if (r != CUDA_SUCCESS) {
        ct_vk_pages_unmap(pages);
        return r;
    }
    memory->pages = *pages;
    memory->base.host = pages->host;
    *out = memory;
    return CUDA_SUCCESS;
}

/* The first access to huge pages takes a third of the time of small pages, and later there are fewer TLB misses (measured on CPU devices
 * only). */
static bool deserves_huge_pages(const struct ct_backend_device *device, uint64_t size_bytes)
{
    return device->info->kind == CT_DEVICE_CPU && size_bytes >= CT_VK_HUGE_PAGE_BYTES;
}

/* Host memory with a chosen address: anonymous pages, which are mapped and imported at the same host address. */
static CUresult create_host_pages(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_vk_memory **out)
{
    const uint64_t grain = device->physical->sparse_import ? SPARSE_GRAIN_BYTES : 1;
    const struct ct_vk_pages_plan plan = {.fd = -1,
                                          .size_bytes = (request->size_bytes + grain - 1) & ~(grain - 1),
                                          .align = request->align,
                                          .host_at = request->want_address,
                                          .huge = deserves_huge_pages(device, request->size_bytes)};
    struct ct_vk_pages pages;
    CUresult r = ct_vk_pages_map(&plan, &pages);

    return r == CUDA_SUCCESS ? create_on_pages(device, &pages, request->want_address, out) : r;
}

static uint64_t device_side(const struct ct_backend_device *device, uint64_t host_at)
{
    return host_at ? ct_rule_devaddr(&device->info->target, host_at).v : 0;
}

/* Whether the host and the device use different mappings of the pages. */
static bool maps_twice(const struct ct_backend_device *device, uint64_t host_at)
{
    return device_side(device, host_at) != host_at || device->info->address_rule == CT_ADDRESS_OWN;
}

CUresult ct_vk_memory_on_file(struct ct_backend_device *device, const struct ct_vk_pages_plan *plan, struct ct_vk_memory **out)
{
    uint64_t want = plan->host_at;
    struct ct_vk_pages pages;
    CUresult r = maps_twice(device, want) ? ct_vk_pages_map_twice(plan, device_side(device, want), &pages) : ct_vk_pages_map(plan, &pages);

    return r == CUDA_SUCCESS ? create_on_pages(device, &pages, want, out) : r;
}

/* Memory of a CPU device whose addresses must differ from the host's, that is larger than the driver's largest allocation, that other
 * processes may map, or for which huge pages are worthwhile. */
static CUresult create_cpu_pages(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_vk_memory **out)
{
    struct ct_vk_pages_plan plan = {
        .fd = device->file.fd, .size_bytes = request->size_bytes, .align = request->align, .host_at = request->want_address};
    bool twice = maps_twice(device, request->want_address);
    CUresult r;

    if (request->kind != CT_MEMORY_DEVICE && !twice)
        return create_host_pages(device, request, out);
    if ((r = ct_memory_file_claim(&device->file, request->size_bytes, &plan.file_offset)) != CUDA_SUCCESS)
        return twice ? r : create_host_pages(device, request, out); /* the file is full: this memory cannot be shared */
    if ((r = ct_vk_memory_on_file(device, &plan, out)) != CUDA_SUCCESS)
        return r;
    (*out)->file_offset = plan.file_offset;
    (*out)->file_bytes = (*out)->pages.size_bytes;
    return CUDA_SUCCESS;
}

/* ---- public ---- */

/* Memory of any size can consist of pages of the library, since their device address is the host's. */
static bool takes_pages(const struct ct_backend_device *device)
{
    return device->info->address_rule == CT_ADDRESS_SHARED && device->info->can_import_host;
}

/* Too large for one piece; if pages can be used instead, also if it could become too large with padding for alignment. */
static bool is_large(const struct ct_backend_device *device, uint64_t size_bytes, uint64_t align)
{
    uint64_t room = takes_pages(device) ? align : 0, limit = device->physical->piece_bytes;

    return room > limit || size_bytes > limit - room;
}

/* Whether pages of the library are used although the driver could allocate the memory: device memory in the file, so that other processes
 * can map it, host memory with huge pages, and all memory if the driver's own would be in a file that must not grow. */
static bool prefers_pages(const struct ct_backend_device *device, const struct ct_memory_request *request)
{
    if (!takes_pages(device))
        return false;
    if (ct_vk_allocates_in_file(device->info))
        return true;
    return request->kind == CT_MEMORY_DEVICE ? device->file.bytes != 0 : deserves_huge_pages(device, request->size_bytes);
}

static CUresult check_request(const struct ct_backend_device *device, const struct ct_memory_request *request)
{
    uint64_t align = request->align ? request->align : 1;

    if (!request->size_bytes || (align & (align - 1)) || (request->want_address & (align - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory of %llu bytes, aligned to %llu, at %#llx", (unsigned long long)request->size_bytes,
                       (unsigned long long)align, (unsigned long long)request->want_address);
    if (request->want_address && !ct_address_is_placed(device->info->address_rule))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support chosen addresses", device->info->name);
    if (request->size_bytes > device->info->max_allocation_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes in one allocation", (unsigned long long)request->size_bytes);
    return CUDA_SUCCESS;
}

CUresult ct_vk_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out)
{
    const struct ct_vk_physical *physical = device->physical;
    const struct ct_vk_piece_plan plan = {
        .size_bytes = (request->size_bytes + 3) & ~UINT64_C(3), /* fills write whole words */
        .allowed_types = UINT32_MAX,
        .preferences = preferences_of(device, request->kind),
        .exportable = physical->export_types && request->kind == CT_MEMORY_DEVICE,
    };
    bool large = is_large(device, plan.size_bytes, request->align);
    struct ct_vk_memory *memory;
    CUresult r = check_request(device, request);

    if (r != CUDA_SUCCESS)
        return r;
    if (physical->placement == CT_VK_PLACED_PAGES || (large && takes_pages(device)) || prefers_pages(device, request))
        r = create_cpu_pages(device, request, &memory);
    else if (!request->want_address && large)
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes in one piece of memory", (unsigned long long)request->size_bytes);
    else if (!request->want_address)
        r = create_by_driver(device, request, &plan, &memory);
    else if (request->kind == CT_MEMORY_HOST || (request->kind == CT_MEMORY_HOST_WC && large))
        r = create_host_pages(device, request, &memory);
    else
        r = create_opaque(device, request, &plan, &memory);
    if (r != CUDA_SUCCESS)
        return r;
    memory->base.size_bytes = request->size_bytes;
    *out = &memory->base;
    return CUDA_SUCCESS;
}

CUresult ct_vk_memory_import_host(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out)
{
    const uint64_t align = device->physical->import_alignment;
    struct ct_vk_memory *memory;
    CUresult r;

    if (!device->info->can_import_host)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import host memory", device->info->name);
    if (!import->pages || !import->size_bytes || (((uintptr_t)import->pages | import->size_bytes) & (align - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "import of %llu bytes at %p: size and address must be multiples of %llu",
                       (unsigned long long)import->size_bytes, import->pages, (unsigned long long)align);
    if ((r = import_pages(device, import, &memory)) != CUDA_SUCCESS)
        return r;
    memory->base.host = import->pages;
    *out = &memory->base;
    return CUDA_SUCCESS;
}

void ct_vk_memory_destroy(struct ct_memory *base)
{
    struct ct_vk_memory *memory = (struct ct_vk_memory *)base;

    if (!memory || ct_vk_device_is_given_up(base->device))
        return;
    if (memory->n_made && !memory->pieces[0].handle) /* a range: an unbinding may be pending; the result of a lost device does not matter */
        (void)ct_vk_sparse_await_all(base->device);
    for (unsigned i = 0; i < memory->n_made; i++)
        ct_vk_piece_destroy(base->device, &memory->pieces[i]);
    ct_vk_pages_unmap(&memory->pages);
    ct_memory_file_drop(&base->device->file, memory->file_offset, memory->file_bytes);
    free(memory);
}

CUresult ct_vk_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total)
{
    const struct ct_vk_physical *physical = device->physical;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    uint32_t heap = physical->local_heap;
    uint64_t total = physical->memory.memoryHeaps[heap].size, limit = total;
    uint64_t used = atomic_load_explicit(&device->heap_used[heap], memory_order_relaxed);

    if (physical->has[CT_VK_EXT_MEMORY_BUDGET]) {
        vkGetPhysicalDeviceMemoryProperties2(physical->handle, &properties);
        limit = budget.heapBudget[heap];
        used = budget.heapUsage[heap];
    }
    limit = limit < total ? limit : total;
    *out_free = used < limit ? limit - used : 0;
    *out_total = total;
    return CUDA_SUCCESS;
}
