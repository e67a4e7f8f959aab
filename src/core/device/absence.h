/* SPDX-License-Identifier: Apache-2.0 */
/* Why a backend has no device: collected while it starts, and told to the user if no other backend has one. */
#ifndef CT_CORE_ABSENCE_H
#define CT_CORE_ABSENCE_H

#include <stddef.h>

struct ct_absence {
    char text[1024]; /* clauses, separated by semicolons */
};

/* Adds a clause, and returns it; what does not fit is truncated. */
const char *ct_absence_add(struct ct_absence *absence, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, for a file with a channel of the log: also logs it at level info. */
#define ct_absence_note(absence, ...) ct_absence_log(ct_absence_add((absence), __VA_ARGS__), CT_CHANNEL, __FILE__, __LINE__)
void ct_absence_log(const char *clause, const char *channel, const char *file, int line);
/* Adds the variables that are set, with their values: they may be the cause. */
void ct_absence_add_variables(struct ct_absence *absence, const char *const *names, size_t count);

#endif
