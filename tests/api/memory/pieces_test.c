/* SPDX-License-Identifier: Apache-2.0 */
/* Memory larger than a driver's largest allocation: copies, fills and kernels cross the boundaries of its pieces without any effect on
 * their results. ctest makes the pieces small (CUTTLE_PIECE_BYTES); with `--large` the program allocates 5 GiB, more than any Vulkan driver
 * allocates at once. It is a plain program of the driver API. */
#include "seeds.h"

#define WINDOW_WORDS (100u << 10) /* several pieces of 64 KiB */
#define WINDOW_BYTES (WINDOW_WORDS * 4)
#define SMALL_BYTES ((size_t)3 << 20)
#define LARGE_BYTES ((size_t)5 << 30)
#define STEPS 60

static size_t total_bytes = SMALL_BYTES;

static uint32_t next_random(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)*state * below) >> 32);
}

/* A window of device memory, and its expected contents. */
struct window {
    CUdeviceptr start;
    unsigned char *want, *scratch;
    void *pinned;
    CUfunction step;
};

static void upload(struct window *w, uint32_t at, uint32_t bytes, uint32_t seed)
{
    unsigned char *from = seed & 1 ? w->pinned : w->scratch;

    for (uint32_t i = 0; i < bytes; i++)
        from[i] = w->want[at + i] = (unsigned char)(seed + i * 13);
    ok(cuMemcpyHtoD(w->start + at, from, bytes));
}

static void fill(struct window *w, uint32_t at, uint32_t bytes, uint32_t seed)
{
    memset(w->want + at, (int)(seed & 0xff), bytes);
    ok(cuMemsetD8(w->start + at, (unsigned char)seed, bytes));
}

/* Copies one half of a range to the other: the piece boundaries are at different offsets in each. */
static void move(struct window *w, uint32_t at, uint32_t bytes, uint32_t seed)
{
    uint32_t half = bytes / 2, to = seed & 1 ? at : at + half, from = seed & 1 ? at + half : at;

    memcpy(w->want + to, w->want + from, half);
    ok(cuMemcpyDtoD(w->start + to, w->start + from, half));
}

static void work(struct window *w, uint32_t at, uint32_t bytes, uint32_t seed)
{
    uint32_t *words = (uint32_t *)(void *)(w->want + (at & ~3u));
    CUdeviceptr p = w->start + (at & ~3u);
    unsigned count = bytes / 4;

    (void)seed;
    for (unsigned i = 0; i < count; i++)
        words[i] = words[i] * 3 + 1;
    ok(cuLaunchKernel(w->step, (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&p, &count}, NULL));
}

static void check(struct window *w, uint32_t seed)
{
    unsigned char *back = seed & 1 ? w->pinned : w->scratch;

    ok(cuMemcpyDtoH(back, w->start, WINDOW_BYTES));
    assert_memory_equal(back, w->want, WINDOW_BYTES);
}

static void do_all_in(CUdeviceptr start)
{
    static void (*const operations[])(struct window *, uint32_t, uint32_t, uint32_t) = {upload, fill, move, work};
    struct window w = {.start = start, .want = malloc(WINDOW_BYTES), .scratch = malloc(WINDOW_BYTES)};
    uint32_t state = (uint32_t)start;
    CUmodule module;

    ok(cuMemHostAlloc(&w.pinned, WINDOW_BYTES, 0));
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&w.step, module, "step"));
    upload(&w, 0, WINDOW_BYTES, 5);
    for (unsigned i = 0; i < STEPS; i++) {
        uint32_t at = next_random(&state, WINDOW_BYTES - 8), bytes = 4 + next_random(&state, WINDOW_BYTES - at - 4);

        operations[next_random(&state, 4)](&w, at, bytes, next_random(&state, 1000));
        if (i % 8 == 7)
            check(&w, i / 8);
    }
    check(&w, 0);
    ok(cuModuleUnload(module));
    ok(cuMemFreeHost(w.pinned));
    free(w.want);
    free(w.scratch);
}

static void device_memory(void **state)
{
    CUdeviceptr start;
    size_t size;

    (void)state;
    ok(cuMemAlloc(&start, total_bytes));
    ok(cuMemGetAddressRange(NULL, &size, start + total_bytes - 1));
    assert_true(size >= total_bytes);
    do_all_in(start);
    do_all_in(start + total_bytes / 2 - 777 * 4);
    do_all_in(start + total_bytes - WINDOW_BYTES);
    if (total_bytes > (size_t)1 << 32) { /* around 4 GiB, where a boundary is most likely */
        do_all_in(start + ((size_t)1 << 32) - WINDOW_BYTES / 2);
        do_all_in(start + ((size_t)1 << 32) - ((size_t)2 << 20) - WINDOW_BYTES / 2);
    }
    ok(cuMemFree(start));
}

/* One copy and one fill of the whole memory. */
static void whole_memory(void **state)
{
    CUdeviceptr start;
    uint32_t back[2];

    (void)state;
    ok(cuMemAlloc(&start, total_bytes));
    ok(cuMemsetD32(start, 0x12345678, total_bytes / 4));
    ok(cuMemcpyDtoD(start, start + total_bytes / 2, total_bytes / 2));
    ok(cuMemcpyDtoH(&back[0], start, 4));
    ok(cuMemcpyDtoH(&back[1], start + total_bytes - 4, 4));
    assert_int_equal(back[0], 0x12345678);
    assert_int_equal(back[1], 0x12345678);
    ok(cuMemFree(start));
}

static void host_memory(void **state)
{
    const unsigned words = SMALL_BYTES / 4;
    CUdeviceptr device;
    uint32_t *host;

    (void)state;
    for (unsigned flags = 0; flags <= CU_MEMHOSTALLOC_WRITECOMBINED; flags += CU_MEMHOSTALLOC_WRITECOMBINED) {
        ok(cuMemHostAlloc((void **)&host, SMALL_BYTES, flags));
        ok(cuMemHostGetDevicePointer(&device, host, 0));
        seeds_shared_words(host, device, words);
        ok(cuMemFreeHost(host));
    }
    host = malloc(SMALL_BYTES);
    ok(cuMemHostRegister(host, SMALL_BYTES, 0));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    seeds_shared_words(host, device, words);
    ok(cuMemHostUnregister(host));
    free(host);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory),
        cmocka_unit_test(whole_memory),
        cmocka_unit_test(host_memory),
    };

    if (argc > 1 && !strcmp(argv[1], "--large"))
        total_bytes = LARGE_BYTES;
    return cmocka_run_group_tests(tests, with_context, without_context);
}
