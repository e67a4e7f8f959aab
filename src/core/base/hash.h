/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of 128 bits (XXH3), for keys and checksums. They are not meant to withstand an attacker. */
#ifndef CT_CORE_HASH_H
#define CT_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct ct_bytes {
    const void *data;
    size_t size;
};

struct ct_hash {
    uint64_t low, high;
};

/* The hash of several parts. Their sizes count, too, so that a byte cannot move from one part to the next. */
struct ct_hash ct_hash_parts(const struct ct_bytes *parts, size_t n_parts);
/* The hash of the parts' bytes as if they followed each other in memory. */
struct ct_hash ct_hash_joined(const struct ct_bytes *parts, size_t n_parts);

#endif
