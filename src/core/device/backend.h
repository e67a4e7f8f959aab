/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a backend (Vulkan, OpenCL) to core. A backend knows no CUDA semantics: it has devices, memory, kernels and queues.
 *
 * Threads: every function may be called from any thread; the caller serializes the calls that record into one queue.
 * Results are CUDA error codes. One function of the backend maps the API's own codes to them and logs the failure.
 *
 * Queues. A queue is an in-order sequence of commands with a timeline: each recorded command gets the next point, and a point is
 * complete when all commands up to it have run and their writes are visible to the host and to other queues. Recording never waits for
 * the device, except for room in a ring when too many commands are in flight. If the queue is idle a command is submitted at once; while
 * it is busy, commands are batched for the next submission; `flush` submits the current batch. Points complete without further calls:
 * when the device becomes idle, the backend submits the remaining batch (from wait, query, or a thread of its own). */
#ifndef CT_CORE_BACKEND_H
#define CT_CORE_BACKEND_H

#include "cuda.h"
#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t v;
} ct_devaddr; /* an address as kernels dereference it */

enum ct_device_kind { CT_DEVICE_DISCRETE, CT_DEVICE_INTEGRATED, CT_DEVICE_VIRTUAL, CT_DEVICE_OTHER, CT_DEVICE_CPU }; /* best first */

/* The rule that relates device addresses to CUDA addresses H (see docs/architecture.md). */
enum ct_address_rule {
    CT_ADDRESS_CHOSEN,      /* memory is created at the requested address: the device address is H */
    CT_ADDRESS_CHOSEN_MASK, /* the same, but the device address is H | target.pointer_mask */
    CT_ADDRESS_SHARED,      /* the device address is the host pointer of the mapping */
    CT_ADDRESS_WINDOWS,     /* the device address is H plus the offset of H's window in target.windows */
    CT_ADDRESS_OWN,         /* the driver chooses the address; no unified addressing */
};

/* How memory is mapped at reserved addresses, and unmapped. */
enum ct_virtual_memory {
    CT_VIRTUAL_NONE,
    CT_VIRTUAL_PAGES,  /* imported host addresses need no pages until work uses them, so core maps and unmaps host pages */
    CT_VIRTUAL_SPARSE, /* the backend binds memory into address ranges, with its functions physical_* and range_* */
};

/* Whether memory is created at a CUDA address H that core has reserved in the host's address space. */
static inline bool ct_address_is_placed(enum ct_address_rule rule)
{
    return rule == CT_ADDRESS_CHOSEN || rule == CT_ADDRESS_CHOSEN_MASK || rule == CT_ADDRESS_WINDOWS;
}

/* A range in which such addresses may lie. */
struct ct_address_arena {
    uint64_t first, end;
};
#define CT_ADDRESS_ARENAS 4

/* Maximum image sizes, in texels per side; 0: images of that kind are not supported. */
struct ct_image_limits {
    uint32_t side_1d, side_2d, side_3d, side_cube;
    uint32_t layers, cube_layers; /* cube_layers counts six for each cube of an array */
};

/* Properties of a device that are known without opening it. */
struct ct_device_info {
    char name[256];
    char driver[256];   /* human-readable driver name and version */
    unsigned driver_id; /* enum ct_driver */
    enum ct_device_kind kind;
    uint8_t uuid[16], luid[8];
    uint32_t node_mask;
    bool has_luid, has_pci;
    uint32_t pci_domain, pci_bus, pci_device;
    uint32_t vendor_id, device_id;
    uint64_t memory_bytes; /* largest device-local heap */
    uint64_t max_allocation_bytes;
    uint32_t compute_units;                                /* 0 unknown */
    uint32_t clock_khz, memory_clock_khz, memory_bus_bits; /* 0 unknown */
    uint32_t l2_bytes;                                     /* 0 unknown */
    uint32_t max_block_threads;
    uint32_t shared_bytes; /* work-group memory of a block; kernels that need more have it in device memory (struct ptx2spv_slots) */
    uint32_t max_grid[3];  /* of one CUDA launch; the backend splits it if the device's own limit is lower */
    uint32_t copy_queues;  /* queues that copy concurrently with kernels */
    bool concurrent_kernels;
    bool stream_priorities; /* queues with a priority below 0 are scheduled before others */
    enum ct_address_rule address_rule;
    struct ct_address_arena arenas[CT_ADDRESS_ARENAS]; /* for placed addresses; an empty one ends the table */
    bool host_visible_device_memory;                   /* all device memory is mapped: if a queue is idle, a copy may be a plain memcpy */
    bool integrated_memory;                            /* host and device share one memory */
    bool maps_host;                  /* kernels can access memory of kind HOST and imported pages. Otherwise such memory has no address
                                        (0), only copies use it, the rule is OWN, and kernels are not supported: see core/code/function.c */
    bool can_import_host;            /* host memory can be registered without a copy */
    bool import_at_pointer;          /* placed rules: pages can be imported at their own host pointer, whatever page that is */
    bool import_read_only;           /* pages that the process may only read can be imported, too */
    bool import_failures_are_sticky; /* after a failed import valid imports may fail, too, so pages that cannot be locked are not tried */
    bool copies_by_kernel;           /* a kernel copies within device memory faster than the queue's copy */
    bool pageable_access;            /* kernels may read any host pointer */
    bool sparse, external_memory_fd, external_semaphore_fd, dma_buf, timestamps;
    bool external_timeline_fd; /* external semaphores may be timelines, too */
    bool memory_fd;            /* memory of kind DEVICE can be exported to other processes */
    bool exports_dma_bufs;     /* it can also be exported as dma-bufs, and so can shareable memory without an address */
    double timestamp_period_ns;
    enum ct_virtual_memory virtual_memory;
    bool virtual_aliases;          /* memory may be mapped at several addresses, and each sees what was written before at another one */
    bool virtual_memory_fd;        /* the memory of virtual_memory can be shared as file descriptors */
    bool driver_pages;             /* CT_VIRTUAL_PAGES: the driver allocates shared pages, so that it can import them in other processes */
    struct ct_image_limits images; /* limits of CUDA arrays */
    bool sparse_images;            /* memory from physical_create can be bound to images after their creation */
    bool exact_normalized; /* through images, integers that are read as floats are exact, and filtered with the precision of floats */
    bool opaque_images;    /* imported arrays, and those whose memory is bound later, are images of the backend (struct ct_image_calls) */
    /* CPU devices: the beginning of the file name of the library whose threads execute kernels; NULL: unknown. shared_threads: the
     * application may use this library, too, so only its faults in code that belongs to no file are faults of kernels. */
    const char *thread_library;
    bool shared_threads;
    uint32_t stack_bytes;            /* a thread may have this much for activations of recursive functions; 0: any number */
    uint64_t block_local_bytes;      /* local memory that all threads of a block may have together; 0: any */
    void *(*thread_routine)(void *); /* of threads of the backend that execute kernels, too; NULL: there are none */
    bool unproven_warps;             /* warps are native if a probe of the device succeeds (probe_warps.c), else collective */
    bool unproven_functions;         /* target.near_functions is a presumption until a probe has measured them (probe_functions.c) */
    bool unproven_fma;               /* target.exact_fma32 and exact_fma64 are presumptions until a probe has confirmed them (probe.c) */
    uint32_t workarounds;            /* active workarounds: a set of CT_WORKAROUND(..); the target has those of the compiler */
    struct ptx2spv_target target;
};

enum ct_memory_kind {
    CT_MEMORY_DEVICE,  /* device-local */
    CT_MEMORY_HOST,    /* cached, coherent, mapped; the device may read and write it. If created at an H it is also mapped there */
    CT_MEMORY_HOST_WC, /* mapped, write-combined if the device supports it; the mapping may be at any address */
};

struct ct_memory_request {
    uint64_t size_bytes;
    uint64_t align; /* power of two; of the address */
    enum ct_memory_kind kind;
    uint64_t want_address; /* placed rules: the requested CUDA address H, reserved by the caller; 0: any */
};

/* Host pages to be imported as device memory, without a copy. */
struct ct_host_import {
    void *pages;
    uint64_t size_bytes;   /* it and `pages` are multiples of the page size */
    uint64_t want_address; /* placed rules: the requested CUDA address, in the arena or `pages` itself; 0: any */
    bool io_memory;        /* the pages are registers of another device rather than memory */
};

/* A file descriptor with which another process can import memory of kind DEVICE, or one part of it: memory composed of several pieces has
 * several consecutive parts. The other members are valid in any process to which the descriptor is sent. */
struct ct_memory_share {
    int fd;               /* owned by the caller */
    bool pages;           /* an in-memory file, for all devices that import host memory; else an opaque handle of this driver */
    uint32_t types;       /* as in struct ct_fd_import */
    uint64_t total_bytes; /* size of the memory behind an opaque handle */
    uint64_t offset;      /* of the part's first byte; 0 if there are several parts */
    uint64_t size_bytes;  /* of the part */
    uint32_t n_parts;     /* number of parts of the memory */
};

/* Memory of another API or process that is imported from a file descriptor. */
struct ct_fd_import {
    int fd;                          /* owned by the caller: every import duplicates it */
    bool dma_buf;                    /* else an opaque handle of this driver */
    bool pages;                      /* as in struct ct_memory_share; sharing->check_fd ignores it */
    uint64_t pages_offset;           /* with `pages`: offset in the file of the memory to be imported */
    bool dedicated;                  /* it was allocated for a single buffer or image */
    uint64_t total_bytes;            /* of the memory behind the descriptor */
    uint32_t types;                  /* defined by the backend: set by sharing->check_fd, kept by the caller for import_fd */
    uint64_t size_bytes;             /* how many of its first bytes are imported */
    uint64_t want_address;           /* placed rules: the requested CUDA address, reserved by the caller; 0: any */
    unsigned method;                 /* method to get that address: 0, or 1 after 0 failed; each attempt needs a new address */
    const struct ct_fd_import *next; /* the next adjacent piece (its want_address and method are ignored), or NULL */
};

enum ct_image_shape { CT_IMAGE_1D, CT_IMAGE_2D, CT_IMAGE_3D };

/* The linear layout by which offsets in a level of an image are counted: texel by texel, row by row, slice by slice (layers and faces are
 * slices), without padding, independent of the device's own layout. */
struct ct_texels {
    enum ct_image_shape shape;
    uint32_t texel_bytes; /* of an element: 1, 2, 4, 8, 16 */
    uint32_t block_side;  /* of an element, in texels: 4 if elements are compressed blocks, else 1 */
    uint64_t row_bytes, slice_bytes;
};
#define CT_TEXEL_BYTES 16 /* of the largest texel; a multiple of all others */

/* The number of elements in so many texels; at least 1. */
static inline uint64_t ct_texel_elements(uint64_t texels, uint32_t block_side)
{
    return texels ? (texels + block_side - 1) / block_side : 1;
}

/* Whether elements can be copied from one image to another. */
static inline bool ct_texels_match(const struct ct_texels *a, const struct ct_texels *b)
{
    return a->texel_bytes == b->texel_bytes && a->block_side == b->block_side && (a->shape == CT_IMAGE_1D) == (b->shape == CT_IMAGE_1D);
}

/* A piece of memory. Backends embed this struct in their own. */
struct ct_memory {
    struct ct_backend_device *device; /* borrowed */
    uint64_t size_bytes;
    ct_devaddr address;             /* device address of the first byte */
    void *host;                     /* the host mapping, or NULL */
    const struct ct_texels *texels; /* a level of an image, which has neither address nor mapping; NULL: plain bytes */
};

/* Where the memory of an image comes from. */
enum ct_image_memory {
    CT_IMAGE_OWN,      /* it is allocated with the image, or imported */
    CT_IMAGE_DEFERRED, /* it is bound later, all at once */
    CT_IMAGE_SPARSE,   /* it is bound later, tile by tile; the image may be used while tiles are unbound */
};

/* An image with all its levels, possibly in memory of another API or process. */
struct ct_image_request {
    enum ct_image_memory memory; /* OWN, or with info.sparse_images any */
    CUarray_format format;
    unsigned channels;
    uint32_t texel_bytes, block_side; /* as in struct ct_texels */
    enum ct_image_shape shape;
    uint32_t width, height, depth;     /* of the first level in texels; 1 in dimensions that the shape does not have */
    uint32_t layers, levels;           /* at least 1 */
    bool cube;                         /* the layers are faces of cubes, six each */
    bool storage, attachment;          /* kernels write to it; another API renders to it */
    const struct ct_fd_import *import; /* not a dma-buf; or NULL */
    uint64_t import_offset;            /* of the image in the imported memory */
};

/* The tiles in which memory is bound to an image, all of one size. A tile is a box of texels of a level, or a part of the mip tail, which
 * contains the levels smaller than a box; each layer has its own mip tail, or all share one. A DEFERRED image is only a mip tail. */
struct ct_image_tiling {
    uint64_t tile_bytes;
    uint32_t width, height, depth; /* of a box, in texels */
    uint32_t tail_level;           /* the first level in the mip tail; the number of levels if there is no mip tail */
    uint64_t tail_bytes;           /* a multiple of tile_bytes */
    bool single_tail;
};

struct ct_texel_image {
    struct ct_backend_device *device; /* borrowed */
    uint64_t size_bytes, align;       /* of its memory */
    struct ct_image_tiling tiling;    /* of an image whose memory is bound later */
};

enum ct_physical_use {
    CT_PHYSICAL_RANGES, /* can be bound to ranges */
    CT_PHYSICAL_SHARED, /* the same, and can be shared with other processes */
    CT_PHYSICAL_TILES,  /* can be bound to images */
};
struct ct_physical; /* device memory without an address; for CT_VIRTUAL_SPARSE, and for images if info.sparse_images */

/* Binds memory to a tile, or unbinds it. */
struct ct_tile_bind {
    bool tail;
    uint32_t level, layer; /* the level of a box; the layer is unused if all layers share a mip tail */
    uint32_t x, y, z;      /* of a box, in texels */
    uint64_t tail_offset;
    struct ct_physical *physical; /* NULL: unbind */
    uint64_t offset;              /* in `physical`; a multiple of tile_bytes */
};

/* Binds memory, from its first byte on, to a part of a range, or unbinds it. */
struct ct_range_bind {
    uint64_t offset, size_bytes;  /* in the range */
    struct ct_physical *physical; /* NULL: unbind */
};

struct ct_copy_region { /* in bytes: `slices` slices of `rows` rows of `row_bytes`, at the given pitches. rows, slices >= 1 */
    uint64_t dst_offset, src_offset, row_bytes;
    uint64_t rows, dst_pitch, src_pitch;
    uint64_t slices, dst_slice, src_slice;
};

/* Textures that kernels read through images (PTX2SPV_IMAGE_DESCRIPTORS), over texels in plain memory. */
struct ct_sampled_extent {
    enum ptx2spv_image_shape shape;
    uint32_t width, height, slices; /* of the first level; slices: of a volume, or layers */
    uint32_t n_levels;
};
struct ct_sampled_layout {
    uint64_t size_bytes;
    struct {
        uint64_t offset, row_bytes, slice_bytes;
    } levels[PTX2SPV_TEXTURE_LEVELS];
};
struct ct_sampled_request {
    struct ct_texel_image
        *image_or_null;       /* one that images->create has made; it may be destroyed before the texture. NULL: texels in `memory` */
    struct ct_memory *memory; /* without texels */
    uint64_t offset;          /* in the memory, in bytes: where the image that `layout` describes begins */
    struct ct_sampled_extent extent;
    struct ct_sampled_layout layout;                       /* its size_bytes is ignored */
    uint32_t first_level, n_levels, first_layer, n_layers; /* those that the texture has */
    enum ptx2spv_texel texel;
    uint32_t channels, texel_bytes;
    bool normalized_values, normalized_coordinates, srgb, linear, linear_levels; /* as enum ptx2spv_texture_flag */
    enum ptx2spv_texture_address address[3];                                     /* BORDER: its colour is 0 */
    float min_level, max_level;
};
struct ct_sampled;

struct ct_kernel_image;   /* a compiled kernel on a device, with its pipeline variants */
struct ct_kernel_variant; /* the variant of a kernel image for one launch shape */
struct ct_queue;
struct ct_timestamp; /* storage for one timestamp */
struct ct_timeline;  /* a timeline semaphore: a counter that queues and the host signal and wait for */
struct ct_semaphore; /* a semaphore shared with another API or process: timeline or binary */
struct ct_recording; /* launches that are recorded once and replayed often */

struct ct_launch {
    struct ct_kernel_image *kernel;
    struct ct_kernel_variant *variant; /* from kernels->prepare for this grid, block, shared memory; NULL: launch looks it up */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    uint32_t slice_blocks;   /* with info.shared_in_memory: at most this many blocks, consecutive ones, run at the same time */
    const void *params;      /* info.param_bytes bytes, copied during the call; with params_in_buffer queues ignore them */
    uint64_t params_address; /* with params_in_buffer: a CUDA address, valid until the launch's point is complete */
    ct_devaddr image, fault; /* as in struct ptx2spv_system_block; the image may also be a CUDA address */
};

struct ct_queue_desc {
    int priority; /* as in CUDA: lower is more urgent; 0 unless info.stream_priorities */
};

struct ct_backend_device;

/* A backend is a few tables of functions. A table or a member is NULL if no device of the backend supports it. The features of a single
 * device are in its struct ct_device_info, which core checks before it calls. Below, "Requires info.x" means such a feature. */

/* Memory with addresses. No member is NULL. */
struct ct_memory_calls {
    /* Bytes of device memory that are free now, and in total. */
    CUresult (*info)(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total);

    /* The address is read back and compared: if it is not the requested one the memory is freed, with MAP_FAILED. After a failure the
     * caller never requests that address again. Memory larger than the driver's limit is composed of adjacent pieces. */
    CUresult (*create)(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out);
    CUresult (*import_host)(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out);
    void (*destroy)(struct ct_memory *memory); /* no queue uses it any more; takes NULL */
};

/* Memory imported from and exported to other APIs and processes. */
struct ct_sharing_calls {
    /* Require info.external_memory_fd. check_fd checks whether the descriptor can be imported and fills in `types`; OPERATING_SYSTEM: it
     * cannot. Two imports of one descriptor map the same bytes at two addresses. NOT_SUPPORTED: not with this `method`, or not in pieces. */
    CUresult (*check_fd)(struct ct_backend_device *device, struct ct_fd_import *import);
    CUresult (*import_fd)(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out);
    /* Requires info.memory_fd, with which import_fd accepts the result. Part 0 has the number of parts. NOT_SUPPORTED: this memory cannot
     * be exported. */
    CUresult (*export)(struct ct_memory *memory, unsigned part, struct ct_memory_share *out);
    /* Requires info.exports_dma_bufs. Exports `size_bytes` of memory of kind DEVICE from `offset` on. A dma-buf has no offset, so
     * NOT_SUPPORTED: the bytes are not at the beginning of a driver allocation, or are in several. */
    CUresult (*export_dma_buf)(struct ct_memory *memory, uint64_t offset, uint64_t size_bytes, int *out_fd);
};

/* Memory without addresses, and addresses without memory. */
struct ct_virtual_memory_calls {
    /* Requires CT_VIRTUAL_SPARSE, or info.driver_pages for shareable memory. Allocates memory without an address. SHARED memory can be
     * exported and requires info.virtual_memory_fd; TILES requires info.sparse_images. */
    CUresult (*physical_create)(struct ct_backend_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_physical **out);
    /* Imports exported memory of this or another process; the caller keeps `fd`. INVALID_VALUE: `fd` is not such memory. */
    CUresult (*physical_import)(struct ct_backend_device *device, int fd, struct ct_physical **out, uint64_t *out_bytes);
    CUresult (*physical_export)(struct ct_physical *physical, int *out_fd);
    /* Requires info.exports_dma_bufs. NOT_SUPPORTED: the memory is not shareable, or was imported. */
    CUresult (*physical_export_dma_buf)(struct ct_physical *physical, int *out_fd);
    /* Requires info.driver_pages. The host mapping, in whole pages that mremap can map a second time; valid while the memory exists. */
    CUresult (*physical_pages)(struct ct_physical *physical, void **out);
    void (*physical_destroy)(struct ct_physical *physical); /* it is not bound; takes NULL */
    /* Creates a range of addresses without memory, at a CUDA address that the caller has reserved (0: any; not with placed rules). As with
     * memory->create, that address is never requested again after a failure other than OUT_OF_MEMORY, which means that host memory was
     * exhausted before the driver was called. Freed by memory->destroy. */
    CUresult (*range_create)(struct ct_backend_device *device, uint64_t want_address, uint64_t size_bytes, struct ct_memory **out);
    /* Takes effect before work that is recorded later. No work uses the parts that are bound or unbound. */
    CUresult (*range_bind)(struct ct_memory *range, const struct ct_range_bind *binds, unsigned count);
};

/* Opaque images. */
struct ct_image_calls {
    /* Requires info.opaque_images. NOT_SUPPORTED: the device does not support the format for this use; INVALID_VALUE: the image exceeds
     * the imported memory. */
    CUresult (*create)(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out);
    void (*destroy)(struct ct_texel_image *image); /* no queue uses it any more; takes NULL */
    /* The memory object of a level, for copies. Borrowed from the image. */
    struct ct_memory *(*level)(struct ct_texel_image *image, uint32_t level);
    /* Complete on return; no work uses these tiles. NOT_SUPPORTED: this memory cannot be bound to images. */
    CUresult (*bind)(struct ct_texel_image *image, const struct ct_tile_bind *binds, unsigned count);

    /* The next three require target.sampled_images, else they are NULL or not called. Where the levels of an image of such texels are.
     * NOT_SUPPORTED: there are no such images. */
    CUresult (*sampled_layout)(struct ct_backend_device *device, uint32_t texel_bytes, const struct ct_sampled_extent *extent,
                               struct ct_sampled_layout *out);
    /* *out_descriptor: its number. NOT_SUPPORTED: the device has no image of this kind over this memory. */
    CUresult (*sampled_create)(struct ct_backend_device *device, const struct ct_sampled_request *request, struct ct_sampled **out,
                               uint32_t *out_descriptor);
    void (*sampled_destroy)(struct ct_sampled *sampled); /* kernels may still use it; takes NULL. The memory may be freed first */
};

/* Kernels. */
struct ct_kernel_calls {
    /* NOT_SUPPORTED: the device cannot run this form of the kernel. If it has native warp instructions the collective form may be tried. */
    CUresult (*create)(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                       struct ct_kernel_image **out); /* copies the data that it needs */
    void (*destroy)(struct ct_kernel_image *kernel);  /* no queue uses it any more; takes NULL */
    /* Compiles the pipeline that queues->launch needs for a launch with this kernel, grid, block and dynamic_shared_bytes. This may take a
     * minute, so the caller holds no lock. Parameters and addresses are ignored. *out: a reference to it. INVALID_VALUE as for queues->launch.
     * This member is NULL, like the next ones, if queues->launch compiles nothing that could be compiled in advance. */
    CUresult (*prepare)(const struct ct_launch *launch, struct ct_kernel_variant **out);
    void (*variant_retain)(struct ct_kernel_variant *variant);
    void (*variant_release)(struct ct_kernel_variant *variant); /* queues may still use it; takes NULL */
};

/* Queues. No member is NULL. */
struct ct_queue_calls {
    CUresult (*create)(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out);
    void (*destroy)(struct ct_queue *queue); /* idle; takes NULL */

    /* Recording: the command's point is point(queue) afterwards. Each command runs after those recorded before it. */
    /* Source and destination ranges do not overlap. In a level of an image a region is a box of whole texels: if it has more than one row
     * or slice, its pitches there are those of struct ct_texels. Offsets and pitches in plain memory are then multiples of a texel, too.
     * Two images have the same texel size, and both or neither are CT_IMAGE_1D. */
    CUresult (*copy)(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                     unsigned n_regions);
    CUresult (*fill)(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes,
                     uint32_t value); /* offset and size multiples of 4 */
    CUresult (*launch)(struct ct_queue *queue, const struct ct_launch *launch);
    CUresult (*timestamp)(struct ct_queue *queue, struct ct_timestamp *timestamp); /* the time when all earlier commands are complete */
    CUresult (*signal)(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
    CUresult (*wait)(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value);
    CUresult (*wait_queue)(struct ct_queue *queue, struct ct_queue *other, uint64_t point); /* flushes `other` if necessary */
    CUresult (*flush)(struct ct_queue *queue);
    /* Waits until the next command can be recorded without waiting for room. Called before taking a lock that other threads need. */
    CUresult (*await_room)(struct ct_queue *queue);

    uint64_t (*point)(struct ct_queue *queue); /* of the last recorded command; 0: none */
    /* All commands up to *out_point are complete. Never blocks. An error means that the device is lost or the queue failed. */
    CUresult (*completed)(struct ct_queue *queue, uint64_t *out_point);
    /* The points at which the device works now: those of the commands that were sent to it together. False: none, since the queue is empty,
     * or its next command waits for something else. Never blocks. */
    bool (*working)(struct ct_queue *queue, uint64_t *out_first, uint64_t *out_last);
    /* Blocks until `point` is complete (CUDA_SUCCESS) or the timeout expires (CUDA_ERROR_NOT_READY). UINT64_MAX: no timeout. */
    CUresult (*await)(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin);
};

/* Recordings. No member is NULL. */
struct ct_recording_calls {
    CUresult (*create)(struct ct_backend_device *device, struct ct_recording **out);
    void (*destroy)(struct ct_recording *recording); /* queues may still replay it; takes NULL */

    /* Recording, by one thread. Launches with no barrier between them may run in any order, or at the same time; those behind a barrier see
     * the writes of those before it. The launch has a variant; with params_in_buffer its parameters are copied as well, and its
     * params_address is not used. */
    CUresult (*launch)(struct ct_recording *recording, const struct ct_launch *launch);
    void (*barrier)(struct ct_recording *recording);
    CUresult (*finish)(struct ct_recording *recording); /* nothing is recorded afterwards */

    /* A command of the queue: replays finished recordings one after the other, without barriers between them, in one submission if the
     * device is known not to take long for that; else in several, each with a point of its own. NOT_READY: the queue's kernels take so
     * long that they should be recorded one by one; nothing was done. */
    CUresult (*replay)(struct ct_queue *queue, struct ct_recording *const *recordings, unsigned count);
};

/* No member is NULL. */
struct ct_timestamp_calls {
    CUresult (*create)(struct ct_backend_device *device, struct ct_timestamp **out);
    void (*destroy)(struct ct_timestamp *timestamp);
    CUresult (*read)(struct ct_timestamp *timestamp, double *out_ns); /* the last time written; its point is complete */
};

/* No member is NULL. */
struct ct_timeline_calls {
    CUresult (*create)(struct ct_backend_device *device, struct ct_timeline **out); /* counts from 0 */
    void (*destroy)(struct ct_timeline *timeline);
    CUresult (*signal)(struct ct_timeline *timeline, uint64_t value);
    CUresult (*await)(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns); /* NOT_READY: timeout */
};

/* Semaphores of other APIs and processes. */
struct ct_semaphore_calls {
    /* Requires info.external_semaphore_fd. On success it owns the descriptor. OPERATING_SYSTEM: `fd` is not a semaphore. */
    CUresult (*import)(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out);
    void (*destroy)(struct ct_semaphore *semaphore); /* queues may still use it; takes NULL */
    /* Waits on the host; timelines only. NOT_READY: timeout. */
    CUresult (*await)(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns);
    /* Commands like signal and wait of struct ct_queue_calls. Binary semaphores ignore `value`. The caller first makes the queue wait
     * for a host thread that waits for a timeline's value: the signaller may depend on work that a wait in the device could block. */
    CUresult (*queue_signal)(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
    CUresult (*queue_wait)(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
};

/* ---- faults ---- */

enum ct_fault_access { CT_FAULT_ACCESS /* of a kind that the driver does not tell */, CT_FAULT_READ, CT_FAULT_WRITE, CT_FAULT_EXECUTION };
#define CT_FAULT_ADDRESSES 8

struct ct_fault_address {
    enum ct_fault_access access;
    uint64_t first, last; /* device addresses: the access was somewhere between them */
};

struct ct_device_fault {
    char description[256];
    unsigned n_addresses; /* in the order of the driver's, the first ones */
    struct ct_fault_address addresses[CT_FAULT_ADDRESSES];
};

struct ct_backend {
    const char *name; /* its name in CUTTLE_BACKEND */

    void (*prepare)(void); /* or NULL: called once, before the drivers of any backend are loaded */
    /* Enumerates the devices. *out_count may be 0. The array is never freed; repeated calls return the same one. */
    CUresult (*enumerate)(const struct ct_device_info **out_infos, unsigned *out_count);
    /* After enumerate has found no device: what was tried, for the user. The text is never freed. */
    const char *(*absence)(void);
    CUresult (*device_open)(unsigned index, struct ct_backend_device **out);
    void (*device_close)(struct ct_backend_device *device); /* idle, and all its objects are destroyed */
    /* The device executes something that never ends: every queue returns `cause` from now on, waits end, and from now on none of its objects is
     * freed: destroying one does nothing. Called from any thread, without locks. */
    void (*device_give_up)(struct ct_backend_device *device, CUresult cause);
    /* Or NULL: the driver's account of the fault by which the device was lost. False: it was not lost by a fault, or the driver does not tell. */
    bool (*device_fault)(struct ct_backend_device *device, struct ct_device_fault *out);
    const struct ct_memory_calls *memory;
    const struct ct_sharing_calls *sharing;
    const struct ct_virtual_memory_calls *virtual_memory; /* or NULL */
    const struct ct_image_calls *images;                  /* or NULL */
    const struct ct_kernel_calls *kernels;
    const struct ct_queue_calls *queues;
    const struct ct_recording_calls *recordings; /* or NULL */
    const struct ct_timestamp_calls *timestamps;
    const struct ct_timeline_calls *timelines;
    const struct ct_semaphore_calls *semaphores; /* or NULL */
};

extern const struct ct_backend ct_backend_vk;
extern const struct ct_backend ct_backend_cl; /* only where built: CT_WITH_OPENCL */

#endif
