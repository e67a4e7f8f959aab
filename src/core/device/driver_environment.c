/* SPDX-License-Identifier: Apache-2.0 */
/* Protection from a fault of LLVM: before version 23 it computes wrongly with AVX-512 (docs/devices.md), and both lavapipe and Intel's
 * OpenCL runtime for CPUs are made of it. Each has a variable that keeps it from using AVX-512. The user who has set one has decided.
 *
 * Mesa reads its variable once, when the driver enumerates its devices; Intel's runtime (2026.2) reads its own at the first
 * clCreateContext. Both were found by setting it and removing it again before and behind each call. The environment therefore has the
 * variables around these calls only, and the application's other libraries and its child processes see none of it.
 *
 * Other threads may call getenv meanwhile, and setenv may free the array that they read. So the array is never changed: a longer copy takes
 * its place and the old one comes back. Copies are kept, as a thread may still read one. If another thread has called setenv in between,
 * which the C library does in the array that it finds or in one of its own, that array stays and the variables are taken out of it; a
 * program that does that while others call getenv has undefined behaviour anyway. */
#include "driver_environment.h"

#include "core/base/locks.h"
#include "workarounds.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define CT_VARIABLES_MAX 4 /* that are added at once */
#define AFFECTED (CT_DRIVER_LAVAPIPE | CT_DRIVER_INTEL_CL_CPU) /* the drivers that read the variables */

/* An array that stands in for the application's, or once did. */
struct copy {
    struct copy *next;
    char **theirs, **ours;
    size_t n_theirs, n_added;
    char *added[CT_VARIABLES_MAX]; /* behind theirs in ours */
};

static struct {
    struct ct_mutex lock;
    unsigned depth;
    struct copy *copies; /* the first one is in use if in_use */
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

/* The variables that the environment lacks. */
static void choose(struct copy *copy, const struct ct_variable *variables, size_t count)
{
    for (size_t i = 0; i < count && copy->n_added < CT_VARIABLES_MAX; i++) {
        char *text = getenv(variables[i].name) ? NULL : assignment(&variables[i]);

        if (text)
            copy->added[copy->n_added++] = text;
    }
}

/* A copy of the array with the variables that it lacks. NULL: it lacks none, or there is no memory. */
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
    if (copy->n_theirs)
        memcpy(copy->ours, theirs, copy->n_theirs * sizeof *theirs);
    memcpy(copy->ours + copy->n_theirs, copy->added, copy->n_added * sizeof *copy->added);
    return copy;
}

static void extend_locked(const struct ct_variable *variables, size_t count)
{
    char **theirs = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    struct copy *copy = extended(theirs, variables, count);

    if (!copy)
        return;
    state.copies = copy;
    /* release: pairs with what getenv reads of the array; if another thread has changed the environment just now, its array stays */
    state.in_use = __atomic_compare_exchange_n(&environ, &theirs, copy->ours, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Whether no other thread has set or removed a variable in our array. */
static bool is_untouched(const struct copy *copy)
{
    size_t n = 0;

    while (n < copy->n_theirs && copy->ours[n] == copy->theirs[n])
        n++;
    for (size_t i = 0; n == copy->n_theirs && i < copy->n_added; i++)
        if (copy->ours[n + i] != copy->added[i])
            return false;
    return n == copy->n_theirs && !copy->ours[n + copy->n_added];
}

/* Takes our variables out of an array that is in use, as unsetenv does. */
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
    /* Theirs may be freed once another array than ours is in use. */
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

void ct_driver_environment_enter(void)
{
    static const struct ct_variable no_avx512[] = {
        {"GALLIUM_OVERRIDE_CPU_CAPS", "avx"},       /* lavapipe: up to AVX2, by that name */
        {"CL_CONFIG_CPU_TARGET_ARCH", "core-avx2"}, /* Intel's OpenCL runtime for CPUs */
    };
    const bool is_needed = has_avx512() && (ct_workarounds_of(AFFECTED, "") & CT_WORKAROUND(AVX512));

    ct_environment_enter(no_avx512, is_needed ? sizeof no_avx512 / sizeof *no_avx512 : 0);
}

void ct_driver_environment_leave(void)
{
    ct_environment_leave();
}
