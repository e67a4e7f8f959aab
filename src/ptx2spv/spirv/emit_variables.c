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
#include "emit.h"

#define CT_SETS_BYTES_MAX (512u << 20) /* the sets grow with the square of the kernel: beyond this, no phis share variables */
#define CT_STEPS_PER_VALUE 200       /* so does the time: then no further phis do */
#define CT_WORD_BITS 64
#define CT_MAJORITY_EDGES 4 /* phis with fewer such edges do not get a store at the definition */

/* A class of phis that share a variable; at first each phi is one. The sets have a bit for each block. */
struct phi_class {
    const struct ct_insn *phi;
    ct_value majority;    /* of its edges; 0: none */
    uint32_t parent;      /* index; its own: it stands for its class, and the following members are valid */
    uint32_t first, last; /* the list of its phis: indices */
    uint32_t next;        /* in the list of the class to which this phi belongs; UINT32_MAX ends it */
    uint64_t *live;       /* blocks in which a phi of the class is live-in */
    uint64_t *defs;       /* blocks that define one */
    uint64_t *leaves;     /* blocks at whose ends one is used: by a phi of a successor, or by the branch */
    bool branches;        /* this phi (not: its class) has a predecessor with several successors */
    uint32_t refused_by;  /* the last phi, by index + 1, that could not share its variable */
};

struct sharing {
    struct ct_gen *g;
    struct ct_arena *scratch;
    struct phi_class *phis;
    uint32_t n;
    uint32_t *number; /* indexed by value: index of the phi + 1; 0: the value is none */
    uint32_t words;   /* of a set */
    struct ct_block **work;
    uint32_t *stored_by; /* indexed by block id, in a check: the phi + 1 that its end stores to the variable */
    uint32_t *stored_in; /* indexed by block id: the check that has set stored_by */
    uint32_t checks;
    uint64_t steps, most_steps;
};

static bool is_in(const uint64_t *set, const struct ct_block *block)
{
    return set[block->id / CT_WORD_BITS] >> block->id % CT_WORD_BITS & 1;
}

static void add(uint64_t *set, const struct ct_block *block)
{
    set[block->id / CT_WORD_BITS] |= UINT64_C(1) << block->id % CT_WORD_BITS;
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

/* The phi is used in the block. */
static void note_use(struct sharing *s, struct phi_class *phi, struct ct_block *block)
{
    uint32_t n = 0;

    if (block == phi->phi->block || is_in(phi->live, block))
        return;
    add(phi->live, block);
    s->work[n++] = block;
    while (n) {
        const struct ct_block *at = s->work[--n];

        for (uint32_t i = 0; i < at->preds.n; i++) {
            struct ct_block *pred = at->preds.v[i];

            if (pred == phi->phi->block || is_in(phi->live, pred))
                continue;
            add(phi->live, pred);
            s->work[n++] = pred;
        }
        s->steps += at->preds.n;
    }
}

static void note_uses_of(struct sharing *s, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const uint32_t number = s->number[insn->operands[i].i];
        struct ct_block *block = insn->op == CT_OP_PHI ? insn->block->preds.v[i] : insn->block;

        if (!number)
            continue;
        if (insn->op == CT_OP_PHI || insn == insn->block->last)
            add(s->phis[number - 1].leaves, block);
        note_use(s, &s->phis[number - 1], block);
    }
}

static uint64_t *make_set(struct sharing *s)
{
    return CT_ARENA_ARRAY(s->scratch, uint64_t, s->words);
}

static void add_phi(struct sharing *s, const struct ct_insn *insn)
{
    const uint32_t i = s->n++;
    struct phi_class *phi = &s->phis[i];

    *phi = (struct phi_class){.phi = insn, .majority = ct_gen_find_majority(insn), .parent = i, .first = i, .last = i, .next = UINT32_MAX};
    phi->live = make_set(s);
    phi->defs = make_set(s);
    phi->leaves = make_set(s);
    add(phi->defs, insn->block);
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
    for (uint32_t b = 0; b < fn->blocks.n && has_time(s); b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            note_uses_of(s, insn);
    return has_time(s);
}

/* ---- interference ---- */

static bool meet(const struct sharing *s, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t i = 0; i < s->words; i++)
        if (a[i] & b[i])
            return true;
    return false;
}

/* Whether the phi's store at the end of a block with several successors destroys what a phi of class a or b has in their variable on the way
 * to another one, or what another phi's store has left there for it. */
static bool spoils(struct sharing *s, uint32_t phi, uint32_t pred, const struct phi_class *a, const struct phi_class *b)
{
    const struct ct_block *to = s->phis[phi].phi->block, *from = to->preds.v[pred];
    const bool is_first = s->stored_in[from->id] != s->checks;

    if (is_in(a->leaves, from) || is_in(b->leaves, from) || (!is_first && s->stored_by[from->id] != phi + 1))
        return true;
    s->stored_in[from->id] = s->checks;
    s->stored_by[from->id] = phi + 1;
    s->steps += from->n_succs;
    for (uint32_t i = 0; i < from->n_succs; i++)
        if (from->succs[i] != to && (is_in(a->live, from->succs[i]) || is_in(b->live, from->succs[i])))
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

    s->steps += s->words;
    if (a != b && (meet(s, x->live, y->defs) || meet(s, x->defs, y->live) || meet(s, x->defs, y->defs)))
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

    y->parent = a;
    s->phis[x->last].next = y->first;
    x->last = y->last;
    for (uint32_t i = 0; i < s->words; i++) {
        x->live[i] |= y->live[i];
        x->defs[i] |= y->defs[i];
        x->leaves[i] |= y->leaves[i];
    }
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
    struct sharing s = {.g = g, .scratch = &g->fn->compilation->scratch, .words = n_blocks / CT_WORD_BITS + 1};

    if ((uint64_t)n_phis * s.words * 3 * sizeof(uint64_t) > CT_SETS_BYTES_MAX)
        return;
    s.phis = CT_ARENA_ARRAY(s.scratch, struct phi_class, n_phis);
    s.number = CT_ARENA_ARRAY(s.scratch, uint32_t, g->fn->values.n);
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
