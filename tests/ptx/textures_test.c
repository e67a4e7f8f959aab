/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface instructions (PTX ISA, "Texture Instructions", "Surface Instructions"): every form compiles to valid code for both
 * dialects, and forms that are not supported are refused as such. The verdicts agree with those of ptxas 13.0 for all of these rows, except
 * that ptxas takes the ones in `unsupported`. What the instructions fetch and store is tested in tests/textures. */
#include "spirv_check.h"

#include <cuttle/ptx2spv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <string.h>

static const struct ptx2spv_target targets[] = {
    {.dialect = PTX2SPV_VULKAN,
     .warp_form = PTX2SPV_WARP_COLLECTIVE,
     .subgroup_size = 8,
     .push_constant_bytes = 128,
     .shared_bytes = 32768,
     .max_block_threads = 1024,
     .float64 = 1,
     .int64 = 1,
     .int16 = 1,
     .int8 = 1,
     .storage8 = 1,
     .storage16 = 1,
     .memory_model_device_scope = 1,
     .atomic_int64_global = 1},
    {.dialect = PTX2SPV_OPENCL,
     .warp_form = PTX2SPV_WARP_COLLECTIVE,
     .subgroup_size = 1,
     .shared_bytes = 32768,
     .max_block_threads = 1024,
     .int64 = 1,
     .int16 = 1,
     .int8 = 1,
     .storage8 = 1,
     .storage16 = 1,
     .atomic_int64_global = 1}, /* without 64-bit floats */
    {.dialect = PTX2SPV_VULKAN,
     .warp_form = PTX2SPV_WARP_NATIVE,
     .subgroup_size = 32,
     .push_constant_bytes = 256,
     .shared_bytes = 49152,
     .max_block_threads = 1024,
     .float64 = 1,
     .int64 = 1,
     .int16 = 1,
     .int8 = 1,
     .storage8 = 1,
     .storage16 = 1,
     .memory_model_device_scope = 1,
     .atomic_int64_global = 1,
     .sampled_images = 1},
};
enum { TARGET_WITH_IMAGES = 2 };

struct message {
    char text[256];
    bool uses_images, has_varying_index; /* of a kernel that compiles */
};

static void keep(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct message *message = user;

    snprintf(message->text, sizeof message->text, "%.200s", diagnostic->text);
}

static bool has_decoration(const struct ptx2spv_kernel *kernel, uint32_t decoration)
{
    for (size_t at = 5; at < kernel->n_words; at += kernel->words[at] >> 16)
        if ((kernel->words[at] & 0xffff) == SpvOpDecorate && kernel->words[at + 2] == decoration)
            return true;
    return false;
}

/* Compiles a kernel with one instruction for a target. The registers: f<8>, r<8>, h<4> of 16 bits, d<4> of 64, p; d1 is a handle. */
static enum ptx2spv_status compile(const char *instruction, const struct ptx2spv_target *target, struct message *why)
{
    const struct ptx2spv_options options = {.on_diagnostic = keep, .user = why};
    struct ptx2spv_module *module = NULL;
    struct ptx2spv_kernel kernel;
    enum ptx2spv_status status;
    char text[1024];

    snprintf(
        text, sizeof text,
        ".version 7.1\n.target sm_75\n.address_size 64\n.global .texref t;\n.global .surfref s;\n.global .texref a[4];\n.global .u64 g;\n"
        ".visible .entry k(.param .u64 out, .param .u64 object)\n{.reg .f32 f<8>;.reg .b32 r<8>;.reg .b16 h<4>;.reg .b64 d<4>;.reg "
        ".pred p;\n"
        "ld.param.u64 d0,[out];ld.param.u64 d1,[object];mov.u32 r0,%%tid.x;cvt.rn.f32.u32 f0,r0;\n"
        "%s\nst.global.v4.f32 [d0],{f0,f1,f2,f3};st.global.v4.u32 [d0+16],{r0,r1,r2,r3};ret;}\n",
        instruction);
    *why = (struct message){0};
    status = ptx2spv_module_create(text, strlen(text), &options, &module);
    if (status != PTX2SPV_OK)
        return status;
    status = ptx2spv_kernel_compile(module, 0, target, &options, &kernel);
    if (status == PTX2SPV_OK) {
        why->uses_images = kernel.info.uses_images;
        why->has_varying_index = has_decoration(&kernel, SpvDecorationNonUniform);
        if (!spirv_check(kernel.words, kernel.n_words, why->text, sizeof why->text))
            status = PTX2SPV_INTERNAL;
        ptx2spv_kernel_finish(&kernel);
    }
    ptx2spv_module_destroy(module);
    return status;
}

static void expect(const char *instruction, enum ptx2spv_status wanted)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct message why;
        const enum ptx2spv_status status = compile(instruction, &targets[i], &why);

        if (status != wanted)
            fail_msg("%s: status %d, expected %d %s", instruction, (int)status, (int)wanted, why.text);
    }
}

static void expect_all(const char *const *instructions, size_t n, enum ptx2spv_status wanted)
{
    for (size_t i = 0; i < n; i++)
        expect(instructions[i], wanted);
}

static const struct {
    const char *name, *floats, *integers, *derivative, *offset; /* vectors; NULL: there is no such form */
    unsigned gathers, compares, surface, reduces;
} geometries[] = {
    {"1d", "{f0}", "{r0}", "{f1}", "{r4}", 0, 1, 1, 1},
    {"2d", "{f0,f1}", "{r0,r1}", "{f1,f2}", "{r4,-3}", 1, 1, 1, 1},
    {"3d", "{f0,f1,f2,f2}", "{r0,r1,r2,r2}", "{f1,f2,f3,f3}", "{r4,r5,7,7}", 0, 0, 1, 1},
    {"a1d", "{r0,f0}", "{r0,r1}", "{f1}", "{-8}", 0, 1, 1, 0},
    {"a2d", "{r0,f0,f1,f1}", "{r0,r1,r2,r2}", "{f1,f2}", "{r4,r5}", 1, 1, 1, 0},
    {"cube", "{f0,f1,f2,f2}", NULL, "{f1,f2,f3,f3}", NULL, 1, 1, 0, 0},
    {"acube", "{r0,f0,f1,f2}", NULL, "{f1,f2,f3,f3}", NULL, 1, 1, 0, 0},
};
#define N_GEOMETRIES (sizeof geometries / sizeof *geometries)

static void format_and_expect(enum ptx2spv_status wanted, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void format_and_expect(enum ptx2spv_status wanted, const char *format, ...)
{
    char instruction[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(instruction, sizeof instruction, format, arguments);
    va_end(arguments);
    expect(instruction, wanted);
}

static void textures_compile(void **state)
{
    (void)state;
    for (size_t g = 0; g < N_GEOMETRIES; g++) {
        const char *name = geometries[g].name, *at = geometries[g].floats, *derivative = geometries[g].derivative;

        format_and_expect(PTX2SPV_OK, "tex.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s];", name, at);
        format_and_expect(PTX2SPV_OK, "tex.%s.v4.u32.f32 {r0,r1,r2,r3},[d1,%s];", name, at);
        format_and_expect(PTX2SPV_OK, "tex.base.%s.v4.s32.f32 {r0,_,r2,_},[d1,%s];", name, at);
        format_and_expect(PTX2SPV_OK, "tex.%s.v4.f32.f32 {f0,f1,f2,f3}|p,[d1,%s];", name, at);
        format_and_expect(PTX2SPV_OK, "setp.eq.u32 p,r0,3; @!p tex.level.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],f1;", name, at);
        if (derivative)
            format_and_expect(PTX2SPV_OK, "tex.grad.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],%s,%s;", name, at, derivative, derivative);
        if (geometries[g].integers)
            format_and_expect(PTX2SPV_OK, "tex.%s.v4.f32.s32 {f0,f1,f2,f3},[d1,%s];", name, geometries[g].integers);
        for (const char *channel = "rgba"; geometries[g].gathers && *channel; channel++)
            format_and_expect(PTX2SPV_OK, "tld4.%c.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s];", *channel, name, at);
    }
}

/* Offsets, also of integer coordinates, and values to compare with depths. */
static void optional_operands_compile(void **state)
{
    (void)state;
    for (size_t g = 0; g < N_GEOMETRIES; g++) {
        const char *name = geometries[g].name, *at = geometries[g].floats, *d = geometries[g].derivative, *offset = geometries[g].offset;
        const enum ptx2spv_status offsets = offset ? PTX2SPV_OK : PTX2SPV_INVALID_PTX;
        const enum ptx2spv_status compares = geometries[g].compares ? PTX2SPV_OK : PTX2SPV_INVALID_PTX;
        const enum ptx2spv_status both = offset ? compares : PTX2SPV_INVALID_PTX;
        const char *o = offset ? offset : "{r4,r5,r6,r6}";

        format_and_expect(offsets, "tex.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],%s;", name, at, o);
        format_and_expect(compares, "tex.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],f4;", name, at);
        format_and_expect(both, "tex.%s.v4.f32.f32 {f0,f1,f2,f3}|p,[d1,%s],%s,f4;", name, at, o);
        format_and_expect(offsets, "tex.level.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],f1,%s;", name, at, o);
        format_and_expect(both, "tex.level.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],f1,%s,0f3f000000;", name, at, o);
        if (geometries[g].gathers) {
            format_and_expect(offsets, "tld4.g.%s.v4.u32.f32 {r0,r1,r2,r3},[d1,%s],%s;", name, at, o);
            format_and_expect(compares, "tld4.r.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],f4;", name, at);
            format_and_expect(both, "tld4.b.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],%s,f4;", name, at, o);
        }
        if (!geometries[g].integers)
            continue;
        format_and_expect(PTX2SPV_OK, "tex.grad.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],%s,%s,%s;", name, at, d, d, o);
        format_and_expect(compares, "tex.grad.%s.v4.f32.f32 {f0,f1,f2,f3},[d1,%s],%s,%s,%s,f4;", name, at, d, d, o);
        format_and_expect(PTX2SPV_OK, "tex.%s.v4.s32.s32 {r0,r1,r2,r3},[d1,%s],%s;", name, geometries[g].integers, o);
        format_and_expect(PTX2SPV_OK, "tex.level.%s.v4.f32.s32 {f0,f1,f2,f3},[d1,%s],r3,%s;", name, geometries[g].integers, o);
        format_and_expect(PTX2SPV_INVALID_PTX, "tex.%s.v4.f32.s32 {f0,f1,f2,f3},[d1,%s],f4;", name, geometries[g].integers);
    }
}

static void halves_compile(void **state)
{
    (void)state;
    for (size_t g = 0; g < N_GEOMETRIES; g++) {
        const char *name = geometries[g].name, *at = geometries[g].floats;

        format_and_expect(PTX2SPV_OK, "tex.%s.v2.f16x2.f32 {r0,r1},[d1,%s];", name, at);
        format_and_expect(PTX2SPV_OK, "tex.%s.v4.f16.f32 {h0,_,h2,h3}|p,[d1,%s];", name, at);
        format_and_expect(PTX2SPV_OK, "tex.level.%s.v2.f16x2.f32 {r0,r1},[d1,%s],f3;", name, at);
        if (geometries[g].integers)
            format_and_expect(PTX2SPV_OK, "tex.%s.v2.f16x2.s32 {r0,r1},[d1,%s],%s;", name, geometries[g].integers, geometries[g].offset);
    }
}

static void samples_compile(void **state)
{
    (void)state;
    for (int layered = 0; layered < 2; layered++) {
        const char *name = layered ? "a2dms" : "2dms";

        format_and_expect(PTX2SPV_OK, "tex.%s.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r0,r1,r1}];", name);
        format_and_expect(PTX2SPV_OK, "tex.base.%s.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r0,r1,r1}],{r1,r2};", name);
        format_and_expect(PTX2SPV_OK, "tex.%s.v2.f16x2.s32 {r0,r1},[d1,{r0,r0,r1,r1}];", name);
    }
}

static void surfaces_compile(void **state)
{
    static const struct {
        const char *type, *data;
    } elements[] = {{"b8", "h0"},
                    {"b16", "h0"},
                    {"b32", "r0"},
                    {"b64", "d2"},
                    {"v2.b8", "{h0,h1}"},
                    {"v2.b16", "{h0,h1}"},
                    {"v2.b32", "{r0,r1}"},
                    {"v2.b64", "{d2,d3}"},
                    {"v4.b8", "{h0,h1,h2,h3}"},
                    {"v4.b16", "{h0,h1,h2,h3}"},
                    {"v4.b32", "{r0,r1,r2,r3}"}};
    static const char *const boundaries[] = {"trap", "clamp", "zero"};

    (void)state;
    for (size_t g = 0; g < N_GEOMETRIES; g++) {
        const char *name = geometries[g].name, *at = geometries[g].integers;

        for (size_t i = 0; geometries[g].surface && i < sizeof elements / sizeof *elements; i++) {
            const char *boundary = boundaries[i % 3];

            format_and_expect(PTX2SPV_OK, "suld.b.%s.%s.%s %s,[d1,%s];", name, elements[i].type, boundary, elements[i].data, at);
            format_and_expect(PTX2SPV_OK, "sust.b.%s.%s.%s [d1,%s],%s;", name, elements[i].type, boundary, at, elements[i].data);
        }
        if (geometries[g].surface)
            format_and_expect(PTX2SPV_OK, "sust.p.%s.v4.b32.clamp [d1,%s],{r0,r1,r2,r3};", name, at);
        if (geometries[g].reduces)
            format_and_expect(PTX2SPV_OK, "sured.b.add.%s.u32.trap [d1,%s],r1; sured.b.min.%s.s32.zero [d1,%s],r1;", name, at, name, at);
    }
}

static void queries_compile(void **state)
{
    static const char *const queries[] = {"width",      "height",      "depth",       "channel_data_type", "channel_order",
                                          "array_size", "addr_mode_0", "filter_mode", "num_mipmap_levels", "normalized_coords"};

    (void)state;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        format_and_expect(PTX2SPV_OK, "txq.%s.b32 r0,[d1];", queries[i]);
    for (size_t i = 0; i < 6; i++)
        format_and_expect(PTX2SPV_OK, "suq.%s.b32 r0,[d1];", queries[i]);
    expect("txq.level.width.b32 r0,[d1],r1;", PTX2SPV_OK);
}

static void references_compile(void **state)
{
    static const char *const good[] = {
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[t,{f0,f1}];",
        "tex.1d.v4.f32.s32 {f0,f1,f2,f3},[t,{r0}];",
        "tld4.r.2d.v4.f32.f32 {f0,f1,f2,f3},[t,{f0,f1}];",
        "txq.width.b32 r0,[t];",
        "suld.b.2d.b32.trap {r0},[s,{r0,r1}];",
        "sust.b.2d.b32.trap [s,{r0,r1}],{r2};",
        "suq.width.b32 r0,[s];",
        "mov.u64 d1,t;",
        "mov.u64 d1,s;",
        "mov.u64 d1,a+8;",
        "mov.u64 d1,a[2];",
        "istypep.texref p,d1;",
        "istypep.samplerref p,t;",
        "istypep.surfref p,s;",
    };
    static const char *const bad[] = {
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[s,{f0,f1}];",
        "suld.b.2d.b32.trap {r0},[t,{r0,r1}];",
        "txq.width.b32 r0,[s];",
        "suq.width.b32 r0,[t];",
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[g,{f0,f1}];",
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[a,{f0,f1}];",
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[t+8,{f0,f1}];",
        "istypep.texref p,g;",
    };

    (void)state;
    expect_all(good, sizeof good / sizeof *good, PTX2SPV_OK);
    expect_all(bad, sizeof bad / sizeof *bad, PTX2SPV_INVALID_PTX);
}

static void other_forms_are_refused(void **state)
{
    static const char *const unsupported[] = {
        "tex.grad.2d.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r1}],{f0,f1},{f0,f1};", /* derivatives at integer coordinates */
    };

    (void)state;
    expect_all(unsupported, sizeof unsupported / sizeof *unsupported, PTX2SPV_UNSUPPORTED);
}

/* Forms that ptxas refuses, too, by their words. */
static void other_words_are_refused(void **state)
{
    static const char *const refused[] = {
        "tex.level.2dms.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r0,r1,r1}],r2;",
        "tex.2dms.v4.f32.f32 {f0,f1,f2,f3},[d1,{r0,r0,r1,r1}];",
        "tex.2d.v2.f32.f32 {f0,f1},[d1,{f0,f1}];",
        "tex.2d.v4.f16x2.f32 {r0,r1,r2,r3},[d1,{f0,f1}];",
        "tex.2d.v2.f16.f32 {h0,h1},[d1,{f0,f1}];",
        "tex.2d.v4.s16.f32 {h0,h1,h2,h3},[d1,{f0,f1}];",
        "tex.cube.v2.f16x2.s32 {r0,r1},[d1,{r0,r1,r2,r3}];",
        "tld4.r.2d.v2.f16x2.f32 {r0,r1},[d1,{f0,f1}];",
        "tld4.r.2d.v4.f16.f32 {h0,h1,h2,h3},[d1,{f0,f1}];",
        "tld4.r.2d.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r1}];",
        "tld4.r.3d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1,f2,f2}];",
        "suld.b.2dms.b32.trap r0,[d1,{r0,r1,r2,r2}];",
    };

    (void)state;
    expect_all(refused, sizeof refused / sizeof *refused, PTX2SPV_UNSUPPORTED);
}

/* Only kernels with instructions that may read an image have descriptors, and only where the device has them. */
static void fetches_may_read_images(void **state)
{
    static const struct {
        const char *instruction;
        bool image, varies; /* varies: the object may differ between lanes */
    } rows[] = {
        {"tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}];", true, false},
        {"tex.2d.v4.u32.f32 {r0,r1,r2,r3},[d1,{f0,f1}];", true, false},
        {"tex.2d.v4.s32.f32 {r0,r1,r2,r3},[d1,{f0,f1}];tex.2d.v4.f32.f32 {f0,f1,f2,f3},[t,{f0,f1}];", true, false},
        {"tex.2d.v2.f16x2.f32 {r0,r1},[d1,{f0,f1}];", true, false},
        {"tex.level.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}],f2;", true, false},
        {"tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}],{f1,f2},{f2,f3};", true, false},
        {"add.u64 d1,d1,8;tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}];", true, false},
        {"ld.global.u64 d2,[d0];tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d2,{f0,f1}];", true, true},
        {"mul.wide.u32 d2,r0,8;add.u64 d2,d2,d1;tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d2,{f0,f1}];", true, true},
        {"setp.eq.u32 p,r0,3;@p add.u64 d1,d1,8;tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}];", true, true},
        {"tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}],{r4,r5};", false, false},
        {"tex.2d.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r1}];", false, false},
        {"tex.1d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0}];", true, false},
        {"tex.3d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1,f2,f2}];", true, false},
        {"tex.level.3d.v4.u32.f32 {r0,r1,r2,r3},[d1,{f0,f1,f2,f2}],f3;", true, false},
        {"tex.a1d.v4.s32.f32 {r0,r1,r2,r3},[d1,{r0,f0}];", true, false},
        {"tex.grad.a2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{r0,f0,f1,f1}],{f1,f2},{f2,f3};", true, false},
        {"tex.cube.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1,f2,f2}];", true, false},
        {"tex.acube.v4.f16.f32 {h0,h1,h2,h3},[d1,{r0,f0,f1,f2}];", true, false},
        {"tex.level.acube.v4.f32.f32 {f0,f1,f2,f3},[d1,{r0,f0,f1,f2}],f3;", true, false},
        {"ld.global.u64 d2,[d0];tex.3d.v4.f32.f32 {f0,f1,f2,f3},[d2,{f0,f1,f2,f2}];", true, true},
        {"ld.global.u64 d2,[d0];tex.acube.v4.f32.f32 {f0,f1,f2,f3},[d2,{r0,f0,f1,f2}];", true, true},
        {"tex.3d.v4.f32.s32 {f0,f1,f2,f3},[d1,{r0,r1,r2,r2}];", false, false},
        {"tld4.r.cube.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1,f2,f2}];", false, false},
        {"tld4.r.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}];", false, false},
        {"txq.width.b32 r0,[d1];", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int t = 0; t <= TARGET_WITH_IMAGES; t++) {
            struct message why;

            if (compile(rows[i].instruction, &targets[t], &why) != PTX2SPV_OK)
                fail_msg("%s: %s", rows[i].instruction, why.text);
            assert_int_equal(why.uses_images, rows[i].image && t == TARGET_WITH_IMAGES);
            assert_int_equal(why.has_varying_index, rows[i].varies && t == TARGET_WITH_IMAGES);
        }
}

static void bad_operands_are_invalid(void **state)
{
    static const char *const invalid[] = {
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0}];",         "tex.1d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}];",
        "tex.2d.v4.f32.f32 {f0,f1,f2},[d1,{f0,f1}];",         "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1];",
        "suld.b.2d.v2.b32.trap {r0,r1,r2,r3},[d1,{r0,r1}];",  "txq.width.b32 r0,[d1],r1;",
        "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}],{r1};", "tex.2d.v4.f32.f32 {f0,f1,f2,f3},[d1,{f0,f1}],f4,{r1,r2};",
    };

    (void)state;
    expect_all(invalid, sizeof invalid / sizeof *invalid, PTX2SPV_INVALID_PTX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(textures_compile),         cmocka_unit_test(optional_operands_compile), cmocka_unit_test(halves_compile),
        cmocka_unit_test(samples_compile),          cmocka_unit_test(other_words_are_refused),   cmocka_unit_test(surfaces_compile),
        cmocka_unit_test(queries_compile),          cmocka_unit_test(references_compile),        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(bad_operands_are_invalid), cmocka_unit_test(fetches_may_read_images),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
