/* SPDX-License-Identifier: Apache-2.0 */
/* A file of suppressions: lines "KIND TEXT". KIND is that of a report, or *; TEXT, which may be missing, is a part of the report's text, such as the name
 * of a kernel. Empty lines and those that begin with # mean nothing. */
#include "suppressions.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "check"

/* Read once, and never freed. */
static char *lines; /* each ends with 0; an empty one ends them */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_file(void)
{
    const char *path = ct_config()->check_suppressions;
    FILE *file = *path ? fopen(path, "r") : NULL, *to;
    char *line = NULL;
    size_t room = 0, size;
    ssize_t n;

    if (*path && !file)
        ct_log(CT_LOG_WARN, "cannot read the suppressions in %s: %s", path, strerror(errno));
    if (!file || !(to = open_memstream(&lines, &size))) {
        if (file)
            fclose(file);
        return;
    }
    while ((n = getline(&line, &room, file)) > 0) {
        const size_t length = strcspn(line, "\r\n");

        if (length && *line != '#')
            fprintf(to, "%.*s%c", (int)length, line, 0);
    }
    fputc(0, to);
    fclose(to);
    free(line);
    fclose(file);
}

bool ct_suppressions_match(const char *kind, const char *text)
{
    pthread_once(&once, read_file);
    for (const char *line = lines; line && *line; line += strlen(line) + 1) {
        const size_t length = strcspn(line, " \t");
        const char *part = line + length + strspn(line + length, " \t");
        const bool is_kind = (length == 1 && *line == '*') || (strlen(kind) == length && !strncmp(kind, line, length));

        if (is_kind && strstr(text, part))
            return true;
    }
    return false;
}
