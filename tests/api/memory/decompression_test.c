/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemBatchDecompressAsync: what zlib, liblz4 and libsnappy compress is decompressed in stream order, and what is damaged decompresses to what the same
 * libraries say. Devices without the function (the mask of the attribute is 0) skip. */
#include "../api_test.h"

#include <dlfcn.h>
#include <lz4.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <zlib.h>

#define LARGEST ((size_t)300000)
#define ROOM ((size_t)1 << 20) /* of each buffer */
#define GUARD 0xa5
#define N_FORMATS 3
#define FORMATS_LINKED (CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE | CU_MEM_DECOMPRESS_ALGORITHM_LZ4)

typedef int snappy_function(const char *src, size_t src_bytes, char *dst, size_t *dst_bytes);

/* ---- the libraries ---- */

static snappy_function *snappy(const char *name)
{
    void *library = dlopen("libsnappy.so.1", RTLD_NOW);

    return library ? (snappy_function *)dlsym(library, name) : NULL;
}

static size_t deflate_raw(const void *src, size_t bytes, void *dst, size_t room)
{
    z_stream stream = {.next_in = (Bytef *)src, .avail_in = (uInt)bytes, .next_out = dst, .avail_out = (uInt)room};

    assert_int_equal(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

static size_t compress_as(CUmemDecompressAlgorithm format, const void *src, size_t bytes, void *dst)
{
    size_t written = ROOM;

    switch ((int)format) {
    case CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE:
        return deflate_raw(src, bytes, dst, ROOM);
    case CU_MEM_DECOMPRESS_ALGORITHM_LZ4:
        return (size_t)LZ4_compress_default(src, dst, (int)bytes, (int)ROOM);
    }
    assert_int_equal(snappy("snappy_compress")(src, bytes, dst, &written), 0);
    return written;
}

static bool inflate_raw(const void *src, size_t bytes, void *dst, size_t room, size_t *out)
{
    z_stream stream = {.next_in = (Bytef *)src, .avail_in = (uInt)bytes, .next_out = dst, .avail_out = (uInt)room};
    bool good;

    assert_int_equal(inflateInit2(&stream, -15), Z_OK);
    good = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
    *out = stream.total_out;
    inflateEnd(&stream);
    return good;
}

/* What the library makes of the bytes; false: it refuses them. */
static bool library_decompresses(CUmemDecompressAlgorithm format, const void *src, size_t bytes, void *dst, size_t room, size_t *out)
{
    int n;

    switch ((int)format) {
    case CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE:
        return inflate_raw(src, bytes, dst, room, out);
    case CU_MEM_DECOMPRESS_ALGORITHM_LZ4:
        n = LZ4_decompress_safe(src, dst, (int)bytes, (int)room);
        *out = n < 0 ? 0 : (size_t)n;
        return n >= 0;
    }
    *out = room;
    return snappy("snappy_uncompress")(src, bytes, dst, out) == 0;
}

/* ---- fixture ---- */

static const CUmemDecompressAlgorithm all_formats[N_FORMATS] = {CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE, CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY,
                                                                CU_MEM_DECOMPRESS_ALGORITHM_LZ4};

static int attribute(CUdevice_attribute which)
{
    int value = -1;

    ok(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

/* The formats of the device; skips the test if there are none. */
static unsigned formats(void)
{
    const unsigned mask = (unsigned)attribute(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK);

    if (mask == 0)
        skip();
    return mask;
}

static unsigned random_state = 1;

static unsigned next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* Kind 0: zeros; 1: incompressible; 2: words that repeat; 3: runs. */
static void make_data(unsigned char *bytes, size_t count, unsigned kind)
{
    static const char words[] = "the quick brown fox jumps over the lazy dog ";

    for (size_t i = 0; i < count;) {
        size_t run = kind == 3 ? 1 + next_random() % 700 : 1, first = next_random() % 30;
        unsigned char value = kind == 0 ? 0 : (unsigned char)next_random();

        if (kind == 2) {
            for (size_t k = 0; k < 12 && i < count; k++)
                bytes[i++] = (unsigned char)words[first + k];
            continue;
        }
        for (size_t k = 0; k < run && i < count; k++)
            bytes[i++] = value;
    }
}

/* Device memory for one operation, and the same bytes on the host. */
struct operation {
    CUmemDecompressParams params;
    CUdeviceptr src, dst, size;
    unsigned char *plain, *packed;
    size_t plain_bytes, packed_bytes;
};

enum kind_of_memory { OF_DEVICE, PINNED, MANAGED, N_KINDS };

static CUdeviceptr allocate(enum kind_of_memory kind, size_t bytes)
{
    CUdeviceptr pointer = 0;
    void *host = NULL;

    if (kind == OF_DEVICE) {
        ok(cuMemAlloc(&pointer, bytes));
    } else if (kind == MANAGED) {
        ok(cuMemAllocManaged(&pointer, bytes, CU_MEM_ATTACH_GLOBAL));
    } else {
        ok(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
        ok(cuMemHostGetDevicePointer(&pointer, host, 0));
    }
    return pointer;
}

static void release(enum kind_of_memory kind, CUdeviceptr pointer)
{
    if (kind == PINNED)
        ok(cuMemFreeHost((void *)(uintptr_t)pointer));
    else
        ok(cuMemFree(pointer));
}

static void operation_init(struct operation *op, CUmemDecompressAlgorithm format, enum kind_of_memory kind, size_t bytes, unsigned data)
{
    *op = (struct operation){.plain_bytes = bytes, .plain = malloc(bytes), .packed = malloc(ROOM)};
    make_data(op->plain, bytes, data);
    op->packed_bytes = compress_as(format, op->plain, bytes, op->packed);
    op->src = allocate(kind, ROOM);
    op->dst = allocate(kind, ROOM);
    op->size = allocate(kind, 64);
    ok(cuMemcpyHtoD(op->src, op->packed, op->packed_bytes));
    ok(cuMemsetD8(op->dst, GUARD, ROOM));
    ok(cuMemsetD32(op->size, 0xffffffff, 16));
    ok(cuCtxSynchronize()); /* other streams do not wait for the default stream */
    op->params = (CUmemDecompressParams){.srcNumBytes = op->packed_bytes,
                                         .dstNumBytes = bytes,
                                         .dstActBytes = (cuuint32_t *)(uintptr_t)(op->size + 4),
                                         .src = (void *)(uintptr_t)op->src,
                                         .dst = (void *)(uintptr_t)op->dst,
                                         .algo = format};
}

static void operation_finish(struct operation *op, enum kind_of_memory kind)
{
    release(kind, op->src);
    release(kind, op->dst);
    release(kind, op->size);
    free(op->plain);
    free(op->packed);
}

/* The number that the operation wrote; its neighbours must not have changed. */
static cuuint32_t size_of(const struct operation *op)
{
    cuuint32_t words[3];

    ok(cuMemcpyDtoH(words, op->size, sizeof words));
    assert_int_equal(words[0], 0xffffffff);
    assert_int_equal(words[2], 0xffffffff);
    return words[1];
}

/* The destination has these bytes, and what follows the first `room` bytes is as before. */
static void check(const struct operation *op, const unsigned char *expected, size_t bytes, size_t room)
{
    unsigned char *got = malloc(ROOM);

    assert_int_equal(size_of(op), bytes);
    ok(cuMemcpyDtoH(got, op->dst, ROOM));
    assert_memory_equal(got, expected, bytes);
    for (size_t i = room; i < ROOM; i++)
        assert_int_equal(got[i], GUARD);
    free(got);
}

static void run_one(const struct operation *op, CUstream stream)
{
    CUmemDecompressParams params = op->params;

    ok(cuMemBatchDecompressAsync(&params, 1, 0, NULL, stream));
    ok(cuStreamSynchronize(stream));
}

static CUstream make_stream(void)
{
    CUstream stream;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* ---- what the device says ---- */

static void the_mask_names_the_libraries_that_are_there(void **state)
{
    const unsigned mask = formats();
    int most = attribute(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH);

    (void)state;
    assert_true(most > 0);
    if (on_cuttle())
        assert_int_equal(mask, FORMATS_LINKED | (snappy("snappy_uncompress") ? CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY : 0));
}

static void memory_says_that_it_is_capable(void **state)
{
    CUdeviceptr memory = allocate(OF_DEVICE, 64);
    unsigned is = 99;

    (void)state;
    formats();
    ok(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, memory));
    assert_int_equal(is, 1);
    release(OF_DEVICE, memory);
}

/* ---- results ---- */

static void every_format_size_and_memory(void **state)
{
    static const size_t sizes[] = {1, 2, 13, 1000, 65536, 65537, LARGEST};
    const unsigned mask = formats();
    CUstream stream = make_stream();

    (void)state;
    for (unsigned kind = 0; kind < N_KINDS; kind++)
        for (unsigned f = 0; f < N_FORMATS; f++)
            for (unsigned i = 0; i < sizeof sizes / sizeof *sizes && (mask & all_formats[f]); i++) {
                struct operation op;

                operation_init(&op, all_formats[f], kind, sizes[i], (i + f) % 4);
                run_one(&op, stream);
                check(&op, op.plain, sizes[i], sizes[i]);
                operation_finish(&op, kind);
            }
    ok(cuStreamDestroy(stream));
}

/* "The batch will be considered a single unit of work"; the operations are independent, of any formats. */
static void a_batch_of_many(void **state)
{
    enum { N = 24 };
    const unsigned mask = formats();
    struct operation *ops = calloc(N, sizeof *ops);
    CUmemDecompressParams params[N];
    size_t index = 77;

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        CUmemDecompressAlgorithm format = all_formats[i % N_FORMATS];

        operation_init(&ops[i], mask & format ? format : CU_MEM_DECOMPRESS_ALGORITHM_LZ4, OF_DEVICE, 1 + next_random() % LARGEST, i % 4);
        ops[i].params.dstNumBytes = i % 5 ? ops[i].plain_bytes : 0; /* "This value is optional" */
        params[i] = ops[i].params;
    }
    ok(cuMemBatchDecompressAsync(params, N, 0, &index, NULL)); /* the default stream */
    ok(cuStreamSynchronize(NULL));
    assert_int_equal(index, 77);
    for (unsigned i = 0; i < N; i++) {
        check(&ops[i], ops[i].plain, ops[i].plain_bytes, ops[i].plain_bytes);
        operation_finish(&ops[i], OF_DEVICE);
    }
    free(ops);
}

static void CUDA_CB await_semaphore(void *semaphore)
{
    sem_wait(semaphore);
}

/* "Processed according to stream semantics": after the work that writes the source, before the work that reads the destination; the call does not
 * wait, and the parameters may change when it has returned. */
static void it_is_in_stream_order(void **state)
{
    CUstream stream = make_stream();
    CUmemDecompressParams params;
    struct operation op;
    CUdeviceptr copy;
    sem_t gate;
    unsigned char *got = malloc(LARGEST);

    (void)state;
    formats();
    sem_init(&gate, 0, 0);
    operation_init(&op, CU_MEM_DECOMPRESS_ALGORITHM_LZ4, OF_DEVICE, LARGEST, 2);
    copy = allocate(OF_DEVICE, ROOM);
    ok(cuMemcpyDtoD(copy, op.src, op.packed_bytes));
    ok(cuMemsetD8(op.src, 0xff, ROOM));
    ok(cuCtxSynchronize());
    ok(cuLaunchHostFunc(stream, await_semaphore, &gate));
    ok(cuMemcpyDtoDAsync(op.src, copy, op.packed_bytes, stream));
    params = op.params;
    ok(cuMemBatchDecompressAsync(&params, 1, 0, NULL, stream));
    memset(&params, 0xff, sizeof params);
    ok(cuMemcpyDtoDAsync(copy, op.dst, LARGEST, stream));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    sem_post(&gate);
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH(got, copy, LARGEST));
    assert_memory_equal(got, op.plain, LARGEST);
    check(&op, op.plain, LARGEST, LARGEST);
    release(OF_DEVICE, copy);
    operation_finish(&op, OF_DEVICE);
    ok(cuStreamDestroy(stream));
    sem_destroy(&gate);
    free(got);
}

static void memory_is_freed_in_stream_order(void **state)
{
    CUstream stream = make_stream();
    CUmemDecompressParams params;
    CUdeviceptr dst;

    (void)state;
    formats();
    for (unsigned i = 0; i < 20; i++) {
        struct operation op;

        operation_init(&op, CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE, OF_DEVICE, 50000, i % 4);
        ok(cuMemAllocAsync(&dst, 50000, stream));
        params = op.params;
        params.dst = (void *)(uintptr_t)dst;
        ok(cuMemBatchDecompressAsync(&params, 1, 0, NULL, stream));
        ok(cuMemcpyDtoDAsync(op.dst, dst, 50000, stream));
        ok(cuMemFreeAsync(dst, stream));
        ok(cuStreamSynchronize(stream));
        check(&op, op.plain, 50000, 50000);
        operation_finish(&op, OF_DEVICE); /* its src is freed at once */
    }
    ok(cuStreamDestroy(stream));
}

static void *free_memory(void *user)
{
    CUcontext context;

    if (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS)
        *(CUdeviceptr *)user = cuMemFree(*(CUdeviceptr *)user) == CUDA_SUCCESS ? 0 : 1;
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxRelease(0);
    return NULL;
}

/* Another thread frees the destination while the batch waits for earlier work: the memory stays until the batch has run. */
static void freeing_waits_for_the_batch(void **state)
{
    const struct timespec time = {.tv_nsec = 30000000};
    CUstream stream = make_stream();
    struct operation op;
    CUdeviceptr dst;
    pthread_t thread;
    sem_t gate;

    (void)state;
    formats();
    sem_init(&gate, 0, 0);
    operation_init(&op, CU_MEM_DECOMPRESS_ALGORITHM_LZ4, OF_DEVICE, LARGEST, 1);
    dst = allocate(OF_DEVICE, (size_t)8 << 20);
    op.params.dst = (void *)(uintptr_t)dst;
    ok(cuLaunchHostFunc(stream, await_semaphore, &gate));
    ok(cuMemBatchDecompressAsync(&op.params, 1, 0, NULL, stream));
    assert_int_equal(pthread_create(&thread, NULL, free_memory, &dst), 0);
    nanosleep(&time, NULL);
    sem_post(&gate);
    pthread_join(thread, NULL);
    assert_int_equal(dst, 0);
    ok(cuStreamSynchronize(stream));
    assert_int_equal(size_of(&op), LARGEST);
    operation_finish(&op, OF_DEVICE);
    ok(cuStreamDestroy(stream));
    sem_destroy(&gate);
}

/* ---- damaged data, and destinations that do not suffice ---- */

static void damage(struct operation *op, unsigned how)
{
    size_t n = op->packed_bytes;

    if (how % 3 == 0) {
        op->params.srcNumBytes = 1 + next_random() % n; /* truncated, but for one case */
    } else if (how % 3 == 1) {
        op->packed[next_random() % n] ^= (unsigned char)(1u << next_random() % 8);
    } else {
        for (size_t i = 0; i < n; i++)
            op->packed[i] = (unsigned char)next_random();
    }
    ok(cuMemcpyHtoD(op->src, op->packed, n));
}

static void damaged_data_do_no_harm(void **state)
{
    const unsigned mask = formats();
    CUstream stream = make_stream();
    unsigned char *expected = malloc(ROOM);
    unsigned refused = 0;
    size_t bytes;

    (void)state;
    if (!on_cuttle())
        skip(); /* the manual does not say what happens */
    for (unsigned i = 0; i < 300; i++) {
        const CUmemDecompressAlgorithm format = all_formats[i % N_FORMATS];
        struct operation op;

        if (!(mask & format))
            continue;
        operation_init(&op, format, OF_DEVICE, 1 + next_random() % 20000, i % 4);
        damage(&op, i / 3);
        if (i % 7 == 0)
            op.params.dstNumBytes = ROOM;
        run_one(&op, stream);
        if (library_decompresses(format, op.packed, op.params.srcNumBytes, expected, op.params.dstNumBytes, &bytes)) {
            check(&op, expected, bytes, op.params.dstNumBytes);
        } else {
            check(&op, expected, 0, op.params.dstNumBytes);
            refused++;
        }
        operation_finish(&op, OF_DEVICE);
    }
    assert_true(refused > 50);
    free(expected);
    ok(cuStreamDestroy(stream));
}

/* The second of three operations fails, the others do not. */
static void destinations_that_are_too_small(void **state)
{
    const unsigned mask = formats();

    (void)state;
    if (!on_cuttle())
        skip();
    for (unsigned f = 0; f < N_FORMATS; f++) {
        struct operation ops[3];
        CUmemDecompressParams params[3];

        if (!(mask & all_formats[f]))
            continue;
        for (unsigned i = 0; i < 3; i++) {
            operation_init(&ops[i], all_formats[f], OF_DEVICE, 40000, 2);
            ops[i].params.dstNumBytes = i == 1 ? 39999 : 40000;
            params[i] = ops[i].params;
        }
        ok(cuMemBatchDecompressAsync(params, 3, 0, NULL, NULL));
        for (unsigned i = 0; i < 3; i++) {
            check(&ops[i], ops[i].plain, i == 1 ? 0 : 40000, params[i].dstNumBytes);
            operation_finish(&ops[i], OF_DEVICE);
        }
    }
}

/* Without dstNumBytes the end of the allocation is the limit. */
static void the_allocation_is_a_limit_too(void **state)
{
    const unsigned mask = formats();
    unsigned char *got = malloc(ROOM);

    (void)state;
    if (!on_cuttle())
        skip();
    for (unsigned f = 0; f < N_FORMATS; f++)
        for (unsigned missing = 0; missing < 2 && (mask & all_formats[f]); missing++) {
            struct operation op;

            operation_init(&op, all_formats[f], OF_DEVICE, 40000, 3);
            op.params.dst = (void *)(uintptr_t)(op.dst + ROOM - 40000 + missing);
            op.params.dstNumBytes = 0;
            run_one(&op, NULL);
            assert_int_equal(size_of(&op), missing ? 0 : 40000);
            ok(cuMemcpyDtoH(got, op.dst, ROOM));
            for (size_t i = 0; i < ROOM - 40000; i++)
                assert_int_equal(got[i], GUARD);
            if (!missing)
                assert_memory_equal(got + ROOM - 40000, op.plain, 40000);
            operation_finish(&op, OF_DEVICE);
        }
    free(got);
}

/* The manual does not forbid that the source is in the destination. */
static void a_source_within_its_destination(void **state)
{
    const unsigned mask = formats();

    (void)state;
    if (!on_cuttle())
        skip();
    for (unsigned f = 0; f < N_FORMATS; f++)
        for (unsigned offset = 0; offset < 2001 && (mask & all_formats[f]); offset += 1000) {
            struct operation op;

            operation_init(&op, all_formats[f], OF_DEVICE, LARGEST, 2);
            ok(cuMemcpyHtoD(op.dst + offset, op.packed, op.packed_bytes));
            op.params.src = (void *)(uintptr_t)(op.dst + offset);
            run_one(&op, NULL);
            check(&op, op.plain, LARGEST, LARGEST);
            operation_finish(&op, OF_DEVICE);
        }
}

/* ---- errors ---- */

static CUmemDecompressParams good; /* an operation for the rows; it is never run */
static CUdeviceptr freed;

static void no_src(CUmemDecompressParams *p)
{
    p->src = NULL;
}
static void no_dst(CUmemDecompressParams *p)
{
    p->dst = NULL;
}
static void no_size(CUmemDecompressParams *p)
{
    p->dstActBytes = NULL;
}
static void no_bytes(CUmemDecompressParams *p)
{
    p->srcNumBytes = 0;
}
static void src_too_long(CUmemDecompressParams *p)
{
    p->srcNumBytes = ROOM + 1;
}
static void dst_too_long(CUmemDecompressParams *p)
{
    p->dstNumBytes = ROOM + 1;
}
static void endless(CUmemDecompressParams *p)
{
    p->srcNumBytes = SIZE_MAX;
}
static void dst_endless(CUmemDecompressParams *p)
{
    p->dstNumBytes = SIZE_MAX;
}
static void odd_size(CUmemDecompressParams *p)
{
    p->dstActBytes = (void *)((uintptr_t)p->dstActBytes + 2);
}
static void no_format(CUmemDecompressParams *p)
{
    p->algo = CU_MEM_DECOMPRESS_UNSUPPORTED;
}
static void two_formats(CUmemDecompressParams *p)
{
    p->algo = (CUmemDecompressAlgorithm)FORMATS_LINKED;
}
static void unknown_format(CUmemDecompressParams *p)
{
    p->algo = (CUmemDecompressAlgorithm)8;
}
static void padded(CUmemDecompressParams *p)
{
    p->padding[19] = 1;
}
static void freed_src(CUmemDecompressParams *p)
{
    p->src = (void *)(uintptr_t)freed;
}
static void freed_dst(CUmemDecompressParams *p)
{
    p->dst = (void *)(uintptr_t)freed;
}
static void freed_dst_open(CUmemDecompressParams *p)
{
    p->dst = (void *)(uintptr_t)freed, p->dstNumBytes = 0;
}
static void pageable(CUmemDecompressParams *p)
{
    p->src = &good;
}

static const struct {
    const char *name;
    void (*spoil)(CUmemDecompressParams *params);
} wrong[] = {
    {"no source", no_src},
    {"no destination", no_dst},
    {"no address for the size", no_size},
    {"no bytes", no_bytes},
    {"a source beyond its allocation", src_too_long},
    {"a destination beyond its allocation", dst_too_long},
    {"the largest source", endless},
    {"the largest destination", dst_endless},
    {"an address for the size that is not aligned", odd_size},
    {"no format", no_format},
    {"two formats", two_formats},
    {"an unknown format", unknown_format},
    {"padding", padded},
    {"a source that was freed", freed_src},
    {"a destination that was freed", freed_dst},
    {"a destination that was freed, of any size", freed_dst_open},
    {"pageable memory", pageable},
};

/* A batch with an operation at fault has no effect, and *errorIndex is that operation. */
static void operations_at_fault(void **state)
{
    struct operation ops[3];

    (void)state;
    formats();
    if (!on_cuttle())
        skip(); /* the rows are the manual's, but no device with an engine has confirmed them */
    freed = allocate(OF_DEVICE, (size_t)64 << 20);
    release(OF_DEVICE, freed);
    for (unsigned i = 0; i < 3; i++)
        operation_init(&ops[i], CU_MEM_DECOMPRESS_ALGORITHM_LZ4, OF_DEVICE, 5000, 2);
    good = ops[0].params;
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CUmemDecompressParams params[3] = {ops[0].params, ops[1].params, ops[2].params};
        size_t index = 99;
        CUresult r;

        wrong[i].spoil(&params[i % 3]);
        r = cuMemBatchDecompressAsync(params, 3, 0, &index, NULL);
        if (r != CUDA_ERROR_INVALID_VALUE || index != i % 3)
            fail_msg("%s: %s, index %zu", wrong[i].name, api_error_name(r), index);
        gives(CUDA_ERROR_INVALID_VALUE, cuMemBatchDecompressAsync(params, 3, 0, NULL, NULL));
    }
    ok(cuCtxSynchronize());
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(size_of(&ops[i]), 0xffffffff);
        operation_finish(&ops[i], OF_DEVICE);
    }
}

static void calls_at_fault(void **state)
{
    CUstream stream = make_stream(), gone = make_stream();
    CUmemDecompressParams params;
    struct operation op;
    CUgraph graph = NULL;
    size_t index = 99;

    (void)state;
    formats();
    operation_init(&op, CU_MEM_DECOMPRESS_ALGORITHM_LZ4, OF_DEVICE, 5000, 2);
    params = op.params;
    ok(cuStreamDestroy(gone));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemBatchDecompressAsync(NULL, 1, 0, &index, stream));
    assert_true(index == SIZE_MAX);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemBatchDecompressAsync(&params, 0, 0, NULL, stream));
    index = 99;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemBatchDecompressAsync(&params, 1, 1, &index, stream));
    assert_true(index == SIZE_MAX);
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_HANDLE, cuMemBatchDecompressAsync(&params, 1, 0, &index, gone));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (on_cuttle())
        gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemBatchDecompressAsync(&params, 1, 0, NULL, stream));
    cuStreamEndCapture(stream, &graph);
    assert_int_equal(size_of(&op), 0xffffffff);
    operation_finish(&op, OF_DEVICE);
    ok(cuStreamDestroy(stream));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mask_names_the_libraries_that_are_there),
        cmocka_unit_test(memory_says_that_it_is_capable),
        cmocka_unit_test(every_format_size_and_memory),
        cmocka_unit_test(a_batch_of_many),
        cmocka_unit_test(it_is_in_stream_order),
        cmocka_unit_test(memory_is_freed_in_stream_order),
        cmocka_unit_test(freeing_waits_for_the_batch),
        cmocka_unit_test(damaged_data_do_no_harm),
        cmocka_unit_test(destinations_that_are_too_small),
        cmocka_unit_test(the_allocation_is_a_limit_too),
        cmocka_unit_test(a_source_within_its_destination),
        cmocka_unit_test(operations_at_fault),
        cmocka_unit_test(calls_at_fault),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
