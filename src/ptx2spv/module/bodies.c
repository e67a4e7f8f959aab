/* SPDX-License-Identifier: Apache-2.0 */
#include "bodies.h"

#include "link.h"
#include "ptx2spv/textures/texture_access.h"
#include "ptx2spv/textures/texture_functions.h"

#include <string.h>

/* ---- the first time ---- */

/* Collects the functions and variables that the body of `function` refers to. Each gets one reference; last_reference in the function or variable
 * referred to is where it may be found again. */
struct notes {
    struct ct_arena *arena;
    struct ptx_function *function;
};

static struct ptx_reference *reference_at_or_null(const struct notes *notes, uint32_t index)
{
    return index < notes->function->references.n ? &notes->function->references.v[index] : NULL;
}

static struct ptx_reference *add_reference(const struct notes *notes, struct ct_location where)
{
    struct ptx_reference *reference = CT_PUSH(notes->arena, &notes->function->references);

    reference->where = where;
    return reference;
}

static void note_function(const struct notes *notes, struct ptx_function *function, struct ct_location where, bool takes_address)
{
    struct ptx_reference *reference = reference_at_or_null(notes, function->last_reference);

    if (function->is_prototype)
        return;
    if (!reference || reference->function != function) {
        function->last_reference = notes->function->references.n;
        reference = add_reference(notes, where);
        reference->function = function;
    }
    reference->takes_address |= takes_address;
}

static void note_variable(const struct notes *notes, struct ptx_variable *variable, struct ct_location where)
{
    const struct ptx_reference *reference = reference_at_or_null(notes, variable->last_reference);

    if (variable->function || (reference && reference->variable == variable))
        return;
    variable->last_reference = notes->function->references.n;
    add_reference(notes, where)->variable = variable;
}

static void note_operand(const struct notes *notes, const struct ptx_operand *operand, bool takes_address)
{
    if (operand->function)
        note_function(notes, operand->function, operand->where, takes_address && operand->kind == PTX_OPND_FUNC);
    if (operand->variable)
        note_variable(notes, operand->variable, operand->where);
    for (uint32_t i = 0; i < operand->n_items; i++) /* the parser limits the depth of nesting */
        note_operand(notes, &operand->items[i], takes_address);
}

static void note_targets(const struct notes *notes, const struct ptx_targets *targets)
{
    for (uint32_t i = 0; targets->functions && i < targets->n; i++)
        note_function(notes, targets->functions[i], targets->where, false);
}

static void note_initial_values(const struct notes *notes, const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->n_inits; i++) {
        if (variable->inits[i].function)
            note_function(notes, variable->inits[i].function, variable->where, false);
        if (variable->inits[i].variable)
            note_variable(notes, variable->inits[i].variable, variable->where);
    }
}

void ct_body_note_system(struct ct_compilation *compilation, struct ptx_module *module, struct ptx_function *function,
                         struct ptx_body *body)
{
    const struct notes notes = {&compilation->arena, function};

    (void)module;
    for (uint32_t i = 0; i < function->variables.n; i++)
        note_initial_values(&notes, function->variables.v[i]);
    for (uint32_t i = 0; i < body->instructions.n; i++) {
        const struct ptx_instruction *insn = &body->instructions.v[i];

        for (uint32_t o = 0; o < insn->n_operands; o++) /* a call does not take the callee's address */
            note_operand(&notes, &insn->operands[o], (insn->opcode != PTX_OP_CALL || o != 1) && !ct_is_texture_opcode(insn->opcode));
        function->has_cluster_barrier |= strncmp(insn->text, "barrier.cluster", strlen("barrier.cluster")) == 0;
    }
    for (uint32_t i = 0; i < body->targets.n; i++)
        note_targets(&notes, body->targets.v[i]);
}

void ct_body_note(struct ct_compilation *compilation, struct ptx_module *module, struct ptx_function *function, struct ptx_body *body)
{
    ct_texture_add_callees(compilation, module, body);
    ct_body_note_system(compilation, module, function, body);
}

/* ---- again ---- */

static const struct ptx_body nothing;

const struct ptx_body *ct_body_parse(struct ct_compilation *compilation, const struct ptx_function *function)
{
    struct ptx_body *body;

    if (!function->has_body)
        return &nothing;
    body = ptx_parse_again(compilation, function);
    if (body && !function->is_system)
        ct_texture_add_callees(compilation, function->text, body);
    if (body)
        ct_link_bind(body);
    return body;
}

const struct ptx_body *ct_fn_body(struct ct_fn *fn, const struct ptx_function *function)
{
    const struct ptx_body **body;

    if (!function->has_body) /* it need not have a number */
        return &nothing;
    if (!fn->bodies)
        fn->bodies = CT_ARENA_ARRAY(&fn->compilation->arena, const struct ptx_body *, fn->module->functions.n);
    body = &fn->bodies[function->number];
    if (!*body)
        *body = ct_body_parse(fn->compilation, function);
    if (!*body)
        *body = &nothing;
    return *body;
}
