/* SPDX-License-Identifier: Apache-2.0 */
#include "host_report.h"

#include "places.h"
#include "report.h"

#include <inttypes.h>

static struct {
    struct ct_mutex lock; /* guards the list */
    struct ct_place *places;
} reported = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_CHECK)};

static void add_memory(struct ct_report *report, uint64_t address)
{
    struct ct_range_life life;

    ct_report_member(report, "address", "%" PRIu64, address);
    if (!ct_history_nearest(address, 1, ct_history_now(), &life) || address - life.start >= life.size_bytes) {
        ct_report_line(report, "address 0x%" PRIx64, address);
        return;
    }
    ct_report_line(report, "address 0x%" PRIx64 " is at byte %" PRIu64 " of an allocation, %" PRIu64 " bytes at 0x%" PRIx64, address,
                   address - life.start, life.size_bytes, life.start);
    ct_report_member(report, "allocation", "{\"address\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", life.start, life.size_bytes);
    ct_report_stack(report, "allocated_by", "which was made by", &life.birth);
}

static void report_locked(const struct ct_host_access *access, const char *what, bool writes)
{
    struct ct_report report;

    if (!ct_place_is_new(&reported.places, access->stack.frames[0], what, access->is_write))
        return;
    ct_report_begin(&report, "host-access", "The host %s memory that %s %s, before it has waited for that",
                    access->is_write ? "writes" : "reads", what, writes ? "writes" : "reads");
    ct_report_string(&report, "operation", access->is_write ? "write" : "read");
    ct_report_string(&report, "command", what);
    ct_report_string(&report, "command_operation", writes ? "write" : "read");
    ct_report_stack(&report, "accessed_by", "in", &access->stack);
    add_memory(&report, access->address);
    (void)ct_report_end(&report);
}

void ct_check_report_host_access(const struct ct_host_access *access, const char *what, bool writes)
{
    ct_mutex_lock(&reported.lock);
    report_locked(access, what, writes);
    ct_mutex_unlock(&reported.lock);
}
