/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels: compares the oracle with the CUDA device of libcuda.so.1, Cuttle's or NVIDIA's.
 *   oracle_differential [--seed FIRST | --fresh PART] [--count N] [--seconds N] [--features LIST] [--write DIR]
 *                       [--patience SECONDS] [--failures N] [--no-shrink] [--print] [--oracle-only]
 *   oracle_differential FILE...      runs saved cases again
 * --fresh starts at a seed that no run has used before, and prints it. With CUTTLE_TEST_SEED=N the seed is computed from N and PART, so that the
 * parts of one run differ. The exit status is 1 if a kernel differs, 77 if there is no device. Seeds run in a process of their own, so that a
 * crash is reported. */
#include "differential.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define SHRINK_ATTEMPTS 600
#define MAX_FAILURES 5     /* the program stops then, unless --failures gives another number */
#define PART_SEEDS 1000000 /* distance between parts; no test counts that far */

struct options {
    uint64_t seed, count;
    time_t deadline; /* 0: none; shrinking also stops then */
    unsigned features, failures;
    const char *directory; /* for shrunk kernels */
    bool shrinks, prints;
    differential_function *attempt;
};

/* The state that the process which runs the seeds reports, even if it dies. */
struct progress {
    uint64_t next; /* the current seed */
    unsigned failures;
    bool no_device;
};

static void attempt_program(const struct program *program, differential_function *attempt, struct trial *trial)
{
    char *text = generator_print(program);
    const struct differential_case c = {text, &program->launch, &program->data};

    attempt(&c, trial);
    free(text);
}

static void report(const struct options *options, struct program *program, struct trial *trial, differential_function *attempt)
{
    char path[4096];

    printf("--seed %" PRIu64 " %s: %s\n", program->seed, differential_verdict_name(trial->verdict), trial->message);
    fflush(stdout); /* a later kernel may end the process */
    if (!options->shrinks)
        return;
    differential_stop_clock();
    differential_shrink(program, trial->verdict, attempt, &(struct differential_effort){SHRINK_ATTEMPTS, options->deadline});
    attempt_program(program, attempt, trial);
    snprintf(path, sizeof path, "%s/seed_%" PRIu64 ".ptx", options->directory, program->seed);
    if (differential_write(path, program, trial))
        printf("  shrunk: %s\n", path);
    fflush(stdout);
}

static bool should_continue(const struct options *options, const struct progress *progress)
{
    return progress->next < options->seed + options->count && progress->failures < options->failures && !progress->no_device &&
           (!options->deadline || time(NULL) < options->deadline);
}

static void run_seeds(const struct options *options, struct progress *progress)
{
    for (; should_continue(options, progress); progress->next++) {
        struct program *program = generator_create(progress->next, options->features);
        struct trial trial = {0};

        differential_start_clock();
        attempt_program(program, options->attempt, &trial);
        progress->no_device = trial.verdict == VERDICT_NO_DEVICE;
        if (trial.verdict != VERDICT_SAME && !progress->no_device) {
            progress->failures++;
            report(options, program, &trial, options->attempt);
        }
        generator_destroy(program);
        if (progress->no_device)
            return;
    }
}

/* Runs a seed whose process died again, in a process of its own. */
static void report_death(const struct options *options, uint64_t seed, int status)
{
    struct program *program = generator_create(seed, options->features);
    struct trial trial = {0};

    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
        printf("seed %" PRIu64 " took too long\n", seed);
    else
        printf("seed %" PRIu64 " ended the process: %s %d\n", seed, WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    fflush(stdout);
    if (options->shrinks)
        attempt_program(program, differential_try_apart, &trial);
    if (trial.verdict != VERDICT_SAME)
        report(options, program, &trial, differential_try_apart);
    generator_destroy(program);
}

static int run_all(const struct options *options)
{
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (progress == MAP_FAILED)
        return 1;
    *progress = (struct progress){.next = options->seed};
    while (should_continue(options, progress)) {
        int status;
        pid_t child;

        fflush(stdout);
        child = fork();
        if (child == 0) {
            run_seeds(options, progress);
            fflush(stdout);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 1;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            progress->failures++;
            report_death(options, progress->next++, status);
        }
    }
    if (progress->no_device) {
        fprintf(stderr, "no CUDA device: skipped\n");
        return EXIT_SKIPPED;
    }
    printf("%" PRIu64 " kernels, %u failed\n", progress->next - options->seed, progress->failures);
    return progress->failures != 0;
}

static int run_file(const char *path)
{
    struct generator_launch launch;
    struct generator_data data;
    struct trial trial = {0};
    char *text;

    if (!differential_read(path, &text, &launch, &data))
        return 1;
    differential_try_apart(&(struct differential_case){text, &launch, &data}, &trial);
    free(text);
    if (trial.verdict == VERDICT_NO_DEVICE)
        return EXIT_SKIPPED;
    if (trial.verdict != VERDICT_SAME)
        printf("%s %s: %s\n", path, differential_verdict_name(trial.verdict), trial.message);
    return trial.verdict != VERDICT_SAME;
}

static int usage(void)
{
    fprintf(stderr, "usage: oracle_differential [--seed FIRST | --fresh PART] [--count N] [--seconds N] [--features LIST] [--write DIR]\n"
                    "                           [--no-shrink] [--patience SECONDS] [--failures N] [--print] [--oracle-only]\n"
                    "       oracle_differential FILE...\nfeatures, * by default; all, none, -NAME take away:\n");
    for (unsigned i = 0; i < FEATURE_COUNT; i++)
        fprintf(stderr, "  %c %-16s %s\n", generator_default_features() >> i & 1 ? '*' : ' ', generator_feature_name(i),
                generator_feature_help(i));
    return 2;
}

/* Printed also if all goes well: a test that hangs is ended without any other output. */
static uint64_t fresh_seed(uint64_t part)
{
    const char *given = getenv("CUTTLE_TEST_SEED");
    uint32_t drawn = (uint32_t)time(NULL);
    uint64_t base;

    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
        drawn ^= (uint32_t)getpid() << 16;
    base = given && *given ? strtoull(given, NULL, 0) : drawn;
    fprintf(stderr, "CUTTLE_TEST_SEED=%" PRIu64 " shows these kernels again\n", base);
    return base * (100 * (uint64_t)PART_SEEDS) + part * PART_SEEDS;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
    if (!strcmp(name, "--seed"))
        options->seed = strtoull(value, NULL, 0);
    else if (!strcmp(name, "--fresh"))
        options->seed = fresh_seed(strtoull(value, NULL, 0));
    else if (!strcmp(name, "--count"))
        options->count = strtoull(value, NULL, 0);
    else if (!strcmp(name, "--seconds"))
        options->deadline = time(NULL) + (time_t)strtoul(value, NULL, 0);
    else if (!strcmp(name, "--patience"))
        differential_set_patience((unsigned)strtoul(value, NULL, 0));
    else if (!strcmp(name, "--failures"))
        options->failures = (unsigned)strtoul(value, NULL, 0);
    else if (!strcmp(name, "--write"))
        options->directory = value;
    else
        return !strcmp(name, "--features") && generator_parse_features(value, &options->features);
    return true;
}

static int print_program(const struct options *options)
{
    struct program *program = generator_create(options->seed, options->features);
    char *text = generator_print(program);

    fputs(text, stdout);
    free(text);
    generator_destroy(program);
    return 0;
}

/* The judges (tests/judge) use a separate folder for random kernels, for which no number of spilled registers is too high. */
static void separate_from_judges(void)
{
    const char *kept = getenv("CUTTLE_PTX_DIR");
    char folder[4096];

    if (!kept || !*kept || snprintf(folder, sizeof folder, "%s/random", kept) >= (int)sizeof folder)
        return;
    (void)mkdir(folder, 0777); /* it may exist */
    setenv("CUTTLE_PTX_DIR", folder, 1);
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1,
                              .count = 100,
                              .features = generator_default_features(),
                              .failures = MAX_FAILURES,
                              .directory = ".",
                              .shrinks = true,
                              .attempt = differential_try};
    int files = 0, worst = 0;

    setenv("CUDA_CACHE_DISABLE", "1", 1); /* random kernels would fill the user's cache */
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            const int status = run_file(argv[i]);

            worst = status > worst ? status : worst;
            files++;
        } else if (!strcmp(argv[i], "--no-shrink")) {
            options.shrinks = false;
        } else if (!strcmp(argv[i], "--print")) {
            options.prints = true;
        } else if (!strcmp(argv[i], "--oracle-only")) {
            options.attempt = differential_try_orders;
        } else if (i + 1 == argc || !read_option(&options, argv[i], argv[i + 1])) {
            return usage();
        } else {
            i++;
        }
    }
    if (files)
        return worst;
    separate_from_judges();
    return options.prints ? print_program(&options) : run_all(&options);
}
