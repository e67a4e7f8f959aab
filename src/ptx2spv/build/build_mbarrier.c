/* SPDX-License-Identifier: Apache-2.0 */
/* build: mbarrier.*, cp.async.mbarrier.arrive (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
 *
 * An mbarrier object is a 64-bit word of shared memory:
 *
 *     bits 0 to 19    pending count: arrivals that are missing in this phase
 *     bits 20 to 39   expected count: arrivals of the next phase
 *     bits 40 to 61   tx-count, in two's complement: bytes that are missing in this phase
 *     bit 62          0; takes the carry of the tx-count
 *     bit 63          parity of the phase
 *
 * Every operation adds to the three counts at once, by compare-and-swap, and begins the next phase when the pending count and the tx-count
 * are zero. The state that an arrival returns is the word before it. A wait only looks at the parity, in the upper half of the word; its
 * relaxed load is one that spin.c recognizes in a loop, so that other threads get to run.
 *
 * Asynchronous copies are complete when they are issued, so an arrival that is to be triggered by them happens at once. */
#include "build_async.h"

#define COUNT_BITS 20
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define TX_BITS 22
#define TX_SHIFT 40
#define TX_MASK ((UINT64_C(1) << TX_BITS) - 1)
#define CARRY_BIT (UINT64_C(1) << 62)
#define PARITY_BIT (UINT64_C(1) << 63)

/* What an operation subtracts from the pending count and the expected count, and adds to the tx-count: 32-bit values, or none. */
struct change {
    ct_value arrivals, drops, bytes;
};

static struct ct_insn *emit_access(struct ct_build *b, const struct ct_address *at, enum ct_op op, enum ptx_type type, unsigned results,
                                   unsigned operands)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, type, results, operands);

    ct_build_access(b, insn, at, ptx_type_bits(type) / 8);
    insn->semantics = PTX_RELAXED;
    insn->scope = b->fn->clusters || b->insn->mods.scope == PTX_CLUSTER ? PTX_CLUSTER : PTX_CTA;
    if (results)
        insn->results[0] = ct_value_create(b->fn, ct_width_of(type));
    return insn;
}

/* ---- counts ---- */

/* The sum that has the effect of `change`. The tx-count is added modulo 2^22. */
static ct_value summand(struct ct_build *b, const struct change *change)
{
    struct ct_cursor *at = &b->at;
    ct_value sum = ct_const64(at, 0);

    if (change->arrivals.i)
        sum = ct_sub(at, sum, ct_zext64(at, change->arrivals));
    if (change->drops.i)
        sum = ct_sub(at, sum, ct_shl_imm(at, ct_zext64(at, change->drops), COUNT_BITS));
    if (change->bytes.i)
        sum = ct_add(at, sum, ct_shl_imm(at, ct_zext64(at, ct_and_imm(at, change->bytes, TX_MASK)), TX_SHIFT));
    return sum;
}

/* The word with a phase begun, if nothing is missing any more. */
static ct_value with_phase(struct ct_build *b, ct_value word)
{
    struct ct_cursor *at = &b->at;
    const ct_value missing = ct_and_imm(at, word, TX_MASK << TX_SHIFT | COUNT_MASK);
    const ct_value expected = ct_and_imm(at, ct_shr_imm(at, word, COUNT_BITS), COUNT_MASK);
    const ct_value begun = ct_xor_imm(at, ct_or(at, word, expected), PARITY_BIT); /* the pending count in `word` is 0 */

    return ct_select(at, ct_equals(at, missing, 0), begun, word);
}

/* Changes the object at an address; the result is the word before. */
static ct_value update(struct ct_build *b, const struct ct_address *at, const struct change *change)
{
    struct ct_block *again = ct_build_block(b), *done = ct_build_block(b);
    const ct_value sum = summand(b, change), old = ct_value_create(b->fn, CT_W_64);
    struct ct_insn *insn = emit_access(b, at, CT_OP_LOAD, PTX_B64, 1, 1);
    ct_value next, same;

    ct_assign(&b->at, old, insn->results[0]);
    ct_build_jump(b, again);
    ct_build_enter(b, again);
    next = with_phase(b, ct_and_imm(&b->at, ct_add(&b->at, old, sum), ~CARRY_BIT));
    insn = emit_access(b, at, CT_OP_ATOM, PTX_B64, 1, 3);
    insn->operation = PTX_CAS;
    insn->operands[1] = old;
    insn->operands[2] = next;
    same = ct_icmp(&b->at, PTX_B64, PTX_EQ, insn->results[0], old);
    ct_assign(&b->at, old, insn->results[0]);
    ct_build_branch(b, same, done, again);
    ct_build_enter(b, done);
    return old;
}

/* ---- arrivals ---- */

static ct_value arrive_once(struct ct_build *b, const struct ct_address *at, ct_value count, bool drops)
{
    return update(b, at, &(struct change){count, drops ? count : CT_NO_VALUE, CT_NO_VALUE});
}

/* The lanes that arrive, one of them, and how many are before this one. */
struct arriving {
    ct_value mask, leader, rank;
};

static ct_value ballot(struct ct_cursor *at, ct_value condition)
{
    return ct_emit1(at, CT_OP_BALLOT, PTX_B32, CT_W_32, condition);
}

static struct arriving find_arriving(struct ct_cursor *at)
{
    const ct_value lane = ct_sysval(at, CT_SYS_LANEID),
                   below = ct_sub(at, ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), lane), ct_const32(at, 1));
    struct arriving arriving;

    arriving.mask = ballot(at, ct_emit_const(at, CT_W_PRED, true));
    arriving.leader = ct_op1(at, CT_OP_CLZ, PTX_B32, ct_op1(at, CT_OP_BREV, PTX_B32, arriving.mask));
    arriving.rank = ct_bits1(at, CT_OP_POPC, ct_and(at, arriving.mask, below));
    return arriving;
}

static ct_value of_leader(struct ct_cursor *at, const struct arriving *arriving, ct_value word)
{
    return ct_emit2(at, CT_OP_LANEREAD, PTX_B32, CT_W_32, word, arriving->leader);
}

/* One lane arrives for all, and the others get the states that they would have got one after the other. */
static ct_value arrive_for_all(struct ct_build *b, const struct ct_address *at, const struct arriving *arriving, bool drops)
{
    struct ct_block *lead = ct_build_block(b), *joined = ct_build_block(b);
    const ct_value old = ct_value_create(b->fn, CT_W_64);
    ct_value halves[2], before;

    ct_assign(&b->at, old, ct_const64(&b->at, 0));
    ct_build_branch(b, ct_icmp(&b->at, PTX_B32, PTX_EQ, arriving->rank, ct_const32(&b->at, 0)), lead, joined);
    ct_build_enter(b, lead);
    ct_assign(&b->at, old, arrive_once(b, at, ct_bits1(&b->at, CT_OP_POPC, arriving->mask), drops));
    ct_build_jump(b, joined);
    ct_build_enter(b, joined);
    ct_emit_insn(&b->at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = arriving->mask;
    ct_unpack2(&b->at, old, &halves[0], &halves[1]);
    before = ct_pack2(&b->at, of_leader(&b->at, arriving, halves[0]), of_leader(&b->at, arriving, halves[1]));
    return ct_add(&b->at, before, summand(b, &(struct change){arriving->rank, drops ? arriving->rank : CT_NO_VALUE, CT_NO_VALUE}));
}

/* All threads of a block may arrive at once, and each would repeat its compare-and-swap until the others are done. So lanes that arrive at the
 * same object do that together where they can read each other's registers. */
ct_value ct_mbarrier_arrive(struct ct_build *b, const struct ct_address *at, bool drops)
{
    const ct_value state = ct_value_create(b->fn, CT_W_64), one = ct_const32(&b->at, 1);
    struct ct_block *together, *apart, *done;
    struct arriving arriving;
    ct_value word, differs;

    if (!ct_build_may_read_lanes(b))
        return arrive_once(b, at, one, drops);
    together = ct_build_block(b);
    apart = ct_build_block(b);
    done = ct_build_block(b);
    arriving = find_arriving(&b->at);
    word = ct_low32(&b->at, at->base);
    differs = ballot(&b->at, ct_icmp(&b->at, PTX_B32, PTX_NE, word, of_leader(&b->at, &arriving, word)));
    ct_build_branch(b, ct_equals(&b->at, differs, 0), together, apart);
    ct_build_enter(b, together);
    ct_assign(&b->at, state, arrive_for_all(b, at, &arriving, drops));
    ct_build_jump(b, done);
    ct_build_enter(b, apart);
    ct_assign(&b->at, state, arrive_once(b, at, one, drops));
    ct_build_jump(b, done);
    ct_build_enter(b, done);
    return state;
}

/* ---- ordering ---- */

static enum ptx_scope scope_of(const struct ct_build *b)
{
    return b->insn->mods.scope ? (enum ptx_scope)b->insn->mods.scope : PTX_CTA;
}

static void release(struct ct_build *b)
{
    if (!ct_async_has(b, "relaxed"))
        ct_build_fence_of(b, PTX_RELEASE, scope_of(b));
}

/* ---- operations ---- */

void ct_build_mbarrier_init(struct ct_build *b)
{
    struct ct_address at;
    ct_value count;

    if (!ct_async_address(b, 0, PTX_SPACE_SHARED, &at))
        return;
    count = ct_zext64(&b->at, ct_and_imm(&b->at, ct_build_source(b, 1, PTX_U32), COUNT_MASK));
    count = ct_or(&b->at, count, ct_shl_imm(&b->at, count, COUNT_BITS));
    emit_access(b, &at, CT_OP_STORE, PTX_B64, 0, 2)->operands[1] = count;
}

/* The memory may be used for anything afterwards. */
void ct_build_mbarrier_inval(struct ct_build *b)
{
    struct ct_address at;

    ct_async_address(b, 0, PTX_SPACE_SHARED, &at);
}

void ct_build_mbarrier_expect(struct ct_build *b)
{
    struct ct_address at;

    if (ct_async_address(b, 0, PTX_SPACE_SHARED, &at))
        update(b, &at, &(struct change){.bytes = ct_build_source(b, 1, PTX_U32)});
}

static ct_value negated(struct ct_build *b, ct_value value)
{
    return ct_sub(&b->at, ct_const32(&b->at, 0), value);
}

void ct_build_mbarrier_complete(struct ct_build *b)
{
    struct ct_address at;

    if (ct_async_address(b, 0, PTX_SPACE_SHARED, &at))
        update(b, &at, &(struct change){.bytes = negated(b, ct_build_source(b, 1, PTX_U32))});
}

void ct_mbarrier_complete_bytes(struct ct_build *b, unsigned index, ct_value bytes)
{
    struct ct_address at;

    if (!ct_async_address(b, index, PTX_SPACE_SHARED, &at))
        return;
    ct_build_fence_of(b, PTX_RELEASE, b->fn->clusters ? PTX_CLUSTER : PTX_CTA);
    update(b, &at, &(struct change){.bytes = negated(b, bytes)});
}

/* All arrivals: with a count, or with a number of bytes that are to be expected. */
static void arrive(struct ct_build *b, bool drops, bool expects)
{
    struct ct_address at;
    ct_value operand, count, state;

    if (!ct_async_address(b, 1, PTX_SPACE_SHARED, &at))
        return;
    if (b->insn->n_operands > 2 && !expects && b->insn->operands[2].kind == PTX_OPND_INT && !b->insn->operands[2].bits) {
        ct_build_invalid(b, "the count of an arrival is at least 1");
        return;
    }
    release(b);
    if (b->insn->n_operands > 2) {
        operand = ct_build_source(b, 2, PTX_U32);
        count = expects ? ct_const32(&b->at, 1) : operand;
        state = update(b, &at, &(struct change){count, drops ? count : CT_NO_VALUE, expects ? operand : CT_NO_VALUE});
    } else {
        state = ct_mbarrier_arrive(b, &at, drops);
    }
    if (ct_build_has(b, 0))
        ct_build_result(b, state, PTX_B64);
}

void ct_build_mbarrier_arrive(struct ct_build *b)
{
    arrive(b, false, false);
}

void ct_build_mbarrier_arrive_expect(struct ct_build *b)
{
    arrive(b, false, true);
}

void ct_build_mbarrier_drop(struct ct_build *b)
{
    arrive(b, true, false);
}

void ct_build_mbarrier_drop_expect(struct ct_build *b)
{
    arrive(b, true, true);
}

/* The copies of this thread have been made. Without .noinc they add the arrival that they make, so nothing else changes. */
void ct_build_mbarrier_copies(struct ct_build *b)
{
    struct ct_address at;

    ct_emit_insn(&b->at, CT_OP_ASYNCWAIT, PTX_NONE, 0, 0);
    if (!ct_async_address(b, 0, PTX_SPACE_SHARED, &at) || !ct_async_has(b, "noinc"))
        return;
    release(b);
    ct_mbarrier_arrive(b, &at, false);
}

/* ---- waiting ---- */

/* Whether the parity of the current phase differs from that in the sign of a 32-bit value: then the phase of that value is complete. */
static ct_value is_complete(struct ct_build *b, struct ct_address at, ct_value sign)
{
    struct ct_insn *load;

    at.offset += 4; /* the upper half */
    load = emit_access(b, &at, CT_OP_LOAD, PTX_B32, 1, 1);
    return ct_icmp_imm(&b->at, PTX_S32, PTX_LT, ct_xor(&b->at, load->results[0], sign), 0);
}

void ct_mbarrier_await(struct ct_build *b, const struct ct_address *at, ct_value sign)
{
    struct ct_block *again = ct_build_block(b), *done = ct_build_block(b);

    ct_build_jump(b, again);
    ct_build_enter(b, again);
    ct_build_branch(b, is_complete(b, *at, sign), done, again);
    ct_build_enter(b, done);
}

static void wait(struct ct_build *b, struct ct_address at, ct_value sign)
{
    const ct_value complete = is_complete(b, at, sign);

    if (!ct_async_has(b, "relaxed"))
        ct_build_fence_of(b, PTX_ACQUIRE, scope_of(b));
    ct_build_result(b, complete, PTX_PRED);
}

void ct_build_mbarrier_wait(struct ct_build *b)
{
    struct ct_address at;

    if (ct_async_address(b, 1, PTX_SPACE_SHARED, &at))
        wait(b, at, ct_low32(&b->at, ct_shr_imm(&b->at, ct_build_source(b, 2, PTX_B64), 32)));
}

void ct_build_mbarrier_wait_parity(struct ct_build *b)
{
    struct ct_address at;

    if (ct_async_address(b, 1, PTX_SPACE_SHARED, &at))
        wait(b, at, ct_shl_imm(&b->at, ct_build_source(b, 2, PTX_U32), 31));
}

void ct_build_mbarrier_pending(struct ct_build *b)
{
    ct_build_result(b, ct_and_imm(&b->at, ct_low32(&b->at, ct_build_source(b, 1, PTX_B64)), COUNT_MASK), PTX_U32);
}
