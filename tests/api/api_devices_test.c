/* SPDX-License-Identifier: Apache-2.0 */
/* Initialization, device management, peer access. */
#include "api_test.h"

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

static CUdevice device;
static int device_count;

static int attribute(CUdevice_attribute which)
{
    int value = INT_MIN;

    ok(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static void nothing_works_before_cuInit(void **state)
{
    int number;
    size_t bytes;
    char name[64];
    CUuuid uuid;
    CUcontext context;

    (void)state;
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&number));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetName(name, sizeof name, 0));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDeviceTotalMem(&bytes, 0));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetUuid(&uuid, 0));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain(&context, 0));
    gives(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
}

static void init_takes_no_flags_and_may_be_repeated(void **state)
{
    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    ok(cuInit(0));
    ok(cuInit(0));
    gives(CUDA_ERROR_INVALID_VALUE, cuInit(UINT_MAX));
    ok(cuDeviceGetCount(&device_count));
    assert_true(device_count >= 1);
}

static void ordinals_from_0_to_count(void **state)
{
    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, device_count));
    for (int i = device_count - 1; i >= 0; i--)
        ok(cuDeviceGet(&device, i));
}

static void name_is_cut_to_its_buffer(void **state)
{
    char name[256], part[5] = "xxxx";

    (void)state;
    ok(cuDeviceGetName(name, sizeof name, device));
    assert_true(strlen(name) >= 4);
    ok(cuDeviceGetName(part, 4, device));
    assert_memory_equal(part, name, 3);
    assert_int_equal(part[3], 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(NULL, 10, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof name, device_count));
}

static void uuid_tells_devices_apart(void **state)
{
    CUuuid first, other;

    (void)state;
    ok(cuDeviceGetUuid(&first, device));
    for (int i = 0; i < device_count; i++) {
        ok(cuDeviceGetUuid_v2(&other, i));
        assert_int_equal(memcmp(&first, &other, sizeof first) == 0, i == device);
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid(NULL, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid(&first, -1));
}

static void memory_has_a_size(void **state)
{
    size_t bytes = 0;

    (void)state;
    ok(cuDeviceTotalMem(&bytes, device));
    assert_true(bytes >= 64 << 20);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(NULL, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&bytes, device_count));
}

static void every_attribute_has_a_value(void **state)
{
    int value;

    (void)state;
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED; i++)
        ok(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)0, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)-1, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device_count));
}

static void attributes_agree_with_one_another(void **state)
{
    int threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);

    (void)state;
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    assert_true(threads >= 128 && threads % 32 == 0);
    assert_in_range(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), 1, threads);
    assert_in_range(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y), 1, threads);
    assert_in_range(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), 1, threads);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) >= 65535);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) >= 65535);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) >= 65535);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) >= threads);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) >= 16 << 10);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) >=
                attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY) >= 65536);
    assert_in_range(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE), CU_COMPUTEMODE_DEFAULT, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_GPU_OVERLAP) != 0, attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT) > 0);
}

static void properties_are_attributes(void **state)
{
    CUdevprop properties;
    int major, minor;

    (void)state;
    ok(cuDeviceGetProperties(&properties, device));
    assert_int_equal(properties.maxThreadsPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    assert_int_equal(properties.maxThreadsDim[2], attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    assert_int_equal(properties.maxGridSize[0], attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    assert_int_equal(properties.maxGridSize[1], attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
    assert_int_equal(properties.sharedMemPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    assert_int_equal(properties.SIMDWidth, 32);
    ok(cuDeviceComputeCapability(&major, &minor, device));
    assert_int_equal(major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    assert_int_equal(minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetProperties(NULL, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetProperties(&properties, -1));
}

static void pci_bus_id_names_the_device(void **state)
{
    char id[16], expected[32], again[16];
    CUdevice found;

    (void)state;
    ok(cuDeviceGetPCIBusId(id, sizeof id, device));
    snprintf(expected, sizeof expected, "%04x:%02x:%02x.0", attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
             attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID), attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
    for (char *at = id; *at; at++)
        *at = *at >= 'A' && *at <= 'F' ? *at + 32 : *at;
    assert_string_equal(id, expected);
    ok(cuDeviceGetByPCIBusId(&found, id));
    ok(cuDeviceGetPCIBusId(again, sizeof again, found));
    assert_int_equal(strcasecmp(again, id), 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&found, "no such form"));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(NULL, id));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&found, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetPCIBusId(NULL, 16, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&found, "fffe:fe:1e.0"));
}

static void execution_affinity_can_be_queried(void **state)
{
    int supported;

    (void)state;
    ok(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
    assert_in_range(supported, 0, 1);
    ok(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_MAX, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
}

static void a_device_is_no_peer_of_itself(void **state)
{
    int value;

    (void)state;
    ok(cuDeviceCanAccessPeer(&value, device, device));
    assert_int_equal(value, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceCanAccessPeer(NULL, device, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&value, device, device_count));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device_count));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device));
}

/* Drivers do not survive a fork: the child gets an error and does not crash. */
static void atomics_with_the_host_are_reported(void **state)
{
    static const CUatomicOperation operations[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS, CU_ATOMIC_OPERATION_MAX};
    unsigned capabilities[2] = {99, 99};
    int native;

    (void)state;
    ok(cuDeviceGetAttribute(&native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0));
    ok(cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
    for (int i = 0; i < 2; i++) {
        assert_int_equal((capabilities[i] & CU_ATOMIC_CAPABILITY_SCALAR_32) != 0, native);
        assert_int_equal((capabilities[i] & CU_ATOMIC_CAPABILITY_SCALAR_64) != 0, native);
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(NULL, operations, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(capabilities, NULL, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(capabilities, operations, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(capabilities, operations, 3, 0));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetHostAtomicCapabilities(capabilities, operations, 1, -1));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 0));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, -1));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(NULL, operations, 1, 0, 1));
}

static void linear_textures_have_a_width(void **state)
{
    size_t width = 1;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_FLOAT, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, -1));
    if (on_cuttle()) { /* NVIDIA's driver decides by the element */
        int attribute;

        ok(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
        ok(cuDeviceGetAttribute(&attribute, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 0));
        assert_int_equal(width, attribute);
    }
}

static void a_forked_child_is_refused(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        int count;
        CUcontext context;
        int wrong = cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED || cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
                    cuDevicePrimaryCtxRetain(&context, 0) != CUDA_ERROR_NOT_INITIALIZED;
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    ok(cuDeviceGetCount(&status)); /* the parent still works */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_works_before_cuInit), /* first, since cuInit cannot be undone */
        cmocka_unit_test(init_takes_no_flags_and_may_be_repeated),
        cmocka_unit_test(ordinals_from_0_to_count),
        cmocka_unit_test(name_is_cut_to_its_buffer),
        cmocka_unit_test(uuid_tells_devices_apart),
        cmocka_unit_test(memory_has_a_size),
        cmocka_unit_test(every_attribute_has_a_value),
        cmocka_unit_test(attributes_agree_with_one_another),
        cmocka_unit_test(properties_are_attributes),
        cmocka_unit_test(pci_bus_id_names_the_device),
        cmocka_unit_test(execution_affinity_can_be_queried),
        cmocka_unit_test(a_device_is_no_peer_of_itself),
        cmocka_unit_test(atomics_with_the_host_are_reported),
        cmocka_unit_test(linear_textures_have_a_width),
        cmocka_unit_test(a_forked_child_is_refused),
    };

    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
