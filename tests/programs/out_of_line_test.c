/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of which a kernel has one instance for all of their calls: the kernels of out_of_line.cu, as a compiler emitted them, compared with
 * the same in C; CUTTLE_INLINE_MAX=1 makes these kernels too large to be inlined. And kernels that really are.
 * Usage: out_of_line_test [file.ptx]; without a file: the large kernels only. */
#include "one_block.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *ptx_file;

/* ---- the results of out_of_line.cu ---- */

static uint32_t mix(uint32_t v, uint32_t k)
{
    uint32_t parts[4] = {v, k, v ^ k, 1};

    for (uint32_t i = 0; i < (v & 7); i++)
        parts[(k + i) & 3] = parts[i & 3] * 5 + i;
    return parts[0] + 3 * parts[1] + 7 * parts[(v >> 3) & 3];
}

static uint32_t twice(uint32_t v, uint32_t k)
{
    return mix(v, k) ^ mix(mix(k, v), v + 1);
}

static void expect_branches(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t v = d->in[t];
        uint32_t sum = v & 4 ? mix(v, t) + t : twice(v, d->n) - v;

        if (v & 8)
            sum += twice(sum, v);
        for (uint32_t i = 0; i < (v >> 4 & 3) + d->n; i++) {
            const uint32_t before = sum * i;

            sum ^= i & 1 ? mix(sum, i) : twice(i, sum) + before;
            if (!(sum & 1))
                sum = mix(before, sum) + i;
        }
        d->out[t] = sum;
    }
}

static uint32_t swap_some(uint32_t *values, uint32_t k)
{
    const uint32_t place = k & 7, before = values[place];

    values[place] = values[7 - place] + k;
    values[7 - place] ^= before;
    return before;
}

static uint32_t shuffle_all(uint32_t *values, uint32_t v)
{
    uint32_t own[8], sum = 0;

    for (uint32_t i = 0; i < 8; i++)
        own[i] = v * i;
    for (uint32_t i = 0; i < 8; i++)
        sum = sum * 3 + swap_some(i & 1 ? own : values, v >> i);
    for (uint32_t i = 0; i < 8; i++)
        sum += own[i] * i;
    return sum;
}

static void expect_arrays(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t values[8], sum = 0;

        for (uint32_t i = 0; i < 8; i++)
            values[i] = d->in[(t + i) % N];
        for (uint32_t i = 0; i <= d->n; i++) {
            const uint32_t first = shuffle_all(values, d->in[t] + i);

            sum += first ^ swap_some(values, t);
        }
        for (uint32_t i = 0; i < 8; i++)
            sum = sum * 5 + shuffle_all(values, values[i]);
        d->out[t] = sum;
    }
}

static uint32_t tree(uint32_t v, uint32_t depth)
{
    return depth == 0 ? mix(v, 3) : tree(mix(v, depth), depth - 1) + twice(v, depth) * tree(v + 1, depth / 2);
}

static uint32_t trees(uint32_t v)
{
    return tree(v, v & 3) - tree(v >> 2, 2);
}

static void expect_recursion(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = trees(d->in[t]) + trees(t + d->n) * mix(t, d->n);
}

static void expect_addresses(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        bool is_mix = (d->in[t] & 16) != 0;
        uint32_t sum = t;

        for (uint32_t i = 0; i < 3 + d->n; i++) {
            const uint32_t other = mix(i, sum);

            sum = (is_mix ? mix(sum, d->in[t] + i) : twice(sum, d->in[t] + i)) + other;
            is_mix = (sum & 2) != 0;
        }
        d->out[t] = sum;
    }
}

struct parts {
    double wide;
    uint64_t bits;
    uint16_t narrow;
    bool flag;
};

static struct parts step(struct parts p, uint8_t by)
{
    p.wide = p.flag ? p.wide * 2 + by : p.wide - by;
    p.bits = p.bits * 6364136223846793005u + p.narrow;
    p.narrow = (uint16_t)(p.narrow * 3 + by);
    p.flag = p.flag != ((p.bits >> 40 & 1) != 0);
    return p;
}

static void expect_widths(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t v = d->in[t];
        struct parts p = {(double)(v & 1023), v * UINT64_C(77), (uint16_t)v, (v & 4) != 0};

        for (uint32_t i = 0; i < (v >> 6 & 7) + d->n; i++)
            p = step(i & 2 ? step(p, (uint8_t)i) : p, (uint8_t)v);
        p = step(p, (uint8_t)t);
        d->out[t] = (uint32_t)(int64_t)p.wide + (uint32_t)(p.bits >> 32) + (uint32_t)p.bits * 3 + p.narrow * 7u + p.flag * 13u;
    }
}

static uint32_t guarded[4]; /* as the kernel has it: it is not cleared between launches */

static void expect_locks(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const bool ends = (d->in[t] & 32) != 0;

        guarded[t & 3] += ends ? 0 : mix(t, d->in[t]);
        d->out[t] = ends ? mix(d->in[t], d->n) : twice(d->in[t], d->n);
    }
}

static void expect_unlocked(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = guarded[t & 3];
}

static void expect_barriers(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = mix(twice(d->in[t ^ 1], d->n), twice(d->in[N - 1 - t], d->n)) + twice(t, d->n);
}

static const struct row rows[] = {
    {"branches", expect_branches}, {"arrays", expect_arrays}, {"recursion", expect_recursion}, {"addresses", expect_addresses},
    {"widths", expect_widths},     {"locks", expect_locks},   {"unlocked", expect_unlocked},   {"barriers", expect_barriers},
};

static void kernels_give_the_results_of_c(void **state)
{
    (void)state;
    check_rows(ptx_file, rows, sizeof rows / sizeof *rows);
}

/* ---- kernels that are too large ---- */

enum { LEVELS = 18, LEVEL_TEXT_BYTES = 1024 }; /* inlined, there would be 2^18 - 1 functions */

/* The function of each level calls that of the next one twice, or not at all. */
static uint32_t level(uint32_t i, uint32_t x)
{
    const uint32_t v = (x ^ i) * 0x9e3779b1u;

    return i == LEVELS || (v & 0x300) == 0 ? v >> 3 : level(i + 1, v) * 5 + level(i + 1, v >> 7);
}

static void expect_levels(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = level(0, d->in[t] + d->n);
}

static int write_level(char *text, uint32_t i)
{
    return snprintf(text, LEVEL_TEXT_BYTES,
                    ".func (.param .b32 r) level%u(.param .b32 p)\n{\n.reg .pred %%p;\n.reg .b32 %%r<9>;\nld.param.u32 %%r1, [p];\n"
                    "xor.b32 %%r1, %%r1, %u;\nmul.lo.u32 %%r1, %%r1, 0x9e3779b1;\nshr.u32 %%r2, %%r1, 3;\nand.b32 %%r3, %%r1, 0x300;\n"
                    "setp.eq.u32 %%p, %%r3, 0;\n@%%p bra end;\nshr.u32 %%r4, %%r1, 7;\ncall (%%r5), level%u, (%%r1);\n"
                    "call (%%r6), level%u, (%%r4);\nmad.lo.u32 %%r2, %%r5, 5, %%r6;\nend:\nst.param.b32 [r], %%r2;\nret;\n}\n",
                    i, i, i + 1, i + 1);
}

static const char head[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
static const char kernel[] =
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n.reg .b32 %r<5>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [out];\n"
    "ld.param.u64 %d2, [in];\nld.param.u32 %r3, [n];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d1, %d1, %d3;\n"
    "add.u64 %d2, %d2, %d3;\nld.global.u32 %r2, [%d2];\nadd.u32 %r2, %r2, %r3;\ncall (%r4), level0, (%r2);\nst.global.u32 [%d1], %r4;\n"
    "ret;\n}\n";

static void calls_of_calls_do_not_multiply(void **state)
{
    char *text = malloc((LEVELS + 2) * LEVEL_TEXT_BYTES);
    const struct row row = {"k", expect_levels};
    CUmodule module;
    int n;

    (void)state;
    assert_non_null(text);
    n = snprintf(text, LEVEL_TEXT_BYTES,
                 "%s.func (.param .b32 r) level%d(.param .b32 p)\n{\n.reg .b32 %%r;\nld.param.u32 %%r, [p];\nxor.b32 %%r, %%r, %d;\n"
                 "mul.lo.u32 %%r, %%r, 0x9e3779b1;\nshr.u32 %%r, %%r, 3;\nst.param.b32 [r], %%r;\nret;\n}\n",
                 head, LEVELS, LEVELS);
    for (uint32_t i = LEVELS; i-- > 0;)
        n += write_level(text + n, i);
    memcpy(text + n, kernel, sizeof kernel);
    ok(cuModuleLoadData(&module, text));
    check_row(module, &row, 0);
    check_row(module, &row, 7);
    ok(cuModuleUnload(module));
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest compiled[] = {cmocka_unit_test(kernels_give_the_results_of_c)};
    const struct CMUnitTest large[] = {cmocka_unit_test(calls_of_calls_do_not_multiply)};

    ptx_file = argc > 1 ? argv[1] : NULL;
    if (ptx_file)
        return cmocka_run_group_tests(compiled, with_context, without_context);
    return cmocka_run_group_tests(large, with_context, without_context);
}
