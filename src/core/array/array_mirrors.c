/* SPDX-License-Identifier: Apache-2.0 */
#include "array_mirrors.h"

#include "array_group.h"
#include "core/base/exclusive.h"
#include "core/base/log.h"
#include "core/blocks/block_decoder.h"
#include "core/copy/copy.h"
#include "core/memory/memory.h"
#include "core/stream/event.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

struct ct_array_mirrors {
    struct ct_exclusive use;
    struct ct_event *last; /* the last launch that used mirrors */
    atomic_int n;          /* copies that exist */
    uint64_t tables;       /* a struct ct_block_tables */
};

static void destroy_mirrors(struct ct_context *context, struct ct_array_mirrors *mirrors)
{
    if (mirrors->last)
        ct_event_discard(mirrors->last);
    if (mirrors->tables)
        ct_memory_free(context, mirrors->tables, CT_RANGE_MODULE);
    ct_exclusive_finish(&mirrors->use);
    free(mirrors);
}

void ct_array_mirrors_destroy(struct ct_context *context)
{
    struct ct_array_mirrors *mirrors = atomic_exchange(&context->mirrors, NULL);

    if (mirrors)
        destroy_mirrors(context, mirrors);
}

static CUresult create_mirrors(struct ct_context *context, struct ct_array_mirrors **out)
{
    struct ct_array_mirrors *mirrors = calloc(1, sizeof *mirrors);
    CUresult r;

    if (!mirrors)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for mirrors of arrays");
    ct_exclusive_init(&mirrors->use);
    if ((r = ct_event_create_internal(context, &mirrors->last)) == CUDA_SUCCESS &&
        (r = ct_memory_alloc(context, sizeof ct_block_tables, CT_ARRAY_LEVEL_ALIGN, CT_RANGE_MODULE, &mirrors->tables)) == CUDA_SUCCESS)
        r = ct_copy_to_device(context, mirrors->tables, &ct_block_tables, sizeof ct_block_tables);
    if (r == CUDA_SUCCESS)
        *out = mirrors;
    else
        destroy_mirrors(context, mirrors);
    return r;
}

CUresult ct_array_mirrors_prepare(struct ct_context *context)
{
    struct ct_array_mirrors *mirrors, *none = NULL;
    CUresult r;

    if (atomic_load(&context->mirrors))
        return CUDA_SUCCESS;
    if ((r = create_mirrors(context, &mirrors)) == CUDA_SUCCESS && !atomic_compare_exchange_strong(&context->mirrors, &none, mirrors))
        destroy_mirrors(context, mirrors);
    return r;
}

uint64_t ct_array_mirrors_tables(struct ct_context *context)
{
    return atomic_load(&context->mirrors)->tables;
}

void ct_array_mirrors_count(struct ct_context *context, int change)
{
    struct ct_array_mirrors *mirrors = atomic_load(&context->mirrors);

    if (mirrors)
        atomic_fetch_add(&mirrors->n, change);
}

bool ct_array_mirrors_exist(struct ct_context *context)
{
    const struct ct_array_mirrors *mirrors =
        atomic_load_explicit(&context->mirrors, memory_order_acquire); /* pairs with the exchange in ct_array_mirrors_prepare */

    return mirrors && atomic_load(&mirrors->n);
}

CUresult ct_array_mirrors_enter(struct ct_stream *stream)
{
    struct ct_array_mirrors *mirrors = stream->context->mirrors;
    CUresult r;

    ct_exclusive_enter(&mirrors->use);
    if ((r = ct_event_wait(mirrors->last, stream)) != CUDA_SUCCESS)
        ct_exclusive_leave(&mirrors->use);
    return r;
}

CUresult ct_array_mirrors_leave(struct ct_stream *stream)
{
    struct ct_array_mirrors *mirrors = stream->context->mirrors;
    const CUresult r = ct_event_record(mirrors->last, stream);

    ct_exclusive_leave(&mirrors->use);
    return r;
}
