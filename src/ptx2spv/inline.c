/* SPDX-License-Identifier: Apache-2.0 */
/* inline: every call becomes the code of what it calls.
 * In:  register form.   Out: no CALL; formal parameters and results are the caller's objects (ct_local.same_as).
 *
 *     B: x; call f(a); y; br C        B: x; br f0          f0: a fresh instance of f, its RETs: br B'
 *                                     B': y; br C
 *
 * Calls wait on a stack, so nesting costs no C stack; each knows the instance that it stands in, so a function that is met again
 * among the callers of its call is recursion. */
#include "ir.h"

#include <inttypes.h>
#include <string.h>

#define MAX_INSTANCES 65536u /* calls that double at each level grow without bound otherwise */
#define MAX_VALUES (1u << 24)

struct instance {
    const struct instance *caller; /* NULL for the kernel */
    const struct ptx_function *source;
};

struct waiting_call {
    struct ct_insn *call;
    const struct instance *caller;
};

struct inliner {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t n_instances;
    CT_VEC(struct waiting_call) waiting;
};

/* Calls in blocks from `first` on. Later ones come off the stack first: splitting behind them leaves little to move. */
static void find_calls(struct inliner *in, uint32_t first, const struct instance *caller)
{
    for (uint32_t b = first; b < in->fn->blocks.n; b++)
        for (struct ct_insn *insn = in->fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_CALL)
                *CT_PUSH(in->scratch, &in->waiting) = (struct waiting_call){insn, caller};
}

/* Functions that every CUDA device has without a definition (CUDA C++ Programming Guide, "Formatted Output", "Dynamic Global
 * Memory Allocation", "Assertion"). */
static bool is_system_function(const char *name)
{
    static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* "f -> g -> f" for a call of `callee` in `caller`. */
static const char *name_cycle(struct inliner *in, const struct instance *caller, const struct ptx_function *callee)
{
    const char *cycle = callee->name;

    for (; caller->source != callee; caller = caller->caller)
        cycle = ct_arena_printf(in->scratch, "%s -> %s", caller->source->name, cycle);
    return ct_arena_printf(in->scratch, "%s -> %s", callee->name, cycle);
}

static bool check_call(struct inliner *in, const struct waiting_call *waiting)
{
    struct ct_compilation *compilation = in->fn->compilation;
    const struct ptx_function *callee = waiting->call->callee;
    const struct ct_location where = waiting->call->where;

    if (!callee)
        return ct_error(compilation, where, PTX2SPV_UNSUPPORTED, "an indirect call is not supported");
    if (!callee->has_body && is_system_function(callee->name))
        return ct_error(compilation, where, PTX2SPV_UNSUPPORTED, "the system function %s is not supported", callee->name);
    if (!callee->has_body)
        return ct_error(compilation, where, PTX2SPV_INVALID_PTX, "call of the extern function %s, which the module does not define",
                        callee->name);
    for (const struct instance *at = waiting->caller; at; at = at->caller)
        if (at->source == callee)
            return ct_error(compilation, where, PTX2SPV_UNSUPPORTED, "recursion is not supported: %s",
                            name_cycle(in, waiting->caller, callee));
    if (++in->n_instances > MAX_INSTANCES || in->fn->values.n > MAX_VALUES)
        return ct_error(compilation, where, PTX2SPV_UNSUPPORTED,
                        "%s calls more than can be inlined: %" PRIu32 " functions, %" PRIu32 " values", in->fn->name, in->n_instances,
                        in->fn->values.n);
    return true;
}

/* The callee's objects for its parameters and results are the ones that the caller names. */
static void bind_objects(struct ct_fn *fn, const struct ct_insn *call, const struct ct_body *body)
{
    const uint32_t n = call->callee->n_params + call->callee->n_results;

    for (uint32_t i = 0; call->call_locals && body->locals && i < n; i++)
        if (body->locals[i] && call->call_locals[i])
            fn->locals.v[body->locals[i] - 1].same_as = call->call_locals[i];
}

static void jump(struct ct_fn *fn, struct ct_block *from, struct ct_block *to, struct ct_location where)
{
    struct ct_insn *insn = ct_insn_create(fn, CT_OP_BR, PTX_NONE, 0, 0);

    insn->where = where;
    ct_insn_append(from, insn);
    ct_block_set_succs(fn, from, 1, &to);
}

static bool inline_call(struct inliner *in, const struct waiting_call *waiting)
{
    struct ct_fn *fn = in->fn;
    struct ct_insn *call = waiting->call;
    struct ct_block *block = call->block;
    struct instance *instance = CT_ARENA_NEW(in->scratch, struct instance);
    const uint32_t first_block = fn->blocks.n;
    struct ct_body body = {0};

    if (!check_call(in, waiting) || !ct_build_body(fn, call->callee, &body))
        return false;
    *instance = (struct instance){waiting->caller, call->callee};
    find_calls(in, first_block, instance);
    bind_objects(fn, call, &body);

    struct ct_block *rest = ct_block_split(fn, block, call);
    ct_insn_remove(call);
    jump(fn, block, body.entry, call->where);
    for (uint32_t i = 0; i < body.returns.n; i++) {
        ct_insn_remove(body.returns.v[i]->last);
        jump(fn, body.returns.v[i], rest, call->where);
    }
    return true;
}

enum ct_pass_result ct_pass_inline(struct ct_fn *fn)
{
    struct inliner in = {.fn = fn, .scratch = &fn->compilation->scratch};
    struct instance *kernel = CT_ARENA_NEW(in.scratch, struct instance);

    kernel->source = fn->source;
    find_calls(&in, 0, kernel);
    if (!in.waiting.n)
        return CT_PASS_UNCHANGED;
    while (in.waiting.n) {
        const struct waiting_call next = in.waiting.v[--in.waiting.n];

        if (!inline_call(&in, &next))
            return CT_PASS_FAILED;
    }
    ct_fn_remove_unreachable(fn);
    return CT_PASS_CHANGED;
}
