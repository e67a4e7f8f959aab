/* SPDX-License-Identifier: Apache-2.0 */
/* Finds accesses to the same bytes of shared memory by two threads, at least one of which writes, without a barrier between them. With
 * options.check_races there is a test before each weak or volatile load and store of the program.
 *
 * Behind shared memory each of its 32-bit words has a shadow of four words (shared_shadow.c):
 *     the epoch and the mark of the last write, the epoch and the mark of the last read
 * An epoch is the number of barriers that the thread has passed, plus 1. A mark has the number of the thread plus 1 (or SEVERAL: threads of several
 * warps have read in this epoch), a set of bytes, and the number of warp instructions that the thread has executed: threads of one warp are ordered by
 * these as well. A load conflicts with the last write, a store also with the last reads, if the epoch is the thread's own. A store that changes nothing
 * does not conflict with a store.
 *
 * Tests are not atomic, and only the last accesses are known, so not every race is found. Threads that order their accesses by other means than
 * barriers and warp instructions appear to race. So kernels are left alone that synchronize by locks or flags in shared memory (compare-and-swap,
 * exchanges, strong accesses, mbarriers), or by barriers of some threads; those that wait for global memory are not recognized. Also left alone are
 * generic accesses and atomic operations. By volatile accesses warps may wait for each other, so in a kernel that has any only the threads of one warp
 * are examined against each other: programs that were written for GPUs whose lanes run in step leave out __syncwarp there. */
#include "check.h"

#include "ptx2spv/sync/sync.h"

enum { THREAD_BITS = 11, BYTES_SHIFT = THREAD_BITS, BYTES_BITS = 4, WARP_SHIFT = BYTES_SHIFT + BYTES_BITS, WARP_LANES_SHIFT = 5 };
enum { SEVERAL = (1 << THREAD_BITS) - 1, ALL_BYTES = (1 << BYTES_BITS) - 1 };
enum { WRITE_EPOCH, WRITE_MARK, READ_EPOCH, READ_MARK, SHADOW_WORDS, SHADOW_SHIFT = 2 /* 16 bytes for 4 */ };

struct races {
    struct ct_check *check;
    bool within_warps; /* threads of several warps may order their accesses by volatile ones */
    struct {
        ct_value epoch, steps; /* assigned at each barrier and warp instruction */
        ct_value thread;       /* its number plus 1 */
        ct_value shadow;       /* where it begins */
    } registers;
};

/* ---- which kernels and accesses ---- */

static bool is_shared_access(const struct ct_insn *insn)
{
    return (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE) && insn->space == CT_SPACE_SHARED && insn->is_checked &&
           (insn->semantics <= PTX_WEAK || insn->semantics == PTX_VOLATILE);
}

static bool is_volatile(const struct ct_insn *insn)
{
    return is_shared_access(insn) && insn->semantics == PTX_VOLATILE;
}

bool ct_check_runs_in_step(const struct ct_fn *fn)
{
    return fn->module->oldest_sm < CT_FIRST_INDEPENDENT_SM;
}

bool ct_check_synchronizes_otherwise(const struct ct_insn *insn)
{
    if (insn->op == CT_OP_BARRIER)
        return insn->mode == PTX_MODE_ARRIVE || insn->n_operands - (insn->mode == PTX_MODE_RED) > 1;
    if (insn->space != CT_SPACE_SHARED && insn->space != CT_SPACE_GENERIC)
        return false;
    if (insn->op == CT_OP_ATOM)
        return insn->operation == PTX_CAS || insn->operation == PTX_EXCH || ptx_type_bits(insn->type) == 64;
    return (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE) && insn->space == CT_SPACE_SHARED && insn->semantics > PTX_WEAK &&
           insn->semantics != PTX_VOLATILE;
}

bool ct_races_are_possible(const struct ct_fn *fn)
{
    bool found = false;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (ct_check_synchronizes_otherwise(insn) || (is_volatile(insn) && ct_check_runs_in_step(fn)))
                return false;
            found |= is_shared_access(insn);
        }
    return found;
}

/* ---- the shadow ---- */

/* The words of a shadow are loaded and stored as vectors: on CPU devices most of the cost of a check is that of its accesses. */
static void load_shadow(struct ct_cursor *at, ct_value shadow, ct_value words[SHADOW_WORDS])
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, PTX_B32, SHADOW_WORDS, 1);

    insn->space = CT_SPACE_SHARED;
    insn->align_log2 = 4;
    insn->operands[0] = shadow;
    for (unsigned i = 0; i < SHADOW_WORDS; i++) {
        words[i] = insn->results[i] = ct_value_create(at->fn, CT_W_32);
        at->fn->values.v[words[i].i].def = insn;
    }
}

/* Stores an epoch and the mark behind it. */
static void store_shadow(struct ct_cursor *at, ct_value shadow, unsigned first, ct_value epoch, ct_value mark)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_STORE, PTX_B32, 0, 3);

    insn->space = CT_SPACE_SHARED;
    insn->align_log2 = 3;
    insn->operands[0] = shadow;
    insn->offset = first * sizeof(uint32_t);
    insn->operands[1] = epoch;
    insn->operands[2] = mark;
}

static void begin(struct races *races, struct ct_cursor *at)
{
    races->registers.epoch = ct_value_create(at->fn, CT_W_32);
    races->registers.steps = ct_value_create(at->fn, CT_W_32);
    ct_assign(at, races->registers.epoch, ct_const32(at, 1));
    ct_assign(at, races->registers.steps, ct_const32(at, 0));
    races->registers.thread = ct_add_imm(at, ct_sysval(at, CT_SYS_TID_LINEAR), 1);
    races->registers.shadow = ct_add(at, ct_check_shared_size(at), ct_check_varying_zero(races->check));
}

/* ---- conflicts ---- */

static ct_value thread_of(struct ct_cursor *at, ct_value mark)
{
    return ct_and_imm(at, mark, SEVERAL);
}

static ct_value warp_of(struct ct_cursor *at, ct_value thread)
{
    return ct_shr_imm(at, ct_add_imm(at, thread, UINT32_MAX), WARP_LANES_SHIFT);
}

struct marks {
    ct_value mark, bytes; /* of this access */
};

static ct_value is_in_epoch(struct ct_cursor *at, const struct races *races, ct_value epoch)
{
    return ct_icmp(at, PTX_B32, PTX_EQ, epoch, races->registers.epoch);
}

/* Whether an access with an epoch and a mark is not ordered before this one. */
static ct_value conflicts(struct ct_cursor *at, const struct races *races, const struct marks *own, ct_value epoch, ct_value mark)
{
    const ct_value other = thread_of(at, mark);
    const ct_value in_epoch = is_in_epoch(at, races, epoch);
    const ct_value overlaps = ct_not(at, ct_equals(at, ct_and(at, mark, own->bytes), 0));
    const ct_value is_other = ct_icmp(at, PTX_B32, PTX_NE, other, races->registers.thread);
    const ct_value in_warp = ct_icmp(at, PTX_B32, PTX_EQ, warp_of(at, other), warp_of(at, races->registers.thread));
    const ct_value same_steps = ct_equals(at, ct_shr_imm(at, ct_xor(at, mark, own->mark), WARP_SHIFT), 0);
    const ct_value unordered = races->within_warps             ? ct_and(at, in_warp, same_steps)
                               : ct_check_runs_in_step(at->fn) ? ct_not(at, in_warp)
                                                               : ct_or(at, ct_not(at, in_warp), same_steps);

    return ct_and(at, ct_and(at, in_epoch, overlaps), ct_and(at, is_other, unordered));
}

/* Whether a store of one value leaves memory as it is. */
static ct_value changes_nothing(struct ct_check *check, struct ct_cursor *at, const struct ct_insn *store)
{
    const ct_value value = store->operands[1];
    const uint64_t bits = ptx_type_bits(store->type);
    struct ct_insn *load = ct_emit_insn(at, CT_OP_LOAD, store->type, 1, 1);

    load->space = CT_SPACE_SHARED;
    load->operands[0] = ct_add(at, store->operands[0], ct_check_varying_zero(check));
    load->offset = store->offset;
    load->align_log2 = store->align_log2;
    load->results[0] = ct_value_create(at->fn, ct_width_at(at, value));
    return ct_equals(at, ct_and_imm(at, ct_xor(at, load->results[0], value), bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1), 0);
}

/* Remembers a read: of an epoch the bytes that threads of several warps have read, else those of one thread, else the last read. So a mark never says that a
 * thread has read a byte that only another one has. The cursor is left behind the stores. */
static void note_read(struct ct_cursor *at, const struct races *races, const struct marks *own, ct_value shadow, ct_value epoch,
                      ct_value mark)
{
    struct ct_block *note = ct_block_create(at->fn), *next = ct_block_create(at->fn);
    const ct_value other = thread_of(at, mark);
    const ct_value in_epoch = is_in_epoch(at, races, epoch);
    ct_value of_own, in_warp, common, several, bytes, same_steps, joined;

    ct_cursor_branch(at, ct_and(at, in_epoch, ct_equals(at, other, SEVERAL)), next, note);
    ct_cursor_enter(at, note);
    of_own = ct_icmp(at, PTX_B32, PTX_EQ, other, races->registers.thread);
    in_warp = ct_icmp(at, PTX_B32, PTX_EQ, warp_of(at, other), warp_of(at, races->registers.thread));
    common = ct_and(at, mark, own->bytes);
    several = ct_and(at, ct_not(at, in_warp), ct_not(at, ct_equals(at, common, 0)));
    bytes = ct_and_imm(at, mark, (uint32_t)ALL_BYTES << BYTES_SHIFT);
    same_steps = ct_equals(at, ct_shr_imm(at, ct_xor(at, mark, own->mark), WARP_SHIFT), 0);
    joined = ct_select(at, ct_and(at, of_own, same_steps), ct_or(at, bytes, own->mark), own->mark);
    joined = ct_select(at, several, ct_or_imm(at, common, SEVERAL), joined);
    store_shadow(at, shadow, READ_EPOCH, races->registers.epoch, ct_select(at, in_epoch, joined, own->mark));
    ct_cursor_jump(at, next);
    ct_cursor_enter(at, next);
}

/* The access that is examined: that of a point, or one of its group. */
struct access {
    const struct ct_insn *insn;
    const struct ct_load_group *group; /* or NULL */
    ct_value number;                   /* in the group */
};

static void report(struct races *races, struct ct_cursor *at, const struct access *access, ct_value address, ct_value mark)
{
    const struct ct_insn *insn = access->insn;
    const bool writes = insn->op == CT_OP_STORE;

    ct_check_report(races->check, at,
                    &(struct ct_incident){
                        .where = insn->where,
                        .access = PTX2SPV_CHECK_ACCESS(insn->where.source, ct_check_access_bytes(insn),
                                                       writes ? PTX2SPV_CHECK_STORE : PTX2SPV_CHECK_LOAD, PTX2SPV_CHECK_SHARED),
                        .address = address,
                        .fault = ct_const32(at, PTX2SPV_CHECK_RACE),
                        .other = thread_of(at, mark),
                        .group = access->group,
                        .number = access->number,
                    });
}

/* Reports this access if it conflicts with the last ones. Most of those are of earlier epochs, so their epochs are compared first. The cursor is left
 * behind the test. */
static void find_conflict(struct races *races, struct ct_cursor *at, const struct access *access, ct_value address, const struct marks *own,
                          const ct_value words[SHADOW_WORDS])
{
    const struct ct_insn *insn = access->insn;
    const bool writes = insn->op == CT_OP_STORE;
    struct ct_block *test = ct_block_create(at->fn), *race = ct_block_create(at->fn), *next = ct_block_create(at->fn);
    ct_value in_epoch = is_in_epoch(at, races, words[WRITE_EPOCH]), after_write, found;

    if (writes)
        in_epoch = ct_or(at, in_epoch, is_in_epoch(at, races, words[READ_EPOCH]));
    ct_cursor_branch(at, in_epoch, test, next);
    ct_cursor_enter(at, test);
    found = after_write = conflicts(at, races, own, words[WRITE_EPOCH], words[WRITE_MARK]);
    if (writes) {
        if (insn->n_operands == 2)
            after_write = ct_and(at, after_write, ct_not(at, changes_nothing(races->check, at, insn)));
        found = ct_or(at, after_write, conflicts(at, races, own, words[READ_EPOCH], words[READ_MARK]));
    }
    ct_cursor_branch(at, found, race, next);
    ct_cursor_enter(at, race);
    report(races, at, access, address, ct_select(at, after_write, words[WRITE_MARK], words[READ_MARK]));
    ct_cursor_jump(at, next);
    ct_cursor_enter(at, next);
}

/* Examines the access to a word, and continues behind it. */
static void examine_word(struct races *races, struct ct_cursor *at, const struct access *access, ct_value address, uint32_t bytes)
{
    const ct_value word = ct_and_imm(at, address, ~UINT32_C(3));
    const ct_value shadow = ct_add(at, races->registers.shadow, ct_shl_imm(at, word, SHADOW_SHIFT));
    const ct_value set =
        bytes >= 4 ? ct_const32(at, ALL_BYTES) : ct_bits2(at, CT_OP_SHL, ct_const32(at, (1u << bytes) - 1), ct_and_imm(at, address, 3));
    const ct_value in_place = ct_shl_imm(at, set, BYTES_SHIFT);
    const ct_value own_mark = ct_or(at, ct_or(at, races->registers.thread, in_place), ct_shl_imm(at, races->registers.steps, WARP_SHIFT));
    const struct marks own = {own_mark, in_place};
    ct_value words[SHADOW_WORDS];

    load_shadow(at, shadow, words);
    if (access->insn->op == CT_OP_STORE)
        store_shadow(at, shadow, WRITE_EPOCH, races->registers.epoch, own_mark);
    else
        note_read(at, races, &own, shadow, words[READ_EPOCH], words[READ_MARK]);
    find_conflict(races, at, access, address, &own, words);
}

/* An access outside of the program's memory, or a misaligned one, is left to `check`. */
static void examine_access(struct races *races, struct ct_cursor *at, const struct access *access, ct_value offset)
{
    const uint32_t bytes = ct_check_access_bytes(access->insn);
    const ct_value address = ct_add(at, access->insn->operands[0], offset);
    struct ct_block *allowed = ct_block_create(at->fn), *next = ct_block_create(at->fn);

    ct_cursor_branch(at, ct_check_shared_allows(at, address, bytes, bytes), allowed, next);
    ct_cursor_enter(at, allowed);
    for (uint32_t i = 0; i < bytes; i += 4)
        examine_word(races, at, access, i ? ct_add_imm(at, address, i) : address, bytes);
    ct_cursor_jump(at, next);
    ct_cursor_enter(at, next);
}

/* insn: the first load of the group in the program, whose address is there already. */
static void examine_group(struct races *races, struct ct_cursor *at, const struct ct_insn *insn, const struct ct_load_group *group)
{
    struct ct_block *body = ct_block_create(at->fn), *next = ct_block_create(at->fn);
    const ct_value number = ct_value_create(at->fn, CT_W_32);
    const struct access access = {.insn = insn, .group = group, .number = number};

    ct_assign(at, number, ct_const32(at, 0));
    ct_cursor_jump(at, body);
    ct_cursor_enter(at, body);
    examine_access(races, at, &access, ct_load_group_offset(at, group, number));
    ct_assign(at, number, ct_add_imm(at, number, 1));
    ct_cursor_branch(at, ct_icmp_imm(at, PTX_U32, PTX_LT, number, group->n), body, next);
    ct_cursor_enter(at, next);
}

static void examine(struct races *races, const struct ct_check_point *point)
{
    struct ct_insn *insn = point->insn;
    struct ct_fn *fn = races->check->fn;
    struct ct_block *block = insn->block, *rest = ct_block_split(fn, block, insn);
    struct ct_cursor at = {.fn = fn, .block = block, .where = insn->where};

    if (point->group)
        examine_group(races, &at, insn, point->group);
    else
        examine_access(races, &at, &(struct access){.insn = insn}, ct_const32(&at, (uint32_t)insn->offset));
    ct_cursor_jump(&at, rest);
}

/* Behind a barrier or a warp instruction, whose block has a successor at least. */
static void count(struct races *races, struct ct_insn *insn)
{
    const ct_value number = insn->op == CT_OP_BARRIER ? races->registers.epoch : races->registers.steps;
    struct ct_cursor at = {.fn = races->check->fn, .block = insn->block, .before = insn->next, .where = insn->where};

    ct_assign(&at, number, ct_add_imm(&at, number, 1));
}

bool ct_check_orders_threads(const struct ct_insn *insn)
{
    return ct_is_sync(insn->op) && insn->op != CT_OP_ACTIVEMASK;
}

void ct_races_examine(struct ct_check *check, struct ct_cursor *entry)
{
    struct ct_fn *fn = check->fn;
    struct races races = {.check = check};
    CT_VEC(struct ct_check_point) points = {0};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_shared_access(insn) || ct_check_orders_threads(insn)) {
                *CT_PUSH(&fn->compilation->scratch, &points) = (struct ct_check_point){insn, NULL};
                races.within_warps |= is_volatile(insn);
            }
    ct_load_groups_find(fn, points.v, points.n);
    begin(&races, entry);
    for (uint32_t i = points.n; i-- > 0;) {
        const struct ct_check_point *point = &points.v[i];

        if (!point->insn)
            continue;
        if (ct_check_orders_threads(point->insn))
            count(&races, point->insn);
        else
            examine(&races, point);
    }
}
