/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the mock backend whose memory is bound later; they are supported only if a test sets their tiling. */
#ifndef CUTTLE_TESTS_MOCK_IMAGES_H
#define CUTTLE_TESTS_MOCK_IMAGES_H

#include "core/device/backend.h"

/* Called before the first call of CUDA, or for the images created afterwards; the tail's first level may be beyond the image's last. */
void mock_use_tiling(const struct ct_image_tiling *tiling);
bool mock_has_images(void);
/* The bindings of the last request. */
unsigned mock_binds(const struct ct_tile_bind **out);
/* The number of existing physical memory objects. */
unsigned mock_physicals(void);

CUresult mock_physical_create(struct ct_backend_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_physical **out);
void mock_physical_destroy(struct ct_physical *physical);
CUresult mock_image_create(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out);
void mock_image_destroy(struct ct_texel_image *image);
struct ct_memory *mock_image_level(struct ct_texel_image *image, uint32_t level);
CUresult mock_image_bind(struct ct_texel_image *image, const struct ct_tile_bind *binds, unsigned count);

#endif
