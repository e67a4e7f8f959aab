/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics of a compilation: a message, the offending source line, and a caret under the column. */
#include "compilation.h"

#include <stdio.h>
#include <string.h>

#define MAX_ERRORS 20
#define MAX_SHOWN_LINE 160

static const struct ct_source *source_of(const struct ct_compilation *compilation, struct ct_location where)
{
    static const struct ct_source none = {0};

    return where.line && where.source < compilation->n_sources ? &compilation->sources[where.source] : &none;
}

/* The text of line `number` (from 1); length 0 if there is no such line. */
static const char *source_line(const struct ct_source *source, unsigned number, size_t *length)
{
    const char *p = source->text;
    const char *end = p ? p + source->length : NULL;

    *length = 0;
    if (!p)
        return "";
    while (--number && p) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    if (!p || p >= end)
        return "";
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    *length = (size_t)((stop ? stop : end) - p);
    return p;
}

static void report(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_severity severity, enum ptx2spv_status status,
                   const char *format, va_list arguments)
{
    char text[1024];
    size_t used, length;
    const struct ct_source *source = source_of(compilation, where);
    const char *line = source_line(source, where.line, &length);
    int printed;

    if (!compilation->options.on_diagnostic)
        return;
    printed = vsnprintf(text, sizeof text - 2 * MAX_SHOWN_LINE - 16, format, arguments);
    used = printed < 0 ? 0 : strlen(text);
    if (length && length <= MAX_SHOWN_LINE && where.column && where.column <= length + 1) {
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  %.*s\n  ", (int)length, line);
        for (uint32_t i = 0; i + 1 < where.column && used + 2 < sizeof text; i++)
            text[used++] = line[i] == '\t' ? '\t' : ' ';
        text[used++] = '^';
        text[used] = 0;
    }
    compilation->options.on_diagnostic(compilation->options.user,
                                       &(struct ptx2spv_diagnostic){severity, status, where.line, where.column, text, source->name});
}

bool ct_error(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_status status, const char *format, ...)
{
    va_list arguments;

    if (compilation->n_errors++ == 0)
        compilation->status = status;
    if (compilation->n_errors > MAX_ERRORS)
        return false;
    va_start(arguments, format);
    report(compilation, where, PTX2SPV_ERROR, status, format, arguments);
    va_end(arguments);
    return false;
}

void ct_note(struct ct_compilation *compilation, struct ct_location where, enum ptx2spv_severity severity, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    report(compilation, where, severity, PTX2SPV_OK, format, arguments);
    va_end(arguments);
}
