/* SPDX-License-Identifier: Apache-2.0 */
/* Work of launches that our own threads enqueue later: the bodies of conditional nodes of graphs. It needs the context and its modules, which the
 * application need only keep until a call that waits for all work. So calls that destroy these wait here first. */
#ifndef CT_CORE_DEFERRED_WORK_H
#define CT_CORE_DEFERRED_WORK_H

struct ct_context;

void ct_deferred_work_begin(struct ct_context *context);
void ct_deferred_work_end(struct ct_context *context);
/* Waits until the context, or for NULL any, has no such work. The caller holds no lock. */
void ct_deferred_work_await(const struct ct_context *context_or_null);

#endif
