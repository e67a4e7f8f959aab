/* SPDX-License-Identifier: Apache-2.0 */
/* PTX to SPIR-V for several devices: spirv-val accepts every module; the code has the form that was measured to be fast; features that a
 * device lacks, and unsupported PTX, are rejected by name. Expectations: the SPIR-V specification, through spirv-val, and the PTX ISA. */
#include "ptx2spv/spirv/spirv_newer.h"
#include "spirv_machine.h"

#include <setjmp.h>
#include <spirv/unified1/spirv.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* Those that concern the dialect, so that their forms are validated as well. */
#define VULKAN_WORKAROUNDS (PTX2SPV_WORKAROUNDS & ~(PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES | PTX2SPV_WORKAROUND_LOGICAL_NOT))
#define OPENCL_WORKAROUNDS                                                                                                                 \
    (PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES | PTX2SPV_WORKAROUND_LOGICAL_NOT | PTX2SPV_WORKAROUND_VECTORIZED_STATES |                       \
     PTX2SPV_WORKAROUND_SECOND_STORES | PTX2SPV_WORKAROUND_SPLIT_TAILS | PTX2SPV_WORKAROUND_STORED_BOOLEANS)
#define NO_FLOAT64                                                                                                                         \
    .dialect = PTX2SPV_VULKAN, .workarounds = VULKAN_WORKAROUNDS, .max_block_threads = 1024, .shared_bytes = 32768, .int64 = 1,            \
    .int16 = 1, .int8 = 1, .float16 = 1, .storage8 = 1, .storage16 = 1, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8
#define BASE NO_FLOAT64, .float64 = 1
#define FEATURES                                                                                                                           \
    .memory_model_device_scope = 1, .shared_explicit_layout = 1, .shared_explicit_layout8 = 1, .shared_explicit_layout16 = 1,              \
    .atomic_int64_global = 1, .atomic_int64_shared = 1, .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1,                    \
    .atomic_float64_add_global = 1, .atomic_float64_add_shared = 1, .denorm_preserve16 = 1, .denorm_preserve32 = 1,                        \
    .denorm_preserve64 = 1, .rounding_rte16 = 1, .rounding_rte32 = 1, .rounding_rte64 = 1, .signed_zero_inf_nan16 = 1,                     \
    .signed_zero_inf_nan32 = 1, .signed_zero_inf_nan64 = 1, .shader_clock_subgroup = 1, .exact_fma32 = 1, .exact_fma64 = 1

#define OPENCL                                                                                                                             \
    .dialect = PTX2SPV_OPENCL, .max_block_threads = 1024, .shared_bytes = 32768, .int64 = 1, .int16 = 1, .int8 = 1, .float64 = 1,          \
    .float16 = 1
#define OPENCL_FEATURES                                                                                                                    \
    .atomic_int64_global = 1, .atomic_int64_shared = 1, .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1,                    \
    .atomic_float64_add_global = 1, .atomic_float64_add_shared = 1, .denorm_preserve32 = 1, .rounding_rte64 = 1,                           \
    .signed_zero_inf_nan16 = 1, .shader_clock_device = 1, .exact_fma32 = 1, .exact_fma64 = 1, .exact_div64 = 1,                            \
    .near_functions = PTX2SPV_NEAR_ALL

static const struct {
    const char *name;
    struct ptx2spv_target target;
} devices[] = {
    {"plain", {BASE, .push_constant_bytes = 128, .memory_model_device_scope = 1}},
    {"rich", {BASE, FEATURES, .push_constant_bytes = 256}},
    {"queue family scope", {BASE, .push_constant_bytes = 128}},
    {"parameters in memory", {BASE, FEATURES, .push_constant_bytes = PTX2SPV_PARAMS_OFFSET}},
    {"pointers with a mask",
     {BASE, FEATURES, .push_constant_bytes = 128, .pointer_rule = PTX2SPV_POINTER_OR, .pointer_mask = UINT64_C(0xffff800000000000)}},
    {"pointers by windows",
     {BASE, FEATURES, .push_constant_bytes = 128, .pointer_rule = PTX2SPV_POINTER_WINDOWS,
      .windows = {{UINT64_C(0x100000000000), UINT64_C(1) << 40, UINT64_C(0x7fff00000000)},
                  {UINT64_C(0x300000000000), 1 << 30, -(uint64_t)4096}}}},
    {"plain OpenCL", {OPENCL, .workarounds = OPENCL_WORKAROUNDS, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8}},
    {"rich OpenCL", {OPENCL, .workarounds = OPENCL_WORKAROUNDS, OPENCL_FEATURES, .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 32}},
    {"OpenCL, pointers with a mask",
     {OPENCL, .workarounds = OPENCL_WORKAROUNDS, OPENCL_FEATURES, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 16,
      .pointer_rule = PTX2SPV_POINTER_OR, .pointer_mask = UINT64_C(0xffff800000000000)}},
    {"OpenCL, subgroups of 64",
     {OPENCL, .workarounds = OPENCL_WORKAROUNDS, OPENCL_FEATURES, .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 64}},
    {"OpenCL, subgroups of 128",
     {OPENCL, .workarounds = OPENCL_WORKAROUNDS, OPENCL_FEATURES, .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 128}},
    {"vectors split", {BASE, .push_constant_bytes = 128, .memory_model_device_scope = 1, .vectors = PTX2SPV_VECTORS_SPLIT}},
    {"OpenCL, loads split",
     {OPENCL, .workarounds = OPENCL_WORKAROUNDS, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8, .vectorizes = 1,
      .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
    {"OpenCL, negations lost",
     {OPENCL, OPENCL_FEATURES, .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 32,
      .workarounds = OPENCL_WORKAROUNDS | PTX2SPV_WORKAROUND_PREDICATED_LOOPS | PTX2SPV_WORKAROUND_LOST_SIGNS}},
    {"roots", {BASE, FEATURES, .push_constant_bytes = 256, .exact_sqrt32 = 1, .keeps_subnormals32 = 1}},
    {"functions inlined", {BASE, .push_constant_bytes = 128, .memory_model_device_scope = 1, .inlines = 1}},
    {"subnormals flushed",
     {BASE, FEATURES, .push_constant_bytes = 128, .denorm_flush32 = 1, .keeps_subnormals32 = 1, .near_functions = PTX2SPV_NEAR_ALL}},
    {"OpenCL, subnormals flushed",
     {OPENCL, OPENCL_FEATURES, .workarounds = OPENCL_WORKAROUNDS, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8,
      .denorm_flush32 = 1}},
    {"no 64-bit floats", {NO_FLOAT64, .push_constant_bytes = 128, .memory_model_device_scope = 1, .atomic_int64_global = 1, .inlines = 1}},
};
enum {
    PLAIN,
    RICH,
    WINDOWS = 5,
    OPENCL_PLAIN,
    OPENCL_RICH,
    SPLIT = 11,
    OPENCL_SPLIT,
    OPENCL_NO_FNEG,
    ROOTS,
    INLINES,
    FLUSHES,
    OPENCL_FLUSHES,
    SINGLES
};

/* ---- compilation of a body ---- */

struct outcome {
    enum ptx2spv_status status;
    struct ptx2spv_kernel kernel;
    char messages[1024];
};

static void keep_message(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct outcome *outcome = user;
    const size_t used = strlen(outcome->messages);

    snprintf(outcome->messages + used, sizeof outcome->messages - used, "%u:%u: %s\n", diagnostic->line, diagnostic->column,
             diagnostic->text);
}

/* Instructions of a kernel `k` with many registers, three parameters and a variable in each space. */
static void compile(const char *body, const struct ptx2spv_target *target, struct outcome *out)
{
    static const char head[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".global .align 16 .b8 g[64];\n"
                               ".visible .entry k(.param .u64 out, .param .u32 n, .param .align 8 .b8 s[24])\n{\n"
                               ".reg .pred p<8>; .reg .b16 h<16>; .reg .b32 r<16>; .reg .b64 d<16>;\n"
                               ".reg .f32 f<16>; .reg .f64 e<16>;\n"
                               ".shared .align 16 .b8 sh[1024]; .local .align 16 .b8 lo[64];\n"
                               "ld.param.u64 d0, [out]; ld.param.u32 r0, [n];\n";
    char text[8192];
    struct ptx2spv_options options = {.on_diagnostic = keep_message, .user = out};
    struct ptx2spv_module *module = NULL;

    *out = (struct outcome){0};
    assert_true(snprintf(text, sizeof text, "%s%s\nret;\n}\n", head, body) < (int)sizeof text);
    out->status = ptx2spv_module_create(text, strlen(text), &options, &module);
    if (out->status == PTX2SPV_OK)
        out->status = ptx2spv_kernel_compile(module, 0, target, &options, &out->kernel);
    if (out->status == PTX2SPV_OK)
        keep_ptx(text);
    ptx2spv_module_destroy(module);
}

/* ---- bodies that must compile to valid code for every device ---- */

static const struct {
    const char *name, *body;
} rows[] = {
    {"empty", ""},
    {"global, each width",
     "ld.global.u8 h0,[d0]; ld.global.s8 r1,[d0+1]; ld.global.u16 h2,[d0+2]; ld.global.s16 r2,[d0+4]; ld.global.b32 r3,[d0+8];"
     "ld.global.b64 d1,[d0+16]; ld.global.f32 f0,[d0+24]; ld.global.f64 e0,[d0+32];"
     "st.global.u8 [d0+64],h0; st.global.u16 [d0+66],h2; st.global.b32 [d0+68],r3; st.global.b64 [d0+72],d1;"
     "st.global.u8 [d0+80],r1; st.global.u16 [d0+82],r2; st.global.f32 [d0+84],f0; st.global.f64 [d0+88],e0;"},
    {"global vectors", "ld.global.v2.u8 {h0,h1},[d0]; ld.global.v4.u8 {h2,h3,h4,h5},[d0+4]; ld.global.v2.u16 {h6,h7},[d0+8];"
                       "ld.global.v4.u16 {h8,h9,h10,h11},[d0+16]; ld.global.v2.b32 {r1,r2},[d0+24]; ld.global.v4.b32 {r3,r4,r5,r6},[d0+32];"
                       "ld.global.v2.b64 {d1,d2},[d0+48]; st.global.v2.u8 [d0],{h1,h0}; st.global.v4.u8 [d0+4],{h5,h4,h3,h2};"
                       "st.global.v2.u16 [d0+8],{h7,h6}; st.global.v4.u16 [d0+16],{h11,h10,h9,h8}; st.global.v2.b32 [d0+24],{r2,r1};"
                       "st.global.v4.b32 [d0+32],{r6,r5,r4,r3}; st.global.v2.b64 [d0+48],{d2,d1};"},
    {"shared, each width",
     "mov.u32 r1,%tid.x; shl.b32 r2,r1,4; ld.shared.u8 h0,[r2+1]; ld.shared.s8 r3,[r2+2]; ld.shared.u16 h1,[r2+2];"
     "ld.shared.b32 r4,[r2+4]; ld.shared.b64 d1,[r2+8]; st.shared.u8 [r2+3],h0; st.shared.u16 [r2+6],h1; st.shared.b32 [r2],r4;"
     "st.shared.b64 [r2+16],d1; st.shared.u8 [r2+5],r3;"},
    {"shared vectors", "mov.u32 r1,%tid.x; shl.b32 r2,r1,4; ld.shared.v2.u8 {h0,h1},[r2]; ld.shared.v4.u8 {h2,h3,h4,h5},[r2+4];"
                       "ld.shared.v4.u16 {h6,h7,h8,h9},[r2+8]; ld.shared.v2.b32 {r3,r4},[r2]; ld.shared.v4.b32 {r5,r6,r7,r8},[r2];"
                       "ld.shared.v2.b64 {d1,d2},[r2]; st.shared.v2.u8 [r2],{h1,h0}; st.shared.v4.u8 [r2+4],{h5,h4,h3,h2};"
                       "st.shared.v4.u16 [r2+8],{h9,h8,h7,h6}; st.shared.v2.b32 [r2],{r4,r3}; st.shared.v4.b32 [r2],{r8,r7,r6,r5};"
                       "st.shared.v2.b64 [r2],{d2,d1};"},
    {"local", "and.b32 r2,r0,48; ld.local.u8 h0,[r2+1]; ld.local.u16 h1,[r2+2]; ld.local.b32 r4,[r2+4]; ld.local.b64 d1,[r2+8];"
              "st.local.u8 [r2+3],h0; st.local.u16 [r2+6],h1; st.local.b32 [r2],r4; st.local.b64 [r2+8],d1;"
              "ld.local.v4.b32 {r5,r6,r7,r8},[r2]; st.local.v2.b64 [r2],{d1,d1}; st.global.b32 [d0],r5;"},
    {"generic",
     "setp.eq.u32 p0,r0,1; setp.eq.u32 p1,r0,2; cvta.shared.u64 d1,sh; cvta.local.u64 d2,lo; selp.b64 d3,d1,d0,p0; selp.b64 d3,d2,d3,p1;"
     "ld.b32 r1,[d3+4]; st.b32 [d3],r1; ld.v2.b64 {d4,d5},[d3+16]; st.u8 [d3+8],r1; ld.s8 r2,[d3+9]; st.v4.b32 [d3+16],{r1,r2,r1,r2};"
     "@p0 atom.add.u32 r3,[d3],1; st.global.u32 [d0+64],r3;"},
    {"parameters at odd places",
     "ld.param.u8 h0,[s+1]; ld.param.s16 r1,[s+2]; ld.param.b32 r2,[s+4]; ld.param.b64 d1,[s+8]; ld.param.v2.b32 {r3,r4},[s+16];"
     "st.global.b32 [d0],r1; st.global.b32 [d0+4],r2; st.global.b64 [d0+8],d1; st.global.b32 [d0+16],r4; st.global.u8 [d0+20],h0;"},
    {"atomics of 32 bits",
     "atom.global.add.u32 r1,[d0],r0; atom.global.min.s32 r2,[d0+4],r0; atom.global.max.u32 r3,[d0+8],r0; atom.global.and.b32 r4,[d0],r0;"
     "atom.global.or.b32 r5,[d0],r0; atom.global.xor.b32 r6,[d0],r0; atom.global.exch.b32 r7,[d0],r0; atom.global.cas.b32 r8,[d0],r1,r2;"
     "atom.global.inc.u32 r9,[d0],r0; atom.global.dec.u32 r9,[d0],r0; atom.global.add.f32 f1,[d0],0f3f800000; red.global.add.u32 [d0],r9;"
     "atom.shared.add.u32 r1,[sh],r0; atom.shared.cas.b32 r1,[sh],r2,r3; atom.shared.add.f32 f2,[sh+4],f1; red.shared.max.s32 [sh],r1;"
     "atom.acquire.gpu.global.add.u32 r1,[d0],1; atom.release.cta.global.exch.b32 r2,[d0],1;"
     " atom.acq_rel.sys.global.cas.b32 r3,[d0],r1,r2;"},
    {"ordered accesses",
     "ld.volatile.global.u32 r1,[d0]; st.volatile.global.u32 [d0],r1; ld.relaxed.gpu.global.u32 r2,[d0]; st.relaxed.cta.global.u32 [d0],r2;"
     "ld.acquire.gpu.global.u32 r3,[d0]; st.release.sys.global.u32 [d0],r3; ld.volatile.shared.u32 r4,[sh]; st.volatile.shared.u32 [sh],r4;"
     "ld.volatile.global.u64 d1,[d0+8]; st.volatile.global.v2.u32 [d0+8],{r1,r2}; ld.volatile.global.u8 h0,[d0];"
     " st.volatile.shared.u8 [sh],h0;"},
    {"barriers and fences", "bar.sync 0; barrier.sync 0; membar.cta; membar.gl; membar.sys; fence.acq_rel.gpu; fence.sc.sys;"},
    {"barriers of parts of a block", "bar.sync 1; bar.sync 2,64; bar.arrive 3,64; bar.sync 3,64; setp.eq.u32 p0,r0,0;"
                                     "bar.red.popc.u32 r1,0,p0; bar.red.and.pred p1,1,64,p0; @p1 st.global.u32 [d0],r1;"},
    {"warp instructions",
     "setp.eq.u32 p0,r0,0; shfl.sync.idx.b32 r1,r0,0,31,-1; shfl.sync.up.b32 r2|p1,r1,1,0,-1; shfl.sync.down.b32 r3,r2,1,31,-1;"
     "shfl.sync.bfly.b32 r4,r3,16,31,-1; vote.sync.all.pred p2,p0,-1; vote.sync.any.pred p3,p0,-1; vote.sync.uni.pred p4,p0,-1;"
     "vote.sync.ballot.b32 r5,p0,-1; activemask.b32 r6; bar.warp.sync -1; @p1 st.global.u32 [d0],r4; @p2 st.global.u32 [d0+4],r5;"
     "@p3 st.global.u32 [d0+8],r6; @p4 st.global.u32 [d0+12],r6;"},
    {"a warp instruction in a branch", "mov.u32 r1,%tid.x; setp.lt.u32 p0,r1,48; @!p0 bra L; mov.u32 r2,%laneid; setp.eq.u32 p1,r2,3;"
                                       "vote.sync.ballot.b32 r5,p1,0xffff; st.global.u32 [d0],r5; L: bar.sync 0; st.global.u32 [d0+4],r1;"},
    {"read only", "ld.global.nc.v4.f32 {f0,f1,f2,f3},[d0]; ld.global.nc.u8 h0,[d0]; st.global.f32 [d0],f2; st.global.u8 [d0],h0;"},
    {"integers",
     "mul.wide.s32 d1,r0,r0; mul.hi.u32 r1,r0,r0; mad.lo.s32 r2,r0,r1,r0; mul.hi.s64 d2,d1,d1; div.s32 r3,r1,r0; rem.u64 d3,d1,d2;"
     "popc.b32 r4,r1; clz.b64 r5,d1; brev.b32 r6,r2; bfe.s32 r7,r1,3,5; bfi.b32 r8,r1,r2,4,8; prmt.b32 r9,r1,r2,0x3210; abs.s32 r10,r9;"
     "min.s16 h1,h0,h0; shr.s64 d4,d3,r0; st.global.v4.b32 [d0],{r3,r4,r5,r6}; st.global.v4.b32 [d0+16],{r7,r8,r9,r10};"
     "st.global.b64 [d0+32],d4; st.global.u16 [d0+40],h1;"},
    {"floats",
     "ld.global.f32 f0,[d0]; ld.global.f64 e0,[d0+8]; fma.rn.f32 f1,f0,f0,f0; add.rz.f32 f2,f0,f1; mul.ftz.f32 f3,f1,f2;"
     " div.rn.f32 f4,f0,f1;"
     "sqrt.rn.f64 e1,e0; rcp.rn.f32 f5,f0; sin.approx.f32 f6,f0; ex2.approx.ftz.f32 f7,f0; min.f32 f8,f0,f1; cvt.rzi.s32.f32 r1,f0;"
     "cvt.rn.f32.f64 f9,e0; cvt.f64.f32 e2,f0; cvt.rn.f16.f32 h1,f0; cvt.f32.f16 f10,h1; neg.f32 f11,f0; abs.f64 e3,e0;"
     " fma.rn.f64 e4,e0,e1,e2;"
     "add.f32 f12,f2,f3; add.f32 f12,f12,f4; add.f32 f12,f12,f5; add.f32 f12,f12,f6; add.f32 f12,f12,f7; add.f32 f12,f12,f8;"
     "add.f32 f12,f12,f9; add.f32 f12,f12,f10; add.f32 f12,f12,f11; add.f64 e5,e3,e4; setp.ltu.f32 p0,f0,f1; testp.notanumber.f32 p1,f0;"
     "@p0 st.global.f32 [d0],f12; @p1 st.global.f64 [d0+8],e5; st.global.u32 [d0+16],r1;"},
    {"special registers",
     "mov.u32 r1,%tid.x; mov.u32 r2,%tid.y; mov.u32 r3,%tid.z; mov.u32 r4,%ntid.y; mov.u32 r5,%ctaid.z; mov.u32 r6,%nctaid.y;"
     "mov.u32 r7,%laneid; mov.u32 r8,%smid; mov.u32 r9,%total_smem_size; st.global.v4.u32 [d0],{r1,r2,r3,r4};"
     "st.global.v4.u32 [d0+16],{r5,r6,r7,r8}; mov.u32 r10,%dynamic_smem_size; add.u32 r9,r9,r10; st.global.u32 [d0+32],r9;"},
    {"module variables", "mov.u64 d1,g; ld.global.u32 r1,[g+4]; st.global.u32 [d1+8],r1;"},
    {"exits", "setp.eq.u32 p0,r0,0; @p0 ret; L: ld.global.u32 r1,[d0]; setp.eq.u32 p1,r1,7; @p1 exit; setp.gt.u32 p2,r1,9; @p2 bra M;"
              "st.global.u32 [d0+4],r1; bra L; M: st.global.u32 [d0+8],r1; setp.eq.u32 p3,r1,11; @p3 trap;"},
    {"indexed branch",
     "T: .branchtargets A,B,C; and.b32 r1,r0,1; brx.idx r1,T; A: st.global.u32 [d0],r1; bra D; B: st.global.u32 [d0+4],r1; C: "
     "st.global.u32 [d0+8],r1; D: st.global.u32 [d0+12],r0;"},
};

static void test_valid_everywhere(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
            struct outcome outcome;

            compile(rows[r].body, &devices[d].target, &outcome);
            if (outcome.status != PTX2SPV_OK)
                fail_msg("%s for %s: %s", rows[r].name, devices[d].name, outcome.messages);
            print_message("%s for %s\n", rows[r].name, devices[d].name);
            assert_valid_spirv(outcome.kernel.words, outcome.kernel.n_words);
            ptx2spv_kernel_finish(&outcome.kernel);
        }
}

/* Every row again with shared memory as 64-bit words, as 64-bit atomics need it on devices without views. */
static void test_wide_words(void **state)
{
    static const struct ptx2spv_target target = {BASE, .push_constant_bytes = 128, .memory_model_device_scope = 1, .atomic_int64_global = 1,
                                                 .atomic_int64_shared = 1};
    static const char wide[] = "atom.shared.max.s64 d15,[sh+8],1; atom.shared.cas.b64 d15,[sh+16],d15,2; atom.shared.add.f64 e15,[sh],e15;"
                               "cvta.shared.u64 d14,sh; st.global.u64 [d0+8],d14; ld.global.u64 d13,[d0]; atom.add.u64 d12,[d13],d15;";
    char body[8192];

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct outcome outcome;

        snprintf(body, sizeof body, "%s %s", wide, rows[r].body);
        compile(body, &target, &outcome);
        if (outcome.status != PTX2SPV_OK)
            fail_msg("%s: %s", rows[r].name, outcome.messages);
        assert_valid_spirv(outcome.kernel.words, outcome.kernel.n_words);
        assert_true(count_spirv(outcome.kernel.words, outcome.kernel.n_words, SpvOpAtomicSMax) == 1);
        ptx2spv_kernel_finish(&outcome.kernel);
    }
}

/* If LLVM's intrinsics are requested, each is imported once, however often it is called, and OpenCL's functions are not used instead. */
static void test_llvm_functions(void **state)
{
    static const char body[] =
        "ld.global.f32 f0,[d0]; ld.global.f64 e0,[d0]; fma.rn.f32 f1,f0,f0,f0; fma.rn.f32 f1,f1,f0,f1; sqrt.rn.f32 f2,f1; rsqrt.approx.f32 "
        "f3,f2;"
        "cvt.rmi.f32.f32 f4,f3; cvt.rpi.f32.f32 f5,f4; cvt.rzi.f32.f32 f6,f3; cvt.rni.f32.f32 f7,f3; fma.rn.f64 e1,e0,e0,e0; sqrt.rn.f64 "
        "e2,e1;"
        "cvt.rmi.f64.f64 e3,e2; cvt.rpi.f64.f64 e4,e3; cvt.rzi.f64.f64 e5,e2; cvt.rni.f64.f64 e6,e2; add.f64 e3,e3,e4; add.f64 e3,e3,e5;"
        "add.f64 e3,e3,e6; st.global.f64 [d0],e3; add.f32 f4,f4,f5; add.f32 f4,f4,f6; add.f32 f4,f4,f7; st.global.f32 [d0+8],f4;";
    static const struct ptx2spv_target target = {OPENCL,
                                                 .workarounds = OPENCL_WORKAROUNDS,
                                                 OPENCL_FEATURES,
                                                 .warp_form = PTX2SPV_WARP_COLLECTIVE,
                                                 .subgroup_size = 1,
                                                 .keeps_subnormals32 = 1,
                                                 .exact_sqrt32 = 1,
                                                 .exact_sqrt64 = 1,
                                                 .exact_zeros = 1,
                                                 .llvm_functions = 1};
    struct outcome outcome;

    (void)state;
    compile(body, &target, &outcome);
    if (outcome.status != PTX2SPV_OK)
        fail_msg("%s", outcome.messages);
    assert_valid_spirv(outcome.kernel.words, outcome.kernel.n_words);
    assert_int_equal(count_spirv(outcome.kernel.words, outcome.kernel.n_words, SpvOpFunction), 1 + 8);
    assert_int_equal(count_spirv(outcome.kernel.words, outcome.kernel.n_words, SpvOpFunctionCall), 10);
    assert_int_equal(count_spirv(outcome.kernel.words, outcome.kernel.n_words, SpvOpExtInst), 0);
    ptx2spv_kernel_finish(&outcome.kernel);
}

static void test_same_input_same_words(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct outcome one, two;

        compile(rows[r].body, &devices[RICH].target, &one);
        compile(rows[r].body, &devices[RICH].target, &two);
        assert_int_equal(one.kernel.n_words, two.kernel.n_words);
        assert_memory_equal(one.kernel.words, two.kernel.words, one.kernel.n_words * sizeof *one.kernel.words);
        ptx2spv_kernel_finish(&one.kernel);
        ptx2spv_kernel_finish(&two.kernel);
    }
}

/* ---- the form of the code ---- */

#define CHOICE(constants) "setp.lt.u32 p0,r0,5; selp.b32 r1," constants ",p0; st.global.b32 [d0],r1;"

static const struct {
    const char *name, *body;
    int device;
    uint32_t opcode;
    unsigned count;
} forms[] = {
    {"one conversion an access", "ld.global.v4.f32 {f0,f1,f2,f3},[d0+16]; st.global.v4.f32 [d0+32],{f3,f2,f1,f0};", RICH,
     SpvOpConvertUToPtr, 2},
    {"a vector is one load", "ld.global.v4.u8 {h0,h1,h2,h3},[d0]; st.global.u8 [d0],h3;", RICH, SpvOpConvertUToPtr, 2},
    {"no selection around a predicated return", "setp.eq.u32 p0,r0,0; @p0 ret; st.global.u32 [d0],r0;", RICH, SpvOpSelectionMerge, 1},
    {"no scope for a loop", "L: sub.u32 r0,r0,1; st.global.u32 [d0],r0; setp.ne.u32 p0,r0,0; @p0 bra L;", RICH, SpvOpSwitch, 0},
    {"what most edges carry is stored once",
     "mov.u32 r1,r0; setp.eq.u32 p0,r0,1; @p0 bra L; setp.eq.u32 p0,r0,2; @p0 bra L;"
     "setp.eq.u32 p0,r0,3; @p0 bra L; setp.eq.u32 p0,r0,4; @p0 bra L; add.u32 r1,r0,7; L: st.global.u32 [d0],r1;",
     RICH, SpvOpStore, 3},
    {"a phi's value in a phi that shares its variable is not stored",
     "mov.u32 r1,r0; L: setp.eq.u32 p0,r0,1; @p0 bra M; add.u32 r1,r1,3; M: sub.u32 r0,r0,1; setp.ne.u32 p0,r0,0; @p0 bra L;"
     "st.global.u32 [d0],r1;",
     RICH, SpvOpStore, 5},
    {"a cast shared pointer needs no dispatch", "cvta.shared.u64 d1,sh; ld.u32 r1,[d1]; st.global.u32 [d0],r1;", PLAIN, SpvOpSelectionMerge,
     0},
    {"an unknown pointer dispatches where there is shared memory",
     "cvta.shared.u64 d2,sh; st.global.u64 [d0+8],d2;"
     "ld.global.u64 d1,[d0]; ld.u32 r1,[d1]; st.global.u32 [d0],r1;",
     PLAIN, SpvOpSelectionMerge, 1},
    {"and does not where no shared pointer is about", "ld.global.u64 d1,[d0]; ld.u32 r1,[d1]; st.global.u32 [d0],r1;", PLAIN,
     SpvOpSelectionMerge, 0},
    {"narrow shared stores are two atomics without views", "st.shared.u8 [sh+1],r0;", PLAIN, SpvOpAtomicOr, 1},
    {"and one store with them", "st.shared.u8 [sh+1],r0;", RICH, SpvOpAtomicOr, 0},
    {"a window is a comparison and a choice", "st.global.u32 [d0],r0;", WINDOWS, SpvOpULessThan, 2},
    {"and all of them one sum more", "st.global.u32 [d0],r0;", WINDOWS, SpvOpIAdd, 1},
    {"before the constant offset", "st.global.u32 [d0+8],r0;", WINDOWS, SpvOpIAdd, 2},
    {"values compared by both signs: as signed, their difference",
     "ld.global.u32 r1,[d0]; setp.lt.u32 p0,r0,r1; setp.ge.s32 p1,r1,r0;"
     "selp.u32 r2,1,2,p0; selp.u32 r3,3,4,p1; st.global.u32 [d0],r2; st.global.u32 [d0+4],r3;",
     RICH, SpvOpISub, 1},
    {"also with a constant",
     "setp.lt.u32 p0,r0,9; setp.lt.s32 p1,r0,9; selp.u32 r2,1,2,p0; selp.u32 r3,3,4,p1;"
     "st.global.u32 [d0],r2; st.global.u32 [d0+4],r3;",
     RICH, SpvOpISub, 1},
    {"values compared by one sign are just compared",
     "setp.lt.s32 p0,r0,9; setp.gt.s32 p1,r0,9; setp.lt.u32 p2,r0,8; selp.u32 r2,1,2,p0;"
     "selp.u32 r3,3,4,p1; selp.u32 r4,5,6,p2; st.global.u32 [d0],r2; st.global.u32 [d0+4],r3; st.global.u32 [d0+8],r4;",
     RICH, SpvOpISub, 0},
    {"the two low bytes swapped are a bit field",
     "shr.u32 r1,r0,8; and.b32 r1,r1,255; and.b32 r2,r0,255; shl.b32 r2,r2,8; or.b32 r1,r1,r2;"
     "st.global.u32 [d0],r1;",
     RICH, SpvOpBitFieldInsert, 1},
    {"also with more above them", "and.b32 r1,r0,65535; shr.u32 r2,r1,8; shl.b32 r1,r1,8; or.b32 r1,r1,r2; st.global.u32 [d0],r1;", RICH,
     SpvOpBitFieldInsert, 1},
    {"also among those that prmt selects", "prmt.b32 r1,r0,r2,0x7601; st.global.u32 [d0],r1;", RICH, SpvOpBitFieldInsert, 1},
    {"16 bits swapped are a sum", "ld.global.u16 h0,[d0]; shr.u16 h1,h0,8; shl.b16 h2,h0,8; or.b16 h1,h1,h2; st.global.u16 [d0],h1;", RICH,
     SpvOpIAdd, 1},
    {"and six bytes",
     "ld.global.u64 d1,[d0]; shr.u64 d2,d1,40; and.b64 d2,d2,255; and.b64 d1,d1,255; shl.b64 d1,d1,40; xor.b64 d1,d1,d2;"
     "st.global.u64 [d0],d1;",
     RICH, SpvOpIAdd, 1},
    {"four bytes are left alone", "prmt.b32 r1,r0,r0,0x0123; st.global.u32 [d0],r1;", RICH, SpvOpBitwiseOr, 3},
    {"bytes of two values as well", "prmt.b32 r1,r0,r2,0x7605; st.global.u32 [d0],r1;", RICH, SpvOpBitwiseOr, 3},
    {"four bytes in a row are a shift",
     "and.b32 r1,r0,3; shl.b32 r1,r1,2; shr.u32 r1,0x76543210,r1; prmt.b32 r1,r0,r2,r1; st.global.u32 [d0],r1;", RICH, SpvOpBitwiseOr, 0},
    {"others are not", "and.b32 r1,r0,7; shl.b32 r1,r1,2; shr.u32 r1,0x76543210,r1; prmt.b32 r1,r0,r2,r1; st.global.u32 [d0],r1;", RICH,
     SpvOpBitwiseOr, 3},
    {"nor if all bits of a word decide",
     "cvt.u64.u32 d1,r0; mul.lo.u64 d1,d1,d1; and.b64 d1,d1,0xffffffff; shr.u64 d1,d1,3; cvt.u32.u64 r1,d1; prmt.b32 r1,r0,r2,r1; "
     "st.global.u32 [d0],r1;",
     RICH, SpvOpBitwiseOr, 3},
    {"selectors without signs need no choice but of the word", "and.b32 r1,r0,0x7777; prmt.b32 r1,r0,r2,r1; st.global.u32 [d0],r1;", RICH,
     SpvOpSelect, 4},
    {"others one more for each sign", "and.b32 r1,r0,0xf7f7; prmt.b32 r1,r0,r2,r1; st.global.u32 [d0],r1;", RICH, SpvOpSelect, 6},
    {"a product that a loop adds again and again is made in 64 bits",
     "ld.global.u32 r1,[d0]; L: mad.hi.s32 r1,r0,3,r1; setp.lt.u32 p0,r1,9;"
     "@p0 bra L; st.global.u32 [d0],r1;",
     RICH, SpvOpSMulExtended, 0},
    {"also if it is made before the loop",
     "ld.global.u32 r1,[d0]; mul.hi.u32 r2,r0,3; L: sub.u32 r1,r2,r1; setp.lt.u32 p0,r1,9; @p0 bra L;"
     "st.global.u32 [d0],r1;",
     RICH, SpvOpUMulExtended, 0},
    {"or its sign is turned there",
     "ld.global.u32 r1,[d0]; mul.hi.u32 r2,r0,3; neg.s32 r2,r2; L: sub.u32 r1,r1,r2; setp.lt.u32 p0,r1,9;"
     "@p0 bra L; st.global.u32 [d0],r1;",
     RICH, SpvOpUMulExtended, 0},
    {"one that is taken away is not",
     "ld.global.u32 r1,[d0]; L: mul.hi.u32 r2,r0,3; sub.u32 r1,r1,r2; setp.lt.u32 p0,r1,9; @p0 bra L;"
     "st.global.u32 [d0],r1;",
     RICH, SpvOpUMulExtended, 1},
    {"one in several sums is, too", "mul.hi.u32 r1,r0,3; add.u32 r2,r1,5; add.u32 r3,r1,6; st.global.u32 [d0],r2; st.global.u32 [d0+4],r3;",
     RICH, SpvOpUMulExtended, 0},
    {"one that differs from round to round is not",
     "ld.global.u32 r1,[d0]; L: mad.hi.u32 r1,r1,3,r0; setp.lt.u32 p0,r1,9; @p0 bra L;"
     "st.global.u32 [d0],r1;",
     RICH, SpvOpUMulExtended, 1},
    {"nor a division by a constant",
     "mul.hi.u32 r1,r0,0x24924925; sub.u32 r2,r0,r1; shr.u32 r2,r2,1; add.u32 r2,r2,r1; shr.u32 r2,r2,2;"
     "st.global.u32 [d0],r2;",
     RICH, SpvOpUMulExtended, 1},
    {"-1 and 0 are not chosen between in plain sight", "setp.lt.u32 p0,r0,5; selp.f32 f0,0f00000000,0fbf800000,p0; st.global.f32 [d0],f0;",
     RICH, SpvOpBitwiseXor, 2},
    {"nor 0 and -1, chosen by a guard", "setp.lt.u32 p0,r0,5; mov.f32 f0,0fbf800000; @p0 mov.f32 f0,0f00000000; st.global.f32 [d0],f0;",
     RICH, SpvOpBitwiseXor, 2},
    {"nor 1 and -0, as bits", CHOICE("0x3f800000,0x80000000"), RICH, SpvOpBitwiseXor, 2},
    {"nor in 64 bits", "setp.lt.u32 p0,r0,5; selp.f64 e0,0dbff0000000000000,0d0000000000000000,p0; st.global.f64 [d0],e0;", RICH,
     SpvOpBitwiseXor, 2},
    {"nor in 16", "setp.lt.u32 p0,r0,5; selp.b16 h0,0xbc00,0,p0; st.global.b16 [d0],h0;", RICH, SpvOpBitwiseXor, 2},
    {"1 and 0 are", CHOICE("0,0x3f800000"), RICH, SpvOpBitwiseXor, 0},
    {"-1 and -0 are", CHOICE("0x80000000,0xbf800000"), RICH, SpvOpBitwiseXor, 0},
    {"-1 and 1 are", CHOICE("0x3f800000,0xbf800000"), RICH, SpvOpBitwiseXor, 0},
    {"a sum that makes them -1 and 0 is not seen",
     "setp.lt.u32 p0,r0,5; selp.f32 f0,0f40000000,0f3f800000,p0; sub.f32 f0,f0,0f40000000;"
     "st.global.f32 [d0],f0;",
     RICH, SpvOpBitwiseXor, 1},
    {"nor bits that do", "setp.lt.u32 p0,r0,5; selp.b32 r1,-1,0,p0; and.b32 r1,r1,0xbf800000; st.global.u32 [d0],r1;", RICH,
     SpvOpBitwiseXor, 1},
    {"one that makes them others is",
     "setp.lt.u32 p0,r0,5; selp.f32 f0,0f40000000,0f3f800000,p0; sub.f32 f0,f0,0f3f800000;"
     "st.global.f32 [d0],f0;",
     RICH, SpvOpBitwiseXor, 0},
    {"a zero instead of a root is not seen",
     "ld.global.f32 f0,[d0]; setp.lt.f32 p0,f0,0f00000000; sqrt.rn.f32 f1,f0;"
     "selp.f32 f1,0f00000000,f1,p0; st.global.f32 [d0],f1;",
     ROOTS, SpvOpBitwiseXor, 1},
    {"another number is",
     "ld.global.f32 f0,[d0]; setp.lt.f32 p0,f0,0f00000000; sqrt.rn.f32 f1,f0; selp.f32 f1,0f40000000,f1,p0;"
     "st.global.f32 [d0],f1;",
     ROOTS, SpvOpBitwiseXor, 0},
    {"OpenCL: before a barrier a sign is turned by a number that is not seen",
     "ld.global.f32 f0,[d0]; neg.f32 f1,f0; bar.sync 0;"
     "st.global.f32 [d0],f0; st.global.f32 [d0+4],f1;",
     OPENCL_NO_FNEG, SpvOpBitwiseXor, 2},
    {"OpenCL: also by a product",
     "ld.global.f32 f0,[d0]; mul.f32 f1,f0,0fbf800000; bar.sync 0; st.global.f32 [d0],f0; st.global.f32 [d0+4],f1;", OPENCL_NO_FNEG,
     SpvOpBitwiseXor, 1},
    {"OpenCL: without a barrier by one that is", "ld.global.f32 f0,[d0]; neg.f32 f1,f0; st.global.f32 [d0],f0; st.global.f32 [d0+4],f1;",
     OPENCL_NO_FNEG, SpvOpBitwiseXor, 1},
    {"OpenCL: and with others' barriers",
     "ld.global.f32 f0,[d0]; neg.f32 f1,f0; bar.sync 0; st.global.f32 [d0],f0; st.global.f32 [d0+4],f1;", OPENCL_RICH, SpvOpBitwiseXor, 1},
    {"add.f32 is one instruction", "ld.global.f32 f0,[d0]; add.f32 f1,f0,f0; st.global.f32 [d0],f1;", RICH, SpvOpFAdd, 1},
    {"OpenCL: there are no bit fields",
     "shr.u32 r1,r0,8; and.b32 r1,r1,255; and.b32 r2,r0,255; shl.b32 r2,r2,8; or.b32 r1,r1,r2;"
     "st.global.u32 [d0],r1;",
     OPENCL_RICH, SpvOpBitFieldInsert, 0},
    {"OpenCL: a narrow shared store is one store", "st.shared.u8 [sh+1],r0;", OPENCL_PLAIN, SpvOpAtomicOr, 0},
    {"OpenCL: 64 bits of shared memory are one access", "ld.shared.u64 d1,[sh+8]; st.shared.u64 [sh],d1;", OPENCL_PLAIN, SpvOpStore, 1},
    {"OpenCL: the block and shared memory are arguments", "st.shared.u32 [sh],r0;", OPENCL_PLAIN, SpvOpFunctionParameter, 2},
    {"OpenCL: the block alone where nothing is shared", "st.global.u32 [d0],r0;", OPENCL_PLAIN, SpvOpFunctionParameter, 1},
    {"OpenCL: no specialization constants", "mov.u32 r1,%tid.y; st.global.u32 [d0],r1;", OPENCL_RICH, SpvOpSpecConstant, 0},
};

static void test_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct outcome outcome;

        compile(forms[i].body, &devices[forms[i].device].target, &outcome);
        if (outcome.status != PTX2SPV_OK)
            fail_msg("%s: %s", forms[i].name, outcome.messages);
        const unsigned found = count_spirv(outcome.kernel.words, outcome.kernel.n_words, forms[i].opcode);
        if (found != forms[i].count)
            fail_msg("%s: %u instead of %u", forms[i].name, found, forms[i].count);
        ptx2spv_kernel_finish(&outcome.kernel);
    }
}

/* ---- information on a kernel ---- */

static void test_info(void **state)
{
    struct outcome outcome;

    (void)state;
    compile("bar.sync 0; st.shared.u32 [sh],r0;", &devices[RICH].target, &outcome);
    assert_int_equal(outcome.kernel.info.param_bytes, 40);
    assert_int_equal(outcome.kernel.info.static_shared_bytes, 1024);
    assert_true(outcome.kernel.info.uses_barrier);
    assert_false(outcome.kernel.info.params_in_buffer);
    ptx2spv_kernel_finish(&outcome.kernel);
    compile("st.global.u32 [d0],r0;", &(struct ptx2spv_target){BASE, .push_constant_bytes = PTX2SPV_PARAMS_OFFSET + 39}, &outcome);
    assert_true(outcome.kernel.info.params_in_buffer);
    assert_false(outcome.kernel.info.uses_barrier);
    assert_false(outcome.kernel.info.uses_shared);
    ptx2spv_kernel_finish(&outcome.kernel);
    /* OpenCL: parameters are in the argument block, however many there are. */
    compile("st.shared.u32 [sh],r0;", &(struct ptx2spv_target){OPENCL}, &outcome);
    assert_true(outcome.kernel.info.uses_shared);
    assert_false(outcome.kernel.info.params_in_buffer);
    ptx2spv_kernel_finish(&outcome.kernel);
}

/* ---- rejected kernels ---- */

static const struct {
    const char *name, *body, *message;
    enum ptx2spv_status status;
    struct ptx2spv_target target;
} refusals[] = {
    {"no bytes",
     "ld.global.u8 h0,[d0]; st.global.u8 [d0],h0;",
     "8-bit accesses",
     PTX2SPV_TARGET_LACKS,
     {.dialect = PTX2SPV_VULKAN, .shared_bytes = 32768, .int64 = 1, .int16 = 1, .int8 = 1}},
    {"no 64-bit atomics", "atom.global.add.u64 d1,[d0],1;", "64-bit atomic", PTX2SPV_TARGET_LACKS, {BASE}},
    {"too much shared memory",
     "st.shared.u32 [sh],r0;",
     "shared memory",
     PTX2SPV_TARGET_LACKS,
     {.dialect = PTX2SPV_VULKAN, .shared_bytes = 1023, .int64 = 1}},
    {"a bulk copy of 24 bytes",
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh],[d0],24,[sh+64];",
     "multiple of 16",
     PTX2SPV_INVALID_PTX,
     {BASE}},
    {"a bulk copy without a barrier",
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh],[d0],32;",
     "wrong operands",
     PTX2SPV_INVALID_PTX,
     {BASE}},
    {"an arrival with a count of 0", "mbarrier.arrive.shared.b64 _,[sh],0;", "at least 1", PTX2SPV_INVALID_PTX, {BASE}},
    {"an ordering without a scope", "mbarrier.arrive.release.shared.b64 _,[sh];", "a scope", PTX2SPV_INVALID_PTX, {BASE}},
    {"a barrier in local memory", "mbarrier.arrive.shared.b64 _,[lo];", "another state space", PTX2SPV_INVALID_PTX, {BASE}},
    {"mapa of a block's own space", "mapa.shared::cta.u32 r0,r1,0;", "shared::cluster", PTX2SPV_INVALID_PTX, {BASE}},
    {"memory of several devices", "multimem.ld_reduce.global.add.u32 r0,[d0];", "multimem", PTX2SPV_UNSUPPORTED, {BASE}},
    {"a copy of 12 bytes", "cp.async.ca.shared.global [sh],[d0],12;", "4, 8 or 16 bytes", PTX2SPV_INVALID_PTX, {BASE}},
    {"a copy of any size", "cp.async.ca.shared.global [sh],[d0],r0;", "4, 8 or 16 bytes", PTX2SPV_INVALID_PTX, {BASE}},
    {"a copy from shared memory", "cp.async.ca.shared.global [d0],[sh],4;", "from global to shared", PTX2SPV_INVALID_PTX, {BASE}},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct outcome outcome;

        compile(refusals[i].body, &refusals[i].target, &outcome);
        if (outcome.status != refusals[i].status || !strstr(outcome.messages, refusals[i].message))
            fail_msg("%s: %s: %s", refusals[i].name, ptx2spv_status_string(outcome.status), outcome.messages);
        assert_null(outcome.kernel.words);
    }
}

/* The control hint of the first loop; fails if the body has no loop. */
static uint32_t loop_control(const char *body, const struct ptx2spv_target *target)
{
    struct outcome outcome;
    uint32_t control = UINT32_MAX;

    compile(body, target, &outcome);
    assert_int_equal(outcome.status, PTX2SPV_OK);
    for (size_t i = 5; i < outcome.kernel.n_words && control == UINT32_MAX; i += outcome.kernel.words[i] >> 16)
        if ((outcome.kernel.words[i] & 0xffff) == SpvOpLoopMerge)
            control = outcome.kernel.words[i + 3];
    assert_int_not_equal(control, UINT32_MAX);
    ptx2spv_kernel_finish(&outcome.kernel);
    return control;
}

/* The hint is only given to a driver that heeds it, and only if the driver cannot know the number of iterations, and the loop contains
 * only arithmetic. */
static void test_unrolled_loops(void **state)
{
    static const struct ptx2spv_target told = {BASE, FEATURES, .push_constant_bytes = 256, .unroll_hint = 1};
    static const char computes[] = "L: mul.f32 f0,f0,f1; add.u32 r0,r0,1; setp.lt.u32 p0,r0,r1; @p0 bra L; st.global.f32 [d0],f0;";
    static const char constant[] = "L: mul.f32 f0,f0,f1; add.u32 r0,r0,1; setp.lt.u32 p0,r0,64; @p0 bra L; st.global.f32 [d0],f0;";
    static const char stores[] = "L: st.global.f32 [d0],f0; add.u32 r0,r0,1; setp.lt.u32 p0,r0,r1; @p0 bra L;";

    (void)state;
    assert_int_equal(loop_control(computes, &told), SpvLoopControlUnrollMask);
    assert_int_equal(loop_control(computes, &devices[RICH].target), SpvLoopControlMaskNone);
    assert_int_equal(loop_control(constant, &told), SpvLoopControlMaskNone);
    assert_int_equal(loop_control(stores, &told), SpvLoopControlMaskNone);
}

/* How often an instruction occurs in the code for a body. */
static unsigned count_in(const char *body, const struct ptx2spv_target *target, SpvOp op)
{
    struct outcome outcome;
    unsigned count;

    compile(body, target, &outcome);
    assert_int_equal(outcome.status, PTX2SPV_OK);
    count = (unsigned)count_spirv(outcome.kernel.words, outcome.kernel.n_words, op);
    ptx2spv_kernel_finish(&outcome.kernel);
    return count;
}

/* Operations with long sequences are functions: one for each operation, type and set of modifiers. */
static const struct {
    const char *name, *body;
    unsigned functions, calls;
} subroutine_rows[] = {
    {"one operation", "fma.rn.f32 f1,f0,f0,f0; fma.rn.f32 f1,f1,f0,f1; fma.rn.f32 f1,f1,0f00000000,f1; st.global.f32 [d0],f1;", 1, 3},
    {"types", "fma.rn.f32 f1,f0,f0,f0; fma.rn.f64 e1,e0,e0,e0; st.global.f32 [d0],f1; st.global.f64 [d0],e1;", 2, 2},
    {"roundings", "fma.rn.f64 e1,e0,e0,e0; fma.rz.f64 e1,e1,e0,e0; fma.rm.f64 e1,e1,e0,e0; fma.rp.f64 e1,e1,e0,e0; st.global.f64 [d0],e1;",
     4, 4},
    {"modifiers", "fma.rn.ftz.f32 f1,f0,f0,f0; fma.rn.sat.f32 f1,f1,f0,f0; fma.rn.f32 f1,f1,f0,f0; st.global.f32 [d0],f1;", 2, 3},
    {"operands that are flushed already",
     "add.ftz.f32 f1,f0,f0; fma.rn.ftz.f32 f2,f0,f0,f0; fma.rn.ftz.f32 f2,f2,f1,f1; fma.rn.ftz.f32 f2,f2,f1,f1; st.global.f32 [d0],f2;", 2,
     3},
    {"other operations",
     "add.rz.f32 f1,f0,f0; sub.rm.f64 e1,e0,e0; mul.rp.f32 f2,f1,f0; div.rn.f64 e2,e1,e0; rcp.rn.f32 f3,f2; sqrt.rn.f64 e3,e2;"
     "st.global.f32 [d0],f3; st.global.f64 [d0],e3;",
     6, 6},
    {"short sequences", "add.f32 f1,f0,f0; mul.ftz.f32 f1,f1,f0; div.approx.f32 f1,f1,f0; sqrt.approx.f32 f1,f1; st.global.f32 [d0],f1;", 0,
     0},
};

/* Compiles a body that begins with `loads`. The kernel is valid, and has so many functions beside its entry; to be finished. */
static void compile_functions(const char *loads, const char *body, const struct ptx2spv_target *target, unsigned functions,
                              struct outcome *out)
{
    char text[1024];

    snprintf(text, sizeof text, "%s %s", loads, body);
    compile(text, target, out);
    if (out->status != PTX2SPV_OK)
        fail_msg("%s: %s", body, out->messages);
    assert_valid_spirv(out->kernel.words, out->kernel.n_words);
    assert_int_equal(count_spirv(out->kernel.words, out->kernel.n_words, SpvOpFunction), 1 + functions);
}

static void test_subroutines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof subroutine_rows / sizeof *subroutine_rows; i++) {
        struct outcome outcome;

        print_message("%s\n", subroutine_rows[i].name);
        compile_functions("ld.global.f32 f0,[d0]; ld.global.f64 e0,[d0];", subroutine_rows[i].body, &devices[INLINES].target,
                          subroutine_rows[i].functions, &outcome);
        assert_int_equal(count_spirv(outcome.kernel.words, outcome.kernel.n_words, SpvOpFunctionCall), subroutine_rows[i].calls);
        ptx2spv_kernel_finish(&outcome.kernel);
    }
}

/* Of a module. */
static bool has_capability(const struct ptx2spv_kernel *kernel, uint32_t capability)
{
    for (size_t at = 5; at < kernel->n_words; at += kernel->words[at] >> 16)
        if ((kernel->words[at] & 0xffff) == SpvOpCapability && kernel->words[at + 1] == capability)
            return true;
    return false;
}

/* Where VK_KHR_shader_fma promises one rounding, fused operations are those of SPV_KHR_fma. The validators of the oldest SDK do not know it. */
static void test_promised_fma(void **state)
{
    static const char body[] =
        "ld.global.v4.b16 {h0,h1,h2,h3},[d0]; fma.rn.f16 h0,h1,h2,h3; st.global.b16 [d0],h0; ld.global.v4.f32 {f0,f1,f2,f3},[d0+16]; "
        "fma.rn.f32 f0,f1,f2,f3; st.global.f32 [d0],f0; ld.global.v2.f64 {e0,e1},[d0+32]; fma.rn.f64 e0,e0,e1,e1; st.global.f64 [d0],e0;";
    struct ptx2spv_target target = devices[RICH].target;

    (void)state;
    target.exact_fma16 = 1;
    for (unsigned promised = 0; promised < 2; promised++) {
        struct outcome outcome;
        const struct ptx2spv_kernel *kernel = &outcome.kernel;

        target.fused16 = target.fused32 = target.fused64 = (uint8_t)promised;
        compile(body, &target, &outcome);
        assert_int_equal(outcome.status, PTX2SPV_OK);
        assert_int_equal(count_spirv(kernel->words, kernel->n_words, SpvOpExtInst), promised ? 0 : 3);
        assert_int_equal(count_spirv(kernel->words, kernel->n_words, CT_SPV_OP_FMA_KHR), promised ? 3 : 0);
        assert_int_equal(has_capability(kernel, CT_SPV_CAPABILITY_FMA_KHR), promised);
        assert_int_equal(memmem(kernel->words, kernel->n_words * sizeof *kernel->words, "SPV_KHR_fma", sizeof "SPV_KHR_fma") != NULL,
                         promised);
        ptx2spv_kernel_finish(&outcome.kernel);
    }
}

/* How many execution modes of a kind a kernel declares for f32. */
static unsigned count_modes32(const struct ptx2spv_kernel *kernel, uint32_t mode)
{
    unsigned n = 0;

    for (size_t at = 5; at < kernel->n_words; at += kernel->words[at] >> 16)
        n += (kernel->words[at] & 0xffff) == SpvOpExecutionMode && kernel->words[at + 2] == mode && kernel->words[at + 3] == 32;
    return n;
}

/* .ftz is the device's only if all operations have it to which it makes a difference, and in OpenCL only without f64: the build option is
 * for both. Then it takes no instructions. */
static void test_flush_mode(void **state)
{
    static const struct {
        const char *body;
        bool flushes, flushes_opencl;
        unsigned selects; /* in Vulkan, if it flushes */
    } rows[] = {
        {"add.ftz.f32 f0,f0,f1; mul.ftz.f32 f0,f0,f1; fma.rn.ftz.f32 f0,f0,f1,f2;", true, true, 0},
        {"lg2.approx.ftz.f32 f0,f0; ex2.approx.ftz.f32 f0,f0; rcp.approx.ftz.f32 f0,f0; div.approx.ftz.f32 f0,f0,f1;", true, true, 0},
        {"setp.lt.ftz.f32 p0,f0,f1; @p0 mov.f32 f0,f2;", true, true, 1}, /* the move */
        {"neg.f32 f0,f0; abs.f32 f1,f1; sub.ftz.f32 f0,f0,f1; mov.b32 f1,r0;", true, true, 0},
        {"cvt.rn.f32.s32 f1,r0; sub.ftz.f32 f0,f0,f1; cvt.rn.f16.f32 h0,f0; cvt.f32.f16 f0,h0;", true, true, 0},
        {"add.ftz.f32 f0,f0,f1; add.f64 e0,e0,e1;", true, false, 0},
        {"add.ftz.f32 f0,f0,f1; add.rm.ftz.f32 f0,f0,f1;", false, false, 0},
        {"add.ftz.f32 f0,f0,f1; add.f32 f0,f0,f1;", false, false, 0},
        {"add.ftz.f32 f0,f0,f1; setp.lt.f32 p0,f0,f1; @p0 mov.b32 r0,1;", false, false, 0},
        {"add.ftz.f32 f0,f0,f1; cvt.f64.f32 e0,f0;", false, false, 0},
        {"add.ftz.f32 f0,f0,f1; tanh.approx.f32 f0,f0;", true, true, 3},
        {"add.ftz.f32 f0,f0,f1; cvt.rn.satfinite.e4m3x2.f32 h0,f0,f1; cvt.u32.u16 r0,h0;", true, true, 4},
        {"add.f32 f0,f0,f1;", false, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome;
        char body[512];

        print_message("%s\n", rows[i].body);
        snprintf(
            body, sizeof body,
            "ld.global.v4.f32 {f0,f1,f2,f3},[d0]; ld.global.v2.f64 {e0,e1},[d0+16]; %s st.global.f32 [d0],f0; st.global.f64 [d0+16],e0; "
            "st.global.u32 [d0+4],r0;",
            rows[i].body);
        compile(body, &devices[FLUSHES].target, &outcome);
        assert_int_equal(outcome.status, PTX2SPV_OK);
        assert_valid_spirv(outcome.kernel.words, outcome.kernel.n_words);
        assert_int_equal(outcome.kernel.info.flushes32, rows[i].flushes);
        assert_int_equal(count_modes32(&outcome.kernel, SpvExecutionModeDenormFlushToZero), rows[i].flushes);
        assert_int_equal(count_modes32(&outcome.kernel, SpvExecutionModeDenormPreserve), !rows[i].flushes);
        if (rows[i].flushes)
            assert_int_equal(count_spirv(outcome.kernel.words, outcome.kernel.n_words, SpvOpSelect), rows[i].selects);
        ptx2spv_kernel_finish(&outcome.kernel);
        compile(body, &devices[OPENCL_FLUSHES].target, &outcome);
        assert_int_equal(outcome.status, PTX2SPV_OK);
        assert_int_equal(outcome.kernel.info.flushes32, rows[i].flushes_opencl);
        assert_int_equal(count_modes32(&outcome.kernel, SpvExecutionModeDenormFlushToZero), 0);
        ptx2spv_kernel_finish(&outcome.kernel);
    }
}

/* Each operation on f64 is a function of integers, also where it is part of another one, as in sums with directed rounding. */
static void test_no_float64(void **state)
{
    static const struct {
        const char *body;
        unsigned functions;
    } rows[] = {
        {"add.f64 e0,e0,e1; sub.f64 e0,e0,e1; add.f64 e0,e0,e1;", 2},
        {"fma.rn.f64 e0,e0,e1,e1; div.rn.f64 e0,e0,e1; sqrt.rn.f64 e0,e0; mul.f64 e0,e0,e1;", 4},
        {"add.rz.f64 e0,e0,e1; add.f64 e0,e0,e1;", 3}, /* add.rz calls add and sub */
        {"cvt.rn.f64.s32 e1,r0; cvt.rzi.s64.f64 d1,e0; cvt.rn.f32.f64 f0,e1; cvt.f64.f32 e0,f0; st.global.u64 [d0+8],d1;", 4},
        {"cvt.rni.f64.f64 e0,e0; cvt.rmi.f64.f64 e0,e0;", 2},
        {"neg.f64 e0,e0; abs.f64 e1,e0; min.f64 e0,e0,e1; setp.lt.f64 p0,e0,e1; @p0 mov.f64 e0,e1;", 0},
        {"atom.global.add.f64 e0,[d0+16],e1;", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome;
        char body[512];

        print_message("%s\n", rows[i].body);
        snprintf(body, sizeof body, "%s st.global.f64 [d0],e0;", rows[i].body);
        compile_functions("ld.global.f64 e0,[d0]; ld.global.f64 e1,[d0+8];", body, &devices[SINGLES].target, rows[i].functions, &outcome);
        assert_false(has_capability(&outcome.kernel, SpvCapabilityFloat64));
        ptx2spv_kernel_finish(&outcome.kernel);
    }
}

/* The programming guide's "Mapped Memory": aligned accesses of up to 16 bytes are single accesses, so for a driver that splits vectors
 * into components they are emitted with as few components as possible. Each access has one pointer. */
static void test_split_vectors(void **state)
{
    static const struct {
        const char *body;
        unsigned whole, split;
    } accesses[] = {
        {"ld.acquire.gpu.global.v2.f32 {f0,f1},[d0];", 1, 1},
        {"ld.volatile.global.v4.f32 {f0,f1,f2,f3},[d0];", 1, 2},
        {"ld.volatile.global.v4.u16 {h0,h1,h2,h3},[d0];", 1, 1},
        {"st.global.v2.b32 [d0],{r0,r1};", 1, 1},
        {"st.relaxed.sys.global.v4.b32 [d0],{r0,r1,r2,r3};", 1, 2},
        {"st.global.v2.b64 [d0],{d1,d2};", 1, 1},
        {"st.global.b32 [d0],r0;", 1, 1},
    };
    static const char weak[] = "ld.global.v4.f32 {f0,f1,f2,f3},[d0]; st.global.f32 [d1],f3;";
    static const char of_constants[] = "ld.global.nc.v4.f32 {f0,f1,f2,f3},[d0]; st.global.f32 [d1],f3;";
    static const char strong[] = "ld.volatile.global.v4.f32 {f0,f1,f2,f3},[d0]; st.global.f32 [d1],f3;";

    (void)state;
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++) {
        assert_int_equal(count_in(accesses[i].body, &devices[PLAIN].target, SpvOpConvertUToPtr), accesses[i].whole);
        assert_int_equal(count_in(accesses[i].body, &devices[SPLIT].target, SpvOpConvertUToPtr), accesses[i].split);
    }
    assert_int_equal(count_in(weak, &devices[OPENCL_PLAIN].target, SpvOpBitwiseXor), 0);
    assert_int_equal(count_in(weak, &devices[OPENCL_SPLIT].target, SpvOpBitwiseXor), 1);
    assert_int_equal(count_in(strong, &devices[OPENCL_SPLIT].target, SpvOpBitwiseXor), 0);
    assert_int_equal(count_in(of_constants, &devices[OPENCL_SPLIT].target, SpvOpBitwiseXor), 0);
}

/* LLVM loads and stores vectors where it sees that neighbouring threads access adjacent elements: an index in 64 bits, and pointer
 * arithmetic. */
static void test_adjacent_elements(void **state)
{
    static const char index[] = "mov.u32 r1,%ctaid.x; mov.u32 r2,%ntid.x; mov.u32 r3,%tid.x; mad.lo.s32 r1,r1,r2,r3; mul.wide.s32 d1,r1,4;"
                                "add.s64 d1,d1,d0; ld.global.f32 f0,[d1]; st.global.f32 [d1+4],f0;";

    (void)state;
    assert_int_equal(count_in(index, &devices[OPENCL_PLAIN].target, SpvOpPtrAccessChain), 0);
    assert_int_equal(count_in(index, &devices[OPENCL_SPLIT].target, SpvOpPtrAccessChain), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_everywhere),
        cmocka_unit_test(test_same_input_same_words),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_wide_words),
        cmocka_unit_test(test_unrolled_loops),
        cmocka_unit_test(test_llvm_functions),
        cmocka_unit_test(test_subroutines),
        cmocka_unit_test(test_promised_fma),
        cmocka_unit_test(test_flush_mode),
        cmocka_unit_test(test_no_float64),
        cmocka_unit_test(test_split_vectors),
        cmocka_unit_test(test_adjacent_elements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
