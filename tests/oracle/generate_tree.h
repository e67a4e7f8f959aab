/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the generator: the tree of statements, and the state during generation. */
#ifndef GENERATE_TREE_H
#define GENERATE_TREE_H

#include "generate.h"

#define MAX_PARTS 8

struct text {
    char *bytes; /* ends with NUL; NULL: empty */
    size_t used, size;
};
void text_put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_append(struct text *text, const char *bytes, size_t n);
void text_free(struct text *text);

/* A statement: pieces of text, each followed by the statements nested after it. */
struct node {
    unsigned id;
    enum generator_cut cut;
    unsigned n_parts;
    struct part {
        struct text text;
        struct node *children;
    } parts[MAX_PARTS];
    struct node *next;
};

/* Temporary registers by kind; each is written before the same statement reads it. */
enum temporary { TEMP_B16, TEMP_B32, TEMP_B64, TEMP_F32, TEMP_F64, TEMP_PRED, TEMP_COUNT };

#define MAX_FUNCTIONS 3

struct function {
    unsigned temporaries[TEMP_COUNT];
    unsigned n_masks;
    struct node *body, *results;
};

struct generator_tree {
    struct function functions[MAX_FUNCTIONS + 1]; /* index n_functions - 1 is the kernel */
    unsigned n_functions;                         /* functions that can be called */
    bool is_dynamic;                              /* the threads' shared memory is the dynamic part */
    unsigned n_threads;
    unsigned features; /* features that this program contains */
    unsigned n_labels;
    struct node **nodes; /* by id */
    unsigned n_nodes, cap_nodes;
};

struct generator {
    struct program *program;
    struct generator_tree *tree;
    unsigned features;
    uint64_t random;
    unsigned n_labels, n_exits;
    unsigned budget; /* number of statements that may still be generated */
};

/* The context of a new statement. */
struct context {
    struct generator *g;
    struct function *function;
    unsigned n_callable; /* functions below this number may be called */
    bool is_kernel;
    bool is_uniform; /* all remaining threads of the block reach this place together */
    unsigned mask;   /* number + 1 of the register with the mask of active lanes, 0: unknown */
    unsigned depth, loops;
};

uint64_t generator_random(struct generator *g);
static inline unsigned pick(struct generator *g, unsigned n)
{
    return (unsigned)(generator_random(g) >> 33) % n;
}
static inline bool has(const struct context *c, unsigned features)
{
    return (c->g->features & features) == features;
}

struct node *node_create(struct generator *g, unsigned n_parts);
void node_append(struct node ***tail, struct node *node);
void node_destroy(struct node *node);

/* generate_words.c: expands a template of words.def; see there. */
void expand(const struct context *c, struct text *out, const char *pattern);
/* Generates a random simple statement. */
struct node *word_create(const struct context *c);

/* generate_flow.c */
struct node *flow_list(const struct context *c, unsigned n);

/* generate_together.c: cooperation of the threads of a block or warp. NULL: nothing is possible here. */
struct node *together_create(const struct context *c);

#endif
