/* SPDX-License-Identifier: Apache-2.0 */
/* A backend alone (the argument: vulkan or opencl): every function of core/device/backend.h, compared with results computed on the host. If
 * run with CUTTLE_VALIDATE=1, the Vulkan validation layer must not report anything. CUTTLE_TEST_DEVICE=<part of a name> selects the
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend_cl_kernels.h"
#include "backend_vk_kernels.h"
#include "backend_vk/vk.h"
#include "counted_objects.h"
#include "core/backing/address_rule.h"
#include "core/device/backend.h"

#include <pthread.h>
#include <spirv-tools/libspirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define LONG_ENOUGH (60 * SECOND)
#define WORDS 4096u
#define BLOCK 64u

/* A backend and the properties that tests need beyond its interface. */
static const struct subject {
    const struct ct_backend *backend;
    spv_target_env spirv;
    const char *step, *reverse; /* kernels */
    uint32_t most_param_bytes;  /* maximum size of parameters by value; 0: no limit */
} subjects[] = {
    {&ct_backend_vk, SPV_ENV_VULKAN_1_3, kernel_step, kernel_reverse, 4096 - PTX2SPV_PARAMS_OFFSET},
#ifdef CT_WITH_OPENCL
    {&ct_backend_cl, SPV_ENV_UNIVERSAL_1_2, cl_kernel_step, cl_kernel_reverse, 0},
#endif
};
static const struct subject *subject;
static const struct ct_backend *backend;

struct fixture {
    unsigned index;
    const struct ct_device_info *info;
    struct ct_backend_device *device;
    struct ct_queue *queue;
    struct ct_memory *data, *host; /* WORDS words each */
    struct ct_kernel_image *step, *reverse;
};

static void ok(CUresult r)
{
    assert_int_equal(r, CUDA_SUCCESS);
}

/* ---- fixture ---- */

static struct ct_kernel_image *make_kernel(struct ct_backend_device *device, const char *name, const char *text, bool shared)
{
    spv_context context = spvContextCreate(subject->spirv);
    spv_binary binary = NULL;
    struct ptx2spv_kernel kernel = {
        .info = {.param_bytes = sizeof(struct kernel_params), .uses_shared = shared, .uses_dynamic_shared = shared, .linear_block = true}};
    struct ct_kernel_image *image = NULL;

    assert_int_equal(spvTextToBinary(context, text, strlen(text), &binary, NULL), SPV_SUCCESS);
    kernel.words = binary->code;
    kernel.n_words = binary->wordCount;
    ok(backend->kernels->create(device, name, &kernel, &image));
    spvBinaryDestroy(binary);
    spvContextDestroy(context);
    return image;
}

static struct ct_memory *make_memory(struct ct_backend_device *device, enum ct_memory_kind kind, uint64_t size, uint64_t align)
{
    const struct ct_memory_request request = {.size_bytes = size, .align = align, .kind = kind};
    struct ct_memory *memory = NULL;

    ok(backend->memory->create(device, &request, &memory));
    assert_int_equal(memory->size_bytes, size);
    assert_int_equal(memory->address.v % align, 0);
    return memory;
}

static struct ct_queue *make_queue(struct ct_backend_device *device, int priority)
{
    const struct ct_queue_desc desc = {.priority = priority};
    struct ct_queue *queue = NULL;

    ok(backend->queues->create(device, &desc, &queue));
    return queue;
}

static bool choose_device(unsigned *out)
{
    const char *wanted = getenv("CUTTLE_TEST_DEVICE");
    const struct ct_device_info *infos;
    unsigned count;

    ok(backend->enumerate(&infos, &count));
    for (unsigned i = 0; i < count; i++) {
        if (wanted && !strstr(infos[i].name, wanted))
            continue;
        *out = i;
        return true;
    }
    return false;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct ct_device_info *infos;
    unsigned count;

    assert_non_null(f);
    assert_true(choose_device(&f->index));
    ok(backend->enumerate(&infos, &count));
    f->info = &infos[f->index];
    ok(backend->device_open(f->index, &f->device));
    f->queue = make_queue(f->device, 0);
    f->data = make_memory(f->device, CT_MEMORY_DEVICE, WORDS * 4, 256);
    f->host = make_memory(f->device, CT_MEMORY_HOST, WORDS * 4, 256);
    f->step = make_kernel(f->device, "step", subject->step, false);
    f->reverse = make_kernel(f->device, "reverse", subject->reverse, true);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    backend->kernels->destroy(f->reverse);
    backend->kernels->destroy(f->step);
    backend->memory->destroy(f->host);
    backend->memory->destroy(f->data);
    backend->queues->destroy(f->queue);
    backend->device_close(f->device);
    free(f);
    return 0;
}

static void await_all(struct ct_queue *queue)
{
    ok(backend->queues->await(queue, backend->queues->point(queue), LONG_ENOUGH, false));
}

static struct ct_copy_region run_of(uint64_t dst, uint64_t src, uint64_t bytes)
{
    return (struct ct_copy_region){.dst_offset = dst, .src_offset = src, .row_bytes = bytes, .rows = 1, .slices = 1};
}

/* Reads the first `bytes` of device memory, through f->host. */
static const uint32_t *download(struct fixture *f, struct ct_queue *queue, struct ct_memory *memory, uint64_t bytes)
{
    const struct ct_copy_region region = run_of(0, 0, bytes);

    memset(f->host->host, 0xee, WORDS * 4);
    ok(backend->queues->copy(queue, f->host, memory, &region, 1));
    await_all(queue);
    return f->host->host;
}

static void launch_step(struct fixture *f, struct ct_queue *queue, struct ct_memory *memory, uint32_t value, uint32_t n)
{
    const struct kernel_params params = {memory->address.v, value, n};
    const struct ct_launch launch = {.kernel = f->step, .grid = {(n + BLOCK - 1) / BLOCK, 1, 1}, .block = {BLOCK, 1, 1}, .params = &params};

    ok(backend->queues->launch(queue, &launch));
}

static uint32_t step_on_host(uint32_t old, uint32_t value)
{
    return 3 * old + value;
}

/* ---- devices and memory ---- */

static void test_device_facts(void **state)
{
    struct fixture *f = *state;
    const struct ct_device_info *info = f->info;
    uint64_t free_bytes = 0, total_bytes = 0;

    assert_true(strlen(info->name) > 0 && strlen(info->driver) > 0);
    assert_true(info->max_block_threads >= 128 && info->max_block_threads <= 1024);
    assert_true(info->shared_bytes >= 16384);
    assert_int_equal(info->max_grid[0], 0x7fffffff);
    assert_int_equal(info->max_grid[1], 65535);
    assert_true(info->target.push_constant_bytes >= (info->target.dialect == PTX2SPV_VULKAN ? 128 : 0));
    assert_true(info->target.int64);
    ok(backend->memory->info(f->device, &free_bytes, &total_bytes));
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
    assert_int_equal(total_bytes, info->memory_bytes);
    if (info->kind == CT_DEVICE_CPU)
        assert_true(info->host_visible_device_memory);
    if (info->target.warp_form == PTX2SPV_WARP_NATIVE)
        assert_true(info->target.subgroup_size >= 32);
}

static void test_enumerate_gives_the_same_again(void **state)
{
    const struct ct_device_info *first, *second;
    unsigned n_first, n_second;

    (void)state;
    ok(backend->enumerate(&first, &n_first));
    ok(backend->enumerate(&second, &n_second));
    assert_ptr_equal(first, second);
    assert_int_equal(n_first, n_second);
}

static void test_two_opens_are_independent(void **state)
{
    struct fixture *f = *state;
    struct ct_backend_device *other = NULL;
    struct ct_queue *queue;
    struct ct_memory *memory;

    ok(backend->device_open(f->index, &other));
    assert_ptr_not_equal(other, f->device);
    queue = make_queue(other, 0);
    memory = make_memory(other, CT_MEMORY_HOST, 4096, 4);
    ok(backend->queues->fill(queue, memory, 0, 4096, 7));
    await_all(queue);
    assert_int_equal(((uint32_t *)memory->host)[1023], 7);
    assert_int_equal(backend->queues->wait_queue(f->queue, queue, 1), CUDA_ERROR_INVALID_VALUE);
    backend->memory->destroy(memory);
    backend->queues->destroy(queue);
    backend->device_close(other);
    ok(backend->queues->fill(f->queue, f->data, 0, 64, 1));
    await_all(f->queue);
}

/* Several at once, of an odd size: a single one may be aligned by chance. make_memory checks the address. */
static void check_alignment(struct fixture *f, enum ct_memory_kind kind, uint64_t align)
{
    struct ct_memory *memory[5];

    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        memory[i] = make_memory(f->device, kind, 10007, align);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        backend->memory->destroy(memory[i]);
}

static void test_memory_kinds(void **state)
{
    struct fixture *f = *state;
    static const uint64_t aligns[] = {4, 256, 65536, 2 << 20};

    for (int kind = CT_MEMORY_DEVICE; kind <= CT_MEMORY_HOST_WC; kind++) {
        for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
            struct ct_memory *memory = make_memory(f->device, (enum ct_memory_kind)kind, 10007, aligns[i]);

            assert_int_equal(memory->host != NULL, kind != CT_MEMORY_DEVICE || f->info->host_visible_device_memory);
            if (f->info->address_rule == CT_ADDRESS_SHARED)
                assert_int_equal(memory->address.v, (uintptr_t)memory->host);
            if (memory->host) { /* all of it, and nothing beyond */
                ok(backend->queues->fill(f->queue, memory, 0, 10008, 0x5a5a5a5a));
                await_all(f->queue);
                assert_int_equal(((unsigned char *)memory->host)[0], 0x5a);
                assert_int_equal(((unsigned char *)memory->host)[10006], 0x5a);
            }
            backend->memory->destroy(memory);
            check_alignment(f, (enum ct_memory_kind)kind, aligns[i]);
        }
    }
    backend->memory->destroy(NULL);
}

/* Free host addresses: where the address rule allows a choice, device memory is created at them and works there. */
static void test_chosen_addresses(void **state)
{
    struct fixture *f = *state;
    const uint64_t size = 4 << 20, align = 2 << 20;
    bool chosen = ct_address_is_placed(f->info->address_rule);
    void *hint = (void *)(uintptr_t)(f->info->arenas[0].first ? f->info->arenas[0].first : 0x100000000000);
    char *reserved = mmap(hint, 4 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct ct_memory *memory = NULL;

    assert_ptr_not_equal(reserved, MAP_FAILED);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t want = (((uintptr_t)reserved + align - 1) & ~(align - 1)) + i * size;
        const struct ct_memory_request request = {.size_bytes = size, .align = align, .kind = CT_MEMORY_DEVICE, .want_address = want};

        if (!chosen) {
            assert_int_equal(backend->memory->create(f->device, &request, &memory), CUDA_ERROR_NOT_SUPPORTED);
            break;
        }
        ok(backend->memory->create(f->device, &request, &memory));
        assert_int_equal(memory->address.v, ct_rule_devaddr(&f->info->target, want).v);
        ok(backend->queues->fill(f->queue, memory, 0, WORDS * 4, 5));
        launch_step(f, f->queue, memory, 1, WORDS);
        assert_int_equal(download(f, f->queue, memory, WORDS * 4)[WORDS - 1], step_on_host(5, 1));
        backend->memory->destroy(memory);
    }
    munmap(reserved, 4 * size);
}

/* A kernel accesses host pages at device address `want`. */
static void use_imported(struct fixture *f, uint32_t *pages, uint64_t size, uint64_t want)
{
    struct ct_memory *memory = NULL;

    for (uint32_t i = 0; i < WORDS; i++)
        pages[i] = i;
    ok(backend->memory->import_host(f->device, &(struct ct_host_import){pages, size, want, false}, &memory));
    assert_int_equal(memory->address.v, ct_rule_devaddr(&f->info->target, want).v);
    assert_ptr_equal(memory->host, pages);
    launch_step(f, f->queue, memory, 9, WORDS);
    await_all(f->queue);
    for (uint32_t i = 0; i < WORDS; i++)
        assert_int_equal(pages[i], step_on_host(i, 9));
    backend->memory->destroy(memory);
}

/* Chosen addresses are multiples of 64 KiB on NVIDIA's driver 580, whatever the page size. */
static void test_imported_host_memory(void **state)
{
    struct fixture *f = *state;
    const uint64_t size = 1 << 16, align = 2 << 20;
    char *reserved = mmap(NULL, 3 * align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *aligned = (char *)(((uintptr_t)reserved + align - 1) & ~(align - 1));
    uint32_t *pages = (uint32_t *)aligned, *odd_pages = (uint32_t *)(aligned + size + 4096);
    struct ct_memory *memory = NULL;

    assert_ptr_not_equal(reserved, MAP_FAILED);
    if (!f->info->can_import_host) {
        assert_int_equal(backend->memory->import_host(f->device, &(struct ct_host_import){pages, size, 0, false}, &memory),
                         CUDA_ERROR_NOT_SUPPORTED);
    } else {
        assert_int_equal(backend->memory->import_host(f->device, &(struct ct_host_import){pages, size - 1, 0, false}, &memory),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(backend->memory->import_host(f->device, &(struct ct_host_import){NULL, size, 0, false}, &memory),
                         CUDA_ERROR_INVALID_VALUE);
        use_imported(f, pages, size, (uintptr_t)pages);
        if (ct_address_is_placed(f->info->address_rule) && !f->info->import_at_pointer)
            use_imported(f, odd_pages, size, (uintptr_t)aligned + align);
        else
            use_imported(f, odd_pages, size, (uintptr_t)odd_pages);
    }
    munmap(reserved, 3 * align);
}

static void test_bad_memory_requests(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name;
        struct ct_memory_request request;
        CUresult want;
    } rows[] = {
        {"no bytes", {.size_bytes = 0, .align = 4}, CUDA_ERROR_INVALID_VALUE},
        {"align is no power of two", {.size_bytes = 64, .align = 3}, CUDA_ERROR_INVALID_VALUE},
        {"address off its alignment", {.size_bytes = 64, .align = 256, .want_address = 0x1080}, CUDA_ERROR_INVALID_VALUE},
        {"more than all", {.size_bytes = UINT64_MAX, .align = 4}, CUDA_ERROR_OUT_OF_MEMORY},
        {"one bit", {.size_bytes = UINT64_C(1) << 60, .align = 4}, CUDA_ERROR_OUT_OF_MEMORY},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ct_memory *memory = (struct ct_memory *)state;

        if (backend->memory->create(f->device, &rows[i].request, &memory) != rows[i].want)
            fail_msg("%s", rows[i].name);
        assert_ptr_equal(memory, state); /* untouched */
    }
}

/* ---- copies ---- */

static void test_copy_rows_and_slices(void **state)
{
    struct fixture *f = *state;
    struct ct_memory *to = make_memory(f->device, CT_MEMORY_HOST, WORDS * 4, 4);
    static const struct ct_copy_region rows[] = {
        {0, 0, WORDS * 4, 1, 0, 0, 1, 0, 0},                                /* all */
        {3, 5, 7, 1, 0, 0, 1, 0, 0},                                        /* odd offsets and size */
        {1, 2, 10, 5, 16, 12, 1, 0, 0},                                     /* 2-D, different pitches */
        {0, 0, 8, 4, 8, 8, 3, 32, 32},                                      /* 3-D that is contiguous */
        {64, 0, 6, 3, 10, 8, 4, 100, 40},                                   /* 3-D */
        {0, 0, 8, 4, 12, 8, 1, 0, 0},                                       /* rows that are contiguous in the source only, */
        {0, 0, 8, 4, 8, 12, 1, 0, 0},                                       /* in the destination only; */
        {0, 0, 8, 1, 8, 8, 3, 16, 8},                                       /* the same for slices */
        {0, 0, 8, 1, 8, 8, 3, 8, 16},        {0, 1, 1, 700, 3, 2, 1, 0, 0}, /* more rows than one call accepts */
        {8, 8, 0, 1, 0, 0, 1, 0, 0},                                        /* empty */
    };
    unsigned char *expect = malloc(WORDS * 4), *source = f->host->host, *got = to->host;

    assert_non_null(expect);
    for (unsigned i = 0; i < WORDS * 4; i++)
        source[i] = (unsigned char)(i * 31 + (i >> 8));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ct_copy_region *r = &rows[i];

        memset(expect, 0xcc, WORDS * 4);
        memset(got, 0xcc, WORDS * 4);
        for (uint64_t z = 0; z < r->slices; z++)
            for (uint64_t y = 0; y < r->rows; y++)
                memcpy(expect + r->dst_offset + z * r->dst_slice + y * r->dst_pitch,
                       source + r->src_offset + z * r->src_slice + y * r->src_pitch, r->row_bytes);
        ok(backend->queues->copy(f->queue, to, f->host, r, 1));
        await_all(f->queue);
        assert_memory_equal(got, expect, WORDS * 4);
    }
    free(expect);
    backend->memory->destroy(to);
}

/* More than one batch of bytes, to the device and back. */
static void test_large_copy(void **state)
{
    struct fixture *f = *state;
    const uint64_t size = (UINT64_C(150) << 20) + 12;
    struct ct_memory *host = make_memory(f->device, CT_MEMORY_HOST, size, 4096);
    struct ct_memory *device = make_memory(f->device, CT_MEMORY_DEVICE, size, 4096);
    struct ct_memory *back = make_memory(f->device, CT_MEMORY_HOST, size, 4096);
    const struct ct_copy_region all = run_of(0, 0, size);
    uint32_t *words = host->host;

    for (uint64_t i = 0; i < size / 4; i++)
        words[i] = (uint32_t)(i * 2654435761u);
    ok(backend->queues->copy(f->queue, device, host, &all, 1));
    ok(backend->queues->copy(f->queue, back, device, &all, 1));
    await_all(f->queue);
    assert_true(!memcmp(back->host, host->host, size));
    backend->memory->destroy(back);
    backend->memory->destroy(device);
    backend->memory->destroy(host);
}

static void test_bad_copies_and_fills(void **state)
{
    struct fixture *f = *state;
    static const struct ct_copy_region rows[] = {
        {0, 0, WORDS * 4 + 1, 1, 0, 0, 1, 0, 0},
        {1, 0, WORDS * 4, 1, 0, 0, 1, 0, 0},
        {UINT64_MAX, 0, 2, 1, 0, 0, 1, 0, 0},
        {0, 0, 4, 3, UINT64_MAX / 2, 4, 1, 0, 0},
        {0, 0, 4, 2, 4, WORDS * 4, 1, 0, 0},
        {0, 0, 4, 1, 0, 0, 2, WORDS * 4, 0},
        {0, 0, 4, 0, 0, 0, 1, 0, 0},
    };
    uint64_t point = backend->queues->point(f->queue);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(backend->queues->copy(f->queue, f->data, f->host, &rows[i], 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend->queues->fill(f->queue, f->data, 2, 4, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend->queues->fill(f->queue, f->data, 0, WORDS * 4 + 4, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend->queues->fill(f->queue, f->data, UINT64_MAX - 3, 8, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend->queues->point(f->queue), point);
}

/* ---- launches ---- */

/* Thousands of dependent commands; the result is right only if they run in order. Timeline points complete although the test neither
 * flushes nor waits. */
static void test_many_commands_in_order(void **state)
{
    struct fixture *f = *state;
    const struct timespec pause = {0, 1000000};
    uint32_t expect = 1;
    uint64_t done = 0, before = backend->queues->point(f->queue), last;

    ok(backend->queues->fill(f->queue, f->data, 0, WORDS * 4, 1));
    for (uint32_t i = 0; i < 5000; i++) {
        launch_step(f, f->queue, f->data, i, 256);
        expect = step_on_host(expect, i);
    }
    last = backend->queues->point(f->queue);
    assert_int_equal(last, before + 5001);
    for (int waits = 0; done < last && waits < 60000; waits++) {
        ok(backend->queues->completed(f->queue, &done));
        nanosleep(&pause, NULL);
    }
    assert_int_equal(done, last);
    assert_int_equal(download(f, f->queue, f->data, 1024)[0], expect);
    assert_int_equal(((uint32_t *)f->host->host)[255], expect);
    assert_int_equal(download(f, f->queue, f->data, 2048)[256], 1);
}

static void test_launch_and_wait_in_turn(void **state)
{
    struct fixture *f = *state;
    uint32_t expect = 0;

    ok(backend->queues->fill(f->queue, f->data, 0, 1024, 0));
    for (uint32_t i = 0; i < 500; i++) {
        launch_step(f, f->queue, f->data, i, 64);
        expect = step_on_host(expect, i);
        ok(backend->queues->await(f->queue, backend->queues->point(f->queue), LONG_ENOUGH, i & 1));
    }
    assert_int_equal(download(f, f->queue, f->data, 256)[63], expect);
}

static void check_grid(struct fixture *f, const uint32_t grid[3], const uint32_t block[3])
{
    uint64_t threads = (uint64_t)grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2], size = threads * 4;
    struct ct_memory *memory = make_memory(f->device, CT_MEMORY_DEVICE, size + 4, 4);
    struct ct_memory *host = make_memory(f->device, CT_MEMORY_HOST, size + 4, 4);
    const struct kernel_params params = {memory->address.v, 2, (uint32_t)threads};
    const struct ct_copy_region all = run_of(0, 0, size + 4);
    const uint32_t *words = host->host;
    struct ct_launch launch = {.kernel = f->step, .params = &params};

    memcpy(launch.grid, grid, sizeof launch.grid);
    memcpy(launch.block, block, sizeof launch.block);
    ok(backend->queues->fill(f->queue, memory, 0, size + 4, 1));
    ok(backend->queues->launch(f->queue, &launch));
    ok(backend->queues->copy(f->queue, host, memory, &all, 1));
    await_all(f->queue);
    for (uint64_t i = 0; i < threads; i++)
        assert_int_equal(words[i], step_on_host(1, 2)); /* each thread exactly once */
    assert_int_equal(words[threads], 1);
    backend->memory->destroy(host);
    backend->memory->destroy(memory);
}

/* lavapipe allocates memory for each block; with the address sanitizer millions of them need tens of gigabytes. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SMALL_GRIDS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SMALL_GRIDS 1
#endif

static void test_grids(void **state)
{
    struct fixture *f = *state;
    static const uint32_t rows[][2][3] = {
        {{1, 1, 1}, {1, 1, 1}},          {{5, 3, 2}, {4, 2, 3}},
        {{65535, 1, 1}, {2, 1, 1}},      {{65536, 1, 1}, {1, 1, 1}}, /* one more than some devices accept */
        {{70001, 3, 1}, {1, 1, 1}},      {{1, 65535, 1}, {1, 1, 1}},
#ifndef SMALL_GRIDS
        {{65535 * 17, 1, 1}, {1, 1, 1}}, /* more than one submission can contain: 2^20 blocks */
        {{3, 700, 701}, {1, 1, 1}},
#endif
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_grid(f, rows[i][0], rows[i][1]);
}

static void test_shared_memory_and_blocks(void **state)
{
    struct fixture *f = *state;
    static const uint32_t blocks[] = {1, 2, 31, 32, 33, 64, 96, 128};

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        uint32_t threads = blocks[i], grid = WORDS / threads;
        const struct kernel_params params = {f->data->address.v, 100, WORDS};
        const struct ct_launch launch = {
            .kernel = f->reverse, .grid = {grid, 1, 1}, .block = {threads, 1, 1}, .params = &params, .dynamic_shared_bytes = threads * 4};
        const uint32_t *words;

        ok(backend->queues->launch(f->queue, &launch));
        words = download(f, f->queue, f->data, WORDS * 4);
        for (uint32_t k = 0; k < grid * threads; k++)
            assert_int_equal(words[k], k - k % threads + (threads - 1 - k % threads) + 100);
    }
}

static void test_bad_launches(void **state)
{
    struct fixture *f = *state;
    const struct kernel_params params = {f->data->address.v, 0, 0};
    const uint32_t most = f->info->max_block_threads;
    struct {
        const char *name;
        struct ct_kernel_image *kernel;
        uint32_t grid[3], block[3], dynamic_shared_bytes;
    } rows[] = {
        {"empty grid", f->step, {1, 0, 1}, {1, 1, 1}, 0},
        {"empty block", f->step, {1, 1, 1}, {1, 1, 0}, 0},
        {"grid too large", f->step, {1, 65536, 1}, {1, 1, 1}, 0},
        {"block too large", f->step, {1, 1, 1}, {most + 1, 1, 1}, 0},
        {"block product too large", f->step, {1, 1, 1}, {most, 2, 1}, 0},
        {"block product overflows", f->step, {1, 1, 1}, {0x80000000u, 0x80000000u, 4}, 0},
        {"too much shared memory", f->reverse, {1, 1, 1}, {1, 1, 1}, f->info->shared_bytes + 4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ct_launch launch = {.kernel = rows[i].kernel, .params = &params, .dynamic_shared_bytes = rows[i].dynamic_shared_bytes};

        memcpy(launch.grid, rows[i].grid, sizeof launch.grid);
        memcpy(launch.block, rows[i].block, sizeof launch.block);
        if (backend->queues->launch(f->queue, &launch) != CUDA_ERROR_INVALID_VALUE)
            fail_msg("%s", rows[i].name);
    }
}

static void test_too_many_parameters(void **state)
{
    struct fixture *f = *state;
    uint32_t words[5] = {0x07230203, 0x00010300, 0, 1, 0};
    const struct ptx2spv_kernel kernel = {.words = words, .n_words = 5, .info = {.param_bytes = subject->most_param_bytes + 4}};
    struct ct_kernel_image *image = NULL;

    if (!subject->most_param_bytes)
        skip();
    assert_int_equal(backend->kernels->create(f->device, "wide", &kernel, &image), CUDA_ERROR_NOT_SUPPORTED);
    assert_null(image);
    backend->kernels->destroy(NULL);
}

/* ---- order between queues ---- */

/* Two queues alternate on the same words, each waiting for the other: thousands of dependencies; the result is right only in order. */
static void test_queues_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    struct ct_queue *queues[3] = {f->queue, make_queue(f->device, 0), make_queue(f->device, -1)};
    uint32_t expect = 1, i;

    ok(backend->queues->fill(queues[0], f->data, 0, 1024, 1));
    ok(backend->queues->wait_queue(queues[1], queues[0], backend->queues->point(queues[0])));
    for (i = 0; i < 1500; i++) {
        struct ct_queue *mine = queues[(i + 1) % 3], *next = queues[(i + 2) % 3];

        for (uint32_t k = 0; k <= i % 3; k++) {
            launch_step(f, mine, f->data, i + k, 256);
            expect = step_on_host(expect, i + k);
        }
        ok(backend->queues->wait_queue(next, mine, backend->queues->point(mine)));
    }
    assert_int_equal(download(f, queues[(i + 1) % 3], f->data, 1024)[255], expect);
    assert_int_equal(backend->queues->wait_queue(queues[0], queues[1], backend->queues->point(queues[1]) + 1), CUDA_ERROR_INVALID_VALUE);
    for (int q = 0; q < 3; q++)
        await_all(queues[q]);
    backend->queues->destroy(queues[1]);
    backend->queues->destroy(queues[2]);
}

#define HELD_LAUNCHES 1500u /* more than OpenCL can place in one piece of its memory for arguments */

/* A queue that waits for the host does not delay other queues, even on a device with one VkQueue; a queue that waits for it continues
 * afterwards. */
static void test_host_timeline(void **state)
{
    struct fixture *f = *state;
    struct ct_queue *held = make_queue(f->device, 0), *follower = make_queue(f->device, 0);
    struct ct_timeline *timeline = NULL;
    uint64_t done = 0;

    ok(backend->timelines->create(f->device, &timeline));
    ok(backend->queues->fill(f->queue, f->data, 0, 1024, 1));
    await_all(f->queue);
    ok(backend->queues->wait(held, timeline, 5));
    for (uint32_t i = 0; i < HELD_LAUNCHES; i++)
        launch_step(f, held, f->data, i, 64); /* the parameters of each remain until it runs */
    ok(backend->queues->wait_queue(follower, held, backend->queues->point(held)));
    launch_step(f, follower, f->data, 11, 64);
    ok(backend->queues->flush(held));
    ok(backend->queues->flush(follower));
    assert_int_equal(backend->queues->await(follower, backend->queues->point(follower), SECOND / 20, false), CUDA_ERROR_NOT_READY);
    ok(backend->queues->completed(held, &done));
    assert_int_equal(done, 0);
    assert_int_equal(download(f, f->queue, f->data, 1024)[0], 1); /* the other queue runs */
    ok(backend->timelines->signal(timeline, 4));
    assert_int_equal(backend->queues->await(held, backend->queues->point(held), SECOND / 50, true), CUDA_ERROR_NOT_READY);
    ok(backend->timelines->signal(timeline, 5));
    await_all(follower);
    {
        uint32_t expect = 1;

        for (uint32_t i = 0; i < HELD_LAUNCHES; i++)
            expect = step_on_host(expect, i);
        assert_int_equal(download(f, f->queue, f->data, 1024)[63], step_on_host(expect, 11));
    }
    ok(backend->queues->wait(held, timeline, 3)); /* reached long before */
    await_all(held);
    backend->timelines->destroy(timeline);
    backend->queues->destroy(follower);
    backend->queues->destroy(held);
}

static void test_queue_signals_timeline(void **state)
{
    struct fixture *f = *state;
    struct ct_queue *waiter = make_queue(f->device, 0);
    struct ct_timeline *timeline = NULL;

    ok(backend->timelines->create(f->device, &timeline));
    assert_int_equal(backend->timelines->await(timeline, 1, 0), CUDA_ERROR_NOT_READY);
    assert_int_equal(backend->timelines->await(timeline, 1, 1000000), CUDA_ERROR_NOT_READY);
    ok(backend->queues->wait(waiter, timeline, 7)); /* before the signal is recorded */
    launch_step(f, waiter, f->data, 1, 64);
    ok(backend->queues->fill(f->queue, f->data, 0, 1024, 2));
    ok(backend->queues->signal(f->queue, timeline, 7));
    ok(backend->timelines->await(timeline, 7, LONG_ENOUGH));
    assert_int_equal(download(f, waiter, f->data, 256)[0], step_on_host(2, 1));
    assert_int_equal(backend->queues->signal(f->queue, timeline, 7), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(backend->timelines->signal(timeline, 6), CUDA_ERROR_INVALID_VALUE);
    ok(backend->timelines->signal(timeline, 8));
    ok(backend->timelines->await(timeline, 8, 0));
    backend->timelines->destroy(timeline);
    backend->queues->destroy(waiter);
}

static void test_waiting_for_what_is_not_recorded(void **state)
{
    struct fixture *f = *state;
    struct ct_queue *queue = make_queue(f->device, 0);
    uint64_t done = 99;

    assert_int_equal(backend->queues->point(queue), 0);
    ok(backend->queues->completed(queue, &done));
    assert_int_equal(done, 0);
    ok(backend->queues->await(queue, 0, LONG_ENOUGH, true));
    assert_int_equal(backend->queues->await(queue, 1, 0, false), CUDA_ERROR_INVALID_VALUE);
    ok(backend->queues->flush(queue));
    backend->queues->destroy(queue);
    backend->queues->destroy(NULL);
}

static void test_timestamps(void **state)
{
    struct fixture *f = *state;
    struct ct_timestamp *times[70] = {NULL};
    double before = 0, now;

    if (!f->info->timestamps) {
        assert_int_equal(backend->timestamps->create(f->device, &times[0]), CUDA_ERROR_NOT_SUPPORTED);
        return;
    }
    for (int i = 0; i < 70; i++)
        ok(backend->timestamps->create(f->device, &times[i]));
    assert_int_equal(backend->timestamps->read(times[0], &now), CUDA_ERROR_NOT_READY);
    for (int i = 0; i < 70; i++) {
        ok(backend->queues->timestamp(f->queue, times[i]));
        launch_step(f, f->queue, f->data, 1, WORDS);
    }
    await_all(f->queue);
    for (int i = 0; i < 70; i++) {
        ok(backend->timestamps->read(times[i], &now));
        assert_true(i == 0 || now >= before);
        before = now;
    }
    ok(backend->queues->timestamp(f->queue, times[0])); /* recorded again: the later time counts */
    await_all(f->queue);
    ok(backend->timestamps->read(times[0], &now));
    assert_true(now > before && now - before < 60e9);
    for (int i = 0; i < 70; i++)
        backend->timestamps->destroy(times[i]);
    backend->timestamps->destroy(NULL);
}

/* ---- threads ---- */

struct worker {
    struct fixture *f;
    pthread_t thread;
    uint32_t seed, expect, got;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct fixture *f = worker->f;
    const struct ct_queue_desc desc = {0};
    const struct ct_memory_request device_request = {.size_bytes = 1024, .align = 4, .kind = CT_MEMORY_DEVICE};
    const struct ct_memory_request host_request = {.size_bytes = 1024, .align = 4, .kind = CT_MEMORY_HOST};
    const struct ct_copy_region all = run_of(0, 0, 1024);
    struct ct_queue *queue = NULL;
    struct ct_memory *data = NULL, *host = NULL;
    bool fine = backend->queues->create(f->device, &desc, &queue) == CUDA_SUCCESS;

    fine = fine && backend->memory->create(f->device, &device_request, &data) == CUDA_SUCCESS;
    fine = fine && backend->memory->create(f->device, &host_request, &host) == CUDA_SUCCESS;
    fine = fine && backend->queues->fill(queue, data, 0, 1024, worker->seed) == CUDA_SUCCESS;
    worker->expect = worker->seed;
    for (uint32_t i = 0; i < 300 && fine; i++) {
        const struct kernel_params params = {data->address.v, i, 256};
        const struct ct_launch launch = {
            .kernel = f->step, .grid = {256 / (1 + i % 16), 1, 1}, .block = {1 + i % 16, 1, 1}, .params = &params};

        fine = backend->queues->launch(queue, &launch) == CUDA_SUCCESS;
        worker->expect = step_on_host(worker->expect, i);
        if (i % 37 == 0)
            fine = fine && backend->queues->await(queue, backend->queues->point(queue), LONG_ENOUGH, i & 1) == CUDA_SUCCESS;
    }
    fine = fine && backend->queues->copy(queue, host, data, &all, 1) == CUDA_SUCCESS;
    fine = fine && backend->queues->await(queue, backend->queues->point(queue), LONG_ENOUGH, false) == CUDA_SUCCESS;
    worker->got = fine ? *(uint32_t *)host->host : ~worker->expect;
    backend->memory->destroy(host);
    backend->memory->destroy(data);
    backend->queues->destroy(queue);
    return NULL;
}

static void test_threads(void **state)
{
    struct worker workers[6];

    for (uint32_t i = 0; i < 6; i++) {
        workers[i] = (struct worker){.f = *state, .seed = i * 7};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 6; i++)
        pthread_join(workers[i].thread, NULL);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(workers[i].got, workers[i].expect);
}

static void test_validation_is_silent(void **state)
{
    (void)state;
    assert_int_equal(ct_vk_validation_messages(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_facts),
        cmocka_unit_test(test_enumerate_gives_the_same_again),
        cmocka_unit_test(test_two_opens_are_independent),
        cmocka_unit_test(test_memory_kinds),
        cmocka_unit_test(test_chosen_addresses),
        cmocka_unit_test(test_imported_host_memory),
        cmocka_unit_test(test_bad_memory_requests),
        cmocka_unit_test(test_copy_rows_and_slices),
        cmocka_unit_test(test_large_copy),
        cmocka_unit_test(test_bad_copies_and_fills),
        cmocka_unit_test(test_many_commands_in_order),
        cmocka_unit_test(test_launch_and_wait_in_turn),
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_shared_memory_and_blocks),
        cmocka_unit_test(test_bad_launches),
        cmocka_unit_test(test_too_many_parameters),
        cmocka_unit_test(test_queues_wait_for_each_other),
        cmocka_unit_test(test_host_timeline),
        cmocka_unit_test(test_queue_signals_timeline),
        cmocka_unit_test(test_waiting_for_what_is_not_recorded),
        cmocka_unit_test(test_timestamps),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_validation_is_silent),
    };
    unsigned index;
    int failed;

    for (size_t i = 0; argc == 2 && i < sizeof subjects / sizeof *subjects; i++) {
        if (!strcmp(argv[1], subjects[i].backend->name))
            subject = &subjects[i];
    }
    if (!subject) {
        fprintf(stderr, "usage: %s vulkan|opencl\n", argv[0]);
        return EXIT_FAILURE;
    }
    backend = subject->backend;
    if (!choose_device(&index)) {
        printf("no device of the backend %s\n", backend->name);
        return 77;
    }
    counted_objects_begin();
    failed = cmocka_run_group_tests(tests, setup, teardown);
    /* Not in the teardown: cmocka's result does not include a group's teardown. */
    return failed || counted_objects_leaked() || ct_vk_validation_messages();
}
