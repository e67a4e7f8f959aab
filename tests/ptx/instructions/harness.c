/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every row of every table on device 0, or the rows whose names contain the argument. Exits with 1 if a result differs.
 *   instructions [--list] [--show N] [--may-refuse WORD] [--without TABLE]... [--random N] [NAME]
 * --random: the number of random operands; 100000 take half a minute on lavapipe.
 * --may-refuse: the device may return CUDA_ERROR_NOT_SUPPORTED for rows whose text contains this word, for example "f16". */
#include "harness.h"
#include "prelude.h"

#include <cuda.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_THREADS 64
#define EXIT_SKIPPED 77

static const struct table *const tables[] = {
#define TABLE(name) &table_##name,
#include "tables.def"
};

static unsigned shown = 3;            /* number of differences printed for each row */
static const char *may_refuse = NULL; /* the word of --may-refuse */
static const char *without[4];        /* tables that are left out */
static unsigned n_without;

static bool check(CUresult result, const char *what)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS)
        return true;
    cuGetErrorName(result, &name);
    fprintf(stderr, "  %s gave %s\n", what, name ? name : "an unknown error");
    return false;
}

/* ---- the text of a module with one kernel for each row ---- */

struct text {
    char *bytes;
    size_t used, size;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    size_t length;

    if (text->size - text->used < 4096) {
        text->size = text->size * 2 + 8192;
        text->bytes = realloc(text->bytes, text->size);
        if (!text->bytes)
            exit(1);
    }
    va_start(arguments, format);
    length = (size_t)vsnprintf(text->bytes + text->used, 4096, format, arguments);
    va_end(arguments);
    if (length >= 4096)
        exit(1);
    text->used += length;
}

static const char *register_type(enum type type)
{
    static const char *const names[TYPE_COUNT] = {
        [PRED] = "pred", [B8] = "b16",  [B16] = "b16", [U16] = "u16", [S16] = "s16", [U32] = "u32", [S32] = "s32",  [B32] = "b32",
        [B64] = "b64",   [U64] = "u64", [S64] = "s64", [F16] = "b16", [F32] = "f32", [F64] = "f64", [BF16] = "b16",
    };

    return names[type];
}

static void put_source(struct text *text, enum type type, unsigned index)
{
    const char letter = "abce"[index];

    if (type == NONE)
        return;
    put(text, "  .reg .%s %%%c;\n", register_type(type), letter);
    if (type == PRED)
        put(text, "  ld.global.u32 %%t0, [%%q0+%u];\n  setp.ne.u32 %%%c, %%t0, 0;\n", index * 8, letter);
    else
        put(text, "  ld.global.%s %%%c, [%%q0+%u];\n", register_type(type), letter, index * 8);
}

static void put_kernel(struct text *text, const struct row *row, unsigned number, bool in_body)
{
    put(text,
        in_body ? ".entry k%u\n{\n  .param .u64 p_in, p_out;\n  .param .u32 p_n;\n"
                : ".visible .entry k%u(.param .u64 p_in, .param .u64 p_out, .param .u32 p_n)\n{\n",
        number);
    put(text, "  .reg .pred %%ok, %%x, %%x2;\n  .reg .b32 %%t<4>, %%y, %%y2;\n  .reg .b64 %%q<4>, %%z;\n  .reg .b16 %%h, %%h2;\n");
    put(text, "  mov.u32 %%t0, %%ctaid.x;\n  mov.u32 %%t1, %%ntid.x;\n  mov.u32 %%t2, %%tid.x;\n");
    put(text, "  mad.lo.u32 %%t1, %%t0, %%t1, %%t2;\n  ld.param.u32 %%t3, [p_n];\n  setp.ge.u32 %%ok, %%t1, %%t3;\n");
    put(text, "  @%%ok bra DONE;\n  ld.param.u64 %%q0, [p_in];\n  mul.wide.u32 %%q1, %%t1, 32;\n  add.u64 %%q0, %%q0, %%q1;\n");
    put(text, "  ld.param.u64 %%q2, [p_out];\n  mul.wide.u32 %%q3, %%t1, 8;\n  add.u64 %%q2, %%q2, %%q3;\n");
    for (unsigned i = 0; i < MAX_SOURCES; i++)
        put_source(text, row->sources[i], i);
    put(text, "  .reg .%s %%d;\n  %s\n", register_type(row->result), row->text);
    if (row->result == PRED)
        put(text, "  selp.u32 %%t0, 1, 0, %%d;\n  st.global.u32 [%%q2], %%t0;\n");
    else
        put(text, "  st.global.%s [%%q2], %%d;\n", register_type(row->result));
    put(text, "DONE:\n  ret;\n}\n");
}

/* PTX ISA 1.0 to 1.3: parameters are declared in the body, and functions have no parameters in memory. */
static bool is_old(const struct table *table)
{
    return table->header && !strncmp(table->header, ".version 1.", strlen(".version 1."));
}

static char *module_text(const struct table *table)
{
    struct text text = {0};

    put(&text, "%s%s", table->header ? table->header : prelude_header, is_old(table) ? "" : prelude);
    for (unsigned i = 0; i < table->n_rows; i++)
        put_kernel(&text, &table->rows[i], i, is_old(table));
    return text.bytes;
}

/* ---- results ---- */

static bool is_nan(enum type type, uint64_t bits)
{
    if (type == F16)
        return (bits & 0x7fff) > 0x7c00;
    if (type == BF16)
        return (bits & 0x7fff) > 0x7f80;
    return type == F32 ? isnan(f32_of(bits)) : type == F64 && isnan(f64_of(bits));
}

static bool is_same(enum type type, uint64_t got, uint64_t want)
{
    return got == want || (type_is_float(type) && is_nan(type, got) && is_nan(type, want));
}

static bool is_near(const struct row *row, uint64_t got_bits, uint64_t want_bits)
{
    const double want = f64_of(want_bits);
    double got = row->result == F16 ? f16_to_float((uint16_t)got_bits) : row->result == F32 ? f32_of(got_bits) : f64_of(got_bits);

    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    if (row->compare == ABSOLUTE)
        return fabs(got - want) <= row->bound;
    return fabs(got - want) <= row->bound * fabs(want) + (row->result == F32 ? 0x1p-149 : 0);
}

static bool is_right(const struct row *row, uint64_t got, uint64_t want)
{
    if (row->compare == HALVES || row->compare == EVERY_HALVES)
        return is_same(F16, got & 0xffff, want & 0xffff) && is_same(F16, got >> 16 & 0xffff, want >> 16 & 0xffff);
    if (row->compare == BHALVES)
        return is_same(BF16, got & 0xffff, want & 0xffff) && is_same(BF16, got >> 16 & 0xffff, want >> 16 & 0xffff);
    if (row->compare == FHALVES)
        return is_same(F32, got & UINT32_MAX, want & UINT32_MAX) && is_same(F32, got >> 32, want >> 32);
    return row->compare == EXACT || row->compare == EVERY ? is_same(row->result, got, want) : is_near(row, got, want);
}

static void print_difference(const struct row *row, const uint64_t *in, uint64_t got, uint64_t want)
{
    printf("  %s:", row->name);
    for (unsigned i = 0; i < MAX_SOURCES; i++)
        if (row->sources[i] != NONE)
            printf(" %c=%llx", "abce"[i], (unsigned long long)in[i]);
    printf(" got %llx want %llx", (unsigned long long)got, (unsigned long long)want);
    if (row->compare == RELATIVE || row->compare == ABSOLUTE)
        printf(" (%.9g)", f64_of(want));
    printf("\n");
}

/* Returns the number of cases that differ. */
static unsigned compare_all(const struct row *row, const uint64_t *operands, const uint64_t *results, unsigned n)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t *in = operands + (size_t)i * MAX_SOURCES;
        const uint64_t want = row->want(in);

        if (is_right(row, results[i], want))
            continue;
        if (wrong++ < shown)
            print_difference(row, in, results[i], want);
    }
    return wrong;
}

/* Whether the device reports that it lacks a feature that the row needs, and --may-refuse allows it. */
static bool is_refused(const struct row *row, CUfunction function)
{
    return may_refuse && strstr(row->text, may_refuse) && cuFuncLoad(function) == CUDA_ERROR_NOT_SUPPORTED;
}

static bool run_on_device(CUfunction function, const uint64_t *operands, uint64_t *results, unsigned n)
{
    const size_t in_bytes = (size_t)n * MAX_SOURCES * sizeof *operands, out_bytes = (size_t)n * sizeof *results;
    CUdeviceptr in = 0, out = 0;
    void *arguments[] = {&in, &out, &n};
    bool ok = check(cuMemAlloc(&in, in_bytes), "cuMemAlloc") && check(cuMemAlloc(&out, out_bytes), "cuMemAlloc") &&
              check(cuMemcpyHtoD(in, operands, in_bytes), "cuMemcpyHtoD") && check(cuMemsetD8(out, 0, out_bytes), "cuMemsetD8") &&
              check(cuLaunchKernel(function, (n + BLOCK_THREADS - 1) / BLOCK_THREADS, 1, 1, BLOCK_THREADS, 1, 1, 0, NULL, arguments, NULL),
                    "cuLaunchKernel") &&
              check(cuCtxSynchronize(), "cuCtxSynchronize") && check(cuMemcpyDtoH(results, out, out_bytes), "cuMemcpyDtoH");

    if (in)
        cuMemFree(in);
    if (out)
        cuMemFree(out);
    return ok;
}

static bool run_row(CUmodule module, const struct row *row, unsigned number)
{
    char name[16];
    CUfunction function;
    unsigned n, wrong;
    uint64_t *operands, *results;
    bool ok = false;

    snprintf(name, sizeof name, "k%u", number);
    if (!check(cuModuleGetFunction(&function, module, name), "cuModuleGetFunction"))
        return false;
    if (is_refused(row, function)) {
        printf("%s: refused\n", row->name);
        return true;
    }
    operands = operands_create(row, &n);
    results = calloc(n, sizeof *results);
    if (operands && results && run_on_device(function, operands, results, n)) {
        wrong = compare_all(row, operands, results, n);
        if (wrong)
            printf("%s: %u of %u differ: %s\n", row->name, wrong, n, row->text);
        ok = wrong == 0;
    } else {
        printf("%s: not run: %s\n", row->name, row->text);
    }
    free(operands);
    free(results);
    return ok;
}

static bool load(const char *text, CUmodule *module)
{
    char log[8192] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};

    if (check(cuModuleLoadDataEx(module, text, 2, options, values), "cuModuleLoadDataEx"))
        return true;
    printf("%s\n", log);
    return false;
}

static unsigned run_table(const struct table *table, const char *filter, unsigned *n_run)
{
    char *text = module_text(table);
    unsigned failed = 0;
    CUmodule module;

    if (!load(text, &module)) {
        free(text);
        return table->n_rows;
    }
    for (unsigned i = 0; i < table->n_rows; i++) {
        if (filter && !strstr(table->rows[i].name, filter))
            continue;
        ++*n_run;
        failed += !run_row(module, &table->rows[i], i);
    }
    cuModuleUnload(module);
    free(text);
    return failed;
}

static bool is_left_out(const struct table *table)
{
    for (unsigned i = 0; i < n_without; i++)
        if (!strcmp(table->name, without[i]))
            return true;
    return false;
}

static void list_rows(void)
{
    for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
        for (unsigned i = 0; i < tables[t]->n_rows; i++)
            printf("%-12s %-24s %s\n", tables[t]->name, tables[t]->rows[i].name, tables[t]->rows[i].text);
}

static bool open_device(CUcontext *context)
{
    CUdevice device;
    char name[256];

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS)
        return false;
    cuDeviceGetName(name, sizeof name, device);
    printf("device: %s\n", name);
    return check(cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain") &&
           check(cuCtxSetCurrent(*context), "cuCtxSetCurrent");
}

static bool read_option(const char *name, const char *value)
{
    if (!strcmp(name, "--show"))
        shown = (unsigned)atoi(value);
    else if (!strcmp(name, "--random"))
        random_cases = (unsigned)atoi(value);
    else if (!strcmp(name, "--may-refuse"))
        may_refuse = value;
    else if (!strcmp(name, "--without") && n_without < sizeof without / sizeof *without)
        without[n_without++] = value;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    const char *filter = NULL;
    unsigned failed = 0, n_run = 0;
    CUcontext context;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list")) {
            list_rows();
            return 0;
        }
        if (i + 1 < argc && read_option(argv[i], argv[i + 1]))
            i++;
        else
            filter = argv[i];
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* line buffering: nothing printed is lost if a driver ends the process */
    if (!open_device(&context)) {
        fprintf(stderr, "no CUDA device: skipped\n");
        return EXIT_SKIPPED;
    }
    for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
        if (!is_left_out(tables[t]))
            failed += run_table(tables[t], filter, &n_run);
    printf("%u rows, %u failed\n", n_run, failed);
    return failed || !n_run;
}
