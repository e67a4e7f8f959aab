/* SPDX-License-Identifier: Apache-2.0 */
/* Linkers create modules from one text or several. The module is allocated first: its compilation parses the texts, and its arena holds
 * their trees. */
#include "bodies.h"
#include "link.h"
#include "module.h"
#include "ptx2spv/textures/texture_functions.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT_BYTES INT32_MAX /* positions and lengths of tokens are 32-bit numbers */

struct ptx2spv_linker {
    struct ptx2spv_module *module; /* NULL once ptx2spv_linker_finish has returned it */
    struct ct_link link;
    CT_VEC(struct ct_source) sources;
    enum ptx2spv_status status; /* status of the first failure */
};

enum ptx2spv_status ptx2spv_linker_create(struct ptx2spv_linker **out)
{
    struct ptx2spv_linker *linker = calloc(1, sizeof *linker);
    struct ptx2spv_module *module = calloc(1, sizeof *module);

    if (!linker || !module) {
        free(linker);
        free(module);
        return PTX2SPV_OUT_OF_MEMORY;
    }
    module->compilation.arena.on_exhausted = module->compilation.scratch.on_exhausted = module->compilation.bodies.on_exhausted =
        &module->compilation.exhausted;
    linker->module = module;
    linker->link.compilation = &module->compilation;
    *out = linker;
    return PTX2SPV_OK;
}

void ptx2spv_linker_destroy(struct ptx2spv_linker *linker)
{
    if (!linker)
        return;
    ptx2spv_module_destroy(linker->module);
    free(linker);
}

/* ---- texts ---- */

static enum ptx2spv_status unsupported(struct ct_compilation *compilation, const char *why)
{
    ct_error(compilation, (struct ct_location){0}, PTX2SPV_UNSUPPORTED, "%s", why);
    return compilation->status;
}

static enum ptx2spv_status add(struct ptx2spv_linker *linker, const struct ptx2spv_input *input, enum ct_link_kind kind)
{
    struct ct_compilation *compilation = &linker->module->compilation;
    const size_t length = strnlen(input->text, input->length);
    struct ptx_module *tree;

    if (length > MAX_TEXT_BYTES)
        return unsupported(compilation, "the text is longer than 2 GiB");
    if (linker->sources.n == PTX2SPV_INPUTS_MAX)
        return unsupported(compilation, "more than 65535 texts");
    *CT_PUSH(&compilation->arena, &linker->sources) = (struct ct_source){
        .name = input->name ? ct_arena_strndup(&compilation->arena, input->name, strlen(input->name)) : NULL,
        .text = ct_arena_strndup(&compilation->arena, input->text, length),
        .length = length,
    };
    compilation->sources = linker->sources.v;
    compilation->n_sources = linker->sources.n;
    tree = ptx_parse(compilation, linker->sources.n - 1, kind == CT_LINK_SYSTEM ? ct_body_note_system : ct_body_note);
    for (uint32_t i = 0; tree && i < tree->functions.n; i++)
        tree->functions.v[i]->is_system = kind == CT_LINK_SYSTEM;
    for (uint32_t i = 0; tree && i < tree->helpers.n; i++)
        *CT_PUSH(&compilation->arena, &tree->functions) = tree->helpers.v[i];
    return tree && ct_link_add(&linker->link, tree, kind) ? PTX2SPV_OK : compilation->status;
}

/* The frame that longjmp returns to when memory is exhausted; likewise finish_guarded. */
static enum ptx2spv_status add_guarded(struct ptx2spv_linker *linker, const struct ptx2spv_input *input)
{
    if (setjmp(linker->module->compilation.exhausted))
        return PTX2SPV_OUT_OF_MEMORY;
    return add(linker, input, input->on_demand ? CT_LINK_MEMBER : CT_LINK_TEXT);
}

static void set_options(struct ptx2spv_linker *linker, const struct ptx2spv_options *options)
{
    linker->module->compilation.options = options ? *options : (struct ptx2spv_options){0};
}

/* The parser's tables are not needed any more, since most modules have only one text; and the caller's pointers may become invalid before the
 * linker is destroyed. */
static void finish_parsing(struct ptx2spv_linker *linker)
{
    ct_arena_finish(&linker->module->compilation.scratch);
    ct_arena_finish(&linker->module->compilation.bodies);
    set_options(linker, NULL);
}

enum ptx2spv_status ptx2spv_linker_add(struct ptx2spv_linker *linker, const struct ptx2spv_input *input,
                                       const struct ptx2spv_options *options)
{
    if (linker->status != PTX2SPV_OK || !linker->module)
        return linker->status;
    set_options(linker, options);
    linker->status = add_guarded(linker, input);
    finish_parsing(linker);
    return linker->status;
}

/* ---- the module ---- */

static bool has_text(const struct ptx2spv_linker *linker, const char *text)
{
    for (uint32_t i = 0; i < linker->sources.n; i++)
        if (!strcmp(linker->sources.v[i].text, text))
            return true;
    return false;
}

/* The text that defines a function which the device provides, or a texture instruction needs. NULL: it is neither. */
static const char *text_of(const struct ptx2spv_linker *linker, const struct ptx_function *function)
{
    const char *text = ptx_system_function_or_null(function);

    return text || function->has_body ? text : ct_texture_function_text_or_null(&linker->module->compilation, function->name);
}

/* Adds the definitions of the system functions that some text declares. */
static enum ptx2spv_status add_system_functions(struct ptx2spv_linker *linker)
{
    const uint32_t n = linker->link.units.n;
    enum ptx2spv_status status = PTX2SPV_OK;

    for (uint32_t u = 0; u < n; u++) {
        const struct ptx_module *tree = linker->link.units.v[u].tree;

        for (uint32_t i = 0; i < tree->functions.n && status == PTX2SPV_OK; i++) {
            const char *text = text_of(linker, tree->functions.v[i]);

            if (text && !has_text(linker, text))
                status =
                    add(linker, &(struct ptx2spv_input){.name = "system functions", .text = text, .length = strlen(text)}, CT_LINK_SYSTEM);
        }
    }
    return status;
}

static enum ptx2spv_status finish(struct ptx2spv_linker *linker)
{
    struct ptx2spv_module *module = linker->module;
    const uint32_t n = linker->link.units.n;
    bool *uses = CT_ARENA_ARRAY(&module->compilation.arena, bool, n);
    enum ptx2spv_status status = add_system_functions(linker);

    if (status != PTX2SPV_OK)
        return status;
    module->syntax = ct_link_finish(&linker->link);
    if (!module->syntax)
        return module->compilation.status;
    for (uint32_t i = 0; i < n; i++)
        uses[i] = linker->link.units.v[i].is_included;
    module->uses = uses;
    module->n_inputs = n;
    return ct_module_lay_out(module);
}

static enum ptx2spv_status finish_guarded(struct ptx2spv_linker *linker)
{
    if (setjmp(linker->module->compilation.exhausted))
        return PTX2SPV_OUT_OF_MEMORY;
    return finish(linker);
}

enum ptx2spv_status ptx2spv_linker_finish(struct ptx2spv_linker *linker, const struct ptx2spv_options *options, struct ptx2spv_module **out)
{
    if (linker->status != PTX2SPV_OK)
        return linker->status;
    if (!linker->module || !linker->sources.n)
        return PTX2SPV_NOT_FOUND;
    set_options(linker, options);
    linker->status = finish_guarded(linker);
    finish_parsing(linker);
    if (linker->status != PTX2SPV_OK)
        return linker->status;
    *out = linker->module;
    linker->module = NULL;
    return PTX2SPV_OK;
}

enum ptx2spv_status ptx2spv_module_create(const char *text, size_t length, const struct ptx2spv_options *options,
                                          struct ptx2spv_module **out)
{
    const struct ptx2spv_input input = {.text = text, .length = length};
    struct ptx2spv_linker *linker;
    enum ptx2spv_status status = ptx2spv_linker_create(&linker);

    if (status != PTX2SPV_OK)
        return status;
    status = ptx2spv_linker_add(linker, &input, options);
    if (status == PTX2SPV_OK)
        status = ptx2spv_linker_finish(linker, options, out);
    ptx2spv_linker_destroy(linker);
    return status;
}
