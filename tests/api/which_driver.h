/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the driver that a test runs with. */
#ifndef CUTTLE_TESTS_WHICH_DRIVER_H
#define CUTTLE_TESTS_WHICH_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>

/* Whether it is ours. NVIDIA's also exports the entry points of its debugger interface; ours exports exactly the functions in the manual of
 * the driver API (exports_test.cmake). Used for calls that NVIDIA's driver does not survive, such as invalid handles, and for the few
 * results in which we differ on purpose; native_facts.def has the reasons. */
static inline int on_cuttle(void)
{
    return dlsym(RTLD_DEFAULT, "cudbgGetAPI") == NULL;
}

#endif
