/* SPDX-License-Identifier: Apache-2.0 */
/* Freed device memory is kept for the next allocation of its size, counts as free, and is released if another allocation needs it. With
 * CUTTLE_SPARE_MIB=8. */
#include "../api/api_test.h"

#include "mock_backend.h"

#include "core/backing/memory_budget.h"
#include "core/backing/memory_spares.h"
#include "core/vmm/vmm_handle.h"

#define MIB ((size_t)1 << 20)

static size_t free_bytes(void)
{
    size_t free, total;

    ok(cuMemGetInfo(&free, &total));
    assert_true(free <= total);
    return free;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr p;

    ok(cuMemAlloc(&p, bytes));
    return p;
}

static void the_same_size_is_given_again(void **state)
{
    unsigned before = mock_count().memories;
    CUdeviceptr first = allocate(3 * MIB), second;

    (void)state;
    ok(cuMemFree(first));
    assert_int_equal(mock_count().memories, before + 1); /* the driver still has it */
    second = allocate(3 * MIB - 5);                      /* rounded up */
    assert_int_equal(second, first);
    assert_int_equal(mock_count().memories, before + 1);
    ok(cuMemFree(second));
}

static void others_get_memory_of_their_own(void **state)
{
    CUdeviceptr first = allocate(3 * MIB), second, third;
    unsigned before = mock_count().memories;

    (void)state;
    second = allocate(3 * MIB);
    assert_true(second >= first + 3 * MIB || first >= second + 3 * MIB);
    ok(cuMemFree(first));
    third = allocate(2 * MIB);
    assert_int_equal(mock_count().memories, before + 2);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(first)); /* it is kept, but freed */
    ok(cuMemFree(second));
    ok(cuMemFree(third));
}

static void spares_count_as_free(void **state)
{
    size_t before = free_bytes();
    CUdeviceptr p = allocate(4 * MIB);

    (void)state;
    assert_int_equal(free_bytes(), before - 4 * MIB);
    ok(cuMemFree(p));
    assert_int_equal(free_bytes(), before);
}

/* With a limit of 8 MiB the oldest is released. */
static void no_more_is_kept_than_was_said(void **state)
{
    CUdeviceptr p[4];
    unsigned with_all;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        p[i] = allocate((i + 2) * MIB); /* 2, 3, 4, 5 */
    with_all = mock_count().memories;
    for (size_t i = 0; i < 4; i++)
        ok(cuMemFree(p[i])); /* 3 and 5 would fit, but the newest are kept: only 5 */
    assert_int_equal(mock_count().memories, with_all - 3);
    p[0] = allocate(9 * MIB);
    ok(cuMemFree(p[0])); /* too large to be kept */
    assert_int_equal(mock_count().memories, with_all - 3);
}

static void spares_go_when_memory_is_short(void **state)
{
    CUdeviceptr kept = allocate(5 * MIB), most, rest;
    size_t free;

    (void)state;
    ok(cuMemFree(kept));
    free = free_bytes() / MIB * MIB;
    most = allocate(free / 2);
    rest = allocate(free - free / 2); /* does not fit beside the kept memory */
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&kept, 8 * MIB));
    ok(cuMemFree(most));
    ok(cuMemFree(rest));
    ok(cuMemFree(allocate(5 * MIB)));
}

static void a_context_takes_its_memory_along(void **state)
{
    unsigned before;
    CUcontext context;
    CUdeviceptr p;

    (void)state;
    ok(cuMemFree(allocate(5 * MIB)));
    before = mock_count().memories;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    p = allocate(6 * MIB);
    ok(cuMemFree(p));
    ok(cuCtxDestroy(context));
    assert_int_equal(mock_count().memories, before - 1); /* no other memory is kept either */
    ok(cuMemFree(allocate(5 * MIB)));
}

/* ---- memory without addresses, of a kind that only counts calls ---- */

static unsigned finished;

static void count_finished(struct ct_vmm_memory *memory)
{
    finished++;
    memory->size_bytes = 0;
}

static const struct ct_vmm_implementation counting = {.memory_finish = count_finished};

/* Like cuMemCreate and cuMemRelease. False: it is not kept. */
static bool create_and_release(struct ct_device *device, size_t bytes, int mark)
{
    const struct ct_vmm_memory memory = {.device = device, .size_bytes = bytes, .fd = mark};

    ok(ct_budget_take(device, bytes));
    if (ct_spares_put_physical(device->spares, &counting, &memory))
        return true;
    ct_budget_give(device, bytes);
    return false;
}

static void physical_memory_is_kept_apart(void **state)
{
    struct ct_device *device = ct_vmm_default_device();
    size_t before = free_bytes();
    struct ct_vmm_memory got = {0};
    CUdeviceptr p;

    (void)state;
    finished = 0;
    ct_spares_trim(device->spares);
    assert_true(create_and_release(device, 4 * MIB, 7));
    assert_int_equal(free_bytes(), before);
    p = allocate(4 * MIB); /* this one needs an address */
    assert_false(ct_spares_take_physical(device->spares, 2 * MIB, &got));
    assert_true(ct_spares_take_physical(device->spares, 4 * MIB, &got));
    assert_int_equal(got.fd, 7);
    assert_int_equal(free_bytes(), before - 8 * MIB); /* it is counted, as before */
    assert_false(ct_spares_take_physical(device->spares, 4 * MIB, &got));
    ct_budget_give(device, 4 * MIB);
    ok(cuMemFree(p));
    assert_int_equal(free_bytes(), before);
    assert_int_equal(finished, 0);
}

static void one_limit_is_for_both_kinds(void **state)
{
    struct ct_device *device = ct_vmm_default_device();
    size_t before = free_bytes(), all;
    CUdeviceptr most, rest;

    (void)state;
    finished = 0;
    ct_spares_trim(device->spares);
    assert_false(create_and_release(device, 10 * MIB, 1));
    assert_true(create_and_release(device, 4 * MIB, 1));
    ok(cuMemFree(allocate(6 * MIB)));
    assert_int_equal(finished, 1); /* the oldest */
    assert_true(create_and_release(device, 2 * MIB, 1));
    all = free_bytes() / MIB * MIB;
    assert_int_equal(free_bytes(), before);
    most = allocate(all / 2);
    rest = allocate(all - all / 2); /* needs the kept memory */
    assert_int_equal(finished, 2);
    ok(cuMemFree(most));
    ok(cuMemFree(rest));
    assert_int_equal(free_bytes(), before);
}

static int finish(void **state)
{
    int r = without_context(state);

    return r || mock_count().memories || mock_faults();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_size_is_given_again),   cmocka_unit_test(others_get_memory_of_their_own),
        cmocka_unit_test(spares_count_as_free),           cmocka_unit_test(no_more_is_kept_than_was_said),
        cmocka_unit_test(spares_go_when_memory_is_short), cmocka_unit_test(a_context_takes_its_memory_along),
        cmocka_unit_test(physical_memory_is_kept_apart),  cmocka_unit_test(one_limit_is_for_both_kinds),
    };

    return cmocka_run_group_tests(tests, with_context, finish);
}
