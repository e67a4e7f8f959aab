/* SPDX-License-Identifier: Apache-2.0 */
/* The library cannot see what a program does with a result. It is taken for ignored if the same thread goes on: if its next call is neither one that asks for
 * the name of the error nor one that releases something, as programs do that give up; or if the process exits with status 0. Results by which programs learn
 * whether something is there are not errors. */
#include "calls.h"

#include "core/backing/address_history.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "places.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "check"
#define REASON_BYTES 256

atomic_bool ct_check_calls_watched;

/* The last call of a thread that failed, until it is known whether the program goes on. */
struct failure {
    const char *symbol; /* NULL: none */
    const char *error_name;
    CUresult result;
    struct ct_host_stack stack;
    char reason[REASON_BYTES];
};
static _Thread_local struct failure pending;

/* ---- what calls mean ---- */

static bool contains_any(const char *symbol, const char *const *words)
{
    for (; *words; words++)
        if (strstr(symbol, *words))
            return true;
    return false;
}

/* Whether a call only asks something: programs probe with these. */
static bool is_question(const char *symbol)
{
    static const char *const words[] = {"Get", "Query", "CanAccess", "Occupancy", "cuLogs", "cuInit", NULL};

    return contains_any(symbol, words);
}

static bool gives_up(const char *symbol)
{
    static const char *const words[] = {"Free", "Destroy", "Unload", "Release", "Unregister", "Reset", "PopCurrent", "Detach", NULL};

    return contains_any(symbol, words);
}

static bool asks_for_error(const char *symbol)
{
    static const char *const words[] = {"cuGetErrorName", "cuGetErrorString", "cuLogs", NULL};

    return contains_any(symbol, words);
}

static bool is_answer(CUresult result)
{
    static const CUresult answers[] = {CUDA_SUCCESS,
                                       CUDA_ERROR_NOT_READY,
                                       CUDA_ERROR_NOT_FOUND,
                                       CUDA_ERROR_NOT_SUPPORTED,
                                       CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
                                       CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                                       CUDA_ERROR_DEINITIALIZED};

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i] == result)
            return true;
    return false;
}

/* ---- reports ---- */

static struct {
    struct ct_mutex lock; /* guards the list */
    struct ct_place *places;
} reported = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_CHECK)};

static void report_locked(const struct failure *failure)
{
    const void *caller = failure->stack.n ? failure->stack.frames[0] : NULL;
    struct ct_report report;

    if (!ct_place_is_new(&reported.places, caller, failure->symbol, (int)failure->result))
        return;
    ct_report_begin(&report, "api-error", "%s failed with %s, and the program went on", failure->symbol, failure->error_name);
    if (*failure->reason)
        ct_report_line(&report, "because: %s", failure->reason);
    ct_report_string(&report, "call", failure->symbol);
    ct_report_string(&report, "error", failure->error_name);
    ct_report_string(&report, "reason", failure->reason);
    ct_report_stack(&report, "called_by", "called by", &failure->stack);
    (void)ct_report_end(&report);
}

static void report_pending(void)
{
    ct_mutex_lock(&reported.lock);
    report_locked(&pending);
    ct_mutex_unlock(&reported.lock);
}

void ct_check_call(const char *symbol, CUresult result, const char *error_name)
{
    if (pending.symbol && !asks_for_error(symbol)) {
        if (gives_up(symbol))
            return;
        report_pending();
    }
    pending.symbol = NULL;
    if (is_answer(result) || is_question(symbol)) {
        ct_log_forget_failure(); /* it is not the reason of a later call's failure */
        return;
    }
    pending = (struct failure){.symbol = symbol, .error_name = error_name, .result = result};
    ct_host_stack_take(&pending.stack);
    snprintf(pending.reason, sizeof pending.reason, "%s", ct_log_last_failure());
    ct_log_forget_failure();
}

void ct_check_calls_end(int status)
{
    if (pending.symbol && status == EXIT_SUCCESS)
        report_pending();
    pending.symbol = NULL;
}

void ct_check_calls_watch(void)
{
    atomic_store_explicit(&ct_check_calls_watched, ct_config()->check, memory_order_relaxed);
}
