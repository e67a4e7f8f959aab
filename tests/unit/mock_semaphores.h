/* SPDX-License-Identifier: Apache-2.0 */
/* External semaphores of the mock backend: a file is one, and the test is the other API that shares it. */
#ifndef CUTTLE_TESTS_MOCK_SEMAPHORES_H
#define CUTTLE_TESTS_MOCK_SEMAPHORES_H

#include "core/device/backend.h"

/* Makes one; the descriptor is the caller's. */
int mock_semaphore_make(void);
/* What the other API does: signals (a binary semaphore: with any value), and reads how far it is: a timeline's value, or the signals that a
 * binary one got. Whatever was imported of it may be gone. */
void mock_semaphore_signal(int fd, uint64_t value);
uint64_t mock_semaphore_value(int fd);
/* How many imports there are that core has not destroyed. */
unsigned mock_semaphores_imported(void);
/* At the end of a test: no work uses any. Forgets all that were made. */
void mock_semaphores_forget(void);

CUresult mock_semaphore_import(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out);
void mock_semaphore_destroy(struct ct_semaphore *semaphore);
CUresult mock_semaphore_await(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns);
CUresult mock_queue_signal_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
CUresult mock_queue_wait_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);

#endif
