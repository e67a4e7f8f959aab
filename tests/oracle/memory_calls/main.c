/* SPDX-License-Identifier: Apache-2.0 */
/* Random sequences of memory calls; a line for each call, to be compared with the trace of another driver.
 *
 *     oracle_memory_calls [--first N] [--count N] [--calls N] [--together N] [--seconds N] [--check]
 *     oracle_memory_calls --compare NATIVE OURS [--all]
 *
 * Sequences run in child processes, --together of them in one (50), since drivers start slowly; the objects that a sequence leaves are
 * freed after it. A process that crashes, hangs, or makes its context unusable ends its sequence and no other one. --check is for one
 * driver: it fails if the driver crashes or hangs, or returns a code that the manual does not list for the function. */
#include "rows.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUP_device, GROUP_host, GROUP_virtual, GROUP_pools, GROUP_managed, GROUP_arrays, GROUP_contexts, GROUP_all };

const struct calls_row calls_rows[] = {
#define ROW(function, group, weight, creates, codes) {#function, calls_##function, GROUP_##group, weight, creates, " " codes " "},
#include "calls.def"
#undef ROW
};
const size_t calls_row_count = sizeof calls_rows / sizeof *calls_rows;

static struct {
    uint64_t first, count;
    unsigned calls, together, seconds;
    bool check;
} options = {.count = 100, .calls = 12, .together = 50, .seconds = 20};

/* Memory shared between a process of sequences and the parent, which never calls CUDA. */
struct progress {
    uint64_t at;
    bool began, failed;
};

enum { EXIT_SPOILED = 3, EXIT_NO_DEVICE = 77 };

/* ---- one sequence ---- */
static unsigned weight_of(const struct calls_row *row, unsigned theme, bool creating)
{
    if (creating)
        return row->creates && (row->group == theme || theme >= GROUP_contexts) ? row->weight : 0;
    if (row->group == theme)
        return row->weight * 6;
    if (row->group == GROUP_all)
        return row->weight * 3;
    return theme == GROUP_all || row->group == GROUP_device ? row->weight : row->group == GROUP_contexts ? 1 : 0;
}

static const struct calls_row *some_row(struct calls *c, unsigned theme, bool creating)
{
    uint64_t sum = 0, at;
    size_t i = 0;

    for (size_t k = 0; k < calls_row_count; k++)
        sum += weight_of(&calls_rows[k], theme, creating);
    at = calls_number(c, sum);
    while (at >= weight_of(&calls_rows[i], theme, creating))
        at -= weight_of(&calls_rows[i++], theme, creating);
    return &calls_rows[i];
}

static void run_sequence(struct calls *c, uint64_t number)
{
    unsigned theme, length;

    calls_begin_sequence(c, number);
    printf("== %llu\n", (unsigned long long)number);
    theme = (unsigned)calls_number(c, GROUP_all + 1);
    length = 5 + (unsigned)calls_number(c, options.calls) + (theme == GROUP_virtual ? 5 : 0); /* three calls are needed to get memory */
    for (unsigned i = 0; i < length; i++) {
        c->row = some_row(c, theme, i < 2);
        c->row->call(c);
    }
    c->row = NULL;
}

/* ---- processes ---- */
static void run_some(struct progress *progress)
{
    static struct calls c;
    const uint64_t end = options.first + options.count;

    c.check = options.check;
    if (!calls_start(&c))
        exit(EXIT_NO_DEVICE);
    for (unsigned i = 0; i < options.together && progress->at < end; i++) {
        alarm(options.seconds);
        progress->began = true;
        run_sequence(&c, progress->at);
        if (!calls_end_sequence(&c)) {
            printf("(spoiled\n");
            exit(EXIT_SPOILED);
        }
        progress->failed |= c.failed;
        progress->at++;
        progress->began = false;
    }
    cuCtxDestroy(c.contexts[1]);
    cuDevicePrimaryCtxRelease(0);
    exit(EXIT_SUCCESS);
}

/* Returns an exit status if the sequences cannot run here, else EXIT_SUCCESS. */
static int run_process(struct progress *progress)
{
    const uint64_t before = progress->at;
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0)
        run_some(progress);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return EXIT_FAILURE;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return EXIT_SUCCESS;
    if (progress->at == before && !progress->began) {
        fprintf(stderr, "a process does not come to its first sequence, status %#x\n", (unsigned)status);
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
    }
    if (WIFSIGNALED(status))
        printf("\n(died of signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) != EXIT_SPOILED)
        printf("\n(left with %d\n", WEXITSTATUS(status));
    if (options.check) {
        fprintf(stderr, "sequence %llu ends its process, status %#x\n", (unsigned long long)progress->at, (unsigned)status);
        progress->failed = true;
    }
    progress->at += progress->began;
    progress->began = false;
    return EXIT_SUCCESS;
}

static int run_all(void)
{
    int status;
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (progress == MAP_FAILED)
        return EXIT_FAILURE;
    progress->at = options.first;
    while (progress->at < options.first + options.count)
        if ((status = run_process(progress)) != EXIT_SUCCESS)
            return status;
    return progress->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- options ---- */
static bool parse(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        char *end = NULL;
        uint64_t value;

        if (strcmp(name, "--check") == 0) {
            options.check = true;
            continue;
        }
        value = i + 1 < count ? strtoull(arguments[++i], &end, 0) : 0;
        if (!end || *end)
            return false;
        if (strcmp(name, "--first") == 0)
            options.first = value;
        else if (strcmp(name, "--count") == 0)
            options.count = value;
        else if (strcmp(name, "--calls") == 0 && value > 0 && value <= 40)
            options.calls = (unsigned)value;
        else if (strcmp(name, "--together") == 0 && value > 0)
            options.together = (unsigned)value;
        else if (strcmp(name, "--seconds") == 0)
            options.seconds = (unsigned)value;
        else
            return false;
    }
    return true;
}

int main(int count, char **arguments)
{
    if (count >= 4 && count <= 5 && strcmp(arguments[1], "--compare") == 0)
        return calls_compare(arguments[2], arguments[3], count == 5 && strcmp(arguments[4], "--all") == 0);
    if (!parse(count, arguments)) {
        fprintf(stderr,
                "usage: %s [--first N] [--count N] [--calls N] [--together N] [--seconds N] [--check]\n       %s --compare NATIVE OURS "
                "[--all]\n",
                arguments[0], arguments[0]);
        return EXIT_FAILURE;
    }
    return run_all();
}
