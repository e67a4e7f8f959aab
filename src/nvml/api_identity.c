/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices there are, and what they are. The facts are those of nvmlInit. */
#include "nvml_abi.h"

#include "state.h"
#include "text.h"

#include <string.h>

/* ---- handles ---- */

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvml_count(count);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    return nvml_count(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvml_by_index(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    return nvml_by_index(index, device);
}

/* As NVIDIA's on an H200: with GPU- before it or without, in lower case. */
static bool has_uuid(const struct nvml_facts *facts, const void *uuid)
{
    return !strcmp(facts->uuid, uuid) || !strcmp(facts->uuid + strlen("GPU-"), uuid);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    const nvmlReturn_t r = nvml_check(uuid && device);

    return r == NVML_SUCCESS ? nvml_find(has_uuid, uuid, device) : r;
}

struct address {
    unsigned domain, bus, device, function;
};

static bool has_address(const struct nvml_facts *facts, const void *what)
{
    const struct address *address = what;

    return facts->pci_domain == address->domain && facts->pci_bus == address->bus && facts->pci_device == address->device &&
           !address->function;
}

/* domain:bus:device.function in hexadecimal, without the domain or the function, too. */
static bool parse_address(const char *text, struct address *out)
{
    int length = -1;

    *out = (struct address){0};
    if (sscanf(text, "%8x:%2x:%2x%n", &out->domain, &out->bus, &out->device, &length) != 3 || length < 0) {
        out->domain = 0;
        length = -1;
        if (sscanf(text, "%2x:%2x%n", &out->bus, &out->device, &length) != 2 || length < 0)
            return false;
    }
    text += length;
    length = 0;
    if (*text == '.' && sscanf(text, ".%1x%n", &out->function, &length) != 1)
        return false;
    return !text[length];
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    struct address address = {0};
    const nvmlReturn_t r = nvml_check(bus_id && device && parse_address(bus_id, &address));

    return r == NVML_SUCCESS ? nvml_find(has_address, &address, device) : r;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId(bus_id, device);
}

/* ---- names and addresses ---- */

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    struct nvml_facts facts;

    return nvml_look_up(device, index != NULL, &facts, index);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, name != NULL, &facts, NULL);

    return r == NVML_SUCCESS ? nvml_copy_text(facts.name, name, length) : r;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, uuid != NULL, &facts, NULL);

    return r == NVML_SUCCESS ? nvml_copy_text(facts.uuid, uuid, length) : r;
}

/* Devices without an address have 0000:00:00.0, as in the driver API, since NCCL and UCX look devices of CUDA up in NVML by that address. */
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, pci != NULL, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    *pci = (nvmlPciInfo_t){.domain = (unsigned)facts.pci_domain,
                           .bus = (unsigned)facts.pci_bus,
                           .device = (unsigned)facts.pci_device,
                           .pciDeviceId = (unsigned)facts.pci_ids};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04x:%02x:%02x.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    nvmlPciInfo_t info;
    struct nvml_facts facts;
    nvmlReturn_t r = nvml_look_up(device, pci != NULL, &facts, NULL);

    if (r == NVML_SUCCESS)
        r = nvmlDeviceGetPciInfo_v3(device, &info);
    if (r != NVML_SUCCESS)
        return r;
    *pci = (nvmlPciInfo_v2_t){.domain = info.domain, .bus = info.bus, .device = info.device, .pciDeviceId = info.pciDeviceId};
    memcpy(pci->busId, info.busIdLegacy, sizeof pci->busId);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    return nvmlDeviceGetPciInfo_v2(device, pci);
}

/* ---- numbers ---- */

/* A number that is the same for all devices. */
static nvmlReturn_t give(nvmlDevice_t device, unsigned *out, unsigned value)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, out != NULL, &facts, NULL);

    if (r == NVML_SUCCESS)
        *out = value;
    return r;
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, unsigned *type)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, type != NULL, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    if (!facts.has_pci)
        return NVML_ERROR_NOT_SUPPORTED;
    *type = NVML_BUS_TYPE_PCI;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *brand)
{
    return give(device, brand, NVML_BRAND_UNKNOWN);
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture)
{
    return give(device, architecture, NVML_DEVICE_ARCH_UNKNOWN);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode)
{
    return give(device, mode, NVML_COMPUTEMODE_DEFAULT);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    return give(device, count, 0);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_mig)
{
    return give(device, is_mig, 0);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, major && minor, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    *major = (int)facts.capability_major;
    *minor = (int)facts.capability_minor;
    return NVML_SUCCESS;
}

/* NOT_SUPPORTED: the number is 0, which means unknown. */
static nvmlReturn_t give_known(uint64_t number, unsigned *out)
{
    if (!number)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned)number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned *bits)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, bits != NULL, &facts, NULL);

    return r == NVML_SUCCESS ? give_known(facts.memory_bus_bits, bits) : r;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz)
{
    struct nvml_facts facts;
    const nvmlReturn_t r = nvml_look_up(device, mhz && type < NVML_CLOCK_COUNT, &facts, NULL);

    if (r != NVML_SUCCESS)
        return r;
    if (type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    return give_known((type == NVML_CLOCK_MEM ? facts.memory_clock_khz : facts.clock_khz) / 1000, mhz);
}
