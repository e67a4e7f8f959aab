/* SPDX-License-Identifier: Apache-2.0 */
/* What fetch.cu, tensor.cu and core/blocks/decode.cu share: the words of CUDA C++ without its headers, and conversions. */
#define __device__ __attribute__((device))
#define FUNCTION extern "C" __device__ __attribute__((weak, noinline))
#define INLINE static inline __device__ __attribute__((always_inline))

typedef unsigned u32;
typedef unsigned long long u64;

INLINE float bits_of(u32 bits)
{
    return __builtin_bit_cast(float, bits);
}

INLINE u32 word_of(float value)
{
    return __builtin_bit_cast(u32, value);
}

/* By integers, since not every device has 16-bit floats. */
INLINE u32 float_of_half(u32 half)
{
    const u32 sign = (half & 0x8000) << 16, rest = half & 0x7fff;
    const u32 tiny = word_of((float)(int)rest * 0x1p-24f), normal = (rest << 13) + 0x38000000, special = 0x7f800000 | rest << 13;

    return sign | (rest < 0x400 ? tiny : rest < 0x7c00 ? normal : special);
}

/* Rounds to nearest even. */
INLINE u32 half_of_float(u32 word)
{
    const u32 sign = word >> 16 & 0x8000, rest = word & 0x7fffffff;
    const u32 tiny = (u32)(int)__builtin_rintf(bits_of(rest) * 0x1p24f), normal = (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13;
    const u32 special = rest > 0x7f800000 ? 0x7fff : 0x7c00;

    return sign | (rest < 0x38800000 ? tiny : rest < 0x47800000 ? normal : special);
}

/* v / (2^bits - 1), correctly rounded and without a division, which not every device has exactly: in binary the digits of v repeat behind
 * the point. They are rotated until the first one is 1, so that 32 of them determine the result; the last bit stands for all that follow. */
INLINE u32 fraction(u32 v, u32 bits)
{
    const u32 zeros = (u32)__builtin_clz(v) - (32 - bits);
    const u32 u = (v << zeros | v >> (bits - zeros)) & ((1u << bits) - 1);
    const u32 digits = bits == 8    ? u * 0x01010101
                       : bits == 16 ? u * 0x00010001
                       : bits == 10 ? u << 22 | u << 12 | u << 2 | u >> 8
                       : bits == 7  ? u << 25 | u << 18 | u << 11 | u << 4 | u >> 3
                                    : u << 17 | u << 2 | u >> 13;

    return word_of((float)(digits | 1)) - ((32 + zeros) << 23);
}
