/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one device in contexts of another. ctest lists one device twice (CUTTLE_DEVICE=0,0), which behaves as two devices with respect
 * to memory. */
#include "virtual_memory.h"

#define BYTES (SEEDS_WORDS * 4)

static void take_a_while(void *unused)
{
    (void)unused;
    usleep(20000);
}

/* Host memory, allocated by all functions that can. */
struct host_kind {
    uint32_t *host;
    bool registered, managed;
};

static struct host_kind allocated(unsigned flags)
{
    struct host_kind kind = {NULL, false, false};

    ok(cuMemHostAlloc((void **)&kind.host, BYTES, flags));
    return kind;
}

static uint32_t pages[4 * SEEDS_WORDS];

static struct host_kind make_kind(unsigned n)
{
    struct host_kind kind = {NULL, false, false};
    CUdeviceptr managed;

    switch (n) {
    case 0:
        return allocated(0);
    case 1:
        return allocated(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    case 2:
        return allocated(CU_MEMHOSTALLOC_WRITECOMBINED);
    case 3:
        ok(cuMemAllocHost((void **)&kind.host, BYTES));
        return kind;
    case 4:
        kind.host = pages + SEEDS_WORDS + 5;
        kind.registered = true;
        ok(cuMemHostRegister(kind.host, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
        return kind;
    default:
        kind.managed = true;
        ok(cuMemAllocManaged(&managed, n == 5 ? BYTES : (size_t)2 << 20, CU_MEM_ATTACH_GLOBAL));
        kind.host = (uint32_t *)(uintptr_t)managed;
        return kind;
    }
}
#define KINDS 7

static void free_kind(const struct host_kind *kind)
{
    if (kind->registered)
        ok(cuMemHostUnregister(kind->host));
    else if (kind->managed)
        ok(cuMemFree((CUdeviceptr)(uintptr_t)kind->host));
    else
        ok(cuMemFreeHost(kind->host));
}

static bool there_are_two(void)
{
    int devices = 0;

    ok(cuDeviceGetCount(&devices));
    return devices >= 2;
}

/* Kernels of the current context access it through the pointer that the library returns. */
static void works_here(const struct host_kind *kind)
{
    CUdeviceptr device = (CUdeviceptr)(uintptr_t)kind->host, attribute;
    unsigned access;

    if (!kind->managed)
        ok(cuMemHostGetDevicePointer(&device, kind->host, 0));
    seeds_shared_words(kind->host, device, SEEDS_WORDS);
    ok(cuPointerGetAttribute(&attribute, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)(uintptr_t)kind->host));
    assert_int_equal(attribute, device);
    ok(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, (CUdeviceptr)(uintptr_t)kind->host));
    assert_int_equal(access, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
}

/* Without unified addressing, no pointer is valid on two devices: the call returns an error instead of an address. */
static void says_so(const struct host_kind *kind)
{
    CUdeviceptr device = 0;

    if (kind->managed)
        return;
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&device, kind->host, 0));
    assert_int_equal(device, 0);
    gives(CUDA_ERROR_INVALID_VALUE,
          cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)(uintptr_t)kind->host));
}

static void check_there(const struct host_kind *kind)
{
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
        works_here(kind);
    else
        says_so(kind);
}

/* "all host memory allocated using cuMemHostAlloc() will automatically be immediately accessible to all contexts on all devices which
 * support unified addressing": memory that exists when the first context of the other device is created, and memory allocated later; it is
 * freed while both contexts exist, or with one of them. */
static void in_the_other_device(void **state)
{
    struct host_kind before[KINDS], later;
    const unsigned kinds = seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) ? KINDS : KINDS - 2;
    CUcontext other;

    if (!there_are_two())
        skip();
    for (unsigned i = 0; i < kinds; i++)
        before[i] = make_kind(i);
    ok(cuCtxCreate(&other, NULL, 0, 1));
    for (unsigned i = 0; i < kinds; i++)
        check_there(&before[i]);
    ok(cuCtxSetCurrent(*state));
    for (unsigned i = 0; i < kinds; i++) {
        works_here(&before[i]);
        free_kind(&before[i]);
        later = make_kind(i);
        ok(cuCtxSetCurrent(other));
        check_there(&later);
        free_kind(&later); /* in a context to which it does not belong */
        later = make_kind(i);
        ok(cuCtxSetCurrent(*state));
        check_there(&later);
        if (i % 2)
            free_kind(&later);
    }
    ok(cuCtxDestroy(other)); /* with the remaining context */
    ok(cuCtxSetCurrent(*state));
}

/* The context in which it is freed does not matter: the call waits for kernels of the other device that use it. NVIDIA's driver does not
 * wait, and the kernel faults. */
static void freed_while_the_other_works(void **state)
{
    uint32_t *const words = pages + 17;
    CUdeviceptr device;
    CUfunction step;
    CUmodule module;
    CUcontext other;
    unsigned count = SEEDS_WORDS;

    if (!there_are_two() || !seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) || !on_cuttle())
        skip();
    ok(cuMemHostRegister(words, BYTES, 0));
    ok(cuCtxCreate(&other, NULL, 0, 1));
    ok(cuMemHostGetDevicePointer(&device, words, 0));
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&step, module, "step"));
    words[count - 1] = 7;
    ok(cuLaunchHostFunc(NULL, take_a_while, NULL));
    ok(cuLaunchKernel(step, (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&device, &count}, NULL));
    ok(cuCtxSetCurrent(*state));
    ok(cuMemHostUnregister(words));
    assert_int_equal(words[count - 1], 22);
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(*state));
}

/* All contexts of a library share its managed variables. */
static void managed_variable_in_both(void **state)
{
    /* clang-format off */
    static const char ptx[] =
        ".version 6.0\n.target sm_70\n.address_size 64\n"
        ".visible .global .attribute(.managed) .align 4 .u32 shared;\n"
        ".visible .entry adds()\n{\n    .reg .b32 %r<2>;\n"
        "    ld.global.u32 %r1, [shared];\n    add.u32 %r1, %r1, 5;\n    st.global.u32 [shared], %r1;\n    ret;\n}\n";
    /* clang-format on */
    CUdeviceptr variable;
    CUlibrary library;
    CUkernel adds;
    CUcontext other;
    size_t bytes;

    if (!there_are_two() || !seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        skip();
    ok(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetKernel(&adds, library, "adds"));
    ok(cuLaunchKernel((CUfunction)adds, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    ok(cuLibraryGetManaged(&variable, &bytes, library, "shared"));
    ok(cuCtxCreate(&other, NULL, 0, 1));
    ok(cuLaunchKernel((CUfunction)adds, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(*(volatile uint32_t *)(uintptr_t)variable, 10);
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(*state));
    ok(cuLibraryUnload(library));
}

/* Copies and fills between devices keep the order of their stream, and that of blocking streams after the default stream. */
static void in_stream_order(void **state)
{
    unsigned char bytes[2] = {0, 0};
    CUdeviceptr here, there;
    CUcontext other;
    CUstream stream;
    int devices = 0;

    ok(cuDeviceGetCount(&devices));
    if (devices < 2)
        skip();
    ok(cuMemAlloc(&here, BYTES));
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    ok(cuCtxCreate(&other, NULL, 0, 1));
    ok(cuMemAlloc(&there, BYTES));
    ok(cuMemsetD8(there, 9, BYTES));
    ok(cuCtxSynchronize());
    ok(cuCtxSetCurrent(*state));
    ok(cuLaunchHostFunc(NULL, take_a_while, NULL));
    ok(cuMemsetD8Async(here, 1, BYTES, NULL));
    ok(cuMemcpyAsync(there, here, BYTES, stream));
    ok(cuLaunchHostFunc(NULL, take_a_while, NULL));
    ok(cuMemcpyAsync(here, there, BYTES / 2, NULL));
    if (on_cuttle()) /* NVIDIA's driver can only fill memory of the stream's own device */
        ok(cuMemsetD8Async(there, 2, BYTES, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH(&bytes[0], here, 1));
    assert_int_equal(bytes[0], 1);
    ok(cuCtxSetCurrent(other));
    ok(cuMemcpyDtoH(&bytes[1], there + BYTES - 1, 1));
    assert_int_equal(bytes[1], on_cuttle() ? 2 : 1);
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(*state));
    ok(cuMemFree(here));
    ok(cuStreamDestroy(stream));
}

/* A pool of the host gives memory to streams of either device, and kernels of both work on it. */
static void in_a_pool_of_the_host(void **state)
{
    const CUmemAccessDesc both[] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                    {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    CUcontext contexts[2] = {*state};
    CUmemoryPool pool;
    CUdeviceptr p;

    if (!there_are_two())
        skip();
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED)) {
        refuses(CUDA_ERROR_NOT_SUPPORTED, cuMemPoolCreate(&pool, &props));
        return;
    }
    ok(cuMemPoolCreate(&pool, &props));
    ok(cuMemPoolSetAccess(pool, both, 2));
    ok(cuCtxCreate(&contexts[1], NULL, 0, 1));
    for (int turn = 0; turn < 6; turn++) {
        ok(cuCtxSetCurrent(contexts[turn % 2]));
        ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, NULL));
        ok(cuStreamSynchronize(NULL));
        seeds_shared_words((uint32_t *)(uintptr_t)p, p, SEEDS_WORDS);
        ok(cuCtxSetCurrent(contexts[!(turn % 2)]));
        seeds_shared_words((uint32_t *)(uintptr_t)p, p, SEEDS_WORDS);
        ok(cuMemFreeAsync(p, NULL));
    }
    ok(cuCtxDestroy(contexts[1]));
    ok(cuCtxSetCurrent(contexts[0]));
    ok(cuMemPoolDestroy(pool));
}

/* A device that cannot access the memory of another one cannot be given access to it. */
static void access_of_the_other_device(void **state)
{
    const CUmemAccessDesc desc = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int devices = 0, reaches = 0;
    struct vm_range range;

    (void)state;
    ok(cuDeviceGetCount(&devices));
    if (devices < 2 || !vm_is_there())
        skip();
    ok(cuDeviceCanAccessPeer(&reaches, 1, 0));
    if (reaches)
        skip();
    range = vm_range_make(2);
    refuses(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(range.start, range.size, &desc, 1));
    ok(cuMemUnmap(range.start, range.size));
    ok(cuMemAddressFree(range.start, range.size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_the_other_device),      cmocka_unit_test(freed_while_the_other_works),
                                       cmocka_unit_test(managed_variable_in_both), cmocka_unit_test(in_stream_order),
                                       cmocka_unit_test(in_a_pool_of_the_host),    cmocka_unit_test(access_of_the_other_device)};

    return cmocka_run_group_tests(tests, with_context, without_context);
}
