/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is done once, by the first thread that needs it. Other threads that need it wait meanwhile; the one that does it holds no lock. If
 * it fails, the next thread that needs it tries again. */
#ifndef CT_CORE_ONCE_H
#define CT_CORE_ONCE_H

#include "locks.h"

#include <stdatomic.h>
#include <stdbool.h>

struct ct_once {
    atomic_int state;       /* changed under the lock */
    pthread_cond_t changed; /* signalled when `state` changes */
};

void ct_once_init(struct ct_once *once);
void ct_once_destroy(struct ct_once *once);
/* True: the caller does the work, and then calls ct_once_end. False: it is done, and what it wrote before ct_once_end may be read without
 * the lock. `lock`: the same one in all calls. */
bool ct_once_begin(struct ct_once *once, struct ct_mutex *lock);
void ct_once_end(struct ct_once *once, struct ct_mutex *lock, bool is_done);

#endif
