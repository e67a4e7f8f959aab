/* SPDX-License-Identifier: Apache-2.0 */
/* flush_mode: finds the kernels in which the device may flush f32 subnormals by itself (ptx2spv_target.denorm_flush32).
 * In:  SSA, before `lower`.   Out: the same; kernel->flushes32 is set.
 *
 * Devices flush in all operations of a kernel or in none, so every operation to which it makes a difference must have .ftz. That is usual:
 * `nvcc -use_fast_math` and `-ftz=true` write it everywhere. `lower` then leaves .ftz to the device where an operation stays one operation;
 * as code it takes several times as long as the operation. Whatever else `lower` makes of other operations works with subnormals only where
 * .ftz has removed them, or as integers.
 *
 * Which results count as tiny is the device's: one that rounds up to 2^-126 is a zero to NVIDIA's (ct_is_tiny64). */
#include "lower.h"
#include "ptx2spv/ir/builder.h"

static bool is_f32(enum ptx_type type)
{
    return type == PTX_F32 || type == PTX_BF16; /* bf16 is computed in f32 */
}

/* A conversion to or from f32 gives the same for subnormals and zeros if their result is zero: integers and f16 rounded to nearest or
 * towards zero. Integers and f16 are no subnormal f32. */
static bool converts_subnormals(const struct ct_insn *insn)
{
    const unsigned rounding = insn->rounding;
    const bool rounds_away = rounding == PTX_RM || rounding == PTX_RP || rounding == PTX_RMI || rounding == PTX_RPI;
    const bool from_wide = insn->type == PTX_F64, to_wide = insn->type2 == PTX_F64;

    return (is_f32(insn->type) && (to_wide || rounds_away)) || (is_f32(insn->type2) && from_wide);
}

static bool is_sensitive(const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_FCVT:
        return converts_subnormals(insn);
    case CT_OP_FNEG: /* of the sign bit only */
    case CT_OP_FABS:
        return false;
    default: /* not FTANH: lower_approximate.c */
        return ct_op_infos[insn->op].flags & CT_OPF_FLOAT && is_f32(insn->type) && !insn->ignores_subnormals;
    }
}

/* A result that is not rounded to nearest is computed from the nearest number and its rounding error, so that subnormal intermediate values must be kept. */
static bool is_directed(const struct ct_insn *insn)
{
    return insn->op != CT_OP_FCVT && is_sensitive(insn) && !ct_rounds_to_nearest(insn->rounding);
}

/* The build option of OpenCL is for floats of all widths; those of 16 bits are computed as f32, which has no subnormals among them. */
static bool is_forbidden(const struct ct_fn *fn, const struct ct_insn *insn)
{
    const bool is_wide = insn->type == PTX_F64 || (insn->op == CT_OP_FCVT && insn->type2 == PTX_F64);

    return (is_sensitive(insn) && !insn->ftz) || is_directed(insn) ||
           (fn->target->dialect == PTX2SPV_OPENCL && is_wide && (insn->op == CT_OP_FCVT || ct_op_infos[insn->op].flags & CT_OPF_FLOAT));
}

enum ct_pass_result ct_pass_flush_mode(struct ct_fn *fn)
{
    struct ct_block **blocks;
    uint32_t n;
    bool flushes = false;

    if (!fn->target->denorm_flush32 || fn->kernel)
        return CT_PASS_UNCHANGED;
    ct_fn_compute_rpo(fn);
    blocks = ct_fn_rpo_blocks(fn, &n);
    for (uint32_t b = 0; b < n; b++)
        for (const struct ct_insn *insn = blocks[b]->first; insn; insn = insn->next) {
            if (is_forbidden(fn, insn))
                return CT_PASS_UNCHANGED;
            flushes |= insn->ftz && is_sensitive(insn);
        }
    fn->flushes32 = flushes;
    return CT_PASS_UNCHANGED;
}
