/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that must be set while drivers start, and are restored afterwards. */
#ifndef CT_CORE_DRIVER_ENVIRONMENT_H
#define CT_CORE_DRIVER_ENVIRONMENT_H

#include <stddef.h>

struct ct_variable {
    const char *name, *value;
};

/* These enclose a call of a driver that reads its environment. Such calls may nest and may overlap in several threads: the variables are
 * set from the first enter to the last leave. */
void ct_driver_environment_enter(void);
void ct_driver_environment_leave(void);

/* The same with given variables, for the two above and for tests. Variables that are already set keep their values. */
void ct_environment_enter(const struct ct_variable *variables, size_t count);
void ct_environment_leave(void);

#endif
