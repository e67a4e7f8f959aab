/* SPDX-License-Identifier: Apache-2.0 */
/* The profile as tables for a terminal. Names come last, since they may be long. */
#include "profile.h"

#include <string.h>

/* The number of a row's device, if there are several. */
static void write_name(const struct profile *profile, const struct profile_row *row, FILE *to)
{
    fputs(row->name, to);
    for (unsigned i = 0; profile->n_devices > 1 && row->device && i < profile->n_tracks; i++)
        if (profile->tracks[i].process == row->device && profile->tracks[i].process_name)
            fprintf(to, "  [%s]", profile->tracks[i].process_name);
    putc('\n', to);
}

static void write_times(const struct profile *profile, const struct profile_row *row, FILE *to)
{
    const double all = profile_total_us(profile, row->section);
    char total[24], min[24], mean[24], max[24];

    profile_format_time(row->total_us, total);
    profile_format_time(row->min_us, min);
    profile_format_time(row->total_us / (double)row->count, mean);
    profile_format_time(row->max_us, max);
    fprintf(to, "%6.1f%% %10s %8llu %10s %10s %10s", all > 0 ? 100 * row->total_us / all : 0, total, (unsigned long long)row->count, min,
            mean, max);
}

/* A number, or a dash if it is not known. */
static void write_number(double number, int width, FILE *to)
{
    if (number < 0)
        fprintf(to, " %*s", width, "-");
    else
        fprintf(to, " %*.0f", width, number);
}

static void write_row(const struct profile *profile, const struct profile_row *row, FILE *to)
{
    char text[24] = "-", rate[24] = "-";

    write_times(profile, row, to);
    switch (row->section) {
    case PROFILE_KERNELS:
        if (row->occupancy >= 0)
            snprintf(text, sizeof text, "%.0f%%", 100 * row->occupancy);
        fprintf(to, " %6s  %-13s", text, *row->occupancy_limit ? row->occupancy_limit : "-");
        write_number(row->block_threads, 7, to);
        write_number(row->registers, 9, to);
        write_number(row->shared_bytes, 8, to);
        write_number(row->local_bytes, 8, to);
        break;
    case PROFILE_TRANSFERS:
        if (row->bytes > 0) {
            profile_format_bytes(row->bytes, text);
            profile_format_bytes(row->bytes / (row->total_us > 0 ? row->total_us : 1e-3) * 1e6, rate);
        }
        fprintf(to, " %10s %9s/s", text, rate);
        break;
    case PROFILE_CALLS:
        fprintf(to, " %8llu", (unsigned long long)row->failures);
        break;
    case PROFILE_COMPILATIONS:
    case PROFILE_SECTION_COUNT:
        break;
    }
    fputs("  ", to);
    write_name(profile, row, to);
}

void profile_write_text(const struct profile *profile, FILE *to)
{
    static const struct {
        const char *title, *columns;
    } sections[] = {
        [PROFILE_KERNELS] = {"Kernels, by their time on the device", " occup.  limited by    threads registers   shared    local  kernel"},
        [PROFILE_TRANSFERS] = {"Copies, fills and graphs, by their time on the device", "      bytes  throughput  work"},
        [PROFILE_COMPILATIONS] = {"Compilations, and calls that load code", "  what"},
        [PROFILE_CALLS] = {"Calls of the driver API, by their time on the host", "   failed  function"},
    };
    enum profile_section last = PROFILE_SECTION_COUNT;

    for (unsigned i = 0; i < profile->n_rows; i++) {
        const struct profile_row *row = profile->sorted[i];

        if (row->section != last)
            fprintf(to, "%s%s\n%7s %10s %8s %10s %10s %10s%s\n", i ? "\n" : "", sections[row->section].title, "share", "total", "count",
                    "min", "mean", "max", sections[row->section].columns);
        last = row->section;
        write_row(profile, row, to);
    }
    if (!profile->n_rows)
        fprintf(to, "The program made no call of the driver API.\n");
}
