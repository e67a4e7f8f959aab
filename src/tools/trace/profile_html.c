/* SPDX-License-Identifier: Apache-2.0 */
/* The profile as one HTML file that needs no other and no network: tables, and a time line that a script draws from data in the page. The page
 * itself is profile_page.html, in which three marks are replaced. */
#include "profile.h"

#include "tools/json.h"

#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 200000 /* of the time line: the longest ones; some 10 MB */

static const char page[] =
#include "profile_page.inc"
    ;

static void write_escaped(const char *text, FILE *to)
{
    for (; *text; text++) {
        const char *escape = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : *text == '"' ? "&quot;" : NULL;

        if (escape)
            fputs(escape, to);
        else
            putc(*text, to);
    }
}

/* ---- tables ---- */

static void write_cell(const char *text, FILE *to)
{
    fputs("<td>", to);
    write_escaped(text, to);
    fputs("</td>", to);
}

static void write_number(double number, const char *unit, FILE *to)
{
    if (number < 0)
        fputs("<td>-</td>", to);
    else
        fprintf(to, "<td>%.0f%s</td>", number, unit);
}

static void write_row(const struct profile *profile, const struct profile_row *row, FILE *to)
{
    const double all = profile_total_us(profile, row->section), share = all > 0 ? 100 * row->total_us / all : 0;
    const double times[] = {row->total_us, row->min_us, row->total_us / (double)row->count, row->max_us};
    char text[24], rate[32];

    fprintf(to, "<tr><td class=\"share\" style=\"--share: %.1f%%\">%.1f%%</td><td>%llu</td>", share, share, (unsigned long long)row->count);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        profile_format_time(times[i], text);
        write_cell(text, to);
    }
    if (row->section == PROFILE_KERNELS) {
        write_number(row->occupancy < 0 ? -1 : 100 * row->occupancy, "%", to);
        write_cell(*row->occupancy_limit ? row->occupancy_limit : "-", to);
        write_number(row->block_threads, "", to);
        write_number(row->registers, "", to);
        write_number(row->shared_bytes, "", to);
        write_number(row->local_bytes, "", to);
    } else if (row->section == PROFILE_TRANSFERS) {
        profile_format_bytes(row->bytes, text);
        write_cell(row->bytes > 0 ? text : "-", to);
        profile_format_bytes(row->bytes / (row->total_us > 0 ? row->total_us : 1e-3) * 1e6, text);
        snprintf(rate, sizeof rate, "%s/s", text);
        write_cell(row->bytes > 0 ? rate : "-", to);
    } else if (row->section == PROFILE_CALLS) {
        write_number((double)row->failures, "", to);
    }
    fputs("<td title=\"", to); /* long names are cut off on the screen */
    write_escaped(row->name, to);
    fputs("\">", to);
    write_escaped(row->name, to);
    fputs("</td></tr>\n", to);
}

static void write_tables(const struct profile *profile, FILE *to)
{
    static const struct {
        const char *title, *columns, *last;
    } sections[] = {
        [PROFILE_KERNELS] = {"Kernels, by their time on the device",
                             "<th>occupancy</th><th>limited by</th><th>threads</th><th>registers</th><th>shared</th><th>local</th>",
                             "kernel"},
        [PROFILE_TRANSFERS] = {"Copies, fills and graphs, by their time on the device", "<th>bytes</th><th>throughput</th>", "work"},
        [PROFILE_COMPILATIONS] = {"Compilations, and calls that load code", "", "what"},
        [PROFILE_CALLS] = {"Calls of the driver API, by their time on the host", "<th>failed</th>", "function"},
    };
    enum profile_section last = PROFILE_SECTION_COUNT;

    for (unsigned i = 0; i < profile->n_rows; i++) {
        const struct profile_row *row = profile->sorted[i];

        if (row->section != last)
            fprintf(to,
                    "%s<h2>%s</h2>\n<table><tr><th>share</th><th>count</th><th>total</th><th>min</th><th>mean</th><th>max</th>%s"
                    "<th>%s</th></tr>\n",
                    i ? "</table>\n" : "", sections[row->section].title, sections[row->section].columns, sections[row->section].last);
        last = row->section;
        write_row(profile, row, to);
    }
    fputs(profile->n_rows ? "</table>\n" : "<p>The program made no call of the driver API.</p>\n", to);
}

/* ---- the time line ---- */

static int compare_durations(const void *a, const void *b)
{
    const struct profile_event *x = a, *y = b;

    return x->duration_us > y->duration_us ? -1 : x->duration_us < y->duration_us;
}

static const char *process_name(const struct profile *profile, uint64_t process)
{
    for (unsigned i = 0; i < profile->n_tracks; i++)
        if (profile->tracks[i].process == process && profile->tracks[i].process_name)
            return profile->tracks[i].process_name;
    return "process";
}

/* In a script element nothing may look like its end, so < is written as an escape of JSON. */
static void write_data(const struct profile *profile, FILE *to)
{
    const size_t n_events = profile->n_events < EVENTS_MAX ? profile->n_events : EVENTS_MAX;
    char *text = NULL, name[512];
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    struct json json = {.to = memory, .one_line = 2};

    if (!memory)
        return;
    if (profile->n_events > EVENTS_MAX)
        qsort(profile->events, profile->n_events, sizeof *profile->events, compare_durations);
    json_object(&json, NULL);
    json_decimal(&json, "end", profile->end_us, 3);
    json_array(&json, "tracks");
    for (unsigned i = 0; i < profile->n_tracks; i++) {
        const struct profile_track *track = &profile->tracks[i];

        snprintf(name, sizeof name, "%s: %s", process_name(profile, track->process), track->thread_name ? track->thread_name : "thread");
        json_string(&json, NULL, name);
    }
    json_end(&json, ']');
    json_array(&json, "names");
    for (unsigned i = 0; i < profile->n_rows; i++)
        json_string(&json, NULL, profile->sorted[i]->name);
    json_end(&json, ']');
    json_array(&json, "events");
    for (size_t i = 0; i < n_events; i++) {
        const struct profile_event *event = &profile->events[i];

        json_array(&json, NULL);
        json_number(&json, NULL, event->track);
        json_number(&json, NULL, event->row->section);
        json_decimal(&json, NULL, event->begin_us, 3);
        json_decimal(&json, NULL, event->duration_us, 3);
        json_number(&json, NULL, event->row->index);
        json_end(&json, ']');
    }
    json_end(&json, ']');
    json_end(&json, '}');
    fclose(memory);
    for (const char *at = text; at && *at; at++)
        if (*at == '<')
            fputs("\\u003c", to);
        else
            putc(*at, to);
    free(text);
}

void profile_write_html(const struct profile *profile, FILE *to)
{
    for (const char *at = page; *at;) {
        if (!strncmp(at, "@TABLES@", 8)) {
            if (profile->n_events > EVENTS_MAX)
                fprintf(to, "<p class=\"note\">The time line shows the %d longest of %zu events.</p>\n", EVENTS_MAX, profile->n_events);
            write_tables(profile, to);
            at += 8;
        } else if (!strncmp(at, "@DATA@", 6)) {
            write_data(profile, to);
            at += 6;
        } else {
            putc(*at++, to);
        }
    }
}
