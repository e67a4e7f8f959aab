/* SPDX-License-Identifier: Apache-2.0 */
/* activations: gives each activation of a function that is called, not inlined, registers and local objects of its own.
 * In:  register form; such functions have one instance for several calls, whose calls and returns are jumps (inline.c); objects that can be
 *      registers are (promote.c).   Out: the same, right for calls that are nested.
 *
 * A part of the thread's frame is a stack. It grows upwards; `top` is a register with the address where its free part begins.
 *
 *     begin of a call    trap unless there is room; store the registers that the caller needs afterwards at top; top += their size;
 *                        copy the arguments to objects of the callee, from top on; jump to the entry
 *     entry              frame = top; top += size of the objects (`frame` is a register of the function, stored like any other)
 *     leave              top = frame; switch to the end of the call
 *     end of a call      copy the results from the callee's objects, from top on; top -= size of the registers; load them; go on
 *
 * Recursive functions: registers need to be stored if code of the cycle writes them, and they are live behind the call. A call from outside of
 * the cycle stores nothing: the functions of a cycle have no registers in common with their callers. As under NVIDIA's driver, memory for the
 * stack is what cuCtxSetLimit(CU_LIMIT_STACK_SIZE) says, and a thread that needs more fails with CUDA_ERROR_ILLEGAL_ADDRESS.
 *
 * Functions that are out of line as the kernel would be too large: their registers would survive calls, but would be live in all functions, and
 * in SSA form have phis in each. So registers are stored as well. What such functions need of the stack is known. */
#include "passed_registers.h"

#include "ptx2spv/ir/builder.h"
#include "ptx2spv/ir/live.h"

enum {
    STACK_ALIGN = 8,
    SAVED_MAX =
        1 << 20 /* registers that all calls of a kernel store: n calls with n live registers would otherwise take n * n instructions */
};

/* What belongs to one of fn->called. */
struct frame {
    ct_value base;          /* the register `frame`; 0: no object is in memory */
    uint32_t size_bytes;    /* of its objects */
    struct ct_block **ends; /* of its calls, while its leave does not lead to all of them */
    uint32_t n_ends;
    ct_value *arguments; /* the registers that its calls write, and that are live at its entry */
    uint32_t n_arguments;
    uint64_t called_bytes; /* of the stack, that its calls of functions out of line need, with all that these call so */
};

/* What belongs to one of fn->calls. */
struct call {
    struct ct_block *copies; /* the begin without its head, which is empty */
    ct_value *saved;         /* the registers that are stored */
    uint32_t n_saved, saved_bytes;
    uint32_t first_number; /* of the first of them (ct_insn.saved) */
};

struct activations {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t stack; /* local object, index + 1 */
    uint32_t align; /* of all frames */
    ct_value top;
    struct frame *frames;
    struct call *calls;
    bool has_recursion;    /* there are recursive functions */
    uint64_t called_bytes; /* as in struct frame, of the kernel */
};

/* ---- objects ---- */

/* The function whose activations have this object, index + 1; 0: none. */
static uint32_t owner_of(const struct activations *a, const struct ct_insn *insn)
{
    return insn->local ? a->fn->locals.v[ct_local_root(a->fn, insn->local) - 1].owner : 0;
}

static bool place_objects(struct activations *a)
{
    struct ct_fn *fn = a->fn;
    const bool *used = ct_fn_find_used_locals(fn);

    for (uint32_t i = 0; i < fn->locals.n; i++) {
        struct ct_local *local = &fn->locals.v[i];
        struct frame *frame = local->owner ? &a->frames[local->owner - 1] : NULL;

        if (!used[i] || !frame)
            continue;
        if (local->size_bytes > CT_FRAME_BYTES_MAX || frame->size_bytes > CT_FRAME_BYTES_MAX)
            return ct_error(fn->compilation, fn->source->where, PTX2SPV_TARGET_LACKS,
                            "%s: a recursive function with more than %u bytes of local memory", fn->name, CT_FRAME_BYTES_MAX);
        local->offset = ct_round_up(frame->size_bytes, local->align);
        frame->size_bytes = local->offset + (uint32_t)local->size_bytes;
        a->align = local->align > a->align ? local->align : a->align;
    }
    for (uint32_t f = 0; f < fn->called.n; f++) {
        a->frames[f].size_bytes = ct_round_up(a->frames[f].size_bytes, a->align);
        if (a->frames[f].size_bytes)
            a->frames[f].base = ct_value_create(fn, CT_W_32);
    }
    return true;
}

/* Replaces the name of an object by its address, which is relative to `base`. */
static void rewrite_reference(struct activations *a, struct ct_insn *insn, ct_value base)
{
    const uint32_t offset = a->fn->locals.v[ct_local_root(a->fn, insn->local) - 1].offset;
    struct ct_cursor at = {.fn = a->fn, .block = insn->block, .before = insn, .where = insn->where};

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
static void rewrite_copies(struct activations *a, struct ct_block *block, enum ct_op callees)
{
    for (struct ct_insn *insn = block->first; insn; insn = insn->next)
        if (owner_of(a, insn) && insn->op == callees)
            rewrite_reference(a, insn, a->top);
}

static void rewrite_references(struct activations *a)
{
    struct ct_fn *fn = a->fn;

    for (uint32_t c = 0; c < fn->calls.n; c++) {
        rewrite_copies(a, fn->calls.v[c].begin, CT_OP_STORE);
        rewrite_copies(a, fn->calls.v[c].end, CT_OP_LOAD);
    }
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first, *next; insn; insn = next) {
            const uint32_t owner = owner_of(a, insn);

            next = insn->next;
            if (owner)
                rewrite_reference(a, insn, a->frames[owner - 1].base);
        }
}

/* ---- entries and returns ---- */

static void add_to_top(struct activations *a, struct ct_cursor *at, uint32_t bytes)
{
    if (bytes)
        ct_assign(at, a->top, ct_add_imm(at, a->top, bytes));
}

static void build_frames(struct activations *a)
{
    for (uint32_t f = 0; f < a->fn->called.n; f++) {
        const struct ct_called_function *function = &a->fn->called.v[f];
        const struct frame *frame = &a->frames[f];
        struct ct_cursor entry = {.fn = a->fn, .block = function->entry, .before = function->entry->first};
        struct ct_cursor leave = {.fn = a->fn, .block = function->leave, .before = function->leave->last};

        if (!frame->base.i)
            continue;
        ct_assign(&entry, frame->base, a->top);
        add_to_top(a, &entry, frame->size_bytes);
        ct_assign(&leave, a->top, frame->base);
    }
}

/* ---- registers ---- */

/* Whether the register belongs to the thread, whatever it calls. */
static bool is_of_thread(const struct activations *a, ct_value value)
{
    return value.i == a->top.i || value.i == a->fn->cluster_state.i || value.i == a->fn->cluster_arrived.i;
}

/* Marks the registers that the code of a cycle writes: all code that is reached from the callee's entry, up to where it leaves the cycle. */
static bool *find_written(const struct activations *a, const struct ct_called_function *callee)
{
    bool *written = CT_ARENA_ARRAY(a->scratch, bool, a->fn->values.n), *seen = CT_ARENA_ARRAY(a->scratch, bool, a->fn->blocks.n);
    CT_VEC(const struct ct_block *) work = {0};

    for (uint32_t c = 0; c < a->fn->calls.n; c++) {
        const struct ct_call *call = &a->fn->calls.v[c];

        if (!call->saves && ct_block_is_reached(call->end) && a->fn->called.v[call->callee].cycle == callee->cycle)
            seen[call->end->id] = true;
    }
    *CT_PUSH(a->scratch, &work) = callee->entry;
    seen[callee->entry->id] = true;
    while (work.n) {
        const struct ct_block *block = work.v[--work.n];

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_results; i++)
                written[insn->results[i].i] = !is_of_thread(a, insn->results[i]);
        for (uint32_t s = 0; s < block->n_succs; s++)
            if (!seen[block->succs[s]->id]) {
                seen[block->succs[s]->id] = true;
                *CT_PUSH(a->scratch, &work) = block->succs[s];
            }
    }
    return written;
}

/* ---- liveness in one activation ----
 * For the caller a call is a step from its begin to its end, that writes the results. So for a while the begin leads to a block that does just
 * this as well, and returns do not lead to the ends of calls within the cycle. */

static bool writes(const struct ct_block *block, ct_value value)
{
    for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
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
            ct_undefine(&at, insn->results[i]);
    ct_cursor_jump(&at, end->succs[0]);
    return at.block;
}

static void step_over_calls(struct activations *a)
{
    struct ct_fn *fn = a->fn;

    for (uint32_t c = 0; c < fn->calls.n; c++) {
        const struct ct_call *call = &fn->calls.v[c];
        struct ct_block *succs[2];

        if (!ct_block_is_reached(call->begin))
            continue;
        succs[0] = a->calls[c].copies = ct_block_split(fn, call->begin, call->begin->first);
        if (call->saves && ct_block_is_reached(call->end))
            succs[1] = build_step(fn, call->end);
        ct_block_set_succs(fn, call->begin, call->saves && ct_block_is_reached(call->end) ? 2 : 1, succs);
    }
}

static bool is_saving_end(const struct ct_fn *fn, const struct ct_block *block)
{
    for (uint32_t c = 0; c < fn->calls.n; c++)
        if (fn->calls.v[c].end == block)
            return fn->calls.v[c].saves;
    return false;
}

static void leave_cycles(struct activations *a)
{
    for (uint32_t f = 0; f < a->fn->called.n; f++) {
        struct ct_block *leave = a->fn->called.v[f].leave, **outer = CT_ARENA_ARRAY(a->scratch, struct ct_block *, leave->n_succs);
        uint32_t n = 0;

        for (uint32_t s = 0; s < leave->n_succs; s++)
            if (!is_saving_end(a->fn, leave->succs[s]))
                outer[n++] = leave->succs[s];
        a->frames[f].ends = leave->succs;
        a->frames[f].n_ends = leave->n_succs;
        leave->succs = outer;
        leave->n_succs = n;
    }
}

/* ---- arguments ----
 * All entries may be targets of one switch (make_reducible.c), so all functions have their arguments in the same registers. */

/* The registers that calls write, indexed by value: index + 1 of the function that is called, whose registers these are. */
static const uint32_t *find_callees(const struct activations *a)
{
    uint32_t *callees = CT_ARENA_ARRAY(a->scratch, uint32_t, a->fn->values.n);

    for (uint32_t c = 0; c < a->fn->calls.n; c++) {
        const struct ct_block *copies = a->calls[c].copies;

        for (const struct ct_insn *insn = copies ? copies->first : NULL; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_results; i++)
                callees[insn->results[i].i] = a->fn->calls.v[c].callee + 1;
    }
    return callees;
}

/* Registers of callers may be live at an entry, too. */
static void find_arguments(struct activations *a, struct ct_liveness *liveness)
{
    const uint32_t *callees = find_callees(a);

    for (uint32_t f = 0; f < a->fn->called.n; f++) {
        const struct ct_block *entry = a->fn->called.v[f].entry;
        struct frame *frame = &a->frames[f];
        uint32_t n_live = 0;
        ct_value *live = ct_block_is_reached(entry) ? ct_live_in(liveness, entry, &n_live) : NULL;

        frame->arguments = live;
        for (uint32_t i = 0; i < n_live; i++)
            if (callees[live[i].i] == f + 1)
                live[frame->n_arguments++] = live[i];
    }
}

static void pass_arguments(struct activations *a)
{
    struct ct_passed_registers passed = {0};

    for (uint32_t f = 0; f < a->fn->called.n; f++) {
        struct ct_block *entry = a->fn->called.v[f].entry;
        struct ct_cursor at = {.fn = a->fn, .block = entry, .before = entry->first};

        ct_passed_receive(&at, &passed, a->frames[f].arguments, a->frames[f].n_arguments);
    }
    for (uint32_t c = 0; c < a->fn->calls.n; c++) {
        const struct frame *callee = &a->frames[a->fn->calls.v[c].callee];
        struct ct_block *copies = a->calls[c].copies;
        struct ct_cursor at = {.fn = a->fn, .block = copies};

        if (!copies)
            continue;
        at.before = copies->last;
        at.where = copies->last->where;
        ct_passed_send(&at, &passed, callee->arguments, callee->n_arguments);
    }
}

/* ---- registers that are stored ---- */

/* Undoes what leave_cycles has done. */
static void return_to_calls(struct activations *a)
{
    for (uint32_t f = 0; f < a->fn->called.n; f++)
        ct_block_set_succs(a->fn, a->fn->called.v[f].leave, a->frames[f].n_ends, a->frames[f].ends);
}

/* The registers that the caller needs behind the call, but those that the results are copied to. Those of 64 bits are first, so all are aligned. */
static void find_saved(const struct activations *a, struct ct_liveness *liveness, const bool *written, const struct ct_block *end,
                       struct call *call)
{
    uint32_t n_live;
    const ct_value *live = ct_live_in(liveness, end->succs[0], &n_live);

    call->saved = CT_ARENA_ARRAY(a->scratch, ct_value, n_live);
    for (int wide = 1; wide >= 0; wide--)
        for (uint32_t i = 0; i < n_live; i++) {
            const enum ct_width width = ct_width_of_value(a->fn, live[i]);

            if (!written[live[i].i] || (width == CT_W_64) != wide || writes(end, live[i]))
                continue;
            call->saved[call->n_saved++] = live[i];
            call->saved_bytes += ct_register_bytes(width);
        }
    call->saved_bytes = ct_round_up(call->saved_bytes, a->align);
}

/* At the entries, and behind the calls that store registers. */
static struct ct_liveness *find_live(const struct activations *a)
{
    CT_VEC(const struct ct_block *) blocks = {0};

    for (uint32_t f = 0; f < a->fn->called.n; f++)
        if (ct_block_is_reached(a->fn->called.v[f].entry))
            *CT_PUSH(a->scratch, &blocks) = a->fn->called.v[f].entry;
    for (uint32_t c = 0; c < a->fn->calls.n; c++)
        if (a->fn->calls.v[c].saves && ct_block_is_reached(a->fn->calls.v[c].end))
            *CT_PUSH(a->scratch, &blocks) = a->fn->calls.v[c].end->succs[0];
    return ct_liveness_create(a->fn, blocks.v, blocks.n);
}

/* Nested calls of recursive functions always take memory, so that an endless recursion ends. */
static bool find_saved_of_all(struct activations *a)
{
    struct ct_fn *fn = a->fn;
    uint32_t n_saved = 0;
    const bool **written = CT_ARENA_ARRAY(a->scratch, const bool *, fn->called.n); /* indexed by cycle */
    struct ct_liveness *liveness;

    a->calls = CT_ARENA_ARRAY(a->scratch, struct call, fn->calls.n);
    for (uint32_t c = 0; c < fn->calls.n; c++) {
        const struct ct_called_function *callee = &fn->called.v[fn->calls.v[c].callee];

        if (!written[callee->cycle] && ct_block_is_reached(callee->entry))
            written[callee->cycle] = find_written(a, callee);
    }
    step_over_calls(a);
    leave_cycles(a);
    liveness = find_live(a);
    find_arguments(a, liveness);
    for (uint32_t c = 0; c < fn->calls.n && n_saved <= SAVED_MAX; c++) {
        const struct ct_call *call = &fn->calls.v[c];

        if (!call->saves || !ct_block_is_reached(call->begin))
            continue;
        if (ct_block_is_reached(call->end))
            find_saved(a, liveness, written[fn->called.v[call->callee].cycle], call->end, &a->calls[c]);
        if (!a->calls[c].saved_bytes && fn->called.v[call->callee].is_recursive)
            a->calls[c].saved_bytes = a->align;
        a->calls[c].first_number = n_saved + 1;
        n_saved += a->calls[c].n_saved;
    }
    return_to_calls(a);
    fn->n_saved = n_saved;
    return n_saved <= SAVED_MAX || ct_error(fn->compilation, fn->source->where, PTX2SPV_UNSUPPORTED,
                                            "%s: calls that store more than %d registers are not supported", fn->name, SAVED_MAX);
}

/* ---- calls ---- */

static ct_value stack_address(const struct activations *a, struct ct_cursor *at)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOCALADDR, PTX_NONE, 1, 0);

    insn->local = a->stack;
    insn->results[0] = ct_value_create(a->fn, CT_W_32);
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
static void test_room(const struct activations *a, struct ct_block *begin, uint32_t bytes, struct ct_block *copies,
                      struct ct_block *overflow)
{
    struct ct_cursor at = {.fn = a->fn, .block = begin, .where = copies->first->where};

    if (bytes && a->has_recursion) {
        const ct_value end = ct_add_imm(&at, stack_address(a, &at), a->fn->locals.v[a->stack - 1].size_bytes);

        ct_cursor_branch(&at, ct_icmp_imm(&at, PTX_U32, PTX_LT, ct_sub(&at, end, a->top), bytes), overflow, copies);
    } else {
        ct_cursor_jump(&at, copies);
    }
}

static void save(struct activations *a, const struct call *call)
{
    struct ct_insn *first = call->copies->first;
    struct ct_cursor at = {.fn = a->fn, .block = call->copies, .before = first, .where = first->where};

    for (uint32_t i = 0, offset = 0; i < call->n_saved; i++) {
        ct_store_register(&at, a->top, offset, call->saved[i], call->first_number + i);
        offset += ct_register_bytes(ct_width_of_value(a->fn, call->saved[i]));
    }
    add_to_top(a, &at, call->saved_bytes);
}

static void restore(struct activations *a, struct ct_block *end, const struct call *call)
{
    struct ct_cursor at = {.fn = a->fn, .block = end, .before = end->last, .where = end->last->where};

    add_to_top(a, &at, 0u - call->saved_bytes);
    for (uint32_t i = 0, offset = 0; i < call->n_saved; i++) {
        const enum ct_width width = ct_width_of_value(a->fn, call->saved[i]);

        ct_assign(&at, call->saved[i], ct_load_register(&at, a->top, offset, width, call->first_number + i));
        offset += ct_register_bytes(width);
    }
}

static void build_calls(struct activations *a)
{
    struct ct_fn *fn = a->fn;
    struct ct_block *overflow = build_overflow(fn);

    for (uint32_t c = 0; c < fn->calls.n; c++) {
        const struct ct_call *call = &fn->calls.v[c];

        if (!ct_block_is_reached(call->begin))
            continue;
        test_room(a, call->begin, a->calls[c].saved_bytes + a->frames[call->callee].size_bytes, a->calls[c].copies, overflow);
        save(a, &a->calls[c]);
        if (ct_block_is_reached(call->end))
            restore(a, call->end, &a->calls[c]);
    }
}

/* ---- the stack ---- */

static void create_stack(struct activations *a)
{
    struct ct_fn *fn = a->fn;
    struct ct_cursor at = {.fn = fn, .block = fn->blocks.v[0], .before = fn->blocks.v[0]->first, .where = fn->source->where};

    *CT_PUSH(&fn->compilation->arena, &fn->locals) = (struct ct_local){.align = a->align};
    a->stack = fn->locals.n;
    ct_assign(&at, a->top, stack_address(a, &at)); /* no cycle contains the entry */
}

/* What activations of functions that are not recursive need at the most. The loop ends after as many rounds as calls are nested. */
static void find_called_bytes(struct activations *a)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t c = 0; c < a->fn->calls.n; c++) {
            const struct ct_call *call = &a->fn->calls.v[c];
            const struct frame *callee = &a->frames[call->callee];
            const uint64_t bytes = (uint64_t)a->calls[c].saved_bytes + callee->size_bytes + callee->called_bytes;
            uint64_t *most = call->caller ? &a->frames[call->caller - 1].called_bytes : &a->called_bytes;

            if (a->fn->called.v[call->callee].is_recursive || bytes <= *most)
                continue;
            *most = bytes;
            changed = true;
        }
    }
}

/* Recursive functions have what the limit says, and a frame of each besides; above these are functions that are out of line. */
static bool size_stack(struct activations *a)
{
    struct ct_fn *fn = a->fn;
    const uint32_t wanted = fn->compilation->options.stack_bytes;
    uint64_t frames = 0, called = a->called_bytes, bytes;

    if (a->has_recursion)
        fn->stack_bytes = wanted ? wanted : PTX2SPV_STACK_BYTES;
    for (uint32_t f = 0; f < fn->called.n; f++) {
        if (!fn->called.v[f].is_recursive)
            continue;
        frames += a->frames[f].size_bytes;
        called = a->frames[f].called_bytes > called ? a->frames[f].called_bytes : called;
    }
    bytes = fn->stack_bytes + frames + called;
    if (bytes > CT_FRAME_BYTES_MAX)
        return ct_error(fn->compilation, fn->source->where, PTX2SPV_TARGET_LACKS, "%s: more than %u bytes for functions that are called",
                        fn->name, CT_FRAME_BYTES_MAX);
    fn->locals.v[a->stack - 1].size_bytes = bytes ? bytes : 1; /* `top` has its address, even if nothing is stored */
    return true;
}

enum ct_pass_result ct_pass_activations(struct ct_fn *fn)
{
    struct activations a = {.fn = fn, .scratch = &fn->compilation->scratch, .align = STACK_ALIGN};

    if (!fn->called.n)
        return CT_PASS_UNCHANGED;
    for (uint32_t f = 0; f < fn->called.n; f++)
        a.has_recursion |= fn->called.v[f].is_recursive;
    a.frames = CT_ARENA_ARRAY(a.scratch, struct frame, fn->called.n);
    a.top = ct_value_create(fn, CT_W_32);
    if (!place_objects(&a))
        return CT_PASS_FAILED;
    rewrite_references(&a);
    build_frames(&a);
    create_stack(&a);
    if (!find_saved_of_all(&a))
        return CT_PASS_FAILED;
    find_called_bytes(&a);
    if (!size_stack(&a))
        return CT_PASS_FAILED;
    pass_arguments(&a);
    build_calls(&a);
    ct_fn_remove_unreachable(fn); /* the steps over calls */
    return CT_PASS_CHANGED;
}
