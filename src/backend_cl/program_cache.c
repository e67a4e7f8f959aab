/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in the disk cache: the binaries that the runtime has made of SPIR-V. CPU runtimes compile for the processor that they find, and some
 * accept a binary for another one, so its features are part of the key, as are variables that configure a runtime's compiler. An empty binary
 * stands for a program that the runtime has compiled unsuitably (kernel.c). */
#include "cl.h"

#include "core/base/build_id.h"
#include "core/base/disk_cache.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define CT_CHANNEL "kernel"
#define TEXT_BYTES 1024
#define PROCESSOR_WORDS 10

extern char **environ;

/* ---- what a binary depends on besides its program ---- */

static void describe_processor(uint64_t out[PROCESSOR_WORDS])
{
    memset(out, 0, PROCESSOR_WORDS * sizeof *out);
    out[0] = getauxval(AT_HWCAP);
    out[1] = getauxval(AT_HWCAP2);
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;

    if (__get_cpuid(1, &a, &b, &c, &d)) { /* not b, which depends on the processor that runs this */
        out[2] = a;
        out[3] = c;
        out[4] = d;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        out[5] = b;
        out[6] = c;
        out[7] = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
        out[8] = a;
        out[9] = d;
    }
#endif
}

/* Variables of Intel's runtime for CPUs, of PoCL, and of Intel's compiler for GPUs. */
static bool configures_compiler(const char *variable)
{
    static const char *const prefixes[] = {"CL_CONFIG_", "POCL_", "IGC_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

static struct ct_hash hash_variables(void)
{
    struct ct_hash hash = {0, 0};

    for (char **variable = environ; variable && *variable; variable++) {
        const struct ct_bytes parts[] = {{&hash, sizeof hash}, {*variable, strlen(*variable)}};

        if (configures_compiler(*variable))
            hash = ct_hash_parts(parts, 2);
    }
    return hash;
}

struct ct_hash ct_cl_compiler_identity(const struct ct_backend_device *device)
{
    char device_version[TEXT_BYTES] = "", platform_version[TEXT_BYTES] = "";
    uint64_t processor[PROCESSOR_WORDS];
    const struct ct_bytes build = ct_build_id();
    const struct ct_hash variables = hash_variables();

    (void)device->api->clGetDeviceInfo(device->physical->handle, CL_DEVICE_VERSION, sizeof device_version - 1, device_version, NULL);
    (void)device->api->clGetPlatformInfo(device->physical->platform, CL_PLATFORM_VERSION, sizeof platform_version - 1, platform_version,
                                         NULL);
    describe_processor(processor);
    return ct_hash_parts(
        (const struct ct_bytes[]){
            build,
            {device->info->name, strlen(device->info->name)},
            {device->info->driver, strlen(device->info->driver)},
            {&device->info->kind, sizeof device->info->kind},
            {device_version, strlen(device_version)},
            {platform_version, strlen(platform_version)},
            {processor, sizeof processor},
            {&variables, sizeof variables},
        },
        8);
}

bool ct_cl_program_key(const struct ct_backend_device *device, const struct ptx2spv_kernel *source, const char *options,
                       struct ct_disk_key *out)
{
    const struct ct_bytes parts[] = {{&device->compiler, sizeof device->compiler},
                                     {source->words, source->n_words * sizeof *source->words},
                                     {options, strlen(options)},
                                     {&source->info.linear_block, sizeof source->info.linear_block}};

    if (!ct_build_id().size || !ct_disk_cache_takes_code())
        return false;
    *out = ct_disk_key_make(CT_DISK_PROGRAM, parts, sizeof parts / sizeof *parts);
    return true;
}

/* ---- loading and storing ---- */

static cl_program build_or_null(const struct ct_backend_device *device, const void *binary, size_t size, const char *options)
{
    const unsigned char *bytes = binary;
    cl_int result, status;
    cl_program program =
        device->api->clCreateProgramWithBinary(device->context, 1, &device->physical->handle, &size, &bytes, &status, &result);

    if (result != CL_SUCCESS || !program)
        return NULL;
    if (status == CL_SUCCESS && device->api->clBuildProgram(program, 1, &device->physical->handle, options, NULL, NULL) == CL_SUCCESS)
        return program;
    device->api->clReleaseProgram(program);
    return NULL;
}

enum ct_cl_cached ct_cl_program_load(const struct ct_backend_device *device, const struct ct_disk_key *key, const char *options,
                                     cl_program *out)
{
    cl_program program;
    void *binary;
    size_t size;

    if (!ct_disk_cache_load(key, &binary, &size))
        return CT_CL_NOT_CACHED;
    program = size ? build_or_null(device, binary, size, options) : NULL;
    free(binary);
    if (!size)
        return CT_CL_CACHED_UNSUITABLE;
    if (!program)
        return CT_CL_NOT_CACHED;
    *out = program;
    return CT_CL_CACHED;
}

void ct_cl_program_store(const struct ct_backend_device *device, const struct ct_disk_key *key, cl_program program)
{
    unsigned char *binary;
    size_t size = 0;

    if (device->api->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || !size ||
        !(binary = malloc(size)))
        return;
    if (device->api->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        ct_disk_cache_store(key, &(struct ct_bytes){binary, size}, 1);
    free(binary);
}

void ct_cl_program_store_unsuitable(const struct ct_disk_key *key)
{
    ct_disk_cache_store(key, NULL, 0);
}
