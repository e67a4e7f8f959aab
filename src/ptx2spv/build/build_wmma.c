/* SPDX-License-Identifier: Apache-2.0 */
/* build: wmma (PTX ISA, "Warp-level Matrix Instructions: wmma.load", "wmma.store", "wmma.mma"). Which lane holds which element is for the
 * implementation to choose: matrix.def does. Each lane loads and stores its own elements. */
#include "matrix.h"

enum { HALF_REGISTERS = 8 /* of A and B of f16, for every shape: more than they have elements, for some */, ELEMENTS_MAX = 16 };

/* ---- memory ---- */

/* A fragment in memory. */
struct memory {
    struct ct_build *b;
    const struct ct_fragment *fragment;
    enum ct_element element;
    struct ct_address address;  /* with the part of the offset that this lane determines */
    const char *line, *in_line; /* the coordinates: number of a row (or column), and the place in it */
    ct_value stride;            /* distance of rows in bytes; CT_NO_VALUE: stride_bytes */
    unsigned stride_bytes;
};

static unsigned length_of(const char *coordinate)
{
    unsigned n = 1;

    for (; *coordinate; coordinate++)
        n *= 2;
    return n;
}

static unsigned bytes_of(const struct memory *memory, unsigned elements)
{
    return elements * ct_element_bits(memory->element) / 8;
}

static ct_value as_address(struct memory *memory, ct_value x)
{
    return ct_resize(&memory->b->at, x, PTX_S32, ct_width_at(&memory->b->at, memory->address.base));
}

static void add_to_address(struct memory *memory, ct_value bytes)
{
    if (bytes.i)
        memory->address.base = ct_add(&memory->b->at, memory->address.base, as_address(memory, bytes));
}

/* The offset of a row whose number is a value. */
static ct_value line_offset(struct memory *memory, ct_value line)
{
    const ct_value stride = memory->stride.i ? memory->stride : ct_const32(&memory->b->at, memory->stride_bytes);

    return line.i ? ct_op2(&memory->b->at, CT_OP_MUL, PTX_U32, line, stride) : CT_NO_VALUE;
}

static ct_value multiplied(struct ct_cursor *at, ct_value x, unsigned factor)
{
    return factor == 1 ? x : ct_op2(at, CT_OP_MUL, PTX_U32, x, ct_const32(at, factor));
}

/* Elements of less than a byte begin at whole words. */
static ct_value place_in_line(struct memory *memory)
{
    struct ct_cursor *at = &memory->b->at;
    const unsigned bits = ct_element_bits(memory->element);
    const ct_value place = ct_fragment_of_lane(at, memory->in_line);

    if (!place.i)
        return place;
    return bits < 8 ? ct_shr_imm(at, multiplied(at, place, bits), 3) : multiplied(at, place, bits / 8);
}

/* The stride is a number of elements: without one, rows follow each other. */
static bool find_memory(struct ct_build *b, const struct ct_matrix_words *words, unsigned operand, unsigned n_operands, struct memory *out)
{
    const bool is_row = words->layouts[0] == 'r';
    struct ct_cursor *at = &b->at;

    out->b = b;
    out->line = is_row ? out->fragment->row : out->fragment->column;
    out->in_line = is_row ? out->fragment->column : out->fragment->row;
    if (b->insn->n_operands != n_operands && b->insn->n_operands != n_operands + 1) {
        ct_build_invalid(b, "wrong number of operands");
        return false;
    }
    if (!ct_build_address(b, operand, &out->address))
        return false;
    if (!out->address.base.i) {
        ct_build_unsupported(b, "a matrix in local memory or among parameters");
        return false;
    }
    out->stride_bytes = bytes_of(out, length_of(out->in_line));
    if (b->insn->n_operands > n_operands) {
        const ct_value stride = ct_build_source(b, n_operands, PTX_U32);
        const unsigned bits = ct_element_bits(out->element);

        out->stride = bits < 8 ? ct_shr_imm(at, multiplied(at, stride, bits), 3) : multiplied(at, stride, bits / 8);
    }
    add_to_address(out, line_offset(out, ct_fragment_of_lane(at, out->line)));
    add_to_address(out, place_in_line(out));
    return true;
}

/* Whether the elements of a word, which are those of a register, follow each other in memory. They are then aligned, since lines are. */
static bool is_in_words(const struct memory *memory)
{
    const unsigned bits = ct_element_bits(memory->element);

    for (unsigned i = 0; bits << i < 32; i++)
        if (memory->in_line[i] != (char)('a' + i))
            return false;
    return true;
}

/* The access to element `index`, and those that follow it in a word. */
static struct ct_insn *access_element(struct memory *memory, enum ct_op op, unsigned index, enum ptx_type type)
{
    struct ct_build *b = memory->b;
    struct ct_address address = memory->address;
    const unsigned line = ct_fragment_constant(memory->line, index), place = ct_fragment_constant(memory->in_line, index);
    struct ct_insn *insn;

    address.offset += bytes_of(memory, place);
    if (line && memory->stride.i)
        address.base = ct_add(&b->at, address.base, as_address(memory, line_offset(memory, ct_const32(&b->at, line))));
    else
        address.offset += (int64_t)line * memory->stride_bytes;
    insn = ct_emit_insn(&b->at, op, type, op == CT_OP_LOAD, op == CT_OP_LOAD ? 1 : 2);
    ct_build_access(b, insn, &address, ptx_type_bits(type) / 8);
    if (op == CT_OP_LOAD)
        insn->results[0] = ct_value_create(b->fn, type == PTX_B64 ? CT_W_64 : CT_W_32); /* not all devices have 16-bit integers */
    return insn;
}

static enum ptx_type type_in_memory(const struct memory *memory)
{
    switch (ct_element_bits(memory->element)) {
    case 8:
        return PTX_U8;
    case 16:
        return PTX_U16;
    case 64:
        return PTX_B64;
    default:
        return PTX_B32;
    }
}

/* ---- wmma.load ---- */

/* A register with several elements. */
static ct_value load_register(struct memory *memory, unsigned first)
{
    struct ct_cursor *at = &memory->b->at;
    const unsigned bits = ct_element_bits(memory->element);
    const enum ptx_type type = is_in_words(memory) && bits < 32 ? PTX_B32 : type_in_memory(memory);
    ct_value parts[4], word;

    if (type == PTX_B32 || type == PTX_B64)
        return access_element(memory, CT_OP_LOAD, first, type)->results[0];
    for (unsigned i = 0; i < 32 / bits; i++)
        parts[i] = access_element(memory, CT_OP_LOAD, first + i, type)->results[0];
    word = parts[0];
    for (unsigned i = 1; i < 32 / bits; i++)
        word = ct_or(at, word, ct_shl_imm(at, parts[i], bits * i));
    return word;
}

static unsigned per_register(enum ct_element element)
{
    return ct_element_bits(element) < 32 ? 32 / ct_element_bits(element) : 1;
}

/* The registers of a fragment: A and B of f16 always have 8, of which some repeat others. */
static unsigned registers_of(const struct ct_matrix_words *words, const struct ct_fragment *fragment, enum ct_element element)
{
    const bool is_factor = words->action == CT_MATRIX_MMA || words->fragment == 'a' || words->fragment == 'b';

    return is_factor && element == CT_ELEMENT_F16 ? HALF_REGISTERS : ct_fragment_registers(fragment, element);
}

static void build_load(struct ct_build *b, const struct ct_matrix_words *words, struct memory *memory)
{
    const unsigned n = ct_fragment_elements(memory->fragment) / per_register(memory->element);
    const unsigned n_registers = registers_of(words, memory->fragment, memory->element);
    const enum ptx_type type = ct_element_register(memory->element);
    const struct ptx_operand *items = ct_matrix_items(b, 0, n_registers);
    ct_value values[ELEMENTS_MAX];

    if (!items || !find_memory(b, words, 1, 2, memory))
        return;
    for (unsigned i = 0; i < n; i++)
        values[i] = load_register(memory, i * per_register(memory->element));
    for (unsigned i = 0; i < n_registers; i++)
        ct_build_write(b, &items[i], values[i % n], type);
}

/* ---- wmma.store ---- */

static void store_register(struct memory *memory, unsigned first, ct_value value)
{
    if (memory->element != CT_ELEMENT_F16 || is_in_words(memory)) {
        access_element(memory, CT_OP_STORE, first, ct_bits_type(ct_width_at(&memory->b->at, value)))->operands[1] = value;
        return;
    }
    access_element(memory, CT_OP_STORE, first, PTX_U16)->operands[1] = value;
    value = ct_shr_imm(&memory->b->at, value, 16);
    access_element(memory, CT_OP_STORE, first + 1, PTX_U16)->operands[1] = value;
}

static void build_store(struct ct_build *b, const struct ct_matrix_words *words, struct memory *memory)
{
    const unsigned n = ct_fragment_registers(memory->fragment, memory->element);
    const struct ptx_operand *items = ct_matrix_items(b, 1, n);

    if (!items || !find_memory(b, words, 0, 2, memory))
        return;
    for (unsigned i = 0; i < n; i++)
        store_register(memory, i * per_register(memory->element), ct_build_read(b, &items[i], ct_element_register(memory->element)));
}

/* ---- the instructions ---- */

/* The types of A whose products have accumulators of a type. */
static uint32_t factors_of(enum ct_element accumulator)
{
    switch (accumulator) {
    case CT_ELEMENT_F16:
        return CT_ELEMENTS(F16);
    case CT_ELEMENT_F32:
        return CT_ELEMENTS(F16) | CT_ELEMENTS(TF32) | CT_ELEMENTS(S4) | CT_ELEMENTS(B1); /* ptxas takes those of integers, too */
    case CT_ELEMENT_F64:
        return CT_ELEMENTS(F64);
    case CT_ELEMENT_S32:
        return CT_ELEMENTS(S8) | CT_ELEMENTS(S4) | CT_ELEMENTS(B1);
    default:
        return 0;
    }
}

/* A and B of a type; accumulators C, which are loaded, and D, which are stored. */
static bool find_fragment(const struct ct_matrix_words *words, struct memory *out)
{
    const bool is_factor = words->fragment == 'a' || words->fragment == 'b', stores = words->action == CT_MATRIX_STORE;
    struct ct_matrix_words layouts = *words;
    const struct ct_mma_shape *shape;

    if (!words->fragment || words->n_types != 1 || words->n_layouts != 1 || stores != (words->fragment == 'd'))
        return false;
    if (words->fragment == 'b') { /* the layout is that of the second factor */
        layouts.layouts[1] = layouts.layouts[0];
        layouts.layouts[0] = 'r';
        layouts.n_layouts = 2;
    }
    if (!is_factor)
        layouts.n_layouts = 0;
    out->element = words->types[0];
    shape = ct_wmma_shape_find(&layouts, is_factor ? 1u << out->element : factors_of(out->element));
    if (!shape)
        return false;
    out->fragment = words->fragment == 'a' ? &shape->a : words->fragment == 'b' ? &shape->b : &shape->c;
    return true;
}

static void build_mma(struct ct_build *b, const struct ct_matrix_words *words)
{
    struct ct_products products = {0};

    products.d = words->types[0];
    products.a = words->n_types == 2 ? CT_ELEMENT_F16 : words->types[1];
    products.b = words->n_types == 2 ? CT_ELEMENT_F16 : words->types[2];
    products.c = words->types[words->n_types - 1];
    products.shape = ct_wmma_shape_find(words, 1u << products.a);
    if (products.a != products.b || (products.a == CT_ELEMENT_F16) != (words->n_types == 2) ||
        !ct_products_are_legal(b, words, &products, true)) {
        ct_build_unsupported(b, NULL);
        return;
    }
    products.a_registers = registers_of(words, &products.shape->a, products.a);
    products.b_registers = registers_of(words, &products.shape->b, products.b);
    ct_build_products(b, &products);
}

void ct_build_wmma(struct ct_build *b)
{
    struct ct_matrix_words words;
    struct memory memory = {0};

    if (!ct_matrix_words_read(b->insn, &words) || words.is_sparse || words.count || words.is_transposed) {
        ct_build_unsupported(b, NULL);
        return;
    }
    if (words.action == CT_MATRIX_MMA && (words.n_types == 2 || words.n_types == 4))
        build_mma(b, &words);
    else if ((words.action == CT_MATRIX_LOAD || words.action == CT_MATRIX_STORE) && find_fragment(&words, &memory))
        (words.action == CT_MATRIX_LOAD ? build_load : build_store)(b, &words, &memory);
    else
        ct_build_unsupported(b, NULL);
}
