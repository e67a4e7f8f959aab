/* SPDX-License-Identifier: Apache-2.0 */
/* The history of the address map, for `cuttle check`: when ranges came and went, and which calls of the program did that. Nothing is kept unless
 * CUTTLE_CHECK is set. */
#ifndef CT_CORE_ADDRESS_HISTORY_H
#define CT_CORE_ADDRESS_HISTORY_H

#include "address_space.h"

#define CT_STACK_FRAMES 16

/* Return addresses, innermost first; those in this library are left out. */
struct ct_host_stack {
    void *frames[CT_STACK_FRAMES];
    unsigned n;
};

struct ct_range_life {
    uint64_t start, size_bytes;
    enum ct_range_kind kind;
    CUcontext owner;
    uint64_t born, died; /* in the order of ct_history_now; died 0: it lives */
    bool is_internal;    /* the application does not free it: it has no pointer to it, or it is the second address of an allocation */
    struct ct_host_stack birth, death;
};

void ct_host_stack_take(struct ct_host_stack *out);

/* Called by the address map, when a range can be found and when it no longer can. */
void ct_history_note_birth(const struct ct_range *range);
void ct_history_note_death(uint64_t start);
/* Sets is_internal of the range that starts there. */
void ct_history_hide(uint64_t start);
/* A number that grows with each change of the map: changes have other numbers than what happens between them. */
uint64_t ct_history_now(void);
/* The range that was in the map at a time and is nearest to the bytes; false: there was none. */
bool ct_history_nearest(uint64_t address, uint64_t size_bytes, uint64_t when, struct ct_range_life *out);
/* The range with that byte that was removed last before a time; false: none is known. */
bool ct_history_removed(uint64_t address, uint64_t when, struct ct_range_life *out);
/* Calls `visit` for the living ranges of a context (NULL: of all), in the order of their birth. The visitor may not change the map. */
void ct_history_visit_living(CUcontext owner_or_null, void (*visit)(void *user, const struct ct_range_life *life), void *user);

#endif
