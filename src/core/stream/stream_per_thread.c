/* SPDX-License-Identifier: Apache-2.0 */
/* Per-thread default streams (CU_STREAM_PER_THREAD): each thread has one for each context in which it used this stream, created at the
 * first use. When the thread ends they are marked as destroyed, and so freed when their work is complete. */
#include "stream.h"

#include "core/base/log.h"

#include <pthread.h>
#include <stdlib.h>

#define CT_CHANNEL "stream"

struct own_stream {
    struct own_stream *next;
    struct ct_stream *stream; /* retained */
};

static _Thread_local struct own_stream *own_streams;

static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key; /* set in threads that have streams; its destructor drops them */
static bool exit_key_usable;

static void drop(struct own_stream *own)
{
    struct ct_stream *stream = own->stream;
    struct ct_context *context = stream->context;
    bool alive;

    ct_object_retain(&context->object);
    alive = ct_context_use(context) == CUDA_SUCCESS; /* else the context's destruction finishes the stream */
    if (alive && stream->queue)
        ct_stream_mark_destroyed(stream);
    ct_object_release(&stream->object);
    if (alive)
        ct_context_release(context);
    ct_object_release(&context->object);
    free(own);
}

static void thread_ends(void *user)
{
    (void)user;
    while (own_streams) {
        struct own_stream *own = own_streams;

        own_streams = own->next;
        drop(own);
    }
}

static void make_exit_key(void)
{
    exit_key_usable = pthread_key_create(&exit_key, thread_ends) == 0;
}

/* The library may be unloaded before its threads end. */
__attribute__((destructor)) static void delete_exit_key(void)
{
    if (exit_key_usable)
        pthread_key_delete(exit_key);
}

/* The thread's stream of `context` if it has a queue. Streams of destroyed contexts are dropped along the way. The queue may be read here
 * without a lock, since a stream is finished only while its context has no users. */
static struct ct_stream *find_or_null(const struct ct_context *context)
{
    struct own_stream **link = &own_streams;

    while (*link) {
        struct own_stream *own = *link;
        bool ours = own->stream->context == context;

        if (ours && own->stream->queue)
            return own->stream;
        if (ours || !atomic_load_explicit(&own->stream->context->active, memory_order_relaxed)) { /* stale: next time */
            *link = own->next;
            drop(own);
        } else {
            link = &own->next;
        }
    }
    return NULL;
}

CUresult ct_stream_of_thread(struct ct_context *context, struct ct_stream **out)
{
    struct ct_stream *stream = find_or_null(context);
    struct own_stream *own;
    CUresult r;

    if (stream) {
        *out = stream;
        return CUDA_SUCCESS;
    }
    pthread_once(&exit_once, make_exit_key);
    if (!exit_key_usable || pthread_setspecific(exit_key, &own_streams) != 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "thread-specific key for per-thread default streams");
    own = malloc(sizeof *own);
    if (!own)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "per-thread default stream");
    r = ct_stream_create_per_thread(context, &own->stream);
    if (r != CUDA_SUCCESS) {
        free(own);
        return r;
    }
    own->next = own_streams;
    own_streams = own;
    *out = own->stream;
    return CUDA_SUCCESS;
}
