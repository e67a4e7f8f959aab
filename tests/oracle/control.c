/* SPDX-License-Identifier: Apache-2.0 */
/* Jumps, calls and the end of threads (PTX ISA, "Control Flow Instructions", "Abstracting the ABI"). */
#include "machine.h"
#include "ptx2spv/module/module.h"

#include <stdlib.h>
#include <string.h>

static void jump(struct oracle_step *s, const struct ptx_label *label)
{
    s->frame->pc = label->statement;
    s->jumped = true;
}

void oracle_do_bra(struct oracle_step *s)
{
    if (s->insn->operands[0].kind == PTX_OPND_LABEL)
        jump(s, s->insn->operands[0].label);
    else
        oracle_fail(s, ORACLE_UNSUPPORTED, "a branch to no label");
}

void oracle_do_brx(struct oracle_step *s)
{
    const uint64_t index = oracle_source(s, 0, PTX_U32);
    const struct ptx_targets *targets = s->insn->n_operands > 1 ? s->insn->operands[1].targets : NULL;

    if (!targets || index >= targets->n || !targets->labels)
        oracle_fail(s, ORACLE_UNDEFINED, "index %llu of %u branch targets", (unsigned long long)index, targets ? targets->n : 0);
    else
        jump(s, targets->labels[index]);
}

/* ---- frames ---- */

static struct oracle_object *push_object(struct oracle_thread *thread, const struct ptx_variable *variable)
{
    const uint64_t align = variable->align > 16 ? variable->align : 16;
    struct oracle_object *object;

    thread->local_top = (thread->local_top + align - 1) / align * align;
    object = oracle_object_create(variable->space, thread->local_top, variable->size_bytes, false);
    thread->local_top += variable->size_bytes + 1; /* one byte between objects, which no access may touch */
    oracle_objects_add(&thread->locals, object);
    return object;
}

static struct oracle_object **push_objects(struct oracle_thread *thread, struct ptx_variable *const *variables, uint32_t n)
{
    struct oracle_object **places = oracle_zalloc(n + 1, sizeof *places);

    for (uint32_t i = 0; i < n; i++)
        if (variables[i]->space == PTX_SPACE_LOCAL || variables[i]->space == PTX_SPACE_PARAM)
            places[i] = push_object(thread, variables[i]);
    return places;
}

static struct oracle_frame *push_frame(struct oracle_thread *thread, const struct oracle_module *module,
                                       const struct ptx_function *function)
{
    struct oracle_frame *frame = oracle_zalloc(1, sizeof *frame);

    frame->caller = thread->frame;
    frame->function = function;
    frame->body = module->bodies[function->number];
    frame->locals_before = thread->locals.n;
    frame->local_top_before = thread->local_top;
    frame->registers = oracle_zalloc(frame->body->registers.n + 1, sizeof *frame->registers);
    frame->variables = push_objects(thread, frame->body->variables.v, frame->body->variables.n);
    if (frame->caller) {
        frame->params = push_objects(thread, function->params, function->n_params);
        frame->results = push_objects(thread, function->results, function->n_results);
    }
    thread->depth++;
    return frame;
}

static void pop_frame(struct oracle_thread *thread)
{
    struct oracle_frame *frame = thread->frame;

    while (thread->locals.n > frame->locals_before)
        oracle_object_destroy(thread->locals.v[--thread->locals.n]);
    thread->local_top = frame->local_top_before;
    thread->frame = frame->caller;
    thread->depth--;
    free(frame->registers);
    free(frame->variables);
    free(frame->params);
    free(frame->results);
    free(frame);
}

void oracle_enter_kernel(struct oracle_step *s)
{
    s->thread->frame = push_frame(s->thread, s->grid->module, s->grid->entry);
    s->frame = s->thread->frame;
}

void oracle_thread_exit(struct oracle_step *s)
{
    while (s->thread->frame)
        pop_frame(s->thread);
    s->thread->wait = ORACLE_EXITED;
    s->jumped = true;
}

/* ---- arguments and results ---- */

static size_t words_bytes(const struct oracle_object *object)
{
    return object->size_bytes < 16 ? object->size_bytes : 16;
}

/* The .param variable that is the actual parameter; NULL for a register or a constant. */
static struct oracle_object *actual_place(struct oracle_step *s, const struct ptx_operand *operand)
{
    const bool is_param = operand->kind == PTX_OPND_ADDRESS && operand->variable && operand->variable->space == PTX_SPACE_PARAM;

    return is_param ? oracle_place_of(s, operand->variable) : NULL;
}

static void copy_object(struct oracle_object *to, const struct oracle_object *from)
{
    memcpy(to->bytes, from->bytes, to->size_bytes < from->size_bytes ? to->size_bytes : from->size_bytes);
}

/* s->frame is still the caller's frame. */
static void pass_arguments(struct oracle_step *s, struct oracle_frame *callee, const struct ptx_operand *list, uint32_t n)
{
    const struct ptx_function *function = callee->function;

    for (uint32_t i = 0; i < n; i++) {
        const enum ptx_type type = function->params[i]->type;
        struct oracle_object *from = actual_place(s, &list[i]);
        uint64_t words[2] = {0};

        if (from && callee->params[i]) {
            copy_object(callee->params[i], from);
            continue;
        }
        if (from)
            memcpy(words, from->bytes, words_bytes(from));
        else
            oracle_read_words(s, &list[i], type, words);
        if (callee->params[i])
            memcpy(callee->params[i]->bytes, words, words_bytes(callee->params[i]));
        else
            memcpy(callee->registers[function->param_regs[i]->index], words, sizeof words);
    }
}

/* s->frame is the caller's frame again. */
static void take_results(struct oracle_step *s, const struct oracle_frame *callee, const struct ptx_operand *list, uint32_t n)
{
    const struct ptx_function *function = callee->function;

    for (uint32_t i = 0; i < n; i++) {
        struct oracle_object *to = actual_place(s, &list[i]);
        uint64_t words[2] = {0};

        if (to && callee->results[i]) {
            copy_object(to, callee->results[i]);
            continue;
        }
        if (callee->results[i])
            memcpy(words, callee->results[i]->bytes, words_bytes(callee->results[i]));
        else
            memcpy(words, callee->registers[function->result_regs[i]->index], sizeof words);
        if (to)
            memcpy(to->bytes, words, words_bytes(to));
        else
            oracle_write_words(s, &list[i], function->results[i]->type, words);
    }
}

static const struct ptx_operand *list_at(const struct ptx_instruction *insn, unsigned index, uint32_t *n)
{
    *n = 0;
    if (index >= insn->n_operands || insn->operands[index].kind == PTX_OPND_NONE)
        return NULL;
    return oracle_items(&insn->operands[index], n);
}

/* ---- call, ret ---- */

static const struct ptx_function *callee_of(struct oracle_step *s)
{
    const struct ptx_operand *operand = &s->insn->operands[1];
    const struct ptx_module *syntax = s->grid->module->syntax;
    uint64_t address;

    if (operand->kind == PTX_OPND_FUNC)
        return operand->function;
    address = oracle_read(s, operand, PTX_U64) - ORACLE_FUNCTION_BASE;
    if (address % 16 || address / 16 >= syntax->functions.n) {
        oracle_fail(s, ORACLE_UNDEFINED, "a call through an address that is no function's");
        return NULL;
    }
    return syntax->functions.v[address / 16];
}

void oracle_do_call(struct oracle_step *s)
{
    const uint32_t limit = s->grid->launch->depth_limit ? s->grid->launch->depth_limit : 256;
    const struct ptx_function *callee = callee_of(s);
    struct oracle_frame *frame;
    uint32_t n_results, n_arguments;
    const struct ptx_operand *arguments = list_at(s->insn, 2, &n_arguments);

    list_at(s->insn, 0, &n_results);
    if (!callee)
        return;
    if (!callee->has_body) {
        const bool is_assertion = strcmp(callee->name, "__assertfail") == 0 || strcmp(callee->name, PTX_ASSERTION_FAILED) == 0;

        oracle_fail(s, is_assertion ? ORACLE_TRAP : ORACLE_UNSUPPORTED, "function '%s' has no body", callee->name);
        return;
    }
    if (n_arguments != callee->n_params || n_results != callee->n_results) {
        oracle_fail(s, ORACLE_UNDEFINED, "'%s' is called with %u arguments and %u results", callee->name, n_arguments, n_results);
        return;
    }
    if (s->thread->depth >= limit) {
        oracle_fail(s, ORACLE_CALL_DEPTH, "calls are nested deeper than %u", limit);
        return;
    }
    frame = push_frame(s->thread, s->grid->module, callee);
    frame->call = s->insn;
    pass_arguments(s, frame, arguments, n_arguments);
    s->thread->frame = s->frame = frame;
    s->jumped = true;
}

void oracle_leave(struct oracle_step *s)
{
    struct oracle_frame *callee = s->frame;
    const struct ptx_operand *results;
    uint32_t n;

    if (!callee->caller) {
        oracle_thread_exit(s);
        return;
    }
    s->frame = callee->caller;
    results = list_at(callee->call, 0, &n);
    take_results(s, callee, results, n);
    pop_frame(s->thread);
    s->frame->pc++;
    s->jumped = true;
}

void oracle_do_ret(struct oracle_step *s)
{
    oracle_leave(s);
}

void oracle_do_exit(struct oracle_step *s)
{
    oracle_thread_exit(s);
}

void oracle_do_trap(struct oracle_step *s)
{
    oracle_fail(s, ORACLE_TRAP, "trap");
}
