/* SPDX-License-Identifier: Apache-2.0 */
/* Values that others keep with a context: pairs of key and value, with a function to call when the context ends. Reading takes no lock,
 * since NVIDIA's runtime reads on nearly every call. */
#ifndef CT_CORE_CONTEXT_LOCAL_H
#define CT_CORE_CONTEXT_LOCAL_H

#include "context.h"

typedef void (*ct_context_local_fn)(CUcontext context, void *key, void *value);

/* Sets the value of a key and replaces an older one. on_end may be NULL. OUT_OF_MEMORY, CONTEXT_IS_DESTROYED. */
CUresult ct_context_local_put(struct ct_context *context, void *key, void *value, ct_context_local_fn on_end);
/* Removes a value without calling on_end. NOT_FOUND. */
CUresult ct_context_local_remove(struct ct_context *context, void *key);
/* NOT_FOUND: no value, or the context is not active. */
CUresult ct_context_local_get(struct ct_context *context, const void *key, void **out);
/* Called when the context is destroyed: removes all values and calls their on_end. The caller holds no lock. */
void ct_context_local_end(struct ct_context *context);
/* Frees the list; no other thread has access to the context any more. */
void ct_context_local_finish(struct ct_context *context);

#endif
