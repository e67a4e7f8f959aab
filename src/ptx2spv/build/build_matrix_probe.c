/* SPDX-License-Identifier: Apache-2.0 */
/* build: the kernel that finds out which lane of the device's matrix units holds which element (struct ptx2spv_matrix_probe). */
#include "build.h"

#include <stddef.h>

static struct ct_insn *unit_insn(struct ct_build *b, enum ct_op op, unsigned matrix, unsigned use, unsigned n_results, unsigned n_operands)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, PTX_B32, n_results, n_operands);

    insn->imm = matrix;
    insn->mode = (uint8_t)use;
    for (unsigned i = 0; i < n_results; i++)
        insn->results[i] = ct_value_create(b->fn, CT_W_32);
    return insn;
}

static ct_value probe_address(struct ct_build *b)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_LOAD, PTX_B64, 1, 0);

    insn->space = CT_SPACE_PARAM;
    return insn->results[0] = ct_value_create(b->fn, CT_W_64);
}

static void store(struct ct_build *b, ct_value address, size_t offset, ct_value value)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->align_log2 = 2;
    insn->offset = (int64_t)offset;
    insn->operands[0] = address;
    insn->operands[1] = value;
}

static void probe(struct ct_build *b, ct_value address, ct_value of_lane, unsigned matrix, unsigned use)
{
    const struct ptx2spv_matrix *row = &b->fn->target->matrices[matrix];
    const unsigned bits = ptx2spv_matrix_element_bits(use == PTX2SPV_MATRIX_C ? row->sum : row->factor);
    const unsigned words = row->components[use] * bits / 32;

    if (!row->components[use])
        store(b, address, offsetof(struct ptx2spv_matrix_probe, uses[matrix][use].components),
              unit_insn(b, CT_OP_MATRIXSIZE, matrix, use, 1, 0)->results[0]);
    for (unsigned input = 0; input < 2 && words; input++) {
        struct ct_insn *load = unit_insn(b, CT_OP_MATRIXLOAD, matrix, use, words, 1);

        load->operands[0] = address;
        load->offset = (int64_t)offsetof(struct ptx2spv_matrix_probe, uses[matrix][use].inputs[input]);
        for (unsigned i = 0; i < words; i++)
            store(b, of_lane, offsetof(struct ptx2spv_matrix_probe, uses[matrix][use].words[input][i]), load->results[i]);
    }
}

void ct_build_matrix_probe(struct ct_build *b)
{
    const ct_value address = probe_address(b), lane = ct_sysval(&b->at, CT_SYS_LANEID);
    const ct_value of_lane = ct_add(&b->at, address, ct_zext64(&b->at, ct_shl_imm(&b->at, lane, 2)));

    b->fn->whole_warps = true;
    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX && b->fn->target->matrices[i].m; i++)
        for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++)
            probe(b, address, of_lane, i, use);
}
