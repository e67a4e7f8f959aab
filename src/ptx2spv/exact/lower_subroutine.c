/* SPDX-License-Identifier: Apache-2.0 */
/* lower: operations with long sequences become calls of subroutines.
 *
 *     y = ffma.f64 a, b, c        =>        y = subroutine 0 a, b, c        and subroutine 0:  x = argument 0
 *                                                                                              y = argument 1
 *                                                                                              z = argument 2
 *                                                                                              r = ffma.f64 x, y, z
 *                                                                                              result r
 *
 * A kernel has one subroutine for each operation with its type and modifiers. The passes from `lower` on run on it as on a kernel
 * (pipeline.c), so its operation is replaced by the sequence there. Without subroutines each ffma.f64 takes some 200 instructions of
 * the IR, and as many of SPIR-V. Drivers that inline functions optimize the sequences together with the code around them, as before. */
#include "lower.h"
#include "ptx2spv/passes/simplify.h"

#include <inttypes.h>
#include <string.h>

enum { OPERANDS_MAX = 3 };

/* Whether the target's own operation is correctly rounded to nearest, or `guard` takes care of it. */
static bool target_rounds(const struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    const struct ptx2spv_target *target = l->fn->target;
    const enum ptx_type type = insn->type;

    switch ((unsigned)insn->op) {
    case CT_OP_FFMA:
        return type == PTX_F64 ? target->exact_fma64
               : type == PTX_F16
                   ? target->float16 && target->exact_fma16
                   : type == PTX_F32 && (target->exact_fma32 || ct_splits_fma32(l->fn, insn) || (ct_guards_fma32(l->fn) && !insn->ftz));
    case CT_OP_FDIV:
    case CT_OP_FRCP:
        return type == PTX_F64 ? target->exact_div64 : target->exact_div32 || target->exact_fma32;
    case CT_OP_FSQRT:
        return type == PTX_F64 ? target->exact_sqrt64 : target->exact_sqrt32;
    default:
        return true; /* sums and products are on every target */
    }
}

/* Whether an operation takes many instructions. Approximations, conversions, and operations with no other modifiers than .ftz and .sat
 * take few, and what is known of their operands makes them shorter. */
static bool is_long(const struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;

    switch ((unsigned)insn->op) {
    case CT_OP_FADD:
    case CT_OP_FSUB:
    case CT_OP_FMUL:
    case CT_OP_FFMA:
    case CT_OP_FDIV:
    case CT_OP_FRCP:
    case CT_OP_FSQRT:
        return !insn->approx && !(ct_rounds_to_nearest(insn->rounding) && target_rounds(l));
    default:
        return false;
    }
}

static bool computes(const struct ct_subroutine *subroutine, const struct ct_insn *insn, const struct ct_subroutine_call *call)
{
    const struct ct_insn *operation = subroutine->operation;

    return operation->op == insn->op && operation->type == insn->type && operation->type2 == insn->type2 &&
           operation->rounding == insn->rounding && operation->ftz == insn->ftz && operation->sat == insn->sat &&
           operation->nan == insn->nan && operation->residual == insn->residual && subroutine->flushed == call->flushed &&
           subroutine->fn->expands_software64 == call->expands_software64;
}

static ct_value add_argument(struct ct_cursor *at, uint32_t index, enum ct_width width, bool is_flushed)
{
    struct ct_insn *argument = ct_emit_insn(at, CT_OP_ARGUMENT, PTX_NONE, 1, 0);

    argument->imm = index;
    argument->ftz = is_flushed;
    return argument->results[0] = ct_value_create(at->fn, width);
}

/* The subroutine in the form that a kernel has before `lower`. */
static struct ct_subroutine create(struct ct_fn *caller, const struct ct_insn *insn, const struct ct_subroutine_call *call)
{
    struct ct_fn *kernel = ct_fn_kernel(caller), *fn = ct_fn_create(kernel->compilation, kernel->module, kernel->source, kernel->target);
    struct ct_cursor at = {.fn = fn, .block = ct_block_create(fn), .where = insn->where};
    ct_value arguments[OPERANDS_MAX], result = ct_value_create(fn, ct_width_of_value(caller, insn->results[0]));
    struct ct_insn *operation;

    fn->name =
        ct_arena_printf(&kernel->compilation->arena, "%s.%s.%" PRIu32, kernel->name, ct_op_infos[insn->op].name, kernel->subroutines.n);
    fn->kernel = kernel;
    fn->expands_software64 = call->expands_software64;
    fn->props = CT_PROP_CALLS_INLINED | CT_PROP_SYNCHRONIZED | CT_PROP_LAID_OUT | CT_PROP_REDUCIBLE | CT_PROP_SSA | CT_PROP_SPACES;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        arguments[i] = add_argument(&at, i, ct_width_of_value(caller, insn->operands[i]), call->flushed >> i & 1);
    operation = ct_emit_insn(&at, insn->op, insn->type, 1, insn->n_operands);
    operation->type2 = insn->type2;
    operation->rounding = insn->rounding;
    operation->ftz = insn->ftz;
    operation->sat = insn->sat;
    operation->nan = insn->nan;
    operation->residual = insn->residual;
    operation->results[0] = result;
    memcpy(operation->operands, arguments, insn->n_operands * sizeof *arguments);
    ct_emit_insn(&at, CT_OP_RESULT, PTX_NONE, 0, 1)->operands[0] = result;
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    return (struct ct_subroutine){.fn = fn, .operation = operation, .flushed = call->flushed};
}

/* The number of the subroutine that does what the instruction does. */
static uint32_t find_or_create(struct ct_fn *caller, const struct ct_insn *insn, const struct ct_subroutine_call *call)
{
    struct ct_fn *kernel = ct_fn_kernel(caller);

    for (uint32_t i = 0; i < kernel->subroutines.n; i++)
        if (computes(&kernel->subroutines.v[i], insn, call))
            return i;
    *CT_PUSH(&kernel->compilation->arena, &kernel->subroutines) = create(caller, insn, call);
    return kernel->subroutines.n - 1;
}

ct_value ct_subroutine_call(struct ct_cursor *at, const struct ct_insn *insn, const struct ct_subroutine_call *call)
{
    struct ct_insn *made = ct_emit_insn(at, CT_OP_SUBROUTINE, PTX_NONE, 1, insn->n_operands);

    made->imm = find_or_create(at->fn, insn, call);
    memcpy(made->operands, call->operands, insn->n_operands * sizeof *made->operands);
    return made->results[0] = ct_value_create(at->fn, ct_width_of_value(at->fn, insn->results[0]));
}

/* A constant is flushed before the call, so that the emitter sees if it is a zero. */
ct_value ct_lower_call(struct ct_lower *l)
{
    const struct ct_insn *insn = l->insn;
    const bool flushes = insn->ftz && insn->type == PTX_F32;
    ct_value operands[OPERANDS_MAX];
    struct ct_subroutine_call call = {.operands = operands};

    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const ct_value x = insn->operands[i];
        const bool is_constant = ct_constant_or_null(l->fn, x) != NULL;

        operands[i] = is_constant ? ct_lower_operand(l, i, insn->type) : x;
        if (flushes && (is_constant || (x.i < l->n_flushed && l->flushed[x.i])))
            call.flushed |= UINT32_C(1) << i;
    }
    return ct_subroutine_call(&l->at, insn, &call);
}

ct_value ct_lower_by_call(struct ct_lower *l)
{
    if (!l->fn->target->inlines || l->fn->kernel || !is_long(l))
        return CT_NO_VALUE;
    return ct_lower_call(l);
}
