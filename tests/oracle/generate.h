/* SPDX-License-Identifier: Apache-2.0 */
/* Random kernels: PTX text, a launch and its data, from a seed. What a kernel computes is defined by PTX to the last bit: no race, no
 * barrier out of turn, no NaN's bits, no division by zero. The same seed and features give the same kernel.
 *
 * A kernel is a tree of statements. Any statement can be taken out, and what is around others be taken off, to make a failing kernel
 * small; the result may then do something undefined, which the oracle tells. */
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
/* Changes *features by a list such as "warps,named", "+warps", "-floats", "all", "none". False: an unknown name. */
bool generator_parse_features(const char *list, unsigned *features);
const char *generator_feature_name(unsigned bit);
const char *generator_feature_help(unsigned bit);

#define GENERATOR_KERNEL "k"
#define GENERATOR_IN_BYTES 320
#define GENERATOR_SLOT_BYTES 256 /* of `out`, for each thread: results, and 64 bytes that it works in */
#define GENERATOR_ACC_BYTES 256
#define GENERATOR_TABLE_BYTES 32

/* Parameters of every kernel, as PTX lays them out. Set the pointers before the launch. */
struct generator_params {
    uint64_t in, out, acc;
    uint32_t a, b;
    uint8_t table[GENERATOR_TABLE_BYTES];
};

struct generator_launch {
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
};

/* What a kernel works on: it depends on the seed only. */
struct generator_data {
    struct generator_params params;
    uint8_t in[GENERATOR_IN_BYTES], acc[GENERATOR_ACC_BYTES];
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
/* The PTX of what is left of the program; to be freed. */
char *generator_print(const struct program *program);

/* Shrinking: statements are numbered from 0, outer ones before what they hold. */
unsigned generator_statement_count(const struct program *program);
enum generator_cut { GENERATOR_KEPT, GENERATOR_DROPPED, GENERATOR_UNWRAPPED /* only what it holds is left */ };
enum generator_cut generator_cut_of(const struct program *program, unsigned statement);
void generator_cut(struct program *program, unsigned statement, enum generator_cut cut);
bool generator_holds_others(const struct program *program, unsigned statement);

#endif
