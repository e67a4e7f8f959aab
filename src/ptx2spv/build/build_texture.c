/* SPDX-License-Identifier: Apache-2.0 */
/* build: texture and surface instructions (PTX ISA, "Texture Instructions", "Surface Instructions") as calls of the functions of
 * textures/fetch.cu. A texture's function returns the four channels; a surface's returns an address, or 0 where nothing is accessed, at which
 * the instruction then loads, stores or reduces. */
#include "build_address.h"
#include "build_image.h"

#include <string.h>

#define MAX_ARGUMENTS 13 /* tex.grad.3d: the handle, coordinates, offset, two derivatives */
#define WORD_BYTES 4

struct arguments {
    ct_value values[MAX_ARGUMENTS];
    uint32_t n;
};

/* ---- calls ---- */

static struct ct_insn *access_word(struct ct_build *b, enum ct_op op, uint32_t local, enum ptx_type type, unsigned index)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, type, op == CT_OP_LOAD, op == CT_OP_LOAD ? 1 : 2);
    const unsigned bytes = ptx_type_bits(type) / 8;

    insn->space = CT_SPACE_LOCAL;
    insn->local = local;
    insn->offset = (int64_t)bytes * index;
    insn->align_log2 = (uint8_t)__builtin_ctz(bytes);
    return insn;
}

static enum ptx_type type_of(struct ct_build *b, ct_value value)
{
    return ct_width_at(&b->at, value) == CT_W_64 ? PTX_B64 : PTX_B32;
}

void ct_build_function_call(struct ct_build *b, struct ptx_function *callee, const ct_value *arguments, uint32_t n_arguments,
                            enum ptx_type type, ct_value *results, uint32_t n)
{
    uint32_t *locals = CT_ARENA_ARRAY(&b->fn->compilation->arena, uint32_t, callee->n_params + callee->n_results);
    struct ct_insn *insn;

    if (callee->n_params != n_arguments || callee->n_results != (n != 0)) {
        ct_build_invalid(b, "wrong number of operands");
        for (uint32_t i = 0; i < n; i++)
            results[i] = ct_emit_const(&b->at, ct_width_of(type), 0);
        return;
    }
    for (uint32_t i = 0; i < callee->n_params + callee->n_results; i++) {
        const struct ptx_variable *formal = i < callee->n_params ? callee->params[i] : callee->results[0];

        locals[i] = ct_build_new_local(b, formal, formal->size_bytes, formal->align);
    }
    for (uint32_t i = 0; i < callee->n_params; i++)
        access_word(b, CT_OP_STORE, locals[i], type_of(b, arguments[i]), 0)->operands[1] = arguments[i];
    insn = ct_emit_insn(&b->at, CT_OP_CALL, PTX_NONE, 0, 0);
    insn->callee = callee;
    insn->call_locals = locals;
    for (uint32_t i = 0; i < n; i++) {
        struct ct_insn *load = access_word(b, CT_OP_LOAD, locals[callee->n_params], type, i);

        results[i] = load->results[0] = ct_value_create(b->fn, ct_width_of(type));
    }
}

static void call_function(struct ct_build *b, struct ptx_function *callee, const struct arguments *arguments, enum ptx_type type,
                          ct_value *results, uint32_t n)
{
    ct_build_function_call(b, callee, arguments->values, arguments->n, type, results, n);
}

/* Calls the function that ct_texture_declare_functions has appended to the operands. */
static void call(struct ct_build *b, const struct arguments *arguments, enum ptx_type type, ct_value *results, uint32_t n)
{
    call_function(b, b->insn->operands[b->insn->n_operands - 1].function, arguments, type, results, n);
}

/* ---- arguments ---- */

static void add(struct arguments *arguments, ct_value value)
{
    if (arguments->n < MAX_ARGUMENTS)
        arguments->values[arguments->n++] = value;
}

static void add_operand(struct ct_build *b, struct arguments *arguments, const struct ptx_operand *operand, enum ptx_type type)
{
    add(arguments, ct_build_read(b, operand, type));
}

static void add_constant(struct ct_build *b, struct arguments *arguments, uint32_t value)
{
    add(arguments, ct_const32(&b->at, value));
}

/* Whether the operand is a single reference of the kind that the instruction accesses. */
static bool is_reference(const struct ct_build *b, const struct ptx_operand *operand)
{
    const enum ptx_opcode opcode = b->insn->opcode;
    const bool is_texture = opcode == PTX_OP_TEX || opcode == PTX_OP_TLD4 || opcode == PTX_OP_TXQ;

    if (opcode == PTX_OP_ISTYPEP)
        return operand->variable && operand->variable->reference && !operand->variable->is_array && !operand->offset;
    return operand->variable && operand->variable->reference == (is_texture ? PTX2SPV_TEXREF : PTX2SPV_SURFREF) &&
           !operand->variable->is_array && !operand->offset;
}

/* A reference, or a register with a handle. */
static bool add_handle(struct ct_build *b, struct arguments *arguments, const struct ptx_operand *operand)
{
    const struct ptx_operand handle = {.kind = PTX_OPND_REG, .where = operand->where, .reg = operand->reg, .component = operand->component};

    if (is_reference(b, operand)) {
        add(arguments, ct_build_handle(b, operand->variable, 0));
        return true;
    }
    if (operand->variable || !operand->reg) {
        ct_build_invalid(b, "neither a reference of the right kind nor a register with a handle is accessed");
        return false;
    }
    add_operand(b, arguments, &handle, PTX_U64);
    return true;
}

/* The operand [handle, {coordinates}], of which *out_items gets the coordinates. */
static const struct ptx_operand *coordinates_of(struct ct_build *b, const struct ct_texture_access *access, struct arguments *arguments,
                                                unsigned index)
{
    const struct ptx_operand *place = index < b->insn->n_operands ? &b->insn->operands[index] : NULL, *items;
    uint32_t n;

    if (!place || place->kind != PTX_OPND_LIST || place->n_items < 2) {
        ct_build_invalid(b, "an operand [object, coordinates] is missing");
        return NULL;
    }
    if (place->n_items > 2) {
        ct_build_unsupported(b, "a separate sampler");
        return NULL;
    }
    items = ct_build_parts(b, &place->items[1], PTX_B32, &n);
    if (n < access->geometry->coordinates + (unsigned)access->geometry->layered + access->geometry->multisample ||
        n > access->geometry->operands) {
        ct_build_invalid(b, "the vector of coordinates has the wrong length");
        return NULL;
    }
    return add_handle(b, arguments, &place->items[0]) ? items : NULL;
}

/* ---- textures ---- */

/* The operands after the coordinates: those of the mode, then those that are optional. */
static unsigned mode_operands(const struct ct_texture_access *access)
{
    return access->kind == CT_TEXTURE_GRAD ? 2
                                           : access->kind == CT_TEXTURE_LEVEL || (access->kind == CT_TEXTURE_TEXEL && access->has_level);
}

/* The number of operands without those that ct_texture_declare_functions has appended. */
static unsigned first_callee(const struct ct_build *b, const struct ct_texture_access *access)
{
    return b->insn->n_operands - 1 - ct_texture_has_halves(access) - (ct_texture_image_function_or_null(access) != NULL);
}

/* A value to compare with depths follows the offset, or stands alone as a scalar. It only has an effect on textures of depths (measured on
 * an H100); there are none here, since arrays with CUDA_ARRAY3D_DEPTH_TEXTURE are refused. */
static bool find_offset(struct ct_build *b, const struct ct_texture_access *access, const struct ptx_operand **out_or_null)
{
    const unsigned n = first_callee(b, access), first = 2 + mode_operands(access);
    const struct ptx_operand *next = n > first ? &b->insn->operands[first] : NULL;
    const bool has_offset = next && (next->kind == PTX_OPND_VECTOR || n == first + 2);
    const bool has_depth = n > first + has_offset, can_compare = access->kind != CT_TEXTURE_TEXEL && strcmp(access->geometry->word, "3d");

    if (n < first || n > first + 2 || (n == first + 2 && !has_offset) || (has_offset && !access->geometry->offsets) ||
        (has_depth && !can_compare)) {
        ct_build_invalid(b, "wrong operands after the coordinates");
        return false;
    }
    *out_or_null = has_offset ? next : NULL;
    return true;
}

/* Component i of an offset: a number from -8 to 7 in the lowest 4 bits, as NVIDIA's GPUs read it. */
static ct_value offset_component(struct ct_build *b, const struct ptx_operand *items, unsigned i)
{
    return items ? ct_sar_imm(&b->at, ct_shl_imm(&b->at, ct_build_read(b, &items[i], PTX_S32), 28), 28) : ct_const32(&b->at, 0);
}

/* The items of an offset; NULL without an offset, or after an error. */
static const struct ptx_operand *offset_items(struct ct_build *b, const struct ct_texture_access *access, const struct ptx_operand *offset)
{
    uint32_t n;
    const struct ptx_operand *items = offset ? ct_build_parts(b, offset, PTX_B32, &n) : NULL;

    if (!items || n >= access->geometry->offsets)
        return items;
    ct_build_invalid(b, "an offset has too few components");
    return NULL;
}

/* Adds the sample, the layer, the coordinates and the offset, which integer coordinates contain. */
static bool add_coordinates(struct ct_build *b, const struct ct_texture_access *access, const struct ptx_operand *offset,
                            struct arguments *arguments)
{
    const struct ptx_operand *items = coordinates_of(b, access, arguments, 1), *steps = offset_items(b, access, offset);
    const bool are_integers = access->kind == CT_TEXTURE_TEXEL;

    if (!items)
        return false;
    if (access->geometry->multisample)
        add_operand(b, arguments, items++, PTX_U32);
    if (access->geometry->layered)
        add_operand(b, arguments, items++, PTX_U32);
    for (unsigned i = 0; i < access->geometry->coordinates; i++)
        if (are_integers && steps)
            add(arguments, ct_add(&b->at, ct_build_read(b, &items[i], PTX_S32), offset_component(b, steps, i)));
        else
            add_operand(b, arguments, &items[i], are_integers ? PTX_S32 : PTX_F32);
    for (unsigned i = 0; !are_integers && i < access->geometry->offsets; i++)
        add(arguments, offset_component(b, steps, i));
    return true;
}

static bool add_derivative(struct ct_build *b, const struct ct_texture_access *access, struct arguments *arguments, unsigned index)
{
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, &b->insn->operands[index], PTX_F32, &n);

    if (n < access->geometry->derivatives) {
        ct_build_invalid(b, "a derivative has too few components");
        return false;
    }
    for (unsigned i = 0; i < access->geometry->derivatives; i++)
        add_operand(b, arguments, &items[i], PTX_F32);
    return true;
}

static bool add_modes(struct ct_build *b, const struct ct_texture_access *access, struct arguments *arguments)
{
    if (access->kind == CT_TEXTURE_GATHER)
        add_constant(b, arguments, access->channel);
    if (access->kind == CT_TEXTURE_LEVEL)
        add_operand(b, arguments, &b->insn->operands[2], PTX_F32);
    if (access->kind == CT_TEXTURE_TEXEL && access->has_level)
        add_operand(b, arguments, &b->insn->operands[2], PTX_S32);
    if (access->kind == CT_TEXTURE_TEXEL && !access->has_level)
        add_constant(b, arguments, 0);
    if (access->kind == CT_TEXTURE_TEXEL)
        add_constant(b, arguments, access->has_level); /* enum outside of fetch.cu */
    for (unsigned i = 0; access->kind == CT_TEXTURE_GRAD && i < 2; i++)
        if (!add_derivative(b, access, arguments, 2 + i))
            return false;
    return true;
}

/* Converts the channels to halves, in registers of their own or two in each. Returns the number of registers. */
static uint32_t convert_to_halves(struct ct_build *b, const struct ct_texture_access *access, ct_value *channels)
{
    const uint32_t n = access->type == PTX_F16 ? 4 : 2;
    struct arguments arguments = {0};

    for (unsigned i = 0; i < 4; i++)
        add(&arguments, channels[i]);
    call_function(b, b->insn->operands[first_callee(b, access)].function, &arguments, PTX_B32, channels, n);
    for (unsigned i = 0; access->type == PTX_F16 && i < n; i++)
        channels[i] = ct_resize(&b->at, channels[i], PTX_B32, CT_W_16);
    return n;
}

/* The destination is a vector, or vector|p, where p says whether the texels have memory. */
static void write_channels(struct ct_build *b, const struct ct_texture_access *access, ct_value *channels)
{
    const struct ptx_operand *to = &b->insn->operands[0];
    const struct ptx_operand *vector = to->kind == PTX_OPND_PAIR ? &to->items[0] : to;
    const enum ptx_type type = access->type == PTX_F16 ? PTX_B16 : PTX_B32;
    const uint32_t n_results = ct_texture_has_halves(access) ? convert_to_halves(b, access, channels) : 4;
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, vector, type, &n);

    if (n != n_results) {
        ct_build_invalid(b, "the destination has the wrong length");
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        ct_build_write(b, &items[i], channels[i], type);
    if (to->kind == PTX_OPND_PAIR)
        ct_build_write(b, &to->items[1], ct_emit_const(&b->at, CT_W_PRED, 1), PTX_PRED);
}

/* A fetch from an image, or by the function: the handle says which. */
static void sample_or_call(struct ct_build *b, const struct ct_texture_access *access, const struct arguments *arguments,
                           ct_value *channels)
{
    const struct ct_image_fetch fetch = {
        .access = access,
        .function = ct_texture_image_function_or_null(access) ? b->insn->operands[b->insn->n_operands - 2].function : NULL,
        .arguments = arguments->values,
        .channels = channels};
    struct ct_block *code = ct_build_block(b), *after = ct_build_block(b);
    ct_value fetched[4];

    for (unsigned i = 0; i < 4; i++)
        channels[i] = ct_value_create(b->fn, CT_W_32);
    ct_build_image_fetch(b, &fetch, code);
    ct_build_jump(b, after);
    ct_build_enter(b, code);
    call(b, arguments, PTX_B32, fetched, 4);
    for (unsigned i = 0; i < 4; i++)
        ct_assign(&b->at, channels[i], fetched[i]);
    ct_build_jump(b, after);
    ct_build_enter(b, after);
}

static void build_fetch(struct ct_build *b, const struct ct_texture_access *access)
{
    struct arguments arguments = {0};
    const struct ptx_operand *offset;
    ct_value channels[4];

    if (!find_offset(b, access, &offset) || !add_coordinates(b, access, offset, &arguments) || !add_modes(b, access, &arguments))
        return;
    if (b->fn->target->sampled_images && access->kind <= CT_TEXTURE_GRAD && !offset)
        sample_or_call(b, access, &arguments, channels);
    else
        call(b, &arguments, PTX_B32, channels, 4);
    write_channels(b, access, channels);
}

static void build_query(struct ct_build *b, const struct ct_texture_access *access)
{
    const unsigned n = b->insn->n_operands - 1;
    struct arguments arguments = {0};
    ct_value result;

    if (n != 2u + access->has_level) {
        ct_build_invalid(b, "wrong number of operands");
        return;
    }
    if (!add_handle(b, &arguments, &b->insn->operands[1]))
        return;
    add_constant(b, &arguments, access->query);
    if (access->has_level)
        add_operand(b, &arguments, &b->insn->operands[2], PTX_U32);
    else
        add_constant(b, &arguments, 0);
    call(b, &arguments, PTX_B32, &result, 1);
    if (access->is_type)
        ct_build_result(b, ct_icmp_imm(&b->at, PTX_U32, PTX_NE, result, 0), PTX_PRED);
    else
        ct_build_result(b, result, PTX_B32);
}

/* ---- surfaces ---- */

/* The handle, and x, y, z: layers are planes of a volume. */
static bool add_surface_place(struct ct_build *b, const struct ct_texture_access *access, struct arguments *arguments, unsigned index)
{
    const struct ptx_operand *items = coordinates_of(b, access, arguments, index), *layer;

    if (!items)
        return false;
    layer = access->geometry->layered ? items++ : NULL;
    for (unsigned i = 0; i < 2; i++)
        if (i < access->geometry->coordinates)
            add_operand(b, arguments, &items[i], PTX_S32);
        else
            add_constant(b, arguments, 0);
    if (layer)
        add_operand(b, arguments, layer, PTX_S32);
    else if (access->geometry->coordinates > 2)
        add_operand(b, arguments, &items[2], PTX_S32);
    else
        add_constant(b, arguments, 0);
    return true;
}

/* The address of the elements; false after an error. */
static bool find_elements(struct ct_build *b, const struct ct_texture_access *access, unsigned index, ct_value *out)
{
    struct arguments arguments = {0};

    if (!add_surface_place(b, access, &arguments, index))
        return false;
    add_constant(b, &arguments, access->vector * ptx_type_bits(access->type) / 8);
    add_constant(b, &arguments, access->boundary);
    call(b, &arguments, PTX_B64, out, 1);
    return true;
}

static void init_access(struct ct_insn *insn, const struct ct_texture_access *access, ct_value address)
{
    insn->space = CT_SPACE_GLOBAL;
    insn->align_log2 = (uint8_t)__builtin_ctz(access->vector * ptx_type_bits(access->type) / 8);
    insn->operands[0] = address;
}

static const struct ptx_operand *elements_of(struct ct_build *b, const struct ct_texture_access *access, unsigned index)
{
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, &b->insn->operands[index], access->type, &n);

    if (n == access->vector)
        return items;
    ct_build_invalid(b, "the vector has the wrong length");
    return NULL;
}

static void emit_load(struct ct_build *b, const struct ct_texture_access *access, const struct ptx_operand *items, ct_value address)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_LOAD, access->type, access->vector, 1);
    ct_value values[4];

    init_access(insn, access, address);
    for (unsigned i = 0; i < access->vector; i++)
        insn->results[i] = values[i] = ct_value_create(b->fn, ct_build_width(b, &items[i], access->type));
    for (unsigned i = 0; i < access->vector; i++)
        ct_build_write(b, &items[i], values[i], access->type);
}

static void emit_store(struct ct_build *b, const struct ct_texture_access *access, const struct ptx_operand *items, ct_value address)
{
    struct ct_insn *insn;
    ct_value values[4];

    for (unsigned i = 0; i < access->vector; i++)
        values[i] = ct_build_read(b, &items[i], ct_bits_type(ct_build_width(b, &items[i], access->type)));
    insn = ct_emit_insn(&b->at, CT_OP_STORE, access->type, 0, access->vector + 1u);
    init_access(insn, access, address);
    for (unsigned i = 0; i < access->vector; i++)
        insn->operands[i + 1] = values[i];
}

static void emit_reduction(struct ct_build *b, const struct ct_texture_access *access, const struct ptx_operand *items, ct_value address)
{
    const ct_value value = ct_build_read(b, &items[0], access->type);
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_ATOM, access->type, 0, 2);

    init_access(insn, access, address);
    insn->operation = access->operation;
    insn->semantics = PTX_RELAXED;
    insn->scope = PTX_GPU;
    insn->operands[1] = value;
}

/* suld.b d, [place]; sust.b, sured.b [place], d: the access is executed where the surface has such elements. */
static void build_elements(struct ct_build *b, const struct ct_texture_access *access)
{
    static void (*const emitters[])(struct ct_build *, const struct ct_texture_access *, const struct ptx_operand *, ct_value) = {
        [CT_SURFACE_LOAD] = emit_load, [CT_SURFACE_STORE] = emit_store, [CT_SURFACE_REDUCE] = emit_reduction};
    const bool loads = access->kind == CT_SURFACE_LOAD;
    const struct ptx_operand *items;
    struct ct_block *inside, *after;
    ct_value address;

    if (b->insn->n_operands != 3) {
        ct_build_invalid(b, "wrong number of operands");
        return;
    }
    if (!find_elements(b, access, loads ? 1 : 0, &address) || !(items = elements_of(b, access, loads ? 0 : 1)))
        return;
    for (unsigned i = 0; loads && i < access->vector; i++)
        ct_build_write(b, &items[i], ct_emit_const(&b->at, ct_width_of(access->type), 0), access->type);
    inside = ct_build_block(b);
    after = ct_build_block(b);
    ct_build_branch(b, ct_equals(&b->at, address, 0), after, inside);
    ct_build_enter(b, inside);
    emitters[access->kind](b, access, items, address);
    ct_build_jump(b, after);
    ct_build_enter(b, after);
}

/* sust.p [place], d: missing components are 0. */
static void build_format_store(struct ct_build *b, const struct ct_texture_access *access)
{
    struct arguments arguments = {0};
    const struct ptx_operand *items;

    if (ptx_type_bits(access->type) != 32 || b->insn->n_operands != 3) {
        ct_build_invalid(b, "components have 32 bits");
        return;
    }
    if (!add_surface_place(b, access, &arguments, 0) || !(items = elements_of(b, access, 1)))
        return;
    add_constant(b, &arguments, access->boundary);
    for (unsigned i = 0; i < 4; i++)
        if (i < access->vector)
            add_operand(b, &arguments, &items[i], PTX_B32);
        else
            add_constant(b, &arguments, 0);
    call(b, &arguments, PTX_B32, NULL, 0);
}

void ct_build_texture(struct ct_build *b)
{
    static void (*const builders[])(struct ct_build *, const struct ct_texture_access *) = {
        [CT_TEXTURE_BASE] = build_fetch,      [CT_TEXTURE_LEVEL] = build_fetch,    [CT_TEXTURE_GRAD] = build_fetch,
        [CT_TEXTURE_TEXEL] = build_fetch,     [CT_TEXTURE_GATHER] = build_fetch,   [CT_TEXTURE_QUERY] = build_query,
        [CT_SURFACE_LOAD] = build_elements,   [CT_SURFACE_STORE] = build_elements, [CT_SURFACE_FORMAT] = build_format_store,
        [CT_SURFACE_REDUCE] = build_elements,
    };
    struct ct_texture_access access;

    if (!ct_texture_access_read(b->insn, &access)) {
        ct_build_unsupported(b, NULL);
        return;
    }
    builders[access.kind](b, &access);
}
