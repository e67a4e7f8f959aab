/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of other people's code that may end the process: they are tried in a child process first. */
#ifndef CT_CORE_TRIAL_H
#define CT_CORE_TRIAL_H

enum ct_trial_outcome { CT_TRIAL_RETURNED, CT_TRIAL_DIED, CT_TRIAL_UNKNOWN };

/* Calls the function in a forked child, whose output is discarded, and waits until it has returned or the child has ended. UNKNOWN: there is
 * no child, or it takes more than `patience_ms` and is killed; the reason may be a lock that another thread of this process held. */
enum ct_trial_outcome ct_trial_run(void (*function)(void *user), void *user, int patience_ms);

#endif
