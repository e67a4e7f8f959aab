/* SPDX-License-Identifier: Apache-2.0 */
/* Texture instructions, copies of tensors and 128-bit atomics as calls: each gets an operand that names a function of fetch.cu, tensor.cu or
 * module/system_functions.c, which is then linked like a system function. Results that are halves are converted by a second function, and the face
 * of a cube that is an image is found by one: their names come before the first one. */
#include "texture_functions.h"

#include "fetch_text.h"
#include "ptx2spv/module/arena.h"
#include "ptx2spv/module/compilation.h"
#include "ptx2spv/module/module.h"
#include "tensor_text.h"
#include "texture_access.h"

#include <string.h>

#define PREFIX "__cuttle_"
#define FIRST_FUNCTION ".weak .func" /* in a text; what precedes the first one belongs to all */

/* ---- names ---- */

static const char *function_name(struct ct_compilation *compilation, const struct ct_texture_access *access)
{
    static const char *const names[] = {
        [CT_TEXTURE_BASE] = "tex",
        [CT_TEXTURE_LEVEL] = "tex_level",
        [CT_TEXTURE_GRAD] = "tex_grad",
        [CT_TEXTURE_TEXEL] = "tex_fetch",
        [CT_TEXTURE_GATHER] = "tld4",
        [CT_TEXTURE_QUERY] = "texture_query",
        [CT_SURFACE_FORMAT] = "surface_store",
    };

    if (access->kind >= CT_SURFACE_LOAD && access->kind != CT_SURFACE_FORMAT)
        return access->geometry->layered || access->geometry->coordinates > 2 ? PREFIX "surface_slices" : PREFIX "surface_plane";
    if (access->kind >= CT_TEXTURE_QUERY)
        return ct_arena_printf(&compilation->scratch, PREFIX "%s", names[access->kind]);
    return ct_arena_printf(&compilation->scratch, PREFIX "%s_%s", names[access->kind], access->geometry->word);
}

/* Operations on 128 bits at once: atomic ones, and strong loads and stores (PTX ISA, "Memory Consistency Model: Strong Operations") whose scope is
 * not .sys: the host does not take part in the function's locks. */
static bool is_wide_atomic(const struct ptx_instruction *insn)
{
    const bool is_shared =
        insn->mods.space == PTX_SPACE_NONE || insn->mods.space == PTX_SPACE_GLOBAL || insn->mods.space == PTX_SPACE_SHARED;

    if (!insn->n_types || insn->types[0] != PTX_B128 || !is_shared)
        return false;
    if (insn->opcode == PTX_OP_ATOM)
        return true;
    return (insn->opcode == PTX_OP_LD || insn->opcode == PTX_OP_ST) && insn->mods.semantics > PTX_WEAK && !ptx_is_of_system(&insn->mods);
}

/* The function of a copy of a tensor or of an atomic operation that no device has; NULL if the instruction is neither. Prefetches have no
 * effect. */
static const char *other_function_or_null(const struct ptx_instruction *insn)
{
    if (is_wide_atomic(insn))
        return PTX_WIDE_ATOMIC;
    if (insn->opcode != PTX_OP_CP || !strstr(insn->text, ".bulk.tensor."))
        return NULL;
    if (strstr(insn->text, ".im2col_no_offs"))
        return PREFIX "tensor_im2col_put";
    if (strstr(insn->text, ".bulk_group"))
        return strstr(insn->text, "cp.reduce.") == insn->text ? PREFIX "tensor_reduce" : PREFIX "tensor_store";
    return strstr(insn->text, ".im2col") ? PREFIX "tensor_im2col" : PREFIX "tensor_load";
}

/* ---- declarations ---- */

/* The function of a name that the tree declares, possibly from now on. */
static struct ptx_function *declare(struct ct_compilation *compilation, struct ptx_module *tree, const char *name, struct ct_location where)
{
    struct ptx_function *function;

    for (uint32_t i = 0; i < tree->helpers.n; i++)
        if (!strcmp(tree->helpers.v[i]->name, name))
            return tree->helpers.v[i];
    function = CT_ARENA_NEW(&compilation->arena, struct ptx_function);
    *function = (struct ptx_function){.where = where, .linkage = PTX_LINK_EXTERN, .is_system = true};
    function->name = ct_arena_strndup(&compilation->arena, name, strlen(name));
    *CT_PUSH(&compilation->arena, &tree->helpers) = function;
    return function;
}

static void append_callee(struct ct_arena *arena, struct ptx_instruction *insn, struct ptx_function *function)
{
    struct ptx_operand *operands = CT_ARENA_ARRAY(arena, struct ptx_operand, insn->n_operands + 1);

    memcpy(operands, insn->operands, insn->n_operands * sizeof *operands);
    operands[insn->n_operands] = (struct ptx_operand){.kind = PTX_OPND_FUNC, .where = insn->where, .component = -1, .function = function};
    insn->operands = operands;
    insn->n_operands++;
}

static void add_callees_of_access(struct ct_compilation *compilation, struct ptx_module *tree, struct ct_arena *arena,
                                  const struct ct_texture_access *access, struct ptx_instruction *insn)
{
    const char *halves = access->type == PTX_F16 ? PREFIX "tex_halves" : PREFIX "tex_pairs";
    const char *image_function = ct_texture_image_function_or_null(access);

    insn->mods.unsupported = 0; /* its words are known here, not to the parser */
    if (ct_texture_has_halves(access))
        append_callee(arena, insn, declare(compilation, tree, halves, insn->where));
    if (image_function) {
        image_function = ct_arena_printf(&compilation->scratch, PREFIX "%s", image_function);
        append_callee(arena, insn, declare(compilation, tree, image_function, insn->where));
    }
    append_callee(arena, insn, declare(compilation, tree, function_name(compilation, access), insn->where));
}

void ct_texture_add_callees(struct ct_compilation *compilation, struct ptx_module *tree, struct ptx_body *body)
{
    for (uint32_t i = 0; i < body->instructions.n; i++) {
        struct ptx_instruction *insn = &body->instructions.v[i];
        const char *other_function = other_function_or_null(insn);
        struct ct_texture_access access;

        if (other_function)
            append_callee(body->arena, insn, declare(compilation, tree, other_function, insn->where));
        if (ct_is_texture_opcode(insn->opcode) && ct_texture_access_read(insn, &access))
            add_callees_of_access(compilation, tree, body->arena, &access, insn);
    }
}

/* ---- definitions ---- */

/* Where the definition of a function begins in a text. */
static const char *find_definition_or_null(const char *text, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = strstr(text, FIRST_FUNCTION); at; at = strstr(at + 1, FIRST_FUNCTION)) {
        const char *found = strstr(at, PREFIX);

        if (found && strncmp(found, name, length) == 0 && found[length] == '(')
            return at;
    }
    return NULL;
}

const char *ct_texture_function_text_or_null(struct ct_compilation *compilation, const char *name)
{
    static const char *const texts[] = {ct_fetch_text, ct_tensor_text};

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i], *definition = find_definition_or_null(text, name);
        const char *end = definition ? strstr(definition, "\n}\n") : NULL;

        if (end)
            return ct_arena_printf(&compilation->arena, "%.*s%.*s\n}\n", (int)(strstr(text, FIRST_FUNCTION) - text), text,
                                   (int)(end - definition), definition);
    }
    return NULL;
}
