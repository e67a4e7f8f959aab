/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped memory, by the sentences of the CUDA programming guide ("Mapped Memory"). Each test quotes the words that it is about. */
#include "seeds.h"

#include <time.h>

#define BYTES (SEEDS_WORDS * 4)
#define ROUNDS 200000u

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
 * implicitly performed as needed by the kernel"; "the application must synchronize memory accesses using streams or
 * events": after an event the host sees what the kernel wrote, with no copy at all. */
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
 * context. "Otherwise, cudaHostGetDevicePointer() will return an error": where there is unified addressing mapping is enabled always, and
 * the other tests have contexts without the flag. */
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

/* As seeds_ptx's `replies`, by loads and stores of the system's scope: they order each other, without fences. */
static const char replies_in_scope[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry replies(.param .u64 question, .param .u64 answer)\n{\n.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [question]; ld.param.u64 %d2, [answer];\n"
    "wait:\nld.acquire.sys.global.u32 %r1, [%d1]; setp.eq.u32 %p, %r1, 0; @%p bra wait;\n"
    "shl.b32 %r1, %r1, 1; st.relaxed.sys.global.u32 [%d2+4], %r1; mov.u32 %r2, 1; st.release.sys.global.u32 [%d2], %r2;\nret;\n}\n";

/* A running kernel waits for the host's flag in `host` and answers there. */
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
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL)); /* it waits */
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

/* The same in registered memory: a copy of it that is brought up to date around kernels would not do. */
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

/* ---- single accesses ---- */

/* "1-byte, 2-byte, 4-byte, 8-byte, and 16-byte naturally aligned loads and stores to host memory initiated from the device are preserved as
 * single accesses from the point of view of the host": a kernel stores two patterns in turn; the host never sees a part of one and a part
 * of the other. Loads of the host are of the same size. A vector is one access on GPUs; the memory model of PTX takes it for one of each
 * element
 * ("Vector Data-types"), and that is what a CPU as a device makes of it. */
static const struct access {
    const char *name, *registers, *set, *store;
    unsigned bytes, element_bytes;
} accesses[] = {
    {"1 byte", ".reg .b16 %a; .reg .b16 %b;", "mov.u16 %a, 0; mov.u16 %b, 0xff;", "st.volatile.global.u8 [%%d1], %%%c;", 1, 1},
    {"2 bytes", ".reg .b16 %a; .reg .b16 %b;", "mov.u16 %a, 0; mov.u16 %b, 0xffff;", "st.volatile.global.u16 [%%d1], %%%c;", 2, 2},
    {"4 bytes", ".reg .b32 %a; .reg .b32 %b;", "mov.u32 %a, 0; mov.u32 %b, -1;", "st.volatile.global.u32 [%%d1], %%%c;", 4, 4},
    {"8 bytes", ".reg .b64 %a; .reg .b64 %b;", "mov.u64 %a, 0; mov.u64 %b, -1;", "st.volatile.global.u64 [%%d1], %%%c;", 8, 8},
    {"2 x 4 bytes", ".reg .b32 %a; .reg .b32 %b;", "mov.u32 %a, 0; mov.u32 %b, -1;", "st.global.v2.u32 [%%d1], {%%%c, %%%c};", 8, 4},
    {"2 x 8 bytes", ".reg .b64 %a; .reg .b64 %b;", "mov.u64 %a, 0; mov.u64 %b, -1;", "st.global.v2.u64 [%%d1], {%%%c, %%%c};", 16, 8},
    {"4 x 4 bytes", ".reg .b32 %a; .reg .b32 %b;", "mov.u32 %a, 0; mov.u32 %b, -1;", "st.global.v4.u32 [%%d1], {%%%c, %%%c, %%%c, %%%c};",
     16, 4},
};

/* What atomic operations store. */
static const struct access atomics[] = {
    {"exchange of 4 bytes", ".reg .b32 %a; .reg .b32 %b; .reg .b32 %o;", "mov.u32 %a, 0; mov.u32 %b, -1;",
     "atom.global.exch.b32 %%o, [%%d1], %%%c;", 4, 4},
    {"exchange of 8 bytes", ".reg .b64 %a; .reg .b64 %b; .reg .b64 %o;", "mov.u64 %a, 0; mov.u64 %b, -1;",
     "atom.global.exch.b64 %%o, [%%d1], %%%c;", 8, 8},
    {"inversion of 8 bytes", ".reg .b64 %a; .reg .b64 %b;", "mov.u64 %a, -1; mov.u64 %b, -1;", "red.global.xor.b64 [%%d1], %%%c;", 8, 8},
};
#define N_ACCESSES (sizeof accesses / sizeof *accesses)
#define N_ATOMICS (sizeof atomics / sizeof *atomics)

/* Stores the one, then the other, `rounds` times, with a fence after each. */
static void write_kernel(const struct access *access, char *out, size_t size)
{
    char first[128], second[128];

    snprintf(first, sizeof first, access->store, 'a', 'a', 'a', 'a');
    snprintf(second, sizeof second, access->store, 'b', 'b', 'b', 'b');
    snprintf(out, size,
             ".version 6.0\n.target sm_70\n.address_size 64\n"
             ".visible .entry alternates(.param .u64 p, .param .u32 rounds)\n{\n.reg .pred %%p; .reg .b32 %%r1; .reg .b64 %%d1;\n%s\n"
             "ld.param.u64 %%d1, [p]; ld.param.u32 %%r1, [rounds];\n%s\n"
             "again:\n%s\nmembar.sys;\n%s\nmembar.sys;\n"
             "sub.u32 %%r1, %%r1, 1; setp.ne.u32 %%p, %%r1, 0; @%%p bra again;\nret;\n}\n",
             access->registers, access->set, first, second);
}

typedef unsigned long long pair __attribute__((vector_size(16)));

/* One load and one store of the size. x86-64 processors with AVX move 16 aligned bytes at once (Intel SDM 3A, 9.1.1; AMD says the same). */
static void move_once(volatile void *to, const volatile void *from, unsigned bytes)
{
    switch (bytes) {
    case 1:
        *(volatile uint8_t *)to = *(const volatile uint8_t *)from;
        break;
    case 2:
        *(volatile uint16_t *)to = *(const volatile uint16_t *)from;
        break;
    case 4:
        *(volatile uint32_t *)to = *(const volatile uint32_t *)from;
        break;
    case 8:
        *(volatile uint64_t *)to = *(const volatile uint64_t *)from;
        break;
    default:
        *(volatile pair *)to = *(const volatile pair *)from;
        break;
    }
}

/* Each `unit` of the bytes is all zeros or all ones. */
static bool is_whole(const unsigned char *loaded, unsigned bytes, unsigned unit)
{
    for (unsigned i = 0; i < bytes; i++)
        if ((loaded[i] != 0 && loaded[i] != 0xff) || loaded[i] != loaded[i / unit * unit])
            return false;
    return true;
}

/* How many loads found parts of two stores; *seen becomes a bit for each pattern found. */
static unsigned count_torn(const struct access *access, volatile void *host, CUdeviceptr device, unsigned *seen)
{
    bool is_cpu = on_cuttle() && seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
    unsigned unit = is_cpu ? access->element_bytes : access->bytes, torn = 0, rounds = ROUNDS;
    _Alignas(16) unsigned char loaded[16];
    char text[2048];
    CUfunction function;
    CUmodule module;

    write_kernel(access, text, sizeof text);
    ok(cuModuleLoadData(&module, text));
    ok(cuModuleGetFunction(&function, module, "alternates"));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&device, &rounds}, NULL));
    while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY) {
        for (unsigned i = 0; i < 1000; i++) {
            move_once(loaded, host, access->bytes);
            torn += !is_whole(loaded, access->bytes, unit);
            *seen |= loaded[0] == 0 ? 1 : 2;
        }
    }
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
    return torn;
}

static void stores_are_single(const struct access *rows, size_t count)
{
    CUdeviceptr device;
    char *host;

    ok(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&device, host, 0));
    for (size_t i = 0; i < count; i++) {
        unsigned seen = 0, torn;

        memset(host, 0, 4096);
        torn = count_torn(&rows[i], host + 64, device + 64, &seen);
        print_message("%s: %u torn, patterns seen: %u\n", rows[i].name, torn, seen);
        assert_int_equal(torn, 0);
    }
    ok(cuMemFreeHost(host));
}

static void aligned_stores_are_single(void **state)
{
    (void)state;
    stores_are_single(accesses, N_ACCESSES);
}

/* "atomics to memory may be broken by the hardware into separate load and store operations. These component load and store operations have
 * the same requirements on preservation of naturally aligned accesses." */
static void stores_of_atomics_are_single(void **state)
{
    (void)state;
    stores_are_single(atomics, N_ATOMICS);
}

/* Loads `rounds` times and counts into torn what is neither all zeros nor all ones, a part at a time or, with `whole`, all of it. */
static void write_reader(const struct access *access, bool whole, char *out, size_t size)
{
    unsigned parts = access->bytes / access->element_bytes, bits = access->element_bytes == 1 ? 16 : access->element_bytes * 8;
    char list[64] = "", checks[1024] = "";

    for (unsigned i = 0; i < parts; i++) {
        size_t at = strlen(list), n = strlen(checks);

        snprintf(list + at, sizeof list - at, "%s%%e%u", i ? ", " : "", i);
        n += (size_t)snprintf(checks + n, sizeof checks - n,
                              "setp.ne.u%u %%p, %%e%u, 0; setp.ne.and.u%u %%p, %%e%u, %s, %%p; @%%p add.u32 %%r2, %%r2, 1;\n", bits, i, bits, i,
                              access->element_bytes == 1 ? "0xff" : bits == 16 ? "0xffff" : "-1");
        if (whole && i)
            snprintf(checks + n, sizeof checks - n, "setp.ne.u%u %%p, %%e%u, %%e0; @%%p add.u32 %%r2, %%r2, 1;\n", bits, i);
    }
    snprintf(out, size,
             ".version 6.0\n.target sm_70\n.address_size 64\n"
             ".visible .entry looks(.param .u64 p, .param .u64 torn, .param .u32 rounds)\n{\n.reg .pred %%p; .reg .b32 %%r<3>; .reg .b64 %%d<3>; "
             ".reg .b%u %%e<4>;\nld.param.u64 %%d1, [p]; ld.param.u64 %%d2, [torn]; ld.param.u32 %%r1, [rounds]; mov.u32 %%r2, 0;\n"
             "again:\nld.volatile.global%s.u%u %s%s%s, [%%d1];\n%s"
             "sub.u32 %%r1, %%r1, 1; setp.ne.u32 %%p, %%r1, 0; @%%p bra again;\nst.global.u32 [%%d2], %%r2;\nret;\n}\n",
             bits, parts == 1 ? "" : parts == 2 ? ".v2" : ".v4", access->element_bytes * 8, parts == 1 ? "" : "{", list,
             parts == 1 ? "" : "}", checks);
}

/* The same of loads: the host stores two patterns in turn, and a kernel never sees a part of one and a part of the other. */
static void aligned_loads_are_single(void **state)
{
    static const pair patterns[2] = {{0, 0}, {UINT64_MAX, UINT64_MAX}};
    bool is_cpu = on_cuttle() && seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
    unsigned rounds = ROUNDS;
    CUfunction function;
    char text[4096], *host;
    CUmodule module;

    (void)state;
    ok(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    for (size_t i = 0; i < N_ACCESSES; i++) {
        CUdeviceptr pattern, torn;

        memset(host, 0, 4096);
        ok(cuMemHostGetDevicePointer(&pattern, host + 64, 0));
        ok(cuMemHostGetDevicePointer(&torn, host + 2048, 0));
        write_reader(&accesses[i], !is_cpu, text, sizeof text);
        ok(cuModuleLoadData(&module, text));
        ok(cuModuleGetFunction(&function, module, "looks"));
        ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&pattern, &torn, &rounds}, NULL));
        while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
            for (unsigned k = 0; k < 1000; k++)
                move_once(host + 64, &patterns[k & 1], accesses[i].bytes);
        ok(cuCtxSynchronize());
        if (*(uint32_t *)(void *)(host + 2048))
            fail_msg("%s: %u torn", accesses[i].name, *(unsigned *)(void *)(host + 2048));
        ok(cuModuleUnload(module));
    }
    ok(cuMemFreeHost(host));
}

/* "atomic functions [...] operating on mapped page-locked memory are not atomic from the point of view of the host or other devices": from
 * that of the device itself they are. */
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
        cmocka_unit_test(aligned_stores_are_single),
        cmocka_unit_test(stores_of_atomics_are_single),
        cmocka_unit_test(aligned_loads_are_single),
        cmocka_unit_test(atomics_are_atomic_on_the_device),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
