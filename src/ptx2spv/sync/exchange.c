/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange area: its words, and what warp instructions and barriers compute from them (PTX ISA, "Parallel Synchronization and
 * Communication Instructions", "shfl.sync"). */
#include "sync.h"

enum {
    WORD_ENDED = 0,
    WORD_LANES = 1,
    WORD_BALLOTS = WORD_LANES + CT_MAX_WARPS,
    WORD_BARS = WORD_BALLOTS + CT_MAX_WARPS,
    WORD_ANY = WORD_BARS + CT_MAX_BARRIERS * CT_BAR_WORDS,
    FIXED_WORDS = WORD_ANY + 2
};

bool ct_is_warp_op(enum ct_op op)
{
    return op == CT_OP_SHFL || op == CT_OP_VOTE || op == CT_OP_MATCH || op == CT_OP_ACTIVEMASK || op == CT_OP_WARPSYNC || op == CT_OP_REDUX;
}

bool ct_has_mask(enum ct_op op)
{
    return ct_is_warp_op(op) && op != CT_OP_ACTIVEMASK;
}

ct_value ct_mask_of(const struct ct_insn *insn)
{
    return insn->operands[insn->op == CT_OP_SHFL ? 3 : insn->op == CT_OP_WARPSYNC ? 0 : 1];
}

bool ct_is_sync(enum ct_op op)
{
    return op == CT_OP_BARRIER || op == CT_OP_CONVERGE || ct_is_warp_op(op);
}

bool ct_reconverges(const struct ct_insn *insn)
{
    return insn->op == CT_OP_WARPSYNC || insn->op == CT_OP_CONVERGE || (insn->op == CT_OP_BARRIER && insn->mode != PTX_MODE_ARRIVE);
}

/* ---- control flow ---- */

void ct_lane_loop_begin(struct ct_cursor *at, ct_value mask, struct ct_lane_loop *loop)
{
    struct ct_block *inside = ct_block_create(at->fn);
    ct_value next;

    loop->head = ct_block_create(at->fn);
    loop->done = ct_block_create(at->fn);
    loop->rest = ct_copy(at, mask);
    ct_cursor_jump(at, loop->head);
    ct_cursor_enter(at, loop->head);
    ct_cursor_branch(at, ct_equals(at, loop->rest, 0), loop->done, inside);
    ct_cursor_enter(at, inside);
    loop->lane = ct_op1(at, CT_OP_CLZ, PTX_B32, ct_op1(at, CT_OP_BREV, PTX_B32, loop->rest));
    next = ct_and(at, loop->rest, ct_add_imm(at, loop->rest, UINT32_MAX));
    ct_assign(at, loop->rest, next);
}

void ct_lane_loop_end(struct ct_cursor *at, struct ct_lane_loop *loop)
{
    ct_cursor_jump(at, loop->head);
    ct_cursor_enter(at, loop->done);
}

/* ---- words ---- */

static uint32_t fixed_words(const struct ct_exchange *x)
{
    return FIXED_WORDS + CT_MAX_WARPS * x->n_counters;
}

static ct_value area(struct ct_cursor *at, uint32_t word)
{
    const uint32_t matrix_bytes = ct_matrix_thread_bytes(at->fn);
    ct_value base = ct_sysval(at, CT_SYS_EXCHANGE_BASE);

    if (matrix_bytes) { /* the matrix area comes first */
        const ct_value bytes = ct_op2(at, CT_OP_MUL, PTX_U32, ct_sysval(at, CT_SYS_BLOCK_THREADS), ct_const32(at, matrix_bytes));

        base = ct_add_imm(at, ct_add(at, base, bytes), 32 * matrix_bytes);
    }
    return ct_add_imm(at, base, 4 * word);
}

static ct_value indexed(struct ct_cursor *at, uint32_t word, ct_value index)
{
    return ct_add(at, area(at, word), ct_shl_imm(at, index, 2));
}

ct_value ct_exchange_load(struct ct_cursor *at, ct_value address)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, PTX_B32, 1, 1);

    insn->space = CT_SPACE_SHARED;
    insn->align_log2 = 2;
    insn->operands[0] = address;
    insn->results[0] = ct_value_create(at->fn, CT_W_32);
    at->fn->values.v[insn->results[0].i].def = insn;
    return insn->results[0];
}

void ct_exchange_store(struct ct_cursor *at, ct_value address, ct_value value)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = CT_SPACE_SHARED;
    insn->align_log2 = 2;
    insn->operands[0] = address;
    insn->operands[1] = value;
}

ct_value ct_exchange_atomic(struct ct_cursor *at, enum ptx_operation operation, ct_value address, ct_value value)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_ATOM, operation == PTX_ADD ? PTX_U32 : PTX_B32, 1, 2);

    insn->space = CT_SPACE_SHARED;
    insn->operation = (uint8_t)operation;
    insn->semantics = PTX_RELAXED;
    insn->scope = PTX_CTA;
    insn->align_log2 = 2;
    insn->operands[0] = address;
    insn->operands[1] = value;
    return insn->results[0] = ct_value_create(at->fn, CT_W_32);
}

ct_value ct_exchange_ended_word(struct ct_cursor *at)
{
    return area(at, WORD_ENDED);
}

ct_value ct_exchange_lanes_word(struct ct_cursor *at, ct_value warp)
{
    return indexed(at, WORD_LANES, warp);
}

ct_value ct_exchange_counter(struct ct_cursor *at, const struct ct_exchange *x, uint32_t index)
{
    return indexed(at, FIXED_WORDS + CT_MAX_WARPS * index, x->warp);
}

static ct_value ballot_word(struct ct_cursor *at, const struct ct_exchange *x)
{
    return indexed(at, WORD_BALLOTS, x->warp);
}

/* A barrier's number is taken modulo 16: other numbers are undefined, and must not address memory outside the area. */
ct_value ct_exchange_bar_word(struct ct_cursor *at, ct_value number, enum ct_bar_word which)
{
    const ct_value first = ct_op2(at, CT_OP_MUL, PTX_U32, ct_and_imm(at, number, CT_MAX_BARRIERS - 1), ct_const32(at, CT_BAR_WORDS));

    return indexed(at, WORD_BARS + which, first);
}

/* The number of columns in use that precede this one. */
static uint32_t column_index(const struct ct_exchange *x, enum ct_column column)
{
    uint32_t index = 0;

    for (unsigned c = 0; c < column; c++)
        index += x->column[c];
    return index;
}

static ct_value in_column(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column, ct_value low)
{
    const uint32_t index = column_index(x, column);

    return index ? ct_add(at, low, ct_op2(at, CT_OP_MUL, PTX_U32, x->column_bytes, ct_const32(at, index))) : low;
}

ct_value ct_exchange_own(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column)
{
    return in_column(at, x, column, x->own);
}

/* For a lane that the block does not have, lane 0's word is read, which exists. */
ct_value ct_exchange_of_lane(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column, ct_value lane)
{
    if (x->native)
        return ct_emit2(at, CT_OP_LANEREAD, PTX_B32, CT_W_32, x->posted[column], lane);
    const ct_value exists = ct_icmp(at, PTX_U32, PTX_LT, ct_add(at, x->first, lane), x->threads);
    const ct_value bytes = ct_shl_imm(at, ct_select(at, exists, lane, ct_const32(at, 0)), 2);

    return ct_exchange_load(at, in_column(at, x, column, ct_add(at, x->warp_base, bytes)));
}

/* ---- the area as a whole ---- */

void ct_exchange_barrier(struct ct_cursor *at)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_BARRIER, PTX_PRED, 0, 1);
    const ct_value zero = ct_value_create(at->fn, CT_W_32);
    struct ct_insn *number = ct_insn_create(at->fn, CT_OP_CONST, PTX_B32, 1, 0);

    insn->mode = PTX_MODE_SYNC;
    number->results[0] = insn->operands[0] = zero;
    ct_insn_insert_before(insn, number);
    at->fn->uses_barrier = true;
}

static void clear_fixed_part(struct ct_cursor *at, const struct ct_exchange *x)
{
    struct ct_block *head = ct_block_create(at->fn), *inside = ct_block_create(at->fn), *done = ct_block_create(at->fn);
    const ct_value i = ct_copy(at, x->thread);

    ct_cursor_jump(at, head);
    ct_cursor_enter(at, head);
    ct_cursor_branch(at, ct_icmp_imm(at, PTX_U32, PTX_LT, i, fixed_words(x)), inside, done);
    ct_cursor_enter(at, inside);
    ct_exchange_store(at, indexed(at, 0, i), ct_const32(at, 0));
    ct_assign(at, i, ct_add(at, i, x->threads));
    ct_cursor_jump(at, head);
    ct_cursor_enter(at, done);
}

void ct_exchange_begin(struct ct_cursor *at, struct ct_exchange *x)
{
    ct_value left;

    x->fn = at->fn;
    x->thread = ct_sysval(at, CT_SYS_TID_LINEAR);
    x->threads = ct_sysval(at, CT_SYS_BLOCK_THREADS);
    x->lane = ct_and_imm(at, x->thread, 31);
    x->warp = ct_shr_imm(at, x->thread, 5);
    x->first = ct_and_imm(at, x->thread, ~UINT32_C(31));
    x->column_bytes = ct_shl_imm(at, x->threads, 2);
    x->own = indexed(at, fixed_words(x), x->thread);
    x->warp_base = indexed(at, fixed_words(x), x->first);
    left = ct_sub(at, x->threads, x->first);
    x->lanes_of_warp = ct_select(at, ct_icmp_imm(at, PTX_U32, PTX_GE, left, 32), ct_const32(at, UINT32_MAX),
                                 ct_add_imm(at, ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), ct_and_imm(at, left, 31)), UINT32_MAX));
    clear_fixed_part(at, x);
    if (x->column[CT_COLUMN_KIND])
        ct_exchange_store(at, ct_exchange_own(at, x, CT_COLUMN_KIND), ct_const32(at, 0));
    ct_exchange_barrier(at);
}

ct_value ct_exchange_end(struct ct_cursor *at, const struct ct_exchange *x)
{
    const ct_value columns = ct_op2(at, CT_OP_MUL, PTX_U32, x->column_bytes, ct_const32(at, column_index(x, CT_COLUMN_COUNT)));

    return ct_add(at, area(at, fixed_words(x)), columns);
}

void ct_exchange_finish(struct ct_exchange *x)
{
    x->fn->exchange_words = fixed_words(x);
    x->fn->exchange_thread_words = column_index(x, CT_COLUMN_COUNT);
}

/* ---- posting ---- */

ct_value ct_exchange_mask(struct ct_cursor *at, const struct ct_insn *insn)
{
    switch (insn->op) {
    case CT_OP_SHFL:
        return insn->operands[3];
    case CT_OP_WARPSYNC:
        return insn->operands[0];
    case CT_OP_ACTIVEMASK:
        return ct_const32(at, UINT32_MAX);
    default:
        return insn->operands[1];
    }
}

static ct_value own_bit(struct ct_cursor *at, const struct ct_exchange *x)
{
    return ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), x->lane);
}

static void post(struct ct_cursor *at, struct ct_exchange *x, enum ct_column column, ct_value value)
{
    if (x->native)
        x->posted[column] = ct_copy(at, value);
    else
        ct_exchange_store(at, ct_exchange_own(at, x, column), value);
}

void ct_exchange_post(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn)
{
    ct_value low, high;

    switch (insn->op) {
    case CT_OP_VOTE:
        if (!x->native)
            ct_exchange_atomic(at, PTX_OR, ballot_word(at, x), ct_select(at, insn->operands[0], own_bit(at, x), ct_const32(at, 0)));
        break;
    case CT_OP_SHFL:
    case CT_OP_REDUX:
        post(at, x, CT_COLUMN_LOW, insn->operands[0]);
        break;
    case CT_OP_MATCH:
        low = insn->operands[0];
        if (ct_width_at(at, low) == CT_W_64) {
            ct_unpack2(at, insn->operands[0], &low, &high);
            post(at, x, CT_COLUMN_HIGH, high);
        }
        post(at, x, CT_COLUMN_LOW, low);
        break;
    default: /* nothing to post */
        break;
    }
}

static enum ct_column column_of_turn(uint32_t turn)
{
    return turn ? (enum ct_column)(CT_COLUMN_RUN + turn - 1) : CT_COLUMN_LOW;
}

void ct_exchange_post_run(struct ct_cursor *at, struct ct_exchange *x, const struct ct_shuffle_run *run)
{
    ct_exchange_post(at, x, run->insns[0]);
    for (uint32_t i = 1; i < run->n; i++)
        post(at, x, column_of_turn(i), run->insns[i]->operands[0]);
}

void ct_exchange_retract(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_VOTE)
        ct_exchange_atomic(at, PTX_AND, ballot_word(at, x), ct_not(at, own_bit(at, x)));
}

/* ---- lanes at a point ---- */

void ct_exchange_set_present(struct ct_cursor *at, const struct ct_exchange *x)
{
    ct_exchange_atomic(at, PTX_OR, ct_exchange_lanes_word(at, x->warp), own_bit(at, x));
}

ct_value ct_exchange_present_lanes(struct ct_cursor *at, const struct ct_exchange *x)
{
    return ct_exchange_load(at, ct_exchange_lanes_word(at, x->warp));
}

void ct_exchange_clear_present(struct ct_cursor *at, const struct ct_exchange *x)
{
    ct_exchange_atomic(at, PTX_AND, ct_exchange_lanes_word(at, x->warp), ct_not(at, own_bit(at, x)));
}

/* There are two words, used alternately: one is written, read after a barrier, and not accessed after another barrier; meanwhile the
 * other one is cleared. */
ct_value ct_exchange_any(struct ct_cursor *at, ct_value slot, ct_value holds)
{
    struct ct_block *set = ct_block_create(at->fn), *join = ct_block_create(at->fn);
    const ct_value base = area(at, WORD_ANY), word = ct_add(at, base, slot), next_slot = ct_xor_imm(at, slot, 4);
    ct_value any;

    ct_exchange_store(at, ct_add(at, base, next_slot), ct_const32(at, 0));
    ct_assign(at, slot, next_slot);
    ct_cursor_branch(at, holds, set, join);
    ct_cursor_enter(at, set);
    ct_exchange_store(at, word, ct_const32(at, 1));
    ct_cursor_jump(at, join);
    ct_cursor_enter(at, join);
    ct_exchange_barrier(at);
    any = ct_icmp_imm(at, PTX_B32, PTX_NE, ct_exchange_load(at, word), 0);
    ct_exchange_barrier(at); /* Intel's CPU runtime leaves loops correctly only if the condition was read between two barriers */
    return any;
}

/* ---- results ---- */

/* The source lane and whether it is in range, as in the ISA's table for shfl. */
static void shuffle_source(struct ct_cursor *at, const struct ct_exchange *x, const struct ct_insn *insn, ct_value *source,
                           ct_value *in_range)
{
    const ct_value b = ct_and_imm(at, insn->operands[1], 31), clamp = ct_and_imm(at, insn->operands[2], 31);
    const ct_value segment = ct_and_imm(at, ct_shr_imm(at, insn->operands[2], 8), 31), inside = ct_not(at, segment);
    const ct_value lowest = ct_and(at, x->lane, segment), highest = ct_or(at, lowest, ct_and(at, clamp, inside));
    enum ptx_compare compare = PTX_LE;
    ct_value j;

    if (insn->mode == PTX_MODE_UP) {
        j = ct_sub(at, x->lane, b);
        compare = PTX_GE;
    } else if (insn->mode == PTX_MODE_DOWN) {
        j = ct_add(at, x->lane, b);
    } else if (insn->mode == PTX_MODE_BFLY) {
        j = ct_xor(at, x->lane, b);
    } else {
        j = ct_or(at, lowest, ct_and(at, b, inside));
    }
    *in_range = ct_icmp(at, PTX_S32, compare, j, highest);
    *source = ct_and_imm(at, ct_select(at, *in_range, j, x->lane), 31);
}

/* The value of a lane outside the member mask is undefined. Sums over the first lanes of a warp rely on 0, which NVIDIA's devices are
 * said to give. With a full mask the test is optimized away. */
static void shuffle(struct ct_cursor *at, const struct ct_exchange *x, const struct ct_insn *insn, enum ct_column column)
{
    const ct_value non_members = ct_not(at, insn->operands[3]);
    ct_value source, in_range, value, is_member;

    shuffle_source(at, x, insn, &source, &in_range);
    value = ct_exchange_of_lane(at, x, column, source);
    is_member = ct_equals(at, ct_and(at, non_members, ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), source)), 0);
    value = ct_select(at, is_member, value, ct_const32(at, 0));
    if (insn->results[0].i)
        ct_assign(at, insn->results[0], value);
    if (insn->n_results > 1 && insn->results[1].i)
        ct_assign(at, insn->results[1], in_range);
}

static void vote(struct ct_cursor *at, const struct ct_exchange *x, const struct ct_insn *insn, ct_value members)
{
    const ct_value ballot =
        x->native ? ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, insn->operands[0]) : ct_exchange_load(at, ballot_word(at, x));
    const ct_value held = ct_and(at, ballot, members);
    const ct_value none = ct_equals(at, held, 0), all = ct_icmp(at, PTX_B32, PTX_EQ, held, members);
    ct_value result = held;

    if (insn->mode == PTX_MODE_ALL)
        result = all;
    else if (insn->mode == PTX_MODE_ANY)
        result = ct_not(at, none);
    else if (insn->mode == PTX_MODE_UNI)
        result = ct_or(at, all, none);
    ct_assign(at, insn->results[0], result);
}

static ct_value lanes_with_my_value(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn, ct_value members)
{
    const bool wide = ct_width_at(at, insn->operands[0]) == CT_W_64;
    const ct_value equal = ct_copy(at, ct_const32(at, 0));
    ct_value low = insn->operands[0], high = CT_NO_VALUE, same, bit;
    struct ct_lane_loop loop;

    if (wide)
        ct_unpack2(at, insn->operands[0], &low, &high);
    ct_lane_loop_begin(at, members, &loop);
    same = ct_icmp(at, PTX_B32, PTX_EQ, ct_exchange_of_lane(at, x, CT_COLUMN_LOW, loop.lane), low);
    if (wide)
        same = ct_and(at, same, ct_icmp(at, PTX_B32, PTX_EQ, ct_exchange_of_lane(at, x, CT_COLUMN_HIGH, loop.lane), high));
    bit = ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), loop.lane);
    ct_assign(at, equal, ct_or(at, equal, ct_select(at, same, bit, ct_const32(at, 0))));
    ct_lane_loop_end(at, &loop);
    return equal;
}

static void match(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn, ct_value members)
{
    ct_value equal = lanes_with_my_value(at, x, insn, members);

    if (insn->mode == PTX_MODE_ALL) {
        const ct_value all = ct_icmp(at, PTX_B32, PTX_EQ, equal, members);

        equal = ct_select(at, all, members, ct_const32(at, 0));
        if (insn->n_results > 1 && insn->results[1].i)
            ct_assign(at, insn->results[1], all);
    }
    if (insn->results[0].i)
        ct_assign(at, insn->results[0], equal);
}

static enum ct_op reduction_op(const struct ct_insn *insn, uint32_t *identity)
{
    const bool is_signed = ptx_type_is_signed(insn->type);

    *identity = 0;
    switch (insn->operation) {
    case PTX_AND:
        *identity = UINT32_MAX;
        return CT_OP_AND;
    case PTX_OR:
        return CT_OP_OR;
    case PTX_XOR:
        return CT_OP_XOR;
    case PTX_MIN:
        *identity = is_signed ? INT32_MAX : UINT32_MAX;
        return CT_OP_MIN;
    case PTX_MAX:
        *identity = is_signed ? (uint32_t)INT32_MIN : 0;
        return CT_OP_MAX;
    default:
        return CT_OP_ADD;
    }
}

static void reduce(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn, ct_value members)
{
    uint32_t identity;
    const enum ct_op op = reduction_op(insn, &identity);
    const ct_value sum = ct_copy(at, ct_const32(at, identity));
    struct ct_lane_loop loop;

    ct_lane_loop_begin(at, members, &loop);
    ct_assign(at, sum, ct_op2(at, op, insn->type, sum, ct_exchange_of_lane(at, x, CT_COLUMN_LOW, loop.lane)));
    ct_lane_loop_end(at, &loop);
    ct_assign(at, insn->results[0], sum);
}

void ct_exchange_results(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn, ct_value members)
{
    switch (insn->op) {
    case CT_OP_SHFL:
        shuffle(at, x, insn, CT_COLUMN_LOW);
        break;
    case CT_OP_VOTE:
        vote(at, x, insn, members);
        break;
    case CT_OP_MATCH:
        match(at, x, insn, members);
        break;
    case CT_OP_REDUX:
        reduce(at, x, insn, members);
        break;
    case CT_OP_ACTIVEMASK:
        ct_assign(at, insn->results[0], members);
        break;
    default:
        break; /* bar.warp.sync has no result */
    }
}

void ct_exchange_results_of_run(struct ct_cursor *at, struct ct_exchange *x, const struct ct_shuffle_run *run, ct_value members)
{
    ct_exchange_results(at, x, run->insns[0], members);
    for (uint32_t i = 1; i < run->n; i++)
        shuffle(at, x, run->insns[i], column_of_turn(i));
}

/* ---- bar.red ---- */

ct_value ct_exchange_predicate(struct ct_cursor *at, const struct ct_insn *insn)
{
    const bool fails = insn->operation == PTX_AND;

    return ct_select(at, insn->operands[insn->n_operands - 1], ct_const32(at, !fails), ct_const32(at, fails));
}

ct_value ct_exchange_bar_result(struct ct_cursor *at, const struct ct_insn *insn, ct_value counted)
{
    if (insn->operation == PTX_POPC)
        return counted;
    return ct_icmp_imm(at, PTX_B32, insn->operation == PTX_OR ? PTX_NE : PTX_EQ, counted, 0);
}
