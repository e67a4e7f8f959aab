/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the oracle's own tests. */
#ifndef ORACLE_TEST_SUPPORT_H
#define ORACLE_TEST_SUPPORT_H

#include "oracle.h"

/* Returns a whole file as text, which the caller frees; ends the process if it cannot be read. */
char *test_read_file(const char *path);

/* One run of a kernel that takes pointers to `in` and `out`, arrays of words, and a count. */
struct test_run {
    const char *text, *kernel;
    uint32_t blocks, threads;
    uint32_t *in, *out;
    uint32_t n_in, n_out; /* number of words */
    uint32_t count;
    uint32_t dynamic_shared_bytes;
    bool find_grid_races, allow_divergent;
    uint32_t schedule;
    uint64_t step_limit;
};
/* Every PTX kernel here has the parameters (.u64 in, .u64 out, .u32 count). */
enum oracle_status test_run(const struct test_run *run, struct oracle_result *result);

#endif
