/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements from the files of the kernel. The root of the file system is a parameter so that tests can give their own files. */
#ifndef CT_NVML_SENSORS_H
#define CT_NVML_SENSORS_H

#include "facts.h"

#define NVML_SYSFS "/sys"
#define NVML_MEMINFO "/proc/meminfo"

enum nvml_sensor {
    NVML_SENSOR_GPU_BUSY,
    NVML_SENSOR_MEMORY_BUSY,
    NVML_SENSOR_MEMORY_USED,
    NVML_SENSOR_TEMPERATURE,
    NVML_SENSOR_POWER,
    NVML_SENSOR_CORE_CLOCK,
    NVML_SENSOR_MEMORY_CLOCK,
    NVML_SENSOR_NUMA_NODE,
};

/* False: the device has no PCI address, or no such file; or the file has no number. */
bool nvml_sensor_read(const char *sysfs, const struct nvml_facts *facts, enum nvml_sensor sensor, long long *out);
/* Bytes of host memory that are in use: MemTotal - MemAvailable. False: the file lacks one of them. */
bool nvml_host_memory_used(const char *meminfo, uint64_t *out);

#endif
