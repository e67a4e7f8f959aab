/* SPDX-License-Identifier: Apache-2.0 */
#include "traced_program.h"

#include "traced_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of a file, for files beside it. */
static void folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    if (slash)
        snprintf(out, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    else
        snprintf(out, PATH_MAX, ".");
}

static FILE *open_output(const char *verb, const char *path)
{
    FILE *file = fopen(path, "we");

    if (!file)
        fprintf(stderr, "%s: %s: %s\n", verb, path, strerror(errno));
    return file;
}

/* Closes a file; what could not be written shows at the latest now. */
static bool close_output(const char *verb, const char *path, FILE *file)
{
    const bool has_failed = ferror(file);

    if (fclose(file) == 0 && !has_failed)
        return true;
    fprintf(stderr, "%s: %s: %s\n", verb, path, strerror(errno));
    return false;
}

static bool write_profile(const char *verb, const char *path, const struct profile *profile, bool is_html)
{
    FILE *file = open_output(verb, path);

    if (!file)
        return false;
    if (is_html)
        profile_write_html(profile, file);
    else
        profile_write_text(profile, file);
    return close_output(verb, path, file);
}

bool traced_profile(const char *verb, const char *trace, const struct traced_outputs *outputs)
{
    struct profile profile;
    bool is_written = profile_load(verb, trace, outputs->extent, &profile);

    if (is_written && !outputs->text && outputs->is_text_on_stderr)
        profile_write_text(&profile, stderr);
    if (is_written && outputs->text)
        is_written = write_profile(verb, outputs->text, &profile, false);
    if (is_written && outputs->html)
        is_written = write_profile(verb, outputs->html, &profile, true);
    profile_finish(&profile);
    return is_written;
}

/* Whether the files that are written when the program has ended can be: it may run for hours. */
static bool check_outputs(const struct traced_program *program)
{
    const char *const paths[] = {program->outputs.text, program->outputs.html};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        FILE *file = paths[i] ? open_output(program->verb, paths[i]) : NULL;

        if (paths[i] && !file)
            return false;
        if (file)
            fclose(file);
    }
    return true;
}

int traced_program(const struct traced_program *program)
{
    const struct traced_outputs *outputs = &program->outputs;
    const bool is_profiled = outputs->text || outputs->html || outputs->is_text_on_stderr;
    char folder[PATH_MAX], path[PATH_MAX];
    struct traced_run run = {
        .verb = program->verb, .command = program->command, .driver = program->driver, .folder = folder, .method = program->method};
    bool is_written = false;
    int status = RUN_FAILED;
    FILE *trace;

    if (!check_outputs(program))
        return RUN_FAILED;
    if (!outputs->trace && !tool_temporary_file("cuttle-profile", path)) {
        fprintf(stderr, "%s: no temporary file: %s\n", program->verb, strerror(errno));
        return RUN_FAILED;
    }
    if (outputs->trace)
        snprintf(path, sizeof path, "%s", outputs->trace);
    folder_of(path, folder);
    if ((trace = open_output(program->verb, path))) {
        status = traced_run(&run, trace, &is_written);
        is_written = close_output(program->verb, path, trace) && is_written;
    }
    if (is_written && is_profiled && status != RUN_NOT_FOUND && status != RUN_NOT_EXECUTABLE)
        is_written = traced_profile(program->verb, path, outputs);
    if (!outputs->trace)
        unlink(path);
    return is_written || status == RUN_NOT_FOUND || status == RUN_NOT_EXECUTABLE ? status : RUN_FAILED;
}
