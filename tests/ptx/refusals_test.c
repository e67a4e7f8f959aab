/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that are too large for a switch of SPIR-V (16,383 pairs of a literal and a label: "Universal Limits") are refused before the
 * compiler spends memory on them: a refused kernel takes a small part of the memory of the largest one that compiles. */
#include "cuttle/ptx2spv.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static size_t now_bytes, most_bytes;

void *__real_malloc(size_t size_bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t size_bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t size_bytes)
{
    void *memory = __real_malloc(size_bytes);

    now_bytes += memory ? malloc_usable_size(memory) : 0;
    most_bytes = now_bytes > most_bytes ? now_bytes : most_bytes;
    return memory;
}

void __wrap_free(void *memory)
{
    const size_t bytes = memory ? malloc_usable_size(memory) : 0;

    now_bytes -= bytes < now_bytes ? bytes : now_bytes; /* calloc's memory was not counted */
    __real_free(memory);
}

/* ---- PTX ---- */

static const char head[] = ".version 7.8\n.target sm_80\n.address_size 64\n";
static const char kernel_head[] = ".visible .entry k(.param .u64 p)\n{\n.reg .u64 %rd<8>;\n.reg .u32 %r<8>;\n.reg .pred %p<4>;\n"
                                  "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n";

static void write_candidates(FILE *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fprintf(text,
                ".func (.param .b32 out) f%u(.param .b32 in)\n{\n.reg .u32 %%r<2>;\nld.param.u32 %%r1, [in];\nadd.u32 %%r1, %%r1, %u;\n"
                "st.param.b32 [out], %%r1;\nret;\n}\n",
                i, i);
    fprintf(text, ".global .align 8 .u64 table[%u] = {f0", n);
    for (unsigned i = 1; i < n; i++)
        fprintf(text, ", f%u", i);
    fprintf(text,
            "};\n%sld.global.u64 %%rd2, [%%rd1+8];\n{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %%r1;\n"
            "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (b), %%rd2, (a), P;\nld.param.b32 %%r1, [b];\n}\n",
            kernel_head);
}

static void write_points(FILE *text, unsigned n)
{
    fputs(kernel_head, text);
    for (unsigned i = 0; i < n; i++)
        fprintf(text, "setp.eq.u32 %%p1, %%r1, %u;\n@%%p1 bar.sync 1, 64;\n", i);
}

static const struct row {
    const char *name;
    void (*write)(FILE *text, unsigned n);
    unsigned most; /* the largest kernel that compiles: SPIR-V's limit, less the other cases of the switch */
    const char *message;
} rows[] = {
    {"functions that an indirect call may mean", write_candidates, 16383, "functions"},
    {"points of synchronization", write_points, 16382, "barriers"},
};

/* ---- compilation ---- */

static char message[512];

static void keep_message(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    (void)user;
    snprintf(message, sizeof message, "%s", diagnostic->text);
}

/* Returns the most memory that the compilation of the kernel has at once. */
static size_t compile(const struct row *row, unsigned n, enum ptx2spv_status *status)
{
    static const struct ptx2spv_target target = {
        .dialect = PTX2SPV_VULKAN,
        .warp_form = PTX2SPV_WARP_COLLECTIVE,
        .subgroup_size = 8,
        .push_constant_bytes = 128,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .int64 = 1,
        .memory_model_device_scope = 1,
    };
    const struct ptx2spv_options options = {.on_diagnostic = keep_message};
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_kernel kernel = {0};
    char *ptx = NULL;
    size_t length, before_bytes;
    FILE *text = open_memstream(&ptx, &length);

    fputs(head, text);
    row->write(text, n);
    fputs("st.global.u32 [%rd1], %r1;\nret;\n}\n", text);
    fclose(text);
    assert_int_equal(ptx2spv_module_create(ptx, length, &options, &module), PTX2SPV_OK);
    message[0] = 0;
    before_bytes = most_bytes = now_bytes;
    *status = ptx2spv_kernel_compile(module, 0, &target, &options, &kernel);
    ptx2spv_kernel_finish(&kernel);
    ptx2spv_module_destroy(module);
    free(ptx);
    return most_bytes - before_bytes;
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        enum ptx2spv_status status;
        const size_t part_bytes = compile(row, row->most / 8, &status);
        size_t refused_bytes;

        assert_int_equal(status, PTX2SPV_OK);
        refused_bytes = compile(row, row->most + 1, &status);
        print_message("%s: %.1f MiB for %u, %.1f MiB for %u: %s\n", row->name, (double)part_bytes / (1 << 20), row->most / 8,
                      (double)refused_bytes / (1 << 20), row->most + 1, message);
        assert_int_equal(status, PTX2SPV_UNSUPPORTED);
        assert_non_null(strstr(message, row->message));
        assert_true(refused_bytes < 3 * part_bytes); /* less than half of what it takes to compile that many */
    }
}

static void test_largest(void **state)
{
    enum ptx2spv_status status;

    (void)state;
    compile(&rows[0], rows[0].most, &status);
    if (status != PTX2SPV_OK)
        fail_msg("%s: %s", rows[0].name, message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_largest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
