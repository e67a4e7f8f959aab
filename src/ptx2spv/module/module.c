/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: the parameter blocks of the kernels, the image of the module's variables, and the queries of both.
 *
 * The image holds every .global variable, and behind them every .const variable (isspacep tells the two apart by the address), including those
 * declared in functions, in source order, each at its alignment. An
 * address in an initializer becomes a relocation; eight (or four) one-byte pieces of one address, which clang emits for packed structs,
 * become a single one. Addresses of functions are constants (functions.c). Variables that are only declared (.extern) have no space in
 * the image. Managed variables have an image of their own, whose address is not known at compile time: kernels read it from the
 * beginning of the module's image. */
#include "ptx2spv/ir/ir.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARAM_BYTES 32764 /* PTX ISA, "Kernel Function Parameters" */
#define WHOLE_BYTES 4096      /* variables up to this size are kept whole, without a look at their values */

/* The state needed while a module is laid out. */
struct module_layout {
    struct ptx2spv_module *module;
    struct ct_compilation *compilation;
    struct ptx_module *syntax;
    CT_VEC(struct ptx_variable *) sources; /* by the index of the variable */
    CT_VEC(struct ptx2spv_relocation) relocations;
};

static bool fail(struct module_layout *b, struct ct_location where, const char *what, const char *name)
{
    return ct_error(b->compilation, where, PTX2SPV_INVALID_PTX, "%s: '%s'", what, name);
}

/* ---- kernels ---- */

static bool lay_out_params(struct module_layout *b, const struct ptx_function *entry, struct ptx2spv_kernel_decl *decl)
{
    struct ptx2spv_param *params = CT_ARENA_ARRAY(&b->compilation->arena, struct ptx2spv_param, entry->n_params);
    uint64_t end = 0;

    for (uint32_t i = 0; i < entry->n_params; i++) {
        struct ptx_variable *param = entry->params[i];

        if (param->incomplete || entry->param_regs[i])
            return fail(b, param->where, "a kernel's parameter must have a size and be in .param space", param->name);
        param->offset = ct_round_up(end, param->align);
        if (param->size_bytes > MAX_PARAM_BYTES || param->offset + param->size_bytes > MAX_PARAM_BYTES)
            return fail(b, param->where, "the parameters have more than 32764 bytes", entry->name);
        end = param->offset + param->size_bytes;
        params[i] = (struct ptx2spv_param){(uint32_t)param->offset, (uint32_t)param->size_bytes, param->align};
    }
    decl->params = params;
    decl->n_params = entry->n_params;
    decl->param_bytes = (uint32_t)end;
    return true;
}

static bool describe_kernel(struct module_layout *b, const struct ptx_function *entry, struct ptx2spv_kernel_decl *decl)
{
    decl->name = entry->name;
    memcpy(decl->max_ntid, entry->max_ntid, sizeof decl->max_ntid);
    memcpy(decl->req_ntid, entry->req_ntid, sizeof decl->req_ntid);
    decl->min_nctapersm = entry->min_nctapersm;
    decl->max_nreg = entry->max_nreg;
    memcpy(decl->cluster, entry->cluster, sizeof decl->cluster);
    decl->explicit_cluster = entry->explicit_cluster;
    decl->blocks_are_clusters = entry->blocks_are_clusters;
    decl->max_cluster = entry->max_cluster;
    return lay_out_params(b, entry, decl);
}

static bool collect_kernels(struct module_layout *b)
{
    struct ptx2spv_module *module = b->module;
    const uint32_t n = b->syntax->functions.n;

    module->entries = CT_ARENA_ARRAY(&b->compilation->arena, struct ptx_function *, n);
    module->kernels = CT_ARENA_ARRAY(&b->compilation->arena, struct ptx2spv_kernel_decl, n);
    for (uint32_t i = 0; i < n; i++) {
        struct ptx_function *function = b->syntax->functions.v[i];

        if (!function->is_entry || !function->has_body)
            continue;
        function->kernel_index = module->n_kernels;
        module->entries[module->n_kernels] = function;
        if (!describe_kernel(b, function, &module->kernels[module->n_kernels++]))
            return false;
    }
    return true;
}

/* ---- layout of the variables ---- */

static bool is_in_image(const struct ptx_variable *variable)
{
    return variable->space == PTX_SPACE_GLOBAL || variable->space == PTX_SPACE_CONST || variable->space == PTX_SPACE_TEX;
}

static struct ct_module_image *image_of(const struct module_layout *b, const struct ptx_variable *variable)
{
    return variable->managed ? &b->module->managed : &b->module->image;
}

static bool place_variable(struct module_layout *b, struct ptx_variable *source, struct ptx2spv_variable *out)
{
    struct ptx2spv_image *image = &image_of(b, source)->contents;
    const bool external = source->linkage == PTX_LINK_EXTERN;

    *out = (struct ptx2spv_variable){
        .name = source->name,
        .size = source->size_bytes,
        .align = source->align,
        .space = source->space == PTX_SPACE_CONST ? PTX2SPV_VAR_CONST : PTX2SPV_VAR_GLOBAL,
        .managed = source->managed,
        .external = external,
        .reference = source->reference,
        .visible = source->linkage == PTX_LINK_VISIBLE || source->linkage == PTX_LINK_WEAK || source->linkage == PTX_LINK_COMMON,
    };
    if (external)
        return true;
    source->offset = out->offset = ct_round_up(image->size_bytes, source->align);
    image->size_bytes = source->offset + source->size_bytes;
    if (image->size_bytes > INT64_MAX / 2)
        return fail(b, source->where, "the module's variables are too large", source->name);
    if (source->align > image->align)
        image->align = source->align;
    return true;
}

/* Collects the variables that `owner` declares (NULL: the module); an alias lists those of its target as well. */
static void collect(struct module_layout *b, struct ptx_variable *const *variables, uint32_t n, const struct ptx_function *owner)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_in_image(variables[i]) || variables[i]->function != owner)
            continue;
        variables[i]->index = b->sources.n; /* relocations refer to it by this index */
        *CT_PUSH(&b->compilation->scratch, &b->sources) = variables[i];
    }
}

/* Reserves space for the address of the managed image at the beginning, if there are managed variables. */
static void place_managed_address(struct module_layout *b)
{
    struct ct_module_image *image = &b->module->image;
    const uint32_t bytes = sizeof(uint64_t);

    image->contents.align = b->module->managed.contents.align = 1;
    for (uint32_t i = 0; i < b->sources.n; i++)
        if (b->sources.v[i]->managed && b->sources.v[i]->linkage != PTX_LINK_EXTERN)
            image->contents = (struct ptx2spv_image){.size_bytes = bytes, .align = bytes};
    if (image->contents.size_bytes)
        ct_image_note(b->compilation, image, 0, bytes);
}

static bool place_variables_of(struct module_layout *b, bool constants)
{
    for (uint32_t i = 0; i < b->sources.n; i++)
        if ((b->sources.v[i]->space == PTX_SPACE_CONST) == constants && !place_variable(b, b->sources.v[i], &b->module->variables[i]))
            return false;
    return true;
}

static bool place_variables(struct module_layout *b)
{
    struct ptx2spv_module *module = b->module;

    collect(b, b->syntax->variables.v, b->syntax->variables.n, NULL);
    for (uint32_t i = 0; i < b->syntax->functions.n; i++) {
        const struct ptx_function *function = b->syntax->functions.v[i];

        collect(b, function->variables.v, function->variables.n, function);
    }
    place_managed_address(b);
    module->n_variables = b->sources.n;
    module->variables = CT_ARENA_ARRAY(&b->compilation->arena, struct ptx2spv_variable, b->sources.n);
    if (!place_variables_of(b, false))
        return false;
    b->syntax->const_begin = module->image.contents.size_bytes;
    if (!place_variables_of(b, true))
        return false;
    b->syntax->const_end = module->image.contents.size_bytes;
    return true;
}

/* ---- initial bytes ---- */

/* Writes a value in little-endian order, truncated or sign-extended (128 bits) to its size. */
static void write_value(uint8_t *at, unsigned bytes, const struct ptx_init *init)
{
    const uint8_t fill = init->kind == PTX_INIT_INT && init->bits >> 63 ? 0xff : 0;

    for (unsigned i = 0; i < bytes; i++)
        at[i] = i < 8 ? (uint8_t)(init->bits >> 8 * i) : fill;
}

/* The number of one-byte pieces of the same address from `first` on: 8, 4, or 0 if the run has another length. */
static uint32_t piece_run(const struct ptx_variable *variable, uint32_t first)
{
    const struct ptx_init *inits = variable->inits + first;
    uint32_t n = 0;

    while (n < 8 && first + n < variable->n_inits && inits[n].byte_mask_bytes && inits[n].byte_shift == n &&
           inits[n].variable == inits[0].variable && inits[n].bits == inits[0].bits && inits[n].index == inits[0].index + n)
        n++;
    return n == 8 ? 8 : n >= 4 ? 4 : 0;
}

/* Adds a relocation for the address at inits[at]. Returns how many of the initializers it covers, 0 after an error. */
static uint32_t relocate(struct module_layout *b, const struct ptx_variable *variable, uint32_t at)
{
    const struct ptx_init *init = &variable->inits[at];
    const uint32_t taken = init->byte_mask_bytes ? piece_run(variable, at) : 1;

    if (!taken) {
        ct_error(b->compilation, variable->where, PTX2SPV_UNSUPPORTED, "variable '%s' contains single bytes of an address", variable->name);
        return 0;
    }
    if (!is_in_image(init->variable) || init->variable->reference) {
        fail(b, variable->where, "an initializer takes the address of a variable outside of .global and .const", init->variable->name);
        return 0;
    }
    *CT_PUSH(&b->compilation->arena, &b->relocations) = (struct ptx2spv_relocation){
        .offset = variable->offset + init->index * ptx_type_bytes(variable->type),
        .addend = (int64_t)init->bits,
        .variable = init->variable->index,
        .width = (uint16_t)(taken == 1 ? ptx_type_bytes(variable->type) : taken),
        .in_managed = variable->managed,
    };
    return taken;
}

/* Writes the whole address of a function, or one byte of it. */
static void write_function(uint8_t *at, unsigned bytes, const struct ptx_init *init)
{
    const uint64_t address = ct_function_address(init->function) + init->bits;

    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(address >> 8 * (init->byte_shift + i));
}

static bool initialize(struct module_layout *b, const struct ptx_variable *variable)
{
    const unsigned bytes = ptx_type_bytes(variable->type);
    const struct ct_module_image *image = image_of(b, variable);

    for (uint32_t i = 0; i < variable->n_inits;) {
        const struct ptx_init *init = &variable->inits[i];
        const uint64_t offset = variable->offset + init->index * bytes;
        uint32_t taken = 1;

        if (init->function)
            write_function(ct_image_at(image, offset), bytes, init);
        else if (init->kind == PTX_INIT_SYMBOL)
            taken = relocate(b, variable, i);
        else if (init->bits)
            write_value(ct_image_at(image, offset), bytes, init);
        if (!taken)
            return false;
        i += taken;
    }
    return true;
}

/* Notes the bytes of a variable that are not zero, and all bytes of small ones, which the host may write. */
static void note_bytes(struct module_layout *b, const struct ptx_variable *variable)
{
    struct ct_module_image *image = image_of(b, variable);
    const unsigned bytes = ptx_type_bytes(variable->type);

    if (variable->size_bytes <= WHOLE_BYTES) {
        ct_image_note(b->compilation, image, variable->offset, variable->size_bytes);
        return;
    }
    for (uint32_t i = 0; i < variable->n_inits; i++) {
        const struct ptx_init *init = &variable->inits[i];

        if (init->bits || init->function || init->kind == PTX_INIT_SYMBOL)
            ct_image_note(b->compilation, image, variable->offset + init->index * bytes, bytes);
    }
}

static bool fill_images(struct module_layout *b)
{
    struct ptx2spv_module *module = b->module;

    for (uint32_t i = 0; i < b->sources.n; i++)
        if (!module->variables[i].external)
            note_bytes(b, b->sources.v[i]);
    ct_image_make_pieces(b->compilation, &module->image);
    ct_image_make_pieces(b->compilation, &module->managed);
    for (uint32_t i = 0; i < b->sources.n; i++)
        if (!module->variables[i].external && !initialize(b, b->sources.v[i]))
            return false;
    module->relocations = b->relocations.v;
    module->n_relocations = b->relocations.n;
    return true;
}

/* ---- creation and destruction ---- */

enum ptx2spv_status ct_module_lay_out(struct ptx2spv_module *module)
{
    struct module_layout b = {.module = module, .compilation = &module->compilation, .syntax = module->syntax};

    ptx_number_functions(module->syntax);
    if (!collect_kernels(&b) || !place_variables(&b) || !fill_images(&b))
        return module->compilation.status;
    return PTX2SPV_OK;
}

void ptx2spv_module_destroy(struct ptx2spv_module *module)
{
    if (!module)
        return;
    free(module->image.bytes);
    free(module->managed.bytes);
    ct_arena_finish(&module->compilation.scratch);
    ct_arena_finish(&module->compilation.bodies);
    ct_arena_finish(&module->compilation.arena);
    free(module);
}

/* ---- queries ---- */

bool ptx2spv_module_uses_input(const struct ptx2spv_module *module, unsigned index)
{
    return index < module->n_inputs && module->uses[index];
}

unsigned ptx2spv_module_kernel_count(const struct ptx2spv_module *module)
{
    return module->n_kernels;
}

const struct ptx2spv_kernel_decl *ptx2spv_module_kernel(const struct ptx2spv_module *module, unsigned index)
{
    return index < module->n_kernels ? &module->kernels[index] : NULL;
}

unsigned ptx2spv_module_variable_count(const struct ptx2spv_module *module)
{
    return module->n_variables;
}

const struct ptx2spv_variable *ptx2spv_module_variable(const struct ptx2spv_module *module, unsigned index)
{
    return index < module->n_variables ? &module->variables[index] : NULL;
}

const struct ptx2spv_image *ptx2spv_module_image(const struct ptx2spv_module *module)
{
    return &module->image.contents;
}

const struct ptx2spv_image *ptx2spv_module_managed_image(const struct ptx2spv_module *module)
{
    return &module->managed.contents;
}

const struct ptx2spv_relocation *ptx2spv_module_relocations(const struct ptx2spv_module *module, unsigned *count)
{
    *count = module->n_relocations;
    return module->relocations;
}

void ptx2spv_module_versions(const struct ptx2spv_module *module, unsigned *isa, unsigned *sm, unsigned *address_bits)
{
    *isa = module->syntax->isa_version;
    *sm = module->syntax->sm;
    *address_bits = module->syntax->address_bits;
}
