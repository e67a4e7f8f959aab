/* SPDX-License-Identifier: Apache-2.0 */
/* What a context has for arrays with copies that launches bring up to date: mirrors (array_mirror.h), decoded arrays (array_decoded.h)
 * and images (array_tiled.h). */
#ifndef CT_CORE_ARRAY_MIRRORS_H
#define CT_CORE_ARRAY_MIRRORS_H

#include "core/stream/stream.h"

/* Creates it unless it exists. OUT_OF_MEMORY. */
CUresult ct_array_mirrors_prepare(struct ct_context *context);
/* Adds to the number of copies that exist; a no-op before the first one. */
void ct_array_mirrors_count(struct ct_context *context, int change);
bool ct_array_mirrors_exist(struct ct_context *context);
/* The address of a struct ct_block_tables, after ct_array_mirrors_prepare. */
uint64_t ct_array_mirrors_tables(struct ct_context *context);

/* Between these no other thread enters, and the stream's commands follow those of the last launch that used the copies. The caller holds no lock. */
CUresult ct_array_mirrors_enter(struct ct_stream *stream);
CUresult ct_array_mirrors_leave(struct ct_stream *stream);

void ct_array_mirrors_destroy(struct ct_context *context); /* with the context; takes one that has none */

#endif
