/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of copying that are recorded into a stream, between begin and end. Both ends are memory of the stream's device, except the source
 * of an upload. */
#ifndef CT_CORE_COPY_RECORD_H
#define CT_CORE_COPY_RECORD_H

#include "copy.h"

/* CT_COPY_METHOD_QUEUE */
CUresult ct_copy_record_direct_locked(struct ct_stream *stream, const struct ct_copy *copy);
/* CT_COPY_METHOD_UPLOAD: the source has been read on return. */
CUresult ct_copy_record_upload_locked(struct ct_stream *stream, const struct ct_copy *copy);
/* CT_COPY_METHOD_UPLOAD_IN_ORDER */
CUresult ct_copy_record_in_order_locked(struct ct_stream *stream, const struct ct_copy *copy);
/* CT_COPY_METHOD_STAGED: the ends may overlap. */
CUresult ct_copy_record_staged_locked(struct ct_stream *stream, const struct ct_copy *copy);

#endif
