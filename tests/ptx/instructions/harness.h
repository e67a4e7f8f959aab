/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of single PTX instructions on a device, through nothing but the CUDA driver API: the same program checks Cuttle and, run
 * with NVIDIA's libcuda, its own references.
 *
 * A row is a piece of PTX that computes %d from %a, %b, %c and %e, the types of these registers, and a host function, written from
 * the words of the PTX ISA, that gives the bits to expect. Each row becomes a kernel; each thread takes one set of operands. */
#ifndef INSTRUCTIONS_HARNESS_H
#define INSTRUCTIONS_HARNESS_H

#include "../../float_bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_SOURCES 4

enum type { NONE, PRED, B8, B16, B32, B64, U16, S16, U32, S32, U64, S64, F16, BF16, F32, F64, TYPE_COUNT };

enum compare {
    EXACT,  /* the same bits; of float types any NaN for a NaN */
    HALVES, /* the same for both halves of an f16x2 */
    EVERY,
    EVERY_HALVES, /* the same two, and operand a, which has 16 bits, takes every value */
    BHALVES,      /* of a bf16x2 */
    FHALVES,      /* of an f32x2 */
    RELATIVE,     /* the reference is a double: |got - want| <= bound * |want| */
    ABSOLUTE,     /* the same: |got - want| <= bound */
};

struct row {
    const char *name, *text; /* PTX; it may use the registers %x (predicate), %y (32 bits), %z (64 bits) too */
    enum type result, sources[MAX_SOURCES];
    uint64_t (*want)(const uint64_t *in); /* bits of the result; RELATIVE, ABSOLUTE: of a double */
    enum compare compare;
    double bound;
    double least, greatest; /* operand a is taken from this interval unless both are 0 (approximations) */
};

struct table {
    const char *name;
    const struct row *rows;
    unsigned n_rows;
    const char *header; /* of its module; NULL: that of prelude.h. PTX ISA 1.x: no functions, parameters as up to 1.3 */
};

/* ---- values.c ---- */
/* Operands for a row: MAX_SOURCES words a case. Edge values of each type combined, then random ones; the same on every run. */
uint64_t *operands_create(const struct row *row, unsigned *n_cases);
/* Three operands of F32 or F64 that belong together (hurtful.c); `next` gives random bits. */
void make_hurtful(enum type type, unsigned number, uint64_t (*next)(void), uint64_t *out);
unsigned type_bits(enum type type);
bool type_is_float(enum type type);

/* ---- host arithmetic for the references (reference.c) ---- */
float f16_to_float(uint16_t bits);                    /* exact */
uint16_t f16_from_double(double value, int rounding); /* FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD; one rounding */
float bf16_to_float(uint16_t bits);
uint16_t bf16_from_double(double value); /* nearest even, one rounding */
float flush(float value);                /* subnormals to zeros of the same sign */
float saturate(float value);             /* [0, 1], NaN to 0 */
/* One operation in a rounding mode. */
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
/* To an integral value. */
double integral(int rounding, double a);
/* PTX's float to integer conversion: rounded, clamped; nan: what NaN gives. */
int64_t to_signed(int rounding, double a, unsigned bits, int64_t nan);
uint64_t to_unsigned(int rounding, double a, unsigned bits, uint64_t nan);

/* ---- the bits of host values ---- */
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

/* The tables, and all of them in order. */
#define TABLE(name) extern const struct table table_##name;
#include "tables.def"

#endif
