/* SPDX-License-Identifier: Apache-2.0 */
/* Registers in the thread's frame: the pass ssa keeps those there whose phis would take too much memory.
 *
 *     x = add(x, y)      =>      t = load [frame + place of x]; u = add(t, y); store [frame + place of x], u
 */
#include "demote.h"

#include "ptx2spv/ir/builder.h"

enum { PLACE_BYTES = 8 };

struct demotion {
    struct ct_fn *fn;
    uint32_t *places; /* indexed by value: 1 + the offset in the frame; 0: it stays a register */
    uint32_t n_values;
};

static ct_value load_register(struct ct_cursor *at, uint32_t place, enum ct_width width)
{
    return ct_load_register(at, ct_const32(at, place - 1), 0, width, 0);
}

static void store_register(struct ct_cursor *at, uint32_t place, ct_value value)
{
    ct_store_register(at, ct_const32(at, place - 1), 0, value, 0);
}

static uint32_t place_of(const struct demotion *d, ct_value value)
{
    return value.i < d->n_values ? d->places[value.i] : 0;
}

static void rewrite_insn(struct demotion *d, struct ct_insn *insn)
{
    struct ct_cursor before = {.fn = d->fn, .block = insn->block, .before = insn, .where = insn->where};
    struct ct_cursor after = {.fn = d->fn, .block = insn->block, .before = insn->next, .where = insn->where};

    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (place_of(d, insn->operands[i]))
            insn->operands[i] = load_register(&before, place_of(d, insn->operands[i]), ct_width_at(&before, insn->operands[i]));
    for (uint32_t r = 0; r < insn->n_results; r++) {
        const uint32_t place = place_of(d, insn->results[r]);

        if (!place)
            continue;
        insn->results[r] = ct_value_create(d->fn, ct_width_at(&after, insn->results[r]));
        store_register(&after, place, insn->results[r]);
    }
}

/* False if the frame would become too large. */
static bool find_places(struct demotion *d, const bool *is_demoted)
{
    uint64_t bytes = ((uint64_t)d->fn->local_bytes + PLACE_BYTES - 1) / PLACE_BYTES * PLACE_BYTES;

    for (uint32_t v = 1; v < d->n_values; v++) {
        if (!is_demoted[v])
            continue;
        d->places[v] = (uint32_t)bytes + 1;
        if ((bytes += PLACE_BYTES) > CT_FRAME_BYTES_MAX)
            return ct_error(d->fn->compilation, d->fn->source->where, PTX2SPV_TARGET_LACKS,
                            "%s: its registers need more than %u bytes of local memory a thread", d->fn->name, CT_FRAME_BYTES_MAX);
    }
    d->fn->local_bytes = (uint32_t)bytes;
    d->fn->local_align = d->fn->local_align > PLACE_BYTES ? d->fn->local_align : PLACE_BYTES;
    return true;
}

/* A register that is read before it is written is zero, as in SSA form, so that every run gives the same result. */
static void clear_places(struct demotion *d)
{
    struct ct_block *entry = d->fn->blocks.v[0];
    struct ct_cursor at = {.fn = d->fn, .block = entry, .before = entry->first, .where = entry->first->where};

    for (uint32_t v = 1; v < d->n_values; v++)
        if (d->places[v])
            store_register(&at, d->places[v], ct_emit_const(&at, ct_width_of_value(d->fn, (ct_value){v}), 0));
}

bool ct_demote(struct ct_fn *fn, const bool *is_demoted)
{
    struct demotion d = {.fn = fn, .n_values = fn->values.n};

    d.places = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, d.n_values);
    if (!find_places(&d, is_demoted))
        return false;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first, *next; insn; insn = next) {
            next = insn->next;
            rewrite_insn(&d, insn);
        }
    clear_places(&d);
    return true;
}
