/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point ("main"), system values and parameters, as far as they are the same in both dialects; and the other functions of a module.
 *
 * System values are computed once, at the start of the function (the PROLOGUE section), on first use. */
#include "emit.h"

#include <string.h>

uint32_t ct_gen_global_variable(struct ct_gen *g, SpvStorageClass storage, uint32_t type)
{
    const uint32_t id = CT_SPV_RESULT(&g->m, CT_SPV_GLOBALS, SpvOpVariable, ct_spv_type_pointer(&g->m, storage, type), storage);

    *CT_PUSH(&g->fn->compilation->scratch, &g->interface) = id;
    return id;
}

/* ---- system values ---- */

static uint32_t compute_sysval(struct ct_gen *g, enum ct_sysval which)
{
    switch ((unsigned)which) {
    case CT_SYS_LANEID:
        return GEN_EARLY(g, SpvOpBitwiseAnd, ct_gen_int_type(g, 32), ct_gen_sysval(g, CT_SYS_TID_LINEAR), ct_gen_u32(g, 31));
    case CT_SYS_DYNAMIC_SHARED_BYTES:
        return GEN_EARLY(g, SpvOpISub, ct_gen_int_type(g, 32), ct_gen_sysval(g, CT_SYS_SHARED_BYTES),
                         ct_gen_u32(g, g->fn->dynamic_shared_offset));
    /* No API tells the number of multiprocessors to a kernel: the device looks as if it had one. */
    case CT_SYS_SMID:
        return ct_gen_u32(g, 0);
    case CT_SYS_NSMID:
        return ct_gen_u32(g, 1);
    case CT_SYS_SHARED_BYTES:
        g->fn->reads_shared_size = true;
        return g->dialect->sysval(g, which);
    default:
        return g->dialect->sysval(g, which);
    }
}

uint32_t ct_gen_sysval(struct ct_gen *g, enum ct_sysval which)
{
    if (!g->sysvals[which])
        g->sysvals[which] = compute_sysval(g, which);
    return g->sysvals[which];
}

uint32_t ct_gen_early_zero_of(struct ct_gen *g, uint32_t number)
{
    const uint32_t uint = ct_gen_int_type(g, 32), z = ct_gen_sysval(g, CT_SYS_NCTAID_Z);
    const uint32_t zero = GEN_EARLY(g, SpvOpShiftRightLogical, uint, z, ct_gen_u32(g, 16)); /* the grid's z is at most 65535 */

    return GEN_EARLY(g, SpvOpBitwiseAnd, uint, number, zero);
}

/* LLVM's own, where its functions may be called: such runtimes do not offer cl_khr_kernel_clock (PoCL 6.0). */
static uint32_t llvm_clock(struct ct_gen *g)
{
    const uint32_t type = ct_gen_int_type(g, 64), function = ct_spv_import(&g->m, "llvm.readcyclecounter", type, 0);

    return GEN(g, SpvOpFunctionCall, type, function);
}

static uint32_t driver_clock(struct ct_gen *g, SpvScope scope)
{
    ct_spv_capability(&g->m, SpvCapabilityShaderClockKHR);
    ct_spv_extension(&g->m, "SPV_KHR_shader_clock");
    return GEN(g, SpvOpReadClockKHR, ct_gen_int_type(g, 64), ct_gen_u32(g, scope));
}

void ct_gen_clock(struct ct_gen *g, const struct ct_insn *insn)
{
    const bool of_device = insn->scope == PTX_GPU && g->target->shader_clock_device;
    const bool in_subgroup = g->target->shader_clock_subgroup && !of_device;

    g->fn->uses_timer |= insn->scope == PTX_GPU || ct_gen_works_around(g, PTX2SPV_WORKAROUND_TRUNCATED_CLOCK);
    ct_gen_need(g, in_subgroup || g->target->shader_clock_device || g->target->llvm_functions, "a clock");
    if (in_subgroup || g->target->shader_clock_device)
        ct_gen_define(g, insn->results[0], driver_clock(g, in_subgroup ? SpvScopeSubgroup : SpvScopeDevice));
    else
        ct_gen_define(g, insn->results[0], llvm_clock(g));
}

/* ---- parameters ---- */

void ct_gen_load_param(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ptx_type_bits(insn->type);

    if (insn->offset < 0 || bits < 8 || bits > 64) {
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "load of %u bits at %lld of the parameters", bits, (long long)insn->offset);
        return;
    }
    for (uint32_t i = 0; i < insn->n_results; i++) {
        const uint32_t offset = (uint32_t)insn->offset + i * bits / 8;

        if (insn->results[i].i)
            ct_gen_define(g, insn->results[i],
                          ct_gen_resize(g, g->dialect->param(g, offset, bits), bits, ct_gen_bits(g, insn->results[i]),
                                        ptx_type_is_signed(insn->type)));
    }
}

/* ---- the function ---- */

void ct_gen_begin_entry(struct ct_gen *g)
{
    g->dialect->begin(g);
    g->label = ct_gen_label(g);
    g->open = true;
    CT_SPV_EMIT(&g->m, CT_SPV_VARIABLES, SpvOpLabel, g->label);
}

/* A float execution mode for each width that is in use and that the device supports. */
static bool declare_float_mode(struct ct_gen *g, SpvExecutionMode mode, SpvCapability capability, const uint8_t granted[3])
{
    bool any = false;

    for (unsigned i = 0; i < 3; i++)
        if (granted[i] && g->float_widths & 1u << i) {
            ct_spv_capability(&g->m, capability);
            CT_SPV_EMIT(&g->m, CT_SPV_MODES, SpvOpExecutionMode, g->entry, mode, 16u << i);
            any = true;
        }
    return any;
}

bool ct_gen_float_modes(struct ct_gen *g)
{
    const struct ptx2spv_target *t = g->target;
    bool any;

    any = declare_float_mode(g, SpvExecutionModeDenormPreserve, SpvCapabilityDenormPreserve,
                             (const uint8_t[]){t->denorm_preserve16, t->denorm_preserve32 && !g->fn->flushes32, t->denorm_preserve64});
    if (t->dialect == PTX2SPV_VULKAN)
        any |= declare_float_mode(g, SpvExecutionModeDenormFlushToZero, SpvCapabilityDenormFlushToZero,
                                  (const uint8_t[]){0, g->fn->flushes32, 0});
    any |= declare_float_mode(g, SpvExecutionModeRoundingModeRTE, SpvCapabilityRoundingModeRTE,
                              (const uint8_t[]){t->rounding_rte16, t->rounding_rte32, t->rounding_rte64});
    any |= declare_float_mode(g, SpvExecutionModeSignedZeroInfNanPreserve, SpvCapabilitySignedZeroInfNanPreserve,
                              (const uint8_t[]){t->signed_zero_inf_nan16, t->signed_zero_inf_nan32, t->signed_zero_inf_nan64});
    return any;
}

void ct_gen_end_entry(struct ct_gen *g)
{
    ct_spv_words words = {0};
    struct ct_arena *scratch = &g->fn->compilation->scratch;

    ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpFunctionEnd, NULL, 0);
    g->dialect->end(g);
    *CT_PUSH(scratch, &words) = g->dialect->execution_model;
    *CT_PUSH(scratch, &words) = g->entry;
    ct_spv_push_string(&g->m, &words, "main");
    for (uint32_t i = 0; i < g->interface.n; i++)
        *CT_PUSH(scratch, &words) = g->interface.v[i];
    ct_spv_emit(&g->m, CT_SPV_ENTRY, SpvOpEntryPoint, words.v, words.n);
}

/* ---- subroutines (lower_subroutine.c): parameters and result are integers, since values have no float type ---- */

/* Once the function is inlined, a constant argument is a constant operand of the sequence. */
static uint32_t use_argument(struct ct_gen *g, ct_value value)
{
    const uint32_t zero = ct_gen_hidden_zero_or_none(g, value);

    return zero ? zero : ct_gen_use(g, value);
}

void ct_gen_subroutine(struct ct_gen *g, const struct ct_insn *insn)
{
    uint32_t words[1 + CT_SPV_MAX_PARAMETERS];

    if (!g->subroutines[insn->imm])
        g->subroutines[insn->imm] = ct_spv_id(&g->m);
    words[0] = g->subroutines[insn->imm];
    for (uint32_t i = 0; i < insn->n_operands; i++)
        words[i + 1] = use_argument(g, insn->operands[i]);
    ct_gen_define(g, insn->results[0],
                  ct_spv_result(&g->m, CT_SPV_CODE, SpvOpFunctionCall, ct_gen_int_type(g, ct_gen_bits(g, insn->results[0])), words,
                                insn->n_operands + 1));
}

void ct_gen_argument(struct ct_gen *g, const struct ct_insn *insn)
{
    ct_gen_define(g, insn->results[0], g->arguments[insn->imm]);
}

void ct_gen_result(struct ct_gen *g, const struct ct_insn *insn)
{
    GEN_VOID(g, SpvOpReturnValue, ct_gen_use(g, insn->operands[0]));
    g->open = false;
}

/* The head of the function. Arguments and result have the widths of the operation's. */
static void begin(struct ct_gen *g, const struct ct_insn *operation, uint32_t id)
{
    const uint32_t n = operation->n_operands;
    uint32_t types[1 + CT_SPV_MAX_PARAMETERS];

    types[0] = ct_gen_int_type(g, ct_gen_bits(g, operation->results[0]));
    for (uint32_t i = 0; i < n; i++)
        types[i + 1] = ct_gen_int_type(g, ct_gen_bits(g, operation->operands[i]));
    CT_SPV_EMIT(&g->m, CT_SPV_VARIABLES, SpvOpFunction, types[0], id, SpvFunctionControlInlineMask,
                ct_spv_intern(&g->m, SpvOpTypeFunction, 0, types, n + 1));
    for (uint32_t i = 0; i < n; i++)
        g->arguments[i] = ct_spv_result(&g->m, CT_SPV_VARIABLES, SpvOpFunctionParameter, types[i + 1], NULL, 0);
    g->label = ct_gen_label(g);
    g->open = true;
    CT_SPV_EMIT(&g->m, CT_SPV_VARIABLES, SpvOpLabel, g->label);
}

/* System values are computed at the start of each function that uses them. */
static void gen_function(struct ct_gen *g, const struct ct_subroutine *subroutine, uint32_t id)
{
    struct ct_spv_outer outer;

    g->fn = subroutine->fn;
    g->pairs = NULL;
    memset(g->sysvals, 0, sizeof g->sysvals);
    ct_spv_function_begin(&g->m, &outer);
    begin(g, subroutine->operation, id);
    ct_gen_code(g);
    ct_spv_function_end(&g->m, &outer);
}

/* A subroutine may call others, which come before or after it. */
void ct_gen_subroutines(struct ct_gen *g)
{
    struct ct_fn *kernel = g->fn;
    bool *is_done = CT_ARENA_ARRAY(&kernel->compilation->scratch, bool, kernel->subroutines.n);

    for (uint32_t i = 0; i < kernel->subroutines.n && !g->failed; i++) {
        if (!g->subroutines[i] || is_done[i])
            continue;
        is_done[i] = true;
        gen_function(g, &kernel->subroutines.v[i], g->subroutines[i]);
        i = UINT32_MAX; /* from the first one again */
    }
    g->fn = kernel;
}
