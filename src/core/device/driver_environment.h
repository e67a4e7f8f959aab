/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that must be set while drivers start, and are restored afterwards. */
#ifndef CT_CORE_DRIVER_ENVIRONMENT_H
#define CT_CORE_DRIVER_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct ct_variable {
    const char *name, *value;
    bool replaces; /* the value that the user has set, if any; otherwise that one stays */
};

/* These enclose a call of a driver that reads its environment. Such calls may nest and may overlap in several threads: the variables are
 * set from the first enter to the last leave. */
void ct_driver_environment_enter(void);
/* The same with other variables, which are not set if another thread is within such a call already. */
#define CT_OTHER_VARIABLES_MAX 2
void ct_driver_environment_enter_with(const struct ct_variable *others, size_t n_others);
void ct_driver_environment_leave(void);

/* The same with given variables, for those above and for tests. */
void ct_environment_enter(const struct ct_variable *variables, size_t count);
void ct_environment_leave(void);

#endif
