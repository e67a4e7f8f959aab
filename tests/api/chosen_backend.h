/* SPDX-License-Identifier: Apache-2.0 */
/* The backend that CUTTLE_BACKEND names, for tests that call a backend directly. */
#ifndef CUTTLE_TESTS_CHOSEN_BACKEND_H
#define CUTTLE_TESTS_CHOSEN_BACKEND_H

#include "core/device/backend.h"

#include <stdlib.h>
#include <string.h>

static inline const struct ct_backend *backend_of_environment(void)
{
#ifdef CT_WITH_OPENCL
    const char *name = getenv("CUTTLE_BACKEND");

    if (name && !strcmp(name, "opencl"))
        return &ct_backend_cl;
#endif
    return &ct_backend_vk;
}

#endif
