/* SPDX-License-Identifier: Apache-2.0 */
#include "function_samples.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind { ABSOLUTE, RELATIVE };
enum spacing { LINEAR, ENCODINGS };

static double inverse_root(double x)
{
    return 1 / sqrt(x);
}

static const struct row {
    enum ptx2spv_near function;
    const char *name;
    double (*want)(double);
    enum kind kind;
    double bound;
    enum spacing spacing;
    float least, greatest;
} rows[] = {
#define SAMPLES(function, name, want, kind, bound, spacing, least, greatest)                                                               \
    {PTX2SPV_NEAR_##function, name, want, kind, bound, spacing, (float)(least), (float)(greatest)},
#include "function_samples.def"
};

/* ---- the kernel ---- */

static const char kernel_head[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry %s(.param .u64 samples)\n{\n"
    "  .reg .pred %%p;\n  .reg .b32 %%i, %%n, %%t, %%a, %%d;\n  .reg .b64 %%at, %%offset;\n"
    "  ld.param.u64 %%at, [samples];\n  mov.u32 %%i, %%ctaid.x;\n  mov.u32 %%n, %%ntid.x;\n  mov.u32 %%t, %%tid.x;\n"
    "  mad.lo.u32 %%n, %%i, %%n, %%t;\n  mul.wide.u32 %%offset, %%n, %zu;\n  add.u64 %%at, %%at, %%offset;\n"
    "  ld.global.b32 %%a, [%%at];\n  div.u32 %%i, %%i, %u;\n  mov.b32 %%d, 0;\n";
static const char kernel_row[] = "  setp.ne.u32 %%p, %%i, %u;\n  @%%p bra NOT%u;\n  %s.approx.ftz.f32 %%d, %%a;\nNOT%u:\n";
static const char kernel_tail[] = "  st.global.b32 [%at+4], %d;\n  ret;\n}\n";

void ct_samples_write_kernel(const char *name, char text[CT_SAMPLE_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(text, CT_SAMPLE_TEXT_BYTES, kernel_head, name, sizeof(struct ct_sample), CT_SAMPLE_ROW_BLOCKS);

    for (unsigned i = 0; i < CT_SAMPLE_ROWS; i++)
        used += (size_t)snprintf(text + used, CT_SAMPLE_TEXT_BYTES - used, kernel_row, i, i, rows[i].name, i);
    snprintf(text + used, CT_SAMPLE_TEXT_BYTES - used, "%s", kernel_tail);
}

/* ---- the arguments ---- */

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Multiples of the golden ratio fill an interval evenly. */
static float argument_of(const struct row *row, unsigned i)
{
    double whole;
    const double part = modf(i * 0.6180339887498949, &whole);

    if (row->spacing == LINEAR)
        return (float)(row->least + part * ((double)row->greatest - row->least));
    return float_of(bits_of(row->least) + (uint32_t)(part * (bits_of(row->greatest) - bits_of(row->least))));
}

void ct_samples_write_arguments(struct ct_sample samples[CT_SAMPLE_COUNT])
{
    for (unsigned i = 0; i < CT_SAMPLE_COUNT; i++)
        samples[i] = (struct ct_sample){.argument = argument_of(&rows[i / CT_SAMPLES_OF_ROW], i % CT_SAMPLES_OF_ROW)};
}

/* ---- the errors ---- */

static double error_of(const struct row *row, const struct ct_sample *sample)
{
    const double want = row->want(sample->argument), error = fabs(sample->result - want);

    if (isnan(error))
        return INFINITY;
    return row->kind == ABSOLUTE || error == 0 ? error : error / fabs(want);
}

struct ct_sample_errors ct_samples_errors(const struct ct_sample samples[CT_SAMPLE_COUNT], unsigned row)
{
    const struct row *which = &rows[row];
    struct ct_sample_errors errors = {.function = which->function,
                                      .name = which->name,
                                      .least = which->least,
                                      .greatest = which->greatest,
                                      .relative = which->kind == RELATIVE,
                                      .bound = which->bound};

    for (unsigned i = 0; i < CT_SAMPLES_OF_ROW; i++)
        errors.error = fmax(errors.error, error_of(which, &samples[row * CT_SAMPLES_OF_ROW + i]));
    return errors;
}
