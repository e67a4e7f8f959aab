/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of copies, according to the manual (Driver API: Memory Management, cuMemcpyBatchAsync and cuMemcpy3DBatchAsync). A plain program
 * of the driver API: NVIDIA's own driver must pass, too. */
#include "virtual_memory.h"

/* The functions of CUDA 12.8, which report the copy that failed; cuda.h's names refer to the newer ones. */
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

#define BYTES ((size_t)5000)

typedef CUresult CUDAAPI linear_form(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *,
                                     CUstream);
typedef CUresult CUDAAPI box_form(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);

static CUmemcpyAttributes with_order(CUmemcpySrcAccessOrder order)
{
    return (CUmemcpyAttributes){.srcAccessOrder = order};
}

static CUdeviceptr host_pointer(void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static void count_up(unsigned char *bytes, size_t count, unsigned first)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(first + i * 7);
}

static CUstream make_stream(void)
{
    CUstream stream;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* One batch with the same attributes for all. */
static CUresult copy_all(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpySrcAccessOrder order, CUstream stream)
{
    CUmemcpyAttributes attributes = with_order(order);
    size_t first = 0;

    return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, &attributes, &first, 1, stream);
}

/* ---- the effect of a batch ---- */

/* "Performs memory copies from source buffers specified in srcs to destination buffers specified in dsts", between all kinds of memory. */
static void copies_between_all_kinds(void **state)
{
    static const CUmemcpySrcAccessOrder orders[] = {CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
                                                    CU_MEMCPY_SRC_ACCESS_ORDER_ANY};
    unsigned char pageable[2][BYTES], expected[BYTES], back[BYTES];
    CUstream stream = make_stream();
    CUdeviceptr device[2], kinds[6];
    void *pinned[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        ok(cuMemAlloc(&device[i], BYTES));
        ok(cuMemAllocHost(&pinned[i], BYTES));
        kinds[i * 3] = device[i];
        kinds[i * 3 + 1] = host_pointer(pinned[i]);
        kinds[i * 3 + 2] = host_pointer(pageable[i]);
    }
    for (unsigned n = 0; n < 27; n++) {
        CUdeviceptr from = kinds[n % 3], to = kinds[3 + n / 3 % 3];
        size_t bytes = BYTES - 1;

        count_up(expected, BYTES, n);
        ok(cuMemcpy(from, host_pointer(expected), BYTES));
        ok(cuCtxSynchronize()); /* the default stream's work is not ordered with other streams, and may still be in flight */
        ok(copy_all(&to, &from, &bytes, 1, orders[n / 9], stream));
        ok(cuStreamSynchronize(stream));
        ok(cuMemcpy(host_pointer(back), to, BYTES - 1));
        assert_memory_equal(back, expected, BYTES - 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        ok(cuMemFree(device[i]));
        ok(cuMemFreeHost(pinned[i]));
    }
    ok(cuStreamDestroy(stream));
}

/* "The attributes specified in attrs[k] will be applied to copies starting from attrsIdxs[k] through attrsIdxs[k+1] - 1": 100 small copies
 * with three sets, in the calling thread's default stream. */
static void attributes_are_for_the_copies_from_their_index_on(void **state)
{
    enum { COUNT = 100, EACH = 33 };
    CUmemcpyAttributes attributes[] = {with_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM), with_order(CU_MEMCPY_SRC_ACCESS_ORDER_ANY),
                                       with_order(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)};
    size_t starts[] = {0, 1, 60}, sizes[COUNT];
    unsigned char source[COUNT * EACH], back[COUNT * EACH];
    CUdeviceptr dsts[COUNT], srcs[COUNT], device;

    (void)state;
    attributes[1].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    count_up(source, sizeof source, 3);
    ok(cuMemAlloc(&device, sizeof source));
    ok(cuMemsetD8(device, 0, sizeof source));
    ok(cuCtxSynchronize());
    for (size_t i = 0; i < COUNT; i++) {
        sizes[i] = EACH;
        srcs[i] = host_pointer(source + i * EACH);
        dsts[i] = device + (COUNT - 1 - i) * EACH;
    }
    ok(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, COUNT, attributes, starts, 3, CU_STREAM_PER_THREAD));
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    ok(cuMemcpyDtoH(back, device, sizeof back));
    for (size_t i = 0; i < COUNT; i++)
        assert_memory_equal(back + (COUNT - 1 - i) * EACH, source + i * EACH, EACH);
    ok(cuMemFree(device));
}

/* "This stream [...] must not be the legacy NULL stream", and NULL is invalid in the variants for per-thread default streams, too: NVIDIA's
 * driver requires the named handle. */
static void null_is_no_stream_for_a_batch(void **state)
{
    CUmemcpyAttributes attributes = with_order(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
    unsigned char source[64];
    CUdeviceptr device, from = host_pointer(source);
    size_t bytes = sizeof source, first = 0;

    (void)state;
    count_up(source, sizeof source, 9);
    ok(cuMemAlloc(&device, sizeof source));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(&device, &from, &bytes, 1, &attributes, &first, 1, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2_ptsz(&device, &from, &bytes, 1, &attributes, &first, 1, NULL));
    ok(cuMemcpyBatchAsync_v2_ptsz(&device, &from, &bytes, 1, &attributes, &first, 1, CU_STREAM_PER_THREAD));
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    ok(cuMemFree(device));
}

/* ---- when the source is read ---- */

static void CUDA_CB write_nines(void *user)
{
    usleep(20000);
    memset(user, 9, BYTES);
}

/* "STREAM: the source will be accessed in stream order": the copy sees what a slow host function of the stream wrote before, also in
 * pageable memory. The call may wait for it. */
static void stream_order_reads_at_execution(void **state)
{
    unsigned char *source = malloc(BYTES), back[BYTES];
    CUdeviceptr device, from = host_pointer(source);
    size_t bytes = BYTES;
    CUstream stream = make_stream();

    (void)state;
    assert_non_null(source);
    memset(source, 1, BYTES);
    ok(cuMemAlloc(&device, BYTES));
    ok(cuLaunchHostFunc(stream, write_nines, source));
    ok(copy_all(&device, &from, &bytes, 1, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuMemcpyDtoH(back, device, BYTES));
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(back[i], 9);
    ok(cuMemFree(device));
    free(source);
}

/* "DURING_API_CALL: all accesses must be complete before the API call returns": the source may be overwritten at once, page-locked or not.
 * Earlier work keeps the stream busy meanwhile; the call may wait for that. */
static void during_the_call_reads_before_it_returns(void **state)
{
    unsigned char back[BYTES], stack[BYTES], scratch[BYTES];
    CUdeviceptr device[2], from[2];
    size_t bytes[2] = {BYTES, BYTES};
    CUstream stream = make_stream();
    void *pinned;

    (void)state;
    ok(cuMemAllocHost(&pinned, BYTES));
    ok(cuMemAlloc(&device[0], BYTES));
    ok(cuMemAlloc(&device[1], BYTES));
    from[0] = host_pointer(pinned);
    from[1] = host_pointer(stack);
    memset(pinned, 4, BYTES);
    memset(stack, 5, BYTES);
    ok(cuLaunchHostFunc(stream, write_nines, scratch));
    ok(copy_all(device, from, bytes, 2, CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, stream));
    memset(pinned, 1, BYTES);
    memset(stack, 1, BYTES);
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    for (unsigned i = 0; i < 2; i++) {
        ok(cuMemcpyDtoH(back, device[i], BYTES));
        assert_int_equal(back[0], 4 + i);
        assert_int_equal(back[BYTES - 1], 4 + i);
        ok(cuMemFree(device[i]));
    }
    ok(cuMemFreeHost(pinned));
}

/* "The batch as a whole executes in stream order." */
static void a_batch_is_in_stream_order(void **state)
{
    CUstream stream = make_stream();
    CUdeviceptr a, b, c;
    unsigned char back[2];
    size_t bytes = BYTES;

    (void)state;
    ok(cuMemAlloc(&a, BYTES));
    ok(cuMemAlloc(&b, BYTES));
    ok(cuMemAlloc(&c, BYTES));
    for (unsigned i = 0; i < 50; i++) {
        ok(cuMemsetD8Async(a, (unsigned char)i, BYTES, stream));
        ok(copy_all(&b, &a, &bytes, 1, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, stream));
        ok(copy_all(&c, &b, &bytes, 1, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, stream));
        ok(cuMemsetD8Async(b, 77, BYTES, stream));
    }
    ok(cuMemcpyDtoHAsync(back, c + BYTES - 1, 1, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(back[0], 49);
    ok(cuMemFree(a));
    ok(cuMemFree(b));
    ok(cuMemFree(c));
    ok(cuStreamDestroy(stream));
}

/* ---- boxes ---- */

static CUDA_MEMCPY3D_BATCH_OP box(CUdeviceptr dst, size_t dst_row, size_t dst_height, CUdeviceptr src, size_t src_row, size_t src_height,
                                  CUextent3D extent)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = extent, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

    op.dst.type = op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.dst.op.ptr.ptr = dst;
    op.dst.op.ptr.rowLength = dst_row;
    op.dst.op.ptr.layerHeight = dst_height;
    op.src.op.ptr.ptr = src;
    op.src.op.ptr.rowLength = src_row;
    op.src.op.ptr.layerHeight = src_height;
    return op;
}

/* "rowLength must either be zero or be greater than or equal to the width of the copy [...] When either of these values is zero, that
 * aspect of the operand is considered to be tightly packed according to the copy extent." */
static void boxes_have_gaps_or_none(void **state)
{
    static const CUextent3D extent = {13, 5, 3};
    enum { ROW = 17, HEIGHT = 7, SPAN = ROW * HEIGHT * 3 };
    unsigned char source[SPAN], back[SPAN], packed[13 * 5 * 3];
    CUstream stream = make_stream();
    CUDA_MEMCPY3D_BATCH_OP ops[2];
    CUdeviceptr device;

    (void)state;
    count_up(source, SPAN, 1);
    ok(cuMemAlloc(&device, 2 * SPAN));
    ok(cuMemsetD8(device, 0, 2 * SPAN));
    ok(cuCtxSynchronize());
    ops[0] = box(device, 0, 0, host_pointer(source), ROW, HEIGHT, extent);
    ops[1] = box(device + SPAN, ROW, HEIGHT, host_pointer(source), ROW, HEIGHT, extent);
    ok(cuMemcpy3DBatchAsync_v2(2, ops, 0, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH(packed, device, sizeof packed));
    ok(cuMemcpyDtoH(back, device + SPAN, SPAN));
    for (size_t z = 0; z < 3; z++)
        for (size_t y = 0; y < HEIGHT; y++)
            for (size_t x = 0; x < ROW; x++) {
                size_t at = (z * HEIGHT + y) * ROW + x;
                bool inside = x < extent.width && y < extent.height;

                assert_int_equal(back[at], inside ? source[at] : 0);
                if (inside)
                    assert_int_equal(packed[(z * 5 + y) * 13 + x], source[at]);
            }
    ok(cuMemFree(device));
    ok(cuStreamDestroy(stream));
}

/* ---- rejected batches ---- */

static linear_form *linear_of_12_8(void)
{
    linear_form *form = NULL;

    ok(cuGetProcAddress_v2("cuMemcpyBatchAsync", (void **)&form, 12080, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    assert_non_null(form);
    return form;
}

static box_form *box_of_12_8(void)
{
    box_form *form = NULL;

    ok(cuGetProcAddress_v2("cuMemcpy3DBatchAsync", (void **)&form, 12080, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    assert_non_null(form);
    return form;
}

/* A valid batch of three copies, in which each row invalidates something. */
struct good {
    unsigned char source[64];
    CUdeviceptr device, dsts[3], srcs[3];
    size_t sizes[3], starts[2], count, n_attributes;
    CUmemcpyAttributes attributes[2];
    CUstream stream;
};

static void make_good(struct good *g)
{
    *g = (struct good){.starts = {0, 2}, .count = 3, .n_attributes = 2, .stream = make_stream()};
    ok(cuMemAlloc(&g->device, 64));
    ok(cuMemsetD8(g->device, 0, 64));
    ok(cuCtxSynchronize());
    memset(g->source, 1, sizeof g->source);
    g->attributes[0] = g->attributes[1] = with_order(CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
    for (size_t i = 0; i < 3; i++) {
        g->dsts[i] = g->device + i * 16;
        g->srcs[i] = host_pointer(g->source);
        g->sizes[i] = 16;
    }
}

/* clang-format off */
#define SPOIL(name, change)                                                                                                     \
    static void name(struct good *g) { change; }
SPOIL(no_copies, g->count = 0)
SPOIL(no_attributes, g->n_attributes = 0)
SPOIL(more_attributes_than_copies, g->count = 1)
SPOIL(first_index_not_0, g->starts[0] = 1)
SPOIL(indices_that_do_not_ascend, g->starts[1] = 0)
SPOIL(last_index_beyond, g->starts[1] = 3)
SPOIL(legacy_stream, g->stream = NULL)
SPOIL(order_invalid_of_all, g->attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID)
SPOIL(order_unknown_of_the_last, g->attributes[1].srcAccessOrder = (CUmemcpySrcAccessOrder)4)
SPOIL(flags_unknown, g->attributes[1].flags = 2)
SPOIL(destination_null, g->dsts[1] = 0)
SPOIL(source_null, g->srcs[2] = 0)
SPOIL(beyond_the_allocation, g->sizes[2] = 33)
/* clang-format on */

/* "otherwise the API will return CUDA_ERROR_INVALID_VALUE"; failIdx: "the index of the copy where a failure was encountered. The value will
 * be SIZE_MAX if the error doesn't pertain to any specific copy." */
static void linear_batches_are_refused(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(struct good *good);
        size_t index;
    } rows[] = {
        {"no copies", no_copies, SIZE_MAX},
        {"no attributes", no_attributes, SIZE_MAX},
        {"more attributes than copies", more_attributes_than_copies, SIZE_MAX},
        {"the first index is not 0", first_index_not_0, SIZE_MAX},
        {"indices that do not ascend", indices_that_do_not_ascend, SIZE_MAX},
        {"an index beyond the copies", last_index_beyond, SIZE_MAX},
        {"the legacy stream", legacy_stream, SIZE_MAX},
        {"source order INVALID", order_invalid_of_all, 0},
        {"a source order that is none", order_unknown_of_the_last, 2},
        {"flags that are none", flags_unknown, 2},
        {"a destination of NULL", destination_null, 1},
        {"a source of NULL", source_null, 2},
        {"beyond the allocation", beyond_the_allocation, 2},
    };
    linear_form *form = linear_of_12_8();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char back[64];
        size_t index = 12345;
        struct good g;
        CUstream stream;
        CUresult r;

        make_good(&g);
        stream = g.stream;
        rows[i].spoil(&g);
        r = form(g.dsts, g.srcs, g.sizes, g.count, g.attributes, g.starts, g.n_attributes, &index, g.stream);
        if (r != CUDA_ERROR_INVALID_VALUE || (on_cuttle() && index != rows[i].index))
            fail_msg("%s: %s, copy %zu", rows[i].name, api_error_name(r), index);
        gives(CUDA_ERROR_INVALID_VALUE,
              cuMemcpyBatchAsync_v2(g.dsts, g.srcs, g.sizes, g.count, g.attributes, g.starts, g.n_attributes, g.stream));
        ok(cuCtxSynchronize());
        ok(cuMemcpyDtoH(back, g.device, 64));
        for (size_t k = 0; on_cuttle() && k < 64; k++)
            assert_int_equal(back[k], 0); /* no copy of it was executed */
        ok(cuMemFree(g.device));
        ok(cuStreamDestroy(stream));
    }
}

static void linear_batches_need_their_arrays(void **state)
{
    struct good g;

    (void)state;
    make_good(&g);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(NULL, g.srcs, g.sizes, 3, g.attributes, g.starts, 2, g.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(g.dsts, NULL, g.sizes, 3, g.attributes, g.starts, 2, g.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(g.dsts, g.srcs, NULL, 3, g.attributes, g.starts, 2, g.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(g.dsts, g.srcs, g.sizes, 3, NULL, g.starts, 2, g.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(g.dsts, g.srcs, g.sizes, 3, g.attributes, NULL, 2, g.stream));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_HANDLE, cuMemcpyBatchAsync_v2(g.dsts, g.srcs, g.sizes, 3, g.attributes, g.starts, 2, MADE_UP(CUstream)));
    ok(cuMemcpyBatchAsync_v2(g.dsts, g.srcs, g.sizes, 3, g.attributes, g.starts, 2, g.stream));
    ok(cuStreamSynchronize(g.stream));
    ok(cuMemFree(g.device));
    ok(cuStreamDestroy(g.stream));
}

/* clang-format off */
#define SPOIL_BOX(name, change)                                                                                                     \
    static void name(CUDA_MEMCPY3D_BATCH_OP *op) { change; }
SPOIL_BOX(no_width, op->extent.width = 0)
SPOIL_BOX(no_height, op->extent.height = 0)
SPOIL_BOX(no_depth, op->extent.depth = 0)
SPOIL_BOX(short_rows, op->src.op.ptr.rowLength = 3)
SPOIL_BOX(low_layers, op->dst.op.ptr.layerHeight = 1)
SPOIL_BOX(no_order, op->srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID)
SPOIL_BOX(odd_flags, op->flags = 2)
SPOIL_BOX(odd_operand, op->src.type = (CUmemcpy3DOperandType)9)
SPOIL_BOX(null_operand, op->dst.op.ptr.ptr = 0)
SPOIL_BOX(too_deep, op->extent.depth = 1000)
SPOIL_BOX(endless, op->dst.op.ptr.layerHeight = op->dst.op.ptr.rowLength = SIZE_MAX / 2)
/* clang-format on */

static void boxes_are_refused(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(CUDA_MEMCPY3D_BATCH_OP *op);
    } rows[] = {
        {"no width", no_width},
        {"no height", no_height},
        {"no depth", no_depth},
        {"rows shorter than the copy", short_rows},
        {"layers lower than the copy", low_layers},
        {"source order INVALID", no_order},
        {"flags that are none", odd_flags},
        {"an operand that is none", odd_operand},
        {"a pointer of NULL", null_operand},
        {"beyond the allocation", too_deep},
        {"more than 64 bits", endless},
    };
    box_form *form = box_of_12_8();
    CUstream stream = make_stream();
    CUdeviceptr device;

    (void)state;
    ok(cuMemAlloc(&device, 256));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUDA_MEMCPY3D_BATCH_OP ops[2];
        size_t index = 12345;
        CUresult r;

        ops[0] = ops[1] = box(device + 128, 0, 0, device, 0, 0, (CUextent3D){4, 2, 3});
        rows[i].spoil(&ops[1]);
        r = form(2, ops, &index, 0, stream);
        if (r != CUDA_ERROR_INVALID_VALUE || (on_cuttle() && index != 1))
            fail_msg("%s: %s, copy %zu", rows[i].name, api_error_name(r), index);
    }
    ok(cuStreamSynchronize(stream));
    ok(cuMemFree(device));
    ok(cuStreamDestroy(stream));
}

static void batches_of_boxes_are_refused(void **state)
{
    CUDA_MEMCPY3D_BATCH_OP op;
    box_form *form = box_of_12_8();
    CUstream stream = make_stream();
    CUdeviceptr device;
    size_t index = 12345;

    (void)state;
    ok(cuMemAlloc(&device, 256));
    op = box(device + 128, 0, 0, device, 0, 0, (CUextent3D){4, 2, 3});
    gives(CUDA_ERROR_INVALID_VALUE, form(0, &op, &index, 0, stream));
    assert_true(index == SIZE_MAX);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, NULL, 0, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &op, 1, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &op, 0, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2_ptsz(1, &op, 0, NULL));
    ok(cuMemcpy3DBatchAsync_v2_ptsz(1, &op, 0, CU_STREAM_PER_THREAD));
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    ok(cuMemcpy3DBatchAsync_v2(1, &op, 0, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuCtxSynchronize());
    ok(cuMemFree(device));
    ok(cuStreamDestroy(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_between_all_kinds),
        cmocka_unit_test(attributes_are_for_the_copies_from_their_index_on),
        cmocka_unit_test(null_is_no_stream_for_a_batch),
        cmocka_unit_test(stream_order_reads_at_execution),
        cmocka_unit_test(during_the_call_reads_before_it_returns),
        cmocka_unit_test(a_batch_is_in_stream_order),
        cmocka_unit_test(boxes_have_gaps_or_none),
        cmocka_unit_test(linear_batches_are_refused),
        cmocka_unit_test(linear_batches_need_their_arrays),
        cmocka_unit_test(boxes_are_refused),
        cmocka_unit_test(batches_of_boxes_are_refused),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
