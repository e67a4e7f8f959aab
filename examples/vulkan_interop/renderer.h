/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan's half of the example: a device of its own, a buffer of heights that it exports, and a picture of them. Failures end the program.
 */
#ifndef CUTTLE_EXAMPLE_RENDERER_H
#define CUTTLE_EXAMPLE_RENDERER_H

#include <stdint.h>

struct renderer;

/* On the device with this UUID, for two planes of size x size heights. */
struct renderer *renderer_open(const uint8_t uuid[16], uint32_t size);
void renderer_close(struct renderer *renderer);

/* The buffer's memory as a file descriptor, which is the caller's. */
int renderer_export_heights(struct renderer *renderer, uint64_t *out_memory_bytes);
/* The timeline by which `renderer_draw` waits, or -1: this device shares none, and the caller waits on the host. */
int renderer_export_timeline(struct renderer *renderer);

/* Draws the plane when the timeline is at `value` (0: at once), and gives size x size RGBA pixels, which stay the renderer's. */
const uint8_t *renderer_draw(struct renderer *renderer, uint32_t plane, uint64_t value);

#endif
