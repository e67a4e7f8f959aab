/* SPDX-License-Identifier: Apache-2.0 */
/* build: products of matrices in the device's matrix units (PTX ISA, "mma", "wmma.mma"). The target's table says which shapes and types these
 * have, and which lane holds which element there. Registers of CUDA's fragments become words of the unit's by the cheapest way: a lane has
 * the elements itself; or each word comes from one other lane; or they pass through the matrix area.
 *
 * A product is made of blocks of the unit's shape. Rows and columns that the unit has in excess repeat others and are dropped; where it has
 * more elements along k, those are 0. */
#include "matrix.h"

#include <string.h>

enum { LANES = 32, WORDS_MAX = 32 /* of a block */, MOVED_MAX = 64 };

enum way { OWN, SHUFFLED, POSTED };

/* Words of one fragment, made of those of another one. */
struct mover {
    struct ct_fragment_path path;
    enum way way;
    unsigned bits, n_words;           /* of an element; of path.of, for each block */
    unsigned n_blocks;                /* of which path.of is one; 1 if it is the whole */
    ct_value words[MOVED_MAX];        /* of this lane, all blocks */
    unsigned first_word;              /* POSTED: in a lane's part of the area */
    ct_value address, shift;          /* POSTED: of the part of the area that this lane determines; the bits of a word */
    ct_value found[LANES][MOVED_MAX]; /* words of other lanes that have been read */
};

struct units {
    struct ct_build *b;
    const struct ct_products *products;
    const struct ptx2spv_matrix *matrix;
    struct ct_fragment layouts[PTX2SPV_MATRIX_USES]; /* the unit's */
    const struct ct_fragment *c;                     /* CUDA's: of C and D */
    struct ct_matrix_area area;
    struct mover *sources[PTX2SPV_MATRIX_USES], *result;
    unsigned rows, columns, steps; /* numbers of blocks along m, n and k */
};

/* ---- the choice ---- */

static unsigned unit_element(enum ct_element element)
{
    switch (element) {
    case CT_ELEMENT_F16:
        return PTX2SPV_MATRIX_F16;
    case CT_ELEMENT_BF16:
        return PTX2SPV_MATRIX_BF16;
    case CT_ELEMENT_F32:
        return PTX2SPV_MATRIX_F32;
    case CT_ELEMENT_S8:
        return PTX2SPV_MATRIX_S8;
    case CT_ELEMENT_U8:
        return PTX2SPV_MATRIX_U8;
    case CT_ELEMENT_S32:
        return PTX2SPV_MATRIX_S32;
    default:
        return PTX2SPV_MATRIX_NONE;
    }
}

static unsigned blocks_along(unsigned whole, unsigned part)
{
    return whole <= part ? 1 : whole / part;
}

static unsigned count_blocks(const struct ct_mma_shape *shape, const struct ptx2spv_matrix *matrix)
{
    return blocks_along(shape->m, matrix->m) * blocks_along(shape->n, matrix->n) * blocks_along(shape->k, matrix->k);
}

/* Sums of unsigned elements are the same modulo 2^32 as those of signed ones. */
static bool has_types(const struct ptx2spv_matrix *matrix, const struct ct_products *products)
{
    const bool is_sum = matrix->sum == unit_element(products->c) || (products->c == CT_ELEMENT_S32 && matrix->sum == PTX2SPV_MATRIX_U32);

    return matrix->factor == unit_element(products->a) && is_sum && matrix->layouts[PTX2SPV_MATRIX_C].row[0];
}

/* Whether each lane finds its results in blocks of constant numbers: the bits of C's coordinates that number blocks are not bits of lanes. */
static bool are_blocks_constant(const char *coordinate, unsigned part)
{
    for (unsigned i = 0; coordinate[i]; i++)
        if (1u << i >= part && coordinate[i] < 'a')
            return false;
    return true;
}

static bool fits(const struct ptx2spv_matrix *matrix, const struct ct_products *products, const struct ct_fragment *c)
{
    return has_types(matrix, products) && are_blocks_constant(c->row, matrix->m) && are_blocks_constant(c->column, matrix->n) &&
           blocks_along(products->shape->m, matrix->m) * blocks_along(products->shape->n, matrix->n) *
                   matrix->components[PTX2SPV_MATRIX_C] <=
               MOVED_MAX;
}

/* The one with the least work; of several, that with the least instructions. */
static const struct ptx2spv_matrix *choose(const struct ct_fn *fn, const struct ct_products *products, const struct ct_fragment *c)
{
    const struct ptx2spv_matrix *best = NULL;
    unsigned least = 0;

    for (unsigned i = 0; i < PTX2SPV_MATRICES_MAX && fn->target->matrices[i].m; i++) {
        const struct ptx2spv_matrix *matrix = &fn->target->matrices[i];
        const unsigned blocks = count_blocks(products->shape, matrix), work = blocks * (matrix->m * matrix->n * matrix->k + 1);

        if (fits(matrix, products, c) && (!best || work < least)) {
            best = matrix;
            least = work;
        }
    }
    return best;
}

static bool may_use_units(const struct ct_build *b, const struct ct_products *products)
{
    const struct ct_mma_shape *shape = products->shape;
    const bool is_four = shape->c.row[0] == '0'; /* four products in one instruction */

    return b->fn->target->subgroup_size == LANES && !b->fn->compilation->options.any_grid && !shape->is_sparse && !is_four &&
           products->a == products->b && products->c == products->d && !b->insn->mods.satfinite;
}

/* ---- moving words ---- */

static struct mover *new_mover(struct units *u, const struct ct_fragment *of, const struct ct_fragment *from, unsigned bits,
                               unsigned n_words, unsigned n_blocks)
{
    struct mover *mover = CT_ARENA_NEW(&u->b->fn->compilation->scratch, struct mover);

    mover->path = (struct ct_fragment_path){.of = of, .from = from, .row = true, .column = true};
    ct_fragment_path_init(&u->b->at, &mover->path);
    mover->way = ct_fragment_is_in_lane(of, from) ? OWN : mover->path.element.i ? POSTED : SHUFFLED;
    mover->bits = bits;
    mover->n_words = n_words;
    mover->n_blocks = n_blocks;
    return mover;
}

/* Reserves words of the area, which is opened afterwards. */
static void reserve(struct mover *mover, unsigned *words)
{
    mover->first_word = *words;
    if (mover->way == POSTED)
        *words += mover->n_blocks * mover->n_words;
}

static void post(struct units *u, const struct mover *mover)
{
    for (unsigned i = 0; mover->way == POSTED && i < mover->n_blocks * mover->n_words; i++)
        ct_matrix_area_post(u->b, &u->area, mover->first_word + i, mover->words[i]);
}

static void locate(struct units *u, struct mover *mover)
{
    struct ct_cursor *at = &u->b->at;
    ct_value bit;

    if (mover->way != POSTED)
        return;
    bit = ct_op2(at, CT_OP_MUL, PTX_U32, mover->path.element, ct_const32(at, mover->bits));
    mover->shift = ct_and_imm(at, bit, 31);
    mover->address = ct_add(at, ct_matrix_area_of(u->b, &u->area, mover->path.lane), ct_shl_imm(at, ct_shr_imm(at, bit, 5), 2));
}

/* All movers have their words. Opens the area if one needs it, and lets the lanes meet. */
static void exchange(struct units *u, struct mover *const *movers, unsigned n)
{
    unsigned words = 0;

    for (unsigned i = 0; i < n; i++)
        reserve(movers[i], &words);
    if (!words)
        return;
    ct_matrix_area_open(u->b, words, &u->area);
    for (unsigned i = 0; i < n; i++)
        post(u, movers[i]);
    ct_matrix_area_meet(u->b);
    for (unsigned i = 0; i < n; i++)
        locate(u, movers[i]);
}

static ct_value shuffled(struct units *u, const struct mover *mover, unsigned lane, ct_value word)
{
    struct ct_cursor *at = &u->b->at;
    const ct_value from = mover->path.lane.i ? ct_or(at, mover->path.lane, ct_const32(at, lane)) : ct_const32(at, lane);

    return ct_emit2(at, CT_OP_LANEREAD, PTX_B32, CT_W_32, word, from);
}

/* A word of the lane that has the element; its bits start with that of the constant part of the element's number. */
static ct_value word_at(struct units *u, struct mover *mover, unsigned lane, unsigned word)
{
    ct_value *kept = &mover->found[lane][word];

    if (kept->i)
        return *kept;
    if (mover->way == OWN)
        *kept = mover->words[word];
    else if (mover->way == SHUFFLED)
        *kept = shuffled(u, mover, lane, mover->words[word]);
    else
        *kept = ct_op2(&u->b->at, CT_OP_SHR, PTX_U32,
                       ct_matrix_area_load(u->b, mover->address, lane * u->area.words + mover->first_word + word), mover->shift);
    return *kept;
}

/* ---- words of a unit's matrix ---- */

/* Where the elements of one word are: in block `block` of mover->path.of. */
struct word_places {
    struct ct_fragment_place elements[4];
    bool is_zero[4];
    unsigned n, block;
};

static bool is_whole_word(const struct mover *mover, const struct word_places *places)
{
    for (unsigned i = 0; i < places->n; i++) {
        const struct ct_fragment_place *place = &places->elements[i], *first = &places->elements[0];

        if (places->is_zero[i] || place->lane != first->lane || place->element * mover->bits / 32 != first->element * mover->bits / 32 ||
            place->element * mover->bits % 32 != i * mover->bits)
            return false;
    }
    return true;
}

static ct_value element_at(struct units *u, struct mover *mover, const struct word_places *places, unsigned i)
{
    const unsigned bit = places->elements[i].element * mover->bits;

    return word_at(u, mover, places->elements[i].lane, places->block * mover->n_words + bit / 32);
}

/* Moves an element of a word to its place in the new word. */
static ct_value placed(struct ct_cursor *at, ct_value word, unsigned from, unsigned to, unsigned bits)
{
    const uint32_t mask = bits == 32 ? UINT32_MAX : ((UINT32_C(1) << bits) - 1) << to;

    word = to > from ? ct_shl_imm(at, word, to - from) : to < from ? ct_shr_imm(at, word, from - to) : word;
    return bits == 32 ? word : ct_and_imm(at, word, mask);
}

static ct_value assembled(struct units *u, struct mover *mover, const struct word_places *places)
{
    struct ct_cursor *at = &u->b->at;
    ct_value sum = CT_NO_VALUE;

    if (is_whole_word(mover, places))
        return element_at(u, mover, places, 0);
    for (unsigned i = 0; i < places->n; i++) {
        ct_value part;

        if (places->is_zero[i])
            continue;
        part = placed(at, element_at(u, mover, places, i), places->elements[i].element * mover->bits % 32, i * mover->bits, mover->bits);
        sum = sum.i ? ct_or(at, sum, part) : part;
    }
    return sum.i ? sum : ct_const32(at, 0);
}

/* ---- elements beyond the end of k ---- */

/* Whether a component of the unit's A or B is one of them, by the part of its k that the component determines. */
static bool is_beyond(const struct units *u, const char *k, unsigned component)
{
    return ct_fragment_constant(k, component) >= u->products->shape->k;
}

/* All ones in the lanes whose elements are not; CT_NO_VALUE: in all. */
static ct_value lanes_within(struct units *u, const char *k)
{
    struct ct_cursor *at = &u->b->at;
    uint32_t bits = 0;

    for (unsigned i = 0; k[i]; i++)
        if (1u << i >= u->products->shape->k && k[i] < 'a')
            bits |= 1u << (k[i] - '0');
    if (!bits)
        return CT_NO_VALUE;
    return ct_select(at, ct_icmp_imm(at, PTX_U32, PTX_EQ, ct_and_imm(at, ct_sysval(at, CT_SYS_LANEID), bits), 0),
                     ct_const32(at, UINT32_MAX), ct_const32(at, 0));
}

/* ---- the product ---- */

/* The words of block (row, column) of A, B or C. */
static void make_block(struct units *u, enum ptx2spv_matrix_use use, unsigned row, unsigned column, ct_value *out)
{
    struct mover *mover = u->sources[use];
    const struct ct_fragment *layout = &u->layouts[use];
    const char *k = use == PTX2SPV_MATRIX_A ? layout->column : use == PTX2SPV_MATRIX_B ? layout->row : "";
    const ct_value within = lanes_within(u, k);
    const unsigned n = 32 / mover->bits;

    for (unsigned w = 0; w < u->matrix->components[use] / n; w++) {
        struct word_places places = {.n = n};

        for (unsigned i = 0; i < n; i++) {
            const unsigned component = w * n + i;

            places.elements[i] = ct_fragment_at(mover->path.of, row + ct_fragment_constant(layout->row, component),
                                                column + ct_fragment_constant(layout->column, component));
            places.is_zero[i] = is_beyond(u, k, component);
        }
        out[w] = assembled(u, mover, &places);
        if (within.i)
            out[w] = ct_and(&u->b->at, out[w], within);
    }
}

static unsigned words_of(const struct units *u, enum ptx2spv_matrix_use use)
{
    return u->matrix->components[use] * ptx2spv_matrix_element_bits(use == PTX2SPV_MATRIX_C ? u->matrix->sum : u->matrix->factor) / 32;
}

/* words: C, replaced by A B + C. */
static void multiply(struct units *u, const ct_value *a, const ct_value *b, ct_value *words)
{
    const unsigned n_a = words_of(u, PTX2SPV_MATRIX_A), n_b = words_of(u, PTX2SPV_MATRIX_B), n_c = words_of(u, PTX2SPV_MATRIX_C);
    struct ct_insn *insn = ct_emit_insn(&u->b->at, CT_OP_MATRIXMAD, PTX_B32, n_c, n_a + n_b + n_c);

    insn->imm = (uint64_t)(u->matrix - u->b->fn->target->matrices);
    memcpy(insn->operands, a, n_a * sizeof *a);
    memcpy(insn->operands + n_a, b, n_b * sizeof *b);
    memcpy(insn->operands + n_a + n_b, words, n_c * sizeof *words);
    for (unsigned i = 0; i < n_c; i++)
        words[i] = insn->results[i] = ct_value_create(u->b->fn, CT_W_32);
}

static void compute(struct units *u)
{
    const struct ptx2spv_matrix *matrix = u->matrix;
    ct_value a[WORDS_MAX], b[WORDS_MAX];

    for (unsigned row = 0; row < u->rows; row++)
        for (unsigned column = 0; column < u->columns; column++) {
            ct_value *sums = &u->result->words[(row * u->columns + column) * u->result->n_words];

            make_block(u, PTX2SPV_MATRIX_C, row * matrix->m, column * matrix->n, sums);
            for (unsigned step = 0; step < u->steps; step++) {
                make_block(u, PTX2SPV_MATRIX_A, row * matrix->m, step * matrix->k, a);
                make_block(u, PTX2SPV_MATRIX_B, step * matrix->k, column * matrix->n, b);
                multiply(u, a, b, sums);
            }
        }
}

/* ---- operands ---- */

static bool read_operand(struct units *u, unsigned operand, unsigned registers, enum ct_element element, struct mover *mover)
{
    const struct ptx_operand *items = ct_matrix_items(u->b, operand, registers);

    for (unsigned i = 0; items && i < mover->n_words; i++)
        mover->words[i] = ct_build_read(u->b, &items[i], ct_element_register(element));
    return items;
}

static bool read_operands(struct units *u)
{
    const struct ct_products *products = u->products;
    const struct ct_mma_shape *shape = products->shape;
    const struct ct_fragment *const fragments[] = {&shape->a, &shape->b, u->c};
    const enum ct_element elements[] = {products->a, products->b, products->c};
    const unsigned registers[] = {products->a_registers, products->b_registers, ct_fragment_registers(u->c, products->c)};

    for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++) {
        u->sources[use] = new_mover(u, fragments[use], &u->layouts[use], ct_element_bits(elements[use]),
                                    ct_fragment_words(fragments[use], elements[use]), 1);
        if (!read_operand(u, use + 1, registers[use], elements[use], u->sources[use]))
            return false;
    }
    return true;
}

static void write_results(struct units *u)
{
    struct ct_build *b = u->b;
    const enum ct_element element = u->products->d;
    const unsigned words = ct_fragment_words(u->c, element), n = 32 / ct_element_bits(element);
    const struct ptx_operand *items = ct_matrix_items(b, 0, words);
    ct_value values[WORDS_MAX];

    if (!items)
        return;
    for (unsigned w = 0; w < words; w++) {
        struct word_places places = {.n = n};

        for (unsigned i = 0; i < n; i++) {
            const unsigned row = ct_fragment_constant(u->c->row, w * n + i), column = ct_fragment_constant(u->c->column, w * n + i);

            places.block = row / u->matrix->m * u->columns + column / u->matrix->n;
            places.elements[i] = ct_fragment_at(&u->layouts[PTX2SPV_MATRIX_C], row % u->matrix->m, column % u->matrix->n);
        }
        values[w] = assembled(u, u->result, &places);
    }
    for (unsigned w = 0; w < words; w++)
        ct_build_write(b, &items[w], values[w], ct_element_register(element));
}

/* ---- the instruction ---- */

bool ct_build_products_in_units(struct ct_build *b, const struct ct_products *products)
{
    struct units *u = CT_ARENA_NEW(&b->fn->compilation->scratch, struct units);

    u->b = b;
    u->products = products;
    u->c = ct_mma_accumulator(products->shape, products->c);
    if (!may_use_units(b, products) || !(u->matrix = choose(b->fn, products, u->c)) || !ct_build_may_read_lanes(b))
        return false;
    for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++)
        u->layouts[use] = (struct ct_fragment){u->matrix->layouts[use].row, u->matrix->layouts[use].column};
    u->rows = blocks_along(products->shape->m, u->matrix->m);
    u->columns = blocks_along(products->shape->n, u->matrix->n);
    u->steps = blocks_along(products->shape->k, u->matrix->k);
    b->fn->whole_warps = true;
    if (!read_operands(u))
        return true;
    exchange(u, u->sources, PTX2SPV_MATRIX_USES);
    u->result = new_mover(u, &u->layouts[PTX2SPV_MATRIX_C], u->c, ct_element_bits(products->d), words_of(u, PTX2SPV_MATRIX_C),
                          u->rows * u->columns);
    compute(u);
    exchange(u, &u->result, 1);
    write_results(u);
    return true;
}
