/* SPDX-License-Identifier: Apache-2.0 */
/* layout: assigns offsets to objects in memory.
 * In:  calls inlined; LOCALADDR, SHAREDADDR and accesses to a named local object.   Out: constants in their place; the sizes of
 *      the thread's frame and of the block's shared segment.
 * Only objects that the kernel refers to take space. Dynamic arrays (extern .shared name[]) all start at the same offset, after the
 * static part (CUDA C++ Programming Guide, "__shared__"). */
#include "ptx2spv/ir/ir.h"

#include <inttypes.h>

#define MAX_SEGMENT_BYTES (16u << 20)
#define DYNAMIC_ALIGN 16u

/* The shared objects in a hash table with open addressing, keyed by the variable's address; it is never enumerated, so its order does
 * not matter. */
struct shared_table {
    uint32_t *slots; /* index in fn->shared + 1 */
    uint32_t mask;
};

static uint32_t *find_slot(const struct ct_fn *fn, const struct shared_table *table, const struct ptx_variable *variable)
{
    uint32_t i = (uint32_t)((uintptr_t)variable >> 4) * 2654435761u & table->mask;

    while (table->slots[i] && fn->shared.v[table->slots[i] - 1].variable != variable)
        i = (i + 1) & table->mask;
    return &table->slots[i];
}

static bool is_dynamic(const struct ptx_variable *variable)
{
    return variable->linkage == PTX_LINK_EXTERN && (variable->incomplete || variable->size_bytes == 0);
}

/* ---- the shared segment ---- */

static struct shared_table collect_shared(struct ct_fn *fn)
{
    struct shared_table table = {0};
    uint32_t n = 1;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            n += insn->op == CT_OP_SHAREDADDR;
    while (table.mask < 2 * n)
        table.mask = table.mask * 2 + 1;
    table.slots = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, (size_t)table.mask + 1);

    fn->shared.n = 0;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            uint32_t *slot;

            if (insn->op != CT_OP_SHAREDADDR || *(slot = find_slot(fn, &table, insn->variable)))
                continue;
            *CT_PUSH(&fn->compilation->arena, &fn->shared) = (struct ct_shared_object){.variable = insn->variable};
            *slot = fn->shared.n;
        }
    return table;
}

static bool place_shared(struct ct_fn *fn)
{
    uint64_t bytes = 0, dynamic_align = DYNAMIC_ALIGN;

    for (uint32_t i = 0; i < fn->shared.n; i++) {
        struct ct_shared_object *object = &fn->shared.v[i];
        const struct ptx_variable *variable = object->variable;

        if (is_dynamic(variable)) {
            fn->uses_dynamic_shared = true;
            dynamic_align = variable->align > dynamic_align ? variable->align : dynamic_align;
            continue;
        }
        if (variable->linkage == PTX_LINK_EXTERN)
            return ct_error(fn->compilation, variable->where, PTX2SPV_INVALID_PTX, "the extern variable %s is defined nowhere",
                            variable->name);
        bytes = ct_round_up(bytes, variable->align);
        object->offset = (uint32_t)bytes;
        if (variable->size_bytes > MAX_SEGMENT_BYTES || (bytes += variable->size_bytes) > MAX_SEGMENT_BYTES)
            return ct_error(fn->compilation, variable->where, PTX2SPV_TARGET_LACKS, "%s: more than %u bytes of shared memory", fn->name,
                            MAX_SEGMENT_BYTES);
    }
    fn->shared_bytes = (uint32_t)bytes;
    fn->dynamic_shared_offset = (uint32_t)ct_round_up(bytes, dynamic_align);
    for (uint32_t i = 0; i < fn->shared.n; i++)
        if (is_dynamic(fn->shared.v[i].variable))
            fn->shared.v[i].offset = fn->dynamic_shared_offset;
    return true;
}

/* ---- the frame ---- */

static bool place_locals(struct ct_fn *fn)
{
    const bool *used = ct_fn_find_used_locals(fn);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < fn->locals.n; i++) {
        struct ct_local *local = &fn->locals.v[i];

        if (!used[i])
            continue;
        bytes = ct_round_up(bytes, local->align);
        local->offset = (uint32_t)bytes;
        if (local->size_bytes > CT_FRAME_BYTES_MAX || (bytes += local->size_bytes) > CT_FRAME_BYTES_MAX)
            return ct_error(fn->compilation, local->variable ? local->variable->where : fn->source->where, PTX2SPV_TARGET_LACKS,
                            "%s: more than %u bytes of local memory a thread", fn->name, CT_FRAME_BYTES_MAX);
        if (local->align > fn->local_align)
            fn->local_align = local->align;
    }
    fn->local_bytes = fn->local_program_bytes = (uint32_t)bytes;
    return true;
}

/* ---- constants ---- */

static void replace_by_const(struct ct_insn *insn, uint64_t bits)
{
    insn->op = CT_OP_CONST;
    insn->type = PTX_B32;
    insn->imm = bits;
    insn->local = 0;
    insn->variable = NULL;
}

static void rewrite(struct ct_fn *fn, struct ct_insn *insn, const struct shared_table *table)
{
    if (insn->op == CT_OP_SHAREDADDR) {
        replace_by_const(insn, fn->shared.v[*find_slot(fn, table, insn->variable) - 1].offset);
    } else if (insn->op == CT_OP_LOCALADDR) {
        replace_by_const(insn, fn->locals.v[ct_local_root(fn, insn->local) - 1].offset);
    } else if (insn->local) {
        struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

        insn->operands[0] = ct_emit_const(&at, CT_W_32, fn->locals.v[ct_local_root(fn, insn->local) - 1].offset);
        insn->local = 0;
    }
}

enum ct_pass_result ct_pass_layout(struct ct_fn *fn)
{
    const struct shared_table table = collect_shared(fn);

    if (!place_shared(fn) || !place_locals(fn))
        return CT_PASS_FAILED;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            rewrite(fn, insn, &table);
    return CT_PASS_CHANGED;
}
