/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions of the API a host function (cuLaunchHostFunc) and a callback (cuStreamAddCallback) of a stream may call.
 *
 * Every symbol of entry_points.def is called in a host function, in a callback and outside of both (every_call.h). Each call finds the same
 * objects. The expected results are in host_functions.def, which the library uses, too: a call that is not ALLOWED
 * returns CUDA_ERROR_NOT_PERMITTED, and an allowed one returns the same as outside. With NVIDIA's driver this checks the table.
 *
 *   host_function_calls [PROCESSES [SECONDS [SYMBOL...]]]
 *
 * Calls run in processes of their own, several at a time, since some end the process or wait forever. */
#include "every_call.h"
#include "which_driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const bool allowed[CT_ROW_COUNT] = {
#define ALLOWED(symbol) [CT_ROW_##symbol] = true,
#include "host_functions.def"
};

static const char *const otherwise[CT_ROW_COUNT] = {
#define CALL(symbol, call)
#define OTHERWISE(symbol, reason) [CT_ROW_##symbol] = reason,
#include "host_function_calls.def"
};

/* ---- processes ---- */
enum place { IN_FUNCTION, IN_CALLBACK, OUTSIDE, PLACES };
static const char *const places[] = {"in a host function", "in a callback", "outside"};
enum state { WAITING, RUNNING, DONE, ENDED, HANGS, LEFT_OUT };
struct outcome {
    _Atomic int state; /* enum state */
    CUresult code;
    int signal; /* the signal that ended the process */
};

/* Memory shared between the processes that make calls and the parent, which never calls CUDA. */
static struct outcome (*outcomes)[CT_ENTRY_POINT_COUNT]; /* [PLACES] */

struct errand {
    const struct every_call_subject *subject;
    struct outcome *outcome;
};

static void CUDA_CB run_errand(void *user)
{
    struct errand *errand = user;

    errand->outcome->code = every_call(errand->subject);
    errand->outcome->state = DONE;
}

static void CUDA_CB run_in_callback(CUstream stream, CUresult status, void *user)
{
    (void)stream, (void)status;
    run_errand(user);
}

/* Returns when the call has returned; the signal ends the process if it does not. */
static void run_subject(enum place place, size_t i)
{
    static struct errand errand;
    struct outcome *outcome = &outcomes[place][i];
    CUresult r = CUDA_SUCCESS;

    errand = (struct errand){&every_call_subjects[i], outcome};
    outcome->state = RUNNING;
    alarm(5);
    if (place == IN_FUNCTION)
        r = cuLaunchHostFunc(at.runner, run_errand, &errand);
    else if (place == IN_CALLBACK)
        r = cuStreamAddCallback(at.runner, run_in_callback, &errand, 0);
    else
        run_errand(&errand);
    while (r == CUDA_SUCCESS && outcome->state == RUNNING)
        nanosleep(&(struct timespec){0, 50000}, NULL);
    alarm(20);
}

enum ending { FINISHED, CANNOT_PREPARE };

/* Subjects `first`, `first` + `step`, ... that have not been called yet. A call that succeeded gets fresh objects. */
static enum ending run_share(enum place place, size_t first, size_t step)
{
    bool prepared = false;

    for (size_t i = first; i < CT_ENTRY_POINT_COUNT; i += step) {
        struct outcome *outcome = &outcomes[place][i];

        if (outcome->state != WAITING)
            continue;
        alarm(20);
        if (!prepared && !every_call_make_objects())
            return CANNOT_PREPARE;
        cuCtxSetCurrent(at.context);
        run_subject(place, i);
        prepared = outcome->code != CUDA_SUCCESS;
        if (!prepared)
            cuCtxDestroy_v2(at.context);
    }
    return FINISHED;
}

static pid_t start_share(enum place place, size_t first, size_t step)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit((int)run_share(place, first, step));
    }
    return child;
}

/* Records which call ended the process. Returns false if it was none, so that another process would not help. */
static bool note_end(enum place place, size_t first, size_t step, int status)
{
    for (size_t i = first; i < CT_ENTRY_POINT_COUNT; i += step) {
        struct outcome *outcome = &outcomes[place][i];

        if (outcome->state != RUNNING)
            continue;
        outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        outcome->state = outcome->signal == SIGALRM ? HANGS : ENDED;
        return true;
    }
    return WIFSIGNALED(status); /* during the cleanup after a call */
}

#define PROCESSES_MOST 64

static size_t index_of(const pid_t *pids, size_t count, pid_t pid)
{
    size_t i = 0;

    while (i < count && pids[i] != pid)
        i++;
    return i;
}

static void run_place(enum place place, size_t processes, time_t deadline)
{
    pid_t pids[PROCESSES_MOST], child;
    int status;

    for (size_t i = 0; i < processes; i++)
        pids[i] = start_share(place, i, processes);
    while ((child = wait(&status)) > 0) {
        size_t i = index_of(pids, processes, child);

        if (i == processes)
            continue;
        pids[i] = 0;
        if (note_end(place, i, processes, status) && time(NULL) < deadline)
            pids[i] = start_share(place, i, processes);
        else if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_PREPARE)
            printf("a process cannot make its objects\n");
    }
}

/* Calls outside are unnecessary if the result inside agrees with the table. */
static void leave_out_refused(void)
{
    for (size_t i = 0; i < CT_ENTRY_POINT_COUNT; i++)
        if (!allowed[every_call_subjects[i].row] && outcomes[IN_FUNCTION][i].state == DONE)
            outcomes[OUTSIDE][i].state = LEFT_OUT;
}

/* ---- results ---- */
static const char *describe(const struct outcome *outcome, char *text, size_t size)
{
    const char *name = NULL;

    if (outcome->state == DONE && cuGetErrorName(outcome->code, &name) == CUDA_SUCCESS && name)
        return name;
    if (outcome->state == DONE)
        snprintf(text, size, "%d", (int)outcome->code);
    else if (outcome->state == ENDED)
        snprintf(text, size, "(ends by signal %d)", outcome->signal);
    else
        snprintf(text, size, outcome->state == HANGS ? "(waits for ever)" : "(not called)");
    return text;
}

static bool is_right(const struct every_call_subject *subject, const struct outcome *inside, const struct outcome *outside)
{
    if (inside->state != DONE)
        return false;
    if (!allowed[subject->row])
        return inside->code == CUDA_ERROR_NOT_PERMITTED;
    return outside->state == DONE && inside->code == outside->code;
}

/* Returns 1 for a difference. */
static int tell(size_t i, enum place place)
{
    const struct every_call_subject *subject = &every_call_subjects[i];
    const struct outcome *inside = &outcomes[place][i], *outside = &outcomes[OUTSIDE][i];
    bool right = is_right(subject, inside, outside);
    const char *reason = right ? NULL : otherwise[subject->row];
    char first[32], second[32];

    if (inside->state == LEFT_OUT || !dlsym(RTLD_DEFAULT, subject->symbol))
        return 0;
    if (!right || getenv("VERBOSE"))
        printf("%-7s %s %s: %s, outside %s%s%s\n",
               right    ? "same"
               : reason ? "ours"
                        : "DIFFERS",
               subject->symbol, places[place], describe(inside, first, sizeof first), describe(outside, second, sizeof second),
               reason ? ": " : "", reason ? reason : "");
    return !right && !(reason && !on_cuttle());
}

static void leave_out_all_but(char **symbols, int count)
{
    for (size_t i = 0; i < CT_ENTRY_POINT_COUNT; i++) {
        bool named = count == 0;

        for (int s = 0; s < count && !named; s++)
            named = !strcmp(symbols[s], every_call_subjects[i].symbol);
        for (int place = 0; place < PLACES && !named; place++)
            outcomes[place][i].state = LEFT_OUT;
    }
}

int main(int count, char **arguments)
{
    size_t processes = count > 1 ? strtoul(arguments[1], NULL, 10) : 2;
    time_t seconds = count > 2 ? atoi(arguments[2]) : 600, begin = time(NULL);
    int differences = 0;

    outcomes = mmap(NULL, PLACES * sizeof *outcomes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcomes == MAP_FAILED || processes < 1 || processes > PROCESSES_MOST)
        return EXIT_FAILURE;
    every_call_make_file();
    leave_out_all_but(arguments + 3, count > 3 ? count - 3 : 0);
    for (int place = 0; place < PLACES; place++) {
        if (place == OUTSIDE)
            leave_out_refused();
        run_place((enum place)place, processes, begin + seconds * (place + 1) / PLACES);
    }
    for (size_t i = 0; i < CT_ENTRY_POINT_COUNT; i++)
        differences += tell(i, IN_FUNCTION) + tell(i, IN_CALLBACK);
    printf("%d symbols, %d differences, %ld s\n", (int)CT_ENTRY_POINT_COUNT, differences, (long)(time(NULL) - begin));
    return differences ? EXIT_FAILURE : EXIT_SUCCESS;
}
