/* SPDX-License-Identifier: Apache-2.0 */
/* Exactness: the cases by which the library probes the claims of drivers (core/device/probe.def), here with the code that programs get, which
 * replaces what the device does not do exactly. Their results were computed with exact fractions. */
#include "selftest.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum operation {
#define OPERATION(id, fact, width, text) OPERATION_##id,
#include "core/device/probe.def"
    OPERATION_COUNT
};

static const struct {
    const char *name, *text;
    unsigned width;
} operations[] = {
#define OPERATION(id, fact, width, text) [OPERATION_##id] = {#id, text, width},
#include "core/device/probe.def"
};

static const struct operands {
    enum operation operation;
    uint64_t a, b, c, want;
} cases[] = {
#define CASE(operation, a, b, c, want) {OPERATION_##operation, a, b, c, want},
#include "core/device/probe.def"
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

/* A kernel that computes one operation of the struct operands that its parameter points to, and replaces `want`. NULL: no memory. */
static char *make_ptx(enum operation operation)
{
    const unsigned width = operations[operation].width;
    char *ptx;

    if (asprintf(&ptx,
                 SELFTEST_HEAD
                 ".visible .entry check(.param .u64 items)\n{\n"
                 "    .reg .b64 %%at, %%w, %%what;\n    .reg .b32 %%i, %%s;\n    .reg .pred %%q;\n    .reg .b%u %%a, %%b, %%c, %%d;\n"
                 "    ld.param.u64 %%at, [items];\n    mov.u32 %%i, %%ctaid.x;\n    mul.wide.u32 %%what, %%i, %zu;\n"
                 "    add.u64 %%at, %%at, %%what;\n    ld.global.b%u %%a, [%%at+8];\n    ld.global.b%u %%b, [%%at+16];\n"
                 "    ld.global.b%u %%c, [%%at+24];\n    %s\n    mov.u64 %%w, 0;\n    st.global.b64 [%%at+32], %%w;\n"
                 "    st.global.b%u [%%at+32], %%d;\n    ret;\n}\n",
                 width, sizeof *cases, width, width, width, operations[operation].text, width) < 0)
        return NULL;
    return ptx;
}

/* Computes the cases of one operation; *wrong counts those with another result. */
static enum selftest_result check(struct selftest *test, enum operation operation, CUdeviceptr memory, unsigned *wrong)
{
    static struct operands items[CASE_COUNT];
    unsigned count = 0;
    CUmodule module;
    CUfunction function;
    void *params[] = {&memory};
    char *ptx = make_ptx(operation);
    bool is_loaded;

    if (!ptx)
        return SELFTEST_FAILED;
    is_loaded = selftest_try(test, selftest_load(ptx, &module, &function), operations[operation].name);
    free(ptx);
    if (!is_loaded)
        return SELFTEST_FAILED;
    for (unsigned i = 0; i < CASE_COUNT; i++)
        if (cases[i].operation == operation)
            items[count++] = cases[i];
    TRY(cuMemcpyHtoD(memory, items, count * sizeof *items));
    TRY(cuLaunchKernel(function, count, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    TRY(cuMemcpyDtoH(items, memory, count * sizeof *items));
    TRY(cuModuleUnload(module));
    for (unsigned i = 0, k = 0; i < CASE_COUNT; i++)
        if (cases[i].operation == operation && items[k++].want != cases[i].want && (*wrong)++ == 0)
            selftest_say(test, "%s of %llx, %llx, %llx gives %llx, not %llx; ", operations[operation].name, (unsigned long long)cases[i].a,
                         (unsigned long long)cases[i].b, (unsigned long long)cases[i].c, (unsigned long long)items[k - 1].want,
                         (unsigned long long)cases[i].want);
    return SELFTEST_PASSED;
}

enum selftest_result selftest_exactness(struct selftest *test)
{
    unsigned wrong = 0;
    CUdeviceptr memory;

    TRY(cuMemAlloc(&memory, sizeof cases));
    for (unsigned i = 0; i < OPERATION_COUNT; i++) {
        const enum selftest_result result = check(test, (enum operation)i, memory, &wrong);

        if (result != SELFTEST_PASSED)
            return result;
    }
    TRY(cuMemFree(memory));
    selftest_say(test, "%u of %u cases right", CASE_COUNT - wrong, CASE_COUNT);
    return wrong ? SELFTEST_FAILED : SELFTEST_PASSED;
}
