/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of copies (Driver API: "API synchronization behavior"; Memory Management, cuMemcpyBatchAsync).
 *
 * On a CPU device the host copies as fast as the device. Pageable memory is read during the call in any case, and passing a small copy to
 * the device's thread takes as long as executing it. */
#include "copy_plan.h"

#define ASYNC_BY_HOST_BYTES ((uint64_t)4 << 20)  /* maximum that an asynchronous call itself copies if the source is not pageable */
#define READ_IN_ORDER_BYTES ((uint64_t)64 << 20) /* maximum that the ring holds for a host function; for more the call waits */

/* Whether the call returns only when the copy is complete. */
static bool waits(const struct ct_copy_facts *f)
{
    if (f->dst == CT_END_PAGEABLE || (f->source == CT_SOURCE_AT_CALL && f->src != CT_END_PAGEABLE))
        return true;
    return f->mode == CT_COPY_SYNC && (f->synchronous || f->dst != CT_END_DEVICE || f->src != CT_END_DEVICE);
}

static bool host_copies(const struct ct_copy_facts *f)
{
    return f->host_reaches && (f->host_is_fast || (f->dst == CT_END_PAGEABLE && f->src == CT_END_PAGEABLE));
}

static enum ct_copy_method choose_method(const struct ct_copy_facts *f, bool by_host, bool must_wait)
{
    if (f->foreign)
        return CT_COPY_METHOD_BETWEEN_DEVICES;
    if (by_host && must_wait)
        return CT_COPY_METHOD_HOST;
    if (f->dst == CT_END_PAGEABLE)
        return CT_COPY_METHOD_DOWNLOAD;
    if (f->src == CT_END_PAGEABLE)
        return f->source == CT_SOURCE_IN_ORDER && f->bytes <= READ_IN_ORDER_BYTES ? CT_COPY_METHOD_UPLOAD_IN_ORDER : CT_COPY_METHOD_UPLOAD;
    if (f->queue_refuses)
        return CT_COPY_METHOD_STAGED;
    return f->by_kernel ? CT_COPY_METHOD_KERNEL : CT_COPY_METHOD_QUEUE;
}

struct ct_copy_plan ct_copy_plan(const struct ct_copy_facts *f)
{
    const bool is_pageable = f->src == CT_END_PAGEABLE, by_host = host_copies(f), must_wait = waits(f);

    return (struct ct_copy_plan){
        .method = choose_method(f, by_host, must_wait),
        .drains = f->source == CT_SOURCE_IN_ORDER && is_pageable && f->bytes > READ_IN_ORDER_BYTES,
        .host_if_idle = by_host && (is_pageable || f->bytes <= ASYNC_BY_HOST_BYTES),
        .waits = must_wait,
    };
}
