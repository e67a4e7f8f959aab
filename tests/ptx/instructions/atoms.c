/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics of bf16, atomics of vectors, where each element is a separate operation, and accesses with device scope (PTX ISA, "atom", "red",
 * "ld"). %q0 points to memory of the thread. */
#include "rows.h"

/* bf16, round to nearest even: the sum of two bf16 is exact in f64. */
static uint16_t sum(uint16_t a, uint16_t b)
{
    return bf16_from_double((double)bf16_to_float(a) + (double)bf16_to_float(b));
}

static uint16_t half_sum(uint16_t a, uint16_t b)
{
    return f16_from_double((double)f16_to_float(a) + (double)f16_to_float(b), NEAREST);
}

static float plus(float a, float b)
{
    return add_f32(NEAREST, a, b);
}

/* Normal numbers only: whether .add.f32 in global memory flushes subnormals (PTX ISA, "atom") or keeps them depends on the device. */
#define FLOATS "{ .reg .f32 %f<5>; cvt.rn.f32.s32 %f1, %a; cvt.rn.f32.s32 %f2, %b; "

#define ROWS(R)                                                                                                                            \
    R(atom_add_bf16, "st.global.b16 [%q0], %a; atom.global.add.noftz.bf16 %h, [%q0], %b; ld.global.b16 %d, [%q0];", BF16, BF16, BF16,      \
      NONE, NONE, sum(a, b))                                                                                                               \
    R(atom_add_bf16_old, "st.global.b16 [%q0+2], %a; atom.global.add.noftz.bf16 %d, [%q0+2], %b;", BF16, BF16, BF16, NONE, NONE, a)        \
    R(mmio, "st.mmio.relaxed.sys.global.u32 [%q0], %b; ld.mmio.relaxed.sys.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, b)           \
    R(red_add_bf16, "st.global.b16 [%q0+2], %a; red.global.add.noftz.bf16 [%q0+2], %b; ld.global.b16 %d, [%q0+2];", BF16, BF16, BF16,      \
      NONE, NONE, sum(a, b))                                                                                                               \
    R(atom_add_bf16x2_low,                                                                                                                 \
      "mov.b32 %y, {%a, %b}; st.global.b32 [%q0], %y; mov.b32 %y, {%b, %a}; atom.global.add.noftz.bf16x2 %y2, [%q0], %y; "                 \
      "ld.global.b16 %d, [%q0];",                                                                                                          \
      BF16, BF16, BF16, NONE, NONE, sum(a, b))                                                                                             \
    R(red_add_v2_f32, FLOATS "st.global.v2.f32 [%q0], {%f1, %f2}; red.global.add.v2.f32 [%q0], {%f2, %f1}; ld.global.f32 %d, [%q0+4]; }",  \
      F32, S32, S32, NONE, NONE, plus((float)b, (float)a))                                                                                 \
    R(atom_add_v2_f32,                                                                                                                     \
      FLOATS "st.global.v2.f32 [%q0], {%f1, %f2}; atom.global.add.v2.f32 {%f3, %f4}, [%q0], {%f2, %f2}; ld.global.f32 %d, [%q0]; }", F32,  \
      S32, S32, NONE, NONE, plus((float)a, (float)b))                                                                                      \
    R(atom_add_v4_f32_old,                                                                                                                 \
      "{ .reg .f32 %f<5>; st.global.v4.f32 [%q0], {%a, %b, %c, %a}; "                                                                      \
      "atom.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%q0], {%c, %c, %c, %c}; mov.f32 %d, %f2; }",                                          \
      F32, F32, F32, F32, NONE, b)                                                                                                         \
    R(atom_add_v2_f16,                                                                                                                     \
      "{ .reg .b16 %h1, %h3; st.global.v2.b16 [%q0], {%a, %b}; atom.global.add.noftz.v2.f16 {%h1, %h3}, [%q0], {%b, %a}; "                 \
      "ld.global.b16 %d, [%q0+2]; }",                                                                                                      \
      F16, F16, F16, NONE, NONE, half_sum(a, b))                                                                                           \
    R(atom_max_v2_f16,                                                                                                                     \
      "{ .reg .b16 %h1, %h3; st.global.v2.b16 [%q0], {%a, %b}; atom.global.max.noftz.v2.f16 {%h1, %h3}, [%q0], {%b, %a}; "                 \
      "ld.global.b16 %d, [%q0]; }",                                                                                                        \
      F16, F16, F16, NONE, NONE,                                                                                                           \
      f16_from_double(fmax(f16_to_float(a), f16_to_float(b)) == 0 && (!(a & 0x8000) || !(b & 0x8000)) && !isnan(f16_to_float(a)) &&        \
                              !isnan(f16_to_float(b))                                                                                      \
                          ? 0.0                                                                                                            \
                          : fmax(f16_to_float(a), f16_to_float(b)),                                                                        \
                      NEAREST))

ROWS(REFERENCE)
static const struct row rows[] = {ROWS(ENTRY)};
const struct table table_atoms = {"atoms", rows, sizeof rows / sizeof *rows, ".version 8.6\n.target sm_90\n.address_size 64\n"};
