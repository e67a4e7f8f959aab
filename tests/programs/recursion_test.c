/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that call themselves: the kernels of recursion.cu, as a compiler emitted them, compared with the same in C; and what becomes of
 * calls that are nested too deeply. Usage: recursion_test [file.ptx]; without a file: what compilers do not write, in PTX. */
#include "one_block.h"

#include <stdbool.h>

static const char *ptx_file;

/* ---- the results of recursion.cu ---- */

static uint32_t fibonacci(uint32_t n)
{
    uint32_t a = 0, b = 1;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t sum = a + b;

        a = b;
        b = sum;
    }
    return a;
}

static void expect_numbers(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = fibonacci(d->in[t] % 13 + d->n) ^ fibonacci(t % 7);
}

static void expect_nested(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t n = t % 5 + d->n, values[3] = {n + 1, n + 2, 2 * n + 3}; /* Ackermann's function in closed form */

        d->out[t] = values[d->in[t] % 3];
    }
}

static uint32_t odd_steps(uint64_t v, uint32_t sum);

static uint32_t even_steps(uint64_t v, uint32_t sum)
{
    if (v == 1)
        return sum;
    return v & 1 ? odd_steps(v, sum + 1) + 3 : even_steps(v / 2, sum + 2);
}

static uint32_t odd_steps(uint64_t v, uint32_t sum)
{
    return (v & 1 ? even_steps(3 * v + 1, sum + 7) : even_steps(v, sum)) ^ sum * 5;
}

static void expect_collatz(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = even_steps(d->in[t] % 15 + d->n + 1, t) + odd_steps(t % 15 + 1, d->n);
}

static void expect_sorted(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t values[16], sum = 0;

        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t value = d->in[(t + i * (d->n + 1)) % 256] >> (t & 7);
            uint32_t place = i;

            for (; place && values[place - 1] > value; place--)
                values[place] = values[place - 1];
            values[place] = value;
        }
        for (int i = 0; i < 16; i++)
            sum = sum * 3 + values[i];
        d->out[t] = sum;
    }
}

static uint32_t chain(uint32_t *callers, uint32_t depth, uint32_t v)
{
    uint32_t own[4] = {v, depth, v ^ depth, 1};

    callers[v & 3] += depth;
    if (depth) {
        const uint32_t below = chain(own, depth - 1, v * 5 + 1);

        callers[(v >> 1) & 3] ^= below;
    }
    return own[0] + 3 * own[1] + 5 * own[2] + 7 * own[v & 3];
}

static void expect_chained(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t first[4] = {1, 2, 3, 4};
        const uint32_t result = chain(first, (d->in[t] & 7) + d->n, d->in[t]);

        d->out[t] = result + first[0] + first[1] * 3 + first[2] * 5 + first[3] * 7;
    }
}

struct parts {
    double wide;
    uint64_t bits;
    uint32_t middle;
    uint16_t narrow;
    uint8_t byte;
    bool flag;
};

static struct parts split(struct parts p, uint32_t depth)
{
    const bool is_even = (p.middle & 1) == 0;
    struct parts next;

    if (depth == 0)
        return p;
    next = split((struct parts){p.wide * 2 + 1, p.bits * 6364136223846793005u + depth, p.middle / 2 + depth, (uint16_t)(p.narrow + depth),
                                (uint8_t)(p.byte ^ depth), is_even},
                 depth - 1);
    next.wide += is_even ? p.wide : -1;
    next.bits ^= p.bits >> 7;
    next.middle += p.flag ? 1 : 3;
    next.narrow = (uint16_t)(next.narrow ^ (uint16_t)(p.narrow * 3));
    next.byte = (uint8_t)(next.byte + p.byte);
    next.flag = next.flag != p.flag;
    return next;
}

static void expect_widths(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t v = d->in[t];
        const struct parts p =
            split((struct parts){(double)(v & 1023), v * UINT64_C(77), v, (uint16_t)v, (uint8_t)t, (v & 4) != 0}, (t & 7) + d->n);

        d->out[t] =
            (uint32_t)p.wide + (uint32_t)(p.bits >> 32) + (uint32_t)p.bits * 3 + p.middle * 5 + p.narrow * 7u + p.byte * 11u + p.flag * 13u;
    }
}

/* Node i of the tree that thread t makes of v. */
static uint32_t value_of(uint32_t v, uint32_t i, uint32_t x)
{
    uint32_t first;

    if (i >= 7)
        return (v >> (i - 7) & 15) * x + 1;
    first = value_of(v, 2 * i + 1, x);
    return v >> (8 + i) & 1 ? first + value_of(v, 2 * i + 2, x + 1) : first * value_of(v, 2 * i + 2, first);
}

static void expect_expressions(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = value_of(d->in[t], 0, d->n + 1) + value_of(d->in[t], 1 + t % 6, t);
}

static void expect_lists(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t last = 77, sum = 0;

        for (uint32_t x = t & 63; x < 256; x += 64) {
            uint32_t most = 100, found = UINT32_MAX;

            for (uint32_t i = 0; i < 2 + 2 * d->n; i++) { /* the lists that are reached, in order */
                const uint32_t at = d->in[(t + i) % N] & 255, distance = x > at ? x - at : at - x;

                if (distance < most) {
                    most = distance;
                    found = i;
                }
            }
            if (found == UINT32_MAX)
                continue;
            sum += most * 8 + found;
            last = found;
        }
        d->out[t] = sum + last;
    }
}

static uint32_t step(uint32_t kind, uint32_t v, uint32_t left)
{
    if (kind == 0)
        return left ? step(v & 1, v * 3 + 1, left - 1) + left : v;
    return left ? step(v >> 1 & 1, v ^ left, left - 1) * 3 : ~v;
}

static void expect_tables(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = step(t & 1, d->in[t], (t >> 1 & 7) + d->n);
}

static void expect_barriers(struct data *d)
{
    uint32_t shared[N], total[N];

    for (uint32_t t = 0; t < N; t++)
        shared[t] = d->in[t] + d->n;
    for (uint32_t width = 128; width; width /= 2)
        for (uint32_t t = 0; t < width; t++)
            shared[t] += shared[t + width];
    for (uint32_t t = 0; t < N; t++)
        total[t] = shared[0];
    for (uint32_t width = 1; width <= 128; width *= 2) {
        for (uint32_t t = 0; t < width; t++)
            shared[t + width] = shared[t] * width + total[t];
        for (uint32_t t = 0; t < N; t++)
            total[t] += shared[(t + width) % N];
    }
    memcpy(d->out, total, sizeof total);
}

static uint32_t inner(uint32_t v, uint32_t depth)
{
    return depth ? inner(v * 7 + depth, depth - 1) ^ v : v;
}

static uint32_t outer(uint32_t v, uint32_t depth)
{
    if (depth == 0)
        return inner(v, 3);
    return outer(inner(v, depth), depth - 1) + inner(v + 1, depth / 2) + outer(v + depth, depth / 2);
}

static void expect_cycles(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = outer(d->in[t], t % 4 + d->n) + outer(t, d->in[t] % 4);
}

static void expect_depth(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        d->out[t] = d->in[t] + d->n * (d->n + 1) / 2;
        for (uint32_t i = 1; i <= d->n; i++)
            d->out[t] = d->out[t] * 3 + i;
    }
}

static const struct row rows[] = {
    {"numbers", expect_numbers}, {"nested", expect_nested},           {"collatz", expect_collatz}, {"sorted", expect_sorted},
    {"chained", expect_chained}, {"widths", expect_widths},           {"tables", expect_tables},   {"barriers", expect_barriers},
    {"cycles", expect_cycles},   {"expressions", expect_expressions}, {"lists", expect_lists},     {"depth", expect_depth},
};

static void kernels_give_the_results_of_c(void **state)
{
    (void)state;
    check_rows(ptx_file, rows, sizeof rows / sizeof *rows);
}

/* CU_LIMIT_STACK_SIZE: kernels that ran with the smaller stack as well as such that did not. */
static void a_larger_stack_takes_deeper_calls(void **state)
{
    static const struct row deep = {"depth", expect_depth};
    size_t before, limit;
    CUmodule module;

    (void)state;
    ok(cuCtxGetLimit(&before, CU_LIMIT_STACK_SIZE));
    ok(cuModuleLoad(&module, ptx_file));
    check_row(module, &deep, 20);
    for (limit = 4096; limit <= 64 << 10; limit *= 4) {
        size_t granted; /* less where a GPU's driver does not compile so much */

        ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, limit));
        ok(cuCtxGetLimit(&granted, CU_LIMIT_STACK_SIZE));
        check_row(module, &deep, (uint32_t)(granted / 32)); /* NVIDIA's driver takes 16 bytes for a call, as of 580 */
        check_row(module, &deep, 3);
    }
    ok(cuModuleUnload(module));
    ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, before));
}

/* In a context of its own, which is unusable afterwards. */
static void too_deep_calls_are_an_illegal_address(void **state)
{
    struct data data;
    uint32_t found[N];
    CUcontext context;
    CUmodule module;

    (void)state;
    ok(create_context(&context, 0));
    ok(cuModuleLoad(&module, ptx_file));
    fill(&data, 100000);
    gives(CUDA_ERROR_ILLEGAL_ADDRESS, launch(module, "depth", &data, found));
    gives(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    (void)cuCtxDestroy(context);
}

/* ---- what compilers do not write ---- */

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define REGS ".reg .pred %p;\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\n"
/* The kernel: out[t] = f(t % 8 + in[t] % 4). */
#define KERNEL(call)                                                                                                                       \
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{\n" REGS                                                          \
    "ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\nadd.u64 %d1, %d1, %d3;\n"         \
    "add.u64 %d2, %d2, %d3;\nld.global.u32 %r2, [%d2];\nand.b32 %r2, %r2, 3;\nand.b32 %r1, %r1, 7;\nadd.u32 %r1, %r1, %r2;\n" call         \
    "st.global.u32 [%d1], %r3;\nret;\n}\n"
#define CALL_F "call (%r3), f, (%r1);\n"
#define F(body) HEAD ".func (.param .b32 r) f(.param .b32 p)\n{\n" REGS "ld.param.u32 %r1, [p];\n" body "ret;\n}\n" KERNEL(CALL_F)

static uint32_t sum(uint32_t n)
{
    return n * (n + 1) / 2;
}

static uint32_t doubled(uint32_t n)
{
    return 2 * sum(n);
}

static uint32_t zero(uint32_t n)
{
    (void)n;
    return 0;
}

static uint32_t ended(uint32_t n)
{
    return n > 5 ? 0 : sum(n);
}

static const struct written {
    const char *name, *text;
    uint32_t (*expect)(uint32_t n); /* NULL: the stack is too small, whatever its size */
} written[] = {
    {"parameters that are registers",
     HEAD ".func (.reg .b32 %r) f(.reg .b32 %n)\n{\n.reg .pred %p;\n.reg .b32 %m;\nmov.u32 %r, 0;\nsetp.eq.u32 %p, %n, 0;\n@%p ret;\n"
          "sub.u32 %m, %n, 1;\ncall (%r), f, (%m);\nadd.u32 %r, %r, %n;\nret;\n}\n" KERNEL(CALL_F),
     sum},
    {"a call under a guard",
     F("mov.u32 %r3, 0;\nsub.u32 %r2, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p call (%r3), f, (%r2);\nadd.u32 %r3, %r3, %r1;\n"
       "st.param.b32 [r], %r3;\n"),
     sum},
    {"a parameter that is read behind the call",
     F("setp.eq.u32 %p, %r1, 0;\nmov.u32 %r3, 0;\n@%p bra over;\nsub.u32 %r2, %r1, 1;\ncall (%r3), f, (%r2);\n"
       "ld.param.u32 %r2, [p];\nadd.u32 %r3, %r3, %r2;\nover:\nst.param.b32 [r], %r3;\n"),
     sum},
    {"a parameter that is read at a computed address",
     HEAD ".func (.param .b32 r) f(.param .align 4 .b8 p[16])\n{\n" REGS
          "ld.param.u32 %r1, [p+4];\nmov.b64 %d1, p;\nand.b32 %r2, %r1, 3;\nmul.wide.u32 %d2, %r2, 4;\nadd.u64 %d1, %d1, %d2;\n"
          "setp.eq.u32 %p, %r1, 0;\nmov.u32 %r3, 0;\n@%p bra over;\nsub.u32 %r2, %r1, 1;\n"
          "{\n.param .align 4 .b8 a[16];\n.param .b32 q;\nst.param.b32 [a], %r2;\nst.param.b32 [a+4], %r2;\nst.param.b32 [a+8], %r2;\n"
          "st.param.b32 [a+12], %r2;\ncall (q), f, (a);\nld.param.u32 %r3, [q];\n}\nld.param.u32 %r2, [%d1];\nadd.u32 %r3, %r3, %r2;\n"
          "over:\nst.param.b32 [r], %r3;\nret;\n}\n" KERNEL(
              "{\n.param .align 4 .b8 a[16];\n.param .b32 q;\nst.param.b32 [a], %r1;\nst.param.b32 [a+4], %r1;\nst.param.b32 [a+8], "
              "%r1;\nst.param.b32 [a+12], %r1;\ncall (q), f, (a);\nld.param.u32 %r3, [q];\n}\n"),
     sum},
    {"an aligned object of each activation",
     F(".local .align 64 .b8 x[8];\nsetp.eq.u32 %p, %r1, 0;\nmov.u32 %r3, 0;\nmov.u64 %d1, x;\ncvt.u32.u64 %r4, %d1;\nand.b32 %r4, %r4, "
       "63;\n"
       "st.local.u32 [%d1], %r4;\n@%p bra over;\nsub.u32 %r2, %r1, 1;\ncall (%r3), f, (%r2);\nld.local.u32 %r4, [%d1];\n"
       "add.u32 %r3, %r3, %r4;\nover:\nst.param.b32 [r], %r3;\n"),
     zero},
    {"a result of parts that overlap",
     HEAD ".func (.param .align 8 .b8 r[8]) f(.param .b32 p)\n{\n" REGS
          "ld.param.u32 %r1, [p];\nsetp.eq.u32 %p, %r1, 0;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\n@%p bra over;\nsub.u32 %r2, %r1, 1;\n"
          "{\n.param .align 8 .b8 q[8];\ncall (q), f, (%r2);\nld.param.b64 %d1, [q];\n}\nmov.b64 {%r3, %r4}, %d1;\n"
          "add.u32 %r3, %r3, %r1;\nadd.u32 %r4, %r4, %r1;\nover:\nst.param.b32 [r], %r3;\nst.param.b32 [r+4], %r4;\nret;\n}\n" KERNEL(
              "{\n.param .align 8 .b8 q[8];\ncall (q), f, (%r1);\nld.param.b64 %d4, [q];\n}\nmov.b64 {%r3, %r4}, %d4;\n"
              "add.u32 %r3, %r3, %r4;\n"),
     doubled},
    {"threads that end in a call",
     F("setp.gt.u32 %p, %r1, 5;\n@%p exit;\nsetp.eq.u32 %p, %r1, 0;\nmov.u32 %r3, 0;\n@%p bra over;\nsub.u32 %r2, %r1, 1;\n"
       "call (%r3), f, (%r2);\nover:\nadd.u32 %r3, %r3, %r1;\nst.param.b32 [r], %r3;\n"),
     ended},
    {"more local memory than the stack has",
     F(".local .align 4 .b8 x[3000];\nmov.u64 %d1, x;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d1, %d2;\nst.local.u32 [%d2+2000], %r1;\n"
       "setp.gt.u32 %p, %r1, 100;\nmov.u32 %r3, 0;\nsub.u32 %r2, %r1, 1;\n@%p call (%r3), f, (%r2);\nld.local.u32 %r4, [%d2+2000];\n"
       "mad.lo.u32 %r3, %r4, %r4, %r4;\nshr.u32 %r3, %r3, 1;\nst.param.b32 [r], %r3;\n"),
     sum},
    {"nothing but a call", F("call (%r3), f, (%r1);\nst.param.b32 [r], %r3;\n"), NULL},
    {"a call without an end", HEAD ".func f()\n{\nagain:\ncall f;\nbra again;\n}\n" KERNEL("call f;\nmov.u32 %r3, 0;\n"), NULL},
};

static void check_written(const struct written *row)
{
    struct data data;
    uint32_t found[N];
    CUmodule module;
    CUresult result;

    if (cuModuleLoadData(&module, row->text) != CUDA_SUCCESS)
        fail_msg("%s: the module is refused", row->name);
    fill(&data, 0);
    result = launch(module, "k", &data, found);
    if (result != (row->expect ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS))
        fail_msg("%s: the launch ends with error %d", row->name, (int)result);
    for (uint32_t t = 0; row->expect && t < N; t++) {
        const uint32_t wanted = row->expect(t % 8 + data.in[t] % 4);

        if (found[t] != wanted)
            fail_msg("%s, thread %u: %u instead of %u", row->name, t, found[t], wanted);
    }
}

/* Each in a context of its own, which an error makes unusable. */
static void forms_that_compilers_do_not_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        CUcontext context;

        print_message("%s\n", written[i].name);
        ok(create_context(&context, 0));
        check_written(&written[i]);
        (void)cuCtxDestroy(context);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest compiled[] = {
        cmocka_unit_test(kernels_give_the_results_of_c),
        cmocka_unit_test(a_larger_stack_takes_deeper_calls),
        cmocka_unit_test(too_deep_calls_are_an_illegal_address),
    };
    const struct CMUnitTest by_hand[] = {cmocka_unit_test(forms_that_compilers_do_not_write)};

    if (argc < 2)
        return cmocka_run_group_tests(by_hand, with_context, without_context);
    ptx_file = argv[1];
    return cmocka_run_group_tests(compiled, with_context, without_context);
}
