/* SPDX-License-Identifier: Apache-2.0 */
/* The stream that the symbols of the memory chapters use which programs with one default stream for each thread call (_ptds and _ptsz): the
 * calling thread's, which waits for no other stream. Meanwhile a blocking stream is held up, for which the legacy default stream would
 * wait. A plain program of the driver API: NVIDIA's own driver must pass, too. */
#include "seeds.h"

#include <time.h>

#define BYTES ((size_t)4096)
#define PATIENCE_S 5

static struct {
    CUcontext context;
    CUdeviceptr device, other, managed, pooled;
    CUmemoryPool pool;
    CUarray array, second;
    void *pinned;
    unsigned char plain[BYTES];
    CUstream held;
    atomic_int go, late;
} o;

static void CUDA_CB hold(void *unused)
{
    time_t end = time(NULL) + PATIENCE_S;

    (void)unused;
    while (!atomic_load(&o.go) && time(NULL) < end)
        usleep(1000);
    atomic_store(&o.late, !atomic_load(&o.go));
}

static int make(void **state)
{
    const CUDA_ARRAY_DESCRIPTOR row = {.Width = BYTES, .Height = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};

    if (with_context(state))
        return -1;
    o.context = *state;
    ok(cuMemAlloc(&o.device, BYTES));
    ok(cuMemAlloc(&o.other, BYTES));
    ok(cuMemAllocHost(&o.pinned, BYTES));
    ok(cuArrayCreate(&o.array, &row));
    ok(cuArrayCreate(&o.second, &row));
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        ok(cuMemAllocManaged(&o.managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    ok(cuDeviceGetDefaultMemPool(&o.pool, 0));
    ok(cuMemsetD8(o.device, 0, BYTES));
    ok(cuStreamCreate(&o.held, CU_STREAM_DEFAULT));
    ok(cuCtxSynchronize());
    return 0;
}

static int destroy(void **state)
{
    ok(cuStreamDestroy(o.held));
    ok(cuMemFree(o.device));
    ok(cuMemFree(o.other));
    if (o.managed)
        ok(cuMemFree(o.managed));
    ok(cuMemFreeHost(o.pinned));
    ok(cuArrayDestroy(o.array));
    ok(cuArrayDestroy(o.second));
    return without_context(state);
}

static const CUDA_MEMCPY2D rows_up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                      .srcHost = o.plain,
                                      .srcPitch = 64,
                                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                      .dstPitch = 64,
                                      .WidthInBytes = 60,
                                      .Height = 10};

static CUDA_MEMCPY2D *rows(void)
{
    static CUDA_MEMCPY2D copy;

    copy = rows_up;
    copy.dstDevice = o.device;
    return &copy;
}

static CUDA_MEMCPY3D *box(void)
{
    static CUDA_MEMCPY3D copy;

    copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = o.other,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = o.device,
                           .WidthInBytes = 100,
                           .Height = 1,
                           .Depth = 1};
    return &copy;
}

static CUDA_MEMCPY3D_PEER *peer_box(void)
{
    static CUDA_MEMCPY3D_PEER copy;

    copy = (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = o.other,
                                .srcContext = o.context,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = o.device,
                                .dstContext = o.context,
                                .WidthInBytes = 100,
                                .Height = 1,
                                .Depth = 1};
    return &copy;
}

static CUresult attach(void)
{
    return o.managed ? cuStreamAttachMemAsync(NULL, o.managed, 0, CU_MEM_ATTACH_GLOBAL) : CUDA_SUCCESS;
}

static CUresult prefetch(void)
{
    const CUmemLocation there = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

    return o.managed && seeds_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
               ? cuMemPrefetchAsync_v2(o.managed, BYTES, there, 0, NULL)
               : CUDA_SUCCESS;
}

/* clang-format off */
#define CALLS(CALL) \
    CALL(copy, cuMemcpy(o.device, o.other, BYTES)) \
    CALL(peer, cuMemcpyPeer(o.device, o.context, o.other, o.context, BYTES)) \
    CALL(h_to_d, cuMemcpyHtoD(o.device, o.plain, BYTES)) \
    CALL(h_to_d_pinned, cuMemcpyHtoD(o.device, o.pinned, BYTES)) \
    CALL(d_to_h, cuMemcpyDtoH(o.plain, o.device, BYTES)) \
    CALL(d_to_h_pinned, cuMemcpyDtoH(o.pinned, o.device, BYTES)) \
    CALL(d_to_d, cuMemcpyDtoD(o.device, o.other, BYTES)) \
    CALL(d_to_a, cuMemcpyDtoA(o.array, 0, o.device, BYTES)) \
    CALL(a_to_d, cuMemcpyAtoD(o.device, o.array, 0, BYTES)) \
    CALL(h_to_a, cuMemcpyHtoA(o.array, 0, o.plain, BYTES)) \
    CALL(a_to_h, cuMemcpyAtoH(o.plain, o.array, 0, BYTES)) \
    CALL(a_to_a, cuMemcpyAtoA(o.second, 0, o.array, 0, BYTES)) \
    CALL(rows, cuMemcpy2D(rows())) \
    CALL(rows_unaligned, cuMemcpy2DUnaligned(rows())) \
    CALL(box, cuMemcpy3D(box())) \
    CALL(peer_box, cuMemcpy3DPeer(peer_box())) \
    CALL(copy_async, cuMemcpyAsync(o.device, o.other, BYTES, NULL)) \
    CALL(peer_async, cuMemcpyPeerAsync(o.device, o.context, o.other, o.context, BYTES, NULL)) \
    CALL(h_to_d_async, cuMemcpyHtoDAsync(o.device, o.pinned, BYTES, NULL)) \
    CALL(d_to_h_async, cuMemcpyDtoHAsync(o.pinned, o.device, BYTES, NULL)) \
    CALL(d_to_d_async, cuMemcpyDtoDAsync(o.device, o.other, BYTES, NULL)) \
    CALL(h_to_a_async, cuMemcpyHtoAAsync(o.array, 0, o.pinned, BYTES, NULL)) \
    CALL(a_to_h_async, cuMemcpyAtoHAsync(o.pinned, o.array, 0, BYTES, NULL)) \
    CALL(rows_async, cuMemcpy2DAsync(rows(), NULL)) \
    CALL(box_async, cuMemcpy3DAsync(box(), NULL)) \
    CALL(peer_box_async, cuMemcpy3DPeerAsync(peer_box(), NULL)) \
    CALL(set_8, cuMemsetD8(o.device, 1, BYTES)) \
    CALL(set_16, cuMemsetD16(o.device, 1, BYTES / 2)) \
    CALL(set_32, cuMemsetD32(o.device, 1, BYTES / 4)) \
    CALL(set_rows_8, cuMemsetD2D8(o.device, 64, 1, 60, 10)) \
    CALL(set_rows_16, cuMemsetD2D16(o.device, 64, 1, 30, 10)) \
    CALL(set_rows_32, cuMemsetD2D32(o.device, 64, 1, 15, 10)) \
    CALL(set_8_async, cuMemsetD8Async(o.device, 1, BYTES, NULL)) \
    CALL(set_16_async, cuMemsetD16Async(o.device, 1, BYTES / 2, NULL)) \
    CALL(set_32_async, cuMemsetD32Async(o.device, 1, BYTES / 4, NULL)) \
    CALL(set_rows_8_async, cuMemsetD2D8Async(o.device, 64, 1, 60, 10, NULL)) \
    CALL(set_rows_16_async, cuMemsetD2D16Async(o.device, 64, 1, 30, 10, NULL)) \
    CALL(set_rows_32_async, cuMemsetD2D32Async(o.device, 64, 1, 15, 10, NULL)) \
    CALL(alloc_async, cuMemAllocAsync(&o.pooled, BYTES, NULL)) \
    CALL(free_async, cuMemFreeAsync(o.pooled, NULL)) \
    CALL(alloc_from_pool, cuMemAllocFromPoolAsync(&o.pooled, BYTES, o.pool, NULL)) \
    CALL(free_to_pool, cuMemFreeAsync(o.pooled, NULL)) \
    CALL(write_32, cuStreamWriteValue32(NULL, o.device, 5, 0)) \
    CALL(wait_32, cuStreamWaitValue32(NULL, o.device, 5, CU_STREAM_WAIT_VALUE_EQ)) \
    CALL(write_64, cuStreamWriteValue64(NULL, o.device, 6, 0)) \
    CALL(wait_64, cuStreamWaitValue64(NULL, o.device, 6, CU_STREAM_WAIT_VALUE_EQ)) \
    CALL(attach, attach()) \
    CALL(prefetch, prefetch())
#define FUNCTION(name, call) static CUresult call_##name(void) { return call; }
#define ROW(name, call) {#name, call_##name},
CALLS(FUNCTION)

static const struct {
    const char *name;
    CUresult (*call)(void);
} calls[] = {CALLS(ROW)};
/* clang-format on */

static void they_wait_for_no_other_stream(void **state)
{
    (void)state;
    atomic_store(&o.go, 0);
    ok(cuLaunchHostFunc(o.held, hold, NULL));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        CUresult r = calls[i].call(), waited = cuStreamSynchronize(NULL);

        if (r != CUDA_SUCCESS || waited != CUDA_SUCCESS || atomic_load(&o.late)) {
            atomic_store(&o.go, 1);
            fail_msg("%s: %s, then %s%s", calls[i].name, api_error_name(r), api_error_name(waited),
                     atomic_load(&o.late) ? ", after the held stream" : "");
        }
    }
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(o.held));
    atomic_store(&o.go, 1);
    ok(cuStreamSynchronize(o.held));
    assert_int_equal(atomic_load(&o.late), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_wait_for_no_other_stream)};

    return cmocka_run_group_tests(tests, make, destroy);
}
