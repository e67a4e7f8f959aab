/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL dialect: physical 64-bit pointers into all memories, OpenCL's memory model.
 *
 * The kernel's arguments: a pointer to the argument block (struct ptx2spv_opencl_block, followed by the parameters), and, if the kernel has
 * shared memory, a pointer to it.
 *
 * Runtimes for CPUs vectorize along x, and need to see that neighbouring work-items access neighbouring memory: work-groups have the
 * block's dimensions and threadIdx is LocalInvocationId. However, kernels with subgroup instructions are launched one-dimensional, since
 * Intel's runtime divides work-groups into subgroups along x only (not linearly, as CUDA does), and threadIdx is computed. They also
 * require subgroups of 32, which other kernels do better without: 256 threads of a tiled matrix product took 3 times as long in 32 lanes
 * as in the runtime's own choice of 8. */
#include "emit.h"

#include <spirv/unified1/OpenCL.std.h>
#include <stddef.h>

#define SPIRV_1_2 0x00010200u
#define SPIRV_1_3 0x00010300u /* has subgroup instructions */
#define LOCAL_ALIGN 16        /* bytes: the widest access of PTX */

static uint32_t byte_pointer(struct ct_gen *g, SpvStorageClass storage)
{
    return ct_spv_type_pointer(&g->m, storage, ct_spv_type_int(&g->m, 8));
}

/* ---- the argument block ---- */

/* The host writes it before the launch and it never changes afterwards: it is read at the function's start. */
static uint32_t argument(struct ct_gen *g, uint32_t offset, unsigned bits)
{
    const uint32_t align = offset ? 1u << __builtin_ctz(offset) : 16, type = ct_gen_int_type(g, bits);
    const uint32_t at = GEN_EARLY(g, SpvOpInBoundsPtrAccessChain, byte_pointer(g, SpvStorageClassCrossWorkgroup), g->argument_block,
                                  ct_spv_const_int(&g->m, 64, offset));
    const uint32_t pointer = GEN_EARLY(g, SpvOpBitcast, ct_spv_type_pointer(&g->m, SpvStorageClassCrossWorkgroup, type), at);

    return GEN_EARLY(g, SpvOpLoad, type, pointer, SpvMemoryAccessAlignedMask, align < bits / 8 ? align : bits / 8);
}

static uint32_t opencl_param(struct ct_gen *g, uint32_t offset, unsigned bits)
{
    return argument(g, PTX2SPV_OPENCL_PARAMS_OFFSET + offset, bits);
}

static uint32_t param_base(struct ct_gen *g)
{
    const uint32_t ulong = ct_gen_int_type(g, 64), block = GEN_EARLY(g, SpvOpConvertPtrToU, ulong, g->argument_block);

    return GEN_EARLY(g, SpvOpIAdd, ulong, block, ct_spv_const_int(&g->m, 64, PTX2SPV_OPENCL_PARAMS_OFFSET));
}

/* ---- system values ---- */

/* In 64 bits. *vector: the id of its value, 0 before the first use. */
static uint32_t builtin_component64(struct ct_gen *g, uint32_t *vector, SpvBuiltIn which, uint32_t component)
{
    const uint32_t ulong = ct_gen_int_type(g, 64), type = ct_spv_type_vector(&g->m, ulong, 3);

    if (!*vector) {
        const uint32_t variable = ct_gen_global_variable(g, SpvStorageClassInput, type);

        CT_SPV_DECORATE(&g->m, variable, SpvDecorationBuiltIn, which);
        *vector = GEN_EARLY(g, SpvOpLoad, type, variable);
    }
    return GEN_EARLY(g, SpvOpCompositeExtract, ulong, *vector, component);
}

static uint32_t builtin_component(struct ct_gen *g, uint32_t *vector, SpvBuiltIn which, uint32_t component)
{
    return GEN_EARLY(g, SpvOpUConvert, ct_gen_int_type(g, 32), builtin_component64(g, vector, which, component));
}

static uint32_t early_product(struct ct_gen *g, uint32_t a, uint32_t b)
{
    return GEN_EARLY(g, SpvOpIMul, ct_gen_int_type(g, 32), a, b);
}

/* n / d in floats, since vectors have no integer division. For n and d below 2^13 the quotient of n + 1/2 differs from every integer by
 * at least 2^-14 of itself, more than the error of two roundings. */
static uint32_t small_quotient(struct ct_gen *g, uint32_t n, uint32_t d)
{
    const uint32_t type = ct_gen_float_type(g, 32);
    const uint32_t one = ct_spv_const_float(&g->m, 32, 0x3f800000), half = ct_spv_const_float(&g->m, 32, 0x3f000000);
    const uint32_t inverse = GEN_EARLY(g, SpvOpFDiv, type, one, GEN_EARLY(g, SpvOpConvertUToF, type, d));
    const uint32_t middle = GEN_EARLY(g, SpvOpFAdd, type, GEN_EARLY(g, SpvOpConvertUToF, type, n), half);

    return GEN_EARLY(g, SpvOpConvertFToS, ct_gen_int_type(g, 32), GEN_EARLY(g, SpvOpFMul, type, middle, inverse));
}

/* Linear, with n = LocalInvocationId.x: x = n % X, y = n / X % Y, z = n / (X * Y). */
static uint32_t thread_index(struct ct_gen *g, enum ct_sysval which)
{
    uint32_t uint, n, x, plane, rows;

    if (!g->fn->linear_block)
        return builtin_component(g, &g->local_id, SpvBuiltInLocalInvocationId, which - CT_SYS_TID_X);
    uint = ct_gen_int_type(g, 32);
    n = ct_gen_sysval(g, CT_SYS_TID_LINEAR);
    x = ct_gen_sysval(g, CT_SYS_NTID_X);
    if (which == CT_SYS_TID_X)
        return GEN_EARLY(g, SpvOpISub, uint, n, early_product(g, small_quotient(g, n, x), x));
    plane = early_product(g, x, ct_gen_sysval(g, CT_SYS_NTID_Y));
    if (which == CT_SYS_TID_Z)
        return small_quotient(g, n, plane);
    rows = early_product(g, ct_gen_sysval(g, CT_SYS_TID_Z), ct_gen_sysval(g, CT_SYS_NTID_Y));
    return GEN_EARLY(g, SpvOpISub, uint, small_quotient(g, n, x), rows);
}

static uint32_t thread_index64(struct ct_gen *g)
{
    if (!g->fn->linear_block)
        return builtin_component64(g, &g->local_id, SpvBuiltInLocalInvocationId, 0);
    return GEN_EARLY(g, SpvOpUConvert, ct_gen_int_type(g, 64), ct_gen_sysval(g, CT_SYS_TID_X));
}

/* x + X * (y + Y * z). This is LocalInvocationIndex, but Intel's CPU runtime (2026.2) does not link that from SPIR-V. */
static uint32_t linear_index(struct ct_gen *g)
{
    const uint32_t uint = ct_gen_int_type(g, 32);
    uint32_t rows;

    if (g->fn->linear_block)
        return builtin_component(g, &g->local_id, SpvBuiltInLocalInvocationId, 0);
    rows = early_product(g, ct_gen_sysval(g, CT_SYS_NTID_Y), ct_gen_sysval(g, CT_SYS_TID_Z));
    rows = GEN_EARLY(g, SpvOpIAdd, uint, ct_gen_sysval(g, CT_SYS_TID_Y), rows);
    return GEN_EARLY(g, SpvOpIAdd, uint, ct_gen_sysval(g, CT_SYS_TID_X), early_product(g, ct_gen_sysval(g, CT_SYS_NTID_X), rows));
}

static uint32_t block_index(struct ct_gen *g, uint32_t component)
{
    const uint32_t offset = argument(g, offsetof(struct ptx2spv_system_block, ctaid_offset) + 4 * component, 32);

    const uint32_t group = builtin_component(g, &g->workgroup_id, SpvBuiltInWorkgroupId, component);

    return GEN_EARLY(g, SpvOpIAdd, ct_gen_int_type(g, 32), group, offset);
}

static uint32_t block_threads(struct ct_gen *g)
{
    return early_product(g, early_product(g, ct_gen_sysval(g, CT_SYS_NTID_X), ct_gen_sysval(g, CT_SYS_NTID_Y)),
                         ct_gen_sysval(g, CT_SYS_NTID_Z));
}

static uint32_t opencl_sysval(struct ct_gen *g, enum ct_sysval which)
{
    switch ((unsigned)which) {
    case CT_SYS_TID_X:
    case CT_SYS_TID_Y:
    case CT_SYS_TID_Z:
        return thread_index(g, which);
    case CT_SYS_TID_X_64:
        return thread_index64(g);
    case CT_SYS_NTID_X:
    case CT_SYS_NTID_Y:
    case CT_SYS_NTID_Z:
        return argument(g, offsetof(struct ptx2spv_opencl_block, ntid) + 4 * (which - CT_SYS_NTID_X), 32);
    case CT_SYS_CTAID_X:
    case CT_SYS_CTAID_Y:
    case CT_SYS_CTAID_Z:
        return block_index(g, which - CT_SYS_CTAID_X);
    case CT_SYS_NCTAID_X:
    case CT_SYS_NCTAID_Y:
    case CT_SYS_NCTAID_Z:
        return argument(g, offsetof(struct ptx2spv_system_block, nctaid) + 4 * (which - CT_SYS_NCTAID_X), 32);
    case CT_SYS_TID_LINEAR:
        return linear_index(g);
    case CT_SYS_BLOCK_THREADS:
        return block_threads(g);
    case CT_SYS_SHARED_BYTES:
    case CT_SYS_EXCHANGE_BASE:
        return argument(g, offsetof(struct ptx2spv_opencl_block, shared_bytes), 32);
    case CT_SYS_IMAGE_BASE:
        return argument(g, offsetof(struct ptx2spv_system_block, image_address), 64);
    case CT_SYS_FAULT_BASE:
        return argument(g, offsetof(struct ptx2spv_system_block, fault_address), 64);
    case CT_SYS_PARAM_BASE:
        return param_base(g);
    default: /* those that ct_gen_sysval handles for both dialects */
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "system value %d", (int)which);
        return ct_gen_u32(g, 0);
    }
}

/* ---- memory ---- */

static uint32_t local_base(struct ct_gen *g)
{
    if (!g->local_base) {
        const uint32_t array = ct_gen_local_array(g);

        CT_SPV_DECORATE(&g->m, array, SpvDecorationAlignment, LOCAL_ALIGN);
        g->local_base = GEN_EARLY(g, SpvOpBitcast, byte_pointer(g, SpvStorageClassFunction), array);
    }
    return g->local_base;
}

/* 32-bit offsets are sign-extended, so that parts of a sum may be negative. */
static uint32_t opencl_pointer(struct ct_gen *g, enum ct_space space, uint32_t address, int64_t offset, uint32_t type)
{
    const SpvStorageClass storage = space == CT_SPACE_SHARED ? SpvStorageClassWorkgroup : SpvStorageClassFunction;
    uint32_t at;

    if (space == CT_SPACE_GLOBAL)
        return ct_gen_global_pointer(g, address, offset, type);
    at = GEN(g, SpvOpPtrAccessChain, byte_pointer(g, storage), space == CT_SPACE_SHARED ? g->shared_base : local_base(g), address);
    if (offset)
        at = GEN(g, SpvOpPtrAccessChain, byte_pointer(g, storage), at, ct_gen_u32(g, (uint32_t)offset));
    return GEN(g, SpvOpBitcast, ct_spv_type_pointer(&g->m, storage, type), at);
}

/* Whether this is a store to the same location as a store in the block that branches to it. PoCL 6.0 terminates the process while it
 * merges the two ("did not reach a fixpoint": it runs LLVM's pass as LLVM's own tests do, in which work left after one iteration is an
 * error), so they have to stay separate. */
static bool is_second_store(const struct ct_insn *insn)
{
    const struct ct_block *block = insn->block, *decides = block && block->preds.n == 1 ? block->preds.v[0] : NULL;

    if (!decides || decides->n_succs < 2 || block->n_succs != 1)
        return false;
    for (const struct ct_insn *first = decides->first; first; first = first->next)
        if (first->op == CT_OP_STORE && first->space == insn->space && first->operands[0].i == insn->operands[0].i &&
            first->offset == insn->offset)
            return true;
    return false;
}

static uint32_t opencl_memory_operands(struct ct_gen *g, SpvOp op, enum ct_space space, const struct ct_access *access, uint32_t *words)
{
    const bool stays = op == SpvOpStore && ct_gen_works_around(g, PTX2SPV_WORKAROUND_SECOND_STORES) && is_second_store(access->insn);

    words[0] = SpvMemoryAccessAlignedMask;
    if ((space != CT_SPACE_LOCAL && ct_gen_is_strong(access->insn)) || stays)
        words[0] |= SpvMemoryAccessVolatileMask;
    words[1] = access->align;
    return 2;
}

static uint32_t opencl_scope(struct ct_gen *g, enum ct_space space, uint8_t scope)
{
    if (space == CT_SPACE_SHARED || scope == PTX_CTA)
        return ct_gen_u32(g, SpvScopeWorkgroup);
    return ct_gen_u32(g, scope == PTX_SYS ? SpvScopeCrossDevice : SpvScopeDevice);
}

static uint32_t opencl_semantics(struct ct_gen *g, uint8_t semantics)
{
    const uint32_t memory = SpvMemorySemanticsCrossWorkgroupMemoryMask | SpvMemorySemanticsWorkgroupMemoryMask;

    switch (semantics) {
    case PTX_ACQUIRE:
        return ct_gen_u32(g, SpvMemorySemanticsAcquireMask | memory);
    case PTX_RELEASE:
        return ct_gen_u32(g, SpvMemorySemanticsReleaseMask | memory);
    case PTX_ACQ_REL:
        return ct_gen_u32(g, SpvMemorySemanticsAcquireReleaseMask | memory);
    case PTX_SC:
        return ct_gen_u32(g, SpvMemorySemanticsSequentiallyConsistentMask | memory);
    default:
        return ct_gen_u32(g, SpvMemorySemanticsMaskNone); /* relaxed, volatile, mmio */
    }
}

/* ---- integers ---- */

static uint32_t opencl_multiply_high(struct ct_gen *g, unsigned bits, bool is_signed, uint32_t a, uint32_t b)
{
    return GEN(g, SpvOpExtInst, ct_gen_int_type(g, bits), g->m.extended, is_signed ? OpenCLstd_SMul_hi : OpenCLstd_UMul_hi, a, b);
}

static uint32_t opencl_leading_zeros(struct ct_gen *g, uint32_t x)
{
    return GEN(g, SpvOpExtInst, ct_gen_int_type(g, 32), g->m.extended, OpenCLstd_Clz, x);
}

/* Exchanges adjacent bits, then pairs, and so on up to halves. OpBitReverse needs an extension that not every runtime has. */
static uint32_t opencl_reverse_bits(struct ct_gen *g, uint32_t x)
{
    static const uint32_t masks[] = {0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff};
    const uint32_t uint = ct_gen_int_type(g, 32);

    for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++) {
        const uint32_t mask = ct_gen_u32(g, masks[i]), distance = ct_gen_u32(g, 1u << i);
        const uint32_t down = GEN(g, SpvOpBitwiseAnd, uint, GEN(g, SpvOpShiftRightLogical, uint, x, distance), mask);
        const uint32_t up = GEN(g, SpvOpShiftLeftLogical, uint, GEN(g, SpvOpBitwiseAnd, uint, x, mask), distance);

        x = GEN(g, SpvOpBitwiseOr, uint, down, up);
    }
    return x;
}

/* ---- the function ---- */

static uint32_t function_parameter(struct ct_gen *g, uint32_t type)
{
    return ct_spv_result(&g->m, CT_SPV_VARIABLES, SpvOpFunctionParameter, type, NULL, 0);
}

static void opencl_begin(struct ct_gen *g)
{
    const uint32_t of_void = ct_spv_type_void(&g->m), block = byte_pointer(g, SpvStorageClassCrossWorkgroup);
    const uint32_t shared = byte_pointer(g, SpvStorageClassWorkgroup), words[] = {of_void, block, shared};
    const uint32_t type = ct_spv_intern(&g->m, SpvOpTypeFunction, 0, words, g->fn->uses_shared ? 3 : 2);

    g->fn->params_in_buffer = false;
    g->fn->linear_block = g->fn->uses_subgroups;
    ct_spv_capability(&g->m, SpvCapabilityKernel);
    ct_spv_capability(&g->m, SpvCapabilityAddresses);
    g->entry = CT_SPV_RESULT(&g->m, CT_SPV_VARIABLES, SpvOpFunction, of_void, SpvFunctionControlMaskNone, type);
    g->argument_block = function_parameter(g, block);
    CT_SPV_DECORATE(&g->m, g->argument_block, SpvDecorationFuncParamAttr, SpvFunctionParameterAttributeNoAlias);
    CT_SPV_DECORATE(&g->m, g->argument_block, SpvDecorationFuncParamAttr, SpvFunctionParameterAttributeNoWrite);
    CT_SPV_DECORATE(&g->m, g->argument_block, SpvDecorationAlignment, 16);
    if (g->fn->uses_shared)
        g->shared_base = function_parameter(g, shared);
}

/* Intel's runtime for CPUs (2026.2) vectorizes some kernels whose threads execute a loop with a state into kernels that never end. This
 * hint says that the kernel works on vectors of four floats already, which the runtime takes as a request not to vectorize it. */
static void keep_scalar(struct ct_gen *g)
{
    enum { FLOATS = 5, FOUR = 4 << 16 };

    CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionMode, g->entry, SpvExecutionModeVecTypeHint, FOUR | FLOATS);
}

static void opencl_end(struct ct_gen *g)
{
    ct_spv_emit(&g->m, CT_SPV_MODES, SpvOpExecutionMode, (const uint32_t[]){g->entry, SpvExecutionModeContractionOff}, 2);
    if (g->fn->linear_block && g->target->subgroup_size >= 32) {
        ct_spv_capability(&g->m, SpvCapabilitySubgroupDispatch);
        CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionMode, g->entry, SpvExecutionModeSubgroupSize, g->target->subgroup_size);
    }
    /* With subgroups, a subgroup is a vector there; and loops with a state never have subgroup instructions. */
    if (g->fn->exchange_words && !g->fn->linear_block && ct_gen_works_around(g, PTX2SPV_WORKAROUND_VECTORIZED_STATES))
        keep_scalar(g);
    if (ct_gen_float_modes(g))
        ct_spv_extension(&g->m, "SPV_KHR_float_controls");
    if (g->fn->linear_block)
        g->version = SPIRV_1_3;
}

static const uint16_t opencl_extended[CT_EXT_COUNT] = {
#define EXT(id, glsl, opencl) [CT_EXT_##id] = OpenCLstd_##opencl,
#include "emit_ext.def"
};

const struct ct_dialect ct_dialect_opencl = {
    .environment = {.version = SPIRV_1_2,
                    .extended_set = "OpenCL.std",
                    .addressing = SpvAddressingModelPhysical64,
                    .memory = SpvMemoryModelOpenCL},
    .execution_model = SpvExecutionModelKernel,
    .extended = opencl_extended,
    .global_storage = SpvStorageClassCrossWorkgroup,
    .has_pointers = true,
    .shift_amounts_have_operand_width = true,
    .begin = opencl_begin,
    .end = opencl_end,
    .sysval = opencl_sysval,
    .param = opencl_param,
    .pointer = opencl_pointer,
    .memory_operands = opencl_memory_operands,
    .scope = opencl_scope,
    .semantics = opencl_semantics,
    .multiply_high = opencl_multiply_high,
    .leading_zeros = opencl_leading_zeros,
    .reverse_bits = opencl_reverse_bits,
};
