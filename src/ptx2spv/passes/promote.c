/* SPDX-License-Identifier: Apache-2.0 */
/* promote: promotes objects in the thread's frame to registers (scalar replacement).
 * In:  register form, calls inlined.   Out: objects marked `promoted` are no longer accessed.
 * How: an object whose address is never taken is accessed at constant offsets only. If these accesses divide it into cells that are either
 *      equal or disjoint, never partly overlapping, each cell becomes a register. This removes the parameters and results of inlined
 *      calls and most small .local variables. */
#include "ptx2spv/ir/ir.h"

#include <string.h>

#define MAX_OBJECT_BYTES 4096u /* larger objects stay in memory: that many live registers would not pay off */

struct object { /* indexed by the root object */
    bool used, blocked;
    uint64_t size_bytes; /* the size of the largest of the objects that share the storage */
    uint32_t *owners;    /* indexed by byte: 1 + the first byte of the cell that contains it; 0: none */
    ct_value *cells;     /* indexed by the first byte of a cell */
};

struct promoter {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct object *objects;
};

/* Reserves a cell for one element; false if it partly overlaps another cell. */
static bool claim_cell(struct object *object, uint32_t first, uint32_t bytes)
{
    const uint32_t owner = object->owners[first];

    for (uint32_t i = 1; i < bytes; i++)
        if (object->owners[first + i] != owner)
            return false;
    if (owner)
        return owner == first + 1 && (first + bytes == object->size_bytes || object->owners[first + bytes] != owner);
    for (uint32_t i = 0; i < bytes; i++)
        object->owners[first + i] = first + 1;
    return true;
}

static bool claim_access(struct promoter *pr, struct object *object, const struct ct_insn *insn)
{
    const uint32_t bytes = ct_element_bytes(insn), n = ct_element_count(insn);

    if (insn->op != CT_OP_LOAD && insn->op != CT_OP_STORE)
        return false;
    if (bytes > 8 || insn->offset < 0 || object->size_bytes > MAX_OBJECT_BYTES)
        return false;
    if ((uint64_t)insn->offset > object->size_bytes || (uint64_t)n * bytes > object->size_bytes - (uint64_t)insn->offset)
        return false;
    if (!object->owners)
        object->owners = CT_ARENA_ARRAY(pr->scratch, uint32_t, object->size_bytes);
    for (uint32_t i = 0; i < n; i++)
        if (!claim_cell(object, (uint32_t)insn->offset + i * bytes, bytes))
            return false;
    return true;
}

/* The width of the register for a cell whose elements have this size. */
static enum ct_width cell_width(uint32_t bytes)
{
    return bytes <= 2 ? CT_W_16 : bytes <= 4 ? CT_W_32 : CT_W_64;
}

static ct_value cell_of(struct promoter *pr, struct object *object, uint32_t first, uint32_t bytes)
{
    if (!object->cells)
        object->cells = CT_ARENA_ARRAY(pr->scratch, ct_value, object->size_bytes);
    if (!object->cells[first].i)
        object->cells[first] = ct_value_create(pr->fn, cell_width(bytes));
    return object->cells[first];
}

/* The source type of the EXT that reads the low bytes of a cell. */
static enum ptx_type extension_type(enum ptx_type type)
{
    static const enum ptx_type types[2][9] = {
        {[1] = PTX_U8, [2] = PTX_U16, [4] = PTX_U32, [8] = PTX_U64},
        {[1] = PTX_S8, [2] = PTX_S16, [4] = PTX_S32, [8] = PTX_S64},
    };

    return types[ptx_type_is_signed(type)][ptx_type_bits(type) / 8];
}

static void assign(struct ct_cursor *at, ct_value to, ct_value from)
{
    struct ct_insn *copy = ct_emit_insn(at, CT_OP_COPY, PTX_NONE, 1, 1);

    copy->results[0] = to;
    copy->operands[0] = from;
}

/* result = the element in the cell, extended to the result's width. */
static void read_cell(struct ct_cursor *at, enum ptx_type type, ct_value result, ct_value cell)
{
    const enum ct_width to = ct_width_of_value(at->fn, result), from = ct_width_of_value(at->fn, cell);

    if (type == PTX_PRED)
        cell = ct_emit_compare(at, CT_OP_ICMP, PTX_U16, PTX_NE, cell, ct_emit_const(at, CT_W_16, 0));
    else if (ptx_type_bits(type) == 8 || to > from)
        cell = ct_emit1(at, CT_OP_EXT, extension_type(type), to, cell);
    else if (to < from)
        cell = ct_emit1(at, CT_OP_TRUNC, PTX_NONE, to, cell);
    assign(at, result, cell);
}

static void write_cell(struct ct_cursor *at, enum ptx_type type, ct_value cell, ct_value value)
{
    const enum ct_width to = ct_width_of_value(at->fn, cell), from = ct_width_of_value(at->fn, value);

    if (type == PTX_PRED)
        value = ct_emit3(at, CT_OP_SELECT, PTX_U16, CT_W_16, value, ct_emit_const(at, CT_W_16, 1), ct_emit_const(at, CT_W_16, 0));
    else if (to < from)
        value = ct_emit1(at, CT_OP_TRUNC, PTX_NONE, to, value);
    else if (to > from)
        value = ct_emit1(at, CT_OP_EXT, from == CT_W_16 ? PTX_U16 : PTX_U32, to, value);
    assign(at, cell, value);
}

static void rewrite_access(struct promoter *pr, struct object *object, struct ct_insn *insn)
{
    const uint32_t bytes = ct_element_bytes(insn), n = ct_element_count(insn);
    struct ct_cursor at = {.fn = pr->fn, .block = insn->block, .before = insn, .where = insn->where};

    for (uint32_t i = 0; i < n; i++) {
        const ct_value cell = cell_of(pr, object, (uint32_t)insn->offset + i * bytes, bytes);

        if (insn->op == CT_OP_LOAD)
            read_cell(&at, insn->type, insn->results[i], cell);
        else
            write_cell(&at, insn->type, cell, insn->operands[1 + i]);
    }
    ct_insn_remove(insn);
}

static struct object *object_of(struct promoter *pr, const struct ct_insn *insn)
{
    return insn->local ? &pr->objects[ct_local_root(pr->fn, insn->local) - 1] : NULL;
}

static void find_accesses(struct promoter *pr)
{
    for (uint32_t b = 0; b < pr->fn->blocks.n; b++)
        for (const struct ct_insn *insn = pr->fn->blocks.v[b]->first; insn; insn = insn->next) {
            struct object *object = object_of(pr, insn);

            if (!object)
                continue;
            object->used = true;
            object->blocked = object->blocked || !claim_access(pr, object, insn);
        }
}

static void rewrite_accesses(struct promoter *pr)
{
    for (uint32_t b = 0; b < pr->fn->blocks.n; b++)
        for (struct ct_insn *insn = pr->fn->blocks.v[b]->first, *next; insn; insn = next) {
            struct object *object = object_of(pr, insn);

            next = insn->next;
            if (object && !object->blocked)
                rewrite_access(pr, object, insn);
        }
}

enum ct_pass_result ct_pass_promote(struct ct_fn *fn)
{
    struct promoter pr = {.fn = fn, .scratch = &fn->compilation->scratch};
    bool changed = false;

    pr.objects = CT_ARENA_ARRAY(pr.scratch, struct object, fn->locals.n);
    for (uint32_t i = 0; i < fn->locals.n; i++)
        pr.objects[i].size_bytes = fn->locals.v[i].size_bytes;
    find_accesses(&pr);
    rewrite_accesses(&pr);
    for (uint32_t i = 0; i < fn->locals.n; i++) {
        fn->locals.v[i].promoted = pr.objects[i].used && !pr.objects[i].blocked;
        changed |= fn->locals.v[i].promoted;
    }
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
