/* SPDX-License-Identifier: Apache-2.0 */
/* check_syncs NAME [bad|good [MEMORY]]: launches a kernel of syncs.h with its fault, or without it, on memory of a kind; status LEFT_OUT: the device has none.
 * "lines" prints the marked lines of all kernels: NAME HERE THERE. */
#include "syncs.h"

#include "check_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 64
#define BLOCKS 2
#define MORE 256 /* words behind those of the threads: for races, and, from word 256 on, for what the threads have read */

#define SYNC(name, kind, options, first, last, here, there, code)                                                                          \
    ".visible .entry " #name "(.param .u64 buffer, .param .u32 fault)\n{\n"                                                                \
    ".reg .pred %k, %o, %p, %q; .reg .b32 %t, %b, %v, %w, %m, %n, %s, %i; .reg .b64 %a, %c, %l;\n"                                         \
    "mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\nld.param.u32 %i, [fault];\nld.param.u64 %c, [buffer];\n"                                  \
    "setp.eq.u32 %k, %b, 1;\nsetp.ne.and.u32 %k, %i, 0, %k;\nsetp.ge.and.u32 %o, %t, " #first ", %k;\nsetp.le.and.u32 %o, %t, " #last      \
    ", %o;\n"                                                                                                                              \
    "mad.lo.u32 %v, %b, 64, %t;\nmul.wide.u32 %a, %v, 4;\nadd.u64 %a, %c, %a;\n"                                                           \
    "mov.u32 %s, room;\nmad.lo.u32 %v, %t, 4, %s;\nst.shared.u32 [%v], 0;\nbar.sync 0;\n"                                                  \
    "mov.u32 %v, 0;\nmov.u32 %w, 0;\nmov.u32 %m, 0;\nmov.u32 %n, 0;\nmov.u64 %l, 0;\n" code                                                \
    "or.b32 %v, %v, %w;\nor.b32 %v, %v, %m;\nor.b32 %v, %v, %n;\ncvt.u32.u64 %w, %l;\nor.b32 %v, %v, %w;\nst.global.u32 [%a+1024], %v;\n"  \
    "st.global.u32 [%a], 7;\nret;\n}\n"
static const char ptx[] =
    ".version 7.4\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b32 room[];\n"
    ".global .align 16 .b32 common[64];\n" BARRIER_SYNCS MASK_SYNCS RACE_SYNCS LOADS_SYNCS THREADS_SYNCS BLOCKS_SYNCS
        /* Allowed: some threads end before a barrier; warps come to one barrier in different ways. */
        SYNC(early_end, "", "", 32, 63, 0, 0, "setp.ge.u32 %q, %t, 40;\nst.global.u32 [%a], 7;\n@%q ret;\nbar.sync 0;\nbar.sync 0;\n")
            SYNC(two_ways, "", "", 32, 63, 0, 0, "setp.ge.u32 %q, %t, 32;\n@%q bra B;\nbar.sync 0;\nbra C;\nB: bar.sync 0;\nC:\n")
    /* A warp that waits for another one, which is ordered by volatile accesses. */
    SYNC(volatile_flag, "", "", 0, 63, 0, 0,
         "setp.eq.u32 %q, %t, 40;\n@%q st.volatile.shared.u32 [%s+16], 9;\n@%q st.volatile.shared.u32 [%s+128], 1;\n"
         "setp.ne.u32 %q, %t, 3;\n@%q bra E;\nW: ld.volatile.shared.u32 %v, [%s+128];\nsetp.eq.u32 %q, %v, 0;\n@%q bra W;\n"
         "ld.volatile.shared.u32 %w, [%s+16];\nE:\n")
    /* Lanes of a warp with a warp instruction between, and threads that barriers keep apart for long. */
    SYNC(
        warp_step, "", "", 0, 63, 0, 0,
        "st.global.u32 [%a+1024], %t;\nbar.warp.sync 0xffffffff;\nxor.b32 %v, %t, 1;\nmad.lo.u32 %v, %b, 64, %v;\nmul.wide.u32 %l, %v, 4;\n"
        "add.u64 %l, %c, %l;\nld.global.u32 %v, [%l+1024];\nmov.u64 %l, 0;\nbar.warp.sync 0xffffffff;\n")
        SYNC(many_barriers, "", "", 0, 63, 0, 0,
             "mul.wide.u32 %l, %b, 64;\nadd.u64 %c, %c, %l;\nsetp.eq.u32 %q, %t, 40;\n@%q st.global.u32 [%c+512], 9;\nmov.u32 %n, 9000;\n"
             "L: bar.sync 0;\nld.global.u32 %v, [%c+512];\nsub.u32 %n, %n, 1;\nsetp.ne.u32 %q, %n, 0;\n@%q bra L;\nmov.u64 %l, 0;\n")
    /* Threads read and write bytes of their own in words that they share, within a warp and between two. */
    SYNC(own_bytes, "", "", 0, 63, 0, 0,
         "shr.u32 %v, %t, 5;\nand.b32 %w, %t, 31;\nmad.lo.u32 %v, %w, 2, %v;\nadd.u32 %v, %v, %s;\nadd.u32 %s, %s, %t;\nld.shared.u8 %w, "
         "[%s+64];\n"
         "st.shared.u8 [%s+64], %t;\nbar.sync 0;\nld.shared.u8 %m, [%v+64];\nst.shared.u8 [%v+64], %t;\n")
    /* Bytes of one word, the same flag from all blocks, and what a fence may order. */
    SYNC(bytes_of_a_word, "", "", 0, 63, 0, 0,
         "add.u64 %c, %c, 512;\ncvt.u64.u32 %l, %b;\nadd.u64 %c, %c, %l;\nsetp.eq.u32 %q, %t, 0;\n"
         "@%q st.global.u8 [%c], 5;\nbar.sync 0;\n@%q ld.global.u8 %v, [%c];\n")
        SYNC(same_flag, "", "", 0, 63, 0, 0, "st.global.u32 [%c+512], 1;\n")
    /* Threads of both blocks read and write bytes of their own in words that they share; what all threads read is written behind a barrier. */
    SYNC(own_bytes_of_a_word, "", "", 0, 63, 0, 0,
         "mad.lo.u32 %v, %t, 2, %b;\ncvt.u64.u32 %l, %v;\nadd.u64 %l, %c, %l;\nld.global.u8 %v, [%l+512];\nst.global.u8 [%l+512], %t;\n"
         "bar.sync 0;\nld.global.u8 %v, [%l+512];\nst.global.u8 [%l+512], 0;\nmov.u64 %l, 0;\n")
        SYNC(written_behind_a_barrier, "", "", 0, 63, 0, 0,
             "mul.wide.u32 %l, %b, 64;\nadd.u64 %c, %c, %l;\nsetp.eq.u32 %q, %t, 40;\nmov.u32 %n, 9000;\n"
             "L: ld.global.u32 %v, [%c+512];\nbar.sync 0;\n@%q st.global.u32 [%c+512], %n;\nbar.sync 0;\nsub.u32 %n, %n, 1;\n"
             "setp.ne.u32 %p, %n, 0;\n@%p bra L;\nmov.u64 %l, 0;\n")
            SYNC(fenced, "", "", 0, 63, 0, 0, "st.global.u32 [%c+512], %t;\nmembar.gl;\n");
#undef SYNC

static int print_lines(void)
{
#define SYNC(name, kind, options, first, last, here, there, code)                                                                          \
    printf("%s %u %u\n", #name, marked_line(ptx, #name, HERE), marked_line(ptx, #name, THERE));
    BARRIER_SYNCS
    MASK_SYNCS
    RACE_SYNCS
    LOADS_SYNCS
    THREADS_SYNCS
    BLOCKS_SYNCS
#undef SYNC
    return 0;
}

/* ---- kinds of memory ---- */

#define BYTES ((BLOCKS * THREADS + MORE) * sizeof(unsigned))

static CUdeviceptr of_device(void)
{
    CUdeviceptr p;

    ok(cuMemAlloc(&p, BYTES));
    return p;
}

static CUdeviceptr of_pool(void)
{
    CUdeviceptr p;

    ok(cuMemAllocAsync(&p, BYTES, NULL));
    return p;
}

static CUdeviceptr managed(void)
{
    CUdeviceptr p;

    require(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    ok(cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL));
    return p;
}

static CUdeviceptr pinned(void)
{
    CUdeviceptr p;
    void *host;

    ok(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&p, host, 0));
    return p;
}

static CUdeviceptr registered(void)
{
    const size_t bytes = (BYTES + 4095) / 4096 * 4096;
    void *host = aligned_alloc(4096, bytes);
    CUdeviceptr p;

    require(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    memset(host, 0, bytes);
    ok(cuMemHostRegister(host, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&p, host, 0));
    return p;
}

/* The words are at the end of the first of two adjacent mappings, or in the second one. */
static CUdeviceptr mapped_in(int at_word)
{
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    size_t size;

    require(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    ok(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemAddressReserve(&p, 2 * size, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        ok(cuMemCreate(&handle, size, &properties, 0));
        ok(cuMemMap(p + (CUdeviceptr)i * size, size, 0, handle, 0));
        ok(cuMemRelease(handle));
    }
    ok(cuMemSetAccess(p, 2 * size, &access, 1));
    return p + size + (CUdeviceptr)at_word * sizeof(unsigned);
}

static CUdeviceptr mapped(void)
{
    return mapped_in(0);
}

/* The words that are raced for are in the second mapping, and the parameter points to the first. */
static CUdeviceptr mapped_twice(void)
{
    return mapped_in(-BLOCKS * THREADS);
}

static CUdeviceptr memory_of(const char *kind)
{
    static const struct {
        const char *name;
        CUdeviceptr (*make)(void);
    } rows[] = {{"device", of_device},      {"pool", of_pool},  {"managed", managed},          {"pinned", pinned},
                {"registered", registered}, {"mapped", mapped}, {"mapped_twice", mapped_twice}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, kind))
            return rows[i].make();
    exit(2);
}

static int run(CUmodule module, const char *name, unsigned fault, CUdeviceptr p)
{
    unsigned words[BLOCKS * THREADS];
    CUfunction f;
    void *params[] = {&p, &fault};

    ok(cuMemsetD32(p, 0, BLOCKS * THREADS + MORE));
    ok(cuModuleGetFunction(&f, module, name));
    ok(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, THREADS * sizeof(unsigned), NULL, params, NULL));
    ok(cuMemcpyDtoH(words, p, sizeof words));
    for (int i = 0; i < BLOCKS * THREADS && !fault; i++)
        if (words[i] != 7)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUdevice device;
    CUmodule module;

    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "lines"))
        return print_lines();
    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&module, ptx));
    return run(module, argv[1], argc < 3 || strcmp(argv[2], "good"), memory_of(argc > 3 ? argv[3] : "device"));
}
