/* SPDX-License-Identifier: Apache-2.0 */
/* A backend without a device, for tests of core's memory, streams and events: memory is the host's, and a thread for each queue executes its
 * commands. It replaces the Vulkan backend (it defines the same symbol), so that the whole API runs on it. */
#ifndef CUTTLE_TESTS_MOCK_BACKEND_H
#define CUTTLE_TESTS_MOCK_BACKEND_H

#include "core/device/backend.h"

/* Called before the first call of CUDA. Otherwise the environment variable MOCK_ADDRESS_RULE ("shared", "chosen", "mask", "own") is used.
 * MOCK_REFUSALS_SPOIL sets import_failures_are_sticky. Only with "shared" can the host access device memory; with "own" the device pointer of host
 * memory differs from its host pointer. */
void mock_use_rule(enum ct_address_rule rule);
/* Also called before that: makes the device share semaphores (mock_semaphores.h). */
void mock_use_semaphores(void);
/* Also called before that: adds a second device, whose kernels cannot access host memory (maps_host); the first one imports memory in place. */
void mock_add_unmapped(void);

/* The numbers of existing objects. */
struct mock_counts {
    unsigned memories, queues, timestamps, timelines;
};
struct mock_counts mock_count(void);

/* The `n`th of the following calls that can fail (1: the next) returns `result`; 0: none. */
void mock_fail_call(unsigned n, CUresult result);
/* The same, and every such call after it fails, too, until mock_fail_call is called: the device is lost. */
void mock_lose_device(unsigned n, CUresult result);
/* Whether that call has been made. */
bool mock_has_failed(void);

/* The next queue created executes nothing until mock_release_queue, and has room for MOCK_HELD_COMMANDS: recording more of them waits. */
#define MOCK_HELD_COMMANDS 256
void mock_hold_next_queue(void);
void mock_release_queue(void);
/* Waits until a thread waits for the held queue inside the backend: for a point of it, or for room. */
void mock_await_waiter(void);

uint64_t mock_timeline_value(struct ct_timeline *timeline);

/* The commands of all queues that have been executed, and the bytes that they copied. */
uint64_t mock_commands(void);
/* The priority of the last queue created. */
int mock_last_priority(void);
/* The number of violations of the interface by core: overlapping copies, ranges beyond memory, destruction of a queue that is not idle ... */
unsigned mock_faults(void);

#endif
