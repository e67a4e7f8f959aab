/* SPDX-License-Identifier: Apache-2.0 */
/* build: jumps, calls, traps, barriers (PTX ISA, "Control Flow Instructions", "Parallel Synchronization and Communication"). */
#include "build_address.h"

#include <string.h>

/* ---- jumps ---- */

void ct_build_bra(struct ct_build *b)
{
    const ct_value guard = ct_build_guard(b);
    struct ct_block *target, *behind;

    if (b->insn->operands[0].kind != PTX_OPND_LABEL) {
        ct_build_invalid(b, "a label is missing");
        return;
    }
    target = ct_build_label(b, b->insn->operands[0].label);
    behind = ct_build_block(b);
    if (guard.i)
        ct_build_branch(b, guard, target, behind);
    else
        ct_build_jump(b, target);
    ct_build_enter(b, behind);
}

/* brx.idx index, list: an index past the end of the list is undefined, for PTX as for SWITCH. */
void ct_build_brx(struct ct_build *b)
{
    const struct ptx_targets *targets = b->insn->n_operands > 1 ? b->insn->operands[1].targets : NULL;
    const ct_value index = ct_build_source(b, 0, PTX_U32);
    struct ct_block **succs;
    struct ct_insn *insn;

    if (!targets || !targets->n || !targets->labels) {
        ct_build_invalid(b, "a list of branch targets is missing");
        return;
    }
    succs = CT_ARENA_ARRAY(&b->fn->compilation->scratch, struct ct_block *, targets->n);
    for (uint32_t i = 0; i < targets->n; i++)
        succs[i] = ct_build_label(b, targets->labels[i]);
    insn = ct_emit_insn(&b->at, CT_OP_SWITCH, PTX_U32, 0, 1);
    insn->operands[0] = index;
    ct_block_set_succs(b->fn, b->at.block, targets->n, succs);
    ct_build_enter(b, ct_build_block(b));
}

/* ---- the end of a thread ---- */

static void build_fault(struct ct_build *b, enum ptx2spv_fault_code code)
{
    ct_emit_fault(&b->at, code);
    ct_build_terminate(b, CT_OP_EXIT);
}

void ct_build_trap(struct ct_build *b)
{
    build_fault(b, PTX2SPV_FAULT_TRAP);
}

/* ---- calls ---- */

struct call_lists {
    const struct ptx_operand *results, *arguments;
    uint32_t n_results, n_arguments;
};

static const struct ptx_operand *list_of(const struct ptx_instruction *insn, unsigned index, uint32_t *n)
{
    *n = 0;
    if (index >= insn->n_operands || insn->operands[index].kind == PTX_OPND_NONE)
        return NULL;
    return ct_build_items(&insn->operands[index], n);
}

/* The frame object that stands for an actual parameter: its own variable, or a new one for a register or a constant. */
static uint32_t actual_local(struct ct_build *b, const struct ptx_operand *operand, const struct ptx_variable *formal)
{
    if (operand->kind == PTX_OPND_ADDRESS && operand->variable)
        return ct_build_place(b, operand->variable);
    return ct_build_new_local(b, formal, formal->size_bytes, formal->align);
}

static bool check_call(struct ct_build *b, const struct ptx_function *callee, const struct call_lists *lists)
{
    if (lists->n_arguments != callee->n_params || lists->n_results != callee->n_results) {
        ct_error(b->fn->compilation, b->insn->where, PTX2SPV_INVALID_PTX, "call of `%s' with %u arguments and %u results, it has %u and %u",
                 callee->name, lists->n_arguments, lists->n_results, callee->n_params, callee->n_results);
        return false;
    }
    return true;
}

static void move_registers(struct ct_build *b, const struct ptx_operand *operands, struct ptx_variable *const *formals,
                           const uint32_t *locals, uint32_t n, bool load)
{
    for (uint32_t i = 0; i < n; i++)
        if (operands[i].kind != PTX_OPND_ADDRESS && operands[i].kind != PTX_OPND_SINK)
            ct_build_move_object(b, locals[i], formals[i]->type, &operands[i], load);
}

/* A call of `callee`, or of one with the same parameters at `address`, if that is given. */
static struct ct_insn *build_call(struct ct_build *b, struct ptx_function *callee, const struct call_lists *lists, ct_value address)
{
    const uint32_t n = callee->n_params + callee->n_results;
    uint32_t *locals = CT_ARENA_ARRAY(&b->fn->compilation->arena, uint32_t, n);
    struct ct_insn *insn;

    for (uint32_t i = 0; i < callee->n_params; i++)
        locals[i] = actual_local(b, &lists->arguments[i], callee->params[i]);
    for (uint32_t i = 0; i < callee->n_results; i++)
        locals[callee->n_params + i] = actual_local(b, &lists->results[i], callee->results[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (!locals[i]) {
            ct_build_invalid(b, "an argument is no .param variable of the caller");
            return NULL;
        }
    }
    move_registers(b, lists->arguments, callee->params, locals, callee->n_params, false);
    insn = ct_emit_insn(&b->at, CT_OP_CALL, PTX_NONE, 0, address.i != 0);
    insn->callee = callee;
    insn->call_locals = locals;
    if (address.i)
        insn->operands[0] = address;
    move_registers(b, lists->results, callee->results, locals + callee->n_params, callee->n_results, true);
    return insn;
}

/* call (results), register, (arguments), prototype-or-targets. */
static void call_address(struct ct_build *b, const struct call_lists *lists)
{
    const struct ptx_operand *last = b->insn->n_operands > 3 ? &b->insn->operands[3] : NULL;
    struct ptx_targets *targets = last ? last->targets : NULL;
    struct ptx_function *signature = targets && targets->functions && targets->n ? targets->functions[0] : last ? last->function : NULL;
    struct ct_insn *call;

    if (!signature) {
        ct_build_invalid(b, "a call through a register needs a prototype or a list of functions");
        return;
    }
    if (!check_call(b, signature, lists))
        return;
    call = build_call(b, signature, lists, ct_copy(&b->at, ct_build_source(b, 1, PTX_U64)));
    if (call)
        call->targets = targets;
}

void ct_build_call(struct ct_build *b)
{
    const struct ptx_operand *target = b->insn->n_operands > 1 ? &b->insn->operands[1] : NULL;
    struct ptx_function *callee;
    struct call_lists lists;

    lists.results = list_of(b->insn, 0, &lists.n_results);
    lists.arguments = list_of(b->insn, 2, &lists.n_arguments);
    if (!target || target->kind != PTX_OPND_FUNC || !target->function) {
        call_address(b, &lists);
        return;
    }
    callee = target->function;
    if (!callee->has_body && strcmp(callee->name, "__assertfail") == 0)
        build_fault(b, PTX2SPV_FAULT_ASSERT);
    else if (check_call(b, callee, &lists))
        build_call(b, callee, &lists, CT_NO_VALUE);
}

/* ---- barriers ---- */

static void build_warp_barrier(struct ct_build *b)
{
    const ct_value mask = ct_build_source(b, 0, PTX_B32);

    ct_emit_insn(&b->at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = mask;
}

/* bar.sync a {, b}; bar.arrive a, b; bar.red d, a {, b}, {!}c. Only .red has a destination and, last, a predicate. */
void ct_build_barrier(struct ct_build *b)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const bool red = mods->mode == PTX_MODE_RED;
    const enum ptx_type type = red && mods->operation == PTX_POPC ? PTX_U32 : PTX_PRED;
    const unsigned first = red, n = b->insn->n_operands - first;
    ct_value values[3], result = CT_NO_VALUE;
    struct ct_insn *insn;

    if (mods->mode == PTX_MODE_WARP) {
        build_warp_barrier(b);
        return;
    }
    if (mods->scope == PTX_CLUSTER) {
        ct_build_unsupported(b, "a cluster");
        return;
    }
    if (b->insn->n_operands < 1u + 2 * red || n > 2u + red) {
        ct_build_invalid(b, "a wrong number of operands");
        return;
    }
    for (unsigned i = 0; i < n; i++)
        values[i] = ct_build_source(b, first + i, red && i == n - 1 ? PTX_PRED : PTX_U32);
    insn = ct_emit_insn(&b->at, CT_OP_BARRIER, type, red, n);
    insn->mode = mods->mode;
    insn->operation = mods->operation;
    insn->aligned = b->insn->opcode == PTX_OP_BAR || mods->aligned;
    for (unsigned i = 0; i < n; i++)
        insn->operands[i] = values[i];
    if (red)
        insn->results[0] = result = ct_value_create(b->fn, ct_width_of(type));
    b->fn->uses_barrier = true;
    if (red)
        ct_build_result(b, result, type);
}
