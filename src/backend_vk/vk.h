/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan backend's own header: what its files share. Core sees only backend.h.
 *
 * Locks: each lock of the backend has rank CT_RANK_BACKEND and none is taken inside another. */
#ifndef CT_VK_VK_H
#define CT_VK_VK_H
/* Parts: address_rule.c, backend.c, device.c, device_info.c, device_loss.c, external_memory.c, external_semaphore.c, features.c,
 * instance.c, kernel.c, result.c, timestamp.c. */

#include "core/device/backend.h"
#include "core/base/locks.h"
#include "core/backing/memory_file.h"
#include "vulkan_compat.h"

#include <stdatomic.h>

enum ct_vk_extension {
#define EXTENSION(id, name, use) CT_VK_EXT_##id,
#include "extensions.def"
    CT_VK_EXT_COUNT
};

struct ct_vk_features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR explicit_layout;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float;
    VkPhysicalDeviceShaderClockFeaturesKHR clock;
    VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR reconvergence;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable;
};

/* features.c. Zeroes the blocks and chains them from features->core; blocks of absent extensions stay out of the chain. */
void ct_vk_features_init(struct ct_vk_features *features, const bool has[CT_VK_EXT_COUNT]);

#define CT_VK_MAX_QUEUES 8

/* How memory comes to the address that the device's address rule wants. */
enum ct_vk_placement {
    CT_VK_PLACED_BY_DRIVER, /* the rule takes what the driver gives */
    CT_VK_PLACED_OPAQUE,    /* by opaque capture addresses */
    CT_VK_PLACED_PAGES,     /* CPU devices: imported pages have the address of their mapping, so they are mapped there */
};

/* A usable physical device; its struct ct_device_info stands at the same index. */
struct ct_vk_physical {
    VkPhysicalDevice handle;
    bool has[CT_VK_EXT_COUNT];
    struct ct_vk_features features; /* what the device has; pNext is meaningless here */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t local_heap;       /* the largest device-local heap */
    uint32_t family, n_queues; /* the compute family that all queues come from */
    uint32_t max_group_count[3];
    uint64_t import_alignment; /* of host pointers */
    uint32_t timestamp_bits;   /* 0: the family has no timestamps */
    bool require_subgroup_32;  /* pipelines ask for subgroups of 32 */
    bool address_capture_replay;
    enum ct_vk_placement placement;
    bool sparse_import;       /* imported pages take a chosen address by way of a sparse buffer only */
    bool has_sparse_family;   /* a queue family that binds sparse memory */
    uint32_t sparse_family;   /* may be `family` */
    bool has_pulse_family;    /* where needs_pulse: a queue family for copies alone, which other engines make than kernels run on */
    uint32_t pulse_family;
    uint64_t piece_bytes;     /* the largest memory that is made or imported at once; larger is glued */
    uint64_t max_memory_bytes; /* the largest memory that the driver makes at once: Vulkan's maxMemoryAllocationSize */
    uint64_t address_granule; /* of the addresses that the driver grants */
    bool uses_file;           /* CPU devices: memory is pages of a file, which other processes may have */
    VkExternalMemoryHandleTypeFlags export_types; /* memory of its own is made so that others may have it as these; 0: it is not */
    bool raw_sparse;          /* sparse buffers read what plain ones compressed as it lies there */
    bool needs_pulse;         /* running kernels see stores of the host when something is submitted only: pulse.c */
    bool memory_missing;      /* no memory types: RADV without hardware, which only compiles */
};

/* Everything that lives as long as the process: made at the first use, never freed (the application may call us until it ends). */
struct ct_vk_instance {
    VkInstance handle; /* VK_NULL_HANDLE: no loader or no driver */
    bool validating;
    uint32_t layer_spec_version; /* of the validation layer, when validating */
    struct ct_vk_physical *physical;
    struct ct_device_info *infos;
    unsigned n_devices;
};

/* Loads Vulkan, makes the instance and finds the devices, once. Never fails: without Vulkan there are no devices. */
const struct ct_vk_instance *ct_vk_instance_get(void);
/* Unexpected messages, errors and warnings, that the validation layer has given so far. */
unsigned ct_vk_validation_messages(void);
/* Tells the layer's messages about this image from others; nothing without the layer. */
void ct_vk_name_imported_image(VkDevice device, VkImage image);
/* Examines a physical device. False: below the bar; *out_reason then names what is missing (lives as long as the process). All facts are
 * filled in even so if out->memory_missing: it can compile, and nothing else. */
bool ct_vk_device_examine(const struct ct_vk_instance *instance, VkPhysicalDevice handle, struct ct_vk_physical *out,
                          struct ct_device_info *out_info, const char **out_reason);

/* address_rule.c: finds the address rule of a device by trying what it grants, and fills in all that follows from it. `likely` is the rule
 * that is known of the driver: tried first, since some are better not asked for what they do not grant. */
void ct_vk_address_rule_probe(struct ct_vk_physical *physical, struct ct_device_info *info, enum ct_address_rule likely);

/* The one place where Vulkan's results become CUDA's. Logs failures with the call's name. VK_TIMEOUT and VK_NOT_READY: NOT_READY. */
CUresult ct_vk_result(VkResult result, const char *call);

struct ct_vk_line;           /* queue.h */
struct ct_vk_scheduler;      /* the same */
struct ct_vk_timestamp_pool; /* timestamp.c */

struct ct_backend_device {
    const struct ct_vk_physical *physical; /* borrowed: lives as long as the process */
    const struct ct_device_info *info;     /* borrowed: the same */
    VkDevice handle;
    struct VolkDeviceTable vk;
    VkQueue queues[CT_VK_MAX_QUEUES];
    VkQueue sparse_queue;         /* or none */
    VkQueue pulse_queue;          /* the same: pulse.c alone submits to it */
    struct ct_mutex own_lock;     /* of a sparse queue that is none of `queues`; rank CT_RANK_BACKEND */
    struct ct_mutex *sparse_lock; /* who uses sparse_queue holds it */
    struct ct_vk_line *binding_line; /* with sparse_queue: bindings signal their number on it (sparse.c) */
    atomic_uint_fast64_t bindings, bindings_done; /* submitted; seen to be done */
    VkPipelineCache pipeline_cache;
    bool capture_statistics;                             /* pipelines keep the compiler's statistics */
    atomic_uint_fast64_t heap_used[VK_MAX_MEMORY_HEAPS]; /* relaxed: statistics */
    atomic_int lost; /* CUresult that every queue gives from now on; CUDA_SUCCESS none. release: pairs with ct_vk_device_check */
    struct ct_vk_scheduler *scheduler;
    struct ct_vk_timestamp_pool *timestamps;
    struct ct_memory_file file; /* CPU devices: pages of their memory */
    /* The device node that exported memory is a descriptor of; 0: not looked at. relaxed: always the same. */
    atomic_uint_fast64_t export_node;
};

/* device.c. `physical` and `info` must outlive it. */
CUresult ct_vk_device_open(const struct ct_vk_physical *physical, const struct ct_device_info *info, struct ct_backend_device **out);
/* Opens a device that only compiles kernels: it has no queues and needs no memory, and its pipelines keep statistics where the driver
 * has any. For tests with a driver's compiler and no GPU. `physical` and `info` must outlive it. */
CUresult ct_vk_device_open_compiler(const struct ct_vk_physical *physical, const struct ct_device_info *info,
                                    struct ct_backend_device **out);
void ct_vk_device_close(struct ct_backend_device *device); /* takes NULL and a half-made device */
/* device_loss.c. CUDA_SUCCESS, or why the device cannot go on. */
CUresult ct_vk_device_check(struct ct_backend_device *device);
/* Marks the device as lost (the first cause stays); returns `cause`. */
CUresult ct_vk_device_lose(struct ct_backend_device *device, CUresult cause);

CUresult ct_vk_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total);
CUresult ct_vk_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out);
CUresult ct_vk_memory_import_host(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out);
void ct_vk_memory_destroy(struct ct_memory *memory);
/* external_memory.c */
CUresult ct_vk_memory_check_fd(struct ct_backend_device *device, struct ct_fd_import *import);
CUresult ct_vk_memory_import_fd(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out);
CUresult ct_vk_memory_export(struct ct_memory *memory, unsigned part, struct ct_memory_share *out);
CUresult ct_vk_memory_export_dma_buf(struct ct_memory *memory, uint64_t offset, uint64_t size_bytes, int *out_fd);
/* As what memory of buffers can be exported, and imported: OPAQUE_FD, or that and DMA_BUF; 0: nothing. */
VkExternalMemoryHandleTypeFlags ct_vk_export_types(const struct ct_vk_physical *physical);

/* What recording a launch needs to know. */
struct ct_vk_pipeline {
    VkPipeline handle;
    VkPipelineLayout layout;
    uint32_t push_bytes;
};

CUresult ct_vk_kernel_create(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                             struct ct_kernel_image **out);
void ct_vk_kernel_destroy(struct ct_kernel_image *kernel);
/* The kernel's variant for a launch, compiled at the first use. split: the grid is dispatched in pieces. INVALID_VALUE: more threads or
 * shared memory than the device has. */
CUresult ct_vk_kernel_variant(const struct ct_launch *launch, bool split, const struct ct_kernel_variant **out);
struct ct_vk_pipeline ct_vk_kernel_pipeline(const struct ct_kernel_image *kernel, const struct ct_kernel_variant *variant);
const struct ptx2spv_kernel_info *ct_vk_kernel_info(const struct ct_kernel_image *kernel);
const struct ct_backend_device *ct_vk_kernel_device(const struct ct_kernel_image *kernel);

/* external_semaphore.c */
CUresult ct_vk_semaphore_import(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out);
void ct_vk_semaphore_destroy(struct ct_semaphore *semaphore);
CUresult ct_vk_semaphore_await(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns);
CUresult ct_vk_queue_signal_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
CUresult ct_vk_queue_wait_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
/* Whether timelines can be imported from file descriptors, too. */
bool ct_vk_imports_timelines(const struct ct_vk_physical *physical);

CUresult ct_vk_timestamp_pool_create(struct ct_backend_device *device, struct ct_vk_timestamp_pool **out);
void ct_vk_timestamp_pool_destroy(struct ct_vk_timestamp_pool *pool);
CUresult ct_vk_timestamp_create(struct ct_backend_device *device, struct ct_timestamp **out);
void ct_vk_timestamp_destroy(struct ct_timestamp *timestamp);
CUresult ct_vk_timestamp_read(struct ct_timestamp *timestamp, double *out_ns);
/* Records the write of the time when all that was recorded before is done. */
void ct_vk_timestamp_record(struct ct_timestamp *timestamp, VkCommandBuffer commands);

#endif
