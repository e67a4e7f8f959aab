/* SPDX-License-Identifier: Apache-2.0 */
/* lower: prmt whose selectors are not constant (PTX ISA, "prmt"). Vulkan and OpenCL have no such operation, and in general it takes 30
 * instructions beside some for the selectors. What is known of these makes it shorter:
 *   - nvcc clears the sign bits of the selectors of __byte_perm.
 *   - Programs shift texts by 0 to 4 bytes with selectors like 0x76543210 >> 4n (hashcat in thousands of places). Whatever n is, they take four
 *     bytes in a row, so both words are shifted as one of 64 bits. */
#include "lower.h"
#include "ptx2spv/ir/possible.h"

enum { SIGNS = 0x8888 /* the bits of the selectors that replace a byte by its sign */ };

/* Whether the selectors take four bytes in a row, in order. */
static bool is_row(uint64_t selectors)
{
    const uint64_t first = selectors & 15;

    return first <= 4 && (selectors & 0xffff) == 0x3210 + 0x1111 * first;
}

static bool are_rows(const struct ct_fn *fn, ct_value selectors)
{
    uint64_t values[CT_POSSIBLE_MAX];
    const uint32_t n = ct_possible_values(fn, selectors, values);

    for (uint32_t i = 0; i < n; i++)
        if (!is_row(values[i]))
            return false;
    return n > 0;
}

static ct_value row(struct ct_cursor *at, ct_value low, ct_value high, ct_value selectors)
{
    const ct_value amount = ct_shl_imm(at, ct_and_imm(at, selectors, 7), 3);

    return ct_low32(at, ct_op2(at, CT_OP_SHR, PTX_U64, ct_pack2(at, low, high), amount));
}

/* The byte that the lowest four bits of `selector` select, as the low 8 bits of a word. */
static ct_value select_byte(struct ct_cursor *at, ct_value low, ct_value high, ct_value selector, bool may_have_sign)
{
    const ct_value word = ct_select(at, ct_equals(at, ct_and_imm(at, selector, 4), 0), low, high);
    const ct_value byte = ct_op2(at, CT_OP_SHR, PTX_U32, word, ct_shl_imm(at, ct_and_imm(at, selector, 3), 3));

    if (!may_have_sign)
        return byte;
    return ct_select(at, ct_equals(at, ct_and_imm(at, selector, 8), 0), byte, ct_sar_imm(at, ct_shl_imm(at, byte, 24), 31));
}

static ct_value bytes(struct ct_cursor *at, ct_value low, ct_value high, ct_value selectors, uint64_t signs)
{
    ct_value result = CT_NO_VALUE;

    for (unsigned i = 0; i < 4; i++) {
        const bool may_have_sign = (signs >> 4 * i & 8) != 0;
        ct_value byte = select_byte(at, low, high, i ? ct_shr_imm(at, selectors, 4 * i) : selectors, may_have_sign);

        byte = i < 3 ? ct_and_imm(at, byte, 0xff) : byte;
        result = i ? ct_or(at, result, ct_shl_imm(at, byte, 8 * i)) : byte;
    }
    return result;
}

ct_value ct_lower_byte_permutation(struct ct_lower *l)
{
    const ct_value low = l->insn->operands[0], high = l->insn->operands[1], selectors = l->insn->operands[2];
    const struct ct_insn *constant = ct_constant_or_null(l->fn, selectors);

    if (constant)
        return ct_permuted(&l->at, low, high, (uint32_t)constant->imm);
    if (are_rows(l->fn, selectors))
        return row(&l->at, low, high, selectors);
    return bytes(&l->at, low, high, selectors, ct_possible_bits(l->fn, selectors) & SIGNS);
}
