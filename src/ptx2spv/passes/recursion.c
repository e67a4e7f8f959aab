/* SPDX-License-Identifier: Apache-2.0 */
/* recursion: gives each activation of a recursive function registers and local objects of its own.
 * In:  register form; functions of a cycle have one instance each, whose calls and returns are jumps (inline.c); objects that can be registers
 *      are (promote.c).   Out: the same, right for calls that are nested.
 *
 * A part of the thread's frame is a stack. It grows upwards; `top` is a register with the address where its free part begins.
 *
 *     begin of a call    trap unless there is room; store the registers that the caller needs afterwards at top; top += their size;
 *                        copy the arguments to objects of the callee, from top on; jump to the entry
 *     entry              frame = top; top += size of the objects (`frame` is a register of the function, stored like any other)
 *     leave              top = frame; switch to the end of the call
 *     end of a call      copy the results from the callee's objects, from top on; top -= size of the registers; load them; go on
 *
 * Registers need to be stored if code of the cycle writes them, and they are live behind the call. A call from outside of the cycle stores
 * nothing: the functions of a cycle have no registers in common with their callers. As under NVIDIA's driver, memory for the stack is
 * what cuCtxSetLimit(CU_LIMIT_STACK_SIZE) says, and a thread that needs more fails with CUDA_ERROR_ILLEGAL_ADDRESS. */
#include "ptx2spv/ir/builder.h"
#include "ptx2spv/ir/live.h"

enum {
    STACK_ALIGN = 8,
    SAVED_MAX =
        1 << 20 /* registers that all calls of a kernel store: n calls with n live registers would otherwise take n * n instructions */
};

/* What belongs to one of fn->recursive. */
struct frame {
    ct_value base;          /* the register `frame`; 0: no object is in memory */
    uint32_t size_bytes;    /* of its objects */
    struct ct_block **ends; /* of its calls, while its leave does not lead to all of them */
    uint32_t n_ends;
};

/* What belongs to one of fn->recursive_calls. */
struct call {
    struct ct_block *copies; /* the begin without its head, which is empty */
    ct_value *saved;
    uint32_t n_saved, saved_bytes;
    uint32_t first_number; /* of the first of them (ct_insn.saved) */
};

struct recursion {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t stack; /* local object, index + 1 */
    uint32_t align; /* of all frames */
    ct_value top;
    struct frame *frames;
    struct call *calls;
};

/* ct_fn_remove_unreachable has numbered the blocks. */
static bool is_reached(const struct ct_block *block)
{
    return block->id != UINT32_MAX;
}

/* ---- objects ---- */

/* The function whose activations have this object, index + 1; 0: none. */
static uint32_t owner_of(const struct recursion *r, const struct ct_insn *insn)
{
    return insn->local ? r->fn->locals.v[ct_local_root(r->fn, insn->local) - 1].owner : 0;
}

static bool place_objects(struct recursion *r)
{
    struct ct_fn *fn = r->fn;
    const bool *used = ct_fn_find_used_locals(fn);

    for (uint32_t i = 0; i < fn->locals.n; i++) {
        struct ct_local *local = &fn->locals.v[i];
        struct frame *frame = local->owner ? &r->frames[local->owner - 1] : NULL;

        if (!used[i] || !frame)
            continue;
        if (local->size_bytes > CT_FRAME_BYTES_MAX || frame->size_bytes > CT_FRAME_BYTES_MAX)
            return ct_error(fn->compilation, fn->source->where, PTX2SPV_TARGET_LACKS,
                            "%s: a recursive function with more than %u bytes of local memory", fn->name, CT_FRAME_BYTES_MAX);
        local->offset = ct_round_up(frame->size_bytes, local->align);
        frame->size_bytes = local->offset + (uint32_t)local->size_bytes;
        r->align = local->align > r->align ? local->align : r->align;
    }
    for (uint32_t f = 0; f < fn->recursive.n; f++) {
        r->frames[f].size_bytes = ct_round_up(r->frames[f].size_bytes, r->align);
        if (r->frames[f].size_bytes)
            r->frames[f].base = ct_value_create(fn, CT_W_32);
    }
    return true;
}

/* Replaces the name of an object by its address, which is relative to `base`. */
static void rewrite_reference(struct recursion *r, struct ct_insn *insn, ct_value base)
{
    const uint32_t offset = r->fn->locals.v[ct_local_root(r->fn, insn->local) - 1].offset;
    struct ct_cursor at = {.fn = r->fn, .block = insn->block, .before = insn, .where = insn->where};

    if (insn->op == CT_OP_LOCALADDR) {
        ct_assign(&at, insn->results[0], ct_add_imm(&at, base, offset));
        ct_insn_remove(insn);
        return;
    }
    insn->local = 0;
    insn->operands[0] = base;
    insn->offset += offset;
}

/* At the ends of a call the callee's objects are from `top` on: those that the begin stores to, and the end loads from. */
static void rewrite_copies(struct recursion *r, struct ct_block *block, enum ct_op callees)
{
    for (struct ct_insn *insn = block->first; insn; insn = insn->next)
        if (owner_of(r, insn) && insn->op == callees)
            rewrite_reference(r, insn, r->top);
}

static void rewrite_references(struct recursion *r)
{
    struct ct_fn *fn = r->fn;

    for (uint32_t c = 0; c < fn->recursive_calls.n; c++) {
        rewrite_copies(r, fn->recursive_calls.v[c].begin, CT_OP_STORE);
        rewrite_copies(r, fn->recursive_calls.v[c].end, CT_OP_LOAD);
    }
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first, *next; insn; insn = next) {
            const uint32_t owner = owner_of(r, insn);

            next = insn->next;
            if (owner)
                rewrite_reference(r, insn, r->frames[owner - 1].base);
        }
}

/* ---- entries and returns ---- */

static void add_to_top(struct recursion *r, struct ct_cursor *at, uint32_t bytes)
{
    if (bytes)
        ct_assign(at, r->top, ct_add_imm(at, r->top, bytes));
}

static void build_frames(struct recursion *r)
{
    for (uint32_t f = 0; f < r->fn->recursive.n; f++) {
        const struct ct_recursive_function *function = &r->fn->recursive.v[f];
        const struct frame *frame = &r->frames[f];
        struct ct_cursor entry = {.fn = r->fn, .block = function->entry, .before = function->entry->first};
        struct ct_cursor leave = {.fn = r->fn, .block = function->leave, .before = function->leave->last};

        if (!frame->base.i)
            continue;
        ct_assign(&entry, frame->base, r->top);
        add_to_top(r, &entry, frame->size_bytes);
        ct_assign(&leave, r->top, frame->base);
    }
}

/* ---- registers ---- */

/* Whether the register belongs to the thread, whatever it calls. */
static bool is_of_thread(const struct recursion *r, ct_value value)
{
    return value.i == r->top.i || value.i == r->fn->cluster_state.i || value.i == r->fn->cluster_arrived.i;
}

/* Marks the registers that the code of a cycle writes: all code that is reached from the callee's entry, up to where it leaves the cycle. */
static bool *find_written(const struct recursion *r, const struct ct_recursive_function *callee)
{
    bool *written = CT_ARENA_ARRAY(r->scratch, bool, r->fn->values.n), *seen = CT_ARENA_ARRAY(r->scratch, bool, r->fn->blocks.n);
    CT_VEC(const struct ct_block *) work = {0};

    for (uint32_t c = 0; c < r->fn->recursive_calls.n; c++) {
        const struct ct_recursive_call *call = &r->fn->recursive_calls.v[c];

        if (!call->is_inner && is_reached(call->end) && r->fn->recursive.v[call->callee].cycle == callee->cycle)
            seen[call->end->id] = true;
    }
    *CT_PUSH(r->scratch, &work) = callee->entry;
    seen[callee->entry->id] = true;
    while (work.n) {
        const struct ct_block *block = work.v[--work.n];

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_results; i++)
                written[insn->results[i].i] = !is_of_thread(r, insn->results[i]);
        for (uint32_t s = 0; s < block->n_succs; s++)
            if (!seen[block->succs[s]->id]) {
                seen[block->succs[s]->id] = true;
                *CT_PUSH(r->scratch, &work) = block->succs[s];
            }
    }
    return written;
}

/* ---- liveness in one activation ----
 * For the caller a call is a step from its begin to its end, that writes the results. So for a while the begin leads to a block that does just
 * this as well, and returns do not lead to the ends of calls within the cycle. */

static bool is_result(const struct ct_block *end, ct_value value)
{
    for (const struct ct_insn *insn = end->first; insn; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_results; i++)
            if (insn->results[i].i == value.i)
                return true;
    return false;
}

static struct ct_block *build_step(struct ct_fn *fn, const struct ct_block *end)
{
    struct ct_cursor at = {.fn = fn, .block = ct_block_create(fn)};

    for (const struct ct_insn *insn = end->first; insn; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_results; i++)
            ct_emit_insn(&at, CT_OP_UNDEF, PTX_NONE, 1, 0)->results[0] = insn->results[i];
    ct_cursor_jump(&at, end->succs[0]);
    return at.block;
}

static void step_over_calls(struct recursion *r)
{
    struct ct_fn *fn = r->fn;

    for (uint32_t c = 0; c < fn->recursive_calls.n; c++) {
        const struct ct_recursive_call *call = &fn->recursive_calls.v[c];
        struct ct_block *succs[2];

        if (!is_reached(call->begin))
            continue;
        succs[0] = r->calls[c].copies = ct_block_split(fn, call->begin, call->begin->first);
        if (call->is_inner && is_reached(call->end))
            succs[1] = build_step(fn, call->end);
        ct_block_set_succs(fn, call->begin, call->is_inner && is_reached(call->end) ? 2 : 1, succs);
    }
}

static bool is_inner_end(const struct ct_fn *fn, const struct ct_block *block)
{
    for (uint32_t c = 0; c < fn->recursive_calls.n; c++)
        if (fn->recursive_calls.v[c].end == block)
            return fn->recursive_calls.v[c].is_inner;
    return false;
}

static void leave_cycles(struct recursion *r)
{
    for (uint32_t f = 0; f < r->fn->recursive.n; f++) {
        struct ct_block *leave = r->fn->recursive.v[f].leave, **outer = CT_ARENA_ARRAY(r->scratch, struct ct_block *, leave->n_succs);
        uint32_t n = 0;

        for (uint32_t s = 0; s < leave->n_succs; s++)
            if (!is_inner_end(r->fn, leave->succs[s]))
                outer[n++] = leave->succs[s];
        r->frames[f].ends = leave->succs;
        r->frames[f].n_ends = leave->n_succs;
        leave->succs = outer;
        leave->n_succs = n;
    }
}

static void return_to_calls(struct recursion *r)
{
    for (uint32_t f = 0; f < r->fn->recursive.n; f++)
        ct_block_set_succs(r->fn, r->fn->recursive.v[f].leave, r->frames[f].n_ends, r->frames[f].ends);
}

/* The registers that the caller needs behind the call, but those that the results are copied to. Those of 64 bits are first, so all are aligned. */
static void find_saved(const struct recursion *r, struct ct_liveness *liveness, const bool *written, const struct ct_block *end,
                       struct call *call)
{
    uint32_t n_live;
    const ct_value *live = ct_live_in(liveness, end->succs[0], &n_live);

    call->saved = CT_ARENA_ARRAY(r->scratch, ct_value, n_live);
    for (int wide = 1; wide >= 0; wide--)
        for (uint32_t i = 0; i < n_live; i++) {
            const enum ct_width width = ct_width_of_value(r->fn, live[i]);

            if (!written[live[i].i] || (width == CT_W_64) != wide || is_result(end, live[i]))
                continue;
            call->saved[call->n_saved++] = live[i];
            call->saved_bytes += ct_register_bytes(width);
        }
    call->saved_bytes = ct_round_up(call->saved_bytes, r->align);
}

/* Nested calls always take memory, so that an endless recursion ends. */
static bool find_saved_of_all(struct recursion *r)
{
    struct ct_fn *fn = r->fn;
    uint32_t n_saved = 0;
    const bool **written = CT_ARENA_ARRAY(r->scratch, const bool *, fn->recursive.n); /* indexed by cycle */
    struct ct_liveness *liveness;

    r->calls = CT_ARENA_ARRAY(r->scratch, struct call, fn->recursive_calls.n);
    for (uint32_t c = 0; c < fn->recursive_calls.n; c++) {
        const struct ct_recursive_function *callee = &fn->recursive.v[fn->recursive_calls.v[c].callee];

        if (!written[callee->cycle] && is_reached(callee->entry))
            written[callee->cycle] = find_written(r, callee);
    }
    step_over_calls(r);
    leave_cycles(r);
    liveness = ct_liveness_create(fn);
    for (uint32_t c = 0; c < fn->recursive_calls.n && n_saved <= SAVED_MAX; c++) {
        const struct ct_recursive_call *call = &fn->recursive_calls.v[c];

        if (!call->is_inner || !is_reached(call->begin))
            continue;
        if (is_reached(call->end))
            find_saved(r, liveness, written[fn->recursive.v[call->callee].cycle], call->end, &r->calls[c]);
        if (!r->calls[c].saved_bytes)
            r->calls[c].saved_bytes = r->align;
        r->calls[c].first_number = n_saved + 1;
        n_saved += r->calls[c].n_saved;
    }
    return_to_calls(r);
    fn->n_saved = n_saved;
    return n_saved <= SAVED_MAX || ct_error(fn->compilation, fn->source->where, PTX2SPV_UNSUPPORTED,
                                            "%s: recursive calls that store more than %d registers are not supported", fn->name, SAVED_MAX);
}

/* ---- calls ---- */

static ct_value stack_address(const struct recursion *r, struct ct_cursor *at)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOCALADDR, PTX_NONE, 1, 0);

    insn->local = r->stack;
    insn->results[0] = ct_value_create(r->fn, CT_W_32);
    return insn->results[0];
}

static struct ct_block *build_overflow(struct ct_fn *fn)
{
    struct ct_cursor at = {.fn = fn, .block = ct_block_create(fn), .where = fn->source->where};

    ct_emit_fault(&at, PTX2SPV_FAULT_STACK);
    ct_emit_insn(&at, CT_OP_EXIT, PTX_NONE, 0, 0);
    return at.block;
}

/* Goes on to the copies of the arguments if there is room. */
static void test_room(const struct recursion *r, struct ct_block *begin, uint32_t bytes, struct ct_block *copies, struct ct_block *overflow)
{
    struct ct_cursor at = {.fn = r->fn, .block = begin, .where = copies->first->where};

    if (bytes) {
        const ct_value end = ct_add_imm(&at, stack_address(r, &at), r->fn->locals.v[r->stack - 1].size_bytes);

        ct_cursor_branch(&at, ct_icmp_imm(&at, PTX_U32, PTX_LT, ct_sub(&at, end, r->top), bytes), overflow, copies);
    } else {
        ct_cursor_jump(&at, copies);
    }
}

static void save(struct recursion *r, const struct call *call)
{
    struct ct_insn *first = call->copies->first;
    struct ct_cursor at = {.fn = r->fn, .block = call->copies, .before = first, .where = first->where};

    for (uint32_t i = 0, offset = 0; i < call->n_saved; i++) {
        ct_store_register(&at, r->top, offset, call->saved[i], call->first_number + i);
        offset += ct_register_bytes(ct_width_of_value(r->fn, call->saved[i]));
    }
    add_to_top(r, &at, call->saved_bytes);
}

static void restore(struct recursion *r, struct ct_block *end, const struct call *call)
{
    struct ct_cursor at = {.fn = r->fn, .block = end, .before = end->last, .where = end->last->where};

    add_to_top(r, &at, 0u - call->saved_bytes);
    for (uint32_t i = 0, offset = 0; i < call->n_saved; i++) {
        const enum ct_width width = ct_width_of_value(r->fn, call->saved[i]);

        ct_assign(&at, call->saved[i], ct_load_register(&at, r->top, offset, width, call->first_number + i));
        offset += ct_register_bytes(width);
    }
}

static void build_calls(struct recursion *r)
{
    struct ct_fn *fn = r->fn;
    struct ct_block *overflow = build_overflow(fn);

    for (uint32_t c = 0; c < fn->recursive_calls.n; c++) {
        const struct ct_recursive_call *call = &fn->recursive_calls.v[c];

        if (!is_reached(call->begin))
            continue;
        test_room(r, call->begin, r->calls[c].saved_bytes + r->frames[call->callee].size_bytes, r->calls[c].copies, overflow);
        save(r, &r->calls[c]);
        if (is_reached(call->end))
            restore(r, call->end, &r->calls[c]);
    }
}

/* ---- the stack ---- */

static bool create_stack(struct recursion *r)
{
    struct ct_fn *fn = r->fn;
    const uint32_t wanted = fn->compilation->options.stack_bytes;
    struct ct_cursor at = {.fn = fn, .block = fn->blocks.v[0], .before = fn->blocks.v[0]->first, .where = fn->source->where};
    struct ct_local *stack;
    uint64_t bytes;

    fn->stack_bytes = wanted ? wanted : PTX2SPV_STACK_BYTES;
    bytes = fn->stack_bytes;
    for (uint32_t f = 0; f < fn->recursive.n; f++)
        bytes += r->frames[f].size_bytes;
    if (bytes > CT_FRAME_BYTES_MAX)
        return ct_error(fn->compilation, fn->source->where, PTX2SPV_TARGET_LACKS, "%s: more than %u bytes for recursive functions",
                        fn->name, CT_FRAME_BYTES_MAX);
    stack = CT_PUSH(&fn->compilation->arena, &fn->locals);
    *stack = (struct ct_local){.size_bytes = bytes, .align = r->align};
    r->stack = fn->locals.n;
    ct_assign(&at, r->top, stack_address(r, &at)); /* no cycle contains the entry */
    return true;
}

enum ct_pass_result ct_pass_recursion(struct ct_fn *fn)
{
    struct recursion r = {.fn = fn, .scratch = &fn->compilation->scratch, .align = STACK_ALIGN};

    if (!fn->recursive.n)
        return CT_PASS_UNCHANGED;
    r.frames = CT_ARENA_ARRAY(r.scratch, struct frame, fn->recursive.n);
    r.top = ct_value_create(fn, CT_W_32);
    if (!place_objects(&r))
        return CT_PASS_FAILED;
    rewrite_references(&r);
    build_frames(&r);
    if (!create_stack(&r))
        return CT_PASS_FAILED;
    if (!find_saved_of_all(&r))
        return CT_PASS_FAILED;
    build_calls(&r);
    ct_fn_remove_unreachable(fn); /* the steps over calls */
    return CT_PASS_CHANGED;
}
