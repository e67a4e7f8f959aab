/* SPDX-License-Identifier: Apache-2.0 */
/* A report of `cuttle check`, as text or as a line of JSON. */
#ifndef CT_CORE_CHECK_REPORT_H
#define CT_CORE_CHECK_REPORT_H

#include "core/backing/address_history.h"

#include <stdio.h>

/* Both forms are made, since suppressions look at the text. A report for which there is no memory is not written. */
struct ct_report {
    const char *kind;
    FILE *text_stream, *json_stream;
    char *text, *json; /* complete once the streams are closed */
    size_t text_size, json_size;
};

/* kind: a word, by which suppressions and JSON name what happened. The rest is the first line of the text. */
void ct_report_begin(struct ct_report *report, const char *kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A further line of the text. */
void ct_report_line(struct ct_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A member of the JSON object: a text, or what the format makes, which must be JSON. */
void ct_report_string(struct ct_report *report, const char *name, const char *value);
void ct_report_member(struct ct_report *report, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A text within a member that is written piece by piece. */
void ct_report_quote(FILE *to, const char *text);
/* The calls of the host, in both forms. */
void ct_report_stack(struct ct_report *report, const char *name, const char *title, const struct ct_host_stack *stack);
/* Writes the report, unless it is suppressed, and frees it. Returns whether it counts. */
bool ct_report_end(struct ct_report *report);
/* Writes a line of text that is no report; nothing if reports are JSON. */
void ct_report_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
