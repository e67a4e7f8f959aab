/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills by pointers and handles of arrays, as in the API. */
#ifndef CT_CORE_COPY_CALL_H
#define CT_CORE_COPY_CALL_H

#include "core/array/copy_request.h"
#include "core/copy/memset.h"

/* Resolves the locations of a request that is not empty, and enqueues the copy. Errors of ct_copy_request_locate and ct_copy_execute. */
CUresult ct_copy_call(struct ct_stream *stream, const struct ct_copy_request *request, enum ct_copy_mode mode);
/* Resolves the memory and enqueues the fill. Errors of ct_fill_init and ct_fill_execute. */
CUresult ct_fill_call(struct ct_stream *stream, const struct ct_fill_request *request);

#endif
