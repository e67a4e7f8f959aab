/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of single PTX instructions on a device that use only the CUDA driver API: the same program checks Cuttle and, with NVIDIA's
 * libcuda, its own references.
 *
 * A row consists of PTX that computes %d from %a, %b, %c and %e, the types of these registers, and a host function, written from the text
 * of the PTX ISA, that returns the expected bits. Each row becomes a kernel; each thread processes one set of operands. */
#ifndef INSTRUCTIONS_HARNESS_H
#define INSTRUCTIONS_HARNESS_H

#include "../../float_bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_SOURCES 4

enum type { NONE, PRED, B8, B16, B32, B64, U16, S16, U32, S32, U64, S64, F16, BF16, F32, F64, TYPE_COUNT };

enum compare {
    EXACT,  /* the same bits; for float types any NaN equals any NaN */
    HALVES, /* the same for both halves of an f16x2 */
    EVERY,
    EVERY_HALVES, /* the same as EXACT and HALVES, and operand a, which has 16 bits, takes every value */
    BHALVES,      /* HALVES for a bf16x2 */
    FHALVES,      /* HALVES for an f32x2 */
    RELATIVE,     /* the reference is a double: |got - want| <= bound * |want| */
    ABSOLUTE,     /* the reference is a double: |got - want| <= bound */
};

struct row {
    const char *name, *text; /* PTX; it may also use the registers %x (predicate), %y (32 bits), %z (64 bits) */
    enum type result, sources[MAX_SOURCES];
    uint64_t (*want)(const uint64_t *in); /* bits of the result; for RELATIVE and ABSOLUTE, bits of a double */
    enum compare compare;
    double bound;
    double least, greatest; /* the interval of operand a, unless both are 0 (approximations) */
};

struct table {
    const char *name;
    const struct row *rows;
    unsigned n_rows;
    const char *header; /* of the module; NULL: that of prelude.h. PTX ISA 1.x: no functions, parameters as up to 1.3 */
};

/* ---- values.c ---- */
/* How many random operands a row has; for floats there are up to twice as many that are hard to round or near the ends of their range. */
extern unsigned random_cases;
/* Creates the operands for a row, MAX_SOURCES words for each case: combinations of each type's edge values, then random values; the same in
 * every run. */
uint64_t *operands_create(const struct row *row, unsigned *n_cases);
/* Makes three operands of F32 or F64 that are hard to round together (hard_operands.c); `next` returns random bits. */
void make_hard_operands(enum type type, unsigned number, uint64_t (*next)(void), uint64_t *out);
unsigned type_bits(enum type type);
bool type_is_float(enum type type);

/* ---- host arithmetic for the references (reference.c) ---- */
float f16_to_float(uint16_t bits);                    /* exact */
uint16_t f16_from_double(double value, int rounding); /* FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD; one rounding */
float bf16_to_float(uint16_t bits);
uint16_t bf16_from_double(double value); /* nearest even, one rounding */
uint16_t fma_f16(uint16_t a, uint16_t b, uint16_t c);
uint16_t fma_bf16(uint16_t a, uint16_t b, uint16_t c);
float flush(float value);    /* subnormals become zeros of the same sign */
float saturate(float value); /* clamps to [0, 1]; NaN becomes 0 */
/* One operation in the given rounding mode. */
float add_f32(int rounding, float a, float b);
float mul_f32(int rounding, float a, float b);
float div_f32(int rounding, float a, float b);
float fma_f32(int rounding, float a, float b, float c);
float sqrt_f32(int rounding, float a);
double add_f64(int rounding, double a, double b);
double mul_f64(int rounding, double a, double b);
double div_f64(int rounding, double a, double b);
double fma_f64(int rounding, double a, double b, double c);
double sqrt_f64(int rounding, double a);
float narrow_f32(int rounding, double a);
float float_of_s64(int rounding, int64_t a);
float float_of_u64(int rounding, uint64_t a);
double double_of_s64(int rounding, int64_t a);
double double_of_u64(int rounding, uint64_t a);
/* Rounds to an integral value. */
double integral(int rounding, double a);
/* PTX's conversion from float to integer: rounded, then clamped; nan: the result for NaN. */
int64_t to_signed(int rounding, double a, unsigned bits, int64_t nan);
uint64_t to_unsigned(int rounding, double a, unsigned bits, uint64_t nan);

/* ---- bits of host values ---- */
typedef int8_t c_B8;
typedef uint16_t c_B16, c_U16, c_F16, c_BF16;
typedef int16_t c_S16;
typedef uint32_t c_B32, c_U32;
typedef int32_t c_S32;
typedef uint64_t c_B64, c_U64;
typedef int64_t c_S64;
typedef bool c_PRED;
typedef float c_F32;
typedef double c_F64;
typedef int c_NONE;

/* All tables, in order. */
#define TABLE(name) extern const struct table table_##name;
#include "tables.def"

#endif
