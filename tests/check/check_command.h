/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that run `cuttle check` on one of their programs, and read what either prints. Included after cmocka.h. */
#ifndef TESTS_CHECK_COMMAND_H
#define TESTS_CHECK_COMMAND_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "left_out.h"

/* Runs a command for its output, of which it keeps `size` bytes. Returns its status. */
static inline int run(const char *command, char *out, size_t size)
{
    FILE *pipe = popen(command, "r");
    size_t n;

    assert_non_null(pipe);
    n = fread(out, 1, size - 1, pipe);
    out[n] = 0;
    return pclose(pipe);
}

/* Whether that is the status of a program that was left out. */
static inline bool is_left_out(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == LEFT_OUT;
}

/* Finds the line that begins with NAME and a space, and returns the text behind these. */
static inline const char *behind_name(const char *lines, const char *name)
{
    char row[64];
    const char *at;

    snprintf(row, sizeof row, "%s ", name);
    for (at = strstr(lines, row); at && at > lines && at[-1] != '\n';)
        at = strstr(at + 1, row);
    assert_non_null(at);
    return at + strlen(row);
}

#endif
