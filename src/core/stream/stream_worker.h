/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's thread for host functions, and the timeline by which device and thread wait for each other. */
#ifndef CT_CORE_STREAM_WORKER_H
#define CT_CORE_STREAM_WORKER_H

#include "stream.h"

struct ct_stream_worker;

CUresult ct_stream_worker_create(struct ct_context *context, struct ct_stream_worker **out);
/* Runs what is left, ends the thread. The queue's work is complete. Not from the worker's own thread. Takes NULL. */
void ct_stream_worker_destroy(struct ct_stream_worker *worker);

enum ct_worker_order {
    CT_WORKER_AFTER_QUEUE, /* the function waits for what was recorded before */
    CT_WORKER_AT_ONCE,     /* it does not; what is recorded later waits for it all the same */
};

/* Records into `queue`, whose stream the caller has locked, that the function runs in its place, and hands it to the thread. */
CUresult ct_stream_worker_record(struct ct_stream_worker *worker, struct ct_queue *queue, enum ct_worker_order order,
                                 ct_host_function function, void *user);

#endif
