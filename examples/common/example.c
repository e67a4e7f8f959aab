/* SPDX-License-Identifier: Apache-2.0 */
#include "example.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void example_check(CUresult result, const char *call, const char *file, int line)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "%s:%d: %s gave %s (%d)\n", file, line, call, name ? name : "an unknown error", (int)result);
    exit(EXIT_FAILURE);
}

const char *example_beside(const char *name)
{
    static char path[PATH_MAX + 128];
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    self[length < 0 ? 0 : length] = 0;
    snprintf(path, sizeof path, "%s/%s", dirname(self), name);
    return path;
}

char *example_read_file(const char *path, size_t *size_bytes)
{
    FILE *file = fopen(path, "rb");
    char *bytes;

    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fseek(file, 0, SEEK_END);
    *size_bytes = (size_t)ftell(file);
    rewind(file);
    bytes = calloc(1, *size_bytes + 1);
    if (!bytes || fread(bytes, 1, *size_bytes, file) != *size_bytes) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return bytes;
}

static void read_options(struct example *example, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (value && !strcmp(argv[i], "--ptx"))
            example->ptx = value;
        else if (value && !strcmp(argv[i], "--size"))
            example->size = strtoull(value, NULL, 0);
        else if (value && !strcmp(argv[i], "--repeat"))
            example->repeat = (unsigned)strtoul(value, NULL, 0);
        else if (value && !strcmp(argv[i], "--output"))
            example->output = value;
        else {
            fprintf(stderr, "usage: %s [--ptx FILE] [--size N] [--repeat N] [--output FILE]\n", argv[0]);
            exit(EXIT_FAILURE);
        }
        i++;
    }
}

CUdevice example_open(CUcontext *context)
{
    CUdevice device;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(context, device));
    CHECK(cuCtxSetCurrent(*context));
    return device;
}

void example_begin(struct example *example, int argc, char **argv, const char *name, size_t default_size)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    char default_ptx[64], *text;
    size_t length;

    snprintf(default_ptx, sizeof default_ptx, "ptx/%s.ptx", name);
    *example = (struct example){.name = name, .ptx = example_beside(default_ptx), .size = default_size, .repeat = 10};
    read_options(example, argc, argv);
    example->device = example_open(&example->context);

    text = example_read_file(example->ptx, &length);
    const CUresult loaded = cuModuleLoadDataEx(&example->module, text, 2, options, values);
    if (loaded != CUDA_SUCCESS)
        fprintf(stderr, "%s:\n%s\n", example->ptx, log);
    CHECK(loaded);
    free(text);
}

CUfunction example_function(struct example *example, const char *name)
{
    CUfunction function;

    CHECK(cuModuleGetFunction(&function, example->module, name));
    return function;
}

CUdeviceptr example_upload(const void *data, size_t size_bytes)
{
    CUdeviceptr pointer;

    CHECK(cuMemAlloc(&pointer, size_bytes));
    if (data)
        CHECK(cuMemcpyHtoD(pointer, data, size_bytes));
    else
        CHECK(cuMemsetD8(pointer, 0, size_bytes));
    return pointer;
}

void example_download(void *data, CUdeviceptr source, size_t size_bytes)
{
    CHECK(cuMemcpyDtoH(data, source, size_bytes));
}

double example_launch(struct example *example, CUfunction function, struct example_grid grid, void **params)
{
    CUevent start, stop;
    float ms;

    CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    CHECK(cuLaunchKernel(function, grid.grid_x, grid.grid_y, 1, grid.block_x, grid.block_y, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuEventRecord(start, NULL));
    for (unsigned i = 0; i < example->repeat; i++)
        CHECK(cuLaunchKernel(function, grid.grid_x, grid.grid_y, 1, grid.block_x, grid.block_y, 1, 0, NULL, params, NULL));
    CHECK(cuEventRecord(stop, NULL));
    CHECK(cuEventSynchronize(stop));
    CHECK(cuEventElapsedTime(&ms, start, stop));
    CHECK(cuEventDestroy(start));
    CHECK(cuEventDestroy(stop));
    return example->repeat ? (double)ms / example->repeat : 0;
}

void example_report(struct example *example, const char *work, double ms, double units, const char *unit, size_t errors)
{
    printf("%-16s %-34s %10.3f ms %9.2f %-9s ", example->name, work, ms, ms > 0 ? units / ms * 1e3 : 0, unit);
    if (errors == 0)
        printf("matches the CPU reference\n");
    else
        printf("WRONG: %zu values differ from the CPU reference\n", errors);
    if (errors)
        example->failed = true;
}

int example_end(struct example *example)
{
    CHECK(cuModuleUnload(example->module));
    CHECK(cuDevicePrimaryCtxRelease(example->device));
    return example->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

unsigned example_random(unsigned *state)
{
    /* Marsaglia's xorshift32; the state must not be 0. */
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

float example_random_float(unsigned *state)
{
    return (float)(example_random(state) >> 8) / 8388608.0f - 1.0f;
}
