/* SPDX-License-Identifier: Apache-2.0 */
/* Exclusive use of an object over a time in which a thread must not hold a lock, since it enqueues commands or waits (locks.h). */
#ifndef CT_CORE_EXCLUSIVE_H
#define CT_CORE_EXCLUSIVE_H

#include "locks.h"

struct ct_exclusive {
    struct ct_mutex lock;
    pthread_cond_t is_free;
    bool is_in_use;
};

void ct_exclusive_init(struct ct_exclusive *use);
void ct_exclusive_finish(struct ct_exclusive *use);
/* Waits until no other thread uses the object. A thread must not enter twice. */
void ct_exclusive_enter(struct ct_exclusive *use);
void ct_exclusive_leave(struct ct_exclusive *use);

#endif
