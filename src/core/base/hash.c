/* SPDX-License-Identifier: Apache-2.0 */
/* xxHash is compiled into this file, so that the library needs no further shared library where it runs. */
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct ct_hash digest(const XXH3_state_t *state)
{
    const XXH128_hash_t hash = XXH3_128bits_digest(state);

    return (struct ct_hash){hash.low64, hash.high64};
}

struct ct_hash ct_hash_parts(const struct ct_bytes *parts, size_t n_parts)
{
    XXH3_state_t state;

    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < n_parts; i++) {
        const uint64_t size = parts[i].size;

        XXH3_128bits_update(&state, &size, sizeof size);
        XXH3_128bits_update(&state, parts[i].data, parts[i].size);
    }
    return digest(&state);
}

struct ct_hash ct_hash_joined(const struct ct_bytes *parts, size_t n_parts)
{
    XXH3_state_t state;

    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < n_parts; i++)
        XXH3_128bits_update(&state, parts[i].data, parts[i].size);
    return digest(&state);
}
