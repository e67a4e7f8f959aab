/* SPDX-License-Identifier: Apache-2.0 */
/* The stress test's memory: allocation and freeing of each kind. */
#include "stress.h"

#include "../../splitmix.h"

#include <stdlib.h>
#include <string.h>

const char *const stress_kind_names[STRESS_KINDS] = {
    [STRESS_DEVICE] = "device",   [STRESS_PITCHED] = "pitched",       [STRESS_POOL] = "pool",       [STRESS_HOST] = "host",
    [STRESS_MANAGED] = "managed", [STRESS_REGISTERED] = "registered", [STRESS_VIRTUAL] = "virtual", [STRESS_PAGEABLE] = "pageable",
};

uint64_t stress_number(struct stress_random *random, uint64_t below)
{
    return splitmix_next(&random->state) % below;
}

bool stress_chance(struct stress_random *random, unsigned percent)
{
    return stress_number(random, 100) < percent;
}

/* Mostly small, sometimes larger than the allocations that share a chunk. */
static size_t random_size(struct stress_random *random)
{
    static const size_t limits[] = {64, 4096, 4096, 70000, 70000, 600000, 1500000};

    return 1 + stress_number(random, limits[stress_number(random, sizeof limits / sizeof *limits)]);
}

/* ---- each kind ---- */

static void make_device(struct stress_thread *t, struct stress_object *o)
{
    o->bytes = random_size(&t->random);
    STRESS_OK(t, cuMemAlloc(&o->start, o->bytes));
    o->kernels = o->start;
}

static void make_pitched(struct stress_thread *t, struct stress_object *o)
{
    size_t width = 1 + stress_number(&t->random, 1500), height = 1 + stress_number(&t->random, 100), pitch = 0;

    STRESS_OK(t, cuMemAllocPitch(&o->start, &pitch, width, height, 4u << stress_number(&t->random, 3)));
    if (pitch < width)
        stress_fail(t, "a pitch of %zu for rows of %zu", pitch, width);
    o->bytes = pitch * height;
    o->kernels = o->start;
}

static void make_pool(struct stress_thread *t, struct stress_object *o)
{
    o->bytes = random_size(&t->random);
    if (stress_chance(&t->random, 50))
        STRESS_OK(t, cuMemAllocAsync(&o->start, o->bytes, t->lanes[o->lane]));
    else
        STRESS_OK(t, cuMemAllocFromPoolAsync(&o->start, o->bytes, t->pool, t->lanes[o->lane]));
    o->kernels = o->start;
}

static void make_host(struct stress_thread *t, struct stress_object *o)
{
    void *host = NULL;

    o->bytes = random_size(&t->random);
    STRESS_OK(t, cuMemHostAlloc(&host, o->bytes, (unsigned)stress_number(&t->random, 8)));
    o->host = host;
    STRESS_OK(t, cuMemHostGetDevicePointer(&o->kernels, host, 0));
    o->start = stress_chance(&t->random, 50) ? o->kernels : (CUdeviceptr)(uintptr_t)host;
}

static void make_registered(struct stress_thread *t, struct stress_object *o)
{
    size_t skip = stress_number(&t->random, 5000);

    o->bytes = random_size(&t->random);
    o->pages = malloc(skip + o->bytes + 8192); /* no other registration overlaps these pages */
    if (!o->pages)
        stress_fail(t, "out of memory");
    o->host = (unsigned char *)(((uintptr_t)o->pages + 4095) & ~(uintptr_t)4095) + skip % 4096;
    STRESS_OK(t, cuMemHostRegister(o->host, o->bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    STRESS_OK(t, cuMemHostGetDevicePointer(&o->kernels, o->host, 0));
    o->start = (CUdeviceptr)(uintptr_t)o->host;
}

static void make_managed(struct stress_thread *t, struct stress_object *o)
{
    o->bytes = random_size(&t->random);
    STRESS_OK(t, cuMemAllocManaged(&o->start, o->bytes, CU_MEM_ATTACH_GLOBAL));
    o->host = (unsigned char *)(uintptr_t)o->start;
    o->kernels = o->start;
}

static void make_pageable(struct stress_thread *t, struct stress_object *o)
{
    o->bytes = random_size(&t->random);
    o->pages = malloc(o->bytes);
    if (!o->pages)
        stress_fail(t, "out of memory");
    o->host = o->pages;
    o->start = (CUdeviceptr)(uintptr_t)o->pages;
}

static CUdeviceptr map_all(struct stress_thread *t, const CUmemGenericAllocationHandle *handles, unsigned count, size_t each)
{
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr start;

    STRESS_OK(t, cuMemAddressReserve(&start, count * each, 0, 0, 0));
    for (unsigned i = 0; i < count; i++)
        STRESS_OK(t, cuMemMap(start + i * each, each, 0, handles[i], 0));
    STRESS_OK(t, cuMemSetAccess(start, count * each, &access, 1));
    return start;
}

static void make_virtual(struct stress_thread *t, struct stress_object *o)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device}};
    unsigned count = 1 + (unsigned)stress_number(&t->random, 2);
    CUmemGenericAllocationHandle handles[2];
    size_t each = 0;

    STRESS_OK(t, cuMemGetAllocationGranularity(&each, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    for (unsigned i = 0; i < count; i++)
        STRESS_OK(t, cuMemCreate(&handles[i], each, &properties, 0));
    o->bytes = count * each;
    o->start = o->kernels = map_all(t, handles, count, each);
    o->alias = stress_chance(&t->random, 50) ? map_all(t, handles, count, each) : 0;
    for (unsigned i = 0; i < count; i++)
        STRESS_OK(t, cuMemRelease(handles[i]));
}

/* Sometimes the host waits first, and sometimes it leaves the wait to the call. */
static void settle(struct stress_thread *t, const struct stress_object *o, unsigned percent)
{
    if (stress_chance(&t->random, percent))
        STRESS_OK(t, cuStreamSynchronize(t->lanes[o->lane]));
}

/* cuMemFree waits for the work of the memory's context, which may differ from the context of its stream. */
static void free_device(struct stress_thread *t, struct stress_object *o)
{
    settle(t, o, o->context == t->context ? 30 : 100);
    if (o->device == t->device && stress_chance(&t->random, 30))
        STRESS_OK(t, cuMemFreeAsync(o->start, t->lanes[o->lane]));
    else
        STRESS_OK(t, cuMemFree(o->start));
}

static void free_pool(struct stress_thread *t, struct stress_object *o)
{
    if (stress_chance(&t->random, 20)) {
        settle(t, o, 100);
        STRESS_OK(t, cuMemFree(o->start));
    } else {
        STRESS_OK(t, cuMemFreeAsync(o->start, t->lanes[o->lane]));
    }
}

static void free_host(struct stress_thread *t, struct stress_object *o)
{
    settle(t, o, o->context == t->context ? 30 : 100);
    STRESS_OK(t, cuMemFreeHost(o->host));
}

static void free_registered(struct stress_thread *t, struct stress_object *o)
{
    settle(t, o, o->context == t->context ? 30 : 100);
    STRESS_OK(t, cuMemHostUnregister(o->host));
    free(o->pages);
}

static void free_managed(struct stress_thread *t, struct stress_object *o)
{
    settle(t, o, o->context == t->context ? 30 : 100);
    STRESS_OK(t, cuMemFree(o->start));
}

static void free_virtual(struct stress_thread *t, struct stress_object *o)
{
    settle(t, o, 100);
    STRESS_OK(t, cuMemUnmap(o->start, o->bytes));
    STRESS_OK(t, cuMemAddressFree(o->start, o->bytes));
    if (o->alias) {
        STRESS_OK(t, cuMemUnmap(o->alias, o->bytes));
        STRESS_OK(t, cuMemAddressFree(o->alias, o->bytes));
    }
}

static void free_pageable(struct stress_thread *t, struct stress_object *o)
{
    settle(t, o, 100);
    free(o->pages);
}

static const struct {
    void (*make)(struct stress_thread *thread, struct stress_object *object);
    void (*free)(struct stress_thread *thread, struct stress_object *object);
    unsigned weight; /* relative frequency */
    CUdevice_attribute needs;
} kinds[STRESS_KINDS] = {
    [STRESS_DEVICE] = {make_device, free_device, 30, 0},
    [STRESS_PITCHED] = {make_pitched, free_device, 8, 0},
    [STRESS_POOL] = {make_pool, free_pool, 20, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    [STRESS_HOST] = {make_host, free_host, 12, 0},
    [STRESS_REGISTERED] = {make_registered, free_registered, 10, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    [STRESS_MANAGED] = {make_managed, free_managed, 8, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    [STRESS_VIRTUAL] = {make_virtual, free_virtual, 2, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    [STRESS_PAGEABLE] = {make_pageable, free_pageable, 10, 0},
};

static enum stress_kind random_kind(struct stress_thread *t)
{
    unsigned drawn = (unsigned)stress_number(&t->random, 100);
    int there = 1;

    for (enum stress_kind kind = 0; kind < STRESS_KINDS; kind++) {
        if (drawn >= kinds[kind].weight) {
            drawn -= kinds[kind].weight;
            continue;
        }
        if (kinds[kind].needs)
            STRESS_OK(t, cuDeviceGetAttribute(&there, kinds[kind].needs, t->device));
        return there ? kind : STRESS_DEVICE;
    }
    return STRESS_DEVICE;
}

struct stress_object *stress_make(struct stress_thread *t)
{
    struct stress_object *o = calloc(1, sizeof *o);
    unsigned char value = (unsigned char)stress_number(&t->random, 256);

    if (!o)
        stress_fail(t, "out of memory");
    o->kind = random_kind(t);
    o->lane = (unsigned)stress_number(&t->random, STRESS_LANES);
    o->context = t->context;
    o->device = t->device;
    kinds[o->kind].make(t, o);
    o->model = malloc(o->bytes);
    if (!o->model)
        stress_fail(t, "out of memory");
    memset(o->model, value, o->bytes);
    if (o->kind == STRESS_PAGEABLE)
        memset(o->host, value, o->bytes);
    else
        STRESS_OK(t, cuMemsetD8Async(o->kernels, value, o->bytes, t->lanes[o->lane]));
    return o;
}

void stress_free(struct stress_thread *t, struct stress_object *o)
{
    kinds[o->kind].free(t, o);
    free(o->model);
    free(o);
}
