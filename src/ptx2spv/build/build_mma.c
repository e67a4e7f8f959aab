/* SPDX-License-Identifier: Apache-2.0 */
/* build: products of matrices (PTX ISA, "mma", "mma.sp", "wmma.mma"). Each lane computes its elements of D = A B + C from a row of A and a
 * column of B, whose elements other lanes have posted.
 *
 * The ISA leaves the order and the precision of sums open for floats of 8 to 32 bits. Products of two elements of up to 11 bits are exact in
 * f32, so f32 multiplications and additions, beginning with C, do what the ISA asks for; f16 results are rounded once.
 * f64 is a chain of fma, integers are exact. */
#include "build_convert.h"
#include "matrix.h"

#include <string.h>

enum { LANES = 32, WORDS_MAX = 32, K_MAX = 256, ROWS_MAX = 32, K_LANES = 4 };

/* A, B or C as the lanes have posted it. */
struct source {
    struct ct_fragment_path path;
    enum ct_element element;
    unsigned first_word;              /* in a lane's part of the area */
    ct_value address;                 /* of the part of the area that this lane determines */
    ct_value shift;                   /* the bits of a word that it determines */
    ct_value words[LANES][WORDS_MAX]; /* those that have been loaded */
};

/* A or B. Instructions of a group that have the same registers share it. */
struct factor {
    const struct ptx_operand *items; /* NULL: not yet posted */
    struct source source;
    ct_value elements[ROWS_MAX][K_MAX]; /* operands of the products: by constant part of the row or column, and k */
};

struct mma {
    struct ct_build *b;
    const struct ct_products *products;
    struct ct_matrix_area area;
    const struct ptx_instruction *insn;
    struct factor *a, *b_;
    struct source c_source;
    struct ct_sparse sparse;
    unsigned step;            /* along k, from one product to the next: 32 for single bits */
    bool loops;               /* over the lanes that have a row of A: the factors are those of one iteration */
    ct_value (*given)[K_MAX]; /* sparse A of floats: by row and k, all ones for the elements that are given, 0 for the others */
    ct_value sums[ROWS_MAX], next[ROWS_MAX], c[ROWS_MAX]; /* C, then D; in an iteration; C while it is not in the sums */
};

/* ---- elements ---- */

static bool is_float8(enum ct_element element)
{
    return element == CT_ELEMENT_E4M3 || element == CT_ELEMENT_E5M2;
}

/* Elements of 8-bit floats are posted as bf16, which has all their values: so each is converted once. */
static enum ct_element posted_element(enum ct_element element)
{
    return is_float8(element) ? CT_ELEMENT_BF16 : element;
}

static ct_value converted(struct ct_build *b, enum ptx_type to, enum ptx_type from, ct_value x)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_FCVT, from, 1, 1);

    insn->type2 = to;
    insn->rounding = to == PTX_F16 ? PTX_RN : PTX_RND_NONE;
    insn->operands[0] = x;
    return insn->results[0] = ct_value_create(b->fn, ct_width_of(to));
}

/* An integer of less than 32 bits. */
static ct_value integer_of(struct ct_cursor *at, ct_value word, unsigned first, unsigned bits, bool is_signed)
{
    const ct_value top = ct_shl_imm(at, word, 32 - first - bits);

    return is_signed ? ct_sar_imm(at, top, 32 - bits) : ct_shr_imm(at, top, 32 - bits);
}

static ct_value half_of(struct ct_cursor *at, ct_value word, bool is_high)
{
    ct_value halves[2];

    ct_unpack2(at, word, &halves[0], &halves[1]);
    return halves[is_high];
}

/* The element at bit `first` of a word, in the type of the arithmetic: f32, or 32-bit integers. */
static ct_value element_of(struct ct_build *b, enum ct_element element, ct_value word, unsigned first)
{
    struct ct_cursor *at = &b->at;

    switch (element) {
    case CT_ELEMENT_F16:
        return converted(b, PTX_F32, PTX_F16, half_of(at, word, first));
    case CT_ELEMENT_BF16:
        return first ? ct_and_imm(at, word, 0xffff0000) : ct_shl_imm(at, word, 16);
    case CT_ELEMENT_TF32:
        return ct_and_imm(at, word, 0xffffe000);
    case CT_ELEMENT_S8:
    case CT_ELEMENT_U8:
    case CT_ELEMENT_S4:
    case CT_ELEMENT_U4:
        return integer_of(at, word, first, ct_element_bits(element), element == CT_ELEMENT_S8 || element == CT_ELEMENT_S4);
    default: /* f32, s32, and words of single bits */
        return word;
    }
}

/* ---- posting ---- */

/* Two of the four 8-bit floats of a word, as bf16. */
static ct_value pair_of_floats(struct ct_build *b, enum ct_element element, ct_value word, unsigned first)
{
    const enum ptx_type type = element == CT_ELEMENT_E4M3 ? PTX_E4M3X2 : PTX_E5M2X2;
    const ct_value low = ct_build_widened(b, type, ct_shr_imm(&b->at, word, first));
    const ct_value high = ct_build_widened(b, type, ct_shr_imm(&b->at, word, first + 8));

    return ct_or(&b->at, ct_shr_imm(&b->at, low, 16), ct_and_imm(&b->at, high, 0xffff0000));
}

static void post_word(struct mma *m, enum ct_element element, unsigned *next, ct_value word)
{
    if (is_float8(element)) {
        ct_matrix_area_post(m->b, &m->area, (*next)++, pair_of_floats(m->b, element, word, 0));
        word = pair_of_floats(m->b, element, word, 16);
    }
    ct_matrix_area_post(m->b, &m->area, (*next)++, word);
}

/* Posts an operand. wmma gives registers to halves that hold the same elements as others: they are not needed. */
static bool post(struct mma *m, struct source *source, unsigned operand, unsigned registers, enum ct_element element)
{
    struct ct_build *b = m->b;
    const struct ptx_operand *items = ct_matrix_items(b, operand, registers);
    const unsigned end = source->first_word + ct_fragment_words(source->path.of, posted_element(element));
    unsigned next = source->first_word;

    for (unsigned i = 0; items && next < end; i++) {
        ct_value value = ct_build_read(b, &items[i], ct_element_register(element)), high;

        if (element == CT_ELEMENT_F64) {
            ct_unpack2(&b->at, value, &value, &high);
            post_word(m, element, &next, value);
            value = high;
        }
        post_word(m, element, &next, value);
    }
    return items;
}

/* ---- reading ---- */

static void find_source(struct mma *m, struct source *source)
{
    struct ct_cursor *at = &m->b->at;
    ct_value bit;

    ct_fragment_path_init(at, &source->path);
    source->address = ct_matrix_area_of(m->b, &m->area, source->path.lane);
    if (!source->path.element.i)
        return;
    bit = ct_op2(at, CT_OP_MUL, PTX_U32, source->path.element, ct_const32(at, ct_element_bits(source->element)));
    source->shift = ct_and_imm(at, bit, 31);
    source->address = ct_add(at, source->address, ct_shl_imm(at, ct_shr_imm(at, bit, 5), 2));
}

static ct_value word_of(struct mma *m, struct source *source, unsigned lane, unsigned word)
{
    ct_value *kept = &source->words[lane][word];

    if (kept->i)
        return *kept;
    *kept = ct_matrix_area_load(m->b, source->address, lane * m->area.words + source->first_word + word);
    if (source->shift.i)
        *kept = ct_op2(&m->b->at, CT_OP_SHR, PTX_U32, *kept, source->shift);
    return *kept;
}

/* The element that belongs to element `index` of D and to k. */
static ct_value read_element(struct mma *m, struct source *source, unsigned index, unsigned k)
{
    const struct ct_fragment_place place = ct_fragment_find(&source->path, index, k);
    const unsigned bit = place.element * ct_element_bits(source->element);
    const ct_value word = word_of(m, source, place.lane, bit / 32);

    if (source->element == CT_ELEMENT_F64)
        return ct_pack2(&m->b->at, word, word_of(m, source, place.lane, bit / 32 + 1));
    return element_of(m->b, source->element, word, bit % 32);
}

/* All elements of sparse A that come from one chunk of metadata. */
static void read_chunk(struct mma *m, unsigned index, unsigned row, unsigned k)
{
    const enum ct_element element = m->a->source.element;
    const unsigned bits = ct_element_bits(element), n_words = bits < 16 ? 1 : 2, per_chunk = n_words * 32 / bits;
    const unsigned chunk = k / per_chunk, n_chunks = m->products->shape->k / per_chunk;
    const struct ct_fragment_place place = ct_fragment_find(&m->a->source.path, index, chunk * per_chunk / 2);
    const unsigned bit = place.element * bits;
    const ct_value word = word_of(m, &m->a->source, place.lane, bit / 32);
    const struct ct_sparse_chunk found =
        ct_sparse_expand(m->b, &m->sparse, bit % 32 ? ct_shr_imm(&m->b->at, word, 16) : word, n_words, row, chunk, n_chunks);

    for (unsigned i = 0; i < per_chunk; i++)
        m->a->elements[row][chunk * per_chunk + i] = element_of(m->b, element, found.words[i * bits / 32], i * bits % 32);
    if (bits < 16)
        return;
    const struct ct_sparse_chunk given =
        ct_sparse_expand(m->b, &m->sparse, ct_const32(&m->b->at, UINT32_MAX), n_words, row, chunk, n_chunks);

    for (unsigned i = 0; i < per_chunk; i++)
        m->given[row][chunk * per_chunk + i] = integer_of(&m->b->at, given.words[i * bits / 32], i * bits % 32, bits, true);
}

static ct_value a_element(struct mma *m, unsigned index, unsigned k)
{
    const unsigned row = ct_fragment_constant(m->a->source.path.from->row, index);
    ct_value *kept = &m->a->elements[row][k];

    if (!kept->i && m->products->shape->is_sparse)
        read_chunk(m, index, row, k);
    else if (!kept->i)
        *kept = read_element(m, &m->a->source, index, k);
    return *kept;
}

static ct_value b_element(struct mma *m, unsigned index, unsigned k)
{
    ct_value *kept = &m->b_->elements[ct_fragment_constant(m->b_->source.path.from->column, index)][k];

    if (!kept->i)
        *kept = read_element(m, &m->b_->source, index, k);
    return *kept;
}

/* ---- sums ---- */

static ct_value add_product(struct mma *m, ct_value sum, ct_value x, ct_value y)
{
    struct ct_build *b = m->b;
    struct ct_cursor *at = &b->at;

    switch (m->products->a) {
    case CT_ELEMENT_F64:
        sum = ct_emit3(at, CT_OP_FFMA, PTX_F64, CT_W_64, x, y, sum);
        at->block->last->rounding = b->insn->mods.rounding;
        return sum;
    case CT_ELEMENT_B1:
        x = b->insn->mods.operation == PTX_AND ? ct_and(at, x, y) : ct_xor(at, x, y);
        return ct_add(at, sum, ct_bits1(at, CT_OP_POPC, x));
    case CT_ELEMENT_S8:
    case CT_ELEMENT_U8:
    case CT_ELEMENT_S4:
    case CT_ELEMENT_U4:
        return ct_add(at, sum, ct_op2(at, CT_OP_MUL, PTX_S32, x, y));
    default: /* PTX ISA, "mma": the handling of subnormal inputs is unspecified */
        return ct_op2_ignoring_subnormals(at, CT_OP_FADD, sum, ct_op2_ignoring_subnormals(at, CT_OP_FMUL, x, y));
    }
}

/* c + the sum of the products, which does not overflow, clamped to the range of s32. */
static ct_value saturated_sum(struct ct_cursor *at, ct_value c, ct_value products)
{
    const ct_value sum = ct_add(at, c, products);
    const ct_value overflow = ct_and(at, ct_xor(at, sum, c), ct_xor(at, sum, products));
    const ct_value bound = ct_xor_imm(at, ct_sar_imm(at, c, 31), INT32_MAX);

    return ct_select(at, ct_icmp_imm(at, PTX_S32, PTX_LT, overflow, 0), bound, sum);
}

/* Whether the products for element k are those of iteration 0. */
static bool is_in_iteration(const struct mma *m, unsigned k)
{
    return !m->loops || !(ct_fragment_find(&m->a->source.path, 0, k).lane & (K_LANES - 1));
}

/* Where A has no element no product is added, not even of 0 and an infinity or NaN: the element of B becomes 0, too. */
static ct_value b_factor(struct mma *m, unsigned index, unsigned k)
{
    const ct_value y = b_element(m, index, k);
    const ct_value given = m->given ? m->given[ct_fragment_constant(m->a->source.path.from->row, index)][k] : CT_NO_VALUE;

    return given.i ? ct_and(&m->b->at, y, given) : y;
}

/* All sums grow together along k, so that few elements are live at a time. */
static void add_all(struct mma *group, unsigned n_group, unsigned n)
{
    struct ct_cursor *at = &group->b->at;

    for (struct mma *m = group; m < group + n_group; m++)
        memcpy(m->next, m->sums, sizeof m->next);
    for (unsigned k = 0; k < group->products->shape->k; k += group->step)
        for (struct mma *m = group; m < group + n_group; m++)
            for (unsigned i = 0; i < n && is_in_iteration(m, k); i++) {
                const ct_value x = a_element(m, i, k);

                m->next[i] = add_product(m, m->next[i], x, b_factor(m, i, k));
            }
    for (struct mma *m = group; m < group + n_group; m++)
        for (unsigned i = 0; i < n; i++)
            if (m->loops)
                ct_assign(at, m->sums[i], m->next[i]);
            else
                m->sums[i] = m->next[i];
}

/* The address of a source that is not yet a variable of the loop. */
static void begin_walk(struct ct_build *b, struct source *source, ct_value address)
{
    source->address = address.i ? address : ct_copy(&b->at, source->address);
}

/* A row of A and a column of B are in four lanes that follow each other. A loop over these makes the code a quarter as long: kernels with 64
 * products are common, and drivers take seconds to compile each 10,000 instructions. */
static void add_in_loop(struct mma *group, unsigned n_group, unsigned n)
{
    struct ct_build *b = group->b;
    struct ct_block *body = ct_build_block(b), *done = ct_build_block(b);
    const ct_value count = ct_copy(&b->at, ct_const32(&b->at, 0));
    const unsigned distance = 4 * group->area.words;
    ct_value a_address, b_address;

    for (struct mma *m = group; m < group + n_group; m++)
        for (unsigned i = 0; i < n; i++)
            m->sums[i] = ct_copy(&b->at, m->sums[i]);
    begin_walk(b, &group->a->source, CT_NO_VALUE);
    begin_walk(b, &group->b_->source, CT_NO_VALUE);
    a_address = group->a->source.address;
    b_address = group->b_->source.address;
    for (struct mma *m = group; m < group + n_group; m++) {
        begin_walk(b, &m->a->source, a_address);
        begin_walk(b, &m->b_->source, b_address);
    }
    ct_build_jump(b, body);
    ct_build_enter(b, body);
    add_all(group, n_group, n);
    ct_assign(&b->at, a_address, ct_add_imm(&b->at, a_address, distance));
    ct_assign(&b->at, b_address, ct_add_imm(&b->at, b_address, distance));
    ct_assign(&b->at, count, ct_add_imm(&b->at, count, 1));
    ct_build_branch(b, ct_icmp_imm(&b->at, PTX_U32, PTX_LT, count, K_LANES), body, done);
    ct_build_enter(b, done);
}

/* Replaces C, which is in `sums`, by D. */
static void compute(struct mma *group, unsigned n_group, unsigned n)
{
    const bool saturates = group->products->c == CT_ELEMENT_S32 && group->insn->mods.satfinite;

    for (unsigned g = 0; saturates && g < n_group; g++)
        for (unsigned i = 0; i < n; i++) {
            group[g].c[i] = group[g].sums[i];
            group[g].sums[i] = ct_const32(&group->b->at, 0);
        }
    if (group->loops)
        add_in_loop(group, n_group, n);
    else
        add_all(group, n_group, n);
    for (unsigned g = 0; saturates && g < n_group; g++)
        for (unsigned i = 0; i < n; i++)
            group[g].sums[i] = saturated_sum(&group->b->at, group[g].c[i], group[g].sums[i]);
}

/* ---- accumulators ---- */

/* The elements of C that belong to those of D: in the same lane, unless their types distribute them in different ways. */
static bool read_accumulators(struct mma *m, const struct ct_fragment *d)
{
    struct ct_build *b = m->b;
    ct_value *out = m->sums;
    const enum ct_element element = m->products->c;
    const struct ct_fragment *c = m->c_source.path.of;
    const unsigned n = ct_fragment_elements(c), per_register = element == CT_ELEMENT_F16 ? 2 : 1;
    const struct ptx_operand *items = ct_matrix_items(b, 3, n / per_register);

    for (unsigned i = 0; items && i < n; i++) {
        if (!ct_fragment_is_equal(c, d)) {
            out[i] = read_element(m, &m->c_source, i, 0);
            continue;
        }
        out[i] = ct_build_read(b, &items[i / per_register], ct_element_register(element));
        if (element == CT_ELEMENT_F16)
            out[i] = element_of(b, element, out[i], i % 2 * 16);
    }
    return items;
}

static void write_results(struct mma *m, unsigned n)
{
    struct ct_build *b = m->b;
    const ct_value *values = m->sums;
    const bool is_half = m->products->d == CT_ELEMENT_F16;
    const struct ptx_operand *items = ct_matrix_items(b, 0, is_half ? n / 2 : n);
    const enum ptx_type type = ct_element_register(m->products->d);

    for (unsigned i = 0; items && i < n; i += 1 + is_half) {
        ct_value value = values[i];

        if (is_half)
            value = ct_pack2(&b->at, converted(b, PTX_F16, PTX_F32, value), converted(b, PTX_F16, PTX_F32, values[i + 1]));
        ct_build_write(b, &items[i >> is_half], value, type);
    }
}

/* ---- the instruction ---- */

static void init_sources(struct mma *m, const struct ct_fragment *d)
{
    const struct ct_products *products = m->products;
    const struct ct_mma_shape *shape = products->shape;
    const struct ct_fragment *c = ct_mma_accumulator(shape, products->c);

    m->a->source.path = (struct ct_fragment_path){.of = &shape->a, .from = d, .row = true};
    m->b_->source.path = (struct ct_fragment_path){.of = &shape->b, .from = d, .column = true};
    m->c_source.path = (struct ct_fragment_path){.of = c, .from = d, .row = true, .column = true};
    m->a->source.element = posted_element(products->a);
    m->b_->source.element = posted_element(products->b);
    m->c_source.element = products->c;
    m->b_->source.first_word = ct_fragment_words(&shape->a, m->a->source.element);
    m->c_source.first_word = m->b_->source.first_word + ct_fragment_words(&shape->b, m->b_->source.element);
    m->sparse.word = m->c_source.first_word;
    m->sparse.has_halves = ct_element_bits(products->a) >= 16;
    m->step = products->a == CT_ELEMENT_B1 ? 32 : 1;
    /* not for chains of fma, whose order matters; sparse A, whose metadata is elsewhere; and four products at once */
    m->loops = !shape->is_sparse && shape->k > 4 && products->a != CT_ELEMENT_F64;
}

/* mma.sp has two more operands: metadata, and a constant that selects the lanes that have it. */
static bool post_metadata(struct mma *m)
{
    uint64_t selector;

    if (m->b->insn->n_operands != 6 || !ct_build_constant(m->b, 5, &selector) || selector > 3) {
        ct_build_invalid(m->b, "metadata, or a constant sparsity selector from 0 to 3, is missing");
        return false;
    }
    m->sparse.selector = (unsigned)selector;
    ct_matrix_area_post(m->b, &m->area, m->sparse.word, ct_build_source(m->b, 4, PTX_B32));
    return true;
}

static bool post_all(struct mma *m, const struct ct_fragment *d)
{
    const struct ct_products *products = m->products;
    const struct ct_fragment *c = m->c_source.path.of;
    const bool moves_c = !ct_fragment_is_equal(c, d), is_sparse = products->shape->is_sparse;

    ct_matrix_area_open(m->b, m->sparse.word + is_sparse + (moves_c ? ct_fragment_words(c, products->c) : 0), &m->area);
    if (!post(m, &m->a->source, 1, products->a_registers, products->a) || !post(m, &m->b_->source, 2, products->b_registers, products->b) ||
        (moves_c && !post(m, &m->c_source, 3, ct_fragment_words(c, products->c), products->c)) || (is_sparse && !post_metadata(m)))
        return false;
    ct_matrix_area_meet(m->b);
    find_source(m, &m->a->source);
    find_source(m, &m->b_->source);
    if (moves_c)
        find_source(m, &m->c_source);
    if (is_sparse) {
        const ct_value first = ct_and_imm(&m->b->at, m->area.lane, ~UINT32_C(3));

        m->sparse.address = ct_matrix_area_of(m->b, &m->area, first);
        m->sparse.lane_words = m->area.words;
    }
    return true;
}

/* ---- groups ---- */

/* Frameworks write runs of mma whose rows of A and columns of B repeat, 2 by 4 say. They are built together: each factor is posted once, the
 * lanes meet once, and one loop computes all of them. Their words are limited, since shared memory is: GPUs have less than such kernels would like,
 * and a meeting there costs little. */
enum { GROUP_MAX = 8, GROUP_WORDS_MAX = 16, NATIVE_GROUP_WORDS_MAX = 8 };

static bool is_vector(const struct ptx_operand *operand, unsigned n)
{
    return operand->items && operand->n_items == n;
}

static bool are_same_items(const struct ptx_operand *x, const struct ptx_operand *y, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!x[i].reg || x[i].reg != y[i].reg || x[i].component != y[i].component || x[i].kind != y[i].kind)
            return false;
    return true;
}

static bool writes_any(const struct ptx_instruction *insn, const struct ptx_operand *read)
{
    const struct ptx_operand *d = &insn->operands[0];

    for (uint32_t i = 0; i < d->n_items; i++)
        for (uint32_t j = 0; j < read->n_items; j++)
            if (d->items[i].reg && d->items[i].reg == read->items[j].reg)
                return true;
    return false;
}

/* Whether `insn` can be computed together with those before it, which do not write what it reads. */
static bool may_join(const struct mma *group, unsigned n_group, const struct ptx_instruction *insn)
{
    const struct ptx_instruction *first = group->insn;

    if (insn->opcode != first->opcode || strcmp(insn->text, first->text) != 0 || insn->guard || insn->n_operands != first->n_operands)
        return false;
    for (unsigned i = 0; i < 4; i++)
        if (!is_vector(&insn->operands[i], first->operands[i].n_items))
            return false;
    for (unsigned g = 0; g < n_group; g++)
        for (unsigned i = 1; i < 4; i++)
            if (writes_any(group[g].insn, &insn->operands[i]))
                return false;
    return true;
}

/* The factor of an instruction before that has the same registers, or a new one. */
static struct factor *find_factor(struct mma *group, unsigned n_group, bool is_b, const struct ptx_operand *items, unsigned n)
{
    struct factor *factor;

    for (unsigned g = 0; g < n_group; g++) {
        factor = is_b ? group[g].b_ : group[g].a;
        if (are_same_items(factor->items, items, n))
            return factor;
    }
    factor = CT_ARENA_NEW(&group->b->fn->compilation->scratch, struct factor);
    factor->source = is_b ? group->b_->source : group->a->source;
    factor->items = items;
    factor->source.first_word = UINT32_MAX;
    return factor;
}

static unsigned find_group(struct mma *group)
{
    struct ct_build *b = group->b;
    const struct ct_products *products = group->products;
    const unsigned a_words = group->b_->source.first_word, b_words = group->c_source.first_word - a_words;
    const struct ptx_instruction *first = b->syntax->instructions.v, *end = first + b->syntax->instructions.n, *insn = b->insn + 1;
    unsigned n = 1, words = group->c_source.first_word;

    if (!group->loops || b->insn->guard || !is_vector(&b->insn->operands[1], products->a_registers) ||
        !is_vector(&b->insn->operands[2], products->b_registers) || !is_vector(&b->insn->operands[0], b->insn->operands[0].n_items) ||
        !is_vector(&b->insn->operands[3], b->insn->operands[3].n_items))
        return 1;
    group->a->items = b->insn->operands[1].items;
    group->b_->items = b->insn->operands[2].items;
    for (; n < GROUP_MAX && insn < end && !b->targets[insn - first] && may_join(group, n, insn); n++, insn++) {
        struct mma *m = &group[n];

        *m = *group;
        m->insn = insn;
        m->a = find_factor(group, n, false, insn->operands[1].items, products->a_registers);
        m->b_ = find_factor(group, n, true, insn->operands[2].items, products->b_registers);
        const unsigned more =
            (m->a->source.first_word == UINT32_MAX ? a_words : 0) + (m->b_->source.first_word == UINT32_MAX ? b_words : 0);

        if (words + more > (b->fn->target->warp_form == PTX2SPV_WARP_NATIVE ? NATIVE_GROUP_WORDS_MAX : GROUP_WORDS_MAX))
            break;
        if (m->a->source.first_word == UINT32_MAX) {
            m->a->source.first_word = words;
            words += a_words;
        }
        if (m->b_->source.first_word == UINT32_MAX) {
            m->b_->source.first_word = words;
            words += b_words;
        }
    }
    group->sparse.word = words;
    return n;
}

static void post_group(struct mma *group, unsigned n)
{
    struct ct_build *b = group->b;
    const struct ct_products *products = group->products;
    unsigned end = 0;

    ct_matrix_area_open(b, group->sparse.word, &group->area);
    for (struct mma *m = group; m < group + n; m++) {
        m->area = group->area;
        b->insn = m->insn;
        if (m->a->source.first_word >= end) {
            post(m, &m->a->source, 1, products->a_registers, products->a);
            end = m->a->source.first_word + 1;
        }
        if (m->b_->source.first_word >= end) {
            post(m, &m->b_->source, 2, products->b_registers, products->b);
            end = m->b_->source.first_word + 1;
        }
    }
    ct_matrix_area_meet(b);
    find_source(group, &group->a->source);
    find_source(group, &group->b_->source);
    for (struct mma *m = group + 1; m < group + n; m++) {
        m->a->source.path = group->a->source.path;
        m->b_->source.path = group->b_->source.path;
        m->a->source.shift = group->a->source.shift;
        m->b_->source.shift = group->b_->source.shift;
    }
}

void ct_build_products(struct ct_build *b, const struct ct_products *products)
{
    struct ct_arena *scratch = &b->fn->compilation->scratch;
    struct mma *group = CT_ARENA_ARRAY(scratch, struct mma, GROUP_MAX);
    const struct ct_fragment *d = ct_mma_accumulator(products->shape, products->d);
    const unsigned n = ct_fragment_elements(d);
    const struct ptx_instruction *first = b->insn;
    unsigned n_group;
    bool is_good = true;

    if (first < b->built_until)
        return; /* with one before it */
    group->b = b;
    group->insn = first;
    group->products = products;
    group->a = CT_ARENA_NEW(scratch, struct factor);
    group->b_ = CT_ARENA_NEW(scratch, struct factor);
    if (products->shape->is_sparse)
        group->given = ct_arena_alloc_array(scratch, ROWS_MAX, sizeof *group->given);
    init_sources(group, d);
    if (b->insn->n_operands != (products->shape->is_sparse ? 6 : 4)) {
        ct_build_invalid(b, "wrong number of operands");
        return;
    }
    if (ct_build_products_in_units(b, products))
        return;
    n_group = ct_fragment_is_equal(group->c_source.path.of, d) ? find_group(group) : 1;
    if (n_group > 1)
        post_group(group, n_group);
    else if (!post_all(group, d))
        return;
    for (unsigned g = 0; g < n_group; g++) {
        b->insn = group[g].insn;
        is_good &= read_accumulators(&group[g], d);
    }
    b->insn = first;
    if (!is_good)
        return;
    compute(group, n_group, n);
    for (unsigned g = 0; g < n_group; g++) {
        b->insn = group[g].insn;
        write_results(&group[g], n);
    }
    b->insn = first;
    b->built_until = first + n_group;
}

/* ---- mma ---- */

static bool is_integer(enum ct_element element)
{
    return element >= CT_ELEMENT_S8;
}

/* Which types of D and C there are for a type of A. m8n8k4 may add f16 to f32. */
static bool are_accumulators(const struct ct_products *products, bool are_mixed)
{
    const enum ct_element a = products->a, d = products->d, c = products->c;

    if (is_integer(a))
        return d == CT_ELEMENT_S32 && c == d;
    if (a == CT_ELEMENT_F64)
        return d == a && c == d;
    if (a == CT_ELEMENT_F16 && are_mixed)
        return (d == CT_ELEMENT_F16 || d == CT_ELEMENT_F32) && (c == CT_ELEMENT_F16 || c == CT_ELEMENT_F32);
    if (d == CT_ELEMENT_F16)
        return c == d && (a == CT_ELEMENT_F16 || (is_float8(a) && !products->shape->is_sparse));
    return d == CT_ELEMENT_F32 && c == d;
}

/* Single bits need an operation, .satfinite is for other integers, a rounding for f64. */
static bool are_modifiers(const struct ct_build *b, const struct ct_matrix_words *words, enum ct_element a)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const bool is_bit = a == CT_ELEMENT_B1, has_operation = mods->operation == PTX_AND || mods->operation == PTX_XOR;

    return is_bit == has_operation && is_bit == words->popc && (!mods->satfinite || (is_integer(a) && !is_bit)) &&
           (!mods->rounding || a == CT_ELEMENT_F64) && !words->is_transposed && !words->count && words->n_layouts == 2 && !mods->space;
}

bool ct_products_are_legal(const struct ct_build *b, const struct ct_matrix_words *words, const struct ct_products *products,
                           bool are_mixed)
{
    return products->shape && are_modifiers(b, words, products->a) && are_accumulators(products, are_mixed);
}

/* A and B have one type, or two of the same width and kind. */
static bool are_factors(enum ct_element a, enum ct_element b)
{
    return a == b || (ct_element_bits(a) == ct_element_bits(b) && ct_element_bits(a) <= 8 && is_integer(a) == is_integer(b));
}

/* m8n8k4 can add f16 and have a result in f32. */
static bool may_be_mixed(const struct ct_products *products)
{
    return products->shape && products->shape->k == 4 && products->d == CT_ELEMENT_F32;
}

void ct_build_mma(struct ct_build *b)
{
    struct ct_products products = {0};
    struct ct_matrix_words words;

    if (!ct_matrix_words_read(b->insn, &words) || words.n_types != 4 || words.action) {
        ct_build_unsupported(b, NULL);
        return;
    }
    products.d = words.types[0];
    products.a = words.types[1];
    products.b = words.types[2];
    products.c = words.types[3];
    products.shape = ct_mma_shape_find(&words, products.a);
    if (!are_factors(products.a, products.b) || !ct_products_are_legal(b, &words, &products, may_be_mixed(&products))) {
        ct_build_unsupported(b, NULL);
        return;
    }
    products.a_registers = ct_fragment_registers(&products.shape->a, products.a);
    products.b_registers = ct_fragment_registers(&products.shape->b, products.b);
    ct_build_products(b, &products);
}
