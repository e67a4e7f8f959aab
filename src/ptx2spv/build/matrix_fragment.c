/* SPDX-License-Identifier: Apache-2.0 */
/* Which lane holds which element of a matrix. */
#include "matrix.h"

#include <string.h>

/* ---- the tables ---- */

enum set { /* of elements */
#define MATRIX_ELEMENT(id, ...) id = 1 << CT_ELEMENT_##id,
#include "matrix.def"
           HALVES = F16 | BF16,
           FLOAT8 = E4M3 | E5M2,
           INT8 = S8 | U8,
           INT4 = S4 | U4,
};

#define F(row, column) {row, column}

static const struct ct_mma_shape mma_shapes[] = {
#define MMA(m, n, k, elements, layouts, sparse, a, b, c) {m, n, k, elements, layouts, sparse, a, b, c},
#include "matrix.def"
};

static const struct ct_mma_shape wmma_shapes[] = {
#define WMMA(m, n, k, elements, layouts, a, b, c) {m, n, k, elements, layouts, false, a, b, c},
#include "matrix.def"
};

static const struct ct_mma_shape *find(const struct ct_mma_shape *shapes, size_t n, const struct ct_matrix_words *words, uint32_t set)
{
    for (size_t i = 0; i < n; i++) {
        const struct ct_mma_shape *shape = &shapes[i];
        bool fits = shape->m == words->m && shape->n == words->n && shape->k == words->k && shape->elements & set &&
                    shape->is_sparse == words->is_sparse;

        for (unsigned l = 0; l < words->n_layouts; l++)
            fits &= shape->layouts[l] == '*' || shape->layouts[l] == words->layouts[l];
        if (fits)
            return shape;
    }
    return NULL;
}

const struct ct_mma_shape *ct_mma_shape_find(const struct ct_matrix_words *words, enum ct_element a)
{
    return find(mma_shapes, sizeof mma_shapes / sizeof *mma_shapes, words, 1u << a);
}

/* Several shapes have the same accumulators. */
const struct ct_mma_shape *ct_wmma_shape_find(const struct ct_matrix_words *words, uint32_t elements)
{
    return find(wmma_shapes, sizeof wmma_shapes / sizeof *wmma_shapes, words, elements);
}

const struct ct_fragment *ct_mma_accumulator(const struct ct_mma_shape *shape, enum ct_element element)
{
    static const struct ct_fragment of_halves = F("014", "abc");

    return shape->c.row[0] == '0' && element == CT_ELEMENT_F16 ? &of_halves : &shape->c;
}

/* ---- coordinates ---- */

static bool is_lane_bit(char c)
{
    return c < 'a';
}

static unsigned element_bits(const char *coordinate)
{
    unsigned n = 0;

    for (; *coordinate; coordinate++)
        n += !is_lane_bit(*coordinate);
    return n;
}

unsigned ct_fragment_elements(const struct ct_fragment *fragment)
{
    return 1u << (element_bits(fragment->row) + element_bits(fragment->column));
}

unsigned ct_fragment_words(const struct ct_fragment *fragment, enum ct_element element)
{
    return ct_fragment_elements(fragment) * ct_element_bits(element) / 32;
}

unsigned ct_fragment_registers(const struct ct_fragment *fragment, enum ct_element element)
{
    return ct_fragment_words(fragment, element) * 32 / ptx_type_bits(ct_element_register(element));
}

bool ct_fragment_is_equal(const struct ct_fragment *a, const struct ct_fragment *b)
{
    return !strcmp(a->row, b->row) && !strcmp(a->column, b->column);
}

unsigned ct_fragment_constant(const char *coordinate, unsigned index)
{
    unsigned value = 0;

    for (unsigned i = 0; coordinate[i]; i++)
        if (!is_lane_bit(coordinate[i]))
            value |= (index >> (coordinate[i] - 'a') & 1) << i;
    return value;
}

/* ---- bits that move ---- */

struct moves { /* bit i of a number becomes bit to[i] - 1 of another one; 0: it is dropped */
    uint8_t to[CT_FRAGMENT_BITS];
};

static ct_value moved_by(struct ct_cursor *at, ct_value value, int distance)
{
    return distance > 0 ? ct_shl_imm(at, value, (uint32_t)distance) : distance < 0 ? ct_shr_imm(at, value, (uint32_t)-distance) : value;
}

/* CT_NO_VALUE: no bit is kept. */
static ct_value moved(struct ct_cursor *at, ct_value value, const struct moves *moves)
{
    ct_value sum = CT_NO_VALUE;

    for (int distance = -CT_FRAGMENT_BITS; distance <= CT_FRAGMENT_BITS; distance++) {
        uint32_t mask = 0;
        ct_value part;

        for (int i = 0; i < CT_FRAGMENT_BITS; i++)
            mask |= moves->to[i] && moves->to[i] - 1 - i == distance ? 1u << i : 0;
        if (!mask)
            continue;
        part = moved_by(at, ct_and_imm(at, value, mask), distance);
        sum = sum.i ? ct_or(at, sum, part) : part;
    }
    return sum;
}

ct_value ct_fragment_of_lane(struct ct_cursor *at, const char *coordinate)
{
    struct moves moves = {0};

    for (unsigned i = 0; coordinate[i]; i++)
        if (is_lane_bit(coordinate[i]))
            moves.to[coordinate[i] - '0'] = (uint8_t)(i + 1);
    return moved(at, ct_sysval(at, CT_SYS_LANEID), &moves);
}

/* ---- paths ---- */

/* Adds the bits of a coordinate that the lane determines; bits that only one of the two coordinates has are constants, or dropped. */
static void add_moves(const char *of, const char *from, struct moves *lane, struct moves *element)
{
    for (unsigned i = 0; of[i] && from[i]; i++) {
        if (!is_lane_bit(from[i]))
            continue;
        if (is_lane_bit(of[i]))
            lane->to[from[i] - '0'] = (uint8_t)(of[i] - '0' + 1);
        else
            element->to[from[i] - '0'] = (uint8_t)(of[i] - 'a' + 1);
    }
}

static bool mentions(const struct ct_fragment *fragment, char c)
{
    return strchr(fragment->row, c) || strchr(fragment->column, c);
}

/* A bit of the lane that is in no coordinate distinguishes products of their own: it stays. */
void ct_fragment_path_init(struct ct_cursor *at, struct ct_fragment_path *path)
{
    const ct_value laneid = ct_sysval(at, CT_SYS_LANEID);
    struct moves lane = {0}, element = {0};

    for (unsigned bit = 0; bit < 5; bit++)
        if (!mentions(path->of, (char)('0' + bit)))
            lane.to[bit] = (uint8_t)(bit + 1);
    if (path->row)
        add_moves(path->of->row, path->from->row, &lane, &element);
    if (path->column)
        add_moves(path->of->column, path->from->column, &lane, &element);
    path->lane = moved(at, laneid, &lane);
    path->element = moved(at, laneid, &element);
}

static void add_constant(const char *of, unsigned value, struct ct_fragment_place *place)
{
    for (unsigned i = 0; of[i]; i++) {
        const unsigned bit = value >> i & 1;

        if (is_lane_bit(of[i]))
            place->lane |= bit << (of[i] - '0');
        else
            place->element |= bit << (of[i] - 'a');
    }
}

struct ct_fragment_place ct_fragment_at(const struct ct_fragment *of, unsigned row, unsigned column)
{
    struct ct_fragment_place place = {0};

    add_constant(of->row, row, &place);
    add_constant(of->column, column, &place);
    return place;
}

struct ct_fragment_place ct_fragment_find(const struct ct_fragment_path *path, unsigned index, unsigned constant)
{
    return ct_fragment_at(path->of, path->row ? ct_fragment_constant(path->from->row, index) : constant,
                          path->column ? ct_fragment_constant(path->from->column, index) : constant);
}

/* Whether each bit that a lane determines is a bit of the same lane, and all others are constants. */
static bool is_in_lane(const char *of, const char *from)
{
    for (; *of; of++) {
        if (is_lane_bit(*of) ? *from != *of : *from && is_lane_bit(*from))
            return false;
        from += *from != 0;
    }
    return true;
}

bool ct_fragment_is_in_lane(const struct ct_fragment *of, const struct ct_fragment *from)
{
    return is_in_lane(of->row, from->row) && is_in_lane(of->column, from->column);
}
