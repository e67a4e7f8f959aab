/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's thread for host functions, and the timeline with which the device and that thread wait for each other. */
#ifndef CT_CORE_STREAM_WORKER_H
#define CT_CORE_STREAM_WORKER_H

#include "stream.h"

struct ct_stream_worker;

CUresult ct_stream_worker_create(struct ct_context *context, struct ct_stream_worker **out);
/* Runs the remaining functions and ends the thread. The queue's work is complete. Not called on the worker's own thread. Takes NULL. */
void ct_stream_worker_destroy(struct ct_stream_worker *worker);

enum ct_worker_order {
    CT_WORKER_AFTER_QUEUE, /* the function runs after the work recorded before it */
    CT_WORKER_AT_ONCE,     /* the function does not wait for earlier work, but later work still waits for the function */
};

/* Records the function's signal and wait into `queue`, whose stream the caller has locked, and passes the function to the thread. */
CUresult ct_stream_worker_record(struct ct_stream_worker *worker, struct ct_queue *queue, enum ct_worker_order order,
                                 ct_host_function function, void *user);

#endif
