// SPDX-License-Identifier: Apache-2.0
// Products of matrices by the instructions of matrix units, for bench_matrix. Blocks of 256 threads: 8 warps.
#include "device.h"

typedef unsigned int word;
typedef unsigned long long size;
enum { TILE = 128, DEPTH = 32, STAGES = 2, PITCH = DEPTH + 8 /* halves; rows start in different banks */, ACCUMULATORS = 8 };

/* ---- one instruction, again and again: every warp has ACCUMULATORS independent sums ---- */

#define LOOP(name, type)                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256) name(float *out, unsigned rounds)                                                    \
    {                                                                                                                                      \
        word a[4], b[2];                                                                                                                   \
        float c[ACCUMULATORS][4];                                                                                                          \
                                                                                                                                           \
        for (unsigned i = 0; i < 4; i++)                                                                                                   \
            a[i] = 0x00010001u * (threadIdx.x & 3);                                                                                        \
        for (unsigned i = 0; i < 2; i++)                                                                                                   \
            b[i] = 0x00010001u * (threadIdx.x & 1);                                                                                        \
        for (unsigned i = 0; i < ACCUMULATORS; i++)                                                                                        \
            for (unsigned k = 0; k < 4; k++)                                                                                               \
                c[i][k] = (float)(i + k);                                                                                                  \
        for (unsigned round = 0; round < rounds; round++)                                                                                  \
            _Pragma("unroll") for (unsigned i = 0; i < ACCUMULATORS; i++)                                                                  \
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "         \
                             "{%0,%1,%2,%3};"                                                                                              \
                             : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])                                                  \
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                          \
        float sum = 0;                                                                                                                     \
        for (unsigned i = 0; i < ACCUMULATORS; i++)                                                                                        \
            for (unsigned k = 0; k < 4; k++)                                                                                               \
                sum += c[i][k];                                                                                                            \
        out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                                                                                  \
    }
LOOP(loop_f16, "f16")
LOOP(loop_bf16, "bf16")

/* ---- C = A B for row-major A (m x k) and column-major B (k x n), of halves; C in floats, row-major ---- */

static __device__ __forceinline__ word shared_address(const void *p)
{
    return (word)(unsigned long long)(const __attribute__((address_space(3))) char *)p;
}

static __device__ __forceinline__ void copy_async(word to, const unsigned short *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/* Rows `first` to first + TILE - 1 of a matrix with k columns, DEPTH of those. 512 copies of 16 bytes: two by each thread. */
static __device__ __forceinline__ void load_tile(word to, const unsigned short *matrix, unsigned first, unsigned column, unsigned k)
{
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        const unsigned piece = threadIdx.x + 256 * i, row = piece / 4, in_row = piece % 4 * 8;

        copy_async(to + 2 * (row * PITCH + in_row), matrix + (size)(first + row) * k + column + in_row);
    }
}

static __device__ __forceinline__ void load_fragments(word at, word *out)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}

/* Each warp computes 64 x 32 elements of a block's 128 x 128. */
extern "C" __global__ void __launch_bounds__(256)
    gemm_mma(float *c, const unsigned short *a, const unsigned short *b, unsigned n, unsigned k)
{
    __shared__ __attribute__((aligned(16))) unsigned short tiles[2][STAGES][TILE * PITCH];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, row0 = warp / 4 * 64, column0 = warp % 4 * 32;
    const unsigned block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE, stage_bytes = 2 * TILE * PITCH;
    const word a_at = shared_address(tiles[0]), b_at = shared_address(tiles[1]);
    float sums[4][4][4];

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
#pragma unroll
            for (unsigned e = 0; e < 4; e++)
                sums[i][j][e] = 0;
#pragma unroll
    for (unsigned s = 0; s < STAGES - 1; s++) {
        load_tile(a_at + s * stage_bytes, a, block_row, s * DEPTH, k);
        load_tile(b_at + s * stage_bytes, b, block_column, s * DEPTH, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (unsigned step = 0, stage = 0, next = STAGES - 1; step < k / DEPTH; step++) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        asm volatile("bar.sync 0;" ::: "memory");
        if (step + STAGES - 1 < k / DEPTH) {
            load_tile(a_at + next * stage_bytes, a, block_row, (step + STAGES - 1) * DEPTH, k);
            load_tile(b_at + next * stage_bytes, b, block_column, (step + STAGES - 1) * DEPTH, k);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll
        for (unsigned part = 0; part < DEPTH; part += 16) {
            word af[4][4], bf[2][4];

#pragma unroll
            for (unsigned i = 0; i < 4; i++)
                load_fragments(a_at + stage * stage_bytes + 2 * ((row0 + 16 * i + lane % 16) * PITCH + part + lane / 16 * 8), af[i]);
#pragma unroll
            for (unsigned j = 0; j < 2; j++)
                load_fragments(b_at + stage * stage_bytes +
                                   2 * ((column0 + 16 * j + lane / 16 * 8 + lane % 8) * PITCH + part + lane / 8 % 2 * 8),
                               bf[j]);
#pragma unroll
            for (unsigned i = 0; i < 4; i++)
#pragma unroll
                for (unsigned j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                 : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
                                 : "r"(af[i][0]), "r"(af[i][1]), "r"(af[i][2]), "r"(af[i][3]), "r"(bf[j / 2][j % 2 * 2]),
                                   "r"(bf[j / 2][j % 2 * 2 + 1]));
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        next = next == STAGES - 1 ? 0 : next + 1;
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
#pragma unroll
            for (unsigned e = 0; e < 4; e++) {
                const unsigned row = block_row + row0 + 16 * i + lane / 4 + e / 2 * 8;
                const unsigned column = block_column + column0 + 8 * j + lane % 4 * 2 + e % 2;

                c[(size)row * n + column] = sums[i][j][e];
            }
}

/* The same with wmma, and one tile that all threads load at a time. */
extern "C" __global__ void __launch_bounds__(256)
    gemm_wmma(float *c, const unsigned short *a, const unsigned short *b, unsigned n, unsigned k)
{
    __shared__ __attribute__((aligned(32))) unsigned short tiles[2][TILE * PITCH];
    const unsigned warp = threadIdx.x / 32, row0 = warp / 4 * 64, column0 = warp % 4 * 32;
    const unsigned block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE, pitch = PITCH;
    const word a_at = shared_address(tiles[0]), b_at = shared_address(tiles[1]);
    float sums[4][2][8];

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned j = 0; j < 2; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sums[i][j][e] = 0;
    for (unsigned step = 0; step < k; step += DEPTH) {
        load_tile(a_at, a, block_row, step, k);
        load_tile(b_at, b, block_column, step, k);
        asm volatile("cp.async.wait_all;" ::: "memory");
        asm volatile("bar.sync 0;" ::: "memory");
#pragma unroll
        for (unsigned part = 0; part < DEPTH; part += 16) {
            word bf[2][8];

#pragma unroll
            for (unsigned j = 0; j < 2; j++)
                asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
                             : "=r"(bf[j][0]), "=r"(bf[j][1]), "=r"(bf[j][2]), "=r"(bf[j][3]), "=r"(bf[j][4]), "=r"(bf[j][5]),
                               "=r"(bf[j][6]), "=r"(bf[j][7])
                             : "r"(b_at + 2 * ((column0 + 16 * j) * PITCH + part)), "r"(pitch)
                             : "memory");
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                word af[8];

                asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
                             : "=r"(af[0]), "=r"(af[1]), "=r"(af[2]), "=r"(af[3]), "=r"(af[4]), "=r"(af[5]), "=r"(af[6]), "=r"(af[7])
                             : "r"(a_at + 2 * ((row0 + 16 * i) * PITCH + part)), "r"(pitch)
                             : "memory");
#pragma unroll
                for (unsigned j = 0; j < 2; j++)
                    asm volatile("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, "
                                 "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}, {%0,%1,%2,%3,%4,%5,%6,%7};"
                                 : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3]), "+f"(sums[i][j][4]),
                                   "+f"(sums[i][j][5]), "+f"(sums[i][j][6]), "+f"(sums[i][j][7])
                                 : "r"(af[0]), "r"(af[1]), "r"(af[2]), "r"(af[3]), "r"(af[4]), "r"(af[5]), "r"(af[6]), "r"(af[7]),
                                   "r"(bf[j][0]), "r"(bf[j][1]), "r"(bf[j][2]), "r"(bf[j][3]), "r"(bf[j][4]), "r"(bf[j][5]),
                                   "r"(bf[j][6]), "r"(bf[j][7]));
            }
        }
        asm volatile("bar.sync 0;" ::: "memory");
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned j = 0; j < 2; j++)
            asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;" ::"l"(
                             c + (size)(block_row + row0 + 16 * i) * n + block_column + column0 + 16 * j),
                         "f"(sums[i][j][0]), "f"(sums[i][j][1]), "f"(sums[i][j][2]), "f"(sums[i][j][3]), "f"(sums[i][j][4]),
                         "f"(sums[i][j][5]), "f"(sums[i][j][6]), "f"(sums[i][j][7]), "r"(n)
                         : "memory");
}

/* ---- the same without such instructions: what programs without them have. 16 x 16 threads, 8 x 8 elements each ---- */

static __device__ __forceinline__ float float_of(unsigned short half)
{
    float result;

    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(half));
    return result;
}

extern "C" __global__ void __launch_bounds__(256)
    gemm_plain(float *c, const unsigned short *a, const unsigned short *b, unsigned n, unsigned k)
{
    __shared__ float tiles[2][8][TILE + 4];
    const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16, block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE;
    float sums[8][8];

#pragma unroll
    for (unsigned i = 0; i < 8; i++)
#pragma unroll
        for (unsigned j = 0; j < 8; j++)
            sums[i][j] = 0;
    for (unsigned step = 0; step < k; step += 8) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const unsigned piece = threadIdx.x + 256 * i, row = piece / 8, in_row = piece % 8;

            tiles[0][in_row][row] = float_of(a[(size)(block_row + row) * k + step + in_row]);
            tiles[1][in_row][row] = float_of(b[(size)(block_column + row) * k + step + in_row]);
        }
        asm volatile("bar.sync 0;" ::: "memory");
#pragma unroll
        for (unsigned s = 0; s < 8; s++)
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
#pragma unroll
                for (unsigned j = 0; j < 8; j++)
                    sums[i][j] = __fmaf_rn(tiles[0][s][y + 16 * i], tiles[1][s][x + 16 * j], sums[i][j]);
        asm volatile("bar.sync 0;" ::: "memory");
    }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
#pragma unroll
        for (unsigned j = 0; j < 8; j++)
            c[(size)(block_row + y + 16 * i) * n + block_column + x + 16 * j] = sums[i][j];
}
