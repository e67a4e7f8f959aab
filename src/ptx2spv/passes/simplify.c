/* SPDX-License-Identifier: Apache-2.0 */
/* simplify: algebraic simplification, constant folding and elimination of common subexpressions.
 * In:  SSA.   Out: SSA; no COPY, no trivial phi, no branch on a constant, no block whose only predecessor jumps to it unconditionally, no
 *      dead instruction; the constant parts of addresses are in insn->offset.
 * How: one preorder traversal of the dominator tree. Each instruction is rewritten until no rule applies (rules.c). Then a pure
 *      instruction that is equal to a dominating one is replaced by it (Briggs, Cooper and Simpson, "Value Numbering", 1997: the
 *      dominator-based form); the hash table's entries are removed when the traversal leaves their block. The traversal is repeated if
 *      edges were removed. */
#include "simplify.h"

#include <string.h>

#define MAX_ROUNDS 4

struct entry { /* of the hash table, and of the list of entries that are to be removed again */
    struct ct_insn *insn;
    uint32_t hash, next_in_bucket; /* index + 1 of the next entry in the same bucket */
};

struct jump { /* a branch of which only one successor is ever taken */
    struct ct_insn *branch;
    uint32_t taken;
};

struct simplifier {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    /* indexed by value: its replacement, or none; the table may be shorter than the list of values, since the traversal creates more */
    ct_value *replacements;
    uint32_t n_replacements;
    uint32_t *buckets; /* index + 1 in entries */
    uint32_t mask;
    CT_VEC(struct entry) entries;
    CT_VEC(struct jump) jumps;
    bool changed;
};

/* ---- replacing values ---- */

static ct_value current(struct simplifier *s, ct_value value)
{
    ct_value last = value;

    while (last.i < s->n_replacements && s->replacements[last.i].i)
        last = s->replacements[last.i];
    while (value.i != last.i) { /* path compression for the next look-up */
        const ct_value next = s->replacements[value.i];

        s->replacements[value.i] = last;
        value = next;
    }
    return last;
}

static void replace(struct simplifier *s, ct_value old, ct_value by)
{
    while (old.i >= s->n_replacements) { /* values that were created during the traversal: the table grows */
        const uint32_t n = s->fn->values.n + s->fn->values.n / 2;
        ct_value *grown = CT_ARENA_ARRAY(s->scratch, ct_value, n);

        memcpy(grown, s->replacements, s->n_replacements * sizeof *grown);
        s->replacements = grown;
        s->n_replacements = n;
    }
    by = current(s, by);
    if (by.i != old.i)
        s->replacements[old.i] = by;
    s->changed = true;
}

static void refresh_operands(struct simplifier *s, struct ct_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++)
        insn->operands[i] = current(s, insn->operands[i]);
}

/* ---- common subexpressions ---- */

/* A product's upper bits depend on all bits of its factors, but its lower bits on lower ones only. The buckets are selected by the lower
 * bits of the hash, so they must have something of the upper ones. */
static uint32_t mix(uint32_t hash, uint64_t word)
{
    const uint64_t product = (word ^ hash) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(product ^ product >> 32) + 0x7f4a7c15u;
}

static uint32_t hash_of(const struct simplifier *s, const struct ct_insn *insn)
{
    uint32_t hash = mix((uint32_t)insn->op, (uint64_t)insn->type << 16 | (uint64_t)insn->type2);

    hash = mix(hash, insn->imm);
    hash = mix(hash, (uint64_t)insn->offset);
    hash = mix(hash, (uint64_t)insn->compare << 24 | (uint64_t)insn->rounding << 16 | (uint64_t)insn->mode << 8 | insn->sreg);
    hash = mix(hash, insn->n_results ? (uint64_t)ct_width_of_value(s->fn, insn->results[0]) : 0);
    for (uint32_t i = 0; i < insn->n_operands; i++)
        hash = mix(hash, insn->operands[i].i);
    return hash;
}

static bool are_equal(const struct simplifier *s, const struct ct_insn *a, const struct ct_insn *b)
{
    if (a->op != b->op || a->type != b->type || a->type2 != b->type2 || a->compare != b->compare || a->rounding != b->rounding ||
        a->operation != b->operation || a->mode != b->mode || a->space != b->space || a->semantics != b->semantics ||
        a->scope != b->scope || a->align_log2 != b->align_log2 || a->sreg != b->sreg || a->ftz != b->ftz || a->sat != b->sat ||
        a->approx != b->approx || a->nan != b->nan || a->guarded != b->guarded || a->ignores_subnormals != b->ignores_subnormals ||
        a->residual != b->residual || a->split != b->split || a->is_device != b->is_device || a->refined != b->refined ||
        a->imm != b->imm || a->offset != b->offset || a->local != b->local || a->variable != b->variable || a->n_results != b->n_results ||
        a->n_operands != b->n_operands)
        return false;
    for (uint32_t i = 0; i < a->n_operands; i++)
        if (a->operands[i].i != b->operands[i].i)
            return false;
    for (uint32_t r = 0; r < a->n_results; r++)
        if (ct_width_of_value(s->fn, a->results[r]) != ct_width_of_value(s->fn, b->results[r]))
            return false;
    return true;
}

/* Replaces insn by an equal instruction that dominates it (true), or inserts it into the table. */
static bool replace_by_equal(struct simplifier *s, struct ct_insn *insn)
{
    const uint32_t hash = hash_of(s, insn);
    uint32_t *bucket = &s->buckets[hash & s->mask];

    for (uint32_t i = *bucket; i; i = s->entries.v[i - 1].next_in_bucket) {
        const struct entry *entry = &s->entries.v[i - 1];

        if (entry->hash != hash || !are_equal(s, entry->insn, insn))
            continue;
        for (uint32_t r = 0; r < insn->n_results; r++)
            replace(s, insn->results[r], entry->insn->results[r]);
        ct_insn_remove(insn);
        return true;
    }
    *CT_PUSH(s->scratch, &s->entries) = (struct entry){insn, hash, *bucket};
    *bucket = s->entries.n;
    return false;
}

static void forget_entries(struct simplifier *s, uint32_t mark)
{
    while (s->entries.n > mark) {
        const struct entry *entry = &s->entries.v[--s->entries.n];

        s->buckets[entry->hash & s->mask] = entry->next_in_bucket;
    }
}

/* ---- instructions that rules.c does not handle ---- */

/* unpack(pack(x, y)) => x, y; unpack of a constant => constants */
static bool fold_unpack(struct simplifier *s, struct ct_insn *insn)
{
    struct ct_fn *fn = s->fn;
    const struct ct_insn *whole = fn->values.v[insn->operands[0].i].def;
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};
    const bool is_const = whole && whole->op == CT_OP_CONST;
    unsigned shift = 0;

    if (!whole || (!is_const && (whole->op != CT_OP_PACK || whole->n_operands != insn->n_results)))
        return false;
    for (uint32_t r = 0; r < insn->n_results; r++) {
        const enum ct_width width = ct_width_of_value(fn, insn->results[r]);

        replace(s, insn->results[r], is_const ? ct_emit_const(&at, width, whole->imm >> shift) : whole->operands[r]);
        shift += ct_width_bits(width);
    }
    ct_insn_remove(insn);
    return true;
}

/* [x + c] => [x] with offset c. CUDA's pointers do not wrap around; shared and local offsets are added modulo 2^32 in both forms. A
 * generic address keeps its sum: its tag is tested before the offset is added, and x alone may lie below the segment. */
static void fold_address(struct simplifier *s, struct ct_insn *insn)
{
    const struct ct_fn *fn = s->fn;

    while (insn->n_operands && insn->operands[0].i && insn->space != CT_SPACE_GENERIC) {
        const struct ct_insn *sum = fn->values.v[insn->operands[0].i].def;
        const struct ct_insn *c = sum && sum->op == CT_OP_ADD ? ct_constant_or_null(fn, sum->operands[1]) : NULL;
        int64_t offset;

        if (!c)
            return;
        offset = ct_width_of_value(fn, insn->operands[0]) == CT_W_64 ? (int64_t)c->imm : (int64_t)(int32_t)(uint32_t)c->imm;
        if (__builtin_add_overflow(offset, insn->offset, &offset) || offset > INT32_MAX || offset < INT32_MIN)
            return;
        insn->offset = offset;
        insn->operands[0] = sum->operands[0];
        s->changed = true;
    }
}

/* ---- branches ---- */

static void become_jump(struct ct_fn *fn, struct ct_insn *branch, uint32_t taken)
{
    struct ct_block *block = branch->block;

    for (uint32_t i = block->n_succs; i-- > 0;)
        if (i != taken)
            ct_block_remove_edge(fn, block, i);
    branch->op = CT_OP_BR;
    branch->type = PTX_NONE;
    branch->n_operands = 0;
}

static bool begins_with_phi(const struct ct_block *block)
{
    return block->first->op == CT_OP_PHI;
}

/* Whether all edges from `block` to `to` are equivalent. Until the traversal is over, phi operands may still be replaced, which can only
 * make more of them equal. */
static bool edges_agree(const struct ct_block *block, const struct ct_block *to)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t p = 0; p < to->preds.n; p++) {
        if (to->preds.v[p] != block)
            continue;
        if (first == UINT32_MAX)
            first = p;
        else if (!ct_phis_agree(to, first, p))
            return false;
    }
    return true;
}

/* The removal of edges is deferred until the traversal is over: the values of a loop that has become unreachable may be defined in terms
 * of themselves, and the rules would not terminate on them. */
static void simplify_branch(struct simplifier *s, struct ct_insn *branch)
{
    struct ct_block *block = branch->block;
    const struct ct_insn *condition = s->fn->values.v[branch->operands[0].i].def;

    if (condition && condition->op == CT_OP_CONST) {
        const uint64_t last = block->n_succs - 1;

        *CT_PUSH(s->scratch, &s->jumps) =
            (struct jump){branch, branch->op == CT_OP_CBR ? !condition->imm : (uint32_t)(condition->imm < last ? condition->imm : last)};
    } else if (branch->op == CT_OP_CBR && block->succs[0] == block->succs[1]) {
        if (edges_agree(block, block->succs[0]))
            *CT_PUSH(s->scratch, &s->jumps) = (struct jump){branch, 0};
    } else if (branch->op == CT_OP_CBR && condition && condition->op == CT_OP_NOT) {
        struct ct_block *yes = block->succs[0];

        block->succs[0] = block->succs[1];
        block->succs[1] = yes;
        branch->operands[0] = condition->operands[0];
        s->fn->props &= ~CT_PROP_GRAPH;
        s->changed = true;
    }
}

/* ---- traversal ---- */

/* Simplifies one instruction. Returns the instruction to continue with: the first one that was inserted before it, the instruction
 * itself if it changed, or its successor. */
static struct ct_insn *simplify_insn(struct simplifier *s, struct ct_insn *insn)
{
    struct ct_block *block = insn->block;
    struct ct_insn *prev = insn->prev, *next = insn->next;
    bool changed = false;
    ct_value instead;

    refresh_operands(s, insn);
    if (insn->op == CT_OP_CBR || insn->op == CT_OP_SWITCH)
        simplify_branch(s, insn);
    else if (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM)
        fold_address(s, insn);
    if (insn->op == CT_OP_UNPACK && fold_unpack(s, insn))
        return prev ? prev->next : block->first;
    if (!ct_insn_is_pure(insn))
        return next;
    instead = ct_apply_rules(s->fn, insn, &changed);
    if (instead.i) {
        replace(s, insn->results[0], instead);
        ct_insn_remove(insn);
    }
    if (instead.i || changed) {
        s->changed = true;
        return prev ? prev->next : block->first;
    }
    if (insn->op != CT_OP_PHI)
        replace_by_equal(s, insn);
    return next;
}

static void walk_dominator_tree(struct simplifier *s)
{
    struct ct_fn *fn = s->fn;
    const uint32_t n = fn->blocks.n;
    struct ct_block **preorder = CT_ARENA_ARRAY(s->scratch, struct ct_block *, n), **path;
    uint32_t *marks = CT_ARENA_ARRAY(s->scratch, uint32_t, n), depth = 0;

    path = CT_ARENA_ARRAY(s->scratch, struct ct_block *, n);
    for (uint32_t b = 0; b < n; b++)
        preorder[fn->blocks.v[b]->dom_pre] = fn->blocks.v[b];
    for (uint32_t i = 0; i < n; i++) {
        while (depth && !ct_block_dominates(path[depth - 1], preorder[i]))
            forget_entries(s, marks[--depth]);
        path[depth] = preorder[i];
        marks[depth++] = s->entries.n;
        for (struct ct_insn *insn = preorder[i]->first; insn;)
            insn = simplify_insn(s, insn);
    }
}

/* Operands on back edges were visited before their values were replaced. */
static void refresh_phis(struct simplifier *s)
{
    for (uint32_t b = 0; b < s->fn->blocks.n; b++)
        for (struct ct_insn *phi = s->fn->blocks.v[b]->first; phi && phi->op == CT_OP_PHI; phi = phi->next)
            refresh_operands(s, phi);
}

static void prepare(struct simplifier *s, struct ct_fn *fn)
{
    uint32_t n_insns = 0;

    s->fn = fn;
    s->scratch = &fn->compilation->scratch;
    s->n_replacements = fn->values.n + fn->values.n / 4;
    s->replacements = CT_ARENA_ARRAY(s->scratch, ct_value, s->n_replacements);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            n_insns++;
    s->mask = 63;
    while (s->mask < n_insns)
        s->mask = s->mask * 2 + 1;
    s->buckets = CT_ARENA_ARRAY(s->scratch, uint32_t, (size_t)s->mask + 1);
}

/* ---- blocks ---- */

/* Moves the instructions of `tail` to the end of `head`, whose only successor it is. The phis of `tail` have one operand each and have
 * already been removed. */
static void append_block(struct ct_block *head, struct ct_block *tail)
{
    ct_insn_remove(head->last);
    for (struct ct_insn *insn = tail->first; insn; insn = insn->next)
        insn->block = head;
    if (head->last) {
        head->last->next = tail->first;
        tail->first->prev = head->last;
    } else {
        head->first = tail->first;
    }
    head->last = tail->last;
    head->succs = tail->succs;
    head->n_succs = tail->n_succs;
    for (uint32_t i = 0; i < head->n_succs; i++)
        for (uint32_t p = 0; p < head->succs[i]->preds.n; p++)
            if (head->succs[i]->preds.v[p] == tail)
                head->succs[i]->preds.v[p] = head;
    tail->first = tail->last = NULL;
    tail->n_succs = 0;
    tail->preds.n = 0;
}

static bool merge_blocks(struct ct_fn *fn)
{
    bool changed = false;

    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        struct ct_block *head = fn->blocks.v[b];

        while (head->last && head->last->op == CT_OP_BR && head->succs[0]->preds.n == 1 && head->succs[0] != head &&
               !begins_with_phi(head->succs[0])) {
            append_block(head, head->succs[0]);
            changed = true;
        }
    }
    if (changed) {
        fn->props &= ~CT_PROP_GRAPH;
        ct_fn_remove_unreachable(fn);
    }
    return changed;
}

bool ct_simplify(struct ct_fn *fn)
{
    bool changed = false, again = true;

    for (int round = 0; again && round < MAX_ROUNDS; round++) {
        struct simplifier s = {0};

        ct_fn_compute_dominators(fn);
        prepare(&s, fn);
        walk_dominator_tree(&s);
        refresh_phis(&s);
        for (uint32_t i = 0; i < s.jumps.n; i++)
            become_jump(fn, s.jumps.v[i].branch, s.jumps.v[i].taken);
        if (s.jumps.n)
            ct_fn_remove_unreachable(fn);
        changed |= s.changed || s.jumps.n;
        again = s.jumps.n || (s.changed && round == 0);
    }
    changed |= merge_blocks(fn);
    changed |= ct_remove_dead(fn);
    return changed;
}

enum ct_pass_result ct_pass_simplify(struct ct_fn *fn)
{
    return ct_simplify(fn) ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
