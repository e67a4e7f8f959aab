/* SPDX-License-Identifier: Apache-2.0 */
/* External semaphores of the mock backend: each is a file, and the test acts as the other API that shares it. */
#ifndef CUTTLE_TESTS_MOCK_SEMAPHORES_H
#define CUTTLE_TESTS_MOCK_SEMAPHORES_H

#include "core/device/backend.h"

/* Creates a semaphore; the caller owns the descriptor. */
int mock_semaphore_make(void);
/* The operations of the other API: signal (a binary semaphore: with any value), and read the value of a timeline, or the number of signals of
 * a binary semaphore. The imports of the semaphore may already be destroyed. */
void mock_semaphore_signal(int fd, uint64_t value);
uint64_t mock_semaphore_value(int fd);
/* The number of imports that core has not destroyed. */
unsigned mock_semaphores_imported(void);
/* Called at the end of a test, when no command uses a semaphore: frees all semaphores. */
void mock_semaphores_forget(void);

CUresult mock_semaphore_import(struct ct_backend_device *device, int fd, bool timeline, struct ct_semaphore **out);
void mock_semaphore_destroy(struct ct_semaphore *semaphore);
CUresult mock_semaphore_await(struct ct_semaphore *semaphore, uint64_t value, uint64_t timeout_ns);
CUresult mock_queue_signal_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);
CUresult mock_queue_wait_semaphore(struct ct_queue *queue, struct ct_semaphore *semaphore, uint64_t value);

#endif
