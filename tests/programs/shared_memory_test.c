/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of every size that CUDA promises, accessed in every way, in grids of more blocks than run at a time. Expectations are
 * computed here, by the PTX ISA's definitions of the instructions. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)
#define STREAMS 4

/* %r1: the thread, %r2: the threads of the block, %r3: the number of the block */
#define POSITION                                                                                                                           \
    "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, %ntid.x;\n    mov.u32 %r3, %ctaid.z;\n    mov.u32 %r4, %nctaid.y;\n"                       \
    "    mov.u32 %r5, %ctaid.y;\n    mad.lo.u32 %r3, %r3, %r4, %r5;\n    mov.u32 %r4, %nctaid.x;\n    mov.u32 %r5, %ctaid.x;\n"            \
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n"

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .shared .align 16 .b8 pool[];\n"
    /* pool[i] = i * 2654435761 + block; out = sum over i = thread, thread + threads, .. of pool[words - 1 - i] ^ i */
    ".visible .entry fill(.param .u64 out, .param .u32 words)\n{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<20>;\n    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u32 %r6, [words];\n" POSITION "    mov.u32 %r7, pool;\n    mov.u32 %r8, %r1;\n"
    "store:\n    setp.ge.u32 %p, %r8, %r6;\n    @%p bra stored;\n"
    "    mad.lo.u32 %r9, %r8, 2654435761, %r3;\n    shl.b32 %r10, %r8, 2;\n    add.u32 %r10, %r10, %r7;\n"
    "    st.shared.u32 [%r10], %r9;\n    add.u32 %r8, %r8, %r2;\n    bra store;\n"
    "stored:\n    bar.sync 0;\n    mov.u32 %r8, %r1;\n    mov.u32 %r11, 0;\n"
    "load:\n    setp.ge.u32 %p, %r8, %r6;\n    @%p bra loaded;\n"
    "    sub.u32 %r10, %r6, %r8;\n    shl.b32 %r10, %r10, 2;\n    add.u32 %r10, %r10, %r7;\n    ld.shared.u32 %r9, [%r10+-4];\n"
    "    xor.b32 %r9, %r9, %r8;\n    add.u32 %r11, %r11, %r9;\n    add.u32 %r8, %r8, %r2;\n    bra load;\n"
    "loaded:\n    mad.lo.u32 %r3, %r3, %r2, %r1;\n    mul.wide.u32 %d2, %r3, 4;\n    add.u64 %d1, %d1, %d2;\n"
    "    st.global.u32 [%d1], %r11;\n    ret;\n}\n"
    /* Each thread writes its items, and reads those of thread 63 - t. */
    ".visible .entry kinds(.param .u64 out, .param .u64 in)\n{\n"
    "    .shared .align 16 .b8 room[36864];\n"
    "    .reg .pred %p, %q;\n    .reg .b16 %h<4>;\n    .reg .f32 %f;\n    .reg .b32 %r<60>;\n    .reg .b64 %d<20>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u64 %d2, [in];\n" POSITION "    mov.u32 %r6, room;\n    sub.u32 %r7, 63, %r1;\n"
    "    shl.b32 %r10, %r1, 2;\n    add.u32 %r10, %r10, %r6;\n    mad.lo.u32 %r11, %r1, 7, %r3;\n    st.shared.u32 [%r10+4096], %r11;\n"
    "    add.u32 %r10, %r1, %r6;\n    xor.b32 %r11, %r1, %r3;\n    st.shared.u8 [%r10+8192], %r11;\n"
    "    shl.b32 %r10, %r1, 1;\n    add.u32 %r10, %r10, %r6;\n    mul.lo.u32 %r11, %r1, 3;\n    cvt.u16.u32 %h1, %r11;\n"
    "    st.shared.u16 [%r10+9216], %h1;\n"
    "    shl.b32 %r10, %r1, 3;\n    add.u32 %r10, %r10, %r6;\n    mov.b64 %d3, {%r1, %r3};\n    st.shared.u64 [%r10+12288], %d3;\n"
    "    shl.b32 %r10, %r1, 4;\n    add.u32 %r10, %r10, %r6;\n    add.u32 %r11, %r1, 1;\n    add.u32 %r12, %r1, 2;\n    add.u32 %r13, %r1, "
    "3;\n"
    "    st.shared.v4.u32 [%r10+16384], {%r1, %r11, %r12, %r13};\n"
    "    mul.wide.u32 %d3, %r1, 16;\n    add.u64 %d3, %d2, %d3;\n    add.u32 %r11, %r10, 20480;\n"
    "    cp.async.ca.shared.global [%r11], [%d3], 16;\n    cp.async.wait_all;\n"
    "    setp.eq.u32 %p, %r1, 0;\n    mov.u32 %r12, 0;\n"
    "    @%p st.shared.v4.u32 [room+32768], {%r12, %r12, %r12, %r12};\n    @%p st.shared.v4.u32 [room+32784], {%r12, %r12, %r12, %r12};\n"
    "    bar.sync 0;\n"
    "    atom.shared.add.u32 %r13, [room+32768], %r1;\n    red.shared.max.s32 [room+32772], %r1;\n"
    "    mov.u64 %d3, 0x200000000;\n    atom.shared.add.u64 %d4, [room+32776], %d3;\n"
    "    mov.u64 %d5, room;\n    cvta.shared.u64 %d5, %d5;\n    add.u64 %d6, %d5, 32784;\n    atom.add.u32 %r13, [%d6], 1;\n"
    "    mov.f32 %f, 0f3F800000;\n    red.shared.add.f32 [room+32788], %f;\n    atom.shared.cas.b32 %r13, [room+32792], 0, 1;\n"
    "    bar.sync 0;\n"
    "    mad.lo.u32 %r8, %r3, 64, %r1;\n    mul.wide.u32 %d7, %r8, 80;\n    add.u64 %d1, %d1, %d7;\n"
    "    shl.b32 %r10, %r7, 2;\n    add.u32 %r10, %r10, %r6;\n    ld.shared.u32 %r20, [%r10+4096];\n    st.global.u32 [%d1], %r20;\n"
    "    add.u32 %r10, %r7, %r6;\n    ld.shared.u8 %r20, [%r10+8192];\n    st.global.u32 [%d1+4], %r20;\n"
    "    shl.b32 %r10, %r7, 1;\n    add.u32 %r10, %r10, %r6;\n    ld.shared.u16 %r20, [%r10+9216];\n    st.global.u32 [%d1+8], %r20;\n"
    "    shl.b32 %r10, %r7, 3;\n    add.u32 %r10, %r10, %r6;\n    ld.shared.u64 %d8, [%r10+12288];\n    mov.b64 {%r20, %r21}, %d8;\n"
    "    st.global.u32 [%d1+12], %r21;\n    st.global.u32 [%d1+16], %r20;\n"
    "    shl.b32 %r10, %r7, 4;\n    add.u32 %r10, %r10, %r6;\n    ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r10+16384];\n"
    "    add.u32 %r20, %r20, %r21;\n    add.u32 %r22, %r22, %r23;\n    add.u32 %r20, %r20, %r22;\n    st.global.u32 [%d1+20], %r20;\n"
    "    ld.shared.u32 %r20, [room+32768];\n    st.global.u32 [%d1+24], %r20;\n"
    "    ld.volatile.shared.u32 %r20, [room+32772];\n    st.global.u32 [%d1+28], %r20;\n"
    "    ld.shared.u32 %r20, [room+32780];\n    st.global.u32 [%d1+32], %r20;\n"
    "    ld.u32 %r20, [%d6];\n    st.global.u32 [%d1+36], %r20;\n"
    "    ld.shared.u32 %r20, [room+32788];\n    st.global.u32 [%d1+40], %r20;\n"
    "    ld.shared.u32 %r20, [room+32792];\n    st.global.u32 [%d1+44], %r20;\n"
    "    isspacep.shared %p, %d6;\n    isspacep.shared %q, %d2;\n    selp.u32 %r20, 1, 0, %p;\n    @%q add.u32 %r20, %r20, 2;\n"
    "    st.global.u32 [%d1+48], %r20;\n"
    /* whether this is shared or global memory is known only at run time */
    "    and.b32 %r21, %r1, 1;\n    setp.eq.u32 %p, %r21, 0;\n    mul.wide.u32 %d9, %r7, 4;\n    add.u64 %d9, %d5, %d9;\n"
    "    add.u64 %d9, %d9, 4096;\n    mul.wide.u32 %d10, %r1, 4;\n    add.u64 %d10, %d2, %d10;\n    selp.b64 %d11, %d9, %d10, %p;\n"
    "    ld.u32 %r20, [%d11];\n    st.global.u32 [%d1+52], %r20;\n"
    "    ld.shared.u32 %r20, [%r10+20480];\n    st.global.u32 [%d1+56], %r20;\n"
    "    and.b32 %r22, %r1, 31;\n"
    "    shfl.sync.bfly.b32 %r20, %r22, 1, 31, -1;\n    st.global.u32 [%d1+60], %r20;\n"
    "    ret;\n}\n";

enum { KINDS = 16, KINDS_STRIDE = 20, KINDS_THREADS = 64 };

static CUmodule module;

static CUfunction get(const char *name)
{
    CUfunction function;

    ok(cuModuleGetFunction(&function, module, name));
    return function;
}

static int limit(CUdevice_attribute attribute)
{
    int value;

    ok(cuDeviceGetAttribute(&value, attribute, 0));
    return value;
}

static int setup(void **state)
{
    CUcontext context;

    (void)state;
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&module, ptx));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ok(cuModuleUnload(module));
    ok(cuDevicePrimaryCtxRelease(0));
    return 0;
}

static uint32_t filled(uint32_t block, uint32_t thread, uint32_t threads, uint32_t words)
{
    uint32_t sum = 0;

    for (uint32_t i = thread; i < words; i += threads)
        sum += ((words - 1 - i) * 2654435761u + block) ^ i;
    return sum;
}

static void check_fill(const uint32_t *out, uint32_t blocks, uint32_t threads, uint32_t words)
{
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t t = 0; t < threads; t++)
            assert_int_equal(out[b * threads + t], filled(b, t, threads, words));
}

static void run_fill(unsigned x, unsigned y, unsigned z, unsigned threads, unsigned bytes)
{
    const size_t size = (size_t)x * y * z * threads * sizeof(uint32_t);
    uint32_t *host = malloc(size), words = bytes / 4;
    CUdeviceptr out;
    void *params[] = {&out, &words};

    assert_non_null(host);
    ok(cuMemAlloc(&out, size));
    ok(cuMemsetD32(out, 0, size / 4));
    ok(cuLaunchKernel(get("fill"), x, y, z, threads, 1, 1, bytes, NULL, params, NULL));
    ok(cuMemcpyDtoH(host, out, size));
    check_fill(host, x * y * z, threads, words);
    ok(cuMemFree(out));
    free(host);
}

/* NVIDIA's figures: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
static void limits_are_those_of_cuda(void **state)
{
    (void)state;
    assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 48 << 10);
    if (limit(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 7 && limit(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 5) {
        assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 64 << 10);
        assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), 64 << 10);
        assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), 0);
    }
    if (limit(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9) {
        assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 227 << 10);
        assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), 228 << 10);
        assert_int_equal(limit(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), 1 << 10);
    }
}

static void every_size_works(void **state)
{
    static const unsigned sizes[] = {4, 16 << 10, 32764, 32 << 10, 32772, 34304, 48 << 10};
    const unsigned most = (unsigned)limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        run_fill(5, 1, 1, 128, sizes[i]);
    ok(cuFuncSetAttribute(get("fill"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)most));
    run_fill(5, 1, 1, 128, most);
}

/* Slices of each shape: parts of a row, rows, planes. */
static void grids_with_more_blocks_than_run_at_a_time(void **state)
{
    (void)state;
    run_fill(3001, 1, 1, 32, 40 << 10);
    run_fill(7, 11, 13, 32, 40 << 10);
    run_fill(1, 3, 501, 32, 40 << 10);
    run_fill(701, 3, 2, 32, 40 << 10);
}

static void streams_do_not_share_slots(void **state)
{
    enum { BLOCKS = 300, THREADS = 64, ROUNDS = 3 };
    const size_t size = BLOCKS * THREADS * sizeof(uint32_t);
    uint32_t *host = malloc(size);
    CUdeviceptr out[STREAMS][ROUNDS];
    CUstream streams[STREAMS];

    (void)state;
    assert_non_null(host);
    for (unsigned s = 0; s < STREAMS; s++)
        ok(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < ROUNDS; i++) /* growing, so that the slots are replaced while they are in use */
        for (unsigned s = 0; s < STREAMS; s++) {
            uint32_t words = (33 << 8) + (i * 3 + s) * 256;
            void *params[] = {&out[s][i], &words};

            ok(cuMemAlloc(&out[s][i], size));
            ok(cuLaunchKernel(get("fill"), BLOCKS, 1, 1, THREADS, 1, 1, words * 4, streams[s], params, NULL));
        }
    for (unsigned i = 0; i < ROUNDS; i++)
        for (unsigned s = 0; s < STREAMS; s++) {
            ok(cuStreamSynchronize(streams[s]));
            ok(cuMemcpyDtoH(host, out[s][i], size));
            check_fill(host, BLOCKS, THREADS, (33 << 8) + (i * 3 + s) * 256);
            ok(cuMemFree(out[s][i]));
        }
    for (unsigned s = 0; s < STREAMS; s++)
        ok(cuStreamDestroy(streams[s]));
    free(host);
}

static void every_kind_of_access(void **state)
{
    enum { BLOCKS = 200 };
    const size_t size = (size_t)BLOCKS * KINDS_THREADS * KINDS_STRIDE * 4;
    uint32_t in[KINDS_THREADS * 4], *host = malloc(size);
    CUdeviceptr out, from;
    void *params[] = {&out, &from};

    (void)state;
    assert_non_null(host);
    for (uint32_t i = 0; i < KINDS_THREADS * 4; i++)
        in[i] = i * 0x9e3779b9u;
    ok(cuMemAlloc(&out, size));
    ok(cuMemAlloc(&from, sizeof in));
    ok(cuMemcpyHtoD(from, in, sizeof in));
    ok(cuLaunchKernel(get("kinds"), BLOCKS, 1, 1, KINDS_THREADS, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(host, out, size));
    for (uint32_t b = 0; b < BLOCKS; b++)
        for (uint32_t t = 0; t < KINDS_THREADS; t++) {
            const uint32_t other = KINDS_THREADS - 1 - t, lane = t % 32, word = other * 7 + b;
            const uint32_t want[KINDS] = {word,
                                          (other ^ b) & 255,
                                          other * 3,
                                          b,
                                          other,
                                          4 * other + 6,
                                          63 * 64 / 2,
                                          63,
                                          128,
                                          64,
                                          0x42800000 /* 64.0f */,
                                          1,
                                          1,
                                          t % 2 ? in[t] : word,
                                          in[4 * other],
                                          lane ^ 1};

            for (unsigned k = 0; k < KINDS; k++)
                assert_int_equal(host[(b * KINDS_THREADS + t) * KINDS_STRIDE + k], want[k]);
        }
    ok(cuMemFree(out));
    ok(cuMemFree(from));
    free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_those_of_cuda),
        cmocka_unit_test(every_size_works),
        cmocka_unit_test(grids_with_more_blocks_than_run_at_a_time),
        cmocka_unit_test(streams_do_not_share_slots),
        cmocka_unit_test(every_kind_of_access),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
