/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs by table, and /proc/meminfo. */
#include "sensors.h"

#include <glob.h>
#include <limits.h>
#include <string.h>

static const struct {
    enum nvml_sensor sensor;
    const char *pattern;
    long long divisor;
} rows[] = {
#define SENSOR(id, pattern, divisor) {NVML_SENSOR_##id, pattern, divisor},
#include "sensors.def"
};

static bool read_file(const char *path, long long *out)
{
    FILE *file = fopen(path, "re");
    const bool has_number = file && fscanf(file, "%lld", out) == 1;

    if (file)
        fclose(file);
    return has_number;
}

/* The number in the first file of the pattern that can be read. */
static bool read_pattern(const char *pattern, long long *out)
{
    glob_t found;
    bool has_number = false;

    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !has_number; i++)
        has_number = read_file(found.gl_pathv[i], out);
    globfree(&found);
    return has_number;
}

bool nvml_sensor_read(const char *sysfs, const struct nvml_facts *facts, enum nvml_sensor sensor, long long *out)
{
    char pattern[PATH_MAX];
    long long number;

    if (!facts->has_pci)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int length =
            snprintf(pattern, sizeof pattern, "%s/bus/pci/devices/%04llx:%02llx:%02llx.0/%s", sysfs, (unsigned long long)facts->pci_domain,
                     (unsigned long long)facts->pci_bus, (unsigned long long)facts->pci_device, rows[i].pattern);

        if (rows[i].sensor == sensor && length < (int)sizeof pattern && read_pattern(pattern, &number)) {
            *out = number / rows[i].divisor;
            return true;
        }
    }
    return false;
}

bool nvml_host_memory_used(const char *meminfo, uint64_t *out)
{
    FILE *file = fopen(meminfo, "re");
    unsigned long long total_kib = 0, available_kib = 0;
    bool has_total = false, has_available = false;
    char line[256];

    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        has_total |= sscanf(line, "MemTotal: %llu kB", &total_kib) == 1;
        has_available |= sscanf(line, "MemAvailable: %llu kB", &available_kib) == 1;
    }
    fclose(file);
    if (!has_total || !has_available || available_kib > total_kib)
        return false;
    *out = (uint64_t)(total_kib - available_kib) * 1024;
    return true;
}
