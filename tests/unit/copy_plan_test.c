/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a copy for given properties (CUDA Driver API, "API synchronization behavior", and cuMemcpyBatchAsync). */
#include "../api/api_test.h"

#include "core/copy/copy_plan.h"

#define P CT_END_PAGEABLE
#define H CT_END_HOST
#define D CT_END_DEVICE
#define SYNC CT_COPY_SYNC
#define ASYNC CT_COPY_ASYNC
#define MIB ((uint64_t)1 << 20)

struct row {
    const char *what;
    struct ct_copy_facts facts;
    struct ct_copy_plan plan;
};

/* GPUs: the host copies only if source and destination are pageable. */
static const struct row on_gpus[] = {
    {"to the device", {D, P, SYNC, .bytes = 64}, {.method = CT_COPY_METHOD_UPLOAD, .waits = true}},
    {"to the device, asynchronously", {D, P, ASYNC, .bytes = 64}, {.method = CT_COPY_METHOD_UPLOAD}},
    {"from the device", {P, D, SYNC, .bytes = 64}, {.method = CT_COPY_METHOD_DOWNLOAD, .waits = true}},
    {"from the device, asynchronously", {P, D, ASYNC, .bytes = 64}, {.method = CT_COPY_METHOD_DOWNLOAD, .waits = true}},
    {"within the device", {D, D, SYNC, .bytes = 64}, {.method = CT_COPY_METHOD_QUEUE}},
    {"within the device, synchronous memory",
     {D, D, SYNC, .bytes = 64, .synchronous = true},
     {.method = CT_COPY_METHOD_QUEUE, .waits = true}},
    {"the same, asynchronously", {D, D, ASYNC, .bytes = 64, .synchronous = true}, {.method = CT_COPY_METHOD_QUEUE}},
    {"within the device by a kernel", {D, D, SYNC, .bytes = 64 * MIB, .by_kernel = true}, {.method = CT_COPY_METHOD_KERNEL}},
    {"overlapping", {D, D, SYNC, .bytes = 64, .queue_refuses = true}, {.method = CT_COPY_METHOD_STAGED}},
    {"from page-locked memory", {D, H, SYNC, .bytes = 64}, {.method = CT_COPY_METHOD_QUEUE, .waits = true}},
    {"from page-locked memory, asynchronously", {D, H, ASYNC, .bytes = 64}, {.method = CT_COPY_METHOD_QUEUE}},
    {"to page-locked memory", {H, D, SYNC, .bytes = 64}, {.method = CT_COPY_METHOD_QUEUE, .waits = true}},
    {"pageable to page-locked", {H, P, SYNC, .bytes = 64, .host_reaches = true}, {.method = CT_COPY_METHOD_UPLOAD, .waits = true}},
    {"page-locked to pageable", {P, H, SYNC, .bytes = 64, .host_reaches = true}, {.method = CT_COPY_METHOD_DOWNLOAD, .waits = true}},
    {"pageable to pageable",
     {P, P, ASYNC, .bytes = 64, .host_reaches = true},
     {.method = CT_COPY_METHOD_HOST, .host_if_idle = true, .waits = true}},
    {"of another device", {D, D, ASYNC, .bytes = 64, .foreign = true}, {.method = CT_COPY_METHOD_BETWEEN_DEVICES}},
    {"from another device to pageable",
     {P, D, ASYNC, .bytes = 64, .foreign = true},
     {.method = CT_COPY_METHOD_BETWEEN_DEVICES, .waits = true}},
};

/* CPU devices: the host has pointers to all memory, and copies as fast as the device. */
#define CPU .host_reaches = true, .host_is_fast = true
static const struct row on_cpus[] = {
    {"to the device", {D, P, SYNC, .bytes = 64, CPU}, {.method = CT_COPY_METHOD_HOST, .host_if_idle = true, .waits = true}},
    {"to the device, asynchronously", {D, P, ASYNC, .bytes = 64 * MIB, CPU}, {.method = CT_COPY_METHOD_UPLOAD, .host_if_idle = true}},
    {"from the device", {P, D, SYNC, .bytes = 64, CPU}, {.method = CT_COPY_METHOD_HOST, .host_if_idle = true, .waits = true}},
    {"from page-locked memory", {D, H, SYNC, .bytes = 64, CPU}, {.method = CT_COPY_METHOD_HOST, .host_if_idle = true, .waits = true}},
    {"the same, asynchronously", {D, H, ASYNC, .bytes = 4 * MIB, CPU}, {.method = CT_COPY_METHOD_QUEUE, .host_if_idle = true}},
    {"the same, and much", {D, H, ASYNC, .bytes = 4 * MIB + 1, CPU}, {.method = CT_COPY_METHOD_QUEUE}},
    {"within the device", {D, D, SYNC, .bytes = 64, CPU}, {.method = CT_COPY_METHOD_QUEUE, .host_if_idle = true}},
    {"a level of an image, to which there is no pointer",
     {D, P, ASYNC, .bytes = 64, .host_is_fast = true},
     {.method = CT_COPY_METHOD_UPLOAD}},
};

/* Batches specify when the source is read. */
static const struct row in_batches[] = {
    {"pageable, in order", {D, P, ASYNC, .source = CT_SOURCE_IN_ORDER, .bytes = 64 * MIB}, {.method = CT_COPY_METHOD_UPLOAD_IN_ORDER}},
    {"the same, and much",
     {D, P, ASYNC, .source = CT_SOURCE_IN_ORDER, .bytes = 64 * MIB + 1},
     {.method = CT_COPY_METHOD_UPLOAD, .drains = true}},
    {"page-locked, in order", {D, H, ASYNC, .source = CT_SOURCE_IN_ORDER, .bytes = 128 * MIB}, {.method = CT_COPY_METHOD_QUEUE}},
    {"pageable, at the call", {D, P, ASYNC, .source = CT_SOURCE_AT_CALL, .bytes = 64}, {.method = CT_COPY_METHOD_UPLOAD}},
    {"device memory, at the call",
     {D, D, ASYNC, .source = CT_SOURCE_AT_CALL, .bytes = 64},
     {.method = CT_COPY_METHOD_QUEUE, .waits = true}},
    {"pageable, in order, of another device",
     {D, P, ASYNC, .source = CT_SOURCE_IN_ORDER, .bytes = 64, .foreign = true},
     {.method = CT_COPY_METHOD_BETWEEN_DEVICES}},
};

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ct_copy_plan plan = ct_copy_plan(&rows[i].facts), *wanted = &rows[i].plan;

        if (plan.method != wanted->method || plan.drains != wanted->drains || plan.host_if_idle != wanted->host_if_idle ||
            plan.waits != wanted->waits)
            fail_msg("%s: method %d, drains %d, host if idle %d, waits %d", rows[i].what, (int)plan.method, plan.drains, plan.host_if_idle,
                     plan.waits);
    }
}

static void test_gpus(void **state)
{
    (void)state;
    check(on_gpus, sizeof on_gpus / sizeof *on_gpus);
}

static void test_cpus(void **state)
{
    (void)state;
    check(on_cpus, sizeof on_cpus / sizeof *on_cpus);
}

static void test_batches(void **state)
{
    (void)state;
    check(in_batches, sizeof in_batches / sizeof *in_batches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_batches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
