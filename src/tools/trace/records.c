/* SPDX-License-Identifier: Apache-2.0 */
#include "records.h"

#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct trace_field *records_next_field(const struct trace_record *record, const struct trace_field *field)
{
    const char *at = field ? (const char *)(field + 1) + ((field->size_bytes + 7) & ~7u) : (const char *)(record + 1);

    return at < (const char *)record + record->size_bytes ? (const struct trace_field *)at : NULL;
}

const struct trace_field *records_field(const struct trace_record *record, enum trace_field_kind kind, unsigned argument)
{
    const struct trace_field *field = NULL;

    while ((field = records_next_field(record, field)))
        if (field->kind == kind && field->argument == argument)
            break;
    return field;
}

static bool add_process(struct records *records, int file)
{
    struct stat status;
    struct trace_file *mapping;
    void *grown;

    if (fstat(file, &status) != 0 || status.st_size < (off_t)TRACE_PAGE_BYTES)
        return true; /* the process ended before it wrote anything */
    mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (mapping == MAP_FAILED)
        return false;
    grown = GROW(records->processes, records->n_processes);
    if (!grown || mapping->magic != TRACE_MAGIC) {
        munmap(mapping, (size_t)status.st_size);
        records->processes = grown ? grown : records->processes;
        return grown;
    }
    records->processes = grown;
    records->processes[records->n_processes++] = (struct records_process){.file = mapping, .size_bytes = (size_t)status.st_size};
    records->lost += atomic_load_explicit(&mapping->lost, memory_order_relaxed); /* a count only */
    records->unmeasured += atomic_load_explicit(&mapping->unmeasured, memory_order_relaxed);
    return true;
}

static bool add_entry(struct records *records, struct records_entry entry)
{
    struct records_entry *grown = GROW(records->entries, records->n_entries);

    if (!grown)
        return false;
    records->entries = grown;
    grown[records->n_entries++] = entry;
    return true;
}

/* Adds the records of a process, TRACE_END included. */
static bool add_records(struct records *records, unsigned index)
{
    struct records_process *process = &records->processes[index];
    const char *base = (const char *)process->file;

    for (size_t at = TRACE_PAGE_BYTES; at + TRACE_CHUNK_BYTES <= process->size_bytes; at += TRACE_CHUNK_BYTES) {
        const struct trace_chunk *chunk = (const struct trace_chunk *)(base + at);
        /* acquire: pairs with the release of the thread that still writes, if the process still runs */
        const uint32_t used = atomic_load_explicit(&chunk->used, memory_order_acquire);

        for (uint32_t offset = 0; offset < used;) {
            const struct trace_record *record = (const struct trace_record *)((const char *)(chunk + 1) + offset);

            if (!add_entry(records, (struct records_entry){.record = record, .chunk = chunk, .process = index}))
                return false;
            if (record->begin_ns > process->last_ns)
                process->last_ns = record->begin_ns;
            if (record->end_ns > process->last_ns)
                process->last_ns = record->end_ns;
            offset += record->size_bytes;
        }
    }
    return true;
}

/* By process and call; what begins a call comes before what ends it. */
static int compare_calls(const void *a, const void *b)
{
    const struct records_entry *x = a, *y = b;
    const bool x_ends = x->record->kind == TRACE_END, y_ends = y->record->kind == TRACE_END;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->record->correlation != y->record->correlation)
        return x->record->correlation < y->record->correlation ? -1 : 1;
    return x_ends != y_ends ? (x_ends ? 1 : -1) : x->record->kind - y->record->kind;
}

static int compare_times(const void *a, const void *b)
{
    const struct records_entry *x = a, *y = b;

    if (x->record->begin_ns != y->record->begin_ns)
        return x->record->begin_ns < y->record->begin_ns ? -1 : 1;
    return x->record->correlation < y->record->correlation ? -1 : x->record->correlation > y->record->correlation;
}

/* Joins the beginnings and ends of calls. */
static void join(struct records *records)
{
    struct records_entry *begin = NULL;
    size_t kept = 0;

    qsort(records->entries, records->n_entries, sizeof *records->entries, compare_calls);
    for (size_t i = 0; i < records->n_entries; i++) {
        struct records_entry *entry = &records->entries[i];

        if (entry->record->kind == TRACE_END) {
            if (begin && begin->process == entry->process && begin->record->correlation == entry->record->correlation)
                begin->end = entry->record;
            continue;
        }
        records->entries[kept] = *entry;
        if (entry->record->kind == TRACE_BEGIN)
            begin = &records->entries[kept];
        kept++;
    }
    records->n_entries = kept;
    qsort(records->entries, records->n_entries, sizeof *records->entries, compare_times);
}

bool records_read(const char *folder, struct records *out)
{
    DIR *directory = opendir(folder);
    bool is_complete = directory;

    *out = (struct records){0};
    for (struct dirent *entry; is_complete && (entry = readdir(directory));) {
        const int file = *entry->d_name == '.' ? -1 : openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC);

        if (file < 0)
            continue;
        is_complete = add_process(out, file);
        close(file);
    }
    for (unsigned i = 0; is_complete && i < out->n_processes; i++)
        is_complete = add_records(out, i);
    if (!is_complete)
        fprintf(stderr, "cuttle: the records in %s: %s\n", folder, strerror(errno));
    if (directory)
        closedir(directory);
    if (out->n_entries)
        join(out);
    return is_complete;
}

void records_finish(struct records *records)
{
    for (unsigned i = 0; i < records->n_processes; i++)
        munmap((void *)records->processes[i].file, records->processes[i].size_bytes);
    free(records->processes);
    free(records->entries);
}
