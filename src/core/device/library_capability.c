/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the library that asks by the address of its code. */
#include "library_capability.h"

#include "core/base/config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct library {
    const char *file;
    unsigned number;
    bool reports_shared;
} libraries[] = {
#define LIBRARY(file, number, reports_shared) {file, number, reports_shared},
#include "library_capability.def"
};

static const struct library *find_or_null(const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strncmp(file, libraries[i].file, strlen(libraries[i].file)) == 0)
            return &libraries[i];
    return NULL;
}

static const struct library *library_of_or_null(const void *caller)
{
    Dl_info file;

    return dladdr(caller, &file) && file.dli_fname ? find_or_null(file.dli_fname) : NULL;
}

static const struct ct_compute_capability *chosen; /* NULL: by the library */

static void choose(void)
{
    chosen = ct_compute_capability_chosen_or_null("CUTTLE_LIBRARY_COMPUTE_CAPABILITY", ct_config()->library_compute_capability);
}

static const struct ct_compute_capability *reported_to(const struct library *library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose);
    return chosen ? chosen : ct_compute_capability_find_or_null(library->number);
}

const struct ct_compute_capability *ct_library_capability(const struct ct_device_info *info, const void *caller)
{
    const struct library *library = library_of_or_null(caller);

    return library ? reported_to(library) : ct_compute_capability(info);
}

unsigned ct_library_shared_optin(const struct ct_device_info *info, const void *caller)
{
    const struct library *library = library_of_or_null(caller);

    return library && library->reports_shared ? reported_to(library)->shared_block : ct_compute_capability(info)->shared_block;
}
