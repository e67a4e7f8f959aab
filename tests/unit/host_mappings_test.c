/* SPDX-License-Identifier: Apache-2.0 */
/* Which host pages a driver may pin for writing. The rules are those of Linux: mm/gup.c refuses pages that the process may not write, and
 * long-term pins of pages that are shared with a file whose file system has to track writes. */
#include "../api/api_test.h"

#include "core/backing/host_mappings.h"
#include "mock_backend.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* Uses both implementations, if Linux supports both. */
static bool of(const void *pages, size_t bytes)
{
    const uint64_t first = (uint64_t)(uintptr_t)pages;
    bool by_text = ct_pages_read(first, bytes), by_query;

    if (ct_pages_query(first, bytes, &by_query))
        assert_int_equal(by_query, by_text);
    assert_int_equal(ct_pages_can_be_locked(first, bytes), by_text);
    return by_text;
}

static void *map(size_t pages, int prot, int flags, int fd)
{
    void *start = mmap(NULL, pages * PAGE, prot, flags, fd, 0);

    assert_ptr_not_equal(start, MAP_FAILED);
    return start;
}

static void anonymous_memory(void **state)
{
    char *private = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), on_stack[100], *heap = malloc(100);
    char *shared = map(4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

    (void)state;
    assert_true(of(private, 4 * PAGE));
    assert_true(of(shared, 4 * PAGE));
    assert_true(of(on_stack, sizeof on_stack));
    assert_true(of(heap, 100));
    munmap(private, 4 * PAGE);
    munmap(shared, 4 * PAGE);
    free(heap);
}

static void read_only_memory(void **state)
{
    char *pages = map(4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

    (void)state;
    assert_int_equal(mprotect(pages + 2 * PAGE, PAGE, PROT_READ), 0);
    assert_true(of(pages, 2 * PAGE));
    assert_false(of(pages, 3 * PAGE)); /* a single such page is enough */
    assert_true(of(pages + 3 * PAGE, PAGE));
    assert_true(ct_pages_are_writable((uint64_t)(uintptr_t)pages, 2 * PAGE));
    assert_false(ct_pages_are_writable((uint64_t)(uintptr_t)pages, 3 * PAGE));
    assert_true(ct_pages_are_readable((uint64_t)(uintptr_t)pages, 3 * PAGE));
    assert_int_equal(mprotect(pages + 2 * PAGE, PAGE, PROT_NONE), 0);
    assert_false(of(pages + 2 * PAGE, 1));
    assert_true(ct_pages_are_readable((uint64_t)(uintptr_t)pages, 2 * PAGE));
    assert_false(ct_pages_are_readable((uint64_t)(uintptr_t)pages, 3 * PAGE));
    munmap(pages, 4 * PAGE);
}

static void files(void **state)
{
    char name[] = "cuttle_mappings_XXXXXX"; /* in the current folder, which is seldom on tmpfs */
    int file = mkstemp(name), memory = memfd_create("cuttle", MFD_CLOEXEC);
    struct statfs system;
    void *pages;

    (void)state;
    assert_true(file >= 0 && memory >= 0);
    assert_int_equal(fstatfs(file, &system), 0);
    assert_int_equal(ftruncate(file, (off_t)PAGE), 0);
    assert_int_equal(ftruncate(memory, (off_t)PAGE), 0);
    pages = map(1, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    assert_int_equal(of(pages, PAGE), system.f_type == TMPFS_MAGIC);
    unlink(name);
    assert_int_equal(of(pages, PAGE), system.f_type == TMPFS_MAGIC);
    munmap(pages, PAGE);
    pages = map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE, file); /* writes create private pages */
    assert_true(of(pages, PAGE));
    munmap(pages, PAGE);
    pages = map(1, PROT_READ | PROT_WRITE, MAP_SHARED, memory);
    assert_true(of(pages, PAGE));
    munmap(pages, PAGE);
    close(file);
    close(memory);
}

/* In a minimal root it may be a folder of devtmpfs, whose type is reported as tmpfs, too. */
static bool shared_memory_is_mounted(void)
{
    struct stat shared, devices;
    struct statfs system;

    return stat("/dev/shm", &shared) == 0 && stat("/dev", &devices) == 0 && shared.st_dev != devices.st_dev &&
           statfs("/dev/shm", &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/* Shared memory is usually unlinked as soon as it is mapped; its file system can be determined nevertheless. */
static void unlinked_files_in_memory(void **state)
{
    char name[] = "/dev/shm/cuttle_mappings_XXXXXX";
    void *pages;
    int file;

    (void)state;
    if (!shared_memory_is_mounted() || (file = mkstemp(name)) < 0)
        skip();
    assert_int_equal(ftruncate(file, (off_t)PAGE), 0);
    pages = map(1, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    assert_true(of(pages, PAGE));
    unlink(name);
    assert_true(of(pages, PAGE));
    munmap(pages, PAGE);
    close(file);
}

/* Huge pages, anonymous or of a file; few machines have free ones. */
static void huge_pages(void **state)
{
    const size_t huge = 2 << 20;
    int file = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
    const struct {
        int flags, file;
    } rows[] = {{MAP_PRIVATE | MAP_ANONYMOUS, -1}, {MAP_SHARED | MAP_ANONYMOUS, -1}, {MAP_SHARED, file}, {MAP_PRIVATE, file}};

    (void)state;
    if (file < 0 || ftruncate(file, (off_t)(2 * huge)))
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *pages = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, rows[i].flags | MAP_HUGETLB, rows[i].file, 0);

        if (pages == MAP_FAILED)
            skip();
        assert_true(of(pages, 2 * huge));
        assert_true(of(pages + PAGE, huge)); /* not aligned to huge pages */
        assert_int_equal(ct_pages_populate((uint64_t)(uintptr_t)pages + PAGE, PAGE), CT_PAGES_WRITABLE);
        munmap(pages, 2 * huge);
    }
    close(file);
}

/* Pages that are mapped beyond the end of a file do not exist, and cannot be pinned. */
static void missing_pages(void **state)
{
    int file = memfd_create("short", MFD_CLOEXEC);
    char *pages = map(4, PROT_READ | PROT_WRITE, MAP_SHARED, file);

    (void)state;
    assert_int_equal(ftruncate(file, (off_t)(2 * PAGE)), 0);
    assert_true(of(pages, 2 * PAGE));
    assert_false(of(pages + PAGE, 2 * PAGE));
    assert_int_equal(ct_pages_populate((uint64_t)(uintptr_t)pages, 2 * PAGE), CT_PAGES_WRITABLE);
    assert_int_equal(ct_pages_populate((uint64_t)(uintptr_t)pages, 3 * PAGE), CT_PAGES_MISSING);
    assert_int_equal(mprotect(pages, 2 * PAGE, PROT_READ), 0);
    assert_int_equal(ct_pages_populate((uint64_t)(uintptr_t)pages, 2 * PAGE), CT_PAGES_EXIST);
    munmap(pages, 4 * PAGE);
    close(file);
}

/* A driver that refuses pages does not report the reason; what Linux reports about them determines the error. */
static void refused_pages_say_why(void **state)
{
    char name[] = "cuttle_mappings_XXXXXX";
    int file = mkstemp(name);
    const struct {
        void *pages;
        CUresult want;
    } rows[] = {
        {map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), CUDA_ERROR_NOT_PERMITTED},
        {map(1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1), CUDA_ERROR_INVALID_VALUE},
        {map(1, PROT_READ | PROT_WRITE, MAP_SHARED, file), CUDA_ERROR_INVALID_VALUE},
    };

    assert_int_equal(ftruncate(file, (off_t)PAGE), 0);
    unlink(name);
    assert_int_equal(with_context(state), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mock_fail_call(1, CUDA_ERROR_UNKNOWN);
        gives(rows[i].want, cuMemHostRegister(rows[i].pages, 100, 0));
        assert_true(mock_has_failed());
        mock_fail_call(0, CUDA_SUCCESS);
        ok(cuMemHostRegister(rows[i].pages, 100, 0)); /* the driver accepts them */
        ok(cuMemHostUnregister(rows[i].pages));
        munmap(rows[i].pages, PAGE);
    }
    assert_int_equal(without_context(state), 0);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anonymous_memory),         cmocka_unit_test(read_only_memory), cmocka_unit_test(files),
        cmocka_unit_test(unlinked_files_in_memory), cmocka_unit_test(huge_pages),       cmocka_unit_test(missing_pages),
        cmocka_unit_test(refused_pages_say_why)};

    setenv("MOCK_ADDRESS_RULE", "own", 1); /* a GPU: for a CPU device Linux is queried first */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
