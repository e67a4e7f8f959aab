/* SPDX-License-Identifier: Apache-2.0 */
/* libnvidia-ml.so.1 as programs use it: opened with dlopen, in a process without libcuda.so.1. What it says is compared with what the driver API
 * says in a child. */
#include "cuda.h"
#include "nvml/nvml_abi.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_DEVICES = 16, PATIENCE_S = 30, THREADS = 8 };

/* ---- the library ---- */

static struct {
#define IMPLEMENTED(name, parameters, what) nvmlReturn_t(*name) parameters;
#include "nvml/functions.def"
    const char *(*nvmlErrorString)(nvmlReturn_t result);
} nvml;

static const struct {
    const char *name;
    void *place;
} functions[] = {
#define IMPLEMENTED(name, parameters, what) {#name, &nvml.name},
#include "nvml/functions.def"
    {"nvmlErrorString", &nvml.nvmlErrorString},
};

static const char *const refused[] = {
#define REFUSED(name) #name,
#include "nvml/functions.def"
};

static void *library;

/* A folder for a copy of the library. Of this process alone, since the test runs on several backends at once. */
static char copy_folder[sizeof WORK_FOLDER + 32], copy_library[sizeof copy_folder + 32], copy_helper[sizeof copy_folder + 32];

static int load(void **state)
{
    (void)state;
    library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        *(void **)functions[i].place = dlsym(library, functions[i].name);
        if (!*(void **)functions[i].place)
            return -1;
    }
    return 0;
}

static int make_copy_folder(void **state)
{
    (void)state;
    strcpy(copy_folder, WORK_FOLDER "/helper_XXXXXX");
    if (!mkdtemp(copy_folder))
        return -1;
    snprintf(copy_library, sizeof copy_library, "%s/libnvidia-ml.so.1", copy_folder);
    snprintf(copy_helper, sizeof copy_helper, "%s/cuttle-nvml-helper", copy_folder);
    return 0;
}

static int remove_copy_folder(void **state)
{
    (void)state;
    unlink(copy_library);
    unlink(copy_helper);
    return rmdir(copy_folder);
}

static int start_nvml(void **state)
{
    (void)state;
    return nvml.nvmlInit_v2() == NVML_SUCCESS ? 0 : -1;
}

static int stop_nvml(void **state)
{
    (void)state;
    return nvml.nvmlShutdown() == NVML_SUCCESS ? 0 : -1;
}

static nvmlDevice_t first(void)
{
    nvmlDevice_t device;

    assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
    return device;
}

/* ---- what the driver says, in a child ---- */

struct driver_facts {
    CUresult result;
    int count, version;
    struct {
        char name[256], pci[32];
        unsigned char uuid[16];
        int major, minor, clock_khz, bus_bits;
        size_t bytes;
    } devices[MAX_DEVICES];
};

#define CALL(function, ...)                                                                                                                \
    do {                                                                                                                                   \
        __typeof__(&function) call_ = (__typeof__(&function))dlsym(driver, #function);                                                     \
        if (facts->result == CUDA_SUCCESS)                                                                                                 \
            facts->result = call_ ? call_(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND;                                                             \
    } while (0)

static void ask_driver(struct driver_facts *facts)
{
    void *driver = dlopen(CUDA_LIBRARY, RTLD_NOW);

    facts->result = driver ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    if (!driver)
        return;
    CALL(cuInit, 0);
    CALL(cuDriverGetVersion, &facts->version);
    CALL(cuDeviceGetCount, &facts->count);
    for (int i = 0; facts->result == CUDA_SUCCESS && i < facts->count && i < MAX_DEVICES; i++) {
        CALL(cuDeviceGetName, facts->devices[i].name, sizeof facts->devices[i].name, i);
        CALL(cuDeviceGetUuid, (CUuuid *)facts->devices[i].uuid, i);
        CALL(cuDeviceGetPCIBusId, facts->devices[i].pci, sizeof facts->devices[i].pci, i);
        CALL(cuDeviceTotalMem_v2, &facts->devices[i].bytes, i);
        CALL(cuDeviceGetAttribute, &facts->devices[i].major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i);
        CALL(cuDeviceGetAttribute, &facts->devices[i].minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, i);
        CALL(cuDeviceGetAttribute, &facts->devices[i].clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, i);
        CALL(cuDeviceGetAttribute, &facts->devices[i].bus_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, i);
    }
}

/* Returns memory that is shared with children. */
static void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void wait_for(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* In a child that was forked from this process as it is, without CUDA_VISIBLE_DEVICES. The caller unmaps the result. */
static struct driver_facts *driver_facts(void)
{
    struct driver_facts *facts = shared(sizeof *facts);
    const pid_t child = fork();

    assert_true(child >= 0);
    if (!child) {
        alarm(PATIENCE_S);
        unsetenv("CUDA_VISIBLE_DEVICES");
        ask_driver(facts);
        _exit(0);
    }
    wait_for(child);
    return facts;
}

/* ---- start and end ---- */

static void nothing_works_before_nvml_init(void **state)
{
    nvmlDevice_t device;
    unsigned count = 0;
    char text[80];

    (void)state;
    assert_int_equal(nvml.nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(NULL), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlDeviceGetHandleByUUID("GPU-", &device), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlDeviceGetName(NULL, text, sizeof text), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlSystemGetDriverVersion(text, sizeof text), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlSystemGetProcessName(1, text, sizeof text), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlSystemGetNVMLVersion(text, sizeof text), NVML_SUCCESS);
}

static void starts_are_counted(void **state)
{
    unsigned count;

    (void)state;
    assert_int_equal(nvml.nvmlInit(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlInitWithFlags(NVML_INIT_FLAG_NO_ATTACH | NVML_INIT_FLAG_FORCE_INIT), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlInitWithFlags(1u << 20), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml.nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static void handles_survive_another_start(void **state)
{
    nvmlDevice_t device = first();
    unsigned index = 99;

    assert_int_equal(stop_nvml(state), 0);
    assert_int_equal(nvml.nvmlDeviceGetIndex(device, &index), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(start_nvml(state), 0);
    assert_int_equal(nvml.nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
    assert_int_equal(index, 0);
}

static void every_result_has_a_text(void **state)
{
    static const nvmlReturn_t results[] = {
#define RESULT(name, value, text) name,
#include "nvml/results.def"
    };

    (void)state;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(nvml.nvmlErrorString(results[i]), nvml.nvmlErrorString(results[j]));
    assert_string_equal(nvml.nvmlErrorString((nvmlReturn_t)12345), nvml.nvmlErrorString(NVML_ERROR_UNKNOWN));
}

static void check_refused(nvmlReturn_t wanted)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        nvmlReturn_t (*function)(void) = (nvmlReturn_t(*)(void))dlsym(library, refused[i]);

        if (!function)
            fail_msg("%s is not exported", refused[i]);
        assert_int_equal(function(), wanted);
    }
}

static void refused_functions_say_so(void **state)
{
    assert_true(sizeof refused / sizeof *refused > 300);
    check_refused(NVML_ERROR_UNINITIALIZED);
    assert_int_equal(start_nvml(state), 0);
    check_refused(NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(stop_nvml(state), 0);
}

/* ---- devices ---- */

static void facts_are_those_of_the_driver(void **state)
{
    struct driver_facts *facts = driver_facts();
    unsigned count;
    int version;

    (void)state;
    assert_int_equal(facts->result, CUDA_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(count, facts->count);
    assert_true(count > 0);
    assert_int_equal(nvml.nvmlSystemGetCudaDriverVersion_v2(&version), NVML_SUCCESS);
    assert_int_equal(version, facts->version);
    for (unsigned i = 0; i < count && i < MAX_DEVICES; i++) {
        char text[96], uuid[64], *at = uuid + sprintf(uuid, "GPU-");
        nvmlDevice_t device, found;
        nvmlPciInfo_t pci;
        nvmlPciInfo_v2_t old_pci;
        nvmlMemory_t memory;
        unsigned index, number;
        int major, minor;

        assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(i, &device), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
        assert_int_equal(index, i);
        assert_int_equal(nvml.nvmlDeviceGetName(device, text, sizeof text), NVML_SUCCESS);
        facts->devices[i].name[sizeof text - 1] = 0;
        assert_string_equal(text, facts->devices[i].name);
        for (int b = 0; b < 16; b++)
            at += sprintf(at, "%02x%s", facts->devices[i].uuid[b], b == 3 || b == 5 || b == 7 || b == 9 ? "-" : "");
        assert_int_equal(nvml.nvmlDeviceGetUUID(device, text, sizeof text), NVML_SUCCESS);
        assert_string_equal(text, uuid);
        assert_int_equal(nvml.nvmlDeviceGetHandleByUUID(uuid, &found), NVML_SUCCESS);
        assert_int_equal(nvml.nvmlDeviceGetHandleByUUID(uuid + strlen("GPU-"), &found), NVML_SUCCESS);
        assert_ptr_equal(found, device);
        assert_int_equal(nvml.nvmlDeviceGetPciInfo_v3(device, &pci), NVML_SUCCESS);
        assert_string_equal(pci.busIdLegacy, facts->devices[i].pci);
        assert_true(!strncmp(pci.busId, "0000", 4) && !strcasecmp(pci.busId + 4, facts->devices[i].pci));
        assert_int_equal(nvml.nvmlDeviceGetPciInfo_v2(device, &old_pci), NVML_SUCCESS);
        assert_string_equal(old_pci.busId, facts->devices[i].pci);
        assert_int_equal(old_pci.pciDeviceId, pci.pciDeviceId);
        assert_int_equal(nvml.nvmlDeviceGetCudaComputeCapability(device, &major, &minor), NVML_SUCCESS);
        assert_int_equal(major, facts->devices[i].major);
        assert_int_equal(minor, facts->devices[i].minor);
        assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
        assert_int_equal(memory.total, facts->devices[i].bytes);
        assert_int_equal(memory.free + memory.used, memory.total);
        assert_true(memory.used > 0);
        assert_int_equal(nvml.nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_SM, &number),
                         facts->devices[i].clock_khz ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
        if (facts->devices[i].clock_khz)
            assert_int_equal(number, facts->devices[i].clock_khz / 1000);
        assert_int_equal(nvml.nvmlDeviceGetMemoryBusWidth(device, &number),
                         facts->devices[i].bus_bits ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
    }
    munmap(facts, sizeof *facts);
}

static void all_devices_are_seen_whatever_is_visible(void **state)
{
    struct driver_facts *facts = driver_facts();
    unsigned count;

    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_int_equal(start_nvml(state), 0);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(count, facts->count);
    assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "");
    assert_int_equal(stop_nvml(state), 0);
    unsetenv("CUDA_VISIBLE_DEVICES");
    munmap(facts, sizeof *facts);
}

static void devices_are_found_by_their_addresses(void **state)
{
    nvmlDevice_t device = NULL;
    nvmlPciInfo_t pci, found;

    (void)state;
    assert_int_equal(nvml.nvmlDeviceGetPciInfo_v3(first(), &pci), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &device), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetPciInfo_v3(device, &found), NVML_SUCCESS);
    assert_string_equal(found.busId, pci.busId);
    assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId(pci.busIdLegacy, &device), NVML_SUCCESS);
    if (!pci.domain)
        assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId(pci.busIdLegacy + 5, &device), NVML_SUCCESS);
    device = NULL;
    assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId("00f1:e2:13.0", &device), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId("nonsense", &device), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId("0000:00:00.0 and more", &device), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId("0000:00:00.x", &device), NVML_ERROR_INVALID_ARGUMENT);
    assert_null(device);
}

static void wrong_arguments_are_refused(void **state)
{
    nvmlDevice_t device = first(), found = NULL, foreign = (nvmlDevice_t)((char *)device + 1);
    nvmlMemory_v2_t memory = {.version = 1};
    nvmlTemperature_t temperature = {.version = 1};
    unsigned count, number;
    char text[96] = "unchanged";

    (void)state;
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetCount_v2(NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(count, &found), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(0, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetHandleByUUID(NULL, &found), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetHandleByUUID("GPU-none", &found), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvml.nvmlDeviceGetHandleByUUID("", &found), NVML_ERROR_NOT_FOUND);
    assert_null(found);
    assert_int_equal(nvml.nvmlDeviceGetName(device, NULL, 96), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetName(NULL, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetName(foreign, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetName((nvmlDevice_t)text, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetName(device, text, 2), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvml.nvmlDeviceGetUUID(device, text, 40), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvml.nvmlSystemGetDriverVersion(text, 1), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvml.nvmlSystemGetNVMLVersion(text, 1), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_string_equal(text, "unchanged");
    assert_int_equal(nvml.nvmlDeviceGetUUID(device, text, 41), NVML_SUCCESS);
    assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(nvml.nvmlDeviceGetTemperatureV(device, &temperature), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    assert_int_equal(nvml.nvmlDeviceGetTemperature(device, 7, &number), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetClockInfo(device, NVML_CLOCK_COUNT, &number), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_COUNT, &number), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetP2PStatus(device, NULL, 0, &number), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device, 0, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlSystemGetProcessName(1u << 30, text, sizeof text), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvml.nvmlSystemGetProcessName(1, text, 0), NVML_ERROR_INVALID_ARGUMENT);
}

static void versioned_structures_and_fields(void **state)
{
    nvmlMemory_v2_t memory = {.version = 0x02000028};
    nvmlFieldValue_t fields[2] = {{.fieldId = 1}, {.fieldId = 2}};
    nvmlDevice_t device = first();
    unsigned number = 99;

    (void)state;
    assert_int_equal(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_SUCCESS);
    assert_int_equal(memory.version, 0x02000028);
    assert_int_equal(memory.reserved + memory.free + memory.used, memory.total);
    assert_int_equal(nvml.nvmlDeviceGetFieldValues(device, 2, fields), NVML_SUCCESS);
    assert_int_equal(fields[0].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceGetTopologyCommonAncestor(device, device, &number), NVML_SUCCESS);
    assert_int_equal(number, NVML_TOPOLOGY_INTERNAL);
    assert_int_equal(nvml.nvmlDeviceGetP2PStatus(device, device, 0, &number), NVML_SUCCESS);
    assert_int_equal(number, NVML_P2P_STATUS_NOT_SUPPORTED);
    assert_int_equal(nvml.nvmlDeviceIsMigDeviceHandle(device, &number), NVML_SUCCESS);
    assert_int_equal(number, 0);
}

/* ---- the process ---- */

static unsigned open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void the_application_is_left_alone(void **state)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction before, now;
    const unsigned descriptors = open_descriptors();

    assert_int_equal(start_nvml(state), 0);
    assert_int_equal(stop_nvml(state), 0);
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, no zombie */
    assert_int_equal(errno, ECHILD);
    sigaction(SIGCHLD, &ignored, &before);
    assert_int_equal(start_nvml(state), 0);
    assert_int_equal(stop_nvml(state), 0);
    sigaction(SIGCHLD, &before, &now);
    assert_true(now.sa_handler == SIG_IGN);
    assert_null(dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_NOLOAD));
}

static void it_works_without_standard_output(void **state)
{
    const pid_t child = fork();

    if (!child) {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        _exit(start_nvml(state) == 0 && stop_nvml(state) == 0 ? 0 : 1);
    }
    wait_for(child);
}

/* Both libraries in a child of a process that has used NVML, as PyTorch's workers do. */
static void a_child_may_start_the_driver(void **state)
{
    struct driver_facts *facts;
    const pid_t child = fork();
    unsigned count;

    (void)state;
    if (!child) {
        nvmlMemory_t memory;

        alarm(PATIENCE_S);
        _exit(nvml.nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && nvml.nvmlDeviceGetMemoryInfo(first(), &memory) == NVML_SUCCESS ? 0 : 1);
    }
    wait_for(child);
    facts = driver_facts();
    assert_int_equal(facts->result, CUDA_SUCCESS);
    munmap(facts, sizeof *facts);
}

static void *use(void *failures)
{
    for (int i = 0; i < 3; i++) {
        nvmlDevice_t device;
        char name[96];

        if (nvml.nvmlInit_v2() != NVML_SUCCESS || nvml.nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_SUCCESS ||
            nvml.nvmlDeviceGetName(device, name, sizeof name) != NVML_SUCCESS || nvml.nvmlShutdown() != NVML_SUCCESS)
            __atomic_add_fetch((int *)failures, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    pthread_t threads[THREADS];
    int failures = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, &failures), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
    assert_int_equal(nvml.nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static bool is_over;

static void *start_and_stop(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        if (nvml.nvmlInit_v2() == NVML_SUCCESS)
            nvml.nvmlShutdown();
    return unused;
}

/* The other thread holds the lock nearly all of the time. */
static void forks_do_not_copy_a_held_lock(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, start_and_stop, NULL), 0);
    for (int i = 0; i < 5; i++) {
        const pid_t child = fork();

        if (!child) {
            alarm(PATIENCE_S);
            _exit(nvml.nvmlDeviceGetCount_v2(NULL) == NVML_SUCCESS ? 1 : 0);
        }
        wait_for(child);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

/* ---- processes ---- */

static bool is_listed(unsigned pid)
{
    nvmlProcessInfo_t processes[256];
    unsigned count = 256;
    bool found = false;

    assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(first(), &count, processes), NVML_SUCCESS);
    for (unsigned i = 0; i < count; i++)
        if (processes[i].pid == pid) {
            assert_true(processes[i].usedGpuMemory == ~0ull);
            assert_true(processes[i].gpuInstanceId == ~0u && processes[i].computeInstanceId == ~0u);
            found = true;
        }
    return found;
}

/* Starts a process that maps the library once a byte is written to *start, and says so on *ready. */
static pid_t start_process(int start_pipe[2], int ready_pipe[2])
{
    pid_t child;
    char byte = 0;

    assert_int_equal(pipe(start_pipe), 0);
    assert_int_equal(pipe(ready_pipe), 0);
    child = fork();
    if (!child) {
        close(start_pipe[1]);
        if (read(start_pipe[0], &byte, 1) != 1 || !dlopen(CUDA_LIBRARY, RTLD_NOW) || write(ready_pipe[1], &byte, 1) != 1)
            _exit(1);
        _exit(read(start_pipe[0], &byte, 1) == 0 ? 0 : 1); /* until the parent closes its end */
    }
    close(start_pipe[0]);
    return child;
}

static void processes_with_the_driver_are_listed(void **state)
{
    int start_pipe[2], ready_pipe[2];
    const pid_t child = start_process(start_pipe, ready_pipe);
    nvmlProcessInfo_v1_t old[256];
    unsigned count = 0, old_count = 256, n_found = 0;
    char byte = 0, name[256], short_name[4];

    (void)state;
    assert_true(child > 0);
    assert_false(is_listed((unsigned)child));
    assert_int_equal(write(start_pipe[1], &byte, 1), 1);
    assert_int_equal(read(ready_pipe[0], &byte, 1), 1);
    assert_true(is_listed((unsigned)child));
    assert_false(is_listed((unsigned)getpid()));
    assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v2(first(), &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_true(count >= 1);
    assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses(first(), &old_count, old), NVML_SUCCESS);
    for (unsigned i = 0; i < old_count; i++)
        n_found += old[i].pid == (unsigned)child && old[i].usedGpuMemory == ~0ull;
    assert_int_equal(n_found, 1);
    count = 5;
    assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(first(), &count, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(first(), &count, (nvmlProcessInfo_t *)old), NVML_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_equal(nvml.nvmlSystemGetProcessName((unsigned)child, name, sizeof name), NVML_SUCCESS);
    assert_non_null(strstr(name, "nvml_library_test"));
    assert_int_equal(nvml.nvmlSystemGetProcessName((unsigned)child, short_name, sizeof short_name), NVML_SUCCESS);
    assert_true(strlen(short_name) == 3 && !strncmp(short_name, name, 3));
    close(start_pipe[1]);
    wait_for(child);
    assert_false(is_listed((unsigned)child));
    close(ready_pipe[0]);
    close(ready_pipe[1]);
}

/* ---- helpers that fail ---- */

static void copy_file(const char *from, const char *to)
{
    char bytes[4096];
    size_t n;
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");

    assert_true(in && out);
    while ((n = fread(bytes, 1, sizeof bytes, in)))
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* Opens a copy of the library, for which write_helper makes the helper. */
static void *open_copy(void)
{
    void *copy;

    copy_file(NVML_LIBRARY, copy_library);
    copy = dlopen(copy_library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(copy);
    assert_ptr_not_equal(dlsym(copy, "nvmlInit_v2"), (void *)nvml.nvmlInit_v2);
    return copy;
}

/* A shell script; NULL: there is no helper. */
static void write_helper(const char *script)
{
    FILE *file;

    unlink(copy_helper);
    if (!script)
        return;
    file = fopen(copy_helper, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(copy_helper, 0755), 0);
}

static void a_failing_helper_is_an_error(void **state)
{
    static const char *const scripts[] = {NULL, "exit 1", "echo devices 1; echo end", "kill -9 $$", "echo devices 0; echo end; exit 3",
                                          "yes"};
    void *copy = open_copy();
    nvmlReturn_t (*init)(void) = (nvmlReturn_t(*)(void))dlsym(copy, "nvmlInit_v2");
    pid_t child;

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        write_helper(scripts[i]);
        assert_int_equal(init(), NVML_ERROR_DRIVER_NOT_LOADED);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    assert_int_equal(dlclose(copy), 0);
    child = fork(); /* its handlers for forks are gone */
    if (!child)
        _exit(0);
    wait_for(child);
}

#define HELPER_FOLDER "helper=$(dirname " NVML_LIBRARY ")/cuttle-nvml-helper; "
#define NO_CPU "$helper | sed 's/^is_cpu 1/is_cpu 0/'"

/* The machine may have no GPU: then a helper says that the CPU device is one. */
static void memory_of_gpus_is_what_the_driver_says(void **state)
{
    static const struct {
        const char *script;
        nvmlReturn_t result;
    } others[] = {
        {HELPER_FOLDER "[ -z \"$1\" ] || exit 1; " NO_CPU, NVML_ERROR_DRIVER_NOT_LOADED},
        {HELPER_FOLDER "[ -z \"$1\" ] || { echo memory 2 1; echo end; exit; }; " NO_CPU, NVML_ERROR_UNKNOWN},
        {HELPER_FOLDER "[ -z \"$1\" ] || { echo nonsense; exit; }; " NO_CPU, NVML_ERROR_UNKNOWN},
    };
    struct driver_facts *facts = driver_facts();
    void *copy = open_copy();
    __typeof__(nvml.nvmlInit_v2) init = (__typeof__(init))dlsym(copy, "nvmlInit_v2"),
                                 shutdown = (__typeof__(init))dlsym(copy, "nvmlShutdown");
    __typeof__(nvml.nvmlDeviceGetHandleByIndex) by_index = (__typeof__(by_index))dlsym(copy, "nvmlDeviceGetHandleByIndex_v2");
    __typeof__(nvml.nvmlDeviceGetMemoryInfo) memory_info = (__typeof__(memory_info))dlsym(copy, "nvmlDeviceGetMemoryInfo");
    nvmlMemory_t memory = {0};
    nvmlDevice_t device;
    unsigned last = (unsigned)facts->count - 1;

    (void)state;
    write_helper(HELPER_FOLDER "[ -z \"$1\" ] || exec $helper \"$@\"; " NO_CPU);
    assert_int_equal(init(), NVML_SUCCESS);
    assert_int_equal(by_index(last, &device), NVML_SUCCESS);
    assert_int_equal(memory_info(device, &memory), NVML_SUCCESS);
    assert_int_equal(memory.total, facts->devices[last].bytes);
    assert_true(memory.free > 0 && memory.free + memory.used == memory.total);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        write_helper(others[i].script);
        assert_int_equal(memory_info(device, &memory), others[i].result);
    }
    assert_int_equal(memory.total, facts->devices[last].bytes); /* it is unchanged */
    assert_int_equal(shutdown(), NVML_SUCCESS);
    dlclose(copy);
    munmap(facts, sizeof *facts);
}

#define COPYING(test) cmocka_unit_test_setup_teardown(test, make_copy_folder, remove_copy_folder)
#define RUNNING(test) cmocka_unit_test_setup_teardown(test, start_nvml, stop_nvml)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_works_before_nvml_init),
        cmocka_unit_test(starts_are_counted),
        RUNNING(handles_survive_another_start),
        cmocka_unit_test(every_result_has_a_text),
        cmocka_unit_test(refused_functions_say_so),
        RUNNING(facts_are_those_of_the_driver),
        cmocka_unit_test(all_devices_are_seen_whatever_is_visible),
        RUNNING(devices_are_found_by_their_addresses),
        RUNNING(wrong_arguments_are_refused),
        RUNNING(versioned_structures_and_fields),
        cmocka_unit_test(the_application_is_left_alone),
        cmocka_unit_test(it_works_without_standard_output),
        RUNNING(a_child_may_start_the_driver),
        cmocka_unit_test(threads_share_it),
        cmocka_unit_test(forks_do_not_copy_a_held_lock),
        RUNNING(processes_with_the_driver_are_listed),
        COPYING(a_failing_helper_is_an_error),
        COPYING(memory_of_gpus_is_what_the_driver_says),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
