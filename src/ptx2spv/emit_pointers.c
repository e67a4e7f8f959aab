/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses through pointers: global memory, and with OpenCL shared and local memory, too. One pointer for each access, then a load or
 * store of a scalar or a vector.
 *
 * Strong accesses of one 32- or 64-bit word of global memory are atomic loads and stores; other strong ones are volatile. */
#include "emit.h"

#include <stddef.h>

_Static_assert(offsetof(struct ptx2spv_target, windows) ==
                   offsetof(struct ptx2spv_target, reserved) + sizeof((struct ptx2spv_target *)0)->reserved,
               "the target's bytes are a key: no padding");

/* The distance of the window that holds an address, else 0: one comparison a window, without a branch. */
static uint32_t distance_of(struct ct_gen *g, uint32_t address)
{
    const uint32_t type = ct_gen_int_type(g, 64), boolean = ct_gen_int_type(g, 1);
    uint32_t distance = ct_spv_const_int(&g->m, 64, 0);

    for (unsigned i = 0; i < PTX2SPV_WINDOWS_MAX && g->target->windows[i].size_bytes; i++) {
        const struct ptx2spv_window *window = &g->target->windows[i];
        const uint32_t place = GEN(g, SpvOpISub, type, address, ct_spv_const_int(&g->m, 64, window->base));
        const uint32_t is_inside = GEN(g, SpvOpULessThan, boolean, place, ct_spv_const_int(&g->m, 64, window->size_bytes));

        distance = GEN(g, SpvOpSelect, type, is_inside, ct_spv_const_int(&g->m, 64, window->distance), distance);
    }
    return distance;
}

/* The rule works on the base, so that the constant offset can still fold into the access. */
uint32_t ct_gen_global_pointer(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t type)
{
    const uint32_t ulong = ct_gen_int_type(g, 64);

    if (g->target->pointer_rule == PTX2SPV_POINTER_OR)
        address = GEN(g, SpvOpBitwiseOr, ulong, address, ct_spv_const_int(&g->m, 64, g->target->pointer_mask));
    if (g->target->pointer_rule == PTX2SPV_POINTER_WINDOWS)
        address = GEN(g, SpvOpIAdd, ulong, address, distance_of(g, address));
    if (offset)
        address = GEN(g, SpvOpIAdd, ulong, address, ct_spv_const_int(&g->m, 64, (uint64_t)offset));
    return GEN(g, SpvOpConvertUToPtr, ct_spv_type_pointer(&g->m, g->dialect->global_storage, type), address);
}

/* Vectors have at most four components: longer accesses go in pieces. */
static unsigned piece_of(const struct ct_access *access)
{
    return access->count > 4 ? 4 : access->count;
}

static uint32_t piece_pointer(struct ct_gen *g, enum ct_space space, const struct ct_access *access, unsigned first, uint32_t *type)
{
    const unsigned n = piece_of(access);

    *type = ct_gen_int_type(g, access->bits);
    if (n > 1)
        *type = ct_spv_type_vector(&g->m, *type, n);
    return g->dialect->pointer(g, space, access->address, access->offset + (int64_t)first * (access->bits / 8), *type);
}

static struct ct_access piece_access(const struct ct_access *access)
{
    const unsigned bytes = piece_of(access) * access->bits / 8;
    struct ct_access piece = *access;

    if (access->count > 4 && piece.align > bytes)
        piece.align = bytes;
    return piece;
}

static bool is_atomic(const struct ct_gen *g, enum ct_space space, const struct ct_access *access)
{
    return space == CT_SPACE_GLOBAL && ct_gen_is_strong(access->insn) && access->count == 1 &&
           (access->bits == 32 || (access->bits == 64 && g->target->atomic_int64_global));
}

/* Loads acquire, so that no driver moves them out of a loop that waits (see emit_words.c). */
static uint32_t relaxed(struct ct_gen *g)
{
    return ct_gen_u32(g, SpvMemorySemanticsMaskNone);
}

static void note_atomic(struct ct_gen *g, const struct ct_access *access)
{
    if (access->bits == 64)
        ct_spv_capability(&g->m, SpvCapabilityInt64Atomics);
}

void ct_gen_load_pointed(struct ct_gen *g, enum ct_space space, const struct ct_access *access, uint32_t *units)
{
    const struct ct_access piece = piece_access(access);
    const unsigned n = piece_of(access);

    for (unsigned first = 0; first < access->count; first += n) {
        uint32_t type, words[4];
        const uint32_t pointer = piece_pointer(g, space, access, first, &type);

        if (is_atomic(g, space, access)) {
            note_atomic(g, access);
            units[0] =
                GEN(g, SpvOpAtomicLoad, type, pointer, ct_gen_scope(g, space, access->insn->scope), ct_gen_semantics(g, PTX_ACQUIRE));
            break;
        }
        words[0] = pointer;
        const uint32_t n_words = g->dialect->memory_operands(g, SpvOpLoad, space, &piece, words + 1) + 1;
        const uint32_t loaded = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpLoad, type, words, n_words);
        for (unsigned i = 0; i < n; i++)
            units[first + i] = n == 1 ? loaded : GEN(g, SpvOpCompositeExtract, ct_gen_int_type(g, access->bits), loaded, i);
    }
    ct_gen_order(g, access->insn, space);
}

void ct_gen_store_pointed(struct ct_gen *g, enum ct_space space, const struct ct_access *access, const uint32_t *units)
{
    const struct ct_access piece = piece_access(access);
    const unsigned n = piece_of(access);

    ct_gen_order(g, access->insn, space);
    for (unsigned first = 0; first < access->count; first += n) {
        uint32_t type, words[5];
        const uint32_t pointer = piece_pointer(g, space, access, first, &type);

        if (is_atomic(g, space, access)) {
            note_atomic(g, access);
            GEN_VOID(g, SpvOpAtomicStore, pointer, ct_gen_scope(g, space, access->insn->scope), relaxed(g), units[0]);
            return;
        }
        words[0] = pointer;
        words[1] = n == 1 ? units[first] : ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, type, units + first, n);
        const uint32_t n_words = g->dialect->memory_operands(g, SpvOpStore, space, &piece, words + 2) + 2;
        ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpStore, words, n_words);
    }
}
