/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces failing kernels, and saves them in files. */
#include "differential.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shrinker {
    struct program *program;
    enum verdict verdict;
    differential_function *attempt;
    struct differential_effort left;
};

static bool should_continue(const struct shrinker *s)
{
    return s->left.attempts && (!s->left.deadline || time(NULL) < s->left.deadline);
}

static bool still_fails(struct shrinker *s)
{
    struct trial trial = {0};
    char *text = generator_print(s->program);
    const struct differential_case c = {text, &s->program->launch, &s->program->data};

    s->left.attempts--;
    s->attempt(&c, &trial);
    free(text);
    return trial.verdict == s->verdict;
}

/* Tries a cut; returns whether it was kept. */
static bool try_cut(struct shrinker *s, unsigned statement, enum generator_cut cut)
{
    const enum generator_cut before = generator_cut_of(s->program, statement);

    if (before != GENERATOR_KEPT || !should_continue(s))
        return false;
    generator_cut(s->program, statement, cut);
    if (still_fails(s))
        return true;
    generator_cut(s->program, statement, before);
    return false;
}

/* Removes several consecutive statements at once: most of a program is unrelated to the fault. */
static bool try_cut_run(struct shrinker *s, unsigned first, unsigned n)
{
    const unsigned count = generator_statement_count(s->program);
    enum generator_cut *before = calloc(n, sizeof *before);
    bool any = false, kept;

    if (!before)
        exit(1);
    for (unsigned i = 0; i < n && first + i < count; i++) {
        before[i] = generator_cut_of(s->program, first + i);
        any |= before[i] == GENERATOR_KEPT;
        generator_cut(s->program, first + i, GENERATOR_DROPPED);
    }
    kept = any && should_continue(s) && still_fails(s);
    for (unsigned i = 0; i < n && first + i < count && !kept; i++)
        generator_cut(s->program, first + i, before[i]);
    free(before);
    return kept;
}

static bool shrink_statements(struct shrinker *s)
{
    const unsigned count = generator_statement_count(s->program);
    bool changed = false;

    for (unsigned i = 0; i < count; i++) {
        if (try_cut(s, i, GENERATOR_DROPPED))
            changed = true;
        else if (generator_holds_others(s->program, i) && try_cut(s, i, GENERATOR_UNWRAPPED))
            changed = true;
    }
    return changed;
}

static bool try_launch(struct shrinker *s, const struct generator_launch *launch)
{
    const struct generator_launch before = s->program->launch;

    if (memcmp(launch, &before, sizeof before) == 0 || !should_continue(s))
        return false;
    s->program->launch = *launch;
    if (still_fails(s))
        return true;
    s->program->launch = before;
    return false;
}

static void shrink_launch(struct shrinker *s)
{
    struct generator_launch launch = s->program->launch;
    const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    static const uint32_t fewer[] = {1, 2, 8, 32, 33, 64};

    launch.grid[0] = launch.grid[1] = launch.grid[2] = 1;
    if (!try_launch(s, &launch))
        launch = s->program->launch;
    launch.block[0] = threads;
    launch.block[1] = launch.block[2] = 1;
    try_launch(s, &launch);
    for (unsigned i = 0; i < sizeof fewer / sizeof *fewer && fewer[i] < threads; i++) {
        launch = s->program->launch;
        launch.block[0] = fewer[i];
        launch.block[1] = launch.block[2] = 1;
        if (try_launch(s, &launch))
            return;
    }
}

void differential_shrink(struct program *program, enum verdict verdict, differential_function *attempt,
                         const struct differential_effort *effort)
{
    struct shrinker s = {program, verdict, attempt, *effort};
    const unsigned count = generator_statement_count(program);

    shrink_launch(&s);
    for (unsigned run = count / 2; run > 3; run /= 2)
        for (unsigned first = 0; first < count; first += run)
            try_cut_run(&s, first, run);
    while (should_continue(&s) && shrink_statements(&s))
        continue;
}

/* ---- files ---- */

bool differential_write(const char *path, const struct program *program, const struct trial *trial)
{
    const struct generator_launch *launch = &program->launch;
    char *text = generator_print(program);
    FILE *file = fopen(path, "w");

    if (!file) {
        perror(path);
        free(text);
        return false;
    }
    fprintf(file, "// SPDX-License-Identifier: Apache-2.0\n");
    fprintf(file, "// seed %" PRIu64 " grid %u %u %u block %u %u %u shared %u\n", program->seed, launch->grid[0], launch->grid[1],
            launch->grid[2], launch->block[0], launch->block[1], launch->block[2], launch->dynamic_shared_bytes);
    fprintf(file, "// %s: ", differential_verdict_name(trial->verdict));
    for (const char *at = trial->message; *at; at++)
        fputc(*at == '\n' ? ' ' : *at, file);
    fprintf(file, "\n%s", text);
    free(text);
    return fclose(file) == 0;
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long length;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0) {
        rewind(file);
        text = calloc(1, (size_t)length + 1);
        if (text && fread(text, 1, (size_t)length, file) != (size_t)length) {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

bool differential_read(const char *path, char **text, struct generator_launch *launch, struct generator_data *data)
{
    uint64_t seed;
    const char *header;

    *text = read_text(path);
    header = *text ? strstr(*text, "// seed ") : NULL;
    if (!header || sscanf(header, "// seed %" SCNu64 " grid %u %u %u block %u %u %u shared %u", &seed, &launch->grid[0], &launch->grid[1],
                          &launch->grid[2], &launch->block[0], &launch->block[1], &launch->block[2], &launch->dynamic_shared_bytes) != 8) {
        fprintf(stderr, "%s: no line with seed and launch\n", path);
        free(*text);
        return false;
    }
    generator_fill(seed, data);
    return true;
}
