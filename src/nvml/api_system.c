/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end, and what concerns no device. */
#include "nvml_abi.h"

#include "processes.h"
#include "state.h"
#include "text.h"

#include "cuda.h"

nvmlReturn_t nvmlInit(void)
{
    return nvmlInit_v2();
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvml_retain();
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    return flags & ~(unsigned)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH | NVML_INIT_FLAG_FORCE_INIT) ? NVML_ERROR_INVALID_ARGUMENT
                                                                                                              : nvml_retain();
}

nvmlReturn_t nvmlShutdown(void)
{
    return nvml_release();
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const struct {
        nvmlReturn_t result;
        const char *text;
    } rows[] = {
#define RESULT(name, value, text) {name, text},
#include "results.def"
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result)
            return rows[i].text;
    return nvmlErrorString(NVML_ERROR_UNKNOWN);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    const nvmlReturn_t r = nvml_check(version != NULL);

    return r == NVML_SUCCESS ? nvml_copy_text(CUTTLE_VERSION, version, length) : r;
}

/* Works without nvmlInit, as documented. */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    char text[NVML_SYSTEM_VERSION_BUFFER_SIZE];

    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(text, sizeof text, "%d.%s", CUDA_VERSION / 1000, CUTTLE_VERSION);
    return nvml_copy_text(text, version, length);
}

/* Works without nvmlInit, as documented. */
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = CUDA_VERSION;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    const nvmlReturn_t r = nvml_check(name && length);

    if (r != NVML_SUCCESS)
        return r;
    return nvml_process_name(pid, name, length) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* A number that is always 0. */
static nvmlReturn_t none(unsigned *count)
{
    const nvmlReturn_t r = nvml_check(count != NULL);

    if (r == NVML_SUCCESS)
        *count = 0;
    return r;
}

nvmlReturn_t nvmlUnitGetCount(unsigned *count)
{
    return none(count);
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned *count)
{
    return none(count);
}
