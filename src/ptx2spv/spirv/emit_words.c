/* SPDX-License-Identifier: Apache-2.0 */
/* Shared and local memory in Vulkan: arrays that are indexed by byte offsets.
 *
 * With VK_KHR_workgroup_memory_explicit_layout shared memory consists of several aliased blocks, one for each width (views). Without it,
 * and for local memory always, it is one array of 32-bit words, and other widths are composed: 64 bits of two words, 8 and 16 bits of a
 * part of one. A narrow store to shared memory is an atomic and followed by an atomic or, so that concurrent stores of other threads to
 * the rest of the word are not lost, and threads that store the same value at once leave that value. Kernels with 64-bit atomics have
 * one array of 64-bit words instead (emit_wide.c). If most accesses are vectors, the array is one of vectors, and a word is a component:
 * lavapipe loads lane by lane, all components of a vector at once. */
#include "emit.h"

static const struct view {
    uint8_t bytes, bits, count;
    bool is_float;
} views[CT_VIEW_COUNT] = {
    [CT_VIEW_8] = {1, 8, 1, false},   [CT_VIEW_16] = {2, 16, 1, false},   [CT_VIEW_32] = {4, 32, 1, false},
    [CT_VIEW_64] = {8, 64, 1, false}, [CT_VIEW_2X32] = {8, 32, 2, false}, [CT_VIEW_4X32] = {16, 32, 4, false},
    [CT_VIEW_F32] = {4, 32, 1, true}, [CT_VIEW_F64] = {8, 64, 1, true},
};

/* The number of words that an access to shared memory moves as one vector; 0: it moves them separately. */
static uint32_t vector_words(const struct ct_insn *insn)
{
    const uint32_t words = ct_element_count(insn) * ptx_type_bits(insn->type) / 32,
                   align = insn->align_log2 ? 1u << insn->align_log2 : words * 4;

    return (words == 2 || words == 4) && align >= words * 4 ? words : 0;
}

/* Whether an access may be an atomic access of a word: a volatile access, or a store to a part of a word. */
static bool needs_words(const struct ct_insn *insn)
{
    const bool moves = insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE;

    return insn->space != CT_SPACE_GLOBAL &&
           (insn->op == CT_OP_ATOM || (moves && (ct_gen_is_strong(insn) || ptx_type_bits(insn->type) < 32)));
}

enum ct_shared_view ct_gen_words_view(const struct ct_fn *fn)
{
    uint32_t words[5] = {0}, others = 0; /* indexed by the length of their vector */

    if (ct_target_has_views(fn->target) || ct_gen_wants_wide_words(fn))
        return CT_VIEW_32;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (needs_words(insn)) {
                return CT_VIEW_32;
            } else if ((insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE) && insn->space == CT_SPACE_SHARED) {
                const uint32_t n = vector_words(insn);

                words[n] += n;
                others += n == 0;
            }
    if (words[4] > others + words[2])
        return CT_VIEW_4X32;
    return words[2] > others + words[4] ? CT_VIEW_2X32 : CT_VIEW_32;
}

static bool has_view(const struct ct_gen *g, enum ct_space space, enum ct_shared_view view)
{
    if (view == CT_VIEW_32 || (space == CT_SPACE_SHARED && view == CT_VIEW_64 && g->has_wide_words))
        return true;
    if (space == CT_SPACE_SHARED && view == g->words_view)
        return true;
    if (space != CT_SPACE_SHARED || !g->target->shared_explicit_layout)
        return false;
    return view == CT_VIEW_8 ? g->target->shared_explicit_layout8 : view == CT_VIEW_16 ? g->target->shared_explicit_layout16 : true;
}

static uint32_t view_type(struct ct_gen *g, enum ct_shared_view view)
{
    const uint32_t scalar = views[view].is_float ? ct_gen_float_type(g, views[view].bits) : ct_gen_int_type(g, views[view].bits);

    return views[view].count == 1 ? scalar : ct_spv_type_vector(&g->m, scalar, views[view].count);
}

/* ---- the variables ---- */

/* An expression of specialization constants, 32 bits. */
static uint32_t spec_op(struct ct_gen *g, SpvOp op, uint32_t a, uint32_t b)
{
    return CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, ct_gen_int_type(g, 32), op, a, b);
}

/* Words of the segment: the kernel's own, followed by the exchange area. */
static uint32_t segment_words(struct ct_gen *g)
{
    uint32_t words = g->spec[PTX2SPV_SPEC_SHARED_WORDS];

    if (g->fn->exchange_words)
        words = spec_op(g, SpvOpIAdd, words, ct_gen_u32(g, g->fn->exchange_words));
    if (g->fn->exchange_thread_words)
        words = spec_op(g, SpvOpIAdd, words,
                        spec_op(g, SpvOpIMul, g->spec[PTX2SPV_SPEC_BLOCK_THREADS], ct_gen_u32(g, g->fn->exchange_thread_words)));
    return words;
}

/* The number of items of a view in the segment: its words, rounded up. */
static uint32_t view_length(struct ct_gen *g, enum ct_shared_view view)
{
    const uint32_t words = segment_words(g), bytes = views[view].bytes;

    if (bytes == 4)
        return words;
    if (bytes < 4)
        return spec_op(g, SpvOpIMul, words, ct_gen_u32(g, 4 / bytes));
    return spec_op(g, SpvOpUDiv, spec_op(g, SpvOpIAdd, words, ct_gen_u32(g, bytes / 4 - 1)), ct_gen_u32(g, bytes / 4));
}

static uint32_t make_explicit_view(struct ct_gen *g, enum ct_shared_view view)
{
    const uint32_t array = CT_SPV_RESULT(&g->m, CT_SPV_GLOBALS, SpvOpTypeArray, 0, view_type(g, view), view_length(g, view));
    const uint32_t block = CT_SPV_RESULT(&g->m, CT_SPV_GLOBALS, SpvOpTypeStruct, 0, array);
    const uint32_t variable = ct_gen_global_variable(g, SpvStorageClassWorkgroup, block);

    CT_SPV_DECORATE(&g->m, array, SpvDecorationArrayStride, views[view].bytes);
    ct_spv_decorate(&g->m, block, SpvDecorationBlock, NULL, 0);
    CT_SPV_EMIT(&g->m, CT_SPV_DECORATIONS, SpvOpMemberDecorate, block, 0, SpvDecorationOffset, 0);
    ct_spv_decorate(&g->m, variable, SpvDecorationAliased, NULL, 0);
    ct_spv_capability(&g->m, SpvCapabilityWorkgroupMemoryExplicitLayoutKHR);
    if (view == CT_VIEW_8)
        ct_spv_capability(&g->m, SpvCapabilityWorkgroupMemoryExplicitLayout8BitAccessKHR);
    if (view == CT_VIEW_16)
        ct_spv_capability(&g->m, SpvCapabilityWorkgroupMemoryExplicitLayout16BitAccessKHR);
    ct_spv_extension(&g->m, "SPV_KHR_workgroup_memory_explicit_layout");
    return variable;
}

static uint32_t make_word_array(struct ct_gen *g, enum ct_shared_view view)
{
    return ct_gen_global_variable(g, SpvStorageClassWorkgroup,
                                  CT_SPV_INTERN(&g->m, SpvOpTypeArray, 0, view_type(g, view), view_length(g, view)));
}

uint32_t ct_gen_local_array(struct ct_gen *g)
{
    if (!g->local) {
        const uint32_t words = (g->fn->local_bytes + 3) / 4;

        g->local = ct_gen_variable(g, CT_SPV_INTERN(&g->m, SpvOpTypeArray, 0, ct_gen_int_type(g, 32), ct_gen_u32(g, words ? words : 1)));
    }
    return g->local;
}

/* ---- pointers ---- */

/* The index of the item of `bytes` bytes at address + offset. An offset that is a multiple of the size is added after the shift, where
 * it can be folded into the access, and different offsets share the shift: the address is then a multiple, too. */
static uint32_t item_index(struct ct_gen *g, uint32_t address, int64_t offset, unsigned bytes)
{
    const uint32_t type = ct_gen_int_type(g, 32), shift = ct_gen_u32(g, (uint32_t)__builtin_ctz(bytes));
    const bool after = offset % (int64_t)bytes == 0;

    if (offset && !after)
        address = GEN(g, SpvOpIAdd, type, address, ct_gen_u32(g, (uint32_t)offset));
    if (bytes > 1)
        address = GEN(g, SpvOpShiftRightLogical, type, address, shift);
    if (offset && after)
        address = GEN(g, SpvOpIAdd, type, address, ct_gen_u32(g, (uint32_t)(offset / (int64_t)bytes)));
    return address;
}

static uint32_t shared_variable(struct ct_gen *g, enum ct_shared_view view)
{
    if (!g->shared[view])
        g->shared[view] = g->target->shared_explicit_layout ? make_explicit_view(g, view) : make_word_array(g, view);
    return g->shared[view];
}

/* A word of an array of vectors. */
static uint32_t component_pointer(struct ct_gen *g, uint32_t pointer, uint32_t index)
{
    const uint32_t type = ct_gen_int_type(g, 32), count = views[g->words_view].count;
    const uint32_t vector = GEN(g, SpvOpShiftRightLogical, type, index, ct_gen_u32(g, (uint32_t)__builtin_ctz(count)));

    return GEN(g, SpvOpAccessChain, pointer, shared_variable(g, g->words_view), vector,
               GEN(g, SpvOpBitwiseAnd, type, index, ct_gen_u32(g, count - 1)));
}

uint32_t ct_gen_shared_pointer(struct ct_gen *g, enum ct_shared_view view, uint32_t address, int64_t offset)
{
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassWorkgroup, view_type(g, view));
    const uint32_t index = item_index(g, address, offset, views[view].bytes);

    if (g->target->shared_explicit_layout)
        return GEN(g, SpvOpAccessChain, pointer, shared_variable(g, view), ct_gen_u32(g, 0), index);
    if (view == CT_VIEW_32 && g->words_view != CT_VIEW_32)
        return component_pointer(g, pointer, index);
    return GEN(g, SpvOpAccessChain, pointer, shared_variable(g, view), index);
}

static uint32_t pointer_to(struct ct_gen *g, enum ct_space space, enum ct_shared_view view, uint32_t address, int64_t offset)
{
    if (space == CT_SPACE_SHARED)
        return ct_gen_shared_pointer(g, view, address, offset);
    return GEN(g, SpvOpAccessChain, ct_spv_type_pointer(&g->m, SpvStorageClassFunction, ct_gen_int_type(g, 32)), ct_gen_local_array(g),
               item_index(g, address, offset, 4));
}

/* ---- items ---- */

static uint32_t mask_of(const struct ct_insn *insn, enum ct_space space)
{
    if (space != CT_SPACE_SHARED)
        return SpvMemoryAccessMaskNone;
    return SpvMemoryAccessNonPrivatePointerMask | (ct_gen_is_strong(insn) ? SpvMemoryAccessVolatileMask : 0u);
}

/* Volatile and relaxed accesses of whole words in shared memory are atomic. With PTX2SPV_WORKAROUND_HOISTED_LOADS such loads acquire:
 * NVIDIA's driver (580) moves any weaker load of a Workgroup variable, even if it is Volatile or a relaxed atomic one, out of a loop that
 * waits for another warp, and then drops the loop. */
static bool is_atomic(const struct ct_access *access, enum ct_space space, enum ct_shared_view view)
{
    return space == CT_SPACE_SHARED && view == CT_VIEW_32 && ct_gen_is_strong(access->insn);
}

/* A 32-bit item in an array of 64-bit words. */
static bool is_half(const struct ct_gen *g, enum ct_space space, enum ct_shared_view view)
{
    return g->has_wide_words && space == CT_SPACE_SHARED && view == CT_VIEW_32;
}

static uint32_t load_item(struct ct_gen *g, enum ct_space space, const struct ct_access *access, enum ct_shared_view view, int64_t offset)
{
    uint32_t pointer;

    if (is_half(g, space, view))
        return ct_gen_wide_load(g, access->address, offset, ct_gen_scope(g, space, access->insn->scope),
                                ct_gen_semantics(g, ct_gen_is_strong(access->insn) ? PTX_ACQUIRE : PTX_RELAXED));
    pointer = pointer_to(g, space, view, access->address, offset);
    if (is_atomic(access, space, view))
        return GEN(g, SpvOpAtomicLoad, ct_gen_int_type(g, 32), pointer, ct_gen_scope(g, space, access->insn->scope),
                   ct_gen_semantics(g, ct_gen_works_around(g, PTX2SPV_WORKAROUND_HOISTED_LOADS) ? PTX_ACQUIRE : PTX_RELAXED));
    return GEN(g, SpvOpLoad, view_type(g, view), pointer, mask_of(access->insn, space));
}

static uint32_t replace_all(struct ct_gen *g, uint32_t old, const void *user)
{
    (void)g;
    (void)old;
    return *(const uint32_t *)user;
}

/* For an item of 8 or 16 bits: the mask of the bits to keep, and the bits to insert. */
struct part {
    uint32_t others, bits;
};

static uint32_t replace_part(struct ct_gen *g, uint32_t old, const void *user)
{
    const uint32_t type = ct_gen_int_type(g, 32);
    const struct part *part = user;

    return GEN(g, SpvOpBitwiseOr, type, GEN(g, SpvOpBitwiseAnd, type, old, part->others), part->bits);
}

static void store_half(struct ct_gen *g, const struct ct_access *access, int64_t offset,
                       uint32_t (*replace)(struct ct_gen *g, uint32_t old, const void *user), const void *user)
{
    const uint32_t relaxed = ct_gen_semantics(g, PTX_RELAXED);

    ct_gen_wide_update(g, &(struct ct_wide_update){.address = access->address,
                                                   .offset = offset,
                                                   .scope = ct_gen_scope(g, CT_SPACE_SHARED, access->insn->scope),
                                                   .semantics = relaxed,
                                                   .semantics_unequal = relaxed,
                                                   .replace = replace,
                                                   .user = user});
}

static void store_item(struct ct_gen *g, enum ct_space space, const struct ct_access *access, enum ct_shared_view view, int64_t offset,
                       uint32_t id)
{
    uint32_t pointer;

    if (is_half(g, space, view)) {
        store_half(g, access, offset, replace_all, &id);
        return;
    }
    pointer = pointer_to(g, space, view, access->address, offset);
    if (is_atomic(access, space, view))
        GEN_VOID(g, SpvOpAtomicStore, pointer, ct_gen_scope(g, space, access->insn->scope), ct_gen_semantics(g, PTX_RELAXED), id);
    else
        GEN_VOID(g, SpvOpStore, pointer, id, mask_of(access->insn, space));
}

/* The bit offset of a narrow item in its word. */
static uint32_t bit_position(struct ct_gen *g, const struct ct_access *access, int64_t offset)
{
    const uint32_t type = ct_gen_int_type(g, 32);
    uint32_t address = access->address;

    if (offset & 3)
        address = GEN(g, SpvOpIAdd, type, address, ct_gen_u32(g, (uint32_t)(offset & 3)));
    address = GEN(g, SpvOpBitwiseAnd, type, address, ct_gen_u32(g, 3));
    return GEN(g, SpvOpShiftLeftLogical, type, address, ct_gen_u32(g, 3));
}

static uint32_t load_part(struct ct_gen *g, enum ct_space space, const struct ct_access *access, int64_t offset)
{
    const uint32_t word = load_item(g, space, access, CT_VIEW_32, offset);
    const uint32_t down = GEN(g, SpvOpShiftRightLogical, ct_gen_int_type(g, 32), word, bit_position(g, access, offset));

    return ct_gen_resize(g, down, 32, access->bits, false);
}

static void store_part(struct ct_gen *g, enum ct_space space, const struct ct_access *access, int64_t offset, uint32_t id)
{
    const uint32_t type = ct_gen_int_type(g, 32), up = bit_position(g, access, offset);
    const uint32_t ones = GEN(g, SpvOpShiftLeftLogical, type, ct_gen_u32(g, (1u << access->bits) - 1), up);
    const uint32_t others = GEN(g, SpvOpNot, type, ones);
    const uint32_t bits = GEN(g, SpvOpShiftLeftLogical, type, ct_gen_resize(g, id, access->bits, 32, false), up);
    uint32_t pointer;

    if (is_half(g, space, CT_VIEW_32)) {
        store_half(g, access, offset, replace_part, &(struct part){others, bits});
        return;
    }
    pointer = pointer_to(g, space, CT_VIEW_32, access->address, offset);
    if (space == CT_SPACE_SHARED) {
        const uint32_t scope = ct_gen_u32(g, SpvScopeWorkgroup), relaxed = ct_gen_u32(g, SpvMemorySemanticsMaskNone);

        GEN(g, SpvOpAtomicAnd, type, pointer, scope, relaxed, others);
        GEN(g, SpvOpAtomicOr, type, pointer, scope, relaxed, bits);
    } else {
        const uint32_t kept = GEN(g, SpvOpBitwiseAnd, type, GEN(g, SpvOpLoad, type, pointer), others);

        GEN_VOID(g, SpvOpStore, pointer, GEN(g, SpvOpBitwiseOr, type, kept, bits));
    }
}

/* ---- accesses ---- */

static enum ct_shared_view view_of_unit(const struct ct_access *access)
{
    return access->bits == 8 ? CT_VIEW_8 : access->bits == 16 ? CT_VIEW_16 : access->bits == 32 ? CT_VIEW_32 : CT_VIEW_64;
}

/* The view in which the whole access is one vector of words, or CT_VIEW_COUNT. */
static enum ct_shared_view vector_view(const struct ct_gen *g, enum ct_space space, const struct ct_access *access)
{
    const unsigned bytes = access->bits / 8 * access->count;
    const enum ct_shared_view view = bytes == 8 ? CT_VIEW_2X32 : CT_VIEW_4X32;

    if (access->count < 2 || access->bits < 32 || access->align < bytes || (bytes != 8 && bytes != 16))
        return CT_VIEW_COUNT;
    return has_view(g, space, view) ? view : CT_VIEW_COUNT;
}

static uint32_t load_unit(struct ct_gen *g, enum ct_space space, const struct ct_access *access, int64_t offset)
{
    uint32_t words[2];

    if (has_view(g, space, view_of_unit(access)))
        return load_item(g, space, access, view_of_unit(access), offset);
    if (access->bits < 32)
        return load_part(g, space, access, offset);
    if (has_view(g, space, CT_VIEW_2X32))
        return GEN(g, SpvOpBitcast, ct_gen_int_type(g, 64), load_item(g, space, access, CT_VIEW_2X32, offset));
    words[0] = load_item(g, space, access, CT_VIEW_32, offset);
    words[1] = load_item(g, space, access, CT_VIEW_32, offset + 4);
    return ct_gen_pack(g, words, 2, 32);
}

static void store_unit(struct ct_gen *g, enum ct_space space, const struct ct_access *access, int64_t offset, uint32_t id)
{
    uint32_t words[2];

    if (has_view(g, space, view_of_unit(access))) {
        store_item(g, space, access, view_of_unit(access), offset, id);
    } else if (access->bits < 32) {
        store_part(g, space, access, offset, id);
    } else if (has_view(g, space, CT_VIEW_2X32)) {
        store_item(g, space, access, CT_VIEW_2X32, offset, GEN(g, SpvOpBitcast, view_type(g, CT_VIEW_2X32), id));
    } else {
        ct_gen_unpack(g, id, 2, 32, words);
        store_item(g, space, access, CT_VIEW_32, offset, words[0]);
        store_item(g, space, access, CT_VIEW_32, offset + 4, words[1]);
    }
}

void ct_gen_load_words(struct ct_gen *g, enum ct_space space, const struct ct_access *access, uint32_t *units)
{
    const enum ct_shared_view view = vector_view(g, space, access);

    if (view != CT_VIEW_COUNT) {
        const uint32_t unit = ct_gen_int_type(g, access->bits);
        uint32_t vector = load_item(g, space, access, view, access->offset);

        if (access->bits == 64)
            vector = GEN(g, SpvOpBitcast, ct_spv_type_vector(&g->m, unit, access->count), vector);
        for (unsigned i = 0; i < access->count; i++)
            units[i] = GEN(g, SpvOpCompositeExtract, unit, vector, i);
    } else {
        for (unsigned i = 0; i < access->count; i++)
            units[i] = load_unit(g, space, access, access->offset + (int64_t)i * (access->bits / 8));
    }
    ct_gen_order(g, access->insn, space);
}

void ct_gen_store_words(struct ct_gen *g, enum ct_space space, const struct ct_access *access, const uint32_t *units)
{
    const enum ct_shared_view view = vector_view(g, space, access);

    ct_gen_order(g, access->insn, space);
    if (view != CT_VIEW_COUNT) {
        const uint32_t type = ct_spv_type_vector(&g->m, ct_gen_int_type(g, access->bits), access->count);
        uint32_t vector = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, type, units, access->count);

        if (access->bits == 64)
            vector = GEN(g, SpvOpBitcast, view_type(g, view), vector);
        store_item(g, space, access, view, access->offset, vector);
        return;
    }
    for (unsigned i = 0; i < access->count; i++)
        store_unit(g, space, access, access->offset + (int64_t)i * (access->bits / 8), units[i]);
}
