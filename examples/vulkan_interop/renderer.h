/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan half of the example: a device of its own, a buffer of heights that it exports, and a picture of them. Failures end the
 * program. */
#ifndef CUTTLE_EXAMPLE_RENDERER_H
#define CUTTLE_EXAMPLE_RENDERER_H

#include <stdint.h>

struct renderer;

/* Uses the device with this UUID; for two planes of size x size heights. */
struct renderer *renderer_open(const uint8_t uuid[16], uint32_t size);
void renderer_close(struct renderer *renderer);

/* Returns the buffer's memory as a file descriptor, which the caller owns. */
int renderer_export_heights(struct renderer *renderer, uint64_t *out_memory_bytes);
/* Returns the timeline semaphore for which `renderer_draw` waits as a descriptor, or -1: this device cannot share one, and the caller waits
 * on the host. */
int renderer_export_timeline(struct renderer *renderer);

/* Draws the plane when the timeline reaches `value` (0: at once), and returns size x size RGBA pixels, which the renderer owns. */
const uint8_t *renderer_draw(struct renderer *renderer, uint32_t plane, uint64_t value);

#endif
