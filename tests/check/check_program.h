/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that tests of `cuttle check` run: calls of the driver API that must succeed, and the lines of marks in the text of kernels. */
#ifndef TESTS_CHECK_PROGRAM_H
#define TESTS_CHECK_PROGRAM_H

#include <cuda.h>

#include "left_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ok(call) check_call(call, #call)
static inline void check_call(CUresult r, const char *call)
{
    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s returns %d\n", call, (int)r);
    exit(3);
}

/* Whether device 0, which the programs use, has a capability. */
static inline int has(CUdevice_attribute attribute)
{
    int value;

    ok(cuDeviceGetAttribute(&value, attribute, 0));
    return value;
}

/* Ends the program without it. */
static inline void require(CUdevice_attribute attribute)
{
    if (!has(attribute))
        exit(LEFT_OUT);
}

/* The number of the line in `ptx` with the first mark in the text of a kernel; 0: there is none. */
static inline unsigned marked_line(const char *ptx, const char *kernel, const char *mark)
{
    char head[64];
    const char *at, *end, *found;
    unsigned line = 1;

    snprintf(head, sizeof head, ".entry %s(", kernel);
    at = strstr(ptx, head);
    end = at ? strstr(at, "ret;\n}") : NULL;
    found = end ? strstr(at, mark) : NULL;
    for (const char *p = ptx; found && p < found; p++)
        line += *p == '\n';
    return found && found < end ? line : 0;
}

#endif
