/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics, fences and barriers. The dialects map scopes and semantics to SPIR-V. */
#include "emit.h"

void ct_gen_order(struct ct_gen *g, const struct ct_insn *insn, enum ct_space space)
{
    if (space == CT_SPACE_LOCAL || (insn->semantics != PTX_ACQUIRE && insn->semantics != PTX_RELEASE))
        return;
    GEN_VOID(g, SpvOpMemoryBarrier, ct_gen_scope(g, CT_SPACE_GLOBAL, insn->scope), ct_gen_semantics(g, insn->semantics));
}

/* ---- atomics ---- */

static const struct atomic_op {
    uint16_t of_unsigned, of_signed;
} atomic_ops[] = {
    [PTX_AND] = {SpvOpAtomicAnd, SpvOpAtomicAnd},   [PTX_OR] = {SpvOpAtomicOr, SpvOpAtomicOr},
    [PTX_XOR] = {SpvOpAtomicXor, SpvOpAtomicXor},   [PTX_EXCH] = {SpvOpAtomicExchange, SpvOpAtomicExchange},
    [PTX_ADD] = {SpvOpAtomicIAdd, SpvOpAtomicIAdd}, [PTX_MIN] = {SpvOpAtomicUMin, SpvOpAtomicSMin},
    [PTX_MAX] = {SpvOpAtomicUMax, SpvOpAtomicSMax}, [PTX_CAS] = {SpvOpAtomicCompareExchange, SpvOpAtomicCompareExchange},
};

struct atomic_job {
    const struct ct_insn *insn;
    uint16_t op;
    unsigned bits;
    bool is_float;
    uint32_t type, value, compared; /* value: the operand or the new value; compared: for CAS */
};

/* Whether the target has float atomics in a space; shared memory needs a view of floats for them. */
static bool has_float_add(const struct ct_gen *g, enum ct_space space, unsigned bits)
{
    const struct ptx2spv_target *t = g->target;

    if (space == CT_SPACE_SHARED)
        return ct_target_has_views(t) && (bits == 32 ? t->atomic_float32_add_shared : t->atomic_float64_add_shared);
    return bits == 32 ? t->atomic_float32_add_global : t->atomic_float64_add_global;
}

static bool has_int64(const struct ct_gen *g, enum ct_space space)
{
    if (space == CT_SPACE_SHARED)
        return g->target->atomic_int64_shared && (ct_target_has_views(g->target) || g->has_wide_words);
    return g->target->atomic_int64_global;
}

static void need_atomic(struct ct_gen *g, const struct atomic_job *job, enum ct_space space)
{
    const char *where = space == CT_SPACE_SHARED ? "shared" : "global";

    if (job->is_float) {
        if (!has_float_add(g, space, job->bits))
            ct_gen_refuse(g, PTX2SPV_TARGET_LACKS, "the device lacks float atomics of %u bits in %s memory", job->bits, where);
        ct_spv_extension(&g->m, "SPV_EXT_shader_atomic_float_add");
        ct_spv_capability(&g->m, job->bits == 32 ? SpvCapabilityAtomicFloat32AddEXT : SpvCapabilityAtomicFloat64AddEXT);
    } else if (job->bits == 64) {
        if (!has_int64(g, space))
            ct_gen_refuse(g, PTX2SPV_TARGET_LACKS, "the device lacks 64-bit atomics in %s memory", where);
        ct_spv_capability(&g->m, SpvCapabilityInt64Atomics);
    }
}

static uint32_t atomic_pointer(struct ct_gen *g, const struct atomic_job *job, enum ct_space space, uint32_t address)
{
    enum ct_shared_view view = job->bits == 32 ? CT_VIEW_32 : CT_VIEW_64;

    if (job->insn->is_device)
        return ct_gen_device_pointer(g, address, job->insn->offset, job->type);
    if (space != CT_SPACE_SHARED || g->dialect->has_pointers)
        return g->dialect->pointer(g, space, address, job->insn->offset, job->type);
    if (job->is_float)
        view = job->bits == 32 ? CT_VIEW_F32 : CT_VIEW_F64;
    return ct_gen_shared_pointer(g, view, address, job->insn->offset);
}

/* The new value of a 32-bit item of shared memory that is not a word of its own. */
static uint32_t combine(struct ct_gen *g, uint32_t old, const void *user)
{
    static const struct {
        uint16_t atomic, plain; /* plain: the operation on two integers, or the comparison that decides whether the old value is kept */
        bool is_choice;
    } plain_ops[] = {
        {SpvOpAtomicAnd, SpvOpBitwiseAnd, false},   {SpvOpAtomicOr, SpvOpBitwiseOr, false},     {SpvOpAtomicXor, SpvOpBitwiseXor, false},
        {SpvOpAtomicIAdd, SpvOpIAdd, false},        {SpvOpAtomicUMin, SpvOpULessThan, true},    {SpvOpAtomicSMin, SpvOpSLessThan, true},
        {SpvOpAtomicUMax, SpvOpUGreaterThan, true}, {SpvOpAtomicSMax, SpvOpSGreaterThan, true},
    };
    const struct atomic_job *job = user;
    const uint32_t boolean = ct_gen_int_type(g, 1);

    if (job->op == SpvOpAtomicCompareExchange)
        return GEN(g, SpvOpSelect, job->type, GEN(g, SpvOpIEqual, boolean, old, job->compared), job->value, old);
    for (size_t i = 0; i < sizeof plain_ops / sizeof *plain_ops; i++) {
        if (plain_ops[i].atomic != job->op)
            continue;
        if (!plain_ops[i].is_choice)
            return GEN(g, plain_ops[i].plain, job->type, old, job->value);
        return GEN(g, SpvOpSelect, job->type, GEN(g, plain_ops[i].plain, boolean, old, job->value), old, job->value);
    }
    return job->value; /* an exchange */
}

static void atomic_arm(struct ct_gen *g, enum ct_space space, uint32_t address, void *user, uint32_t *results)
{
    const struct atomic_job *job = user;
    uint32_t pointer, scope, semantics;

    need_atomic(g, job, space);
    if (g->failed)
        return;
    /* A failed exchange is a load: it may acquire but not release. */
    const bool acquires = job->insn->semantics == PTX_ACQUIRE || job->insn->semantics == PTX_ACQ_REL;
    const uint32_t unequal = ct_gen_semantics(g, acquires ? PTX_ACQUIRE : PTX_RELAXED);

    scope = ct_gen_scope(g, space, job->insn->scope);
    semantics = ct_gen_semantics(g, job->insn->semantics);
    if (g->has_wide_words && space == CT_SPACE_SHARED && job->bits == 32) {
        results[0] = ct_gen_wide_update(g, &(struct ct_wide_update){address, job->insn->offset, scope, semantics, unequal, combine, job});
        return;
    }
    pointer = atomic_pointer(g, job, space, address);
    if (job->op == SpvOpAtomicCompareExchange) {
        results[0] = GEN(g, job->op, job->type, pointer, scope, semantics, unequal, job->value, job->compared);
    } else {
        results[0] = GEN(g, job->op, job->type, pointer, scope, semantics, job->value);
    }
}

static void run_atomic(struct ct_gen *g, struct atomic_job *job)
{
    const struct ct_insn *insn = job->insn;
    const uint32_t address = ct_gen_use(g, insn->operands[0]);
    const bool is_cas = job->op == SpvOpAtomicCompareExchange;
    uint32_t result = 0;

    job->value = job->is_float ? ct_gen_use_float(g, insn->operands[1]) : ct_gen_use(g, insn->operands[is_cas ? 2 : 1]);
    job->compared = is_cas ? ct_gen_use(g, insn->operands[1]) : 0;
    /* PTX ISA, atom: the address must be in global or shared memory. */
    if (insn->space == CT_SPACE_LOCAL)
        ct_gen_refuse(g, PTX2SPV_INVALID_PTX, "atomic operation on local memory");
    else if (insn->space == CT_SPACE_GENERIC)
        ct_gen_dispatch(g, address,
                        &(struct ct_dispatch){.arm = atomic_arm, .user = job, .types = &job->type, .n_results = 1, .never_local = true},
                        &result);
    else
        atomic_arm(g, insn->space, address, job, &result);
    if (g->failed || !insn->n_results || !insn->results[0].i)
        return;
    if (job->is_float)
        ct_gen_define_float(g, insn->results[0], result);
    else
        ct_gen_define(g, insn->results[0], result);
}

void ct_gen_atomic(struct ct_gen *g, const struct ct_insn *insn)
{
    struct atomic_job job = {.insn = insn, .bits = ptx_type_bits(insn->type)};
    const bool known = insn->operation < sizeof atomic_ops / sizeof *atomic_ops;

    /* Exchanges transfer bits, whatever the type is. */
    job.is_float = ptx_type_is_float(insn->type) && insn->operation != PTX_EXCH && insn->operation != PTX_CAS;
    if (job.is_float)
        job.op = insn->operation == PTX_ADD ? SpvOpAtomicFAddEXT : 0;
    else if (known)
        job.op = ptx_type_is_signed(insn->type) ? atomic_ops[insn->operation].of_signed : atomic_ops[insn->operation].of_unsigned;
    if (!job.op || (job.bits != 32 && job.bits != 64)) {
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "atomic operation %u on type .%s", insn->operation, ptx_type_name(insn->type));
        return;
    }
    job.type = job.is_float ? ct_gen_float_type(g, job.bits) : ct_gen_int_type(g, job.bits);
    run_atomic(g, &job);
}

/* ---- fences and barriers ---- */

void ct_gen_fence(struct ct_gen *g, const struct ct_insn *insn)
{
    const bool is_named = insn->semantics == PTX_ACQUIRE || insn->semantics == PTX_RELEASE || insn->semantics == PTX_SC;

    GEN_VOID(g, SpvOpMemoryBarrier, ct_gen_scope(g, CT_SPACE_GLOBAL, insn->scope),
             ct_gen_semantics(g, is_named ? insn->semantics : PTX_ACQ_REL));
}

static bool is_zero(const struct ct_gen *g, ct_value value)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;

    return def && def->op == CT_OP_CONST && def->imm == 0;
}

/* bar.sync 0 of the whole block; it also orders the block's accesses to all memory. */
void ct_gen_barrier(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t block = ct_gen_u32(g, SpvScopeWorkgroup);

    if (insn->mode != PTX_MODE_SYNC && insn->mode != PTX_MODE_NONE)
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "instruction %s", insn->mode == PTX_MODE_ARRIVE ? "bar.arrive" : "bar.red");
    else if (insn->n_operands > 1)
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "instruction bar.sync with a thread count");
    else if (insn->n_operands && insn->operands[0].i && !is_zero(g, insn->operands[0]))
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "instruction bar.sync with another barrier than 0");
    else
        GEN_VOID(g, SpvOpControlBarrier, block, block, ct_gen_semantics(g, PTX_ACQ_REL));
    ct_gen_cut(g);
}
