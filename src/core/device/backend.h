/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend (Vulkan, OpenCL) gives to core. A backend knows no CUDA semantics: it has devices, memory, kernels and queues.
 *
 * Threads: every function may be called from any thread; what is recorded into one queue is serialized by the caller.
 * Results are CUDA error codes, mapped from the API's own in one function of the backend and logged there.
 *
 * Queues. A queue is an in-order list of commands with a timeline: each recorded command gets the next point, and a point is
 * complete when everything up to it has run and its writes are visible to the host and to other queues. Recording never waits for
 * the device (only for room in a ring, when very much is in flight). When the queue is idle a command is submitted at once; while it
 * is busy, commands gather and go with the next submit; `flush` sends what is there. Points complete without further calls:
 * a backend never keeps the last commands back when the device runs dry (it submits from wait, query, or a thread of its own). */
#ifndef CT_CORE_BACKEND_H
#define CT_CORE_BACKEND_H

#include "cuda.h"
#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t v;
} ct_devaddr; /* what a kernel dereferences */

enum ct_device_kind { CT_DEVICE_DISCRETE, CT_DEVICE_INTEGRATED, CT_DEVICE_VIRTUAL, CT_DEVICE_OTHER, CT_DEVICE_CPU }; /* best first */

/* How memory gets its device address (the design's five rules). */
enum ct_address_rule {
    CT_ADDRESS_CHOSEN,      /* memory is made at the address we ask for: device = H */
    CT_ADDRESS_CHOSEN_MASK, /* the same at H | target.pointer_mask */
    CT_ADDRESS_SHARED,      /* the device address is the host pointer of the mapping */
    CT_ADDRESS_WINDOWS,     /* at H plus the distance of H's window in target.windows */
    CT_ADDRESS_OWN,         /* the driver chooses; no unified addressing */
};

/* How memory comes to addresses that were reserved before, and leaves them again. */
enum ct_virtual_memory {
    CT_VIRTUAL_NONE,
    CT_VIRTUAL_PAGES,  /* imported host addresses need no pages behind them until work uses them: core maps and unmaps */
    CT_VIRTUAL_SPARSE, /* the backend binds memory into addresses: its functions physical_* and range_* */
};

/* Whether memory is made at a CUDA address H that core has reserved in the host's address space. */
static inline bool ct_address_is_placed(enum ct_address_rule rule)
{
    return rule == CT_ADDRESS_CHOSEN || rule == CT_ADDRESS_CHOSEN_MASK || rule == CT_ADDRESS_WINDOWS;
}

/* Where such addresses may lie. */
struct ct_address_arena {
    uint64_t first, end;
};
#define CT_ADDRESS_ARENAS 4

/* How large images may be; 0: there are none of that kind. In texels to a side. */
struct ct_image_limits {
    uint32_t side_1d, side_2d, side_3d, side_cube;
    uint32_t layers, cube_layers; /* cube_layers: six for each cube of an array of them */
};

/* Facts of a device, known without opening it. */
struct ct_device_info {
    char name[256];
    char driver[256];        /* driver name and version, for people */
    enum ct_device_kind kind;
    uint8_t uuid[16], luid[8];
    uint32_t node_mask;
    bool has_luid, has_pci;
    uint32_t pci_domain, pci_bus, pci_device;
    uint32_t vendor_id, device_id;
    uint64_t memory_bytes;   /* largest device-local heap */
    uint64_t max_allocation_bytes;
    uint32_t compute_units;  /* 0 unknown */
    uint32_t clock_khz, memory_clock_khz, memory_bus_bits; /* 0 unknown */
    uint32_t l2_bytes;       /* 0 unknown */
    uint32_t max_block_threads;
    uint32_t shared_bytes;   /* work-group memory of a block */
    uint32_t max_grid[3];    /* what one CUDA launch may have; the backend splits where the device takes less */
    uint32_t copy_queues;    /* queues that copy beside kernels */
    bool concurrent_kernels;
    bool stream_priorities;  /* queues of a priority below 0 are preferred to others */
    enum ct_address_rule address_rule;
    struct ct_address_arena arenas[CT_ADDRESS_ARENAS]; /* of placed addresses; one that is empty ends the table */
    bool host_visible_device_memory; /* all of it: copies may be plain memcpy on an idle queue */
    bool integrated_memory;          /* host and device share one memory */
    bool maps_host;                  /* kernels reach memory of kind HOST, and imported pages. Where they do not, such memory has no address
                                        (0), is there for copies alone, the rule is OWN, and there are no kernels: see core/code/function.c */
    bool can_import_host;            /* registered host memory without a copy */
    bool import_at_pointer;          /* placed rules: imported pages can be made at their own host pointer, whatever page that is */
    bool import_read_only;           /* pages that the process may only read can be imported, too */
    bool import_refusals_spoil;      /* once an import was refused good ones may be, too: pages that cannot be locked are not asked for */
    bool copies_by_kernel;           /* kernels copy within device memory faster than copy does */
    bool pageable_access;            /* kernels may read any host pointer */
    bool sparse, external_memory_fd, external_semaphore_fd, dma_buf, timestamps;
    bool external_timeline_fd;       /* external semaphores may be timelines, too */
    bool memory_fd;                  /* memory of kind DEVICE can be exported to other processes */
    bool exports_dma_bufs;           /* as what every other API takes, too, and so can shareable memory without an address */
    double timestamp_period_ns;
    enum ct_virtual_memory virtual_memory;
    bool virtual_memory_fd; /* and its memory can be shared as file descriptors */
    bool driver_pages;      /* CT_VIRTUAL_PAGES: what is shared are pages of the driver's, so that others can import them by the same driver */
    struct ct_image_limits images; /* of CUDA arrays */
    bool sparse_images;            /* images may get their memory later; physical_create makes it */
    bool opaque_images;            /* arrays are images of the backend (its functions image_*); else core keeps them in plain memory */
    bool unproven_warps;           /* the target's warps are native if a probe finds them right (probe_warps.c), else collective */
    uint32_t workarounds;          /* in force on the device: set of CT_WORKAROUND(..); the target has those of the compiler */
    struct ptx2spv_target target;
};

enum ct_memory_kind {
    CT_MEMORY_DEVICE,      /* device-local */
    CT_MEMORY_HOST,        /* cached, coherent, mapped; the device may read and write it. Made at an H it is mapped there, too */
    CT_MEMORY_HOST_WC,     /* mapped, write-combined where there is such; the mapping is anywhere */
};

struct ct_memory_request {
    uint64_t size_bytes;
    uint64_t align;              /* power of two; of the address */
    enum ct_memory_kind kind;
    uint64_t want_address;       /* placed rules: the CUDA address H to be made at, reserved by the caller; 0 anywhere */
};

/* Host pages that are to be device memory, without a copy. */
struct ct_host_import {
    void *pages;
    uint64_t size_bytes;   /* it and `pages` are multiples of the page size */
    uint64_t want_address; /* placed rules: the CUDA address to be made at: in the arena, or `pages` itself; 0 anywhere */
    bool io_memory;        /* registers of another device rather than memory */
};

/* How another process gets at memory of kind DEVICE, or at a part of it: what is glued of pieces has several, which follow one another. It
 * means the same wherever the descriptor is sent. */
struct ct_memory_share {
    int fd;               /* the caller's */
    bool pages;           /* a file in memory, for all devices that import host memory; else of this driver's own kind */
    uint32_t types;       /* as in struct ct_fd_import */
    uint64_t total_bytes; /* of what is behind the descriptor, where that is of the driver's kind */
    uint64_t offset;      /* of the part's first byte; 0 where there are several */
    uint64_t size_bytes;  /* of the part */
    uint32_t n_parts;     /* of the memory */
};

/* Memory of another API or process behind a file descriptor. */
struct ct_fd_import {
    int fd;                /* stays the caller's: every import takes a duplicate */
    bool dma_buf;          /* else the driver's own kind, opaque to all others */
    bool pages;            /* as in struct ct_memory_share; never looked at by memory_check_fd */
    uint64_t pages_offset; /* of what is to be memory, in a file of pages */
    bool dedicated;        /* it was made for one buffer or image alone */
    uint64_t total_bytes;  /* of what is behind the descriptor */
    uint32_t types;        /* the backend's: found by sharing->check_fd, kept by the caller for import_fd */
    uint64_t size_bytes;   /* of its beginning: what is to be memory */
    uint64_t want_address; /* placed rules: the CUDA address to be made at, reserved by the caller; 0 anywhere */
    unsigned way;          /* of coming to that address: 0, or 1 when 0 failed; each try wants an address of its own */
    const struct ct_fd_import *next; /* what is glued behind it (its want_address and way are not looked at), or NULL */
};

enum ct_image_shape { CT_IMAGE_1D, CT_IMAGE_2D, CT_IMAGE_3D };

/* How the bytes of a level of an image are counted: texel by texel, row by row, slice by slice (layers and faces are slices), without
 * gaps, however the device keeps them. */
struct ct_texels {
    enum ct_image_shape shape;
    uint32_t texel_bytes; /* 1, 2, 4, 8, 16 */
    uint64_t row_bytes, slice_bytes;
};
#define CT_TEXEL_BYTES 16 /* of the largest texel; a multiple of all others */

/* A piece of memory. Backends embed it in their own struct. */
struct ct_memory {
    struct ct_backend_device *device; /* borrowed */
    uint64_t size_bytes;
    ct_devaddr address;             /* of its first byte, as kernels take it */
    void *host;                     /* mapping, or NULL */
    const struct ct_texels *texels; /* of a level of an image, which has neither address nor mapping; NULL: plain bytes */
};

/* Where the memory of an image comes from. */
enum ct_image_memory {
    CT_IMAGE_OWN,      /* it is made with the image, or imported */
    CT_IMAGE_DEFERRED, /* it is bound later, all of it at once */
    CT_IMAGE_SPARSE,   /* it is bound later, tile by tile; the image may be used while some have none */
};

/* An image with all its levels, or one that lies in memory of another API or process. */
struct ct_image_request {
    enum ct_image_memory memory; /* other than OWN: where info.sparse_images */
    CUarray_format format;
    unsigned channels;
    uint32_t texel_bytes;
    enum ct_image_shape shape;
    uint32_t width, height, depth; /* of the first level; 1 in the dimensions that the shape has not */
    uint32_t layers, levels;       /* at least 1 */
    bool cube;                     /* layers are faces of cubes, six each */
    bool storage, attachment;      /* kernels write it; another API renders into it */
    const struct ct_fd_import *import; /* no dma-buf; or NULL */
    uint64_t import_offset;            /* of the image in the import */
};

/* How an image takes memory that is bound later: in tiles of one size. A tile is a box of texels of a level, or a part of the tail, in
 * which the levels are that are smaller than a box; each layer has a tail, or all have one together. An image that is DEFERRED is all tail. */
struct ct_image_tiling {
    uint64_t tile_bytes;
    uint32_t width, height, depth; /* of a box, in texels */
    uint32_t tail_level;           /* the first one in the tail; the number of levels where there is no tail */
    uint64_t tail_bytes;           /* a multiple of tile_bytes */
    bool single_tail;
};

struct ct_texel_image {
    struct ct_backend_device *device; /* borrowed */
    uint64_t size_bytes, align;       /* of its memory */
    struct ct_image_tiling tiling;    /* where its memory is bound later */
};

enum ct_physical_use {
    CT_PHYSICAL_RANGES, /* to be bound into ranges */
    CT_PHYSICAL_SHARED, /* the same, and other processes are to have it */
    CT_PHYSICAL_TILES,  /* to be bound into images */
};
struct ct_physical; /* memory of a device without an address; CT_VIRTUAL_SPARSE, and for images where info.sparse_images */

/* A tile gets memory, or loses what it has. */
struct ct_tile_bind {
    bool tail;
    uint32_t level, layer; /* the level of a box; no layer where all have one tail */
    uint32_t x, y, z;      /* of a box, in texels */
    uint64_t tail_offset;
    struct ct_physical *physical; /* NULL: none */
    uint64_t offset;              /* in it; a multiple of tile_bytes */
};

/* A part of a range gets memory, from its beginning, or loses what it has. */
struct ct_range_bind {
    uint64_t offset, size_bytes;  /* in the range */
    struct ct_physical *physical; /* NULL: none */
};

struct ct_copy_region { /* bytes; `rows` of `row_bytes` each, rows at their pitches, `slices` at theirs. rows, slices >= 1 */
    uint64_t dst_offset, src_offset, row_bytes;
    uint64_t rows, dst_pitch, src_pitch;
    uint64_t slices, dst_slice, src_slice;
};

struct ct_kernel_image;   /* a compiled kernel on a device; pipeline variants inside */
struct ct_kernel_variant; /* what a kernel image is for one shape of launches; lives as long as the image */
struct ct_queue;
struct ct_timestamp;    /* a place for one time */
struct ct_timeline;     /* a counter that queues and the host signal and wait for */
struct ct_semaphore;    /* one that another API or process shares: a timeline, or binary */

struct ct_launch {
    struct ct_kernel_image *kernel;
    const struct ct_kernel_variant *variant; /* from kernels->prepare, for this grid, block, shared memory; NULL: launch finds it */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    const void *params;         /* info.param_bytes, copied during the call; unused when params_in_buffer */
    uint64_t params_address;    /* CUDA address, when params_in_buffer: valid until the launch's point is complete */
    ct_devaddr image, fault;    /* as in struct ptx2spv_system_block; for the image a CUDA address does as well */
};

struct ct_queue_desc {
    int priority;   /* CUDA's: lower is more urgent; not 0 only where info.stream_priorities */
};

struct ct_backend_device;

/* A backend is a few tables of functions. A table or a member that is NULL is absent, since no device of the backend has anything of the
 * kind. What a single device has is told by its struct ct_device_info; core asks that before it calls. */

/* Memory with addresses. No member is NULL. */
struct ct_memory_calls {
    /* Free and total bytes of device memory now. */
    CUresult (*info)(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total);

    /* The address is read back and compared: memory that came elsewhere than wanted is given back, MAP_FAILED. After a failure the caller
     * never asks for that address again. Memory larger than the driver makes at once is glued of adjacent pieces. */
    CUresult (*create)(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out);
    CUresult (*import_host)(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out);
    void (*destroy)(struct ct_memory *memory); /* no queue uses it any more; takes NULL */
};

/* Memory from and for other APIs and processes. */
struct ct_sharing_calls {
    /* Where info.external_memory_fd. check looks whether the descriptor can be imported and fills in `types`; OPERATING_SYSTEM: it cannot.
     * Two imports of one descriptor are the same bytes at two addresses. NOT_SUPPORTED: not in this way, or not glued. */
    CUresult (*check_fd)(struct ct_backend_device *device, struct ct_fd_import *import);
    CUresult (*import_fd)(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out);
    /* Where info.memory_fd, which also says that import_fd takes such. Part 0 tells how many there are. NOT_SUPPORTED: this memory
     * cannot be had elsewhere. */
    CUresult (*export)(struct ct_memory *memory, unsigned part, struct ct_memory_share *out);
    /* Where info.exports_dma_bufs: `size_bytes` of memory of kind DEVICE from `offset` on. A dma-buf has no offset. NOT_SUPPORTED: they are
     * not the beginning of what the driver made, or in several pieces. */
    CUresult (*export_dma_buf)(struct ct_memory *memory, uint64_t offset, uint64_t size_bytes, int *out_fd);
};

/* Memory without addresses, and addresses without memory. */
struct ct_virtual_memory_calls {
    /* CT_VIRTUAL_SPARSE, and shareable memory where info.driver_pages. Memory without an address; SHARED: can be exported, where
     * info.virtual_memory_fd; TILES: where info.sparse_images. */
    CUresult (*physical_create)(struct ct_backend_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_physical **out);
    /* What was exported, here or in another process; `fd` stays the caller's. INVALID_VALUE: it is no such thing. */
    CUresult (*physical_import)(struct ct_backend_device *device, int fd, struct ct_physical **out, uint64_t *out_bytes);
    CUresult (*physical_export)(struct ct_physical *physical, int *out_fd);
    /* Where info.exports_dma_bufs. NOT_SUPPORTED: it is not shareable, or was imported. */
    CUresult (*physical_export_dma_buf)(struct ct_physical *physical, int *out_fd);
    /* info.driver_pages: where the host has it, in whole pages that can be mapped elsewhere once more (mremap). As long as it lives. */
    CUresult (*physical_pages)(struct ct_physical *physical, void **out);
    void (*physical_destroy)(struct ct_physical *physical); /* bound nowhere; takes NULL */
    /* A range of addresses without memory, at a CUDA address that the caller has reserved (0: anywhere; not with placed rules). As
     * memory->create, it is never asked for again after a failure, but OUT_OF_MEMORY: the host had none, before the driver was asked. To be
     * destroyed as other memory. */
    CUresult (*range_create)(struct ct_backend_device *device, uint64_t want_address, uint64_t size_bytes, struct ct_memory **out);
    /* Work that is recorded later finds it done. No work uses what is bound or unbound. */
    CUresult (*range_bind)(struct ct_memory *range, const struct ct_range_bind *binds, unsigned count);
};

/* Opaque images. */
struct ct_image_calls {
    /* Where info.opaque_images. NOT_SUPPORTED: the device has no such format, or not for this use; INVALID_VALUE: beyond the import. */
    CUresult (*create)(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out);
    void (*destroy)(struct ct_texel_image *image); /* no queue uses it any more; takes NULL */
    /* Borrowed from the image: what copies take. */
    struct ct_memory *(*level)(struct ct_texel_image *image, uint32_t level);
    /* Done when it comes back; no work uses these tiles. NOT_SUPPORTED: images cannot have that memory. */
    CUresult (*bind)(struct ct_texel_image *image, const struct ct_tile_bind *binds, unsigned count);
};

/* Kernels. */
struct ct_kernel_calls {
    /* NOT_SUPPORTED: not in this form. A kernel with native warp instructions may be asked for again in the collective form. */
    CUresult (*create)(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                       struct ct_kernel_image **out); /* copies what it needs */
    void (*destroy)(struct ct_kernel_image *kernel);  /* no queue uses it any more; takes NULL */
    /* Compiles what queues->launch would have to compile for a launch of this kernel, grid, block and dynamic_shared_bytes, which may take
     * a minute: call it with no lock held. Parameters and addresses do not matter. INVALID_VALUE as queues->launch. The function itself is
     * NULL where queues->launch compiles nothing that could be compiled before. */
    CUresult (*prepare)(const struct ct_launch *launch, const struct ct_kernel_variant **out);
};

/* Queues. No member is NULL. */
struct ct_queue_calls {
    CUresult (*create)(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out);
    void (*destroy)(struct ct_queue *queue); /* idle; takes NULL */

    /* Recording: the command's point is point(queue) afterwards. Each is ordered behind what was recorded before. */
    /* Source and destination ranges do not overlap. In levels of images a region is a box of whole texels: its pitch and slice there are
     * those of the texels, wherever it has more than one row or slice. Plain memory then has offsets and distances in whole texels, too.
     * Two images have texels of one size, and both or none are CT_IMAGE_1D. */
    CUresult (*copy)(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                     unsigned n_regions);
    CUresult (*fill)(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes,
                     uint32_t value); /* offset and size multiples of 4 */
    CUresult (*launch)(struct ct_queue *queue, const struct ct_launch *launch);
    CUresult (*timestamp)(struct ct_queue *queue, struct ct_timestamp *timestamp); /* the time when all before it is done */
    CUresult (*signal)(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
    CUresult (*wait)(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
    CUresult (*wait_queue)(struct ct_queue *queue, struct ct_queue *other, uint64_t point); /* flushes other as needed */
    CUresult (*flush)(struct ct_queue *queue);
    /* Waits until the next command can be recorded without a wait for room: before the caller locks what others need. */
    CUresult (*await_room)(struct ct_queue *queue);

    uint64_t (*point)(struct ct_queue *queue); /* of the last recorded command; 0 none */
    /* Everything up to *out_point is complete. Never blocks. An error: the device is lost or the queue failed. */
    CUresult (*completed)(struct ct_queue *queue, uint64_t *out_point);
    /* Blocks until `point` is complete (CUDA_SUCCESS) or the time is over (CUDA_ERROR_NOT_READY). UINT64_MAX: for ever. */
    CUresult (*await)(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin);
};

/* No member is NULL. */
struct ct_timestamp_calls {
    CUresult (*create)(struct ct_backend_device *device, struct ct_timestamp **out);
    void (*destroy)(struct ct_timestamp *timestamp);
    CUresult (*read)(struct ct_timestamp *timestamp, double *out_ns); /* the last one written; complete */
};

/* No member is NULL. */
struct ct_timeline_calls {
    CUresult (*create)(struct ct_backend_device *device, struct ct_timeline **out); /* counts from 0 */
    void (*destroy)(struct ct_timeline *timeline);
    CUresult (*signal)(struct ct_timeline *timeline, uint64_t value);
    CUresult (*await)(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns); /* NOT_READY: time is over */
};

/* Semaphores of other APIs and processes. */
struct ct_semaphore_calls {
    /* Where info.external_semaphore_fd. Takes the descriptor on success. OPERATING_SYSTEM: it is none of a semaphore. */
    CUresult (*import)(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out);
    void (*destroy)(struct ct_semaphore *semaphore); /* queues may still use it; takes NULL */
    /* A timeline only: waits on the host. NOT_READY: the time is over. */
    CUresult (*await)(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns);
    /* Commands like those of timelines. `value` is of timelines only. A wait for a timeline is recorded behind something that waits until
     * the value is there: whoever signals it may be waiting for other work of ours, which must not stand behind the wait in the device. */
    CUresult (*queue_signal)(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
    CUresult (*queue_wait)(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
};

struct ct_backend {
    const char *name; /* as CUTTLE_BACKEND names it */

    /* Finds devices. *out_count may be 0. The array lives as long as the process; calling again gives the same. */
    CUresult (*enumerate)(const struct ct_device_info **out_infos, unsigned *out_count);
    CUresult (*device_open)(unsigned index, struct ct_backend_device **out);
    void (*device_close)(struct ct_backend_device *device); /* idle, nothing of it left */
    const struct ct_memory_calls *memory;
    const struct ct_sharing_calls *sharing;
    const struct ct_virtual_memory_calls *virtual_memory; /* or NULL */
    const struct ct_image_calls *images;                  /* or NULL */
    const struct ct_kernel_calls *kernels;
    const struct ct_queue_calls *queues;
    const struct ct_timestamp_calls *timestamps;
    const struct ct_timeline_calls *timelines;
    const struct ct_semaphore_calls *semaphores; /* or NULL */
};

extern const struct ct_backend ct_backend_vk;
extern const struct ct_backend ct_backend_cl; /* only where built: CT_WITH_OPENCL */

#endif
