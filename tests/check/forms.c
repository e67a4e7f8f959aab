/* SPDX-License-Identifier: Apache-2.0 */
/* check_forms KIND FORM [good]: launches the kernel of a form (forms.h) with the fault of that kind, or without it. "lines" prints the lines of the
 * accesses in the PTX. */
#include "forms.h"

#include "check_program.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS 64
#define WRITTEN 32 /* of the words, where it matters */
#define MARK "// HERE"

/* The beginning of all kernels, how all but thread 3 of block 1 end, and the access with what comes behind it. */
#define ENTRY(name) ".visible .entry " #name "(.param .u64 buffer, .param .s32 offset, .param .u64 results)\n{\n"
#define THREAD "mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\n"
#define OTHERS_END "setp.ne.u32 %q, %t, 3;\n@%q ret;\nsetp.ne.u32 %q, %b, 1;\n@%q ret;\n"
#define ACCESS(code)                                                                                                                       \
    "mov.u32 %v0, 7;\nmov.u32 %v1, 7;\nmov.u32 %v2, 7;\nmov.u32 %v3, 7;\nmov.u64 %l, 7;\n" code " " MARK "\n"                              \
    "add.u32 %v0, %v0, %v1;\nadd.u32 %v2, %v2, %v3;\nadd.u32 %v0, %v0, %v2;\ncvt.u32.u64 %v1, %l;\nadd.u32 %v0, %v0, %v1;\n"               \
    "st.global.u32 [%r], %v0;\nst.global.u32 [%r+4], 7;\nret;\n}\n"

/* The address %a in all ways: %a from the parameter; %g generic, perhaps in shared memory; %w by a loop; %d from memory. Results go to another buffer. */
#define GLOBAL_KERNEL(name, code)                                                                                                          \
    ENTRY(name)                                                                                                                            \
    ".reg .pred %q; .reg .b32 %t, %b, %i, %n, %v<4>; .reg .b64 %a, %g, %w, %d, %o, %s, %r, %l;\n" THREAD OTHERS_END                        \
    "ld.param.u64 %a, [buffer];\nld.param.s32 %i, [offset];\nld.param.u64 %r, [results];\ncvt.s64.s32 %o, %i;\n"                           \
    "mov.u64 %w, %a;\nmov.u32 %n, 0;\nAGAIN:\nshr.s64 %s, %o, 2;\nadd.u64 %w, %w, %s;\nadd.u32 %n, %n, 1;\n"                               \
    "setp.lt.u32 %q, %n, 4;\n@%q bra AGAIN;\nand.b64 %s, %o, 3;\nadd.u64 %w, %w, %s;\nadd.u64 %a, %a, %o;\n"                               \
    "st.volatile.global.u64 [%r+64], %a;\nld.volatile.global.u64 %d, [%r+64];\n"                                                           \
    "mov.u64 %g, room;\ncvta.shared.u64 %g, %g;\nsetp.ne.s32 %q, %i, 12345;\n@%q mov.u64 %g, %a;\n" ACCESS(code)

/* Each of the 64 threads writes a part of its word, or nothing: the first 32 words are written. */
#define SHARED_KERNEL(name, code)                                                                                                          \
    ENTRY(name)                                                                                                                            \
    ".reg .pred %q; .reg .b32 %t, %b, %i, %z, %v<4>; .reg .b64 %r, %l;\n" THREAD                                                           \
    "mov.u32 %z, room;\nmad.lo.u32 %i, %t, 4, %z;\nsetp.ge.u32 %q, %t, 32;\n@!%q st.shared.u32 [%i], 0;\nbar.sync 0;\n" OTHERS_END         \
    "ld.param.s32 %i, [offset];\nld.param.u64 %r, [results];\nadd.s32 %z, %z, %i;\n" ACCESS(code)

/* A table in local or constant memory. Of that in local memory, 32 words are written. */
#define TABLE_KERNEL(name, declaration, preparation, code)                                                                                 \
    ENTRY(name)                                                                                                                            \
    declaration ".reg .pred %q; .reg .b32 %t, %b, %i, %v<4>; .reg .b64 %a, %o, %r, %l, %w;\n" THREAD OTHERS_END                            \
                "ld.param.s32 %i, [offset];\nld.param.u64 %r, [results];\ncvt.s64.s32 %o, %i;\nmov.u64 %a, table;\n" preparation           \
                "add.u64 %a, %a, %o;\n" ACCESS(code)

#define WRITE_LOCAL                                                                                                                        \
    "mov.u32 %v0, 0;\nmov.u64 %w, 0;\nAGAIN:\nadd.u64 %l, %a, %w;\nst.local.v2.u32 [%l], {%v0, %v0};\nadd.u64 %w, %w, 8;\n"                \
    "setp.lt.u64 %q, %w, 128;\n@%q bra AGAIN;\n"

static const char ptx[] = ".version 7.4\n.target sm_70\n.address_size 64\n.extern .shared .align 4 .b32 room[];\n"
#define FORM(name, space, operation, bytes, classes, code) GLOBAL_KERNEL(name, code)
    READ_FORMS WRITE_FORMS
#undef FORM
#define FORM(name, space, operation, bytes, classes, code) SHARED_KERNEL(name, code)
        SHARED_FORMS SHARED_WRITE_FORMS
#undef FORM
#define FORM(name, space, operation, bytes, classes, code) TABLE_KERNEL(name, ".local .align 16 .b32 table[64];\n", WRITE_LOCAL, code)
    LOCAL_FORMS
#undef FORM
                          ".const .align 16 .b32 table[64];\n"
#define FORM(name, space, operation, bytes, classes, code) TABLE_KERNEL(name, "", "", code)
    CONSTANT_FORMS;
#undef FORM

static int print_lines(void)
{
#define FORM(name, space, operation, bytes, classes, code) printf("%s %u\n", #name, marked_line(ptx, #name, MARK));
    ALL_FORMS
#undef FORM
    return 0;
}

/* ---- faults: the buffer, and the offset of the access in it ---- */

struct access {
    CUdeviceptr buffer;
    int offset;
    bool is_freed;
};

static CUdeviceptr allocate(bool in_order)
{
    CUdeviceptr p;

    if (in_order)
        ok(cuMemAllocAsync(&p, WORDS * sizeof(unsigned), NULL));
    else
        ok(cuMemAlloc(&p, WORDS * sizeof(unsigned)));
    return p;
}

/* The first words are written: by the host, or by a fill. */
static void write_first(CUdeviceptr p, bool by_copy)
{
    static const unsigned zeros[WRITTEN];

    if (by_copy)
        ok(cuMemcpyHtoD(p, zeros, sizeof zeros));
    else
        ok(cuMemsetD32Async(p, 0, WRITTEN, NULL));
}

static CUdeviceptr of_host(bool is_good)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *host = aligned_alloc(page, page);
    CUdeviceptr p;

    require(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
    if (!host)
        exit(3);
    memset(host, 0, page);
    ok(cuMemHostRegister(host, page, CU_MEMHOSTREGISTER_DEVICEMAP | (is_good ? 0u : CU_MEMHOSTREGISTER_READ_ONLY)));
    ok(cuMemHostGetDevicePointer(&p, host, 0));
    return p;
}

static struct access make(const char *fault, bool is_good)
{
    const bool in_order = strstr(fault, "in_order") != NULL;
    struct access access = {.offset = 16};

    if (!strcmp(fault, "read_only")) {
        access.buffer = of_host(is_good);
        return access;
    }
    access.buffer = allocate(in_order);
    if (strncmp(fault, "unwritten", 9))
        ok(cuMemsetD32(access.buffer, 0, WORDS));
    else
        write_first(access.buffer, in_order);
    if (is_good)
        return access;
    if (!strncmp(fault, "behind", 6))
        access.offset = WORDS * sizeof(unsigned);
    else if (!strcmp(fault, "before"))
        access.offset = -16;
    else if (!strncmp(fault, "misaligned", 10))
        access.offset = 17;
    else if (!strncmp(fault, "unwritten", 9))
        access.offset = WRITTEN * sizeof(unsigned);
    else
        access.is_freed = true;
    if (access.is_freed)
        ok(in_order ? cuMemFreeAsync(access.buffer, NULL) : cuMemFree(access.buffer));
    return access;
}

static int run(CUmodule module, const char *fault, const char *form, bool is_good)
{
    struct access access;
    unsigned words[2];
    CUdeviceptr results;
    CUfunction f;
    void *params[] = {&access.buffer, &access.offset, &results};

    ok(cuMemAlloc(&results, 128)); /* first, so that it does not take the place of memory that is freed */
    access = make(fault, is_good);
    ok(cuMemsetD32(results, 0, 32));
    ok(cuModuleGetFunction(&f, module, form));
    ok(cuLaunchKernel(f, 2, 1, 1, WORDS, 1, 1, WORDS * sizeof(unsigned), NULL, params, NULL));
    ok(cuMemcpyDtoH(words, results, sizeof words));
    ok(cuMemFree(results));
    if (!access.is_freed && strcmp(fault, "read_only"))
        ok(cuMemFree(access.buffer));
    return words[1] == 7 ? 0 : 1;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUdevice device;
    CUmodule module;

    if (argc > 1 && !strcmp(argv[1], "lines"))
        return print_lines();
    if (argc < 3)
        return 2;
    ok(cuInit(0));
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&module, ptx));
    return run(module, argv[1], argv[2], argc > 3);
}
