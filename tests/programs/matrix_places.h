/* SPDX-License-Identifier: Apache-2.0 */
/* Which lane holds which element in the operands of mma: the formulas of PTX ISA, "Matrix Fragments for mma...", except those of m8n8k4 with 16-bit
 * floats. */
#ifndef TESTS_MATRIX_PLACES_H
#define TESTS_MATRIX_PLACES_H

struct matrix_place {
    unsigned row, column;
};

/* Element i of a lane's a, b or c (also d) for a shape with m rows and factors of `bits`: `group` and `in_group` are groupID and threadID_in_group of
 * the ISA; `pack` elements are in a register. */
static inline struct matrix_place matrix_place(unsigned m, unsigned bits, char operand, unsigned lane, unsigned i)
{
    const unsigned group = lane / 4, in_group = lane % 4, pack = bits >= 32 ? 1 : 32 / bits;
    struct matrix_place place = {group, 0};

    if (operand == 'b') {
        place.row = pack * in_group + i % pack + 4 * pack * (i / pack);
        place.column = group;
    } else if (operand == 'a') {
        const unsigned part = m == 8 ? i / pack * 2 : i / pack;

        place.row += part % 2 * 8;
        place.column = pack * in_group + i % pack + 4 * pack * (part / 2);
    } else {
        place.row += i / 2 * 8;
        place.column = 2 * in_group + i % 2;
    }
    return place;
}

#endif
