/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a context and of the process: faults that no call has reported yet, memory that was not freed, and a summary. At exit other threads may still
 * use their memory, and kernels may run: nothing is freed. */
#include "check.h"

#include "core/backing/address_history.h"
#include "core/backing/host_watch.h"
#include "core/backing/shadows.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/stream/host_gate.h"
#include "calls.h"
#include "report.h"
#include "sites.h"

#include <inttypes.h>
#include <stdlib.h>

#define CT_CHANNEL "check"

static atomic_ullong n_leaks; /* relaxed: a count */

static const char *name_or_null(enum ct_range_kind kind)
{
    switch (kind) {
    case CT_RANGE_DEVICE:
    case CT_RANGE_POOL:
        return "device memory";
    case CT_RANGE_HOST:
    case CT_RANGE_POOL_HOST:
        return "page-locked memory";
    case CT_RANGE_MANAGED:
    case CT_RANGE_POOL_MANAGED:
        return "managed memory";
    case CT_RANGE_IPC:
    case CT_RANGE_REGISTERED:
    case CT_RANGE_MODULE:
    case CT_RANGE_MANAGED_VARIABLES:
    case CT_RANGE_VIRTUAL:
    case CT_RANGE_SCRATCH:
        break;
    }
    return NULL; /* it is not allocated by the program, or not memory */
}

static void report_leak(void *user, const struct ct_range_life *life)
{
    const char *name = name_or_null(life->kind);
    struct ct_report report;

    (void)user;
    if (!name || life->is_internal)
        return;
    ct_report_begin(&report, "leak", "%" PRIu64 " bytes of %s are not freed", life->size_bytes, name);
    ct_report_line(&report, "at address 0x%" PRIx64, life->start);
    ct_report_member(&report, "address", "%" PRIu64, life->start);
    ct_report_member(&report, "bytes", "%" PRIu64, life->size_bytes);
    ct_report_string(&report, "memory", name);
    ct_report_stack(&report, "allocated_by", "which were allocated by", &life->birth);
    if (ct_report_end(&report))
        atomic_fetch_add_explicit(&n_leaks, 1, memory_order_relaxed);
}

void ct_check_end_context(struct ct_context *context)
{
    if (!ct_config()->check || !context->object.handle) /* NULL: it was never published, and NULL is the owner of all below */
        return;
    ct_check_flush(context);
    ct_check_sites_destroy_all(context);
    ct_shadows_destroy_all(context);
    if (ct_config()->check_leaks)
        ct_history_visit_living(context->object.handle, report_leak, NULL);
}

static void end_process(int status, void *user)
{
    uint64_t reports, times;

    (void)user;
    if (ct_process_is_child())
        return;
    ct_check_calls_end(status);
    ct_host_gates_open(NULL, 0);
    ct_host_watches_await();
    ct_check_flush(NULL);
    if (ct_config()->check_leaks)
        ct_history_visit_living(NULL, report_leak, NULL);
    ct_check_totals(&reports, &times);
    ct_report_note("reports about kernels: %" PRIu64 ", which happened %" PRIu64 " times; about memory that is not freed: %llu", reports,
                   times, atomic_load_explicit(&n_leaks, memory_order_relaxed));
}

void ct_check_watch_exit(void)
{
    ct_check_calls_watch();
    if (ct_config()->check && on_exit(end_process, NULL) != 0)
        ct_log(CT_LOG_WARN, "the exit handler cannot be registered: out of memory");
}
