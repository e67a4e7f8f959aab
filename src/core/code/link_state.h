/* SPDX-License-Identifier: Apache-2.0 */
/* Link states: what cuLinkCreate makes, several inputs take part in, and cuLinkComplete turns into an image. */
#ifndef CT_CORE_LINK_STATE_H
#define CT_CORE_LINK_STATE_H

#include "jit.h"
#include "core/base/object.h"

struct ct_link_state;

/* Bytes that take part in a link, with a name for messages (may be NULL). */
struct ct_link_input {
    CUjitInputType type;
    const void *bytes;
    size_t size;
    const char *name;
};

/* `jit` is copied: its buffers and its array of values are used until the state is destroyed. On success *out is the handle. */
CUresult ct_link_state_create(const struct ct_jit *jit, CUlinkState *out);
/* A live one, retained and for this thread alone: to be given back. INVALID_HANDLE; NOT_PERMITTED: another thread works with it. */
CUresult ct_link_state_enter(CUlinkState handle, struct ct_link_state **out);
void ct_link_state_leave(struct ct_link_state *state);
/* Of a state that was entered. The image goes with the last who uses it. INVALID_HANDLE: another thread was faster. */
CUresult ct_link_state_destroy(struct ct_link_state *state);

/* Adds the PTX of an input; a library's only where something is missing that it defines. INVALID_PTX, UNSUPPORTED_PTX_VERSION; INVALID_SOURCE:
 * a name means two things; INVALID_IMAGE: damaged, or not what its type says; NO_BINARY_FOR_GPU: machine code without PTX; NOT_SUPPORTED,
 * OUT_OF_MEMORY; INVALID_VALUE: no such type, or the state is complete. */
CUresult ct_link_state_add(struct ct_link_state *state, const struct ct_link_input *input);
/* The image lives as long as the state. NO_BINARY_FOR_GPU: something is used and defined nowhere. */
CUresult ct_link_state_complete(struct ct_link_state *state, void **out, size_t *out_size);

#endif
