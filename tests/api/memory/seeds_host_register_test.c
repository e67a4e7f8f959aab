/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemHostRegister, sentence by sentence of the driver API's manual. Each test quotes the sentence that it tests. */
#include "seeds.h"

#include <errno.h>
#include <fcntl.h>

#define BYTES (SEEDS_WORDS * 4)
#define PAGE 4096u

static void *pages_of(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(pages, MAP_FAILED);
    return pages;
}

/* Registers memory, runs a kernel on it, and unregisters it. */
static void works(uint32_t *host, unsigned count, unsigned flags)
{
    CUdeviceptr device;

    ok(cuMemHostRegister(host, count * 4, flags));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    seeds_shared_words(host, device, count);
    ok(cuMemHostUnregister(host));
}

/* "Page-locks the memory range specified by p and bytesize and maps it for the device(s)"; p and bytesize are arbitrary. */
static void any_pointer_and_size(void **state)
{
    static const struct {
        size_t distance, words;
    } rows[] = {{0, 1}, {4, 1}, {4092, 1}, {4092, 2}, {16, 3000}, {8188, 1025}, {0, 3 * 1024}};
    char *pages = pages_of(16 * PAGE);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        works((uint32_t *)(pages + rows[i].distance), (unsigned)rows[i].words, CU_MEMHOSTREGISTER_DEVICEMAP);
    munmap(pages, 16 * PAGE);
}

/* "Registers an existing host memory range": of malloc, large and small. */
static void memory_of_malloc(void **state)
{
    uint32_t *large = malloc(8 << 20), *small = malloc(BYTES);

    (void)state;
    works(large, 2 << 20, 0);
    works(small, SEEDS_WORDS, 0);
    free(large);
    free(small);
}

static void memory_on_the_stack(void **state)
{
    uint32_t words[SEEDS_WORDS];

    (void)state;
    works(words, SEEDS_WORDS, 0);
}

/* A mapping that some drivers do not accept; drivers that use the host's page tables accept all. Returns whether it was accepted. */
static bool works_if_taken(uint32_t *pages)
{
    CUresult r = cuMemHostRegister(pages, BYTES, 0);

    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES))
        ok(r);
    if (r == CUDA_SUCCESS) {
        ok(cuMemHostUnregister(pages));
        works(pages, SEEDS_WORDS, 0);
    } else if (r != CUDA_ERROR_NOT_PERMITTED && r != CUDA_ERROR_INVALID_VALUE) {
        gives(CUDA_ERROR_NOT_SUPPORTED, r);
    }
    return r == CUDA_SUCCESS;
}

static void shared_anonymous_memory(void **state)
{
    uint32_t *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    works_if_taken(pages);
    munmap(pages, 4 * PAGE);
}

/* What a kernel writes to a mapping of shared memory is visible in other mappings of it. */
static void is_seen_elsewhere(int file)
{
    uint32_t *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    uint32_t *elsewhere = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, file, 0);

    assert_true(pages != MAP_FAILED && elsewhere != MAP_FAILED);
    if (works_if_taken(pages))
        assert_int_equal(elsewhere[1000], (1000 ^ 0x5a5a) * 3 + 1);
    munmap(elsewhere, 4 * PAGE);
    munmap(pages, 4 * PAGE);
}

/* A file in memory, like the shared memory of processes: without a name, and with one that is unlinked at once, as in most programs. */
static void shared_memory_of_processes(void **state)
{
    char name[] = "/dev/shm/cuttle_seeds_XXXXXX";
    const int files[] = {memfd_create("shared", MFD_CLOEXEC), mkstemp(name)};

    (void)state;
    unlink(name);
    assert_true(files[0] >= 0);
    for (unsigned i = 0; i < 2; i++) {
        if (files[i] < 0)
            continue; /* no /dev/shm */
        assert_int_equal(ftruncate(files[i], 4 * PAGE), 0);
        is_seen_elsewhere(files[i]);
        close(files[i]);
    }
}

/* Beyond the end of a file there are no pages, although they are mapped: accesses cause SIGBUS. The registration must not lead to that. */
static void pages_that_never_come(void **state)
{
    int file = memfd_create("short", MFD_CLOEXEC);
    char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    (void)state;
    assert_true(file >= 0 && pages != MAP_FAILED);
    assert_int_equal(ftruncate(file, PAGE), 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(pages, 4 * PAGE, 0));
    assert_int_equal(ftruncate(file, 4 * PAGE), 0);
    works_if_taken((uint32_t *)pages); /* now they exist */
    munmap(pages, 4 * PAGE);
    close(file);
}

static void huge_pages(void **state)
{
    const size_t huge = 2 << 20;
    char *room = pages_of(3 * huge), *aligned = (char *)(((uintptr_t)room + huge - 1) & ~(uintptr_t)(huge - 1));

    (void)state;
    (void)madvise(aligned, 2 * huge, MADV_HUGEPAGE);
    memset(aligned, 1, 2 * huge);
    works((uint32_t *)aligned, (unsigned)(2 * huge / 4), 0);
    works((uint32_t *)(aligned + huge / 2 + 12), (unsigned)(huge / 4), 0);
    munmap(room, 3 * huge);
}

#define HUGE_PAGE ((size_t)2 << 20)

/* Two huge pages. Returns NULL, and prints a message, if none are available. */
static uint32_t *map_huge(int protection, int flags, int file)
{
    void *pages = mmap(NULL, 2 * HUGE_PAGE, protection, flags | MAP_HUGETLB, file, 0);

    if (pages != MAP_FAILED)
        return pages;
    print_message("skipped: %s; `echo 8 >/proc/sys/vm/nr_hugepages` makes huge pages\n", strerror(errno));
    assert_int_equal(errno, ENOMEM);
    return NULL;
}

/* All of two huge pages, and parts of them, the last one in both: extended to whole pages, not to whole huge pages. */
static void parts_work(uint32_t *pages)
{
    works(pages, (unsigned)(2 * HUGE_PAGE / 4), 0);
    works(pages + 1027, SEEDS_WORDS, 0);
    works(pages + HUGE_PAGE / 4 - 1500, SEEDS_WORDS, CU_MEMHOSTREGISTER_DEVICEMAP);
}

/* Explicitly allocated huge pages; few machines provide any. */
static void huge_pages_by_name(void **state)
{
    static const int kinds[] = {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint32_t *pages = map_huge(PROT_READ | PROT_WRITE, kinds[i], -1);

        if (!pages)
            skip();
        if (works_if_taken(pages)) /* RADV accepts no mappings of files, and these are such mappings */
            parts_work(pages);
        munmap(pages, 2 * HUGE_PAGE);
    }
}

/* A file of huge pages, as in hugetlbfs: shared, and private with copy-on-write. */
static void files_of_huge_pages(void **state)
{
    int file = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
    uint32_t *pages, *elsewhere, *own;

    (void)state;
    if (file < 0 || ftruncate(file, (off_t)(2 * HUGE_PAGE)) != 0 || !(pages = map_huge(PROT_READ | PROT_WRITE, MAP_SHARED, file)))
        skip();
    elsewhere = map_huge(PROT_READ, MAP_SHARED, file);
    own = map_huge(PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
    assert_non_null(elsewhere);
    if (works_if_taken(pages)) {
        parts_work(pages);
        assert_int_equal(elsewhere[HUGE_PAGE / 4], (1500 ^ 0x5a5a) * 3 + 1);
    }
    if (own) {
        if (works_if_taken(own))
            parts_work(own);
        assert_int_equal(elsewhere[HUGE_PAGE / 4], pages[HUGE_PAGE / 4]);
        own[0] = pages[0] + 1;
        assert_int_not_equal(own[0], elsewhere[0]);
        munmap(own, 2 * HUGE_PAGE);
    }
    munmap(elsewhere, 2 * HUGE_PAGE);
    munmap(pages, 2 * HUGE_PAGE);
    close(file);
}

/* A file of SEEDS_WORDS words, each with its own number. */
static int file_of_numbers(void)
{
    char name[] = "/tmp/cuttle_seeds_XXXXXX";
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
    for (uint32_t i = 0; i < SEEDS_WORDS; i++)
        assert_int_equal(pwrite(fd, &i, 4, (off_t)i * 4), 4);
    return fd;
}

/* A mapped file: what a kernel writes is in the file. Linux lets few drivers lock pages of files; the others must return an error. */
static void mapped_files(void **state)
{
    int fd = file_of_numbers();
    uint32_t *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), in_file = 0;
    CUdeviceptr device;
    CUresult r = cuMemHostRegister(map, BYTES, 0);

    (void)state;
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES))
        ok(r);
    if (r == CUDA_SUCCESS) {
        ok(cuMemHostGetDevicePointer(&device, map, 0));
        seeds_step(device, SEEDS_WORDS);
        assert_int_equal(map[1000], 3001);
        assert_int_equal(pread(fd, &in_file, 4, 4000), 4);
        assert_int_equal(in_file, 3001);
        ok(cuMemHostUnregister(map));
    } else if (r != CUDA_ERROR_NOT_PERMITTED && r != CUDA_ERROR_INVALID_VALUE) {
        gives(CUDA_ERROR_NOT_SUPPORTED, r);
    }
    munmap(map, 4 * PAGE);
    close(fd);
}

/* Writes to a private mapping of a file are visible to the process only. */
static void private_mappings_of_files(void **state)
{
    int fd = file_of_numbers();
    uint32_t *map = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), in_file = 0;

    (void)state;
    assert_ptr_not_equal(map, MAP_FAILED);
    works_if_taken(map);
    assert_int_equal(pread(fd, &in_file, 4, 4000), 4);
    assert_int_equal(in_file, 1000);
    munmap(map, 4 * PAGE);
    close(fd);
}

/* "This memory range also is added to the same tracking mechanism as cuMemHostAlloc to automatically accelerate calls to functions such as
 * cuMemcpyHtoD(). Since the memory can be accessed directly by the device, it can be read or written with much higher bandwidth": nothing
 * is staged; bench/memory measures what that gains. */
static void is_tracked(void **state)
{
    unsigned type = 0;
    char *pages = pages_of(4 * PAGE);

    (void)state;
    ok(cuMemHostRegister(pages, BYTES, 0));
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)(pages + 100)));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    seeds_copy_is_direct((uint32_t *)pages);
    ok(cuMemHostUnregister(pages));
    gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pages));
    munmap(pages, 4 * PAGE);
}

/* "On systems where PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES is true, cuMemHostRegister will not page-lock the memory range specified
 * by ptr but only populate unpopulated pages"; locking pages populates them, too. */
static void pages_are_populated(void **state)
{
    enum { PAGES = 64 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there[PAGES];
    void *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mincore(memory, PAGES * page, there), 0);
    assert_int_equal(there[0] & 1, 0);
    ok(cuMemHostRegister(memory, PAGES * page, 0));
    assert_int_equal(mincore(memory, PAGES * page, there), 0);
    for (unsigned i = 0; i < PAGES; i++)
        assert_int_equal(there[i] & 1, 1);
    ok(cuMemHostUnregister(memory));
    munmap(memory, PAGES * page);
}

/* "PORTABLE: The memory returned by this call will be considered as pinned memory by all CUDA contexts, not just the one that performed
 * the allocation." */
static void portable_is_pinned_in_other_contexts(void **state)
{
    uint32_t *pages = pages_of(4 * PAGE);
    CUcontext other;

    (void)state;
    ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
    ok(cuCtxCreate(&other, NULL, 0, 0));
    seeds_copy_is_direct(pages);
    ok(cuCtxDestroy(other));
    ok(cuMemHostUnregister(pages));
    munmap(pages, 4 * PAGE);
}

/* "DEVICEMAP: Maps the allocation into the CUDA address space. The device pointer to the memory may be obtained by calling
 * cuMemHostGetDevicePointer()." and "All of these flags are orthogonal to one another: a developer may page-lock memory that is portable or
 * mapped with no restrictions." */
static void flags_are_orthogonal(void **state)
{
    uint32_t *pages = pages_of(4 * PAGE);

    (void)state;
    for (unsigned flags = 0; flags <= (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP); flags++)
        works(pages, SEEDS_WORDS, flags);
    munmap(pages, 4 * PAGE);
}

/* "IOMEMORY: The pointer is treated as pointing to some I/O memory space": ordinary memory is not, so drivers may reject it with one of the
 * errors in the manual. If it is accepted, it works. */
static void io_memory(void **state)
{
    uint32_t *pages = pages_of(4 * PAGE);
    CUresult r = cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_IOMEMORY);

    (void)state;
    if (r == CUDA_SUCCESS) {
        CUdeviceptr device;

        ok(cuMemHostGetDevicePointer(&device, pages, 0));
        seeds_shared_words(pages, device, SEEDS_WORDS);
        ok(cuMemHostUnregister(pages));
    } else if (r != CUDA_ERROR_INVALID_VALUE && r != CUDA_ERROR_NOT_PERMITTED) {
        gives(CUDA_ERROR_NOT_SUPPORTED, r);
    }
    munmap(pages, 4 * PAGE);
}

static void read_only_is_read(uint32_t *words)
{
    uint32_t *back = malloc(BYTES);
    unsigned count = SEEDS_WORDS;
    CUdeviceptr from, to;

    ok(cuMemAlloc(&to, BYTES));
    ok(cuMemHostGetDevicePointer(&from, words, 0));
    ok(seeds_run("move", (void *[]){&to, &from, &count}, count));
    ok(cuMemcpyDtoH(back, to, BYTES));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(back[i], i);
    ok(cuMemFree(to));
    free(back);
}

/* Calls that would write read-only registered memory return an error. Another driver may leave the detection to the hardware, which
 * invalidates the context. */
static void read_only_is_not_written(void *words)
{
    CUdeviceptr at, other;
    unsigned access = 0;

    ok(cuMemHostGetDevicePointer(&at, words, 0));
    ok(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at));
    assert_int_equal(access, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
    ok(cuMemAlloc(&other, BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(at, 1, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(at, 1, 4, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(at, other, BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(words, other, BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyAsync(at, other, BYTES, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(NULL, at, 1, 0));
    ok(cuMemFree(other));
}

/* Pages that the host may not write, in which each word has its own number. */
static void check_read_only(uint32_t *pages)
{
    const bool by_page_tables = seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
    unsigned flags = 77;
    CUresult r;

    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)) {
        ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_READ_ONLY));
        ok(cuMemHostGetFlags(&flags, pages));
        assert_int_equal(flags & ~(unsigned)CU_MEMHOSTALLOC_DEVICEMAP, 0); /* flags that cuMemHostAlloc has, too */
        read_only_is_read(pages);
        if (on_cuttle())
            read_only_is_not_written(pages);
        ok(cuMemHostUnregister(pages));
    } else {
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_READ_ONLY));
    }
    r = cuMemHostRegister(pages, BYTES, 0);
    assert_int_equal(r == CUDA_SUCCESS, by_page_tables);
    if (r == CUDA_SUCCESS) {
        read_only_is_read(pages);
        if (on_cuttle())
            read_only_is_not_written(pages);
        ok(cuMemHostUnregister(pages));
    } else { /* the manual does not specify which error it is; this is NVIDIA's */
        gives(CUDA_ERROR_INVALID_VALUE, r);
    }
}

/* "READ_ONLY: The pointer is treated as pointing to memory that is considered read-only by the device. On platforms without
 * PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, this flag is required in order to register memory mapped to the CPU as readonly. Support for
 * the use of this flag can be queried"; "Using this flag with a current context associated with a device that does not have this attribute
 * set will cause cuMemHostRegister to error with CUDA_ERROR_NOT_SUPPORTED." */
static void read_only_memory(void **state)
{
    uint32_t *pages = pages_of(4 * PAGE), *of_file;
    int fd = file_of_numbers();

    (void)state;
    for (unsigned i = 0; i < SEEDS_WORDS; i++)
        pages[i] = i;
    assert_int_equal(mprotect(pages, 4 * PAGE, PROT_READ), 0);
    check_read_only(pages);
    munmap(pages, 4 * PAGE);
    of_file = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(of_file, MAP_FAILED);
    check_read_only(of_file);
    munmap(of_file, 4 * PAGE);
    close(fd);
}

static void read_only_huge_pages(void **state)
{
    uint32_t *pages = map_huge(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

    (void)state;
    if (!pages)
        skip();
    for (unsigned i = 0; i < SEEDS_WORDS; i++)
        pages[i] = i;
    assert_int_equal(mprotect(pages, 2 * HUGE_PAGE, PROT_READ), 0);
    check_read_only(pages);
    munmap(pages, 2 * HUGE_PAGE);
}

/* Memory that the host may write is read-only for the device if it was registered so, until it is registered without the flag. */
static void read_only_for_the_device_alone(void **state)
{
    uint32_t *pages = pages_of(4 * PAGE);

    (void)state;
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED))
        skip();
    ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_READ_ONLY));
    for (unsigned i = 0; i < SEEDS_WORDS; i++)
        pages[i] = i;
    read_only_is_read(pages);
    if (on_cuttle())
        read_only_is_not_written(pages);
    ok(cuMemHostUnregister(pages));
    works(pages, SEEDS_WORDS, 0);
    munmap(pages, 4 * PAGE);
}

/* "The CU_MEMHOSTREGISTER_DEVICEMAP flag may be specified on CUDA contexts for devices that do not support mapped pinned memory. The failure
 * is deferred to cuMemHostGetDevicePointer()" */
static void failure_to_map_is_deferred(void **state)
{
    uint32_t *pages = pages_of(4 * PAGE);
    CUdeviceptr device;
    CUresult r;

    (void)state;
    ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
    r = cuMemHostGetDevicePointer(&device, pages, 0);
    assert_int_equal(r == CUDA_SUCCESS, seeds_attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
    ok(cuMemHostUnregister(pages));
    munmap(pages, 4 * PAGE);
}

static bool all_devices_use_host_pointers(void)
{
    int devices = 0, value;
    bool all = true;

    ok(cuDeviceGetCount(&devices));
    for (int i = 0; i < devices; i++) {
        ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, i));
        all = all && value;
    }
    return all;
}

/* "For devices that have a non-zero value for the device attribute CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, the memory can also be accessed
 * from the device using the host pointer p." "If all devices visible to the application have a non-zero value for the device attribute, the
 * device pointer returned by cuMemHostGetDevicePointer() will match the original pointer ptr. If any device visible to the application has
 * a zero value for the device attribute, the device pointer [...] will not match the original host pointer ptr, but it will be suitable for
 * use on all devices provided Unified Virtual Addressing is enabled. In such systems, it is valid to access the memory using either pointer
 * on devices that have a non-zero value for the device attribute. Note however that such devices should access the memory using only of the
 * two pointers and not both": so each pointer is tested with a registration of its own. */
static void host_pointer_in_kernels(void **state)
{
    uint32_t *pages = (uint32_t *)pages_of(4 * PAGE) + 5;
    CUdeviceptr device;

    (void)state;
    for (int by_host_pointer = 0; by_host_pointer < 2; by_host_pointer++) {
        ok(cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
        ok(cuMemHostGetDevicePointer(&device, pages, 0));
        if (all_devices_use_host_pointers())
            assert_int_equal(device, (uintptr_t)pages);
        else if (seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
            assert_int_not_equal(device, (uintptr_t)pages);
        if (by_host_pointer && seeds_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM))
            device = (CUdeviceptr)(uintptr_t)pages;
        seeds_shared_words(pages, device, SEEDS_WORDS);
        ok(cuMemHostUnregister(pages));
    }
    munmap(pages - 5, 4 * PAGE);
}

/* "The memory page-locked by this function must be unregistered with cuMemHostUnregister." */
static void is_unregistered_with_unregister(void **state)
{
    char *pages = pages_of(4 * PAGE);

    (void)state;
    gives(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
    ok(cuMemHostRegister(pages, 2 * PAGE, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pages));
    ok(cuMemHostUnregister(pages));
    gives(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
    memset(pages, 1, 4 * PAGE); /* the memory belongs to the application all the time */
    munmap(pages, 4 * PAGE);
}

/* "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED": an overlap in part of the range is enough. */
static void overlaps_are_refused(void **state)
{
    static const struct {
        const char *name;
        size_t first, pages;
    } rows[] = {{"the same", 4, 4}, {"inside", 5, 2}, {"over the front", 2, 3}, {"over the back", 6, 4}, {"around", 2, 8}};
    char *pages = pages_of(16 * PAGE);

    (void)state;
    ok(cuMemHostRegister(pages + 4 * PAGE, 4 * PAGE, 0));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%s\n", rows[i].name);
        gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(pages + rows[i].first * PAGE, rows[i].pages * PAGE, 0));
    }
    ok(cuMemHostRegister(pages, 4 * PAGE, 0)); /* adjacent ranges do not overlap */
    ok(cuMemHostRegister(pages + 8 * PAGE, 4 * PAGE, 0));
    for (unsigned first = 0; first < 12; first += 4)
        ok(cuMemHostUnregister(pages + first * PAGE));
    munmap(pages, 16 * PAGE);
}

/* "Returns" */
static void refuses(void **state)
{
    char *pages = pages_of(4 * PAGE);
    CUcontext context;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(NULL, PAGE, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(pages, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(pages, PAGE, 0x100));
    ok(cuCtxPopCurrent(&context));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemHostRegister(pages, PAGE, 0));
    ok(cuCtxPushCurrent(context));
    munmap(pages, 4 * PAGE);
}

/* Pages without any access rights are not registered, not even for reading. A registration may be a part of a page, and two in one page are
 * separate. */
static void pages_and_parts_of_them(void **state)
{
    const unsigned flags[] = {0, CU_MEMHOSTREGISTER_READ_ONLY};
    char *pages = pages_of(4 * PAGE);
    CUdeviceptr second;

    (void)state;
    if (!on_cuttle())
        skip(); /* the manual does not specify how registrations share a page */
    ok(cuMemHostRegister(pages + 100, 100, 0));
    ok(cuMemHostRegister(pages + 300, 100, 0));
    gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(pages + 399, 100, 0));
    ok(cuMemHostUnregister(pages + 100));
    ok(cuMemHostGetDevicePointer(&second, pages + 300, 0));
    ok(cuMemsetD8(second, 7, 100));
    ok(cuCtxSynchronize());
    assert_true(pages[299] == 0 && pages[300] == 7 && pages[399] == 7 && pages[400] == 0);
    ok(cuMemHostUnregister(pages + 300));
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    for (unsigned i = 0; i < 2; i++) {
        CUresult r = cuMemHostRegister(pages, 4 * PAGE, flags[i]);

        if (r != CUDA_ERROR_NOT_SUPPORTED || flags[i] == 0)
            gives(CUDA_ERROR_INVALID_VALUE, r);
    }
    munmap(pages, 4 * PAGE);
}

/* Where kernels can access pageable memory (CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) registration is unnecessary. */
static void pageable_memory_in_kernels(void **state)
{
    uint32_t on_stack[300], *of_malloc = malloc(BYTES);

    (void)state;
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)) {
        seeds_shared_words(of_malloc, (CUdeviceptr)(uintptr_t)of_malloc, SEEDS_WORDS);
        seeds_shared_words(on_stack, (CUdeviceptr)(uintptr_t)on_stack, 300);
    }
    free(of_malloc);
}

/* "Note that this function may also return error codes from previous, asynchronous launches." */
static void tells_earlier_errors(void **state)
{
    void *pages = pages_of(PAGE);

    (void)state;
    seeds_tells_earlier_error(cuMemHostRegister(pages, PAGE, 0));
    munmap(pages, PAGE);
}

/* "CUDA_ERROR_NOT_SUPPORTED": on devices whose attribute HOST_REGISTER_SUPPORTED is 0, with any flags; the other tests are for the other
 * devices. */
static void is_supported_or_not(void **state)
{
    char *pages = pages_of(4 * PAGE);
    const bool is = seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    unsigned type;

    (void)state;
    for (unsigned flags = 0; flags <= (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP); flags++) {
        gives(is ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister(pages, BYTES, flags));
        gives(is ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
              cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pages));
        gives(is ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
    }
    if (!is) {
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_READ_ONLY));
        assert_false(seeds_attribute(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED));
        assert_false(seeds_attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM));
    }
    munmap(pages, 4 * PAGE);
}

static bool first_device_registers(void)
{
    int is = 0;

    return cuInit(0) == CUDA_SUCCESS && cuDeviceGetAttribute(&is, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0) == CUDA_SUCCESS && is;
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(is_supported_or_not)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_pointer_and_size),
        cmocka_unit_test(memory_of_malloc),
        cmocka_unit_test(memory_on_the_stack),
        cmocka_unit_test(shared_anonymous_memory),
        cmocka_unit_test(shared_memory_of_processes),
        cmocka_unit_test(pages_that_never_come),
        cmocka_unit_test(huge_pages),
        cmocka_unit_test(huge_pages_by_name),
        cmocka_unit_test(files_of_huge_pages),
        cmocka_unit_test(mapped_files),
        cmocka_unit_test(private_mappings_of_files),
        cmocka_unit_test(is_tracked),
        cmocka_unit_test(pages_are_populated),
        cmocka_unit_test(portable_is_pinned_in_other_contexts),
        cmocka_unit_test(flags_are_orthogonal),
        cmocka_unit_test(io_memory),
        cmocka_unit_test(read_only_memory),
        cmocka_unit_test(read_only_huge_pages),
        cmocka_unit_test(read_only_for_the_device_alone),
        cmocka_unit_test(failure_to_map_is_deferred),
        cmocka_unit_test(host_pointer_in_kernels),
        cmocka_unit_test(is_unregistered_with_unregister),
        cmocka_unit_test(overlaps_are_refused),
        cmocka_unit_test(refuses),
        cmocka_unit_test(pages_and_parts_of_them),
        cmocka_unit_test(pageable_memory_in_kernels),
    };
    const struct CMUnitTest last[] = {cmocka_unit_test(tells_earlier_errors)};

    if (cmocka_run_group_tests(first, with_context, without_context))
        return 1;
    if (!first_device_registers())
        return 0;
    if (cmocka_run_group_tests(tests, with_context, without_context))
        return 1;
    return cmocka_run_group_tests(last, with_context, NULL);
}
