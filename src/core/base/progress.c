/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "log.h"
#include "thread.h"

#define CT_CHANNEL "progress"
#define PATIENCE_S 2

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
    progress->is_watched = atomic_load_explicit(&ct_log_threshold, memory_order_relaxed) >= CT_LOG_INFO;
    if (!progress->is_watched)
        return;
    progress->compiler = compiler;
    progress->kernel = kernel;
    progress->has_ended = false;
    clock_gettime(CLOCK_MONOTONIC, &progress->begin);
    ct_mutex_init(&progress->lock, CT_RANK_PROGRESS);
    pthread_cond_init(&progress->ended, NULL);
    if (ct_thread_start(&progress->watcher, watch, progress) == 0)
        return;
    progress->is_watched = false;
    pthread_cond_destroy(&progress->ended);
    ct_mutex_finish(&progress->lock);
}

void ct_progress_end(struct ct_progress *progress)
{
    struct timespec now;
    double seconds;

    if (!progress->is_watched)
        return;
    ct_mutex_lock(&progress->lock);
    progress->has_ended = true;
    pthread_cond_signal(&progress->ended);
    ct_mutex_unlock(&progress->lock);
    pthread_join(progress->watcher, NULL);
    pthread_cond_destroy(&progress->ended);
    ct_mutex_finish(&progress->lock);
    clock_gettime(CLOCK_MONOTONIC, &now);
    seconds = (double)(now.tv_sec - progress->begin.tv_sec) + (double)(now.tv_nsec - progress->begin.tv_nsec) * 1e-9;
    if (seconds >= PATIENCE_S)
        ct_log(CT_LOG_INFO, "%s compiled kernel %s in %.1f s", progress->compiler, progress->kernel, seconds);
}
