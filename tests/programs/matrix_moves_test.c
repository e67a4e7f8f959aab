/* SPDX-License-Identifier: Apache-2.0 */
/* ldmatrix, stmatrix and movmatrix, and wmma: its loads and stores in every shape, type and layout, with and without a stride, and its
 * products. Which lane holds which element of a fragment of wmma is not specified, so a product is judged by what is stored.
 *
 * The first argument selects kernels by a part of their main instruction. */
#include "../api/api_test.h"
#include "matrix_values.h"

#include <fenv.h>

enum { LANES = 32, WARPS = 2, THREADS = LANES * WARPS };

static const char *selection = "";

/* Runs a kernel with the parameters in, out. */
static void run(const char *name, const char *ptx, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    CUdeviceptr memory[2];
    void *params[] = {&memory[0], &memory[1]};
    CUmodule module;
    CUfunction kernel;
    CUresult status;

    if (cuModuleLoadData(&module, ptx) != CUDA_SUCCESS)
        fail_msg("%s does not load", name);
    ok(cuModuleGetFunction(&kernel, module, "k"));
    ok(cuMemAlloc(&memory[0], in_bytes));
    ok(cuMemAlloc(&memory[1], out_bytes));
    ok(cuMemcpyHtoD(memory[0], in, in_bytes));
    ok(cuMemcpyHtoD(memory[1], out, out_bytes));
    status = cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
    if (status != CUDA_SUCCESS)
        fail_msg("%s does not start", name);
    ok(cuMemcpyDtoH(out, memory[1], out_bytes));
    ok(cuMemFree(memory[0]));
    ok(cuMemFree(memory[1]));
    ok(cuModuleUnload(module));
}

static const char head[] =
    ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pin,.param .u64 pout)\n{.reg .b64 in,out,"
    "x,y;.reg .b32 t,u,base,zero;.reg .b32 r<8>;.shared .align 128 .b8 sh[8192];\nld.param.u64 in,[pin];"
    "ld.param.u64 out,[pout];mov.u32 t,%tid.x;mov.u32 base,sh;mov.u32 zero,0;\n";

/* ---- ldmatrix, stmatrix, movmatrix ---- */

/* Each warp has 32 rows of 16 bytes in shared memory; lane l of warp w gives the address of row (5 l + 3 w) % 32. */
enum { ROWS = 32, ROW_HALVES = 8 };
struct rows {
    uint16_t half[WARPS][ROWS][ROW_HALVES];
};

static unsigned row_of(unsigned warp, unsigned lane)
{
    return (5 * lane + 3 * warp) % ROWS;
}

/* The half of a matrix that lane `lane` holds in the lower or upper part of its register. */
static uint16_t *half_of(struct rows *rows, unsigned warp, unsigned lane, unsigned matrix, unsigned part, bool is_transposed)
{
    const unsigned row = is_transposed ? 2 * (lane % 4) + part : lane / 4, column = is_transposed ? lane / 4 : 2 * (lane % 4) + part;

    return &rows->half[warp][row_of(warp, 8 * matrix + row)][column];
}

/* Copies the rows to shared memory; u is the address that a lane gives, y a generic one. */
static void print_rows(FILE *text, bool from_memory)
{
    fputs(head, text);
    fprintf(text, "shl.b32 u,t,4;cvt.u64.u32 x,u;add.u64 x,x,in;add.u32 u,u,base;\n");
    fprintf(text, from_memory ? "ld.global.v4.b32 {r0,r1,r2,r3},[x];st.shared.v4.b32 [u],{r0,r1,r2,r3};\n"
                              : "st.shared.v4.b32 [u],{zero,zero,zero,zero};\n");
    fprintf(text, "bar.sync 0;\nshr.u32 r4,t,5;mul.lo.u32 r5,r4,3;and.b32 u,t,31;mad.lo.u32 u,u,5,r5;and.b32 u,u,31;shl.b32 r4,r4,5;"
                  "add.u32 u,u,r4;shl.b32 u,u,4;add.u32 u,u,base;cvt.u64.u32 y,u;cvta.shared.u64 y,y;\n");
}

static void print_vector(FILE *text, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fprintf(text, "%sr%u", i ? "," : "{", i);
    fputc('}', text);
}

/* The forms with two matrices have generic addresses. */
static void check_load(unsigned count, bool is_transposed)
{
    struct rows rows;
    uint32_t out[THREADS][4] = {{0}};
    char name[64], *ptx;
    size_t length;
    FILE *text;

    snprintf(name, sizeof name, "ldmatrix.sync.aligned.m8n8.x%u%s%s.b16", count, is_transposed ? ".trans" : "",
             count == 2 ? "" : ".shared");
    if (!strstr(name, selection))
        return;
    for (unsigned i = 0; i < sizeof rows / 2; i++)
        (&rows.half[0][0][0])[i] = (uint16_t)random_bits();
    text = open_memstream(&ptx, &length);
    print_rows(text, true);
    fprintf(text, "%s ", name);
    print_vector(text, count);
    fprintf(text, ",[%s];\nmad.wide.u32 x,t,16,out;\n", count == 2 ? "y" : "u");
    for (unsigned i = 0; i < count; i++)
        fprintf(text, "st.global.b32 [x+%u],r%u;\n", 4 * i, i);
    fputs("ret;}\n", text);
    fclose(text);
    run(name, ptx, &rows, sizeof rows, out, sizeof out);
    free(ptx);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < 2 * count; i++) {
            const uint16_t found = (uint16_t)(out[t][i / 2] >> i % 2 * 16);
            const uint16_t want = *half_of(&rows, t / LANES, t % LANES, i / 2, i % 2, is_transposed);

            if (found != want)
                fail_msg("%s, thread %u, half %u: 0x%x instead of 0x%x", name, t, i, found, want);
        }
}

static void test_ldmatrix(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++)
        check_load(1u << i / 2, i & 1);
}

static void check_store(unsigned count, bool is_transposed)
{
    uint32_t in[THREADS][4];
    struct rows out, want;
    char name[64], *ptx;
    size_t length;
    FILE *text;

    snprintf(name, sizeof name, "stmatrix.sync.aligned.m8n8.x%u%s%s.b16", count, is_transposed ? ".trans" : "",
             count == 2 ? "" : ".shared");
    if (!strstr(name, selection))
        return;
    memset(&want, 0, sizeof want);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < 4; i++)
            in[t][i] = (uint32_t)random_bits();
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < 2 * count; i++)
            *half_of(&want, t / LANES, t % LANES, i / 2, i % 2, is_transposed) = (uint16_t)(in[t][i / 2] >> i % 2 * 16);
    text = open_memstream(&ptx, &length);
    print_rows(text, false);
    fprintf(text, "mad.wide.u32 x,t,16,in;ld.global.v4.b32 {r0,r1,r2,r3},[x];\n%s [%s],", name, count == 2 ? "y" : "u");
    print_vector(text, count);
    fputs(";\nbar.sync 0;\nshl.b32 u,t,4;cvt.u64.u32 x,u;add.u64 x,x,out;add.u32 u,u,base;ld.shared.v4.b32 {r0,r1,r2,r3},[u];"
          "st.global.v4.b32 [x],{r0,r1,r2,r3};\nret;}\n",
          text);
    fclose(text);
    memset(&out, 0xee, sizeof out);
    run(name, ptx, in, sizeof in, &out, sizeof out);
    free(ptx);
    for (unsigned i = 0; i < sizeof out / 2; i++)
        if ((&out.half[0][0][0])[i] != (&want.half[0][0][0])[i])
            fail_msg("%s, half %u of memory: 0x%x instead of 0x%x", name, i, (&out.half[0][0][0])[i], (&want.half[0][0][0])[i]);
}

static void test_stmatrix(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++)
        check_store(1u << i / 2, i & 1);
}

/* Three times, so that the buffers through which the lanes pass halves are used again. */
static void test_movmatrix(void **state)
{
    const char *name = "movmatrix.sync.aligned.m8n8.trans.b16";
    uint32_t in[THREADS], out[THREADS] = {0};
    char *ptx;
    size_t length;
    FILE *text = open_memstream(&ptx, &length);

    (void)state;
    for (unsigned t = 0; t < THREADS; t++)
        in[t] = (uint32_t)random_bits();
    fprintf(text,
            "%smad.wide.u32 x,t,4,in;mad.wide.u32 y,t,4,out;ld.global.b32 r0,[x];\n%s r1,r0;\n%s r2,r1;\n%s r3,r2;\n"
            "st.global.b32 [y],r3;\nret;}\n",
            head, name, name, name);
    fclose(text);
    if (strstr(name, selection))
        run(name, ptx, in, sizeof in, out, sizeof out);
    for (unsigned t = 0; t < THREADS && strstr(name, selection); t++)
        for (unsigned part = 0; part < 2; part++) {
            const unsigned row = t % LANES / 4, column = 2 * (t % 4) + part, from = t / LANES * LANES + 4 * column + row / 2;
            const uint16_t found = (uint16_t)(out[t] >> 16 * part), want = (uint16_t)(in[from] >> row % 2 * 16);

            if (found != want)
                fail_msg("%s, thread %u, half %u: 0x%x instead of 0x%x", name, t, part, found, want);
        }
    free(ptx);
}

/* ---- wmma ---- */

struct wmma {
    unsigned m, n, k;
    enum element factor, c, d;
    char a_layout, b_layout, c_layout, d_layout; /* r or c */
    bool has_stride, in_shared;
    const char *suffix; /* .satfinite */
    const char *operation;
};

enum { MATRIX_BYTES = 4096, PADDING_BYTES = 32 }; /* a stride is a multiple of 16 bytes */

struct matrix {
    unsigned rows, columns;
    enum element element;
    char layout;
    unsigned stride; /* elements */
};

static struct matrix matrix_of(const struct wmma *w, char operand)
{
    const struct matrix a = {w->m, w->k, w->factor, w->a_layout, 0}, b = {w->k, w->n, w->factor, w->b_layout, 0};
    const struct matrix c = {w->m, w->n, w->c, w->c_layout, 0}, d = {w->m, w->n, w->d, w->d_layout, 0};
    struct matrix matrix = operand == 'a' ? a : operand == 'b' ? b : operand == 'c' ? c : d;

    matrix.stride =
        (matrix.layout == 'r' ? matrix.columns : matrix.rows) + (w->has_stride ? PADDING_BYTES * 8 / element_bits(matrix.element) : 0);
    return matrix;
}

static unsigned bit_of(const struct matrix *matrix, unsigned row, unsigned column)
{
    return (matrix->layout == 'r' ? row * matrix->stride + column : column * matrix->stride + row) * element_bits(matrix->element);
}

static uint64_t get(const uint8_t *bytes, const struct matrix *matrix, unsigned row, unsigned column)
{
    const unsigned bits = element_bits(matrix->element), bit = bit_of(matrix, row, column);
    uint64_t value = 0;

    memcpy(&value, bytes + bit / 8, bits < 8 ? 1 : bits / 8);
    return bits < 8 ? value >> bit % 8 & ((1u << bits) - 1) : value;
}

static void set(uint8_t *bytes, const struct matrix *matrix, unsigned row, unsigned column, uint64_t value)
{
    const unsigned bits = element_bits(matrix->element), bit = bit_of(matrix, row, column);

    if (bits >= 8)
        memcpy(bytes + bit / 8, &value, bits / 8);
    else
        bytes[bit / 8] = (uint8_t)((bytes[bit / 8] & ~(((1u << bits) - 1) << bit % 8)) | value << bit % 8);
}

static unsigned registers_of(const struct wmma *w, char operand)
{
    const struct matrix matrix = matrix_of(w, operand);

    if ((operand == 'a' || operand == 'b') && w->factor == F16)
        return 8;
    return matrix.rows * matrix.columns / LANES * element_bits(matrix.element) / (matrix.element == F64 ? 64 : 32);
}

static void print_fragment(FILE *text, const struct wmma *w, char operand)
{
    for (unsigned i = 0; i < registers_of(w, operand); i++)
        fprintf(text, "%s%c%u", i ? "," : "{", operand, i);
    fputc('}', text);
}

static const char *layout_word(char layout)
{
    return layout == 'r' ? "row" : "col";
}

/* Warp w has its matrices in the w-th part of the buffers, each at a multiple of MATRIX_BYTES. */
static void print_access(FILE *text, const struct wmma *w, char operand, unsigned place)
{
    const struct matrix matrix = matrix_of(w, operand);
    const bool stores = operand == 'd', is_shared = w->in_shared && operand == 'a';
    char stride[16] = "";

    if (w->has_stride)
        snprintf(stride, sizeof stride, ",%u", matrix.stride);
    fprintf(text, "wmma.%s.%c.sync.aligned.%s.m%un%uk%u%s.%s ", stores ? "store" : "load", operand, layout_word(matrix.layout), w->m, w->n,
            w->k,
            is_shared        ? ".shared"
            : operand == 'b' ? ""
                             : ".global",
            element_name(matrix.element));
    if (stores) {
        fprintf(text, "[y],");
        print_fragment(text, w, operand);
    } else {
        print_fragment(text, w, operand);
        fprintf(text, is_shared ? ",[u]" : ",[x+%u]", place * MATRIX_BYTES);
    }
    fprintf(text, "%s;\n", stride);
}

static void name_wmma(const struct wmma *w, char *out, size_t size)
{
    char factors[32] = "";

    if (w->factor != F16)
        snprintf(factors, sizeof factors, ".%s.%s", element_name(w->factor), element_name(w->factor));
    snprintf(out, size, "wmma.mma%s.sync.aligned.%s.%s.m%un%uk%u.%s%s.%s%s", w->operation, layout_word(w->a_layout),
             layout_word(w->b_layout), w->m, w->n, w->k, element_name(w->d), factors, element_name(w->c), w->suffix);
}

static void print_wmma(FILE *text, const struct wmma *w)
{
    char name[128];

    name_wmma(w, name, sizeof name);
    fputs(head, text);
    for (const char *operand = "abcd"; *operand; operand++)
        fprintf(text, ".reg .%s %c<8>;", w->factor == F64 ? "f64" : "b32", *operand);
    fprintf(text, "\nshr.u32 r0,t,5;mad.wide.u32 x,r0,%u,in;mad.wide.u32 y,r0,%u,out;mad.lo.u32 u,r0,%u,base;\n", 3 * MATRIX_BYTES,
            MATRIX_BYTES, MATRIX_BYTES);
    if (w->in_shared) /* each lane of a warp copies every 32nd word */
        fprintf(text,
                "{.reg .b64 p;.reg .b32 i,v,s,l;.reg .pred q;and.b32 l,t,31;shl.b32 l,l,2;cvt.u64.u32 p,l;add.u64 p,p,x;add.u32 s,u,l;"
                "mov.u32 i,0;\nagain: ld.global.b32 v,[p];st.shared.b32 [s],v;add.u64 p,p,128;add.u32 s,s,128;add.u32 i,i,1;"
                "setp.lt.u32 q,i,%u;@q bra again;}\nbar.sync 0;\n",
                MATRIX_BYTES / 128);
    for (unsigned i = 0; i < 3; i++)
        print_access(text, w, (char)('a' + i), i);
    fprintf(text, "%s ", name);
    for (const char *operand = "dabc"; *operand; operand++) {
        print_fragment(text, w, *operand);
        fputs(operand[1] ? "," : ";\n", text);
    }
    print_access(text, w, 'd', 0);
    fputs("ret;}\n", text);
}

static void check_wmma(const struct wmma *w, const uint8_t *in, const uint8_t *out, unsigned warp, enum contents contents)
{
    const struct matrix a = matrix_of(w, 'a'), b = matrix_of(w, 'b'), c = matrix_of(w, 'c'), d = matrix_of(w, 'd');
    char name[128];

    name_wmma(w, name, sizeof name);
    in += (size_t)warp * 3 * MATRIX_BYTES;
    out += (size_t)warp * MATRIX_BYTES;
    for (unsigned row = 0; row < w->m; row++)
        for (unsigned column = 0; column < w->n; column++) {
            const uint64_t found = get(out, &d, row, column);
            struct sum sum = {.factors = w->factor, .c = w->c, .d = w->d, .saturates = *w->suffix, .rounding = FE_TONEAREST};

            sum.uses_and = strstr(w->operation, "and");
            sum.contents = contents;
            sum_begin(&sum, get(in + 2 * MATRIX_BYTES, &c, row, column));
            for (unsigned k = 0; k < w->k; k++)
                sum_add(&sum, w->factor, get(in, &a, row, k), w->factor, get(in + MATRIX_BYTES, &b, k, column));
            if (!sum_accepts(&sum, found))
                fail_msg("%s, warp %u, row %u, column %u: 0x%llx (%a) instead of %lld, %a", name, warp, row, column,
                         (unsigned long long)found, element_value(w->d, found), (long long)sum.integer, sum.exact);
        }
}

/* What no element of D covers must stay as it was. */
static void check_padding(const struct wmma *w, const uint8_t *out)
{
    static uint8_t covered[MATRIX_BYTES];
    const struct matrix d = matrix_of(w, 'd');
    const uint64_t all = UINT64_MAX;

    memset(covered, 0, sizeof covered);
    for (unsigned row = 0; row < w->m; row++)
        for (unsigned column = 0; column < w->n; column++)
            set(covered, &d, row, column, all);
    for (unsigned i = 0; i < WARPS * MATRIX_BYTES; i++)
        if (!covered[i % MATRIX_BYTES] && out[i] != 0xee)
            fail_msg("byte %u behind a matrix was written", i);
}

static void run_wmma(const struct wmma *w)
{
    static const enum contents contents[WARPS] = {SMALL, EDGES};
    static uint8_t in[WARPS * 3 * MATRIX_BYTES], out[WARPS * MATRIX_BYTES];
    char name[128], *ptx;
    size_t length;
    FILE *text;

    name_wmma(w, name, sizeof name);
    if (!strstr(name, selection))
        return;
    for (unsigned i = 0; i < WARPS * 3; i++) {
        const struct matrix matrix = matrix_of(w, (char)('a' + i % 3));

        for (unsigned row = 0; row < matrix.rows; row++)
            for (unsigned column = 0; column < matrix.columns; column++)
                set(in + i * MATRIX_BYTES, &matrix, row, column, element_random(matrix.element, contents[i / 3]));
    }
    memset(out, 0xee, sizeof out);
    text = open_memstream(&ptx, &length);
    print_wmma(text, w);
    fclose(text);
    run(name, ptx, in, sizeof in, out, sizeof out);
    free(ptx);
    for (unsigned warp = 0; warp < WARPS; warp++)
        check_wmma(w, in, out, warp, contents[warp]);
    check_padding(w, out);
}

/* Form number `i` of a shape: all layouts of A and B, while the others alternate. */
static struct wmma form_of(unsigned m, unsigned n, unsigned k, enum element factor, enum element accumulator, unsigned i)
{
    struct wmma w = {m,     n,     k,  factor, accumulator, accumulator, "rc"[i & 1], "cr"[i >> 1 & 1], "rc"[i >> 1 & 1], "rrcr"[i & 3],
                     i & 1, i & 2, "", ""};

    return w;
}

static const struct {
    unsigned m, n;
} shapes[] = {{16, 16}, {32, 8}, {8, 32}};

static void test_wmma_halves(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        struct wmma w = form_of(shapes[i / 4].m, shapes[i / 4].n, 16, F16, F32, i);

        run_wmma(&w);
        w = form_of(shapes[i / 4].m, shapes[i / 4].n, 16, BF16, F32, i);
        run_wmma(&w);
        w = form_of(shapes[i / 4].m, shapes[i / 4].n, 16, F16, F16, 3 - i % 4);
        if (i % 4 == 1)
            w.c = F32;
        if (i % 4 == 2)
            w.d = F32;
        run_wmma(&w);
    }
}

static void test_wmma_wide(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const struct wmma single = form_of(16, 16, 8, TF32, F32, i), wide = form_of(8, 8, 4, F64, F64, i);

        run_wmma(&single);
        run_wmma(&wide);
    }
}

static void test_wmma_integers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        struct wmma w = form_of(shapes[i / 4].m, shapes[i / 4].n, 16, i & 1 ? U8 : S8, S32, i);

        w.suffix = i & 2 ? ".satfinite" : "";
        run_wmma(&w);
    }
    for (unsigned i = 0; i < 4; i++) {
        struct wmma nibbles = form_of(8, 8, 32, i & 1 ? U4 : S4, S32, i), bits = form_of(8, 8, 128, B1, S32, i);

        nibbles.a_layout = bits.a_layout = 'r';
        nibbles.b_layout = bits.b_layout = 'c';
        nibbles.suffix = i & 2 ? ".satfinite" : "";
        bits.operation = i & 1 ? ".and.popc" : ".xor.popc";
        run_wmma(&nibbles);
        run_wmma(&bits);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ldmatrix),    cmocka_unit_test(test_stmatrix),  cmocka_unit_test(test_movmatrix),
        cmocka_unit_test(test_wmma_halves), cmocka_unit_test(test_wmma_wide), cmocka_unit_test(test_wmma_integers),
    };

    selection = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests_name("matrix moves", tests, with_context, without_context);
}
