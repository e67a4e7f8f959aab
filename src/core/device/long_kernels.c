/* SPDX-License-Identifier: Apache-2.0 */
/* A thread looks several times within the limit at which points the devices work. A kernel's time begins when it is first seen running, so
 * it gets somewhat more than the limit and never less; time that it waits for other work does not count. Without a timeout a point may be that of
 * several kernels, which were submitted together. */
#include "long_kernels.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/shutdown_guard.h"
#include "core/base/thread.h"
#include "device_loss.h"
#include "running.h"

#include <time.h>

#define CT_CHANNEL "device"
#define NAMES_BYTES 640
#define PATIENCE_S 2
#define LOOK_NS 100000000
#define NS_PER_S UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* For how long the device has been seen at the same kernel of this list. */
static uint64_t watched_ns_locked(struct ct_running *running, uint64_t now)
{
    uint64_t point = 0; /* no command has this point */

    if (!ct_running_now_locked(running, &point) || point != running->watched_point) {
        running->watched_point = point;
        running->watched_since_ns = now;
        running->is_mentioned = false;
    }
    return now - running->watched_since_ns;
}

/* Users of CPU devices wait for the compiler more often than for a kernel. */
static void mention(struct ct_device *device)
{
    char names[NAMES_BYTES];

    ct_running_describe(device, names, sizeof names);
    ct_log(CT_LOG_INFO, "%s has run for %d s on device %d (%s)%s", names, PATIENCE_S, device->ordinal, device->info.name,
           device->info.kind == CT_DEVICE_CPU ? "; if it is its first run, the driver is compiling it" : "");
}

static void give_up(struct ct_device *device)
{
    char names[NAMES_BYTES];

    ct_running_describe(device, names, sizeof names);
    ct_log(CT_LOG_ERROR, "%s has run for more than %d s (CUTTLE_KERNEL_TIMEOUT); device %d (%s) is lost for this process", names,
           ct_config()->kernel_timeout, device->ordinal, device->info.name);
    ct_device_give_up(device, CUDA_ERROR_LAUNCH_TIMEOUT);
}

static void look_at(struct ct_device *device)
{
    const uint64_t limit_ns = ct_config()->kernel_timeout > 0 ? (uint64_t)ct_config()->kernel_timeout * NS_PER_S : UINT64_MAX;
    const uint64_t now = now_ns();
    bool is_slow = false, is_late = false;

    if (atomic_load(&device->lost) != CUDA_SUCCESS)
        return;
    ct_mutex_lock(&device->running_lock);
    for (struct ct_running *running = device->running; running; running = running->next) {
        const uint64_t watched_ns = watched_ns_locked(running, now);

        is_late |= watched_ns >= limit_ns;
        if (watched_ns >= PATIENCE_S * NS_PER_S && !running->is_mentioned)
            is_slow = running->is_mentioned = true;
    }
    ct_mutex_unlock(&device->running_lock);
    if (is_slow)
        mention(device);
    if (is_late)
        give_up(device);
}

static void *watch(void *unused)
{
    const struct timespec pause = {0, LOOK_NS};

    (void)unused;
    for (;;) {
        nanosleep(&pause, NULL);
        if (!ct_shutdown_guard_enter())
            return NULL;
        for (unsigned i = 0; i < ct_process.n_devices; i++)
            look_at(&ct_process.devices[i]); /* a device that is not open has no lists */
        ct_shutdown_guard_leave();
    }
}

void ct_long_kernels_watch(void)
{
    static atomic_bool is_started;
    const bool mentions = atomic_load_explicit(&ct_log_threshold, memory_order_relaxed) >= CT_LOG_INFO;

    if ((ct_config()->kernel_timeout <= 0 && !mentions) || atomic_exchange(&is_started, true))
        return;
    if (ct_thread_start_detached(watch, NULL) != 0)
        ct_log(CT_LOG_WARN, "kernels that run for long are not noticed: no thread can be started");
}
