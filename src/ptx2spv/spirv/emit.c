/* SPDX-License-Identifier: Apache-2.0 */
/* emit: structured IR to a SPIR-V module for Vulkan 1.3 or for OpenCL 2.2 and newer.
 * In:  SSA, primitives only, structured.   Out: words in the compilation's arena; fn->params_in_buffer and fn->uses_shared are set. The
 *      output is deterministic. This file has what both dialects share; emit_vulkan.c and emit_opencl.c have the rest. */
#include "emit.h"

#define IDS_MAX 0x3fffffu /* SPIR-V, "Universal Limits" */

typedef void gen_fn(struct ct_gen *g, const struct ct_insn *insn);

static void gen_nothing(struct ct_gen *g, const struct ct_insn *insn)
{
    (void)g;
    (void)insn; /* module-scope constants, emitted where they are used */
}

static void gen_copy(struct ct_gen *g, const struct ct_insn *insn)
{
    ct_gen_define(g, insn->results[0], ct_gen_use(g, insn->operands[0]));
}

static void gen_sysval(struct ct_gen *g, const struct ct_insn *insn)
{
    ct_gen_define(g, insn->results[0], ct_gen_sysval(g, insn->sreg));
}

static void gen_sample(struct ct_gen *g, const struct ct_insn *insn)
{
    g->dialect->sample(g, insn);
}

static void gen_image_size(struct ct_gen *g, const struct ct_insn *insn)
{
    g->dialect->image_size(g, insn);
}

static gen_fn *const emitters[CT_OP_COUNT] = {
    [CT_OP_CONST] = gen_nothing,
    [CT_OP_UNDEF] = gen_nothing,
    [CT_OP_COPY] = gen_copy,
    [CT_OP_SYSVAL] = gen_sysval,
    [CT_OP_CLOCK] = ct_gen_clock,
    [CT_OP_SUBROUTINE] = ct_gen_subroutine,
    [CT_OP_ARGUMENT] = ct_gen_argument,
    [CT_OP_RESULT] = ct_gen_result,
    [CT_OP_LOAD] = ct_gen_load,
    [CT_OP_STORE] = ct_gen_store,
    [CT_OP_SAMPLE] = gen_sample,
    [CT_OP_IMAGESIZE] = gen_image_size,
    [CT_OP_ATOM] = ct_gen_atomic,
    [CT_OP_FENCE] = ct_gen_fence,
    [CT_OP_BARRIER] = ct_gen_barrier,
    [CT_OP_LANEREAD] = ct_gen_laneread,
    [CT_OP_BALLOT] = ct_gen_ballot,
    [CT_OP_WARPSYNC] = ct_gen_warpsync,
    [CT_OP_CONVERGE] = ct_gen_warpsync,
    [CT_OP_MATRIXMAD] = ct_gen_matrix_mad,
    [CT_OP_MATRIXLOAD] = ct_gen_matrix_load,
    [CT_OP_MATRIXSIZE] = ct_gen_matrix_size,
#define INTEGER(op) [CT_OP_##op] = ct_gen_integer
    INTEGER(SELECT),
    INTEGER(PACK),
    INTEGER(UNPACK),
    INTEGER(ADD),
    INTEGER(SUB),
    INTEGER(MUL),
    INTEGER(MULHI),
    INTEGER(MULWIDE),
    INTEGER(UDIV),
    INTEGER(SDIV),
    INTEGER(UREM),
    INTEGER(SREM),
    INTEGER(NEG),
    INTEGER(AND),
    INTEGER(OR),
    INTEGER(XOR),
    INTEGER(NOT),
    INTEGER(SHL),
    INTEGER(SHR),
    INTEGER(MIN),
    INTEGER(MAX),
    INTEGER(POPC),
    INTEGER(CLZ),
    INTEGER(BREV),
    INTEGER(ICMP),
    INTEGER(TRUNC),
    INTEGER(EXT),
#undef INTEGER
#define FLOAT(op) [CT_OP_##op] = ct_gen_float
    FLOAT(FADD),
    FLOAT(FSUB),
    FLOAT(FMUL),
    FLOAT(FFMA),
    FLOAT(FDIV),
    FLOAT(FRCP),
    FLOAT(FSQRT),
    FLOAT(FRSQRT),
    FLOAT(FSIN),
    FLOAT(FCOS),
    FLOAT(FLG2),
    FLOAT(FEX2),
    FLOAT(FMIN),
    FLOAT(FMAX),
    FLOAT(FNEG),
    FLOAT(FABS),
    FLOAT(FFLOOR),
    FLOAT(FCEIL),
    FLOAT(FTRUNC),
    FLOAT(FRINT),
    FLOAT(FCMP),
    FLOAT(FTOF),
    FLOAT(FTOI),
    FLOAT(ITOF),
#undef FLOAT
};

void ct_gen_insn(struct ct_gen *g, const struct ct_insn *insn)
{
    if (insn->where.line)
        g->where = insn->where;
    if (emitters[insn->op])
        emitters[insn->op](g, insn);
    else
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "instruction %s", ct_op_infos[insn->op].name);
}

/* Checks those requirements against the target that no single instruction checks. */
static bool check_target(struct ct_gen *g)
{
    if (!g->fn->shared_in_memory && g->fn->shared_bytes > g->target->shared_bytes)
        ct_gen_refuse(g, PTX2SPV_TARGET_LACKS, "the kernel has %u bytes of shared memory, the device %u", g->fn->shared_bytes,
                      g->target->shared_bytes);
    return !g->failed;
}

void ct_gen_code(struct ct_gen *g)
{
    ct_fn_compute_defs(g->fn);
    ct_gen_positions(g);
    ct_gen_plan_values(g);
    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_REPEATED_PRODUCTS))
        ct_gen_find_sums(g);
    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_CONSTANT_CHOICES))
        ct_gen_find_choices(g);
    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_COMPARISONS))
        ct_gen_find_pairs(g);
    if (g->target->splits_fma32)
        ct_gen_find_contractions(g);
    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_CONSTANT_FACTORS))
        ct_gen_find_factors(g);
    ct_gen_tree(g);
}

static bool is_subgroup_operation(const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_LANEREAD:
    case CT_OP_BALLOT:
    case CT_OP_WARPSYNC:
    case CT_OP_CONVERGE:
    case CT_OP_MATRIXMAD:
    case CT_OP_MATRIXLOAD:
    case CT_OP_MATRIXSIZE:
        return true;
    default:
        return false;
    }
}

static bool has_subgroup_operations(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_subgroup_operation(insn))
                return true;
    return false;
}

enum ptx2spv_status ct_emit_spirv(struct ct_fn *fn, struct ptx2spv_kernel *out)
{
    const struct ct_dialect *dialect = fn->target->dialect == PTX2SPV_OPENCL ? &ct_dialect_opencl : &ct_dialect_vulkan;
    struct ct_spv_environment environment = dialect->environment;
    struct ct_gen g = {.fn = fn, .target = fn->target, .dialect = dialect, .version = dialect->environment.version};

    if (fn->source)
        g.where = fn->source->where;
    if (!check_target(&g))
        return fn->compilation->status;
    fn->uses_shared = !fn->shared_in_memory && ct_fn_uses_shared(fn);
    fn->uses_subgroups = has_subgroup_operations(fn);
    g.hides_signs = ct_gen_must_hide_signs(fn);
    g.has_wide_words = ct_gen_wants_wide_words(fn);
    g.words_view = ct_gen_words_view(fn);
    ct_spv_module_init(&g.m, &fn->compilation->scratch);
    g.subroutines = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->subroutines.n);
    ct_gen_begin_entry(&g);
    ct_gen_code(&g);
    ct_gen_subroutines(&g);
    ct_gen_end_entry(&g);
    if (!g.failed && g.m.bound > IDS_MAX)
        ct_gen_refuse(&g, PTX2SPV_UNSUPPORTED, "a kernel of %u SPIR-V ids", g.m.bound);
    if (g.failed)
        return fn->compilation->status;
    environment.version = g.version;
    out->words = ct_spv_module_finish(&g.m, &environment, &fn->compilation->arena, &out->n_words);
    return PTX2SPV_OK;
}
