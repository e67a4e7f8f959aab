/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: a range is a sparse buffer at an address, initially unbound; physical memory is VkDeviceMemory, in several chunks
 * if it exceeds the driver's largest allocation, and in a single one if it can be exported. CPU devices have no such ranges, but memory
 * that can be exported, which core maps: lavapipe's is a file in memory, whose data begin at its second page.
 *
 * The buffers of ranges are created for exported memory, since exportable and other memory may be bound to them. An importing application
 * may use a plain buffer for the memory. NVIDIA's driver compresses the data that such a buffer stores, which a sparse buffer does not
 * decompress (drivers.def), unless the memory is dedicated to a buffer. So the memory is dedicated to a plain buffer that is not used. */
#include "virtual_memory.h"

#include "size_tag.h"

#include "core/backing/address_rule.h"
#include "core/base/log.h"
#include "core/backing/reservation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define HANDLE_TYPE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
#define SAMPLE_BYTES ((uint64_t)2 << 20)

struct chunk {
    VkDeviceMemory handle;
    VkBuffer dedicated_to;       /* or none */
    uint64_t offset, size_bytes; /* in the physical memory */
};

struct ct_physical {
    struct ct_backend_device *device; /* borrowed */
    uint64_t size_bytes;
    uint64_t charged_bytes; /* counted in device->heap_used[heap] */
    uint32_t heap, type;
    bool imported, shareable;
    unsigned n, n_made;
    struct chunk chunks[];
};

/* Lavapipe (Mesa 25.0.7) reports support, but binds other pages than those of exported or imported memory. */
bool ct_vk_shares_ranges(const struct ct_vk_physical *physical, const struct ct_device_info *device_info)
{
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
        .usage = CT_VK_BUFFER_USAGE,
        .handleType = HANDLE_TYPE,
    };
    const VkExternalMemoryFeatureFlags needed = VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    VkExternalBufferProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};

    if (!physical->has[CT_VK_EXT_EXTERNAL_MEMORY_FD] || device_info->kind == CT_DEVICE_CPU)
        return false;
    vkGetPhysicalDeviceExternalBufferProperties(physical->handle, &info, &properties);
    return (properties.externalMemoryProperties.externalMemoryFeatures & needed) == needed;
}

static bool shares(const struct ct_backend_device *device)
{
    return device->info->driver_pages || ct_vk_shares_ranges(device->physical, device->info);
}

static struct ct_vk_piece_plan range_plan(const struct ct_backend_device *device, uint64_t size_bytes, uint64_t device_address)
{
    return (struct ct_vk_piece_plan){
        .size_bytes = size_bytes,
        .chosen_address = device_address,
        .wanted_address = device_address,
        .import_type = shares(device) ? HANDLE_TYPE : 0,
        .sparse = true,
        .unbound = true,
        .residency =
            !device->physical->sparse_import, /* on RADV residency would select the other half of the addresses: see memory_piece.c */
    };
}

/* ---- physical memory ---- */

static CUresult find_type_of_pages(const struct ct_backend_device *device, uint32_t allowed, uint32_t *out)
{
    static const struct ct_vk_type_preferences mapped = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0, 0};

    return ct_vk_choose_type(&device->physical->memory, allowed, mapped, out)
               ? CUDA_SUCCESS
               : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no host-visible memory type", device->info->name);
}

/* Finds the memory type for ranges of this device, among `allowed`. */
static CUresult find_type(struct ct_backend_device *device, uint32_t allowed, uint32_t *out)
{
    static const struct ct_vk_type_preferences local = {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    const struct ct_vk_piece_plan plan = range_plan(device, SAMPLE_BYTES, 0);
    VkMemoryRequirements requirements;
    VkBuffer sample;
    CUresult r;

    if (device->info->driver_pages)
        return find_type_of_pages(device, allowed, out);
    if ((r = ct_vk_buffer_create(device, &plan, &sample)) != CUDA_SUCCESS)
        return r;
    device->vk.vkGetBufferMemoryRequirements(device->handle, sample, &requirements);
    device->vk.vkDestroyBuffer(device->handle, sample, NULL);
    if (!ct_vk_choose_type(&device->physical->memory, requirements.memoryTypeBits & allowed, local, out))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no memory type for sparse buffers", device->info->name);
    return CUDA_SUCCESS;
}

static CUresult physical_new(struct ct_backend_device *device, uint64_t size_bytes, uint64_t chunk_bytes, struct ct_physical **out)
{
    unsigned n = (unsigned)((size_bytes + chunk_bytes - 1) / chunk_bytes);
    struct ct_physical *physical = calloc(1, sizeof *physical + n * sizeof *physical->chunks);

    if (!physical)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "physical memory object");
    physical->device = device;
    physical->size_bytes = size_bytes;
    physical->n = n;
    for (unsigned i = 0; i < n; i++) {
        uint64_t offset = i * chunk_bytes, left = size_bytes - offset;

        physical->chunks[i] = (struct chunk){.offset = offset, .size_bytes = left < chunk_bytes ? left : chunk_bytes};
    }
    *out = physical;
    return CUDA_SUCCESS;
}

/* Creates the buffer to which shared memory is dedicated, if the driver requires it. */
static CUresult dedicate_chunk(struct ct_backend_device *device, struct chunk *chunk)
{
    const struct ct_vk_piece_plan plan = {.size_bytes = chunk->size_bytes, .import_type = HANDLE_TYPE};

    return device->physical->raw_aliases ? ct_vk_buffer_create(device, &plan, &chunk->dedicated_to) : CUDA_SUCCESS;
}

/* `exportable`: other processes may import it. */
static CUresult allocate_chunk(struct ct_physical *physical, struct chunk *chunk, uint32_t type, bool exportable)
{
    struct ct_backend_device *device = physical->device;
    const VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                                                     .buffer = chunk->dedicated_to};
    const VkExportMemoryAllocateInfo export = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                               .pNext = chunk->dedicated_to ? &dedicated : NULL,
                                               .handleTypes = HANDLE_TYPE | device->physical->export_types};
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .pNext = exportable ? &export : NULL,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags, .allocationSize = chunk->size_bytes, .memoryTypeIndex = type};
    CUresult r = ct_vk_allocate(device, &info, &chunk->handle);

    if (r != CUDA_SUCCESS)
        return r;
    physical->n_made++;
    physical->charged_bytes += chunk->size_bytes;
    atomic_fetch_add_explicit(&device->heap_used[physical->heap], chunk->size_bytes, memory_order_relaxed);
    return CUDA_SUCCESS;
}

CUresult ct_vk_physical_create(struct ct_backend_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_physical **out)
{
    const bool shareable = use == CT_PHYSICAL_SHARED;
    /* Memory that will not be shared, as that of cuMemAlloc, is exportable, too: NVIDIA 580 allocates 64 MiB of exportable memory in 0.5 ms,
     * other memory in 1 ms. */
    const bool exportable = shareable || (use == CT_PHYSICAL_RANGES && device->physical->export_types && shares(device));
    struct ct_physical *physical;
    uint32_t type;
    CUresult r;

    if (shareable && !shares(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not export memory for sparse buffers", device->info->name);
    if ((r = find_type(device, UINT32_MAX, &type)) != CUDA_SUCCESS ||
        (r = physical_new(device, size_bytes, shareable ? size_bytes : device->physical->piece_bytes, &physical)) != CUDA_SUCCESS)
        return r;
    physical->shareable = shareable;
    physical->type = type;
    physical->heap = device->physical->memory.memoryTypes[type].heapIndex;
    if (shareable)
        r = dedicate_chunk(device, &physical->chunks[0]);
    for (unsigned i = 0; i < physical->n && r == CUDA_SUCCESS; i++)
        r = allocate_chunk(physical, &physical->chunks[i], type, exportable);
    if (r != CUDA_SUCCESS) {
        ct_vk_physical_destroy(physical);
        return r;
    }
    *out = physical;
    return CUDA_SUCCESS;
}

void ct_vk_physical_destroy(struct ct_physical *physical)
{
    struct ct_backend_device *device;

    if (!physical || ct_vk_device_is_given_up(physical->device))
        return;
    device = physical->device;
    (void)ct_vk_sparse_await_all(device); /* an unbinding may be pending; the result of a lost device does not matter */
    device->vk.vkDestroyBuffer(device->handle, physical->chunks[0].dedicated_to, NULL);
    for (unsigned i = 0; i < physical->n_made; i++)
        device->vk.vkFreeMemory(device->handle, physical->chunks[i].handle, NULL);
    atomic_fetch_sub_explicit(&device->heap_used[physical->heap], physical->charged_bytes, memory_order_relaxed);
    free(physical);
}

/* ---- sharing ---- */

CUresult ct_vk_physical_export(struct ct_physical *physical, int *out_fd)
{
    struct ct_backend_device *device = physical->device;
    int fd;
    CUresult r;

    if (physical->imported)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "imported memory can be exported only by the process that created it");
    if ((r = ct_vk_get_fd(device, physical->chunks[0].handle, HANDLE_TYPE, &fd)) != CUDA_SUCCESS)
        return r;
    if (!device->info->driver_pages && !ct_vk_size_tag_set(fd, physical->size_bytes)) {
        close(fd);
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "the size cannot be stored with the file descriptor");
    }
    *out_fd = fd;
    return CUDA_SUCCESS;
}

CUresult ct_vk_physical_export_dma_buf(struct ct_physical *physical, int *out_fd)
{
    if (!physical->shareable)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the memory was not created for sharing, or was imported");
    return ct_vk_get_fd(physical->device, physical->chunks[0].handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, out_fd);
}

/* Tries one memory type; the driver takes ownership of the descriptor only on success. */
static CUresult import_as(struct ct_physical *physical, int fd, uint32_t type)
{
    static const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                                    .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    struct ct_backend_device *device = physical->device;
    const VkImportMemoryFdInfoKHR import = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                            .pNext = &flags,
                                            .handleType = HANDLE_TYPE,
                                            .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import, .allocationSize = physical->size_bytes, .memoryTypeIndex = type};
    VkResult result;

    if (import.fd < 0)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "file descriptor %d cannot be duplicated", fd);
    result = device->vk.vkAllocateMemory(device->handle, &info, NULL, &physical->chunks[0].handle);
    if (result != VK_SUCCESS) {
        close(import.fd);
        return ct_vk_result(result, "vkAllocateMemory");
    }
    physical->heap = device->physical->memory.memoryTypes[type].heapIndex;
    physical->n_made = 1;
    return CUDA_SUCCESS;
}

/* An opaque descriptor does not contain the type of its memory; the best type is the one that export uses. */
static CUresult import_chunk(struct ct_physical *physical, int fd)
{
    uint32_t allowed = UINT32_MAX, type;
    CUresult r;

    while ((r = find_type(physical->device, allowed, &type)) == CUDA_SUCCESS && import_as(physical, fd, type) != CUDA_SUCCESS)
        allowed &= ~(1u << type);
    return r;
}

/* The size of memory in a file: the file is slightly longer, and the size of such memory is a multiple of the reservation alignment. Other
 * descriptors are rejected, since lavapipe reads the beginning of any file that it is given. */
static uint64_t size_of_file(int fd)
{
    struct stat file;

    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0 ? (uint64_t)file.st_size & ~(CT_RESERVATION_ALIGN - 1) : 0;
}

CUresult ct_vk_physical_import(struct ct_backend_device *device, int fd, struct ct_physical **out, uint64_t *out_bytes)
{
    uint64_t size_bytes = device->info->driver_pages ? size_of_file(fd) : ct_vk_size_tag_get(fd);
    struct ct_physical *physical;
    CUresult r;

    if (!shares(device))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import memory for sparse buffers", device->info->name);
    if (!size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "file descriptor %d does not refer to exported memory", fd);
    if ((r = physical_new(device, size_bytes, size_bytes, &physical)) != CUDA_SUCCESS)
        return r;
    physical->imported = true;
    if (import_chunk(physical, fd) != CUDA_SUCCESS) {
        ct_vk_physical_destroy(physical);
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s does not accept file descriptor %d as memory", device->info->name, fd);
    }
    *out = physical;
    *out_bytes = size_bytes;
    return CUDA_SUCCESS;
}

CUresult ct_vk_physical_pages(struct ct_physical *physical, void **out)
{
    struct ct_backend_device *device = physical->device;
    void *pages;
    CUresult r =
        ct_vk_result(device->vk.vkMapMemory(device->handle, physical->chunks[0].handle, 0, VK_WHOLE_SIZE, 0, &pages), "vkMapMemory");

    if (r != CUDA_SUCCESS)
        return r;
    if ((uintptr_t)pages % (uint64_t)sysconf(_SC_PAGESIZE) || physical->n > 1)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s exports memory that does not consist of whole pages", device->info->name);
    *out = pages;
    return CUDA_SUCCESS;
}

/* ---- ranges ---- */

CUresult ct_vk_range_create(struct ct_backend_device *device, uint64_t want_address, uint64_t size_bytes, struct ct_memory **out)
{
    uint64_t device_address = want_address ? ct_rule_devaddr(&device->info->target, want_address).v : 0;
    struct ct_vk_piece_plan plan = range_plan(device, size_bytes, device_address);
    struct ct_vk_memory *memory;
    CUresult r;

    if (!device_address && size_bytes > device->physical->piece_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu contiguous bytes of the driver's addresses", (unsigned long long)size_bytes);
    if ((r = ct_vk_memory_concatenate(device, &plan, &memory)) == CUDA_SUCCESS)
        *out = &memory->base;
    return r;
}

/* The bindings of one call, grouped by pieces of the range: each VkBuffer has one entry, in order, with consecutive elements of `binds`. */
struct bindings {
    const struct ct_vk_memory *range;
    VkSparseMemoryBind *binds;
    VkSparseBufferMemoryBindInfo *buffers; /* pBinds is set after `binds` has been reallocated for the last time */
    unsigned n, capacity, n_buffers, buffer_capacity;
};

static CUresult add(struct bindings *list, VkBuffer buffer, const VkSparseMemoryBind *bind)
{
    if (list->n == list->capacity) {
        unsigned capacity = list->capacity ? 2 * list->capacity : 16;
        VkSparseMemoryBind *binds = realloc(list->binds, capacity * sizeof *binds);

        if (!binds)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of bindings");
        list->binds = binds;
        list->capacity = capacity;
    }
    if (!list->n_buffers || list->buffers[list->n_buffers - 1].buffer != buffer) {
        VkSparseBufferMemoryBindInfo *buffers = list->buffers;

        if (list->n_buffers == list->buffer_capacity) {
            unsigned capacity = list->buffer_capacity ? 2 * list->buffer_capacity : 4;

            if (!(buffers = realloc(list->buffers, capacity * sizeof *buffers)))
                return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of bindings");
            list->buffers = buffers;
            list->buffer_capacity = capacity;
        }
        buffers[list->n_buffers++] = (VkSparseBufferMemoryBindInfo){.buffer = buffer};
    }
    list->buffers[list->n_buffers - 1].bindCount++;
    list->binds[list->n++] = *bind;
    return CUDA_SUCCESS;
}

static const struct chunk *chunk_at(const struct ct_physical *physical, uint64_t offset)
{
    return &physical->chunks[offset / physical->chunks[0].size_bytes]; /* all but the last have the size of the first */
}

bool ct_vk_physical_location(const struct ct_physical *physical, uint64_t offset, uint64_t size_bytes, struct ct_vk_memory_location *out)
{
    const struct chunk *chunk = chunk_at(physical, offset);

    *out = (struct ct_vk_memory_location){chunk->handle, offset - chunk->offset, physical->type};
    return size_bytes <= chunk->size_bytes && out->offset <= chunk->size_bytes - size_bytes;
}

/* Adds a binding, split where a piece of the range or a chunk of the memory ends. */
static CUresult add_cut(struct bindings *list, const struct ct_range_bind *bind)
{
    CUresult r = CUDA_SUCCESS;

    for (uint64_t done = 0, part; done < bind->size_bytes && r == CUDA_SUCCESS; done += part) {
        const struct ct_vk_piece *piece = ct_vk_memory_piece(list->range, bind->offset + done);
        VkSparseMemoryBind one = {.resourceOffset = bind->offset + done - piece->offset};

        part = bind->size_bytes - done;
        part = part < piece->size_bytes - one.resourceOffset ? part : piece->size_bytes - one.resourceOffset;
        if (bind->physical) {
            const struct chunk *chunk = chunk_at(bind->physical, done);

            one.memory = chunk->handle;
            one.memoryOffset = done - chunk->offset;
            part = part < chunk->size_bytes - one.memoryOffset ? part : chunk->size_bytes - one.memoryOffset;
        }
        one.size = part;
        r = add(list, piece->buffer, &one);
    }
    return r;
}

CUresult ct_vk_range_bind(struct ct_memory *range, const struct ct_range_bind *binds, unsigned count)
{
    struct bindings list = {.range = (const struct ct_vk_memory *)range};
    const VkSparseMemoryBind *next;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = add_cut(&list, &binds[i]);
    next = list.binds;
    for (unsigned i = 0; i < list.n_buffers; i++) {
        list.buffers[i].pBinds = next;
        next += list.buffers[i].bindCount;
    }
    if (r == CUDA_SUCCESS && list.n_buffers)
        r = ct_vk_sparse_bind_all(range->device, &(VkBindSparseInfo){.bufferBindCount = list.n_buffers, .pBufferBinds = list.buffers});
    free(list.binds);
    free(list.buffers);
    return r;
}
