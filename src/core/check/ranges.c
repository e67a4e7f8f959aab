/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

#include "core/backing/address_space.h"
#include "core/backing/shadows.h"
#include "core/base/log.h"
#include "core/code/module.h"
#include "core/vmm/vmm.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "check"
#define FIRST_CAPACITY 64

static bool add_shadowed(struct ct_check_ranges *ranges, uint64_t start, uint64_t bytes, struct ct_shadow_places shadows)
{
    if (ranges->n == ranges->capacity) {
        const size_t capacity = ranges->capacity ? 2 * ranges->capacity : FIRST_CAPACITY;
        struct ptx2spv_check_range *items = realloc(ranges->items, capacity * sizeof *items);

        if (!items)
            return false;
        ranges->items = items;
        ranges->capacity = capacity;
    }
    ranges->items[ranges->n++] = (struct ptx2spv_check_range){start, bytes, shadows.written, shadows.accesses, shadows.launches};
    return true;
}

static bool add(struct ct_check_ranges *ranges, uint64_t start, uint64_t bytes)
{
    return add_shadowed(ranges, start, bytes, (struct ct_shadow_places){0, 0, 0});
}

/* If a parameter from which a store's address is computed is no address itself, the pointer is another part of that computation, and not known. */
struct ct_check_stored ct_check_stored(const struct ptx2spv_stored *stored, const unsigned char *params, const struct ct_module *module)
{
    struct ct_check_stored out = {.is_known = stored->n_params <= PTX2SPV_STORED_PARAMS};
    struct ct_range range;
    uint64_t address;

    if (stored->to_variables)
        out.addresses[out.n++] = module->image_address;
    for (uint32_t i = 0; out.is_known && i < stored->n_params; i++) {
        memcpy(&address, params + stored->params[i], sizeof address);
        out.is_known = !address || ct_address_find(address, 0, &range) == CUDA_SUCCESS;
        out.addresses[out.n++] = address;
    }
    return out;
}

static bool is_stored_to(const struct ct_range *range, const struct ct_check_stored *stored)
{
    bool found = !stored->is_known;

    for (unsigned i = 0; i < stored->n && !found; i++)
        found = stored->addresses[i] - range->start < range->size_bytes;
    return found;
}

static bool add_variables(struct ct_check_ranges *ranges, const struct ct_module *module, uint64_t accesses)
{
    for (unsigned i = 0; i < ptx2spv_module_variable_count(module->ptx); i++) {
        const struct ptx2spv_variable *variable = ptx2spv_module_variable(module->ptx, i);
        const bool is_constant = variable->space == PTX2SPV_VAR_CONST;

        if (ptx2spv_variable_is_in_image(variable) &&
            !add_shadowed(ranges, module->image_address + variable->offset, variable->size | (is_constant ? PTX2SPV_CHECK_READ_ONLY : 0),
                          (struct ct_shadow_places){.accesses = is_constant ? 0 : accesses}))
            return false;
    }
    return true;
}

static const struct ct_module *module_at_locked_or_null(const struct ct_context *context, uint64_t image)
{
    const struct ct_module *module = context->modules;

    while (module && module->image_address != image)
        module = module->next_in_context;
    return module;
}

/* The images of modules of other contexts are taken as a whole, as are the heaps of kernels. */
static bool add_image(struct ct_check_ranges *ranges, struct ct_context *context, const struct ct_range *range,
                      const struct ct_check_stored *stored)
{
    const bool is_own = range->owner == context->object.handle;
    const uint64_t accesses = is_own ? ct_shadow_places(context, range, is_stored_to(range, stored)).accesses : 0;
    const struct ct_module *module = NULL;
    bool added;

    ct_mutex_lock(&context->lock);
    if (is_own)
        module = module_at_locked_or_null(context, range->start);
    added = module ? add_variables(ranges, module, accesses) : add(ranges, range->start, range->size_bytes);
    ct_mutex_unlock(&context->lock);
    return added;
}

/* Whether a mapping begins where the last range ends, and neither has marks of its own. */
static bool continues(const struct ct_check_ranges *ranges, uint64_t start, uint64_t flag, struct ct_shadow_places shadows)
{
    const struct ptx2spv_check_range *last = &ranges->items[ranges->n - 1];

    return last->start + (last->bytes & ~PTX2SPV_CHECK_READ_ONLY) == start && (last->bytes & PTX2SPV_CHECK_READ_ONLY) == flag &&
           !last->accesses && !shadows.accesses;
}

/* What is mapped in a reservation. */
static bool add_mappings(struct ct_check_ranges *ranges, struct ct_context *context, const struct ct_range *reservation, bool is_stored)
{
    const uint64_t end = reservation->start + reservation->size_bytes;
    const size_t first = ranges->n;
    struct ct_vmm_mapping_info mapping;

    for (uint64_t at = reservation->start; at < end && ct_vmm_mapping_after(at, &mapping) == CUDA_SUCCESS;
         at = mapping.start + mapping.size_bytes) {
        const uint64_t flag = mapping.access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PTX2SPV_CHECK_READ_ONLY : 0;
        const struct ct_range range = {.kind = CT_RANGE_VIRTUAL,
                                       .start = mapping.start,
                                       .size_bytes = mapping.size_bytes,
                                       .id = mapping.block_id,
                                       .context = context,
                                       .owner = context->object.handle};
        struct ct_shadow_places shadows;

        if (mapping.access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            continue;
        shadows = ct_shadow_places(context, &range, is_stored);
        if (ranges->n > first && continues(ranges, range.start, flag, shadows))
            ranges->items[ranges->n - 1].bytes += range.size_bytes;
        else if (!add_shadowed(ranges, range.start, range.size_bytes | flag, shadows))
            return false;
    }
    return true;
}

static bool add_range(struct ct_check_ranges *ranges, struct ct_context *context, const struct ct_range *range,
                      const struct ct_check_stored *stored)
{
    const uint64_t flag = ct_range_is_read_only(range) ? PTX2SPV_CHECK_READ_ONLY : 0;

    if (range->kind == CT_RANGE_MODULE)
        return add_image(ranges, context, range, stored);
    if (range->kind == CT_RANGE_VIRTUAL)
        return add_mappings(ranges, context, range, is_stored_to(range, stored));
    return add_shadowed(ranges, range->start, range->size_bytes | flag, ct_shadow_places(context, range, is_stored_to(range, stored)));
}

static bool add_all(struct ct_check_ranges *ranges, struct ct_context *context, const struct ct_check_stored *stored)
{
    struct ct_range range;
    uint64_t at = 0;

    for (; at < UINT64_MAX && ct_address_find_any(at, UINT64_MAX - at, &range); at = range.start + range.size_bytes)
        if (!add_range(ranges, context, &range, stored))
            return false;
    return true;
}

static int compare_starts(const void *a, const void *b)
{
    const struct ptx2spv_check_range *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

CUresult ct_check_ranges_init(struct ct_check_ranges *ranges, struct ct_context *context, const struct ct_check_stored *stored,
                              const struct ptx2spv_check_range *extra, size_t n_extra)
{
    bool complete;

    *ranges = (struct ct_check_ranges){NULL, 0, 0};
    complete = add(ranges, 0, 0) && add_all(ranges, context, stored);
    for (size_t i = 0; i < n_extra && complete; i++)
        complete = add(ranges, extra[i].start, extra[i].bytes);
    if (!complete || ranges->n > UINT32_MAX) {
        ct_check_ranges_finish(ranges);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the ranges that a kernel may access");
    }
    qsort(ranges->items, ranges->n, sizeof *ranges->items, compare_starts);
    return CUDA_SUCCESS;
}

uint64_t ct_check_variable_accesses(const struct ct_module *module, const struct ct_check_stored *stored)
{
    struct ct_range range;

    if (!module->image_address || ct_address_find(module->image_address, 0, &range) != CUDA_SUCCESS)
        return 0;
    return ct_shadow_places(module->context, &range, is_stored_to(&range, stored)).accesses;
}

void ct_check_ranges_finish(struct ct_check_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct ct_check_ranges){NULL, 0, 0};
}

const struct ptx2spv_check_range *ct_check_ranges_find(const struct ct_check_ranges *ranges, uint64_t address)
{
    size_t low = 0, n = ranges->n;
    const struct ptx2spv_check_range *range;

    while (n > 0) {
        const size_t half = n / 2;
        const bool is_before = ranges->items[low + half].start <= address;

        low = is_before ? low + half + 1 : low;
        n = is_before ? n - half - 1 : half;
    }
    range = &ranges->items[low - 1];
    return address - range->start < (range->bytes & ~PTX2SPV_CHECK_READ_ONLY) ? range : NULL;
}
