/* SPDX-License-Identifier: Apache-2.0 */
/* Phis that share a Function variable.
 *
 * Two phis can share one if neither is live where the other one gets its value. If the value of a phi on an edge is another phi of the same
 * variable, nothing is stored on that edge; and where the definition of such a phi does not dominate a use, its variable is read, so that it
 * needs no second one. In kernels that are cut at their barriers nearly all of the state passes unchanged through the phis of the loop
 * (resume.c): the variables are then written where the state changes, and nowhere else.
 *
 * Drivers make values of the variables again, but what they later copy from phi to phi depends on the variables. lavapipe (Mesa 25.0.7)
 * made 10,322 copies of vectors under a mask in the code of CUB's radix sort of pairs (DeviceRadixSortOnesweepKernel), and makes 629. Its
 * passes that make values of the variables need 6.8 GB instead of 11.9 for a kernel of Blender with 21,470 phis.
 *
 * Stores are at the end of the predecessor, before its branch. If that has several successors, they are executed on the way to each of them.
 * So they count as definitions there. All phis are defined at the start of a block and written at the ends of blocks, so sets of blocks tell
 * which of them interfere. */
#include "block_set.h"
#include "emit.h"

#define CT_STEPS_PER_VALUE 50 /* the time can grow with the square of the kernel: beyond this, no further phis share variables */
#define CT_MAJORITY_EDGES 4   /* phis with fewer such edges do not get a store at the definition */

/* A use of a phi, in a list of them. */
struct phi_use {
    struct ct_block *block;
    uint32_t next; /* index; UINT32_MAX ends the list */
    bool at_end;   /* by a phi of a successor, or by the branch */
};

/* A class of phis that share a variable; at first each phi is one. */
struct phi_class {
    const struct ct_insn *phi;
    ct_value majority;          /* of its edges; 0: none */
    uint32_t parent;            /* index; its own: it stands for its class, and the following members are valid */
    uint32_t first, last;       /* the list of its phis: indices */
    uint32_t next;              /* in the list of the class to which this phi belongs; UINT32_MAX ends it */
    uint32_t uses;              /* of this phi: the first one, an index */
    struct ct_block_set live;   /* blocks in which a phi of the class is live-in */
    struct ct_block_set defs;   /* blocks that define one */
    struct ct_block_set leaves; /* blocks at whose ends one is used */
    bool branches;              /* this phi (not: its class) has a predecessor with several successors */
    uint32_t refused_by;        /* the last phi, by index + 1, that could not share its variable */
};

struct sharing {
    struct ct_gen *g;
    struct ct_arena *scratch;
    struct phi_class *phis;
    uint32_t n;
    uint32_t *number; /* indexed by value: index of the phi + 1; 0: the value is none */
    CT_VEC(struct phi_use) uses;
    uint32_t *reached; /* indexed by block id: the last phi, by index + 1, that was found to be live-in there */
    struct ct_block **work;
    struct ct_block_marks live, leaves; /* of the phi that is examined */
    uint32_t *stored_by;                /* indexed by block id, in a check: the phi + 1 that its end stores to the variable */
    uint32_t *stored_in;                /* indexed by block id: the check that has set stored_by */
    uint32_t checks;
    uint64_t steps, most_steps;
};

static bool is_in(const struct ct_block_set *set, const struct ct_block *block)
{
    return ct_block_set_has(set, block->rpo);
}

static uint32_t class_of(struct sharing *s, uint32_t phi)
{
    while (s->phis[phi].parent != phi)
        phi = s->phis[phi].parent = s->phis[s->phis[phi].parent].parent;
    return phi;
}

/* The value of more than half of a phi's edges, and of at least CT_MAJORITY_EDGES; 0: none. (Boyer and Moore's majority vote.) */
ct_value ct_gen_find_majority(const struct ct_insn *phi)
{
    ct_value candidate = {0};
    uint32_t lead = 0, edges = 0;

    for (uint32_t i = 0; i < phi->n_operands; i++) {
        if (lead == 0)
            candidate = phi->operands[i];
        lead += phi->operands[i].i == candidate.i ? 1 : UINT32_MAX; /* or -1 */
    }
    for (uint32_t i = 0; i < phi->n_operands; i++)
        edges += phi->operands[i].i == candidate.i;
    return edges >= CT_MAJORITY_EDGES && 2 * edges > phi->n_operands ? candidate : (ct_value){0};
}

/* ---- where phis are live ---- */

static bool has_time(const struct sharing *s)
{
    return s->steps <= s->most_steps;
}

/* Blocks that control does not reach have no number. */
static void mark(struct ct_block_marks *marks, const struct ct_block *block)
{
    if (block->rpo != UINT32_MAX)
        ct_block_mark(marks, block->rpo);
}

/* The phi is live-in in the block, unless it is the phi's own. */
static void reach(struct sharing *s, uint32_t phi, struct ct_block *block, uint32_t *n)
{
    if (block == s->phis[phi].phi->block || s->reached[block->id] == phi + 1)
        return;
    s->reached[block->id] = phi + 1;
    mark(&s->live, block);
    s->work[(*n)++] = block;
}

/* Sets live, leaves and defs. */
static void find_live_blocks(struct sharing *s, uint32_t phi)
{
    struct phi_class *class = &s->phis[phi];
    uint32_t n = 0;

    for (uint32_t i = class->uses; i != UINT32_MAX; i = s->uses.v[i].next) {
        if (s->uses.v[i].at_end)
            mark(&s->leaves, s->uses.v[i].block);
        reach(s, phi, s->uses.v[i].block, &n);
    }
    while (n) {
        const struct ct_block *at = s->work[--n];

        for (uint32_t i = 0; i < at->preds.n; i++)
            reach(s, phi, at->preds.v[i], &n);
        s->steps += at->preds.n;
    }
    s->steps += s->live.last - s->live.first + s->leaves.last - s->leaves.first;
    class->live = ct_block_set_make(s->scratch, &s->live);
    class->leaves = ct_block_set_make(s->scratch, &s->leaves);
    mark(&s->live, class->phi->block);
    class->defs = ct_block_set_make(s->scratch, &s->live);
}

static void note_uses_by(struct sharing *s, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const uint32_t number = s->number[insn->operands[i].i];
        struct phi_class *phi = number ? &s->phis[number - 1] : NULL;

        if (!phi)
            continue;
        *CT_PUSH(s->scratch, &s->uses) = (struct phi_use){.block = insn->op == CT_OP_PHI ? insn->block->preds.v[i] : insn->block,
                                                          .next = phi->uses,
                                                          .at_end = insn->op == CT_OP_PHI || insn == insn->block->last};
        phi->uses = s->uses.n - 1;
    }
}

static void add_phi(struct sharing *s, const struct ct_insn *insn)
{
    const uint32_t i = s->n++;
    struct phi_class *phi = &s->phis[i];

    *phi = (struct phi_class){
        .phi = insn, .majority = ct_gen_find_majority(insn), .parent = i, .first = i, .last = i, .next = UINT32_MAX, .uses = UINT32_MAX};
    for (uint32_t p = 0; p < insn->block->preds.n; p++)
        phi->branches |= insn->block->preds.v[p]->n_succs > 1;
    s->number[insn->results[0].i] = s->n;
}

static uint32_t count_phis(const struct ct_fn *fn)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && insn->op == CT_OP_PHI; insn = insn->next)
            n++;
    return n;
}

/* False: that takes too long. */
static bool find_phis(struct sharing *s)
{
    const struct ct_fn *fn = s->g->fn;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && insn->op == CT_OP_PHI; insn = insn->next)
            add_phi(s, insn);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            note_uses_by(s, insn);
    for (uint32_t i = 0; i < s->n && has_time(s); i++)
        find_live_blocks(s, i);
    return has_time(s);
}

/* ---- interference ---- */

/* Whether the phi's store at the end of a block with several successors destroys what a phi of class a or b has in their variable on the way
 * to another one, or what another phi's store has left there for it. */
static bool spoils(struct sharing *s, uint32_t phi, uint32_t pred, const struct phi_class *a, const struct phi_class *b)
{
    const struct ct_block *to = s->phis[phi].phi->block, *from = to->preds.v[pred];
    const bool is_first = s->stored_in[from->id] != s->checks;

    if (is_in(&a->leaves, from) || is_in(&b->leaves, from) || (!is_first && s->stored_by[from->id] != phi + 1))
        return true;
    s->stored_in[from->id] = s->checks;
    s->stored_by[from->id] = phi + 1;
    s->steps += from->n_succs;
    for (uint32_t i = 0; i < from->n_succs; i++)
        if (from->succs[i] != to && (is_in(&a->live, from->succs[i]) || is_in(&b->live, from->succs[i])))
            return true;
    return false;
}

static bool has_spoiling_store(struct sharing *s, uint32_t phi, uint32_t a, uint32_t b)
{
    const struct ct_insn *insn = s->phis[phi].phi;

    s->steps += 1 + (s->phis[phi].branches ? insn->block->preds.n : 0);
    for (uint32_t p = 0; s->phis[phi].branches && p < insn->block->preds.n; p++) {
        const uint32_t operand = s->number[insn->operands[p].i], of = operand ? class_of(s, operand - 1) : UINT32_MAX;

        if (insn->block->preds.v[p]->n_succs > 1 && of != a && of != b && spoils(s, phi, p, &s->phis[a], &s->phis[b]))
            return true;
    }
    return false;
}

/* Whether the phis of two classes can share a variable; a == b: whether those of one class can. */
static bool can_share(struct sharing *s, uint32_t a, uint32_t b)
{
    const struct phi_class *x = &s->phis[a], *y = &s->phis[b];

    s->steps += x->live.n + x->defs.n + y->live.n + y->defs.n;
    if (a != b &&
        (ct_block_sets_meet(&x->live, &y->defs) || ct_block_sets_meet(&x->defs, &y->live) || ct_block_sets_meet(&x->defs, &y->defs)))
        return false;
    s->checks++;
    for (uint32_t i = x->first; i != UINT32_MAX; i = s->phis[i].next)
        if (has_spoiling_store(s, i, a, b))
            return false;
    for (uint32_t i = y->first; a != b && i != UINT32_MAX; i = s->phis[i].next)
        if (has_spoiling_store(s, i, a, b))
            return false;
    return true;
}

/* ---- classes ---- */

static void join(struct sharing *s, uint32_t a, uint32_t b)
{
    struct phi_class *x = &s->phis[a], *y = &s->phis[b];

    s->steps += x->live.n + x->defs.n + x->leaves.n + y->live.n + y->defs.n + y->leaves.n;
    y->parent = a;
    s->phis[x->last].next = y->first;
    x->last = y->last;
    ct_block_set_unite(s->scratch, &x->live, &y->live);
    ct_block_set_unite(s->scratch, &x->defs, &y->defs);
    ct_block_set_unite(s->scratch, &x->leaves, &y->leaves);
}

/* The phi shares a variable with its value on an edge, if that is a phi. */
static void try_to_join(struct sharing *s, uint32_t phi, ct_value value)
{
    const uint32_t number = s->number[value.i];
    uint32_t a, b;

    if (!number || s->phis[number - 1].refused_by == phi + 1)
        return;
    a = class_of(s, phi);
    b = class_of(s, number - 1);
    if (a == b)
        return;
    if (ct_width_of_value(s->g->fn, value) == ct_width_of_value(s->g->fn, s->phis[phi].phi->results[0]) && can_share(s, a, b))
        join(s, a, b);
    else
        s->phis[number - 1].refused_by = phi + 1;
}

static bool is_alone(struct sharing *s, uint32_t phi)
{
    const uint32_t of = class_of(s, phi);

    return s->phis[of].first == s->phis[of].last;
}

/* A phi whose majority value is stored in its variable early (emit_values.c) has it for itself. */
static bool is_seeded(struct sharing *s, uint32_t phi)
{
    return s->phis[phi].majority.i && is_alone(s, phi);
}

static void form_classes(struct sharing *s)
{
    for (uint32_t i = 0; i < s->n && has_time(s); i++) /* most edges first */
        if (s->phis[i].majority.i)
            try_to_join(s, i, s->phis[i].majority);
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t p = 0; has_time(s) && !is_seeded(s, i) && p < s->phis[i].phi->n_operands; p++) {
            const uint32_t number = s->number[s->phis[i].phi->operands[p].i];

            if (number && !is_seeded(s, number - 1))
                try_to_join(s, i, s->phis[i].phi->operands[p]);
        }
}

/* The first phi stands for the class. */
static void note_class(struct sharing *s, uint32_t class)
{
    for (uint32_t i = s->phis[class].first; i != UINT32_MAX; i = s->phis[i].next)
        s->g->values[s->phis[i].phi->results[0].i].shares = s->phis[class].phi->results[0];
}

void ct_gen_share_variables(struct ct_gen *g)
{
    const uint32_t n_phis = count_phis(g->fn), n_blocks = g->fn->blocks.n;
    struct sharing s = {.g = g, .scratch = &g->fn->compilation->scratch};

    ct_fn_compute_rpo(g->fn);
    s.phis = CT_ARENA_ARRAY(s.scratch, struct phi_class, n_phis);
    s.number = CT_ARENA_ARRAY(s.scratch, uint32_t, g->fn->values.n);
    s.live.words = CT_ARENA_ARRAY(s.scratch, uint64_t, CT_BLOCK_MARK_WORDS(n_blocks));
    s.leaves.words = CT_ARENA_ARRAY(s.scratch, uint64_t, CT_BLOCK_MARK_WORDS(n_blocks));
    s.reached = CT_ARENA_ARRAY(s.scratch, uint32_t, n_blocks);
    s.work = CT_ARENA_ARRAY(s.scratch, struct ct_block *, n_blocks);
    s.stored_by = CT_ARENA_ARRAY(s.scratch, uint32_t, n_blocks);
    s.stored_in = CT_ARENA_ARRAY(s.scratch, uint32_t, n_blocks);
    s.most_steps = (uint64_t)CT_STEPS_PER_VALUE * g->fn->values.n;
    if (!find_phis(&s))
        return;
    form_classes(&s);
    for (uint32_t i = 0; i < s.n; i++) {
        const bool is_one = is_alone(&s, i);

        if (class_of(&s, i) == i && (!is_one || (has_time(&s) && !s.phis[i].majority.i && can_share(&s, i, i))))
            note_class(&s, i);
    }
}
