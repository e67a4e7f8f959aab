/* SPDX-License-Identifier: Apache-2.0 */
#include "launch_mark.h"

CUresult ct_launch_mark_record(struct ct_event **mark, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    if (*mark && ct_event_context(*mark) != stream->context) {
        ct_event_discard(*mark);
        *mark = NULL;
    }
    if (!*mark)
        r = ct_event_create_internal(stream->context, mark);
    return r == CUDA_SUCCESS ? ct_event_record(*mark, stream) : r;
}

CUresult ct_launch_mark_follow(struct ct_event *mark, struct ct_stream *stream)
{
    struct ct_context *context;
    CUresult r;

    if (!mark || ct_context_use(context = ct_event_context(mark)) != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    r = ct_event_wait(mark, stream);
    ct_context_release(context);
    return r;
}
