/* SPDX-License-Identifier: Apache-2.0 */
/* The internal header of the Vulkan backend. Core includes only backend.h.
 *
 * Locks: each lock of the backend has rank CT_RANK_BACKEND, and none is taken while another is held. */
#ifndef CT_VK_VK_H
#define CT_VK_VK_H
/* Parts: address_rule.c, backend.c, device.c, device_fault.c, device_info.c, device_loss.c, external_memory.c, external_semaphore.c, features.c,
 * instance.c, kernel.c, matrices.c, result.c, timestamp.c. */

#include "core/device/absence.h"
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
    VkPhysicalDeviceFaultFeaturesEXT fault;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    VkPhysicalDeviceShaderFmaFeaturesKHR fma;
};

/* features.c. Zeroes the structures and chains them from features->core, without those of absent extensions. */
void ct_vk_features_init(struct ct_vk_features *features, const bool has[CT_VK_EXT_COUNT]);

#define CT_VK_MAX_QUEUES 32

/* How memory gets the address that the device's address rule requires. */
enum ct_vk_placement {
    CT_VK_PLACED_BY_DRIVER, /* the rule accepts the address that the driver chooses */
    CT_VK_PLACED_OPAQUE,    /* by opaque capture addresses */
    CT_VK_PLACED_PAGES,     /* CPU devices: imported pages keep the address of their mapping, so they are mapped at the wanted address */
};

/* A usable physical device; its struct ct_device_info has the same index. */
struct ct_vk_physical {
    VkPhysicalDevice handle;
    bool has[CT_VK_EXT_COUNT];
    struct ct_vk_features features; /* the features of the device; pNext is not valid here */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t local_heap;       /* the largest device-local heap */
    uint32_t family, n_queues; /* the compute family of all queues */
    uint32_t max_group_count[3];
    uint64_t import_alignment; /* of host pointers */
    uint32_t timestamp_bits;   /* 0: the family has no timestamps */
    bool require_subgroup_32;  /* pipelines require subgroups of 32, */
    bool subgroups_as_needed;  /* but only those of kernels that use subgroups */
    bool address_capture_replay;
    enum ct_vk_placement placement;
    bool sparse_import;      /* imported pages get a chosen address only through a sparse buffer */
    bool has_sparse_family;  /* a queue family that binds sparse memory */
    uint32_t sparse_family;  /* may be `family` */
    bool has_refresh_family; /* with needs_host_store_refresh: a queue family for copies only, which run on other engines than kernels */
    uint32_t refresh_family;
    uint8_t cache_uuid[VK_UUID_SIZE]; /* of the contents of pipeline caches, with the driver's version */
    uint32_t driver_version;
    uint64_t piece_bytes;                         /* the largest single allocation or import; larger memory is concatenated from pieces */
    uint64_t max_memory_bytes;                    /* the largest allocation of the driver: Vulkan's maxMemoryAllocationSize */
    bool concatenates;                            /* allocations may follow each other without a gap between their addresses */
    uint64_t address_granule;                     /* the alignment of the addresses that the driver grants */
    bool uses_file;                               /* CPU devices: memory consists of pages of a file, which other processes can map */
    VkExternalMemoryHandleTypeFlags export_types; /* handle types for which device memory is allocated as exportable; 0: none */
    bool dedicates;                               /* memory is dedicated to its buffer (memory_piece.c) */
    bool raw_aliases;              /* sparse buffers and linear images read what plain buffers have compressed without decompressing it */
    bool needs_host_store_refresh; /* running kernels see stores by the host only after another submission: drivers/host_store_refresh.c */
    bool memory_missing;           /* no memory types: RADV without hardware, which can only compile */
};

/* State with the lifetime of the process: created at the first use, never freed (the application may call the library until it ends). */
struct ct_vk_instance {
    VkInstance handle; /* VK_NULL_HANDLE: no loader or no driver */
    bool validating;
    uint32_t layer_spec_version; /* of the validation layer, when validating */
    struct ct_vk_physical *physical;
    struct ct_device_info *infos;
    unsigned n_devices;
    struct ct_absence absence; /* of usable devices */
};

/* Loads Vulkan, creates the instance and enumerates the devices, once. Never fails: without Vulkan there are no devices. */
const struct ct_vk_instance *ct_vk_instance_get(void);
/* The number of unexpected messages, errors and warnings, that the validation layer has issued so far. */
unsigned ct_vk_validation_messages(void);
/* Names an image, so that the layer's messages about it can be recognized; a no-op without the layer. */
void ct_vk_name_imported_image(VkDevice device, VkImage image);
/* Examines a physical device. False: it is not usable; *out_reason then names the missing feature (a string with static lifetime). All
 * facts are nevertheless filled in if out->memory_missing is set: such a device can only compile. */
bool ct_vk_device_examine(const struct ct_vk_instance *instance, VkPhysicalDevice handle, struct ct_vk_physical *out,
                          struct ct_device_info *out_info, const char **out_reason);

/* address_rule.c: determines the address rule of a device by experiment, and fills in everything that follows from it. `likely` is the
 * rule known for the driver. It is tried first, since a refused request has side effects on some drivers. */
void ct_vk_address_rule_probe(struct ct_vk_physical *physical, struct ct_device_info *info, enum ct_address_rule likely);

/* matrices.c: fills in target->matrices, without their layouts, which only a probe can find out. */
void ct_vk_find_matrices(const struct ct_vk_instance *instance, const struct ct_vk_physical *physical, struct ptx2spv_target *target);

/* Converts a result of Vulkan to one of CUDA. Logs failures with the call's name. VK_TIMEOUT and VK_NOT_READY become NOT_READY. */
CUresult ct_vk_result(VkResult result, const char *call);

struct ct_vk_timeline_semaphore; /* queue.h */
struct ct_vk_scheduler;          /* the same */
struct ct_vk_timestamp_pool;     /* timestamp.c */
struct ct_vk_textures;           /* texture_images.c */

struct ct_backend_device {
    const struct ct_vk_physical *physical; /* borrowed, with the lifetime of the process */
    const struct ct_device_info *info;     /* the same */
    VkDevice handle;
    struct VolkDeviceTable vk;
    VkQueue queues[CT_VK_MAX_QUEUES];
    VkQueue sparse_queue;                               /* or VK_NULL_HANDLE */
    VkQueue refresh_queue;                              /* or VK_NULL_HANDLE; only drivers/host_store_refresh.c submits to it */
    struct ct_mutex own_lock;                           /* for a sparse queue that is not one of `queues`; rank CT_RANK_BACKEND */
    struct ct_mutex *sparse_lock;                       /* held while sparse_queue is used */
    struct ct_vk_timeline_semaphore *binding_semaphore; /* exists if sparse_queue does: each binding signals its number on it (sparse.c) */
    atomic_uint_fast64_t bindings, bindings_done;       /* submitted; known to be complete */
    VkPipelineCache pipeline_cache;
    atomic_bool leaves_caches_empty;                     /* pipeline_cache.c: the driver puts nothing into pipeline caches */
    bool capture_statistics;                             /* pipelines record the compiler's statistics */
    atomic_uint_fast64_t heap_used[VK_MAX_MEMORY_HEAPS]; /* relaxed: statistics */
    atomic_int lost; /* the CUresult that every queue returns from now on; CUDA_SUCCESS: not lost. release: pairs with ct_vk_device_check */
    atomic_bool given_up; /* see device_loss.c */
    struct ct_vk_scheduler *scheduler;
    struct ct_vk_timestamp_pool *timestamps;
    VkDescriptorSetLayout texture_layout;                       /* exists if target.sampled_images */
    _Atomic(struct ct_vk_textures *) textures;                  /* NULL until it is needed */
    void (*destroy_textures)(struct ct_backend_device *device); /* set with them: their file is above device.c */
    struct ct_memory_file file;                                 /* CPU devices: the pages of their memory */
    /* The device node that descriptors of exported memory refer to; 0: unknown. relaxed: the value never changes once known. */
    atomic_uint_fast64_t export_node;
};

/* device.c. `physical` and `info` must outlive the device. */
CUresult ct_vk_device_open(const struct ct_vk_physical *physical, const struct ct_device_info *info, struct ct_backend_device **out);
/* Opens a device that only compiles kernels: it has no queues and needs no memory, and its pipelines record statistics if the driver
 * has any. For tests with a driver's compiler and no GPU. `physical` and `info` must outlive the device. */
CUresult ct_vk_device_open_compiler(const struct ct_vk_physical *physical, const struct ct_device_info *info,
                                    struct ct_backend_device **out);
void ct_vk_device_close(struct ct_backend_device *device); /* takes NULL and a partially initialized device */
/* device_loss.c. Returns CUDA_SUCCESS, or the reason why the device is lost. */
CUresult ct_vk_device_check(struct ct_backend_device *device);
/* Marks the device as lost (the first cause is kept); returns `cause`. */
CUresult ct_vk_device_lose(struct ct_backend_device *device, CUresult cause);
/* The same, and the driver will never finish its work: objects are not freed any more. */
void ct_vk_device_give_up(struct ct_backend_device *device, CUresult cause);
bool ct_vk_device_is_given_up(struct ct_backend_device *device);
/* device_fault.c: ct_backend.device_fault. */
bool ct_vk_device_fault(struct ct_backend_device *device, struct ct_device_fault *out);

CUresult ct_vk_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total);
CUresult ct_vk_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out);
CUresult ct_vk_memory_import_host(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out);
void ct_vk_memory_destroy(struct ct_memory *memory);
/* external_memory.c */
CUresult ct_vk_memory_check_fd(struct ct_backend_device *device, struct ct_fd_import *import);
CUresult ct_vk_memory_import_fd(struct ct_backend_device *device, const struct ct_fd_import *import, struct ct_memory **out);
CUresult ct_vk_memory_export(struct ct_memory *memory, unsigned part, struct ct_memory_share *out);
CUresult ct_vk_memory_export_dma_buf(struct ct_memory *memory, uint64_t offset, uint64_t size_bytes, int *out_fd);
/* The handle types as which memory of buffers can be exported and imported: OPAQUE_FD, or that and DMA_BUF; 0: none. */
VkExternalMemoryHandleTypeFlags ct_vk_export_types(const struct ct_vk_physical *physical);

/* The data that recording a launch needs. */
struct ct_vk_pipeline {
    VkPipeline handle;
    VkPipelineLayout layout;
    uint32_t push_bytes;
    VkDescriptorSet textures; /* VK_NULL_HANDLE: the kernel reads no images */
};

CUresult ct_vk_kernel_create(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                             struct ct_kernel_image **out);
void ct_vk_kernel_destroy(struct ct_kernel_image *kernel);
/* *out: a reference to the kernel's variant for a launch, which is compiled unless it was used lately. split: the grid is dispatched in pieces. INVALID_VALUE: more
 * threads or shared memory than the device has. */
CUresult ct_vk_kernel_variant(const struct ct_launch *launch, bool split, struct ct_kernel_variant **out);
/* OUT_OF_MEMORY: the driver could not map the memory that it may need to compile or run a kernel (setrlimit). */
CUresult ct_vk_check_room(const struct ct_backend_device *device);
CUresult ct_vk_kernel_pipeline(const struct ct_kernel_image *kernel, const struct ct_kernel_variant *variant, struct ct_vk_pipeline *out);
const struct ptx2spv_kernel_info *ct_vk_kernel_info(const struct ct_kernel_image *kernel);
const struct ct_backend_device *ct_vk_kernel_device(const struct ct_kernel_image *kernel);

/* external_semaphore.c */
CUresult ct_vk_semaphore_import(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out);
void ct_vk_semaphore_destroy(struct ct_semaphore *semaphore);
CUresult ct_vk_semaphore_await(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns);
CUresult ct_vk_queue_signal_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
CUresult ct_vk_queue_wait_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
/* Whether semaphores of a kind can be imported from file descriptors: lavapipe of Mesa 26 has the extension for other handles only. */
bool ct_vk_imports_semaphores(const struct ct_vk_physical *physical, VkSemaphoreType kind);

CUresult ct_vk_timestamp_pool_create(struct ct_backend_device *device, struct ct_vk_timestamp_pool **out);
void ct_vk_timestamp_pool_destroy(struct ct_vk_timestamp_pool *pool);
CUresult ct_vk_timestamp_create(struct ct_backend_device *device, struct ct_timestamp **out);
void ct_vk_timestamp_destroy(struct ct_timestamp *timestamp);
CUresult ct_vk_timestamp_read(struct ct_timestamp *timestamp, double *out_ns);
/* Records a write of the time at which all commands recorded before are complete. */
void ct_vk_timestamp_record(struct ct_timestamp *timestamp, VkCommandBuffer commands);

#endif
