/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point ("main") and what a kernel reads of its surroundings: specialization constants, push constants (the system block of
 * cuttle/ptx2spv.h and the parameters behind it), built-in variables.
 *
 * System values are computed once, at the start of the function (the PROLOGUE section), when something first asks for them. Blocks are
 * launched one-dimensional; threadIdx is worked out from LocalInvocationId.x, written so that a driver which knows the specialization
 * constants is left with LocalInvocationId.x itself for one-dimensional blocks. */
#include "emit.h"
#include "spirv_newer.h"

#include <stddef.h>

enum { MEMBER_IMAGE, MEMBER_FAULT, MEMBER_PARAMS, MEMBER_NCTAID, MEMBER_CTAID_OFFSET = 6, MEMBER_WORDS = 9 };
static const uint8_t member_offsets[] = {
    offsetof(struct ptx2spv_system_block, image_address),    offsetof(struct ptx2spv_system_block, fault_address),
    offsetof(struct ptx2spv_system_block, params_address),   offsetof(struct ptx2spv_system_block, nctaid[0]),
    offsetof(struct ptx2spv_system_block, nctaid[1]),        offsetof(struct ptx2spv_system_block, nctaid[2]),
    offsetof(struct ptx2spv_system_block, ctaid_offset[0]),  offsetof(struct ptx2spv_system_block, ctaid_offset[1]),
    offsetof(struct ptx2spv_system_block, ctaid_offset[2]),  PTX2SPV_PARAMS_OFFSET,
};
_Static_assert(sizeof(struct ptx2spv_system_block) <= PTX2SPV_PARAMS_OFFSET, "parameters lie behind the system block");

/* Code at the function's start. */
#define EARLY(g, op, type, ...) CT_SPV_RESULT(&(g)->m, CT_SPV_PROLOGUE, op, type, __VA_ARGS__)

uint32_t ct_gen_global_variable(struct ct_gen *g, SpvStorageClass storage, uint32_t type)
{
    const uint32_t id =
        CT_SPV_RESULT(&g->m, CT_SPV_GLOBALS, SpvOpVariable, ct_spv_type_pointer(&g->m, storage, type), storage);

    *CT_PUSH(&g->fn->compilation->scratch, &g->interface) = id;
    return id;
}

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

/* Bytes that a PARAM load reads up to. */
static uint64_t param_end(const struct ct_insn *insn)
{
    if (insn->op != CT_OP_LOAD || insn->space != CT_SPACE_PARAM || insn->offset < 0)
        return 0;
    return (uint64_t)insn->offset + (uint64_t)insn->n_results * ptx_type_bits(insn->type) / 8;
}

/* As many words of parameters are declared as are read. */
static uint64_t count_param_words(const struct ct_fn *fn)
{
    uint64_t end = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (param_end(insn) > end)
                end = param_end(insn);
    return (end + 3) / 4;
}

/* struct { u64 image, fault, params; u32 nctaid[3], ctaid_offset[3], words[]; }, the arrays of three as single members. */
static void make_push_constants(struct ct_gen *g, uint32_t n_words)
{
    const uint32_t uint = ct_gen_int_type(g, 32), ulong = ct_gen_int_type(g, 64);
    const bool has_params = n_words && !g->fn->params_in_buffer;
    uint32_t members[] = {ulong, ulong, ulong, uint, uint, uint, uint, uint, uint, 0}, block;

    if (has_params) {
        members[MEMBER_WORDS] = CT_SPV_RESULT(&g->m, CT_SPV_GLOBALS, SpvOpTypeArray, 0, uint, ct_gen_u32(g, n_words));
        CT_SPV_DECORATE(&g->m, members[MEMBER_WORDS], SpvDecorationArrayStride, 4);
    }
    block = ct_spv_result(&g->m, CT_SPV_GLOBALS, SpvOpTypeStruct, 0, members, has_params ? MEMBER_WORDS + 1 : MEMBER_WORDS);
    ct_spv_decorate(&g->m, block, SpvDecorationBlock, NULL, 0);
    for (uint32_t i = 0; i < (has_params ? MEMBER_WORDS + 1u : MEMBER_WORDS); i++)
        CT_SPV_EMIT(&g->m, CT_SPV_DECORATIONS, SpvOpMemberDecorate, block, i, SpvDecorationOffset, member_offsets[i]);
    g->push_constants = ct_gen_global_variable(g, SpvStorageClassPushConstant, block);
}

static uint32_t system_member(struct ct_gen *g, uint32_t member)
{
    const uint32_t type = ct_gen_int_type(g, member <= MEMBER_PARAMS ? 64 : 32);
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassPushConstant, type);

    return EARLY(g, SpvOpLoad, type, EARLY(g, SpvOpAccessChain, pointer, g->push_constants, ct_gen_u32(g, member)));
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
    return EARLY(g, SpvOpLoad, uint, EARLY(g, SpvOpAccessChain, pointer, *variable, ct_gen_u32(g, component)));
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

        return EARLY(g, SpvOpSelect, uint, flat, n, EARLY(g, SpvOpUMod, uint, n, x));
    }
    if (which == CT_SYS_TID_Y) {
        const uint32_t rows = EARLY(g, SpvOpUDiv, uint, n, x);
        const uint32_t row = EARLY(g, SpvOpSelect, uint, flat_z, rows, EARLY(g, SpvOpUMod, uint, rows, y));

        return EARLY(g, SpvOpSelect, uint, flat_y, zero, row);
    }
    const uint32_t plane = CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, uint, SpvOpIMul, x, y);
    return EARLY(g, SpvOpSelect, uint, flat_z, zero, EARLY(g, SpvOpUDiv, uint, n, plane));
}

static uint32_t block_index(struct ct_gen *g, uint32_t component)
{
    const uint32_t uint = ct_gen_int_type(g, 32);
    const uint32_t id = builtin_component(g, &g->workgroup_id, SpvBuiltInWorkgroupId, component);
    const uint32_t offset = system_member(g, MEMBER_CTAID_OFFSET + component);

    return EARLY(g, SpvOpIAdd, uint, id, EARLY(g, SpvOpSelect, uint, g->spec[PTX2SPV_SPEC_GRID_OFFSET], offset, ct_gen_u32(g, 0)));
}

static uint32_t compute_sysval(struct ct_gen *g, enum ct_sysval which)
{
    const uint32_t uint = ct_gen_int_type(g, 32);

    switch (which) {
    case CT_SYS_TID_X:
    case CT_SYS_TID_Y:
    case CT_SYS_TID_Z: return thread_index(g, which);
    case CT_SYS_NTID_X:
    case CT_SYS_NTID_Y:
    case CT_SYS_NTID_Z: return g->spec[PTX2SPV_SPEC_BLOCK_X + (which - CT_SYS_NTID_X)];
    case CT_SYS_CTAID_X:
    case CT_SYS_CTAID_Y:
    case CT_SYS_CTAID_Z: return block_index(g, which - CT_SYS_CTAID_X);
    case CT_SYS_NCTAID_X:
    case CT_SYS_NCTAID_Y:
    case CT_SYS_NCTAID_Z: return system_member(g, MEMBER_NCTAID + (which - CT_SYS_NCTAID_X));
    case CT_SYS_TID_LINEAR: return builtin_component(g, &g->local_id, SpvBuiltInLocalInvocationId, 0);
    case CT_SYS_BLOCK_THREADS: return g->spec[PTX2SPV_SPEC_BLOCK_THREADS];
    case CT_SYS_LANEID: return EARLY(g, SpvOpBitwiseAnd, uint, ct_gen_sysval(g, CT_SYS_TID_LINEAR), ct_gen_u32(g, 31));
    /* Vulkan tells nothing about multiprocessors: the device looks as if it had one. */
    case CT_SYS_SMID: return ct_gen_u32(g, 0);
    case CT_SYS_NSMID: return ct_gen_u32(g, 1);
    case CT_SYS_SHARED_BYTES:
    case CT_SYS_EXCHANGE_BASE:
        return CT_SPV_INTERN(&g->m, SpvOpSpecConstantOp, uint, SpvOpIMul, g->spec[PTX2SPV_SPEC_SHARED_WORDS], ct_gen_u32(g, 4));
    case CT_SYS_IMAGE_BASE: return system_member(g, MEMBER_IMAGE);
    case CT_SYS_FAULT_BASE: return system_member(g, MEMBER_FAULT);
    case CT_SYS_PARAM_BASE: return system_member(g, MEMBER_PARAMS);
    case CT_SYS_NONE:
    case CT_SYS_COUNT: break;
    }
    ct_gen_refuse(g, PTX2SPV_INTERNAL, "system value %d", (int)which);
    return ct_gen_u32(g, 0);
}

uint32_t ct_gen_sysval(struct ct_gen *g, enum ct_sysval which)
{
    if (!g->sysvals[which])
        g->sysvals[which] = compute_sysval(g, which);
    return g->sysvals[which];
}

void ct_gen_clock(struct ct_gen *g, const struct ct_insn *insn)
{
    const bool in_subgroup = g->target->shader_clock_subgroup;

    ct_gen_need(g, in_subgroup || g->target->shader_clock_device, "a clock");
    ct_spv_capability(&g->m, SpvCapabilityShaderClockKHR);
    ct_spv_extension(&g->m, "SPV_KHR_shader_clock");
    ct_gen_define(g, insn->results[0],
                  GEN(g, SpvOpReadClockKHR, ct_gen_int_type(g, 64), ct_gen_u32(g, in_subgroup ? SpvScopeSubgroup : SpvScopeDevice)));
}

/* ---- parameters ---- */

static uint32_t param_word(struct ct_gen *g, uint32_t word)
{
    const uint32_t uint = ct_gen_int_type(g, 32);
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassPushConstant, uint);

    if (g->fn->params_in_buffer)
        return GEN(g, SpvOpLoad, uint,
                   ct_gen_global_pointer(g, ct_gen_sysval(g, CT_SYS_PARAM_BASE), (int64_t)word * 4, uint),
                   SpvMemoryAccessAlignedMask, 4);
    return GEN(g, SpvOpLoad, uint,
               GEN(g, SpvOpAccessChain, pointer, g->push_constants, ct_gen_u32(g, MEMBER_WORDS), ct_gen_u32(g, word)));
}

/* 32 bits from any byte offset on, of which `bytes` matter: what lies behind them is not read. */
static uint32_t param_bits(struct ct_gen *g, uint32_t offset, unsigned bytes)
{
    const uint32_t uint = ct_gen_int_type(g, 32), skipped = offset % 4;
    uint32_t low = param_word(g, offset / 4), high;

    if (skipped)
        low = GEN(g, SpvOpShiftRightLogical, uint, low, ct_gen_u32(g, 8 * skipped));
    if (skipped + bytes <= 4)
        return low;
    high = GEN(g, SpvOpShiftLeftLogical, uint, param_word(g, offset / 4 + 1), ct_gen_u32(g, 8 * (4 - skipped)));
    return GEN(g, SpvOpBitwiseOr, uint, low, high);
}

void ct_gen_load_param(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ptx_type_bits(insn->type);

    if (insn->offset < 0 || bits < 8 || bits > 64) {
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "load of %u bits at %lld of the parameters", bits, (long long)insn->offset);
        return;
    }
    for (uint32_t i = 0; i < insn->n_results; i++) {
        const uint32_t offset = (uint32_t)insn->offset + i * bits / 8;
        uint32_t parts[2], id;

        if (!insn->results[i].i)
            continue;
        parts[0] = param_bits(g, offset, bits < 32 ? bits / 8 : 4);
        if (bits == 64) {
            parts[1] = param_bits(g, offset + 4, 4);
            id = ct_gen_pack(g, parts, 2, 32);
        } else {
            id = ct_gen_resize(g, parts[0], 32, bits, false);
        }
        ct_gen_define(g, insn->results[i], ct_gen_resize(g, id, bits, ct_gen_bits(g, insn->results[i]), ptx_type_is_signed(insn->type)));
    }
}

/* ---- the function ---- */

void ct_gen_begin_entry(struct ct_gen *g)
{
    const uint64_t n_words = count_param_words(g->fn);
    const uint32_t of_void = ct_spv_type_void(&g->m), type = CT_SPV_INTERN(&g->m, SpvOpTypeFunction, 0, of_void);

    if (PTX2SPV_PARAMS_OFFSET + n_words * 4 > g->target->push_constant_bytes)
        g->fn->params_in_buffer = true;
    ct_spv_capability(&g->m, SpvCapabilityShader);
    ct_spv_capability(&g->m, SpvCapabilityPhysicalStorageBufferAddresses);
    ct_spv_capability(&g->m, SpvCapabilityVulkanMemoryModel);
    make_spec_constants(g);
    make_push_constants(g, (uint32_t)n_words);
    g->entry = CT_SPV_RESULT(&g->m, CT_SPV_VARIABLES, SpvOpFunction, of_void, SpvFunctionControlMaskNone, type);
    g->label = ct_gen_label(g);
    g->open = true;
    CT_SPV_EMIT(&g->m, CT_SPV_VARIABLES, SpvOpLabel, g->label);
}

/* A float execution mode for each width that is used and that the device grants. */
static void declare_float_mode(struct ct_gen *g, SpvExecutionMode mode, SpvCapability capability, const uint8_t granted[3])
{
    for (unsigned i = 0; i < 3; i++)
        if (granted[i] && g->float_widths & 1u << i) {
            ct_spv_capability(&g->m, capability);
            CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionMode, g->entry, mode, 16u << i);
        }
}

static void declare_modes(struct ct_gen *g)
{
    const struct ptx2spv_target *t = g->target;

    CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionModeId, g->entry, SpvExecutionModeLocalSizeId, g->spec[PTX2SPV_SPEC_BLOCK_THREADS],
                ct_gen_u32(g, 1), ct_gen_u32(g, 1));
    declare_float_mode(g, SpvExecutionModeDenormPreserve, SpvCapabilityDenormPreserve,
                       (const uint8_t[]){t->denorm_preserve16, t->denorm_preserve32, t->denorm_preserve64});
    declare_float_mode(g, SpvExecutionModeRoundingModeRTE, SpvCapabilityRoundingModeRTE,
                       (const uint8_t[]){t->rounding_rte16, t->rounding_rte32, t->rounding_rte64});
    declare_float_mode(g, SpvExecutionModeSignedZeroInfNanPreserve, SpvCapabilitySignedZeroInfNanPreserve,
                       (const uint8_t[]){t->signed_zero_inf_nan16, t->signed_zero_inf_nan32, t->signed_zero_inf_nan64});
    /* Of use where subgroup instructions are; validators of the oldest SDK do not know it. */
    if (t->maximal_reconvergence && t->warp_form == PTX2SPV_WARP_NATIVE) {
        ct_spv_extension(&g->m, "SPV_KHR_maximal_reconvergence");
        CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionMode, g->entry, CT_SPV_EXECUTION_MODE_MAXIMALLY_RECONVERGES_KHR);
    }
}

void ct_gen_end_entry(struct ct_gen *g)
{
    ct_spv_words words = {0};
    struct ct_arena *scratch = &g->fn->compilation->scratch;

    ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpFunctionEnd, NULL, 0);
    declare_modes(g);
    *CT_PUSH(scratch, &words) = SpvExecutionModelGLCompute;
    *CT_PUSH(scratch, &words) = g->entry;
    ct_spv_push_string(&g->m, &words, "main");
    for (uint32_t i = 0; i < g->interface.n; i++)
        *CT_PUSH(scratch, &words) = g->interface.v[i];
    ct_spv_emit(&g->m, CT_SPV_ENTRY, SpvOpEntryPoint, words.v, words.n);
}
