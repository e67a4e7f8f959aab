/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle trace`: runs a program and writes a trace of its calls. */
#include "verbs.h"

#include "trace/traced_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_OUTPUT "cuttle-trace.json"

/* The folder of a file, for files beside it. */
static void folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    if (slash)
        snprintf(out, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    else
        snprintf(out, PATH_MAX, ".");
}

int verb_trace(const struct tool_arguments *arguments)
{
    const char *output = arguments->values[CUTTLE_TRACE_OUTPUT] ? arguments->values[CUTTLE_TRACE_OUTPUT] : DEFAULT_OUTPUT;
    char folder[PATH_MAX];
    struct traced_run run = {.verb = "cuttle trace",
                             .command = arguments->operands,
                             .driver = arguments->values[CUTTLE_TRACE_LIBCUDA],
                             .folder = folder,
                             .method = arguments->values[CUTTLE_TRACE_PRELOAD] ? TOOL_PRELOAD : TOOL_AUDIT};
    FILE *file = fopen(output, "we");
    bool is_written = false;
    int status = RUN_FAILED;

    folder_of(output, folder);
    if (file)
        status = traced_run(&run, file, &is_written);
    if (file && fclose(file) == 0 && is_written)
        return status;
    if (!file || is_written)
        fprintf(stderr, "cuttle trace: %s: %s\n", output, strerror(errno));
    return status == RUN_NOT_FOUND || status == RUN_NOT_EXECUTABLE ? status : RUN_FAILED;
}
