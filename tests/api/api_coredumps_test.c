/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of core dumps, the report on a kernel that failed, notifications of a device, and the state of processes. */
#include "api_test.h"

#include "api_kernels.h"
#include "which_driver.h"

#include <stdbool.h>
#include <unistd.h>

#define FILE_BYTES 1024

static void attributes_have_their_sizes(void **state)
{
    static const struct {
        CUcoredumpSettings id;
        size_t size;
        bool of_contexts;
    } rows[] = {
        {CU_COREDUMP_ENABLE_ON_EXCEPTION, 1, true}, {CU_COREDUMP_TRIGGER_HOST, 1, true},   {CU_COREDUMP_LIGHTWEIGHT, 1, true},
        {CU_COREDUMP_FILE, FILE_BYTES, true},       {CU_COREDUMP_PIPE, FILE_BYTES, false}, {CU_COREDUMP_GENERATION_FLAGS, 4, true},
    };
    char value[4096], name[] = "a_report";
    size_t size;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size = 0;
        ok(cuCoredumpGetAttributeGlobal(rows[i].id, NULL, &size));
        assert_int_equal(size, rows[i].size);
        ok(cuCoredumpGetAttributeGlobal(rows[i].id, value, &size));
        size = rows[i].size - 1;
        gives(rows[i].size == FILE_BYTES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, /* texts are shorter */
              cuCoredumpGetAttributeGlobal(rows[i].id, value, &size));
        size = rows[i].size;
        gives(rows[i].of_contexts ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(rows[i].id, value, &size));
    }
    size = sizeof name;
    ok(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
    ok(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, value, &size));
    assert_string_equal(value, name);
    size = 3;
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, value, &size));
    size = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, value, &size));
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttributeGlobal((CUcoredumpSettings)0, value, &size));
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, value, &size));
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, value, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, value, NULL));
    ok(cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, NULL, &size));
}

static bool light(bool of_context)
{
    size_t size = 1;
    bool value;

    ok(of_context ? cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &size)
                  : cuCoredumpGetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, &value, &size));
    return value;
}

static void a_context_keeps_its_own(void **state)
{
    const bool before = light(false);
    size_t size = 1, wrong = 4;
    CUcontext context;
    bool value = !before;

    ok(cuCtxCreate(&context, NULL, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &wrong));
    ok(cuCoredumpSetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &size));
    assert_int_equal(light(true), value);
    assert_int_equal(light(false), before);
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCoredumpGetAttribute(CU_COREDUMP_LIGHTWEIGHT, &value, &size));
    assert_int_equal(light(false), before);
    ok(cuCtxSetCurrent(*state));
}

static void a_failed_kernel_leaves_a_report(void **state)
{
    char directory[] = "/tmp/cuttle-report-XXXXXX", pattern[FILE_BYTES], path[FILE_BYTES], text[4096] = "";
    size_t size = sizeof pattern, one = 1;
    const bool enabled = true;
    CUcontext broken;
    CUmodule module;
    CUfunction stops;
    FILE *file;

    if (!on_cuttle())
        skip(); /* NVIDIA's driver ends the process */
    assert_non_null(mkdtemp(directory));
    snprintf(pattern, sizeof pattern, "%s/of_%%p", directory);
    snprintf(path, sizeof path, "%s/of_%lld", directory, (long long)getpid());
    ok(cuCtxCreate(&broken, NULL, 0, 0));
    ok(cuCoredumpSetAttribute(CU_COREDUMP_FILE, pattern, &size));
    ok(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, (void *)&enabled, &one));
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_TRAP));
    ok(cuModuleGetFunction(&stops, module, "stops"));
    ok(cuLaunchKernel(stops, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    gives(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    ok(cuCtxDestroy(broken));
    ok(cuCtxSetCurrent(*state));
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(text, "kernel stops failed with error 719"));
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void notify(CUasyncNotificationInfo *info, void *user, CUasyncCallbackHandle handle)
{
    (void)info, (void)user, (void)handle;
}

static void notifications_are_registered(void **state)
{
    CUasyncCallbackHandle first, second;

    (void)state;
    ok(cuDeviceRegisterAsyncNotification(0, notify, NULL, &first));
    ok(cuDeviceRegisterAsyncNotification(0, notify, NULL, &second));
    assert_ptr_not_equal(first, second);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceRegisterAsyncNotification(0, NULL, NULL, &second));
    ok(cuDeviceUnregisterAsyncNotification(0, first));
    ok(cuDeviceUnregisterAsyncNotification(0, second));
    if (!on_cuttle())
        return; /* NVIDIA's driver crashes */
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceRegisterAsyncNotification(0, notify, NULL, NULL));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceRegisterAsyncNotification(99, notify, NULL, &first));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(0, second));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(0, NULL));
}

static void this_process_is_running(void **state)
{
    CUprocessState found = CU_PROCESS_STATE_FAILED;

    (void)state;
    ok(cuCheckpointProcessGetState(getpid(), &found));
    assert_int_equal(found, CU_PROCESS_STATE_RUNNING);
    gives(CUDA_ERROR_INVALID_VALUE, cuCheckpointProcessGetState(getpid(), NULL));
    gives(CUDA_ERROR_OPERATING_SYSTEM, cuCheckpointProcessGetState(-1, &found));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuCheckpointProcessGetState(1, &found));
    gives(CUDA_ERROR_OPERATING_SYSTEM, cuCheckpointProcessLock(-1, NULL));
    if (on_cuttle())
        gives(CUDA_ERROR_NOT_SUPPORTED, cuCheckpointProcessLock(getpid(), NULL));
}

static void cooperative_launches_on_all_devices(void **state)
{
    CUDA_LAUNCH_PARAMS launch = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    CUmodule module;
    CUstream stream;

    (void)state;
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_NOTHING));
    ok(cuModuleGetFunction(&launch.function, module, "nothing"));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
    launch.hStream = stream;
    ok(cuLaunchCooperativeKernelMultiDevice(&launch, 1, 3));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 8));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 99, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuModuleUnload(module));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_have_their_sizes),     cmocka_unit_test(a_context_keeps_its_own),
        cmocka_unit_test(a_failed_kernel_leaves_a_report), cmocka_unit_test(notifications_are_registered),
        cmocka_unit_test(this_process_is_running),         cmocka_unit_test(cooperative_launches_on_all_devices),
    };

    return cmocka_run_group_tests_name("coredumps", tests, with_context, without_context);
}
