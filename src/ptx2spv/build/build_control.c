/* SPDX-License-Identifier: Apache-2.0 */
/* build: jumps, calls, traps, barriers (PTX ISA, "Control Flow Instructions", "Parallel Synchronization and Communication"). */
#include "build_address.h"
#include "ptx2spv/module/module.h"

#include <inttypes.h>
#include <string.h>

/* ---- jumps ---- */

void ct_build_bra(struct ct_build *b)
{
    const ct_value guard = ct_build_guard(b);
    struct ct_block *target, *after;

    if (b->insn->operands[0].kind != PTX_OPND_LABEL) {
        ct_build_invalid(b, "a label is missing");
        return;
    }
    target = ct_build_label(b, b->insn->operands[0].label);
    after = ct_build_block(b);
    if (guard.i)
        ct_build_branch(b, guard, target, after);
    else
        ct_build_jump(b, target);
    ct_build_enter(b, after);
}

/* brx.idx index, list: an index past the end of the list is undefined, both in PTX and for SWITCH. */
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
    if (targets->n > CT_SWITCH_TARGETS_MAX) { /* refused here, before the other passes spend memory on it */
        ct_build_unsupported(b, ct_arena_printf(&b->fn->compilation->scratch, "an indexed branch with %" PRIu32 " targets", targets->n));
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

/* The frame object for an argument: the argument's variable, or a new object for a register or a constant. */
static uint32_t argument_local(struct ct_build *b, const struct ptx_operand *operand, const struct ptx_variable *formal)
{
    if (operand->kind == PTX_OPND_ADDRESS && operand->variable)
        return ct_build_frame_object(b, operand->variable);
    return ct_build_new_local(b, formal, formal->size_bytes, formal->align);
}

/* ---- calls of system functions, which a module may declare with a different prototype ---- */

static enum ptx_type word_of(const struct ptx_variable *object)
{
    const uint64_t bytes = object->size_bytes < object->align ? object->size_bytes : object->align;

    return bytes >= 8 ? PTX_U64 : bytes >= 4 ? PTX_U32 : bytes >= 2 ? PTX_U16 : PTX_U8;
}

static ct_value load_object(struct ct_build *b, uint32_t local, const struct ptx_variable *object)
{
    const enum ptx_type type = word_of(object);
    struct ct_insn *insn = ct_emit_object_access(&b->at, CT_OP_LOAD, type, local, 0);

    insn->results[0] = ct_value_create(b->fn, ct_width_of(type));
    return ct_resize(&b->at, insn->results[0], type, CT_W_64);
}

static void store_object(struct ct_build *b, uint32_t local, const struct ptx_variable *object, ct_value value)
{
    const enum ptx_type type = word_of(object);
    const ct_value word = ct_resize(&b->at, value, PTX_U64, ct_width_of(type));

    ct_emit_object_access(&b->at, CT_OP_STORE, type, local, 0)->operands[1] = word;
}

static const struct ptx_variable *object_of(const struct ptx_operand *operand)
{
    return operand && operand->kind == PTX_OPND_ADDRESS ? operand->variable : NULL;
}

/* Checks that every object among the operands is in the caller's frame. */
static bool check_objects(struct ct_build *b, const struct ptx_operand *operands, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct ptx_variable *object = object_of(&operands[i]);

        if (!object || ct_build_frame_object(b, object))
            continue;
        ct_build_invalid(b, "an argument is not a .param variable of the caller");
        return false;
    }
    return true;
}

/* Whether an argument can be passed as it is. */
static bool fits(const struct ptx_operand *operand, const struct ptx_variable *formal)
{
    const struct ptx_variable *object = object_of(operand);

    return operand && (!object || object->size_bytes == formal->size_bytes);
}

/* Creates an object of the callee's type for each argument that does not fit or is missing: truncated or zero-extended. */
static void fit_arguments(struct ct_build *b, const struct ptx_function *callee, const struct call_lists *lists,
                          struct ptx_operand *fitting, uint32_t *locals)
{
    for (uint32_t i = 0; i < callee->n_params; i++) {
        const struct ptx_variable *formal = callee->params[i];
        const struct ptx_operand *given = i < lists->n_arguments ? &lists->arguments[i] : NULL;
        const struct ptx_variable *object = object_of(given);

        fitting[i] = given ? *given : (struct ptx_operand){.kind = PTX_OPND_SINK};
        if (fits(given, formal))
            continue;
        fitting[i].kind = PTX_OPND_SINK;
        locals[i] = ct_build_new_local(b, formal, formal->size_bytes, formal->align);
        store_object(b, locals[i], formal, object ? load_object(b, ct_build_frame_object(b, object), object) : ct_const64(&b->at, 0));
    }
}

static bool check_call(struct ct_build *b, const struct ptx_function *callee, const struct call_lists *lists)
{
    if (lists->n_arguments != callee->n_params || lists->n_results != callee->n_results) {
        ct_error(b->fn->compilation, b->insn->where, PTX2SPV_INVALID_PTX,
                 "call of `%s' with %u arguments and %u results; the function has %u and %u", callee->name, lists->n_arguments,
                 lists->n_results, callee->n_params, callee->n_results);
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

static uint32_t *new_locals(struct ct_build *b, const struct ptx_function *callee)
{
    return CT_ARENA_ARRAY(&b->fn->compilation->arena, uint32_t, callee->n_params + callee->n_results);
}

/* Builds a call of `callee`, or an indirect call with the same parameters at `address`, if that is given. locals: the frame objects of
 * its parameters and results; 0 if not known yet. */
static struct ct_insn *build_call(struct ct_build *b, struct ptx_function *callee, const struct call_lists *lists, uint32_t *locals,
                                  ct_value address)
{
    const uint32_t n = callee->n_params + callee->n_results;
    struct ct_insn *insn;

    for (uint32_t i = 0; i < n; i++) {
        const bool is_result = i >= callee->n_params;
        const uint32_t k = is_result ? i - callee->n_params : i;

        if (!locals[i])
            locals[i] = argument_local(b, is_result ? &lists->results[k] : &lists->arguments[k],
                                       is_result ? callee->results[k] : callee->params[k]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!locals[i]) {
            ct_build_invalid(b, "an argument is not a .param variable of the caller");
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

/* Calls a system function with the arguments given, whatever their number and sizes. */
static void call_system(struct ct_build *b, struct ptx_function *callee, const struct call_lists *lists)
{
    struct ct_arena *arena = &b->fn->compilation->arena;
    const uint32_t n = callee->n_params + callee->n_results;
    struct ptx_operand *fitting = CT_ARENA_ARRAY(arena, struct ptx_operand, n), *results = fitting + callee->n_params;
    const struct ptx_operand *result = lists->n_results ? &lists->results[0] : NULL;
    const bool has_result = callee->n_results && result, keeps_result = has_result && fits(result, callee->results[0]);
    const struct call_lists all = {
        .results = results, .arguments = fitting, .n_results = callee->n_results, .n_arguments = callee->n_params};
    uint32_t *locals = new_locals(b, callee);
    struct ct_insn *call;

    if (!check_objects(b, lists->arguments, lists->n_arguments) || !check_objects(b, lists->results, lists->n_results))
        return;
    fit_arguments(b, callee, lists, fitting, locals);
    for (uint32_t i = 0; i < callee->n_results; i++)
        results[i] = keeps_result && i == 0 ? *result : (struct ptx_operand){.kind = PTX_OPND_SINK};
    call = build_call(b, callee, &all, locals, CT_NO_VALUE);
    if (call && has_result && !keeps_result)
        store_object(b, ct_build_frame_object(b, object_of(result)), object_of(result),
                     load_object(b, call->call_locals[callee->n_params], callee->results[0]));
}

/* call (results), register, (arguments), prototype-or-targets. */
static void call_address(struct ct_build *b, const struct call_lists *lists)
{
    struct ptx_function *signature = ptx_call_signature(b->insn);
    struct ct_insn *call;

    if (!signature) {
        ct_build_invalid(b, "an indirect call needs a prototype or a list of functions");
        return;
    }
    if (!check_call(b, signature, lists))
        return;
    call = build_call(b, signature, lists, new_locals(b, signature), ct_copy(&b->at, ct_build_source(b, 1, PTX_U64)));
    if (call)
        call->targets = ptx_call_targets(b->insn);
}

void ct_build_call(struct ct_build *b)
{
    struct ptx_function *callee = ptx_called_function(b->insn);
    struct call_lists lists;

    lists.results = list_of(b->insn, 0, &lists.n_results);
    lists.arguments = list_of(b->insn, 2, &lists.n_arguments);
    if (!callee)
        call_address(b, &lists);
    else if (!callee->has_body && strcmp(callee->name, PTX_ASSERTION_FAILED) == 0)
        build_fault(b, PTX2SPV_FAULT_ASSERT);
    else if (callee->is_system)
        call_system(b, callee, &lists);
    else if (check_call(b, callee, &lists))
        build_call(b, callee, &lists, new_locals(b, callee), CT_NO_VALUE);
}

/* ---- barriers ---- */

static void build_warp_barrier(struct ct_build *b)
{
    const ct_value mask = ct_build_source(b, 0, PTX_B32);

    ct_emit_insn(&b->at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = mask;
}

/* bar.sync a {, b}; bar.arrive a, b; bar.red d, a {, b}, {!}c. Only .red has a destination and, as its last operand, a predicate. */
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
        ct_build_invalid(b, "wrong number of operands");
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
