/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the API's chapters. They call libcuda as any program does, so the same binaries also run with NVIDIA's own driver (with its
 * folder first in LD_LIBRARY_PATH): the expected results have to hold there, too. */
#ifndef CUTTLE_TESTS_API_TEST_H
#define CUTTLE_TESTS_API_TEST_H

#include "which_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>

static inline const char *api_error_name(CUresult code)
{
    const char *name = NULL;

    return cuGetErrorName(code, &name) == CUDA_SUCCESS && name ? name : "?";
}

/* Fails the test unless `call` returns `code`; prints what it returned instead. */
#define gives(code, call)                                                                                                                  \
    do {                                                                                                                                   \
        CUresult gives_expected = (code), gives_got = (call);                                                                              \
        if (gives_got != gives_expected) {                                                                                                 \
            print_error("%s: %s, not %s\n", #call, api_error_name(gives_got), api_error_name(gives_expected));                             \
            _fail(__FILE__, __LINE__);                                                                                                     \
        }                                                                                                                                  \
    } while (0)
#define ok(call) gives(CUDA_SUCCESS, call)

/* A pointer that the API never returned and that must not be dereferenced: for on_cuttle only. */
#define MADE_UP(type) ((type)(uintptr_t)0x123456789abcdef0)

/* Group fixture: cuInit, and the primary context of device 0 current. */
static inline int with_context(void **state)
{
    static CUcontext context;
    CUdevice device;

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        print_error("no device to test with\n");
        return -1;
    }
    *state = context;
    return 0;
}

/* A context created for the test, current in this thread. */
static inline CUresult create_context(CUcontext *out, CUdevice device)
{
#if CUDA_VERSION >= 13000
    return cuCtxCreate(out, NULL, 0, device);
#else
    return cuCtxCreate(out, 0, device);
#endif
}

static inline int without_context(void **state)
{
    (void)state;
    cuCtxSetCurrent(NULL);
    return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS ? 0 : -1;
}

#endif
