// SPDX-License-Identifier: Apache-2.0
// The same four kernels, written by hand in OpenCL C.
#define BLOCK 256
#define TILE 64
#define STEP 16
#define PER_THREAD 4

kernel void copy(global const float *source, global float *target, uint n, float x)
{
    const uint i = get_global_id(0);

    if (i < n)
        target[i] = source[i];
}

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void reduction(global const float *values, global float *block_sums, uint n, float x)
{
    local float partial[BLOCK];
    const uint t = get_local_id(0);
    float sum = 0.0f;

    for (uint i = get_group_id(0) * BLOCK + t; i < n; i += get_num_groups(0) * BLOCK)
        sum += values[i];
    partial[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint width = BLOCK / 2; width > 0; width /= 2) {
        if (t < width)
            partial[t] += partial[t + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        block_sums[get_group_id(0)] = partial[0];
}

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void nbody(global const float4 *bodies, global float *accelerations, uint n,
                                                                    float softening)
{
    local float4 tile[BLOCK];
    const uint i = get_global_id(0), t = get_local_id(0);
    const float4 me = bodies[i];
    float3 a = 0.0f;

    for (uint first = 0; first < n; first += BLOCK) {
        tile[t] = bodies[first + t];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < BLOCK; j++) {
            const float4 other = tile[j];
            const float3 d = other.xyz - me.xyz;
            const float r = rsqrt(fma(d.x, d.x, fma(d.y, d.y, fma(d.z, d.z, softening))));
            const float s = other.w * r * r * r;

            a = fma(d, (float3)(s), a);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    accelerations[3 * i] = a.x;
    accelerations[3 * i + 1] = a.y;
    accelerations[3 * i + 2] = a.z;
}

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void sgemm(global const float *a, global const float *b, global float *c, uint n, float x)
{
    local float tile_a[STEP][TILE + 4], tile_b[STEP][TILE];
    const uint tx = get_local_id(0), ty = get_local_id(1), thread = ty * 16 + tx;
    const uint row0 = get_group_id(1) * TILE, column0 = get_group_id(0) * TILE;
    float sum[PER_THREAD][PER_THREAD] = {{0.0f}};

    for (uint k0 = 0; k0 < n; k0 += STEP) {
        for (uint part = 0; part < TILE * STEP / 256; part++) {
            const uint item = thread + part * 256;

            tile_a[item % STEP][item / STEP] = a[(row0 + item / STEP) * n + k0 + item % STEP];
            tile_b[item / TILE][item % TILE] = b[(k0 + item / TILE) * n + column0 + item % TILE];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < STEP; k++)
            for (uint i = 0; i < PER_THREAD; i++)
                for (uint j = 0; j < PER_THREAD; j++)
                    sum[i][j] = fma(tile_a[k][ty * PER_THREAD + i], tile_b[k][tx + j * 16], sum[i][j]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = 0; i < PER_THREAD; i++)
        for (uint j = 0; j < PER_THREAD; j++)
            c[(row0 + ty * PER_THREAD + i) * n + column0 + tx + j * 16] = sum[i][j];
}
