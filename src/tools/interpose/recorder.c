/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock; /* guards what follows; a leaf, under which no driver is called */
    bool is_open, has_failed;
    int file;
    uint64_t size_bytes;
    struct trace_file *header; /* shared with the file */
    pthread_key_t chunk_key;   /* unmaps the chunk of a thread that ends */
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static _Thread_local struct trace_chunk *thread_chunk;

uint64_t recorder_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of this thread. Calls in what is destroyed after it get a new one. */
static void unmap_chunk(void *chunk)
{
    munmap(chunk, TRACE_CHUNK_BYTES);
    thread_chunk = NULL;
}

/* In a child process, which gets a file of its own: what it inherited belongs to its parent. Only the thread that forked exists. */
static void after_fork(void)
{
    if (thread_chunk)
        unmap_chunk(thread_chunk);
    pthread_mutex_init(&recorder.lock, NULL);
    pthread_setspecific(recorder.chunk_key, NULL);
    if (recorder.header)
        munmap(recorder.header, TRACE_PAGE_BYTES);
    if (recorder.file >= 0)
        close(recorder.file);
    recorder.header = NULL;
    recorder.file = -1;
    recorder.is_open = recorder.has_failed = false;
    recorder.size_bytes = 0;
}

/* Maps the next part of the file. Its blocks are allocated first: a write to a mapping of a full disk would raise SIGBUS. */
static void *map_next_locked(size_t size_bytes)
{
    void *mapping;

    if (recorder.size_bytes + size_bytes > TRACE_FILE_BYTES_MAX ||
        posix_fallocate(recorder.file, (off_t)recorder.size_bytes, (off_t)size_bytes) != 0)
        return NULL;
    mapping = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, recorder.file, (off_t)recorder.size_bytes);
    if (mapping == MAP_FAILED)
        return NULL;
    recorder.size_bytes += size_bytes;
    return mapping;
}

static bool open_file_locked(void)
{
    static bool is_registered;
    const char *folder = getenv(TRACE_FOLDER_VARIABLE);
    char path[4096];
    ssize_t length;

    recorder.is_open = true;
    if (!folder || (!is_registered && pthread_key_create(&recorder.chunk_key, unmap_chunk) != 0))
        return false;
    if (!is_registered)
        pthread_atfork(NULL, NULL, after_fork);
    is_registered = true;
    /* A process may execute another program, which then has the same number: the time makes another name. */
    snprintf(path, sizeof path, "%s/%d-%llx", folder, (int)getpid(), (unsigned long long)recorder_now_ns());
    recorder.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (recorder.file < 0 || !(recorder.header = map_next_locked(TRACE_PAGE_BYTES)))
        return false;
    recorder.header->process = (uint32_t)getpid();
    length = readlink("/proc/self/exe", recorder.header->program, sizeof recorder.header->program - 1);
    recorder.header->program[length < 0 ? 0 : length] = 0;
    recorder.header->magic = TRACE_MAGIC;
    return true;
}

/* Gives the thread a new chunk. */
static bool take_chunk(void)
{
    struct trace_chunk *chunk = NULL;

    pthread_mutex_lock(&recorder.lock);
    if (!recorder.is_open)
        recorder.has_failed = !open_file_locked();
    if (!recorder.has_failed && !(chunk = map_next_locked(TRACE_CHUNK_BYTES)))
        recorder.has_failed = true;
    if (!chunk && recorder.header)
        atomic_fetch_add_explicit(&recorder.header->lost, 1, memory_order_relaxed); /* a count only */
    pthread_mutex_unlock(&recorder.lock);
    if (!chunk)
        return false;
    if (thread_chunk)
        unmap_chunk(thread_chunk);
    chunk->thread = (uint32_t)syscall(SYS_gettid);
    pthread_getname_np(pthread_self(), chunk->thread_name, sizeof chunk->thread_name);
    thread_chunk = chunk;
    pthread_setspecific(recorder.chunk_key, chunk);
    return true;
}

struct trace_record *recorder_open(enum trace_kind kind, unsigned symbol)
{
    uint32_t used = thread_chunk ? atomic_load_explicit(&thread_chunk->used, memory_order_relaxed) : 0; /* this thread wrote it */
    struct trace_record *record;

    if (!thread_chunk || sizeof *thread_chunk + used + TRACE_RECORD_BYTES_MAX > TRACE_CHUNK_BYTES) {
        if (!take_chunk())
            return NULL;
        used = 0;
    }
    record = (struct trace_record *)((char *)(thread_chunk + 1) + used);
    *record = (struct trace_record){.size_bytes = sizeof *record, .kind = (uint16_t)kind, .symbol = (uint16_t)symbol};
    return record;
}

void recorder_field(struct trace_record *record, enum trace_field_kind kind, unsigned argument, const void *bytes, size_t size_bytes)
{
    struct trace_field *field = (struct trace_field *)((char *)record + record->size_bytes);
    const size_t room = TRACE_RECORD_BYTES_MAX - record->size_bytes;

    if (room <= sizeof *field)
        return;
    if (size_bytes > room - sizeof *field)
        size_bytes = room - sizeof *field;
    *field = (struct trace_field){(uint16_t)kind, (uint16_t)argument, (uint32_t)size_bytes};
    memcpy(field + 1, bytes, size_bytes);
    record->size_bytes += (uint32_t)((sizeof *field + size_bytes + 7) & ~(size_t)7);
}

void recorder_close(struct trace_record *record)
{
    const uint32_t used = (uint32_t)((char *)record - (char *)(thread_chunk + 1)) + record->size_bytes;

    /* release: pairs with the acquire of a reader while the process still runs */
    atomic_store_explicit(&thread_chunk->used, used, memory_order_release);
}

void recorder_count_unmeasured(void)
{
    pthread_mutex_lock(&recorder.lock);
    if (recorder.header)
        atomic_fetch_add_explicit(&recorder.header->unmeasured, 1, memory_order_relaxed); /* a count only */
    pthread_mutex_unlock(&recorder.lock);
}
