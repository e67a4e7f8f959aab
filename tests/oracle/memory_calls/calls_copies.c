/* SPDX-License-Identifier: Apache-2.0 */
/* Linear copies, fills, and attributes of pointers. */
#include "rows.h"

#include <string.h>

/* ---- copies ---- */

/* An address that the host reads or writes: in an area, or in page-locked memory with enough room. NVIDIA's driver does not validate such
 * pointers. */
static struct calls_place host_side(struct calls *c)
{
    if (calls_chance(c, 40)) {
        const struct calls_place p = calls_place(c, CALLS_BY_HOST, CALLS_SAFE);

        if (p.room >= 128 * CALLS_KIB)
            return p;
    }
    return calls_host_place(c, calls_chance(c, 75) ? CALLS_HEAP : CALLS_WINDOW);
}

static struct calls_place device_side(struct calls *c)
{
    return calls_place(c, CALLS_BY_DEVICE, calls_chance(c, 30) ? CALLS_ANYTHING : calls_chance(c, 25) ? CALLS_EDGES : CALLS_SAFE);
}

/* For both sides; a size that is too large for one object is too large for a device's object as well. */
static size_t bytes_between(struct calls *c, const struct calls_place *device, size_t most)
{
    const size_t n = calls_bytes(c, device->room);

    return n < most ? n : most;
}

/* The result of a copy between overlapping ranges is unspecified. */
static size_t apart(uint64_t a, uint64_t b, size_t n)
{
    const uint64_t distance = a < b ? b - a : a - b;

    return distance && distance < n ? (size_t)distance : n;
}

static void *host(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

void calls_copy_up(struct calls *c)
{
    const struct calls_place to = device_side(c), from = host_side(c);
    const size_t n = apart(to.at, from.at, bytes_between(c, &to, 64 * CALLS_KIB));
    const bool waits = calls_chance(c, 50);
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuMemcpyHtoD%s(%s, %s, %zu%s%s", waits ? "" : "Async", to.text, from.text, n, waits ? "" : ", ",
                waits ? "" : calls_stream_name(c, stream));
    if (calls_result(c, waits ? cuMemcpyHtoD(to.at, host(from.at), n) : cuMemcpyHtoDAsync(to.at, host(from.at), n, stream))) {
        calls_wait(c, waits ? NULL : stream);
        calls_append_contents(c, to.at, n);
    }
    calls_line(c);
}

void calls_copy_down(struct calls *c)
{
    const struct calls_place to = host_side(c), from = device_side(c);
    const size_t n = apart(to.at, from.at, bytes_between(c, &from, 64 * CALLS_KIB));
    const bool waits = calls_chance(c, 50);
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuMemcpyDtoH%s(%s, %s, %zu%s%s", waits ? "" : "Async", to.text, from.text, n, waits ? "" : ", ",
                waits ? "" : calls_stream_name(c, stream));
    if (calls_result(c, waits ? cuMemcpyDtoH(host(to.at), from.at, n) : cuMemcpyDtoHAsync(host(to.at), from.at, n, stream))) {
        calls_wait(c, waits ? NULL : stream);
        calls_append_host_contents(c, host(to.at), n);
    }
    calls_line(c);
}

void calls_copy_across(struct calls *c)
{
    const struct calls_place to = device_side(c), from = device_side(c);
    const size_t n = apart(to.at, from.at, bytes_between(c, calls_chance(c, 80) && from.room < to.room ? &from : &to, 64 * CALLS_MIB));
    const unsigned how = (unsigned)calls_number(c, 4);
    const CUstream stream = calls_stream(c);
    const unsigned a = (unsigned)calls_number(c, 2), b = (unsigned)calls_number(c, 2);
    CUresult r;

    calls_begin(c, "%s%s(%s, %s%s, %s, %zu%s%s", how < 2 ? "cuMemcpyDtoD" : "cuMemcpyPeer", how & 1 ? "Async" : "", to.text,
                how < 2 ? ""
                : a     ? "second, "
                        : "primary, ",
                from.text,
                how < 2 ? ""
                : b     ? "second"
                        : "primary",
                n, how & 1 ? ", " : "", how & 1 ? calls_stream_name(c, stream) : "");
    if (how == 0)
        r = cuMemcpyDtoD(to.at, from.at, n);
    else if (how == 1)
        r = cuMemcpyDtoDAsync(to.at, from.at, n, stream);
    else if (how == 2)
        r = cuMemcpyPeer(to.at, c->contexts[a], from.at, c->contexts[b], n);
    else
        r = cuMemcpyPeerAsync(to.at, c->contexts[a], from.at, c->contexts[b], n, stream);
    if (calls_result(c, r)) {
        calls_wait(c, how & 1 ? stream : NULL);
        if (how & 1 ? true : cuStreamSynchronize(NULL) == CUDA_SUCCESS)
            calls_append_contents(c, to.at, n);
    }
    calls_line(c);
}

/* Copies by addresses alone. Unknown addresses count as host memory, so the places are valid, and within one object. */
void calls_copy_any(struct calls *c)
{
    const struct calls_place one = host_side(c), other = calls_place(c, CALLS_BY_DEVICE, CALLS_SAFE);
    const bool up = calls_chance(c, 50), waits = calls_chance(c, 50);
    const struct calls_place *to = up ? &other : &one, *from = up ? &one : &other;
    const size_t some = calls_bytes(c, other.room), most = other.room < 64 * CALLS_KIB ? other.room : 64 * CALLS_KIB,
                 n = apart(to->at, from->at, some < most ? some : most);
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuMemcpy%s(%s, %s, %zu%s%s", waits ? "" : "Async", to->text, from->text, n, waits ? "" : ", ",
                waits ? "" : calls_stream_name(c, stream));
    if (calls_result(c, waits ? cuMemcpy(to->at, from->at, n) : cuMemcpyAsync(to->at, from->at, n, stream))) {
        calls_wait(c, waits ? NULL : stream);
        if (up)
            calls_append_contents(c, to->at, n);
        else
            calls_append_host_contents(c, host(to->at), n);
    }
    calls_line(c);
}

void calls_copy_batch(struct calls *c)
{
    const struct calls_place to = calls_place(c, CALLS_BY_DEVICE, CALLS_SAFE), from = host_side(c);
    CUdeviceptr targets[2] = {to.at, to.at}, sources[2] = {from.at, from.at};
    const size_t n = to.room < 4096 ? to.room : 4096, count = CALLS_PICK(c, 1, 1, 2, 2, 0), attributes = CALLS_PICK(c, 1, 1, 1, 2, 0);
    size_t sizes[2] = {n, calls_chance(c, 85) ? n / 2 : 0}, firsts[2] = {calls_chance(c, 90) ? 0 : 1, CALLS_PICK(c, 1, 1, 0, 2)};
    CUmemcpyAttributes how[2] = {{.srcAccessOrder = (CUmemcpySrcAccessOrder)CALLS_PICK(c, 1, 1, 2, 3, 0, 4)},
                                 {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
    const CUstream stream = calls_stream(c);

    calls_begin(c, "cuMemcpyBatchAsync(%s, %s, %zu and %zu, count %zu, attributes %zu from %zu and %zu, order %d, %s", to.text, from.text,
                sizes[0], sizes[1], count, attributes, firsts[0], firsts[1], (int)how[0].srcAccessOrder, calls_stream_name(c, stream));
    if (calls_result(c, cuMemcpyBatchAsync(targets, sources, sizes, count, how, firsts, attributes, stream))) {
        calls_wait(c, stream);
        calls_append_contents(c, to.at, n);
    }
    calls_line(c);
}

/* ---- fills ---- */
void calls_set(struct calls *c)
{
    const struct calls_place p = device_side(c);
    const unsigned bytes = 1U << calls_number(c, 3);
    const bool waits = calls_chance(c, 50);
    const size_t n = calls_bytes(c, p.room) / bytes;
    const CUstream stream = calls_stream(c);
    CUresult r;

    calls_begin(c, "cuMemsetD%u%s(%s, 0x81828384, %zu%s%s", 8 * bytes, waits ? "" : "Async", p.text, n, waits ? "" : ", ",
                waits ? "" : calls_stream_name(c, stream));
    if (bytes == 1)
        r = waits ? cuMemsetD8(p.at, 0x84, n) : cuMemsetD8Async(p.at, 0x84, n, stream);
    else if (bytes == 2)
        r = waits ? cuMemsetD16(p.at, 0x8384, n) : cuMemsetD16Async(p.at, 0x8384, n, stream);
    else
        r = waits ? cuMemsetD32(p.at, 0x81828384, n) : cuMemsetD32Async(p.at, 0x81828384, n, stream);
    if (calls_result(c, r)) {
        calls_wait(c, waits ? NULL : stream);
        calls_append_contents(c, p.at, n * bytes);
    }
    calls_line(c);
}

void calls_set_rows(struct calls *c)
{
    const struct calls_place p = device_side(c);
    const unsigned bytes = 1U << calls_number(c, 3);
    const bool waits = calls_chance(c, 50);
    const size_t width = CALLS_PICK(c, 0, 1, 3, 16, 64, 100), height = CALLS_PICK(c, 0, 1, 2, 5, 16);
    const size_t pitch = CALLS_PICK(c, 0, width, width * bytes, width * bytes, width * bytes + 1, 256, 512, 512);
    const CUstream stream = calls_stream(c);
    CUresult r;

    calls_begin(c, "cuMemsetD2D%u%s(%s, pitch %zu, 0x81828384, %zu, %zu%s%s", 8 * bytes, waits ? "" : "Async", p.text, pitch, width, height,
                waits ? "" : ", ", waits ? "" : calls_stream_name(c, stream));
    if (bytes == 1)
        r = waits ? cuMemsetD2D8(p.at, pitch, 0x84, width, height) : cuMemsetD2D8Async(p.at, pitch, 0x84, width, height, stream);
    else if (bytes == 2)
        r = waits ? cuMemsetD2D16(p.at, pitch, 0x8384, width, height) : cuMemsetD2D16Async(p.at, pitch, 0x8384, width, height, stream);
    else
        r = waits ? cuMemsetD2D32(p.at, pitch, 0x81828384, width, height)
                  : cuMemsetD2D32Async(p.at, pitch, 0x81828384, width, height, stream);
    if (calls_result(c, r)) {
        calls_wait(c, waits ? NULL : stream);
        if (height && width)
            calls_append_contents(c, p.at, pitch * (height - 1) + width * bytes);
    }
    calls_line(c);
}

/* ---- attributes of pointers ---- */
enum meaning { NUMBER_4, NUMBER_8, NUMBER_1, ADDRESS, CONTEXT, ID, POOL, NOTHING }; /* ID: only whether it is 0 */

static const struct {
    const char *name;
    enum meaning meaning;
} attributes[] = {
    [CU_POINTER_ATTRIBUTE_CONTEXT] = {"CONTEXT", CONTEXT},
    [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = {"MEMORY_TYPE", NUMBER_4},
    [CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = {"DEVICE_POINTER", ADDRESS},
    [CU_POINTER_ATTRIBUTE_HOST_POINTER] = {"HOST_POINTER", ADDRESS},
    [CU_POINTER_ATTRIBUTE_P2P_TOKENS] = {"P2P_TOKENS", NOTHING},
    [CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = {"SYNC_MEMOPS", NUMBER_1},
    [CU_POINTER_ATTRIBUTE_BUFFER_ID] = {"BUFFER_ID", ID},
    [CU_POINTER_ATTRIBUTE_IS_MANAGED] = {"IS_MANAGED", NUMBER_1},
    [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = {"DEVICE_ORDINAL", NUMBER_4},
    [CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = {"IS_LEGACY_CUDA_IPC_CAPABLE", NUMBER_1},
    [CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = {"RANGE_START_ADDR", ADDRESS},
    [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = {"RANGE_SIZE", NUMBER_8},
    [CU_POINTER_ATTRIBUTE_MAPPED] = {"MAPPED", NUMBER_1},
    [CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = {"ALLOWED_HANDLE_TYPES", NUMBER_8},
    [CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = {"IS_GPU_DIRECT_RDMA_CAPABLE", NUMBER_1},
    [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = {"ACCESS_FLAGS", NUMBER_4},
    [CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = {"MEMPOOL_HANDLE", POOL},
    [CU_POINTER_ATTRIBUTE_MAPPING_SIZE] = {"MAPPING_SIZE", NUMBER_8},
    [CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR] = {"MAPPING_BASE_ADDR", ADDRESS},
    [CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID] = {"MEMORY_BLOCK_ID", ID},
    [CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE] = {"IS_HW_DECOMPRESS_CAPABLE", NUMBER_1},
};
#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

union value {
    uint64_t number;
    CUcontext context;
    CUmemoryPool pool;
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    unsigned char bytes[32];
};

static const union value unwritten = {.bytes = {[0 ... 31] = 0x77}};

static uint64_t of_bytes(const union value *v, unsigned bytes)
{
    return bytes == 8 ? v->number : v->number & (((uint64_t)1 << 8 * bytes) - 1);
}

static void say_value(struct calls *c, unsigned attribute, const union value *v)
{
    const char *name = attributes[attribute].name;
    CUmemoryPool of_all = NULL;

    if (memcmp(v, &unwritten, 4) == 0) {
        calls_append(c, " %s unwritten", name);
        return;
    }
    switch (attributes[attribute].meaning) {
    case NUMBER_1:
        calls_append(c, " %s=%u", name, (unsigned)of_bytes(v, 1));
        return;
    case NUMBER_4:
        calls_append(c, " %s=%d", name, (int)of_bytes(v, 4));
        return;
    case NUMBER_8:
        calls_append(c, " %s=%llu", name, (unsigned long long)v->number);
        return;
    case ADDRESS:
        calls_append_address(c, name, v->number);
        return;
    case CONTEXT:
        calls_append_context(c, name, v->context);
        return;
    case ID:
        calls_append(c, " %s%s", name, v->number ? "" : "=0");
        return;
    case POOL:
        if (v->pool && cuDeviceGetDefaultMemPool(&of_all, 0) == CUDA_SUCCESS && of_all == v->pool)
            calls_append(c, " %s=default", name);
        else
            calls_append_handle(c, name, CALLS_POOL, (uintptr_t)v->pool);
        return;
    case NOTHING:
        return;
    }
}

static unsigned some_attribute(struct calls *c)
{
    return calls_chance(c, 97) ? 1 + (unsigned)calls_number(c, ATTRIBUTES - 1) : (unsigned)CALLS_PICK(c, 0, ATTRIBUTES, 99);
}

static const char *attribute_name(unsigned attribute)
{
    return attribute && attribute < ATTRIBUTES ? attributes[attribute].name : "(none)";
}

void calls_pointer_get(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_ADDRESSED, CALLS_ANYTHING);
    const unsigned attribute = some_attribute(c);
    union value v = unwritten;

    calls_begin(c, "cuPointerGetAttribute(%s, %s", attribute_name(attribute), p.text);
    if (calls_result(c, cuPointerGetAttribute(&v, (CUpointer_attribute)attribute, p.at)) && attribute && attribute < ATTRIBUTES)
        say_value(c, attribute, &v);
    calls_line(c);
}

void calls_pointer_get_many(struct calls *c)
{
    enum { MOST = 4 };
    const struct calls_place p = calls_place(c, CALLS_ADDRESSED, CALLS_ANYTHING);
    const unsigned count = (unsigned)CALLS_PICK(c, 1, 2, 3, 4, 0);
    CUpointer_attribute list[MOST];
    union value values[MOST] = {unwritten, unwritten, unwritten, unwritten};
    void *to[MOST];
    char text[200] = "";

    for (unsigned i = 0; i < MOST; i++) {
        list[i] = (CUpointer_attribute)some_attribute(c), to[i] = &values[i];
        if (i < count)
            strcat(strcat(text, attribute_name(list[i])), " ");
    }
    calls_begin(c, "cuPointerGetAttributes(%u, %s, %s", count, text, p.text);
    if (calls_result(c, cuPointerGetAttributes(count, list, to, p.at)))
        for (unsigned i = 0; i < count; i++)
            if (list[i] && list[i] < ATTRIBUTES)
                say_value(c, list[i], &values[i]);
    calls_line(c);
}

void calls_pointer_set(struct calls *c)
{
    const struct calls_place p = calls_place(c, CALLS_ADDRESSED, CALLS_ANYTHING);
    const unsigned attribute = calls_chance(c, 85) ? CU_POINTER_ATTRIBUTE_SYNC_MEMOPS : some_attribute(c);
    const unsigned value = (unsigned)calls_number(c, 3);

    calls_begin(c, "cuPointerSetAttribute(%u, %s, %s", value, attribute_name(attribute), p.text);
    calls_end(c, cuPointerSetAttribute(&value, (CUpointer_attribute)attribute, p.at));
}
