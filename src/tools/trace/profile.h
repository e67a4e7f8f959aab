/* SPDX-License-Identifier: Apache-2.0 */
/* A trace, summed up: what took how long, by names. */
#ifndef CT_TOOLS_PROFILE_H
#define CT_TOOLS_PROFILE_H

#include <uthash.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum profile_section {
    PROFILE_KERNELS,      /* on devices */
    PROFILE_TRANSFERS,    /* copies, fills and launches of graphs, on devices */
    PROFILE_COMPILATIONS, /* by the compilers of Cuttle and of the drivers below it, and calls that load code */
    PROFILE_CALLS,        /* of the driver API */
    PROFILE_SECTION_COUNT,
};

struct profile_row {
    UT_hash_handle hh;
    char *key; /* section, device and name */
    enum profile_section section;
    char *name;      /* for readers: of C++ as it was written */
    unsigned index;  /* in struct profile.sorted */
    uint64_t device; /* number of the process that stands for it; 0: none */
    uint64_t count, failures;
    double total_us, min_us, max_us;
    double bytes;
    /* of kernels, the last launch; negative: unknown */
    double registers, shared_bytes, local_bytes, occupancy, block_threads;
    char occupancy_limit[24];
};

struct profile_track {
    uint64_t process, thread;
    char *process_name, *thread_name; /* NULL: it has none */
};

struct profile_event {
    unsigned track; /* index */
    double begin_us, duration_us;
    const struct profile_row *row;
};

enum profile_extent {
    PROFILE_ALL,
    PROFILE_RANGES, /* calls between cuProfilerStart and cuProfilerStop, and what they started */
};

struct profile_range {
    double begin_us, end_us;
};

struct profile {
    enum profile_extent extent;
    struct profile_range *ranges; /* in the order of time */
    unsigned n_ranges;
    struct profile_row *rows;    /* a hash table */
    struct profile_row **sorted; /* by section, then by total time, the longest first */
    unsigned n_rows;
    struct profile_track *tracks;
    unsigned n_tracks;
    struct profile_event *events;
    size_t n_events;
    unsigned n_devices;
    double end_us;
};

/* Sums up a trace file. False, with a message; the caller finishes *out in any case. */
bool profile_load(const char *verb, const char *path, enum profile_extent extent, struct profile *out);
void profile_finish(struct profile *profile);
/* The sum of a section's times. */
double profile_total_us(const struct profile *profile, enum profile_section section);
/* A duration with a unit, and a number of bytes, or of bytes per second. */
void profile_format_time(double us, char out[24]);
void profile_format_bytes(double bytes, char out[24]);

/* profile_text.c, profile_html.c */
void profile_write_text(const struct profile *profile, FILE *to);
void profile_write_html(const struct profile *profile, FILE *to);

#endif
