/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams are captured, and which calls a capture forbids. One lock guards all captures, which are prepared once and launched often. It is
 * a file of its own because calls are refused here, below the graphs that are made of captures (capture.h).
 *
 * Except where a comment says otherwise, a forbidden call invalidates the captures that forbid it. Which calls these are, and their errors, is
 * what NVIDIA's driver does (580 on an H100, CUDA 13.0). */
#ifndef CT_CORE_CAPTURE_STATE_H
#define CT_CORE_CAPTURE_STATE_H

#include "capture_nodes.h"
#include "core/stream/stream.h"

struct ct_graph;

/* The part of a stream in a capture. */
struct ct_capture_part {
    struct ct_capture_part *next; /* in the capture */
    struct ct_capture *capture;
    struct ct_stream *stream;      /* retained: the struct, not its context */
    struct ct_capture_nodes nodes; /* on which the stream's next node depends */
};

struct ct_capture {
    struct ct_capture *next;
    uint64_t id;
    struct ct_graph *graph; /* retained */
    bool owns_graph;        /* the application has not got the graph yet */
    bool is_invalid;
    CUstreamCaptureMode mode;
    pthread_t thread;
    struct ct_capture_part *parts;              /* the last one is that of the origin */
    void (*finish)(struct ct_capture *capture); /* frees a capture that has ended; the caller holds no lock */
};

void ct_captures_lock(void);
void ct_captures_unlock(void);
extern struct ct_capture *ct_captures; /* all that have not ended */
extern atomic_uint ct_capture_count;   /* the length of that list */

/* Whether any stream of the process is captured. Needs no lock; a call in another thread at the same time may or may not be seen. */
static inline bool ct_captures_exist(void)
{
    return atomic_load_explicit(&ct_capture_count, memory_order_relaxed) != 0;
}
/* Whether the stream is in a capture, which may be invalid. Needs no lock. */
bool ct_stream_is_captured(const struct ct_stream *stream);
/* With the lock held: the stream's part, or NULL. */
struct ct_capture_part *ct_capture_part_locked(const struct ct_stream *stream);
/* ILLEGAL_STATE: NULL; STREAM_CAPTURE_INVALIDATED. */
CUresult ct_capture_check_locked(const struct ct_capture_part *part_or_null);
/* Takes the capture out of the list, and its streams out of the capture. */
void ct_capture_end_locked(struct ct_capture *capture);
/* Ends the captures that have streams of a context, which is being destroyed. */
void ct_captures_end_in_context(const struct ct_context *context);
/* After an error of a call in a captured stream; otherwise a no-op. */
void ct_capture_invalidate(struct ct_stream *stream);

/* Sets the calling thread's mode, which decides for ct_capture_check_unsafe, and returns the one before. */
CUstreamCaptureMode ct_capture_exchange_mode(CUstreamCaptureMode mode);

/* ---- forbidden calls ---- */

/* For calls that need work to be complete or may wait for it, and so may be unsafe while streams are captured. STREAM_CAPTURE_UNSUPPORTED: the
 * calling thread's mode forbids them: GLOBAL if any thread has begun a capture in that mode, and THREAD_LOCAL, too, if the calling thread has
 * begun a capture that is not RELAXED. */
CUresult ct_capture_check_unsafe(const char *call);
/* STREAM_CAPTURE_UNSUPPORTED: the stream is captured. */
CUresult ct_capture_check_stream(struct ct_stream *stream, const char *call);
/* As ct_stream_lookup, with that error. */
CUresult ct_stream_lookup_uncaptured(CUstream handle, const char *call, struct ct_stream **out);
/* STREAM_CAPTURE_UNSUPPORTED: a stream of the context is captured. */
CUresult ct_capture_check_context(const struct ct_context *context, const char *call);
/* STREAM_CAPTURE_IMPLICIT: the stream is the legacy one, and would wait for a captured stream. */
CUresult ct_capture_check_implicit(const struct ct_stream *stream);
/* The same without an effect on the capture, for queries. */
CUresult ct_capture_check_implicit_query(const struct ct_stream *stream);
/* For calls that ask whether a stream's work is complete: all errors of the above except that of the context. */
CUresult ct_capture_check_wait(struct ct_stream *stream, const char *call);

#endif
