/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan half of an interop program: an instance and a device of its own, memory and semaphores that it exports, one compute shader.
 * Any failure ends the program. */
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

/* Opens the device with this UUID (as cuDeviceGetUuid returns it). The validation layer is used if it is installed and INTEROP_VALIDATE is set:
 * its messages are printed to stderr as "validation error". */
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
/* Creates a buffer in the memory of another, at an offset that satisfies its alignment; it has no memory of its own. */
void app_buffer_place(struct app *app, const struct app_buffer *in, VkDeviceSize offset, VkDeviceSize bytes, struct app_buffer *out);
void app_buffer_destroy(struct app *app, struct app_buffer *buffer); /* takes a zeroed one */
/* Creates a buffer at the beginning of another API's memory of `memory_bytes`; owns fd afterwards. False: the driver does not import it, and the
 * caller still owns fd. */
bool app_buffer_import(struct app *app, int fd, enum app_memory_kind kind, VkDeviceSize memory_bytes, VkDeviceSize bytes,
                       struct app_buffer *out);
int app_buffer_export(struct app *app, const struct app_buffer *buffer);

/* to[i] = from[i] * multiplier + addend + i * step. Ownership of buffers except APP_HOST ones is acquired from another API before and
 * released to it afterwards. */
struct app_map {
    uint32_t count, multiplier, addend, step;
};
VkCommandBuffer app_record(struct app *app, const struct app_buffer *from, const struct app_buffer *to, const struct app_map *map);
/* Runs the shader and waits on the host. */
void app_run(struct app *app, const struct app_buffer *from, const struct app_buffer *to, const struct app_map *map);

VkSemaphore app_semaphore_create(struct app *app, bool timeline);
int app_semaphore_export(struct app *app, VkSemaphore semaphore);
/* Semaphores may be VK_NULL_HANDLE; values are those of timelines. Does not wait. */
void app_submit(struct app *app, VkCommandBuffer commands, VkSemaphore wait, uint64_t wait_value, VkSemaphore signal,
                uint64_t signal_value);
void app_wait_idle(struct app *app);

#endif
