/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the mock backend, which have no contents: their memory is bound later, and the bindings are recorded. */
#include "mock_backend.h"
#include "mock_images.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BINDS 64

struct ct_physical {
    uint64_t size_bytes;
};

struct image {
    struct ct_texel_image base;
    struct ct_memory levels[16];
};

static struct {
    struct ct_image_tiling tiling;
    atomic_bool there;
    atomic_uint physicals;
    unsigned n;
    struct ct_tile_bind binds[MOST_BINDS];
} mock;

void mock_use_tiling(const struct ct_image_tiling *tiling)
{
    mock.tiling = *tiling;
    mock.there = true;
}

bool mock_has_images(void)
{
    return mock.there;
}

unsigned mock_binds(const struct ct_tile_bind **out)
{
    *out = mock.binds;
    return mock.n;
}

unsigned mock_physicals(void)
{
    return mock.physicals;
}

CUresult mock_physical_create(struct ct_backend_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_physical **out)
{
    struct ct_physical *physical = calloc(1, sizeof *physical);

    (void)device;
    if (use != CT_PHYSICAL_TILES) {
        free(physical);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    physical->size_bytes = size_bytes;
    mock.physicals++;
    *out = physical;
    return CUDA_SUCCESS;
}

void mock_physical_destroy(struct ct_physical *physical)
{
    mock.physicals -= physical != NULL;
    free(physical);
}

CUresult mock_image_create(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out)
{
    struct image *image = calloc(1, sizeof *image);

    image->base.device = device;
    image->base.tiling = mock.tiling;
    if (image->base.tiling.tail_level > request->levels)
        image->base.tiling.tail_level = request->levels;
    *out = &image->base;
    return CUDA_SUCCESS;
}

void mock_image_destroy(struct ct_texel_image *image)
{
    free(image);
}

struct ct_memory *mock_image_level(struct ct_texel_image *image, uint32_t level)
{
    return &((struct image *)image)->levels[level];
}

CUresult mock_image_bind(struct ct_texel_image *image, const struct ct_tile_bind *binds, unsigned count)
{
    (void)image;
    mock.n = count < MOST_BINDS ? count : MOST_BINDS;
    memcpy(mock.binds, binds, mock.n * sizeof *binds);
    return CUDA_SUCCESS;
}
