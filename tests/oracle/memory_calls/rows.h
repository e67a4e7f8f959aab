/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of calls.def, each in the file of its chapter. */
#ifndef CUTTLE_TESTS_MEMORY_CALLS_ROWS_H
#define CUTTLE_TESTS_MEMORY_CALLS_ROWS_H

#include "calls.h"

#include <stdio.h>

#define ROW(function, group, weight, creates, codes) void calls_##function(struct calls *c);
#include "calls.def"
#undef ROW

#endif
