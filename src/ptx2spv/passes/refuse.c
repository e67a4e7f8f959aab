/* SPDX-License-Identifier: Apache-2.0 */
/* refuse: what becomes of instructions that are not supported (ct_build_unsupported has put a fault in the place of each).
 * In:  register form, no CALL.   Out: the same.
 *
 * Libraries have kernels with branches for other GPUs, which are not taken here. So a kernel that can end without such an instruction is
 * compiled, with a warning for each; a thread that gets to one stops with PTX2SPV_FAULT_UNSUPPORTED, and the launch fails. A kernel that cannot
 * end without one is refused. */
#include "ptx2spv/ir/ir.h"
#include "ptx2spv/module/compilation.h"

#include <string.h>

static bool is_reached(const struct ct_refusal *refusal)
{
    return refusal->end->block->id != UINT32_MAX;
}

/* Nothing follows such an instruction in the graph, so what can be reached can be reached without one. */
static bool can_end(struct ct_fn *fn)
{
    bool *stops = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->blocks.n);

    for (uint32_t i = 0; i < fn->refusals.n; i++)
        if (is_reached(&fn->refusals.v[i]))
            stops[fn->refusals.v[i].end->block->id] = true;
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        const enum ct_op last = (enum ct_op)fn->blocks.v[b]->last->op;

        if (!stops[b] && (last == CT_OP_RET || last == CT_OP_EXIT))
            return true;
    }
    return false;
}

/* Of an instruction in a function that is inlined several times, one is reported. */
static bool is_repeated(const struct ct_fn *fn, uint32_t n)
{
    const struct ct_location where = fn->refusals.v[n].end->where;

    for (uint32_t i = 0; i < n; i++)
        if (!memcmp(&fn->refusals.v[i].end->where, &where, sizeof where) && !strcmp(fn->refusals.v[i].text, fn->refusals.v[n].text))
            return true;
    return false;
}

enum ct_pass_result ct_pass_refuse(struct ct_fn *fn)
{
    bool ends;

    if (!fn->refusals.n)
        return CT_PASS_UNCHANGED;
    ct_fn_remove_unreachable(fn);
    ends = can_end(fn);
    for (uint32_t i = 0; i < fn->refusals.n; i++) {
        const struct ct_refusal *refusal = &fn->refusals.v[i];

        if (!is_reached(refusal) || is_repeated(fn, i))
            continue;
        if (ends)
            ct_note(fn->compilation, refusal->end->where, PTX2SPV_WARNING,
                    "%s: a thread of kernel `%s' that gets there stops, and the launch fails", refusal->text, fn->name);
        else
            ct_error(fn->compilation, refusal->end->where, PTX2SPV_UNSUPPORTED, "%s", refusal->text);
    }
    return ends || !fn->compilation->n_errors ? CT_PASS_CHANGED : CT_PASS_FAILED;
}
