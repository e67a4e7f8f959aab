/* SPDX-License-Identifier: Apache-2.0 */
/* guard: what goes into shared memory is looked at when it is stored, once, and not by every multiply-add that reads it.
 * A word behind the kernel's own shared memory (CT_SYS_EXCHANGE_BASE) says whether a number was ever stored that is no factor
 * (guard_flags.c): as long as it is 0 all that is loaded are factors, and one load of that word answers for a whole segment. It is set
 * before the number is stored, so whoever may see the number sees it, and it stays.
 *
 * In SSA; only where all that a kernel puts into shared memory are whole 32-bit words, by stores. What nobody stored is undefined. */
#include "guard.h"
#include "sync.h"

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
    return insn->op == CT_OP_LOAD && insn->space == CT_SPACE_SHARED && ct_width_of_value(fn, insn->results[0]) == CT_W_32;
}

/* ---- whether it can be done, and is of use ---- */

static bool stores_words(const struct ct_fn *fn, const struct ct_insn *store)
{
    for (uint32_t i = 1; i < store->n_operands; i++)
        if (ct_width_of_value(fn, store->operands[i]) != CT_W_32)
            return false;
    return ptx_type_bits(store->type) == 32;
}

static bool hides_numbers(const struct ct_fn *fn, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_ATOM)
        return insn->space == CT_SPACE_SHARED || insn->space == CT_SPACE_GENERIC;
    if (insn->op != CT_OP_STORE)
        return false;
    return insn->space == CT_SPACE_GENERIC || (insn->space == CT_SPACE_SHARED && !stores_words(fn, insn));
}

/* A factor of it is a word of shared memory, or the sum of one and something. */
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

typedef CT_VEC(struct ct_insn *) insn_list;

static bool is_worthwhile(const struct ct_fn *fn, insn_list *stores)
{
    bool read = false;

    if (fn->exchange_words || fn->exchange_thread_words || fn->blocks.v[0]->preds.n)
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (hides_numbers(fn, insn))
                return false;
            read |= ct_is_guarded(insn) && reads_shared_words(fn, insn);
            if (insn->op == CT_OP_STORE && insn->space == CT_SPACE_SHARED)
                *CT_PUSH(&fn->compilation->scratch, stores) = insn;
        }
    return read && stores->n;
}

/* ---- doing it ---- */

static void clear_flag(struct ct_fn *fn)
{
    struct ct_block *entry = fn->blocks.v[0];
    struct ct_cursor at = {.fn = fn, .block = entry, .before = entry->first, .where = entry->first->where};

    ct_exchange_store(&at, flag_address(&at), ct_const32(&at, 0));
    ct_exchange_barrier(&at);
}

static void look_at_store(struct ct_fn *fn, struct ct_insn *store)
{
    struct ct_block *block = store->block, *marking = ct_block_create(fn), *rest = ct_block_split(fn, block, store);
    struct ct_cursor at = {.fn = fn, .block = block, .where = store->where}, in_marking = {.fn = fn, .block = marking, .where = store->where};
    ct_value small = CT_NO_VALUE;

    for (uint32_t i = 1; i < store->n_operands; i++) {
        const ct_value is_small = ct_guard_is_no_factor(&at, store->operands[i]);

        small = i == 1 ? is_small : ct_or(&at, small, is_small);
    }
    ct_guard_branch(&at, small, marking, rest);
    ct_exchange_store(&in_marking, flag_address(&in_marking), ct_const32(&in_marking, 1));
    ct_guard_jump(fn, marking, rest);
}

bool ct_guard_watch_shared(struct ct_fn *fn)
{
    insn_list stores = {0};

    if (!is_worthwhile(fn, &stores))
        return false;
    for (uint32_t i = 0; i < stores.n; i++)
        look_at_store(fn, stores.v[i]);
    clear_flag(fn);
    fn->exchange_words = 1;
    ct_fn_compute_defs(fn);
    return true;
}
