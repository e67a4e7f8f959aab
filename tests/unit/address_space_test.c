/* SPDX-License-Identifier: Apache-2.0 */
/* The address map, compared with a plain list, with concurrent readers and writers, and the memory that it uses as it grows. */
#include "../api/api_test.h"

#include "core/backing/address_rule.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static struct ct_range range_at(uint64_t start, uint64_t size_bytes, unsigned long long id)
{
    return (struct ct_range){.start = start, .size_bytes = size_bytes, .device_pointer = start, .id = id, .kind = CT_RANGE_DEVICE};
}

/* The state of the replaced system calls: the memory that they have mapped, and whether they map more. The linker redirects the library's
 * calls here. */
static struct {
    size_t given_bytes, huge_bytes, refused_bytes;
    bool no_memory;
} from_system;

void *__real_aligned_alloc(size_t align, size_t size_bytes);
void *__wrap_aligned_alloc(size_t align, size_t size_bytes);
int __wrap_madvise(void *start, size_t size_bytes, int advice);
int __real_madvise(void *start, size_t size_bytes, int advice);

void *__wrap_aligned_alloc(size_t align, size_t size_bytes)
{
    from_system.given_bytes += from_system.no_memory ? 0 : size_bytes;
    return from_system.no_memory ? NULL : __real_aligned_alloc(align, size_bytes);
}

/* Every second request for a huge page is refused, as by a kernel that has none. */
int __wrap_madvise(void *start, size_t size_bytes, int advice)
{
    assert_int_equal(advice, MADV_HUGEPAGE);
    assert_int_equal((uintptr_t)start % ((size_t)2 << 20), 0);
    if (from_system.refused_bytes < from_system.huge_bytes) {
        from_system.refused_bytes += size_bytes;
        errno = EINVAL;
        return -1;
    }
    from_system.huge_bytes += size_bytes;
    return __real_madvise(start, size_bytes, advice);
}

/* Returns range `i` of many, at addresses of 40 bits. */
static struct ct_range one_of_many(uint64_t i)
{
    return range_at(0x1000000000 + i * 0x400, 0x200, i + 1);
}

/* Inserts the ranges from number `from` up to number `to`, or until memory has run out; returns the number of the first that is not inserted. */
static uint64_t insert_many(uint64_t from, uint64_t to)
{
    uint64_t i = from;

    for (CUresult r = CUDA_SUCCESS; i < to && r == CUDA_SUCCESS; i += r == CUDA_SUCCESS) {
        const struct ct_range range = one_of_many(i);

        r = ct_address_insert(&range);
        assert_true(r == CUDA_SUCCESS || (r == CUDA_ERROR_OUT_OF_MEMORY && from_system.no_memory));
    }
    return i;
}

static void remove_many(uint64_t to)
{
    struct ct_range removed;

    for (uint64_t i = 0; i < to; i++) {
        const struct ct_range range = one_of_many(i);

        ok(ct_address_remove(range.start, CT_RANGE_DEVICE, &removed));
        assert_memory_equal(&removed, &range, sizeof range);
    }
}

static void all_are_found(uint64_t to)
{
    struct ct_range found;

    for (uint64_t i = 0; i < to; i++) {
        const struct ct_range range = one_of_many(i);

        ok(ct_address_find(range.start + 0x1ff, 1, &found));
        assert_memory_equal(&found, &range, sizeof range);
        assert_false(ct_address_find_any(range.start + 0x200, 1, &found));
    }
}

/* The first test: few ranges use little memory; that of many consists of huge pages if the system has some, and is reused. */
static void memory_grows_with_the_ranges(void **state)
{
    enum { FEW = 256, MANY = 18000 };
    size_t given_bytes;

    (void)state;
    assert_int_equal(from_system.given_bytes, 0);
    insert_many(0, FEW);
    assert_in_range(from_system.given_bytes, FEW * sizeof(struct ct_range), 64 << 10);
    insert_many(FEW, MANY);
    all_are_found(MANY);
    given_bytes = from_system.given_bytes;
    assert_in_range(given_bytes, MANY * sizeof(struct ct_range), 3 * MANY * sizeof(struct ct_range));
    assert_true(from_system.huge_bytes > 0 && from_system.refused_bytes > 0);
    assert_in_range(from_system.huge_bytes + from_system.refused_bytes, given_bytes - (1 << 20), given_bytes);
    remove_many(MANY);
    insert_many(0, MANY);
    remove_many(MANY);
    assert_int_equal(from_system.given_bytes, given_bytes);
}

/* After memory has run out, the map keeps its contents, and ranges can be inserted again once there is memory. */
static void memory_may_run_out(void **state)
{
    enum { ALL = 100000 };
    uint64_t full;

    (void)state;
    from_system.no_memory = true;
    full = insert_many(0, ALL);
    assert_in_range(full, 1, ALL - 1);
    assert_int_equal(insert_many(full, ALL), full);
    from_system.no_memory = false;
    assert_int_equal(insert_many(full, full + 1000), full + 1000);
    all_are_found(full + 1000);
    remove_many(full + 1000);
}

static void find_knows_the_edges(void **state)
{
    const struct ct_range range = range_at(0x1000, 0x100, 1);
    struct ct_range found;

    (void)state;
    ok(ct_address_insert(&range));
    ok(ct_address_find(0x1000, 0x100, &found));
    assert_int_equal(found.id, 1);
    ok(ct_address_find(0x10ff, 1, &found));
    ok(ct_address_find(0x10ff, 0, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0xfff, 1, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0x1100, 1, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0x1100, 0, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0x1000, 0x101, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0x1001, UINT64_MAX, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0, 1, &found));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(UINT64_MAX, 1, &found));
    assert_true(ct_address_find_any(0xf00, 0x101, &found));
    assert_false(ct_address_find_any(0xf00, 0x100, &found));
    assert_true(ct_address_find_any(0x10ff, 0x1000, &found));
    assert_false(ct_address_find_any(0x1100, 0x1000, &found));
    ok(ct_address_remove(0x1000, CT_RANGE_DEVICE, &found));
    assert_int_equal(found.id, 1);
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_find(0x1000, 1, &found));
}

static void insert_refuses_what_overlaps(void **state)
{
    static const struct {
        uint64_t start, size;
    } bad[] = {{0x1000, 1}, {0x10ff, 1}, {0xfff, 2}, {0xf00, 0x1000}, {0x1050, 0x10}, {0x2000, 0}, {UINT64_MAX, 2}};
    const struct ct_range good = range_at(0x1000, 0x100, 1), before = range_at(0xf00, 0x100, 2), behind = range_at(0x1100, 0x100, 3);
    struct ct_range removed;

    (void)state;
    ok(ct_address_insert(&good));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct ct_range range = range_at(bad[i].start, bad[i].size, 9);

        gives(CUDA_ERROR_INVALID_VALUE, ct_address_insert(&range));
    }
    ok(ct_address_insert(&before));
    ok(ct_address_insert(&behind));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_remove(0x1001, CT_RANGE_DEVICE, &removed));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_remove(0x1000, CT_RANGE_HOST, &removed));
    ok(ct_address_remove(0x1000, CT_RANGE_DEVICE, &removed));
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_remove(0x1000, CT_RANGE_DEVICE, &removed));
    ok(ct_address_remove(0xf00, CT_RANGE_DEVICE, &removed));
    ok(ct_address_remove(0x1100, CT_RANGE_DEVICE, &removed));
}

static void synchronous_is_of_one_range(void **state)
{
    struct ct_range found;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_set_synchronous(0x5000, 7, true));
    for (uint64_t i = 0; i < 32; i++) {
        struct ct_range other = range_at(0x1000 + i * 0x1000, 0x100, i == 4 ? 7 : 100 + i);

        ok(ct_address_insert(&other));
    }
    ok(ct_address_set_synchronous(0x5000, 7, true));
    for (uint64_t i = 0; i < 32; i++) {
        ok(ct_address_find(0x1000 + i * 0x1000, 0x100, &found));
        assert_int_equal(found.synchronous, i == 4);
        assert_int_equal(found.size_bytes, 0x100);
    }
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_set_synchronous(0x5000, 8, true)); /* another allocation at the same address */
    gives(CUDA_ERROR_INVALID_VALUE, ct_address_set_synchronous(0x5001, 7, true));
    for (uint64_t i = 0; i < 32; i++)
        ok(ct_address_remove(0x1000 + i * 0x1000, CT_RANGE_DEVICE, &found));
}

/* Adjacent ranges from one byte to most of the address space: looks up both ends of each, and the bytes before and after it. */
static void any_size_at_any_address(void **state)
{
    static const struct {
        uint64_t start, last;
    } rows[] = {
        {0, 0},
        {1, 0xff},
        {0x100, 0x100},
        {0x101, 0x1ffff},
        {0x20000, 0x7fffffffffff},
        {0x800000000001, 0xfffffffffffffdff},
        {0xfffffffffffffe00, 0xfffffffffffffffd},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct ct_range found;

    (void)state;
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < ROWS; i++) {
            unsigned row = (i * 3 + turn) % ROWS; /* in a different order each time */
            const struct ct_range range = range_at(rows[row].start, rows[row].last - rows[row].start + 1, row + 1);

            ok(ct_address_insert(&range));
            gives(CUDA_ERROR_INVALID_VALUE, ct_address_insert(&range));
        }
        for (unsigned row = 0; row < ROWS; row++) {
            ok(ct_address_find(rows[row].start, 0, &found));
            assert_int_equal(found.id, row + 1);
            ok(ct_address_find(rows[row].last, 1, &found));
            assert_int_equal(found.id, row + 1);
            assert_true(ct_address_find_any(rows[row].start / 2 + rows[row].last / 2, 1, &found));
        }
        assert_false(ct_address_find_any(0x800000000000, 1, &found)); /* the one byte between two of them */
        assert_true(ct_address_find_any(0x800000000000, 2, &found));
        assert_int_equal(found.id, 6);
        assert_false(ct_address_find_any(0xfffffffffffffffe, UINT64_MAX, &found));
        for (unsigned i = 0; i < ROWS; i++) {
            unsigned row = (i * 5 + turn) % ROWS;

            ok(ct_address_remove(rows[row].start, CT_RANGE_DEVICE, &found));
            assert_int_equal(ct_address_find_any(0, UINT64_MAX, &found), i + 1 < ROWS);
            assert_false(ct_address_find_any(rows[row].start, rows[row].last - rows[row].start + 1, &found));
        }
    }
}

/* Random changes; each state is compared with an array of slots. */
static void random_changes(void **state)
{
    enum { SLOTS = 512, ROUNDS = 20000 };
    static unsigned long long in_slot[SLOTS];
    unsigned seed = 7;

    (void)state;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        unsigned slot = (seed = seed * 1664525u + 1013904223u) >> 16 & (SLOTS - 1), asked = seed >> 3 & (SLOTS - 1);
        uint64_t start = 0x100000 + slot * 0x1000ull;
        struct ct_range found;

        if (in_slot[slot]) {
            ok(ct_address_remove(start, CT_RANGE_DEVICE, &found));
            assert_int_equal(found.id, in_slot[slot]);
            in_slot[slot] = 0;
        } else {
            const struct ct_range range = range_at(start, 1 + seed % 0x1000, round);

            ok(ct_address_insert(&range));
            in_slot[slot] = round;
        }
        assert_int_equal(ct_address_find_any(0x100000 + asked * 0x1000ull, 1, &found), in_slot[asked] != 0);
        if (in_slot[asked])
            assert_int_equal(found.id, in_slot[asked]);
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        struct ct_range removed;

        if (in_slot[slot])
            ok(ct_address_remove(0x100000 + slot * 0x1000ull, CT_RANGE_DEVICE, &removed));
    }
}

static atomic_bool stop;
static atomic_uint wrong;

/* A range that is never removed is always found; one that is inserted and removed is found completely or not at all. */
static void *read_all_the_time(void *user)
{
    (void)user;
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        uint64_t at = 0x800000 + (i % 64) * 0x1000ull;
        struct ct_range found;

        if (ct_address_find(0x700000 + 8, 8, &found) != CUDA_SUCCESS || found.id != 42)
            atomic_fetch_add(&wrong, 1);
        if (ct_address_find_any(at, 1, &found) && (found.start != at || found.id != at || found.device_pointer != at))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void *write_some(void *user)
{
    unsigned part = (unsigned)(uintptr_t)user;

    for (unsigned i = 0; i < 4000; i++) {
        uint64_t start = 0x800000 + (part * 16 + i % 16) * 0x1000ull;
        const struct ct_range range = range_at(start, 0x800, start);
        struct ct_range removed;

        if (ct_address_insert(&range) != CUDA_SUCCESS || ct_address_remove(start, CT_RANGE_DEVICE, &removed) != CUDA_SUCCESS)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void readers_beside_writers(void **state)
{
    const struct ct_range fixed = range_at(0x700000, 0x100, 42);
    pthread_t readers[3], writers[4];
    struct ct_range removed;

    (void)state;
    ok(ct_address_insert(&fixed));
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_time, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_some, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    ok(ct_address_remove(0x700000, CT_RANGE_DEVICE, &removed));
}

/* Addresses in a window are translated by its offset, which may be negative, in both directions; all others are unchanged. */
static void windows_move_addresses(void **state)
{
    static const struct {
        uint64_t address, device;
    } rows[] = {
        {0x100000000000, 0x7f0000000000}, {0x1000000fffff, 0x7f00000fffff},
        {0x100000100000, 0x100000100000}, {0x0fffffffffff, 0x0fffffffffff},
        {0x200000000000, 0x1ffff0000000}, {0x200000001fff, 0x1ffff0001fff},
        {0x200000002000, 0x200000002000}, {0, 0},
    };
    struct ct_device device = {0};
    const struct ct_context context = {.device = &device};

    (void)state;
    device.info.target.pointer_rule = PTX2SPV_POINTER_WINDOWS;
    device.info.target.windows[0] = (struct ptx2spv_window){0x100000000000, 0x100000, 0x6f0000000000};
    device.info.target.windows[1] = (struct ptx2spv_window){0x200000000000, 0x2000, -(uint64_t)0x10000000};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ct_rule_devaddr(&context.device->info.target, rows[i].address).v, rows[i].device);
        assert_int_equal(ct_rule_address(&context.device->info.target, (ct_devaddr){rows[i].device}), rows[i].address);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_grows_with_the_ranges),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(find_knows_the_edges),
        cmocka_unit_test(insert_refuses_what_overlaps),
        cmocka_unit_test(synchronous_is_of_one_range),
        cmocka_unit_test(any_size_at_any_address),
        cmocka_unit_test(random_changes),
        cmocka_unit_test(readers_beside_writers),
        cmocka_unit_test(windows_move_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
