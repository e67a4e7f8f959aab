/* SPDX-License-Identifier: Apache-2.0 */
/* How two devices are connected. */
#include "nvml_abi.h"

#include "sensors.h"
#include "state.h"

static nvmlReturn_t look_up_both(const nvmlDevice_t devices[2], bool are_arguments_valid, struct nvml_facts out[2])
{
    const nvmlReturn_t r = nvml_look_up(devices[0], are_arguments_valid, &out[0], NULL);

    return r == NVML_SUCCESS ? nvml_look_up(devices[1], true, &out[1], NULL) : r;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t first, nvmlDevice_t second, unsigned *level)
{
    struct nvml_facts facts[2];
    long long nodes[2];
    const nvmlReturn_t r = look_up_both((nvmlDevice_t[]){first, second}, level != NULL, facts);

    if (r != NVML_SUCCESS)
        return r;
    if (first == second) {
        *level = NVML_TOPOLOGY_INTERNAL;
        return NVML_SUCCESS;
    }
    for (int i = 0; i < 2; i++)
        if (!nvml_sensor_read(NVML_SYSFS, &facts[i], NVML_SENSOR_NUMA_NODE, &nodes[i]) || nodes[i] < 0)
            return NVML_ERROR_NOT_SUPPORTED;
    *level = nodes[0] == nodes[1] ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

/* Devices never access each other's memory directly: cuDeviceCanAccessPeer says so, too. */
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, unsigned capability, unsigned *status)
{
    struct nvml_facts facts[2];
    const nvmlReturn_t r = look_up_both((nvmlDevice_t[]){first, second}, status && capability < NVML_P2P_CAPS_INDEX_UNKNOWN, facts);

    if (r == NVML_SUCCESS)
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    return r;
}
