/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "log.h"
#include "thread.h"

#include <malloc.h>
#include <time.h>

#define CT_CHANNEL "progress"
#define PATIENCE_S 2

/* release and acquire: what the observer uses was made before */
static _Atomic(ct_progress_observer) observer;

void ct_progress_observe(ct_progress_observer observer_or_null)
{
    atomic_store_explicit(&observer, observer_or_null, memory_order_release);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *watch(void *argument)
{
    struct ct_progress *progress = argument;
    struct timespec deadline;
    bool is_slow;

    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    ct_mutex_lock(&progress->lock);
    while (!progress->has_ended && ct_mutex_wait_until(&progress->lock, &progress->ended, &deadline))
        ;
    is_slow = !progress->has_ended;
    ct_mutex_unlock(&progress->lock);
    if (is_slow)
        ct_log(CT_LOG_INFO, "%s has been compiling kernel %s for %d s", progress->compiler, progress->kernel, PATIENCE_S);
    return NULL;
}

void ct_progress_begin(struct ct_progress *progress, const char *compiler, const char *kernel)
{
    progress->compiler = compiler;
    progress->kernel = kernel;
    progress->begin_ns = now_ns();
    progress->is_watched = atomic_load_explicit(&ct_log_threshold, memory_order_relaxed) >= CT_LOG_INFO;
    if (!progress->is_watched)
        return;
    progress->has_ended = false;
    ct_mutex_init(&progress->lock, CT_RANK_PROGRESS);
    pthread_cond_init(&progress->ended, NULL);
    if (ct_thread_start(&progress->watcher, watch, progress) == 0)
        return;
    progress->is_watched = false;
    pthread_cond_destroy(&progress->ended);
    ct_mutex_finish(&progress->lock);
}

/* Returns memory to the system that a long compilation has freed: malloc keeps it otherwise, gigabytes after a few large kernels of PyTorch on
 * lavapipe. */
static void trim_heap(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void ct_progress_end(struct ct_progress *progress)
{
    const ct_progress_observer function = atomic_load_explicit(&observer, memory_order_acquire);
    const uint64_t end_ns = now_ns();
    const double seconds = (double)(end_ns - progress->begin_ns) * 1e-9;

    if (function)
        function(progress->compiler, progress->kernel, progress->begin_ns, end_ns);
    if (seconds >= PATIENCE_S)
        trim_heap();
    if (!progress->is_watched)
        return;
    ct_mutex_lock(&progress->lock);
    progress->has_ended = true;
    pthread_cond_signal(&progress->ended);
    ct_mutex_unlock(&progress->lock);
    pthread_join(progress->watcher, NULL);
    pthread_cond_destroy(&progress->ended);
    ct_mutex_finish(&progress->lock);
    if (seconds >= PATIENCE_S)
        ct_log(CT_LOG_INFO, "%s compiled kernel %s in %.1f s", progress->compiler, progress->kernel, seconds);
}
