/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the reasons why a backend has no device. */
#include "absence.h"

#include "core/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ct_absence_add(struct ct_absence *absence, const char *format, ...)
{
    char *end = absence->text + strlen(absence->text);
    const size_t room = sizeof absence->text - (size_t)(end - absence->text);
    const int separator = end > absence->text ? snprintf(end, room, "; ") : 0;
    const size_t used = (size_t)separator < room ? (size_t)separator : room - 1;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(end + used, room - used, format, arguments);
    va_end(arguments);
    return end + used;
}

void ct_absence_log(const char *clause, const char *channel, const char *file, int line)
{
    if (atomic_load_explicit(&ct_log_threshold, memory_order_relaxed) >= CT_LOG_INFO)
        ct_log_write(CT_LOG_INFO, channel, file, line, "%s", clause);
}

void ct_absence_add_variables(struct ct_absence *absence, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);

        if (value)
            ct_absence_add(absence, "%s=%s is set", names[i], value);
    }
}
