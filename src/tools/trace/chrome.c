/* SPDX-License-Identifier: Apache-2.0 */
/* The format: "Trace Event Format", a document of the Chromium project. An object whose traceEvents are complete events (X) with times in microseconds,
 * metadata (M) and arrows (s, f). Its otherData say what made it; `cuttle` reads such files again (trace_load.h), and nothing but them. */
#include "chrome.h"

#include "arguments_json.h"
#include "chrome_events.h"
#include "signature.h"

#include <string.h>

double chrome_microseconds(const struct chrome *chrome, uint64_t time_ns)
{
    return time_ns > chrome->start_ns ? (double)(time_ns - chrome->start_ns) / 1e3 : 0;
}

void chrome_open(struct chrome *chrome, const char *phase, const char *name, uint64_t process, uint64_t thread)
{
    json_object(&chrome->json, NULL);
    json_string(&chrome->json, "ph", phase);
    json_string(&chrome->json, "name", name);
    json_number(&chrome->json, "pid", process);
    json_number(&chrome->json, "tid", thread);
}

void chrome_times(struct chrome *chrome, uint64_t begin_ns, uint64_t end_ns)
{
    json_decimal(&chrome->json, "ts", chrome_microseconds(chrome, begin_ns), 3);
    json_decimal(&chrome->json, "dur", end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e3 : 0, 3);
}

void chrome_name(struct chrome *chrome, const char *what, uint64_t process, uint64_t thread, const char *name)
{
    chrome_open(chrome, "M", what, process, thread);
    json_object(&chrome->json, "args");
    json_string(&chrome->json, "name", name);
    json_end(&chrome->json, '}');
    json_end(&chrome->json, '}');
}

void chrome_arrow(struct chrome *chrome, const char *phase, uint64_t process, uint64_t thread, uint64_t time_ns, const char *id)
{
    chrome_open(chrome, phase, "work", process, thread);
    json_string(&chrome->json, "cat", "work");
    json_string(&chrome->json, "id", id);
    json_decimal(&chrome->json, "ts", chrome_microseconds(chrome, time_ns), 3);
    if (*phase == 'f')
        json_string(&chrome->json, "bp", "e"); /* to the event that encloses the time, not to the next one */
    json_end(&chrome->json, '}');
}

/* The names of processes and of their threads; a thread may have many chunks. */
static void write_names(struct chrome *chrome)
{
    for (unsigned i = 0; i < chrome->records->n_processes; i++) {
        const struct records_process *process = &chrome->records->processes[i];
        const char *slash = strrchr(process->file->program, '/'), *base = (const char *)process->file;

        chrome_name(chrome, "process_name", process->file->process, 0, slash ? slash + 1 : process->file->program);
        for (size_t at = TRACE_PAGE_BYTES; at + TRACE_CHUNK_BYTES <= process->size_bytes; at += TRACE_CHUNK_BYTES) {
            const struct trace_chunk *chunk = (const struct trace_chunk *)(base + at);

            chrome_name(chrome, "thread_name", process->file->process, chunk->thread, chunk->thread_name);
        }
    }
}

static void write_call(struct chrome *chrome, const struct records_entry *call)
{
    const struct records_process *process = &chrome->records->processes[call->process];
    const char *result = call->end ? arguments_result_name(call->end->result) : "did not return";

    chrome_open(chrome, "X", signature_symbol(call->record->symbol), process->file->process, call->chunk->thread);
    json_string(&chrome->json, "cat", "call");
    chrome_times(chrome, call->record->begin_ns, call->end ? call->end->end_ns : process->last_ns);
    json_object(&chrome->json, "args");
    arguments_write(&chrome->json, call);
    if (result)
        json_string(&chrome->json, "result", result);
    else
        json_number(&chrome->json, "result", (uint32_t)call->end->result);
    json_number(&chrome->json, "correlation", call->record->correlation);
    json_end(&chrome->json, '}');
    json_end(&chrome->json, '}');
}

static void write_build(struct chrome *chrome, const struct records_entry *build)
{
    const struct trace_field *compiler = records_field(build->record, TRACE_NAME, 0), *kernel = records_field(build->record, TRACE_NAME, 1);

    chrome_open(chrome, "X", "compilation", chrome->records->processes[build->process].file->process, build->chunk->thread);
    json_string(&chrome->json, "cat", "compilation");
    chrome_times(chrome, build->record->begin_ns, build->record->end_ns);
    json_object(&chrome->json, "args");
    if (compiler)
        json_text(&chrome->json, "compiler", (const char *)(compiler + 1), compiler->size_bytes);
    if (kernel)
        json_text(&chrome->json, "kernelName", (const char *)(kernel + 1), kernel->size_bytes);
    json_end(&chrome->json, '}');
    json_end(&chrome->json, '}');
}

bool chrome_write(const struct records *records, const char *driver, FILE *to)
{
    struct chrome chrome = {.json = {.to = to, .one_line = 2}, .records = records};

    bool is_complete;

    if (records->n_entries)
        chrome.start_ns = records->entries[0].record->begin_ns;
    json_object(&chrome.json, NULL);
    json_object(&chrome.json, "otherData");
    json_string(&chrome.json, "made by", "cuttle trace");
    json_string(&chrome.json, "driver", driver);
    json_number(&chrome.json, "lost", records->lost);
    json_number(&chrome.json, "unmeasured", records->unmeasured);
    json_end(&chrome.json, '}');
    json_string(&chrome.json, "displayTimeUnit", "ns");
    json_array(&chrome.json, "traceEvents");
    write_names(&chrome);
    for (size_t i = 0; i < records->n_entries; i++)
        if (records->entries[i].record->kind == TRACE_BEGIN)
            write_call(&chrome, &records->entries[i]);
        else if (records->entries[i].record->kind == TRACE_BUILD)
            write_build(&chrome, &records->entries[i]);
    is_complete = chrome_devices(&chrome);
    json_end(&chrome.json, ']');
    json_end(&chrome.json, '}');
    return is_complete;
}
