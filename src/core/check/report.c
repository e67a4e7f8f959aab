/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the text begin like those of compute-sanitizer, so that they can be told from the program's output. A report is written at once, since other
 * processes may append to the same file. */
#include "report.h"

#include "core/base/config.h"
#include "core/base/log.h"
#include "suppressions.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "check"
#define PREFIX "========= "

/* ---- files ---- */

static int open_or_minus_1(const char *path)
{
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (file < 0)
        ct_log(CT_LOG_WARN, "cannot open %s: %s", path, strerror(errno));
    return file;
}

static void append(const char *path, const char *bytes, size_t size)
{
    const bool is_named = *path;
    const int file = is_named ? open_or_minus_1(path) : STDERR_FILENO;

    while (file >= 0 && size > 0) {
        const ssize_t n = write(file, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += n;
        size -= (size_t)n;
    }
    if (is_named && file >= 0)
        close(file);
}

/* ---- building ---- */

void ct_report_quote(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

void ct_report_begin(struct ct_report *report, const char *kind, const char *format, ...)
{
    va_list arguments;

    *report = (struct ct_report){.kind = kind};
    report->text_stream = open_memstream(&report->text, &report->text_size);
    report->json_stream = open_memstream(&report->json, &report->json_size);
    if (!report->text_stream || !report->json_stream)
        return;
    fputs(PREFIX, report->text_stream);
    va_start(arguments, format);
    vfprintf(report->text_stream, format, arguments);
    va_end(arguments);
    fprintf(report->text_stream, " [%s]\n", kind);
    fprintf(report->json_stream, "{\"kind\": \"%s\"", kind);
}

static bool is_open(const struct ct_report *report)
{
    return report->text_stream && report->json_stream;
}

void ct_report_line(struct ct_report *report, const char *format, ...)
{
    va_list arguments;

    if (!is_open(report))
        return;
    fputs(PREFIX "    ", report->text_stream);
    va_start(arguments, format);
    vfprintf(report->text_stream, format, arguments);
    va_end(arguments);
    fputc('\n', report->text_stream);
}

void ct_report_string(struct ct_report *report, const char *name, const char *value)
{
    if (!is_open(report))
        return;
    fprintf(report->json_stream, ", \"%s\": ", name);
    ct_report_quote(report->json_stream, value);
}

void ct_report_member(struct ct_report *report, const char *name, const char *format, ...)
{
    va_list arguments;

    if (!is_open(report))
        return;
    fprintf(report->json_stream, ", \"%s\": ", name);
    va_start(arguments, format);
    vfprintf(report->json_stream, format, arguments);
    va_end(arguments);
}

/* "function+0x12 (libx.so)", or the place in the file of a function that the dynamic symbols do not name. */
static void name_frame(const void *frame, char *out, size_t size)
{
    Dl_info info;
    const char *slash;

    if (!dladdr(frame, &info) || !info.dli_fname) {
        snprintf(out, size, "%p", frame);
        return;
    }
    slash = strrchr(info.dli_fname, '/');
    if (info.dli_sname)
        snprintf(out, size, "%s+0x%zx (%s)", info.dli_sname, (size_t)((const char *)frame - (const char *)info.dli_saddr),
                 slash ? slash + 1 : info.dli_fname);
    else
        snprintf(out, size, "%s+0x%zx", slash ? slash + 1 : info.dli_fname, (size_t)((const char *)frame - (const char *)info.dli_fbase));
}

void ct_report_stack(struct ct_report *report, const char *name, const char *title, const struct ct_host_stack *stack)
{
    char text[512];

    if (!is_open(report) || !stack->n)
        return;
    ct_report_line(report, "%s", title);
    fprintf(report->json_stream, ", \"%s\": [", name);
    for (unsigned i = 0; i < stack->n; i++) {
        name_frame(stack->frames[i], text, sizeof text);
        ct_report_line(report, "    %s", text);
        fputs(i ? ", " : "", report->json_stream);
        ct_report_quote(report->json_stream, text);
    }
    fputs("]", report->json_stream);
}

bool ct_report_end(struct ct_report *report)
{
    bool counts = is_open(report);

    if (counts)
        fputs("}\n", report->json_stream);
    if (report->text_stream)
        counts = fclose(report->text_stream) == 0 && counts;
    if (report->json_stream)
        counts = fclose(report->json_stream) == 0 && counts;
    counts = counts && !ct_suppressions_match(report->kind, report->text);
    if (counts) {
        if (ct_config()->check_json)
            append(ct_config()->check_output, report->json, report->json_size);
        else
            append(ct_config()->check_output, report->text, report->text_size);
        if (*ct_config()->check_tally)
            append(ct_config()->check_tally, ".", 1);
    }
    free(report->text);
    free(report->json);
    return counts;
}

void ct_report_note(const char *format, ...)
{
    va_list arguments;
    char *text, *line;
    int length;

    if (ct_config()->check_json)
        return;
    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    length = asprintf(&line, PREFIX "%s\n", text);
    if (length >= 0) {
        append(ct_config()->check_output, line, (size_t)length);
        free(line);
    }
    free(text);
}
