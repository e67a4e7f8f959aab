/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of local objects: parameters and results of calls in a cycle.
 *
 * The pass promote holds an object in registers if all accesses divide it in the same way. So an object is copied in the pieces in which either
 * of the two is accessed: a struct of two words is two words, whatever its alignment. If its address is taken, or the pieces overlap, it stays in
 * memory, and is copied in the largest pieces that its alignment allows. */
#include "copy_objects.h"

#include "ptx2spv/ir/builder.h"

#include <stdlib.h>

enum { PIECES_MAX = 64 }; /* objects that are accessed in more pieces are copied as a whole */

struct piece {
    uint32_t offset, bytes;
};

struct pieces {
    bool wanted, as_whole;
    uint32_t n;
    struct piece *v;
};

static void add_piece(struct pieces *pieces, struct piece piece)
{
    for (uint32_t i = 0; i < pieces->n; i++)
        if (pieces->v[i].offset == piece.offset && pieces->v[i].bytes == piece.bytes)
            return;
    if (pieces->n == PIECES_MAX)
        pieces->as_whole = true;
    else
        pieces->v[pieces->n++] = piece;
}

static void add_access(struct pieces *pieces, const struct ct_insn *insn)
{
    const uint32_t bytes = ct_element_bytes(insn), n = ct_element_count(insn);

    if ((insn->op != CT_OP_LOAD && insn->op != CT_OP_STORE) || bytes > 8 || insn->offset < 0 || insn->offset > UINT32_MAX / 2) {
        pieces->as_whole = true;
        return;
    }
    for (uint32_t i = 0; i < n && !pieces->as_whole; i++)
        add_piece(pieces, (struct piece){(uint32_t)insn->offset + i * bytes, bytes});
}

/* Indexed by root object. */
static struct pieces *find_pieces(struct ct_fn *fn, const struct object_copy *copies, uint32_t n)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct pieces *all = CT_ARENA_ARRAY(scratch, struct pieces, fn->locals.n);

    for (uint32_t i = 0; i < n; i++)
        all[ct_local_root(fn, copies[i].from) - 1].wanted = all[ct_local_root(fn, copies[i].to) - 1].wanted = true;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            struct pieces *pieces = insn->local ? &all[ct_local_root(fn, insn->local) - 1] : NULL;

            if (!pieces || !pieces->wanted)
                continue;
            if (!pieces->v)
                pieces->v = CT_ARENA_ARRAY(scratch, struct piece, PIECES_MAX);
            add_access(pieces, insn);
        }
    return all;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The pieces of both objects in order; false if some overlap, or one is not within the objects. */
static bool join_pieces(const struct pieces *a, const struct pieces *b, uint64_t size_bytes, struct pieces *out)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < a->n; i++)
        add_piece(out, a->v[i]);
    for (uint32_t i = 0; i < b->n; i++)
        add_piece(out, b->v[i]);
    if (a->as_whole || b->as_whole || out->as_whole)
        return false;
    qsort(out->v, out->n, sizeof *out->v, compare_pieces);
    for (uint32_t i = 0; i < out->n; i++) {
        if (out->v[i].offset < end)
            return false;
        end = (uint64_t)out->v[i].offset + out->v[i].bytes;
    }
    return end <= size_bytes;
}

static void copy_piece(struct ct_fn *fn, const struct object_copy *copy, struct piece piece)
{
    static const enum ptx_type types[] = {[1] = PTX_U8, [2] = PTX_U16, [4] = PTX_U32, [8] = PTX_U64};
    const enum ptx_type type = types[piece.bytes];
    struct ct_cursor at = {.fn = fn, .block = copy->before->block, .before = copy->before, .where = copy->before->where};
    const ct_value value = ct_value_create(fn, ct_width_of(type));

    ct_emit_object_access(&at, CT_OP_LOAD, type, copy->from, piece.offset)->results[0] = value;
    ct_emit_object_access(&at, CT_OP_STORE, type, copy->to, piece.offset)->operands[1] = value;
}

static void copy_object(struct ct_fn *fn, const struct object_copy *copy, const struct pieces *all)
{
    const struct ct_local *from = &fn->locals.v[copy->from - 1], *to = &fn->locals.v[copy->to - 1];
    const uint64_t size_bytes = from->size_bytes < to->size_bytes ? from->size_bytes : to->size_bytes;
    struct pieces joined = {.v = CT_ARENA_ARRAY(&fn->compilation->scratch, struct piece, PIECES_MAX)};

    if (join_pieces(&all[ct_local_root(fn, copy->from) - 1], &all[ct_local_root(fn, copy->to) - 1], size_bytes, &joined)) {
        for (uint32_t i = 0; i < joined.n; i++)
            copy_piece(fn, copy, joined.v[i]);
        return;
    }
    for (uint32_t offset = 0, bytes; offset < size_bytes; offset += bytes) {
        bytes = 1u << __builtin_ctz(from->align | to->align | (uint32_t)size_bytes | offset | 8u);
        copy_piece(fn, copy, (struct piece){offset, bytes});
    }
}

void ct_copy_objects(struct ct_fn *fn, const struct object_copy *copies, uint32_t n)
{
    const struct pieces *all = n ? find_pieces(fn, copies, n) : NULL;

    for (uint32_t i = 0; i < n; i++)
        copy_object(fn, &copies[i], all);
}
