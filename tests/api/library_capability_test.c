/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries see another compute capability than programs (core/device/library_capability.def). A library of ours whose file has the name of
 * one of them asks; in processes of its own with CUTTLE_CHECK, too, where the exported functions look at results. */
#include "api_test.h"

#include <sys/wait.h>
#include <unistd.h>

CUresult cublas_asks(int *value, CUdevice_attribute attribute, CUdevice device); /* library_asks.c */
CUresult nccl_asks(int *value, CUdevice_attribute attribute, CUdevice device);

enum { REPORTED_TO_LIBRARIES = 13, SHARED_OF_LIBRARIES = 227 << 10 };
/* What ask() finds. */
enum {
    LIBRARY_IS_TOLD_ANOTHER = 1,
    PROGRAM_IS_TOLD_THE_SAME = 2,
    NCCL_HAS_OTHER_SHARED = 4,
    PROGRAM_HAS_THEIR_SHARED = 8,
    CUBLAS_HAS_OTHER_SHARED = 16,
    FAILED = 32,
};

static int ask(void)
{
    const CUdevice_attribute major = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    const CUdevice_attribute shared = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    int by_library = 0, by_program = 0, shared_by_nccl = 0, shared_by_cublas = 0, shared_by_program = 0;

    if (cuInit(0) != CUDA_SUCCESS || cublas_asks(&by_library, major, 0) != CUDA_SUCCESS ||
        cuDeviceGetAttribute(&by_program, major, 0) != CUDA_SUCCESS || nccl_asks(&shared_by_nccl, shared, 0) != CUDA_SUCCESS ||
        cublas_asks(&shared_by_cublas, shared, 0) != CUDA_SUCCESS || cuDeviceGetAttribute(&shared_by_program, shared, 0) != CUDA_SUCCESS)
        return FAILED;
    return (by_library != REPORTED_TO_LIBRARIES) * LIBRARY_IS_TOLD_ANOTHER |
           (by_program == REPORTED_TO_LIBRARIES) * PROGRAM_IS_TOLD_THE_SAME |
           (shared_by_nccl != SHARED_OF_LIBRARIES) * NCCL_HAS_OTHER_SHARED |
           (shared_by_program >= SHARED_OF_LIBRARIES) * PROGRAM_HAS_THEIR_SHARED |
           (shared_by_cublas != shared_by_program) * CUBLAS_HAS_OTHER_SHARED;
}

/* Asks in a process with that value of CUTTLE_CHECK and, if there is a name, another variable. */
static int ask_with(const char *check, const char *name_or_null, const char *value)
{
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        unsetenv("CUTTLE_COMPUTE_CAPABILITY");
        if (name_or_null)
            setenv(name_or_null, value, 1);
        setenv("CUTTLE_CHECK", check, 1);
        _exit(ask());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void libraries_are_told_by_their_code(void **state)
{
    (void)state;
    assert_int_equal(ask_with("0", NULL, NULL), 0);
    assert_int_equal(ask_with("1", NULL, NULL), 0);
}

static void options_are_for_one_or_the_other(void **state)
{
    (void)state;
    assert_int_equal(ask_with("0", "CUTTLE_COMPUTE_CAPABILITY", "8.0"), 0);
    assert_int_equal(WEXITSTATUS(ask_with("0", "CUTTLE_COMPUTE_CAPABILITY", "13.0")), PROGRAM_IS_TOLD_THE_SAME | PROGRAM_HAS_THEIR_SHARED);
    assert_int_equal(WEXITSTATUS(ask_with("0", "CUTTLE_LIBRARY_COMPUTE_CAPABILITY", "8.9")),
                     LIBRARY_IS_TOLD_ANOTHER | NCCL_HAS_OTHER_SHARED);
    assert_int_equal(ask_with("0", "CUTTLE_LIBRARY_COMPUTE_CAPABILITY", "1.1"), 0); /* unknown: as without it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(libraries_are_told_by_their_code),
                                       cmocka_unit_test(options_are_for_one_or_the_other)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
