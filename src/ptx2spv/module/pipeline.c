/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles one kernel of a module to SPIR-V: build, the passes of passes.def, emit. Only this driver dumps, verifies and stops on
 * failure. It owns the compilation's memory: everything except the result is freed before it returns. */
#include "ptx2spv/ir/ir.h"
#include "module.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct pass {
    const char *name;
    enum ct_pass_result (*run)(struct ct_fn *fn);
    uint32_t needs, gives, breaks;
};

static const struct pass passes[] = {
#define PASS(name, needs, gives, breaks) {#name, ct_pass_##name, needs, gives, breaks},
#include "passes.def"
};

enum {
#define PASS(name, needs, gives, breaks) PASS_##name,
#include "passes.def"
    N_PASSES
};

/* Whether the comma-separated list `names` contains `name`, or is "all". */
static bool is_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);

    if (!names)
        return false;
    if (!strcmp(names, "all"))
        return true;
    for (const char *at = names; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

/* Runs after each pass, including `build`. */
static bool finish_pass(struct ct_fn *fn, const char *name)
{
    struct ct_compilation *compilation = fn->compilation;
    const struct ptx2spv_options *options = &compilation->options;

    fn->last_pass = name;
    if (options->on_dump && is_listed(options->dump, name))
        options->on_dump(options->user, name, ct_fn_dump(fn, &compilation->scratch));
#ifndef NDEBUG
    if (!ct_fn_verify(fn))
        return false;
#endif
    ct_arena_reset(&compilation->scratch);
    return true;
}

static bool run_pass(struct ct_fn *fn, const struct pass *pass)
{
    if ((fn->props & pass->needs) != pass->needs)
        return ct_error(fn->compilation, fn->source->where, PTX2SPV_INTERNAL,
                        "internal error in %s: %s needs the missing properties 0x%" PRIx32, fn->name, pass->name, pass->needs & ~fn->props);
    if (fn->props & CT_PROP_SSA)
        ct_fn_compute_defs(fn);
    if (pass->run(fn) == CT_PASS_FAILED)
        return fn->compilation->n_errors ? false
                                         : ct_error(fn->compilation, fn->source->where, PTX2SPV_INTERNAL,
                                                    "internal error in %s: %s failed without a diagnostic", fn->name, pass->name);
    fn->props = (fn->props | pass->gives) & ~pass->breaks;
    return finish_pass(fn, pass->name);
}

/* Runs the passes from number `first` up to and including the one named `last`, or to the end. */
static bool run_passes(struct ct_fn *fn, size_t first, const char *last)
{
    for (size_t i = first; i < N_PASSES; i++) {
        if (!run_pass(fn, &passes[i]))
            return false;
        if (last && !strcmp(last, passes[i].name))
            return true;
    }
    return true;
}

bool ct_fn_run_passes(struct ct_fn *fn, const char *last)
{
    struct ct_body body = {0};

    if (!ct_build_body(fn, fn->source, &body) || fn->compilation->n_errors || !finish_pass(fn, "build"))
        return false;
    if (last && !strcmp(last, "build"))
        return true;
    if (!run_passes(fn, 0, last))
        return false;
    for (uint32_t i = 0; i < fn->subroutines.n; i++)
        if (!run_passes(fn->subroutines.v[i].fn, PASS_lower, last))
            return false;
    return true;
}

/* ---- requirements on the target ---- */

static bool lacks(struct ct_fn *fn, struct ct_location where, const char *what)
{
    return ct_error(fn->compilation, where, PTX2SPV_TARGET_LACKS, "%s: the device has no %s", fn->name, what);
}

static bool check_insn(struct ct_fn *fn, const struct ct_insn *insn)
{
    const struct ptx2spv_target *target = fn->target;
    const bool computes = insn->op >= CT_OP_FADD && insn->op <= CT_OP_ITOF; /* the float operations of ir_ops.def */
    const bool computes_f64 = computes && (insn->type == PTX_F64 || insn->type2 == PTX_F64);

    if (computes_f64 && !target->float64)
        return lacks(fn, insn->where, "64-bit floating point");
    if (insn->op == CT_OP_ATOM && ptx_type_bits(insn->type) == 64) {
        const bool global = insn->space == CT_SPACE_GLOBAL || insn->space == CT_SPACE_GENERIC;
        const bool shared = insn->space == CT_SPACE_SHARED || (insn->space == CT_SPACE_GENERIC && !fn->shared_in_memory);

        if (global && !target->atomic_int64_global)
            return lacks(fn, insn->where, "64-bit atomic operations on global memory");
        if (shared && !target->atomic_int64_shared)
            return lacks(fn, insn->where, "64-bit atomic operations on shared memory");
    }
    return true;
}

static bool check_insns(struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (!check_insn(fn, insn))
                return false;
    return true;
}

static bool check_target(struct ct_fn *fn)
{
    const struct ptx2spv_target *target = fn->target;

    if (!target->int64)
        return lacks(fn, fn->source->where, "64-bit integers");
    if (!fn->shared_in_memory && fn->shared_bytes > target->shared_bytes)
        return ct_error(fn->compilation, fn->source->where, PTX2SPV_TARGET_LACKS,
                        "%s: %" PRIu32 " bytes of shared memory, but a block of the device has at most %" PRIu32, fn->name,
                        fn->shared_bytes, target->shared_bytes);
    for (uint32_t i = 0; i < fn->subroutines.n; i++)
        if (!check_insns(fn->subroutines.v[i].fn))
            return false;
    return check_insns(fn);
}

/* ---- one compilation ---- */

/* Everything that must survive a longjmp out of the compilation. */
struct job {
    struct ct_compilation compilation;
    const struct ptx2spv_module *module;
    const struct ptx2spv_kernel_decl *decl;
    const struct ptx_function *source;
    struct ptx2spv_target target;
    struct ptx2spv_kernel kernel; /* its words are in the compilation's arena */
};

static void fill_info(const struct ct_fn *fn, struct ptx2spv_kernel_info *info)
{
    *info = (struct ptx2spv_kernel_info){
        .param_bytes = fn->param_bytes,
        .params_in_buffer = fn->params_in_buffer,
        .uses_shared = fn->uses_shared,
        .uses_subgroups = fn->uses_subgroups,
        .uses_dynamic_shared = fn->uses_dynamic_shared,
        .reads_shared_size = fn->reads_shared_size,
        .linear_block = fn->linear_block,
        .uses_barrier = fn->uses_barrier,
        .uses_fault = fn->uses_fault,
        .uses_timer = fn->uses_timer,
        .flushes32 = fn->flushes32,
        .uses_images = fn->uses_images,
        .shared_in_memory = fn->shared_in_memory,
        .whole_warps = fn->whole_warps,
        .limits_grid = fn->limits_grid,
        .limits_objects = fn->limits_objects,
        .slots_param_offset = fn->slots_param_offset,
        .number_param_offset = fn->number_param_offset,
        .check_param_offset = fn->check_param_offset,
        .check_sites = fn->check_sites,
        .check_stored = fn->check_stored,
        .checks_races = fn->checks_races,
        .checks_written = fn->checks_written,
        .checks_barriers = fn->checks_barriers,
        .checks_launches = fn->checks_launches,
        .shared_copies = fn->shared_copies,
        .check_thread_bytes = fn->check_thread_bytes,
        .writes_unseen = fn->writes_unseen,
        .static_shared_bytes = fn->shared_bytes,
        .dynamic_shared_offset = fn->dynamic_shared_offset,
        .local_bytes = fn->local_bytes,
        .stack_bytes = fn->stack_bytes,
        .registers = fn->registers,
        .exchange_bytes = 4 * fn->exchange_words,
        .exchange_thread_bytes = 4 * fn->exchange_thread_words,
        .grid_param_offset = fn->grid_param_offset,
        .grid_thread_words = fn->grid_thread_words,
    };
}

/* The kernel after all passes; NULL after an error. */
static struct ct_fn *run_all_passes(struct job *job)
{
    struct ct_compilation *compilation = &job->compilation;
    struct ct_fn *fn = ct_fn_create(compilation, job->module->syntax, job->source, &job->target);

    fn->param_bytes = fn->declared_param_bytes = job->decl->param_bytes;
    fn->cooperative = compilation->options.cooperative;
    fn->clusters = fn->cooperative && compilation->options.clusters;
    if (fn->cooperative)
        fn->grid_param_offset = ct_fn_add_param(fn, sizeof(uint64_t));
    return ct_fn_run_passes(fn, NULL) ? fn : NULL;
}

static enum ptx2spv_status compile(struct job *job)
{
    struct ct_compilation *compilation = &job->compilation;
    struct ct_fn *fn = run_all_passes(job);
    enum ptx2spv_status status;

    if (fn && fn->needs_native_warps && !fn->has_native_warps) {
        compilation->avoids_native_warps = true;
        fn = run_all_passes(job);
    }
    if (!fn)
        return compilation->status;
    fn->params_in_buffer |= (uint64_t)PTX2SPV_PARAMS_OFFSET + fn->param_bytes > job->target.push_constant_bytes;
    if (!check_target(fn))
        return compilation->status;
    ct_fn_compute_defs(fn);
    status = ct_emit_spirv(fn, &job->kernel);
    if (status == PTX2SPV_OK)
        fill_info(fn, &job->kernel.info);
    return status;
}

/* The frame that longjmp returns to when memory is exhausted. */
static enum ptx2spv_status compile_guarded(struct job *job)
{
    if (setjmp(job->compilation.exhausted))
        return PTX2SPV_OUT_OF_MEMORY;
    return compile(job);
}

static enum ptx2spv_status copy_out(const struct ptx2spv_kernel *kernel, struct ptx2spv_kernel *out)
{
    uint32_t *words = malloc(kernel->n_words * sizeof *words);

    if (!words)
        return PTX2SPV_OUT_OF_MEMORY;
    memcpy(words, kernel->words, kernel->n_words * sizeof *words);
    *out = *kernel;
    out->words = words;
    return PTX2SPV_OK;
}

/* What software64 computes is correctly rounded. */
static void take_software64(struct ptx2spv_target *target)
{
    target->exact_fma64 = target->exact_div64 = target->exact_sqrt64 = 1;
    target->refined_roots64 = target->atomic_float64_add_global = target->atomic_float64_add_shared = 0;
}

enum ptx2spv_status ptx2spv_kernel_compile(const struct ptx2spv_module *module, unsigned index, const struct ptx2spv_target *target,
                                           const struct ptx2spv_options *options, struct ptx2spv_kernel *out)
{
    enum ptx2spv_status status;
    struct job *job;

    if (!ptx2spv_module_kernel(module, index))
        return PTX2SPV_NOT_FOUND;
    if (!(job = calloc(1, sizeof *job)))
        return PTX2SPV_OUT_OF_MEMORY;
    job->module = module;
    job->decl = ptx2spv_module_kernel(module, index);
    job->source = module->entries[index];
    job->target = *target;
    if (!target->float64)
        take_software64(&job->target);
    if (options)
        job->compilation.options = *options;
    job->compilation.arena.on_exhausted = job->compilation.scratch.on_exhausted = &job->compilation.exhausted;
    job->compilation.sources = module->compilation.sources;
    job->compilation.n_sources = module->compilation.n_sources;

    status = compile_guarded(job);
    if (status == PTX2SPV_OK)
        status = copy_out(&job->kernel, out);
    ct_arena_finish(&job->compilation.scratch);
    ct_arena_finish(&job->compilation.arena);
    free(job);
    return status;
}

void ptx2spv_kernel_finish(struct ptx2spv_kernel *kernel)
{
    if (!kernel)
        return;
    free(kernel->words);
    *kernel = (struct ptx2spv_kernel){0};
}

const char *ptx2spv_status_string(enum ptx2spv_status status)
{
    switch (status) {
    case PTX2SPV_OK:
        return "success";
    case PTX2SPV_INVALID_PTX:
        return "invalid PTX";
    case PTX2SPV_UNSUPPORTED:
        return "unsupported PTX";
    case PTX2SPV_UNSUPPORTED_VERSION:
        return "unsupported PTX version";
    case PTX2SPV_NOT_FOUND:
        return "no such kernel";
    case PTX2SPV_OUT_OF_MEMORY:
        return "out of memory";
    case PTX2SPV_TARGET_LACKS:
        return "the device lacks a feature that the kernel needs";
    case PTX2SPV_INTERNAL:
        return "internal compiler error";
    case PTX2SPV_UNDEFINED:
        return "undefined function or variable";
    case PTX2SPV_MULTIPLY_DEFINED:
        return "conflicting definitions of a name";
    }
    return "unknown status";
}
