/* SPDX-License-Identifier: Apache-2.0 */
/* What memory is made of. A ct_vk_memory is a run of device addresses glued of pieces, each a VkDeviceMemory with a VkBuffer over it;
 * nearly always one, several where the driver makes no such large one at once. Its pages may be ours, or the application's. */
#ifndef CT_VK_MEMORY_H
#define CT_VK_MEMORY_H
/* Parts: memory_pages.c, memory_piece.c, sparse.c. */

#include "vk.h"

/* What a memory type must have, should have, should not have; missing a wish costs one point. */
struct ct_vk_wishes {
    VkMemoryPropertyFlags must, like, dislike;
};

struct ct_vk_piece {
    uint64_t offset, size_bytes; /* in its memory */
    VkBuffer buffer;
    uint64_t buffer_offset; /* of the piece in its buffer: what alignment cost */
    VkDeviceMemory handle;
    uint64_t charged_bytes; /* counted in device->heap_used[heap] */
    uint32_t heap;
    uint32_t type;
    bool exportable; /* to other processes */
};

struct ct_vk_piece_plan {
    uint64_t size_bytes;
    uint64_t chosen_address; /* device address to ask the driver for; 0: its own choice */
    uint64_t wanted_address; /* what its address has to be, asked for or not; 0: any */
    void *import;            /* host pages, or NULL */
    VkExternalMemoryHandleTypeFlagBits import_type;
    const struct ct_fd_import *import_fd; /* what is behind a file descriptor, or NULL */
    bool sparse;                          /* a sparse buffer gets the address, and the memory is bound into it */
    bool unbound;                         /* sparse, and without any memory */
    bool residency;                       /* sparse, and used while only a part of it is bound */
    bool exportable;                      /* other processes may have it; neither an import nor sparse */
    uint32_t allowed_types;               /* beside what the buffer allows */
    struct ct_vk_wishes wishes;
};

#define CT_VK_BUFFER_USAGE                                                                                                                 \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |                            \
     VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)

/* memory_piece.c. The best type among `allowed` bits; false if none will do. */
bool ct_vk_choose_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t allowed, struct ct_vk_wishes wishes, uint32_t *out);
/* A plan's buffer, without memory. */
CUresult ct_vk_buffer_create(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, VkBuffer *out);
/* *out is whole or untouched. MAP_FAILED: not at the wanted address. */
CUresult ct_vk_piece_create(struct ct_backend_device *device, const struct ct_vk_piece_plan *plan, struct ct_vk_piece *out,
                            uint64_t *out_address);
void ct_vk_piece_destroy(struct ct_backend_device *device, struct ct_vk_piece *piece); /* takes a zeroed one */

static inline VkExternalMemoryHandleTypeFlagBits ct_vk_fd_type(const struct ct_fd_import *import)
{
    return import->dma_buf ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}
/* memory_piece.c. Memory of one type from a duplicate of the descriptor; `buffer` is what dedicated memory is for. `next` goes on in the
 * chain. */
CUresult ct_vk_allocate_from_fd(struct ct_backend_device *device, const struct ct_fd_import *import, VkBuffer buffer, uint32_t type,
                                const void *next, VkDeviceMemory *out);

/* external_memory.c. A new file descriptor of what can be exported as `type`. */
CUresult ct_vk_get_fd(struct ct_backend_device *device, VkDeviceMemory handle, VkExternalMemoryHandleTypeFlagBits type, int *out_fd);

/* memory_pages.c: pages of ours, seen by the host and, where that is another mapping, by the device. */
struct ct_vk_pages {
    void *host, *device; /* NULL: none. The same where there is one mapping only */
    uint64_t size_bytes;
    bool reserved; /* the host's view lies in addresses that the caller holds: they stay mapped, without access */
};
#define CT_VK_HUGE_PAGE_BYTES ((uint64_t)2 << 20) /* as most processors have them */
/* What pages are to be mapped. */
struct ct_vk_pages_plan {
    int fd; /* of a file; -1: fresh anonymous pages */
    uint64_t file_offset, size_bytes;
    uint64_t align;   /* a power of two, or 0; of addresses that are not given */
    uint64_t host_at; /* where the host's view is to be, in the caller's reservation; 0: anywhere */
    bool huge;        /* of huge pages, if the system has them */
};
/* One mapping. OUT_OF_MEMORY. */
CUresult ct_vk_pages_map(const struct ct_vk_pages_plan *plan, struct ct_vk_pages *out);
/* Two mappings of the same pages of a file. The device's lies at `device_at`, where nothing else may be; 0: anywhere. OUT_OF_MEMORY. */
CUresult ct_vk_pages_map_twice(const struct ct_vk_pages_plan *plan, uint64_t device_at, struct ct_vk_pages *out);
/* Another mapping of shared pages that are mapped at `from`, at `at`: in the caller's reservation, or where nothing else may be.
 * OUT_OF_MEMORY. */
CUresult ct_vk_pages_map_again(void *from, uint64_t size_bytes, uint64_t at, bool reserved, struct ct_vk_pages *out);
void ct_vk_pages_unmap(struct ct_vk_pages *pages); /* takes a zeroed one */

struct ct_vk_memory {
    struct ct_memory base;
    struct ct_vk_pages pages;         /* ours, or none */
    uint64_t file_offset, file_bytes; /* of the pages in device->file; 0 bytes: they are not of it */
    unsigned n_pieces, n_made;
    struct ct_vk_piece pieces[]; /* by offset, without gaps */
};

/* Makes memory by a plan for all of it, of as many pieces as it takes. *out is untouched on failure. */
CUresult ct_vk_memory_glue(struct ct_backend_device *device, const struct ct_vk_piece_plan *whole, struct ct_vk_memory **out);
/* CPU devices: imports pages of a file, where they stay; mapped once or twice, as the address rule wants. */
CUresult ct_vk_memory_on_file(struct ct_backend_device *device, const struct ct_vk_pages_plan *plan, struct ct_vk_memory **out);
/* The piece that holds the byte at `offset`. */
const struct ct_vk_piece *ct_vk_memory_piece(const struct ct_vk_memory *memory, uint64_t offset);
/* How much of a piece, which is of whole words, is memory. */
uint64_t ct_vk_piece_bytes(const struct ct_vk_memory *memory, const struct ct_vk_piece *piece);

/* sparse.c. Binds all of `handle` to the beginning of `buffer`, and waits until that is done. */
CUresult ct_vk_sparse_bind(struct ct_backend_device *device, VkBuffer buffer, VkDeviceMemory handle, uint64_t size_bytes);
/* All bindings in one request (its semaphores are filled in here), which may still be under way when it comes back: whoever submits work
 * waits for ct_vk_sparse_pending, and what is bound or unbound is destroyed behind ct_vk_sparse_settle only. */
CUresult ct_vk_sparse_bind_all(struct ct_backend_device *device, const VkBindSparseInfo *binds);
/* Waits until all bindings are done. */
CUresult ct_vk_sparse_settle(struct ct_backend_device *device);

#endif
