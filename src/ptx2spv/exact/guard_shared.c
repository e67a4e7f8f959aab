/* SPDX-License-Identifier: Apache-2.0 */
/* guard: numbers in shared memory are checked once, when they are stored, and not by every multiply-add that reads them. A word after the
 * kernel's own shared memory (CT_SYS_EXCHANGE_BASE) says whether a number was ever stored that is not a factor (guard_flags.c): as long as
 * it is 0, all loaded numbers are factors, and one load of that word suffices for a whole segment. It is set before any thread may see the
 * number, and it is never cleared. The last one of several consecutive stores checks the operands of all of them, so that no check
 * separates the loads from global memory that fetch the numbers.
 *
 * In SSA. Only for kernels that access shared memory by stores of whole 32-bit words, or of two of them as a 64-bit integer: clang
 * copies structures like that. Words that were never stored are undefined. */
#include "guard.h"
#include "ptx2spv/ir/builder.h"
#include "ptx2spv/sync/sync.h"

static ct_value flag_address(struct ct_cursor *at)
{
    return ct_sysval(at, CT_SYS_EXCHANGE_BASE);
}

ct_value ct_guard_shared_flag(struct ct_cursor *at)
{
    return ct_icmp_imm(at, PTX_U32, PTX_NE, ct_exchange_load(at, flag_address(at)), 0);
}

bool ct_is_shared_word(const struct ct_fn *fn, const struct ct_insn *insn)
{
    if (fn->clusters) /* another block may have stored it */
        return false;
    return insn->op == CT_OP_LOAD && insn->space == CT_SPACE_SHARED && ct_width_of_value(fn, insn->results[0]) == CT_W_32;
}

bool ct_guard_leaves_shared_alone(const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_LOAD:
        return insn->semantics <= PTX_WEAK;
    case CT_OP_STORE:
        return insn->semantics <= PTX_WEAK && insn->space != CT_SPACE_SHARED && insn->space != CT_SPACE_GENERIC;
    default:
        return ct_insn_is_pure(insn);
    }
}

/* ---- whether it is possible and useful ---- */

/* An f64 that is stored consists of no f32. */
static bool stores_words(const struct ct_fn *fn, const struct ct_insn *store)
{
    const unsigned bits = ptx_type_bits(store->type);

    for (uint32_t i = 1; i < store->n_operands; i++)
        if (ct_width_bits(ct_width_of_value(fn, store->operands[i])) != bits)
            return false;
    return bits == 32 || (bits == 64 && !ptx_type_is_float(store->type));
}

static bool stores_untracked(const struct ct_fn *fn, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_ATOM)
        return insn->space == CT_SPACE_SHARED || insn->space == CT_SPACE_GENERIC;
    if (insn->op != CT_OP_STORE)
        return false;
    return insn->space == CT_SPACE_GENERIC || (insn->space == CT_SPACE_SHARED && !stores_words(fn, insn));
}

/* Whether a factor of the multiply-add is a word of shared memory, or the sum of one and something else. */
static bool reads_shared_words(const struct ct_fn *fn, const struct ct_insn *ffma)
{
    for (int i = 0; i < 2; i++) {
        const struct ct_insn *def = fn->values.v[ffma->operands[i].i].def;

        if (ct_is_shared_word(fn, def))
            return true;
        for (uint32_t k = 0; k < 2 && (def->op == CT_OP_FADD || def->op == CT_OP_FSUB); k++)
            if (ct_is_shared_word(fn, fn->values.v[def->operands[k].i].def))
                return true;
    }
    return false;
}

bool ct_guard_can_track_shared(struct ct_fn *fn)
{
    bool read = false, written = false;

    if (fn->exchange_words || fn->exchange_thread_words || fn->blocks.v[0]->preds.n)
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (stores_untracked(fn, insn))
                return false;
            read |= ct_is_guarded(insn) && reads_shared_words(fn, insn);
            written |= insn->op == CT_OP_STORE && insn->space == CT_SPACE_SHARED;
        }
    return read && written;
}

/* ---- the transformation ---- */

static void clear_flag(struct ct_fn *fn)
{
    struct ct_block *entry = fn->blocks.v[0];
    struct ct_cursor at = {.fn = fn, .block = entry, .before = entry->first, .where = entry->first->where};

    ct_exchange_store(&at, flag_address(&at), ct_const32(&at, 0));
    ct_exchange_barrier(&at);
}

/* Stores whose numbers are not visible to any thread before the last one of the stores is executed. */
struct group {
    ct_value_list stored;  /* words and pairs of words */
    ct_value_list numbers; /* words, once the group is checked */
    struct ct_insn *last;
};

static void split_into_words(struct ct_cursor *at, struct group *group)
{
    struct ct_arena *scratch = &at->fn->compilation->scratch;

    for (uint32_t i = 0; i < group->stored.n; i++) {
        ct_value low = group->stored.v[i], high = CT_NO_VALUE;

        if (ct_width_of_value(at->fn, low) == CT_W_64)
            ct_unpack2(at, low, &low, &high);
        *CT_PUSH(scratch, &group->numbers) = low;
        if (high.i)
            *CT_PUSH(scratch, &group->numbers) = high;
    }
}

/* Whether one of the numbers is not a factor (zeros are). */
static ct_value one_is_no_factor(struct ct_cursor *at, const struct group *group)
{
    ct_value found = CT_NO_VALUE;

    for (uint32_t i = 0; i < group->numbers.n; i++)
        found = ct_guard_or(at, found, ct_guard_is_no_factor(at, group->numbers.v[i]));
    return found;
}

/* The fine check, from `at` on. */
static void emit_fine_check(struct ct_cursor at, const struct group *group, struct ct_block *rest)
{
    struct ct_block *setting = ct_block_create(at.fn);
    struct ct_cursor in_setting = {.fn = at.fn, .block = setting, .where = at.where};

    ct_ssa_branch(&at, one_is_no_factor(&at, group), setting, rest);
    ct_exchange_store(&in_setting, flag_address(&in_setting), ct_const32(&in_setting, 1));
    ct_ssa_jump(at.fn, setting, rest);
}

static void check_group(struct ct_fn *fn, struct group *group)
{
    struct ct_insn *last = group->last;
    struct ct_cursor at = {.fn = fn, .block = last->block, .where = last->where};
    struct ct_block *rest = ct_block_split(fn, last->block, last), *checking = ct_block_create(fn);

    split_into_words(&at, group);
    ct_ssa_branch(&at, ct_guard_one_is_no_factor(&at, &group->numbers), checking, rest);
    emit_fine_check((struct ct_cursor){.fn = fn, .block = checking, .where = at.where}, group, rest);
}

/* Whether earlier stores may become visible at this instruction: to this thread by a load, to others by anything that orders memory. */
static bool ends_group(const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_LOAD:
        return insn->semantics > PTX_WEAK ||
               (insn->space != CT_SPACE_GLOBAL && insn->space != CT_SPACE_LOCAL && insn->space != CT_SPACE_PARAM);
    case CT_OP_STORE:
        return insn->semantics > PTX_WEAK;
    default:
        return insn == insn->block->last || !ct_insn_is_pure(insn);
    }
}

typedef CT_VEC(struct group) group_list;

static void find_groups(struct ct_fn *fn, struct ct_block *block, group_list *groups)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct group group = {.last = NULL};

    for (struct ct_insn *insn = block->first; insn; insn = insn->next) {
        if (insn->op == CT_OP_STORE && insn->space == CT_SPACE_SHARED) {
            for (uint32_t i = 1; i < insn->n_operands; i++)
                *CT_PUSH(scratch, &group.stored) = insn->operands[i];
            group.last = insn;
        }
        if (group.last && ends_group(insn)) {
            *CT_PUSH(scratch, groups) = group;
            group = (struct group){.last = NULL};
        }
    }
}

void ct_guard_track_shared(struct ct_fn *fn)
{
    group_list groups = {0};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        find_groups(fn, fn->blocks.v[b], &groups);
    for (uint32_t i = 0; i < groups.n; i++)
        check_group(fn, &groups.v[i]);
    fn->exchange_words = 1;
    clear_flag(fn);
    ct_fn_compute_defs(fn);
}
