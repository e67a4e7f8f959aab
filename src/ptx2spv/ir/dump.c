/* SPDX-License-Identifier: Apache-2.0 */
/* The IR as text, for debugging and for tests: values as %number:width, blocks as b<id>, in the order of fn->blocks; no part of it
 * depends on addresses. An instruction reads   %results = op.attributes operands   with memory operands as [address+offset]. */
#include "ir.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct writer {
    struct ct_fn *fn;
    struct ct_arena *arena;
    CT_VEC(char) text;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *out, const char *format, ...)
{
    char piece[256];
    va_list arguments;
    char *whole = piece;

    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof piece) { /* only for a long name */
        whole = ct_arena_alloc(out->arena, (size_t)length + 1);
        va_start(arguments, format);
        vsnprintf(whole, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    for (int i = 0; i < length; i++)
        *CT_PUSH(out->arena, &out->text) = whole[i];
}

static const char *const space_names[] = {
    [CT_SPACE_GENERIC] = "generic", [CT_SPACE_GLOBAL] = "global", [CT_SPACE_SHARED] = "shared",
    [CT_SPACE_LOCAL] = "local",     [CT_SPACE_PARAM] = "param",
};

static const char *const sysval_names[] = {
    [CT_SYS_NONE] = "none",
    [CT_SYS_TID_X] = "tid.x",
    [CT_SYS_TID_Y] = "tid.y",
    [CT_SYS_TID_Z] = "tid.z",
    [CT_SYS_NTID_X] = "ntid.x",
    [CT_SYS_NTID_Y] = "ntid.y",
    [CT_SYS_NTID_Z] = "ntid.z",
    [CT_SYS_CTAID_X] = "ctaid.x",
    [CT_SYS_CTAID_Y] = "ctaid.y",
    [CT_SYS_CTAID_Z] = "ctaid.z",
    [CT_SYS_NCTAID_X] = "nctaid.x",
    [CT_SYS_NCTAID_Y] = "nctaid.y",
    [CT_SYS_NCTAID_Z] = "nctaid.z",
    [CT_SYS_TID_LINEAR] = "tid_linear",
    [CT_SYS_BLOCK_THREADS] = "block_threads",
    [CT_SYS_LANEID] = "laneid",
    [CT_SYS_SMID] = "smid",
    [CT_SYS_NSMID] = "nsmid",
    [CT_SYS_SHARED_BYTES] = "shared_bytes",
    [CT_SYS_DYNAMIC_SHARED_BYTES] = "dynamic_shared_bytes",
    [CT_SYS_EXCHANGE_BASE] = "exchange_base",
    [CT_SYS_MATRIX_BASE] = "matrix_base",
    [CT_SYS_IMAGE_BASE] = "image_base",
    [CT_SYS_FAULT_BASE] = "fault_base",
    [CT_SYS_PARAM_BASE] = "param_base",
    [CT_SYS_TID_X_64] = "tid.x.64",
};
_Static_assert(sizeof sysval_names / sizeof *sysval_names == CT_SYS_COUNT, "every enumerator has a name");

static const char *const compare_names[] = {
    [PTX_EQ] = "eq",   [PTX_NE] = "ne",   [PTX_LT] = "lt",   [PTX_LE] = "le",   [PTX_GT] = "gt",   [PTX_GE] = "ge",
    [PTX_LO] = "lo",   [PTX_LS] = "ls",   [PTX_HI] = "hi",   [PTX_HS] = "hs",   [PTX_EQU] = "equ", [PTX_NEU] = "neu",
    [PTX_LTU] = "ltu", [PTX_LEU] = "leu", [PTX_GTU] = "gtu", [PTX_GEU] = "geu", [PTX_NUM] = "num", [PTX_NAN] = "nan",
};
_Static_assert(sizeof compare_names / sizeof *compare_names == PTX_NAN + 1, "every enumerator has a name");

static const char *const rounding_names[] = {
    [PTX_RN] = "rn",   [PTX_RZ] = "rz",   [PTX_RM] = "rm",   [PTX_RP] = "rp",   [PTX_RNI] = "rni",
    [PTX_RZI] = "rzi", [PTX_RMI] = "rmi", [PTX_RPI] = "rpi", [PTX_RNA] = "rna", [PTX_RS] = "rs",
};
_Static_assert(sizeof rounding_names / sizeof *rounding_names == PTX_RS + 1, "every enumerator has a name");

static const char *const operation_names[] = {
    [PTX_AND] = "and", [PTX_OR] = "or",   [PTX_XOR] = "xor", [PTX_CAS] = "cas", [PTX_EXCH] = "exch", [PTX_ADD] = "add",
    [PTX_INC] = "inc", [PTX_DEC] = "dec", [PTX_MIN] = "min", [PTX_MAX] = "max", [PTX_POPC] = "popc",
};
_Static_assert(sizeof operation_names / sizeof *operation_names == PTX_POPC + 1, "every enumerator has a name");

static const char *const semantics_names[] = {
    [PTX_WEAK] = "weak",       [PTX_VOLATILE] = "volatile", [PTX_RELAXED] = "relaxed", [PTX_ACQUIRE] = "acquire",
    [PTX_RELEASE] = "release", [PTX_ACQ_REL] = "acq_rel",   [PTX_SC] = "sc",           [PTX_MMIO] = "mmio",
};
_Static_assert(sizeof semantics_names / sizeof *semantics_names == PTX_MMIO + 1, "every enumerator has a name");

static const char *const scope_names[] = {[PTX_CTA] = "cta", [PTX_CLUSTER] = "cluster", [PTX_GPU] = "gpu", [PTX_SYS] = "sys"};
_Static_assert(sizeof scope_names / sizeof *scope_names == PTX_SYS + 1, "every enumerator has a name");

static const char *const mode_names[] = {
    [PTX_MODE_UP] = "up",     [PTX_MODE_DOWN] = "down",     [PTX_MODE_BFLY] = "bfly", [PTX_MODE_IDX] = "idx",
    [PTX_MODE_ALL] = "all",   [PTX_MODE_ANY] = "any",       [PTX_MODE_UNI] = "uni",   [PTX_MODE_BALLOT] = "ballot",
    [PTX_MODE_SYNC] = "sync", [PTX_MODE_ARRIVE] = "arrive", [PTX_MODE_RED] = "red",   [PTX_MODE_WARP] = "warp",
};

/* ".name" if the table has one for this row. */
static void put_attribute(struct writer *out, const char *const *names, size_t n, unsigned row)
{
    if (row < n && names[row])
        put(out, ".%s", names[row]);
}
#define PUT_ATTRIBUTE(out, names, row) put_attribute(out, names, sizeof(names) / sizeof *(names), row)

static bool is_access(const struct ct_insn *insn)
{
    return insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM;
}

static void put_mnemonic(struct writer *out, const struct ct_insn *insn)
{
    put(out, "%s", ct_op_infos[insn->op].name);
    if (is_access(insn))
        PUT_ATTRIBUTE(out, space_names, insn->space);
    PUT_ATTRIBUTE(out, semantics_names, insn->semantics);
    PUT_ATTRIBUTE(out, scope_names, insn->scope);
    PUT_ATTRIBUTE(out, operation_names, insn->operation);
    PUT_ATTRIBUTE(out, mode_names, insn->mode);
    PUT_ATTRIBUTE(out, compare_names, insn->compare);
    PUT_ATTRIBUTE(out, rounding_names, insn->rounding);
    put(out, "%s%s%s%s%s", insn->approx ? ".approx" : "", insn->ftz ? ".ftz" : "", insn->sat ? ".sat" : "", insn->nan ? ".nan" : "",
        insn->read_only ? ".nc" : "");
    if (insn->type != PTX_NONE && insn->op != CT_OP_CONST)
        put(out, ".%s", ptx_type_name(insn->type));
    if (insn->type2 != PTX_NONE)
        put(out, ".%s", ptx_type_name(insn->type2));
}

static void put_address(struct writer *out, const struct ct_insn *insn)
{
    if (insn->space == CT_SPACE_PARAM)
        put(out, " [param");
    else if (insn->local)
        put(out, " [local %" PRIu32, insn->local);
    else
        put(out, " [%%%" PRIu32, insn->n_operands ? insn->operands[0].i : 0);
    if (insn->offset)
        put(out, "%+" PRId64, insn->offset);
    put(out, "]");
}

/* What an instruction has besides its operands: addresses, constants, symbols. */
static void put_immediates(struct writer *out, const struct ct_insn *insn)
{
    if (is_access(insn))
        put_address(out, insn);
    if (insn->op == CT_OP_CONST)
        put(out, " 0x%" PRIx64, insn->imm);
    if (insn->op == CT_OP_SUBROUTINE || insn->op == CT_OP_ARGUMENT)
        put(out, " %" PRIu64, insn->imm);
    if (insn->op == CT_OP_SYSVAL)
        put(out, " %s", insn->sreg < CT_SYS_COUNT ? sysval_names[insn->sreg] : "?");
    if (insn->op == CT_OP_LOCALADDR)
        put(out, " local %" PRIu32, insn->local);
    if (insn->op == CT_OP_SHAREDADDR)
        put(out, " %s", insn->variable ? insn->variable->name : "?");
    if (insn->op == CT_OP_CALL) {
        const uint32_t n = insn->callee && insn->call_locals ? insn->callee->n_params + insn->callee->n_results : 0;

        put(out, " %s(", insn->callee ? insn->callee->name : "*");
        for (uint32_t i = 0; i < n; i++)
            put(out, "%slocal %" PRIu32, i ? ", " : "", insn->call_locals[i]);
        put(out, ")");
    }
}

static void put_operands(struct writer *out, const struct ct_insn *insn)
{
    const char *separator = is_access(insn) || insn->op == CT_OP_CALL ? ", " : " ";

    for (uint32_t i = is_access(insn) ? 1 : 0; i < insn->n_operands; i++) {
        put(out, "%s", separator);
        separator = ", ";
        if (insn->op == CT_OP_PHI)
            put(out, "b%" PRIu32 " ", i < insn->block->preds.n ? insn->block->preds.v[i]->id : UINT32_MAX);
        put(out, "%%%" PRIu32, insn->operands[i].i);
    }
    if (!(ct_op_infos[insn->op].flags & CT_OPF_TERMINATOR))
        return;
    for (uint32_t s = 0; s < insn->block->n_succs; s++, separator = ", ")
        put(out, "%sb%" PRIu32, separator, insn->block->succs[s]->id);
}

static void put_insn(struct writer *out, const struct ct_insn *insn)
{
    put(out, "    ");
    for (uint32_t r = 0; r < insn->n_results; r++) {
        const uint32_t i = insn->results[r].i;

        put(out, "%s%%%" PRIu32 ":%u", r ? ", " : "", i, i && i < out->fn->values.n ? ct_width_bits(out->fn->values.v[i].width) : 0);
    }
    if (insn->n_results)
        put(out, " = ");
    put_mnemonic(out, insn);
    put_immediates(out, insn);
    put_operands(out, insn);
    if (is_access(insn))
        put(out, " align %u", 1u << insn->align_log2);
    put(out, "\n");
}

static void put_block(struct writer *out, const struct ct_block *block)
{
    put(out, "b%" PRIu32 ":", block->id);
    for (uint32_t p = 0; p < block->preds.n; p++)
        put(out, "%sb%" PRIu32, p ? ", " : " from ", block->preds.v[p]->id);
    put(out, "\n");
    for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
        put_insn(out, insn);
}

static void put_nodes(struct writer *out, const struct ct_node *node, int indent);

static void put_region(struct writer *out, const char *title, const struct ct_node *list, int indent)
{
    put(out, "%*s%s\n", indent, "", title);
    put_nodes(out, list, indent + 2);
}

static void put_node(struct writer *out, const struct ct_node *node, int indent)
{
    put(out, "%*s", indent, "");
    switch (node->kind) {
    case CT_NODE_BLOCK:
        put(out, "b%" PRIu32 "\n", node->block->id);
        return;
    case CT_NODE_IF:
        put(out, "if %%%" PRIu32 "\n", node->condition.i);
        put_nodes(out, node->then_list, indent + 2);
        if (node->else_list)
            put_region(out, "else", node->else_list, indent);
        return;
    case CT_NODE_SWITCH:
        put(out, "switch %%%" PRIu32 "\n", node->condition.i);
        for (uint32_t i = 0; i < node->n_cases; i++)
            put_region(out, "case", node->cases[i], indent);
        return;
    case CT_NODE_LOOP:
        put(out, "loop\n");
        put_nodes(out, node->then_list, indent + 2);
        return;
    case CT_NODE_SCOPE:
        put(out, "scope\n");
        put_nodes(out, node->then_list, indent + 2);
        return;
    case CT_NODE_BREAK:
        put(out, "break\n");
        return;
    case CT_NODE_CONTINUE:
        put(out, "continue\n");
        return;
    case CT_NODE_RETURN:
        put(out, "return\n");
        return;
    case CT_NODE_UNREACHABLE:
        put(out, "unreachable\n");
        return;
    case CT_NODE_SET:
        put(out, "set %" PRIu32 " to %" PRIu32 "\n", node->variable, node->number);
        return;
    case CT_NODE_TEST:
        put(out, "if %" PRIu32 " == %" PRIu32 "\n", node->variable, node->number);
        put_nodes(out, node->then_list, indent + 2);
        return;
    case CT_NODE_GUARD:
        put(out, "if %" PRIu32 " <= %" PRIu32 "\n", node->variable, node->number);
        put_nodes(out, node->then_list, indent + 2);
        return;
    }
}

static void put_nodes(struct writer *out, const struct ct_node *node, int indent)
{
    for (; node; node = node->next)
        put_node(out, node, indent);
}

static void put_objects(struct writer *out)
{
    const struct ct_fn *fn = out->fn;

    for (uint32_t i = 0; i < fn->locals.n; i++) {
        const struct ct_local *local = &fn->locals.v[i];

        put(out, "  local %" PRIu32 ": %s, %" PRIu64 " bytes, align %" PRIu32, i + 1, local->variable ? local->variable->name : "-",
            local->size_bytes, local->align);
        if (local->same_as)
            put(out, ", same as %" PRIu32, local->same_as);
        else if (local->promoted)
            put(out, ", in registers");
        else if (fn->props & CT_PROP_LAID_OUT)
            put(out, ", at %" PRIu32, local->offset);
        put(out, "\n");
    }
    for (uint32_t i = 0; i < fn->shared.n; i++)
        put(out, "  shared %s, %" PRIu64 " bytes, at %" PRIu32 "\n", fn->shared.v[i].variable->name, fn->shared.v[i].variable->size_bytes,
            fn->shared.v[i].offset);
}

char *ct_fn_dump(struct ct_fn *fn, struct ct_arena *arena)
{
    struct writer out = {.fn = fn, .arena = arena};

    put(&out, "kernel %s\n", fn->name);
    put_objects(&out);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        put_block(&out, fn->blocks.v[b]);
    if (fn->props & CT_PROP_STRUCTURED)
        put_region(&out, "structure", fn->body, 0);
    *CT_PUSH(arena, &out.text) = 0;
    return out.text.v;
}
