/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped memory, sentence by sentence of the CUDA programming guide ("Mapped Memory"). Each test quotes the sentence that it tests.
 * seeds_single_test.c tests which accesses are single. */
#include "seeds.h"

#include <time.h>

#define BYTES (SEEDS_WORDS * 4)

/* "A block of page-locked host memory can also be mapped into the address space of the device by passing flag cudaHostAllocMapped [...] or
 * by passing flag cudaHostRegisterMapped"; "Such a block has therefore in general two addresses: one in host memory [...] and one in device
 * memory that can be retrieved using cudaHostGetDevicePointer() and then used to access the block from within a kernel." "The only exception
 * is for pointers allocated with cudaHostAlloc() and when a unified address space is used for the host and the device" */
static void has_two_addresses(void **state)
{
    uint32_t *allocated, *registered = aligned_alloc(4096, 4096 * 4);
    CUdeviceptr device;

    (void)state;
    ok(cuMemHostAlloc((void **)&allocated, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, allocated, 0));
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING))
        assert_int_equal(device, (uintptr_t)allocated);
    seeds_shared_words(allocated, device, SEEDS_WORDS);
    ok(cuMemFreeHost(allocated));
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)) {
        ok(cuMemHostRegister(registered, BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
        ok(cuMemHostGetDevicePointer(&device, registered, 0));
        seeds_shared_words(registered, device, SEEDS_WORDS);
        ok(cuMemHostUnregister(registered));
    }
    free(registered);
}

/* "There is no need to allocate a block in device memory and copy data between this block and the block in host memory; data transfers are
 * implicitly performed as needed by the kernel"; "the application must synchronize memory accesses using streams or events": after an event
 * the host sees what the kernel wrote, without any copy. */
static void events_order_accesses(void **state)
{
    unsigned count = SEEDS_WORDS;
    CUfunction function;
    CUdeviceptr device;
    CUmodule module;
    CUstream stream;
    uint32_t *host;
    CUevent event;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&function, module, "step"));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    memset(host, 0, BYTES);
    for (unsigned i = 0; i < 10; i++)
        ok(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, (void *[]){&device, &count}, NULL));
    ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(host[i], 29524); /* ten times x * 3 + 1 from 0: (3^10 - 1) / 2 */
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(stream));
    ok(cuModuleUnload(module));
    ok(cuMemFreeHost(host));
}

/* "page-locked memory mapping must be enabled by calling cudaSetDeviceFlags() with the cudaDeviceMapHost flag": CU_CTX_MAP_HOST, in each
 * context. "Otherwise, cudaHostGetDevicePointer() will return an error": with unified addressing, mapping is always enabled, and the other
 * tests have contexts without the flag. */
static void mapping_is_enabled_by_the_context(void **state)
{
    CUcontext context;
    CUdeviceptr device;
    uint32_t *host;

    (void)state;
    ok(cuCtxCreate(&context, NULL, CU_CTX_MAP_HOST, 0));
    ok(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    seeds_shared_words(host, device, 100);
    ok(cuMemFreeHost(host));
    ok(cuCtxDestroy(context));
}

/* "cudaHostGetDevicePointer() also returns an error if the device does not support mapped page-locked host memory"; "canMapHostMemory [...]
 * is equal to 1 for devices that support mapped page-locked host memory" */
static void the_attribute_tells(void **state)
{
    CUdeviceptr device;
    void *host;

    (void)state;
    ok(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    assert_int_equal(cuMemHostGetDevicePointer(&device, host, 0) == CUDA_SUCCESS, seeds_attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
    ok(cuMemFreeHost(host));
}

/* Like `replies` of seeds_ptx, with loads and stores of system scope, which are ordered without fences. */
static const char replies_in_scope[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry replies(.param .u64 question, .param .u64 answer)\n{\n.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [question]; ld.param.u64 %d2, [answer];\n"
    "wait:\nld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %p, %r1, 0; @%p bra wait;\n"
    "shl.b32 %r1, %r1, 1; st.relaxed.sys.global.u32 [%d2+4], %r1; mov.u32 %r2, 1; st.release.sys.global.u32 [%d2], %r2;\nret;\n}\n";

/* A running kernel waits for the host's flag in `host` and writes its answer there. */
static void meet_in(volatile uint32_t *host, const char *ptx)
{
    CUdeviceptr question, answer;
    CUfunction function;
    CUmodule module;
    time_t limit;

    memset((void *)host, 0, 4096);
    ok(cuMemHostGetDevicePointer(&question, (void *)host, 0));
    answer = question + 1024;
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&function, module, "replies"));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&question, &answer}, NULL));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL)); /* the kernel waits */
    usleep(20000);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    assert_int_equal(host[256], 0);
    __atomic_store_n(&host[0], 21, __ATOMIC_RELEASE);
    limit = time(NULL) + 10;
    while (__atomic_load_n(&host[256], __ATOMIC_ACQUIRE) == 0 && time(NULL) < limit)
        ;
    assert_int_equal(host[256], 1);
    assert_int_equal(host[257], 42); /* written before the flag */
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
}

/* "There is no need to use streams [...] to overlap data transfers with kernel execution; the kernel-originated data transfers automatically
 * overlap with kernel execution": a running kernel waits for the host's flag and answers. membar.sys is __threadfence_system. */
static void host_and_running_kernel_see_each_other(void **state)
{
    void *host;

    (void)state;
    ok(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    meet_in(host, seeds_ptx);
    meet_in(host, replies_in_scope);
    ok(cuMemFreeHost(host));
}

/* The same in registered memory: a copy that is synchronized before and after kernels would not suffice. */
static void they_see_each_other_in_registered_memory(void **state)
{
    void *pages;

    (void)state;
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED))
        skip();
    pages = aligned_alloc(4096, 8192);
    ok(cuMemHostRegister(pages, 8192, CU_MEMHOSTREGISTER_DEVICEMAP));
    meet_in(pages, seeds_ptx);
    ok(cuMemHostUnregister(pages));
    free(pages);
}

/* "atomic functions [...] operating on mapped page-locked memory are not atomic from the point of view of the host or other devices": from
 * the point of view of the device itself they are. */
static void atomics_are_atomic_on_the_device(void **state)
{
    static const char adds[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
                               ".visible .entry adds(.param .u64 p)\n{\n.reg .b32 %r1; .reg .b64 %d1;\n"
                               "ld.param.u64 %d1, [p];\natom.global.add.u32 %r1, [%d1], 1;\nred.global.add.u32 [%d1+4], 3;\nret;\n}\n";
    CUfunction function;
    CUdeviceptr device;
    CUmodule module;
    uint32_t *host;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    memset(host, 0, 4096);
    ok(cuModuleLoadData(&module, adds));
    ok(cuModuleGetFunction(&function, module, "adds"));
    ok(cuLaunchKernel(function, 100, 1, 1, 128, 1, 1, 0, NULL, (void *[]){&device}, NULL));
    ok(cuCtxSynchronize());
    assert_int_equal(host[0], 12800);
    assert_int_equal(host[1], 3 * 12800);
    ok(cuModuleUnload(module));
    ok(cuMemFreeHost(host));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_two_addresses),
        cmocka_unit_test(events_order_accesses),
        cmocka_unit_test(mapping_is_enabled_by_the_context),
        cmocka_unit_test(the_attribute_tells),
        cmocka_unit_test(host_and_running_kernel_see_each_other),
        cmocka_unit_test(they_see_each_other_in_registered_memory),
        cmocka_unit_test(atomics_are_atomic_on_the_device),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
