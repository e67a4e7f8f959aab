/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a runtime copies beside the queues, from when on, and until when.
 *
 * NVIDIA's Vulkan driver copies between host and device at 0.92 of what the bus gives, and hardly both ways at once; its OpenCL runtime
 * does both at full speed. The price, measured on an H200 (580.159.04): 0.34 to 0.53 s of one thread until its context is made, and
 * 520 MiB of device memory. So without being named (CUTTLE_COPY_RUNTIME=auto) it is made when so much was copied that the copies took
 * longer than making it does, 32 GiB at 51 GB/s: even where a program ends just then, and has to wait, its copies were the larger part.
 * It is made where 520 MiB are a small part of the free device memory, and given up when that runs out. Nobody waits for it: copies
 * go the ordinary way as long as it is not there, or for good. */
#include "copier.h"

#include "copy_runtime.h"
#include "vk.h"

#include "core/config.h"
#include "core/exit_gate.h"
#include "core/thread.h"

#include <string.h>

#define CT_CHANNEL "copy"
#define WAIT_BYTES ((uint64_t)32 << 30)
#define CONTEXT_BYTES ((uint64_t)520 << 20)
#define FREE_SHARE 32 /* of free memory, that the context may take: as much as spares may (core/memory_spares.c) */

/* ---- whether ---- */

static bool is_automatic(void)
{
    return !strcmp(ct_config()->copy_runtime, "auto");
}

bool ct_vk_copier_is_named(void)
{
    const char *name = ct_config()->copy_runtime;

    return *name && strcmp(name, "none") != 0 && !is_automatic();
}

void ct_vk_copier_init(struct ct_backend_device *device)
{
    struct ct_vk_copier *copier = &device->copier;
    const int mib = ct_config()->copy_runtime_mib;

    ct_mutex_init(&copier->lock, CT_RANK_BACKEND);
    pthread_cond_init(&copier->thread_ended, NULL);
    if (ct_vk_copier_is_named()) {
        copier->library = ct_config()->copy_runtime;
    } else if (is_automatic()) {
        copier->library = device->physical->copy_runtime;
        copier->context_bytes = CONTEXT_BYTES;
    }
    copier->automatic = is_automatic() || mib >= 0;
    if (copier->automatic)
        copier->wait_bytes = mib >= 0 ? (uint64_t)mib << 20 : WAIT_BYTES;
    copier->state = copier->library ? CT_VK_COPIER_WAITING : CT_VK_COPIER_NEVER;
}

static bool has_room(struct ct_backend_device *device)
{
    uint64_t free_bytes, total_bytes;

    return ct_vk_memory_info(device, &free_bytes, &total_bytes) == CUDA_SUCCESS && free_bytes / FREE_SHARE >= device->copier.context_bytes;
}

/* ---- from when on ---- */

static void publish_locked(struct ct_vk_copier *copier, struct ct_vk_copy_runtime *runtime)
{
    copier->runtime = runtime;
    copier->state = runtime ? CT_VK_COPIER_READY : CT_VK_COPIER_NEVER;
}

static void *run(void *user)
{
    struct ct_backend_device *device = user;
    struct ct_vk_copier *copier = &device->copier;
    struct ct_vk_copy_runtime *runtime = ct_vk_copy_runtime_make(device->info, copier->library, CT_LOG_INFO);

    ct_mutex_lock(&copier->lock);
    if (copier->state == CT_VK_COPIER_STARTING) {
        publish_locked(copier, runtime);
        runtime = NULL;
    }
    copier->has_thread = false;
    pthread_cond_signal(&copier->thread_ended);
    ct_mutex_unlock(&copier->lock);      /* from here on the device may be closed */
    ct_vk_copy_runtime_destroy(runtime); /* memory ran out meanwhile */
    ct_exit_gate_leave();
    return NULL;
}

static void start_locked(struct ct_backend_device *device)
{
    struct ct_vk_copier *copier = &device->copier;

    copier->state = CT_VK_COPIER_NEVER;
    if (!ct_exit_gate_arm(CT_CHILD_GOES_ON) || !ct_exit_gate_enter())
        return;
    if (!copier->automatic) {
        publish_locked(copier, ct_vk_copy_runtime_make(device->info, copier->library, CT_LOG_WARN));
    } else if ((copier->has_thread = ct_thread_start_detached(run, device) == 0)) {
        copier->state = CT_VK_COPIER_STARTING;
        return; /* the thread leaves the gate */
    }
    ct_exit_gate_leave();
}

bool ct_vk_copier_is_ready_locked(struct ct_backend_device *device, uint64_t bytes)
{
    struct ct_vk_copier *copier = &device->copier;

    if (copier->state == CT_VK_COPIER_WAITING) {
        copier->copied_bytes += bytes;
        if (copier->copied_bytes >= copier->wait_bytes) {
            copier->copied_bytes = 0; /* where there is no room now there may be some later */
            if (has_room(device))
                start_locked(device);
        }
    }
    return copier->state == CT_VK_COPIER_READY;
}

/* ---- until when ---- */

bool ct_vk_copier_reclaim(struct ct_backend_device *device)
{
    struct ct_vk_copier *copier = &device->copier;
    struct ct_vk_copy_runtime *runtime = NULL;

    if (!copier->automatic)
        return false;
    ct_mutex_lock(&copier->lock);
    if (copier->state == CT_VK_COPIER_STARTING) {
        copier->state = CT_VK_COPIER_NEVER; /* the thread destroys what it makes */
    } else if (copier->state == CT_VK_COPIER_READY && !copier->accepted && ct_exit_gate_enter()) {
        ct_vk_copy_beside_forget_all_locked(device);
        runtime = copier->runtime;
        publish_locked(copier, NULL);
    }
    ct_mutex_unlock(&copier->lock);
    if (!runtime)
        return false;
    ct_log(CT_LOG_INFO, "%s is given up: device memory ran out", copier->library);
    ct_vk_copy_runtime_destroy(runtime);
    ct_exit_gate_leave();
    return true;
}

void ct_vk_copier_finish(struct ct_backend_device *device)
{
    struct ct_vk_copier *copier = &device->copier;

    ct_mutex_lock(&copier->lock);
    while (copier->has_thread)
        ct_mutex_wait(&copier->lock, &copier->thread_ended);
    ct_mutex_unlock(&copier->lock);
    if (copier->runtime && ct_exit_gate_enter()) {
        ct_vk_copy_runtime_destroy(copier->runtime);
        ct_exit_gate_leave();
    }
    pthread_cond_destroy(&copier->thread_ended);
    ct_mutex_finish(&copier->lock);
}
