/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the matrix instructions (PTX ISA, "Warp-Level Matrix Instructions"): what their words say, which lane holds which element,
 * and the memory through which the lanes of a warp pass elements to each other.
 *
 * Products are computed by the device's matrix units if it has the types (build_mma_units.c). Everything else needs no such instruction:
 * each lane stores its registers to the matrix area (sync/matrix_area.c), the lanes wait for each other once (WARPSYNC, which every form of
 * warps has), and each lane loads the elements that its results depend on. */
#ifndef PTX2SPV_MATRIX_H
#define PTX2SPV_MATRIX_H
/* Parts: build_matrix.c, build_mma.c, build_mma_sparse.c, build_mma_units.c, build_wmma.c, matrix_words.c, matrix_fragment.c. */

#include "build_address.h"

/* ---- matrix_words.c ---- */

enum ct_element {
    CT_ELEMENT_NONE,
#define MATRIX_ELEMENT(id, ...) CT_ELEMENT_##id,
#include "matrix.def"
    CT_ELEMENT_COUNT
};
unsigned ct_element_bits(enum ct_element element);
enum ptx_type ct_element_register(enum ct_element element); /* the type of a register that holds one or several */

/* Sets of elements. */
#define CT_ELEMENTS(element) (1u << CT_ELEMENT_##element)

enum ct_matrix_words_max { CT_MATRIX_TYPES_MAX = 4, CT_MATRIX_LAYOUTS_MAX = 2 };
enum ct_matrix_action { CT_MATRIX_NO_ACTION, CT_MATRIX_LOAD, CT_MATRIX_STORE, CT_MATRIX_MMA }; /* of wmma */

struct ct_matrix_words {
    enum ct_matrix_action action;
    char fragment;                       /* of wmma.load and wmma.store: a, b, c or d */
    uint16_t m, n, k;                    /* .m16n8k16; k is 0 in .m8n8 */
    char layouts[CT_MATRIX_LAYOUTS_MAX]; /* r: row, c: column */
    enum ct_element types[CT_MATRIX_TYPES_MAX];
    uint8_t n_layouts, n_types;
    uint8_t count; /* .x1 .x2 .x4 */
    bool is_transposed, is_sparse, popc;
};
/* Reads the words of the instruction. False: there is one that is not supported. */
bool ct_matrix_words_read(const struct ptx_instruction *insn, struct ct_matrix_words *out);

/* ---- matrix_fragment.c ---- */

/* How a matrix is distributed over the lanes of a warp. An element's coordinates are made of bits of the number of the lane that holds it
 * and of its number among those that the lane holds. Each string lists the bits of a coordinate, the lowest first: a digit is a bit
 * of the lane, a letter from `a` on is a bit of the element's number. `row` of B is k, and `column` of A is k. */
struct ct_fragment {
    const char *row, *column;
};

struct ct_mma_shape { /* a row of MMA or WMMA in matrix.def */
    uint16_t m, n, k;
    uint32_t elements;   /* the set of types of A */
    const char *layouts; /* as those of the words; *: any */
    bool is_sparse;
    struct ct_fragment a, b, c;
};
/* The shape of an instruction; NULL: there is none with this type of A. */
const struct ct_mma_shape *ct_mma_shape_find(const struct ct_matrix_words *words, enum ct_element a);
const struct ct_mma_shape *ct_wmma_shape_find(const struct ct_matrix_words *words, uint32_t elements); /* of A, a set */
/* C and D of m8n8k4 with 16-bit floats are distributed in another way if their elements are f16. */
const struct ct_fragment *ct_mma_accumulator(const struct ct_mma_shape *shape, enum ct_element element);

unsigned ct_fragment_elements(const struct ct_fragment *fragment);                       /* in one lane */
unsigned ct_fragment_words(const struct ct_fragment *fragment, enum ct_element element); /* 32-bit words in one lane */
unsigned ct_fragment_registers(const struct ct_fragment *fragment, enum ct_element element);
bool ct_fragment_is_equal(const struct ct_fragment *a, const struct ct_fragment *b);
/* A coordinate of element `index`: the part that all lanes have in common; and the part that the lane determines. */
unsigned ct_fragment_constant(const char *coordinate, unsigned index);
ct_value ct_fragment_of_lane(struct ct_cursor *at, const char *coordinate);

/* Where another lane holds an element whose coordinates are those of an element of this lane or constants. */
struct ct_fragment_place {
    unsigned lane, element; /* the constant parts */
};
enum { CT_FRAGMENT_BITS = 8 };
/* A way to find the elements of `of` from the coordinates of this lane's elements of `from`: `row` and `column` say which of the two
 * coordinates of `of` are those of `from`; the others are constants. */
struct ct_fragment_path {
    const struct ct_fragment *of, *from;
    bool row, column;
    ct_value lane;    /* the parts that this lane determines: of the number of the lane, */
    ct_value element; /* and of that of the element; CT_NO_VALUE: 0 */
};
void ct_fragment_path_init(struct ct_cursor *at, struct ct_fragment_path *path);
/* index: of the element of `from`; constant: the coordinate that is constant, if one is. */
struct ct_fragment_place ct_fragment_find(const struct ct_fragment_path *path, unsigned index, unsigned constant);
/* The constant parts for the constant parts of both coordinates. */
struct ct_fragment_place ct_fragment_at(const struct ct_fragment *of, unsigned row, unsigned column);
/* Whether each lane itself holds the elements of `of` that have the coordinates of its elements of `from`. Coordinates that have more bits in `of` are
 * completed by constants. */
bool ct_fragment_is_in_lane(const struct ct_fragment *of, const struct ct_fragment *from);

/* ---- build_matrix.c: the matrix area ---- */

struct ct_matrix_area {
    ct_value warp; /* address of the words of lane 0; those of the others follow */
    ct_value lane;
    ct_value own;   /* address of this lane's words */
    unsigned words; /* of one lane */
};
void ct_matrix_area_open(struct ct_build *b, unsigned words, struct ct_matrix_area *out);
void ct_matrix_area_post(struct ct_build *b, const struct ct_matrix_area *area, unsigned index, ct_value word);
void ct_matrix_area_meet(struct ct_build *b);                                      /* all lanes have posted */
ct_value ct_matrix_area_load(struct ct_build *b, ct_value address, unsigned word); /* `word` words after the address */
/* The address of a lane's words, whose number is determined by this lane. */
ct_value ct_matrix_area_of(struct ct_build *b, const struct ct_matrix_area *area, ct_value lane);

/* The items of the vector operand `index`, if there are `n`; else NULL after an error. */
const struct ptx_operand *ct_matrix_items(struct ct_build *b, unsigned index, uint32_t n);

/* ---- build_mma.c ---- */

/* The arithmetic of mma and wmma.mma. Their operands are D, A, B and C; for sparse A also metadata and the sparsity selector. */
struct ct_products {
    const struct ct_mma_shape *shape;
    enum ct_element d, a, b, c;
    unsigned a_registers, b_registers; /* of the operands */
};
/* Whether the types of D and C and the modifiers suit that of A. are_mixed: f16 and f32 may be combined. */
bool ct_products_are_legal(const struct ct_build *b, const struct ct_matrix_words *words, const struct ct_products *products,
                           bool are_mixed);
void ct_build_products(struct ct_build *b, const struct ct_products *products);

/* ---- build_mma_units.c ---- */

/* Builds the products if the target has matrix units for them. False: it has not, and nothing was built. */
bool ct_build_products_in_units(struct ct_build *b, const struct ct_products *products);

/* ---- build_mma_sparse.c ---- */

/* Where the indices of the elements of sparse A are. */
struct ct_sparse {
    ct_value address; /* of the words of the first lane of the row */
    unsigned word;    /* of a lane that has the metadata */
    unsigned lane_words;
    unsigned selector;
    bool has_halves; /* elements have 16 or 32 bits */
};
/* The elements of A for 4 columns (2 if they have 32 bits, 8 if they have 4), with zeros: one or two words. */
struct ct_sparse_chunk {
    ct_value words[2];
};
/* `compressed`: the two elements, or pairs or halves of one, in the low bits; the result has n_words words. row: 0, or 8 for the lower half of
 * the matrix; chunk: its number, of n_chunks. */
struct ct_sparse_chunk ct_sparse_expand(struct ct_build *b, const struct ct_sparse *sparse, ct_value compressed, unsigned n_words,
                                        unsigned row, unsigned chunk, unsigned n_chunks);

#endif
