/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour of a libcuda as a table: rows that are checked against the libcuda that is loaded. With NVIDIA's own driver this checks the
 * table, with ours the library. Every row that differs is printed; with -v all rows.
 *
 * A call that crashes ends the process of its group. The group then runs again without that row, and without printing the rows up to it:
 * later rows may need the effects of earlier ones. Crashes of NVIDIA's driver are printed but are not differences; ours must return a
 * result.
 *
 * The including file must define: FACTS_FILE, a file of rows as native_facts.def describes them; enum group, each GROUP_ and the group's
 * name, and last GROUP_COUNT; prepare(), which creates in the process of a group what its rows need; and FACTS_RUN(group, rows, user) if
 * rows(user) is to be called elsewhere than after prepare(). */
#ifndef CUTTLE_TESTS_FACTS_H
#define CUTTLE_TESTS_FACTS_H

#include "which_driver.h"

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- rows ---- */
enum row_kind { ROW_FACT, ROW_NUMBER, ROW_OURS };

struct fact {
    enum group group;
    const char *label;
    enum row_kind kind;
    CUresult code;
    size_t value;
    CUresult (*call)(size_t *out);
};

static const char *name_of(CUresult code)
{
    const char *name = NULL;

    return cuGetErrorName(code, &name) == CUDA_SUCCESS && name ? name : "(no error code)";
}

#define JOIN(a, b) a##b
#define NAME(line) JOIN(call_, line)
#define FACT(group, label, code, call)                                                                                                     \
    static CUresult NAME(__LINE__)(size_t *out)                                                                                            \
    {                                                                                                                                      \
        (void)out;                                                                                                                         \
        return call;                                                                                                                       \
    }
#define NUMBER(group, label, value, call, variable)                                                                                        \
    static CUresult NAME(__LINE__)(size_t *out)                                                                                            \
    {                                                                                                                                      \
        CUresult r = call;                                                                                                                 \
        *out = (size_t)variable;                                                                                                           \
        return r;                                                                                                                          \
    }
#define OURS FACT
#define CALL(label, before, without, code, inside, call) FACT(, , , call)
#include FACTS_FILE

static const struct fact facts[] = {
#define FACT(group, label, code, call) {GROUP_##group, #group ": " label, ROW_FACT, code, 0, NAME(__LINE__)},
#define NUMBER(group, label, value, call, variable) {GROUP_##group, #group ": " label, ROW_NUMBER, CUDA_SUCCESS, value, NAME(__LINE__)},
#define OURS(group, label, code, call) {GROUP_##group, #group ": " label, ROW_OURS, code, 0, NAME(__LINE__)},
/* The same call in every state in which it fails. */
#define CALL(label, before, without, code, inside, call)                                                                                   \
    {GROUP_before, "before cuInit: " label, ROW_##before, CUDA_ERROR_NOT_INITIALIZED, 0, NAME(__LINE__)},                                  \
        {GROUP_without, "without a context: " label, ROW_##without, code, 0, NAME(__LINE__)},                                              \
        {GROUP_##inside, "in a host function: " label, ROW_FACT, CUDA_ERROR_NOT_PERMITTED, 0, NAME(__LINE__)},                             \
        {GROUP_after, "at the end: " label, ROW_FACT, CUDA_ERROR_DEINITIALIZED, 0, NAME(__LINE__)},
#include FACTS_FILE
};
#define FACTS (sizeof facts / sizeof *facts)

/* Memory shared between the process of a group and the parent, which never calls CUDA. */
struct progress {
    size_t row;  /* about to be called; FACTS: none yet */
    size_t told; /* rows of the group before this one have been printed */
    int differences;
    bool crashes[FACTS]; /* on this driver */
};

/* The call, and its result. */
static void check(const struct fact *fact, struct progress *progress, bool verbose)
{
    size_t value = 0;
    CUresult code = fact->call(&value);
    bool same = code == fact->code && (fact->kind != ROW_NUMBER || value == fact->value);
    bool deliberate = !same && fact->kind == ROW_OURS && !on_cuttle();

    if (progress->row < progress->told)
        return;
    progress->told = progress->row + 1;
    progress->differences += !same && !deliberate;
    if (same && !verbose)
        return;
    printf("%-8s %-60s %s", same ? "same" : deliberate ? "ours" : "DIFFERS", fact->label, name_of(code));
    if (fact->kind == ROW_NUMBER && code == CUDA_SUCCESS)
        printf(" %zd", (ssize_t)value);
    if (!same && fact->kind == ROW_NUMBER)
        printf(", not %zd", (ssize_t)fact->value);
    else if (!same)
        printf(", not %s", name_of(fact->code));
    printf("\n");
    fflush(stdout);
}

struct run {
    enum group group;
    struct progress *progress;
    bool verbose;
};

static void check_rows(void *user)
{
    const struct run *run = user;

    for (size_t i = 0; i < FACTS; i++) {
        if (facts[i].group != run->group || run->progress->crashes[i])
            continue;
        run->progress->row = i;
        check(&facts[i], run->progress, run->verbose);
    }
}

static int run_group(enum group group, struct progress *progress, bool verbose)
{
    static struct run run; /* the rows may be checked at the end of this function */

    if (!prepare(group)) {
        printf("group %d: cannot be prepared\n", (int)group);
        return EXIT_FAILURE;
    }
    run = (struct run){group, progress, verbose};
#ifdef FACTS_RUN
    FACTS_RUN(group, check_rows, &run);
#else
    check_rows(&run);
#endif
    return EXIT_SUCCESS;
}

/* Runs a group in processes of its own, until one reaches the end. Returns false if even the fixture fails. */
static bool run_in_child(enum group group, struct progress *progress, bool verbose)
{
    progress->told = 0;
    for (;;) {
        int status = 0;
        pid_t child;

        progress->row = FACTS;
        fflush(stdout); /* otherwise the contents of the buffer would be printed twice */
        child = fork(); /* before cuInit */
        if (child < 0)
            return false;
        if (child == 0) {
            status = run_group(group, progress, verbose);
            fflush(stdout);
            _exit(status);
        }
        if (waitpid(child, &status, 0) != child)
            return false;
        if (WIFEXITED(status))
            return WEXITSTATUS(status) == EXIT_SUCCESS;
        if (progress->row >= FACTS || progress->crashes[progress->row])
            return false;
        progress->crashes[progress->row] = true;
        progress->told = progress->row + 1;
        progress->differences += on_cuttle();
        printf("CRASHES  %-60s signal %d\n", facts[progress->row].label, WTERMSIG(status));
    }
}

static int check_facts(int count, char **arguments)
{
    bool verbose = count > 1 && !strcmp(arguments[1], "-v");
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0;

    if (progress == MAP_FAILED)
        return EXIT_FAILURE;
    for (int group = 0; group < GROUP_COUNT; group++)
        failures += !run_in_child((enum group)group, progress, verbose);
    failures += progress->differences;
    printf("%zu facts; %s\n", FACTS, failures ? "some differ" : "all the same");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
