/* SPDX-License-Identifier: Apache-2.0 */
/* Each device that a process used is a process of the trace, with a track for each stream: Perfetto then shows them in groups. */
#include "chrome_events.h"

#include "signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DEVICE_PROCESS 1000000000u /* greater than any process number of Linux */
#define STREAM_PER_THREAD 2u             /* CU_STREAM_PER_THREAD; 1 is CU_STREAM_LEGACY */

struct track {
    unsigned process; /* index */
    uint32_t device;
    uint32_t thread; /* whose default stream it is; 0: any other stream */
    uint64_t context, stream;
};

/* In a stream one thing follows another; readers do not show spans of one track that overlap, which they may by the errors of the times. */
struct track_state {
    struct track track;
    uint64_t last_end_ns;
};

struct devices {
    struct chrome *chrome;
    const struct records_entry ***calls; /* for each process, by correlation; NULL where there is none */
    uint64_t *n_calls;
    const struct records_entry **facts; /* TRACE_KERNEL and TRACE_DEVICE */
    size_t n_facts;
    struct track_state *tracks;
    unsigned n_tracks;
};

/* ---- calls by their numbers ---- */

static bool index_calls(struct devices *devices)
{
    const struct records *records = devices->chrome->records;

    devices->calls = calloc(records->n_processes + 1, sizeof *devices->calls);
    devices->n_calls = calloc(records->n_processes + 1, sizeof *devices->n_calls);
    if (!devices->calls || !devices->n_calls)
        return false;
    for (size_t i = 0; i < records->n_entries; i++)
        if (records->entries[i].record->correlation >= devices->n_calls[records->entries[i].process])
            devices->n_calls[records->entries[i].process] = records->entries[i].record->correlation + 1;
    for (unsigned i = 0; i < records->n_processes; i++)
        if (!(devices->calls[i] = calloc(devices->n_calls[i] + 1, sizeof **devices->calls)))
            return false;
    devices->facts = malloc((records->n_entries + 1) * sizeof *devices->facts);
    if (!devices->facts)
        return false;
    for (size_t i = 0; i < records->n_entries; i++)
        if (records->entries[i].record->kind == TRACE_KERNEL || records->entries[i].record->kind == TRACE_DEVICE)
            devices->facts[devices->n_facts++] = &records->entries[i];
        else if (records->entries[i].record->kind == TRACE_BEGIN)
            devices->calls[records->entries[i].process][records->entries[i].record->correlation] = &records->entries[i];
    return true;
}

/* ---- what is known of kernels ---- */

/* The integer of this name: an argument, or a member of the struct that an argument points to. */
static bool find_number(const struct records_entry *call, const char *name, uint64_t *out)
{
    struct signature signature;

    signature_parse(call->record->symbol, &signature);
    for (unsigned i = 0; i < signature.count; i++) {
        const struct signature_parameter *parameter = &signature.parameters[i];
        const struct trace_field *value = records_field(call->record, TRACE_VALUE, i),
                                 *pointee = records_field(call->record, TRACE_POINTEE, i);

        if (parameter->name_length == strlen(name) && !memcmp(parameter->name, name, parameter->name_length) && value &&
            value->size_bytes <= 8) {
            *out = api_integer(value + 1, value->size_bytes);
            return true;
        }
        for (const struct api_member *member = NULL; pointee && parameter->type && (member = api_next_member(parameter->type, member));)
            if (!strcmp(member->name, name) && member->size_bytes <= 8 && member->offset + member->size_bytes <= pointee->size_bytes) {
                *out = api_integer((const char *)(pointee + 1) + member->offset, member->size_bytes);
                return true;
            }
    }
    return false;
}

static const struct trace_kernel_facts *kernel_facts(const struct devices *devices, const struct records_entry *call)
{
    uint64_t function, x, y, z, shared;

    if (!find_number(call, "f", &function) || !find_number(call, "blockDimX", &x) || !find_number(call, "blockDimY", &y) ||
        !find_number(call, "blockDimZ", &z) || !find_number(call, "sharedMemBytes", &shared))
        return NULL;
    for (size_t i = 0; i < devices->n_facts; i++) {
        const struct trace_field *field = records_field(devices->facts[i]->record, TRACE_FACTS, 0);
        const struct trace_kernel_facts *facts = field ? (const struct trace_kernel_facts *)(field + 1) : NULL;

        if (facts && devices->facts[i]->process == call->process && devices->facts[i]->record->kind == TRACE_KERNEL &&
            facts->function == function && facts->block_threads == x * y * z && facts->dynamic_shared_bytes == shared)
            return facts;
    }
    return NULL;
}

static const struct trace_record *device_record(const struct devices *devices, unsigned process, unsigned device)
{
    for (size_t i = 0; i < devices->n_facts; i++)
        if (devices->facts[i]->process == process && devices->facts[i]->record->kind == TRACE_DEVICE &&
            devices->facts[i]->record->device == device)
            return devices->facts[i]->record;
    return NULL;
}

/* What keeps more blocks of the kernel from a multiprocessor: the resource of which there is enough for the fewest blocks. */
static const char *occupancy_limit(const struct trace_kernel_facts *kernel, const struct trace_device_facts *device)
{
    const uint32_t lanes = device->warp_lanes > 0 ? (uint32_t)device->warp_lanes : 1;
    const uint32_t threads = (kernel->block_threads + lanes - 1) / lanes * lanes;
    const struct {
        const char *name;
        int64_t has, needs; /* of a multiprocessor, of a block; not positive: unknown, or none */
    } resources[] = {
        {"threads", device->threads_per_multiprocessor, threads},
        {"registers", device->registers_per_multiprocessor, (int64_t)kernel->registers * threads},
        {"shared memory", device->shared_bytes_per_multiprocessor, (int64_t)kernel->static_shared_bytes + kernel->dynamic_shared_bytes},
        {"blocks", device->blocks_per_multiprocessor, 1},
    };
    const char *limit = "unknown";
    int64_t fewest = INT64_MAX;

    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
        if (resources[i].has > 0 && resources[i].needs > 0 && resources[i].has / resources[i].needs < fewest) {
            fewest = resources[i].has / resources[i].needs;
            limit = resources[i].name;
        }
    return limit;
}

static void write_kernel_facts(const struct devices *devices, const struct records_entry *call, uint32_t device)
{
    const struct trace_kernel_facts *kernel = kernel_facts(devices, call);
    const struct trace_record *record = device_record(devices, call->process, device);
    const struct trace_field *field = record ? records_field(record, TRACE_FACTS, 0) : NULL;
    const struct trace_device_facts *facts = field ? (const struct trace_device_facts *)(field + 1) : NULL;
    struct json *json = &devices->chrome->json;
    static const char *const grid[] = {"gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ"};
    uint64_t size;

    for (size_t i = 0; i < sizeof grid / sizeof *grid; i++)
        if (find_number(call, grid[i], &size))
            json_number(json, grid[i], size);
    if (!kernel)
        return;
    json_decimal(json, "registers", kernel->registers, 0);
    json_decimal(json, "sharedBytes", (double)kernel->static_shared_bytes + kernel->dynamic_shared_bytes, 0);
    json_decimal(json, "localBytes", kernel->local_bytes, 0);
    if (!facts || kernel->blocks_per_multiprocessor < 0 || facts->threads_per_multiprocessor <= 0)
        return;
    json_decimal(json, "blocksPerMultiprocessor", kernel->blocks_per_multiprocessor, 0);
    json_decimal(json, "occupancy", (double)kernel->blocks_per_multiprocessor * kernel->block_threads / facts->threads_per_multiprocessor,
                 3);
    json_string(json, "occupancyLimit", occupancy_limit(kernel, facts));
}

/* ---- tracks ---- */

/* The number of the process that stands for a device. */
static uint64_t device_process(const struct track *track)
{
    return FIRST_DEVICE_PROCESS + track->process * 256u + track->device;
}

static void name_track(struct devices *devices, unsigned index)
{
    const struct track *track = &devices->tracks[index].track;
    const struct trace_file *file = devices->chrome->records->processes[track->process].file;
    const struct trace_record *record = device_record(devices, track->process, track->device);
    const struct trace_field *field = record ? records_field(record, TRACE_NAME, 0) : NULL;
    bool is_first = true;
    char name[384];

    snprintf(name, sizeof name, "device %u: %.*s (of process %u)", track->device, field ? (int)field->size_bytes : 0,
             field ? (const char *)(field + 1) : "", file->process);
    for (unsigned i = 0; i < index && is_first; i++)
        is_first = device_process(&devices->tracks[i].track) != device_process(track);
    if (is_first)
        chrome_name(devices->chrome, "process_name", device_process(track), 0, name);
    if (track->thread)
        snprintf(name, sizeof name, "default stream of thread %u", track->thread);
    else if (track->stream <= STREAM_PER_THREAD)
        snprintf(name, sizeof name, "default stream");
    else
        snprintf(name, sizeof name, "stream 0x%" PRIx64, track->stream);
    chrome_name(devices->chrome, "thread_name", device_process(track), index + 1, name);
}

static bool is_same_track(const struct track *a, const struct track *b)
{
    return a->process == b->process && a->device == b->device && a->thread == b->thread && a->context == b->context &&
           a->stream == b->stream;
}

/* The number of the track, which is made and named if it is new; 0: no memory. */
static unsigned find_track(struct devices *devices, const struct track *track)
{
    struct track_state *grown;

    for (unsigned i = 0; i < devices->n_tracks; i++)
        if (is_same_track(&devices->tracks[i].track, track))
            return i + 1;
    grown = realloc(devices->tracks, (devices->n_tracks + 1) * sizeof *grown);
    if (!grown)
        return 0;
    devices->tracks = grown;
    grown[devices->n_tracks++] = (struct track_state){.track = *track};
    name_track(devices, devices->n_tracks - 1);
    return devices->n_tracks;
}

/* ---- spans ---- */

static const char *const categories[] = {
    [TRACE_WORK_KERNEL] = "kernel",       [TRACE_WORK_GRAPH] = "graph",           [TRACE_WORK_HOST_TO_DEVICE] = "copy",
    [TRACE_WORK_DEVICE_TO_HOST] = "copy", [TRACE_WORK_DEVICE_TO_DEVICE] = "copy", [TRACE_WORK_HOST_TO_HOST] = "copy",
    [TRACE_WORK_FILL] = "fill",
};

static const char *const names[] = {
    [TRACE_WORK_KERNEL] = "kernel",
    [TRACE_WORK_GRAPH] = "graph",
    [TRACE_WORK_HOST_TO_DEVICE] = "copy from host to device",
    [TRACE_WORK_DEVICE_TO_HOST] = "copy from device to host",
    [TRACE_WORK_DEVICE_TO_DEVICE] = "copy from device to device",
    [TRACE_WORK_HOST_TO_HOST] = "copy from host to host",
    [TRACE_WORK_FILL] = "fill",
};

static bool write_span(struct devices *devices, const struct records_entry *span)
{
    const struct records_entry *call = devices->calls[span->process][span->record->correlation];
    const struct trace_field *field = records_field(span->record, TRACE_WORK, 0), *kernel = NULL;
    struct chrome *chrome = devices->chrome;
    const struct trace_work *work;
    char name[TRACE_TEXT_BYTES_MAX + 1], id[64];
    uint64_t begin_ns, end_ns;
    struct track track;
    unsigned thread;

    if (!call || !field)
        return true;
    work = (const struct trace_work *)(field + 1);
    track = (struct track){.process = span->process,
                           .device = work->device,
                           .thread = work->stream == STREAM_PER_THREAD ? call->chunk->thread : 0,
                           .context = work->context,
                           .stream = work->stream};
    if (!(thread = find_track(devices, &track)))
        return false;
    begin_ns = span->record->begin_ns;
    if (begin_ns < devices->tracks[thread - 1].last_end_ns)
        begin_ns = devices->tracks[thread - 1].last_end_ns;
    end_ns = span->record->end_ns > begin_ns ? span->record->end_ns : begin_ns;
    devices->tracks[thread - 1].last_end_ns = end_ns;
    while ((kernel = records_next_field(call->record, kernel)) && kernel->kind != TRACE_NAME)
        ;
    snprintf(name, sizeof name, "%.*s", kernel ? (int)kernel->size_bytes : (int)sizeof name - 1,
             kernel ? (const char *)(kernel + 1) : names[work->kind]);
    chrome_open(chrome, "X", *name ? name : names[work->kind], device_process(&track), thread);
    json_string(&chrome->json, "cat", categories[work->kind]);
    chrome_times(chrome, begin_ns, end_ns);
    json_object(&chrome->json, "args");
    json_string(&chrome->json, "call", signature_symbol(call->record->symbol));
    json_number(&chrome->json, "correlation", span->record->correlation);
    json_decimal(&chrome->json, "callTs", chrome_microseconds(chrome, call->record->begin_ns), 3);
    json_address(&chrome->json, "context", work->context);
    json_address(&chrome->json, "stream", work->stream);
    if (work->size_bytes)
        json_number(&chrome->json, "bytes", work->size_bytes);
    if (work->kind == TRACE_WORK_KERNEL)
        write_kernel_facts(devices, call, work->device);
    json_end(&chrome->json, '}');
    json_end(&chrome->json, '}');
    snprintf(id, sizeof id, "%u.%" PRIu64, chrome->records->processes[span->process].file->process, span->record->correlation);
    chrome_arrow(chrome, "s", chrome->records->processes[call->process].file->process, call->chunk->thread, call->record->begin_ns, id);
    chrome_arrow(chrome, "f", device_process(&track), thread, begin_ns, id);
    return true;
}

bool chrome_devices(struct chrome *chrome)
{
    struct devices devices = {.chrome = chrome};
    bool is_complete = index_calls(&devices);

    for (size_t i = 0; is_complete && i < chrome->records->n_entries; i++)
        if (chrome->records->entries[i].record->kind == TRACE_SPAN)
            is_complete = write_span(&devices, &chrome->records->entries[i]);
    for (unsigned i = 0; devices.calls && i < chrome->records->n_processes; i++)
        free(devices.calls[i]);
    free(devices.calls);
    free(devices.n_calls);
    free(devices.facts);
    free(devices.tracks);
    return is_complete;
}
