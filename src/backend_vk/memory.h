/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of memory. A ct_vk_memory is a contiguous range of device addresses that is concatenated from pieces, each a VkDeviceMemory
 * with a VkBuffer; nearly always one, several if it exceeds the driver's largest allocation. Its pages may belong to the library or to the
 * application. */
#ifndef CT_VK_MEMORY_H
#define CT_VK_MEMORY_H
/* Parts: memory_pages.c, memory_piece.c, sparse.c. */

#include "vk.h"

/* The flags that a memory type must have, should have and should not have. A missing preferred flag counts twice an avoided one. */
struct ct_vk_type_preferences {
    VkMemoryPropertyFlags required, preferred, avoided;
};

struct ct_vk_piece {
    uint64_t offset, size_bytes; /* in its ct_vk_memory */
    VkBuffer buffer;
    uint64_t buffer_offset; /* of the piece in its buffer: padding for alignment */
    VkDeviceMemory handle;
    uint64_t charged_bytes; /* counted in device->heap_used[heap] */
    uint32_t heap;
    uint32_t type;
    bool exportable;                              /* to other processes */
    uint64_t handle_bytes;                        /* of `handle` */
    VkExternalMemoryHandleTypeFlags handle_types; /* as which it was imported or can be exported */
};

struct ct_vk_piece_plan {
    uint64_t size_bytes;
    uint64_t chosen_address; /* the device address to request from the driver; 0: the driver chooses */
    uint64_t wanted_address; /* the address that it must have, requested or not; 0: any */
    void *import;            /* host pages, or NULL */
    VkExternalMemoryHandleTypeFlagBits import_type;
    const struct ct_fd_import *import_fd; /* the memory of a file descriptor, or NULL */
    bool sparse;                          /* a sparse buffer gets the address, and the memory is bound to it */
    bool unbound;                         /* sparse, and without any memory */
    bool residency;                       /* sparse, and used while it is only partially bound */
    bool exportable;                      /* other processes can import it; neither an import nor sparse */
    uint32_t allowed_types;               /* restricts the types that the buffer allows */
    struct ct_vk_type_preferences preferences;
};

#define CT_VK_BUFFER_USAGE                                                                                                                 \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |                            \
     VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)

/* memory_piece.c. Finds the best type among the `allowed` bits; false if none is suitable. */
bool ct_vk_choose_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, struct ct_vk_type_preferences preferences,
                       uint32_t *out);
/* Creates a plan's buffer, without memory. */
CUresult ct_vk_buffer_create(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, VkBuffer *out);
/* *out is untouched on failure. MAP_FAILED: the piece cannot have the wanted address. */
CUresult ct_vk_piece_create(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, struct ct_vk_piece *out,
                            uint64_t *out_address);
void ct_vk_piece_destroy(struct ct_backend_device *device, struct ct_vk_piece *piece); /* takes a zeroed one */

static inline VkExternalMemoryHandleTypeFlagBits ct_vk_fd_type(const struct ct_fd_import *import)
{
    return import->dma_buf ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}
/* memory_piece.c. Imports memory of one type from a duplicate of the descriptor; dedicated memory is dedicated to `buffer`. `next` is
 * appended to the pNext chain. */
/* lavapipe's memory is in one file in memory. A limit on the size of files (RLIMIT_FSIZE) ends the process in the driver, by SIGXFSZ, or by
 * SIGBUS at the first access if that signal is ignored. This is whether there is such a limit, for a CPU device. */
bool ct_vk_allocates_in_file(const struct ct_device_info *info);
/* Allocates memory of the driver's own. OUT_OF_MEMORY: also if its file could exceed the limit; what was freed counts as in use. */
CUresult ct_vk_allocate(struct ct_backend_device *device, const VkMemoryAllocateInfo *info, VkDeviceMemory *out);
CUresult ct_vk_allocate_from_fd(struct ct_backend_device *device, const struct ct_fd_import *import, VkBuffer buffer, uint32_t type,
                                const void *next, VkDeviceMemory *out);

/* external_memory.c. Exports memory as a new file descriptor of this handle type. */
CUresult ct_vk_get_fd(struct ct_backend_device *device, VkDeviceMemory handle, VkExternalMemoryHandleTypeFlagBits type, int *out_fd);

/* memory_pages.c: pages of the library, with a mapping for the host and possibly another one for the device. */
struct ct_vk_pages {
    void *host, *device; /* NULL: none. Equal if there is only one mapping */
    uint64_t size_bytes;
    bool reserved; /* the host's mapping lies in a reservation of the caller: afterwards its addresses stay mapped without access */
};
#define CT_VK_HUGE_PAGE_BYTES ((uint64_t)2 << 20) /* the size on most processors */
/* The pages to map. */
struct ct_vk_pages_plan {
    int fd; /* of a file; -1: fresh anonymous pages */
    uint64_t file_offset, size_bytes;
    uint64_t align;   /* a power of two, or 0; for addresses that are not given */
    uint64_t host_at; /* the address of the host's mapping, in the caller's reservation; 0: any */
    bool huge;        /* use huge pages, if the system has them */
};
/* Creates one mapping. OUT_OF_MEMORY. */
CUresult ct_vk_pages_map(const struct ct_vk_pages_plan *plan, struct ct_vk_pages *out);
/* Creates two mappings of the same pages of a file. The device's is at `device_at`, which must be unmapped; 0: anywhere. OUT_OF_MEMORY. */
CUresult ct_vk_pages_map_twice(const struct ct_vk_pages_plan *plan, uint64_t device_at, struct ct_vk_pages *out);
/* Maps the shared pages that are mapped at `from` a second time at `at`, which is in the caller's reservation, or else must be unmapped.
 * OUT_OF_MEMORY. */
CUresult ct_vk_pages_map_again(void *from, uint64_t size_bytes, uint64_t at, bool reserved, struct ct_vk_pages *out);
void ct_vk_pages_unmap(struct ct_vk_pages *pages); /* takes a zeroed one */

struct ct_vk_memory {
    struct ct_memory base;
    struct ct_vk_pages pages;         /* owned pages, or none */
    uint64_t file_offset, file_bytes; /* of the pages in device->file; 0 bytes: they are not in it */
    unsigned n_pieces, n_made;
    struct ct_vk_piece pieces[]; /* by offset, without gaps */
};

/* Creates memory from as many pieces as necessary; the plan describes the whole. *out is untouched on failure. */
CUresult ct_vk_memory_concatenate(struct ct_backend_device *device, const struct ct_vk_piece_plan *whole, struct ct_vk_memory **out);
/* CPU devices: maps pages of a file, once or twice as the address rule requires, and imports them. */
CUresult ct_vk_memory_on_file(struct ct_backend_device *device, const struct ct_vk_pages_plan *plan, struct ct_vk_memory **out);
/* Returns the piece that contains the byte at `offset`. */
const struct ct_vk_piece *ct_vk_memory_piece(const struct ct_vk_memory *memory, uint64_t offset);
/* Returns the bytes of a piece without the padding of its last word. */
uint64_t ct_vk_piece_bytes(const struct ct_vk_memory *memory, const struct ct_vk_piece *piece);

/* sparse.c. Binds `handle` to the beginning of `buffer`, and waits until that is done. */
CUresult ct_vk_sparse_bind(struct ct_backend_device *device, VkBuffer buffer, VkDeviceMemory handle, uint64_t size_bytes);
/* Submits all bindings in one request (its semaphores are filled in here), which may still be pending when the call returns: submissions
 * must wait for ct_vk_sparse_pending, and objects that are bound or unbound may be destroyed only after ct_vk_sparse_await_all. */
CUresult ct_vk_sparse_bind_all(struct ct_backend_device *device, const VkBindSparseInfo *binds);
/* Waits until all bindings are complete. */
CUresult ct_vk_sparse_await_all(struct ct_backend_device *device);

#endif
