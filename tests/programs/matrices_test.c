/* SPDX-License-Identifier: Apache-2.0 */
/* mma and mma.sp in every shape and type, against sums of products on the host. Which lane holds which element is computed from the formulas
 * of PTX ISA, "Matrix Fragments for mma...". Integers and f64 must have the expected bits; other floats must be exact if every sum is, and
 * otherwise lie where the ISA's freedom leaves them (matrix_values.c).
 *
 * Each form is a kernel of two warps that executes the instruction once for each kind of contents, in a loop. The first argument selects
 * forms by a part of their names. */
#include "../api/api_test.h"
#include "matrix_places.h"
#include "matrix_values.h"

#include <fenv.h>

enum { WARPS = 2, LANES = 32, THREADS = WARPS * LANES, REGISTERS_MAX = 8, K_MAX = 256, M_MAX = 16 };

struct form {
    unsigned m, n, k;
    enum element a, b, c, d;
    const char *layouts, *suffix; /* ".row.col"; ".satfinite", ".xor.popc" or "" */
    const char *sparse;           /* "", ".sp" or ".sp::ordered_metadata" */
    unsigned selector;
};

/* ---- fragments ---- */

struct place {
    unsigned matrix, row, column;
};

static bool is_quad_pairs(const struct form *form)
{
    return form->k == 4 && form->a == F16;
}

/* mma.m8n8k4 of f16: lanes 4 q to 4 q + 3 and the 4 that are 16 further have matrix q. */
static struct place place_in_quad_pairs(const struct form *form, char operand, unsigned lane, unsigned i)
{
    const unsigned half = lane >= 16 ? 4 : 0;
    const bool is_row = form->layouts[operand == 'a' ? 1 : 5] == 'r';
    struct place place = {lane / 4 % 4, 0, 0};

    if (operand == 'a') {
        place.row = is_row ? lane % 4 + half : i % 4 + half;
        place.column = is_row ? i : lane % 4;
    } else if (operand == 'b') {
        place.row = is_row ? lane % 4 : i;
        place.column = is_row ? i + half : lane % 4 + half;
    } else if ((operand == 'c' ? form->c : form->d) == F16) {
        place.row = lane % 4 + half;
        place.column = i;
    } else {
        place.row = (lane & 1) + (i & 2) + half;
        place.column = (i & 4) + (lane & 2) + (i & 1);
    }
    return place;
}

static struct place place_of(const struct form *form, char operand, unsigned lane, unsigned i)
{
    struct matrix_place place;

    if (is_quad_pairs(form))
        return place_in_quad_pairs(form, operand, lane, i);
    place = matrix_place(form->m, element_bits(form->a), operand, lane, i);
    return (struct place){0, place.row, place.column};
}

static enum element type_of(const struct form *form, char operand)
{
    return operand == 'a' ? form->a : operand == 'b' ? form->b : operand == 'c' ? form->c : form->d;
}

static unsigned count_of(const struct form *form, char operand)
{
    const unsigned matrices = is_quad_pairs(form) ? 4 : 1;
    const unsigned n = operand == 'a'   ? form->m * form->k / (form->sparse[0] ? 2 : 1)
                       : operand == 'b' ? form->k * form->n
                                        : form->m * form->n;

    return n * matrices / LANES;
}

static unsigned bytes_of(const struct form *form, char operand)
{
    return count_of(form, operand) * element_bits(type_of(form, operand)) / 8;
}

/* ---- the kernel ---- */

static bool is_wide(const struct form *form)
{
    return form->a == F64;
}

static unsigned registers_of(const struct form *form, char operand)
{
    return bytes_of(form, operand) / (is_wide(form) ? 8 : 4);
}

static void name_form(const struct form *form, char *out, size_t size)
{
    snprintf(out, size, "mma%s.sync.aligned.m%un%uk%u%s%s.%s.%s.%s.%s%s", form->sparse, form->m, form->n, form->k, form->layouts,
             form->suffix[0] != '.' || strstr(form->suffix, "popc") ? "" : form->suffix, element_name(form->d), element_name(form->a),
             element_name(form->b), element_name(form->c), strstr(form->suffix, "popc") ? form->suffix : "");
}

static void print_vector(FILE *text, const struct form *form, char operand)
{
    fputc('{', text);
    for (unsigned i = 0; i < registers_of(form, operand); i++)
        fprintf(text, "%s%c%u", i ? "," : "", operand, i);
    fputc('}', text);
}

/* Thread t reads and writes consecutive registers; its part of the next round is behind those of all threads. */
static void print_accesses(FILE *text, const struct form *form, char operand, const char *access)
{
    const unsigned n = registers_of(form, operand), bytes = bytes_of(form, operand);

    fprintf(text, "mad.wide.u32 q1, t, %u, %cp;\n", bytes, operand);
    for (unsigned i = 0; i < n; i++)
        if (operand == 'd')
            fprintf(text, "st.%s [q1+%u], d%u;\n", access, i * bytes / n, i);
        else
            fprintf(text, "ld.%s %c%u, [q1+%u];\n", access, operand, i, i * bytes / n);
}

static void print_kernel(FILE *text, const struct form *form)
{
    const char *access = is_wide(form) ? "global.f64" : "global.b32", *type = is_wide(form) ? "f64" : "b32";
    char name[128];

    name_form(form, name, sizeof name);
    fprintf(text,
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pa,.param .u64 pb,.param .u64 pc,.param .u64 pd,"
            ".param .u64 pe)\n{.reg .b64 ap,bp,cp,dp,ep,q1;.reg .b32 t,e0,round;.reg .pred p;.reg .%1$s a<8>;.reg .%1$s b<8>;.reg .%1$s "
            "c<8>;.reg .%1$s d<8>;\n"
            "ld.param.u64 ap,[pa];ld.param.u64 bp,[pb];ld.param.u64 cp,[pc];ld.param.u64 dp,[pd];ld.param.u64 ep,[pe];\nmov.u32 t,%%tid.x;"
            "mov.u32 round,0;\nagain:\n",
            type);
    for (const char *operand = "abc"; *operand; operand++)
        print_accesses(text, form, *operand, access);
    fprintf(text, "mad.wide.u32 q1,t,4,ep;ld.global.b32 e0,[q1];\n%s ", name);
    for (const char *operand = "dabc"; *operand; operand++) {
        print_vector(text, form, *operand);
        fputs(operand[1] ? ", " : "", text);
    }
    if (form->sparse[0])
        fprintf(text, ", e0, %u", form->selector);
    fputs(";\n", text);
    print_accesses(text, form, 'd', access);
    fprintf(text, "add.u32 t,t,%u;add.u32 round,round,1;setp.lt.u32 p,round,%u;@p bra again;\nret;}\n", THREADS, CONTENTS_COUNT);
}

/* ---- data ---- */

struct block { /* registers of all threads, of all rounds */
    uint64_t a[CONTENTS_COUNT * THREADS * REGISTERS_MAX], b[CONTENTS_COUNT * THREADS * REGISTERS_MAX],
        c[CONTENTS_COUNT * THREADS * REGISTERS_MAX], d[CONTENTS_COUNT * THREADS * REGISTERS_MAX];
    uint32_t e[CONTENTS_COUNT * THREADS];
};

static void *operand_of(struct block *block, char operand)
{
    return operand == 'a' ? block->a : operand == 'b' ? block->b : operand == 'c' ? block->c : block->d;
}

/* Element i of a thread. */
static uint64_t get(struct block *block, const struct form *form, char operand, unsigned thread, unsigned i)
{
    const unsigned bits = element_bits(type_of(form, operand));
    const uint8_t *bytes = (const uint8_t *)operand_of(block, operand) + (size_t)thread * bytes_of(form, operand);
    uint64_t value = 0;

    memcpy(&value, bytes + i * bits / 8, bits < 8 ? 1 : bits / 8);
    return bits < 8 ? value >> i * bits % 8 & ((1u << bits) - 1) : value;
}

static void set(struct block *block, const struct form *form, char operand, unsigned thread, unsigned i, uint64_t value)
{
    const unsigned bits = element_bits(type_of(form, operand));
    uint8_t *bytes = (uint8_t *)operand_of(block, operand) + (size_t)thread * bytes_of(form, operand) + i * bits / 8;

    if (bits >= 8)
        memcpy(bytes, &value, bits / 8);
    else
        *bytes = (uint8_t)((*bytes & ~(((1u << bits) - 1) << i * bits % 8)) | value << i * bits % 8);
}

static void fill(struct block *block, const struct form *form)
{
    memset(block, 0, sizeof *block);
    for (unsigned t = 0; t < CONTENTS_COUNT * THREADS; t++) {
        for (const char *operand = "abc"; *operand; operand++)
            for (unsigned i = 0; i < count_of(form, *operand); i++)
                set(block, form, *operand, t, i, element_random(type_of(form, *operand), (enum contents)(t / THREADS)));
        block->e[t] = (uint32_t)random_bits();
    }
}

/* ---- sparse A ---- */

/* Of four units, two are given: elements, or pairs of 4 bits each, or halves of 32 bits. */
static unsigned unit_elements(const struct form *form)
{
    return element_bits(form->a) == 4 ? 2 : 1;
}

/* The lane of a group of four and the first bit of its metadata that describe a chunk of row `row` (PTX ISA, the figures "Sparse MMA ...
 * metadata layout"). */
static void find_metadata(const struct form *form, unsigned row, unsigned chunk, unsigned *lane, unsigned *bit)
{
    const unsigned chunks = form->k / (form->a == TF32 ? 2 : 4 * unit_elements(form));

    if (element_bits(form->a) >= 16) { /* 4 chunks of two rows in each lane */
        *lane = form->selector * (chunks / 4) + chunk / 4;
        *bit = row / 8 * 16 + chunk % 4 * 4;
    } else { /* 8 chunks of one row in each lane */
        *lane = form->selector * (chunks / 4) + chunk / 8 * 2 + row / 8;
        *bit = chunk % 8 * 4;
    }
    *lane += row % 8 * 4;
}

static unsigned random_places(const struct form *form)
{
    static const unsigned pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};

    return form->a == TF32 ? (random_bits() & 1 ? 0xe : 0x4) : pairs[random_bits() % 6];
}

static void fill_metadata(struct block *block, const struct form *form)
{
    const unsigned chunks = form->k / (form->a == TF32 ? 2 : 4 * unit_elements(form));

    for (unsigned warp = 0; form->sparse[0] && warp < CONTENTS_COUNT * WARPS; warp++)
        for (unsigned row = 0; row < form->m; row++)
            for (unsigned chunk = 0; chunk < chunks; chunk++) {
                unsigned lane, bit;
                uint32_t *word;

                find_metadata(form, row, chunk, &lane, &bit);
                word = &block->e[warp * LANES + lane];
                *word = (*word & ~(15u << bit)) | random_places(form) << bit;
            }
}

/* The column of the given element number `given` of a row. */
static unsigned column_of(const struct block *block, const struct form *form, unsigned warp, unsigned row, unsigned given)
{
    const unsigned unit = unit_elements(form), per_chunk = form->a == TF32 ? 1 : 2 * unit, chunk = given / per_chunk;
    unsigned lane, bit, places;

    find_metadata(form, row, chunk, &lane, &bit);
    places = block->e[warp * LANES + lane] >> bit & 15;
    if (form->a == TF32)
        return 2 * chunk + (places == 0xe);
    return 4 * unit * chunk + unit * (given % per_chunk / unit ? places >> 2 : places & 3) + given % unit;
}

/* ---- expected results ---- */

static bool given[4][M_MAX][K_MAX]; /* the elements of A; the others add nothing, even where B has a NaN */
static uint64_t a_matrix[4][M_MAX][K_MAX], b_matrix[4][K_MAX][8], c_matrix[4][M_MAX][8];

static void gather(struct block *block, const struct form *form, unsigned warp)
{
    memset(a_matrix, 0, sizeof a_matrix);
    memset(given, 0, sizeof given);
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned thread = warp * LANES + lane;
        struct place place;

        for (unsigned i = 0; i < count_of(form, 'a'); i++) {
            place = place_of(form, 'a', lane, i);
            if (form->sparse[0])
                place.column = column_of(block, form, warp, place.row, place.column);
            a_matrix[place.matrix][place.row][place.column] = get(block, form, 'a', thread, i);
            given[place.matrix][place.row][place.column] = true;
        }
        for (unsigned i = 0; i < count_of(form, 'b'); i++) {
            place = place_of(form, 'b', lane, i);
            b_matrix[place.matrix][place.row][place.column] = get(block, form, 'b', thread, i);
        }
        for (unsigned i = 0; i < count_of(form, 'c'); i++) {
            place = place_of(form, 'c', lane, i);
            c_matrix[place.matrix][place.row][place.column] = get(block, form, 'c', thread, i);
        }
    }
}

static void check_element(struct block *block, const struct form *form, unsigned thread, unsigned i)
{
    const struct place place = place_of(form, 'd', thread % LANES, i);
    const uint64_t found = get(block, form, 'd', thread, i);
    struct sum sum = {form->a, form->c, form->d, .saturates = !strcmp(form->suffix, ".satfinite"), .uses_and = strstr(form->suffix, "and")};
    char name[128];

    sum.contents = (enum contents)(thread / THREADS);
    sum.rounding = !strcmp(form->suffix, ".rz") ? FE_TOWARDZERO : !strcmp(form->suffix, ".rp") ? FE_UPWARD : FE_TONEAREST;
    sum_begin(&sum, c_matrix[place.matrix][place.row][place.column]);
    for (unsigned k = 0; k < form->k; k++)
        if (given[place.matrix][place.row][k])
            sum_add(&sum, form->a, a_matrix[place.matrix][place.row][k], form->b, b_matrix[place.matrix][k][place.column]);
    if (sum_accepts(&sum, found))
        return;
    name_form(form, name, sizeof name);
    fail_msg("%s, contents %u, thread %u, element %u (row %u, column %u): 0x%llx (%a) instead of %lld, %a", name, thread / THREADS,
             thread % THREADS, i, place.row, place.column, (unsigned long long)found, element_value(form->d, found), (long long)sum.integer,
             sum.exact);
}

static void check(struct block *block, const struct form *form)
{
    for (unsigned warp = 0; warp < CONTENTS_COUNT * WARPS; warp++) {
        gather(block, form, warp);
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned i = 0; i < count_of(form, 'd'); i++)
                check_element(block, form, warp * LANES + lane, i);
    }
}

/* ---- running ---- */

static const char *selection = "";

static void run(const struct form *form)
{
    static struct block block;
    CUdeviceptr memory[5], place = 0;
    void *params[] = {&memory[0], &memory[1], &memory[2], &memory[3], &memory[4]};
    CUmodule module;
    CUfunction kernel;
    CUresult status;
    char *ptx, name[128];
    size_t length;
    FILE *text;

    name_form(form, name, sizeof name);
    if (!strstr(name, selection))
        return;
    text = open_memstream(&ptx, &length);
    print_kernel(text, form);
    fclose(text);
    if (cuModuleLoadData(&module, ptx) != CUDA_SUCCESS)
        fail_msg("%s does not load", name);
    free(ptx);
    fill(&block, form);
    fill_metadata(&block, form);
    ok(cuModuleGetFunction(&kernel, module, "k"));
    ok(cuMemAlloc(&place, sizeof block));
    for (unsigned i = 0; i < 5; i++)
        memory[i] = place + i * sizeof block.a;
    ok(cuMemcpyHtoD(place, &block, sizeof block));
    status = cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
    if (status != CUDA_SUCCESS)
        fail_msg("%s does not start", name);
    ok(cuMemcpyDtoH(block.d, memory[3], sizeof block.d));
    ok(cuMemFree(place));
    ok(cuModuleUnload(module));
    check(&block, form);
}

/* ---- the forms ---- */

#define DENSE .layouts = ".row.col", .suffix = "", .sparse = ""

static void test_floats(void **state)
{
    static const struct form forms[] = {
        {16, 8, 16, F16, F16, F32, F32, DENSE},  {16, 8, 16, F16, F16, F16, F16, DENSE},   {16, 8, 8, F16, F16, F32, F32, DENSE},
        {16, 8, 8, F16, F16, F16, F16, DENSE},   {16, 8, 16, BF16, BF16, F32, F32, DENSE}, {16, 8, 8, BF16, BF16, F32, F32, DENSE},
        {16, 8, 8, TF32, TF32, F32, F32, DENSE}, {16, 8, 4, TF32, TF32, F32, F32, DENSE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        run(&forms[i]);
}

static void test_float8(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        const enum element accumulator = i & 1 ? F16 : F32;
        const struct form form = {16, 8, i & 2 ? 16 : 32, i & 4 ? E5M2 : E4M3, i & 8 ? E5M2 : E4M3, accumulator, accumulator, DENSE};

        run(&form);
    }
}

/* Four products of 8x8x4, with all layouts and accumulators. */
static void test_quad_pairs(void **state)
{
    static const char *const layouts[] = {".row.row", ".row.col", ".col.row", ".col.col"};

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        const struct form form = {8, 8, 4, F16, F16, i / 4 == 2 ? F32 : F16, i / 4 ? F32 : F16, layouts[i % 4], "", "", 0};

        run(&form);
    }
}

static void test_doubles(void **state)
{
    static const struct form forms[] = {
        {8, 8, 4, F64, F64, F64, F64, DENSE},
        {16, 8, 4, F64, F64, F64, F64, DENSE},
        {16, 8, 8, F64, F64, F64, F64, DENSE},
        {16, 8, 16, F64, F64, F64, F64, DENSE},
        {8, 8, 4, F64, F64, F64, F64, ".row.col", ".rz", "", 0},
        {16, 8, 8, F64, F64, F64, F64, ".row.col", ".rp", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        run(&forms[i]);
}

static void run_integers(unsigned m, unsigned k, enum element is_signed, enum element is_unsigned, const char *sparse, unsigned selector)
{
    for (unsigned i = 0; i < 4; i++) {
        struct form form = {m,  8,      k,       i & 1 ? is_unsigned : is_signed, i & 2 ? is_unsigned : is_signed, S32, S32, ".row.col",
                            "", sparse, selector};

        form.suffix = (i ^ i >> 1) & 1 ? "" : ".satfinite";
        run(&form);
    }
}

static void test_integers(void **state)
{
    (void)state;
    run_integers(8, 16, S8, U8, "", 0);
    run_integers(16, 16, S8, U8, "", 0);
    run_integers(16, 32, S8, U8, "", 0);
    run_integers(8, 32, S4, U4, "", 0);
    run_integers(16, 32, S4, U4, "", 0);
    run_integers(16, 64, S4, U4, "", 0);
}

static void test_bits(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        const unsigned k = i / 2 == 2 ? 256 : 128;
        const struct form form = {i / 2 ? 16 : 8, 8, k, B1, B1, S32, S32, ".row.col", i & 1 ? ".and.popc" : ".xor.popc", "", 0};

        run(&form);
    }
}

static void test_sparse(void **state)
{
    static const struct {
        unsigned k;
        enum element a, b, accumulator;
        unsigned selectors;
    } rows[] = {
        {8, TF32, TF32, F32, 4},  {16, TF32, TF32, F32, 2}, {16, F16, F16, F32, 4},   {16, F16, F16, F16, 4},
        {16, BF16, BF16, F32, 4}, {32, F16, F16, F32, 2},   {32, F16, F16, F16, 2},   {32, BF16, BF16, F32, 2},
        {64, E4M3, E4M3, F32, 1}, {64, E4M3, E5M2, F32, 1}, {64, E5M2, E4M3, F32, 1}, {64, E5M2, E5M2, F32, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct form form = {16, 8, rows[i].k, rows[i].a, rows[i].b, rows[i].accumulator, rows[i].accumulator, ".row.col", "", ".sp", 0};

        run(&form);
        form.sparse = ".sp::ordered_metadata";
        form.selector = rows[i].selectors - 1;
        run(&form);
    }
    run_integers(16, 32, S8, U8, ".sp", 0);
    run_integers(16, 32, S8, U8, ".sp::ordered_metadata", 1);
    run_integers(16, 64, S8, U8, ".sp::ordered_metadata", 0);
    run_integers(16, 64, S4, U4, ".sp", 1);
    run_integers(16, 128, S4, U4, ".sp::ordered_metadata", 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),   cmocka_unit_test(test_float8), cmocka_unit_test(test_quad_pairs), cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_integers), cmocka_unit_test(test_bits),   cmocka_unit_test(test_sparse),
    };

    selection = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests_name("matrices", tests, with_context, without_context);
}
