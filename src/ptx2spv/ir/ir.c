/* SPDX-License-Identifier: Apache-2.0 */
/* Creating and editing the IR: values, blocks, instructions, and the cursor through which passes emit code. */
#include "ir.h"

#include <assert.h>
#include <string.h>

#define P CT_OPF_PURE
#define E CT_OPF_EFFECT
#define T CT_OPF_TERMINATOR
#define C CT_OPF_PRIMITIVE
#define R CT_OPF_RICH
#define M CT_OPF_FLOAT
const struct ct_op_info ct_op_infos[CT_OP_COUNT] = {
#define IR_OP(id, name, results, operands, flags) [CT_OP_##id] = {name, results, operands, flags},
#include "ir_ops.def"
};
#undef P
#undef E
#undef T
#undef C
#undef R
#undef M

unsigned ct_width_bits(enum ct_width width)
{
    static const uint8_t bits[] = {[CT_W_PRED] = 1, [CT_W_16] = 16, [CT_W_32] = 32, [CT_W_64] = 64};

    return bits[width];
}

enum ct_width ct_width_of(enum ptx_type type)
{
    const unsigned bits = ptx_type_bits(type);

    assert(bits && bits <= 64);
    return bits == 1 ? CT_W_PRED : bits <= 16 ? CT_W_16 : bits == 32 ? CT_W_32 : CT_W_64;
}

struct ct_fn *ct_fn_create(struct ct_compilation *compilation, const struct ptx_module *module, const struct ptx_function *source,
                           const struct ptx2spv_target *target)
{
    struct ct_fn *fn = CT_ARENA_NEW(&compilation->arena, struct ct_fn);

    fn->compilation = compilation;
    fn->module = module;
    fn->source = source;
    fn->target = target;
    fn->name = source ? source->name : "";
    fn->local_align = 1;
    fn->last_pass = "none";
    (void)CT_PUSH(&compilation->arena, &fn->values); /* index 0 is CT_NO_VALUE */
    return fn;
}

uint32_t ct_fn_add_param(struct ct_fn *fn, uint32_t size_bytes)
{
    const uint32_t offset = (fn->param_bytes + 7) / 8 * 8;

    fn->param_bytes = offset + size_bytes;
    return offset;
}

bool ct_fn_uses_shared(const struct ct_fn *fn)
{
    if (fn->shared_bytes || fn->uses_dynamic_shared || fn->exchange_words || fn->exchange_thread_words)
        return true;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->space == CT_SPACE_SHARED)
                return true;
    return false;
}

struct ct_block *ct_block_create(struct ct_fn *fn)
{
    struct ct_block *block = CT_ARENA_NEW(&fn->compilation->arena, struct ct_block);

    block->id = fn->blocks.n;
    block->rpo = UINT32_MAX;
    *CT_PUSH(&fn->compilation->arena, &fn->blocks) = block;
    return block;
}

ct_value ct_value_create(struct ct_fn *fn, enum ct_width width)
{
    const ct_value value = {fn->values.n};

    CT_PUSH(&fn->compilation->arena, &fn->values)->width = width;
    return value;
}

enum ct_width ct_width_of_value(const struct ct_fn *fn, ct_value value)
{
    assert(value.i && value.i < fn->values.n);
    return fn->values.v[value.i].width;
}

struct ct_insn *ct_insn_create(struct ct_fn *fn, enum ct_op op, enum ptx_type type, uint32_t n_results, uint32_t n_operands)
{
    /* One allocation for the instruction and both lists: values need less alignment than the instruction. */
    const size_t lists_bytes = ((size_t)n_results + n_operands) * sizeof(ct_value);
    struct ct_insn *insn = ct_arena_alloc(&fn->compilation->arena, sizeof *insn + lists_bytes);

    insn->op = op;
    insn->type = type;
    insn->n_results = n_results;
    insn->n_operands = n_operands;
    insn->results = (ct_value *)(insn + 1);
    insn->operands = insn->results + n_results;
    return insn;
}

/* Links insn between two instructions, either of which may be NULL (an end of the block). */
static void link_between(struct ct_block *block, struct ct_insn *prev, struct ct_insn *insn, struct ct_insn *next)
{
    insn->block = block;
    insn->prev = prev;
    insn->next = next;
    if (prev)
        prev->next = insn;
    else
        block->first = insn;
    if (next)
        next->prev = insn;
    else
        block->last = insn;
}

void ct_insn_append(struct ct_block *block, struct ct_insn *insn)
{
    link_between(block, block->last, insn, NULL);
}

void ct_insn_insert_before(struct ct_insn *place, struct ct_insn *insn)
{
    link_between(place->block, place->prev, insn, place);
}

void ct_insn_insert_after(struct ct_insn *place, struct ct_insn *insn)
{
    link_between(place->block, place, insn, place->next);
}

void ct_insn_remove(struct ct_insn *insn)
{
    if (insn->prev)
        insn->prev->next = insn->next;
    else
        insn->block->first = insn->next;
    if (insn->next)
        insn->next->prev = insn->prev;
    else
        insn->block->last = insn->prev;
    insn->prev = insn->next = NULL;
    insn->block = NULL;
}

void ct_block_set_succs(struct ct_fn *fn, struct ct_block *block, uint32_t n, struct ct_block *const *succs)
{
    /* Copied first, since the caller's list may be the block's own. */
    struct ct_block **copy = CT_ARENA_ARRAY(&fn->compilation->arena, struct ct_block *, n);

    if (n)
        memcpy(copy, succs, n * sizeof *copy);
    block->succs = copy;
    block->n_succs = n;
    fn->props &= ~CT_PROP_GRAPH;
}

bool ct_insn_is_pure(const struct ct_insn *insn)
{
    return ct_op_infos[insn->op].flags & CT_OPF_PURE || (insn->op == CT_OP_LOAD && insn->space == CT_SPACE_PARAM);
}

uint32_t ct_local_root(struct ct_fn *fn, uint32_t object)
{
    uint32_t root = object;

    while (fn->locals.v[root - 1].same_as)
        root = fn->locals.v[root - 1].same_as;
    while (object != root) { /* shortens the path for the next look-up: it may be as long as a chain of calls */
        const uint32_t next = fn->locals.v[object - 1].same_as;

        fn->locals.v[object - 1].same_as = root;
        object = next;
    }
    return root;
}

bool *ct_fn_find_used_locals(struct ct_fn *fn)
{
    bool *used = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->locals.n);

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->local)
                used[ct_local_root(fn, insn->local) - 1] = true;
    return used;
}

struct ct_insn *ct_emit_insn(struct ct_cursor *at, enum ct_op op, enum ptx_type type, uint32_t n_results, uint32_t n_operands)
{
    struct ct_insn *insn = ct_insn_create(at->fn, op, type, n_results, n_operands);

    insn->where = at->where;
    if (at->before)
        ct_insn_insert_before(at->before, insn);
    else
        ct_insn_append(at->block, insn);
    return insn;
}

/* Gives insn its only result. */
static ct_value set_result(struct ct_fn *fn, struct ct_insn *insn, enum ct_width width)
{
    insn->results[0] = ct_value_create(fn, width);
    fn->values.v[insn->results[0].i].def = insn;
    return insn->results[0];
}

ct_value ct_emit_const(struct ct_cursor *at, enum ct_width width, uint64_t bits)
{
    static const enum ptx_type types[] = {[CT_W_PRED] = PTX_PRED, [CT_W_16] = PTX_B16, [CT_W_32] = PTX_B32, [CT_W_64] = PTX_B64};
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_CONST, types[width], 1, 0);

    insn->imm = width == CT_W_64 ? bits : bits & ((UINT64_C(1) << ct_width_bits(width)) - 1);
    return set_result(at->fn, insn, width);
}

ct_value ct_emit1(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ct_width result, ct_value a)
{
    struct ct_insn *insn = ct_emit_insn(at, op, type, 1, 1);

    insn->operands[0] = a;
    return set_result(at->fn, insn, result);
}

ct_value ct_emit2(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ct_width result, ct_value a, ct_value b)
{
    struct ct_insn *insn = ct_emit_insn(at, op, type, 1, 2);

    insn->operands[0] = a;
    insn->operands[1] = b;
    return set_result(at->fn, insn, result);
}

ct_value ct_emit3(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ct_width result, ct_value a, ct_value b, ct_value c)
{
    struct ct_insn *insn = ct_emit_insn(at, op, type, 1, 3);

    insn->operands[0] = a;
    insn->operands[1] = b;
    insn->operands[2] = c;
    return set_result(at->fn, insn, result);
}

ct_value ct_emit_compare(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ptx_compare compare, ct_value a, ct_value b)
{
    struct ct_insn *insn = ct_emit_insn(at, op, type, 1, 2);

    insn->compare = (uint8_t)compare;
    insn->operands[0] = a;
    insn->operands[1] = b;
    return set_result(at->fn, insn, CT_W_PRED);
}

struct ct_insn *ct_emit_copy_of(struct ct_cursor *at, const struct ct_insn *insn)
{
    struct ct_insn *copy = ct_emit_insn(at, insn->op, insn->type, insn->n_results, insn->n_operands);
    const struct ct_insn made = *copy;

    *copy = *insn;
    copy->results = made.results;
    copy->operands = made.operands;
    copy->block = made.block;
    copy->prev = made.prev;
    copy->next = made.next;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        copy->operands[i] = insn->operands[i];
    for (uint32_t i = 0; i < insn->n_results; i++) {
        copy->results[i] = ct_value_create(at->fn, ct_width_of_value(at->fn, insn->results[i]));
        at->fn->values.v[copy->results[i].i].def = copy;
    }
    return copy;
}

/* The edges of `block` start at `rest` from now on. The entries keep their places, so that the phis of the successors stay correct. In
 * register form predecessors are computed when they are needed (and a switch with many cases that join would be slow here). */
static void move_edges(struct ct_fn *fn, struct ct_block *block, struct ct_block *rest)
{
    rest->succs = block->succs;
    rest->n_succs = block->n_succs;
    block->succs = NULL;
    block->n_succs = 0;
    for (uint32_t s = 0; fn->props & CT_PROP_SSA && s < rest->n_succs; s++)
        for (uint32_t p = 0; p < rest->succs[s]->preds.n; p++)
            if (rest->succs[s]->preds.v[p] == block)
                rest->succs[s]->preds.v[p] = rest;
    fn->props &= ~CT_PROP_GRAPH;
}

/* Splits a block, except for insn->block. */
static struct ct_block *cut_off(struct ct_fn *fn, struct ct_block *block, struct ct_insn *place)
{
    struct ct_block *rest = ct_block_create(fn);

    rest->first = place;
    rest->last = block->last;
    block->last = place->prev;
    if (place->prev)
        place->prev->next = NULL;
    else
        block->first = NULL;
    place->prev = NULL;
    move_edges(fn, block, rest);
    return rest;
}

void ct_block_adopt(struct ct_block *block)
{
    for (struct ct_insn *insn = block->first; insn; insn = insn->next)
        insn->block = block;
}

struct ct_block *ct_block_split(struct ct_fn *fn, struct ct_block *block, struct ct_insn *place)
{
    struct ct_block *rest = cut_off(fn, block, place);

    ct_block_adopt(rest);
    return rest;
}

struct ct_block *ct_block_cut(struct ct_fn *fn, struct ct_block *block, struct ct_insn *place)
{
    struct ct_block *rest = cut_off(fn, block, place);

    ct_block_adopt(block);
    place->block = rest;
    return rest;
}

void ct_cutter_go_to(struct ct_cutter *cutter, struct ct_insn *insn)
{
    if (cutter->rest && (insn->block == cutter->origin || insn->block == cutter->rest)) {
        insn->block = cutter->rest;
        return;
    }
    ct_cutter_finish(cutter);
    cutter->origin = cutter->rest = insn->block;
}

struct ct_block *ct_cutter_cut(struct ct_fn *fn, struct ct_cutter *cutter, struct ct_insn *insn)
{
    ct_cutter_go_to(cutter, insn);
    cutter->rest = ct_block_cut(fn, cutter->rest, insn);
    return cutter->rest;
}

void ct_cutter_finish(struct ct_cutter *cutter)
{
    if (cutter->rest != cutter->origin)
        ct_block_adopt(cutter->rest);
}

void ct_block_drop_pred(struct ct_block *block, uint32_t index)
{
    const uint32_t after = block->preds.n - index - 1;

    memmove(&block->preds.v[index], &block->preds.v[index + 1], after * sizeof *block->preds.v);
    block->preds.n--;
    for (struct ct_insn *phi = block->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
        if (index >= phi->n_operands)
            continue; /* its operands are not filled in yet */
        phi->n_operands--;
        memmove(&phi->operands[index], &phi->operands[index + 1], (phi->n_operands - index) * sizeof *phi->operands);
    }
}

void ct_block_remove_edge(struct ct_fn *fn, struct ct_block *block, uint32_t successor)
{
    struct ct_block *target = block->succs[successor];
    uint32_t nth = 0, at = 0;

    for (uint32_t s = 0; s < successor; s++)
        nth += block->succs[s] == target;
    memmove(&block->succs[successor], &block->succs[successor + 1], (block->n_succs - successor - 1) * sizeof *block->succs);
    block->n_succs--;
    fn->props &= ~CT_PROP_GRAPH;

    while (at < target->preds.n && (target->preds.v[at] != block || nth-- > 0))
        at++;
    if (at == target->preds.n)
        return; /* predecessors have not been computed yet */
    ct_block_drop_pred(target, at);
}

uint32_t *ct_fn_count_uses(const struct ct_fn *fn)
{
    uint32_t *uses = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->values.n);

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                uses[insn->operands[i].i]++;
    return uses;
}

void ct_fn_compute_defs(struct ct_fn *fn)
{
    for (uint32_t i = 0; i < fn->values.n; i++)
        fn->values.v[i].def = NULL;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t r = 0; r < insn->n_results; r++)
                fn->values.v[insn->results[r].i].def = insn;
}
