/* SPDX-License-Identifier: Apache-2.0 */
/* A semaphore is a timeline of the mock. A binary semaphore counts its signals and its waits; each wait is for a signal of its own. */
#include "mock_semaphores.h"

#include "mock_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The semaphore of a file; all imports of the file share it. */
struct shared {
    struct shared *next;
    ino_t file;
    struct ct_timeline *line;
    bool timeline;
    uint64_t signals, waits; /* recorded ones of a binary semaphore */
};

struct ct_semaphore {
    struct shared *shared;
    int fd;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shared *all;
static unsigned imported;

static struct shared *find_locked(int fd)
{
    struct stat file;

    if (fstat(fd, &file) < 0)
        return NULL;
    for (struct shared *shared = all; shared; shared = shared->next)
        if (shared->file == file.st_ino)
            return shared;
    return NULL;
}

static struct shared *find(int fd)
{
    struct shared *shared;

    pthread_mutex_lock(&mutex);
    shared = find_locked(fd);
    pthread_mutex_unlock(&mutex);
    return shared;
}

/* ---- the other API ---- */

int mock_semaphore_make(void)
{
    struct shared *shared = calloc(1, sizeof *shared);
    int fd = memfd_create("semaphore", MFD_CLOEXEC);
    struct stat file;

    if (!shared || fstat(fd, &file) < 0 || ct_backend_vk.timelines->create(NULL, &shared->line) != CUDA_SUCCESS)
        abort();
    shared->file = file.st_ino;
    pthread_mutex_lock(&mutex);
    shared->next = all;
    all = shared;
    pthread_mutex_unlock(&mutex);
    return fd;
}

static uint64_t next_signal(struct shared *shared, uint64_t value)
{
    pthread_mutex_lock(&mutex);
    if (!shared->timeline)
        value = ++shared->signals;
    pthread_mutex_unlock(&mutex);
    return value;
}

void mock_semaphore_signal(int fd, uint64_t value)
{
    struct shared *shared = find(fd);

    ct_backend_vk.timelines->signal(shared->line, next_signal(shared, value));
}

uint64_t mock_semaphore_value(int fd)
{
    return mock_timeline_value(find(fd)->line);
}

unsigned mock_semaphores_imported(void)
{
    unsigned count;

    pthread_mutex_lock(&mutex);
    count = imported;
    pthread_mutex_unlock(&mutex);
    return count;
}

void mock_semaphores_forget(void)
{
    while (all) {
        struct shared *shared = all;

        all = shared->next;
        ct_backend_vk.timelines->destroy(shared->line);
        free(shared);
    }
}

/* ---- the backend ---- */

CUresult mock_semaphore_import(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out)
{
    struct ct_semaphore *semaphore;
    struct shared *shared = find(fd);

    (void)device;
    if (!shared)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (!(semaphore = malloc(sizeof *semaphore)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&mutex);
    shared->timeline = timeline;
    imported++;
    pthread_mutex_unlock(&mutex);
    *semaphore = (struct ct_semaphore){shared, fd};
    *out = semaphore;
    return CUDA_SUCCESS;
}

void mock_semaphore_destroy(struct ct_semaphore *semaphore)
{
    if (!semaphore)
        return;
    close(semaphore->fd);
    free(semaphore);
    pthread_mutex_lock(&mutex);
    imported--;
    pthread_mutex_unlock(&mutex);
}

CUresult mock_semaphore_await(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns)
{
    return ct_backend_vk.timelines->await(semaphore->shared->line, value, timeout_ns);
}

CUresult mock_queue_signal_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value)
{
    return ct_backend_vk.queues->signal(queue, semaphore->shared->line, next_signal(semaphore->shared, value));
}

CUresult mock_queue_wait_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value)
{
    struct shared *shared = semaphore->shared;

    pthread_mutex_lock(&mutex);
    if (!shared->timeline)
        value = ++shared->waits;
    pthread_mutex_unlock(&mutex);
    return ct_backend_vk.queues->wait(queue, shared->line, value);
}
