/* SPDX-License-Identifier: Apache-2.0 */
/* State spaces and addresses (PTX ISA, "State Spaces", "Generic Addressing"). An access must be within one object. */
#include "machine.h"

#include <inttypes.h>
#include <stdlib.h>

struct oracle_object *oracle_object_create(enum ptx_space space, uint64_t address, uint64_t size_bytes, bool with_shadow)
{
    struct oracle_object *object = oracle_zalloc(1, sizeof *object);

    object->space = space;
    object->address = address;
    object->size_bytes = size_bytes;
    object->is_owned = true;
    object->bytes = oracle_zalloc(size_bytes + 1, 1);
    object->shadow = with_shadow ? oracle_shadow_create(size_bytes) : NULL;
    return object;
}

void oracle_object_destroy(struct oracle_object *object)
{
    if (!object)
        return;
    oracle_shadow_destroy(object->shadow, object->size_bytes);
    if (object->is_owned)
        free(object->bytes);
    free(object);
}

void oracle_objects_add(struct oracle_objects *objects, struct oracle_object *object)
{
    if (objects->n == objects->cap)
        objects->v = oracle_grow(objects->v, &objects->cap, objects->n, sizeof *objects->v);
    objects->v[objects->n++] = object;
}

void oracle_objects_finish(struct oracle_objects *objects)
{
    for (uint32_t i = 0; i < objects->n; i++)
        oracle_object_destroy(objects->v[i]);
    free(objects->v);
    *objects = (struct oracle_objects){0};
}

/* ---- storage of variables ---- */

static struct oracle_object *place_in(const struct ptx_variable *variable, struct ptx_variable *const *list, uint32_t n,
                                      struct oracle_object *const *places)
{
    return variable->index < n && list[variable->index] == variable ? places[variable->index] : NULL;
}

/* A parameter of the kernel, or of a function in its frame. */
static struct oracle_object *parameter_place(struct oracle_step *s, const struct ptx_variable *variable)
{
    const struct oracle_frame *frame = s->frame;
    const struct ptx_function *function = frame->function;
    struct oracle_object *place = place_in(variable, frame->body->variables.v, frame->body->variables.n, frame->variables);

    if (place)
        return place;
    if (!frame->caller)
        return place_in(variable, function->params, function->n_params, s->grid->params.v);
    place = place_in(variable, function->params, function->n_params, frame->params);
    return place ? place : place_in(variable, function->results, function->n_results, frame->results);
}

static struct oracle_object *shared_place(struct oracle_step *s, const struct ptx_variable *variable)
{
    const struct oracle_module *module = s->grid->module;

    for (uint32_t i = 0; i < module->n_shared; i++)
        if (module->shared[i] == variable)
            return s->block->shared_places[i];
    return NULL;
}

static struct oracle_object *module_place(struct oracle_step *s, const struct ptx_variable *variable)
{
    const struct oracle_module *module = s->grid->module;

    for (uint32_t i = 0; i < module->n_places; i++)
        if (module->places[i].variable == variable)
            return module->places[i].object;
    return NULL;
}

struct oracle_object *oracle_place_of(struct oracle_step *s, const struct ptx_variable *variable)
{
    struct oracle_object *place;

    switch (variable->space) {
    case PTX_SPACE_PARAM:
    case PTX_SPACE_LOCAL:
        place = parameter_place(s, variable);
        break;
    case PTX_SPACE_SHARED:
        place = shared_place(s, variable);
        break;
    default:
        place = module_place(s, variable);
        break;
    }
    if (!place)
        oracle_fail(s, ORACLE_UNSUPPORTED, "variable '%s' has no place", variable->name);
    return place;
}

/* ---- addresses ---- */

uint64_t oracle_window_of(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_SHARED:
        return ORACLE_SHARED_WINDOW;
    case PTX_SPACE_LOCAL:
        return ORACLE_LOCAL_WINDOW;
    case PTX_SPACE_PARAM:
        return ORACLE_PARAM_WINDOW;
    default:
        return 0;
    }
}

enum ptx_space oracle_space_of_window(uint64_t generic)
{
    switch (generic & ORACLE_WINDOW_MASK) {
    case ORACLE_SHARED_WINDOW:
        return PTX_SPACE_SHARED;
    case ORACLE_LOCAL_WINDOW:
        return PTX_SPACE_LOCAL;
    case ORACLE_PARAM_WINDOW:
        return PTX_SPACE_PARAM;
    default:
        return PTX_SPACE_GLOBAL;
    }
}

uint64_t oracle_address(struct oracle_step *s, const struct ptx_operand *operand)
{
    const struct oracle_object *place;
    uint64_t base = 0;

    if (operand->variable) {
        place = oracle_place_of(s, operand->variable);
        if (!place)
            return 0;
        base = place->address;
        if (s->insn->mods.space == PTX_SPACE_NONE && operand->bracketed)
            base += oracle_window_of(operand->variable->space); /* a name denotes its generic address */
    } else if (operand->reg) {
        const unsigned component = operand->component > 0 ? (unsigned)operand->component : 0;

        base = s->frame->registers[operand->reg->index][component];
    }
    return base + (uint64_t)operand->offset;
}

static struct oracle_object *find(const struct oracle_objects *objects, uint64_t address, uint64_t size)
{
    for (uint32_t i = objects->n; i-- > 0;) {
        struct oracle_object *object = objects->v[i];

        if (address >= object->address && address - object->address <= object->size_bytes &&
            object->size_bytes - (address - object->address) >= size)
            return object;
    }
    return NULL;
}

static struct oracle_object *find_in_space(struct oracle_step *s, enum ptx_space space, uint64_t address, uint64_t size)
{
    struct oracle_object *object;

    switch (space) {
    case PTX_SPACE_SHARED:
        return find(&s->block->shared, address, size);
    case PTX_SPACE_LOCAL:
        return find(&s->thread->locals, address, size);
    case PTX_SPACE_PARAM: /* of the kernel; parameters of functions are on the stack */
        object = find(&s->grid->params, address, size);
        return object ? object : find(&s->thread->locals, address, size);
    case PTX_SPACE_CONST:
        object = find(&s->grid->memory, address, size);
        return object && object->space == PTX_SPACE_CONST ? object : NULL;
    default:
        return find(&s->grid->memory, address, size);
    }
}

static const char *space_name(enum ptx_space space)
{
    static const char *const names[] = {"generic", "reg", "sreg", "const", "global", "local", "param", "shared", "tex"};

    return names[space];
}

uint8_t *oracle_memory(struct oracle_step *s, enum ptx_space space, uint64_t address, unsigned size, unsigned align, int access)
{
    struct oracle_object *object;

    if (space == PTX_SPACE_NONE) {
        space = oracle_space_of_window(address);
        address -= oracle_window_of(space);
    }
    if (address % align) {
        oracle_fail(s, ORACLE_MISALIGNED, ".%s address 0x%" PRIx64 " is no multiple of %u", space_name(space), address, align);
        return NULL;
    }
    object = find_in_space(s, space, address, size);
    if (!object || ((access & ORACLE_WRITE) && object->read_only)) {
        oracle_fail(s, ORACLE_OUT_OF_BOUNDS, "%s %u bytes at .%s address 0x%" PRIx64 "%s", access & ORACLE_WRITE ? "writes" : "reads", size,
                    space_name(space), address, object ? ", which is read-only" : "");
        return NULL;
    }
    if (object->shadow && !oracle_note(s, object, address - object->address, size, access))
        return NULL;
    return object->bytes + (address - object->address);
}
