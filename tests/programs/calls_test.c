/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through addresses and pointers kept in memory. Usage: calls_test [file.ptx]
 * With a file: the kernels of calls.cu, as a compiler emitted them, compared with the same in C. Without: all uses of addresses, in PTX
 * written by hand. */
#include "one_block.h"

static const char *ptx_file;

/* ---- the results of calls.cu ---- */

static uint32_t area_of(unsigned shape, uint32_t a, uint32_t b, uint32_t k)
{
    return shape == 0 ? a * a + k : shape == 1 ? a * b - k : (a * b - k) ^ 0x55;
}

static void expect_shapes(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t v = d->in[t], b[3] = {0, t, t + d->n};
        const unsigned first = (v >> 3) % 3, second = t % 3, third = (v >> 7) & 1;
        const uint32_t area = area_of(first, v, b[first], d->n);

        d->out[t] = (first ? 3 * area + 1 : 2 * area) + area_of(second, v, b[second], t) + (third ? t - 7 * d->n : 7 * t + b[1] * d->n);
    }
}

static uint32_t binary(unsigned f, uint32_t a, uint32_t b)
{
    uint32_t product = 1;

    if (f < 3)
        return f == 0 ? a + b : f == 1 ? a - b : a * b;
    for (uint32_t i = 0; i < (b & 7); i++)
        product *= a;
    return product;
}

static void expect_tables(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t v = d->in[t], values[5] = {v, t, v >> 8, d->n, 3};
        uint32_t x = d->n;

        for (int i = 0; i < 5; i++)
            x = binary((v >> 2) & 3, x, values[i]);
        d->out[t] = binary(v & 3, v, t) ^ binary(t & 1 ? 1 : 2, v, d->n) ^ x;
    }
}

static void expect_meeting(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = d->in[(t + (d->n & 1 ? 1 : N - 1)) % N];
}

static void expect_local_ring(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t values[4], at = t & 3, sum = d->n;

        for (int i = 0; i < 4; i++)
            values[i] = d->in[t] >> (8 * i) & 0xff;
        for (uint32_t i = 0; i < (d->in[t] & 15); i++) {
            values[at] = sum = sum * 3 + values[at];
            at = (at + 1 + (t & 1)) & 3;
        }
        d->out[t] = sum;
    }
}

static void expect_shared_list(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t at = t, sum = 0;

        for (int i = 0; i < 20; i++) {
            sum = sum * 5 + d->in[at];
            if (!(at & 7))
                break;
            at = (at * 5 + d->n) % N;
        }
        d->out[t] = sum;
    }
}

static void expect_mixed_table(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const unsigned kind = (t + d->n) % 3;
        uint32_t row = d->in[t] + 1, own[2] = {d->in[t] + 2, t}, out = d->in[t] + 3;
        uint32_t *kept = kind == 0 ? &row : kind == 1 ? own : &out;
        uint32_t *table = kind == 0 ? &own[t & 1] : kind == 1 ? &out : &row;

        *kept *= 3;
        *table += *kept;
        d->out[t] = row + own[0] * 5 + own[1] * 7 + out * 11;
    }
}

static const struct row rows[] = {
    {"shapes", expect_shapes},         {"tables", expect_tables},           {"meeting", expect_meeting},
    {"local_ring", expect_local_ring}, {"shared_list", expect_shared_list}, {"mixed_table", expect_mixed_table},
};

static void test_compiled(void **state)
{
    CUmodule module;

    (void)state;
    assert_int_equal(cuModuleLoad(&module, ptx_file), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t n = 0; n < 4; n++)
            check_row(module, &rows[i], n);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

/* ---- addresses ---- */

#define BINARY(name, code)                                                                                                                 \
    ".func (.param .b32 r) " name "(.param .b32 a, .param .b32 b)\n{ .reg .b32 x, y; ld.param.b32 x,[a]; ld.param.b32 y,[b];\n" code       \
    " st.param.b32 [r],x; ret; }\n"
#define CALL(target, list)                                                                                                                 \
    "{ .param .b32 a; .param .b32 b; .param .b32 r; st.param.b32 [a],v; st.param.b32 [b],t; call (r), " target ", (a, b), " list           \
    "; ld.param.b32 x,[r]; }\n"

/* in[0] selects the function: `code` computes its address f (in v) and calls it. */
#define MODULE(code)                                                                                                                       \
    ".version 7.0\n.target sm_70\n.address_size 64\n" BINARY("plus", "add.u32 x,x,y;") BINARY("minus", "sub.u32 x,x,y;")                   \
        BINARY("times", "mul.lo.u32 x,x,y;") ".func (.param .b64 r) other(.param .b32 a, .param .b32 b)\n{ ret; }\n"                       \
                                             ".func (.param .b32 r) again(.param .b32 a, .param .b32 b)\n{ .reg .b32 v, t, x; .reg .b64 "  \
                                             "f; .reg .pred p; ld.param.b32 v,[a];\n"                                                      \
                                             "ld.param.b32 t,[b]; mov.u64 f,again; setp.ne.u32 p,v,6; @p mov.u64 f,plus; P: "              \
                                             ".callprototype (.param .b32 _) _ (.param .b32 _,"                                            \
                                             " .param .b32 _);\n" CALL(                                                                    \
                                                 "f", "P") "st.param.b32 [r],x; ret; }\n"                                                  \
                                                           ".global .align 8 .u64 table[4] = {plus, minus, times, "                        \
                                                           "generic(times)};\n.global .align 4 .b8 bytes[12] = {1, 2, 3, 4, 0xFF(minus),"  \
                                                           " 0xFF00(minus), 0xFF0000(minus), 0xFF000000(minus), 0xFF00000000(minus), "     \
                                                           "0xFF0000000000(minus), 0xFF000000000000(minus),"                               \
                                                           " 0xFF00000000000000(minus)};\n"                                                \
                                                           ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n)\n{ .reg "    \
                                                           ".pred p; .reg .b32 t, v, x, lo, hi; .reg .b64 f, o, i;\n"                      \
                                                           "ld.param.u64 i,[in]; ld.param.u64 o,[out]; ld.global.u32 v,[i]; mov.u32 "      \
                                                           "t,%tid.x; mul.wide.u32 f,t,4; add.u64 o,o,f;\n"                                \
                                                           "L: .calltargets plus, times;\nP: .callprototype (.param .b32 _) _ (.param "    \
                                                           ".b32 _, .param .b32 _);\n" code "st.global.u32 [o],x; ret; }\n"

#define FROM_TABLE "mov.u64 f,table; mul.wide.u32 i,v,8; add.u64 f,f,i; ld.global.u64 f,[f];\n"

static const struct address {
    const char *name, *module;
    uint32_t chosen;
    int function; /* 0 adds, 1 subtracts, 2 multiplies; -1: a trap; -2: calls without an end */
} addresses[] = {
    {"first of a table", MODULE(FROM_TABLE CALL("f", "P")), 0, 0},
    {"second of a table", MODULE(FROM_TABLE CALL("f", "P")), 1, 1},
    {"generic address in a table", MODULE(FROM_TABLE CALL("f", "P")), 3, 2},
    {"in the list", MODULE(FROM_TABLE CALL("f", "L")), 2, 2},
    {"not in the list", MODULE(FROM_TABLE CALL("f", "L")), 1, -1},
    {"by bytes", MODULE("ld.global.u32 lo,[bytes+4]; ld.global.u32 hi,[bytes+8]; mov.b64 f,{lo,hi};\n" CALL("f", "P")), 9, 1},
    {"null", MODULE("mov.u64 f,0;\n" CALL("f", "P")), 0, -1},
    {"null that is known late", MODULE("cvt.u64.u32 f,v;\n" CALL("f", "P")), 0, -1},
    {"a small number", MODULE("cvt.u64.u32 f,v;\n" CALL("f", "P")), 2, -1},
    {"an address of data", MODULE("mov.u64 f,table;\n" CALL("f", "P")), 0, -1},
    {"a function and one more", MODULE("mov.u64 f,plus; add.u64 f,f,77;\n" CALL("f", "P")), 0, -1},
    {"a function of another kind", MODULE("mov.u64 f,other;\n" CALL("f", "P")), 0, -1},
    {"a function that could call itself", MODULE("mov.u64 f,again;\n" CALL("f", "P")), 5, 0},
    {"a function that calls itself", MODULE("mov.u64 f,again;\n" CALL("f", "P")), 6, -2},
};

static void check_address(const struct address *row)
{
    struct data data = {.in = {row->chosen}};
    uint32_t found[N];
    CUmodule module;
    CUresult result;

    if (cuModuleLoadData(&module, row->module) != CUDA_SUCCESS)
        fail_msg("%s: the module is refused", row->name);
    result = launch(module, "k", &data, found);
    if (result != (row->function == -2 ? CUDA_ERROR_ILLEGAL_ADDRESS : row->function < 0 ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS))
        fail_msg("%s: the launch ends with error %d", row->name, (int)result);
    for (uint32_t t = 0; row->function >= 0 && t < N; t++)
        if (found[t] != binary((unsigned)row->function, row->chosen, t))
            fail_msg("%s, thread %u: 0x%x instead of 0x%x", row->name, t, found[t], binary((unsigned)row->function, row->chosen, t));
}

/* Each in a context of its own, which a trap makes unusable. */
static void test_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        CUcontext context;
        CUdevice device;

        assert_int_equal(cuDeviceGet(&device, 0), CUDA_SUCCESS);
        assert_int_equal(cuCtxCreate(&context, NULL, 0, device), CUDA_SUCCESS);
        check_address(&addresses[i]);
        (void)cuCtxDestroy(context);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest compiled[] = {cmocka_unit_test(test_compiled)}, written[] = {cmocka_unit_test(test_addresses)};

    if (argc < 2)
        return cmocka_run_group_tests(written, with_context, without_context);
    ptx_file = argv[1];
    return cmocka_run_group_tests(compiled, with_context, without_context);
}
