/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that drivers read when they start. Most are a workaround for a fault of LLVM: before version 23 its AVX-512 code computes wrong results (docs/devices.md), and both lavapipe and
 * Intel's OpenCL runtime for CPUs use it. Each has a variable that disables AVX-512. A variable that the user has set is not changed.
 *
 * Mesa reads its variable once, when the driver enumerates its devices; Intel's runtime (2026.2) reads its own at the first
 * clCreateContext. Both were determined by setting the variable before, and removing it after, each call. So the variables are only set
 * during these calls, and neither the application's other libraries nor its child processes see them.
 *
 * Other threads may call getenv meanwhile, and setenv may free the array that they read. So the array is never changed: environ points to
 * a longer copy, and later to the old array again. Copies are never freed, since a thread may still read one. If another thread has called
 * setenv in between, which changes the current array or replaces it, that array stays and the variables are removed from it; a program
 * that calls setenv while other threads call getenv has undefined behaviour anyway. */
#include "driver_environment.h"

#include "core/base/locks.h"
#include "core/base/resource_limits.h"
#include "workarounds.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define CT_VARIABLES_MAX 8                                     /* variables added at a time */
#define AFFECTED (CT_DRIVER_LAVAPIPE | CT_DRIVER_INTEL_CL_CPU) /* the drivers that read the variables */

/* An array that replaces the application's, or did so earlier. */
struct copy {
    struct copy *next;
    char **theirs, **ours;
    size_t n_theirs, n_added;
    char *added[CT_VARIABLES_MAX]; /* these precede `theirs` in `ours`, where getenv finds the first one of a name */
};

static struct {
    struct ct_mutex lock;
    unsigned depth;
    struct copy *copies; /* environ is the first one if in_use */
    bool in_use;
} state = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_ENVIRONMENT)};

static size_t length_of(char *const *array)
{
    size_t n = 0;

    while (array && array[n])
        n++;
    return n;
}

static char *assignment(const struct ct_variable *variable)
{
    const size_t size = strlen(variable->name) + strlen(variable->value) + 2;
    char *text = malloc(size);

    if (text)
        snprintf(text, size, "%s=%s", variable->name, variable->value);
    return text;
}

/* Chooses the variables that are not set, or are replaced. */
static void choose(struct copy *copy, const struct ct_variable *variables, size_t count)
{
    for (size_t i = 0; i < count && copy->n_added < CT_VARIABLES_MAX; i++) {
        char *text = !variables[i].replaces && getenv(variables[i].name) ? NULL : assignment(&variables[i]);

        if (text)
            copy->added[copy->n_added++] = text;
    }
}

/* A copy of the array with the missing variables added. NULL: none is missing, or the memory is exhausted. */
static struct copy *extended(char **theirs, const struct ct_variable *variables, size_t count)
{
    struct copy *copy = calloc(1, sizeof *copy);

    if (!copy)
        return NULL;
    choose(copy, variables, count);
    copy->next = state.copies;
    copy->theirs = theirs;
    copy->n_theirs = length_of(theirs);
    copy->ours = copy->n_added ? calloc(copy->n_theirs + copy->n_added + 1, sizeof *copy->ours) : NULL;
    if (!copy->ours) {
        while (copy->n_added)
            free(copy->added[--copy->n_added]);
        free(copy);
        return NULL;
    }
    memcpy(copy->ours, copy->added, copy->n_added * sizeof *copy->added);
    if (copy->n_theirs)
        memcpy(copy->ours + copy->n_added, theirs, copy->n_theirs * sizeof *theirs);
    return copy;
}

static void extend_locked(const struct ct_variable *variables, size_t count)
{
    char **theirs = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    struct copy *copy = extended(theirs, variables, count);

    if (!copy)
        return;
    state.copies = copy;
    /* release: pairs with getenv's reads of the array. If another thread has just replaced the array, that array stays. */
    state.in_use = __atomic_compare_exchange_n(&environ, &theirs, copy->ours, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Whether no other thread has set or removed a variable in our array. */
static bool is_untouched(const struct copy *copy)
{
    size_t n = 0;

    while (n < copy->n_theirs && copy->ours[copy->n_added + n] == copy->theirs[n])
        n++;
    for (size_t i = 0; i < copy->n_added; i++)
        if (copy->ours[i] != copy->added[i])
            return false;
    return n == copy->n_theirs && !copy->ours[copy->n_added + n];
}

/* Removes our variables from an array that is in use, as unsetenv does. */
static void remove_from(char **array, const struct copy *copy)
{
    char **to = array;

    for (char **from = array; *from; from++) {
        bool is_added = false;

        for (size_t i = 0; i < copy->n_added; i++)
            is_added |= *from == copy->added[i];
        if (!is_added)
            *to++ = *from;
    }
    *to = NULL;
}

static void restore_locked(void)
{
    const struct copy *copy = state.copies;
    char **ours = copy->ours;

    state.in_use = false;
    /* `theirs` may have been freed if environ is no longer `ours`. */
    if (environ == ours && is_untouched(copy) &&
        __atomic_compare_exchange_n(&environ, &ours, copy->theirs, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    if (environ)
        remove_from(environ, copy);
}

void ct_environment_enter(const struct ct_variable *variables, size_t count)
{
    ct_mutex_lock(&state.lock);
    if (state.depth++ == 0)
        extend_locked(variables, count);
    ct_mutex_unlock(&state.lock);
}

void ct_environment_leave(void)
{
    ct_mutex_lock(&state.lock);
    if (--state.depth == 0 && state.in_use)
        restore_locked();
    ct_mutex_unlock(&state.lock);
}

static bool has_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

static bool needs_no_avx512(void)
{
    return has_avx512() && (ct_workarounds_of(AFFECTED, "") & CT_WORKAROUND(AVX512));
}

void ct_driver_environment_enter_with(const struct ct_variable *others, size_t n_others)
{
    const struct {
        bool is_needed;
        struct ct_variable variable;
    } all[] = {
        {needs_no_avx512(), {"GALLIUM_OVERRIDE_CPU_CAPS", "avx", false}},       /* lavapipe: its name for at most AVX2 */
        {needs_no_avx512(), {"CL_CONFIG_CPU_TARGET_ARCH", "core-avx2", false}}, /* Intel's OpenCL runtime for CPUs */
        /* Mesa: a file of its cache that grows beyond the limit would end the process (SIGXFSZ). */
        {ct_limit_of_files() != UINT64_MAX, {"MESA_SHADER_CACHE_DISABLE", "true", false}},
    };
    struct ct_variable needed[CT_VARIABLES_MAX];
    size_t count = 0;

    _Static_assert(sizeof all / sizeof *all + CT_OTHER_VARIABLES_MAX <= CT_VARIABLES_MAX, "they are added at one time");
    for (; count < n_others && count < CT_OTHER_VARIABLES_MAX; count++)
        needed[count] = others[count];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is_needed)
            needed[count++] = all[i].variable;
    ct_environment_enter(needed, count);
}

void ct_driver_environment_enter(void)
{
    ct_driver_environment_enter_with(NULL, 0);
}

void ct_driver_environment_leave(void)
{
    ct_environment_leave();
}
