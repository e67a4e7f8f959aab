/* SPDX-License-Identifier: Apache-2.0 */
/* build: sparse A of mma.sp (PTX ISA, "Sparse matrix storage", "Matrix Fragments for sparse mma"). Of each chunk of four elements of a row
 * two are given, with a metadata of 2 bits each that say where they are. Elements of 4 bits come in pairs, of which two of four are given; one
 * of 32 bits is described like two halves of it. So a chunk has four units of 8 or 16 bits. */
#include "matrix.h"

/* In a group of four lanes, which has rows r and r + 8, the lanes that have metadata are
 *   for units of 16 bits   one lane for 4 chunks: row r in its lower half, row r + 8 in its upper half
 *   for units of 8 bits    two lanes for 8 chunks: row r in the first, row r + 8 in the second
 * The selector says which lanes those are, if not all. */
static ct_value indices(struct ct_build *b, const struct ct_sparse *sparse, unsigned row, unsigned chunk, unsigned n_chunks)
{
    const bool has_halves = sparse->has_halves;
    const unsigned lanes = has_halves ? n_chunks / 4 : n_chunks / 8 * 2, first = sparse->selector * lanes & 3;
    const unsigned lane = first + (has_halves ? chunk / 4 : chunk / 8 * 2 + row / 8);
    const unsigned shift = has_halves ? 2 * row + chunk % 4 * 4 : chunk % 8 * 4;
    const ct_value word = ct_matrix_area_load(b, sparse->address, lane * sparse->lane_words + sparse->word);

    return shift ? ct_shr_imm(&b->at, word, shift) : word;
}

struct ct_sparse_chunk ct_sparse_expand(struct ct_build *b, const struct ct_sparse *sparse, ct_value compressed, unsigned n_words,
                                        unsigned row, unsigned chunk, unsigned n_chunks)
{
    struct ct_cursor *at = &b->at;
    const unsigned bits = n_words == 2 ? 16 : 8, log2_bits = n_words == 2 ? 4 : 3;
    const ct_value places = indices(b, sparse, row, chunk, n_chunks);
    struct ct_sparse_chunk out = {{CT_NO_VALUE, CT_NO_VALUE}};
    ct_value sum = CT_NO_VALUE;

    for (unsigned i = 0; i < 2; i++) {
        const ct_value place = ct_and_imm(at, i ? ct_shr_imm(at, places, 2) : places, 3);
        ct_value unit = ct_and_imm(at, i ? ct_shr_imm(at, compressed, bits) : compressed, (1u << bits) - 1);

        if (n_words == 2)
            unit = ct_zext64(at, unit);
        unit = ct_bits2(at, CT_OP_SHL, unit, ct_shl_imm(at, place, log2_bits));
        sum = i ? ct_or(at, sum, unit) : unit;
    }
    out.words[0] = sum;
    if (n_words == 2)
        ct_unpack2(at, sum, &out.words[0], &out.words[1]);
    return out;
}
