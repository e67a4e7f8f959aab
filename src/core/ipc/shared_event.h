/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an event that several processes share: which record is the last, and which are complete. */
#ifndef CT_CORE_SHARED_EVENT_H
#define CT_CORE_SHARED_EVENT_H

#include "ipc.h"

#include <stdbool.h>

struct ct_shared_event;

/* Creates an event with one reference, which the caller owns. OUT_OF_MEMORY. */
CUresult ct_shared_event_create(struct ct_shared_event **out);
/* Opens the event of another process. Errors of ct_ipc_name_open; MAP_FAILED. */
CUresult ct_shared_event_open(const struct ct_ipc_name *name, struct ct_shared_event **out);
CUresult ct_shared_event_name(const struct ct_shared_event *event, struct ct_ipc_name *out);
struct ct_shared_event *ct_shared_event_retain(struct ct_shared_event *event);
void ct_shared_event_release(struct ct_shared_event *event); /* NULL is a no-op */

/* Begins a record and returns its number, which is never 0. */
uint32_t ct_shared_event_begin(struct ct_shared_event *event);
void ct_shared_event_finish(struct ct_shared_event *event, uint32_t number);
/* Returns the number of the last record; 0: none yet. */
uint32_t ct_shared_event_last(const struct ct_shared_event *event);
/* Also true if the recording process is dead: its work ended with it. */
bool ct_shared_event_is_done(const struct ct_shared_event *event, uint32_t number);
void ct_shared_event_await(const struct ct_shared_event *event, uint32_t number);

#endif
