/* SPDX-License-Identifier: Apache-2.0 */
/* Races in global memory within a launch (options.check_blocks): weak loads and stores of bytes that another block, or another thread of the block, has stored
 * before. In SSA form.
 *
 * Each aligned word of four bytes has two marks of 8 bytes (struct ptx2spv_check_range.writers), which tell who stored there last:
 *     bits 0 to 31    of the first one the number of the block in the grid, plus 1; of the second one the thread's turn (turns.c)
 *     bits 32 to 59   the number of the launch
 *     bits 60 to 63   the set of bytes
 * Each is one aligned load or store, so it is never a mixture of two. A load or store conflicts with the mark of the same launch and another block that has one
 * of its bytes; a store that changes nothing does not conflict, since programs set flags like that. Words without marks have those of
 * struct ptx2spv_check.written, which belong to no launch.
 *
 * If the first mark is of the same block, the second one tells whether a barrier or a warp instruction was between. Should it be of another block, the access
 * conflicts in any case.
 *
 * Only the last store is known, and loads are not, so not every race is found. A kernel is left alone if anything in it may order blocks: fences of more than
 * the block, strong loads and stores (also volatile ones), atomic operations with an order, which contain fences, cooperative launches and clusters. Atomic
 * operations are no races themselves. Kernels that take work items by relaxed atomic operations are examined: items differ. */
#include "check.h"

enum { WORD = 4, MARKS_SHIFT = 2, TURN_MARK = 8, LAUNCH_BITS = 28, BYTES_SHIFT = 28, ALL_BYTES = 15 }; /* of the upper half of a mark */

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

/* The halves of the mark of this block, without bytes. */
void ct_blocks_begin(struct ct_check *check)
{
    struct ct_cursor *at = &check->entry;
    const ct_value launch = ct_check_load(at, ct_check_control(check), offsetof(struct ptx2spv_check, launch), CT_W_32);
    ct_value block = ct_sysval(at, CT_SYS_CTAID_Z);

    block = ct_add(at, ct_bits2(at, CT_OP_MUL, block, ct_sysval(at, CT_SYS_NCTAID_Y)), ct_sysval(at, CT_SYS_CTAID_Y));
    block = ct_add(at, ct_bits2(at, CT_OP_MUL, block, ct_sysval(at, CT_SYS_NCTAID_X)), ct_sysval(at, CT_SYS_CTAID_X));
    check->has_shadow[CT_SHADOW_WRITERS] = true;
    check->mark = ct_add_imm(at, block, 1);
    check->launch = ct_and_imm(at, launch, (1u << LAUNCH_BITS) - 1);
    if (check->fn->checks_turns)
        ct_turns_begin(check);
}

/* Whether a store leaves memory as it is. */
static ct_value changes_nothing(struct ct_cursor *at, const struct ct_access *access)
{
    const uint64_t bits = ptx_type_bits(access->insn->type);
    const struct ct_insn *load = ct_check_access_like(at, CT_OP_LOAD, access, access->address);
    ct_value same = CT_NO_VALUE;

    for (uint32_t i = 0; i < load->n_results; i++) {
        const ct_value difference = ct_xor(at, load->results[i], access->insn->operands[1 + i]);
        const ct_value is_same = ct_equals(at, ct_and_imm(at, difference, bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1), 0);

        same = same.i ? ct_and(at, same, is_same) : is_same;
    }
    return same;
}

/* The marks of an access: of its words, where they are, and which bytes it has of each. */
struct marks {
    ct_value loads, stores; /* addresses of the first one */
    ct_value bytes;         /* in the upper four bits of 32 */
    ct_value turn;          /* with fn->checks_turns */
    uint32_t n;
};

static struct marks marks_of(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, ct_value writers)
{
    const ct_value word = ct_and_imm(at, access->address, ~UINT64_C(3)), control = ct_check_control(check);
    const ct_value place = ct_add(at, ct_shl_imm(at, word, MARKS_SHIFT), writers), none = ct_equals(at, writers, 0);
    struct marks marks = {.n = access->bytes > WORD ? access->bytes / WORD : 1};
    ct_value first;

    marks.loads = ct_select(at, none, ct_add_imm(at, control, offsetof(struct ptx2spv_check, written)), place);
    marks.stores = ct_select(at, none, ct_add_imm(at, control, offsetof(struct ptx2spv_check, scratch)), place);
    if (access->bytes >= WORD) {
        marks.bytes = ct_const32(at, (uint32_t)ALL_BYTES << BYTES_SHIFT);
    } else {
        first = ct_and_imm(at, ct_low32(at, access->address), WORD - 1);
        marks.bytes = ct_shl_imm(at, ct_bits2(at, CT_OP_SHL, ct_const32(at, (1u << access->bytes) - 1), first), BYTES_SHIFT);
    }
    return marks;
}

static struct ct_insn *access_mark(struct ct_cursor *at, enum ct_op op, ct_value address, uint32_t offset)
{
    struct ct_insn *insn = ct_emit_insn(at, op, PTX_B64, op == CT_OP_LOAD, op == CT_OP_LOAD ? 1 : 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->align_log2 = 3;
    insn->offset = offset;
    insn->operands[0] = address;
    return insn;
}

/* The address of the marks of the i-th word. Where there are none, all are the same. */
static ct_value mark_at(struct ct_cursor *at, ct_value first, ct_value writers, uint32_t i)
{
    return i ? ct_add(at, first,
                      ct_select(at, ct_equals(at, writers, 0), ct_const64(at, 0), ct_const64(at, (uint64_t)WORD * i << MARKS_SHIFT)))
             : first;
}

/* Loads a mark. Whether it is of this launch, and of one of the bytes. */
static ct_value load_mark(struct ct_check *check, struct ct_cursor *at, const struct marks *marks, ct_value address, uint32_t offset,
                          ct_value *out_lower)
{
    struct ct_insn *load = access_mark(at, CT_OP_LOAD, address, offset);
    ct_value upper, same_launch, overlaps;

    load->results[0] = ct_value_create(at->fn, CT_W_64);
    at->fn->values.v[load->results[0].i].def = load;
    ct_unpack2(at, load->results[0], out_lower, &upper);
    same_launch = ct_equals(at, ct_and_imm(at, ct_xor(at, upper, check->launch), (1u << LAUNCH_BITS) - 1), 0);
    overlaps = ct_not(at, ct_equals(at, ct_and(at, upper, marks->bytes), 0));
    return ct_and(at, same_launch, overlaps);
}

/* *other: what a report says about the other block or thread, if the result is true. */
static ct_value conflict(struct ct_check *check, struct ct_cursor *at, const struct marks *marks, ct_value address, ct_value *other)
{
    const ct_value counts = load_mark(check, at, marks, address, 0, other);
    const ct_value is_other_block = ct_and(at, counts, ct_icmp(at, PTX_B32, PTX_NE, *other, check->mark));
    ct_value turn, conflicts;

    if (!check->turn.i)
        return is_other_block;
    conflicts = load_mark(check, at, marks, address, TURN_MARK, &turn);
    conflicts = ct_and(at, conflicts, ct_turns_conflict(at, marks->turn, turn));
    *other = ct_select(at, is_other_block, *other, ct_or_imm(at, ct_turn_thread(at, turn), PTX2SPV_CHECK_OF_BLOCK));
    return ct_or(at, is_other_block, conflicts);
}

static void report(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, ct_value found, ct_value other)
{
    struct ct_fn *fn = check->fn;
    struct ct_block *race = ct_block_create(fn), *rest = ct_block_split(fn, access->insn->block, access->insn);

    at->before = NULL;
    ct_ssa_branch(at, found, race, rest);
    at->block = race;
    ct_check_report(check, at,
                    &(struct ct_incident){
                        .where = access->insn->where,
                        .access = ct_check_describe(access),
                        .address = access->address,
                        .fault = ct_const32(at, PTX2SPV_CHECK_RACE),
                        .other = other,
                    });
    ct_ssa_jump(fn, at->block, rest);
    at->block = rest;
    at->before = access->insn;
}

static void store_mark(struct ct_cursor *at, ct_value address, uint32_t offset, ct_value lower, ct_value upper)
{
    const ct_value mark = ct_pack2(at, lower, upper);

    access_mark(at, CT_OP_STORE, address, offset)->operands[1] = mark;
}

static void store_marks(struct ct_check *check, struct ct_cursor *at, const struct marks *marks, ct_value address, ct_value upper)
{
    store_mark(at, address, 0, check->mark, upper);
    if (check->turn.i)
        store_mark(at, address, TURN_MARK, marks->turn, upper);
}

void ct_check_blocks(struct ct_check *check, const struct ct_access *access, ct_value writers)
{
    struct ct_insn *insn = access->insn;
    struct ct_cursor at = {.fn = check->fn, .block = insn->block, .before = insn, .where = insn->where};
    struct marks marks;
    ct_value found = CT_NO_VALUE, other = CT_NO_VALUE, upper;

    if (insn->op == CT_OP_ATOM)
        return;
    marks = marks_of(check, &at, access, writers);
    if (check->turn.i)
        marks.turn = ct_turn(check, &at);
    for (uint32_t i = 0; i < marks.n; i++) {
        ct_value block;
        const ct_value is_conflict = conflict(check, &at, &marks, mark_at(&at, marks.loads, writers, i), &block);

        other = found.i ? ct_select(&at, is_conflict, block, other) : block;
        found = found.i ? ct_or(&at, found, is_conflict) : is_conflict;
    }
    if (access->writes)
        found = ct_and(&at, found, ct_not(&at, changes_nothing(&at, access)));
    report(check, &at, access, found, other);
    if (!access->writes)
        return;
    upper = ct_or(&at, check->launch, marks.bytes);
    for (uint32_t i = 0; i < marks.n; i++)
        store_marks(check, &at, &marks, mark_at(&at, marks.stores, writers, i), upper);
}
