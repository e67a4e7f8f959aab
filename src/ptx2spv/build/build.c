/* SPDX-License-Identifier: Apache-2.0 */
/* build: translates the syntax tree of one function to IR in register form (every PTX register is a value that may be assigned many
 * times).
 *
 * A block begins at each label and after each jump. build.def and the file of each instruction family define the translation of the
 * opcodes. */
#include "build_async.h"
#include "ptx2spv/module/bodies.h"

#include <string.h>

static const struct ct_build_rule rules[PTX_OPCODE_COUNT] = {
#define BUILD(opcode, handler, guarding, integer_op, float_op)                                                                             \
    [PTX_OP_##opcode] = {ct_build_##handler, CT_GUARD_##guarding, CT_OP_##integer_op, CT_OP_##float_op},
#include "build.def"
};

static const struct ct_build_rule async_rule = {ct_build_async, CT_GUARD_BRANCH, CT_OP_CONST, CT_OP_CONST};

static void build_unknown(struct ct_build *b)
{
    ct_build_unsupported(b, NULL);
}

static const struct ct_build_rule unknown_rule = {build_unknown, CT_GUARD_BRANCH, CT_OP_CONST, CT_OP_CONST};

static const struct ct_build_rule *rule_of(const struct ptx_instruction *insn)
{
    if (ct_is_async_form(insn))
        return &async_rule;
    return rules[insn->opcode].build && !insn->mods.unsupported ? &rules[insn->opcode] : &unknown_rule;
}

/* ---- registers ---- */

static void make_registers(struct ct_build *b)
{
    const struct ptx_body *syntax = b->syntax;

    b->registers = CT_ARENA_ARRAY(&b->fn->compilation->scratch, ct_value, syntax->registers.n);
    for (uint32_t i = 0; i < syntax->registers.n; i++) {
        const struct ptx_register *reg = syntax->registers.v[i];

        for (unsigned part = 0; part < ct_register_parts(reg); part++) {
            const ct_value value = ct_value_create(b->fn, ct_width_of(ct_part_type(reg->type)));

            b->fn->values.v[value.i].name = reg->index + 1;
            if (part == 0)
                b->registers[i] = value;
        }
    }
}

/* Copies between the registers and the frame objects of old-style parameters: inputs at the entry, results before ret. */
static void move_formals(struct ct_build *b, struct ptx_register **regs, uint32_t n, uint32_t first_local, bool load)
{
    for (uint32_t i = 0; regs && i < n; i++) {
        const struct ptx_operand operand = {.kind = PTX_OPND_REG, .reg = regs[i], .component = -1};

        if (regs[i])
            ct_build_move_object(b, b->body->locals[first_local + i], regs[i]->type, &operand, load);
    }
}

/* ---- statements ---- */

static void build_in_branch(struct ct_build *b)
{
    struct ct_block *inside = ct_build_block(b), *after = ct_build_block(b);

    ct_build_branch(b, ct_build_guard(b), inside, after);
    ct_build_enter(b, inside);
    b->rule->build(b);
    ct_build_jump(b, after);
    ct_build_enter(b, after);
}

static void build_instruction(struct ct_build *b, const struct ptx_instruction *insn)
{
    b->insn = insn;
    b->rule = rule_of(insn);
    b->at.where = insn->where;
    if (insn->guard && b->rule->guarding == CT_GUARD_BRANCH) {
        build_in_branch(b);
        return;
    }
    b->guard = b->rule->guarding == CT_GUARD_SELECT ? ct_build_guard(b) : CT_NO_VALUE;
    b->rule->build(b);
    b->guard = CT_NO_VALUE;
}

/* Creates a block for each statement that has a label. */
static void make_targets(struct ct_build *b)
{
    b->targets = CT_ARENA_ARRAY(&b->fn->compilation->scratch, struct ct_block *, (size_t)b->syntax->instructions.n + 1);
    for (uint32_t i = 0; i < b->syntax->labels.n; i++)
        if (b->syntax->labels.v[i]->defined)
            ct_build_label(b, b->syntax->labels.v[i]);
}

static void build_statements(struct ct_build *b)
{
    for (uint32_t i = 0; i <= b->syntax->instructions.n; i++) {
        if (b->targets[i]) {
            ct_build_jump(b, b->targets[i]);
            ct_build_enter(b, b->targets[i]);
        }
        if (i < b->syntax->instructions.n)
            build_instruction(b, &b->syntax->instructions.v[i]);
    }
}

/* Builds ret, and the implicit return at the end of the body. */
static void build_return(struct ct_build *b)
{
    if (b->source->is_entry)
        ct_build_leave_cluster(b);
    else
        move_formals(b, b->source->result_regs, b->source->n_results, b->source->n_params, false);
    ct_build_terminate(b, CT_OP_RET);
}

void ct_build_leave(struct ct_build *b)
{
    const ct_value guard = ct_build_guard(b);
    struct ct_block *inside = NULL, *after = NULL;

    if (guard.i) {
        inside = ct_build_block(b);
        after = ct_build_block(b);
        ct_build_branch(b, guard, inside, after);
        ct_build_enter(b, inside);
    }
    if (b->insn->opcode == PTX_OP_RET) {
        build_return(b);
    } else {
        ct_build_leave_cluster(b);
        ct_build_terminate(b, CT_OP_EXIT);
    }
    if (after) {
        ct_build_jump(b, after); /* ends the dead block after the return */
        ct_build_enter(b, after);
    }
}

bool ct_build_body(struct ct_fn *fn, const struct ptx_function *source, struct ct_body *out)
{
    const unsigned errors = fn->compilation->n_errors;
    struct ct_build b = {
        .fn = fn, .source = source, .syntax = ct_fn_body(fn, source), .body = out, .at = {.fn = fn, .where = source->where}};

    memset(out, 0, sizeof *out);
    out->entry = ct_build_block(&b);
    ct_build_enter(&b, out->entry);
    ct_build_add_frame_variables(&b);
    make_registers(&b);
    make_targets(&b);
    ct_build_prepare_stack(&b);
    if (source->is_entry)
        ct_build_enter_cluster(&b);
    else
        move_formals(&b, source->param_regs, source->n_params, 0, true);
    if (fn->compilation->options.probe_matrices)
        ct_build_matrix_probe(&b);
    else
        build_statements(&b);
    b.at.where = source->where;
    build_return(&b);
    ct_emit_insn(&b.at, CT_OP_UNREACHABLE, PTX_NONE, 0, 0); /* ends the dead block after the return */
    return fn->compilation->n_errors == errors;
}
