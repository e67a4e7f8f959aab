/* SPDX-License-Identifier: Apache-2.0 */
/* inline: replaces every call by the body of the function that it calls.
 * In:  register form.   Out: no CALL; the formal parameters and results are the caller's objects (ct_local.same_as).
 *
 *     B: x; call f(a); y; br C        B: x; br f0          f0: a new instance of f, whose RETs are br B'
 *                                     B': y; br C
 *
 * The pending calls are kept on a stack, so deep nesting needs no recursion here. Each pending call knows the instance that contains it: a
 * callee that is found again among the callers of its call is recursive. A table has those callers by function.
 *
 * A call through an address becomes a switch on the address: it selects a direct call of one of the functions whose address the module
 * takes and whose parameters fit, or a trap for all other addresses. Such a switch offers more functions than will ever be called: a
 * method that calls a virtual method with the same signature appears to call itself. Therefore a cycle that goes through an address is
 * not an error at compile time: the call that would close the cycle becomes a trap, and a warning says so. So does a call of functions that are
 * too large together to stand in the kernel: NCCL's kernels contain the collective operation that they are for, and call every other one of the
 * library through a table (4 million instructions). */
#include "ptx2spv/module/module.h"
#include "ptx2spv/ir/builder.h"

#include <inttypes.h>
#include <string.h>

#define MAX_INSTANCES 65536u /* without a limit, calls that double at each level would grow exponentially */
#define MAX_VALUES (1u << 24)
/* PTX instructions of all functions that one call by address may reach. Without a limit NCCL's first kernel took 50 s to be refused. */
#define MAX_DISPATCHED 500000u

struct instance {
    const struct instance *caller; /* NULL for the kernel */
    const struct ptx_function *source;
    uint32_t by_address; /* how many of this instance and those that it is called from were called through an address */
};

struct pending_call {
    struct ct_insn *call;
    const struct instance *caller;
    bool by_address; /* one of the direct calls that an address selects */
};

struct inliner {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t n_instances;
    bool warned, warned_of_size;
    CT_VEC(struct pending_call) pending;
    /* The instances from the kernel to the caller of the call at hand, and the same by function: a hash table with open addressing, keyed
     * by the function's address. It is never enumerated, so its order does not matter. */
    CT_VEC(const struct instance *) path;
    struct running {
        const struct ptx_function *function;
        const struct instance *instance; /* NULL: no longer on the path */
    } *running;
    uint32_t mask;
};

static struct running *find_running(const struct inliner *in, const struct ptx_function *function)
{
    uint32_t i = (uint32_t)(((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15u >> 32) & in->mask;

    while (in->running[i].function && in->running[i].function != function)
        i = (i + 1) & in->mask;
    return &in->running[i];
}

static void enter_instance(struct inliner *in, const struct instance *instance)
{
    *find_running(in, instance->source) = (struct running){instance->source, instance};
    *CT_PUSH(in->scratch, &in->path) = instance;
}

/* Pending calls are taken from a stack, so the caller of the next one is on the path. */
static void return_to(struct inliner *in, const struct instance *caller)
{
    while (in->path.v[in->path.n - 1] != caller)
        find_running(in, in->path.v[--in->path.n]->source)->instance = NULL;
}

static void prepare_path(struct inliner *in, const struct instance *kernel)
{
    while (in->mask < 2 * in->fn->module->functions.n + 2)
        in->mask = in->mask * 2 + 1;
    in->running = CT_ARENA_ARRAY(in->scratch, struct running, (size_t)in->mask + 1);
    enter_instance(in, kernel);
}

/* Adds the calls in the blocks from `first` on. The later ones are popped first, so that splitting a block moves few instructions. */
static void find_calls(struct inliner *in, uint32_t first, const struct instance *caller)
{
    for (uint32_t b = first; b < in->fn->blocks.n; b++)
        for (struct ct_insn *insn = in->fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_CALL)
                *CT_PUSH(in->scratch, &in->pending) = (struct pending_call){insn, caller, false};
}

/* "f -> g -> f" for a call of `callee` in `caller`. */
static const char *name_cycle(struct inliner *in, const struct instance *caller, const struct ptx_function *callee)
{
    const char *cycle = callee->name;

    for (; caller->source != callee; caller = caller->caller)
        cycle = ct_arena_printf(in->scratch, "%s -> %s", caller->source->name, cycle);
    return ct_arena_printf(in->scratch, "%s -> %s", callee->name, cycle);
}

/* Whether the call closes a cycle in which some function is called through its address. `first`: the instance of the callee among the
 * callers, or NULL. */
static bool may_be_recursion(const struct pending_call *pending, const struct instance *first)
{
    return first && (pending->by_address || pending->caller->by_address > first->by_address);
}

static bool check_call(struct inliner *in, const struct pending_call *pending, const struct instance *first)
{
    struct ct_compilation *compilation = in->fn->compilation;
    const struct ptx_function *callee = pending->call->callee;
    const struct ct_location where = pending->call->where;

    if (!callee->has_body && ptx_is_system_function(callee->name))
        return ct_error(compilation, where, PTX2SPV_UNSUPPORTED, "the system function %s is not supported", callee->name);
    if (!callee->has_body)
        return ct_error(compilation, where, PTX2SPV_INVALID_PTX, "call of the extern function %s, which the module does not define",
                        callee->name);
    if (first)
        return ct_error(compilation, where, PTX2SPV_UNSUPPORTED, "recursion is not supported: %s", name_cycle(in, pending->caller, callee));
    if (++in->n_instances > MAX_INSTANCES || in->fn->values.n > MAX_VALUES)
        return ct_error(compilation, where, PTX2SPV_UNSUPPORTED,
                        "%s calls more than can be inlined: %" PRIu32 " functions, %" PRIu32 " values", in->fn->name, in->n_instances,
                        in->fn->values.n);
    return true;
}

/* The callee's objects for its parameters and results are those that the call names. */
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

/* ---- calls through addresses ---- */

/* Whether a call through an address may reach this function. */
static bool is_candidate(const struct ptx_function *function, const struct ptx_function *signature)
{
    return function->address_number && function->has_body && !function->is_entry && ptx_same_signature(function, signature);
}

struct candidates { /* indexed by address number, from `first` on; NULL where a function does not fit */
    struct ptx_function **functions;
    uint32_t first, n;
    uint64_t instructions; /* of all together, without what they call */
};

static struct candidates find_candidates(struct inliner *in, const struct ct_insn *call)
{
    const struct ptx_targets *targets = call->targets;
    struct ptx_function *const *all = targets ? targets->functions : in->fn->module->functions.v;
    const uint32_t n = targets ? targets->n : in->fn->module->functions.n;
    struct candidates found = {.first = UINT32_MAX};
    uint32_t last = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!is_candidate(all[i], call->callee))
            continue;
        found.first = all[i]->address_number < found.first ? all[i]->address_number : found.first;
        last = all[i]->address_number > last ? all[i]->address_number : last;
    }
    if (!last)
        return found;
    found.n = last - found.first + 1;
    found.functions = CT_ARENA_ARRAY(in->scratch, struct ptx_function *, found.n);
    for (uint32_t i = 0; i < n; i++)
        if (is_candidate(all[i], call->callee))
            found.functions[all[i]->address_number - found.first] = all[i];
    for (uint32_t i = 0; i < found.n; i++)
        found.instructions += found.functions[i] ? found.functions[i]->n_body : 0;
    return found;
}

/* Ends a block that has no terminator with a trap. */
static void trap(struct ct_fn *fn, struct ct_block *block, struct ct_location where)
{
    struct ct_cursor at = {.fn = fn, .block = block, .where = where};

    ct_emit_fault(&at, PTX2SPV_FAULT_TRAP);
    ct_emit_insn(&at, CT_OP_EXIT, PTX_NONE, 0, 0);
    ct_block_set_succs(fn, block, 0, NULL);
}

/* A trap in place of a call. */
static void trap_call(struct ct_fn *fn, struct ct_insn *call)
{
    struct ct_block *block = call->block;

    ct_block_split(fn, block, call);
    trap(fn, block, call->where);
    ct_insn_remove(call);
}

/* A block with a direct call of `callee` in place of `call`; the new call is pending like any other. */
static struct ct_block *call_directly(struct inliner *in, const struct pending_call *pending, struct ptx_function *callee,
                                      struct ct_block *rest)
{
    struct ct_block *block = ct_block_create(in->fn);
    struct ct_insn *direct = ct_insn_create(in->fn, CT_OP_CALL, PTX_NONE, 0, 0);

    direct->callee = callee;
    direct->call_locals = pending->call->call_locals;
    direct->where = pending->call->where;
    ct_insn_append(block, direct);
    jump(in->fn, block, rest, direct->where);
    *CT_PUSH(in->scratch, &in->pending) = (struct pending_call){direct, pending->caller, true};
    return block;
}

/* The address minus that of the first candidate, limited to n, one past the last candidate. */
static ct_value index_of_address(struct ct_cursor *at, ct_value address, const struct candidates *candidates)
{
    const uint64_t first = ((uint64_t)CT_TAG_FUNCTION << CT_TAG_SHIFT) + candidates->first;
    const ct_value distance = ct_sub(at, address, ct_const64(at, first));
    const ct_value is_inside = ct_icmp_imm(at, PTX_U64, PTX_LT, distance, candidates->n);

    return ct_select(at, is_inside, ct_low32(at, distance), ct_const32(at, candidates->n));
}

static void dispatch_to(struct inliner *in, const struct pending_call *pending, const struct candidates *candidates)
{
    struct ct_fn *fn = in->fn;
    struct ct_insn *call = pending->call, *branch;
    struct ct_cursor at = {.fn = fn, .block = call->block, .where = call->where};
    struct ct_block *rest = ct_block_split(fn, call->block, call), *none = ct_block_create(fn);
    struct ct_block **succs = CT_ARENA_ARRAY(in->scratch, struct ct_block *, (size_t)candidates->n + 1);
    ct_value index;

    ct_insn_remove(call);
    trap(fn, none, call->where);
    for (uint32_t i = 0; i < candidates->n; i++)
        succs[i] = candidates->functions[i] ? call_directly(in, pending, candidates->functions[i], rest) : none;
    succs[candidates->n] = none;
    index = index_of_address(&at, call->operands[0], candidates);
    branch = ct_emit_insn(&at, CT_OP_SWITCH, PTX_U32, 0, 1);
    branch->operands[0] = index;
    ct_block_set_succs(fn, at.block, candidates->n + 1, succs);
}

static void trap_large_call(struct inliner *in, const struct pending_call *pending, const struct candidates *candidates)
{
    if (!in->warned_of_size)
        ct_note(in->fn->compilation, pending->call->where, PTX2SPV_WARNING,
                "the functions that a call by address may reach have %" PRIu64
                " instructions, more than the %u that are supported; a thread "
                "that calls so traps",
                candidates->instructions, MAX_DISPATCHED);
    in->warned_of_size = true;
    trap_call(in->fn, pending->call);
}

/* A switch that cannot be emitted is refused before memory is spent on the bodies of its functions. */
static bool dispatch_call(struct inliner *in, const struct pending_call *pending)
{
    const struct candidates candidates = find_candidates(in, pending->call);

    if (candidates.n >= CT_SWITCH_TARGETS_MAX)
        return ct_error(in->fn->compilation, pending->call->where, PTX2SPV_UNSUPPORTED,
                        "an indirect call with %" PRIu32 " functions to choose from is not supported: there may be at most %d",
                        candidates.n, CT_SWITCH_TARGETS_MAX - 1);
    if (candidates.instructions > MAX_DISPATCHED)
        trap_large_call(in, pending, &candidates);
    else
        dispatch_to(in, pending, &candidates);
    return true;
}

/* Correct programs never execute this call. */
static void trap_recursion(struct inliner *in, const struct pending_call *pending)
{
    struct ct_insn *call = pending->call;

    if (!in->warned)
        ct_note(in->fn->compilation, call->where, PTX2SPV_WARNING,
                "recursion is not supported: %s, by address; a thread that calls so traps", name_cycle(in, pending->caller, call->callee));
    in->warned = true;
    trap_call(in->fn, call);
}

static bool inline_call(struct inliner *in, const struct pending_call *pending)
{
    struct ct_fn *fn = in->fn;
    struct ct_insn *call = pending->call;
    struct ct_block *block = call->block;
    struct instance *instance = CT_ARENA_NEW(in->scratch, struct instance);
    const uint32_t first_block = fn->blocks.n;
    const struct instance *first;
    struct ct_body body = {0};

    if (call->n_operands)
        return dispatch_call(in, pending);
    return_to(in, pending->caller);
    first = find_running(in, call->callee)->instance;
    if (may_be_recursion(pending, first)) {
        trap_recursion(in, pending);
        return true;
    }
    if (!check_call(in, pending, first) || !ct_build_body(fn, call->callee, &body))
        return false;
    *instance = (struct instance){pending->caller, call->callee, pending->caller->by_address + pending->by_address};
    enter_instance(in, instance);
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
    if (!in.pending.n)
        return CT_PASS_UNCHANGED;
    prepare_path(&in, kernel);
    while (in.pending.n) {
        const struct pending_call next = in.pending.v[--in.pending.n];

        if (!inline_call(&in, &next))
            return CT_PASS_FAILED;
    }
    ct_fn_remove_unreachable(fn);
    return CT_PASS_CHANGED;
}
