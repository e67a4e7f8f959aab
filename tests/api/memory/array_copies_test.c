/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to, from and between CUDA arrays, compared with a model in host memory: boxes at any position, any pitch and height, with every
 * other kind of memory. */
#include "arrays.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BUFFER_BYTES ((size_t)96 << 10)

/* An array, and its expected contents. */
struct model {
    CUarray array;
    unsigned char *bytes;
    size_t element, row, rows, slices;
};

static size_t model_bytes(const struct model *model)
{
    return model->row * model->rows * model->slices;
}

static unsigned random_state = 12345;

static size_t random_below(size_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (size_t)(random_state >> 8) % n;
}

/* Elements of 1 .. 16 bytes. */
static const struct {
    CUarray_format format;
    unsigned channels;
    size_t bytes;
} elements[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
                {CU_AD_FORMAT_HALF, 1, 2},
                {CU_AD_FORMAT_SIGNED_INT8, 4, 4},
                {CU_AD_FORMAT_FLOAT, 2, 8},
                {CU_AD_FORMAT_UNSIGNED_INT32, 4, 16}};
#define N_ELEMENTS (sizeof elements / sizeof *elements)

static void whole(const struct model *model, void *host, bool to_array)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = model->row, .Height = model->rows, .Depth = model->slices};

    copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    copy.srcHost = copy.dstHost = host;
    copy.srcArray = copy.dstArray = model->array;
    copy.srcPitch = copy.dstPitch = model->row;
    copy.srcHeight = copy.dstHeight = model->rows;
    ok(cuMemcpy3D(&copy));
    ok(cuCtxSynchronize()); /* for pageable memory only the read has completed; other streams are used next */
}

static struct model model_of(CUarray array, const CUDA_ARRAY3D_DESCRIPTOR *desc, size_t element)
{
    struct model model = {array, NULL, element, desc->Width * element, at_least_one(desc->Height), at_least_one(desc->Depth)};

    model.bytes = malloc(model_bytes(&model));
    fill_with_noise(model.bytes, model_bytes(&model), (unsigned)random_below(1u << 20));
    whole(&model, model.bytes, true);
    return model;
}

static struct model make_model(const struct array_kind *kind, size_t e)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = array_desc(kind, elements[e].format, elements[e].channels);
    CUarray array;

    ok(cuArray3DCreate(&array, &desc));
    return model_of(array, &desc, elements[e].bytes);
}

static void check_model(const struct model *model)
{
    unsigned char *got = malloc(model_bytes(model));

    whole(model, got, false);
    assert_memory_equal(got, model->bytes, model_bytes(model));
    free(got);
}

static void drop_model(struct model *model)
{
    ok(cuArrayDestroy(model->array));
    free(model->bytes);
}

/* ---- boxes ---- */

struct box {
    size_t x, y, z, width, height, depth; /* x and width in bytes */
};

static struct box random_box(const struct model *in)
{
    size_t columns = in->row / in->element;
    struct box box;

    box.x = random_below(columns);
    box.width = (1 + random_below(columns - box.x)) * in->element;
    box.x *= in->element;
    box.y = random_below(in->rows);
    box.height = 1 + random_below(in->rows - box.y);
    box.z = random_below(in->slices);
    box.depth = 1 + random_below(in->slices - box.z);
    return box;
}

static unsigned char *model_row(const struct model *model, const struct box *box, size_t y, size_t z)
{
    return model->bytes + ((box->z + z) * model->rows + box->y + y) * model->row + box->x;
}

/* The plain side: a buffer, with a host copy of its expected contents. */
struct plain {
    const char *name;
    CUmemorytype type;
    CUdeviceptr device;
    unsigned char *host; /* the pointer passed to the copy, for HOST; may be the mirror itself */
    unsigned char *mirror;
};

enum { N_PLAINS = 4 };
static struct plain plains[N_PLAINS];

static void write_plain(const struct plain *plain)
{
    if (plain->device)
        ok(cuMemcpyHtoD(plain->device, plain->mirror, BUFFER_BYTES));
    else
        memcpy(plain->host, plain->mirror, BUFFER_BYTES);
}

static void check_plain(const struct plain *plain)
{
    static unsigned char got[BUFFER_BYTES];

    if (plain->device)
        ok(cuMemcpyDtoH(got, plain->device, BUFFER_BYTES));
    else
        memcpy(got, plain->host, BUFFER_BYTES);
    assert_memory_equal(got, plain->mirror, BUFFER_BYTES);
}

/* The position of a box in a plain buffer. */
struct lie {
    size_t start, x, y, z, pitch, height; /* start: offset of the pointer in the buffer */
};

/* Of 1D layers without padding: between them NVIDIA's driver (580.159.04) uses the pitch alone and ignores the height. */
static struct lie random_lie(const struct model *model, const struct box *box)
{
    size_t element = model->element;
    struct lie lie = {0};
    size_t grain = random_below(3) ? element : 1; /* sometimes aligned, sometimes not */

    lie.start = random_below(50) * grain;
    lie.x = random_below(6) * grain;
    lie.y = random_below(3);
    lie.z = box->depth > 1 ? random_below(2) : 0;
    lie.pitch = lie.x + box->width + random_below(6) * grain;
    lie.pitch = (lie.pitch + grain - 1) / grain * grain;
    lie.height = lie.y + box->height + random_below(3);
    if (model->rows == 1 && model->slices > 1) {
        lie.y = 0;
        lie.height = 1;
    }
    return lie;
}

static size_t lie_byte(const struct lie *lie, size_t y, size_t z)
{
    return lie->start + ((lie->z + z) * lie->height + lie->y + y) * lie->pitch + lie->x;
}

static CUDA_MEMCPY3D describe(const struct model *model, const struct box *box, const struct plain *plain, const struct lie *lie,
                              bool to_array)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = box->width, .Height = box->height, .Depth = box->depth};

    if (to_array) {
        copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.dstArray = model->array;
        copy.dstXInBytes = box->x;
        copy.dstY = box->y;
        copy.dstZ = box->z;
        copy.srcMemoryType = plain->type;
        copy.srcHost = plain->host ? plain->host + lie->start : NULL;
        copy.srcDevice = plain->device ? plain->device + lie->start : (CUdeviceptr)(uintptr_t)copy.srcHost;
        copy.srcXInBytes = lie->x;
        copy.srcY = lie->y;
        copy.srcZ = lie->z;
        copy.srcPitch = lie->pitch;
        copy.srcHeight = lie->height;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = model->array;
        copy.srcXInBytes = box->x;
        copy.srcY = box->y;
        copy.srcZ = box->z;
        copy.dstMemoryType = plain->type;
        copy.dstHost = plain->host ? plain->host + lie->start : NULL;
        copy.dstDevice = plain->device ? plain->device + lie->start : (CUdeviceptr)(uintptr_t)copy.dstHost;
        copy.dstXInBytes = lie->x;
        copy.dstY = lie->y;
        copy.dstZ = lie->z;
        copy.dstPitch = lie->pitch;
        copy.dstHeight = lie->height;
    }
    return copy;
}

/* Alternates between synchronous copies, copies in a stream, in the thread's stream, and between contexts; for one slice also the
 * two-dimensional functions. */
static void run(const CUDA_MEMCPY3D *c, CUstream stream, unsigned way)
{
    ok(cuCtxSynchronize());
    if (c->Depth == 1 && !c->srcZ && !c->dstZ && way % 2) {
        CUDA_MEMCPY2D flat = {c->srcXInBytes, c->srcY,        c->srcMemoryType, c->srcHost,       c->srcDevice, c->srcArray,
                              c->srcPitch,    c->dstXInBytes, c->dstY,          c->dstMemoryType, c->dstHost,   c->dstDevice,
                              c->dstArray,    c->dstPitch,    c->WidthInBytes,  c->Height};

        if (way % 4 == 1)
            ok(cuMemcpy2DUnaligned(&flat));
        else
            ok(cuMemcpy2DAsync(&flat, stream));
    } else if (way % 4 == 0) {
        ok(cuMemcpy3D(c));
    } else if (way % 4 == 3) {
        CUDA_MEMCPY3D_PEER peer = {.srcXInBytes = c->srcXInBytes,
                                   .srcY = c->srcY,
                                   .srcZ = c->srcZ,
                                   .srcMemoryType = c->srcMemoryType,
                                   .srcHost = c->srcHost,
                                   .srcDevice = c->srcDevice,
                                   .srcArray = c->srcArray,
                                   .srcPitch = c->srcPitch,
                                   .srcHeight = c->srcHeight,
                                   .dstXInBytes = c->dstXInBytes,
                                   .dstY = c->dstY,
                                   .dstZ = c->dstZ,
                                   .dstMemoryType = c->dstMemoryType,
                                   .dstHost = c->dstHost,
                                   .dstDevice = c->dstDevice,
                                   .dstArray = c->dstArray,
                                   .dstPitch = c->dstPitch,
                                   .dstHeight = c->dstHeight,
                                   .WidthInBytes = c->WidthInBytes,
                                   .Height = c->Height,
                                   .Depth = c->Depth};

        ok(cuCtxGetCurrent(&peer.srcContext));
        peer.dstContext = peer.srcContext;
        ok(cuMemcpy3DPeerAsync(&peer, stream));
    } else {
        ok(cuMemcpy3DAsync(c, way % 8 == 2 ? CU_STREAM_PER_THREAD : stream));
    }
    ok(cuCtxSynchronize()); /* copies within device memory are asynchronous, and the streams have no order */
}

static void copy_a_box(struct model *model, const struct plain *plain, CUstream stream, bool to_array, unsigned way)
{
    struct box box = random_box(model);
    struct lie lie = random_lie(model, &box);
    CUDA_MEMCPY3D copy;

    if (lie_byte(&lie, box.height - 1, box.depth - 1) + box.width > BUFFER_BYTES)
        return;
    fill_with_noise(plain->mirror, BUFFER_BYTES, (unsigned)random_below(1u << 20));
    write_plain(plain);
    for (size_t z = 0; z < box.depth; z++) {
        for (size_t y = 0; y < box.height; y++) {
            unsigned char *there = model_row(model, &box, y, z), *here = plain->mirror + lie_byte(&lie, y, z);

            memcpy(to_array ? there : here, to_array ? here : there, box.width);
        }
    }
    copy = describe(model, &box, plain, &lie, to_array);
    run(&copy, stream, way);
    check_plain(plain);
}

static void boxes_to_and_from_memory(void **state)
{
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t k = 0; k < N_ARRAY_KINDS; k++) {
        for (size_t e = 0; e < N_ELEMENTS; e++) {
            struct model model = make_model(&array_kinds[k], e);

            for (unsigned i = 0; i < N_PLAINS; i++)
                for (unsigned n = 0; n < 8; n++)
                    copy_a_box(&model, &plains[i], stream, n & 1, (unsigned)(n / 2 + 4 * (k & 1)));
            check_model(&model);
            drop_model(&model);
        }
    }
    ok(cuStreamDestroy(stream));
}

/* The same with batches, whose extents count elements. */
static CUDA_MEMCPY3D_BATCH_OP batch_op(const struct model *model, const struct box *box, CUdeviceptr plain, const struct lie *lie,
                                       bool to_array)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUmemcpy3DOperand *array = to_array ? &op.dst : &op.src, *pointer = to_array ? &op.src : &op.dst;

    array->type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    array->op.array.array = model->array;
    array->op.array.offset = (CUoffset3D){box->x / model->element, box->y, box->z};
    pointer->type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    pointer->op.ptr.ptr = plain;
    pointer->op.ptr.rowLength = lie->pitch / model->element;
    pointer->op.ptr.layerHeight = lie->height;
    op.extent = (CUextent3D){box->width / model->element, box->height, box->depth};
    return op;
}

static void boxes_by_batches(void **state)
{
    struct model model = make_model(&array_kinds[4], 2); /* 2D layers of 31 x 17 elements of 4 bytes */
    struct box in = {20, 3, 1, 40, 7, 3}, out = {0, 0, 0, 124, 17, 5};
    struct lie lie_in = {.pitch = 48, .height = 9}, lie_out = {.pitch = 128, .height = 17};
    CUDA_MEMCPY3D_BATCH_OP ops[2], between;
    unsigned char *pageable = plains[0].host, *pinned = plains[1].host;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    fill_with_noise(pageable, BUFFER_BYTES, 3);
    ops[0] = batch_op(&model, &in, (CUdeviceptr)(uintptr_t)pageable, &lie_in, true);
    ops[1] = batch_op(&model, &(struct box){0, 0, 0, 124, 1, 1}, (CUdeviceptr)(uintptr_t)(pageable + 8192), &lie_out, true);
    ok(cuMemcpy3DBatchAsync_v2(2, ops, 0, stream));
    for (size_t z = 0; z < in.depth; z++)
        for (size_t y = 0; y < in.height; y++)
            memcpy(model_row(&model, &in, y, z), pageable + lie_byte(&lie_in, y, z), in.width);
    memcpy(model.bytes, pageable + 8192, 124);
    ops[0] = batch_op(&model, &out, (CUdeviceptr)(uintptr_t)pinned, &lie_out, false);
    ok(cuMemcpy3DBatchAsync_v2(1, ops, 0, stream));
    ok(cuStreamSynchronize(stream));
    for (size_t z = 0; z < out.depth; z++)
        for (size_t y = 0; y < out.height; y++)
            assert_memory_equal(pinned + lie_byte(&lie_out, y, z), model_row(&model, &out, y, z), out.width);
    check_model(&model);
    between = ops[0];
    between.dst = between.src;
    between.dst.op.array.offset = (CUoffset3D){0, 8, 0};
    between.extent = (CUextent3D){31, 8, 1};
    ok(cuMemcpy3DBatchAsync_v2(1, &between, 0, stream));
    ok(cuStreamSynchronize(stream));
    memcpy(model_row(&model, &out, 8, 0), model.bytes, 8 * model.row);
    check_model(&model);
    if (on_cuttle()) { /* NVIDIA's driver (580.159.04) uses the destination's layer for the source, too */
        between.dst.op.array.offset.z = 4;
        ok(cuMemcpy3DBatchAsync_v2(1, &between, 0, stream));
        ok(cuStreamSynchronize(stream));
        memcpy(model_row(&model, &out, 8, 4), model.bytes, 8 * model.row);
        check_model(&model);
    }
    between.extent.width = 32; /* one element too many */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &between, 0, stream));
    if (on_cuttle()) {
        between.dst.op.array.array = MADE_UP(CUarray);
        gives(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3DBatchAsync_v2(1, &between, 0, stream));
    }
    ok(cuStreamDestroy(stream));
    drop_model(&model);
}

/* ---- between arrays ---- */

static void copy_between(struct model *to, struct model *from, CUstream stream, unsigned way)
{
    struct box dst = random_box(to), src = random_box(from);
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType = CU_MEMORYTYPE_ARRAY};

    copy.WidthInBytes = src.width = dst.width = dst.width < src.width ? dst.width : src.width;
    copy.Height = dst.height < src.height ? dst.height : src.height;
    copy.Depth = dst.depth < src.depth ? dst.depth : src.depth;
    copy.srcArray = from->array;
    copy.srcXInBytes = src.x;
    copy.srcY = src.y;
    copy.srcZ = src.z;
    copy.dstArray = to->array;
    copy.dstXInBytes = dst.x;
    copy.dstY = dst.y;
    copy.dstZ = dst.z;
    for (size_t z = 0; z < copy.Depth; z++)
        for (size_t y = 0; y < copy.Height; y++)
            memcpy(model_row(to, &dst, y, z), model_row(from, &src, y, z), copy.WidthInBytes);
    run(&copy, stream, way);
}

static void boxes_between_arrays_of_all_kinds(void **state)
{
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t a = 0; a < N_ARRAY_KINDS; a++) {
        for (size_t b = 0; b < N_ARRAY_KINDS; b++) {
            size_t e = (a + b) % N_ELEMENTS;
            struct model to = make_model(&array_kinds[a], e), from = make_model(&array_kinds[b], e);

            for (unsigned way = 0; way < 8; way++)
                copy_between(&to, &from, stream, way);
            check_model(&to);
            check_model(&from);
            drop_model(&to);
            drop_model(&from);
        }
    }
    ok(cuStreamDestroy(stream));
}

/* The format does not matter, only the size of an element. */
static void between_formats_of_one_size(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR a = {32, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0}, b = {32, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
    struct model to, from;
    CUarray array;

    (void)state;
    ok(cuArray3DCreate(&array, &a));
    to = model_of(array, &a, 4);
    ok(cuArray3DCreate(&array, &b));
    from = model_of(array, &b, 4);
    for (unsigned way = 0; way < 8; way++)
        copy_between(&to, &from, NULL, way);
    check_model(&to);
    drop_model(&to);
    drop_model(&from);
}

/* Nor does the size of an element, if both sides consist of whole elements. */
static void between_elements_of_two_sizes(void **state)
{
    struct model to = make_model(&(struct array_kind){"1D", 64, 0, 0, 0}, 3), from = make_model(&(struct array_kind){"1D", 64, 0, 0, 0}, 2);

    (void)state;
    ok(cuMemcpyAtoA(to.array, 16, from.array, 4, 64)); /* elements of 8 and 4 bytes */
    memcpy(to.bytes + 16, from.bytes + 4, 64);
    check_model(&to);
    drop_model(&to);
    drop_model(&from);
}

/* Copies one half of an array to the other. */
static void within_one_array(void **state)
{
    struct model model = make_model(&(struct array_kind){"2D", 64, 32, 0, 0}, 2);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .WidthInBytes = 128, .Height = 32};

    (void)state;
    copy.srcArray = copy.dstArray = model.array;
    copy.dstXInBytes = 128;
    ok(cuMemcpy2D(&copy)); /* asynchronous; check_model's copy follows it in the same stream */
    for (size_t y = 0; y < 32; y++)
        memcpy(model.bytes + y * 256 + 128, model.bytes + y * 256, 128);
    check_model(&model);
    drop_model(&model);
}

/* ---- the one-dimensional forms ---- */

static void rows_of_bytes(void **state)
{
    struct model a = make_model(&(struct array_kind){"1D", 1000, 0, 0, 0}, 2), b = make_model(&(struct array_kind){"1D", 700, 0, 0, 0}, 2);
    unsigned char host[4000], *pinned = plains[1].host;
    CUdeviceptr device = plains[2].device;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    fill_with_noise(host, sizeof host, 7);
    ok(cuMemcpyHtoA(a.array, 40, host, 3000));
    memcpy(a.bytes + 40, host, 3000);
    check_model(&a);
    ok(cuMemcpyAtoA(b.array, 8, a.array, 100, 2000));
    memcpy(b.bytes + 8, a.bytes + 100, 2000);
    check_model(&b);
    ok(cuMemcpyAtoD(device, a.array, 4, 3996));
    ok(cuMemcpyDtoH(host, device, 3996));
    assert_memory_equal(host, a.bytes + 4, 3996);
    ok(cuMemcpyDtoA(b.array, 400, device, 2400));
    memcpy(b.bytes + 400, a.bytes + 4, 2400);
    check_model(&b);
    memset(host, 0, sizeof host);
    ok(cuMemcpyAtoH(host, b.array, 0, 2800));
    assert_memory_equal(host, b.bytes, 2800);
    fill_with_noise(pinned, 4000, 9);
    ok(cuMemcpyHtoAAsync(a.array, 0, pinned, 4000, stream));
    memcpy(a.bytes, pinned, 4000);
    ok(cuMemcpyAtoHAsync(pinned + 4000, a.array, 1000, 2000, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(pinned + 4000, a.bytes + 1000, 2000);
    ok(cuMemcpyHtoAAsync(a.array, 16, host, 400, stream)); /* pageable */
    memcpy(a.bytes + 16, host, 400);
    ok(cuMemcpyAtoHAsync(host, a.array, 0, 4000, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host, a.bytes, 4000);
    ok(cuMemcpyHtoA(a.array, 0, host, 0));
    check_model(&a);
    ok(cuStreamDestroy(stream));
    drop_model(&a);
    drop_model(&b);
}

/* ---- ordering and size ---- */

static atomic_int may_go;

static void CUDA_CB change_pinned(void *user)
{
    while (!may_go)
        ;
    memset(user, 0x5a, 4096);
}

static void copies_are_in_the_streams_order(void **state)
{
    struct model model = make_model(&(struct array_kind){"2D", 32, 32, 0, 0}, 2);
    unsigned char *pinned = plains[1].host;
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .WidthInBytes = 128, .Height = 32};
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType = CU_MEMORYTYPE_HOST, .WidthInBytes = 128, .Height = 32};
    CUstream stream;

    (void)state;
    may_go = 0;
    memset(pinned, 0, 8192);
    in.srcHost = pinned;
    out.dstHost = pinned + 4096;
    in.srcPitch = out.dstPitch = 128;
    in.dstArray = out.srcArray = model.array;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(stream, change_pinned, pinned));
    ok(cuMemcpy2DAsync(&in, stream));
    ok(cuMemcpy2DAsync(&out, stream));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    assert_int_equal(pinned[4096], 0);
    may_go = 1;
    ok(cuStreamSynchronize(stream));
    assert_int_equal(pinned[4096], 0x5a);
    assert_int_equal(pinned[8191], 0x5a);
    ok(cuStreamDestroy(stream));
    drop_model(&model);
}

/* Larger than any staging buffer, in rows some of which are longer than it. */
static void large_arrays(void **state)
{
    static const struct array_kind kinds[] = {
        {"2D", 8000, 50, 0, 0}, {"3D", 100, 60, 70, 0}, {"1D layered", 8000, 0, 40, CUDA_ARRAY3D_LAYERED}};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct model model = make_model(&kinds[k], 4);
        struct plain device = {"device", CU_MEMORYTYPE_DEVICE, 0, NULL, NULL};
        CUDA_MEMCPY3D copy = {.WidthInBytes = model.row, .Height = model.rows, .Depth = model.slices};
        unsigned char *got = malloc(model_bytes(&model));

        check_model(&model);
        ok(cuMemAlloc(&device.device, model_bytes(&model)));
        copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        copy.srcArray = model.array;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = device.device;
        copy.dstPitch = model.row;
        copy.dstHeight = model.rows;
        ok(cuMemcpy3D(&copy));
        ok(cuMemcpyDtoH(got, device.device, model_bytes(&model)));
        assert_memory_equal(got, model.bytes, model_bytes(&model));
        ok(cuMemFree(device.device));
        free(got);
        drop_model(&model);
    }
}

/* ---- contexts and devices ---- */

/* Arrays of another context, and of another device if there is one. */
static void between_contexts(void **state)
{
    struct model here = make_model(&array_kinds[1], 2), there;
    CUcontext other, current = *state;
    CUDA_MEMCPY3D_PEER peer = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType = CU_MEMORYTYPE_ARRAY};
    int devices;

    ok(cuDeviceGetCount(&devices));
    ok(cuCtxCreate(&other, NULL, 0, devices - 1));
    there = make_model(&array_kinds[1], 2);
    ok(cuCtxSetCurrent(current));
    peer.srcArray = here.array;
    peer.srcContext = current;
    peer.dstArray = there.array;
    peer.dstContext = other;
    peer.srcXInBytes = 8;
    peer.WidthInBytes = 100;
    peer.Height = 20;
    peer.Depth = 1;
    ok(cuMemcpy3DPeer(&peer));
    ok(cuCtxSynchronize()); /* copies within devices are asynchronous, and the other context's per-thread stream does not wait for them */
    for (size_t y = 0; y < 20; y++)
        memcpy(there.bytes + y * there.row, here.bytes + y * here.row + 8, 100);
    ok(cuCtxSetCurrent(other));
    check_model(&there);
    drop_model(&there);
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(current));
    drop_model(&here);
}

struct worker {
    CUcontext context;
    unsigned seed;
    bool good;
};

static void *work(void *user)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {64, 8, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
    struct worker *worker = user;
    unsigned char there[2048], back[2048];

    worker->good = cuCtxSetCurrent(worker->context) == CUDA_SUCCESS;
    for (int i = 0; i < 50 && worker->good; i++) {
        CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                            .srcHost = there,
                            .srcPitch = 256,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .WidthInBytes = 256,
                            .Height = 8};
        CUDA_MEMCPY2D out = {.dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = back,
                             .dstPitch = 256,
                             .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .WidthInBytes = 256,
                             .Height = 8};

        fill_with_noise(there, sizeof there, worker->seed + (unsigned)i);
        worker->good = cuArray3DCreate(&in.dstArray, &desc) == CUDA_SUCCESS;
        out.srcArray = in.dstArray;
        worker->good = worker->good && cuMemcpy2D(&in) == CUDA_SUCCESS && cuMemcpy2DAsync(&out, CU_STREAM_PER_THREAD) == CUDA_SUCCESS &&
                       cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS && !memcmp(there, back, sizeof there) &&
                       cuArrayDestroy(in.dstArray) == CUDA_SUCCESS;
    }
    return NULL;
}

static void many_threads(void **state)
{
    struct worker workers[4];
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++) {
        workers[i] = (struct worker){*state, i * 1000, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(workers[i].good);
    }
}

/* ---- rejected copies ---- */

static void bounds_and_elements(void **state)
{
    static const struct {
        const char *name;
        struct box box;
        CUresult want;
        bool by_manual; /* NVIDIA's driver copies parts of elements anyway */
    } rows[] = {
        {"all of it", {0, 0, 0, 256, 32, 4}, CUDA_SUCCESS, false},
        {"its last element", {252, 31, 3, 4, 1, 1}, CUDA_SUCCESS, false},
        {"a part of an element", {0, 0, 0, 6, 1, 1}, CUDA_ERROR_INVALID_VALUE, true},
        {"from within an element", {2, 0, 0, 4, 1, 1}, CUDA_ERROR_INVALID_VALUE, true},
        {"beyond the width", {4, 0, 0, 256, 1, 1}, CUDA_ERROR_INVALID_VALUE, false},
        {"beyond the height", {0, 1, 0, 4, 32, 1}, CUDA_ERROR_INVALID_VALUE, false},
        {"beyond the depth", {0, 0, 3, 4, 1, 2}, CUDA_ERROR_INVALID_VALUE, false},
        {"starting beyond the width", {256, 0, 0, 4, 1, 1}, CUDA_ERROR_INVALID_VALUE, false},
        {"starting beyond the height", {0, 32, 0, 4, 1, 1}, CUDA_ERROR_INVALID_VALUE, false},
        {"starting beyond the depth", {0, 0, 4, 4, 1, 1}, CUDA_ERROR_INVALID_VALUE, false},
        {"numbers that wrap around", {SIZE_MAX - 3, 0, 0, 8, 1, 1}, CUDA_ERROR_INVALID_VALUE, false},
    };
    struct model model = make_model(&(struct array_kind){"3D", 64, 32, 4, 0}, 2);
    unsigned wrong = 0;

    (void)state;
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        const struct box *box = &rows[i / 2].box;
        struct lie lie = {.pitch = 256, .height = 33};
        CUDA_MEMCPY3D copy = describe(&model, box, &plains[0], &lie, i % 2);
        CUresult r = rows[i / 2].by_manual && !on_cuttle() ? rows[i / 2].want : cuMemcpy3D(&copy);

        if (r != rows[i / 2].want)
            print_error("%s: %s\n", rows[i / 2].name, api_error_name(r));
        wrong += r != rows[i / 2].want;
    }
    assert_int_equal(wrong, 0);
    drop_model(&model);
}

static void odd_arguments(void **state)
{
    struct model model = make_model(&(struct array_kind){"2D", 64, 32, 0, 0}, 2),
                 other = make_model(&(struct array_kind){"1D", 64, 0, 0, 0}, 3);
    struct box box = {0, 0, 0, 64, 1, 1};
    struct lie lie = {.pitch = 256, .height = 1};
    CUDA_MEMCPY3D copy = describe(&model, &box, &plains[0], &lie, true);
    unsigned char host[512] = {0};

    (void)state;
    copy.dstLOD = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));
    copy.dstLOD = 0;
    copy.srcPitch = 32; /* less than a row */
    copy.Height = 2;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));
    copy = describe(&model, &box, &plains[0], &lie, true);
    copy.srcHost = NULL;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));
    copy = describe(&model, &box, &plains[0], &lie, true);
    copy.dstArray = NULL;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(host, other.array, 504, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(other.array, 0, NULL, 8));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(model.array, 0, host, 512)); /* more than its first row */
    if (on_cuttle()) { /* NVIDIA's driver accepts parts of elements, and dereferences handles */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(other.array, 0, host, 12)); /* elements of 8 bytes */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(other.array, 4, host, 8));
        gives(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoA(MADE_UP(CUarray), 0, host, 16));
        copy.dstArray = (CUarray)*state;
        gives(CUDA_ERROR_INVALID_HANDLE, cuMemcpy3D(&copy));
    }
    check_model(&model);
    check_model(&other);
    drop_model(&model);
    drop_model(&other);
}

/* ---- all ---- */

static int set_up(void **state)
{
    void *host;

    if (with_context(state))
        return -1;
    plains[0] = (struct plain){"pageable", CU_MEMORYTYPE_HOST, 0, malloc(BUFFER_BYTES), NULL};
    if (cuMemAllocHost(&host, BUFFER_BYTES))
        return -1;
    plains[1] = (struct plain){"page-locked", CU_MEMORYTYPE_HOST, 0, host, NULL};
    plains[2] = (struct plain){"device", CU_MEMORYTYPE_DEVICE, 0, NULL, NULL};
    if (cuMemAlloc(&plains[2].device, BUFFER_BYTES))
        return -1;
    plains[3] = (struct plain){"unified", CU_MEMORYTYPE_UNIFIED, plains[2].device, NULL, NULL};
    for (int i = 0; i < N_PLAINS; i++)
        plains[i].mirror = malloc(BUFFER_BYTES);
    return 0;
}

static int take_down(void **state)
{
    for (int i = 0; i < N_PLAINS; i++)
        free(plains[i].mirror);
    free(plains[0].host);
    if (cuMemFreeHost(plains[1].host) || cuMemFree(plains[2].device))
        return -1;
    return without_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_to_and_from_memory),
        cmocka_unit_test(boxes_by_batches),
        cmocka_unit_test(boxes_between_arrays_of_all_kinds),
        cmocka_unit_test(between_formats_of_one_size),
        cmocka_unit_test(between_elements_of_two_sizes),
        cmocka_unit_test(within_one_array),
        cmocka_unit_test(rows_of_bytes),
        cmocka_unit_test(copies_are_in_the_streams_order),
        cmocka_unit_test(large_arrays),
        cmocka_unit_test(between_contexts),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(bounds_and_elements),
        cmocka_unit_test(odd_arguments),
    };

    return cmocka_run_group_tests(tests, set_up, take_down);
}
