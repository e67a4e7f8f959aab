/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "core/backing/address_history.h"
#include "core/backing/shadows.h"
#include "sites.h"

#include <string.h>

/* What a kernel writes without marking it counts as written, wherever that is. */
void ct_check_note_launch(const struct ct_function *function)
{
    if (function->info.writes_unseen || !ct_function_is_checked(function))
        ct_shadow_forget_all();
}

CUresult ct_check_block_init(struct ct_check_block *block, struct ct_function *function, const unsigned char *params,
                             const struct ptx2spv_check_range *extra, size_t n_extra)
{
    const struct ct_check_stored stored = ct_check_stored(&function->info.check_stored, params, function->module);
    struct ct_check_sites *sites;
    CUresult r = ct_check_sites_of(function, &sites);

    if (r != CUDA_SUCCESS)
        return r;
    *block = (struct ct_check_block){.function = function,
                                     .sites = sites->memory.address,
                                     .launch = ct_history_now(),
                                     .variables = ct_check_variable_accesses(function->module, &stored)};
    return ct_check_ranges_init(&block->ranges, function->module->context, &stored, extra, n_extra);
}

void ct_check_block_finish(struct ct_check_block *block)
{
    ct_check_ranges_finish(&block->ranges);
}

static size_t n_words(const struct ct_check_block *block)
{
    return block->function->decl->param_bytes / sizeof(uint64_t);
}

size_t ct_check_block_bytes(const struct ct_check_block *block)
{
    return sizeof(struct ptx2spv_check) + (n_words(block) + block->ranges.n) * sizeof(struct ptx2spv_check_range);
}

/* The range to which a parameter leads if it is a pointer. */
static struct ptx2spv_check_range range_of_word(const struct ct_check_block *block, const unsigned char *params, size_t index)
{
    const struct ptx2spv_check_range *range;
    uint64_t word;

    memcpy(&word, params + index * sizeof word, sizeof word);
    range = ct_check_ranges_find(&block->ranges, word);
    return range && !(range->bytes & PTX2SPV_CHECK_READ_ONLY) ? *range : (struct ptx2spv_check_range){0, 0, 0, 0, 0};
}

void ct_check_block_write(const struct ct_check_block *block, void *host, uint64_t address, unsigned char *params)
{
    const size_t n = n_words(block), ranges_offset = sizeof(struct ptx2spv_check) + n * sizeof(struct ptx2spv_check_range);
    struct ptx2spv_check_range *of_params = (struct ptx2spv_check_range *)((char *)host + sizeof(struct ptx2spv_check));

    *(struct ptx2spv_check *)host = (struct ptx2spv_check){
        .sites = block->sites,
        .ranges = address + ranges_offset,
        .n_ranges = (uint32_t)block->ranges.n,
        .launch = (uint32_t)block->launch,
        .variables = block->variables,
        .written = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    };
    for (size_t i = 0; i < n; i++)
        of_params[i] = range_of_word(block, params, i);
    memcpy((char *)host + ranges_offset, block->ranges.items, block->ranges.n * sizeof *block->ranges.items);
    memcpy(params + block->function->info.check_param_offset, &address, sizeof address);
}
