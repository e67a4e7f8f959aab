/* SPDX-License-Identifier: Apache-2.0 */
/* The throughput of the operations that IEEE 754 requires to be correctly rounded: many threads, each with four chains of one operation. Prints
 * a line for each operation, with 10^9 results per second. bench/exactness compares them for the values of CUTTLE_MATH.
 *   bench_math [THREADS] [ROUNDS] */
#include "launch_time.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAINS 4
#define UNROLLED 16
#define BLOCK 128

/* x = mnemonic before x after; %k0 and %k1 are close to 1. */
static const struct operation {
    const char *mnemonic, *before, *after, *type;
} operations[] = {
    {"fma.rn.f32", "", ", %k0, %k1", "f32"}, {"div.rn.f32", "%k0, ", "", "f32"},      {"rcp.rn.f32", "", "", "f32"},
    {"sqrt.rn.f32", "", "", "f32"},          {"fma.rn.f64", "", ", %k0, %k1", "f64"}, {"div.rn.f64", "%k0, ", "", "f64"},
    {"rcp.rn.f64", "", "", "f64"},           {"sqrt.rn.f64", "", "", "f64"},          {"fma.rn.f16", "", ", %k0, %k1", "f16"},
};

static unsigned bytes_of(const struct operation *operation)
{
    return (unsigned)atoi(operation->type + 1) / 8;
}

static char *kernel_text(const struct operation *operation, char *out, size_t size)
{
    const char *t = operation->type;
    const unsigned bytes = bytes_of(operation), bits = 8 * bytes;
    size_t n = 0;

    n += (size_t)snprintf(out + n, size - n,
                          ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry k(.param .u64 p, .param .u32 rounds)\n{\n  .reg .pred %%q;\n  .reg .b32 %%r<4>;\n"
                          "  .reg .b64 %%d<3>;\n  .reg .%s %%x<%d>, %%k<2>, %%s;\n"
                          "  ld.param.u64 %%d0, [p];\n  ld.param.u32 %%r0, [rounds];\n  mov.u32 %%r1, %%ctaid.x;\n"
                          "  mov.u32 %%r2, %%ntid.x;\n  mov.u32 %%r3, %%tid.x;\n  mad.lo.u32 %%r1, %%r1, %%r2, %%r3;\n"
                          "  mul.wide.u32 %%d1, %%r1, %u;\n  add.u64 %%d2, %%d0, %%d1;\n"
                          "  ld.global.b%u %%k0, [%%d0];\n  ld.global.b%u %%k1, [%%d0+%u];\n",
                          t, CHAINS, bytes, bits, bits, bytes);
    for (unsigned i = 0; i < CHAINS; i++)
        n += (size_t)snprintf(out + n, size - n, "  ld.global.b%u %%x%u, [%%d2+%u];\n", bits, i, i * bytes);
    n += (size_t)snprintf(out + n, size - n, "AGAIN:\n");
    for (unsigned i = 0; i < CHAINS * UNROLLED; i++)
        n += (size_t)snprintf(out + n, size - n, "  %s %%x%u, %s%%x%u%s;\n", operation->mnemonic, i % CHAINS, operation->before, i % CHAINS,
                              operation->after);
    n += (size_t)snprintf(out + n, size - n, "  sub.u32 %%r0, %%r0, 1;\n  setp.ne.u32 %%q, %%r0, 0;\n  @%%q bra AGAIN;\n");
    for (unsigned i = 1; i < CHAINS; i++)
        n += (size_t)snprintf(out + n, size - n, "  add.%s %%x0, %%x0, %%x%u;\n", t, i);
    /* All operands are above zero, so nothing is stored, and every launch has the same. */
    snprintf(out + n, size - n, "  mov.b%u %%s, 0;\n  setp.lt.%s %%q, %%x0, %%s;\n  @%%q st.global.b%u [%%d2], %%x0;\n  ret;\n}\n", bits, t,
             bits);
    return out;
}

/* Numbers between 1/2 and 2 (of f16 between 1 and 2): the results of all operations stay close to that range. */
static CUdeviceptr make_operands(const struct operation *operation, unsigned n)
{
    const size_t bytes = bytes_of(operation);
    unsigned state = 1;
    char *values = calloc(n, bytes);
    CUdeviceptr result;

    if (!values)
        exit(1);
    for (unsigned i = 0; i < n; i++) {
        const double x = 1.25 + 0.6 * example_random_float(&state);
        const float single = (float)x;
        const uint16_t half = (uint16_t)(0x3c00 | (uint16_t)(i * 37 % 0x400));

        memcpy(values + i * bytes, bytes == 2 ? (const void *)&half : bytes == 4 ? (const void *)&single : (const void *)&x, bytes);
    }
    result = example_upload(values, n * bytes);
    free(values);
    return result;
}

static void measure(const struct operation *operation, unsigned threads, unsigned rounds)
{
    char text[8192];
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory = make_operands(operation, threads + CHAINS);
    void *params[] = {&memory, &rounds};
    double ms;

    CHECK(cuModuleLoadData(&module, kernel_text(operation, text, sizeof text)));
    CHECK(cuModuleGetFunction(&function, module, "k"));
    ms = least_launch_ms(function, (unsigned[]){threads / BLOCK, 1}, (unsigned[]){BLOCK, 1}, params);
    printf("%-12s %12.3f\n", operation->mnemonic, (double)threads * rounds * CHAINS * UNROLLED / ms * 1e-6);
    CHECK(cuModuleUnload(module));
    CHECK(cuMemFree(memory));
}

int main(int argc, char **argv)
{
    const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 4096, rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 8;
    CUcontext context;
    CUdevice device;

    device = example_open(&context);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        measure(&operations[i], threads, rounds);
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
