/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of the instructions of matrix units, in 10^12 operations per second: run it with each driver library in turn (bench/README.md).
 *   bench_matrix [SIDE]
 * One instruction in a loop of registers, and products of SIDE x SIDE halves (a multiple of 128), whose results are checked. */
#include "../launch_time.h"

#include <stdio.h>
#include <stdlib.h>

enum { TILE = 128, THREADS = 256, LOOP_BLOCKS = 1056, LOOP_ROUNDS = 2000, LOOP_PRODUCTS = 8, WARPS = 8, CHECKED = 200 };

static void report(CUfunction function, const char *name, double operations, double ms, bool is_right)
{
    int registers;

    CHECK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    printf("%-12s %10.3f ms  %9.2f TOP/s  %3d registers%s\n", name, ms, operations / ms / 1e9, registers, is_right ? "" : "  WRONG");
}

/* ---- loops ---- */

/* The sum of a lane's elements. All elements of A are multiples of a smallest subnormal, whose products with those of B vanish beside C's. */
static float expected_sum(void)
{
    float sum = 0;

    for (unsigned i = 0; i < LOOP_PRODUCTS; i++)
        for (unsigned k = 0; k < 4; k++)
            sum += (float)(i + k);
    return sum;
}

static bool measure_loop(CUmodule module, const char *name, unsigned blocks, unsigned rounds)
{
    const unsigned grid[2] = {blocks, 1}, block[2] = {THREADS, 1};
    void *params[2];
    CUdeviceptr out;
    CUfunction function;
    float last;
    double ms;

    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuMemAlloc(&out, (size_t)blocks * THREADS * sizeof last));
    params[0] = &out;
    params[1] = &rounds;
    ms = least_launch_ms(function, grid, block, params);
    CHECK(cuMemcpyDtoH(&last, out + ((size_t)blocks * THREADS - 1) * sizeof last, sizeof last));
    report(function, name, 2.0 * 16 * 8 * 16 * LOOP_PRODUCTS * WARPS * (double)rounds * blocks, ms, last == expected_sum());
    CHECK(cuMemFree(out));
    return last == expected_sum();
}

/* ---- products ---- */

/* A half of a small integer: its products and their sums are exact. */
static unsigned short half_of(int value)
{
    static const unsigned short halves[] = {0x0000, 0x3c00, 0x4000, 0x4200};

    return (unsigned short)(halves[abs(value)] | (value < 0 ? 0x8000 : 0));
}

static int value_at(unsigned seed, unsigned row, unsigned column)
{
    return (int)((row * 2654435761u + column * 40503u + seed) >> 7 & 7) % 7 - 3;
}

static CUdeviceptr make_matrix(unsigned seed, unsigned side)
{
    unsigned short *matrix = malloc((size_t)side * side * sizeof *matrix);
    CUdeviceptr device;

    if (!matrix)
        exit(EXIT_FAILURE);
    for (unsigned row = 0; row < side; row++)
        for (unsigned column = 0; column < side; column++)
            matrix[(size_t)row * side + column] = half_of(value_at(seed, row, column));
    device = example_upload(matrix, (size_t)side * side * sizeof *matrix);
    free(matrix);
    return device;
}

/* B is stored by columns. */
static bool is_right(const float *c, unsigned side)
{
    unsigned state = 1;

    for (unsigned i = 0; i < CHECKED; i++) {
        const unsigned row = example_random(&state) % side, column = example_random(&state) % side;
        long sum = 0;

        for (unsigned k = 0; k < side; k++)
            sum += (long)value_at(1, row, k) * value_at(2, column, k);
        if (c[(size_t)row * side + column] != (float)sum)
            return false;
    }
    return true;
}

static bool measure_product(CUmodule module, const char *name, CUdeviceptr a, CUdeviceptr b, unsigned side)
{
    const unsigned grid[2] = {side / TILE, side / TILE}, block[2] = {THREADS, 1};
    const size_t size_bytes = (size_t)side * side * sizeof(float);
    float *c = malloc(size_bytes);
    CUdeviceptr out = example_upload(NULL, size_bytes);
    void *params[] = {&out, &a, &b, &side, &side};
    CUfunction function;
    bool right;
    double ms;

    if (!c)
        exit(EXIT_FAILURE);
    CHECK(cuModuleGetFunction(&function, module, name));
    ms = least_launch_ms(function, grid, block, params);
    example_download(c, out, size_bytes);
    right = is_right(c, side);
    report(function, name, 2.0 * side * side * side, ms, right);
    CHECK(cuMemFree(out));
    free(c);
    return right;
}

int main(int argc, char **argv)
{
    static const char *const products[] = {"gemm_mma", "gemm_wmma", "gemm_plain"}, *const loops[] = {"loop_f16", "loop_bf16"};
    const unsigned side = argc > 1 ? (unsigned)atoi(argv[1]) : 4096;
    const bool is_small = side < 1024; /* for CPU devices */
    struct example example;
    CUdeviceptr a, b;
    bool right = true;

    example_begin(&example, 1, argv, "matrix", side);
    if (!side || side % TILE) {
        fprintf(stderr, "the side is not a multiple of %d\n", TILE);
        return EXIT_FAILURE;
    }
    for (unsigned i = 0; i < sizeof loops / sizeof *loops; i++)
        right &= measure_loop(example.module, loops[i], is_small ? 8 : LOOP_BLOCKS, is_small ? 20 : LOOP_ROUNDS);
    a = make_matrix(1, side);
    b = make_matrix(2, side);
    for (unsigned i = 0; i < sizeof products / sizeof *products; i++)
        right &= measure_product(example.module, products[i], a, b, side);
    CHECK(cuMemFree(a));
    CHECK(cuMemFree(b));
    example.failed = !right;
    return example_end(&example);
}
