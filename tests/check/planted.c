/* SPDX-License-Identifier: Apache-2.0 */
/* A program with the fault that its first argument names, or, with a second argument, the same program without it. It checks what its kernel has
 * written where nothing is wrong; status 0: all of that is right. "lines" prints the lines of the faults in the PTX, "leak" does not free memory,
 * "status" ends with status 7, and "signal" by a signal. */
#include "planted.h"

#include "check_program.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 64
#define MARK "// HERE"

/* Every kernel: thread 3 of block 1 goes on with the index in %i, the byte offset in %o, and the address of the buffer in %p. */
#define HEAD(name)                                                                                                                         \
    ".visible .entry " name "(.param .u64 buffer, .param .s32 index)\n{\n"                                                                 \
    ".reg .pred %q; .reg .b32 %t, %b, %i, %v<4>; .reg .b64 %p, %o, %a;\n"                                                                  \
    "mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\nsetp.ne.u32 %q, %t, 3;\n@%q ret;\nsetp.ne.u32 %q, %b, 1;\n@%q ret;\n"                     \
    "ld.param.u64 %p, [buffer];\nld.param.s32 %i, [index];\nmul.wide.s32 %o, %i, 4;\n"

/* 64 threads, 256 bytes of shared memory. */
#define RACE(name, other, order)                                                                                                           \
    ".visible .entry " name "(.param .u64 buffer, .param .s32 index)\n{\n"                                                                 \
    ".reg .pred %q; .reg .b32 %t, %u, %i, %s, %v; .reg .b64 %p, %o;\n"                                                                     \
    "mov.u32 %t, %tid.x;\nld.param.u64 %p, [buffer];\nld.param.s32 %i, [index];\nsetp.ne.s32 %q, %i, 0;\nmov.u32 %s, room;\n"              \
    "mad.lo.u32 %s, %t, 4, %s;\nadd.u32 %v, %t, 7;\nst.shared.u32 [%s], %v;\n@%q bra OPEN;\n" order "OPEN:\n" other                        \
    "mov.u32 %s, room;\nmad.lo.u32 %s, %u, 4, %s;\nld.shared.u32 %v, [%s]; " MARK "\n"                                                     \
    "mul.wide.u32 %o, %t, 4;\nadd.u64 %p, %p, %o;\nst.global.u32 [%p], %v;\nret;\n}\n"

static const char ptx[] = ".version 7.4\n.target sm_70\n.address_size 64\n"
                          ".file 1 \"folder/planted.cu\"\n.file 2 \"folder/inner.cuh\"\n"
                          ".const .align 4 .b32 fixed[16];\n.global .align 4 .b32 table[16];\n.extern .shared .align 4 .b32 room[];\n"
    /* clang-format off */
    HEAD("write") "add.u64 %a, %p, %o;\nst.global.u32 [%a], 7; " MARK "\nret;\n}\n"
    HEAD("read") "add.u64 %a, %p, %o;\nld.global.u32 %v0, [%a]; " MARK "\nadd.u32 %v0, %v0, 7;\nst.global.u32 [%p], %v0;\nret;\n}\n"
    HEAD("read4") "add.u64 %a, %p, %o;\nld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a]; " MARK "\n"
        "add.u32 %v0, %v0, %v3;\nadd.u32 %v0, %v0, 7;\nst.global.u32 [%p], %v0;\nret;\n}\n"
    HEAD("atomic") "add.u64 %a, %p, %o;\natom.global.add.u32 %v0, [%a], 7; " MARK "\nst.global.u32 [%p+4], %v0;\nret;\n}\n"
    /* index 0: a variable, 1: a constant */
    HEAD("constant") "setp.ne.s32 %q, %i, 0;\nmov.u64 %a, table;\n@%q mov.u64 %a, fixed;\nst.global.u32 [%a+8], 7; " MARK "\n"
        "mov.u64 %a, fixed;\nld.const.u32 %v0, [%a+8];\nadd.u32 %v0, %v0, 7;\nst.global.u32 [%p], %v0;\nret;\n}\n"
    HEAD("variable") "mov.u64 %a, table;\nadd.u64 %a, %a, %o;\nst.global.u32 [%a], 7; " MARK "\nst.global.u32 [%p], 7;\nret;\n}\n"
    HEAD("shared") ".reg .b32 %s;\nmov.u32 %s, room;\nmad.lo.s32 %s, %i, 4, %s;\nst.shared.u32 [%s], 7; " MARK "\n"
        "st.global.u32 [%p], 7;\nret;\n}\n"
    HEAD("shared_byte") ".reg .b32 %s;\nmov.u32 %s, room;\nadd.s32 %s, %i, %s;\nst.shared.u32 [room+4], 7;\nld.shared.u32 %v0, [%s]; " MARK "\n"
        "st.global.u32 [%p+8], %v0;\nst.global.u32 [%p], 7;\nret;\n}\n"
    HEAD("local") ".local .align 4 .b32 own[8];\n.reg .b32 %s;\nmov.u32 %s, own;\nmad.lo.s32 %s, %i, 4, %s;\nst.local.u32 [%s], 7; " MARK "\n"
        "st.global.u32 [%p], 7;\nret;\n}\n"
    /* below 100: shared memory, from 100 on: the buffer */
    HEAD("generic") "mov.u64 %a, room;\ncvta.shared.u64 %a, %a;\nsetp.lt.s32 %q, %i, 100;\n@!%q sub.u64 %a, %p, 400;\nadd.u64 %a, %a, %o;\n"
        "st.u32 [%a], 7; " MARK "\nst.global.u32 [%p], 7;\nret;\n}\n"
    /* the pointer comes from memory */
    HEAD("indirect") "st.global.u64 [%p+8], %p;\nld.volatile.global.u64 %a, [%p+8];\nadd.u64 %a, %a, %o;\nst.global.u32 [%a], 7; " MARK "\n"
        "st.global.u32 [%p], 7;\nret;\n}\n"
    HEAD("inlined") "add.u64 %a, %p, %o;\n.loc 1 30 5\n"
        ".loc 2 12 9, function_name $name, inlined_at 1 30 5\nst.global.u32 [%a], 7; " MARK "\n.loc 1 31 1\nret;\n}\n"
    HEAD("grid") "add.u64 %a, %p, %o;\nst.global.u32 [%a], 7; " MARK "\nret;\n}\n"
    HEAD("mask") "shl.b32 %v0, 1, %i;\nshfl.sync.idx.b32 %v1, %i, 3, 31, %v0; " MARK "\nst.global.u32 [%p], 7;\nst.global.u32 [%p+4], %v1;\nret;\n}\n"
    /* Thread t writes a word, and reads that of another one. Index 0: they are ordered. */
    RACE("race", "xor.b32 %u, %t, 32;\n", "bar.sync 0;\n")
    RACE("race_in_warp", "xor.b32 %u, %t, 1;\n", "bar.warp.sync -1;\n")
    ".section .debug_str\n{\n$name:\n.b8 115,116,111\n.b8 114,101,0\n}\n";
/* clang-format on */

static const struct row {
    const char *name, *kernel;
    int good, bad;
} rows[] = {
#define PLANTED(name, kernel, good, bad, kind, space, operation, bytes) {#name, #kernel, good, bad},
    PLANTED_ROWS
#undef PLANTED
    {"mask", "mask", 3, 4},
    {"race", "race", 0, 1},
    {"race_in_warp", "race_in_warp", 0, 1},
};

/* Named in the stacks of reports. */
CUdeviceptr planted_allocation(bool in_order);
__attribute__((noinline, visibility("default"))) CUdeviceptr planted_allocation(bool in_order)
{
    CUdeviceptr p;

    if (in_order)
        ok(cuMemAllocAsync(&p, WORDS * sizeof(unsigned), NULL));
    else
        ok(cuMemAlloc(&p, WORDS * sizeof(unsigned)));
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return p;
}

/* Memory of WORDS words at the end of what is mapped: the second half of the reservation is not. */
static CUdeviceptr mapped_end(void)
{
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    size_t size;

    ok(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemCreate(&handle, size, &properties, 0));
    ok(cuMemAddressReserve(&p, 2 * size, 0, 0, 0));
    ok(cuMemMap(p, size, 0, handle, 0));
    ok(cuMemSetAccess(p, size, &access, 1));
    return p + size - WORDS * sizeof(unsigned);
}

static void launch(CUfunction f, CUdeviceptr p, int index, unsigned n_threads, bool cooperative)
{
    void *params[] = {&p, &index};

    if (cooperative)
        ok(cuLaunchCooperativeKernel(f, 2, 1, 1, 32, 1, 1, 128, NULL, params));
    else
        ok(cuLaunchKernel(f, 2, 1, 1, n_threads, 1, 1, 4 * n_threads, NULL, params, NULL));
}

/* With the good index a 7 is in the first word or at the index; with the bad one nothing but the faulty access is left out. */
static bool is_right(const struct row *row, const unsigned *words, bool is_good)
{
    const bool writes_there = !strcmp(row->kernel, "write") || !strcmp(row->kernel, "inlined") || !strcmp(row->kernel, "grid");

    if (!strncmp(row->name, "race", 4)) /* the others' values */
        return !is_good ||
               (words[3] == 7 + (3 ^ (strcmp(row->name, "race") ? 1 : 32)) && words[40] == 7 + (40 ^ (strcmp(row->name, "race") ? 1 : 32)));
    if (writes_there)
        return !is_good || words[row->good] == 7;
    return words[0] == 7 || !strcmp(row->kernel, "atomic");
}

static int run(const struct row *row, CUmodule module, bool is_good)
{
    const bool in_order = !strcmp(row->name, "freed_in_order"), is_freed = in_order || !strcmp(row->name, "freed");
    const bool is_mapped = !strcmp(row->name, "unmapped");
    const CUdeviceptr p = is_mapped ? mapped_end() : planted_allocation(in_order);
    const bool is_race = !strncmp(row->name, "race", 4);
    const unsigned n_threads = is_race ? WORDS : 32;
    unsigned words[WORDS];
    CUfunction f;

    ok(cuModuleGetFunction(&f, module, row->kernel));
    ok(cuMemsetD32(p, 0, WORDS));
    if (is_freed && !is_good) {
        ok(in_order ? cuMemFreeAsync(p, NULL) : cuMemFree(p));
        launch(f, p, row->bad, n_threads, false);
        ok(cuCtxSynchronize());
        return 0;
    }
    launch(f, p, is_good ? row->good : row->bad, n_threads, !strcmp(row->name, "cooperative"));
    ok(cuMemcpyDtoH(words, p, sizeof words));
    if (!is_mapped)
        ok(in_order ? cuMemFreeAsync(p, NULL) : cuMemFree(p));
    ok(cuCtxSynchronize());
    return is_right(row, words, is_good) ? 0 : 1;
}

/* A call that fails, and what the program does then. */
static int make_calls(const char *then)
{
    const char *text;
    unsigned word;
    CUdeviceptr p;

    (void)cuMemcpyDtoH(&word, 16, sizeof word);
    if (!strcmp(then, "goes_on")) {
        ok(cuMemAlloc(&p, 16));
        ok(cuMemFree(p));
    } else if (!strcmp(then, "asks")) {
        ok(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
        ok(cuCtxSynchronize());
    } else if (!strcmp(then, "gives_up")) {
        (void)cuDevicePrimaryCtxRelease(0);
        return 1;
    }
    return 0;
}

static int print_lines(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%s %u\n", rows[i].name, marked_line(ptx, rows[i].kernel, MARK));
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    CUdevice device;
    CUcontext context;
    CUmodule module;

    if (!strcmp(name, "lines"))
        return print_lines();
    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&module, ptx));
    if (!strcmp(name, "leak"))
        return planted_allocation(false) == 0;
    if (!strncmp(name, "call_", 5))
        return make_calls(name + 5);
    if (!strcmp(name, "signal"))
        raise(SIGKILL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return run(&rows[i], module, argc > 2);
    return 7;
}
