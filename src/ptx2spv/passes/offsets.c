/* SPDX-License-Identifier: Apache-2.0 */
/* offsets: addresses of global memory as a parameter plus an offset of 32 bits, which GPUs add in the access itself
 * (ptx2spv_target.short_offsets).
 * In:  SSA; `addrspace` has run.   Out: the same; fn->limits_objects is set if the code is only correct while every object in memory is at most
 * PTX2SPV_OBJECT_LIMIT bytes. Accesses whose address was replaced are marked `is_device`.
 *
 *     d = mulwide.s32 i, 4                        e = shl.32 i, 2
 *     a = add.64 p, d                             f = add.32 e, 2^31
 *     x = load.global [a + 8]           =>        q = or.64 p, mask                   the rule for pointers, if it is an OR
 *                                                 r = add.64 q, -2^31
 *                                                 b = add.64 r, ext.u32 f
 *                                                 x = load.global [b + 8]
 *
 * p is a parameter of the kernel, and points into the object that is accessed; so if that has less than 2^31 bytes the distance of the access
 * from p is between -2^31 and 2^31, and its lower 32 bits determine it, which can be computed in 32 bits. The distance is made positive by
 * adding 2^31, unless all its terms are positive anyway. AMD's compiler finds the form base + zero-extended offset + constant, and keeps
 * the base in scalar registers; otherwise an access takes six instructions of 32-bit vectors.
 * Pointers that a loop moves away from a parameter get an offset of 32 bits, which the loop moves likewise, or are left alone
 * (PTX2SPV_OFFSETS_SHORT_FIXED).
 * Two accesses of one object whose distances from p differ by a small constant, modulo 2^32, really are that far from each other, however the distances
 * were computed. So if the first is executed whenever the second is, the second has the address of the first plus the constant, which drivers add in
 * the access, or they make one access of both:
 *
 *     x = load.global [p + 4 * ext.u32 i]                x = load.global [b]
 *     j = add.32 i, 1                             =>
 *     y = load.global [p + 4 * ext.u32 j]                y = load.global [b + 4]
 *
 * Only the addresses of accesses are changed: what a program computes with pointers otherwise need not point into an object. A pointer that was
 * loaded from memory is left alone, since the object may be larger than those that existed when the kernel was launched. */
#include "ptx2spv/ir/polynomial.h"
#include "inductions.h"
#include "simplify.h"

enum { DEPTH_MAX = 6, TERMS_MAX = 8, PHIS_MAX = 64 }; /* how far operands are followed; terms of a sum; phis that start from each other */
#define NEAR (INT64_C(1) << 11) /* constants of this size may stay in the access; NEAR + PTX2SPV_OBJECT_LIMIT < 2^31 */
#define BIAS (UINT64_C(1) << 31)

/* A pointer that a loop moves, or that is one of several: a phi whose operands all are one parameter plus distances, or the phi itself plus a
 * distance. Its distance from the parameter is a phi of 32 bits. */
enum progress { NOT_TRIED, BUSY, FAILED, FOUND };
struct moving {
    enum progress progress;
    ct_value base, offset;
    bool positive;
};

/* An access whose address was replaced. */
struct place {
    const struct ct_insn *base;    /* the parameter */
    struct ct_polynomial distance; /* from it, without the constant term, */
    uint32_t constant;             /* and that */
    bool is_located;               /* else the distance did not fit into a polynomial */
    bool is_positive;              /* the distance is a sum of terms that are not negative */
    struct ct_insn *access;
    struct place *next; /* with the same hash */
};
/* The accesses of a block, in order. */
struct block_places {
    uint32_t n;
    struct distance *distances;
    struct place *places;
};
#define PLACE_BUCKETS 256u
#define PLACES_TRIED 32 /* of a bucket */

struct lowered {
    struct ct_insn *sum;        /* a parameter and -2^31 */
    const struct ct_insn *base; /* the parameter */
};

struct offsets {
    struct ct_fn *fn;
    CT_VEC(struct lowered) lowered;
    bool *has_constants; /* indexed by value of the original function: a parameter; accesses through it have constants */
    struct place *places[PLACE_BUCKETS];
    struct moving *moving; /* indexed by value of the original function */
    unsigned n_busy;
};

struct term {
    ct_value value;
    bool is_narrow, is_positive; /* it has 32 bits: the offset of a moving pointer; and is not negative */
};

struct distance {
    struct offsets *offsets;
    struct ct_fn *fn;
    ct_value base; /* the parameter; none: not yet found */
    ct_value self; /* a phi; the distance may be one from it */
    struct term terms[TERMS_MAX];
    uint32_t n_terms, n_selves;
    uint64_t constant;
    bool failed;
};

static const struct ct_insn *definition(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    while (def && def->op == CT_OP_COPY)
        def = fn->values.v[def->operands[0].i].def;
    return def;
}

static bool is_parameter(const struct ct_insn *def)
{
    return def->op == CT_OP_LOAD && def->space == CT_SPACE_PARAM && !def->n_operands && ptx_type_bits(def->type) == 64;
}

/* Whether a term can only be a distance. Any other may be the pointer, and the parameter a distance from it. */
static bool is_distance(const struct ct_insn *def)
{
    return def->op == CT_OP_EXT || def->op == CT_OP_MULWIDE || def->op == CT_OP_SHL || def->op == CT_OP_MUL;
}

/* Whether a 64-bit value is certainly a product or a sum of unsigned 32-bit numbers that did not wrap around. */
static bool is_positive(const struct ct_fn *fn, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(fn, x);

    if (!def || !depth)
        return false;
    if (def->op == CT_OP_EXT)
        return !ptx_type_is_signed(def->type);
    if (def->op == CT_OP_MULWIDE)
        return def->type == PTX_U32;
    return def->op == CT_OP_SHL && is_positive(fn, def->operands[0], depth - 1) && ct_constant_or_null(fn, def->operands[1]) &&
           ct_constant_or_null(fn, def->operands[1])->imm < 32;
}

/* The lower 32 bits of a 64-bit value, computed in 32 bits as far as possible. */
static ct_value narrowed(struct ct_cursor *at, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(at->fn, x);

    if (!def || !depth)
        return ct_low32(at, x);
    switch ((unsigned)def->op) {
    case CT_OP_CONST:
        return ct_const32(at, (uint32_t)def->imm);
    case CT_OP_EXT:
        return ct_width_of_value(at->fn, def->operands[0]) == CT_W_32 && ptx_type_bits(def->type) == 32 ? def->operands[0]
                                                                                                        : ct_low32(at, x);
    case CT_OP_MULWIDE:
        return ct_width_of_value(at->fn, def->operands[0]) == CT_W_32 ? ct_bits2(at, CT_OP_MUL, def->operands[0], def->operands[1])
                                                                      : ct_low32(at, x);
    case CT_OP_ADD:
    case CT_OP_SUB:
    case CT_OP_MUL:
        return ct_bits2(at, def->op, narrowed(at, def->operands[0], depth - 1), narrowed(at, def->operands[1], depth - 1));
    case CT_OP_SHL: {
        const struct ct_insn *amount = ct_constant_or_null(at->fn, def->operands[1]);

        return amount && amount->imm < 32 ? ct_shl_imm(at, narrowed(at, def->operands[0], depth - 1), (uint32_t)amount->imm)
                                          : ct_low32(at, x);
    }
    default:
        return ct_low32(at, x);
    }
}

static const struct moving *moving_or_null(struct offsets *o, struct ct_insn *phi);

static void add_term(struct distance *d, struct term term)
{
    if (d->n_terms == TERMS_MAX)
        d->failed = true;
    else
        d->terms[d->n_terms++] = term;
}

static void add_base(struct distance *d, ct_value base)
{
    d->failed |= d->base.i != 0;
    d->base = base;
}

static void add_moving(struct distance *d, ct_value x)
{
    const bool is_left = d->fn->target->short_offsets == PTX2SPV_OFFSETS_SHORT_FIXED;
    const struct moving *moving = is_left ? NULL : moving_or_null(d->offsets, d->fn->values.v[x.i].def);

    if (moving) {
        add_base(d, moving->base);
        add_term(d, (struct term){.value = moving->offset, .is_narrow = true, .is_positive = moving->positive});
    } else {
        d->failed = true;
    }
}

/* Divides a sum into its terms. */
static void add_terms(struct distance *d, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(d->fn, x);

    if (def && def->op == CT_OP_PHI)
        x = def->results[0];
    if (!def)
        d->failed = true;
    else if (x.i == d->self.i)
        d->n_selves++;
    else if (def->op == CT_OP_PHI)
        add_moving(d, x);
    else if (is_parameter(def))
        add_base(d, x);
    else if (def->op == CT_OP_CONST)
        d->constant += def->imm;
    else if (def->op == CT_OP_ADD && depth)
        add_terms(d, def->operands[0], depth - 1), add_terms(d, def->operands[1], depth - 1);
    else if (is_distance(def))
        add_term(d, (struct term){.value = x, .is_positive = is_positive(d->fn, x, DEPTH_MAX)});
    else
        d->failed = true;
}

static bool are_terms_positive(const struct distance *d)
{
    bool positive = true;

    for (uint32_t i = 0; i < d->n_terms; i++)
        positive &= d->terms[i].is_positive;
    return positive;
}

/* No value if there are no terms. */
static ct_value sum_of_terms(struct ct_cursor *at, const struct distance *d)
{
    ct_value sum = CT_NO_VALUE;

    for (uint32_t i = 0; i < d->n_terms; i++) {
        const ct_value x = d->terms[i].is_narrow ? d->terms[i].value : narrowed(at, d->terms[i].value, DEPTH_MAX);

        sum = sum.i ? ct_add(at, sum, x) : x;
    }
    return sum;
}

/* ---- moving pointers ---- */

/* Whether every operand of the phi is a distance from `*base`, which this sets, or from the phi. */
static bool analyse(struct offsets *o, const struct ct_insn *phi, struct distance *operands, ct_value *base)
{
    for (uint32_t i = 0; i < phi->n_operands; i++) {
        struct distance *d = &operands[i];

        *d = (struct distance){.offsets = o, .fn = o->fn, .self = phi->results[0]};
        add_terms(d, phi->operands[i], DEPTH_MAX);
        if (d->failed || d->n_selves + (d->base.i != 0) != 1)
            return false;
        if (d->base.i && base->i && definition(o->fn, d->base) != definition(o->fn, *base))
            return false;
        if (d->base.i)
            *base = d->base;
    }
    return base->i != 0;
}

static ct_value operand_of_offset(const struct offsets *o, const struct ct_insn *phi, uint32_t i, const struct distance *d, ct_value offset)
{
    struct ct_block *from = phi->block->preds.v[i];
    struct ct_cursor at = {.fn = o->fn, .block = from, .before = from->last, .where = phi->where};
    ct_value sum = sum_of_terms(&at, d);

    if (d->n_selves)
        sum = sum.i ? ct_add(&at, sum, offset) : offset;
    if (!sum.i)
        return ct_const32(&at, (uint32_t)d->constant);
    return (uint32_t)d->constant ? ct_add_imm(&at, sum, (uint32_t)d->constant) : sum;
}

static const struct moving *moving_or_null(struct offsets *o, struct ct_insn *phi)
{
    struct moving *moving = &o->moving[phi->results[0].i];
    struct ct_cursor at = {.fn = o->fn, .block = phi->block, .before = phi->block->first, .where = phi->where};
    struct distance *operands;
    struct ct_insn *made;

    if (moving->progress != NOT_TRIED)
        return moving->progress == FOUND ? moving : NULL;
    moving->progress = BUSY; /* for phis that depend on each other */
    operands = CT_ARENA_ARRAY(&o->fn->compilation->scratch, struct distance, phi->n_operands);
    o->n_busy++;
    if (o->n_busy > PHIS_MAX || !analyse(o, phi, operands, &moving->base))
        moving->progress = FAILED;
    o->n_busy--;
    if (moving->progress == FAILED)
        return NULL;
    made = ct_emit_insn(&at, CT_OP_PHI, PTX_NONE, 1, phi->n_operands);
    moving->offset = made->results[0] = ct_value_create(o->fn, CT_W_32);
    o->fn->values.v[moving->offset.i].def = made;
    moving->positive = true;
    for (uint32_t i = 0; i < phi->n_operands; i++) {
        made->operands[i] = operand_of_offset(o, phi, i, &operands[i], moving->offset);
        moving->positive &= are_terms_positive(&operands[i]) && (int64_t)operands[i].constant >= 0;
    }
    moving->progress = FOUND;
    return moving;
}

/* ---- accesses ---- */

static bool is_near(int64_t offset)
{
    return offset > -NEAR && offset < NEAR;
}

static struct place place_of(struct ct_insn *access, const struct distance *d)
{
    struct place place = {.base = definition(d->fn, d->base), .access = access, .is_located = true};

    for (uint32_t i = 0; i < d->n_terms && place.is_located; i++) {
        struct ct_polynomial term;

        ct_polynomial_of(d->fn, d->terms[i].value, &term);
        place.is_located = ct_polynomial_add(&place.distance, &term, 1);
    }
    place.constant = ct_polynomial_take_constant(&place.distance) + (uint32_t)d->constant + (uint32_t)access->offset;
    place.is_positive = place.is_located && are_terms_positive(d) && (int64_t)d->constant + access->offset >= 0;
    return place;
}

static struct place **bucket_of(struct offsets *o, const struct place *place)
{
    return &o->places[(ct_polynomial_hash(&place->distance) ^ place->base->results[0].i) % PLACE_BUCKETS];
}

/* The constant that leads from the address of an earlier access to this place. */
static int64_t step_from(const struct place *earlier, const struct place *place)
{
    return earlier->access->offset + (int32_t)(place->constant - earlier->constant);
}

static bool are_parallel(const struct place *a, const struct place *b)
{
    return a->base == b->base && ct_polynomials_equal(&a->distance, &b->distance);
}

/* An earlier access not far before the place, which is always executed first. Accesses are visited in reverse postorder. */
static const struct place *neighbour_or_null(const struct place *list, const struct place *place)
{
    unsigned tried = 0;

    for (const struct place *p = list; p && tried++ < PLACES_TRIED; p = p->next) {
        const int64_t step = step_from(p, place);

        if (step >= 0 && is_near(step) && ct_block_dominates(p->access->block, place->access->block) && are_parallel(p, place))
            return p;
    }
    return NULL;
}

/* The distance from a place to the first one in memory of those that follow in its block and lie parallel to it: 0 or less. All of them are executed
 * if one is, and all their distances from the parameter are positive sums, so that the first one is what its lower 32 bits say. */
static int32_t first_step(const struct block_places *block, uint32_t index)
{
    const struct place *place = &block->places[index];
    int32_t least = 0;

    for (uint32_t i = index + 1; place->is_positive && i < block->n; i++) {
        const struct place *other = &block->places[i];
        const int32_t step = (int32_t)(other->constant - place->constant);

        if (other->is_positive && step < least && is_near(step) && are_parallel(place, other))
            least = step;
    }
    return least;
}

/* `first`: the address is to be that of a place so far from this one, 0 or less. */
static void replace_address(struct offsets *o, struct ct_insn *access, const struct distance *d, int32_t first)
{
    struct ct_fn *fn = o->fn;
    struct ct_cursor at = {.fn = fn, .block = access->block, .before = access, .where = access->where};
    const int64_t constant = (int64_t)d->constant + access->offset;
    ct_value base = d->base, sum = sum_of_terms(&at, d);
    bool positive = are_terms_positive(d);

    access->offset = is_near(constant) ? constant : 0;
    if (!is_near(constant)) {
        sum = ct_add_imm(&at, sum, (uint32_t)constant);
        positive &= constant > 0;
    }
    if (first < 0 && access->offset + first < 0) {
        sum = ct_add_imm(&at, sum, (uint32_t)(access->offset + first));
        access->offset = -first;
    }
    if (fn->target->pointer_rule == PTX2SPV_POINTER_OR)
        base = ct_or_imm(&at, base, fn->target->pointer_mask);
    if (!positive) {
        sum = ct_add_imm(&at, sum, BIAS);
        base = ct_add_imm(&at, base, -BIAS);
        *CT_PUSH(&fn->compilation->scratch, &o->lowered) = (struct lowered){fn->values.v[base.i].def, definition(fn, d->base)};
    }
    access->operands[0] = ct_add(&at, base, ct_zext64(&at, sum));
}

static void place_access(struct offsets *o, struct block_places *block, uint32_t index)
{
    struct place *place = &block->places[index], **bucket = bucket_of(o, place);
    const struct place *neighbour = place->is_located ? neighbour_or_null(*bucket, place) : NULL;

    if (neighbour) {
        place->access->offset = step_from(neighbour, place);
        place->access->operands[0] = neighbour->access->operands[0];
    } else {
        replace_address(o, place->access, &block->distances[index], place->is_located ? first_step(block, index) : 0);
        if (place->is_located) {
            place->next = *bucket;
            *bucket = place;
        }
    }
    o->has_constants[place->base->results[0].i] |= place->access->offset != 0;
    place->access->is_device = true;
    o->fn->limits_objects = true;
}

/* Parameters less 2^31, where accesses have constants: in words, since AMD's compiler would add a constant of 64 bits to those of the accesses, which
 * are then too large for these, and take two scalar operations each. */
static void lower_in_words(struct offsets *o)
{
    for (uint32_t i = 0; o->fn->target->short_offsets == PTX2SPV_OFFSETS_SHORT && i < o->lowered.n; i++) {
        struct ct_insn *sum = o->lowered.v[i].sum;
        struct ct_cursor at = {.fn = o->fn, .block = sum->block, .before = sum, .where = sum->where};
        ct_value low, high;

        if (!o->has_constants[o->lowered.v[i].base->results[0].i])
            continue;
        ct_unpack2(&at, sum->operands[0], &low, &high);
        high = ct_add_imm(&at, ct_add(&at, high, ct_shr_imm(&at, low, 31)), UINT64_MAX);
        sum->op = CT_OP_COPY;
        sum->operands[0] = ct_pack2(&at, ct_xor_imm(&at, low, BIAS), high);
        sum->n_operands = 1;
    }
}

static bool is_access(const struct ct_insn *insn)
{
    return (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && insn->space == CT_SPACE_GLOBAL &&
           insn->n_operands && insn->operands[0].i;
}

/* Finds the accesses of a block whose addresses can be replaced. */
static void find_places(struct offsets *o, const struct ct_block *block, struct block_places *out)
{
    out->n = 0;
    for (struct ct_insn *insn = block->first; insn; insn = insn->next) {
        struct distance d = {.offsets = o, .fn = o->fn};

        if (!is_access(insn))
            continue;
        add_terms(&d, insn->operands[0], DEPTH_MAX);
        if (d.failed || !d.base.i || !d.n_terms)
            continue;
        out->distances[out->n] = d;
        out->places[out->n++] = place_of(insn, &d);
    }
}

static uint32_t count_accesses(const struct ct_block *block)
{
    uint32_t n = 0;

    for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
        n += is_access(insn);
    return n;
}

static void place_accesses(struct offsets *o, const struct ct_block *block)
{
    struct ct_arena *scratch = &o->fn->compilation->scratch;
    const uint32_t n = count_accesses(block);
    struct block_places places = {.distances = CT_ARENA_ARRAY(scratch, struct distance, n),
                                  .places = CT_ARENA_ARRAY(scratch, struct place, n)};

    find_places(o, block, &places);
    for (uint32_t i = 0; i < places.n; i++)
        place_access(o, &places, i);
}

enum ct_pass_result ct_pass_offsets(struct ct_fn *fn)
{
    const uint32_t rule = fn->target->pointer_rule;
    struct offsets o = {.fn = fn};
    struct ct_block **blocks;
    uint32_t n;

    if (!fn->target->short_offsets || fn->compilation->options.any_grid || (rule != PTX2SPV_POINTER_SAME && rule != PTX2SPV_POINTER_OR))
        return CT_PASS_UNCHANGED;
    o.moving = CT_ARENA_ARRAY(&fn->compilation->scratch, struct moving, fn->values.n);
    o.has_constants = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->values.n);
    blocks = ct_fn_rpo_blocks(fn, &n);
    ct_fn_compute_dominators(fn);
    for (uint32_t b = 0; b < n; b++)
        place_accesses(&o, blocks[b]);
    lower_in_words(&o);
    if (!fn->limits_objects)
        return CT_PASS_UNCHANGED;
    ct_merge_inductions(fn); /* the offsets of pointers that loops move */
    return CT_PASS_CHANGED;
}
