/* SPDX-License-Identifier: Apache-2.0 */
#include "real_library.h"

#include <dlfcn.h>
#include <pthread.h>

static void *library; /* set once; open as long as the process, since the stand-in depends on it */
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_library(void)
{
    library = dlopen(CT_REAL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

void *ct_real_function_or_null(const char *name)
{
    pthread_once(&opened, open_library);
    return library ? dlsym(library, name) : NULL;
}

int ct_real_get(const char *name, void *object, void *out, int missing)
{
    int (*function)(void *, void *) = ct_real_function_or_null(name);

    return function ? function(object, out) : missing;
}
