/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan half of an interop program: an instance and a device of its own, memory and semaphores that it exports, one compute shader.
 * Whatever fails ends the program. */
#ifndef CUTTLE_TESTS_INTEROP_APP_H
#define CUTTLE_TESTS_INTEROP_APP_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <volk.h>

#include <stdbool.h>
#include <stdint.h>

struct app {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device;
    uint32_t family;
    VkQueue queue;
    VkCommandPool commands;
    VkDescriptorPool descriptors;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline map; /* map.spvasm */
    VkFence fence;
    bool has_semaphores, has_timelines; /* that can be exported as OPAQUE_FD */
    bool has_dma_buf;
};

/* The device with this UUID (as cuDeviceGetUuid gives it). Validation layers watch it where they are installed and INTEROP_VALIDATE is set:
 * what they say goes to stderr as "validation error". */
void app_open(struct app *app, const uint8_t uuid[VK_UUID_SIZE]);
void app_close(struct app *app);

enum app_memory_kind { APP_SHARED, APP_DEDICATED, APP_DMA_BUF, APP_HOST };

/* A buffer with memory of its own; APP_HOST is mapped, the others can be exported. */
struct app_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    VkDeviceSize bytes, memory_bytes, align;
    enum app_memory_kind kind;
    uint32_t *words; /* APP_HOST */
};
void app_buffer_create(struct app *app, VkDeviceSize bytes, enum app_memory_kind kind, struct app_buffer *out);
/* One in the memory of another, at an offset that suits its alignment; has no memory of its own. */
void app_buffer_place(struct app *app, const struct app_buffer *in, VkDeviceSize offset, VkDeviceSize bytes, struct app_buffer *out);
void app_buffer_destroy(struct app *app, struct app_buffer *buffer); /* takes a zeroed one */
/* One over the beginning of memory of another API, of `memory_bytes`; takes fd. False: the driver does not take it, and fd is the caller's. */
bool app_buffer_import(struct app *app, int fd, enum app_memory_kind kind, VkDeviceSize memory_bytes, VkDeviceSize bytes,
                       struct app_buffer *out);
int app_buffer_export(struct app *app, const struct app_buffer *buffer);

/* to[i] = from[i] * multiplier + addend + i * step. Buffers but APP_HOST ones come from and go back to another API around it. */
struct app_map {
    uint32_t count, multiplier, addend, step;
};
VkCommandBuffer app_record(struct app *app, const struct app_buffer *from, const struct app_buffer *to, const struct app_map *map);
/* Runs it and waits on the host. */
void app_run(struct app *app, const struct app_buffer *from, const struct app_buffer *to, const struct app_map *map);

VkSemaphore app_semaphore_create(struct app *app, bool timeline);
int app_semaphore_export(struct app *app, VkSemaphore semaphore);
/* Semaphores may be VK_NULL_HANDLE; values are those of timelines. Does not wait. */
void app_submit(struct app *app, VkCommandBuffer commands, VkSemaphore wait, uint64_t wait_value, VkSemaphore signal,
                uint64_t signal_value);
void app_wait_idle(struct app *app);

#endif
