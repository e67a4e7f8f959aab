/* SPDX-License-Identifier: Apache-2.0 */
/* Races in global memory within a launch (options.check_blocks): weak loads of bytes that another block, or another thread of the block, has stored before, and
 * weak stores to bytes that another one has loaded or stored. In SSA form.
 *
 * Each aligned word of four bytes has two marks (struct ptx2spv_check_range.accesses), of the last store and of the last loads. A mark has two halves of 8 bytes:
 *     bits 0 to 31    of the first one the number of the block in the grid, plus 1; of the second one the thread's turn (turns.c)
 *     bits 32 to 59   the number of the launch
 *     bits 60 to 63   the set of bytes
 * Each half is aligned, so it is never a mixture of two. An access conflicts with a half of the same launch and another block that has one of its bytes. If the
 * first half is of the same block, the second one tells whether a barrier or a warp instruction was between. Should that one be of another block, the access
 * conflicts in any case. A store that changes nothing does not conflict, since programs set flags like that.
 *
 * Words without marks have those of struct ptx2spv_check.written, which belong to no launch. To these belongs all memory to which no store of the kernel leads
 * (struct ptx2spv_stored).
 *
 * Only the last store of a word is known, and of its loads those that with_load keeps, so not every race is found. A kernel is left alone if anything in it may order blocks:
 * fences of more than the block, strong loads and stores (also volatile ones), atomic operations with an order, which contain fences, cooperative launches and
 * clusters. Atomic operations are no races themselves. Kernels that take work items by relaxed atomic operations are examined: items differ. */
#include "check.h"

enum { WORD = 4, MARKS_SHIFT = 3, STORE_MARK = 0, LOADS_MARK = 16 };
enum { LAUNCH_BITS = 28, ALL_BYTES = 15 }; /* of the upper word of half a mark */
#define SEVERAL UINT32_MAX                 /* several blocks have loaded these bytes */

bool ct_blocks_are_unordered(const struct ct_fn *fn)
{
    if (fn->clusters || fn->cooperative)
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            const bool is_access = insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE;

            if ((insn->op == CT_OP_FENCE && insn->scope > PTX_CTA) ||
                (is_access && insn->semantics > PTX_WEAK && insn->space != CT_SPACE_SHARED && insn->space != CT_SPACE_LOCAL))
                return false;
        }
    return true;
}

static bool stores_anything(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_STORE && insn->is_checked && !ct_check_is_window(insn))
                return true;
    return false;
}

/* The words of the first half of this block's marks, without bytes. Without stores there are no conflicts, and nothing is examined. */
void ct_blocks_begin(struct ct_check *check)
{
    struct ct_cursor *at = &check->entry;
    ct_value launch, block;

    if (!stores_anything(check->fn))
        return;
    launch = ct_check_load(at, ct_check_control(check), offsetof(struct ptx2spv_check, launch), CT_W_32);
    block = ct_sysval(at, CT_SYS_CTAID_Z);
    block = ct_add(at, ct_bits2(at, CT_OP_MUL, block, ct_sysval(at, CT_SYS_NCTAID_Y)), ct_sysval(at, CT_SYS_CTAID_Y));
    block = ct_add(at, ct_bits2(at, CT_OP_MUL, block, ct_sysval(at, CT_SYS_NCTAID_X)), ct_sysval(at, CT_SYS_CTAID_X));
    check->has_shadow[CT_SHADOW_ACCESSES] = true;
    check->mark = ct_add_imm(at, block, 1);
    check->launch = ct_and_imm(at, launch, (1u << LAUNCH_BITS) - 1);
    if (check->fn->checks_turns)
        ct_turns_begin(check);
}

/* Whether a store leaves memory as it is. */
static ct_value changes_nothing(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access)
{
    const uint64_t bits = ptx_type_bits(access->insn->type);
    const ct_value address = ct_add(at, access->address, ct_zext64(at, ct_check_varying_zero(check)));
    const struct ct_insn *load = ct_check_access_like(at, CT_OP_LOAD, access, address);
    ct_value same = CT_NO_VALUE;

    for (uint32_t i = 0; i < load->n_results; i++) {
        const ct_value difference = ct_xor(at, load->results[i], access->insn->operands[1 + i]);
        const ct_value is_same = ct_equals(at, ct_and_imm(at, difference, bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1), 0);

        same = same.i ? ct_and(at, same, is_same) : is_same;
    }
    return same;
}

/* What is common to the marks of an access: where those of its first word are, which bytes it has of each word, and what it would write. */
struct marks {
    ct_value loads, stores; /* addresses: where marks are loaded, and where they are stored */
    ct_value none;          /* whether all words have one place */
    ct_value turn;          /* with fn->checks_turns */
    ct_value upper;         /* the upper word of both halves: the launch and the bytes */
    uint32_t n;             /* words */
};

static struct marks marks_of(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, ct_value accesses)
{
    const ct_value word = ct_and_imm(at, access->address, ~UINT64_C(3)), control = ct_check_control(check);
    const ct_value place = ct_add(at, ct_shl_imm(at, word, MARKS_SHIFT), accesses);
    struct marks marks = {.n = access->bytes > WORD ? access->bytes / WORD : 1, .none = ct_equals(at, accesses, 0)};
    ct_value bytes = ct_const32(at, (uint32_t)ALL_BYTES << CT_MARK_BYTES_SHIFT);

    marks.loads = ct_select(at, marks.none, ct_add_imm(at, control, offsetof(struct ptx2spv_check, written)), place);
    marks.loads = ct_add(at, marks.loads, ct_zext64(at, ct_check_varying_zero(check)));
    marks.stores = ct_select(at, marks.none, ct_add_imm(at, control, offsetof(struct ptx2spv_check, scratch)), place);
    if (access->bytes < WORD) {
        const ct_value first = ct_and_imm(at, ct_low32(at, access->address), WORD - 1);

        bytes = ct_shl_imm(at, ct_bits2(at, CT_OP_SHL, ct_const32(at, (1u << access->bytes) - 1), first), CT_MARK_BYTES_SHIFT);
    }
    marks.upper = ct_or(at, check->launch, bytes);
    if (check->turn.i)
        marks.turn = ct_turn(check, at);
    return marks;
}

/* The address of the marks of the i-th word. */
static ct_value mark_at(struct ct_cursor *at, const struct marks *marks, ct_value first, uint32_t i)
{
    const ct_value distance = ct_const64(at, (uint64_t)WORD * i << MARKS_SHIFT);

    return i ? ct_add(at, first, ct_select(at, marks->none, ct_const64(at, 0), distance)) : first;
}

/* A mark: the lower and upper words of its halves. */
struct mark {
    ct_value block, of_block, turn, of_turn;
};

static struct ct_insn *access_mark(struct ct_cursor *at, enum ct_op op, ct_value address, uint32_t offset)
{
    struct ct_insn *insn = ct_emit_insn(at, op, PTX_B64, op == CT_OP_LOAD ? 2 : 0, op == CT_OP_LOAD ? 1 : 3);

    insn->space = CT_SPACE_GLOBAL;
    insn->align_log2 = 4;
    insn->offset = offset;
    insn->operands[0] = address;
    return insn;
}

static struct mark load_mark(struct ct_cursor *at, ct_value address, uint32_t offset)
{
    struct ct_insn *load = access_mark(at, CT_OP_LOAD, address, offset);
    struct mark mark;

    for (uint32_t i = 0; i < load->n_results; i++) {
        load->results[i] = ct_value_create(at->fn, CT_W_64);
        at->fn->values.v[load->results[i].i].def = load;
    }
    ct_unpack2(at, load->results[0], &mark.block, &mark.of_block);
    ct_unpack2(at, load->results[1], &mark.turn, &mark.of_turn);
    return mark;
}

static void store_mark(struct ct_cursor *at, ct_value address, uint32_t offset, const struct mark *mark)
{
    const ct_value of_block = ct_pack2(at, mark->block, mark->of_block), of_turn = ct_pack2(at, mark->turn, mark->of_turn);
    struct ct_insn *store = access_mark(at, CT_OP_STORE, address, offset);

    store->operands[1] = of_block;
    store->operands[2] = of_turn;
}

static struct mark own_mark(const struct ct_check *check, struct ct_cursor *at, const struct marks *marks)
{
    const ct_value zero = ct_const32(at, 0);

    return (struct mark){check->mark, marks->upper, check->turn.i ? marks->turn : zero, check->turn.i ? marks->upper : zero};
}

static ct_value is_of_launch(const struct ct_check *check, struct ct_cursor *at, ct_value upper)
{
    return ct_equals(at, ct_and_imm(at, ct_xor(at, upper, check->launch), (1u << LAUNCH_BITS) - 1), 0);
}

/* ---- conflicts ---- */

/* *other: what a report says about the other block or thread, if the result is true. */
static ct_value conflict(const struct ct_check *check, struct ct_cursor *at, const struct marks *marks, const struct mark *last,
                         ct_value *other)
{
    const ct_value counts = ct_and(at, is_of_launch(check, at, last->of_block), ct_have_common_bytes(at, last->of_block, marks->upper));
    const ct_value is_other_block = ct_and(at, counts, ct_icmp(at, PTX_B32, PTX_NE, last->block, check->mark));
    ct_value turn_counts, conflicts;

    *other = ct_and_imm(at, last->block, PTX2SPV_CHECK_SEVERAL_BLOCKS);
    if (!check->turn.i)
        return is_other_block;
    turn_counts = ct_and(at, is_of_launch(check, at, last->of_turn), ct_have_common_bytes(at, last->of_turn, marks->upper));
    conflicts = ct_and(at, turn_counts, ct_turns_conflict(at, marks->turn, last->turn));
    *other = ct_select(at, is_other_block, *other, ct_or_imm(at, ct_turn_thread(at, last->turn), PTX2SPV_CHECK_OF_BLOCK));
    return ct_or(at, is_other_block, conflicts);
}

/* A conflict of one of the words. */
struct found {
    ct_value holds, other; /* none: no word yet */
};

static void add_found(struct ct_cursor *at, struct found *found, ct_value holds, ct_value other)
{
    found->other = found->holds.i ? ct_select(at, holds, other, found->other) : other;
    found->holds = found->holds.i ? ct_or(at, found->holds, holds) : holds;
}

static void report(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, const struct found *found)
{
    struct ct_block *rest = ct_check_enter_if(at, access->insn, found->holds);

    ct_check_report(check, at,
                    &(struct ct_incident){
                        .where = access->insn->where,
                        .access = ct_check_describe(access),
                        .address = access->address,
                        .fault = ct_const32(at, PTX2SPV_CHECK_RACE),
                        .other = found->other,
                    });
    ct_check_leave_if(at, access->insn, rest);
}

/* ---- what is remembered ---- */

/* The mark of the loads of a word after this one: of a launch the bytes that several blocks have loaded, else those of one block, else the last load. So a mark
 * never says that a block has loaded a byte that only another one has. */
static struct mark with_load(const struct ct_check *check, struct ct_cursor *at, const struct marks *marks, const struct mark *last)
{
    const struct mark own = own_mark(check, at, marks);
    const ct_value in_launch = is_of_launch(check, at, last->of_block);
    const ct_value is_own = ct_and(at, in_launch, ct_icmp(at, PTX_B32, PTX_EQ, last->block, check->mark));
    const ct_value was_several = ct_and(at, in_launch, ct_equals(at, last->block, SEVERAL));
    const ct_value is_common = ct_and(at, in_launch, ct_have_common_bytes(at, last->of_block, marks->upper));
    const ct_value several = ct_and(at, is_common, ct_not(at, is_own));
    struct mark joined = own;

    joined.block = ct_select(at, several, ct_const32(at, SEVERAL), own.block);
    joined.of_block = ct_select(at, is_own, ct_or(at, last->of_block, own.of_block), own.of_block);
    joined.of_block = ct_select(at, several, ct_and(at, last->of_block, own.of_block), joined.of_block);
    if (check->turn.i) {
        const ct_value same_block = ct_and(at, is_own, is_of_launch(check, at, last->of_turn));
        struct ct_turn_bytes turn =
            ct_turns_join(at, (struct ct_turn_bytes){own.turn, own.of_turn}, (struct ct_turn_bytes){last->turn, last->of_turn});

        joined.turn = ct_select(at, same_block, turn.turn, own.turn);
        joined.of_turn = ct_select(at, same_block, turn.upper, own.of_turn);
    }
    return (struct mark){ct_select(at, was_several, last->block, joined.block), ct_select(at, was_several, last->of_block, joined.of_block),
                         ct_select(at, was_several, last->turn, joined.turn), ct_select(at, was_several, last->of_turn, joined.of_turn)};
}

static ct_value differs(struct ct_cursor *at, const struct mark *a, const struct mark *b)
{
    const ct_value blocks = ct_or(at, ct_xor(at, a->block, b->block), ct_xor(at, a->of_block, b->of_block));
    const ct_value turns = ct_or(at, ct_xor(at, a->turn, b->turn), ct_xor(at, a->of_turn, b->of_turn));

    return ct_not(at, ct_equals(at, ct_or(at, blocks, turns), 0));
}

/* Most loads find their mark as they would leave it. */
static void note_loads(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, const struct marks *marks)
{
    struct mark *joined = CT_ARENA_ARRAY(&check->fn->compilation->scratch, struct mark, marks->n);
    ct_value is_new = CT_NO_VALUE;
    struct ct_block *rest;

    for (uint32_t i = 0; i < marks->n; i++) {
        const struct mark last = load_mark(at, mark_at(at, marks, marks->loads, i), LOADS_MARK);
        ct_value differ;

        joined[i] = with_load(check, at, marks, &last);
        differ = differs(at, &joined[i], &last);
        is_new = is_new.i ? ct_or(at, is_new, differ) : differ;
    }
    rest = ct_check_enter_if(at, access->insn, is_new);
    for (uint32_t i = 0; i < marks->n; i++)
        store_mark(at, mark_at(at, marks, marks->stores, i), LOADS_MARK, &joined[i]);
    ct_check_leave_if(at, access->insn, rest);
}

static void note_store(const struct ct_check *check, struct ct_cursor *at, const struct marks *marks)
{
    const struct mark own = own_mark(check, at, marks);

    for (uint32_t i = 0; i < marks->n; i++)
        store_mark(at, mark_at(at, marks, marks->stores, i), STORE_MARK, &own);
}

/* ---- what stores lead to, for the host ---- */

static void note_stored_param(struct ptx2spv_stored *stored, uint64_t offset)
{
    for (uint32_t i = 0; i < stored->n_params; i++)
        if (stored->params[i] == offset)
            return;
    if (stored->n_params < PTX2SPV_STORED_PARAMS)
        stored->params[stored->n_params] = (uint32_t)offset;
    stored->n_params++;
}

static void note_stored(struct ptx2spv_stored *stored, const struct ct_root *root)
{
    if (root->kind == CT_ROOT_VARIABLE)
        stored->to_variables = true;
    else if (root->kind != CT_ROOT_PARAM)
        stored->n_params = PTX2SPV_STORED_PARAMS + 1;
    else if (stored->n_params <= PTX2SPV_STORED_PARAMS)
        note_stored_param(stored, root->offset);
}

/* ---- accesses ---- */

void ct_check_blocks(struct ct_check *check, const struct ct_access *access, ct_value accesses)
{
    struct ct_insn *insn = access->insn;
    struct ct_cursor at = {.fn = check->fn, .block = insn->block, .before = insn, .where = insn->where};
    struct found found = {0};
    struct marks marks;

    if (insn->op == CT_OP_ATOM)
        return;
    marks = marks_of(check, &at, access, accesses);
    for (uint32_t i = 0; i < marks.n; i++) {
        const ct_value place = mark_at(&at, &marks, marks.loads, i);
        struct mark last;
        ct_value other, holds;

        if (access->writes) {
            last = load_mark(&at, place, LOADS_MARK);
            holds = conflict(check, &at, &marks, &last, &other);
            add_found(&at, &found, holds, ct_or_imm(&at, other, PTX2SPV_CHECK_AFTER_READ));
        }
        last = load_mark(&at, place, STORE_MARK);
        holds = conflict(check, &at, &marks, &last, &other);
        add_found(&at, &found, holds, other);
    }
    if (access->writes)
        found.holds = ct_and(&at, found.holds, ct_not(&at, changes_nothing(check, &at, access)));
    report(check, &at, access, &found);
    if (access->writes) {
        note_store(check, &at, &marks);
        note_stored(&check->fn->check_stored, &access->root);
    } else {
        note_loads(check, &at, access, &marks);
    }
}
