/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that must be set while drivers start, and are the application's again afterwards. */
#ifndef CT_CORE_DRIVER_ENVIRONMENT_H
#define CT_CORE_DRIVER_ENVIRONMENT_H

#include <stddef.h>

struct ct_variable {
    const char *name, *value;
};

/* Brackets a call into a driver that reads its environment. Brackets may nest, also those of several threads: the variables are
 * there from the first enter to the last leave. */
void ct_driver_environment_enter(void);
void ct_driver_environment_leave(void);

/* The same with given variables, for the two above and for tests. Variables that the environment has keep their values. */
void ct_environment_enter(const struct ct_variable *variables, size_t count);
void ct_environment_leave(void);

#endif
