/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver a test runs on. */
#ifndef CUTTLE_TESTS_WHICH_DRIVER_H
#define CUTTLE_TESTS_WHICH_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>

/* Whether it is ours. NVIDIA's also exports the entry points of its debugger; ours has what the manual of the driver API has and nothing
 * else (exports_test.cmake). For what NVIDIA's driver does not survive, such as handles that it never gave out, and for the few answers
 * of it that we do not repeat; native_facts.def has the reasons. */
static inline int on_cuttle(void)
{
    return dlsym(RTLD_DEFAULT, "cudbgGetAPI") == NULL;
}

#endif
