/* SPDX-License-Identifier: Apache-2.0 */
/* A thread looks several times within the limit at which points the devices work. A kernel's time begins when it is first seen running, so
 * it gets somewhat more than the limit and never less; time that it waits for other work does not count. */
#include "kernel_timeout.h"

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
#define LOOK_NS 100000000
#define NS_PER_S UINT64_C(1000000000)

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Whether a kernel of this list has run for too long. */
static bool is_late_locked(struct ct_running *running, uint64_t now, uint64_t limit_ns)
{
    uint64_t point = 0; /* no command has this point */

    if (!ct_running_now_locked(running, &point) || point != running->watched_point) {
        running->watched_point = point;
        running->watched_since_ns = now;
        return false;
    }
    return now - running->watched_since_ns >= limit_ns;
}

static void look_at(struct ct_device *device, uint64_t limit_ns)
{
    char names[NAMES_BYTES];
    const uint64_t now = now_ns();
    bool is_late = false;

    if (atomic_load(&device->lost) != CUDA_SUCCESS)
        return;
    ct_mutex_lock(&device->running_lock);
    for (struct ct_running *running = device->running; running; running = running->next)
        is_late |= is_late_locked(running, now, limit_ns);
    ct_mutex_unlock(&device->running_lock);
    if (!is_late)
        return;
    ct_running_describe(device, names, sizeof names);
    ct_log(CT_LOG_ERROR, "%s has run for more than %d s (CUTTLE_KERNEL_TIMEOUT); device %d (%s) is lost for this process", names,
           ct_config()->kernel_timeout, device->ordinal, device->info.name);
    ct_device_give_up(device, CUDA_ERROR_LAUNCH_TIMEOUT);
}

static void *watch(void *unused)
{
    const uint64_t limit_ns = (uint64_t)ct_config()->kernel_timeout * NS_PER_S;
    const struct timespec pause = {0, LOOK_NS};

    (void)unused;
    for (;;) {
        nanosleep(&pause, NULL);
        if (!ct_shutdown_guard_enter())
            return NULL;
        for (unsigned i = 0; i < ct_process.n_devices; i++)
            look_at(&ct_process.devices[i], limit_ns); /* a device that is not open has no lists */
        ct_shutdown_guard_leave();
    }
}

void ct_kernel_timeout_start(void)
{
    static atomic_bool is_started;

    if (ct_config()->kernel_timeout <= 0 || atomic_exchange(&is_started, true))
        return;
    if (ct_thread_start_detached(watch, NULL) != 0)
        ct_log(CT_LOG_WARN, "CUTTLE_KERNEL_TIMEOUT has no effect: no thread can be started");
}
