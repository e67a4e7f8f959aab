/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVML's binary interface that Cuttle implements: types, constants and functions with the names that NVML's documentation gives
 * them. functions.def lists all names, those that are not supported, too. */
#ifndef CT_NVML_ABI_H
#define CT_NVML_ABI_H
/* Parts: api_system.c, api_identity.c, api_state.c, api_links.c, api_refused.c. */

#include <stdint.h>

#define NVML_EXPORT __attribute__((visibility("default")))

typedef enum {
#define RESULT(name, value, text) name = value,
#include "results.def"
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

enum {
    NVML_INIT_FLAG_NO_GPUS = 1,   /* no devices are no error */
    NVML_INIT_FLAG_NO_ATTACH = 2, /* do not attach to devices */
    NVML_INIT_FLAG_FORCE_INIT = 4,
};

enum {
    NVML_BRAND_UNKNOWN = 0,
    NVML_COMPUTEMODE_DEFAULT = 0,
    NVML_PSTATE_UNKNOWN = 32,
    NVML_TEMPERATURE_GPU = 0,
    NVML_TEMPERATURE_GPU_MAX = 1,
    NVML_P2P_CAPS_INDEX_UNKNOWN = 5,
    NVML_P2P_STATUS_NOT_SUPPORTED = 5,
    NVML_TOPOLOGY_INTERNAL = 0,
    NVML_TOPOLOGY_NODE = 40,
    NVML_TOPOLOGY_SYSTEM = 50,
    NVML_BUS_TYPE_PCI = 1,
    NVML_VALUE_NOT_AVAILABLE = -1, /* all bits of an unsigned member are set */
};
#define NVML_DEVICE_ARCH_UNKNOWN 0xffffffffu

enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO, NVML_CLOCK_COUNT };

/* What programs allocate for names. */
enum { NVML_DEVICE_NAME_V2_BUFFER_SIZE = 96, NVML_DEVICE_UUID_BUFFER_SIZE = 80, NVML_SYSTEM_VERSION_BUFFER_SIZE = 80 };

typedef struct {
    char busIdLegacy[16]; /* with a domain of 4 digits */
    unsigned domain, bus, device;
    unsigned pciDeviceId; /* the vendor's number in the lower half */
    unsigned pciSubSystemId;
    char busId[32]; /* with a domain of 8 digits */
} nvmlPciInfo_t;

/* The same memory, before busId existed. */
typedef struct {
    char busId[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId, reserved[4];
} nvmlPciInfo_v2_t;

typedef struct {
    unsigned long long total, free, used; /* bytes */
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used; /* bytes */
} nvmlMemory_v2_t;

typedef struct {
    unsigned gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct {
    unsigned version;
    unsigned sensorType;
    int temperature; /* degrees Celsius */
} nvmlTemperature_t;

/* The version of a structure: its size and number. */
#define NVML_STRUCT_VERSION(type, number) ((unsigned)(sizeof(type) | (number) << 24))

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory; /* bytes */
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory; /* bytes */
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    union {
        double d;
        unsigned long long u;
    } value;
} nvmlFieldValue_t;

_Static_assert(sizeof(nvmlPciInfo_t) == 68 && sizeof(nvmlPciInfo_v2_t) == 52, "PCI");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40 && sizeof(nvmlTemperature_t) == 12, "versioned structures");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_t) == 24, "processes");
_Static_assert(sizeof(nvmlFieldValue_t) == 40, "fields");

/* The implemented functions; functions.def says what each returns. */
#define IMPLEMENTED(name, parameters, what) NVML_EXPORT nvmlReturn_t name parameters;
#include "functions.def"
NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t result);

#endif
