/* SPDX-License-Identifier: Apache-2.0 */
#include "replays.h"

#include "core/base/log.h"
#include "queue.h"

#include <stdlib.h>

#define CT_CHANNEL "queue"

void ct_vk_recording_destroy(struct ct_recording *recording)
{
    struct ct_backend_device *device;

    if (!recording || ct_vk_device_is_given_up(recording->device) ||
        atomic_fetch_sub_explicit(&recording->references, 1, memory_order_acq_rel) > 1)
        return;
    device = recording->device;
    if (recording->pool)
        device->vk.vkDestroyCommandPool(device->handle, recording->pool, NULL); /* frees the command buffer */
    ct_vk_recorded_params_finish(&recording->params);
    ct_vk_variants_drop(&recording->variants);
    free(recording->variants.list);
    free(recording->bound);
    free(recording);
}

CUresult ct_vk_replays_add(struct ct_vk_replays *replays, struct ct_recording *recording)
{
    if (replays->count == replays->capacity) {
        const unsigned capacity = replays->capacity ? 2 * replays->capacity : 8;
        struct ct_recording **list = realloc(replays->list, capacity * sizeof(*list));

        if (!list)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of recordings");
        replays->list = list;
        replays->capacity = capacity;
    }
    atomic_fetch_add_explicit(&recording->references, 1, memory_order_relaxed);
    replays->list[replays->count++] = recording;
    replays->time_ns += recording->time_ns;
    return CUDA_SUCCESS;
}

void ct_vk_replays_measure(const struct ct_vk_replays *replays, uint64_t time_ns)
{
    for (unsigned i = 0; i < replays->count; i++)
        replays->list[i]->time_ns = time_ns < CT_VK_REPLAYS_NS ? time_ns / replays->count : CT_VK_REPLAYS_NS;
}

void ct_vk_replays_end(struct ct_vk_replays *replays)
{
    for (unsigned i = 0; i < replays->count; i++)
        ct_vk_recording_destroy(replays->list[i]);
    replays->count = 0;
    replays->time_ns = 0;
}
