/* SPDX-License-Identifier: Apache-2.0 */
/* Stream Memory Operations: streams that write values and wait for values. The streams are non-blocking, so that only values order them. */
#include "api_test.h"

#include <stdbool.h>
#include <unistd.h>

/* A word of each width in host memory that the device can access, and in device memory. */
static volatile uint64_t *host_word;
static CUdeviceptr seen_word, device_word;

static int with_words(void **state)
{
    void *host;

    if (with_context(state) != 0 || cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS ||
        cuMemHostGetDevicePointer(&seen_word, host, 0) != CUDA_SUCCESS || cuMemAlloc(&device_word, 64) != CUDA_SUCCESS)
        return -1;
    host_word = host;
    return 0;
}

static int without_words(void **state)
{
    if (cuMemFreeHost((void *)host_word) != CUDA_SUCCESS || cuMemFree(device_word) != CUDA_SUCCESS)
        return -1;
    return without_context(state);
}

static CUstream new_stream(void)
{
    CUstream stream = NULL;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* Work of the default stream is not ordered with these streams, and may be incomplete when its call returns. */
static void put32(CUdeviceptr word, unsigned value)
{
    ok(cuMemsetD32(word, value, 1));
    ok(cuStreamSynchronize(NULL));
}

static uint64_t get(CUdeviceptr word)
{
    uint64_t value = 0;

    ok(cuMemcpyDtoH(&value, word, 8));
    return value;
}

static void attributes_say_so(void **state)
{
    static const CUdevice_attribute attributes[] = {
        CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
        CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
    };
    int value;

    (void)state;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        ok(cuDeviceGetAttribute(&value, attributes[i], 0));
        assert_int_equal(value, 1);
    }
}

static void writes_come_to_every_memory(void **state)
{
    const CUdeviceptr words[] = {seen_word, device_word};
    CUstream stream = new_stream();

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ok(cuMemsetD8Async(words[i], 0xff, 16, stream));
        ok(cuStreamWriteValue32(stream, words[i], 0x12345678, CU_STREAM_WRITE_VALUE_DEFAULT));
        ok(cuStreamWriteValue64(stream, words[i] + 8, 0x8765432112345678, 0));
        ok(cuStreamSynchronize(stream));
        assert_int_equal(get(words[i]), 0xffffffff12345678);
        assert_int_equal(get(words[i] + 8), 0x8765432112345678);
        ok(cuStreamWriteValue32(stream, words[i] + 4, 7, 0)); /* nothing is in flight */
        ok(cuStreamWriteValue64(stream, words[i] + 8, 8, 0));
        ok(cuStreamSynchronize(stream));
        assert_int_equal(get(words[i]), 0x712345678);
        assert_int_equal(get(words[i] + 8), 8);
    }
    ok(cuStreamDestroy(stream));
}

/* For each: the first value blocks the stream, the second one unblocks it. */
static const struct {
    const char *name;
    unsigned flags;
    uint64_t value, before, after;
    bool wide;
} waits[] = {
    {"at least", CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5, false},
    {"at least, a larger value", CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 900, false},
    {"at least, beyond the wrap", CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffffe, 3, false},
    {"at least, a value beyond half the range is less", CU_STREAM_WAIT_VALUE_GEQ, 0x80000005, 5, 0x80000005, false},
    {"equal", CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5, false},
    {"a common bit", CU_STREAM_WAIT_VALUE_AND, 6, 9, 4, false},
    {"a bit that both lack", CU_STREAM_WAIT_VALUE_NOR, 0xffff0000, 0x0000ffff, 0x00007fff, false},
    {"64 bits: at least", CU_STREAM_WAIT_VALUE_GEQ, 0x100000000, 0xffffffff, 0x100000000, true},
    {"64 bits: beyond the wrap", CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffffffffffffe, 3, true},
    {"64 bits: equal", CU_STREAM_WAIT_VALUE_EQ, 0x100000005, 5, 0x100000005, true},
    {"64 bits: a common bit", CU_STREAM_WAIT_VALUE_AND, 0x300000000, 0xffffffff, 0x200000000, true},
    {"64 bits: a bit that both lack", CU_STREAM_WAIT_VALUE_NOR, 0xffffffff, 0xffffffff00000000, 0xfffffffe00000000, true},
};

/* Waits long enough for a stream to continue if it did so erroneously. */
static bool stands_still(CUstream stream)
{
    usleep(2000);
    return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

static CUresult wait_for(CUstream stream, size_t i, CUdeviceptr word)
{
    return waits[i].wide ? cuStreamWaitValue64(stream, word, waits[i].value, waits[i].flags)
                         : cuStreamWaitValue32(stream, word, (cuuint32_t)waits[i].value, waits[i].flags);
}

static void streams_wait_for_the_host(void **state)
{
    CUstream stream = new_stream();

    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        *host_word = waits[i].before;
        put32(device_word, 1);
        ok(wait_for(stream, i, seen_word));
        ok(cuMemsetD32Async(device_word, 2, 1, stream));
        if (!stands_still(stream))
            fail_msg("%s: the stream went on", waits[i].name);
        *host_word = waits[i].after;
        ok(cuStreamSynchronize(stream));
        assert_int_equal(get(device_word) & 0xffffffff, 2);
    }
    ok(cuStreamDestroy(stream));
}

static void streams_wait_for_each_other(void **state)
{
    CUstream waiting = new_stream(), writing = new_stream();

    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        ok(cuMemcpyHtoD(device_word, &waits[i].before, 8));
        ok(cuStreamSynchronize(NULL));
        ok(wait_for(waiting, i, device_word));
        ok(cuMemsetD32Async(seen_word, (unsigned)i, 1, waiting));
        if (!stands_still(waiting))
            fail_msg("%s: the stream went on", waits[i].name);
        if (waits[i].wide)
            ok(cuStreamWriteValue64(writing, device_word, waits[i].after, 0));
        else
            ok(cuStreamWriteValue32(writing, device_word, (cuuint32_t)waits[i].after, 0));
        ok(cuStreamSynchronize(waiting));
        assert_int_equal(*host_word & 0xffffffff, i);
    }
    ok(cuStreamDestroy(waiting));
    ok(cuStreamDestroy(writing));
}

/* The wait tests the value after the stream's own earlier work, not the initial value. */
static void a_wait_follows_earlier_work(void **state)
{
    CUstream stream = new_stream(), other = new_stream();

    (void)state;
    put32(device_word, 1);
    *host_word = 0;
    ok(cuStreamWaitValue32(stream, seen_word, 1, CU_STREAM_WAIT_VALUE_EQ));
    ok(cuStreamWriteValue32(stream, device_word, 0, 0));
    ok(cuStreamWaitValue32(stream, device_word, 1, CU_STREAM_WAIT_VALUE_EQ)); /* met at first, but the write precedes it */
    *host_word = 1;
    while (get(device_word) & 0xffffffff)
        ;
    assert_true(stands_still(stream));
    ok(cuStreamWriteValue32(other, device_word, 1, 0));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuStreamDestroy(other));
}

static CUstreamBatchMemOpParams wait_op(CUdeviceptr word, unsigned value)
{
    return (CUstreamBatchMemOpParams){
        .waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = word, .value = value, .flags = CU_STREAM_WAIT_VALUE_EQ}};
}

static CUstreamBatchMemOpParams write_op(CUdeviceptr word, unsigned value)
{
    return (CUstreamBatchMemOpParams){
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = word, .value = value, .flags = 0}};
}

/* Two streams pass a counter back and forth, each with one batch. */
static void batches_run_in_their_order(void **state)
{
    enum { ROUNDS = 10 };
    CUstreamBatchMemOpParams even[3 * ROUNDS], odd[2 * ROUNDS];
    CUstream a = new_stream(), b = new_stream();

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        even[3 * i] = wait_op(device_word, 2 * i);
        even[3 * i + 1] = (CUstreamBatchMemOpParams){
            .memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER, .flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS}};
        even[3 * i + 2] = write_op(device_word, 2 * i + 1);
        odd[2 * i] = wait_op(device_word, 2 * i + 1);
        odd[2 * i + 1] = write_op(device_word, 2 * i + 2);
    }
    put32(device_word, 0);
    ok(cuStreamBatchMemOp(b, 2 * ROUNDS, odd, 0));
    ok(cuStreamBatchMemOp(a, 3 * ROUNDS, even, 0));
    ok(cuStreamBatchMemOp(a, 0, NULL, 0));
    ok(cuStreamSynchronize(a));
    ok(cuStreamSynchronize(b));
    assert_int_equal(get(device_word) & 0xffffffff, 2 * ROUNDS);
    ok(cuStreamDestroy(a));
    ok(cuStreamDestroy(b));
}

static void what_is_wrong_is_refused(void **state)
{
    static const unsigned no_flags = 0x10;
    CUstreamBatchMemOpParams ops[256] = {write_op(device_word, 5), write_op(device_word + 1, 5)};
    CUstream stream = new_stream();
    CUdeviceptr freed;
    int flush = 0;

    (void)state;
    put32(device_word, 9);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, 0, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, device_word + 2, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(stream, device_word + 4, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, device_word + 1, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, device_word + 4, 1, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, device_word, 1, no_flags));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, device_word, 1, no_flags));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 1, ops, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, device_word, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)); /* of v1 only */
    if (on_cuttle()) /* NVIDIA's driver checks that first */
        gives(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 1, NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 256, ops, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
    ok(cuDeviceGetAttribute(&flush, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0));
    if (!flush)
        gives(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32(stream, device_word, 1, CU_STREAM_WAIT_VALUE_FLUSH));
    ok(cuMemAlloc(&freed, 64 << 20));
    ok(cuMemFree(freed));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, freed, 1, 0));
    ok(cuStreamSynchronize(stream));
    if (on_cuttle()) /* no operation of a batch is executed if one of them is invalid */
        assert_int_equal(get(device_word) & 0xffffffff, 9);
    ok(cuStreamDestroy(stream));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_HANDLE, cuStreamWriteValue32(stream, device_word, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_say_so),           cmocka_unit_test(writes_come_to_every_memory),
        cmocka_unit_test(streams_wait_for_the_host),   cmocka_unit_test(streams_wait_for_each_other),
        cmocka_unit_test(a_wait_follows_earlier_work), cmocka_unit_test(batches_run_in_their_order),
        cmocka_unit_test(what_is_wrong_is_refused),
    };

    return cmocka_run_group_tests(tests, with_words, without_words);
}
