/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the range that contains an address, for accesses that the cheap tests do not let pass: those through pointers from memory, and
 * those that are not allowed.
 *
 *     low = 0, n = number of ranges                      the first range begins at 0
 *     while (n > 0)                                      low: the number of ranges known to begin at or before the address
 *         half = n / 2
 *         (low, n) = range[low + half].start <= address ? (low + half + 1, n - half - 1) : (low, half)
 *     range[low - 1] is the last one that begins at or before the address */
#include "check.h"

static ct_value range_at(struct ct_cursor *at, ct_value ranges, ct_value index)
{
    const ct_value offset = ct_bits2(at, CT_OP_MUL, index, ct_const32(at, sizeof(struct ptx2spv_check_range)));

    return ct_add(at, ranges, ct_zext64(at, offset));
}

/* The address of the last range that begins at or before the address. `at` continues behind the loop. */
static ct_value find(struct ct_cursor *at, ct_value control, ct_value address)
{
    struct ct_fn *fn = at->fn;
    struct ct_block *head = ct_block_create(fn), *body = ct_block_create(fn), *end = ct_block_create(fn);
    const ct_value ranges = ct_check_load(at, control, offsetof(struct ptx2spv_check, ranges), CT_W_64);
    const ct_value count = ct_check_load(at, control, offsetof(struct ptx2spv_check, n_ranges), CT_W_32), zero = ct_const32(at, 0);
    ct_value low, n, half, middle, is_before, rest;

    ct_ssa_jump(fn, at->block, head);
    at->block = head;
    low = ct_loop_phi(at, zero);
    n = ct_loop_phi(at, count);
    ct_ssa_branch(at, ct_equals(at, n, 0), end, body);
    at->block = body;
    half = ct_shr_imm(at, n, 1);
    middle = ct_add(at, low, half);
    is_before = ct_icmp(at, PTX_U64, PTX_LE, ct_check_load(at, range_at(at, ranges, middle), 0, CT_W_64), address);
    rest = ct_sub(at, ct_sub(at, n, half), ct_const32(at, 1));
    ct_loop_phi_set_next(fn, low, ct_select(at, is_before, ct_add_imm(at, middle, 1), low));
    ct_loop_phi_set_next(fn, n, ct_select(at, is_before, rest, half));
    ct_ssa_jump(fn, body, head);
    at->block = end;
    return range_at(at, ranges, ct_add_imm(at, low, UINT32_MAX));
}

static struct ct_found search_global(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access)
{
    const ct_value control = ct_check_control(check);
    const ct_value range = find(at, control, access->address);
    const ct_value start = ct_check_load(at, range, offsetof(struct ptx2spv_check_range, start), CT_W_64);
    const ct_value bytes = ct_check_load(at, range, offsetof(struct ptx2spv_check_range, bytes), CT_W_64);
    const ct_value size = ct_and_imm(at, bytes, ~PTX2SPV_CHECK_READ_ONLY), distance = ct_sub(at, access->address, start);
    const ct_value end = ct_add_imm(at, distance, access->bytes);
    struct ct_found found;

    found.inside = ct_and(at, ct_icmp(at, PTX_U64, PTX_LT, distance, size), ct_icmp(at, PTX_U64, PTX_LE, end, size));
    found.allowed = found.inside;
    if (access->writes)
        found.allowed = ct_and(at, found.allowed, ct_icmp(at, PTX_U64, PTX_EQ, bytes, size));
    found.shadows = ct_check_load_shadows(check, at, range, 0);
    for (unsigned i = 0; i < CT_SHADOWS; i++)
        if (found.shadows.at[i].i)
            found.shadows.at[i] = ct_select(at, found.inside, found.shadows.at[i], ct_const64(at, 0));
    return found;
}

/* A generic address may be one of shared or local memory, which no range contains. */
static void add_windows(struct ct_cursor *at, const struct ct_access *access, struct ct_found *found)
{
    static const struct {
        enum ct_space space;
        uint32_t tag;
    } windows[] = {{CT_SPACE_SHARED, CT_TAG_SHARED}, {CT_SPACE_LOCAL, CT_TAG_LOCAL}};
    const ct_value tag = ct_shr_imm(at, access->address, CT_TAG_SHIFT), offset = ct_low32(at, access->address);

    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        ct_value fits = ct_equals(at, tag, windows[i].tag);

        if (windows[i].space == CT_SPACE_LOCAL || (!at->fn->clusters && ct_fn_uses_shared(at->fn)))
            fits = ct_and(at, fits, ct_check_is_within(at, windows[i].space, offset, access->bytes));
        found->inside = ct_or(at, found->inside, fits);
        found->allowed = ct_or(at, found->allowed, fits);
    }
}

struct ct_found ct_check_search(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access)
{
    struct ct_found found = search_global(check, at, access);

    if (access->insn->space == CT_SPACE_GENERIC)
        add_windows(at, access, &found);
    if (access->bytes > 1)
        found.allowed = ct_and(at, found.allowed, ct_check_is_aligned(at, access));
    return found;
}
