/* SPDX-License-Identifier: Apache-2.0 */
/* Link states: cuLinkCreate creates one, inputs are added to it, and cuLinkComplete links them to an image. */
#ifndef CT_CORE_LINK_STATE_H
#define CT_CORE_LINK_STATE_H

#include "jit.h"
#include "core/base/object.h"

struct ct_link_state;

/* An input of a link, with a name for messages (may be NULL). */
struct ct_link_input {
    CUjitInputType type;
    const void *bytes;
    size_t size;
    const char *name;
};

/* `jit` is copied: its buffers and its array of values are used until the state is destroyed. On success *out is the handle. */
CUresult ct_link_state_create(const struct ct_jit *jit, CUlinkState *out);
/* Returns a live state, retained and locked for this thread; ct_link_state_leave releases it. INVALID_HANDLE; NOT_PERMITTED: another
 * thread uses it. */
CUresult ct_link_state_enter(CUlinkState handle, struct ct_link_state **out);
void ct_link_state_leave(struct ct_link_state *state);
/* For a state that was entered. The image is freed with the last reference. INVALID_HANDLE: another thread has destroyed it. */
CUresult ct_link_state_destroy(struct ct_link_state *state);

/* Adds the PTX of an input; members of a library only if they define a symbol that is missing. INVALID_PTX, UNSUPPORTED_PTX_VERSION;
 * INVALID_SOURCE: a name is defined twice; INVALID_IMAGE: the input is damaged, or not of its type; NO_BINARY_FOR_GPU: machine code
 * without PTX; NOT_SUPPORTED, OUT_OF_MEMORY; INVALID_VALUE: the type does not exist, or the state is complete. */
CUresult ct_link_state_add(struct ct_link_state *state, const struct ct_link_input *input);
/* The image lives as long as the state. NO_BINARY_FOR_GPU: a symbol is used and not defined. */
CUresult ct_link_state_complete(struct ct_link_state *state, void **out, size_t *out_size);

#endif
