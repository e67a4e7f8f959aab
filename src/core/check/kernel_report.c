/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_report.h"

#include "report.h"

#include <inttypes.h>
#include <string.h>

static const char *const operations[] = {
    [PTX2SPV_CHECK_LOAD] = "read",
    [PTX2SPV_CHECK_STORE] = "write",
    [PTX2SPV_CHECK_ATOMIC] = "atomic operation",
    [PTX2SPV_CHECK_WARP] = "warp instruction",
};
static const char *const spaces[] = {
    [PTX2SPV_CHECK_GLOBAL] = "global",
    [PTX2SPV_CHECK_SHARED] = "shared",
    [PTX2SPV_CHECK_LOCAL] = "local",
    [PTX2SPV_CHECK_GENERIC] = "generic",
};

static const struct {
    const char *kind, *title;
} faults[] = {
    [PTX2SPV_CHECK_NONE] = {"out-of-bounds", "Invalid"},
    [PTX2SPV_CHECK_OUTSIDE] = {"out-of-bounds", "Invalid"},
    [PTX2SPV_CHECK_MISALIGNED] = {"misaligned", "Misaligned"},
    [PTX2SPV_CHECK_WRITE] = {"read-only", "Forbidden"},
    [PTX2SPV_CHECK_MASK] = {"mask", NULL}, /* report_mask */
    [PTX2SPV_CHECK_RACE] = {"race", "Race of a"},
    [PTX2SPV_CHECK_BARRIER] = {"barrier", NULL}, /* report_barrier */
    [PTX2SPV_CHECK_UNWRITTEN] = {"unwritten", "Memory that was never written:"},
};

static bool is_window(const struct ptx2spv_check_site *site)
{
    const unsigned space = PTX2SPV_CHECK_SPACE(site->access);

    return space == PTX2SPV_CHECK_SHARED || space == PTX2SPV_CHECK_LOCAL;
}

/* ---- where in the code ---- */

static void add_places(struct ct_report *report, const struct ct_check_sites *sites, const struct ptx2spv_check_site *site)
{
    struct ptx2spv_place places[PTX2SPV_PLACES_MAX];
    const unsigned n = ptx2spv_module_places(sites->code->ptx, PTX2SPV_CHECK_SOURCE(site->access), site->line, places);

    ct_report_line(report, "in kernel %s, line %" PRIu32 " of its PTX", sites->name, site->line);
    ct_report_string(report, "kernel", sites->name);
    ct_report_member(report, "ptx_line", "%" PRIu32, site->line);
    ct_report_member(report, "source", "[");
    for (unsigned i = 0; i < n; i++) {
        ct_report_line(report, "%s %s:%u:%u%s%s", i ? "inlined at" : "at", *places[i].file ? places[i].file : "(unknown file)",
                       places[i].line, places[i].column, *places[i].function ? " in " : "", places[i].function);
        if (!report->json_stream)
            continue;
        fprintf(report->json_stream, "%s{\"file\": ", i ? ", " : "");
        ct_report_quote(report->json_stream, places[i].file);
        fprintf(report->json_stream, ", \"line\": %u, \"column\": %u, \"function\": ", places[i].line, places[i].column);
        ct_report_quote(report->json_stream, places[i].function);
        fputs("}", report->json_stream);
    }
    if (report->json_stream)
        fputs("]", report->json_stream);
}

static void add_thread(struct ct_report *report, const struct ptx2spv_check_site *site)
{
    const uint32_t t[] = {site->thread & 1023, site->thread >> 10 & 1023, site->thread >> 20};
    const uint32_t b[] = {site->block_x, site->block_yz & 0xffff, site->block_yz >> 16};

    ct_report_line(report, "by thread (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ") in block (%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")%s", t[0], t[1],
                   t[2], b[0], b[1], b[2], site->count > 1 ? ", the first of several" : "");
    ct_report_member(report, "thread", "[%" PRIu32 ", %" PRIu32 ", %" PRIu32 "]", t[0], t[1], t[2]);
    ct_report_member(report, "block", "[%" PRIu32 ", %" PRIu32 ", %" PRIu32 "]", b[0], b[1], b[2]);
    ct_report_member(report, "count", "%" PRIu32, site->count);
}

/* The other thread of a race, by its number in the block, or PTX2SPV_CHECK_SEVERAL. */
static void add_other_thread(struct ct_report *report, const char *before, uint32_t thread)
{
    if (thread == PTX2SPV_CHECK_SEVERAL) {
        ct_report_line(report, "%s threads of several warps of the block, without a barrier between", before);
        return;
    }
    ct_report_line(report, "%s thread number %" PRIu32 " of the block, without a barrier between", before, thread);
    ct_report_member(report, "other", "%" PRIu32, thread);
}

/* The other block, by its number in the grid, plus 1, or PTX2SPV_CHECK_SEVERAL_BLOCKS. */
static void add_other_block(struct ct_report *report, const char *before, uint32_t block)
{
    if (block == PTX2SPV_CHECK_SEVERAL_BLOCKS) {
        ct_report_line(report, "%s several blocks of the grid, which nothing orders before", before);
        return;
    }
    ct_report_line(report, "%s block number %" PRIu32 " of the grid, which nothing orders before", before, block - 1);
    ct_report_member(report, "other_block", "%" PRIu32, block - 1);
}

/* The other thread or block of a race: its place is not known here, only its number. */
static void add_other(struct ct_report *report, const struct ptx2spv_check_site *site)
{
    const char *const before = site->other & PTX2SPV_CHECK_AFTER_READ ? "after a read by" : "after a write by";
    const uint32_t other = site->other & ~(PTX2SPV_CHECK_OF_BLOCK | PTX2SPV_CHECK_AFTER_READ);

    if (site->fault != PTX2SPV_CHECK_RACE)
        return;
    if (is_window(site))
        add_other_thread(report, "with", other == PTX2SPV_CHECK_SEVERAL ? other : other - 1);
    else if (site->other & PTX2SPV_CHECK_OF_BLOCK)
        add_other_thread(report, before, other);
    else
        add_other_block(report, before, other);
}

/* ---- where in memory ---- */

static void describe_distance(const struct ct_range_life *life, uint64_t address, uint64_t bytes, char *out, size_t size)
{
    const uint64_t end = life->start + life->size_bytes;

    if (address >= end)
        snprintf(out, size, "%" PRIu64 " bytes behind", address - end + 1);
    else if (address < life->start)
        snprintf(out, size, "%" PRIu64 " bytes before", life->start - address);
    else if (address + bytes > end)
        snprintf(out, size, "across the end of");
    else
        snprintf(out, size, "at byte %" PRIu64 " of", address - life->start);
}

/* The variable of the kernel's module that is nearest to an address in, or near, the module's image. NULL: none. */
static const struct ptx2spv_variable *variable_near_or_null(const struct ct_check_sites *sites, uint64_t address)
{
    const struct ptx2spv_variable *found = NULL;
    uint64_t best = UINT64_MAX;

    for (unsigned i = 0; i < ptx2spv_module_variable_count(sites->code->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(sites->code->ptx, i);
        const uint64_t start = sites->image + variable->offset, end = start + variable->size;
        const uint64_t distance = address < start ? start - address : address < end ? 0 : address - end + 1;

        if (ptx2spv_variable_is_in_image(variable) && distance < best) {
            found = variable;
            best = distance;
        }
    }
    return found;
}

static void add_life(struct ct_report *report, const struct ct_check_sites *sites, const struct ptx2spv_check_site *site,
                     const struct ct_range_life *life, const char *what)
{
    const bool is_image = life->kind == CT_RANGE_MODULE && sites->image && life->start == sites->image;
    const struct ptx2spv_variable *variable = is_image ? variable_near_or_null(sites, site->address) : NULL;
    const struct ct_range_life place = {
        .start = variable ? sites->image + variable->offset : life->start,
        .size_bytes = variable ? variable->size : life->size_bytes,
    };
    char distance[96];

    describe_distance(&place, site->address, PTX2SPV_CHECK_BYTES(site->access), distance, sizeof distance);
    ct_report_line(report, "address 0x%" PRIx64 " is %s %s%s, %" PRIu64 " bytes at 0x%" PRIx64, site->address, distance,
                   variable ? "variable " : what, variable ? variable->name : "", place.size_bytes, place.start);
    ct_report_member(report, "allocation", "{\"address\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", place.start, place.size_bytes);
    if (variable)
        ct_report_string(report, "variable", variable->name);
    else
        ct_report_stack(report, "allocated_by", "which was made by", &life->birth);
}

static void add_memory(struct ct_report *report, const struct ct_check_sites *sites, const struct ptx2spv_check_site *site,
                       const struct ct_range_life *freed_or_null)
{
    struct ct_range_life life;

    if (is_window(site)) {
        ct_report_line(report, "address 0x%" PRIx64 " in the %s memory of the %s", site->address, spaces[PTX2SPV_CHECK_SPACE(site->access)],
                       PTX2SPV_CHECK_SPACE(site->access) == PTX2SPV_CHECK_SHARED ? "block" : "thread");
    } else if (freed_or_null) {
        add_life(report, sites, site, freed_or_null, "the freed allocation");
        ct_report_stack(report, "freed_by", "and which was freed by", &freed_or_null->death);
    } else if (ct_history_nearest(site->address, PTX2SPV_CHECK_BYTES(site->access), site->launch, &life)) {
        add_life(report, sites, site, &life, "the nearest allocation");
    } else {
        ct_report_line(report, "address 0x%" PRIx64 "; there are no allocations", site->address);
    }
}

/* ---- the report ---- */

/* Whether the access is to memory that was freed before the launch, and which nothing has taken since then. */
static bool is_freed(const struct ptx2spv_check_site *site, struct ct_range_life *out)
{
    struct ct_range_life life;

    if (site->fault != PTX2SPV_CHECK_OUTSIDE || is_window(site) || !ct_history_removed(site->address, site->launch, out))
        return false;
    return !ct_history_nearest(site->address, 1, site->launch, &life) || site->address - life.start >= life.size_bytes;
}

/* The kernel writes the site, so its fault may be any number after an access that was not checked. */
static unsigned fault_of(const struct ptx2spv_check_site *site)
{
    return site->fault < sizeof faults / sizeof *faults ? site->fault : PTX2SPV_CHECK_OUTSIDE;
}

static const char *kind_of(const struct ptx2spv_check_site *site, bool is_after_free)
{
    return is_after_free ? "use-after-free" : faults[fault_of(site)].kind;
}

const char *ct_check_kind(const struct ptx2spv_check_site *site)
{
    struct ct_range_life life;

    return kind_of(site, is_freed(site, &life));
}

static bool report_mask(const struct ct_check_sites *sites, const struct ptx2spv_check_site *site)
{
    struct ct_report report;

    ct_report_begin(&report, faults[site->fault].kind,
                    "The member mask 0x%08" PRIx64 " of a warp instruction lacks the thread that executes it", site->address);
    ct_report_string(&report, "operation", operations[PTX2SPV_CHECK_WARP]);
    ct_report_member(&report, "mask", "%" PRIu64, site->address);
    add_places(&report, sites, site);
    add_thread(&report, site);
    return ct_report_end(&report);
}

static bool report_barrier(const struct ct_check_sites *sites, const struct ptx2spv_check_site *site)
{
    struct ct_report report;

    ct_report_begin(&report, faults[site->fault].kind, "Threads of a warp wait at different barriers");
    add_places(&report, sites, site);
    add_thread(&report, site);
    ct_report_line(&report, "while thread number %" PRIu64 " of the block waits in line %" PRIu32, site->address, site->other);
    ct_report_member(&report, "other", "%" PRIu64, site->address);
    ct_report_member(&report, "other_ptx_line", "%" PRIu32, site->other);
    return ct_report_end(&report);
}

bool ct_check_report_fault(const struct ct_check_sites *sites, const struct ptx2spv_check_site *site)
{
    const unsigned space = PTX2SPV_CHECK_SPACE(site->access), operation = PTX2SPV_CHECK_OPERATION(site->access);
    struct ct_range_life freed;
    struct ct_report report;
    bool is_after_free;

    if (site->fault == PTX2SPV_CHECK_MASK)
        return report_mask(sites, site);
    if (site->fault == PTX2SPV_CHECK_BARRIER)
        return report_barrier(sites, site);
    is_after_free = is_freed(site, &freed);
    ct_report_begin(&report, kind_of(site, is_after_free), "%s %s %s of %u bytes", faults[fault_of(site)].title, spaces[space],
                    operations[operation], PTX2SPV_CHECK_BYTES(site->access));
    ct_report_string(&report, "space", spaces[space]);
    ct_report_string(&report, "operation", operations[operation]);
    ct_report_member(&report, "bytes", "%u", PTX2SPV_CHECK_BYTES(site->access));
    ct_report_member(&report, "address", "%" PRIu64, site->address);
    add_places(&report, sites, site);
    add_thread(&report, site);
    add_other(&report, site);
    add_memory(&report, sites, site, is_after_free ? &freed : NULL);
    return ct_report_end(&report);
}
