/* SPDX-License-Identifier: Apache-2.0 */
/* The stress test's operations: each applies the same change to memory and to its model. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BATCH 2

bool stress_trace;

/* ---- parts of objects ---- */

struct part {
    struct stress_object *object;
    size_t offset, bytes;
};

static struct part random_part(struct stress_worker *w, struct stress_object *o)
{
    struct part part = {.object = o, .offset = stress_number(&w->thread.random, o->bytes)};

    part.bytes = 1 + stress_number(&w->thread.random, o->bytes - part.offset);
    return part;
}

/* One of the object's addresses. */
static CUdeviceptr address_of(struct stress_worker *w, const struct part *part)
{
    bool other = stress_chance(&w->thread.random, 30);
    CUdeviceptr start = other && part->object->alias ? part->object->alias : part->object->start;

    return start + part->offset;
}

static unsigned char *model_of(const struct part *part)
{
    return part->object->model + part->offset;
}

struct stress_object *stress_random_object(struct stress_worker *w)
{
    return w->n_objects ? w->objects[stress_number(&w->thread.random, w->n_objects)] : NULL;
}

static CUstream lane(const struct stress_worker *w, unsigned number)
{
    return w->thread.lanes[number];
}

/* Makes work recorded next in `later` wait for the work already recorded in `earlier`. */
static void order(struct stress_worker *w, unsigned earlier, unsigned later)
{
    struct stress_thread *t = &w->thread;

    if (earlier == later)
        return;
    STRESS_OK(t, cuEventRecord(t->event, lane(w, earlier)));
    STRESS_OK(t, cuStreamWaitEvent(lane(w, later), t->event, 0));
}

/* The default stream and the blocking streams synchronize implicitly: sometimes the test relies on that. The `later` work is in that
 * stream, and not on the host, which waits for one stream alone. */
static void order_work(struct stress_worker *w, unsigned earlier, unsigned later)
{
    bool by_itself = (earlier == STRESS_LEGACY_LANE && later <= STRESS_BLOCKING_LANE) ||
                     (later == STRESS_LEGACY_LANE && earlier <= STRESS_BLOCKING_LANE);

    if (!by_itself || stress_chance(&w->thread.random, 50))
        order(w, earlier, later);
}

static void compare(struct stress_worker *w, const struct part *part, const unsigned char *found)
{
    const unsigned char *wanted = model_of(part);
    size_t i = 0, last = part->bytes - 1;

    if (memcmp(wanted, found, part->bytes) == 0)
        return;
    while (wanted[i] == found[i])
        i++;
    while (wanted[last] == found[last])
        last--;
    stress_fail(&w->thread,
                "%s memory at 0x%llx + %zu, checked from %zu to %zu: bytes %zu to %zu are wrong, the first is 0x%02x, not 0x%02x",
                stress_kind_names[part->object->kind], (unsigned long long)part->object->start, part->object->bytes, part->offset,
                part->offset + part->bytes, part->offset + i, part->offset + last, found[i], wanted[i]);
}

/* ---- operations; each takes an object and may take another one ---- */

static void do_check(struct stress_worker *w, const struct part *part)
{
    struct stress_thread *t = &w->thread;
    const struct stress_object *o = part->object;

    if (o->host && stress_chance(&t->random, 50)) {
        STRESS_OK(t, cuStreamSynchronize(lane(w, o->lane)));
        compare(w, part, o->host + part->offset);
        return;
    }
    if (part->bytes > w->buffer_bytes) {
        free(w->buffer);
        w->buffer = malloc(part->bytes);
        w->buffer_bytes = w->buffer ? part->bytes : 0;
        if (!w->buffer)
            stress_fail(t, "out of memory");
    }
    STRESS_OK(t, cuMemcpyAsync((CUdeviceptr)(uintptr_t)w->buffer, address_of(w, part), part->bytes, lane(w, o->lane)));
    STRESS_OK(t, cuStreamSynchronize(lane(w, o->lane)));
    compare(w, part, w->buffer);
}

static void check(struct stress_worker *w, struct stress_object *o)
{
    struct part part = random_part(w, o);

    do_check(w, &part);
}

static void check_all(struct stress_worker *w, struct stress_object *o)
{
    do_check(w, &(struct part){o, 0, o->bytes});
}

static void host_writes(struct stress_worker *w, struct stress_object *o)
{
    struct part part = random_part(w, o);
    unsigned value = (unsigned)stress_number(&w->thread.random, 251);

    if (!o->host)
        return;
    STRESS_OK(&w->thread, cuStreamSynchronize(lane(w, o->lane)));
    for (size_t i = 0; i < part.bytes; i++)
        model_of(&part)[i] = (unsigned char)(value + i % 251);
    memcpy(o->host + part.offset, model_of(&part), part.bytes);
}

static void fill_model(unsigned char *to, uint32_t value, unsigned element, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * element, &value, element);
}

static CUresult fill_rows(CUdeviceptr at, size_t pitch, unsigned element, uint32_t value, size_t width, size_t height, CUstream stream)
{
    if (element == 1)
        return cuMemsetD2D8Async(at, pitch, (unsigned char)value, width, height, stream);
    if (element == 2)
        return cuMemsetD2D16Async(at, pitch, (unsigned short)value, width, height, stream);
    return cuMemsetD2D32Async(at, pitch, value, width, height, stream);
}

static CUresult fill_run(CUdeviceptr at, unsigned element, uint32_t value, size_t count, CUstream stream)
{
    if (element == 1)
        return cuMemsetD8Async(at, (unsigned char)value, count, stream);
    if (element == 2)
        return cuMemsetD16Async(at, (unsigned short)value, count, stream);
    return cuMemsetD32Async(at, value, count, stream);
}

/* Elements of 1, 2 or 4 bytes, contiguous or in rows with gaps. */
static void fill(struct stress_worker *w, struct stress_object *o)
{
    struct stress_thread *t = &w->thread;
    struct part part = random_part(w, o);
    unsigned element = 1u << stress_number(&t->random, 3);
    uint32_t value = (uint32_t)stress_number(&t->random, UINT32_MAX);
    size_t skip = -(size_t)(o->kernels + part.offset) & (element - 1), count, width;

    if (!o->kernels || part.bytes < skip + element)
        return;
    part.offset += skip;
    count = (part.bytes - skip) / element;
    width = 1 + stress_number(&t->random, count);
    if (stress_chance(&t->random, 60)) {
        STRESS_OK(t, fill_run(o->kernels + part.offset, element, value, count, lane(w, o->lane)));
        fill_model(model_of(&part), value, element, count);
    } else {
        size_t pitch = width + stress_number(&t->random, 9), height = (count - width) / pitch + 1;

        height = height > 40 ? 40 : height;
        STRESS_OK(t, fill_rows(o->kernels + part.offset, pitch * element, element, value, width, height, lane(w, o->lane)));
        for (size_t row = 0; row < height; row++)
            fill_model(model_of(&part) + row * pitch * element, value, element, width);
    }
}

/* Makes the work wait for the streams of both objects, and these for the work. Returns the stream to work in. */
static unsigned gather(struct stress_worker *w, const struct stress_object *a, const struct stress_object *b)
{
    unsigned in = stress_chance(&w->thread.random, 70) ? a->lane : (unsigned)stress_number(&w->thread.random, STRESS_LANES);

    order_work(w, a->lane, in);
    order_work(w, b->lane, in);
    return in;
}

static void scatter(struct stress_worker *w, unsigned in, const struct stress_object *a, const struct stress_object *b)
{
    order(w, in, a->lane);
    order(w, in, b->lane);
}

static bool only_device(const struct stress_object *o)
{
    return !o->host;
}

/* With the function for these two kinds of memory, or with the generic one. */
static CUresult copy_bytes(struct stress_worker *w, const struct part *to, const struct part *from, unsigned in)
{
    CUdeviceptr dst = address_of(w, to), src = address_of(w, from);
    bool typed = stress_chance(&w->thread.random, 50), synchronous = in == STRESS_LEGACY_LANE && stress_chance(&w->thread.random, 50);
    CUstream stream = lane(w, in);
    size_t bytes = to->bytes;

    if (typed && only_device(to->object) && from->object->host) {
        const void *host = from->object->host + from->offset;

        return synchronous ? cuMemcpyHtoD(dst, host, bytes) : cuMemcpyHtoDAsync(dst, host, bytes, stream);
    }
    if (typed && only_device(from->object) && to->object->host) {
        void *host = to->object->host + to->offset;

        return synchronous ? cuMemcpyDtoH(host, src, bytes) : cuMemcpyDtoHAsync(host, src, bytes, stream);
    }
    if (typed && only_device(from->object) && only_device(to->object))
        return synchronous ? cuMemcpyDtoD(dst, src, bytes) : cuMemcpyDtoDAsync(dst, src, bytes, stream);
    return synchronous ? cuMemcpy(dst, src, bytes) : cuMemcpyAsync(dst, src, bytes, stream);
}

static void copy(struct stress_worker *w, struct stress_object *o)
{
    struct stress_object *other = stress_random_object(w);
    struct part to = random_part(w, o), from = random_part(w, other);
    unsigned in;

    to.bytes = from.bytes = to.bytes < from.bytes ? to.bytes : from.bytes;
    if (o == other && to.offset < from.offset + from.bytes && from.offset < to.offset + to.bytes)
        return; /* overlapping: the result is undefined in CUDA */
    in = gather(w, o, other);
    STRESS_OK(&w->thread, copy_bytes(w, &to, &from, in));
    memmove(model_of(&to), model_of(&from), to.bytes);
    scatter(w, in, o, other);
}

/* A box within an object. */
struct box {
    struct part part; /* from the base pointer that the call gets to the end */
    size_t x, y, z, pitch, height;
};

/* Returns false if the object is too small. */
static bool random_box(struct stress_worker *w, struct stress_object *o, size_t width, size_t height, size_t depth, struct box *out)
{
    struct stress_random *random = &w->thread.random;
    size_t span;

    *out =
        (struct box){.part = {.object = o}, .x = stress_number(random, 20), .y = stress_number(random, 3), .z = stress_number(random, 2)};
    out->pitch = out->x + width + stress_number(random, 30);
    out->height = out->y + height + stress_number(random, 3);
    span = ((out->z + depth - 1) * out->height + out->y + height - 1) * out->pitch + out->x + width;
    if (span > o->bytes)
        return false;
    out->part.offset = stress_number(random, o->bytes - span + 1);
    out->part.bytes = span;
    return true;
}

static size_t distance(const struct box *box, size_t slice, size_t row)
{
    return ((box->z + slice) * box->height + box->y + row) * box->pitch + box->x;
}

/* One side of the copy: the box in linear memory. */
static void set_source(struct stress_worker *w, CUDA_MEMCPY3D *copy, const struct box *from)
{
    copy->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy->srcDevice = address_of(w, &from->part);
    copy->srcXInBytes = from->x;
    copy->srcY = from->y;
    copy->srcZ = from->z;
    copy->srcPitch = from->pitch;
    copy->srcHeight = from->height;
}

static void set_destination(struct stress_worker *w, CUDA_MEMCPY3D *copy, const struct box *to)
{
    copy->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy->dstDevice = address_of(w, &to->part);
    copy->dstXInBytes = to->x;
    copy->dstY = to->y;
    copy->dstZ = to->z;
    copy->dstPitch = to->pitch;
    copy->dstHeight = to->height;
}

static void run_copy(struct stress_worker *w, const struct box *to, const struct box *from, CUDA_MEMCPY3D copy, unsigned in)
{
    set_source(w, &copy, from);
    set_destination(w, &copy, to);
    STRESS_OK(&w->thread, cuMemcpy3DAsync(&copy, lane(w, in)));
}

/* Through an array, which is destroyed while the copies may be in flight. */
static void run_copy_through_array(struct stress_worker *w, const struct box *to, const struct box *from, CUDA_MEMCPY3D copy, unsigned in)
{
    struct stress_thread *t = &w->thread;
    CUDA_MEMCPY3D first = copy, second = copy;
    CUarray array;

    STRESS_OK(t, cuArray3DCreate(&array, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = copy.WidthInBytes,
                                                                    .Height = copy.Height,
                                                                    .Depth = copy.Depth,
                                                                    .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                                                    .NumChannels = 1}));
    set_source(w, &first, from);
    first.dstMemoryType = second.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    first.dstArray = second.srcArray = array;
    set_destination(w, &second, to);
    STRESS_OK(t, cuMemcpy3DAsync(&first, lane(w, in)));
    STRESS_OK(t, cuMemcpy3DAsync(&second, lane(w, in)));
    STRESS_OK(t, cuArrayDestroy(array));
}

static void copy_box_by(struct stress_worker *w, struct stress_object *o,
                        void (*run)(struct stress_worker *w, const struct box *to, const struct box *from, CUDA_MEMCPY3D copy, unsigned in))
{
    struct stress_random *random = &w->thread.random;
    struct stress_object *other = stress_random_object(w);
    size_t width = 1 + stress_number(random, 300), height = 1 + stress_number(random, 20), depth = 1 + stress_number(random, 3);
    struct box to, from;
    unsigned in;

    if (o == other || !random_box(w, o, width, height, depth, &to) || !random_box(w, other, width, height, depth, &from))
        return;
    in = gather(w, o, other);
    run(w, &to, &from, (CUDA_MEMCPY3D){.WidthInBytes = width, .Height = height, .Depth = depth}, in);
    for (size_t slice = 0; slice < depth; slice++)
        for (size_t row = 0; row < height; row++)
            memcpy(model_of(&to.part) + distance(&to, slice, row), model_of(&from.part) + distance(&from, slice, row), width);
    scatter(w, in, o, other);
}

static void copy_box(struct stress_worker *w, struct stress_object *o)
{
    copy_box_by(w, o, run_copy);
}

static void copy_through_array(struct stress_worker *w, struct stress_object *o)
{
    copy_box_by(w, o, run_copy_through_array);
}

/* Copies into some objects from others, all with one source access order. Sources that may be read at once must be complete. */
static void copy_batch(struct stress_worker *w, struct stress_object *o)
{
    struct stress_thread *t = &w->thread;
    CUmemcpyAttributes attributes = {.srcAccessOrder = 1 + stress_number(&t->random, 3)};
    struct stress_object *source = stress_random_object(w);
    struct part parts[2][MAX_BATCH];
    CUdeviceptr dsts[MAX_BATCH], srcs[MAX_BATCH];
    size_t sizes[MAX_BATCH], first = 0, half = o->bytes / 2;
    unsigned in = STRESS_LEGACY_LANE + 1 + (unsigned)stress_number(&t->random, STRESS_LANES - 1);

    if (o == source || half == 0)
        return;
    for (unsigned i = 0; i < MAX_BATCH; i++) {
        struct part *to = &parts[0][i], *from = &parts[1][i];

        *from = random_part(w, source);
        *to = (struct part){o, i * half + stress_number(&t->random, half), 0};
        to->bytes = (i + 1) * half - to->offset;
        sizes[i] = to->bytes = from->bytes = to->bytes < from->bytes ? to->bytes : from->bytes;
        dsts[i] = address_of(w, to);
        srcs[i] = address_of(w, from);
    }
    if (attributes.srcAccessOrder != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
        STRESS_OK(t, cuStreamSynchronize(lane(w, source->lane)));
    order_work(w, o->lane, in);
    order_work(w, source->lane, in);
    STRESS_OK(t, cuMemcpyBatchAsync(dsts, srcs, sizes, MAX_BATCH, &attributes, &first, 1, lane(w, in)));
    for (unsigned i = 0; i < MAX_BATCH; i++)
        memcpy(model_of(&parts[0][i]), model_of(&parts[1][i]), sizes[i]);
    if (source->kind == STRESS_PAGEABLE) /* which may be read later, but is overwritten at once */
        STRESS_OK(t, cuStreamSynchronize(lane(w, in)));
    scatter(w, in, o, source);
}

static bool kernels_reach(const struct stress_worker *w, const struct stress_object *o)
{
    return w->thread.mix && o->kernels && o->device == w->thread.device;
}

static void launch(struct stress_worker *w, CUfunction function, void **params, unsigned count, unsigned in)
{
    STRESS_OK(&w->thread, cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, lane(w, in), params, NULL));
}

static void run_kernel(struct stress_worker *w, struct stress_object *o)
{
    struct part part = random_part(w, o);
    CUdeviceptr at = o->kernels + part.offset;
    unsigned count = part.bytes < 20000 ? (unsigned)part.bytes : 20000;

    if (!kernels_reach(w, o))
        return;
    launch(w, w->thread.mix, (void *[]){&at, &count}, count, o->lane);
    for (unsigned i = 0; i < count; i++)
        model_of(&part)[i] = (unsigned char)(model_of(&part)[i] * 3 + 1);
}

static void run_kernel_on_two(struct stress_worker *w, struct stress_object *o)
{
    struct stress_object *other = stress_random_object(w);
    struct part to = random_part(w, o), from = random_part(w, other);
    CUdeviceptr dst = o->kernels + to.offset, src = other->kernels + from.offset;
    unsigned count = (unsigned)(to.bytes < from.bytes ? to.bytes : from.bytes), in;

    if (o == other || !kernels_reach(w, o) || !kernels_reach(w, other))
        return;
    count = count < 20000 ? count : 20000;
    in = gather(w, o, other);
    launch(w, w->thread.add, (void *[]){&dst, &src, &count}, count, in);
    for (unsigned i = 0; i < count; i++)
        model_of(&to)[i] = (unsigned char)(model_of(&to)[i] + model_of(&from)[i]);
    scatter(w, in, o, other);
}

/* Queries the attributes of the memory. */
static void ask(struct stress_worker *w, struct stress_object *o)
{
    struct stress_thread *t = &w->thread;
    CUdeviceptr at = o->start + stress_number(&t->random, o->bytes), start = 0;
    size_t bytes = 0;

    if (o->kind == STRESS_PAGEABLE)
        return;
    STRESS_OK(t, cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at));
    STRESS_OK(t, cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
    if (start != o->start || bytes < o->bytes)
        stress_fail(t, "%s memory at 0x%llx + %zu is said to be 0x%llx + %zu", stress_kind_names[o->kind], (unsigned long long)o->start,
                    o->bytes, (unsigned long long)start, bytes);
}

/* Calls that must be rejected, and change nothing. */
static void err(struct stress_worker *w, struct stress_object *o)
{
    struct stress_thread *t = &w->thread;
    unsigned char byte = 0;

    if (o->kind == STRESS_PAGEABLE)
        return;
    if (o->bytes > 1) {
        STRESS_GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFree(o->start + 1));
        STRESS_GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)(o->start + 1)));
    }
    if (o->kind == STRESS_REGISTERED)
        STRESS_GIVES(t, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(o->host, 1, 0));
    STRESS_GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, &byte, 1));
    STRESS_GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD16(o->start | 1, 1, 1));
}

/* Creates a context, allocates memory and works on it, and destroys both. */
static void use_up_context(struct stress_worker *w, struct stress_object *o)
{
    struct stress_thread *t = &w->thread;
    CUdeviceptr device, managed;
    CUcontext context;
    CUstream stream;
    int has_managed;
    void *host;

    (void)o;
    STRESS_OK(t, cuDeviceGetAttribute(&has_managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, t->device));
    STRESS_OK(t, cuCtxCreate(&context, NULL, 0, t->device));
    STRESS_OK(t, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    STRESS_OK(t, cuMemAlloc(&device, 70000));
    if (has_managed)
        STRESS_OK(t, cuMemAllocManaged(&managed, 3000, CU_MEM_ATTACH_GLOBAL));
    else
        STRESS_OK(t, cuMemAlloc(&managed, 3000));
    STRESS_OK(t, cuMemAllocHost(&host, 70000));
    memset(host, 7, 70000);
    STRESS_OK(t, cuMemcpyHtoDAsync(device, host, 70000, stream));
    STRESS_OK(t, cuMemsetD8Async(device, 1, 60000, stream));
    STRESS_OK(t, cuMemcpyAsync(managed, device, 3000, stream));
    if (stress_chance(&t->random, 50))
        STRESS_OK(t, cuMemFree(device));
    STRESS_OK(t, cuCtxDestroy(context));
    STRESS_OK(t, cuCtxSetCurrent(t->context));
}

static void wait_for_all(struct stress_worker *w, struct stress_object *o)
{
    CUresult r = cuStreamQuery(lane(w, o->lane));

    if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
        stress_fail(&w->thread, "cuStreamQuery: %d", (int)r);
    STRESS_OK(&w->thread, cuCtxSynchronize());
}

static void add_object(struct stress_worker *w)
{
    if (w->n_objects < STRESS_MAX_OBJECTS)
        w->objects[w->n_objects++] = stress_make(&w->thread);
}

void stress_take_object(struct stress_worker *w, struct stress_object *o)
{
    for (unsigned i = 0; i < w->n_objects; i++)
        if (w->objects[i] == o)
            w->objects[i] = w->objects[--w->n_objects];
}

static void make(struct stress_worker *w, struct stress_object *o)
{
    (void)o;
    add_object(w);
}

void stress_destroy(struct stress_worker *w, struct stress_object *o)
{
    if (stress_chance(&w->thread.random, 50))
        check_all(w, o);
    stress_take_object(w, o);
    stress_free(&w->thread, o);
}

static const struct {
    const char *name;
    void (*work)(struct stress_worker *worker, struct stress_object *object);
    unsigned weight; /* per thousand */
} table[] = {
    {"make", make, 180},
    {"free", stress_destroy, 140},
    {"fill", fill, 130},
    {"copy", copy, 180},
    {"copy a batch", copy_batch, 20},
    {"copy a box", copy_box, 65},
    {"copy through an array", copy_through_array, 15},
    {"kernel", run_kernel, 60},
    {"kernel on two", run_kernel_on_two, 40},
    {"check", check, 80},
    {"host writes", host_writes, 40},
    {"ask", ask, 20},
    {"refused calls", err, 15},
    {"wait", wait_for_all, 13},
    {"context", use_up_context, 2},
};

void stress_operate(struct stress_worker *w)
{
    struct stress_thread *t = &w->thread;
    unsigned drawn = (unsigned)stress_number(&t->random, 1000), row = 0;
    struct stress_object *o;

    if (w->n_objects == 0)
        add_object(w);
    o = stress_random_object(w);
    while (drawn >= table[row].weight)
        drawn -= table[row++].weight;
    t->doing = table[row].name;
    t->operation++;
    if (stress_trace)
        fprintf(stderr, "%u:%u %s %s 0x%llx + %zu\n", t->number, t->operation, t->doing, stress_kind_names[o->kind],
                (unsigned long long)o->start, o->bytes);
    table[row].work(w, o);
}
