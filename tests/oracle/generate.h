/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels: PTX text, a launch and its data, from a seed. The result of a kernel is defined by PTX to the last bit: it has no races,
 * no barriers that only some threads reach, no results that depend on the bits of a NaN, no divisions by zero. The same seed and features
 * give the same kernel.
 *
 * A kernel is a tree of statements. To shrink a failing kernel, any statement can be removed, or replaced by the statements that it
 * contains; the result may then have undefined behaviour, which the oracle reports. */
#ifndef GENERATE_H
#define GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum generator_feature_bit {
#define FEATURE(id, name, by_default, help) FEATURE_BIT_##id,
#include "features.def"
    FEATURE_COUNT
};
enum generator_feature {
#define FEATURE(id, name, by_default, help) FEATURE_##id = 1 << FEATURE_BIT_##id,
#include "features.def"
};
unsigned generator_default_features(void);
/* Changes *features by a list such as "warps,named", "+warps", "-floats", "all", "none". Returns false for an unknown name. */
bool generator_parse_features(const char *list, unsigned *features);
const char *generator_feature_name(unsigned bit);
const char *generator_feature_help(unsigned bit);

#define GENERATOR_KERNEL "k"
#define GENERATOR_IN_BYTES 320
#define GENERATOR_IN_START 64    /* the parameter points behind that many more bytes of the same memory */
#define GENERATOR_SLOT_BYTES 256 /* bytes of `out` for each thread: results, and 64 bytes of working memory */
#define GENERATOR_ACC_BYTES 256
#define GENERATOR_TABLE_BYTES 32

/* Parameters of every kernel, in PTX's layout. The pointers must be set before the launch. */
struct generator_params {
    uint64_t in, out, acc;
    uint32_t a, b;
    uint8_t table[GENERATOR_TABLE_BYTES];
};

struct generator_launch {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
};

/* The data of a kernel, which depend only on the seed. */
struct generator_data {
    struct generator_params params;
    uint8_t in[GENERATOR_IN_START + GENERATOR_IN_BYTES], acc[GENERATOR_ACC_BYTES];
};
void generator_fill(uint64_t seed, struct generator_data *out);
size_t generator_out_bytes(const struct generator_launch *launch);

struct program {
    uint64_t seed;
    unsigned features;
    struct generator_launch launch;
    struct generator_data data;
    struct generator_tree *tree;
};

struct program *generator_create(uint64_t seed, unsigned features);
void generator_destroy(struct program *program);
/* Returns the PTX of the remaining program; the caller frees it. */
char *generator_print(const struct program *program);

/* Shrinking: statements are numbered from 0, outer ones before those that they contain. */
unsigned generator_statement_count(const struct program *program);
enum generator_cut { GENERATOR_KEPT, GENERATOR_DROPPED, GENERATOR_UNWRAPPED /* replaces it by the statements that it contains */ };
enum generator_cut generator_cut_of(const struct program *program, unsigned statement);
void generator_cut(struct program *program, unsigned statement, enum generator_cut cut);
bool generator_holds_others(const struct program *program, unsigned statement);

#endif
