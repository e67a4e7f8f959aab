/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two files for cvt: build_convert.c (integers and the float types that targets have) and build_narrow.c (the other
 * types). */
#ifndef PTX2SPV_BUILD_CONVERT_H
#define PTX2SPV_BUILD_CONVERT_H
/* Parts: build_narrow.c. */

#include "build_arithmetic.h"

/* Converts between f16, bf16, f32 and f64 as the instruction says, without .relu and .satfinite. */
ct_value ct_build_float_converted(struct ct_build *b, enum ptx_type to, enum ptx_type from, ct_value x);

bool ct_build_is_narrow(enum ptx_type type);                                   /* e4m3x2, e5m2x2 */
ct_value ct_build_widened(struct ct_build *b, enum ptx_type type, ct_value x); /* the low 8 bits of x, 32 bits wide, as f32 */
void ct_build_to_narrow(struct ct_build *b, enum ptx_type to, enum ptx_type from);
void ct_build_from_narrow(struct ct_build *b, enum ptx_type from);
void ct_build_to_tf32(struct ct_build *b);
void ct_build_pack(struct ct_build *b);

#endif
