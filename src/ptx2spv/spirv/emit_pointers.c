/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses through pointers: global memory, and in OpenCL also shared and local memory. There is one pointer for each access, then a load
 * or store of a scalar or a vector.
 *
 * Strong accesses of one 32- or 64-bit word of global memory are atomic loads and stores; other strong ones are volatile. */
#include "emit.h"

/* The offset of the window that contains an address, else 0: one comparison per window, without a branch. */
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

uint32_t ct_gen_device_pointer(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t type)
{
    if (offset)
        address = GEN(g, SpvOpIAdd, ct_gen_int_type(g, 64), address, ct_spv_const_int(&g->m, 64, (uint64_t)offset));
    return GEN(g, SpvOpConvertUToPtr, ct_spv_type_pointer(&g->m, g->dialect->global_storage, type), address);
}

/* The pointer rule is applied to the base, so that the constant offset can still be folded into the access. */
uint32_t ct_gen_global_pointer(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t type)
{
    const uint32_t ulong = ct_gen_int_type(g, 64);

    if (g->target->pointer_rule == PTX2SPV_POINTER_OR)
        address = GEN(g, SpvOpBitwiseOr, ulong, address, ct_spv_const_int(&g->m, 64, g->target->pointer_mask));
    if (g->target->pointer_rule == PTX2SPV_POINTER_WINDOWS)
        address = GEN(g, SpvOpIAdd, ulong, address, distance_of(g, address));
    return ct_gen_device_pointer(g, address, offset, type);
}

/* Pointer arithmetic, in which LLVM recognizes adjacent elements where it does not in a sum of integers. */
static uint32_t element_pointer(struct ct_gen *g, uint32_t array, uint32_t distance, int64_t offset, uint32_t type)
{
    const uint32_t bytes = ct_spv_type_pointer(&g->m, g->dialect->global_storage, ct_spv_type_int(&g->m, 8));
    uint32_t at = GEN(g, SpvOpPtrAccessChain, bytes, GEN(g, SpvOpConvertUToPtr, bytes, array), distance);

    if (offset)
        at = GEN(g, SpvOpPtrAccessChain, bytes, at, ct_spv_const_int(&g->m, 64, (uint64_t)offset));
    return GEN(g, SpvOpBitcast, ct_spv_type_pointer(&g->m, g->dialect->global_storage, type), at);
}

/* Vectors have at most four components: longer accesses are divided into pieces. So are vectors that the driver would split: a piece is
 * then a pair of 32-bit units, accessed as one 64-bit integer. */
struct piece {
    struct ct_access access; /* the access of this piece; the address is that of the whole */
    unsigned units;          /* number of units of the whole in this piece */
    uint32_t type;
};

/* Whether LLVM may split the load: one of memory that may change, which is not volatile. */
static bool may_be_split(const struct ct_gen *g, enum ct_space space, const struct ct_insn *insn)
{
    return g->target->vectors == PTX2SPV_VECTORS_LOADS_SPLIT && space == CT_SPACE_GLOBAL && insn->op == CT_OP_LOAD &&
           !ct_gen_is_strong(insn) && !insn->read_only;
}

static bool is_accessed_in_pairs(const struct ct_gen *g, enum ct_space space, const struct ct_access *access)
{
    if (space != CT_SPACE_GLOBAL || access->bits != 32 || access->count < 2 || access->align < 8)
        return false;
    return g->target->vectors == PTX2SPV_VECTORS_SPLIT || (access->count == 2 && may_be_split(g, space, access->insn));
}

static struct piece piece_of(struct ct_gen *g, enum ct_space space, const struct ct_access *access)
{
    struct piece piece = {.access = *access, .units = access->count > 4 ? 4 : access->count};
    unsigned bytes;

    if (is_accessed_in_pairs(g, space, access)) {
        piece.units = 2;
        piece.access.bits = 64;
    }
    piece.access.count = piece.units * access->bits / piece.access.bits;
    bytes = piece.units * access->bits / 8;
    if (piece.units < access->count && access->align > bytes)
        piece.access.align = bytes;
    piece.type = ct_gen_int_type(g, piece.access.bits);
    if (piece.access.count > 1)
        piece.type = ct_spv_type_vector(&g->m, piece.type, piece.access.count);
    return piece;
}

/* The sum that is the address of an access to an element of an array, else NULL. It is in the same block, since outside of the sum's loop
 * its operands may have no ids. */
static const struct ct_insn *element_or_null(const struct ct_gen *g, const struct ct_insn *insn)
{
    const struct ct_insn *def = insn->space == CT_SPACE_GLOBAL && insn->n_operands ? g->fn->values.v[insn->operands[0].i].def : NULL;

    return def && def->is_element && def->block == insn->block && g->target->pointer_rule == PTX2SPV_POINTER_SAME ? def : NULL;
}

static uint32_t piece_pointer(struct ct_gen *g, enum ct_space space, const struct piece *piece, unsigned first)
{
    const int64_t unit_bytes = piece->access.count * piece->access.bits / 8 / piece->units;
    const int64_t offset = piece->access.offset + first * unit_bytes;
    const struct ct_insn *sum = element_or_null(g, piece->access.insn);

    if (piece->access.insn->is_device)
        return ct_gen_device_pointer(g, piece->access.address, offset, piece->type);
    if (sum)
        return element_pointer(g, ct_gen_use(g, sum->operands[0]), ct_gen_use(g, sum->operands[1]), offset, piece->type);
    return g->dialect->pointer(g, space, piece->access.address, offset, piece->type);
}

/* The units of a piece that was loaded. A pair is split by a shift: a bitcast would allow LLVM to load a vector, and then each part of
 * it. */
static void split_piece(struct ct_gen *g, const struct piece *piece, uint32_t loaded, uint32_t *units)
{
    const unsigned bits = piece->access.bits;

    if (piece->units == 1) {
        units[0] = loaded;
    } else if (piece->access.count == 1) {
        units[0] = ct_gen_resize(g, loaded, 64, 32, false);
        units[1] = ct_gen_resize(g, ct_gen_shift_by(g, SpvOpShiftRightLogical, 64, loaded, 32), 64, 32, false);
    } else {
        for (unsigned i = 0; i < piece->units; i++)
            units[i] = GEN(g, SpvOpCompositeExtract, ct_gen_int_type(g, bits), loaded, i);
    }
}

/* It is the highest bit of an address. */
uint32_t ct_gen_opaque_zero(struct ct_gen *g, unsigned bits)
{
    const uint32_t bit = ct_gen_shift_by(g, SpvOpShiftRightLogical, 64, ct_gen_sysval(g, CT_SYS_IMAGE_BASE), 63);

    return ct_gen_resize(g, bit, 64, bits, false);
}

/* LLVM loads the components instead of the vector if the vector is only split up. Therefore the whole vector goes through an exclusive
 * or with an opaque zero. */
static uint32_t keep_whole(struct ct_gen *g, const struct piece *piece, uint32_t loaded)
{
    const uint32_t zero = ct_gen_opaque_zero(g, piece->access.bits), zeros[] = {zero, zero, zero, zero};
    const uint32_t mask = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, piece->type, zeros, piece->access.count);

    return GEN(g, SpvOpBitwiseXor, piece->type, loaded, mask);
}

/* The value to be stored for the units of a piece. */
static uint32_t join_piece(struct ct_gen *g, const struct piece *piece, const uint32_t *units)
{
    if (piece->units == 1)
        return units[0];
    if (piece->access.count == 1)
        return ct_gen_pack(g, units, 2, 32);
    return ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, piece->type, units, piece->units);
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

/* PTX2SPV_WORKAROUND_IDLE_LOADS: where lavapipe knows that all lanes have the same address, it loads once: from the address of the first active lane, or, if no lane
 * is active, from that of an inactive one, which may be null. Therefore a zero is added that the driver takes for a number of each lane's own. It is made of the
 * number of the lane in its subgroup, which the driver does not know even if a block has a single thread. */
static uint32_t hide_common_address(struct ct_gen *g, uint32_t address)
{
    const uint32_t ulong = ct_gen_int_type(g, 64);

    if (!g->lane_zero)
        g->lane_zero = GEN_EARLY(g, SpvOpUConvert, ulong, ct_gen_early_zero_of(g, ct_gen_subgroup_lane(g)));
    return GEN(g, SpvOpIAdd, ulong, address, g->lane_zero);
}

void ct_gen_load_pointed(struct ct_gen *g, enum ct_space space, const struct ct_access *access, uint32_t *units)
{
    struct piece piece = piece_of(g, space, access);

    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_IDLE_LOADS) && g->target->dialect == PTX2SPV_VULKAN &&
        access->insn->block != g->fn->blocks.v[0])
        piece.access.address = hide_common_address(g, piece.access.address);

    for (unsigned first = 0; first < access->count; first += piece.units) {
        uint32_t words[4];
        const uint32_t pointer = piece_pointer(g, space, &piece, first);

        if (is_atomic(g, space, access)) {
            note_atomic(g, access);
            units[0] =
                GEN(g, SpvOpAtomicLoad, piece.type, pointer, ct_gen_scope(g, space, access->insn->scope), ct_gen_semantics(g, PTX_ACQUIRE));
            break;
        }
        words[0] = pointer;
        const uint32_t n_words = g->dialect->memory_operands(g, SpvOpLoad, space, &piece.access, words + 1) + 1;
        uint32_t loaded = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpLoad, piece.type, words, n_words);
        if (piece.access.count > 1 && may_be_split(g, space, access->insn))
            loaded = keep_whole(g, &piece, loaded);
        split_piece(g, &piece, loaded, units + first);
    }
    ct_gen_order(g, access->insn, space);
}

void ct_gen_store_pointed(struct ct_gen *g, enum ct_space space, const struct ct_access *access, const uint32_t *units)
{
    const struct piece piece = piece_of(g, space, access);

    ct_gen_order(g, access->insn, space);
    for (unsigned first = 0; first < access->count; first += piece.units) {
        uint32_t words[5];
        const uint32_t pointer = piece_pointer(g, space, &piece, first);

        if (is_atomic(g, space, access)) {
            note_atomic(g, access);
            GEN_VOID(g, SpvOpAtomicStore, pointer, ct_gen_scope(g, space, access->insn->scope), relaxed(g), units[0]);
            return;
        }
        words[0] = pointer;
        words[1] = join_piece(g, &piece, units + first);
        const uint32_t n_words = g->dialect->memory_operands(g, SpvOpStore, space, &piece.access, words + 2) + 2;
        ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpStore, words, n_words);
    }
}
