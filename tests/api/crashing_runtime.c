/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL runtime for crashing_runtimes_test.c that ends the process when the loader asks for its platforms: CRASH_ABORT, CRASH_FAULT or
 * CRASH_EXIT says how. CRASH_NOT: it has no platform. It adds a character to the file that CRASH_COUNT names each time. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int clIcdGetPlatformIDsKHR(unsigned count, void **platforms, unsigned *out_count);
EXPORTED int clGetPlatformInfo(void *platform, unsigned name, size_t size, void *value, size_t *out_size);
EXPORTED void *clGetExtensionFunctionAddress(const char *name);

EXPORTED int clIcdGetPlatformIDsKHR(unsigned count, void **platforms, unsigned *out_count)
{
    const char *path = getenv("CRASH_COUNT");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    (void)count;
    (void)platforms;
    (void)!write(file, "x", 1);
    close(file);
#if defined CRASH_ABORT
    abort();
#elif defined CRASH_FAULT
    raise(SIGSEGV);
#elif defined CRASH_EXIT
    _exit(0);
#endif
    if (out_count)
        *out_count = 0;
    return -1001; /* CL_PLATFORM_NOT_FOUND_KHR */
}

/* The loader takes no library without it. */
EXPORTED int clGetPlatformInfo(void *platform, unsigned name, size_t size, void *value, size_t *out_size)
{
    (void)platform;
    (void)name;
    (void)size;
    (void)value;
    (void)out_size;
    return -30; /* CL_INVALID_VALUE */
}

EXPORTED void *clGetExtensionFunctionAddress(const char *name)
{
    return strcmp(name, "clIcdGetPlatformIDsKHR") ? NULL : (void *)(unsigned long)&clIcdGetPlatformIDsKHR;
}
