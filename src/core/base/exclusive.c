/* SPDX-License-Identifier: Apache-2.0 */
#include "exclusive.h"

void ct_exclusive_init(struct ct_exclusive *use)
{
    ct_mutex_init(&use->lock, CT_RANK_EXCLUSIVE);
    pthread_cond_init(&use->is_free, NULL);
    use->is_in_use = false;
}

void ct_exclusive_finish(struct ct_exclusive *use)
{
    pthread_cond_destroy(&use->is_free);
    ct_mutex_finish(&use->lock);
}

void ct_exclusive_enter(struct ct_exclusive *use)
{
    ct_mutex_lock(&use->lock);
    while (use->is_in_use)
        ct_mutex_wait(&use->lock, &use->is_free);
    use->is_in_use = true;
    ct_mutex_unlock(&use->lock);
}

void ct_exclusive_leave(struct ct_exclusive *use)
{
    ct_mutex_lock(&use->lock);
    use->is_in_use = false;
    pthread_cond_signal(&use->is_free);
    ct_mutex_unlock(&use->lock);
}
