/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the copies that kernels read instead of arrays up to date: for a launch of a kernel that may access textures, if the context has such copies
 * (ct_array_mirrors_exist). Such launches run one after another. */
#ifndef CT_CORE_ARRAY_REFRESH_H
#define CT_CORE_ARRAY_REFRESH_H

#include "core/stream/stream.h"

/* Before such a launch, and after it if begin succeeded. The caller holds no lock. */
CUresult ct_array_refresh_begin(struct ct_stream *stream);
CUresult ct_array_refresh_end(struct ct_stream *stream);

#endif
