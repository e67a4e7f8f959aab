/* SPDX-License-Identifier: Apache-2.0 */
/* The mock backend: one lock for everything, and a thread for each queue that executes its commands in order. It checks that core obeys
 * core/device/backend.h; violations are printed and counted. */
#include "mock_backend.h"
#include "mock_images.h"

#include "mock_semaphores.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEVICE_BYTES ((uint64_t)512 << 20)
#define OWN_FIRST 0x700000000000u /* addresses of a driver that places memory itself; the host maps nothing there */
#define MASK 0xffff800000000000u
#define PAGE 4096
#define MAX_OPEN 4

struct ct_backend_device {
    const struct ct_device_info *info;
};

struct memory {
    struct ct_memory base;
    char *bytes;
    bool mapped;   /* by the mock */
    bool reserved; /* in addresses that core has reserved */
    unsigned used; /* by commands that are being recorded or executed */
};

struct ct_timestamp {
    double ns;
    unsigned pending; /* commands that will write it */
};

struct ct_timeline {
    uint64_t value;
    unsigned pending;
};

enum kind { COPY, FILL, TIMESTAMP, SIGNAL, WAIT, WAIT_QUEUE };

/* The progress of a queue; it outlives the queue while others wait for it. */
struct line {
    uint64_t completed;
    unsigned references;
};

struct command {
    struct command *next;
    enum kind kind;
    struct memory *dst, *src;
    struct ct_copy_region region;
    uint64_t offset, size_bytes, value;
    struct ct_timestamp *timestamp;
    struct ct_timeline *timeline;
    struct line *line;
};

struct ct_queue {
    pthread_t thread;
    struct command *first, **end;
    struct line *line;
    uint64_t recorded;
    bool stopping;
    bool held; /* executes nothing, and has room for MOCK_HELD_COMMANDS */
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct mock_counts counts;
    uint64_t used_bytes, next_own, commands;
    int last_priority; /* of the last queue created */
    unsigned fail_in, faults;
    bool failed, lasting;
    bool hold_next;
    struct ct_queue *held;
    unsigned waiters; /* for the held queue */
    CUresult failure;
    struct ct_device_info infos[2]; /* the second one maps no host memory */
    struct ct_backend_device devices[MAX_OPEN];
    unsigned open;
    bool ready, rule_set, has_unmapped;
} mock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .next_own = OWN_FIRST};

static void lock(void)
{
    pthread_mutex_lock(&mock.mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mock.mutex);
}

static void changed(void)
{
    pthread_cond_broadcast(&mock.changed);
}

static void fault_unless(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "mock: %s\n", what);
    mock.faults++;
}

/* ---- control ---- */

void mock_use_rule(enum ct_address_rule rule)
{
    mock.infos[0].address_rule = rule;
    mock.rule_set = true;
}

void mock_use_semaphores(void)
{
    mock.infos[0].external_semaphore_fd = mock.infos[0].external_timeline_fd = true;
}

void mock_add_unmapped(void)
{
    mock.has_unmapped = true;
}

void mock_hold_next_queue(void)
{
    lock();
    mock.hold_next = true;
    unlock();
}

void mock_release_queue(void)
{
    lock();
    mock.held->held = false;
    mock.held = NULL;
    changed();
    unlock();
}

void mock_await_waiter(void)
{
    lock();
    while (!mock.waiters)
        pthread_cond_wait(&mock.changed, &mock.mutex);
    unlock();
}

struct mock_counts mock_count(void)
{
    struct mock_counts counts;

    lock();
    counts = mock.counts;
    unlock();
    return counts;
}

void mock_fail_call(unsigned n, CUresult result)
{
    lock();
    mock.fail_in = n;
    mock.failure = result;
    mock.failed = mock.lasting = false;
    unlock();
}

void mock_lose_device(unsigned n, CUresult result)
{
    mock_fail_call(n, result);
    lock();
    mock.lasting = true;
    unlock();
}

bool mock_has_failed(void)
{
    bool failed;

    lock();
    failed = mock.failed;
    unlock();
    return failed;
}

int mock_last_priority(void)
{
    int priority;

    lock();
    priority = mock.last_priority;
    unlock();
    return priority;
}

uint64_t mock_commands(void)
{
    uint64_t commands;

    lock();
    commands = mock.commands;
    unlock();
    return commands;
}

unsigned mock_faults(void)
{
    unsigned faults;

    lock();
    faults = mock.faults;
    unlock();
    return faults;
}

/* Makes a test program fail that leaks an object, or in which core violated the interface, whatever its own result. */
__attribute__((destructor)) static void check_at_exit(void)
{
    const struct mock_counts *c = &mock.counts;

    if (c->memories || c->queues || c->timestamps || c->timelines)
        fprintf(stderr, "mock: not destroyed: %u memories, %u queues, %u timestamps, %u timelines\n", c->memories, c->queues, c->timestamps,
                c->timelines);
    if (mock.faults || c->memories || c->queues || c->timestamps || c->timelines)
        _exit(99);
}

/* Called by each function that can fail, with the lock held. */
static CUresult pass(void)
{
    if (mock.lasting && mock.failed)
        return mock.failure;
    if (mock.fail_in == 0 || --mock.fail_in > 0)
        return CUDA_SUCCESS;
    mock.failed = true;
    return mock.failure;
}

/* ---- device ---- */

static enum ct_address_rule rule_of_environment(void)
{
    static const struct {
        const char *name;
        enum ct_address_rule rule;
    } rules[] = {{"chosen", CT_ADDRESS_CHOSEN}, {"mask", CT_ADDRESS_CHOSEN_MASK}, {"own", CT_ADDRESS_OWN}};
    const char *name = getenv("MOCK_ADDRESS_RULE");

    for (size_t i = 0; name && i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(name, rules[i].name))
            return rules[i].rule;
    return CT_ADDRESS_SHARED;
}

/* Like the first device, but its kernels could not access host memory. */
static void fill_unmapped(const struct ct_device_info *first, struct ct_device_info *out)
{
    *out = *first;
    snprintf(out->name, sizeof out->name, "mock without mapping");
    out->kind = CT_DEVICE_DISCRETE;
    out->address_rule = CT_ADDRESS_OWN;
    out->maps_host = out->host_visible_device_memory = out->import_at_pointer = out->pageable_access = false;
    memset(out->arenas, 0, sizeof out->arenas);
    out->target.pointer_rule = PTX2SPV_POINTER_SAME;
    out->target.pointer_mask = 0;
}

static CUresult mock_enumerate(const struct ct_device_info **out_infos, unsigned *out_count)
{
    struct ct_device_info *info = &mock.infos[0];

    lock();
    if (!mock.ready) {
        if (!mock.rule_set)
            info->address_rule = rule_of_environment();
        snprintf(info->name, sizeof info->name, "mock");
        info->kind = info->address_rule == CT_ADDRESS_SHARED ? CT_DEVICE_CPU : CT_DEVICE_DISCRETE;
        info->host_visible_device_memory = info->address_rule == CT_ADDRESS_SHARED;
        info->memory_bytes = DEVICE_BYTES;
        info->max_allocation_bytes = DEVICE_BYTES / 2;
        info->max_block_threads = 1024;
        info->stream_priorities = true;
        info->can_import_host = info->maps_host = true;
        info->import_at_pointer = mock.has_unmapped; /* memory of the other device has any address */
        info->pageable_access = mock.has_unmapped && info->address_rule == CT_ADDRESS_SHARED;
        info->import_failures_are_sticky = getenv("MOCK_REFUSALS_SPOIL") != NULL;
        info->opaque_images = info->sparse_images = mock_has_images();
        if (mock_has_images())
            info->images = (struct ct_image_limits){1024, 1024, 256, 1024, 16, 0};
        if (ct_address_is_placed(info->address_rule))
            info->arenas[0] = (struct ct_address_arena){0x100000000000, 0x3fff00000000};
        info->timestamps = true;
        info->timestamp_period_ns = 1;
        info->target.pointer_rule = info->address_rule == CT_ADDRESS_CHOSEN_MASK ? PTX2SPV_POINTER_OR : PTX2SPV_POINTER_SAME;
        info->target.pointer_mask = info->address_rule == CT_ADDRESS_CHOSEN_MASK ? MASK : 0;
        for (int i = 0; i < 3; i++)
            info->max_grid[i] = 65535;
        fill_unmapped(info, &mock.infos[1]);
        mock.ready = true;
    }
    unlock();
    *out_infos = info;
    *out_count = mock.has_unmapped ? 2 : 1;
    return CUDA_SUCCESS;
}

static CUresult mock_device_open(unsigned index, struct ct_backend_device **out)
{
    lock();
    fault_unless(mock.open < MAX_OPEN, "more devices are opened than MAX_OPEN");
    *out = &mock.devices[mock.open++ % MAX_OPEN];
    (*out)->info = &mock.infos[index];
    unlock();
    return CUDA_SUCCESS;
}

static void mock_device_close(struct ct_backend_device *device)
{
    (void)device;
}

static CUresult mock_memory_info(struct ct_backend_device *device, uint64_t *out_free, uint64_t *out_total)
{
    (void)device;
    lock();
    *out_free = DEVICE_BYTES - mock.used_bytes;
    *out_total = DEVICE_BYTES;
    unlock();
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static bool is_chosen(const struct ct_device_info *info)
{
    return info->address_rule == CT_ADDRESS_CHOSEN || info->address_rule == CT_ADDRESS_CHOSEN_MASK;
}

static bool may_be_chosen(const struct ct_device_info *info, uint64_t want, const void *host)
{
    return is_chosen(info) && (want % 65536 == 0 || (info->import_at_pointer && want == (uint64_t)(uintptr_t)host));
}

static ct_devaddr place(const struct ct_device_info *info, uint64_t want, void *host, uint64_t size_bytes)
{
    uint64_t address;

    if (want) {
        fault_unless(may_be_chosen(info, want, host), "an address is requested that cannot be chosen");
        return (ct_devaddr){want | info->target.pointer_mask};
    }
    if (info->address_rule == CT_ADDRESS_SHARED)
        return (ct_devaddr){(uint64_t)(uintptr_t)host};
    address = mock.next_own;
    mock.next_own += (size_bytes + 0x1fffff) & ~(uint64_t)0x1fffff;
    return (ct_devaddr){address | info->target.pointer_mask};
}

/* Host memory of a device that maps none has no device address. */
static ct_devaddr place_host(const struct ct_device_info *info, uint64_t want, void *host, uint64_t size_bytes)
{
    return info->maps_host ? place(info, want, host, size_bytes) : (ct_devaddr){0};
}

/* Maps an anonymous file, as drivers do for their files. */
static char *map_file(uint64_t bytes)
{
    FILE *file = tmpfile();
    char *mapping = MAP_FAILED;

    if (file && ftruncate(fileno(file), (off_t)bytes) == 0)
        mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (file)
        fclose(file);
    return mapping;
}

/* Maps pages with the alignment that the mock supports: less than 2 MiB, which no test needs. */
static CUresult map_bytes(struct memory *memory, uint64_t size_bytes, uint64_t align, bool of_file)
{
    uint64_t bytes = (size_bytes + align + PAGE - 1) / PAGE * PAGE;
    char *mapping = of_file ? map_file(bytes) : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t skip;

    if (mapping == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    skip = -(uint64_t)(uintptr_t)mapping & (align - 1) & ~(uint64_t)(PAGE - 1);
    if (skip)
        munmap(mapping, skip);
    memory->bytes = mapping + skip;
    memory->mapped = true;
    munmap(memory->bytes + (size_bytes + PAGE - 1) / PAGE * PAGE, bytes - skip - (size_bytes + PAGE - 1) / PAGE * PAGE);
    return CUDA_SUCCESS;
}

/* Maps pages in core's reservation: host memory with a chosen address is mapped there. */
static CUresult map_at(struct memory *memory, uint64_t want, uint64_t size_bytes)
{
    void *at = (void *)(uintptr_t)want;

    memory->bytes = mmap(at, (size_bytes + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memory->mapped = memory->reserved = memory->bytes == at;
    return memory->mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult map_request(struct memory *memory, const struct ct_memory_request *request)
{
    if (request->want_address && request->kind == CT_MEMORY_HOST)
        return map_at(memory, request->want_address, request->size_bytes);
    return map_bytes(memory, request->size_bytes, request->align > PAGE ? request->align : PAGE, request->kind == CT_MEMORY_HOST_WC);
}

static CUresult mock_memory_create(struct ct_backend_device *device, const struct ct_memory_request *request, struct ct_memory **out)
{
    bool on_device = request->kind == CT_MEMORY_DEVICE;
    struct memory *memory;
    CUresult r;

    lock();
    r = pass();
    if (r == CUDA_SUCCESS && on_device && request->size_bytes > DEVICE_BYTES - mock.used_bytes)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    unlock();
    if (r != CUDA_SUCCESS)
        return r;
    memory = calloc(1, sizeof *memory);
    if (!memory || map_request(memory, request) != CUDA_SUCCESS) {
        free(memory);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(memory->bytes, 0xcd, request->size_bytes); /* the contents are undefined, not zero */
    lock();
    fault_unless(!on_device || !is_chosen(device->info) || request->want_address,
                 "device memory without an address on a device that takes one");
    memory->base.device = device;
    memory->base.size_bytes = request->size_bytes;
    memory->base.address = (on_device ? place : place_host)(device->info, request->want_address, memory->bytes, request->size_bytes);
    memory->base.host = on_device && !device->info->host_visible_device_memory ? NULL : memory->bytes;
    mock.counts.memories++;
    mock.used_bytes += on_device ? request->size_bytes : 0;
    unlock();
    *out = &memory->base;
    return CUDA_SUCCESS;
}

static CUresult mock_memory_import_host(struct ct_backend_device *device, const struct ct_host_import *import, struct ct_memory **out)
{
    void *const pointer = import->pages;
    const uint64_t size_bytes = import->size_bytes, want_address = import->want_address;
    struct memory *memory;
    CUresult r;

    lock();
    r = pass();
    fault_unless((uint64_t)(uintptr_t)pointer % PAGE == 0 && size_bytes % PAGE == 0 && size_bytes > 0,
                 "an import that is not of whole pages");
    unlock();
    if (r != CUDA_SUCCESS)
        return r;
    memory = calloc(1, sizeof *memory);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory->bytes = pointer;
    lock();
    memory->base = (struct ct_memory){.device = device, .size_bytes = size_bytes, .host = pointer};
    memory->base.address = place_host(device->info, want_address, pointer, size_bytes);
    mock.counts.memories++;
    unlock();
    *out = &memory->base;
    return CUDA_SUCCESS;
}

static void mock_memory_destroy(struct ct_memory *base)
{
    struct memory *memory = (struct memory *)base;

    if (!memory)
        return;
    lock();
    fault_unless(!memory->used, "memory is destroyed that commands use");
    mock.counts.memories--;
    if (memory->mapped && (!base->host || base->device->info->host_visible_device_memory))
        mock.used_bytes -= base->size_bytes < mock.used_bytes ? base->size_bytes : mock.used_bytes;
    unlock();
    if (memory->reserved)
        mmap(memory->bytes, (base->size_bytes + PAGE - 1) / PAGE * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    else if (memory->mapped)
        munmap(memory->bytes, (base->size_bytes + PAGE - 1) / PAGE * PAGE);
    free(memory);
}

/* ---- queues ---- */

static void release_line(struct line *line)
{
    if (--line->references == 0)
        free(line);
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void run_copy(const struct command *c)
{
    const struct ct_copy_region *r = &c->region;

    for (uint64_t slice = 0; slice < r->slices; slice++)
        for (uint64_t row = 0; row < r->rows; row++)
            memcpy(c->dst->bytes + r->dst_offset + slice * r->dst_slice + row * r->dst_pitch,
                   c->src->bytes + r->src_offset + slice * r->src_slice + row * r->src_pitch, r->row_bytes);
}

static void run_fill(const struct command *c)
{
    uint32_t value = (uint32_t)c->value;

    for (uint64_t i = 0; i < c->size_bytes; i += 4)
        memcpy(c->dst->bytes + c->offset + i, &value, 4);
}

static void use(const struct command *c)
{
    lock();
    c->dst->used++;
    if (c->src)
        c->src->used++;
    unlock();
}

static void end_use_locked(const struct command *c)
{
    c->dst->used--;
    if (c->src)
        c->src->used--;
}

/* Called with the lock held; copies and fills release it meanwhile. */
static void run_command(const struct command *c)
{
    switch (c->kind) {
    case COPY:
    case FILL:
        unlock();
        if (c->kind == COPY)
            run_copy(c);
        else
            run_fill(c);
        lock();
        end_use_locked(c);
        break;
    case TIMESTAMP:
        c->timestamp->ns = now_ns();
        c->timestamp->pending--;
        break;
    case SIGNAL:
        fault_unless(c->value > c->timeline->value, "a timeline is signalled backwards");
        c->timeline->value = c->value;
        c->timeline->pending--;
        break;
    case WAIT:
        while (c->timeline->value < c->value)
            pthread_cond_wait(&mock.changed, &mock.mutex);
        c->timeline->pending--;
        break;
    case WAIT_QUEUE:
        while (c->line->completed < c->value)
            pthread_cond_wait(&mock.changed, &mock.mutex);
        release_line(c->line);
        break;
    }
}

static void *queue_main(void *user)
{
    struct ct_queue *queue = user;

    lock();
    while (queue->first || !queue->stopping) {
        struct command *command = queue->first;

        if (!command || queue->held) {
            pthread_cond_wait(&mock.changed, &mock.mutex);
            continue;
        }
        run_command(command);
        queue->first = command->next;
        if (!queue->first)
            queue->end = &queue->first;
        queue->line->completed++;
        mock.commands++;
        free(command);
        changed();
    }
    unlock();
    return NULL;
}

static CUresult mock_queue_create(struct ct_backend_device *device, const struct ct_queue_desc *desc, struct ct_queue **out)
{
    struct ct_queue *queue;
    CUresult r;

    (void)device;
    lock();
    mock.last_priority = desc->priority;
    r = pass();
    unlock();
    if (r != CUDA_SUCCESS)
        return r;
    queue = calloc(1, sizeof *queue);
    if (!queue || !(queue->line = calloc(1, sizeof *queue->line))) {
        free(queue);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    queue->line->references = 1;
    queue->end = &queue->first;
    if (pthread_create(&queue->thread, NULL, queue_main, queue) != 0) {
        free(queue->line);
        free(queue);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    lock();
    mock.counts.queues++;
    if (mock.hold_next) {
        queue->held = true;
        mock.held = queue;
        mock.hold_next = false;
    }
    unlock();
    *out = queue;
    return CUDA_SUCCESS;
}

static void mock_queue_destroy(struct ct_queue *queue)
{
    if (!queue)
        return;
    lock();
    fault_unless(queue->line->completed == queue->recorded, "a queue is destroyed that is not idle");
    queue->stopping = true;
    mock.counts.queues--;
    changed();
    unlock();
    pthread_join(queue->thread, NULL);
    lock();
    release_line(queue->line);
    unlock();
    free(queue);
}

/* One iteration of a wait for the queue. */
static void wait_for_locked(const struct ct_queue *queue)
{
    const bool held = queue->held;

    if (held) {
        mock.waiters++;
        changed();
    }
    pthread_cond_wait(&mock.changed, &mock.mutex);
    mock.waiters -= held;
}

static void await_room_locked(const struct ct_queue *queue)
{
    while (queue->held && queue->recorded - queue->line->completed >= MOCK_HELD_COMMANDS)
        wait_for_locked(queue);
}

static CUresult mock_queue_await_room(struct ct_queue *queue)
{
    lock();
    await_room_locked(queue);
    unlock();
    return CUDA_SUCCESS;
}

static CUresult record(struct ct_queue *queue, const struct command *command)
{
    struct command *copy = malloc(sizeof *copy);
    CUresult r;

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = *command;
    copy->next = NULL;
    if (command->dst)
        use(command);
    lock();
    await_room_locked(queue);
    r = pass();
    if (r == CUDA_SUCCESS) {
        *queue->end = copy;
        queue->end = &copy->next;
        queue->recorded++;
        if (copy->kind == TIMESTAMP)
            copy->timestamp->pending++;
        if (copy->kind == SIGNAL || copy->kind == WAIT)
            copy->timeline->pending++;
        if (copy->kind == WAIT_QUEUE)
            copy->line->references++;
        changed();
    } else {
        if (command->dst)
            end_use_locked(command);
        free(copy);
    }
    unlock();
    return r;
}

/* Compares whole spans: core never lets them overlap within one memory. */
static void check_region(const struct ct_memory *dst, const struct ct_memory *src, const struct ct_copy_region *r)
{
    uint64_t dst_end = r->dst_offset + (r->slices - 1) * r->dst_slice + (r->rows - 1) * r->dst_pitch + r->row_bytes;
    uint64_t src_end = r->src_offset + (r->slices - 1) * r->src_slice + (r->rows - 1) * r->src_pitch + r->row_bytes;

    lock();
    fault_unless(r->slices > 0 && r->rows > 0 && r->row_bytes > 0, "a copy of nothing");
    fault_unless(dst_end <= dst->size_bytes && src_end <= src->size_bytes, "a copy beyond memory");
    fault_unless(dst != src || dst_end <= r->src_offset || src_end <= r->dst_offset, "an overlapping copy");
    unlock();
}

static CUresult mock_queue_copy(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                                unsigned n_regions)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < n_regions && r == CUDA_SUCCESS; i++) {
        check_region(dst, src, &regions[i]);
        r = record(queue, &(struct command){.kind = COPY, .dst = (struct memory *)dst, .src = (struct memory *)src, .region = regions[i]});
    }
    return r;
}

static CUresult mock_queue_fill(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value)
{
    lock();
    fault_unless(offset % 4 == 0 && size_bytes % 4 == 0 && size_bytes > 0, "a fill that is not of words");
    fault_unless(offset + size_bytes <= dst->size_bytes, "a fill beyond memory");
    unlock();
    return record(queue,
                  &(struct command){.kind = FILL, .dst = (struct memory *)dst, .offset = offset, .size_bytes = size_bytes, .value = value});
}

static CUresult mock_queue_launch(struct ct_queue *queue, const struct ct_launch *launch)
{
    (void)queue, (void)launch;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult mock_queue_timestamp(struct ct_queue *queue, struct ct_timestamp *timestamp)
{
    return record(queue, &(struct command){.kind = TIMESTAMP, .timestamp = timestamp});
}

static CUresult mock_queue_signal(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value)
{
    return record(queue, &(struct command){.kind = SIGNAL, .timeline = timeline, .value = value});
}

static CUresult mock_queue_wait(struct ct_queue *queue, struct ct_timeline *timeline, uint64_t value)
{
    return record(queue, &(struct command){.kind = WAIT, .timeline = timeline, .value = value});
}

static CUresult mock_queue_wait_queue(struct ct_queue *queue, struct ct_queue *other, uint64_t point)
{
    lock();
    fault_unless(queue != other && point <= other->recorded, "a wait for a point that is not recorded");
    unlock();
    return record(queue, &(struct command){.kind = WAIT_QUEUE, .line = other->line, .value = point});
}

static CUresult mock_queue_flush(struct ct_queue *queue)
{
    (void)queue;
    return CUDA_SUCCESS;
}

static uint64_t mock_queue_point(struct ct_queue *queue)
{
    uint64_t point;

    lock();
    point = queue->recorded;
    unlock();
    return point;
}

static CUresult mock_queue_completed(struct ct_queue *queue, uint64_t *out_point)
{
    lock();
    *out_point = queue->line->completed;
    unlock();
    return CUDA_SUCCESS;
}

static bool mock_queue_working(struct ct_queue *queue, uint64_t *out_first, uint64_t *out_last)
{
    bool works;

    lock();
    works = queue->line->completed < queue->recorded;
    *out_first = *out_last = queue->line->completed + 1;
    unlock();
    return works;
}

static CUresult mock_queue_await(struct ct_queue *queue, uint64_t point, uint64_t timeout_ns, bool spin)
{
    (void)spin, (void)timeout_ns; /* core always waits without a timeout */
    lock();
    fault_unless(point <= queue->recorded, "a point is awaited that is not recorded");
    while (queue->line->completed < point)
        wait_for_locked(queue);
    unlock();
    return CUDA_SUCCESS;
}

/* ---- timestamps and timelines ---- */

static CUresult mock_timestamp_create(struct ct_backend_device *device, struct ct_timestamp **out)
{
    struct ct_timestamp *timestamp;
    CUresult r;

    (void)device;
    lock();
    r = pass();
    timestamp = r == CUDA_SUCCESS ? calloc(1, sizeof *timestamp) : NULL;
    if (r == CUDA_SUCCESS && !timestamp)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (timestamp)
        mock.counts.timestamps++;
    unlock();
    if (r == CUDA_SUCCESS)
        *out = timestamp;
    return r;
}

static void mock_timestamp_destroy(struct ct_timestamp *timestamp)
{
    if (!timestamp)
        return;
    lock();
    fault_unless(timestamp->pending == 0, "a timestamp is destroyed that will be written");
    mock.counts.timestamps--;
    unlock();
    free(timestamp);
}

static CUresult mock_timestamp_read(struct ct_timestamp *timestamp, double *out_ns)
{
    lock();
    fault_unless(timestamp->pending == 0, "a timestamp is read that will be written");
    *out_ns = timestamp->ns;
    unlock();
    return CUDA_SUCCESS;
}

static CUresult mock_timeline_create(struct ct_backend_device *device, struct ct_timeline **out)
{
    struct ct_timeline *timeline;
    CUresult r;

    (void)device;
    lock();
    r = pass();
    timeline = r == CUDA_SUCCESS ? calloc(1, sizeof *timeline) : NULL;
    if (r == CUDA_SUCCESS && !timeline)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (timeline)
        mock.counts.timelines++;
    unlock();
    if (r == CUDA_SUCCESS)
        *out = timeline;
    return r;
}

static void mock_timeline_destroy(struct ct_timeline *timeline)
{
    if (!timeline)
        return;
    lock();
    fault_unless(timeline->pending == 0, "a timeline is destroyed that is waited for");
    mock.counts.timelines--;
    unlock();
    free(timeline);
}

static CUresult mock_timeline_signal(struct ct_timeline *timeline, uint64_t value)
{
    lock();
    fault_unless(value > timeline->value, "a timeline is signalled backwards");
    timeline->value = value;
    changed();
    unlock();
    return CUDA_SUCCESS;
}

uint64_t mock_timeline_value(struct ct_timeline *timeline)
{
    uint64_t value;

    lock();
    value = timeline->value;
    unlock();
    return value;
}

/* Core waits without a timeout, or not at all. */
static CUresult mock_timeline_await(struct ct_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    CUresult r;

    lock();
    while (timeout_ns && timeline->value < value)
        pthread_cond_wait(&mock.changed, &mock.mutex);
    r = timeline->value < value ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    unlock();
    return r;
}

/* ---- kernels, which the mock does not support ---- */

static CUresult mock_kernel_create(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                                   struct ct_kernel_image **out)
{
    (void)device, (void)name, (void)kernel, (void)out;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void mock_kernel_destroy(struct ct_kernel_image *kernel)
{
    (void)kernel;
}

static const struct ct_memory_calls memory_calls = {
    .info = mock_memory_info,
    .create = mock_memory_create,
    .import_host = mock_memory_import_host,
    .destroy = mock_memory_destroy,
};

static const struct ct_virtual_memory_calls virtual_memory_calls = {
    .physical_create = mock_physical_create,
    .physical_destroy = mock_physical_destroy,
};

static const struct ct_image_calls image_calls = {
    .create = mock_image_create,
    .destroy = mock_image_destroy,
    .level = mock_image_level,
    .bind = mock_image_bind,
};

static const struct ct_kernel_calls kernel_calls = {
    .create = mock_kernel_create,
    .destroy = mock_kernel_destroy,
};

static const struct ct_queue_calls queue_calls = {
    .create = mock_queue_create,
    .destroy = mock_queue_destroy,
    .copy = mock_queue_copy,
    .fill = mock_queue_fill,
    .launch = mock_queue_launch,
    .timestamp = mock_queue_timestamp,
    .signal = mock_queue_signal,
    .wait = mock_queue_wait,
    .wait_queue = mock_queue_wait_queue,
    .flush = mock_queue_flush,
    .await_room = mock_queue_await_room,
    .point = mock_queue_point,
    .completed = mock_queue_completed,
    .working = mock_queue_working,
    .await = mock_queue_await,
};

static const struct ct_timestamp_calls timestamp_calls = {
    .create = mock_timestamp_create,
    .destroy = mock_timestamp_destroy,
    .read = mock_timestamp_read,
};

static const struct ct_timeline_calls timeline_calls = {
    .create = mock_timeline_create,
    .destroy = mock_timeline_destroy,
    .signal = mock_timeline_signal,
    .await = mock_timeline_await,
};

static const struct ct_semaphore_calls semaphore_calls = {
    .import = mock_semaphore_import,
    .destroy = mock_semaphore_destroy,
    .await = mock_semaphore_await,
    .queue_signal = mock_queue_signal_semaphore,
    .queue_wait = mock_queue_wait_semaphore,
};

const struct ct_backend ct_backend_vk = {
    .name = "vulkan",
    .enumerate = mock_enumerate,
    .device_open = mock_device_open,
    .device_close = mock_device_close,
    .memory = &memory_calls,
    .virtual_memory = &virtual_memory_calls,
    .images = &image_calls,
    .kernels = &kernel_calls,
    .queues = &queue_calls,
    .timestamps = &timestamp_calls,
    .timelines = &timeline_calls,
    .semaphores = &semaphore_calls,
};
