/* SPDX-License-Identifier: Apache-2.0 */
/* inline: replaces every call by the body of the function that it calls.
 * In:  register form.   Out: no CALL; the formal parameters and results are the caller's objects (ct_local.same_as).
 *
 *     B: x; call f(a); y; br C        B: x; br f0          f0: a new instance of f, whose RETs are br B'
 *                                     B': y; br C
 *
 * The pending calls are kept on a stack, so deep nesting needs no recursion here.
 *
 * A call through an address becomes a switch on the address: it selects a direct call of one of the functions whose address the module
 * takes and whose parameters fit, or a trap for all other addresses. A call of functions that are too large together to stand in the kernel
 * becomes a trap, and a warning says so: NCCL's kernels contain the collective operation that they are for, and call every other one of the
 * library through a table (4 million instructions).
 *
 * Functions that may call each other in a cycle (call_graph.h) have one instance each, for all calls among them; a call of one of them from
 * elsewhere begins a new group of such instances. All calls of an instance jump to its entry, and all its returns to a switch on the number
 * of the call. What belongs to an activation is left to activations.c. Parameters and results are copied:
 *
 *     B: x; call f(a); y; br C        B: x; a' = a; number = k; br f0        f0: the one instance of f, whose RETs are br f1
 *                                     B': b = b'; y; br C                    f1: switch number, .., B' (the k-th), ..
 *
 * If the kernel would be too large with all calls inlined (call_graph.h), functions that are called from several places have one instance
 * each, too, for all their calls in the kernel.
 *
 * If calls of the cycle are by address there is perhaps never a nested call, as with methods that call virtual methods of other objects. So a
 * call from elsewhere is inlined like any other, and only what that calls begins a group: what is not nested needs no stack. */
#include "call_graph.h"

#include "copy_objects.h"
#include "ptx2spv/ir/builder.h"
#include "ptx2spv/module/module.h"

#include <inttypes.h>

#define MAX_INSTANCES 65536u /* without a limit, calls that double at each level would grow exponentially */
#define MAX_VALUES (1u << 24)
#define MAX_CALLS 4096u /* of one function that has one instance */
#define NO_CYCLE UINT32_MAX

/* The functions of one cycle, as they were called from one place outside of it, or all functions that are out of line. */
struct group {
    uint32_t cycle;  /* its number in the graph of calls, or NO_CYCLE */
    uint32_t number; /* of the group */
    CT_VEC(struct member *) members;
};

struct member {
    const void *what;               /* a struct ptx_function, or a struct ct_candidates: calls of these by address */
    ct_value address;               /* of the function to call, for candidates */
    uint32_t number;                /* index in fn->called */
    uint32_t *locals;               /* objects (index + 1) of its parameters, then of its results */
    CT_VEC(struct ct_block *) ends; /* of its calls, by their number */
};

struct instance {
    struct group *group;         /* the innermost one that contains it; NULL: none */
    const struct member *member; /* of that group: the function whose activations have the local objects of the instance */
    bool is_dispatch;            /* the instance is not a function, but the call by address that all those of the group lead to */
    uint32_t
        cycle; /* a cycle with calls by address: this is the first call of one of its functions, which is inlined, or is within one; 0: none */
};

struct pending_call {
    struct ct_insn *call;
    const struct instance *caller;
};

struct inliner {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct ct_call_graph *graph;
    uint32_t n_instances, n_groups;
    struct group *out_of_line; /* of the functions that are not recursive, and have one instance; NULL: there are none yet */
    bool warned_of_size;
    CT_VEC(struct pending_call) pending;
    CT_VEC(struct member *) members; /* by their number */
    CT_VEC(struct object_copy) copies;
};

/* Adds the calls in the blocks from `first` on. The later ones are popped first, so that splitting a block moves few instructions. */
static void find_calls(struct inliner *in, uint32_t first, const struct instance *caller)
{
    for (uint32_t b = first; b < in->fn->blocks.n; b++)
        for (struct ct_insn *insn = in->fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_CALL)
                *CT_PUSH(in->scratch, &in->pending) = (struct pending_call){insn, caller};
}

static bool check_call(struct inliner *in, const struct ct_insn *call)
{
    struct ct_compilation *compilation = in->fn->compilation;
    const struct ptx_function *callee = call->callee;

    if (!callee->has_body && ptx_is_system_function(callee->name))
        return ct_error(compilation, call->where, PTX2SPV_UNSUPPORTED, "the system function %s is not supported", callee->name);
    if (!callee->has_body)
        return ct_error(compilation, call->where, PTX2SPV_INVALID_PTX, "call of the extern function %s, which the module does not define",
                        callee->name);
    if (++in->n_instances > MAX_INSTANCES || in->fn->values.n > MAX_VALUES)
        return ct_error(compilation, call->where, PTX2SPV_UNSUPPORTED,
                        "%s calls more than can be inlined: %" PRIu32 " functions, %" PRIu32 " values", in->fn->name, in->n_instances,
                        in->fn->values.n);
    return true;
}

static void jump(struct ct_fn *fn, struct ct_block *from, struct ct_block *to, struct ct_location where)
{
    struct ct_cursor at = {.fn = fn, .block = from, .where = where};

    ct_cursor_jump(&at, to);
}

/* An instance of the callee, whose returns lead to `rest`. */
static bool build_instance(struct inliner *in, const struct ct_insn *call, struct instance like, struct ct_block *rest,
                           struct ct_body *body)
{
    struct ct_fn *fn = in->fn;
    struct instance *instance = CT_ARENA_NEW(in->scratch, struct instance);
    const uint32_t first_block = fn->blocks.n, first_local = fn->locals.n;

    *body = (struct ct_body){0};
    if (!check_call(in, call) || !ct_build_body(fn, call->callee, body))
        return false;
    *instance = like;
    find_calls(in, first_block, instance);
    for (uint32_t i = first_local; i < fn->locals.n; i++)
        fn->locals.v[i].owner = like.member ? like.member->number + 1 : 0;
    for (uint32_t i = 0; i < body->returns.n; i++) {
        ct_insn_remove(body->returns.v[i]->last);
        jump(fn, body->returns.v[i], rest, call->where);
    }
    return true;
}

/* ---- calls through addresses ---- */

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
    *CT_PUSH(in->scratch, &in->pending) = (struct pending_call){direct, pending->caller};
    return block;
}

/* The address minus that of the first candidate, limited to n, one past the last candidate. */
static ct_value index_of_address(struct ct_cursor *at, ct_value address, const struct ct_candidates *candidates)
{
    const uint64_t first = ((uint64_t)CT_TAG_FUNCTION << CT_TAG_SHIFT) + candidates->first;
    const ct_value distance = ct_sub(at, address, ct_const64(at, first));
    const ct_value is_inside = ct_icmp_imm(at, PTX_U64, PTX_LT, distance, candidates->n);

    return ct_select(at, is_inside, ct_low32(at, distance), ct_const32(at, candidates->n));
}

static void dispatch_to(struct inliner *in, const struct pending_call *pending, const struct ct_candidates *candidates)
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

static void trap_large_call(struct inliner *in, const struct pending_call *pending, const struct ct_candidates *candidates)
{
    if (!in->warned_of_size)
        ct_note(in->fn->compilation, pending->call->where, PTX2SPV_WARNING,
                "the functions that a call by address may reach have %" PRIu64
                " instructions, more than the %u that are supported; a thread "
                "that calls so traps",
                candidates->instructions, CT_DISPATCHED_MAX);
    in->warned_of_size = true;
    trap_call(in->fn, pending->call);
}

/* ---- calls in a cycle ---- */

static struct member *find_member(const struct group *group, const void *what)
{
    for (uint32_t i = 0; i < group->members.n; i++)
        if (group->members.v[i]->what == what)
            return group->members.v[i];
    return NULL;
}

static struct member *create_member(struct inliner *in, struct group *group, const void *what)
{
    struct ct_fn *fn = in->fn;
    struct member *member = CT_ARENA_NEW(in->scratch, struct member);
    struct ct_block *entry = ct_block_create(fn), *leave = ct_block_create(fn);

    member->what = what;
    member->number = fn->called.n;
    *CT_PUSH(&fn->compilation->arena, &fn->called) =
        (struct ct_called_function){entry, leave, group->number, group != in->out_of_line, ct_value_create(fn, CT_W_32)};
    *CT_PUSH(in->scratch, &in->members) = member;
    *CT_PUSH(in->scratch, &group->members) = member;
    return member;
}

static struct member *build_member(struct inliner *in, struct group *group, const struct ct_insn *call)
{
    struct member *member = create_member(in, group, call->callee);
    const struct ct_called_function function = in->fn->called.v[member->number];
    struct ct_body body;

    if (!build_instance(in, call, (struct instance){.group = group, .member = member}, function.leave, &body))
        return NULL;
    member->locals = body.locals;
    jump(in->fn, function.entry, body.entry, call->where);
    return member;
}

/* One call by address, which all calls of these candidates in the group lead to: otherwise each of them would have code of its own for each
 * candidate. */
static struct member *build_dispatch(struct inliner *in, struct group *group, const struct ct_insn *call,
                                     const struct ct_candidates *candidates)
{
    struct ct_fn *fn = in->fn;
    struct ct_arena *arena = &fn->compilation->arena;
    const uint32_t n = call->callee->n_params + call->callee->n_results;
    struct member *member = create_member(in, group, candidates);
    const struct ct_called_function function = fn->called.v[member->number];
    struct instance *instance = CT_ARENA_NEW(in->scratch, struct instance);
    struct ct_insn *inner = ct_insn_create(fn, CT_OP_CALL, PTX_NONE, 0, 1);
    struct ct_block *body = ct_block_create(fn);

    member->address = ct_value_create(fn, CT_W_64);
    member->locals = CT_ARENA_ARRAY(arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        struct ct_local *local = CT_PUSH(arena, &fn->locals);
        const struct ct_local *argument = &fn->locals.v[call->call_locals[i] - 1];

        *local = (struct ct_local){.variable = argument->variable, .size_bytes = argument->size_bytes, .align = argument->align};
        local->owner = member->number + 1;
        member->locals[i] = fn->locals.n;
    }
    *instance = (struct instance){.group = group, .member = member, .is_dispatch = true};
    *inner = *call;
    inner->operands = CT_ARENA_NEW(arena, ct_value);
    inner->operands[0] = member->address;
    inner->call_locals = member->locals;
    ct_insn_append(body, inner);
    jump(fn, body, function.leave, call->where);
    jump(fn, function.entry, body, call->where);
    *CT_PUSH(in->scratch, &in->pending) = (struct pending_call){inner, instance};
    return member;
}

/* The blocks at both ends of a call, with the copies of parameters and results, which are made when all accesses to them are known. */
static bool connect_call(struct inliner *in, const struct pending_call *pending, struct member *callee, bool saves)
{
    struct ct_fn *fn = in->fn;
    struct ct_insn *call = pending->call;
    const struct member *caller = pending->caller->member;
    const struct ptx_function *signature = call->callee;
    const struct ct_called_function *function = &fn->called.v[callee->number];
    struct ct_block *block = call->block, *rest = ct_block_split(fn, block, call), *begin = ct_block_create(fn), *end = ct_block_create(fn);
    struct ct_cursor at = {.fn = fn, .block = begin, .where = call->where};

    if (callee->ends.n == MAX_CALLS)
        return ct_error(fn->compilation, call->where, PTX2SPV_UNSUPPORTED, "more than %u calls of the function %s are not supported",
                        MAX_CALLS, signature->name);
    ct_insn_remove(call);
    jump(fn, block, begin, call->where);
    if (callee->address.i)
        ct_assign(&at, callee->address, call->operands[0]);
    ct_assign(&at, function->caller, ct_const32(&at, callee->ends.n));
    jump(fn, begin, function->entry, call->where);
    jump(fn, end, rest, call->where);
    *CT_PUSH(in->scratch, &callee->ends) = end;
    *CT_PUSH(&fn->compilation->arena, &fn->calls) = (struct ct_call){callee->number, caller ? caller->number + 1 : 0, saves, begin, end};
    for (uint32_t i = 0; i < signature->n_params + signature->n_results; i++) {
        const bool is_result = i >= signature->n_params;
        const uint32_t ours = call->call_locals[i], theirs = callee->locals ? callee->locals[i] : 0;

        if (!ours || !theirs)
            continue;
        *CT_PUSH(in->scratch, &in->copies) =
            is_result ? (struct object_copy){theirs, ours, end->first} : (struct object_copy){ours, theirs, begin->first};
    }
    return true;
}

static bool call_by_address_in_cycle(struct inliner *in, const struct pending_call *pending, const struct ct_candidates *candidates)
{
    struct group *group = pending->caller->group;
    struct member *callee = find_member(group, candidates);

    if (!callee)
        callee = build_dispatch(in, group, pending->call, candidates);
    return connect_call(in, pending, callee, true);
}

/* A switch that cannot be emitted is refused before memory is spent on the bodies of its functions. */
static bool dispatch_call(struct inliner *in, const struct pending_call *pending)
{
    const struct ct_candidates *candidates = ct_call_graph_candidates(in->graph, pending->call->callee, pending->call->targets);

    if (candidates->n >= CT_SWITCH_TARGETS_MAX)
        return ct_error(in->fn->compilation, pending->call->where, PTX2SPV_UNSUPPORTED,
                        "an indirect call with %" PRIu32 " functions to choose from is not supported: there may be at most %d",
                        candidates->n, CT_SWITCH_TARGETS_MAX - 1);
    if (candidates->instructions > CT_DISPATCHED_MAX)
        trap_large_call(in, pending, candidates);
    else if (pending->caller->group && pending->caller->group->cycle == candidates->cycle && !pending->caller->is_dispatch)
        return call_by_address_in_cycle(in, pending, candidates);
    else
        dispatch_to(in, pending, candidates);
    return true;
}

static struct group *create_group(struct inliner *in, uint32_t cycle)
{
    struct group *group = CT_ARENA_NEW(in->scratch, struct group);

    group->cycle = cycle;
    group->number = in->n_groups++;
    return group;
}

/* Calls the group's instance of the function, which is built for the first call. */
static bool call_in_group(struct inliner *in, const struct pending_call *pending, struct group *group, bool saves)
{
    struct member *callee = find_member(group, pending->call->callee);

    if (!callee && !(callee = build_member(in, group, pending->call)))
        return false;
    return connect_call(in, pending, callee, saves);
}

static bool call_in_cycle(struct inliner *in, const struct pending_call *pending, uint32_t cycle)
{
    struct group *group = pending->caller->group;
    const bool is_inner = group && group->cycle == cycle;

    return call_in_group(in, pending, is_inner ? group : create_group(in, cycle), is_inner);
}

static bool call_out_of_line(struct inliner *in, const struct pending_call *pending)
{
    if (!in->out_of_line)
        in->out_of_line = create_group(in, NO_CYCLE);
    return call_in_group(in, pending, in->out_of_line, true);
}

static void return_to_callers(struct inliner *in)
{
    for (uint32_t i = 0; i < in->members.n; i++) {
        const struct ct_called_function *function = &in->fn->called.v[i];
        struct ct_cursor at = {.fn = in->fn, .block = function->leave, .where = in->fn->source->where};

        ct_emit_insn(&at, CT_OP_SWITCH, PTX_U32, 0, 1)->operands[0] = function->caller;
        ct_block_set_succs(in->fn, function->leave, in->members.v[i]->ends.n, in->members.v[i]->ends.v);
    }
}

/* ---- other calls ---- */

/* The callee's objects for its parameters and results are those that the call names. */
static void bind_objects(struct ct_fn *fn, const struct ct_insn *call, const struct ct_body *body)
{
    const uint32_t n = call->callee->n_params + call->callee->n_results;

    for (uint32_t i = 0; call->call_locals && body->locals && i < n; i++)
        if (body->locals[i] && call->call_locals[i])
            fn->locals.v[body->locals[i] - 1].same_as = call->call_locals[i];
}

/* Storage that several objects share takes the greatest size and alignment of them. */
static void join_objects(struct ct_fn *fn)
{
    for (uint32_t i = 0; i < fn->locals.n; i++) {
        const struct ct_local *local = &fn->locals.v[i];
        struct ct_local *root = &fn->locals.v[ct_local_root(fn, i + 1) - 1];

        root->size_bytes = local->size_bytes > root->size_bytes ? local->size_bytes : root->size_bytes;
        root->align = local->align > root->align ? local->align : root->align;
    }
}

static bool is_in_cycle(const struct instance *instance, uint32_t cycle)
{
    return instance->cycle == cycle || (instance->group && instance->group->cycle == cycle);
}

static bool inline_call(struct inliner *in, const struct pending_call *pending)
{
    struct ct_fn *fn = in->fn;
    struct ct_insn *call = pending->call;
    struct ct_block *block = call->block, *rest;
    struct instance instance = *pending->caller;
    struct ct_cycle cycle;
    struct ct_body body;

    if (call->n_operands)
        return dispatch_call(in, pending);
    if (ct_call_graph_is_out_of_line(in->graph, call->callee))
        return call_out_of_line(in, pending);
    cycle = ct_call_graph_cycle(in->graph, call->callee);
    if (cycle.number && (!cycle.by_address || is_in_cycle(pending->caller, cycle.number)))
        return call_in_cycle(in, pending, cycle.number);
    if (cycle.number)
        instance.cycle = cycle.number;
    instance.is_dispatch = false;
    rest = ct_block_split(fn, block, call);
    if (!build_instance(in, call, instance, rest, &body))
        return false;
    bind_objects(fn, call, &body);
    ct_insn_remove(call);
    jump(fn, block, body.entry, call->where);
    return true;
}

enum ct_pass_result ct_pass_inline(struct ct_fn *fn)
{
    struct inliner in = {.fn = fn, .scratch = &fn->compilation->scratch};
    const struct instance kernel = {0};

    find_calls(&in, 0, &kernel);
    if (!in.pending.n)
        return CT_PASS_UNCHANGED;
    in.graph = ct_call_graph_create(fn);
    while (in.pending.n) {
        const struct pending_call next = in.pending.v[--in.pending.n];

        if (!inline_call(&in, &next))
            return CT_PASS_FAILED;
    }
    return_to_callers(&in);
    ct_copy_objects(fn, in.copies.v, in.copies.n);
    join_objects(fn);
    ct_fn_remove_unreachable(fn);
    return CT_PASS_CHANGED;
}
