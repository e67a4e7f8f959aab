/* SPDX-License-Identifier: Apache-2.0 */
/* How a copy is executed: a pure function of its facts. tests/unit/copy_plan_test.c has the table. */
#ifndef CT_CORE_COPY_PLAN_H
#define CT_CORE_COPY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* The kind of one end of a copy, from the view of the stream's device. */
enum ct_copy_end {
    CT_END_PAGEABLE, /* ordinary host memory, unknown to all devices */
    CT_END_HOST,     /* page-locked or managed host memory */
    CT_END_DEVICE,
};

/* When the call returns ("API synchronization behavior" of the manual). */
enum ct_copy_mode {
    CT_COPY_SYNC,  /* when the copy is complete; copies within device memory do not wait, unless the memory is `synchronous` */
    CT_COPY_ASYNC, /* when it is recorded; with pageable memory when that has been read or written */
};

/* When the source is read (CUmemcpySrcAccessOrder). */
enum ct_copy_source {
    CT_SOURCE_DEFAULT,  /* pageable memory during the call, other memory in stream order */
    CT_SOURCE_IN_ORDER, /* in stream order */
    CT_SOURCE_AT_CALL,  /* before the call returns, possibly before earlier work has run */
};

struct ct_copy_facts {
    enum ct_copy_end dst, src;
    enum ct_copy_mode mode;
    enum ct_copy_source source;
    uint64_t bytes;
    bool foreign;       /* one end is memory of another device than the stream's */
    bool host_reaches;  /* the host can access both ends */
    bool host_is_fast;  /* the host copies this device's memory as fast as the device does (CPU devices) */
    bool synchronous;   /* one end has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    bool queue_refuses; /* the ends overlap, or do not meet the requirements of an image at the other end */
    bool by_kernel;     /* the copy kernel should execute the copy (copy_kernel.h) */
};

enum ct_copy_method {
    CT_COPY_METHOD_BETWEEN_DEVICES, /* through host memory, in the contexts that own the memory; the call waits */
    CT_COPY_METHOD_HOST,            /* by the host after the stream's work; the call waits */
    CT_COPY_METHOD_DOWNLOAD,        /* to pageable memory, through staging buffers; the call waits */
    /* The following methods are recorded into the stream. */
    CT_COPY_METHOD_UPLOAD,          /* from pageable memory, which is read during the call, through the stream's ring */
    CT_COPY_METHOD_UPLOAD_IN_ORDER, /* the same, but if the stream is busy a host function of the stream reads the memory */
    CT_COPY_METHOD_STAGED,          /* from device memory to device memory through the stream's ring */
    CT_COPY_METHOD_KERNEL,
    CT_COPY_METHOD_QUEUE,
};

struct ct_copy_plan {
    enum ct_copy_method method;
    bool drains;       /* the call first waits for the stream's work */
    bool host_if_idle; /* recorded methods: the host copies during the call if the stream is idle */
    bool waits;        /* recorded methods: the call waits until the copy is complete */
};

struct ct_copy_plan ct_copy_plan(const struct ct_copy_facts *facts);

#endif
