/* SPDX-License-Identifier: Apache-2.0 */
/* An entry is the kernel's struct ptx2spv_kernel_info and its words, as they are in memory: entries of other builds have other keys. */
#include "kernel_cache.h"

#include "core/base/build_id.h"

#include <stdlib.h>
#include <string.h>

#define SPIRV_MAGIC 0x07230203u
#define SPIRV_HEADER_WORDS 5u

/* The bytes of a target are part of the key: equal targets have equal bytes. */
_Static_assert(offsetof(struct ptx2spv_target, near_functions) == offsetof(struct ptx2spv_target, workarounds) + 4 &&
                   offsetof(struct ptx2spv_target, float64) == offsetof(struct ptx2spv_target, near_functions) + 2 &&
                   offsetof(struct ptx2spv_target, matrices) == offsetof(struct ptx2spv_target, lockstep) + 1 &&
                   offsetof(struct ptx2spv_target, windows) ==
                       offsetof(struct ptx2spv_target, matrices) + sizeof((struct ptx2spv_target *)0)->matrices,
               "no padding");

/* Windows are where this process happens to have its memory, so such code is of no use to others. Whoever asks for dumps wants the compiler to
 * run. */
bool ct_kernel_cache_key(const struct ct_code *code, unsigned index, const struct ptx2spv_target *target,
                         const struct ptx2spv_options *options, struct ct_disk_key *out)
{
    const struct ct_bytes build = ct_build_id();
    const uint32_t choices[] = {index,
                                options->cooperative,
                                options->clusters,
                                options->shared_form,
                                options->any_grid,
                                options->stack_bytes,
                                options->inline_max,
                                options->check,
                                options->check_races,
                                options->check_written,
                                options->check_blocks,
                                options->check_launches};
    const struct ct_bytes parts[] = {build, {&code->hash, sizeof code->hash}, {choices, sizeof choices}, {target, sizeof *target}};

    if (!build.size || !ct_disk_cache_takes_code() || target->pointer_rule == PTX2SPV_POINTER_WINDOWS || options->dump)
        return false;
    *out = ct_disk_key_make(CT_DISK_SPIRV, parts, sizeof parts / sizeof *parts);
    return true;
}

bool ct_kernel_cache_load(const struct ct_disk_key *key, struct ptx2spv_kernel *out)
{
    struct ptx2spv_kernel kernel;
    size_t size, n_bytes;
    void *data;

    if (!ct_disk_cache_load(key, &data, &size))
        return false;
    n_bytes = size > sizeof kernel.info ? size - sizeof kernel.info : 0;
    kernel.words = data; /* from malloc, as the compiler's */
    kernel.n_words = n_bytes / sizeof *kernel.words;
    if (kernel.n_words >= SPIRV_HEADER_WORDS && n_bytes % sizeof *kernel.words == 0) {
        memcpy(&kernel.info, data, sizeof kernel.info);
        memmove(data, (char *)data + sizeof kernel.info, n_bytes);
        if (kernel.words[0] == SPIRV_MAGIC) {
            *out = kernel;
            return true;
        }
    }
    free(data);
    return false;
}

void ct_kernel_cache_store(const struct ct_disk_key *key, const struct ptx2spv_kernel *kernel)
{
    const struct ct_bytes parts[] = {{&kernel->info, sizeof kernel->info}, {kernel->words, kernel->n_words * sizeof *kernel->words}};

    ct_disk_cache_store(key, parts, sizeof parts / sizeof *parts);
}
