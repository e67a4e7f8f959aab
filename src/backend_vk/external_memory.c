/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another API or process, imported from a file descriptor.
 *
 * Every import is a VkDeviceMemory of its own, so the same bytes can be imported at several addresses. The methods to place it at the address
 * that the rule requires, in the order in which core requests them:
 *   method 0  as for memory of the library: by an opaque capture address, which the specification does not allow for imports (03333) and
 *           drivers may ignore; by a sparse buffer on RADV, which is known to ignore it; on CPU devices whose addresses must differ from the
 *           host's by mapping the pages a second time and importing that mapping
 *   method 1  a sparse buffer at the address, to which the memory is bound; not if sparse buffers cannot read compressed data
 * Memory that was concatenated from pieces has a descriptor for each piece, and is concatenated again: only by capture addresses or sparse
 * buffers, since the memory of CPU devices is in one file.
 * An opaque descriptor does not contain its memory type: the types are tried before an address is requested. */
#include "memory.h"

#include "core/backing/address_rule.h"
#include "core/base/log.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

/* ---- the memory type ---- */

/* Queries the driver's support for sharing memory of buffers like those of the backend. */
static VkExternalMemoryProperties sharing_of(const struct ct_vk_physical *physical, VkExternalMemoryHandleTypeFlagBits type)
{
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO, .usage = CT_VK_BUFFER_USAGE, .handleType = type};
    VkExternalBufferProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};

    vkGetPhysicalDeviceExternalBufferProperties(physical->handle, &info, &properties);
    return properties.externalMemoryProperties;
}

/* Whether buffers of the backend may be bound to imported memory, and whether only to dedicated memory. */
static bool can_import(const struct ct_backend_device *device, const struct ct_fd_import *import, bool *out_dedicated_only)
{
    const VkExternalMemoryFeatureFlags features = sharing_of(device->physical, ct_vk_fd_type(import)).externalMemoryFeatures;

    *out_dedicated_only = features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
    return features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
}

/* Finds the device node that descriptors of this driver's exported memory refer to. */
static CUresult find_export_node(struct ct_backend_device *device, uint64_t *out)
{
    const struct ct_memory_request request = {.size_bytes = 4096, .kind = CT_MEMORY_DEVICE};
    struct ct_memory_share share = {.fd = -1};
    struct ct_memory *memory;
    struct stat file;
    CUresult r = ct_vk_memory_create(device, &request, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_vk_memory_export(memory, 0, &share)) == CUDA_SUCCESS && (fstat(share.fd, &file) < 0 || !S_ISCHR(file.st_mode)))
        r = ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s exports memory as a descriptor that is not a device node", device->info->name);
    close(share.fd);
    ct_vk_memory_destroy(memory);
    if (r == CUDA_SUCCESS)
        *out = file.st_rdev;
    return r;
}

/* Whether the driver may have exported the file. NVIDIA's driver refuses all further memory, to every process, after a request to import
 * something else, so such a request is avoided. */
static bool is_of_driver(struct ct_backend_device *device, const struct stat *file)
{
    uint64_t node = atomic_load_explicit(&device->export_node, memory_order_relaxed);

    if (!device->info->import_failures_are_sticky)
        return true;
    if (!S_ISCHR(file->st_mode))
        return false;
    if (!node && find_export_node(device, &node) != CUDA_SUCCESS)
        return true;
    atomic_store_explicit(&device->export_node, node, memory_order_relaxed);
    return file->st_rdev == node;
}

/* lavapipe reads the beginning of the file, and blocks for ever on a pipe; its memory is a file in memory (memfd). */
static bool may_be_memory(struct ct_backend_device *device, const struct ct_fd_import *import)
{
    bool needs_file = device->info->kind == CT_DEVICE_CPU && !import->dma_buf;
    struct stat file;

    if (fstat(import->fd, &file) < 0 || S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || S_ISDIR(file.st_mode))
        return false;
    if (!import->dma_buf && !is_of_driver(device, &file))
        return false;
    return !needs_file || (S_ISREG(file.st_mode) && (uint64_t)file.st_size >= import->total_bytes);
}

/* Queries the memory types that the descriptor allows; only dma-bufs support this query. */
static CUresult types_of_fd(struct ct_backend_device *device, const struct ct_fd_import *import, uint32_t *out)
{
    VkMemoryFdPropertiesKHR properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    CUresult r = CUDA_SUCCESS;

    *out = UINT32_MAX;
    if (import->dma_buf &&
        (r = ct_vk_result(device->vk.vkGetMemoryFdPropertiesKHR(device->handle, ct_vk_fd_type(import), import->fd, &properties),
                          "vkGetMemoryFdPropertiesKHR")) == CUDA_SUCCESS)
        *out = properties.memoryTypeBits;
    return r;
}

/* Finds the best of the types in `allowed` with which an import succeeds. The import is freed again. */
static CUresult try_types(struct ct_backend_device *device, struct ct_fd_import *import, VkBuffer buffer, uint32_t allowed)
{
    static const struct ct_vk_type_preferences local = {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    VkDeviceMemory handle;
    uint32_t type;

    while (ct_vk_choose_type(&device->physical->memory, allowed, local, &type)) {
        if (ct_vk_allocate_from_fd(device, import, buffer, type, NULL, &handle) == CUDA_SUCCESS) {
            device->vk.vkFreeMemory(device->handle, handle, NULL);
            import->types = 1u << type;
            return CUDA_SUCCESS;
        }
        allowed &= ~(1u << type);
    }
    return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "%s does not import file descriptor %d as %llu bytes of memory", device->info->name,
                   import->fd, (unsigned long long)import->total_bytes);
}

CUresult ct_vk_memory_check_fd(struct ct_backend_device *device, struct ct_fd_import *import)
{
    const struct ct_vk_piece_plan plan = {.size_bytes = import->total_bytes, .import_type = ct_vk_fd_type(import)};
    VkMemoryRequirements requirements;
    bool dedicated_only;
    VkBuffer buffer;
    uint32_t types;
    CUresult r;

    if (!can_import(device, import, &dedicated_only))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import this kind of memory", device->info->name);
    import->dedicated |= dedicated_only;
    if (!may_be_memory(device, import) || (r = types_of_fd(device, import, &types)) != CUDA_SUCCESS)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "file descriptor %d does not refer to such memory", import->fd);
    if ((r = ct_vk_buffer_create(device, &plan, &buffer)) != CUDA_SUCCESS)
        return r;
    device->vk.vkGetBufferMemoryRequirements(device->handle, buffer, &requirements);
    r = try_types(device, import, buffer, types & requirements.memoryTypeBits);
    device->vk.vkDestroyBuffer(device->handle, buffer, NULL);
    return r;
}

/* ---- imports ---- */

static CUresult add_part(struct ct_vk_memory *memory, const struct ct_vk_piece_plan *whole, const struct ct_fd_import *import)
{
    struct ct_vk_piece *piece = &memory->pieces[memory->n_made];
    const uint64_t offset = memory->base.size_bytes;
    struct ct_vk_piece_plan plan = *whole;
    uint64_t address;
    CUresult r;

    plan.import_fd = import;
    plan.allowed_types = import->types;
    plan.size_bytes = import->dedicated ? import->total_bytes : import->size_bytes; /* dedicated memory needs a buffer of its size */
    plan.chosen_address = whole->chosen_address ? whole->chosen_address + offset : 0;
    plan.wanted_address = whole->wanted_address ? whole->wanted_address + offset : 0;
    if ((r = ct_vk_piece_create(memory->base.device, &plan, piece, &address)) != CUDA_SUCCESS)
        return r;
    piece->offset = offset;
    if (!offset)
        memory->base.address.v = address;
    memory->base.size_bytes += plan.size_bytes;
    memory->n_made++;
    return CUDA_SUCCESS;
}

static unsigned count_parts(const struct ct_fd_import *import)
{
    unsigned n = 0;

    for (; import; import = import->next)
        n++;
    return n;
}

/* Creates memory with a piece for each descriptor; the plan has the addresses of the whole. *out is untouched on failure. */
static CUresult create_of_parts(struct ct_backend_device *device, const struct ct_vk_piece_plan *whole, struct ct_vk_memory **out)
{
    const unsigned n = count_parts(whole->import_fd);
    struct ct_vk_memory *memory = calloc(1, sizeof *memory + n * sizeof *memory->pieces);
    CUresult r = CUDA_SUCCESS;

    if (!memory)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory object");
    memory->base.device = device;
    memory->n_pieces = n;
    for (const struct ct_fd_import *part = whole->import_fd; part && r == CUDA_SUCCESS; part = part->next)
        r = add_part(memory, whole, part);
    if (r != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

/* The memory of a CPU device is always mapped; this returns its address. */
static CUresult map(struct ct_vk_memory *memory, void **out)
{
    struct ct_backend_device *device = memory->base.device;

    return ct_vk_result(device->vk.vkMapMemory(device->handle, memory->pieces[0].handle, 0, VK_WHOLE_SIZE, 0, out), "vkMapMemory");
}

static CUresult import_by_plan(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, struct ct_vk_memory **out)
{
    struct ct_vk_memory *memory;
    CUresult r = create_of_parts(device, plan, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    if (device->info->kind == CT_DEVICE_CPU && (r = map(memory, &memory->base.host)) != CUDA_SUCCESS) {
        ct_vk_memory_destroy(&memory->base);
        return r;
    }
    *out = memory;
    return CUDA_SUCCESS;
}

/* Maps the pages of `from` a second time at the device address, and imports them there. */
static CUresult import_again(struct ct_backend_device *device, struct ct_vk_memory *from, uint64_t want_address, struct ct_vk_memory **out)
{
    uint64_t device_at = ct_rule_devaddr(&device->info->target, want_address).v;
    struct ct_host_import import = {.want_address = want_address};
    struct ct_vk_pages pages;
    struct ct_memory *base;
    CUresult r = ct_vk_pages_map_again(from->base.host, from->base.size_bytes, device_at, device_at == want_address, &pages);

    if (r != CUDA_SUCCESS)
        return r;
    import.pages = pages.device;
    import.size_bytes = pages.size_bytes;
    if ((r = ct_vk_memory_import_host(device, &import, &base)) != CUDA_SUCCESS) {
        ct_vk_pages_unmap(&pages);
        return r;
    }
    *out = (struct ct_vk_memory *)base;
    (*out)->pages = pages;
    return CUDA_SUCCESS;
}

static CUresult import_pages(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, uint64_t want_address,
                             struct ct_vk_memory **out)
{
    struct ct_vk_memory *anywhere;
    CUresult r = import_by_plan(device, plan, &anywhere);

    if (r != CUDA_SUCCESS)
        return r;
    r = import_again(device, anywhere, want_address, out);
    ct_vk_memory_destroy(&anywhere->base);
    return r;
}

static CUresult import_opaque(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, const struct ct_fd_import *import,
                              struct ct_vk_memory **out)
{
    struct ct_vk_piece_plan chosen = *plan;

    chosen.chosen_address = chosen.wanted_address = ct_rule_devaddr(&device->info->target, import->want_address).v;
    chosen.sparse = import->method == 1 || device->physical->sparse_import;
    return import_by_plan(device, &chosen, out);
}

static CUresult import_file(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out)
{
    const struct ct_vk_pages_plan plan = {
        .fd = import->fd, .file_offset = import->pages_offset, .size_bytes = import->size_bytes, .host_at = import->want_address};
    struct ct_vk_memory *memory;
    CUresult r;

    if (device->info->kind != CT_DEVICE_CPU || import->method > 0)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not import pages of files", device->info->name);
    r = ct_vk_memory_on_file(device, &plan, &memory);
    if (r == CUDA_SUCCESS)
        *out = &memory->base;
    return r;
}

CUresult ct_vk_memory_import_fd(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out)
{
    const struct ct_vk_physical *physical = device->physical;
    const struct ct_vk_piece_plan plan = {.import_fd = import, .import_type = ct_vk_fd_type(import)};
    bool only_method =
        physical->placement != CT_VK_PLACED_OPAQUE || physical->sparse_import || physical->raw_aliases || !device->sparse_queue;
    struct ct_vk_memory *memory;
    CUresult r;

    if (import->next && (!import->want_address || physical->placement != CT_VK_PLACED_OPAQUE))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not concatenate imported memory", device->info->name);
    if (import->pages)
        return import_file(device, import, out);
    if (import->method > (only_method ? 0 : 1))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no other method to import memory at an address", device->info->name);
    if (!import->want_address)
        r = import_by_plan(device, &plan, &memory);
    else if (physical->placement == CT_VK_PLACED_PAGES)
        r = import_pages(device, &plan, import->want_address, &memory);
    else
        r = import_opaque(device, &plan, import, &memory);
    if (r == CUDA_SUCCESS)
        *out = &memory->base;
    return r;
}

/* ---- exports ---- */

/* Whether memory can be exported and imported without being dedicated to a buffer. */
static bool is_sharable(const VkExternalMemoryProperties *properties)
{
    const VkExternalMemoryFeatureFlags needed = VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;

    return (properties->externalMemoryFeatures & needed) == needed &&
           !(properties->externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
}

VkExternalMemoryHandleTypeFlags ct_vk_export_types(const struct ct_vk_physical *physical)
{
    const VkExternalMemoryHandleTypeFlagBits opaque = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                                             dma_buf = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    VkExternalMemoryProperties properties;

    if (!physical->has[CT_VK_EXT_EXTERNAL_MEMORY_FD])
        return 0;
    properties = sharing_of(physical, opaque);
    if (!is_sharable(&properties))
        return 0;
    if (!physical->has[CT_VK_EXT_EXTERNAL_MEMORY_DMA_BUF] || !(properties.compatibleHandleTypes & dma_buf))
        return opaque;
    properties = sharing_of(physical, dma_buf);
    return is_sharable(&properties) ? opaque | dma_buf : opaque;
}

CUresult ct_vk_get_fd(struct ct_backend_device *device, VkDeviceMemory handle, VkExternalMemoryHandleTypeFlagBits type, int *out_fd)
{
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, .memory = handle, .handleType = type};
    int fd = -1;
    VkResult result = device->vk.vkGetMemoryFdKHR(device->handle, &info, &fd);
    CUresult r;

    if (result == VK_ERROR_INITIALIZATION_FAILED) /* not specified by Vulkan here; NVIDIA's driver returns it when no descriptor is left */
        result = VK_ERROR_TOO_MANY_OBJECTS;
    if ((r = ct_vk_result(result, "vkGetMemoryFdKHR")) == CUDA_SUCCESS)
        *out_fd = fd;
    return r;
}

static CUresult export_file(const struct ct_vk_memory *memory, struct ct_memory_share *out)
{
    int fd = fcntl(memory->base.device->file.fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no more file descriptors");
    *out = (struct ct_memory_share){
        .fd = fd, .pages = true, .offset = memory->file_offset, .size_bytes = memory->base.size_bytes, .n_parts = 1};
    return CUDA_SUCCESS;
}

/* Whether the memory was allocated as exportable. */
static CUresult check_export(const struct ct_vk_memory *memory)
{
    if (memory->pieces[0].exportable)
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not export this memory", memory->base.device->info->name);
}

CUresult ct_vk_memory_export(struct ct_memory *base, unsigned part, struct ct_memory_share *out)
{
    const struct ct_vk_memory *memory = (const struct ct_vk_memory *)base;
    const struct ct_vk_piece *piece = &memory->pieces[part];
    struct ct_backend_device *device = base->device;
    int fd;
    CUresult r;

    assert(part < memory->n_pieces);
    if (memory->file_bytes)
        return export_file(memory, out);
    if ((r = check_export(memory)) == CUDA_SUCCESS &&
        (r = ct_vk_get_fd(device, piece->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, &fd)) == CUDA_SUCCESS)
        *out = (struct ct_memory_share){
            .fd = fd,
            .types = 1u << piece->type,
            .total_bytes = piece->charged_bytes,
            .offset = piece->buffer_offset,
            .size_bytes = ct_vk_piece_bytes(memory, piece),
            .n_parts = memory->n_pieces,
        };
    return r;
}

CUresult ct_vk_memory_export_dma_buf(struct ct_memory *base, uint64_t offset, uint64_t size_bytes, int *out_fd)
{
    const struct ct_vk_memory *memory = (const struct ct_vk_memory *)base;
    const struct ct_vk_piece *piece = &memory->pieces[0];
    uint64_t room = memory->n_pieces == 1 ? piece->charged_bytes : piece->size_bytes;
    CUresult r = check_export(memory);

    if (r != CUDA_SUCCESS)
        return r;
    if (size_bytes > room)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a dma-buf is a single allocation of the driver: %llu bytes here",
                       (unsigned long long)room);
    if (offset + piece->buffer_offset)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "a dma-buf begins where the driver's allocation does: %llu bytes before this",
                       (unsigned long long)(offset + piece->buffer_offset));
    return ct_vk_get_fd(base->device, piece->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, out_fd);
}
