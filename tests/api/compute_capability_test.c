/* SPDX-License-Identifier: Apache-2.0 */
/* CUTTLE_COMPUTE_CAPABILITY and the properties that depend on it. The environment is read once, so each case has its own process.
 * Expectations are from the table of specifications in the CUDA C++ Programming Guide; where NVIDIA's cuda_occupancy.h is installed, it is
 * used, too. */
#include "api_test.h"
#include "core/device/compute_capability.h"

#ifdef HAVE_CUDA_OCCUPANCY
#include <cuda_occupancy.h>
#endif

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

struct found {
    int major, minor, blocks, threads, registers_sm, registers_block, binary, block_threads;
    int registers, registered_blocks[8]; /* of the module's kernel, and its blocks by block_sizes */
    size_t logged;                       /* bytes that cuInit and the queries wrote to standard error */
};

#define LOAD(i) "    ld.volatile.global.u32 %r" #i ", [%d + 4 * " #i "];\n"
#define STORE(i) "    st.volatile.global.u32 [%d + 4 * " #i "], %r" #i ";\n"
#define EIGHT(what, tens) what(tens##0) what(tens##1) what(tens##2) what(tens##3) what(tens##4) what(tens##5) what(tens##6) what(tens##7)
/* Keeps 40 words in registers. */
static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing(.param .u64 at)\n{\n"
    "    .reg .b32 %r<60>;\n    .reg .b64 %d;\n    ld.param.u64 %d, [at];\n" EIGHT(LOAD, 1) EIGHT(LOAD, 2) EIGHT(LOAD, 3) EIGHT(LOAD, 4)
        EIGHT(LOAD, 5) EIGHT(STORE, 1) EIGHT(STORE, 2) EIGHT(STORE, 3) EIGHT(STORE, 4) EIGHT(STORE, 5) "    ret;\n}\n";
static const int block_sizes[8] = {32, 64, 96, 128, 256, 384, 800, 1024};

static CUresult look_at_kernel(struct found *found, CUfunction function)
{
    CUresult r = cuFuncGetAttribute(&found->binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);

    if (r == CUDA_SUCCESS)
        r = cuFuncGetAttribute(&found->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    for (size_t i = 0; i < sizeof block_sizes / sizeof *block_sizes && r == CUDA_SUCCESS; i++)
        r = cuOccupancyMaxActiveBlocksPerMultiprocessor(&found->registered_blocks[i], function, block_sizes[i], 0);
    return r;
}

static CUresult look(struct found *found, bool with_module)
{
    static const CUdevice_attribute attributes[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
    };
    int *values[] = {&found->major, &found->minor, &found->blocks, &found->threads, &found->registers_sm, &found->registers_block};
    CUresult r = cuInit(0);
    CUcontext context;
    CUmodule module;
    CUfunction function;

    for (size_t i = 0; i < sizeof attributes / sizeof *attributes && r == CUDA_SUCCESS; i++)
        r = cuDeviceGetAttribute(values[i], attributes[i], 0);
    if (r == CUDA_SUCCESS)
        r = cuDeviceGetAttribute(&found->block_threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
    if (r == CUDA_SUCCESS && with_module && (r = cuCtxCreate(&context, NULL, 0, 0)) == CUDA_SUCCESS &&
        (r = cuModuleLoadData(&module, ptx)) == CUDA_SUCCESS && (r = cuModuleGetFunction(&function, module, "nothing")) == CUDA_SUCCESS)
        r = look_at_kernel(found, function);
    return r;
}

/* The results of a child with that value of the option, which logs at this level. */
static struct found find_logging(const char *value, bool with_module, const char *level)
{
    struct found found = {0};
    int ends[2], errors[2], status;
    char text[4096];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(errors), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(errors[1], STDERR_FILENO);
        setenv("CUTTLE_COMPUTE_CAPABILITY", value, 1);
        setenv("CUTTLE_LOG", level, 1);
        _exit(look(&found, with_module) != CUDA_SUCCESS || write(ends[1], &found, sizeof found) != (ssize_t)sizeof found);
    }
    close(ends[1]);
    close(errors[1]);
    assert_int_equal(read(ends[0], &found, sizeof found), sizeof found);
    for (ssize_t n; (n = read(errors[0], text, sizeof text)) > 0;)
        found.logged += (size_t)n;
    close(ends[0]);
    close(errors[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return found;
}

static struct found find_with(const char *value, bool with_module)
{
    return find_logging(value, with_module, "warn:device");
}

static const struct {
    const char *value;
    int major, minor, blocks, threads, registers_sm, registers_block;
} known[] = {
    {"6.2", 6, 2, 32, 2048, 65536, 32768}, {"75", 7, 5, 16, 1024, 65536, 65536},    {"8.6", 8, 6, 16, 1536, 65536, 65536},
    {"90a", 9, 0, 32, 2048, 65536, 65536}, {"10.3", 10, 3, 32, 2048, 65536, 65536}, {"120", 12, 0, 24, 1536, 65536, 65536},
};

static void attributes_fit_the_capability(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct found found = find_with(known[i].value, i == 0);

        assert_int_equal(found.major, known[i].major);
        assert_int_equal(found.minor, known[i].minor);
        assert_int_equal(found.blocks, known[i].blocks);
        assert_int_equal(found.threads, known[i].threads < found.block_threads ? found.block_threads : known[i].threads);
        assert_int_equal(found.registers_sm, known[i].registers_sm);
        assert_int_equal(found.registers_block, known[i].registers_block);
        if (i == 0)
            assert_int_equal(found.binary, known[i].major * 10 + known[i].minor);
        assert_int_equal(found.logged, 0);
    }
}

/* The module is for 5.0. */
static void newer_targets_are_mentioned(void **state)
{
    (void)state;
    assert_true(find_logging("3.7", true, "info:module").logged > 0);
    assert_int_equal(find_logging("5.0", true, "info:module").logged, 0);
    assert_int_equal(find_logging("3.7", true, "warn:module").logged, 0);
}

/* The devices of the tests are CPUs, of which lavapipe has 32 KiB of shared memory for a block, or have 48 and more. */
static void devices_report_8_9_by_default(void **state)
{
    const struct found found = find_with("", false); /* as if it were not set */

    (void)state;
    assert_int_equal(found.major * 10 + found.minor, 89);
    assert_int_equal(found.logged, 0);
}

/* Only a GPU with less shared memory than every CUDA device has reports an older one. */
static void the_default_depends_on_shared_memory(void **state)
{
    static const struct {
        enum ct_device_kind kind;
        uint32_t shared_bytes;
        unsigned number;
    } devices[] = {{CT_DEVICE_DISCRETE, 65536, 89},   {CT_DEVICE_DISCRETE, 49152, 89}, {CT_DEVICE_DISCRETE, 49151, 75},
                   {CT_DEVICE_INTEGRATED, 32768, 75}, {CT_DEVICE_VIRTUAL, 32768, 75},  {CT_DEVICE_CPU, 32768, 89}};
    const pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        size_t i = 0;

        setenv("CUTTLE_COMPUTE_CAPABILITY", "", 1);
        while (i < sizeof devices / sizeof *devices) {
            const struct ct_device_info info = {.kind = devices[i].kind, .shared_bytes = devices[i].shared_bytes};

            if (ct_compute_capability(&info)->number != devices[i++].number)
                _exit((int)i);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0); /* otherwise the number of the device, from 1 */
}

static void invalid_capabilities_are_reported_and_ignored(void **state)
{
    static const char *const values[] = {"76", "7", "75x", "-75", "7.5.1", "99999999999999999999"};
    const struct found usual = find_with("", false);

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct found found = find_with(values[i], false);

        if (found.major != usual.major || found.minor != usual.minor || !found.logged)
            fail_msg("%s: %d.%d, %zu bytes of a warning", values[i], found.major, found.minor, found.logged);
    }
}

#ifdef HAVE_CUDA_OCCUPANCY
/* NVIDIA's own calculator. */
static void blocks_are_those_of_the_occupancy_calculator(void **state)
{
    static const char *const all[] = {"50", "72", "80", "87", "89", "110", "121"};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct found found = find_with(all[i], false);
        struct cudaOccDeviceProp properties = {.computeMajor = found.major, .computeMinor = found.minor};
        int blocks = 0;

        assert_int_equal(found.major * 10 + found.minor, atoi(all[i]));
        assert_int_equal(cudaOccMaxBlocksPerMultiprocessor(&blocks, &properties), CUDA_OCC_SUCCESS);
        assert_int_equal(found.blocks, blocks);
    }
}

/* Limited by threads, blocks and registers. */
static void occupancy_is_that_of_the_calculator(void **state)
{
    static const char *const all[] = {"50", "62", "75", "80", "87", "90", "120"};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct found found = find_with(all[i], true);
        const struct cudaOccDeviceProp properties = {
            .computeMajor = found.major,
            .computeMinor = found.minor,
            .maxThreadsPerBlock = found.block_threads,
            .maxThreadsPerMultiprocessor = found.threads,
            .regsPerBlock = found.registers_block,
            .regsPerMultiprocessor = found.registers_sm,
            .warpSize = 32,
            .sharedMemPerBlock = 49152,
            .sharedMemPerMultiprocessor = 65536,
            .numSms = 1,
            .sharedMemPerBlockOptin = 49152,
        };
        const struct cudaOccFuncAttributes attributes = {.maxThreadsPerBlock = found.block_threads,
                                                         .numRegs = found.registers,
                                                         .maxDynamicSharedSizeBytes = 49152,
                                                         .numBlockBarriers = 1};
        const struct cudaOccDeviceState device = {0};

        assert_in_range(found.registers, 1, 255);
        for (size_t k = 0; k < sizeof block_sizes / sizeof *block_sizes; k++) {
            struct cudaOccResult result;

            assert_int_equal(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &device, block_sizes[k], 0),
                             CUDA_OCC_SUCCESS);
            if (result.activeBlocksPerMultiprocessor != found.registered_blocks[k])
                fail_msg("%s, %d registers, blocks of %d: %d, not %d", all[i], found.registers, block_sizes[k], found.registered_blocks[k],
                         result.activeBlocksPerMultiprocessor);
        }
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_fit_the_capability),
        cmocka_unit_test(newer_targets_are_mentioned),
        cmocka_unit_test(devices_report_8_9_by_default),
        cmocka_unit_test(the_default_depends_on_shared_memory),
        cmocka_unit_test(invalid_capabilities_are_reported_and_ignored),
#ifdef HAVE_CUDA_OCCUPANCY
        cmocka_unit_test(blocks_are_those_of_the_occupancy_calculator),
        cmocka_unit_test(occupancy_is_that_of_the_calculator),
#endif
    };

    if (!on_cuttle())
        return 77; /* the other properties are unchanged */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
