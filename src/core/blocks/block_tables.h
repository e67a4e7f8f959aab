/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels that decode compressed blocks of 4 x 4 texels share with the host: the formats, the parameter, and the constants of BC6H and BC7
 * (Khronos Data Format Specification, "BPTC Compressed Texture Image Formats"), which are in memory since a kernel of the library's own has no
 * variables. */
#ifndef CT_CORE_BLOCK_TABLES_H
#define CT_CORE_BLOCK_TABLES_H

/* In the order of CUresourceViewFormat. */
enum ct_block_format {
    CT_BLOCK_BC1,
    CT_BLOCK_BC2,
    CT_BLOCK_BC3,
    CT_BLOCK_BC4U,
    CT_BLOCK_BC4S,
    CT_BLOCK_BC5U,
    CT_BLOCK_BC5S,
    CT_BLOCK_BC6U,
    CT_BLOCK_BC6S,
    CT_BLOCK_BC7,
};

#define CT_BLOCK_SIDE 4u
#define CT_BLOCK_THREADS 64u /* of a block of threads, in x; each decodes a block of texels */

/* The parameter of the kernels: where the texels and the blocks of a level are (CUDA addresses), and what to make of them. */
struct ct_block_job {
    unsigned long long texels, texel_row, texel_slice, blocks, block_row, block_slice, tables /* a struct ct_block_tables */;
    unsigned width, height; /* in texels */
    unsigned format, channels;
    unsigned alpha, padding; /* alpha: the bits of the fourth channel of texels whose blocks have none */
};

#define CT_BC6_MODES 32  /* by the low five bits of a block; modes 0 and 1 have two */
#define CT_BC6_FIELDS 24 /* the last one is empty */

/* A field of a BC6H block, in the order of the bits: channel 3 * endpoint + component, the lowest bit there, the number of bits, and whether they are
 * in reverse order. */
#define CT_BC6_FIELD(channel, low, bits, reverse) ((channel) | (low) << 4 | (bits) << 8 | (reverse) << 12)

struct ct_bc6_mode {
    unsigned char exists, transformed, partition_bits, endpoint_bits, index_bits, delta_bits[3];
    unsigned short fields[CT_BC6_FIELDS];
};

struct ct_bc7_mode {
    unsigned char subsets, partition_bits, rotation_bits, selection_bits, color_bits, alpha_bits, unique_bits /* p-bits of each endpoint */,
        shared_bits /* and of each subset */, index_bits, second_index_bits;
};

struct ct_block_tables {
    unsigned partitions[2][64];   /* of two and of three subsets: the subset of each texel in two bits */
    unsigned char anchors[3][64]; /* texels whose index has one bit less: of the second subset of two, the second and the third of three */
    unsigned char weights[3][16]; /* of indices of 2, 3 and 4 bits, in units of 1/64 */
    struct ct_bc7_mode bc7[8];
    struct ct_bc6_mode bc6[CT_BC6_MODES];
};

#endif
