/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: checks that the IR is well formed and that every property in fn->props holds. It collects all faults, passes the IR to
 * the dump callback, then reports each fault with the name of the last pass. Debug builds run it after every pass. */
#include "ir.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct fault {
    const struct ct_block *block;
    struct ct_location where;
    const char *text;
};

struct verifier {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    CT_VEC(struct fault) faults;
};

__attribute__((format(printf, 4, 5))) static void fault(struct verifier *v, const struct ct_block *block, const struct ct_insn *insn,
                                                        const char *format, ...)
{
    struct fault *fault = CT_PUSH(v->scratch, &v->faults);
    char text[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fault->block = block;
    if (insn)
        fault->where = insn->where;
    fault->text = ct_arena_printf(v->scratch, "%s%s%s", insn ? ct_op_infos[insn->op].name : "", insn ? ": " : "", text);
}

/* ---- blocks and lists ---- */

static bool is_block_of(const struct ct_fn *fn, const struct ct_block *block)
{
    return block && block->id < fn->blocks.n && fn->blocks.v[block->id] == block;
}

static void check_links(struct verifier *v, const struct ct_block *block)
{
    const struct ct_insn *prev = NULL;

    for (const struct ct_insn *insn = block->first; insn; prev = insn, insn = insn->next)
        if (insn->prev != prev || insn->block != block)
            fault(v, block, insn, "broken list");
    if (block->last != prev)
        fault(v, block, NULL, "broken end of list");
}

/* How many successors a terminator has; -1: any number above 0. */
static int wanted_succs(enum ct_op op)
{
    return op == CT_OP_BR ? 1 : op == CT_OP_CBR ? 2 : op == CT_OP_SWITCH ? -1 : 0;
}

static void check_terminator(struct verifier *v, const struct ct_block *block)
{
    if (!block->last || !(ct_op_infos[block->last->op].flags & CT_OPF_TERMINATOR)) {
        fault(v, block, block->last, "the block has no terminator");
        return;
    }
    for (const struct ct_insn *insn = block->first; insn != block->last; insn = insn->next)
        if (ct_op_infos[insn->op].flags & CT_OPF_TERMINATOR)
            fault(v, block, insn, "a terminator inside the block");

    const int wanted = wanted_succs(block->last->op);
    if (wanted < 0 ? block->n_succs == 0 : block->n_succs != (uint32_t)wanted)
        fault(v, block, block->last, "%" PRIu32 " successors", block->n_succs);
}

static bool check_succs(struct verifier *v, const struct ct_block *block)
{
    for (uint32_t s = 0; s < block->n_succs; s++)
        if (!is_block_of(v->fn, block->succs[s])) {
            fault(v, block, block->last, "successor %" PRIu32 " is not a block of the function", s);
            return false;
        }
    return true;
}

/* Checks the lists of blocks and instructions. False: the graph cannot be walked. */
static bool check_blocks(struct verifier *v)
{
    const struct ct_fn *fn = v->fn;
    bool sound = fn->blocks.n > 0;

    if (!sound)
        fault(v, NULL, NULL, "no blocks");
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        if (fn->blocks.v[b]->id != b) {
            fault(v, fn->blocks.v[b], NULL, "id %" PRIu32 " at index %" PRIu32, fn->blocks.v[b]->id, b);
            return false;
        }
        check_links(v, fn->blocks.v[b]);
        check_terminator(v, fn->blocks.v[b]);
        sound &= check_succs(v, fn->blocks.v[b]);
    }
    return sound;
}

/* ---- widths ---- */

/* Widths of results:operands. x: any width, the same for all x; t, u: the width of type, type2; p h i l: 1, 16, 32, 64 bits; ?: any.
 * Operations without an entry are checked elsewhere, or their lists vary. */
static const char *const shapes[CT_OP_COUNT] = {
    [CT_OP_CONST] = "?:",      [CT_OP_UNDEF] = "?:",    [CT_OP_COPY] = "x:x",          [CT_OP_SELECT] = "x:pxx",
    [CT_OP_ADD] = "x:xx",      [CT_OP_SUB] = "x:xx",    [CT_OP_MUL] = "x:xx",          [CT_OP_MULHI] = "t:tt",
    [CT_OP_MULWIDE] = "?:tt",  [CT_OP_DIV] = "t:tt",    [CT_OP_REM] = "t:tt",          [CT_OP_UDIV] = "x:xx",
    [CT_OP_SDIV] = "x:xx",     [CT_OP_UREM] = "x:xx",   [CT_OP_SREM] = "x:xx",         [CT_OP_NEG] = "x:x",
    [CT_OP_AND] = "x:xx",      [CT_OP_OR] = "x:xx",     [CT_OP_XOR] = "x:xx",          [CT_OP_NOT] = "x:x",
    [CT_OP_SHL] = "x:xi",      [CT_OP_SHR] = "t:ti",    [CT_OP_MIN] = "t:tt",          [CT_OP_MAX] = "t:tt",
    [CT_OP_POPC] = "i:i",      [CT_OP_CLZ] = "i:i",     [CT_OP_BREV] = "i:i",          [CT_OP_PRMT] = "i:iii",
    [CT_OP_ICMP] = "p:xx",     [CT_OP_TRUNC] = "?:?",   [CT_OP_EXT] = "?:?",           [CT_OP_FADD] = "t:tt",
    [CT_OP_FSUB] = "t:tt",     [CT_OP_FMUL] = "t:tt",   [CT_OP_FFMA] = "t:ttt",        [CT_OP_FDIV] = "t:tt",
    [CT_OP_FRCP] = "t:t",      [CT_OP_FSQRT] = "t:t",   [CT_OP_FRSQRT] = "t:t",        [CT_OP_FSIN] = "t:t",
    [CT_OP_FCOS] = "t:t",      [CT_OP_FLG2] = "t:t",    [CT_OP_FEX2] = "t:t",          [CT_OP_FTANH] = "t:t",
    [CT_OP_FMIN] = "t:tt",     [CT_OP_FMAX] = "t:tt",   [CT_OP_FNEG] = "t:t",          [CT_OP_FABS] = "t:t",
    [CT_OP_FFLOOR] = "t:t",    [CT_OP_FCEIL] = "t:t",   [CT_OP_FTRUNC] = "t:t",        [CT_OP_FRINT] = "t:t",
    [CT_OP_FCMP] = "p:tt",     [CT_OP_FCVT] = "?:?",    [CT_OP_FTOF] = "u:t",          [CT_OP_FTOI] = "u:t",
    [CT_OP_ITOF] = "u:t",      [CT_OP_SYSVAL] = "?:",   [CT_OP_CLOCK] = "l:",          [CT_OP_LOCALADDR] = "i:",
    [CT_OP_SHAREDADDR] = "i:", [CT_OP_ARGUMENT] = "?:", [CT_OP_RESULT] = ":?",         [CT_OP_BR] = ":",
    [CT_OP_CBR] = ":p",        [CT_OP_SWITCH] = ":i",   [CT_OP_SAMPLE] = "iiii:iiiii", [CT_OP_IMAGESIZE] = "iii:i",
    [CT_OP_RET] = ":",         [CT_OP_EXIT] = ":",      [CT_OP_UNREACHABLE] = ":",
};

/* The width that a letter of a shape requires, -1 for any. The first x that occurs determines `x`. */
static int width_of_letter(const struct ct_insn *insn, char letter, int *x, enum ct_width found)
{
    switch (letter) {
    case 'x':
        return *x < 0 ? (*x = (int)found) : *x;
    case 't':
        return insn->type == PTX_NONE ? -1 : (int)ct_width_of(insn->type);
    case 'u':
        return insn->type2 == PTX_NONE ? -1 : (int)ct_width_of(insn->type2);
    case 'p':
        return CT_W_PRED;
    case 'h':
        return CT_W_16;
    case 'i':
        return CT_W_32;
    case 'l':
        return CT_W_64;
    default:
        return -1;
    }
}

static void check_shape(struct verifier *v, const struct ct_insn *insn)
{
    const char *letter = shapes[insn->op];
    int x = -1;

    if (!letter)
        return;
    for (uint32_t r = 0; r < insn->n_results; r++, letter++) {
        const enum ct_width found = ct_width_of_value(v->fn, insn->results[r]);
        const int wanted = width_of_letter(insn, *letter, &x, found);

        if (wanted >= 0 && wanted != (int)found)
            fault(v, insn->block, insn, "result %%%" PRIu32 " has %u bits", insn->results[r].i, ct_width_bits(found));
    }
    letter++; /* the colon */
    for (uint32_t i = 0; i < insn->n_operands; i++, letter++) {
        const enum ct_width found = ct_width_of_value(v->fn, insn->operands[i]);
        const int wanted = width_of_letter(insn, *letter, &x, found);

        if (wanted >= 0 && wanted != (int)found)
            fault(v, insn->block, insn, "operand %%%" PRIu32 " has %u bits", insn->operands[i].i, ct_width_bits(found));
    }
}

static void check_same_widths(struct verifier *v, const struct ct_insn *insn)
{
    const enum ct_width wanted = ct_width_of_value(v->fn, insn->results[0]);

    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (ct_width_of_value(v->fn, insn->operands[i]) != wanted)
            fault(v, insn->block, insn, "operand %%%" PRIu32 " has a different width", insn->operands[i].i);
}

/* For PACK and UNPACK: the widths of the pieces sum up to that of the whole. */
static void check_pieces(struct verifier *v, const struct ct_insn *insn, ct_value whole, const ct_value *pieces, uint32_t n)
{
    unsigned bits = 0;

    for (uint32_t i = 0; i < n; i++)
        bits += ct_width_bits(ct_width_of_value(v->fn, pieces[i]));
    if (bits != ct_width_bits(ct_width_of_value(v->fn, whole)))
        fault(v, insn->block, insn, "pieces of %u bits in all for a whole of %u bits", bits,
              ct_width_bits(ct_width_of_value(v->fn, whole)));
}

static void check_resize(struct verifier *v, const struct ct_insn *insn)
{
    const unsigned to = ct_width_bits(ct_width_of_value(v->fn, insn->results[0]));
    const unsigned from = ct_width_bits(ct_width_of_value(v->fn, insn->operands[0]));
    const bool narrow_read = insn->op == CT_OP_EXT && insn->type != PTX_NONE && ptx_type_bits(insn->type) == 8;

    if (insn->op == CT_OP_TRUNC ? to >= from : to <= from && !narrow_read)
        fault(v, insn->block, insn, "from %u to %u bits", from, to);
}

static void check_address(struct verifier *v, const struct ct_insn *insn)
{
    const bool without = insn->space == CT_SPACE_PARAM || (insn->space == CT_SPACE_LOCAL && insn->local);
    const enum ct_width wanted = insn->space == CT_SPACE_SHARED || insn->space == CT_SPACE_LOCAL ? CT_W_32 : CT_W_64;

    if (without) {
        if (insn->n_operands && insn->operands[0].i)
            fault(v, insn->block, insn, "unexpected address operand");
        return;
    }
    if (!insn->n_operands || !insn->operands[0].i)
        fault(v, insn->block, insn, "no address operand");
    else if (ct_width_of_value(v->fn, insn->operands[0]) != wanted)
        fault(v, insn->block, insn, "address %%%" PRIu32 " has the wrong width", insn->operands[0].i);
}

/* ---- instructions ---- */

static bool is_access(const struct ct_insn *insn)
{
    return insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM;
}

/* Checks the numbers of results and operands, and that they are values; false: the instruction cannot be checked further. */
static bool check_lists(struct verifier *v, const struct ct_insn *insn)
{
    const struct ct_op_info *info = &ct_op_infos[insn->op];
    bool sound = true;

    if (info->results >= 0 && insn->n_results != (uint32_t)info->results)
        sound = false;
    if (info->operands >= 0 && !is_access(insn) && insn->n_operands != (uint32_t)info->operands)
        sound = false;
    if (!sound)
        fault(v, insn->block, insn, "%" PRIu32 " results, %" PRIu32 " operands", insn->n_results, insn->n_operands);
    for (uint32_t r = 0; r < insn->n_results; r++)
        if (!insn->results[r].i || insn->results[r].i >= v->fn->values.n) {
            fault(v, insn->block, insn, "result %" PRIu32 " is not a value", r);
            sound = false;
        }
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (insn->operands[i].i >= v->fn->values.n || (!insn->operands[i].i && !(is_access(insn) && i == 0))) {
            fault(v, insn->block, insn, "operand %" PRIu32 " is not a value", i);
            sound = false;
        }
    return sound;
}

static void check_props_of_insn(struct verifier *v, const struct ct_insn *insn)
{
    const uint32_t props = v->fn->props;
    const uint8_t flags = ct_op_infos[insn->op].flags;

    if (insn->op == CT_OP_CALL && props & CT_PROP_CALLS_INLINED)
        fault(v, insn->block, insn, "a call after inlining");
    if ((insn->local || insn->op == CT_OP_SHAREDADDR) && props & CT_PROP_LAID_OUT)
        fault(v, insn->block, insn, "a reference to an object by name after layout");
    if (insn->local > v->fn->locals.n)
        fault(v, insn->block, insn, "local object %" PRIu32 " does not exist", insn->local);
    if (!(props & CT_PROP_LOWERED))
        return;
    if (flags & CT_OPF_RICH)
        fault(v, insn->block, insn, "a rich operation after lowering");
    if (flags & CT_OPF_FLOAT && (insn->rounding > PTX_RN || insn->ftz || insn->sat))
        fault(v, insn->block, insn, "a rounding, ftz or sat modifier after lowering");
}

static void check_insn(struct verifier *v, const struct ct_insn *insn)
{
    check_props_of_insn(v, insn);
    if (!check_lists(v, insn))
        return;
    check_shape(v, insn);
    if (insn->op == CT_OP_PHI)
        check_same_widths(v, insn);
    else if (insn->op == CT_OP_PACK)
        check_pieces(v, insn, insn->results[0], insn->operands, insn->n_operands);
    else if (insn->op == CT_OP_UNPACK)
        check_pieces(v, insn, insn->operands[0], insn->results, insn->n_results);
    else if (insn->op == CT_OP_TRUNC || insn->op == CT_OP_EXT)
        check_resize(v, insn);
    else if (is_access(insn))
        check_address(v, insn);
}

/* ---- SSA ---- */

/* Position of a definition: its block, and its number in the block. */
struct place {
    const struct ct_block *block;
    uint32_t number;
};

static void check_phi(struct verifier *v, const struct ct_insn *phi, const struct place *places)
{
    const struct ct_block *block = phi->block;

    if (phi->prev && phi->prev->op != CT_OP_PHI)
        fault(v, block, phi, "not at the head of the block");
    if (phi->n_operands != block->preds.n) {
        fault(v, block, phi, "%" PRIu32 " operands for %" PRIu32 " predecessors", phi->n_operands, block->preds.n);
        return;
    }
    for (uint32_t i = 0; i < phi->n_operands; i++) {
        const struct place *def = &places[phi->operands[i].i];

        if (phi->operands[i].i && (!def->block || !ct_block_dominates(def->block, block->preds.v[i])))
            fault(v, block, phi, "the definition of %%%" PRIu32 " does not dominate b%" PRIu32, phi->operands[i].i, block->preds.v[i]->id);
    }
}

static void check_uses(struct verifier *v, const struct ct_insn *insn, uint32_t number, const struct place *places)
{
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const struct place *def = &places[insn->operands[i].i];

        if (!insn->operands[i].i || insn->operands[i].i >= v->fn->values.n)
            continue;
        if (!def->block || !ct_block_dominates(def->block, insn->block) || (def->block == insn->block && def->number >= number))
            fault(v, insn->block, insn, "the definition of %%%" PRIu32 " does not dominate this use", insn->operands[i].i);
    }
}

static struct place *find_places(struct verifier *v)
{
    struct place *places = CT_ARENA_ARRAY(v->scratch, struct place, v->fn->values.n);

    for (uint32_t b = 0; b < v->fn->blocks.n; b++) {
        const struct ct_block *block = v->fn->blocks.v[b];
        uint32_t number = 0;

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next, number++)
            for (uint32_t r = 0; r < insn->n_results; r++) {
                struct place *place = &places[insn->results[r].i < v->fn->values.n ? insn->results[r].i : 0];

                if (place->block && insn->results[r].i)
                    fault(v, block, insn, "%%%" PRIu32 " has two definitions", insn->results[r].i);
                *place = (struct place){block, number};
            }
    }
    return places;
}

static void check_ssa(struct verifier *v)
{
    const struct place *places = find_places(v);

    for (uint32_t b = 0; b < v->fn->blocks.n; b++) {
        const struct ct_block *block = v->fn->blocks.v[b];
        uint32_t number = 0;

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next, number++)
            if (insn->op == CT_OP_PHI)
                check_phi(v, insn, places);
            else
                check_uses(v, insn, number, places);
    }
}

/* ---- the graph ---- */

/* Checks that the predecessor entries of each block match the edges into it, counted by source. */
static void check_preds(struct verifier *v)
{
    const uint32_t n = v->fn->blocks.n;
    uint32_t *edges = CT_ARENA_ARRAY(v->scratch, uint32_t, n);

    for (uint32_t b = 0; b < n; b++)
        for (uint32_t s = 0; s < v->fn->blocks.v[b]->n_succs; s++)
            edges[v->fn->blocks.v[b]->succs[s]->id]++;
    for (uint32_t b = 0; b < n; b++) {
        const struct ct_block *block = v->fn->blocks.v[b];

        if (block->preds.n != edges[b])
            fault(v, block, NULL, "%" PRIu32 " predecessors for %" PRIu32 " edges", block->preds.n, edges[b]);
        for (uint32_t p = 0; p < block->preds.n; p++) {
            const struct ct_block *pred = block->preds.v[p];
            bool found = false;

            for (uint32_t s = 0; is_block_of(v->fn, pred) && s < pred->n_succs; s++)
                found |= pred->succs[s] == block;
            if (!found)
                fault(v, block, NULL, "predecessor %" PRIu32 " has no edge to this block", p);
        }
    }
}

/* Compares the dominators, if they are claimed to be up to date, with recomputed ones. Leaves the recomputed ones in either case. */
static void check_dominators(struct verifier *v)
{
    struct ct_fn *fn = v->fn;
    const uint32_t n = fn->blocks.n;
    const struct ct_block **before = CT_ARENA_ARRAY(v->scratch, const struct ct_block *, n);
    const uint32_t props = fn->props;

    for (uint32_t b = 0; b < n; b++)
        before[b] = fn->blocks.v[b]->idom;
    fn->props &= ~(uint32_t)(CT_PROP_RPO | CT_PROP_DOM);
    ct_fn_compute_dominators(fn);
    for (uint32_t b = 0; props & CT_PROP_DOM && b < n; b++)
        if (fn->blocks.v[b]->idom != before[b])
            fault(v, fn->blocks.v[b], NULL, "stale dominators");
}

static void check_graph(struct verifier *v)
{
    struct ct_fn *fn = v->fn;

    if (!(fn->props & (CT_PROP_SSA | CT_PROP_DOM | CT_PROP_REDUCIBLE)))
        return;
    if (fn->props & CT_PROP_SSA)
        check_preds(v);
    else
        ct_fn_compute_preds(fn);
    if (v->faults.n)
        return;
    check_dominators(v);
    if (fn->props & CT_PROP_REDUCIBLE && !ct_fn_is_reducible(fn))
        fault(v, NULL, NULL, "the graph is not reducible");
    if (!(fn->props & CT_PROP_SSA))
        return;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        if (fn->blocks.v[b]->rpo == UINT32_MAX)
            fault(v, fn->blocks.v[b], NULL, "the block is unreachable");
    if (!v->faults.n)
        check_ssa(v);
}

static void report(struct verifier *v)
{
    struct ct_compilation *compilation = v->fn->compilation;

    if (compilation->options.on_dump)
        compilation->options.on_dump(compilation->options.user, v->fn->last_pass, ct_fn_dump(v->fn, v->scratch));
    for (uint32_t i = 0; i < v->faults.n; i++) {
        const struct fault *f = &v->faults.v[i];
        char block[24] = "";

        if (f->block)
            snprintf(block, sizeof block, "b%" PRIu32 ": ", f->block->id);
        ct_error(compilation, f->where, PTX2SPV_INTERNAL, "internal error in %s after %s: %s%s", v->fn->name, v->fn->last_pass, block,
                 f->text);
    }
}

bool ct_fn_verify(struct ct_fn *fn)
{
    struct verifier v = {.fn = fn, .scratch = &fn->compilation->scratch};

    if (check_blocks(&v)) {
        for (uint32_t b = 0; b < fn->blocks.n; b++)
            for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
                check_insn(&v, insn);
        check_graph(&v);
    }
    if (v.faults.n)
        report(&v);
    return v.faults.n == 0;
}
