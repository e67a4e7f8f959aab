/* SPDX-License-Identifier: Apache-2.0 */
/* The order of CPU devices on a machine with lavapipe and an OpenCL runtime: the faster one comes first, but if the process uses Vulkan, the
 * device of Vulkan does. Argument: "vulkan", to load Vulkan's loader before cuInit. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)
#define SKIPPED 77

static bool uses_vulkan;

static bool is_lavapipe(CUdevice device)
{
    char name[256];

    ok(cuDeviceGetName(name, sizeof name, device));
    return strstr(name, "llvmpipe") != NULL;
}

static void the_first_device_is_the_right_one(void **state)
{
    (void)state;
    assert_int_equal(is_lavapipe(0), uses_vulkan);
    assert_int_equal(is_lavapipe(1), !uses_vulkan);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_device_is_the_right_one)};
    int count = 0;

    uses_vulkan = argc > 1 && !strcmp(argv[1], "vulkan");
    if (uses_vulkan && !dlopen("libvulkan.so.1", RTLD_NOW))
        return SKIPPED;
    if (cuInit(0) != CUDA_SUCCESS)
        return EXIT_FAILURE;
    ok(cuDeviceGetCount(&count));
    if (count != 2 || is_lavapipe(0) == is_lavapipe(1)) /* other drivers are installed, too, or lavapipe is not */
        return SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
