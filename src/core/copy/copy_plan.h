/* SPDX-License-Identifier: Apache-2.0 */
/* How a copy is carried out: a decision by facts alone. tests/unit/copy_plan_test.c has the table. */
#ifndef CT_CORE_COPY_PLAN_H
#define CT_CORE_COPY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* What one end of a copy is to the stream's device. */
enum ct_copy_end {
    CT_END_PAGEABLE, /* host memory that no device knows */
    CT_END_HOST,     /* page-locked or managed host memory */
    CT_END_DEVICE,
};

/* When the call returns ("API synchronization behavior" of the manual). */
enum ct_copy_mode {
    CT_COPY_SYNC,  /* when it is done; copies within device memory do not wait, unless the memory is `synchronous` */
    CT_COPY_ASYNC, /* when it is recorded; with pageable memory when that has been read or written */
};

/* When the source is read (CUmemcpySrcAccessOrder). */
enum ct_copy_source {
    CT_SOURCE_DEFAULT,  /* pageable memory during the call, all other memory in stream order */
    CT_SOURCE_IN_ORDER, /* in stream order */
    CT_SOURCE_AT_CALL,  /* before the call returns, and perhaps before work that was recorded earlier */
};

struct ct_copy_facts {
    enum ct_copy_end dst, src;
    enum ct_copy_mode mode;
    enum ct_copy_source source;
    uint64_t bytes;
    bool foreign;       /* one end is memory of another device than the stream's */
    bool host_reaches;  /* the host has pointers to both ends */
    bool host_is_fast;  /* the host copies this device's memory as fast as the device does (CPU devices) */
    bool synchronous;   /* one end has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    bool queue_refuses; /* the ends overlap, or do not suit an image at the other end */
    bool by_kernel;     /* the device copies faster by a kernel, and the copy suits it (copy_kernel.h) */
};

enum ct_copy_way {
    CT_WAY_BETWEEN_DEVICES, /* by way of host memory, in the contexts that have the memory; the call waits */
    CT_WAY_HOST,            /* by the host when the stream's work is done; the call waits */
    CT_WAY_DOWNLOAD,        /* to pageable memory, by staging buffers; the call waits */
    /* What follows is recorded into the stream. */
    CT_WAY_UPLOAD,          /* from pageable memory, which is read at the call, by the stream's ring */
    CT_WAY_UPLOAD_IN_ORDER, /* the same, but it is read by a host function of the stream if the stream is busy */
    CT_WAY_STAGED,          /* from device memory to device memory by the stream's ring */
    CT_WAY_KERNEL,
    CT_WAY_QUEUE,
};

struct ct_copy_plan {
    enum ct_copy_way way;
    bool settles;      /* the call first waits for the stream's work */
    bool host_if_idle; /* recorded ways: the host copies during the call if the stream has nothing to do */
    bool waits;        /* recorded ways: the call waits until the copy is done */
};

struct ct_copy_plan ct_copy_plan(const struct ct_copy_facts *facts);

#endif
