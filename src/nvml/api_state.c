/* SPDX-License-Identifier: Apache-2.0 */
/* What a device does now: memory, measurements, processes. All is read anew at each call. */
#include "nvml_abi.h"

#include "helper_run.h"
#include "processes.h"
#include "sensors.h"
#include "state.h"

#include <stdlib.h>

enum { ANSWER_BYTES = 256, MAX_PROCESSES = 4096 };

/* ---- memory ---- */

static nvmlReturn_t give_used(const struct nvml_facts *facts, uint64_t used, nvmlMemory_t *out)
{
    out->total = facts->memory_bytes;
    out->used = used < facts->memory_bytes ? used : facts->memory_bytes;
    out->free = out->total - out->used;
    return NVML_SUCCESS;
}

/* The memory of a CPU device is that of the machine: what anyone uses is used. */
static nvmlReturn_t read_host_memory(const struct nvml_facts *facts, nvmlMemory_t *out)
{
    uint64_t used;

    return nvml_host_memory_used(NVML_MEMINFO, &used) ? give_used(facts, used, out) : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t ask_helper(unsigned index, nvmlMemory_t *out)
{
    char path[PATH_MAX], number[16], text[ANSWER_BYTES];
    uint64_t free_bytes, total_bytes;
    nvmlReturn_t r;

    if (!nvml_beside(NVML_HELPER, path))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    snprintf(number, sizeof number, "%u", index);
    r = nvml_helper_run(path, NVML_HELPER_MEMORY, number, NVML_HELPER_TIMEOUT_MS, text, sizeof text);
    if (r != NVML_SUCCESS)
        return r;
    if (!nvml_memory_read(text, &free_bytes, &total_bytes) || free_bytes > total_bytes)
        return NVML_ERROR_UNKNOWN;
    *out = (nvmlMemory_t){.total = total_bytes, .free = free_bytes, .used = total_bytes - free_bytes};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct nvml_facts facts;
    unsigned index;
    long long used;
    const nvmlReturn_t r = nvml_look_up(device, memory != NULL, &facts, &index);

    if (r != NVML_SUCCESS)
        return r;
    if (facts.is_cpu)
        return read_host_memory(&facts, memory);
    if (nvml_sensor_read(NVML_SYSFS, &facts, NVML_SENSOR_MEMORY_USED, &used) && used >= 0)
        return give_used(&facts, (uint64_t)used, memory);
    return ask_helper(index, memory);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t info;
    struct nvml_facts facts;
    nvmlReturn_t r = nvml_look_up(device, memory != NULL, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = nvmlDeviceGetMemoryInfo(device, &info);
    if (r != NVML_SUCCESS)
        return r;
    *memory = (nvmlMemory_v2_t){.version = memory->version, .total = info.total, .free = info.free, .used = info.used};
    return NVML_SUCCESS;
}

/* ---- measurements ---- */

static nvmlReturn_t measure(const struct nvml_facts *facts, enum nvml_sensor sensor, unsigned *out)
{
    long long value;

    if (!nvml_sensor_read(NVML_SYSFS, facts, sensor, &value) || value < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned)value;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct nvml_facts facts;
    nvmlUtilization_t rates = {0};
    nvmlReturn_t r = nvml_look_up(device, utilization != NULL, &facts, NULL);

    if (r == NVML_SUCCESS)
        r = measure(&facts, NVML_SENSOR_GPU_BUSY, &rates.gpu);
    if (r != NVML_SUCCESS)
        return r;
    if (measure(&facts, NVML_SENSOR_MEMORY_BUSY, &rates.memory) != NVML_SUCCESS)
        rates.memory = 0; /* integrated devices have no such file */
    *utilization = rates;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *celsius)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, celsius && sensor <= NVML_TEMPERATURE_GPU_MAX, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    return sensor == NVML_TEMPERATURE_GPU ? measure(&facts, NVML_SENSOR_TEMPERATURE, celsius) : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    struct nvml_facts facts;
    unsigned celsius;
    nvmlReturn_t r = nvml_look_up(device, temperature != NULL, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = nvmlDeviceGetTemperature(device, temperature->sensorType, &celsius);
    if (r == NVML_SUCCESS)
        temperature->temperature = (int)celsius;
    return r;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, milliwatts != NULL, &facts, NULL);

    return r == NVML_SUCCESS ? measure(&facts, NVML_SENSOR_POWER, milliwatts) : r;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, mhz && type < NVML_CLOCK_COUNT, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    if (type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    return measure(&facts, type == NVML_CLOCK_MEM ? NVML_SENSOR_MEMORY_CLOCK : NVML_SENSOR_CORE_CLOCK, mhz);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned *state)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, state != NULL, &facts, NULL);

    if (r == NVML_SUCCESS)
        *state = NVML_PSTATE_UNKNOWN;
    return r;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned *state)
{
    return nvmlDeviceGetPerformanceState(device, state);
}

/* Each field has a result of its own. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, values && count > 0, &facts, NULL);

    for (int i = 0; r == NVML_SUCCESS && i < count; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return r;
}

/* ---- processes ---- */

/* Fills one structure of the caller's array. */
typedef void write_process(void *array, unsigned index, unsigned pid);

static void write_v1(void *array, unsigned index, unsigned pid)
{
    ((nvmlProcessInfo_v1_t *)array)[index] =
        (nvmlProcessInfo_v1_t){.pid = pid, .usedGpuMemory = (unsigned long long)NVML_VALUE_NOT_AVAILABLE};
}

static void write_v2(void *array, unsigned index, unsigned pid)
{
    ((nvmlProcessInfo_t *)array)[index] = (nvmlProcessInfo_t){.pid = pid,
                                                              .usedGpuMemory = (unsigned long long)NVML_VALUE_NOT_AVAILABLE,
                                                              .gpuInstanceId = (unsigned)NVML_VALUE_NOT_AVAILABLE,
                                                              .computeInstanceId = (unsigned)NVML_VALUE_NOT_AVAILABLE};
}

/* *count is the size of the array, and becomes the number of processes. INSUFFICIENT_SIZE: there are more of them. */
static nvmlReturn_t list_processes(nvmlDevice_t device, unsigned *count, void *array, write_process *write)
{
    char library[PATH_MAX];
    struct nvml_facts facts;
    unsigned *pids, size, found;
    nvmlReturn_t r = nvml_look_up(device, count && (array || !*count), &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    if (!nvml_beside("libcuda.so.1", library))
        return NVML_ERROR_UNKNOWN;
    pids = malloc(MAX_PROCESSES * sizeof *pids);
    if (!pids)
        return NVML_ERROR_MEMORY;
    size = *count;
    found = (unsigned)nvml_processes_of(library, pids, MAX_PROCESSES);
    *count = found;
    if (found > size)
        r = NVML_ERROR_INSUFFICIENT_SIZE;
    if (found > MAX_PROCESSES)
        r = NVML_ERROR_INSUFFICIENT_RESOURCES;
    for (unsigned i = 0; r == NVML_SUCCESS && i < found; i++)
        write(array, i, pids[i]);
    free(pids);
    return r;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *processes)
{
    return list_processes(device, count, processes, write_v1);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    return list_processes(device, count, processes, write_v2);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    return list_processes(device, count, processes, write_v2);
}

static nvmlReturn_t list_none(nvmlDevice_t device, unsigned *count, const void *array)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, count && (array || !*count), &facts, NULL);

    if (r == NVML_SUCCESS)
        *count = 0;
    return r;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *processes)
{
    return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    return list_none(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    return list_none(device, count, processes);
}
