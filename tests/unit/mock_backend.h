/* SPDX-License-Identifier: Apache-2.0 */
/* A backend without a device, for tests of core's memory, streams and events: memory is the host's, a thread for each queue does its
 * work. It takes the place of the Vulkan backend (the same symbol), so that the whole API runs on it. */
#ifndef CUTTLE_TESTS_MOCK_BACKEND_H
#define CUTTLE_TESTS_MOCK_BACKEND_H

#include "core/device/backend.h"

/* Before the first call of CUDA. The environment's MOCK_ADDRESS_RULE ("shared", "chosen", "mask", "own") is taken otherwise.
 * MOCK_REFUSALS_SPOIL sets import_refusals_spoil. Only with "shared" does the host see device memory; with "own" host memory has a device pointer of its own. */
void mock_use_rule(enum ct_address_rule rule);
/* Also before that: the device shares semaphores (mock_semaphores.h). */
void mock_use_semaphores(void);
/* Also before that: there is a second device, whose kernels reach no host memory (maps_host); the first one imports memory where it is. */
void mock_add_unmapped(void);

/* What exists now. */
struct mock_counts {
    unsigned memories, queues, timestamps, timelines;
};
struct mock_counts mock_count(void);

/* The call that can fail number `n` from now (1 is the next) gives `result`; 0: none. */
void mock_fail_call(unsigned n, CUresult result);
/* The same, and so does every such call after it, until mock_fail_call is called: the device is lost. */
void mock_lose_device(unsigned n, CUresult result);
/* Whether that has come to pass. */
bool mock_has_failed(void);

/* The next queue that is made runs nothing until mock_release_queue, and has room for MOCK_HELD_COMMANDS: who records more waits. */
#define MOCK_HELD_COMMANDS 256
void mock_hold_next_queue(void);
void mock_release_queue(void);
/* Waits until a thread waits for the held queue inside the backend: for a point of it, or for room. */
void mock_await_waiter(void);

uint64_t mock_timeline_value(struct ct_timeline *timeline);

/* Commands of all queues that have run, and bytes that they copied. */
uint64_t mock_commands(void);
/* Priority of the queue made last. */
int mock_last_priority(void);
/* Faults in what core did: overlapping copies, ranges beyond memory, a queue destroyed that is not idle ... 0 is right. */
unsigned mock_faults(void);

#endif
