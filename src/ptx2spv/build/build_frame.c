/* SPDX-License-Identifier: Apache-2.0 */
/* build: what all instruction families need of the function that is built: diagnostics, blocks, labels, guards, and the variables in the
 * thread's local memory. */
#include "build.h"

#include <assert.h>

/* ---- diagnostics ---- */

static void build_refusal(struct ct_build *b, const char *what)
{
    struct ct_arena *arena = &b->fn->compilation->arena;
    struct ct_refusal *refusal = CT_PUSH(arena, &b->fn->refusals);

    refusal->text = what ? ct_arena_printf(arena, "`%s': %s is not supported", b->insn->text, what)
                         : ct_arena_printf(arena, "`%s' is not supported", b->insn->text);
    ct_emit_fault(&b->at, PTX2SPV_FAULT_UNSUPPORTED);
    refusal->end = ct_emit_insn(&b->at, CT_OP_EXIT, PTX_NONE, 0, 0);
    ct_build_enter(b, ct_build_block(b));
}

/* Under a guard only the threads for which it is true get there. */
void ct_build_unsupported(struct ct_build *b, const char *what)
{
    struct ct_block *inside, *after;

    if (!b->guard.i) {
        build_refusal(b, what);
        return;
    }
    inside = ct_build_block(b);
    after = ct_build_block(b);
    ct_build_branch(b, b->guard, inside, after);
    ct_build_enter(b, inside);
    build_refusal(b, what);
    ct_build_jump(b, after); /* ends the dead block */
    ct_build_enter(b, after);
}

void ct_build_invalid(struct ct_build *b, const char *why)
{
    ct_error(b->fn->compilation, b->insn->where, PTX2SPV_INVALID_PTX, "`%s': %s", b->insn->text, why);
}

/* ---- blocks ---- */

struct ct_block *ct_build_block(struct ct_build *b)
{
    return ct_block_create(b->fn);
}

void ct_build_enter(struct ct_build *b, struct ct_block *block)
{
    b->at.block = block;
}

void ct_build_jump(struct ct_build *b, struct ct_block *to)
{
    ct_emit_insn(&b->at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(b->fn, b->at.block, 1, &to);
}

void ct_build_branch(struct ct_build *b, ct_value condition, struct ct_block *yes, struct ct_block *no)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_CBR, PTX_PRED, 0, 1);

    insn->operands[0] = condition;
    ct_block_set_succs(b->fn, b->at.block, 2, (struct ct_block *[]){yes, no});
}

void ct_build_terminate(struct ct_build *b, enum ct_op op)
{
    ct_emit_insn(&b->at, op, PTX_NONE, 0, 0);
    if (op == CT_OP_RET)
        *CT_PUSH(&b->fn->compilation->arena, &b->body->returns) = b->at.block;
    ct_build_enter(b, ct_build_block(b));
}

struct ct_block *ct_build_label(struct ct_build *b, const struct ptx_label *label)
{
    struct ct_block **target;

    assert(label->statement <= b->syntax->instructions.n);
    target = &b->targets[label->statement];
    if (!*target)
        *target = ct_build_block(b);
    return *target;
}

/* ---- the frame: variables in the thread's local memory ---- */

static struct ct_frame_entry *find_frame_entry(struct ct_build *b, const struct ptx_variable *variable)
{
    uint32_t i = (uint32_t)(((uintptr_t)variable >> 4) * 2654435761u) & b->frame_mask;

    while (b->frame[i].variable && b->frame[i].variable != variable)
        i = (i + 1) & b->frame_mask;
    return &b->frame[i];
}

uint32_t ct_build_frame_object(struct ct_build *b, const struct ptx_variable *variable)
{
    return find_frame_entry(b, variable)->local;
}

uint32_t ct_build_new_local(struct ct_build *b, const struct ptx_variable *variable, uint64_t size_bytes, uint32_t align)
{
    struct ct_local *local = CT_PUSH(&b->fn->compilation->arena, &b->fn->locals);

    local->variable = variable;
    local->size_bytes = size_bytes;
    local->align = align ? align : 1;
    return b->fn->locals.n;
}

static uint32_t add_frame_object(struct ct_build *b, const struct ptx_variable *variable)
{
    struct ct_frame_entry *entry = find_frame_entry(b, variable);

    if (!entry->variable) {
        entry->variable = variable;
        entry->local = ct_build_new_local(b, variable, variable->size_bytes, variable->align);
    }
    return entry->local;
}

/* Old-style parameters (.reg in a function's header) are passed through frame objects, like the others. */
static uint32_t add_formal(struct ct_build *b, const struct ptx_variable *variable, const struct ptx_register *reg)
{
    const uint32_t bytes = reg ? (ptx_type_bits(ct_part_type(reg->type)) + 7) / 8 * ct_register_parts(reg) : 0;

    return reg ? ct_build_new_local(b, variable, bytes, bytes) : add_frame_object(b, variable);
}

static void add_formals(struct ct_build *b)
{
    const struct ptx_function *source = b->source;
    uint32_t n = 0;

    b->body->locals = CT_ARENA_ARRAY(&b->fn->compilation->arena, uint32_t, source->n_params + source->n_results);
    for (uint32_t i = 0; i < source->n_params; i++)
        b->body->locals[n++] = add_formal(b, source->params[i], source->param_regs ? source->param_regs[i] : NULL);
    for (uint32_t i = 0; i < source->n_results; i++)
        b->body->locals[n++] = add_formal(b, source->results[i], source->result_regs ? source->result_regs[i] : NULL);
}

/* Lays out the parameters of an entry in the parameter block, one after the other, each at its own alignment. */
static void lay_out_entry_params(struct ct_build *b)
{
    uint64_t offset = 0;

    b->param_offsets = CT_ARENA_ARRAY(&b->fn->compilation->scratch, uint32_t, b->source->n_params);
    for (uint32_t i = 0; i < b->source->n_params; i++) {
        const struct ptx_variable *param = b->source->params[i];
        const uint64_t align = param->align ? param->align : 1;

        offset = (offset + align - 1) / align * align;
        b->param_offsets[i] = (uint32_t)offset;
        offset += param->size_bytes;
    }
}

void ct_build_add_frame_variables(struct ct_build *b)
{
    const struct ptx_function *source = b->source;
    uint32_t capacity = 16;

    while (capacity < 2 * (b->syntax->variables.n + source->n_params + source->n_results))
        capacity *= 2;
    b->frame = CT_ARENA_ARRAY(&b->fn->compilation->scratch, struct ct_frame_entry, capacity);
    b->frame_mask = capacity - 1;
    if (source->is_entry)
        lay_out_entry_params(b);
    else
        add_formals(b);
    for (uint32_t i = 0; i < b->syntax->variables.n; i++) {
        const struct ptx_variable *variable = b->syntax->variables.v[i];

        if (variable->space == PTX_SPACE_LOCAL || variable->space == PTX_SPACE_PARAM)
            add_frame_object(b, variable);
    }
}

bool ct_build_param_offset(const struct ct_build *b, const struct ptx_variable *variable, uint64_t *out)
{
    if (!b->source->is_entry || variable->space != PTX_SPACE_PARAM)
        return false;
    for (uint32_t i = 0; i < b->source->n_params; i++) {
        if (b->source->params[i] == variable) {
            *out = b->param_offsets[i];
            return true;
        }
    }
    return false;
}

/* ---- guards ---- */

ct_value ct_build_guard(struct ct_build *b)
{
    ct_value guard;

    if (!b->insn->guard)
        return CT_NO_VALUE;
    guard = b->registers[b->insn->guard->index];
    /* Copied, since the instruction may assign to the guard's register before the last use of the guard. */
    return b->insn->guard_negated ? ct_not(&b->at, guard) : ct_copy(&b->at, guard);
}
