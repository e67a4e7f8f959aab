/* SPDX-License-Identifier: Apache-2.0 */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>

char *test_read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t used = 0, size = 0, got;

    if (!file) {
        perror(path);
        exit(1);
    }
    do {
        if (size - used < 4096 && !(text = realloc(text, size = size * 2 + 8192)))
            exit(1);
        got = fread(text + used, 1, size - used - 1, file);
        used += got;
    } while (got);
    text[used] = 0;
    fclose(file);
    return text;
}

enum oracle_status test_run(const struct test_run *run, struct oracle_result *result)
{
    struct oracle_module *module = oracle_module_create(run->text, result);
    const struct oracle_range ranges[] = {
        {(uintptr_t)run->in, run->n_in * sizeof *run->in, run->in, true},
        {(uintptr_t)run->out, run->n_out * sizeof *run->out, run->out, false},
    };
    const struct {
        const uint32_t *in;
        uint32_t *out;
        uint32_t count;
    } params = {run->in, run->out, run->count};
    const struct oracle_launch launch = {
        .kernel = run->kernel,
        .grid = {run->blocks ? run->blocks : 1, 1, 1},
        .block = {run->threads, 1, 1},
        .dynamic_shared_bytes = run->dynamic_shared_bytes,
        .params = &params,
        .params_bytes = sizeof params,
        .ranges = ranges,
        .n_ranges = 2,
        .find_races = true,
        .find_grid_races = run->find_grid_races,
        .allow_divergent = run->allow_divergent,
        .schedule = run->schedule,
        .step_limit = run->step_limit ? run->step_limit : 10000000,
    };

    if (module)
        oracle_run(module, &launch, result);
    oracle_module_destroy(module);
    return result->status;
}
