/* SPDX-License-Identifier: Apache-2.0 */
/* Products in matrix units: mma and wmma are compiled for devices whose units distribute matrices over lanes in several ways, executed by the
 * interpreter (spirv_matrix.c), and compared with sums on the host. Elements are small integers, so all sums are exact. Those of integers are also
 * computed by code, on subgroups of 4 to 128 lanes, in all forms of warps. */
#include "spirv_machine.h"

#include "../programs/matrix_places.h"
#include "../programs/matrix_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, WARPS = 4, THREADS = WARPS * LANES, SIDE_MAX = 64, ELEMENTS_MAX = SIDE_MAX * SIDE_MAX };
#define MEMORY_ADDRESS UINT64_C(0x7f1000000000)
#define OP_MUL_ADD 4459u /* OpCooperativeMatrixMulAddKHR */

/* ---- devices ---- */

#define HALVES_TO_F32 PTX2SPV_MATRIX_F16, PTX2SPV_MATRIX_F32
#define BF16_TO_F32 PTX2SPV_MATRIX_BF16, PTX2SPV_MATRIX_F32
#define HALVES PTX2SPV_MATRIX_F16, PTX2SPV_MATRIX_F16
#define SIGNED PTX2SPV_MATRIX_S8, PTX2SPV_MATRIX_S32
#define UNSIGNED PTX2SPV_MATRIX_U8, PTX2SPV_MATRIX_U32

static const struct device {
    const char *name;
    struct ptx2spv_matrix table[PTX2SPV_MATRICES_MAX];
} devices[] = {
    {"NVIDIA 580 on an H200",
     {{16, 8, 16, HALVES_TO_F32, {8, 4, 4}, {{"234c", "a01b"}, {"a01b", "234"}, {"234b", "a01"}}},
      {16, 8, 16, HALVES, {8, 4, 4}, {{"234c", "a01b"}, {"a01b", "234"}, {"234b", "a01"}}},
      {16, 8, 8, HALVES_TO_F32, {4, 2, 4}, {{"234b", "a01"}, {"a01", "234"}, {"234b", "a01"}}},
      {16, 16, 16, BF16_TO_F32, {8, 8, 8}, {{"234c", "a01b"}, {"a01b", "234c"}, {"234c", "a01b"}}},
      {16, 16, 16, HALVES_TO_F32, {8, 8, 8}, {{"234c", "a01b"}, {"a01b", "234c"}, {"234c", "a01b"}}},
      {16, 8, 32, SIGNED, {16, 8, 4}, {{"234d", "ab01c"}, {"ab01c", "234"}, {"234b", "a01"}}},
      {16, 8, 32, UNSIGNED, {16, 8, 4}, {{"234d", "ab01c"}, {"ab01c", "234"}, {"234b", "a01"}}}}},
    {"RDNA 3: two lanes hold each element of A and B",
     {{16, 16, 16, HALVES_TO_F32, {16, 16, 8}, {{"0123", "abcd"}, {"abcd", "0123"}, {"4abc", "0123"}}},
      {16, 16, 16, HALVES, {16, 16, 8}, {{"0123", "abcd"}, {"abcd", "0123"}, {"4abc", "0123"}}},
      {16, 16, 16, BF16_TO_F32, {16, 16, 8}, {{"0123", "abcd"}, {"abcd", "0123"}, {"4abc", "0123"}}},
      {16, 16, 16, SIGNED, {16, 16, 8}, {{"0123", "abcd"}, {"abcd", "0123"}, {"4abc", "0123"}}},
      {16, 16, 16, UNSIGNED, {16, 16, 8}, {{"0123", "abcd"}, {"abcd", "0123"}, {"4abc", "0123"}}}}},
    {"RDNA 4",
     {{16, 16, 16, HALVES_TO_F32, {8, 8, 8}, {{"0123", "abc4"}, {"abc4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 16, HALVES, {8, 8, 8}, {{"0123", "abc4"}, {"abc4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 16, BF16_TO_F32, {8, 8, 8}, {{"0123", "abc4"}, {"abc4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 16, SIGNED, {8, 8, 8}, {{"0123", "abc4"}, {"abc4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 16, UNSIGNED, {8, 8, 8}, {{"0123", "abc4"}, {"abc4", "0123"}, {"abc4", "0123"}}}}},
    {"smaller units: lanes in another order, one shuffle for each word",
     {{8, 8, 8, HALVES_TO_F32, {2, 2, 2}, {{"340", "a21"}, {"a12", "034"}, {"432", "a10"}}},
      {8, 8, 8, HALVES, {2, 2, 2}, {{"340", "a21"}, {"a12", "034"}, {"432", "a10"}}},
      {8, 8, 8, BF16_TO_F32, {2, 2, 2}, {{"340", "a21"}, {"a12", "034"}, {"432", "a10"}}},
      {8, 8, 16, SIGNED, {4, 4, 2}, {{"342", "ba01"}, {"1ab0", "423"}, {"1a4", "302"}}},
      {8, 8, 16, UNSIGNED, {4, 4, 2}, {{"342", "ba01"}, {"1ab0", "423"}, {"1a4", "302"}}}}},
    {"units that are longer along k, whose upper part is in other lanes",
     {{16, 16, 32, HALVES_TO_F32, {16, 16, 8}, {{"0123", "abcd4"}, {"abcd4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 32, HALVES, {16, 16, 8}, {{"0123", "abcd4"}, {"abcd4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 32, BF16_TO_F32, {16, 16, 8}, {{"0123", "abcd4"}, {"abcd4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 64, SIGNED, {32, 32, 8}, {{"0123", "abcde4"}, {"abcde4", "0123"}, {"abc4", "0123"}}},
      {16, 16, 64, UNSIGNED, {32, 32, 8}, {{"0123", "abcde4"}, {"abcde4", "0123"}, {"abc4", "0123"}}}}},
};
#define N_DEVICES (sizeof devices / sizeof *devices)

static enum element element_of(unsigned unit_element)
{
    static const enum element elements[] = {
        [PTX2SPV_MATRIX_F16] = F16, [PTX2SPV_MATRIX_BF16] = BF16, [PTX2SPV_MATRIX_F32] = F32, [PTX2SPV_MATRIX_S8] = S8,
        [PTX2SPV_MATRIX_U8] = U8,   [PTX2SPV_MATRIX_S32] = S32,   [PTX2SPV_MATRIX_U32] = S32};

    return elements[unit_element];
}

static uint64_t mask_of(unsigned bits)
{
    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t sum_of(enum element sum, uint64_t c, double products)
{
    return element_from_int(sum, (int)(element_value(sum, c) + products)) & mask_of(element_bits(sum));
}

static void multiply(const struct ptx2spv_matrix *matrix, const uint64_t *a, const uint64_t *b, uint64_t *c)
{
    const enum element factor = element_of(matrix->factor), sum = element_of(matrix->sum);

    for (unsigned row = 0; row < matrix->m; row++)
        for (unsigned column = 0; column < matrix->n; column++) {
            double products = 0;

            for (unsigned k = 0; k < matrix->k; k++)
                products += element_value(factor, a[row * matrix->k + k]) * element_value(factor, b[k * matrix->n + column]);
            c[row * matrix->n + column] = sum_of(sum, c[row * matrix->n + column], products);
        }
}

static struct ptx2spv_target target_of(const struct device *device)
{
    struct ptx2spv_target target = {
        .dialect = PTX2SPV_VULKAN,
        .warp_form = PTX2SPV_WARP_NATIVE,
        .subgroup_size = LANES,
        .push_constant_bytes = 128,
        .shared_bytes = 32768,
        .max_block_threads = 1024,
        .float16 = 1,
        .int64 = 1,
        .int16 = 1,
        .int8 = 1,
        .storage8 = 1,
        .storage16 = 1,
        .memory_model_device_scope = 1,
        .maximal_reconvergence = 1,
    };

    memcpy(target.matrices, device->table, sizeof target.matrices);
    return target;
}

/* ---- running a kernel of one warp with one parameter, the address of memory ---- */

static void compile(const struct device *device, const char *text, const struct ptx2spv_options *options, struct ptx2spv_kernel *out)
{
    const struct ptx2spv_target target = target_of(device);
    struct ptx2spv_module *module;

    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    if (ptx2spv_kernel_compile(module, 0, &target, options, out) != PTX2SPV_OK)
        fail_msg("%s: it does not compile:\n%s", device->name, text);
    ptx2spv_module_destroy(module);
}

static void interpret(const struct device *device, const struct ptx2spv_kernel *kernel, void *memory, size_t size_bytes)
{
    const uint32_t spec[PTX2SPV_SPEC_COUNT] = {LANES, LANES, 1, 1, (kernel->info.static_shared_bytes + 3) / 4, 0};
    const struct {
        struct ptx2spv_system_block system;
        uint64_t memory;
    } push = {.system.nctaid = {1, 1, 1}, .memory = MEMORY_ADDRESS};
    const struct spirv_range range = {MEMORY_ADDRESS, size_bytes, memory};
    const struct spirv_matrices matrices = {device->table, multiply};
    struct spirv_run run = {
        .threads = LANES,
        .subgroup_lanes = LANES,
        .spec = spec,
        .push = &push,
        .push_bytes = sizeof push,
        .ranges = &range,
        .n_ranges = 1,
        .barriers = SPIRV_BARRIERS_OF_GPU,
        .matrices = &matrices,
        .unwritten = UINT64_C(0x9e3779b97f4a7c15),
    };

    if (spirv_run(kernel->words, kernel->n_words, &run) != SPIRV_RETURNED)
        fail_msg("%s: %s", device->name, run.message);
}

static unsigned state;

static int small_integer(enum element element)
{
    const bool is_unsigned = element == U8 || element == U4;

    state = state * 1664525 + 1013904223;
    return (int)(state >> 16) % (is_unsigned ? 8 : 4) - (is_unsigned ? 0 : 3);
}

/* ---- mma ---- */

struct form {
    unsigned m, n, k;
    enum element factor, sum;
};

struct registers { /* of the threads */
    uint32_t a[THREADS][8], b[THREADS][8], c[THREADS][8], d[THREADS][8];
};

static unsigned count_of(const struct form *form, char operand)
{
    return (operand == 'a' ? form->m * form->k : operand == 'b' ? form->k * form->n : form->m * form->n) / LANES;
}

static unsigned registers_of(const struct form *form, char operand)
{
    return count_of(form, operand) * element_bits(operand < 'c' ? form->factor : form->sum) / 32;
}

static uint32_t (*operand_of(struct registers *r, char operand))[8]
{
    return operand == 'a' ? r->a : operand == 'b' ? r->b : operand == 'c' ? r->c : r->d;
}

static void put(uint32_t *words, unsigned i, unsigned bits, uint64_t value)
{
    const unsigned at = i * bits;

    words[at / 32] |= (uint32_t)(value & mask_of(bits)) << at % 32;
}

static uint64_t take(const uint32_t *words, unsigned i, unsigned bits)
{
    return words[i * bits / 32] >> i * bits % 32 & mask_of(bits);
}

static void print_vector(FILE *text, char operand, unsigned n)
{
    fputc('{', text);
    for (unsigned i = 0; i < n; i++)
        fprintf(text, "%s%c%u", i ? "," : "", operand, i);
    fputc('}', text);
}

static const char head[] =
    ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 memory)\n{.reg .b64 p, q;.reg .b32 lane;"
    ".reg .b32 a<8>;.reg .b32 b<8>;.reg .b32 c<8>;.reg .b32 d<8>;\nld.param.u64 p,[memory];mov.u32 lane,%tid.x;\n";

static char *mma_text(const struct form *form)
{
    char *out;
    size_t length;
    FILE *text = open_memstream(&out, &length);

    fprintf(text, "%smad.wide.u32 q,lane,32,p;\n", head);
    for (const char *operand = "abc"; *operand; operand++)
        for (unsigned i = 0; i < registers_of(form, *operand); i++)
            fprintf(text, "ld.global.b32 %c%u,[q+%zu];\n", *operand, i, (*operand - 'a') * sizeof(uint32_t[THREADS][8]) + 4 * i);
    fprintf(text, "mma.sync.aligned.m%un%uk%u.row.col.%s.%s.%s.%s ", form->m, form->n, form->k, element_name(form->sum),
            element_name(form->factor), element_name(form->factor), element_name(form->sum));
    for (const char *operand = "dabc"; *operand; operand++) {
        print_vector(text, *operand, registers_of(form, *operand));
        fputs(operand[1] ? "," : ";\n", text);
    }
    for (unsigned i = 0; i < registers_of(form, 'd'); i++)
        fprintf(text, "st.global.b32 [q+%zu],d%u;\n", offsetof(struct registers, d) + 4 * i, i);
    fputs("ret;}\n", text);
    fclose(text);
    return out;
}

typedef int matrices[3][SIDE_MAX][SIDE_MAX];

/* Random elements for a warp, in its registers and as matrices. */
static void fill_warp(const struct form *form, unsigned warp, struct registers *r, matrices values)
{
    for (const char *operand = "abc"; *operand; operand++) {
        const enum element element = *operand < 'c' ? form->factor : form->sum;

        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned i = 0; i < count_of(form, *operand); i++) {
                const struct matrix_place place = matrix_place(form->m, element_bits(form->factor), *operand, lane, i);
                const int value = small_integer(element);

                values[*operand - 'a'][place.row][place.column] = value;
                put(operand_of(r, *operand)[warp * LANES + lane], i, element_bits(element), element_from_int(element, value));
            }
    }
}

static void check_warp(const char *device, const struct form *form, unsigned warp, const struct registers *r, matrices values)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < count_of(form, 'd'); i++) {
            const struct matrix_place place = matrix_place(form->m, element_bits(form->factor), 'd', lane, i);
            const double found = element_value(form->sum, take(r->d[warp * LANES + lane], i, element_bits(form->sum)));
            int want = values[2][place.row][place.column];

            for (unsigned k = 0; k < form->k; k++)
                want += values[0][place.row][k] * values[1][k][place.column];
            if (found != want)
                fail_msg("%s: m%un%uk%u %s %s, warp %u, lane %u, element %u: %g instead of %d", device, form->m, form->n, form->k,
                         element_name(form->sum), element_name(form->factor), warp, lane, i, found, want);
        }
}

static void run_mma(const struct device *device, const struct form *form)
{
    static matrices values;
    struct ptx2spv_kernel kernel;
    struct registers r;
    char *text = mma_text(form);

    memset(&r, 0, sizeof r);
    fill_warp(form, 0, &r, values);
    compile(device, text, NULL, &kernel);
    free(text);
    assert_true(kernel.info.whole_warps);
    assert_true(count_spirv(kernel.words, kernel.n_words, OP_MUL_ADD) > 0);
    interpret(device, &kernel, &r, sizeof r);
    ptx2spv_kernel_finish(&kernel);
    check_warp(device->name, form, 0, &r, values);
}

static void test_mma(void **unused)
{
    static const struct form forms[] = {{16, 8, 16, F16, F32},  {16, 8, 16, F16, F16}, {16, 8, 8, F16, F32}, {16, 8, 8, F16, F16},
                                        {16, 8, 16, BF16, F32}, {16, 8, 8, BF16, F32}, {8, 8, 16, S8, S32},  {16, 8, 16, S8, S32},
                                        {16, 8, 32, S8, S32},   {16, 8, 16, U8, S32},  {16, 8, 32, U8, S32}};

    (void)unused;
    for (unsigned d = 0; d < N_DEVICES; d++)
        for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
            run_mma(&devices[d], &forms[i]);
}

/* ---- by code ---- */

static const struct machine {
    const char *name;
    enum ptx2spv_warp_form warp_form;
    enum ptx2spv_sync_form sync_form;
} machines[] = {{"native", PTX2SPV_WARP_NATIVE, PTX2SPV_SYNC_CHEAPEST},
                {"collective", PTX2SPV_WARP_COLLECTIVE, PTX2SPV_SYNC_CHEAPEST},
                {"predicated", PTX2SPV_WARP_COLLECTIVE, PTX2SPV_SYNC_PREDICATED},
                {"resumed", PTX2SPV_WARP_COLLECTIVE, PTX2SPV_SYNC_RESUMED}};

static void compile_by_code(const struct machine *machine, uint32_t lanes, const char *text, struct ptx2spv_kernel *out)
{
    static const struct device none = {"no units", {{0}}};
    struct ptx2spv_target target = target_of(&none);
    struct ptx2spv_module *module;

    target.warp_form = machine->warp_form;
    target.sync_form = machine->sync_form;
    target.subgroup_size = lanes;
    assert_int_equal(ptx2spv_module_create(text, strlen(text), NULL, &module), PTX2SPV_OK);
    assert_int_equal(ptx2spv_kernel_compile(module, 0, &target, NULL, out), PTX2SPV_OK);
    ptx2spv_module_destroy(module);
}

static void run_by_code(const struct machine *machine, uint32_t lanes, const struct form *form, uint32_t schedule)
{
    static matrices values[WARPS];
    struct ptx2spv_kernel kernel;
    struct registers r;
    char *text = mma_text(form);
    const struct {
        struct ptx2spv_system_block system;
        uint64_t memory;
    } push = {.system.nctaid = {1, 1, 1}, .memory = MEMORY_ADDRESS};
    const struct spirv_range range = {MEMORY_ADDRESS, sizeof r, &r};
    struct spirv_run run = {.threads = THREADS,
                            .subgroup_lanes = lanes,
                            .push = &push,
                            .push_bytes = sizeof push,
                            .ranges = &range,
                            .n_ranges = 1,
                            .barriers = machine->warp_form == PTX2SPV_WARP_NATIVE ? SPIRV_BARRIERS_OF_GPU : SPIRV_BARRIERS_OF_ALL,
                            .schedule = schedule,
                            .unwritten = UINT64_C(0x9e3779b97f4a7c15)};

    memset(&r, 0, sizeof r);
    for (unsigned warp = 0; warp < WARPS; warp++)
        fill_warp(form, warp, &r, values[warp]);
    compile_by_code(machine, lanes, text, &kernel);
    free(text);
    run.spec = (const uint32_t[PTX2SPV_SPEC_COUNT]){THREADS, THREADS, 1, 1, (kernel.info.static_shared_bytes + 3) / 4, 0};
    if (spirv_run(kernel.words, kernel.n_words, &run) != SPIRV_RETURNED)
        fail_msg("%s, subgroups of %u: %s", machine->name, lanes, run.message);
    ptx2spv_kernel_finish(&kernel);
    for (unsigned warp = 0; warp < WARPS; warp++)
        check_warp(machine->name, form, warp, &r, values[warp]);
}

static void test_by_code(void **unused)
{
    static const struct form forms[] = {
        {8, 8, 16, S8, S32}, {16, 8, 16, U8, S32}, {16, 8, 32, S8, S32}, {8, 8, 32, U4, S32}, {16, 8, 64, S4, S32}};

    (void)unused;
    for (unsigned m = 0; m < sizeof machines / sizeof *machines; m++)
        for (uint32_t lanes = 4; lanes <= 128; lanes *= 2)
            for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
                if (machines[m].warp_form != PTX2SPV_WARP_NATIVE || lanes >= LANES)
                    run_by_code(&machines[m], lanes, &forms[i], 7 * i + lanes);
}

/* ---- wmma: the fragments are loaded from memory and stored there ---- */

struct memory {
    uint8_t a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX * 4], d[ELEMENTS_MAX * 4];
};

static unsigned wmma_registers(const struct form *form, char operand)
{
    return operand < 'c' && form->factor == F16 ? 8 : registers_of(form, operand);
}

static char *wmma_text(const struct form *form)
{
    static const size_t offsets[] = {offsetof(struct memory, a), offsetof(struct memory, b), offsetof(struct memory, c)};
    const char *sum = element_name(form->sum), *factor = element_name(form->factor);
    char *out, shape[32];
    size_t length;
    FILE *text = open_memstream(&out, &length);

    snprintf(shape, sizeof shape, "m%un%uk%u", form->m, form->n, form->k);
    fputs(head, text);
    for (const char *operand = "abc"; *operand; operand++) {
        fprintf(text, "add.u64 q,p,%zu;wmma.load.%c.sync.aligned.row.%s.global.%s ", offsets[*operand - 'a'], *operand, shape,
                *operand < 'c' ? factor : sum);
        print_vector(text, *operand, wmma_registers(form, *operand));
        fputs(",[q];\n", text);
    }
    fprintf(text, "wmma.mma.sync.aligned.row.row.%s.%s", shape, sum);
    if (form->factor != F16)
        fprintf(text, ".%s.%s", factor, factor);
    fprintf(text, ".%s ", sum);
    for (const char *operand = "dabc"; *operand; operand++) {
        print_vector(text, *operand, wmma_registers(form, *operand));
        fputs(operand[1] ? "," : ";\n", text);
    }
    fprintf(text, "add.u64 q,p,%zu;wmma.store.d.sync.aligned.row.%s.global.%s [q],", offsetof(struct memory, d), shape, sum);
    print_vector(text, 'd', wmma_registers(form, 'd'));
    fputs(";\nret;}\n", text);
    fclose(text);
    return out;
}

static void fill(uint8_t *out, enum element element, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const uint64_t bits = element_from_int(element, small_integer(element));

        memcpy(out + i * element_bits(element) / 8, &bits, element_bits(element) / 8);
    }
}

static int value_at(const uint8_t *matrix, enum element element, unsigned i)
{
    uint64_t bits = 0;

    memcpy(&bits, matrix + i * element_bits(element) / 8, element_bits(element) / 8);
    return (int)element_value(element, bits);
}

static void run_wmma(const struct device *device, const struct form *form)
{
    static struct memory memory;
    struct ptx2spv_kernel kernel;
    char *text = wmma_text(form);

    memset(&memory, 0, sizeof memory);
    fill(memory.a, form->factor, form->m * form->k);
    fill(memory.b, form->factor, form->k * form->n);
    fill(memory.c, form->sum, form->m * form->n);
    compile(device, text, NULL, &kernel);
    free(text);
    assert_true(count_spirv(kernel.words, kernel.n_words, OP_MUL_ADD) > 0);
    interpret(device, &kernel, &memory, sizeof memory);
    ptx2spv_kernel_finish(&kernel);
    for (unsigned i = 0; i < form->m * form->n; i++) {
        int want = value_at(memory.c, form->sum, i);

        for (unsigned k = 0; k < form->k; k++)
            want +=
                value_at(memory.a, form->factor, i / form->n * form->k + k) * value_at(memory.b, form->factor, k * form->n + i % form->n);
        if (value_at(memory.d, form->sum, i) != want)
            fail_msg("%s: wmma m%un%uk%u %s, element %u: %d instead of %d", device->name, form->m, form->n, form->k,
                     element_name(form->factor), i, value_at(memory.d, form->sum, i), want);
    }
}

static void test_wmma(void **unused)
{
    static const unsigned shapes[][2] = {{16, 16}, {32, 8}, {8, 32}};
    static const enum element types[][2] = {{F16, F32}, {F16, F16}, {BF16, F32}, {S8, S32}, {U8, S32}};

    (void)unused;
    for (unsigned d = 0; d < N_DEVICES; d++)
        for (unsigned i = 0; i < 3; i++)
            for (unsigned t = 0; t < 5; t++) {
                const struct form form = {shapes[i][0], shapes[i][1], 16, types[t][0], types[t][1]};

                run_wmma(&devices[d], &form);
            }
}

/* ---- what the units are not used for ---- */

static void test_other_forms(void **unused)
{
    static const struct form form = {16, 8, 16, F16, F32};
    const struct ptx2spv_options any = {.any_grid = true}, cooperative = {.cooperative = true};
    const struct ptx2spv_options *const options[] = {&any, &cooperative};
    char *text = mma_text(&form);

    (void)unused;
    for (unsigned i = 0; i < 2; i++) { /* blocks of any size, and threads that are suspended */
        struct ptx2spv_kernel kernel;

        compile(&devices[0], text, options[i], &kernel);
        assert_false(kernel.info.whole_warps);
        assert_int_equal(count_spirv(kernel.words, kernel.n_words, OP_MUL_ADD), 0);
        ptx2spv_kernel_finish(&kernel);
    }
    free(text);
}

/* ---- the probe ---- */

static unsigned coordinate(const char *bits, unsigned lane, unsigned component)
{
    unsigned value = 0;

    for (unsigned i = 0; bits[i]; i++)
        value |= (bits[i] < 'a' ? lane >> (bits[i] - '0') & 1 : component >> (bits[i] - 'a') & 1) << i;
    return value;
}

static void check_probe(const struct device *device, const struct ptx2spv_matrix_probe *probe, unsigned index, unsigned use)
{
    const struct ptx2spv_matrix *matrix = &device->table[index];
    const unsigned columns = use == PTX2SPV_MATRIX_A ? matrix->k : matrix->n;
    const unsigned bits = ptx2spv_matrix_element_bits(use == PTX2SPV_MATRIX_C ? matrix->sum : matrix->factor);

    for (unsigned input = 0; input < 2; input++)
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned c = 0; c < matrix->components[use]; c++) {
                const unsigned e =
                    coordinate(matrix->layouts[use].row, lane, c) * columns + coordinate(matrix->layouts[use].column, lane, c);
                const uint32_t word = probe->uses[index][use].words[input][c * bits / 32][lane];
                uint32_t want = 0;

                memcpy(&want, &probe->uses[index][use].inputs[input][e * bits / 8], bits / 8);
                if ((word >> c * bits % 32 & mask_of(bits)) != want)
                    fail_msg("%s: matrix %u, use %u, lane %u, component %u", device->name, index, use, lane, c);
            }
}

static void test_probe(void **unused)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe(.param .u64 memory)\n{ret;}\n";
    const struct ptx2spv_options options = {.probe_matrices = true};
    struct ptx2spv_matrix_probe *probe = calloc(1, sizeof *probe);

    (void)unused;
    assert_non_null(probe);
    for (unsigned d = 0; d < N_DEVICES; d++) {
        struct device device = devices[d];
        struct ptx2spv_kernel kernel;

        for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX; i++)
            memset(device.table[i].components, 0, sizeof device.table[i].components);
        compile(&device, text, &options, &kernel);
        interpret(&devices[d], &kernel, probe, sizeof *probe);
        ptx2spv_kernel_finish(&kernel);
        for (unsigned i = 0; device.table[i].m; i++)
            for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++) {
                assert_int_equal(probe->uses[i][use].components[0], devices[d].table[i].components[use]);
                for (unsigned b = 0; b < PTX2SPV_MATRIX_BYTES; b++)
                    probe->uses[i][use].inputs[b & 1][b] = (uint8_t)small_integer(U8);
            }
        compile(&devices[d], text, &options, &kernel);
        interpret(&devices[d], &kernel, probe, sizeof *probe);
        ptx2spv_kernel_finish(&kernel);
        for (unsigned i = 0; device.table[i].m; i++)
            for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++)
                check_probe(&devices[d], probe, i, use);
    }
    free(probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma),         cmocka_unit_test(test_by_code), cmocka_unit_test(test_wmma),
        cmocka_unit_test(test_other_forms), cmocka_unit_test(test_probe),
    };

    return cmocka_run_group_tests_name("matrix units", tests, NULL, NULL);
}
