/* SPDX-License-Identifier: Apache-2.0 */
/* guard: fma.rn.f32 on targets whose Fma does not round once, or does but flushes subnormals. Results that may be wrong are recomputed
 * exactly.
 * In:  SSA, lowered; FFMAs marked `guarded`.   Out: the same; the marks no longer mean anything.
 *
 *     x = fma a, b, c                              x = fma a, b, c        the driver's
 *     y = fmul x, d                                y = fmul x, d
 *     z = fma x, y, e                              z = fma x, y, e
 *     ...                                 =>       if (an operand was small && it was not a zero) {   the first test of guard_flags.c
 *                                                      x = fma a, b, c
 *                                                      if (x may be wrong) x = ...     the second test; the exact sequence
 *                                                      y = fmul x, d
 *                                                      z = fma x, y, e
 *                                                      if (z may be wrong) z = ...
 *                                                  }
 *                                                  ...
 *
 * A segment ends with an FFMA and contains what precedes it in the block. Only FFMAs and what depends on them are recomputed, all of it
 * pure. Other instructions stay in place between them, so side effects happen once. A segment must end before an instruction that depends
 * on it and is not pure, and before it grows large: an FFMA is recomputed by about fifty instructions. Each of these sequences is a block
 * of its own, so that a driver's scheduler does not interleave them: otherwise the registers of code that is hardly ever executed would
 * count for the whole kernel.
 *
 * On a target whose Fma does not round once, a sum in f64 takes the place of the driver's Fma, the tests are those of guard_rounding.c, and
 * every FFMA of a segment that fails them is recomputed by the exact sequence.
 *
 * This can also be requested for a target whose Fma does not flush (CUTTLE_MATH=guarded): its FFMAs are then made to flush. */
#include "guard.h"

/* Where the driver's fma rounds twice, `sgemm` takes 0.95 of the time on lavapipe with 32, whose warps are the compiler's. On AMD's GPUs before GFX10.3
 * matrix_multiply needs 84 registers with 4, as without a guard, 124 with 8, 196 with 16, and spills 13 with 32. */
enum { FFMAS_MAX = 16, FFMAS_MAX_TWICE_NATIVE = 4, FFMAS_MAX_TWICE_COLLECTIVE = 32, DEPENDENTS_MAX = 160 };

/* ---- the parts of a segment ---- */

/* The value that represents an operand in the exact part. */
static ct_value copied(const struct ct_guard *g, const struct ct_segment *segment, ct_value x)
{
    return x.i && g->segment_of[x.i] == segment->number ? g->copied[x.i] : x;
}

static struct ct_insn *copy_insn(struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at, const struct ct_insn *insn)
{
    struct ct_insn *copy = ct_emit_copy_of(at, insn);

    for (uint32_t i = 0; i < insn->n_operands; i++)
        copy->operands[i] = copied(g, segment, insn->operands[i]);
    for (uint32_t i = 0; i < insn->n_results; i++)
        g->copied[insn->results[i].i] = copy->results[i];
    return copy;
}

/* A phi of two values, one for the first edge and one for the second. */
static ct_value merge(struct ct_cursor *at, ct_value first, ct_value second)
{
    return ct_emit2(at, CT_OP_PHI, PTX_NONE, ct_width_of_value(at->fn, first), first, second);
}

/* The exact sequence, executed if the second test says so. `at` continues after it. */
static ct_value corrected(struct ct_fn *fn, struct ct_cursor *at, const ct_value x[3], ct_value r)
{
    struct ct_block *exact = ct_block_create(fn), *join = ct_block_create(fn);
    struct ct_cursor in = {.fn = fn, .block = exact, .where = at->where};
    ct_value wide[3], fused;

    ct_ssa_branch(at, ct_guard_may_be_wrong(at, x, r), exact, join);
    for (int i = 0; i < 3; i++)
        wide[i] = ct_float_resized(&in, PTX_F32, PTX_F64, x[i]);
    fused = ct_fused_from_wide(&in, wide[0], wide[1], wide[2]);
    ct_ssa_jump(fn, exact, join);
    at->block = join;
    return merge(at, r, fused);
}

/* The exact result of an FFMA of the segment. `at` may continue in another block. */
static ct_value recomputed(struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at, const struct ct_insn *ffma)
{
    ct_value x[3];

    for (int i = 0; i < 3; i++)
        x[i] = copied(g, segment, ffma->operands[i]);
    if (g->rounds_twice)
        return ct_guard_exact(at, ffma, x);
    return corrected(g->fn, at, x, copy_insn(g, segment, at, ffma)->results[0]);
}

/* Recomputes a segment; returns the block in which that ends. */
static struct ct_block *recompute(struct ct_guard *g, const struct ct_segment *segment, struct ct_block *block)
{
    struct ct_cursor at = {.fn = g->fn, .block = block};

    for (uint32_t i = 0; i < segment->dependents.n; i++) {
        const struct ct_insn *insn = segment->dependents.v[i];

        at.where = insn->where;
        if (ct_is_guarded(insn))
            g->copied[insn->results[0].i] = recomputed(g, segment, &at, insn);
        else
            copy_insn(g, segment, &at, insn);
    }
    return at.block;
}

/* Each result is x if the coarse check passed, also x if the fine check passed, and else its recomputed value. */
static void merge_results(struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *join, struct ct_cursor *rest)
{
    for (uint32_t i = 0; i < segment->dependents.n; i++)
        for (uint32_t r = 0; r < segment->dependents.v[i]->n_results; r++) {
            const ct_value x = segment->dependents.v[i]->results[r];

            g->merged[x.i] = merge(rest, x, merge(join, x, g->copied[x.i]));
        }
}

static void make_diamond(struct ct_guard *g, struct ct_segment *segment, const struct ct_guard_checks *checks, ct_value coarse,
                         struct ct_insn *last)
{
    struct ct_fn *fn = g->fn;
    struct ct_block *again = ct_block_create(fn), *join = ct_block_create(fn);
    struct ct_cursor at = {.fn = fn, .block = segment->fast, .where = last->where}, in_check = {.fn = fn, .where = last->where};
    struct ct_cursor in_join = {.fn = fn, .block = join, .where = last->where};
    ct_value no, fine;

    segment->rest = ct_block_split(fn, segment->fast, last->next);
    in_check.block = segment->check = ct_block_create(fn);
    no = ct_emit_const(&at, CT_W_PRED, 0);
    ct_ssa_branch(&at, coarse, segment->check, segment->rest);
    fine = g->rounds_twice ? ct_guard_fine_rounding_check(g, segment, &in_check) : ct_guard_fine_check(g, checks, &in_check);
    ct_ssa_branch(&in_check, fine, again, join);
    ct_ssa_jump(fn, recompute(g, segment, again), join);
    at = (struct ct_cursor){.fn = fn, .block = segment->rest, .before = segment->rest->first, .where = last->where};
    merge_results(g, segment, &in_join, &at);
    g->flag = merge(&at, no, fine);
    ct_ssa_jump(fn, join, segment->rest);
}

/* ---- finding segments ---- */

struct scan {
    struct ct_segment segment;
    struct ct_insn *last;       /* the FFMA with which the segment ends so far; NULL: none yet */
    uint32_t n_ffmas, n_closed; /* number of the dependents up to and including that FFMA */
};

static bool depends(const struct ct_guard *g, const struct scan *scan, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (insn->operands[i].i && g->segment_of[insn->operands[i].i] == scan->segment.number)
            return true;
    return false;
}

static void add(struct ct_guard *g, struct scan *scan, struct ct_insn *insn)
{
    *CT_PUSH(g->scratch, &scan->segment.dependents) = insn;
    for (uint32_t r = 0; r < insn->n_results; r++)
        g->segment_of[insn->results[r].i] = scan->segment.number;
}

static bool must_end(const struct ct_guard *g, const struct scan *scan, const struct ct_insn *insn, bool dependent)
{
    const bool is_native = g->fn->target->warp_form == PTX2SPV_WARP_NATIVE;
    const uint32_t ffmas_max = !g->rounds_twice ? FFMAS_MAX : is_native ? FFMAS_MAX_TWICE_NATIVE : FFMAS_MAX_TWICE_COLLECTIVE;

    if (!scan->last)
        return false;
    if (insn == insn->block->last || (dependent && !ct_insn_is_pure(insn)))
        return true;
    return scan->n_ffmas == ffmas_max || scan->segment.dependents.n >= DEPENDENTS_MAX;
}

static struct scan begin(const struct ct_guard *g, struct ct_block *block)
{
    return (struct scan){.segment = {.number = g->segments.n + 1, .fast = block}};
}

/* Ends the segment; the next one is in the returned block. */
static struct ct_block *end(struct ct_guard *g, struct scan *scan)
{
    struct ct_segment *segment = &scan->segment;
    struct ct_cursor at = {.fn = g->fn, .block = segment->fast, .before = scan->last->next, .where = scan->last->where};
    struct ct_guard_checks checks = {.always_fails = false};
    ct_value coarse;

    while (segment->dependents.n > scan->n_closed) {
        const struct ct_insn *insn = segment->dependents.v[--segment->dependents.n];

        for (uint32_t r = 0; r < insn->n_results; r++)
            g->segment_of[insn->results[r].i] = 0;
    }
    if (g->rounds_twice) {
        ct_guard_expand(g, segment);
        coarse = ct_guard_coarse_rounding_check(g, segment, &at);
    } else {
        checks = ct_guard_find_checks(g, segment);
        coarse = ct_guard_coarse_check(g, &checks, &at);
    }
    if (coarse.i)
        make_diamond(g, segment, &checks, coarse, at.before->prev);
    *CT_PUSH(g->scratch, &g->segments) = *segment; /* even without recomputation, since its number is in use */
    return coarse.i ? segment->rest : segment->fast;
}

struct ct_block *ct_guard_header_or_null(const struct ct_block *block)
{
    struct ct_block *header = block->loop_head;

    return header && header->idom && header->idom->loop_depth < header->loop_depth ? header : NULL;
}

static void divide_block(struct ct_guard *g, struct ct_block *block)
{
    struct scan scan = begin(g, block);
    struct ct_insn *next;

    g->flag = CT_NO_VALUE;
    g->block = block->id + 1;
    g->header = ct_guard_header_or_null(block);
    for (struct ct_insn *insn = block->first; insn; insn = next) {
        const bool dependent = insn->op != CT_OP_PHI && depends(g, &scan, insn);

        next = insn->next;
        if (must_end(g, &scan, insn, dependent)) {
            struct ct_insn *const last = scan.last;

            next = last->next;
            scan = begin(g, end(g, &scan));
            continue;
        }
        if (!ct_is_guarded(insn) && !(dependent && ct_insn_is_pure(insn)))
            continue;
        add(g, &scan, insn);
        if (!ct_is_guarded(insn))
            continue;
        scan.last = insn;
        scan.n_ffmas++;
        scan.n_closed = scan.segment.dependents.n;
    }
    g->tail[block->id] = scan.segment.fast;
}

/* ---- uses after the segments ---- */

/* Indexed by block: the number of the segment whose uncorrected values are valid there; 0: none. */
static uint32_t *map_blocks_to_segments(const struct ct_guard *g)
{
    uint32_t *segment_of_block = CT_ARENA_ARRAY(g->scratch, uint32_t, g->fn->blocks.n);

    for (uint32_t s = 0; s < g->segments.n; s++) {
        const struct ct_segment *segment = &g->segments.v[s];

        if (segment->rest)
            segment_of_block[segment->fast->id] = segment_of_block[segment->check->id] = segment->number;
    }
    return segment_of_block;
}

/* Whether a phi merges the two versions of a segment's result. */
static bool is_merging(const struct ct_guard *g, const struct ct_insn *phi)
{
    const ct_value x = phi->operands[0];

    return phi->results[0].i >= g->n_values && x.i < g->n_values;
}

/* Uses outside of the segment read the merged values. */
static void use_merged(struct ct_guard *g)
{
    const uint32_t *segment_of_block = map_blocks_to_segments(g);

    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (insn->op == CT_OP_PHI && is_merging(g, insn))
                continue;
            for (uint32_t i = 0; i < insn->n_operands; i++) {
                const uint32_t x = insn->operands[i].i;

                if (x < g->n_values && g->merged[x].i && (insn->op == CT_OP_PHI || segment_of_block[b] != g->segment_of[x]))
                    insn->operands[i] = g->merged[x];
            }
        }
}

/* For targets that do not flush by themselves. */
static void flush_all(struct ct_fn *fn)
{
    struct ct_lower l = {.fn = fn};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first, *next; insn; insn = next) {
            next = insn->next;
            if (!ct_is_guarded(insn))
                continue;
            l.insn = insn;
            l.at = (struct ct_cursor){.fn = fn, .block = fn->blocks.v[b], .before = insn, .where = insn->where};
            insn->ftz = true;
            ct_assign(&l.at, insn->results[0], ct_lower_float_operation(&l));
            ct_insn_remove(insn);
        }
}

static bool has_guarded(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_is_guarded(insn))
                return true;
    return false;
}

void ct_guard_compute_graph(struct ct_fn *fn)
{
    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    ct_fn_compute_loops(fn);
}

static void prepare(struct ct_guard *g)
{
    const uint32_t n_blocks = g->fn->blocks.n;

    g->n_values = g->fn->values.n;
    g->n_blocks = n_blocks;
    ct_guard_compute_graph(g->fn);
    g->segment_of = CT_ARENA_ARRAY(g->scratch, uint32_t, g->n_values);
    g->merged = CT_ARENA_ARRAY(g->scratch, ct_value, g->n_values);
    g->grade = CT_ARENA_ARRAY(g->scratch, uint8_t, g->n_values);
    g->graded_in = CT_ARENA_ARRAY(g->scratch, uint32_t, g->n_values);
    g->copied = CT_ARENA_ARRAY(g->scratch, ct_value, g->n_values);
    g->home = CT_ARENA_ARRAY(g->scratch, struct ct_block *, g->n_values);
    g->tail = CT_ARENA_ARRAY(g->scratch, struct ct_block *, n_blocks);
    for (uint32_t v = 1; v < g->n_values; v++)
        g->home[v] = g->fn->values.v[v].def ? g->fn->values.v[v].def->block : NULL;
    for (uint32_t b = 0; b < n_blocks; b++)
        g->tail[b] = g->fn->blocks.v[b];
}

bool ct_guard_is_unguarded(const struct ct_guard *g, const struct ct_block *block)
{
    for (uint32_t i = 0; i < g->unguarded.n; i++)
        if (g->unguarded.v[i] == block)
            return true;
    return false;
}

/* Versions of code that need no checks, since no operand can come to harm by flushes. */
static void make_unguarded_versions(struct ct_guard *g)
{
    g->shared_is_tracked = ct_guard_can_track_shared(g->fn);
    ct_guard_make_unguarded_loops(g);
    if (!g->shared_is_tracked)
        return;
    ct_guard_track_shared(g->fn);
    prepare(g);
    ct_guard_make_unguarded_runs(g);
}

enum ct_pass_result ct_pass_guard(struct ct_fn *fn)
{
    struct ct_guard g = {.fn = fn, .scratch = &fn->compilation->scratch};
    struct ct_block **blocks;
    uint32_t n;

    if (!has_guarded(fn))
        return CT_PASS_UNCHANGED;
    (void)ct_pass_cleanup(fn); /* copies should be small, and blocks that only jump would get phis below */
    ct_fn_compute_defs(fn);
    g.rounds_twice = ct_guards_rounding(fn);
    if (!g.rounds_twice)
        make_unguarded_versions(&g);
    prepare(&g);
    blocks = ct_fn_rpo_blocks(fn, &n);
    for (uint32_t b = 0; b < n; b++) /* dominators are divided before the blocks that they dominate */
        if (!ct_guard_is_unguarded(&g, blocks[b]))
            divide_block(&g, blocks[b]);
    use_merged(&g);
    if (!g.rounds_twice && !fn->target->fma32_flushes)
        flush_all(fn);
    return CT_PASS_CHANGED;
}
