/* SPDX-License-Identifier: Apache-2.0 */
/* Float instructions without rounding modifiers, .ftz and .sat: `lower` has expanded the others. Operations that PTX keeps separate are
 * not contracted: each result is decorated NoContraction, or the entry point has ContractionOff (OpenCL). */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"
#include "spirv_newer.h"

static uint32_t exact(struct ct_gen *g, uint32_t id)
{
    if (g->dialect->decorates_no_contraction)
        ct_spv_decorate(&g->m, id, SpvDecorationNoContraction, NULL, 0);
    return id;
}

/* One SPIR-V instruction, or an extended one. */
static const struct form {
    uint16_t op, ext;
    bool narrow; /* for 16 and 32 bits only */
} forms[CT_OP_COUNT] = {
    [CT_OP_FADD] = {.op = SpvOpFAdd},
    [CT_OP_FSUB] = {.op = SpvOpFSub},
    [CT_OP_FMUL] = {.op = SpvOpFMul},
    [CT_OP_FDIV] = {.op = SpvOpFDiv},
    [CT_OP_FNEG] = {.op = SpvOpFNegate},
    [CT_OP_FFMA] = {.ext = CT_EXT_FMA},
    [CT_OP_FSQRT] = {.ext = CT_EXT_SQRT},
    [CT_OP_FRSQRT] = {.ext = CT_EXT_RSQRT},
    [CT_OP_FSIN] = {.ext = CT_EXT_SIN, .narrow = true},
    [CT_OP_FCOS] = {.ext = CT_EXT_COS, .narrow = true},
    [CT_OP_FLG2] = {.ext = CT_EXT_LOG2, .narrow = true},
    [CT_OP_FEX2] = {.ext = CT_EXT_EXP2, .narrow = true},
    [CT_OP_FMIN] = {.ext = CT_EXT_FMIN},
    [CT_OP_FMAX] = {.ext = CT_EXT_FMAX},
    [CT_OP_FABS] = {.ext = CT_EXT_FABS},
    [CT_OP_FFLOOR] = {.ext = CT_EXT_FLOOR},
    [CT_OP_FCEIL] = {.ext = CT_EXT_CEIL},
    [CT_OP_FTRUNC] = {.ext = CT_EXT_TRUNC},
    [CT_OP_FRINT] = {.ext = CT_EXT_RINT},
};

/* The bits of a zero that the target must not recognize: the grid's z, at most 65535, shifted right by 16, with the constant's sign. */
static uint32_t opaque_zero_bits(struct ct_gen *g, unsigned bits, bool negative)
{
    const uint32_t uint = ct_gen_int_type(g, 32);
    const uint32_t zero = ct_gen_shift_by(g, SpvOpShiftRightLogical, 32, ct_gen_sysval(g, CT_SYS_NCTAID_Z), 16);
    const uint32_t top = negative ? GEN(g, SpvOpBitwiseOr, uint, zero, ct_gen_u32(g, UINT32_C(1) << 31)) : zero;
    const uint32_t words[2] = {zero, top};

    return bits == 64 ? ct_gen_pack(g, words, 2, 32) : top;
}

uint32_t ct_gen_hidden_zero_or_none(struct ct_gen *g, ct_value value)
{
    const struct ct_insn *constant = ct_constant_or_null(g->fn, value);
    const unsigned bits = ct_gen_bits(g, value);

    if (g->target->exact_zeros || bits < 32 || !constant || constant->imm << (65 - bits) != 0)
        return 0;
    return opaque_zero_bits(g, bits, constant->imm != 0);
}

/* The instruction of a zero constant, also if it is converted from another width; else NULL. */
static const struct ct_insn *zero_or_null(const struct ct_fn *fn, ct_value value, unsigned bits)
{
    const struct ct_insn *def = fn->values.v[value.i].def;

    if (def && def->op == CT_OP_FTOF) {
        value = def->operands[0];
        bits = ptx_type_bits(def->type);
    }
    def = ct_constant_or_null(fn, value);
    return def && def->imm << (65 - bits) == 0 ? def : NULL;
}

/* Whether the driver may take a zero of this sign for the other one. */
static bool may_confuse(struct ct_gen *g, enum ct_op op, const struct ct_insn *zero)
{
    if (op == CT_OP_FMIN || op == CT_OP_FMAX)
        return zero->imm != 0 && ct_gen_works_around(g, PTX2SPV_WORKAROUND_CONSTANT_CHOICES);
    return !g->target->exact_zeros && (op == CT_OP_FADD || op == CT_OP_FSUB || op == CT_OP_FFMA || op == CT_OP_FDIV);
}

/* The same float, combined by XOR with an integer that is 0, but not known to the driver's compiler. */
static uint32_t combined_with_zero(struct ct_gen *g, unsigned bits, uint32_t operand, uint32_t zero)
{
    const uint32_t type = ct_gen_int_type(g, bits), integer = GEN(g, SpvOpBitcast, type, operand);

    return GEN(g, SpvOpBitcast, ct_gen_float_type(g, bits), GEN(g, SpvOpBitwiseXor, type, integer, zero));
}

static uint32_t use_operand(struct ct_gen *g, const struct ct_insn *insn, uint32_t index)
{
    const unsigned bits = ptx_type_bits(insn->type);
    const struct ct_insn *zero = zero_or_null(g->fn, insn->operands[index], bits);

    if (index == 0 && ct_gen_hides_factor(g, insn))
        return combined_with_zero(g, bits, ct_gen_use_float(g, insn->operands[0]), ct_gen_opaque_zero(g, bits));
    if (bits == 16 || !zero || !may_confuse(g, insn->op, zero))
        return ct_gen_use_chosen_float(g, insn, index);
    return GEN(g, SpvOpBitcast, ct_gen_float_type(g, bits), opaque_zero_bits(g, bits, zero->imm != 0));
}

/* LLVM's intrinsics. PoCL 6.0, which translates SPIR-V to LLVM, calls a function of its library for each of OpenCL's, and does not
 * inline it; it leaves the intrinsics to LLVM, which vectorizes them. (`lower` rounds f64 to integers.) */
static const struct {
    enum ct_op op;
    uint8_t bits;
    const char *name;
} llvm_functions[] = {
    {CT_OP_FFMA, 32, "llvm.fma.f32"},   {CT_OP_FFMA, 64, "llvm.fma.f64"},     {CT_OP_FSQRT, 32, "llvm.sqrt.f32"},
    {CT_OP_FSQRT, 64, "llvm.sqrt.f64"}, {CT_OP_FRSQRT, 32, "llvm.sqrt.f32"},  {CT_OP_FFLOOR, 32, "llvm.floor.f32"},
    {CT_OP_FCEIL, 32, "llvm.ceil.f32"}, {CT_OP_FTRUNC, 32, "llvm.trunc.f32"}, {CT_OP_FRINT, 32, "llvm.rint.f32"},
};

/* 0: OpenCL's function is used. */
static uint32_t gen_llvm_function(struct ct_gen *g, const struct ct_insn *insn, unsigned bits, uint32_t type, const uint32_t *operands)
{
    uint32_t words[4] = {0};

    for (size_t i = 0; g->target->llvm_functions && i < sizeof llvm_functions / sizeof *llvm_functions; i++)
        if (llvm_functions[i].op == insn->op && llvm_functions[i].bits == bits) {
            words[0] = ct_spv_import(&g->m, llvm_functions[i].name, type, insn->n_operands);
            for (uint32_t k = 0; k < insn->n_operands; k++)
                words[k + 1] = operands[k];
            return ct_spv_result(&g->m, CT_SPV_CODE, SpvOpFunctionCall, type, words, insn->n_operands + 1);
        }
    return 0;
}

/* OpFmaKHR. 0: the target has none of this width. */
static uint32_t gen_promised_fma(struct ct_gen *g, const struct ct_insn *insn, unsigned bits, uint32_t type, const uint32_t *operands)
{
    const bool is_promised = bits == 16 ? g->target->fused16 : bits == 32 ? g->target->fused32 : g->target->fused64;

    if (insn->op != CT_OP_FFMA || !is_promised)
        return 0;
    ct_spv_extension(&g->m, "SPV_KHR_fma");
    ct_spv_capability(&g->m, CT_SPV_CAPABILITY_FMA_KHR);
    return ct_spv_result(&g->m, CT_SPV_CODE, CT_SPV_OP_FMA_KHR, type, operands, insn->n_operands);
}

static uint32_t float_one(struct ct_gen *g, unsigned bits)
{
    static const uint64_t ones[] = {[1] = 0x3c00, [2] = 0x3f800000, [4] = 0x3ff0000000000000};

    return ct_spv_const_float(&g->m, bits, ones[bits / 16]);
}

static void gen_form(struct ct_gen *g, const struct ct_insn *insn)
{
    const struct form *form = &forms[insn->op];
    const unsigned bits = ptx_type_bits(insn->type);
    const uint32_t type = ct_gen_float_type(g, bits);
    uint32_t operands[3], id;

    if (form->narrow && bits == 64) {
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "%s of 64 bits", ct_op_infos[insn->op].name);
        return;
    }
    for (uint32_t i = 0; i < insn->n_operands && i < 3; i++)
        operands[i] = use_operand(g, insn, i);
    id = gen_llvm_function(g, insn, bits, type, operands);
    if (id && insn->op == CT_OP_FRSQRT)
        id = GEN(g, SpvOpFDiv, type, float_one(g, bits), id);
    if (!id)
        id = gen_promised_fma(g, insn, bits, type, operands);
    if (!id)
        id = form->op ? ct_spv_result(&g->m, CT_SPV_CODE, form->op, type, operands, insn->n_operands)
                      : ct_gen_ext(g, form->ext, type, operands, insn->n_operands);
    ct_gen_define_float(g, insn->results[0], exact(g, id));
}

/* 0, and the driver can know neither that it is, nor that all threads have the same. */
static uint32_t varying_zero(struct ct_gen *g)
{
    if (!g->varying_zero)
        g->varying_zero = ct_gen_early_zero_of(g, ct_gen_sysval(g, CT_SYS_TID_LINEAR));
    return g->varying_zero;
}

/* An FFMA that may be contracted. */
static void gen_split(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t type = ct_gen_float_type(g, 32);
    const unsigned hides = ct_gen_hidden_from_contraction(g, insn);
    uint32_t operands[3], product;

    for (uint32_t i = 0; i < 3; i++)
        operands[i] = hides >> i & 1 ? combined_with_zero(g, 32, use_operand(g, insn, i), varying_zero(g)) : use_operand(g, insn, i);
    product = GEN(g, SpvOpFMul, type, operands[0], operands[1]);
    ct_gen_define_float(g, insn->results[0], GEN(g, SpvOpFAdd, type, product, operands[2]));
}

static void gen_rcp(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ptx_type_bits(insn->type);
    const uint32_t operand = ct_gen_use_float(g, insn->operands[0]);

    ct_gen_define_float(g, insn->results[0], exact(g, GEN(g, SpvOpFDiv, ct_gen_float_type(g, bits), float_one(g, bits), operand)));
}

static const uint16_t comparisons[] = {
    [PTX_EQ] = SpvOpFOrdEqual,          [PTX_NE] = SpvOpFOrdNotEqual,
    [PTX_LT] = SpvOpFOrdLessThan,       [PTX_LE] = SpvOpFOrdLessThanEqual,
    [PTX_GT] = SpvOpFOrdGreaterThan,    [PTX_GE] = SpvOpFOrdGreaterThanEqual,
    [PTX_EQU] = SpvOpFUnordEqual,       [PTX_NEU] = SpvOpFUnordNotEqual,
    [PTX_LTU] = SpvOpFUnordLessThan,    [PTX_LEU] = SpvOpFUnordLessThanEqual,
    [PTX_GTU] = SpvOpFUnordGreaterThan, [PTX_GEU] = SpvOpFUnordGreaterThanEqual,
};

static void gen_compare(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t a = ct_gen_use_float(g, insn->operands[0]), b = ct_gen_use_float(g, insn->operands[1]);
    const uint32_t type = ct_gen_int_type(g, 1);
    uint32_t id;

    if (insn->compare == PTX_NUM || insn->compare == PTX_NAN) {
        id = GEN(g, SpvOpLogicalOr, type, GEN(g, SpvOpIsNan, type, a), GEN(g, SpvOpIsNan, type, b));
        if (insn->compare == PTX_NUM)
            id = ct_gen_not(g, id);
    } else if (insn->compare < sizeof comparisons / sizeof *comparisons && comparisons[insn->compare]) {
        id = GEN(g, comparisons[insn->compare], type, a, b);
    } else {
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "float comparison %u", insn->compare);
        return;
    }
    ct_gen_define(g, insn->results[0], id);
}

/* FTOF, FTOI, ITOF. The first and the last are decorated, so that Mesa 26 does not take a number that is converted there and back for the same number. The
 * result for an integer type that is narrower than the value is extended according to the type. */
static void gen_convert(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned to_bits = ptx_type_bits(insn->type2);
    const ct_value from = insn->operands[0], to = insn->results[0];

    switch (insn->op) {
    case CT_OP_FTOF:
        ct_gen_define_float(g, to, exact(g, GEN(g, SpvOpFConvert, ct_gen_float_type(g, to_bits), ct_gen_use_float(g, from))));
        break;
    case CT_OP_ITOF:
        ct_gen_define_float(g, to,
                            exact(g, GEN(g, ptx_type_is_signed(insn->type) ? SpvOpConvertSToF : SpvOpConvertUToF,
                                         ct_gen_float_type(g, to_bits), ct_gen_use(g, from))));
        break;
    default: /* FTOI */
        ct_gen_define(g, to,
                      GEN(g, ptx_type_is_signed(insn->type2) ? SpvOpConvertFToS : SpvOpConvertFToU, ct_gen_int_type(g, ct_gen_bits(g, to)),
                          ct_gen_use_float(g, from)));
        break;
    }
}

void ct_gen_float(struct ct_gen *g, const struct ct_insn *insn)
{
    if (insn->ftz || insn->sat || insn->rounding > PTX_RN || insn->nan) {
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "instruction %s with this rounding, .ftz, .sat or .NaN", ct_op_infos[insn->op].name);
        return;
    }
    switch (insn->op) {
    case CT_OP_FRCP:
        gen_rcp(g, insn);
        break;
    case CT_OP_FCMP:
        gen_compare(g, insn);
        break;
    case CT_OP_FTOF:
    case CT_OP_FTOI:
    case CT_OP_ITOF:
        gen_convert(g, insn);
        break;
    default:
        if (insn->split)
            gen_split(g, insn);
        else
            gen_form(g, insn);
        break; /* those of the table: ct_gen_insn passes no other */
    }
}
