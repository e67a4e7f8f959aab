/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory on devices that work in the host's address space: physical memory is a file in memory (memfd), a view is a reservation of
 * host addresses that is imported as device memory before anything is mapped in it, and mapping is mmap. The pages enforce the access, so a
 * kernel that accesses unmapped pages faults as host code does.
 *
 * Memory that is to be shared is allocated by the driver if the driver can export it, so that an application can import it there: its pages
 * are mapped a second time in the views.
 *
 * A file is sealed against changes of its size, so no process that receives its descriptor can remove pages that a kernel uses. */
#include "vmm_backing.h"

#include "core/backing/address_rule.h"
#include "core/base/log.h"
#include "core/base/resource_limits.h"
#include "core/backing/reservation.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CT_CHANNEL "memory"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* ---- physical memory ---- */

static CUresult create_file(struct ct_device *device, uint64_t size_bytes, struct ct_vmm_memory *out)
{
    int fd = size_bytes > ct_limit_of_files() ? -1 : memfd_create("cuttle", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a file for %llu bytes cannot be created", (unsigned long long)size_bytes);
    if (size_bytes > INT64_MAX || ftruncate(fd, (off_t)size_bytes) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        close(fd);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a file cannot be extended to %llu bytes", (unsigned long long)size_bytes);
    }
    *out = (struct ct_vmm_memory){.device = device, .size_bytes = size_bytes, .fd = fd};
    return CUDA_SUCCESS;
}

static void memory_finish(struct ct_vmm_memory *memory)
{
    if (memory->device && memory->fd >= 0)
        close(memory->fd);
    if (memory->device && memory->physical)
        memory->device->backend->virtual_memory->physical_destroy(memory->physical);
    *memory = (struct ct_vmm_memory){.fd = -1};
}

static CUresult create_by_driver(struct ct_device *device, uint64_t size_bytes, struct ct_vmm_memory *out)
{
    struct ct_vmm_memory memory = {.device = device, .size_bytes = size_bytes, .fd = -1};
    CUresult r = device->backend->virtual_memory->physical_create(device->opened, size_bytes, CT_PHYSICAL_SHARED, &memory.physical);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = device->backend->virtual_memory->physical_pages(memory.physical, &memory.pages)) == CUDA_SUCCESS &&
        (r = device->backend->virtual_memory->physical_export(memory.physical, &memory.fd)) == CUDA_SUCCESS)
        *out = memory;
    else
        memory_finish(&memory);
    return r;
}

/* Memory that is larger than the driver can export is shared between processes of this library only. */
static CUresult memory_create(struct ct_device *device, uint64_t size_bytes, bool shareable, struct ct_vmm_memory *out)
{
    if (shareable && device->info.driver_pages && create_by_driver(device, size_bytes, out) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return create_file(device, size_bytes, out);
}

static CUresult import_file(struct ct_device *device, int fd, struct ct_vmm_memory *out)
{
    struct stat file;

    if (fstat(fd, &file) != 0 || file.st_size <= 0 || (uint64_t)file.st_size % CT_RESERVATION_ALIGN)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "file descriptor %d does not refer to exported memory", fd);
    *out = (struct ct_vmm_memory){.device = device, .size_bytes = (uint64_t)file.st_size, .fd = fd};
    return CUDA_SUCCESS;
}

static CUresult import_by_driver(struct ct_device *device, int fd, struct ct_vmm_memory *out)
{
    struct ct_vmm_memory memory = {.device = device, .fd = -1};
    CUresult r = device->backend->virtual_memory->physical_import(device->opened, fd, &memory.physical, &memory.size_bytes);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = device->backend->virtual_memory->physical_pages(memory.physical, &memory.pages)) != CUDA_SUCCESS) {
        memory_finish(&memory);
        return r;
    }
    memory.fd = fd;
    *out = memory;
    return CUDA_SUCCESS;
}

static CUresult memory_import(struct ct_device *device, int fd, struct ct_vmm_memory *out)
{
    int seals = fcntl(fd, F_GET_SEALS), own;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (seals < 0 || (seals & SEALS) != SEALS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "file descriptor %d does not refer to exported memory", fd);
    if ((own = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "file descriptor %d cannot be duplicated", fd);
    if (device->info.driver_pages)
        r = import_by_driver(device, own, out);
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY) /* the driver rejects descriptors that it did not export */
        r = import_file(device, own, out);
    if (r != CUDA_SUCCESS)
        close(own);
    return r;
}

static CUresult memory_export(const struct ct_vmm_memory *memory, int *out_fd)
{
    int fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "no file descriptor is left");
    *out_fd = fd;
    return CUDA_SUCCESS;
}

/* ---- views ---- */

static void *map_nothing(uint64_t at, uint64_t size_bytes, int how)
{
    return mmap((void *)(uintptr_t)at, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);
}

/* Reserves the device's addresses of the range: the host's addresses, or others that must also be reserved. */
static CUresult reserve_device_side(struct ct_vmm_view *view, uint64_t address, uint64_t size_bytes)
{
    uint64_t at = ct_rule_devaddr(&view->device->info.target, address).v;
    void *got;

    view->pages = (char *)(uintptr_t)at;
    if (at == address)
        return CUDA_SUCCESS;
    got = map_nothing(at, size_bytes, MAP_FIXED_NOREPLACE);
    if (got != MAP_FAILED && got != view->pages) /* Linux before 4.17 treats NOREPLACE as a hint */
        munmap(got, size_bytes);
    if (got != view->pages)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the device addresses of 0x%llx are already in use", (unsigned long long)address);
    view->pages_bytes = size_bytes;
    return CUDA_SUCCESS;
}

static void view_finish(struct ct_vmm_view *view)
{
    if (view->memory)
        view->device->backend->memory->destroy(view->memory);
    if (view->pages_bytes)
        munmap(view->pages, view->pages_bytes);
    *view = (struct ct_vmm_view){0};
}

static CUresult view_create(struct ct_device *device, uint64_t address, uint64_t size_bytes, struct ct_vmm_view *out)
{
    struct ct_host_import import = {.size_bytes = size_bytes};
    struct ct_vmm_view view = {.device = device};
    CUresult r = reserve_device_side(&view, address, size_bytes);

    import.pages = view.pages;
    import.want_address = ct_address_is_placed(device->info.address_rule) ? address : 0;
    if (r == CUDA_SUCCESS)
        r = device->backend->memory->import_host(device->opened, &import, &view.memory);
    if (r != CUDA_SUCCESS) {
        view_finish(&view);
        return r;
    }
    *out = view;
    return CUDA_SUCCESS;
}

/* Maps the driver's pages a second time: mremap with an old_size of 0 leaves the first mapping in place. */
static void *map_memory(const struct ct_vmm_memory *memory, void *at, uint64_t size_bytes, int protection)
{
    void *got;

    if (!memory->pages)
        return mmap(at, size_bytes, protection, MAP_SHARED | MAP_FIXED, memory->fd, 0);
    got = mremap(memory->pages, 0, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    return got != MAP_FAILED && mprotect(got, size_bytes, protection) != 0 ? MAP_FAILED : got;
}

static CUresult change_one(const struct ct_vmm_view *view, const struct ct_vmm_change *change)
{
    static const int protection[] = {
        [CU_MEM_ACCESS_FLAGS_PROT_READ] = PROT_READ, [CU_MEM_ACCESS_FLAGS_PROT_READWRITE] = PROT_READ | PROT_WRITE};
    char *at = view->pages + change->offset;
    void *got;

    if (change->now == change->was)
        return CUDA_SUCCESS;
    if (change->now == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        got = map_nothing((uint64_t)(uintptr_t)at, change->size_bytes, MAP_FIXED);
    else
        got = map_memory(change->memory, at, change->size_bytes, protection[change->now]);
    if (got == MAP_FAILED)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "%llu bytes cannot be mapped at %p", (unsigned long long)change->size_bytes, (void *)at);
    return CUDA_SUCCESS;
}

static CUresult change(struct ct_vmm_view *view, const struct ct_vmm_change *changes, unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = change_one(view, &changes[i]);
    return r;
}

const struct ct_vmm_implementation ct_vmm_pages = {
    .memory_create = memory_create,
    .memory_import = memory_import,
    .memory_export = memory_export,
    .memory_finish = memory_finish,
    .view_create = view_create,
    .view_finish = view_finish,
    .change = change,
};
