/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: the syntax tree of PTX text. Expectations are from the PTX ISA's sections on syntax, constants, variables and operands. */
#include "ptx2spv/module/bodies.h"
#include "ptx2spv/syntax/opcodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define REGISTERS                                                                                                                          \
    ".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<4>; .reg .v4 .f32 quad;\n"

/* One parsed text; to be freed by finish(). */
struct parsed {
    struct ct_compilation compilation;
    const struct ptx_module *module;
    char *text;
    struct ct_source source;
};

static void on_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    (void)user;
    fail_msg("%u:%u: %s", diagnostic->line, diagnostic->column, diagnostic->text);
}

static void run(struct parsed *parsed)
{
    if (setjmp(parsed->compilation.exhausted))
        fail_msg("out of memory");
    parsed->module = ptx_parse(&parsed->compilation, 0, ct_body_note_system);
}

static struct parsed *parse(const char *text)
{
    struct parsed *parsed = calloc(1, sizeof *parsed);

    assert_non_null(parsed);
    parsed->compilation.arena.on_exhausted = parsed->compilation.scratch.on_exhausted = parsed->compilation.bodies.on_exhausted =
        &parsed->compilation.exhausted;
    parsed->compilation.options.on_diagnostic = on_diagnostic;
    parsed->text = strdup(text);
    parsed->source = (struct ct_source){NULL, parsed->text, strlen(text)};
    parsed->compilation.sources = &parsed->source;
    parsed->compilation.n_sources = 1;
    run(parsed);
    ct_arena_finish(&parsed->compilation.scratch); /* the tree must not refer to this memory */
    ct_arena_finish(&parsed->compilation.bodies);
    assert_non_null(parsed->module);
    return parsed;
}

/* The body of a function, parsed again. */
static const struct ptx_body *body_of(struct parsed *parsed, const struct ptx_function *function)
{
    const struct ptx_body *body;

    if (setjmp(parsed->compilation.exhausted))
        fail_msg("out of memory");
    body = ptx_parse_again(&parsed->compilation, function);
    ct_arena_finish(&parsed->compilation.scratch);
    assert_non_null(body);
    assert_int_equal(body->instructions.n, function->n_instructions);
    return body;
}

static void finish(struct parsed *parsed)
{
    ct_arena_finish(&parsed->compilation.arena);
    free(parsed->text);
    free(parsed);
}

/* A kernel with the given statements; *body is set to its body. */
static struct parsed *parse_body(const char *statements, const struct ptx_body **body)
{
    char text[4096];
    struct parsed *parsed;

    snprintf(text, sizeof text, "%s%s%s%s\n}\n", HEAD,
             ".global .align 4 .u32 g[4]; .shared .b32 s[8];\n.visible .entry k(.param .u64 out)\n{\n", REGISTERS, statements);
    parsed = parse(text);
    *body = body_of(parsed, parsed->module->functions.v[parsed->module->functions.n - 1]);
    return parsed;
}

static const struct ptx_variable *find_variable(const struct parsed *parsed, const char *name)
{
    for (uint32_t i = 0; i < parsed->module->variables.n; i++)
        if (strcmp(parsed->module->variables.v[i]->name, name) == 0)
            return parsed->module->variables.v[i];
    fail_msg("no variable %s", name);
    return NULL;
}

static void module_head(void **state)
{
    struct parsed *parsed = parse(".version 7.8\n.target sm_90a, debug\n.address_size 64\n");

    (void)state;
    assert_int_equal(parsed->module->isa_version, 78);
    assert_int_equal(parsed->module->sm, 90);
    assert_int_equal(parsed->module->address_bits, 64);
    finish(parsed);
}

/* ---- constants ---- */

static const struct {
    const char *name, *expression;
    uint64_t want;
} constants[] = {
    {"decimal", "10", 10},
    {"octal", "017", 15},
    {"hexadecimal", "0xFfU", 255},
    {"binary", "0b1011", 11},
    {"all bits", "0xFFFFFFFFFFFFFFFF", UINT64_MAX},
    {"minus", "-1", UINT64_MAX},
    {"signs", "- + - 5", 5},
    {"complement", "~0", UINT64_MAX},
    {"not", "!5 + !0", 1},
    {"product before sum", "2 + 3 * 4", 14},
    {"left to right", "20 - 8 - 4", 8},
    {"parentheses", "(2 + 3) * 4", 20},
    {"signed division", "-7 / 2", (uint64_t)-3},
    {"signed remainder", "-7 % 3", (uint64_t)-1},
    {"unsigned division", "0xFFFFFFFFFFFFFFFFU / 2", INT64_MAX},
    {"smallest by minus one", "(-9223372036854775807 - 1) / -1", (uint64_t)INT64_MIN},
    {"arithmetic shift", "-8 >> 1", (uint64_t)-4},
    {"logical shift", "(.u64) -8 >> 60", 15},
    {"shift beyond the width", "1 << 64", 0},
    {"precedence of bits", "1 | 6 & 3 ^ 8", 1 | ((6 & 3) ^ 8)},
    {"comparison", "(3 < 4) + (4 <= 4) + (5 > 6) + (5 >= 6)", 2},
    {"unsigned comparison", "-1 < 1U", 0},
    {"equality", "(3 == 3) + (3 != 3)", 1},
    {"logic", "(2 && 0) + (0 || 5)", 1},
    {"conditional", "1 ? 2 : 3 ? 4 : 5", 2},
    {"other branch", "0 ? 2 : 0 ? 4 : 5", 5},
    {"warp size", "WARP_SZ * 2", 64},
    {"comparison of floats", "1.5 < 2.5", 1},
};

static void constant_expressions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        char text[256];
        struct parsed *parsed;
        const struct ptx_variable *x;

        snprintf(text, sizeof text, HEAD ".global .u64 x = %s;\n", constants[i].expression);
        parsed = parse(text);
        x = find_variable(parsed, "x");
        if (x->n_inits != 1 || x->inits[0].bits != constants[i].want)
            fail_msg("%s: %s is %llx", constants[i].name, constants[i].expression, (unsigned long long)x->inits[0].bits);
        finish(parsed);
    }
}

static const struct {
    const char *name, *type, *literal;
    uint64_t want;
} floats[] = {
    {"single bits", "f32", "0f40490FDB", 0x40490fdb},
    {"single NaN keeps its bits", "f32", "0f7FA00001", 0x7fa00001},
    {"double bits", "f64", "0d400921FB54442D18", 0x400921fb54442d18},
    {"decimal single", "f32", "0.1", 0x3dcccccd},
    {"decimal double", "f64", "0.1", 0x3fb999999999999a},
    {"exponent", "f64", "1e300", 0x7e37e43c8800759c},
    {"negative exponent", "f32", "-25E-2", 0xbe800000},
    {"no digits after the point", "f32", "3.", 0x40400000},
    {"single to double", "f64", "0f3F800000", 0x3ff0000000000000},
    {"double to single", "f32", "0d3FF0000000000000", 0x3f800000},
    {"too large for single", "f32", "1e39", 0x7f800000},
    {"smallest denormal", "f32", "1.4e-45", 1},
    {"half the smallest is even", "f32", "0d3690000000000000", 0},
    {"half precision", "f16", "1.5", 0x3e00},
    {"half precision, tie to even", "f16", "2049.0", 0x6800},
    {"half precision, denormal", "f16", "5.9604644775390625e-8", 1},
    {"half precision, too large", "f16", "65520.0", 0x7c00},
    {"integer", "f32", "7", 0x40e00000},
    {"computed", "f64", "1.5 * 2.0 + 1.0 / 4.0", 0x400a000000000000},
};

static void floating_point_constants(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        char text[256];
        struct parsed *parsed;
        const struct ptx_variable *x;

        snprintf(text, sizeof text, HEAD ".global .%s x = %s;\n", floats[i].type, floats[i].literal);
        parsed = parse(text);
        x = find_variable(parsed, "x");
        if (x->n_inits != 1 || x->inits[0].bits != floats[i].want)
            fail_msg("%s: .%s %s is %llx", floats[i].name, floats[i].type, floats[i].literal, (unsigned long long)x->inits[0].bits);
        finish(parsed);
    }
}

/* ---- variables ---- */

static const struct {
    const char *name, *text;
    uint64_t count, size_bytes;
    uint32_t align;
} shapes[] = {
    {"scalar", ".global .u32 x;", 1, 4, 4},
    {"byte", ".global .b8 x;", 1, 1, 1},
    {"array", ".global .u16 x[5];", 5, 10, 2},
    {"dimensions", ".global .u32 x[2][3][4];", 24, 96, 4},
    {"vector", ".global .v4 .f32 x;", 4, 16, 16},
    {"array of vectors", ".global .v2 .u16 x[3];", 6, 12, 4},
    {"alignment", ".global .align 64 .b8 x[3];", 3, 3, 64},
    {"size from the initializer", ".global .u32 x[] = {1, 2, 3};", 3, 12, 4},
    {"first dimension from the initializer", ".global .u32 x[][2] = {{1}, {2, 3}};", 4, 16, 4},
    {"16 bytes", ".global .b128 x;", 1, 16, 16},
};

static void shapes_of_variables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char text[256];
        struct parsed *parsed;
        const struct ptx_variable *x;

        snprintf(text, sizeof text, HEAD "%s\n", shapes[i].text);
        parsed = parse(text);
        x = find_variable(parsed, "x");
        if (x->count != shapes[i].count || x->size_bytes != shapes[i].size_bytes || x->align != shapes[i].align)
            fail_msg("%s: %llu scalars, %llu bytes, alignment %u", shapes[i].name, (unsigned long long)x->count,
                     (unsigned long long)x->size_bytes, x->align);
        finish(parsed);
    }
}

static void nested_initializers(void **state)
{
    static const uint64_t places[] = {0, 1, 4, 5, 6}, values[] = {1, 2, 3, 4, 5};
    struct parsed *parsed = parse(HEAD ".global .u32 x[3][4] = {{1, 2}, {3, 4, 5}};\n");
    const struct ptx_variable *x = find_variable(parsed, "x");

    (void)state;
    assert_int_equal(x->n_inits, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(x->inits[i].index, places[i]);
        assert_int_equal(x->inits[i].bits, values[i]);
    }
    finish(parsed);
}

/* Braces correspond to dimensions, also those of one element, and to a vector's components. */
static void braces_of_small_dimensions(void **state)
{
    struct parsed *parsed =
        parse(HEAD ".global .u32 x[2][1] = {{1}, {2}};\n.global .u32 y = {7};\n.global .v2 .u32 z[2] = {{1, 2}, {3, 4}};\n");
    const struct ptx_variable *x = find_variable(parsed, "x"), *z = find_variable(parsed, "z");

    (void)state;
    assert_int_equal(x->n_inits, 2);
    assert_int_equal(x->inits[1].index, 1);
    assert_int_equal(find_variable(parsed, "y")->inits[0].bits, 7);
    assert_int_equal(z->n_inits, 4);
    assert_int_equal(z->inits[3].index, 3);
    finish(parsed);
}

static void addresses_in_initializers(void **state)
{
    struct parsed *parsed = parse(HEAD ".global .u32 a[4];\n.func f() { ret; }\n"
                                       ".global .u64 x[4] = {a, generic(a) + 8, a - 4, f};\n.global .u8 y[2] = {0xFF(a), 0xFF00(a)};\n");
    const struct ptx_variable *a = find_variable(parsed, "a"), *x = find_variable(parsed, "x"), *y = find_variable(parsed, "y");

    (void)state;
    assert_int_equal(x->inits[0].kind, PTX_INIT_SYMBOL);
    assert_ptr_equal(x->inits[0].variable, a);
    assert_false(x->inits[0].generic);
    assert_true(x->inits[1].generic);
    assert_int_equal(x->inits[1].bits, 8);
    assert_int_equal((int64_t)x->inits[2].bits, -4);
    assert_string_equal(x->inits[3].function->name, "f");
    assert_int_equal(y->inits[0].byte_mask_bytes, 1);
    assert_int_equal(y->inits[0].byte_shift, 0);
    assert_int_equal(y->inits[1].byte_shift, 1);
    finish(parsed);
}

static void linkage_and_attributes(void **state)
{
    struct parsed *parsed = parse(HEAD ".visible .const .u32 v;\n.weak .global .u32 w;\n.common .global .u32 c;\n"
                                       ".extern .shared .align 16 .b8 s[];\n.global .attribute(.managed) .u32 m;\n"
                                       ".extern .global .u32 d[];\n.visible .global .u32 d[3] = {1};\n");

    (void)state;
    assert_int_equal(find_variable(parsed, "v")->linkage, PTX_LINK_VISIBLE);
    assert_int_equal(find_variable(parsed, "v")->space, PTX_SPACE_CONST);
    assert_int_equal(find_variable(parsed, "w")->linkage, PTX_LINK_WEAK);
    assert_int_equal(find_variable(parsed, "c")->linkage, PTX_LINK_COMMON);
    assert_true(find_variable(parsed, "s")->incomplete);
    assert_int_equal(find_variable(parsed, "s")->linkage, PTX_LINK_EXTERN);
    assert_true(find_variable(parsed, "m")->managed);
    assert_int_equal(find_variable(parsed, "d")->linkage, PTX_LINK_VISIBLE); /* the definition takes precedence over the declaration */
    assert_int_equal(find_variable(parsed, "d")->count, 3);
    finish(parsed);
}

/* ---- names and scopes ---- */

static void register_ranges(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed =
        parse_body("mov.b32 %r7, %r0; { .reg .f32 %r<3>; mov.f32 %r2, 0f00000000; mov.b32 %r7, 1; } mov.b32 %r2, %r7; ret;", &k);

    (void)state;
    assert_string_equal(k->instructions.v[0].operands[0].reg->name, "%r7");
    assert_int_equal(k->instructions.v[1].operands[0].reg->type, PTX_F32); /* the inner range hides the outer one up to %r2 */
    assert_ptr_equal(k->instructions.v[2].operands[0].reg, k->instructions.v[0].operands[0].reg);
    assert_int_equal(k->instructions.v[3].operands[0].reg->type, PTX_B32);
    assert_ptr_equal(k->instructions.v[3].operands[1].reg, k->instructions.v[0].operands[0].reg);
    for (uint32_t i = 0; i < k->registers.n; i++)
        assert_int_equal(k->registers.v[i]->index, i);
    finish(parsed);
}

static void long_and_odd_names(void **state)
{
    char text[4096], name[2000];
    struct parsed *parsed;

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    snprintf(text, sizeof text, HEAD ".global .u32 %s;\n.global .u32 $dollar, _under, %%percent, a$b_1;\n", name);
    parsed = parse(text);
    find_variable(parsed, name);
    find_variable(parsed, "$dollar");
    find_variable(parsed, "_under");
    find_variable(parsed, "%percent");
    find_variable(parsed, "a$b_1");
    finish(parsed);
}

static void labels_and_their_scopes(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body("bra END; L: { L: bra L; bra END; { bra M; } M: } bra L; END: ret;", &k);

    (void)state;
    assert_int_equal(k->instructions.n, 6);
    assert_int_equal(k->instructions.v[0].operands[0].label->statement, 5); /* END */
    assert_int_equal(k->instructions.v[1].operands[0].label->statement, 1); /* the inner L */
    assert_int_equal(k->instructions.v[2].operands[0].label->statement, 5);
    assert_int_equal(k->instructions.v[3].operands[0].label->statement, 4); /* M, one scope out */
    assert_int_equal(k->instructions.v[4].operands[0].label->statement, 1); /* the outer L */
    assert_ptr_not_equal(k->instructions.v[4].operands[0].label, k->instructions.v[1].operands[0].label);
    for (uint32_t i = 0; i < k->instructions.n - 1; i++)
        assert_true(k->instructions.v[i].operands[0].label->defined);
    finish(parsed);
}

static void label_at_the_end(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body("bra END; ret; END:", &k);

    (void)state;
    assert_int_equal(k->instructions.v[0].operands[0].label->statement, k->instructions.n);
    finish(parsed);
}

static void branch_targets(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body("A: ret; list: .branchtargets A, B, A; brx.idx %r1, list; B: ret;", &k);
    const struct ptx_targets *targets = k->instructions.v[1].operands[1].targets;

    (void)state;
    assert_int_equal(k->instructions.v[1].operands[1].kind, PTX_OPND_SYMBOL);
    assert_int_equal(targets->n, 3);
    assert_int_equal(targets->labels[0]->statement, 0);
    assert_int_equal(targets->labels[1]->statement, 2);
    assert_ptr_equal(targets->labels[2], targets->labels[0]);
    finish(parsed);
}

/* ---- instructions ---- */

static void modifiers_in_any_order(void **state)
{
    static const char *const pairs[][2] = {
        {"vote.sync.ballot.b32 %r1, %p1, -1;", "vote.ballot.sync.b32 %r1, %p1, -1;"},
        {"atom.add.sys.global.u32 %r1, [%rd1], 1;", "atom.global.sys.add.u32 %r1, [%rd1], 1;"},
        {"ld.volatile.global.u32 %r1, [%rd1];", "ld.global.volatile.u32 %r1, [%rd1];"},
        {"st.release.gpu.global.u32 [%rd1], %r1;", "st.global.gpu.release.u32 [%rd1], %r1;"},
        {"fma.rn.ftz.sat.f32 %f1, %f2, %f3, %f4;", "fma.sat.ftz.rn.f32 %f1, %f2, %f3, %f4;"},
        {"shfl.sync.up.b32 %r1, %r2, 1, 0, -1;", "shfl.up.sync.b32 %r1, %r2, 1, 0, -1;"},
        {"bar.warp.sync -1;", "bar.sync.warp -1;"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct ptx_body *a, *b;
        struct parsed *left = parse_body(pairs[i][0], &a), *right = parse_body(pairs[i][1], &b);

        if (memcmp(&a->instructions.v[0].mods, &b->instructions.v[0].mods, sizeof a->instructions.v[0].mods) != 0)
            fail_msg("%s is not %s", pairs[i][1], pairs[i][0]);
        finish(left);
        finish(right);
    }
}

static void words_of_two_meanings(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body("setp.lo.u32 %p1, %r1, %r2; mul.lo.u32 %r1, %r2, %r3; vote.sync.uni.pred %p1, %p2, -1; bra.uni L; L:"
                                       "bar.red.and.pred %p1, 0, %p2; setp.eq.and.b32 %p1, %r1, %r2, %p2; min.NaN.f32 %f1, %f2, %f3; "
                                       "setp.nan.f32 %p1, %f1, %f2;",
                                       &k);

    (void)state;
    assert_int_equal(k->instructions.v[0].mods.compare, PTX_LO);
    assert_int_equal(k->instructions.v[0].mods.half, PTX_HALF_NONE);
    assert_int_equal(k->instructions.v[1].mods.half, PTX_LO_HALF);
    assert_int_equal(k->instructions.v[2].mods.mode, PTX_MODE_UNI);
    assert_false(k->instructions.v[2].mods.uni);
    assert_true(k->instructions.v[3].mods.uni);
    assert_int_equal(k->instructions.v[4].mods.mode, PTX_MODE_RED);
    assert_int_equal(k->instructions.v[4].mods.operation, PTX_AND);
    assert_int_equal(k->instructions.v[5].mods.operation, PTX_AND);
    assert_true(k->instructions.v[6].mods.nan);
    assert_int_equal(k->instructions.v[7].mods.compare, PTX_NAN);
    finish(parsed);
}

static void hints_without_effect(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body("ld.global.nc.L1::no_allocate.L2::256B.v2.f32 {%f1, %f2}, [%rd1]; st.global.cs.u32 [%rd1], %r1;"
                                       "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2; ld.global.cv.u32 %r1, [%rd1];",
                                       &k);

    (void)state;
    assert_true(k->instructions.v[0].mods.nc);
    assert_int_equal(k->instructions.v[0].mods.vector, 2);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(k->instructions.v[i].mods.unsupported, 0);
    assert_int_equal(k->instructions.v[3].mods.semantics, PTX_VOLATILE);
    finish(parsed);
}

static const struct {
    const char *statement, *word;
} refused[] = {
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 0, 1, 1;", "m64n8k16"},
    {"add.f32.f16 %f1, %rs1, %f2;", "f16"},
    {"st.async.weak.global.u32 [%rd1], %r1, [%rd2];", "async"},
    {"mov.u32 %r1, %envreg3;", "mov.u32"},
};

/* Legal PTX for which the tree has no member: the module is parsed, and the instruction records the unsupported word. */
static void unsupported_words_are_marked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct ptx_body *k;
        struct parsed *parsed = parse_body(refused[i].statement, &k);
        unsigned length;
        const char *word;

        if (!k->instructions.v[0].mods.unsupported)
            fail_msg("%s is not marked", refused[i].statement);
        word = ptx_unsupported_word(&k->instructions.v[0], &length);
        if (length != strlen(refused[i].word) || memcmp(word, refused[i].word, length) != 0)
            fail_msg("%s: the word is %.*s", refused[i].statement, (int)length, word);
        finish(parsed);
    }
}

static void operand_kinds(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body(
        "@!%p1 mov.u32 %r1, %tid.y; mov.u32 %r1, -5; mov.f32 %f1, 0f3F800000; mov.u64 %rd1, g + 8; ld.global.u32 %r1, [%rd1 + -4];"
        "ld.global.u32 %r1, [g+4]; ld.global.u32 %r1, g[2]; mov.b64 {%r1, _}, %rd1; setp.ne.s32 %p1|%p2, %r1, WARP_SZ;"
        "mov.f32 %f1, quad.z; mov.u32 %r1, WARP_SZ - 1; ld.shared.u32 %r1, [16]; selp.b32 %r1, 1, 0, %p1;"
        "add.f32 %f1, %f2, -1.5;",
        &k);
    const struct ptx_instruction *insn = k->instructions.v;

    (void)state;
    assert_non_null(insn[0].guard);
    assert_true(insn[0].guard_negated);
    assert_int_equal(insn[0].operands[1].kind, PTX_OPND_SREG);
    assert_int_equal(insn[0].operands[1].sreg, PTX_SREG_TID);
    assert_int_equal(insn[0].operands[1].component, 1);
    assert_int_equal((int64_t)insn[1].operands[1].bits, -5);
    assert_true(insn[2].operands[1].is_single);
    assert_int_equal(insn[2].operands[1].single_bits, 0x3f800000);
    assert_int_equal(insn[2].operands[1].bits, 0x3ff0000000000000);
    assert_int_equal(insn[3].operands[1].kind, PTX_OPND_ADDRESS);
    assert_false(insn[3].operands[1].bracketed);
    assert_int_equal(insn[3].operands[1].offset, 8);
    assert_true(insn[4].operands[1].bracketed);
    assert_string_equal(insn[4].operands[1].reg->name, "%rd1");
    assert_int_equal(insn[4].operands[1].offset, -4);
    assert_string_equal(insn[5].operands[1].variable->name, "g");
    assert_int_equal(insn[6].operands[1].offset, 8);
    assert_true(insn[6].operands[1].bracketed);
    assert_int_equal(insn[7].operands[0].n_items, 2);
    assert_int_equal(insn[7].operands[0].items[1].kind, PTX_OPND_SINK);
    assert_int_equal(insn[8].operands[0].kind, PTX_OPND_PAIR);
    assert_int_equal(insn[8].operands[2].kind, PTX_OPND_INT);
    assert_int_equal(insn[8].operands[2].bits, 32);
    assert_int_equal(insn[9].operands[1].component, 2);
    assert_int_equal(insn[10].operands[1].kind, PTX_OPND_INT);
    assert_int_equal(insn[10].operands[1].bits, 31);
    assert_null(insn[11].operands[1].reg);
    assert_null(insn[11].operands[1].variable);
    assert_int_equal(insn[11].operands[1].offset, 16);
    assert_int_equal(insn[13].operands[2].bits, 0xbff8000000000000);
    finish(parsed);
}

static void source_places(void **state)
{
    const struct ptx_body *k;
    struct parsed *parsed = parse_body("add.u32 %r1,\n  %r2, %r3;", &k); /* the statements begin in line 8 */

    (void)state;
    assert_int_equal(k->instructions.v[0].where.line, 8);
    assert_int_equal(k->instructions.v[0].where.column, 1);
    assert_int_equal(k->instructions.v[0].operands[1].where.line, 9);
    assert_int_equal(k->instructions.v[0].operands[1].where.column, 3);
    assert_string_equal(k->instructions.v[0].text, "add.u32");
    finish(parsed);
}

/* ---- functions ---- */

static void calls(void **state)
{
    struct parsed *parsed = parse(HEAD ".func (.param .b32 r) f(.param .b32 a, .param .b64 b);\n.func h;\n"
                                       ".entry k()\n{\n.reg .b64 %rd<3>;\n.param .b32 x; .param .b32 a; .param .b64 b;\n"
                                       "call.uni (x), f, (a, b);\ncall h;\n"
                                       "p: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);\ncall (x), %rd1, (a, b), p;\n"
                                       "t: .calltargets f;\ncall (x), %rd1, (a, b), t;\nret;\n}\n");
    const struct ptx_function *f = parsed->module->functions.v[0], *k = parsed->module->functions.v[2];
    const struct ptx_instruction *insn = body_of(parsed, k)->instructions.v;

    (void)state;
    assert_int_equal(f->n_params, 2);
    assert_int_equal(f->n_results, 1);
    assert_false(f->has_body);
    assert_int_equal(insn[0].operands[0].n_items, 1);
    assert_string_equal(insn[0].operands[0].items[0].variable->name, "x");
    assert_ptr_equal(insn[0].operands[1].function, f);
    assert_int_equal(insn[0].operands[2].n_items, 2);
    assert_true(insn[0].mods.uni);
    assert_int_equal(insn[1].operands[0].kind, PTX_OPND_NONE);
    assert_int_equal(insn[1].operands[1].kind, PTX_OPND_FUNC);
    assert_int_equal(insn[1].operands[2].kind, PTX_OPND_NONE);
    assert_int_equal(insn[2].n_operands, 4);
    assert_int_equal(insn[2].operands[1].kind, PTX_OPND_REG);
    assert_true(insn[2].operands[3].function->is_prototype);
    assert_int_equal(insn[2].operands[3].function->n_params, 2);
    assert_ptr_equal(insn[3].operands[3].targets->functions[0], f);
    finish(parsed);
}

static void declaration_then_definition(void **state)
{
    struct parsed *parsed =
        parse(HEAD ".func (.param .b32 r) f(.param .b32 a);\n.entry k() { .param .b32 x; .param .b32 y; call (x), f, (y); ret; }\n"
                   ".func (.param .b32 r) f(.param .b32 a) { ret; }\n");
    const struct ptx_function *k = parsed->module->functions.v[1];

    (void)state;
    assert_int_equal(parsed->module->functions.n, 2);
    assert_true(body_of(parsed, k)->instructions.v[0].operands[1].function->has_body);
    finish(parsed);
}

static void directives_of_kernels(void **state)
{
    struct parsed *parsed = parse(HEAD ".visible .entry k(.param .u64 .ptr .global .align 8 a)\n.maxntid 16, 4\n.reqntid 16, 4, 2\n"
                                       ".minnctapersm 3\n.maxnreg 40\n.pragma \"nounroll\";\n{ ret; }\n.entry j .noreturn { exit; }\n");
    const struct ptx_function *k = parsed->module->functions.v[0], *j = parsed->module->functions.v[1];

    (void)state;
    assert_int_equal(k->linkage, PTX_LINK_VISIBLE);
    assert_int_equal(k->max_ntid[0] * 100 + k->max_ntid[1] * 10 + k->max_ntid[2], 1641);
    assert_int_equal(k->req_ntid[2], 2);
    assert_int_equal(k->min_nctapersm, 3);
    assert_int_equal(k->max_nreg, 40);
    assert_true(k->is_entry);
    assert_true(j->noreturn);
    assert_int_equal(j->n_params, 0);
    finish(parsed);
}

static void registers_as_parameters(void **state)
{
    struct parsed *parsed = parse(HEAD ".func (.reg .u32 r) f(.reg .u32 a, .param .u32 b) { add.u32 r, a, 1; ret; }\n");
    const struct ptx_function *f = parsed->module->functions.v[0];
    const struct ptx_body *body = body_of(parsed, f);

    (void)state;
    assert_ptr_equal(body->instructions.v[0].operands[0].reg, f->result_regs[0]);
    assert_ptr_equal(body->instructions.v[0].operands[1].reg, f->param_regs[0]);
    assert_null(f->param_regs[1]);
    assert_int_equal(body->registers.n, 2);
    for (uint32_t i = 0; i < body->registers.n; i++)
        assert_int_equal(body->registers.v[i]->index, i);
    finish(parsed);
}

static void aliases(void **state)
{
    struct parsed *parsed = parse(HEAD ".func f(.param .b32 a) { ret; }\n.func g(.param .b32 a);\n.alias g, f;\n");

    (void)state;
    assert_string_equal(parsed->module->functions.v[1]->name, "g");
    assert_true(parsed->module->functions.v[1]->has_body);
    assert_int_equal(body_of(parsed, parsed->module->functions.v[1])->instructions.n, 1);
    finish(parsed);
}

/* Those in .global and .const space are the module's; the initial values are not changed when the body is parsed again. */
static void variables_of_bodies(void **state)
{
    struct parsed *parsed =
        parse(HEAD ".global .u32 outside;\n.func f();\n.entry k() { .global .align 8 .u64 a[2] = {outside, f}; .shared .b32 s[4];\n"
                   "{ .local .b32 l; .const .u32 c = 7; .reg .b64 %x; mov.u64 %x, a; mov.u64 %x, c; mov.u64 %x, s; mov.u64 %x, l;\n"
                   "mov.u64 %x, outside; mov.u64 %x, f; mov.u64 %x, outside; } ret; }\n");
    const struct ptx_function *k = parsed->module->functions.v[1];
    const struct ptx_init *inits = k->variables.v[0]->inits;
    const struct ptx_body *first = body_of(parsed, k), *second = body_of(parsed, k);

    (void)state;
    assert_int_equal(k->variables.n, 2);
    assert_int_equal(first->variables.n, 2);
    assert_int_equal(k->references.n, 2);
    assert_ptr_equal(k->references.v[0].variable, parsed->module->variables.v[0]);
    assert_ptr_equal(k->references.v[1].function, parsed->module->functions.v[0]);
    assert_true(k->references.v[1].takes_address);
    for (int again = 0; again < 2; again++) {
        const struct ptx_instruction *insn = (again ? second : first)->instructions.v;

        for (uint32_t i = 0; i < 2; i++)
            assert_ptr_equal(insn[i].operands[1].variable, k->variables.v[i]);
        for (uint32_t i = 2; i < 4; i++)
            assert_ptr_equal(insn[i].operands[1].variable, (again ? second : first)->variables.v[i - 2]);
        assert_ptr_equal(insn[4].operands[1].variable, parsed->module->variables.v[0]);
        assert_ptr_equal(insn[5].operands[1].function, parsed->module->functions.v[0]);
    }
    assert_ptr_equal(k->variables.v[0]->inits, inits);
    assert_int_equal(k->variables.v[0]->n_inits, 2);
    assert_ptr_equal(inits[0].variable, parsed->module->variables.v[0]);
    assert_int_equal(k->variables.v[1]->inits[0].bits, 7);
    finish(parsed);
}

static void old_parameters_in_bodies(void **state)
{
    struct parsed *parsed =
        parse(".version 1.3\n.target sm_13\n.entry k { .param .u32 a; .reg .u32 %r<3>; .param .u64 b; ld.param.u32 %r1, [a];\n"
              "ld.param.u32 %r2, [b]; exit; }\n");
    const struct ptx_function *k = parsed->module->functions.v[0];
    const struct ptx_body *body = body_of(parsed, k);

    (void)state;
    assert_int_equal(k->n_params, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_ptr_equal(body->instructions.v[i].operands[1].variable, k->params[i]);
    finish(parsed);
}

static void old_versions_without_modifiers(void **state)
{
    struct parsed *parsed = parse(".version 1.3\n.target sm_13\n.entry k { .reg .f32 %f<3>; .reg .u16 %h<2>; sin.f32 %f1, %f2;\n"
                                  "div.f32 %f1, %f2, %f1; mov.u16 %h1, %tid.x; exit; }\n@@DWARF .byte 1\n");

    (void)state;
    assert_int_equal(parsed->module->isa_version, 13);
    assert_int_equal(body_of(parsed, parsed->module->functions.v[0])->instructions.n, 4);
    finish(parsed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(module_head),
        cmocka_unit_test(constant_expressions),
        cmocka_unit_test(floating_point_constants),
        cmocka_unit_test(shapes_of_variables),
        cmocka_unit_test(nested_initializers),
        cmocka_unit_test(braces_of_small_dimensions),
        cmocka_unit_test(addresses_in_initializers),
        cmocka_unit_test(linkage_and_attributes),
        cmocka_unit_test(register_ranges),
        cmocka_unit_test(long_and_odd_names),
        cmocka_unit_test(labels_and_their_scopes),
        cmocka_unit_test(label_at_the_end),
        cmocka_unit_test(branch_targets),
        cmocka_unit_test(modifiers_in_any_order),
        cmocka_unit_test(words_of_two_meanings),
        cmocka_unit_test(hints_without_effect),
        cmocka_unit_test(unsupported_words_are_marked),
        cmocka_unit_test(operand_kinds),
        cmocka_unit_test(source_places),
        cmocka_unit_test(calls),
        cmocka_unit_test(declaration_then_definition),
        cmocka_unit_test(directives_of_kernels),
        cmocka_unit_test(registers_as_parameters),
        cmocka_unit_test(variables_of_bodies),
        cmocka_unit_test(old_parameters_in_bodies),
        cmocka_unit_test(aliases),
        cmocka_unit_test(old_versions_without_modifiers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
