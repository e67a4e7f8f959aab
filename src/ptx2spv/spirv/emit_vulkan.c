/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan dialect: specialization constants, push constants (the system block of cuttle/ptx2spv.h, followed by the parameters),
 * PhysicalStorageBuffer pointers, Vulkan's memory model.
 *
 * Blocks are launched one-dimensional; threadIdx is computed from LocalInvocationId.x, in such a form that constant propagation of the
 * specialization constants reduces it to LocalInvocationId.x for one-dimensional blocks. */
#include "emit.h"
#include "spirv_newer.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <stddef.h>

#define SPIRV_1_6 0x00010600u
#define CHAIN_MAX 12 /* operations between a parameter and the number of a descriptor */

enum { MEMBER_IMAGE, MEMBER_FAULT, MEMBER_PARAMS, MEMBER_NCTAID, MEMBER_CTAID_OFFSET = 6, SYSTEM_MEMBERS = 9 };
static const uint8_t member_offsets[SYSTEM_MEMBERS] = {
    offsetof(struct ptx2spv_system_block, image_address),   offsetof(struct ptx2spv_system_block, fault_address),
    offsetof(struct ptx2spv_system_block, params_address),  offsetof(struct ptx2spv_system_block, nctaid[0]),
    offsetof(struct ptx2spv_system_block, nctaid[1]),       offsetof(struct ptx2spv_system_block, nctaid[2]),
    offsetof(struct ptx2spv_system_block, ctaid_offset[0]), offsetof(struct ptx2spv_system_block, ctaid_offset[1]),
    offsetof(struct ptx2spv_system_block, ctaid_offset[2]),
};
_Static_assert(sizeof(struct ptx2spv_system_block) <= PTX2SPV_PARAMS_OFFSET, "parameters lie after the system block");

/* ---- specialization and push constants ---- */

static void make_spec_constants(struct ct_gen *g)
{
    for (uint32_t i = 0; i < PTX2SPV_SPEC_COUNT; i++) {
        if (i == PTX2SPV_SPEC_GRID_OFFSET)
            g->spec[i] = ct_spv_result(&g->m, CT_SPV_GLOBALS, SpvOpSpecConstantFalse, ct_gen_int_type(g, 1), NULL, 0);
        else
            g->spec[i] = CT_SPV_RESULT(&g->m, CT_SPV_GLOBALS, SpvOpSpecConstant, ct_gen_int_type(g, 32), 1);
        CT_SPV_DECORATE(&g->m, g->spec[i], SpvDecorationSpecId, i);
    }
}

/* The end of the bytes that a PARAM load reads. */
static uint64_t param_end(const struct ct_insn *insn)
{
    if (insn->op != CT_OP_LOAD || insn->space != CT_SPACE_PARAM || insn->offset < 0)
        return 0;
    return (uint64_t)insn->offset + (uint64_t)insn->n_results * ptx_type_bits(insn->type) / 8;
}

/* Only as many words of parameters are declared as are read. */
static uint64_t count_param_words(const struct ct_fn *fn)
{
    uint64_t end = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (param_end(insn) > end)
                end = param_end(insn);
    return (end + 3) / 4;
}

/* Whether the load reads whole aligned pairs of words. */
static bool reads_pairs(const struct ct_insn *insn)
{
    return ptx_type_bits(insn->type) == 64 && insn->offset % 8 == 0;
}

/* Sets which pairs of words are only read as such: usually pointers. They are declared as one member of 64 bits, since ANV (Mesa 25.0) copies
 * to registers what is joined from two, and reads the others where they are. */
static void find_param_pairs(struct ct_gen *g, uint32_t n_words)
{
    const struct ct_fn *fn = g->fn;
    bool *split = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, n_words + 1); /* indexed by word: it is read otherwise */

    g->param_pairs = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, n_words + 1);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint64_t word = (uint64_t)insn->offset / 4; word < (param_end(insn) + 3) / 4; word++) {
                split[word] |= !reads_pairs(insn);
                g->param_pairs[word] |= reads_pairs(insn) && word % 2 == 0;
            }
    for (uint32_t word = 0; word + 1 < n_words; word++)
        g->param_pairs[word] &= !split[word] && !split[word + 1];
}

/* struct { u64 image, fault, params; u32 nctaid[3], ctaid_offset[3]; } and the parameters, word by word or in pairs. */
static void make_push_constants(struct ct_gen *g, uint32_t n_words)
{
    const uint32_t uint = ct_gen_int_type(g, 32), ulong = ct_gen_int_type(g, 64);
    const uint32_t most = SYSTEM_MEMBERS + n_words;
    uint32_t *types = CT_ARENA_ARRAY(&g->fn->compilation->scratch, uint32_t, most), n = SYSTEM_MEMBERS, block;
    uint32_t *offsets = CT_ARENA_ARRAY(&g->fn->compilation->scratch, uint32_t, most);

    g->param_members = CT_ARENA_ARRAY(&g->fn->compilation->scratch, uint32_t, n_words + 1);
    for (uint32_t i = 0; i < SYSTEM_MEMBERS; i++) {
        types[i] = i <= MEMBER_PARAMS ? ulong : uint;
        offsets[i] = member_offsets[i];
    }
    for (uint32_t word = 0; word < n_words && !g->fn->params_in_buffer; word += g->param_pairs[word] ? 2 : 1) {
        g->param_members[word] = n;
        types[n] = g->param_pairs[word] ? ulong : uint;
        offsets[n++] = PTX2SPV_PARAMS_OFFSET + 4 * word;
    }
    block = ct_spv_result(&g->m, CT_SPV_GLOBALS, SpvOpTypeStruct, 0, types, n);
    ct_spv_decorate(&g->m, block, SpvDecorationBlock, NULL, 0);
    for (uint32_t i = 0; i < n; i++)
        CT_SPV_EMIT(&g->m, CT_SPV_DECORATIONS, SpvOpMemberDecorate, block, i, SpvDecorationOffset, offsets[i]);
    g->push_constants = ct_gen_global_variable(g, SpvStorageClassPushConstant, block);
}

static uint32_t system_member(struct ct_gen *g, uint32_t member)
{
    const uint32_t type = ct_gen_int_type(g, member <= MEMBER_PARAMS ? 64 : 32);
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassPushConstant, type);

    return GEN_EARLY(g, SpvOpLoad, type, GEN_EARLY(g, SpvOpAccessChain, pointer, g->push_constants, ct_gen_u32(g, member)));
}

/* ---- system values ---- */

static uint32_t builtin_component(struct ct_gen *g, uint32_t *variable, SpvBuiltIn which, uint32_t component)
{
    const uint32_t uint = ct_gen_int_type(g, 32);
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassInput, uint);

    if (!*variable) {
        *variable = ct_gen_global_variable(g, SpvStorageClassInput, ct_spv_type_vector(&g->m, uint, 3));
        CT_SPV_DECORATE(&g->m, *variable, SpvDecorationBuiltIn, which);
    }
    return GEN_EARLY(g, SpvOpLoad, uint, GEN_EARLY(g, SpvOpAccessChain, pointer, *variable, ct_gen_u32(g, component)));
}

static uint32_t spec_is_one(struct ct_gen *g, enum ptx2spv_spec_constant which)
{
    return CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, ct_gen_int_type(g, 1), SpvOpIEqual, g->spec[which], ct_gen_u32(g, 1));
}

/* With n = LocalInvocationId.x: x = n % X, y = n / X % Y, z = n / (X * Y). */
static uint32_t thread_index(struct ct_gen *g, enum ct_sysval which)
{
    const uint32_t uint = ct_gen_int_type(g, 32), n = ct_gen_sysval(g, CT_SYS_TID_LINEAR), zero = ct_gen_u32(g, 0);
    const uint32_t x = g->spec[PTX2SPV_SPEC_BLOCK_X], y = g->spec[PTX2SPV_SPEC_BLOCK_Y];
    const uint32_t flat_y = spec_is_one(g, PTX2SPV_SPEC_BLOCK_Y), flat_z = spec_is_one(g, PTX2SPV_SPEC_BLOCK_Z);

    if (which == CT_SYS_TID_X) {
        const uint32_t flat = CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, ct_gen_int_type(g, 1), SpvOpLogicalAnd, flat_y, flat_z);

        return GEN_EARLY(g, SpvOpSelect, uint, flat, n, GEN_EARLY(g, SpvOpUMod, uint, n, x));
    }
    if (which == CT_SYS_TID_Y) {
        const uint32_t rows = GEN_EARLY(g, SpvOpUDiv, uint, n, x);
        const uint32_t row = GEN_EARLY(g, SpvOpSelect, uint, flat_z, rows, GEN_EARLY(g, SpvOpUMod, uint, rows, y));

        return GEN_EARLY(g, SpvOpSelect, uint, flat_y, zero, row);
    }
    const uint32_t plane = CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, uint, SpvOpIMul, x, y);
    return GEN_EARLY(g, SpvOpSelect, uint, flat_z, zero, GEN_EARLY(g, SpvOpUDiv, uint, n, plane));
}

static uint32_t block_index(struct ct_gen *g, uint32_t component)
{
    const uint32_t uint = ct_gen_int_type(g, 32);
    const uint32_t id = builtin_component(g, &g->workgroup_id, SpvBuiltInWorkgroupId, component);
    const uint32_t offset = system_member(g, MEMBER_CTAID_OFFSET + component);

    return GEN_EARLY(g, SpvOpIAdd, uint, id, GEN_EARLY(g, SpvOpSelect, uint, g->spec[PTX2SPV_SPEC_GRID_OFFSET], offset, ct_gen_u32(g, 0)));
}

static uint32_t vulkan_sysval(struct ct_gen *g, enum ct_sysval which)
{
    const uint32_t uint = ct_gen_int_type(g, 32);

    switch (which) {
    case CT_SYS_TID_X:
    case CT_SYS_TID_Y:
    case CT_SYS_TID_Z:
        return thread_index(g, which);
    case CT_SYS_NTID_X:
    case CT_SYS_NTID_Y:
    case CT_SYS_NTID_Z:
        return g->spec[PTX2SPV_SPEC_BLOCK_X + (which - CT_SYS_NTID_X)];
    case CT_SYS_CTAID_X:
    case CT_SYS_CTAID_Y:
    case CT_SYS_CTAID_Z:
        return block_index(g, which - CT_SYS_CTAID_X);
    case CT_SYS_NCTAID_X:
    case CT_SYS_NCTAID_Y:
    case CT_SYS_NCTAID_Z:
        return system_member(g, MEMBER_NCTAID + (which - CT_SYS_NCTAID_X));
    case CT_SYS_TID_LINEAR:
        return builtin_component(g, &g->local_id, SpvBuiltInLocalInvocationId, 0);
    case CT_SYS_BLOCK_THREADS:
        return g->spec[PTX2SPV_SPEC_BLOCK_THREADS];
    case CT_SYS_SHARED_BYTES:
    case CT_SYS_EXCHANGE_BASE:
        return CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, uint, SpvOpIMul, g->spec[PTX2SPV_SPEC_SHARED_WORDS], ct_gen_u32(g, 4));
    case CT_SYS_IMAGE_BASE:
        return system_member(g, MEMBER_IMAGE);
    case CT_SYS_FAULT_BASE:
        return system_member(g, MEMBER_FAULT);
    case CT_SYS_PARAM_BASE:
        return system_member(g, MEMBER_PARAMS);
    default: /* those that ct_gen_sysval handles for both dialects */
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "system value %d", (int)which);
        return ct_gen_u32(g, 0);
    }
}

/* ---- parameters ---- */

/* One word, or a pair. */
static uint32_t param_words(struct ct_gen *g, uint32_t word, unsigned bits)
{
    const uint32_t type = ct_gen_int_type(g, bits), pointer = ct_spv_type_pointer(&g->m, SpvStorageClassPushConstant, type);

    if (g->fn->params_in_buffer)
        return GEN(g, SpvOpLoad, type, ct_gen_global_pointer(g, ct_gen_sysval(g, CT_SYS_PARAM_BASE), (int64_t)word * 4, type),
                   SpvMemoryAccessAlignedMask, bits / 8);
    return GEN(g, SpvOpLoad, type, GEN(g, SpvOpAccessChain, pointer, g->push_constants, ct_gen_u32(g, g->param_members[word])));
}

/* 32 bits from any byte offset on, of which only `bytes` are needed: words after them are not read. */
static uint32_t param_bits(struct ct_gen *g, uint32_t offset, unsigned bytes)
{
    const uint32_t uint = ct_gen_int_type(g, 32), skipped = offset % 4;
    uint32_t low = param_words(g, offset / 4, 32), high;

    if (skipped)
        low = GEN(g, SpvOpShiftRightLogical, uint, low, ct_gen_u32(g, 8 * skipped));
    if (skipped + bytes <= 4)
        return low;
    high = GEN(g, SpvOpShiftLeftLogical, uint, param_words(g, offset / 4 + 1, 32), ct_gen_u32(g, 8 * (4 - skipped)));
    return GEN(g, SpvOpBitwiseOr, uint, low, high);
}

static uint32_t vulkan_param(struct ct_gen *g, uint32_t offset, unsigned bits)
{
    uint32_t parts[2];

    if (g->param_pairs[offset / 4])
        return param_words(g, offset / 4, 64);
    parts[0] = param_bits(g, offset, bits < 32 ? bits / 8 : 4);
    if (bits < 64)
        return ct_gen_resize(g, parts[0], 32, bits, false);
    parts[1] = param_bits(g, offset + 4, 4);
    return ct_gen_pack(g, parts, 2, 32);
}

/* ---- memory ---- */

/* Shared and local memory have no pointers (emit_words.c). */
static uint32_t vulkan_pointer(struct ct_gen *g, enum ct_space space, uint32_t address, int64_t offset, uint32_t type)
{
    if (space != CT_SPACE_GLOBAL)
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "pointer in space %d", (int)space);
    return ct_gen_global_pointer(g, address, offset, type);
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

/* An access is NonPrivate, so that barriers and fences order it, unless the location does not change while the kernel runs
 * (ld.global.nc). A strong access is made available or visible at its scope. */
static uint32_t vulkan_memory_operands(struct ct_gen *g, SpvOp op, enum ct_space space, const struct ct_access *access, uint32_t *words)
{
    const SpvMemoryAccessMask make = op == SpvOpLoad ? SpvMemoryAccessMakePointerVisibleMask : SpvMemoryAccessMakePointerAvailableMask;

    need_storage(g, access->bits);
    words[0] = SpvMemoryAccessAlignedMask;
    words[1] = access->align;
    if (!access->insn->read_only)
        words[0] |= SpvMemoryAccessNonPrivatePointerMask;
    if (!ct_gen_is_strong(access->insn))
        return 2;
    words[0] |= (uint32_t)make | SpvMemoryAccessVolatileMask | SpvMemoryAccessNonPrivatePointerMask;
    words[2] = ct_gen_scope(g, space, access->insn->scope);
    return 3;
}

/* cta is Workgroup; gpu and sys are Device (there is no wider one), or QueueFamily where the device lacks Device scope. */
static uint32_t vulkan_scope(struct ct_gen *g, enum ct_space space, uint8_t scope)
{
    if (space == CT_SPACE_SHARED || scope == PTX_CTA)
        return ct_gen_u32(g, SpvScopeWorkgroup);
    if (!g->target->memory_model_device_scope)
        return ct_gen_u32(g, SpvScopeQueueFamily);
    ct_spv_capability(&g->m, SpvCapabilityVulkanMemoryModelDeviceScope);
    return ct_gen_u32(g, SpvScopeDevice);
}

/* MakeAvailable and MakeVisible: without them Vulkan's memory model gives no availability or visibility. It has no sequential
 * consistency: acquire-release is used. */
static uint32_t vulkan_semantics(struct ct_gen *g, uint8_t semantics)
{
    const uint32_t memory = SpvMemorySemanticsUniformMemoryMask | SpvMemorySemanticsWorkgroupMemoryMask;
    const uint32_t visible = SpvMemorySemanticsMakeVisibleMask, available = SpvMemorySemanticsMakeAvailableMask;

    switch (semantics) {
    case PTX_ACQUIRE:
        return ct_gen_u32(g, SpvMemorySemanticsAcquireMask | memory | visible);
    case PTX_RELEASE:
        return ct_gen_u32(g, SpvMemorySemanticsReleaseMask | memory | available);
    case PTX_ACQ_REL:
    case PTX_SC:
        return ct_gen_u32(g, SpvMemorySemanticsAcquireReleaseMask | memory | visible | available);
    default:
        return ct_gen_u32(g, SpvMemorySemanticsMaskNone); /* relaxed, volatile, mmio */
    }
}

/* ---- integers ---- */

static uint32_t vulkan_multiply_high(struct ct_gen *g, unsigned bits, bool is_signed, uint32_t a, uint32_t b)
{
    const uint32_t type = ct_gen_int_type(g, bits), pair = CT_SPV_INTERN(&g->m, SpvOpTypeStruct, 0, type, type);

    return GEN(g, SpvOpCompositeExtract, type, GEN(g, is_signed ? SpvOpSMulExtended : SpvOpUMulExtended, pair, a, b), 1);
}

/* 31 - index of the highest set bit; FindUMsb of 0 is -1. */
static uint32_t vulkan_leading_zeros(struct ct_gen *g, uint32_t x)
{
    const uint32_t type = ct_gen_int_type(g, 32);
    const uint32_t highest = GEN(g, SpvOpExtInst, type, g->m.extended, GLSLstd450FindUMsb, x);

    return GEN(g, SpvOpISub, type, ct_gen_u32(g, 31), highest);
}

static uint32_t vulkan_reverse_bits(struct ct_gen *g, uint32_t x)
{
    return GEN(g, SpvOpBitReverse, ct_gen_int_type(g, 32), x);
}

/* ---- textures that are images (PTX2SPV_IMAGE_DESCRIPTORS): the array of descriptors of a shape is declared once for each type of channels, with
 * the same binding. A handle may differ between the lanes, so the index is not uniform unless it depends on parameters only. ---- */

static enum ptx2spv_image_channels channels_of(const struct ct_insn *insn)
{
    return insn->type == PTX_F32 ? PTX2SPV_IMAGE_FLOAT : insn->type == PTX_S32 ? PTX2SPV_IMAGE_SIGNED : PTX2SPV_IMAGE_UNSIGNED;
}

/* Integers have no sign elsewhere, but Vulkan compares that of the image's format. */
static uint32_t channel_type(struct ct_gen *g, enum ptx2spv_image_channels channels)
{
    return channels == PTX2SPV_IMAGE_FLOAT    ? ct_gen_float_type(g, 32)
           : channels == PTX2SPV_IMAGE_SIGNED ? CT_SPV_INTERN(&g->m, SpvOpTypeInt, 0, 32, 1)
                                              : ct_gen_int_type(g, 32);
}

static uint32_t image_type(struct ct_gen *g, enum ptx2spv_image_shape shape, enum ptx2spv_image_channels channels)
{
    return CT_SPV_INTERN(&g->m, SpvOpTypeImage, 0, channel_type(g, channels), shape == PTX2SPV_IMAGE_VOLUME ? SpvDim3D : SpvDim2D, 0,
                         shape == PTX2SPV_IMAGE_LAYERS, 0, 1, SpvImageFormatUnknown);
}

static uint32_t sampled_type(struct ct_gen *g, enum ptx2spv_image_shape shape, enum ptx2spv_image_channels channels)
{
    return CT_SPV_INTERN(&g->m, SpvOpTypeSampledImage, 0, image_type(g, shape, channels));
}

static uint32_t descriptors(struct ct_gen *g, enum ptx2spv_image_shape shape, enum ptx2spv_image_channels channels)
{
    uint32_t *array = &g->images[shape][channels];

    if (*array)
        return *array;
    ct_spv_capability(&g->m, SpvCapabilitySampledImageArrayDynamicIndexing);
    ct_spv_capability(&g->m, SpvCapabilityShaderNonUniform);
    ct_spv_capability(&g->m, SpvCapabilitySampledImageArrayNonUniformIndexing);
    *array = ct_gen_global_variable(
        g, SpvStorageClassUniformConstant,
        CT_SPV_INTERN(&g->m, SpvOpTypeArray, 0, sampled_type(g, shape, channels), ct_gen_u32(g, PTX2SPV_IMAGE_DESCRIPTORS)));
    CT_SPV_DECORATE(&g->m, *array, SpvDecorationDescriptorSet, 0);
    CT_SPV_DECORATE(&g->m, *array, SpvDecorationBinding, (uint32_t)shape);
    g->fn->uses_images = true;
    return *array;
}

/* Whether a value is the same in all threads of a launch, since it depends on parameters and constants only. */
static bool is_uniform(const struct ct_gen *g, ct_value value, unsigned depth)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;

    if (!def || !depth || def->op == CT_OP_PHI || def->op == CT_OP_UNDEF)
        return false;
    if (def->op == CT_OP_LOAD && def->space == CT_SPACE_PARAM)
        return true;
    if (def->op == CT_OP_SYSVAL)
        return def->sreg == CT_SYS_IMAGE_BASE;
    if (!(ct_op_infos[def->op].flags & CT_OPF_PURE) && !(def->op == CT_OP_LOAD && def->space == CT_SPACE_GLOBAL && def->read_only))
        return false;
    for (uint32_t i = 0; i < def->n_operands; i++)
        if (!is_uniform(g, def->operands[i], depth - 1))
            return false;
    return true;
}

/* Marks what depends on the index of a descriptor, if that may vary. lavapipe takes a third less time without a loop over the lanes. */
static void mark_varying(struct ct_gen *g, ct_value index, uint32_t id)
{
    if (!is_uniform(g, index, CHAIN_MAX))
        ct_spv_decorate(&g->m, id, SpvDecorationNonUniform, NULL, 0);
}

static uint32_t load_descriptor(struct ct_gen *g, const struct ct_insn *insn, enum ptx2spv_image_channels channels)
{
    const enum ptx2spv_image_shape shape = (enum ptx2spv_image_shape)insn->imm;
    const ct_value index = insn->operands[0];
    const uint32_t type = sampled_type(g, shape, channels), array = descriptors(g, shape, channels);
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassUniformConstant, type);
    const uint32_t number =
        GEN(g, SpvOpCopyObject, ct_gen_int_type(g, 32), ct_gen_use(g, index)); /* which is decorated for this access only */
    const uint32_t at = GEN(g, SpvOpAccessChain, pointer, array, number), image = GEN(g, SpvOpLoad, type, at);

    mark_varying(g, index, number);
    mark_varying(g, index, at);
    mark_varying(g, index, image);
    return image;
}

static void vulkan_sample(struct ct_gen *g, const struct ct_insn *insn)
{
    const enum ptx2spv_image_channels channels = channels_of(insn);
    const uint32_t uint = ct_gen_int_type(g, 32), real = ct_gen_float_type(g, 32);
    const uint32_t x = ct_gen_use(g, insn->operands[1]), y = ct_gen_use(g, insn->operands[2]), z = ct_gen_use(g, insn->operands[3]);
    const bool is_plane = insn->imm == PTX2SPV_IMAGE_PLANE;
    const uint32_t type = ct_spv_type_vector(&g->m, uint, is_plane ? 2 : 3);
    const uint32_t place = is_plane ? GEN(g, SpvOpCompositeConstruct, type, x, y) : GEN(g, SpvOpCompositeConstruct, type, x, y, z);
    const uint32_t at = GEN(g, SpvOpBitcast, ct_spv_type_vector(&g->m, real, is_plane ? 2 : 3), place);
    const uint32_t level = GEN(g, SpvOpBitcast, real, ct_gen_use(g, insn->operands[4]));
    const uint32_t image = load_descriptor(g, insn, channels);
    const uint32_t texel = GEN(g, SpvOpImageSampleExplicitLod, ct_spv_type_vector(&g->m, channel_type(g, channels), 4), image, at,
                               SpvImageOperandsLodMask, level);

    for (uint32_t i = 0; i < insn->n_results; i++) {
        const uint32_t channel = GEN(g, SpvOpCompositeExtract, channel_type(g, channels), texel, i);

        ct_gen_define(g, insn->results[i], channels == PTX2SPV_IMAGE_UNSIGNED ? channel : GEN(g, SpvOpBitcast, uint, channel));
    }
}

static void vulkan_image_size(struct ct_gen *g, const struct ct_insn *insn)
{
    const enum ptx2spv_image_shape shape = (enum ptx2spv_image_shape)insn->imm;
    const enum ptx2spv_image_channels channels = channels_of(insn);
    const uint32_t uint = ct_gen_int_type(g, 32), sampled = load_descriptor(g, insn, channels);
    const uint32_t image = GEN(g, SpvOpImage, image_type(g, shape, channels), sampled);
    const uint32_t n = shape == PTX2SPV_IMAGE_PLANE ? 2 : 3;
    uint32_t size;

    mark_varying(g, insn->operands[0], image);
    ct_spv_capability(&g->m, SpvCapabilityImageQuery);
    size = GEN(g, SpvOpImageQuerySizeLod, ct_spv_type_vector(&g->m, uint, n), image, ct_gen_u32(g, 0));
    for (uint32_t i = 0; i < insn->n_results; i++)
        ct_gen_define(g, insn->results[i], i < n ? GEN(g, SpvOpCompositeExtract, uint, size, i) : ct_gen_u32(g, 1));
}

/* ---- the function ---- */

static void vulkan_begin(struct ct_gen *g)
{
    const uint64_t n_words = count_param_words(g->fn);
    const uint32_t of_void = ct_spv_type_void(&g->m), type = CT_SPV_INTERN(&g->m, SpvOpTypeFunction, 0, of_void);

    g->fn->linear_block = true;
    if (PTX2SPV_PARAMS_OFFSET + n_words * 4 > g->target->push_constant_bytes)
        g->fn->params_in_buffer = true;
    ct_spv_capability(&g->m, SpvCapabilityShader);
    ct_spv_capability(&g->m, SpvCapabilityPhysicalStorageBufferAddresses);
    ct_spv_capability(&g->m, SpvCapabilityVulkanMemoryModel);
    make_spec_constants(g);
    find_param_pairs(g, (uint32_t)n_words);
    make_push_constants(g, (uint32_t)n_words);
    g->entry = CT_SPV_RESULT(&g->m, CT_SPV_VARIABLES, SpvOpFunction, of_void, SpvFunctionControlMaskNone, type);
}

static void vulkan_end(struct ct_gen *g)
{
    CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionModeId, g->entry, SpvExecutionModeLocalSizeId, g->spec[PTX2SPV_SPEC_BLOCK_THREADS],
                ct_gen_u32(g, 1), ct_gen_u32(g, 1));
    ct_gen_float_modes(g);
    /* Only useful with subgroup instructions; the validators of the oldest SDK do not know it. */
    if (g->target->maximal_reconvergence && g->target->warp_form == PTX2SPV_WARP_NATIVE) {
        ct_spv_extension(&g->m, "SPV_KHR_maximal_reconvergence");
        CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionMode, g->entry, CT_SPV_EXECUTION_MODE_MAXIMALLY_RECONVERGES_KHR);
    }
}

static const uint16_t vulkan_extended[CT_EXT_COUNT] = {
#define EXT(id, glsl, opencl) [CT_EXT_##id] = GLSLstd450##glsl,
#include "emit_ext.def"
};

const struct ct_dialect ct_dialect_vulkan = {
    .environment = {.version = SPIRV_1_6,
                    .extended_set = "GLSL.std.450",
                    .addressing = SpvAddressingModelPhysicalStorageBuffer64,
                    .memory = SpvMemoryModelVulkan},
    .execution_model = SpvExecutionModelGLCompute,
    .extended = vulkan_extended,
    .global_storage = SpvStorageClassPhysicalStorageBuffer,
    .decorates_no_contraction = true,
    .begin = vulkan_begin,
    .end = vulkan_end,
    .sysval = vulkan_sysval,
    .param = vulkan_param,
    .pointer = vulkan_pointer,
    .memory_operands = vulkan_memory_operands,
    .scope = vulkan_scope,
    .semantics = vulkan_semantics,
    .multiply_high = vulkan_multiply_high,
    .leading_zeros = vulkan_leading_zeros,
    .reverse_bits = vulkan_reverse_bits,
    .sample = vulkan_sample,
    .image_size = vulkan_image_size,
};
