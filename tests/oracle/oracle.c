/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, their variables, and grids. */
#include "machine.h"
#include "ptx2spv/module/bodies.h"
#include "ptx2spv/module/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory of the oracle itself ---- */

static void *check(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "oracle: out of memory\n");
    exit(1);
}

void *oracle_zalloc(size_t count, size_t item_bytes)
{
    return check(calloc(count ? count : 1, item_bytes));
}

void *oracle_grow(void *items, uint32_t *cap, uint32_t used, size_t item_bytes)
{
    *cap = used ? used * 2 : 4;
    return check(realloc(items, *cap * item_bytes));
}

/* ---- failures ---- */

const char *oracle_status_name(enum oracle_status status)
{
    static const char *const names[] = {
        [ORACLE_OK] = "right",
        [ORACLE_BAD_MODULE] = "bad module",
        [ORACLE_BAD_LAUNCH] = "bad launch",
        [ORACLE_UNSUPPORTED] = "unsupported",
        [ORACLE_OUT_OF_MEMORY] = "out of memory",
        [ORACLE_OUT_OF_BOUNDS] = "out of bounds",
        [ORACLE_MISALIGNED] = "misaligned",
        [ORACLE_RACE] = "race",
        [ORACLE_DIVERGENT_BARRIER] = "divergent barrier",
        [ORACLE_DEADLOCK] = "deadlock",
        [ORACLE_UNDEFINED] = "undefined",
        [ORACLE_STEP_LIMIT] = "step limit",
        [ORACLE_CALL_DEPTH] = "call depth",
        [ORACLE_TRAP] = "trap",
    };

    return names[status];
}

void oracle_fail(struct oracle_step *s, enum oracle_status status, const char *format, ...)
{
    struct oracle_result *result = s->grid->result;
    char what[ORACLE_MESSAGE_BYTES / 2];
    va_list arguments;

    if (result->status != ORACLE_OK)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    result->status = status;
    result->line = s->insn ? s->insn->where.line : 0;
    snprintf(result->message, sizeof result->message, "line %u, %.100s, thread %u (%u,%u,%u) of block (%u,%u,%u): %s", result->line,
             s->insn ? s->insn->text : "end", s->thread ? s->thread->index : 0, s->thread ? s->thread->tid[0] : 0,
             s->thread ? s->thread->tid[1] : 0, s->thread ? s->thread->tid[2] : 0, s->block->ctaid[0], s->block->ctaid[1],
             s->block->ctaid[2], what);
}

static enum oracle_status fail_launch(struct oracle_result *result, enum oracle_status status, const char *what)
{
    result->status = status;
    snprintf(result->message, sizeof result->message, "%s", what);
    return status;
}

/* ---- variables ---- */

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

static void place_variable(struct oracle_module *module, const struct ptx_variable *variable, uint64_t *top)
{
    const uint64_t align = variable->align > 16 ? variable->align : 16;
    struct oracle_object *object;

    *top = round_up(*top, align);
    object = oracle_object_create(variable->space, *top, variable->size_bytes, false);
    object->read_only = variable->space == PTX_SPACE_CONST;
    *top += variable->size_bytes + 1; /* one byte between variables, which no access may touch */
    oracle_objects_add(&module->objects, object);
    module->places[module->n_places++] = (struct oracle_place){variable, object};
}

static void collect(struct oracle_module *module, struct ptx_variable *const *variables, uint32_t n, uint64_t *top)
{
    for (uint32_t i = 0; i < n; i++) {
        if (variables[i]->space == PTX_SPACE_SHARED)
            module->shared[module->n_shared++] = variables[i];
        else if (variables[i]->space == PTX_SPACE_GLOBAL || variables[i]->space == PTX_SPACE_CONST)
            place_variable(module, variables[i], top);
    }
}

static void collect_all(struct oracle_module *module)
{
    const struct ptx_module *syntax = module->syntax;
    uint32_t n = syntax->variables.n;
    uint64_t top = ORACLE_IMAGE_BASE;

    for (uint32_t i = 0; i < syntax->functions.n; i++)
        n += syntax->functions.v[i]->variables.n + module->bodies[i]->variables.n;
    module->places = oracle_zalloc(n, sizeof *module->places);
    module->shared = oracle_zalloc(n, sizeof *module->shared);
    collect(module, syntax->variables.v, syntax->variables.n, &top);
    for (uint32_t i = 0; i < syntax->functions.n; i++) {
        collect(module, syntax->functions.v[i]->variables.v, syntax->functions.v[i]->variables.n, &top);
        collect(module, module->bodies[i]->variables.v, module->bodies[i]->variables.n, &top);
    }
}

static uint64_t address_of(const struct oracle_module *module, const struct ptx_init *init)
{
    for (uint32_t i = 0; i < module->syntax->functions.n; i++)
        if (init->function && module->syntax->functions.v[i] == init->function)
            return ORACLE_FUNCTION_BASE + i * 16;
    for (uint32_t i = 0; i < module->n_places; i++)
        if (module->places[i].variable == init->variable)
            return module->places[i].object->address + init->bits;
    return 0;
}

static void initialize(struct oracle_module *module, const struct oracle_place *place)
{
    const struct ptx_variable *variable = place->variable;
    const unsigned bytes = (ptx_type_bits(variable->type) + 7) / 8;

    for (uint32_t i = 0; i < variable->n_inits; i++) {
        const struct ptx_init *init = &variable->inits[i];
        uint64_t value = init->kind == PTX_INIT_SYMBOL ? address_of(module, init) : init->bits;

        if (init->byte_mask_bytes)
            value = value >> init->byte_shift * 8 & 0xff;
        memcpy(place->object->bytes + init->index * bytes, &value, bytes < 8 ? bytes : 8);
    }
}

/* ---- modules ---- */

static void keep_message(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct oracle_result *result = user;

    if (result->message[0])
        return;
    result->line = diagnostic->line;
    snprintf(result->message, sizeof result->message, "line %u: %s", diagnostic->line, diagnostic->text);
}

static void parse_bodies(struct oracle_module *module)
{
    struct ct_compilation *compilation = &module->compilation;
    const uint32_t n = module->syntax->functions.n;

    compilation->arena.on_exhausted = compilation->scratch.on_exhausted = &compilation->exhausted;
    if (setjmp(compilation->exhausted))
        abort();
    module->bodies = CT_ARENA_ARRAY(&compilation->arena, const struct ptx_body *, n);
    for (uint32_t i = 0; i < n; i++)
        if (!(module->bodies[i] = ct_body_parse(compilation, module->syntax->functions.v[i])))
            abort(); /* the module would not have been created */
}

struct oracle_module *oracle_module_create(const char *text, struct oracle_result *result)
{
    const struct ptx2spv_options options = {.on_diagnostic = keep_message, .user = result};
    struct ptx2spv_module *parsed;
    struct oracle_module *module;

    *result = (struct oracle_result){0};
    if (ptx2spv_module_create(text, strlen(text), &options, &parsed) != PTX2SPV_OK) {
        result->status = ORACLE_BAD_MODULE;
        return NULL;
    }
    result->message[0] = 0; /* warnings */
    module = oracle_zalloc(1, sizeof *module);
    module->parsed = parsed;
    module->syntax = parsed->syntax;
    parse_bodies(module);
    collect_all(module);
    for (uint32_t i = 0; i < module->n_places; i++)
        initialize(module, &module->places[i]);
    return module;
}

void oracle_module_destroy(struct oracle_module *module)
{
    if (!module)
        return;
    oracle_objects_finish(&module->objects);
    free(module->places);
    free(module->shared);
    ct_arena_finish(&module->compilation.scratch);
    ct_arena_finish(&module->compilation.arena);
    ptx2spv_module_destroy(module->parsed);
    free(module);
}

void *oracle_module_variable(struct oracle_module *module, const char *name, size_t *size_bytes)
{
    for (uint32_t i = 0; i < module->n_places; i++) {
        if (strcmp(module->places[i].variable->name, name) == 0) {
            *size_bytes = module->places[i].object->size_bytes;
            return module->places[i].object->bytes;
        }
    }
    return NULL;
}

/* ---- grids ---- */

/* Kernel parameters: objects of .param, each with its part of the launch's parameter bytes. */
static bool place_params(struct oracle_grid *grid)
{
    const struct oracle_launch *launch = grid->launch;
    uint64_t end = 0;

    for (uint32_t i = 0; i < grid->entry->n_params; i++) {
        const struct ptx_variable *variable = grid->entry->params[i];
        struct oracle_object *object;

        end = round_up(end, variable->align);
        if (end + variable->size_bytes > launch->params_bytes)
            return false;
        object = oracle_object_create(PTX_SPACE_PARAM, 64 + end, variable->size_bytes, false);
        object->read_only = true;
        memcpy(object->bytes, (const uint8_t *)launch->params + end, variable->size_bytes);
        oracle_objects_add(&grid->params, object);
        end += variable->size_bytes;
    }
    return true;
}

static void place_memory(struct oracle_grid *grid)
{
    const struct oracle_launch *launch = grid->launch;

    for (unsigned i = 0; i < launch->n_ranges; i++) {
        const struct oracle_range *range = &launch->ranges[i];
        struct oracle_object *object = oracle_object_create(PTX_SPACE_GLOBAL, range->address, 0, false);

        free(object->bytes);
        object->is_owned = false;
        object->bytes = range->bytes;
        object->size_bytes = range->size_bytes;
        object->read_only = range->read_only;
        object->shadow = launch->find_races && !range->read_only ? oracle_shadow_create(range->size_bytes) : NULL;
        oracle_objects_add(&grid->memory, object);
    }
    for (uint32_t i = 0; i < grid->module->objects.n; i++) {
        struct oracle_object *object = grid->module->objects.v[i];

        object->shadow = launch->find_races && !object->read_only ? oracle_shadow_create(object->size_bytes) : NULL;
        oracle_objects_add(&grid->memory, object);
    }
}

static void finish_grid(struct oracle_grid *grid)
{
    for (unsigned i = 0; i < grid->launch->n_ranges; i++)
        oracle_object_destroy(grid->memory.v[i]);
    for (uint32_t i = 0; i < grid->module->objects.n; i++) { /* these are kept */
        oracle_shadow_destroy(grid->module->objects.v[i]->shadow, grid->module->objects.v[i]->size_bytes);
        grid->module->objects.v[i]->shadow = NULL;
    }
    free(grid->memory.v);
    oracle_objects_finish(&grid->params);
}

/* Shared variables, one after the other; all arrays without a size start where the dynamic part does. */
static void place_shared(struct oracle_block *block)
{
    const struct oracle_module *module = block->grid->module;
    const bool with_shadow = block->grid->launch->find_races;
    struct oracle_object *dynamic;
    uint64_t top = 0;

    block->shared_places = oracle_zalloc(module->n_shared, sizeof *block->shared_places);
    for (uint32_t i = 0; i < module->n_shared; i++) {
        const struct ptx_variable *variable = module->shared[i];

        if (variable->incomplete)
            continue;
        top = round_up(top, variable->align > 16 ? variable->align : 16);
        block->shared_places[i] = oracle_object_create(PTX_SPACE_SHARED, top, variable->size_bytes, with_shadow);
        oracle_objects_add(&block->shared, block->shared_places[i]);
        top += variable->size_bytes + 1;
    }
    dynamic = oracle_object_create(PTX_SPACE_SHARED, round_up(top, 1024), block->grid->launch->dynamic_shared_bytes, with_shadow);
    oracle_objects_add(&block->shared, dynamic);
    for (uint32_t i = 0; i < module->n_shared; i++)
        if (module->shared[i]->incomplete)
            block->shared_places[i] = dynamic;
}

static void run_block(struct oracle_grid *grid, uint64_t number)
{
    const uint32_t *n = grid->launch->grid, *extent = grid->launch->block;
    struct oracle_block block = {.grid = grid, .number = number};

    block.ctaid[0] = (uint32_t)(number % n[0]);
    block.ctaid[1] = (uint32_t)(number / n[0] % n[1]);
    block.ctaid[2] = (uint32_t)(number / n[0] / n[1]);
    block.n_threads = extent[0] * extent[1] * extent[2];
    block.n_warps = (block.n_threads + ORACLE_LANES - 1) / ORACLE_LANES;
    place_shared(&block);
    oracle_block_run(&block);
    oracle_objects_finish(&block.shared);
    free(block.shared_places);
}

static const struct ptx_function *find_kernel(const struct oracle_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->syntax->functions.n; i++) {
        const struct ptx_function *function = module->syntax->functions.v[i];

        if (function->is_entry && function->has_body && strcmp(function->name, name) == 0)
            return function;
    }
    return NULL;
}

bool oracle_module_has_kernel(const struct oracle_module *module, const char *kernel)
{
    return find_kernel(module, kernel) != NULL;
}

size_t oracle_module_pack_params(const struct oracle_module *module, const char *kernel, void *const *params, void *out, size_t capacity)
{
    const struct ptx_function *entry = find_kernel(module, kernel);
    uint64_t end = 0;

    for (uint32_t i = 0; entry && i < entry->n_params; i++) {
        end = round_up(end, entry->params[i]->align);
        if (end + entry->params[i]->size_bytes > capacity)
            return 0;
        memcpy((uint8_t *)out + end, params[i], entry->params[i]->size_bytes);
        end += entry->params[i]->size_bytes;
    }
    return end;
}

enum oracle_status oracle_run(struct oracle_module *module, const struct oracle_launch *launch, struct oracle_result *result)
{
    struct oracle_grid grid = {.module = module, .launch = launch, .result = result, .random = launch->schedule};
    const uint64_t n_threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    const uint64_t n_blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];

    *result = (struct oracle_result){0};
    grid.entry = find_kernel(module, launch->kernel);
    if (!grid.entry)
        return fail_launch(result, ORACLE_BAD_LAUNCH, "no such kernel");
    if (n_threads == 0 || n_threads > 1024 || launch->block[0] > 1024 || launch->block[1] > 1024 || n_blocks == 0)
        return fail_launch(result, ORACLE_BAD_LAUNCH, "a block has 1 to 1024 threads, a grid has blocks");
    if (place_params(&grid)) {
        place_memory(&grid);
        for (uint64_t i = 0; i < n_blocks && result->status == ORACLE_OK; i++)
            run_block(&grid, i);
        finish_grid(&grid);
        return result->status;
    }
    oracle_objects_finish(&grid.params);
    return fail_launch(result, ORACLE_BAD_LAUNCH, "too few bytes of parameters");
}
