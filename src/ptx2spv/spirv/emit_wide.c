/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory as one array of 64-bit words, for kernels with 64-bit atomics on it on devices without aliased views of it (lavapipe).
 *
 * 64-bit accesses and atomics access the array directly. A 32-bit item is half of a word: a load extracts it, and every write is a
 * compare-and-swap loop on the word, so that concurrent writes of other threads to the other half are not lost:
 *
 *     do { old = word; new = old with its half replaced; seen = cas(word, old, new); } while (seen != old) */
#include "emit.h"

bool ct_gen_wants_wide_words(const struct ct_fn *fn)
{
    if (ct_target_has_views(fn->target) || !fn->target->atomic_int64_shared)
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_ATOM && ptx_type_bits(insn->type) == 64 &&
                (insn->space == CT_SPACE_SHARED || (insn->space == CT_SPACE_GENERIC && fn->uses_shared)))
                return true;
    return false;
}

/* The word that contains an item, and the item's bit offset in it. */
struct place {
    uint32_t pointer, shift;
};

static struct place place_of(struct ct_gen *g, uint32_t address, int64_t offset)
{
    const uint32_t type = ct_gen_int_type(g, 32);
    struct place place;

    ct_spv_capability(&g->m, SpvCapabilityInt64Atomics);
    if (offset & 7) {
        address = GEN(g, SpvOpIAdd, type, address, ct_gen_u32(g, (uint32_t)offset));
        offset = 0;
    }
    place.pointer = ct_gen_shared_pointer(g, CT_VIEW_64, address, offset);
    place.shift = GEN(g, SpvOpShiftLeftLogical, type, GEN(g, SpvOpBitwiseAnd, type, address, ct_gen_u32(g, 4)), ct_gen_u32(g, 3));
    return place;
}

static uint32_t half_of(struct ct_gen *g, uint32_t word, uint32_t shift)
{
    return ct_gen_resize(g, ct_gen_shift(g, SpvOpShiftRightLogical, 64, word, shift), 64, 32, false);
}

static uint32_t with_half(struct ct_gen *g, uint32_t word, uint32_t shift, uint32_t half)
{
    const uint32_t type = ct_gen_int_type(g, 64);
    const uint32_t ones = ct_gen_shift(g, SpvOpShiftLeftLogical, 64, ct_spv_const_int(&g->m, 64, UINT32_MAX), shift);
    const uint32_t kept = GEN(g, SpvOpBitwiseAnd, type, word, GEN(g, SpvOpNot, type, ones));

    return GEN(g, SpvOpBitwiseOr, type, kept, ct_gen_shift(g, SpvOpShiftLeftLogical, 64, ct_gen_resize(g, half, 32, 64, false), shift));
}

uint32_t ct_gen_wide_load(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t scope, uint32_t semantics)
{
    const struct place place = place_of(g, address, offset);

    return half_of(g, GEN(g, SpvOpAtomicLoad, ct_gen_int_type(g, 64), place.pointer, scope, semantics), place.shift);
}

uint32_t ct_gen_wide_update(struct ct_gen *g, const struct ct_wide_update *update)
{
    const uint32_t type = ct_gen_int_type(g, 64), relaxed = ct_gen_semantics(g, PTX_RELAXED);
    const struct place place = place_of(g, update->address, update->offset);
    const uint32_t header = ct_gen_label(g), body = ct_gen_label(g), next = ct_gen_label(g), merge = ct_gen_label(g);
    uint32_t old, half, seen;

    ct_gen_branch(g, header);
    ct_gen_begin_block(g, header);
    GEN_VOID(g, SpvOpLoopMerge, merge, next, SpvLoopControlMaskNone);
    ct_gen_branch(g, body);
    ct_gen_begin_block(g, body);
    old = GEN(g, SpvOpAtomicLoad, type, place.pointer, update->scope, relaxed);
    half = half_of(g, old, place.shift);
    seen = GEN(g, SpvOpAtomicCompareExchange, type, place.pointer, update->scope, update->semantics, update->semantics_unequal,
               with_half(g, old, place.shift, update->replace(g, half, update->user)), old);
    GEN_VOID(g, SpvOpBranchConditional, GEN(g, SpvOpIEqual, ct_gen_int_type(g, 1), seen, old), merge, next);
    g->open = false;
    ct_gen_begin_block(g, next);
    ct_gen_branch(g, header);
    ct_gen_begin_block(g, merge);
    return half;
}
