/* SPDX-License-Identifier: Apache-2.0 */
#include "device_work.h"

#include <stdlib.h>
#include <string.h>

#define TRACE_WORK_COPY (TRACE_WORK_FILL + 1) /* in the table: to be found out */

enum bytes_rule { BYTES_NONE, BYTES_COUNT, BYTES_FILL, BYTES_SHAPE, BYTES_BATCH };

struct device_work {
    const char *base_name;
    unsigned kind;
    enum bytes_rule bytes;
};

static const struct device_work rows[] = {
#define WORK(name, kind, bytes) {#name, TRACE_WORK_##kind, BYTES_##bytes},
#include "device_work.def"
};

const struct device_work *device_work_find(const char *base_name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].base_name, base_name))
            return &rows[i];
    return NULL;
}

/* Products of what a program passes; a driver refuses what does not fit. */
static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result;

    return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

static uint64_t filled_bytes(const struct forward_call *call)
{
    const uint64_t element_bytes = strtoul(strrchr(call->plan->base_name, 'D') + 1, NULL, 10) / 8; /* cuMemsetD2D16Async */
    uint64_t n, width, height;

    if (forward_number(call, "N", &n))
        return product(n, element_bytes);
    return forward_number(call, "Width", &width) && forward_number(call, "Height", &height) ? product(product(width, height), element_bytes)
                                                                                            : 0;
}

static uint64_t copied_bytes(const struct forward_call *call)
{
    uint64_t bytes, height = 1, depth = 1;

    if (forward_number(call, "ByteCount", &bytes))
        return bytes;
    if (!forward_number(call, "WidthInBytes", &bytes))
        return 0;
    forward_number(call, "Height", &height);
    forward_number(call, "Depth", &depth);
    return product(product(bytes, height), depth);
}

static uint64_t batch_bytes(const struct forward_call *call)
{
    const size_t *sizes = (const size_t *)forward_argument(call, "sizes"); /* the driver is going to read them, too */
    const uint64_t count = forward_argument(call, "count");
    uint64_t sum = 0;

    for (uint64_t i = 0; sizes && i < count; i++)
        sum += sizes[i];
    return sum;
}

static bool is_device_pointer(uint64_t pointer)
{
    CUmemorytype type = 0;

    return DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
}

/* Whether an end of a copy is on a device; `type` and `pointer` name members of a struct. */
static bool is_end_on_device(const struct forward_call *call, const char *type, const char *pointer)
{
    uint64_t memory_type = CU_MEMORYTYPE_UNIFIED, address = 0;

    forward_number(call, type, &memory_type);
    if (memory_type != CU_MEMORYTYPE_UNIFIED)
        return memory_type != CU_MEMORYTYPE_HOST;
    return forward_number(call, pointer, &address) && is_device_pointer(address);
}

static enum trace_work_kind copy_kind(const struct forward_call *call)
{
    const bool is_shaped = call->plan->work->bytes == BYTES_SHAPE;
    bool from, to;

    if (call->plan->work->bytes == BYTES_BATCH || call->plan->work->bytes == BYTES_NONE)
        return TRACE_WORK_DEVICE_TO_DEVICE; /* of any kinds */
    from = is_end_on_device(call, "srcMemoryType", is_shaped ? "srcDevice" : "src");
    to = is_end_on_device(call, "dstMemoryType", is_shaped ? "dstDevice" : "dst");
    return from ? (to ? TRACE_WORK_DEVICE_TO_DEVICE : TRACE_WORK_DEVICE_TO_HOST)
                : (to ? TRACE_WORK_HOST_TO_DEVICE : TRACE_WORK_HOST_TO_HOST);
}

static uint64_t size_of_work(const struct forward_call *call)
{
    switch (call->plan->work->bytes) {
    case BYTES_NONE:
        break;
    case BYTES_COUNT:
    case BYTES_SHAPE:
        return copied_bytes(call);
    case BYTES_FILL:
        return filled_bytes(call);
    case BYTES_BATCH:
        return batch_bytes(call);
    }
    return 0;
}

void device_work_describe(const struct forward_call *call, struct trace_work *out)
{
    uint64_t stream = 0;

    forward_number(call, "hStream", &stream);
    if (!stream)
        stream = (uint64_t)(uintptr_t)(call->plan->is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
    *out = (struct trace_work){.kind = call->plan->work->kind, .stream = stream, .size_bytes = size_of_work(call)};
    if (out->kind == TRACE_WORK_COPY)
        out->kind = copy_kind(call);
}
