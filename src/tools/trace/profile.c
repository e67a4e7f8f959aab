/* SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"

#include "grow.h"
#include "trace_load.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tracks ---- */

/* The track of an event, which is made if it is new; -1: no memory. Most events are in the track of the last one. */
static int find_track(struct profile *profile, const struct json_value *event)
{
    const uint64_t process = (uint64_t)json_member_number(event, "pid", 0), thread = (uint64_t)json_member_number(event, "tid", 0);
    struct profile_track *grown;

    for (unsigned i = profile->n_tracks; i-- > 0;)
        if (profile->tracks[i].process == process && profile->tracks[i].thread == thread)
            return (int)i;
    grown = GROW(profile->tracks, profile->n_tracks);
    if (!grown)
        return -1;
    profile->tracks = grown;
    grown[profile->n_tracks] = (struct profile_track){.process = process, .thread = thread};
    return (int)profile->n_tracks++;
}

/* Metadata: a process's name belongs to its track 0, which has no events. */
static bool take_name(struct profile *profile, const struct json_value *event)
{
    const char *what = json_member_text(event, "name", ""), *name = json_member_text(json_member(event, "args"), "name", "");
    const int track = find_track(profile, event);
    char **member;

    if (track < 0)
        return false;
    member = !strcmp(what, "process_name") ? &profile->tracks[track].process_name : &profile->tracks[track].thread_name;
    if (!*member && !strncmp(name, "device ", 7) && member == &profile->tracks[track].process_name)
        profile->n_devices++;
    free(*member);
    *member = strdup(name);
    return *member;
}

/* ---- ranges ---- */

/* Calls are in the file in the order of time, and before the work of devices: so what a range contains comes behind its beginning. Work belongs to the range
 * of the call that started it: it may run later, and the clocks of a device and of the host agree within some ten microseconds only. */
static bool take_range(struct profile *profile, const char *call, double begin_us)
{
    const bool is_open = profile->n_ranges && profile->ranges[profile->n_ranges - 1].end_us == INFINITY;
    struct profile_range *grown;

    if (!strcmp(call, "cuProfilerStop") && is_open)
        profile->ranges[profile->n_ranges - 1].end_us = begin_us;
    if (strcmp(call, "cuProfilerStart") != 0 || is_open)
        return true;
    grown = GROW(profile->ranges, profile->n_ranges);
    if (!grown)
        return false;
    profile->ranges = grown;
    grown[profile->n_ranges++] = (struct profile_range){begin_us, INFINITY};
    return true;
}

static bool is_in_range(const struct profile *profile, const struct json_value *event)
{
    const double begin_us = json_member_number(json_member(event, "args"), "callTs", json_member_number(event, "ts", 0));

    for (unsigned i = 0; i < profile->n_ranges; i++)
        if (begin_us >= profile->ranges[i].begin_us && begin_us < profile->ranges[i].end_us)
            return true;
    return profile->extent == PROFILE_ALL;
}

/* ---- rows ---- */

/* A kernel's name as it was written, if the C++ library is installed; the command is not linked with it. */
static char *readable_name(const char *name)
{
    static char *(*demangle)(const char *name, char *out, size_t *size, int *status);
    static bool is_asked;
    char *result = NULL;
    int status;

    if (!is_asked) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

        demangle = library ? (char *(*)(const char *, char *, size_t *, int *))dlsym(library, "__cxa_demangle") : NULL;
        is_asked = true;
    }
    if (demangle && !strncmp(name, "_Z", 2))
        result = demangle(name, NULL, NULL, &status);
    return result ? result : strdup(name);
}

static struct profile_row *find_row(struct profile *profile, enum profile_section section, uint64_t device, const char *name)
{
    struct profile_row *row;
    char *key, *readable;
    const int length = asprintf(&key, "%d %llu %s", (int)section, (unsigned long long)device, name);

    if (length < 0)
        return NULL;
    HASH_FIND(hh, profile->rows, key, (unsigned)length, row);
    if (row) {
        free(key);
        return row;
    }
    row = calloc(1, sizeof *row);
    if (!row) {
        free(key);
        return NULL;
    }
    readable = readable_name(name);
    *row = (struct profile_row){.key = key,
                                .section = section,
                                .name = readable ? readable : key,
                                .device = device,
                                .min_us = 1e300,
                                .registers = -1,
                                .shared_bytes = -1,
                                .local_bytes = -1,
                                .occupancy = -1,
                                .block_threads = -1};
    HASH_ADD_KEYPTR(hh, profile->rows, row->key, (unsigned)length, row);
    profile->n_rows++;
    return row;
}

static void add_time(struct profile_row *row, double us)
{
    row->count++;
    row->total_us += us;
    row->min_us = us < row->min_us ? us : row->min_us;
    row->max_us = us > row->max_us ? us : row->max_us;
}

static void add_facts(struct profile_row *row, const struct json_value *args)
{
    row->bytes += json_member_number(args, "bytes", 0);
    row->registers = json_member_number(args, "registers", row->registers);
    row->shared_bytes = json_member_number(args, "sharedBytes", row->shared_bytes);
    row->local_bytes = json_member_number(args, "localBytes", row->local_bytes);
    row->occupancy = json_member_number(args, "occupancy", row->occupancy);
    if (json_member(args, "blockDimX"))
        row->block_threads =
            json_member_number(args, "blockDimX", 1) * json_member_number(args, "blockDimY", 1) * json_member_number(args, "blockDimZ", 1);
    snprintf(row->occupancy_limit, sizeof row->occupancy_limit, "%s", json_member_text(args, "occupancyLimit", row->occupancy_limit));
}

/* Calls in which drivers compile, or may. */
static bool loads_code(const char *call)
{
    return !strncmp(call, "cuModuleLoad", 12) || !strncmp(call, "cuLibraryLoad", 13) || !strncmp(call, "cuLinkComplete", 14) ||
           !strncmp(call, "cuLinkAdd", 9);
}

static enum profile_section section_of(const char *category)
{
    return !strcmp(category, "call")          ? PROFILE_CALLS
           : !strcmp(category, "kernel")      ? PROFILE_KERNELS
           : !strcmp(category, "compilation") ? PROFILE_COMPILATIONS
                                              : PROFILE_TRANSFERS;
}

static bool take_event(void *user, const struct json_value *event)
{
    struct profile *profile = user;
    const char *phase = json_member_text(event, "ph", ""), *name = json_member_text(event, "name", "");
    const struct json_value *args = json_member(event, "args");
    const enum profile_section section = section_of(json_member_text(event, "cat", ""));
    const double begin_us = json_member_number(event, "ts", 0), us = json_member_number(event, "dur", 0);
    const bool is_on_device = section == PROFILE_KERNELS || section == PROFILE_TRANSFERS;
    struct profile_event *grown;
    struct profile_row *row, *loading = NULL;
    char compilation[2048];
    int track;

    if (!strcmp(phase, "M"))
        return take_name(profile, event);
    if (strcmp(phase, "X") != 0)
        return true; /* arrows */
    if (section == PROFILE_CALLS && !take_range(profile, name, begin_us))
        return false;
    if (!is_in_range(profile, event))
        return true;
    if (section == PROFILE_COMPILATIONS) {
        char *kernel = readable_name(json_member_text(args, "kernelName", ""));

        snprintf(compilation, sizeof compilation, "%s: %s", json_member_text(args, "compiler", ""), kernel ? kernel : "");
        free(kernel);
        name = compilation;
    }
    row = find_row(profile, section, is_on_device ? (uint64_t)json_member_number(event, "pid", 0) : 0, name);
    track = find_track(profile, event);
    if (section == PROFILE_CALLS && loads_code(name) && !(loading = find_row(profile, PROFILE_COMPILATIONS, 0, name)))
        return false;
    if (!row || track < 0 || !(grown = GROW(profile->events, profile->n_events)))
        return false;
    add_time(row, us);
    add_facts(row, args);
    row->failures += section == PROFILE_CALLS && strcmp(json_member_text(args, "result", ""), "CUDA_SUCCESS") != 0;
    if (loading)
        add_time(loading, us);
    profile->events = grown;
    profile->events[profile->n_events++] = (struct profile_event){(unsigned)track, begin_us, us, row};
    if (begin_us + us > profile->end_us)
        profile->end_us = begin_us + us;
    return true;
}

static int compare_rows(const void *a, const void *b)
{
    const struct profile_row *x = *(struct profile_row *const *)a, *y = *(struct profile_row *const *)b;

    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    if (x->total_us != y->total_us)
        return x->total_us > y->total_us ? -1 : 1;
    return strcmp(x->key, y->key);
}

bool profile_load(const char *verb, const char *path, enum profile_extent extent, struct profile *out)
{
    unsigned n = 0;

    *out = (struct profile){.extent = extent};
    if (!trace_load(verb, path, take_event, out))
        return false;
    if (extent == PROFILE_RANGES && !out->n_ranges) {
        fprintf(stderr, "%s: the program did not call cuProfilerStart\n", verb);
        return false;
    }
    out->sorted = malloc((out->n_rows + 1) * sizeof *out->sorted);
    if (!out->sorted) {
        fprintf(stderr, "%s: no memory\n", verb);
        return false;
    }
    for (struct profile_row *row = out->rows; row; row = row->hh.next)
        out->sorted[n++] = row;
    qsort(out->sorted, n, sizeof *out->sorted, compare_rows);
    for (unsigned i = 0; i < n; i++)
        out->sorted[i]->index = i;
    return true;
}

void profile_finish(struct profile *profile)
{
    struct profile_row *row, *next;

    HASH_ITER(hh, profile->rows, row, next)
    {
        HASH_DEL(profile->rows, row);
        if (row->name != row->key)
            free(row->name);
        free(row->key);
        free(row);
    }
    for (unsigned i = 0; i < profile->n_tracks; i++) {
        free(profile->tracks[i].process_name);
        free(profile->tracks[i].thread_name);
    }
    free(profile->sorted);
    free(profile->tracks);
    free(profile->events);
    free(profile->ranges);
}

double profile_total_us(const struct profile *profile, enum profile_section section)
{
    double total = 0;

    for (unsigned i = 0; i < profile->n_rows; i++)
        if (profile->sorted[i]->section == section)
            total += profile->sorted[i]->total_us;
    return total;
}

void profile_format_time(double us, char out[24])
{
    if (us < 1000)
        snprintf(out, 24, "%.2f us", us);
    else if (us < 1e6)
        snprintf(out, 24, "%.2f ms", us / 1e3);
    else
        snprintf(out, 24, "%.2f s", us / 1e6);
}

void profile_format_bytes(double bytes, char out[24])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    unsigned unit = 0;

    for (; bytes >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(out, 24, "%.*f %s", unit ? 2 : 0, bytes, units[unit]);
}
