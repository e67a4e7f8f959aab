/* SPDX-License-Identifier: Apache-2.0 */
/* Global memory: one conversion of a 64-bit address to a PhysicalStorageBuffer pointer for each access, then a load or store of a scalar
 * or a vector.
 *
 * Vulkan's memory model: an access is NonPrivate, so that barriers and fences order it, unless nobody writes the place while the kernel
 * runs (ld.global.nc). Strong accesses of one 32- or 64-bit word are atomic loads and stores; other strong ones are volatile and made
 * available or visible at their scope. */
#include "emit.h"

/* PTX2SPV_POINTER_OR: the mask goes on the base, so that the constant offset can still fold into the access. */
uint32_t ct_gen_global_pointer(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t type)
{
    const uint32_t ulong = ct_gen_int_type(g, 64);

    if (g->target->pointer_rule == PTX2SPV_POINTER_OR)
        address = GEN(g, SpvOpBitwiseOr, ulong, address, ct_spv_const_int(&g->m, 64, g->target->pointer_mask));
    if (offset)
        address = GEN(g, SpvOpIAdd, ulong, address, ct_spv_const_int(&g->m, 64, (uint64_t)offset));
    return GEN(g, SpvOpConvertUToPtr, ct_spv_type_pointer(&g->m, SpvStorageClassPhysicalStorageBuffer, type), address);
}

static void need_storage(struct ct_gen *g, unsigned bits)
{
    if (bits == 8) {
        ct_gen_need(g, g->target->storage8, "8-bit accesses to global memory");
        ct_spv_capability(&g->m, SpvCapabilityStorageBuffer8BitAccess);
    } else if (bits == 16) {
        ct_gen_need(g, g->target->storage16, "16-bit accesses to global memory");
        ct_spv_capability(&g->m, SpvCapabilityStorageBuffer16BitAccess);
    }
}

/* The memory operands of a load or store that is not atomic. Returns their count. */
static uint32_t memory_operands(struct ct_gen *g, const struct ct_access *access, SpvMemoryAccessMask make, uint32_t *words)
{
    uint32_t mask = SpvMemoryAccessAlignedMask;

    if (!access->insn->read_only)
        mask |= SpvMemoryAccessNonPrivatePointerMask;
    if (ct_gen_is_strong(access->insn))
        mask |= (uint32_t)make | SpvMemoryAccessVolatileMask | SpvMemoryAccessNonPrivatePointerMask;
    words[0] = mask;
    words[1] = access->align;
    if (!ct_gen_is_strong(access->insn))
        return 2;
    words[2] = ct_gen_scope(g, CT_SPACE_GLOBAL, access->insn->scope);
    return 3;
}

/* Vectors have at most four components: longer accesses go in pieces. */
static unsigned piece_of(const struct ct_access *access)
{
    return access->count > 4 ? 4 : access->count;
}

static uint32_t piece_pointer(struct ct_gen *g, const struct ct_access *access, unsigned first, uint32_t *type)
{
    const unsigned n = piece_of(access);

    need_storage(g, access->bits);
    *type = ct_gen_int_type(g, access->bits);
    if (n > 1)
        *type = ct_spv_type_vector(&g->m, *type, n);
    return ct_gen_global_pointer(g, access->address, access->offset + (int64_t)first * (access->bits / 8), *type);
}

static struct ct_access piece_access(const struct ct_access *access)
{
    const unsigned bytes = piece_of(access) * access->bits / 8;
    struct ct_access piece = *access;

    if (access->count > 4 && piece.align > bytes)
        piece.align = bytes;
    return piece;
}

static bool is_atomic(const struct ct_gen *g, const struct ct_access *access)
{
    return ct_gen_is_strong(access->insn) && access->count == 1 &&
           (access->bits == 32 || (access->bits == 64 && g->target->atomic_int64_global));
}

static uint32_t relaxed(struct ct_gen *g)
{
    return ct_gen_u32(g, SpvMemorySemanticsMaskNone);
}

static void note_atomic(struct ct_gen *g, const struct ct_access *access)
{
    if (access->bits == 64)
        ct_spv_capability(&g->m, SpvCapabilityInt64Atomics);
}

void ct_gen_load_global(struct ct_gen *g, const struct ct_access *access, uint32_t *units)
{
    const struct ct_access piece = piece_access(access);
    const unsigned n = piece_of(access);

    for (unsigned first = 0; first < access->count; first += n) {
        uint32_t type, words[4];
        const uint32_t pointer = piece_pointer(g, access, first, &type);

        if (is_atomic(g, access)) {
            note_atomic(g, access);
            units[0] = GEN(g, SpvOpAtomicLoad, type, pointer, ct_gen_scope(g, CT_SPACE_GLOBAL, access->insn->scope), relaxed(g));
            break;
        }
        words[0] = pointer;
        const uint32_t n_words = memory_operands(g, &piece, SpvMemoryAccessMakePointerVisibleMask, words + 1) + 1;
        const uint32_t loaded = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpLoad, type, words, n_words);
        for (unsigned i = 0; i < n; i++)
            units[first + i] = n == 1 ? loaded : GEN(g, SpvOpCompositeExtract, ct_gen_int_type(g, access->bits), loaded, i);
    }
    ct_gen_order(g, access->insn, CT_SPACE_GLOBAL);
}

void ct_gen_store_global(struct ct_gen *g, const struct ct_access *access, const uint32_t *units)
{
    const struct ct_access piece = piece_access(access);
    const unsigned n = piece_of(access);

    ct_gen_order(g, access->insn, CT_SPACE_GLOBAL);
    for (unsigned first = 0; first < access->count; first += n) {
        uint32_t type, words[5];
        const uint32_t pointer = piece_pointer(g, access, first, &type);

        if (is_atomic(g, access)) {
            note_atomic(g, access);
            GEN_VOID(g, SpvOpAtomicStore, pointer, ct_gen_scope(g, CT_SPACE_GLOBAL, access->insn->scope), relaxed(g), units[0]);
            return;
        }
        words[0] = pointer;
        words[1] = n == 1 ? units[first] : ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, type, units + first, n);
        const uint32_t n_words = memory_operands(g, &piece, SpvMemoryAccessMakePointerAvailableMask, words + 2) + 2;
        ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpStore, words, n_words);
    }
}
