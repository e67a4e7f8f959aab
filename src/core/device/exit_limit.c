/* SPDX-License-Identifier: Apache-2.0 */
/* Intel's OpenCL runtime waits in its exit handlers for kernels, so the process would never end if one of them does not. If there is such a
 * kernel when the process exits, a thread lets the exit handlers run for a limited time, and then ends the process. */
#include "exit_limit.h"

#include "context.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/thread.h"
#include "running.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "process"
#define NAMES_BYTES 640
#define LOST_S 1    /* nothing will end any more */
#define RUNNING_S 5 /* a kernel may take long and end all the same */

static struct {
    int status;
    time_t seconds;
    char names[NAMES_BYTES];
    atomic_bool has_begun; /* relaxed: it publishes nothing */
} end;

static void *end_process(void *unused)
{
    const struct timespec time = {end.seconds, 0};

    (void)unused;
    nanosleep(&time, NULL);
    ct_log(CT_LOG_WARN, "the process ends without waiting for %s", end.names);
    fflush(NULL);
    _exit(end.status);
}

/* How long the handlers of a device's driver may take; 0: as long as they want, since no kernel is running. */
static time_t limit_of(struct ct_device *device)
{
    if (atomic_load(&device->lost) != CUDA_SUCCESS)
        return LOST_S;
    return ct_running_any(device) ? RUNNING_S : 0;
}

static void at_exit(int status, void *unused)
{
    (void)unused;
    if (ct_process_is_child() || end.seconds)
        return;
    for (unsigned i = 0; i < ct_process.n_devices && !end.seconds; i++) {
        struct ct_device *device = &ct_process.devices[i];

        if (device->opened && (end.seconds = limit_of(device)))
            ct_running_describe(device, end.names, sizeof end.names);
    }
    end.status = status;
    if (end.seconds && ct_thread_start_detached(end_process, NULL) == 0)
        atomic_store_explicit(&end.has_begun, true, memory_order_relaxed);
}

bool ct_exit_is_limited(void)
{
    return atomic_load_explicit(&end.has_begun, memory_order_relaxed);
}

void ct_exit_limit_arm(void)
{
    if (on_exit(at_exit, NULL) != 0)
        ct_log(CT_LOG_WARN, "the exit handler cannot be registered: out of memory");
}
