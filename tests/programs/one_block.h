/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with the parameters (out, in, n) that one block executes: each of its threads computes a word. */
#ifndef TESTS_PROGRAMS_ONE_BLOCK_H
#define TESTS_PROGRAMS_ONE_BLOCK_H

#include "../api/api_test.h"

enum { N = 256 }; /* number of words of `in` and `out`, and of threads of the one block */

struct data {
    uint32_t in[N], out[N];
    uint32_t n;
};

/* A kernel, and what computes its results in C. */
struct row {
    const char *kernel;
    void (*expect)(struct data *data);
};

static inline void fill(struct data *data, uint32_t n)
{
    uint32_t word = 12345 + n;

    *data = (struct data){.n = n};
    for (uint32_t t = 0; t < N; t++)
        data->in[t] = (word = word * 1664525u + 1013904223u) >> 4;
}

/* Launches a kernel once; returns the result of waiting for it. */
static inline CUresult launch(CUmodule module, const char *name, struct data *data, uint32_t *found)
{
    CUdeviceptr in, out;
    CUfunction kernel;
    CUresult result;

    if (cuModuleGetFunction(&kernel, module, name) != CUDA_SUCCESS)
        fail_msg("%s does not compile", name);
    ok(cuMemAlloc(&in, sizeof data->in));
    ok(cuMemAlloc(&out, sizeof data->out));
    ok(cuMemcpyHtoD(in, data->in, sizeof data->in));
    ok(cuMemsetD32(out, 0, N));
    if (cuLaunchKernel(kernel, 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&out, &in, &data->n}, NULL) != CUDA_SUCCESS)
        fail_msg("%s cannot be launched", name);
    result = cuCtxSynchronize();
    if (result == CUDA_SUCCESS) {
        ok(cuMemcpyDtoH(found, out, sizeof data->out));
        ok(cuMemFree(in));
        ok(cuMemFree(out));
    }
    return result;
}

static inline void check_row(CUmodule module, const struct row *row, uint32_t n)
{
    struct data data;
    uint32_t found[N];

    fill(&data, n);
    row->expect(&data);
    ok(launch(module, row->kernel, &data, found));
    for (uint32_t t = 0; t < N; t++)
        if (found[t] != data.out[t])
            fail_msg("%s, n = %u, thread %u: 0x%x instead of 0x%x", row->kernel, n, t, found[t], data.out[t]);
}

/* Kernels that call functions which are not inlined, in the order of the rows. */
static inline void check_rows(const char *ptx_file, const struct row *rows, size_t n_rows)
{
    CUmodule module;

    ok(cuModuleLoad(&module, ptx_file));
    ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192)); /* NVIDIA's driver needs more than its default */
    for (size_t i = 0; i < n_rows; i++)
        for (uint32_t n = 0; n < 4; n++)
            check_row(module, &rows[i], n);
    ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    ok(cuModuleUnload(module));
}

#endif
