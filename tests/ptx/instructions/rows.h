/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a file of rows: define ROWS(ROW) as a list of
 *   ROW(id, "PTX", result, a, b, c, e, expression)
 * The expression may use a, b, c, e as C values of those types, and its value is converted to the C type of the result. */
#ifndef INSTRUCTIONS_ROWS_H
#define INSTRUCTIONS_ROWS_H

#include "harness.h"

#include <fenv.h>
#include <math.h>

#define NEAREST FE_TONEAREST
#define ZERO FE_TOWARDZERO
#define DOWN FE_DOWNWARD
#define UP FE_UPWARD

#define get_NONE(bits) ((void)(bits), 0)
#define get_PRED(bits) ((bits) & 1)
#define get_F32(bits) f32_of(bits)
#define get_F64(bits) f64_of(bits)
#define get_B8(bits) (int8_t)(bits)
#define get_B16(bits) (uint16_t)(bits)
#define get_U16(bits) (uint16_t)(bits)
#define get_F16(bits) (uint16_t)(bits)
#define get_BF16(bits) (uint16_t)(bits)
#define get_S16(bits) (int16_t)(bits)
#define get_B32(bits) (uint32_t)(bits)
#define get_U32(bits) (uint32_t)(bits)
#define get_S32(bits) (int32_t)(bits)
#define get_B64(bits) (bits)
#define get_U64(bits) (bits)
#define get_S64(bits) (int64_t)(bits)

#define put_PRED(value) (uint64_t)(bool)(value)
#define put_F32(value) bits_of_f32(value)
#define put_F64(value) bits_of_f64(value)
#define put_B16(value) (uint16_t)(value)
#define put_U16(value) (uint16_t)(value)
#define put_F16(value) (uint16_t)(value)
#define put_BF16(value) (uint16_t)(value)
#define put_S16(value) (uint16_t)(value)
#define put_B32(value) (uint32_t)(value)
#define put_U32(value) (uint32_t)(value)
#define put_S32(value) (uint32_t)(value)
#define put_B64(value) (uint64_t)(value)
#define put_U64(value) (uint64_t)(value)
#define put_S64(value) (uint64_t)(value)

#define REFERENCE(id, text, result, ta, tb, tc, te, expression)                                                                            \
    static uint64_t want_##id(const uint64_t *in)                                                                                          \
    {                                                                                                                                      \
        const c_##ta a = get_##ta(in[0]);                                                                                                  \
        const c_##tb b = get_##tb(in[1]);                                                                                                  \
        const c_##tc c = get_##tc(in[2]);                                                                                                  \
        const c_##te e = get_##te(in[3]);                                                                                                  \
                                                                                                                                           \
        (void)a, (void)b, (void)c, (void)e;                                                                                                \
        return put_##result(expression);                                                                                                   \
    }
#define ENTRY(id, text, result, ta, tb, tc, te, expression) {#id, text, result, {ta, tb, tc, te}, want_##id, EXACT, 0, 0, 0},
#define DEFINE_TABLE(name, list)                                                                                                           \
    list(REFERENCE) static const struct row rows[] = {list(ENTRY)};                                                                        \
    const struct table table_##name = {#name, rows, sizeof rows / sizeof *rows, NULL};

#endif
