/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of cooperative launches, in the resumed form (resume.c): checkpoints at which a block ends in one dispatch and continues in
 * another.
 *
 * The blocks of a cooperative launch may wait for each other, but no driver promises that they run at the same time. Therefore a block ends
 * and saves its state in memory when none of its threads can continue except by reading memory once more in a loop that waits. When all
 * blocks have ended or saved their state, the host dispatches the kernel again, until no block waits. In each dispatch every waiting block
 * reads what it waits for at least once, so all blocks make progress if they would on a device that runs them concurrently.
 *
 * The saved state of a block (struct ptx2spv_grid, states) starts with a word that says whether the block waits. Then follow its
 * work-group memory, including the exchange area, and for each word of a thread's frame one word per thread: local memory, and the
 * registers that are live-in at the loop's head. */
#include "sync.h"

#include "ptx2spv/ir/live.h"

#include <stddef.h>

enum { BLOCK_ENDED = 0, BLOCK_WAITS = 1, HEADER_WORDS = 1 };

struct area {
    struct ct_fn *fn;
    const struct ct_exchange *x;
    CT_VEC(ct_value) saved; /* registers that are saved */
    uint32_t frame_bytes;   /* size of the thread's local memory without the saved registers */
    ct_value control;       /* 64 bits: CUDA address of struct ptx2spv_grid */
    ct_value base;          /* 64 bits: CUDA address of the block's saved state */
    ct_value shared_words;
};

/* ---- memory ---- */

static ct_value load(struct ct_cursor *at, enum ct_space space, enum ptx_type type, ct_value address, size_t offset)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, type, 1, 1);

    insn->space = (uint8_t)space;
    insn->align_log2 = type == PTX_B64 ? 3 : 2;
    insn->offset = (int64_t)offset;
    insn->operands[0] = address;
    return insn->results[0] = ct_value_create(at->fn, ct_width_of(type));
}

static void store(struct ct_cursor *at, enum ct_space space, ct_value address, ct_value word)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = (uint8_t)space;
    insn->align_log2 = 2;
    insn->operands[0] = address;
    insn->operands[1] = word;
}

ct_value ct_grid_control(struct ct_cursor *at)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, PTX_B64, 1, 0);

    insn->space = CT_SPACE_PARAM;
    insn->align_log2 = 3;
    insn->offset = at->fn->grid_param_offset;
    return insn->results[0] = ct_value_create(at->fn, CT_W_64);
}

static ct_value multiply(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_MUL, ct_unsigned_type(ct_width_at(at, a)), a, b);
}

/* The address of word `index` of the block's saved state. */
static ct_value word_address(struct ct_cursor *at, const struct area *area, ct_value index)
{
    return ct_add(at, area->base, ct_shl_imm(at, ct_zext64(at, index), 2));
}

/* The address of word `number` of this thread's saved frame. */
static ct_value own_word_address(struct ct_cursor *at, const struct area *area, ct_value number)
{
    const ct_value before = ct_add_imm(at, ct_add(at, area->shared_words, area->x->thread), HEADER_WORDS);

    return word_address(at, area, ct_add(at, before, multiply(at, number, area->x->threads)));
}

static void find_area(struct ct_cursor *at, struct area *area)
{
    const ct_value x = ct_sysval(at, CT_SYS_CTAID_X), y = ct_sysval(at, CT_SYS_CTAID_Y), z = ct_sysval(at, CT_SYS_CTAID_Z);
    const ct_value rows = ct_add(at, multiply(at, z, ct_sysval(at, CT_SYS_NCTAID_Y)), y);
    const ct_value block = ct_add(at, multiply(at, rows, ct_sysval(at, CT_SYS_NCTAID_X)), x);
    ct_value stride, states;

    area->control = ct_grid_control(at);
    states = load(at, CT_SPACE_GLOBAL, PTX_B64, area->control, offsetof(struct ptx2spv_grid, states));
    stride = load(at, CT_SPACE_GLOBAL, PTX_B64, area->control, offsetof(struct ptx2spv_grid, stride));
    area->base = ct_add(at, states, multiply(at, ct_zext64(at, block), stride));
    area->shared_words = ct_shr_imm(at, ct_exchange_end(at, area->x), 2);
}

/* ---- saved registers ---- */

/* Blocks that run before the loop: values that only they define are the same in each dispatch. */
static void mark_before(struct ct_block *block, const struct ct_block *head, bool *before)
{
    if (block == head || before[block->id])
        return;
    before[block->id] = true;
    for (uint32_t i = 0; i < block->n_succs; i++) /* there are only the entry's few loops, so the recursion is not deep */
        mark_before(block->succs[i], head, before);
}

static void find_saved_registers(struct area *area, const struct ct_block *head)
{
    struct ct_fn *fn = area->fn;
    struct ct_arena *scratch = &fn->compilation->scratch;
    bool *before = CT_ARENA_ARRAY(scratch, bool, fn->blocks.n), *changes = CT_ARENA_ARRAY(scratch, bool, fn->values.n);
    uint32_t n;
    const ct_value *live = ct_live_in(ct_liveness_create(fn, &head, 1), head, &n);

    mark_before(fn->blocks.v[0], head, before);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && !before[b]; insn = insn->next)
            for (uint32_t r = 0; r < insn->n_results; r++)
                changes[insn->results[r].i] = true;
    for (uint32_t i = 0; i < n; i++)
        if (changes[live[i].i])
            *CT_PUSH(scratch, &area->saved) = live[i];
}

static uint32_t words_of(const struct ct_fn *fn, ct_value value)
{
    return ct_width_of_value(fn, value) == CT_W_64 ? 2 : 1;
}

/* Conversion to words, the low one first, and back. */
static void to_words(struct ct_cursor *at, ct_value value, ct_value words[2])
{
    switch (ct_width_of_value(at->fn, value)) {
    case CT_W_PRED:
        words[0] = ct_select(at, value, ct_const32(at, 1), ct_const32(at, 0));
        break;
    case CT_W_16:
        words[0] = ct_resize(at, value, PTX_U16, CT_W_32);
        break;
    case CT_W_32:
        words[0] = value;
        break;
    case CT_W_64:
        ct_unpack2(at, value, &words[0], &words[1]);
        break;
    }
}

static void from_words(struct ct_cursor *at, ct_value value, const ct_value words[2])
{
    switch (ct_width_of_value(at->fn, value)) {
    case CT_W_PRED:
        ct_assign(at, value, ct_icmp_imm(at, PTX_B32, PTX_NE, words[0], 0));
        break;
    case CT_W_16:
        ct_assign(at, value, ct_resize(at, words[0], PTX_U32, CT_W_16));
        break;
    case CT_W_32:
        ct_assign(at, value, words[0]);
        break;
    case CT_W_64:
        ct_assign(at, value, ct_pack2(at, words[0], words[1]));
        break;
    }
}

/* Copies registers to or from the end of the thread's frame: with constant offsets this is little code for any number of registers. */
static void copy_registers(struct ct_cursor *at, const struct area *area, bool save)
{
    uint32_t byte = area->frame_bytes;

    for (uint32_t i = 0; i < area->saved.n; i++) {
        const uint32_t n = words_of(area->fn, area->saved.v[i]);
        ct_value words[2];

        if (save)
            to_words(at, area->saved.v[i], words);
        for (uint32_t w = 0; w < n; w++, byte += 4) {
            const ct_value offset = ct_const32(at, byte);

            if (save)
                store(at, CT_SPACE_LOCAL, offset, words[w]);
            else
                words[w] = load(at, CT_SPACE_LOCAL, PTX_B32, offset, 0);
        }
        if (!save)
            from_words(at, area->saved.v[i], words);
    }
}

/* Copies one word between `space` (at the given byte) and the saved state. */
static void copy_word(struct ct_cursor *at, enum ct_space space, ct_value byte, ct_value address, bool save)
{
    if (save)
        store(at, CT_SPACE_GLOBAL, address, load(at, space, PTX_B32, byte, 0));
    else
        store(at, space, byte, load(at, CT_SPACE_GLOBAL, PTX_B32, address, 0));
}

struct loop {
    struct ct_block *head, *done;
    ct_value i;
};

/* for (i = from; i < end; i += step) */
static struct loop loop_begin(struct ct_cursor *at, ct_value from, ct_value end)
{
    struct loop loop = {.head = ct_block_create(at->fn), .done = ct_block_create(at->fn), .i = ct_copy(at, from)};
    struct ct_block *inside = ct_block_create(at->fn);

    ct_cursor_jump(at, loop.head);
    ct_cursor_enter(at, loop.head);
    ct_cursor_branch(at, ct_icmp(at, PTX_U32, PTX_LT, loop.i, end), inside, loop.done);
    ct_cursor_enter(at, inside);
    return loop;
}

static void loop_end(struct ct_cursor *at, struct loop *loop, ct_value step)
{
    ct_assign(at, loop->i, ct_add(at, loop->i, step));
    ct_cursor_jump(at, loop->head);
    ct_cursor_enter(at, loop->done);
}

/* The threads of the block share the work. In clusters other blocks may access the kernel's shared memory meanwhile; it is in a slot of the
 * block's own, which keeps it, so only the exchange area is copied, as the start of a dispatch clears that. */
static void copy_shared(struct ct_cursor *at, const struct area *area, bool save)
{
    ct_value first = area->x->thread;
    struct loop loop;

    if (area->fn->clusters)
        first = ct_add(at, first, ct_shr_imm(at, ct_sysval(at, CT_SYS_EXCHANGE_BASE), 2));
    loop = loop_begin(at, first, area->shared_words);

    copy_word(at, CT_SPACE_SHARED, ct_shl_imm(at, loop.i, 2), word_address(at, area, ct_add_imm(at, loop.i, HEADER_WORDS)), save);
    loop_end(at, &loop, area->x->threads);
}

/* Copies the thread's frame, including the saved registers. */
static void copy_frame(struct ct_cursor *at, const struct area *area, bool save)
{
    struct loop loop = loop_begin(at, ct_const32(at, 0), ct_const32(at, area->fn->grid_thread_words));

    copy_word(at, CT_SPACE_LOCAL, ct_shl_imm(at, loop.i, 2), own_word_address(at, area, loop.i), save);
    loop_end(at, &loop, ct_const32(at, 1));
}

/* Copies the state of all threads; the cursor is after the copy afterwards. */
static void copy_state(struct ct_cursor *at, const struct area *area, bool save)
{
    if (save)
        copy_registers(at, area, true);
    copy_frame(at, area, save);
    if (!save)
        copy_registers(at, area, false);
    copy_shared(at, area, save);
}

/* ---- start and end of a dispatch ---- */

static void count(struct ct_cursor *at, ct_value address)
{
    const ct_value one = ct_const32(at, 1);
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_ATOM, PTX_U32, 1, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->operation = PTX_ADD;
    insn->semantics = PTX_RELAXED;
    insn->scope = PTX_GPU;
    insn->align_log2 = 2;
    insn->operands[0] = address;
    insn->operands[1] = one;
    insn->results[0] = ct_value_create(at->fn, CT_W_32);
}

/* Thread 0 records whether the block waits; the waiting blocks are counted. */
static void end_dispatch(struct ct_cursor *at, const struct area *area, bool waits)
{
    struct ct_block *record = ct_block_create(at->fn), *end = ct_block_create(at->fn);

    ct_cursor_branch(at, ct_equals(at, area->x->thread, 0), record, end);
    ct_cursor_enter(at, record);
    store(at, CT_SPACE_GLOBAL, area->base, ct_const32(at, waits ? BLOCK_WAITS : BLOCK_ENDED));
    if (waits)
        count(at, ct_add_imm(at, area->control, offsetof(struct ptx2spv_grid, waiting)));
    ct_cursor_jump(at, end);
    ct_cursor_enter(at, end);
    ct_emit_insn(at, CT_OP_RET, PTX_NONE, 0, 0);
}

/* Behind the entry: the first dispatch goes directly to the head, a later one restores the saved state. */
static void make_start(struct ct_cursor *at, struct area *area, struct ct_block *head)
{
    struct ct_block *resumed = ct_block_create(at->fn), *ended = ct_block_create(at->fn), *restore = ct_block_create(at->fn);
    const ct_value phase = load(at, CT_SPACE_GLOBAL, PTX_B32, area->control, offsetof(struct ptx2spv_grid, phase));

    ct_cursor_branch(at, ct_equals(at, phase, 0), head, resumed);
    ct_cursor_enter(at, resumed);
    ct_cursor_branch(at, ct_equals(at, load(at, CT_SPACE_GLOBAL, PTX_B32, area->base, 0), BLOCK_WAITS), restore, ended);
    ct_cursor_enter(at, ended);
    ct_emit_insn(at, CT_OP_RET, PTX_NONE, 0, 0);
    ct_cursor_enter(at, restore);
    copy_state(at, area, false);
    ct_exchange_barrier(at);
    ct_cursor_jump(at, head);
}

void ct_grid_add_checkpoint(struct ct_fn *fn, const struct ct_exchange *x, const struct ct_grid_blocks *blocks)
{
    struct area area = {.fn = fn, .x = x};
    struct ct_cursor at = {.fn = fn, .block = blocks->start, .where = fn->source->where};

    find_saved_registers(&area, blocks->head);
    area.frame_bytes = (fn->local_bytes + 3) & ~3u;
    fn->local_bytes = area.frame_bytes;
    for (uint32_t i = 0; i < area.saved.n; i++)
        fn->local_bytes += 4 * words_of(fn, area.saved.v[i]);
    fn->grid_thread_words = fn->local_bytes / 4;
    if (fn->local_align < 4)
        fn->local_align = 4;
    find_area(&at, &area);
    make_start(&at, &area, blocks->head);
    ct_cursor_enter(&at, blocks->wait);
    copy_state(&at, &area, true);
    end_dispatch(&at, &area, true);
    ct_cursor_enter(&at, blocks->end);
    end_dispatch(&at, &area, false);
}
