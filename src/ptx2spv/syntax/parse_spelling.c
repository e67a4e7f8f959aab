/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes an opcode with all its modifiers and types, given as one text ("ld.global.nc.v4.f32"). A module has few distinct texts and
 * many uses of each, so each text is decoded and checked against opcodes.def once, and the result is kept with its name. */
#include "parse.h"

#include <stddef.h>
#include <string.h>

struct modifier_row {
    const char *word;
    uint8_t class, value;
};

static const struct modifier_row modifier_rows[] = {
#define PTX_MODIFIER(word, class, value) {word, PTX_CLASS_##class, value},
#include "modifiers.def"
};
#define N_ROWS (sizeof modifier_rows / sizeof modifier_rows[0])

/* The offset of a class's member in struct ptx_modifiers; all members have one byte. `ignored` and `unsupported` are not stored. */
#define ignored unsupported
static const uint8_t class_offsets[PTX_CLASS_COUNT] = {
#define PTX_MODIFIER_CLASS(id, member) [PTX_CLASS_##id] = offsetof(struct ptx_modifiers, member),
#include "modifiers.def"
};
#undef ignored
_Static_assert(sizeof(bool) == 1, "modifiers are stored through bytes");

static bool is_stored(unsigned class)
{
    return class_offsets[class] != offsetof(struct ptx_modifiers, unsupported);
}

static const uint64_t unsupported_classes = M(UNSUPPORTED);

/* The row of a word with a class among `legal`; if there is none, any row of the word; NULL if no opcode has such a word. */
static const struct modifier_row *find_row(const char *word, size_t length, uint64_t legal)
{
    const struct modifier_row *other = NULL;

    for (size_t i = 0; i < N_ROWS; i++) {
        const struct modifier_row *row = &modifier_rows[i];

        if (strncmp(row->word, word, length) != 0 || row->word[length])
            continue;
        if (legal & UINT64_C(1) << row->class)
            return row;
        other = row;
    }
    return other;
}

static bool spelling_fail(struct ptx_spelling *spelling, const char *error, uint32_t at, uint32_t length)
{
    spelling->error = error;
    spelling->at = at;
    spelling->length = length;
    return false;
}

/* Stores a modifier. Each class may occur once; bar.warp.sync has a second mode. */
static bool store(struct ptx_spelling *spelling, const struct modifier_row *row)
{
    uint8_t *member = (uint8_t *)&spelling->mods + class_offsets[row->class];

    spelling->classes |= UINT64_C(1) << row->class;
    if (!is_stored(row->class))
        return true;
    if (*member && row->class == PTX_CLASS_BAR_MODE)
        member = &spelling->mods.mode2;
    if (*member && row->class == PTX_CLASS_BAR_WARP) { /* bar.sync.warp: the order of old versions */
        spelling->mods.mode2 = *member;
        *member = 0;
    }
    if (*member)
        return false;
    *member = row->value;
    return true;
}

static bool add_type(struct ptx_spelling *spelling, enum ptx_type type, unsigned index, uint32_t at, uint32_t length)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[spelling->opcode];
    const bool loose = info->modifiers & M_LOOSE;
    const unsigned n = spelling->n_types;

    if (n == 4)
        return loose || spelling_fail(spelling, "too many types", at, length);
    if (!loose && (n >= 3 || !(info->types[n] & 1u << type)))
        return spelling_fail(spelling, "this type is not legal for the instruction", at, length);
    if (!loose && (info->types[n] & T_UNSUPPORTED))
        spelling->mods.unsupported = (uint8_t)(index + 1);
    spelling->types[spelling->n_types++] = type;
    return true;
}

static bool add_modifier(struct ptx_spelling *spelling, const char *word, unsigned index, uint32_t at, uint32_t length)
{
    const uint64_t legal = ptx_opcode_infos[spelling->opcode].modifiers;
    const struct modifier_row *row = find_row(word, length, legal);

    if (legal & M_WORDS) {
        if (row && legal & UINT64_C(1) << row->class)
            store(spelling, row);
        return true;
    }
    if (legal & M_LOOSE) {
        if (!row || (unsupported_classes & UINT64_C(1) << row->class))
            spelling->mods.unsupported = (uint8_t)(index + 1);
        else
            store(spelling, row);
        return true;
    }
    if (!row)
        return spelling_fail(spelling, "unknown modifier", at, length + 1);
    if (!(legal & UINT64_C(1) << row->class))
        return spelling_fail(spelling, "this modifier is not legal for the instruction", at, length + 1);
    if (unsupported_classes & UINT64_C(1) << row->class)
        spelling->mods.unsupported = (uint8_t)(index + 1);
    if (!store(spelling, row))
        return spelling_fail(spelling, "a second modifier of the same kind", at, length + 1);
    return true;
}

struct restriction {
    uint8_t opcode, class, value;
    uint32_t types;
};

static const struct restriction restrictions[] = {
#define PTX_RESTRICTION(opcode, class, value, types) {PTX_OP_##opcode, PTX_CLASS_##class, value, types},
#include "restrictions.def"
};

/* A vector load or store moves at most 128 bits, or 256 since sm_100. Elements have at most 64 bits. */
static bool check_vector(struct ptx_spelling *spelling, uint32_t length)
{
    const unsigned bits = ptx_type_bits(spelling->types[0]);

    if (spelling->mods.vector && (spelling->mods.vector * bits > 256 || bits > 64))
        return spelling_fail(spelling, "the vector is too large", 0, length);
    if (spelling->opcode != PTX_OP_PREFETCH && spelling->classes & M(EVICT_L2) && spelling->mods.vector * bits != 256)
        return spelling_fail(spelling, "an L2 eviction priority requires an access of 256 bits", 0, length);
    return true;
}

static bool check_restrictions(struct ptx_spelling *spelling, uint32_t length)
{
    const uint32_t type = spelling->n_types ? 1u << spelling->types[spelling->n_types - 1] : 0;

    for (size_t i = 0; i < sizeof restrictions / sizeof restrictions[0]; i++) {
        const struct restriction *row = &restrictions[i];
        const uint8_t member = ((const uint8_t *)&spelling->mods)[class_offsets[row->class]];

        if (row->opcode == spelling->opcode && (row->value ? member == row->value : member != 0) && !(row->types & type))
            return spelling_fail(spelling, "this modifier is not legal for the type", 0, length);
    }
    return true;
}

/* Whether the range of integer type `to` includes that of `from`. Then .sat has no effect, and is an error. */
static bool range_includes(enum ptx_type to, enum ptx_type from)
{
    const unsigned to_bits = ptx_type_bits(to), from_bits = ptx_type_bits(from);

    if (ptx_type_is_signed(to) == ptx_type_is_signed(from))
        return to_bits >= from_bits;
    return ptx_type_is_signed(to) && to_bits > from_bits;
}

/* cvt.pack.sat.{u16,s16}.s32, or .{u8,s8,u4,s4,u2,s2}.s32.b32. */
static const char *packing_error(const struct ptx_spelling *spelling)
{
    const enum ptx_type *types = spelling->types;
    const bool is_short = !spelling->mods.mode2 && (1u << types[0] & T_I16), is_other = spelling->mods.mode2;
    const unsigned n_wanted = is_short ? 2 : is_other ? 2 : 3, first = is_other ? 0 : 1;

    if (!spelling->mods.sat)
        return ".sat is missing";
    if (spelling->classes & ~(M(PACK) | M(PACK_TYPE) | M_SAT))
        return "this modifier is not legal for cvt.pack";
    if (spelling->n_types != n_wanted || types[first] != PTX_S32 || (!is_short && types[first + 1] != PTX_B32) ||
        (!is_short && !is_other && !(1u << types[0] & T_INT8)))
        return "these types are not legal for cvt.pack";
    return NULL;
}

/* Conversions with a packed or alternate type: the legal roundings, whether .relu and .satfinite are legal, and whether .satfinite is
 * required. */
struct alternate {
    uint32_t to, from;
    uint16_t roundings;
    bool relu, satfinite, must_be_finite;
};

#define R(rounding) (1u << PTX_##rounding)
static const struct alternate alternates[] = {
    {T(F16X2) | T(BF16X2), T_F32, R(RN) | R(RZ), true, true, false},
    {T(F16X2) | T(BF16X2), T_F32, R(RS), true, true, false},
    {T(TF32), T_F32, R(RN) | R(RZ), true, true, false},
    {T(TF32), T_F32, R(RNA), false, true, false},
    {T(E4M3X2) | T(E5M2X2), T_F32 | T(F16X2), R(RN), true, true, true},
    {T(F16X2), T(E4M3X2) | T(E5M2X2), R(RN), true, false, false},
};

static const char *alternate_error(const struct ptx_spelling *spelling)
{
    const struct ptx_modifiers *mods = &spelling->mods;
    bool is_pair = false;

    for (size_t i = 0; i < sizeof alternates / sizeof alternates[0]; i++) {
        const struct alternate *row = &alternates[i];

        if (!(row->to >> spelling->types[0] & 1) || !(row->from >> spelling->types[1] & 1))
            continue;
        is_pair = true;
        if (!(row->roundings >> mods->rounding & 1))
            continue;
        if (mods->ftz || mods->sat || (mods->relu && !row->relu) || (mods->satfinite && !row->satfinite))
            return "a modifier that does not apply to these types";
        return row->must_be_finite && !mods->satfinite ? ".satfinite is missing" : NULL;
    }
    return !is_pair         ? "there is no conversion between these types"
           : mods->rounding ? "this rounding does not apply to these types"
                            : "a rounding modifier is missing";
}
#undef R

/* cvt between integers, f16, bf16, f32 and f64: the rounding modifiers that it requires or allows. */
static const char *rounding_error(const struct ptx_spelling *spelling)
{
    const enum ptx_type to = spelling->types[0], from = spelling->types[1];
    const bool to_float = ptx_type_is_float(to), from_float = ptx_type_is_float(from);
    const bool narrows = to_float && from_float && ptx_type_bits(to) < ptx_type_bits(from);
    const unsigned rounding = spelling->mods.rounding;
    const bool to_integral = rounding >= PTX_RNI && rounding <= PTX_RPI, to_nearest = rounding >= PTX_RN && rounding <= PTX_RP;

    if (to_float && !from_float)
        return to_nearest ? NULL : "a conversion from integer to floating point needs .rn, .rz, .rm or .rp";
    if (!to_float && from_float)
        return to_integral ? NULL : "a conversion from floating point to integer needs .rni, .rzi, .rmi or .rpi";
    if (narrows || (to_float && from_float && to != from && (to == PTX_BF16 || from == PTX_BF16)))
        return to_nearest || (!narrows && !rounding) ? NULL : "this conversion needs .rn, .rz, .rm or .rp";
    if (rounding && (to != from || !to_float || !to_integral))
        return "a rounding modifier where nothing is rounded";
    return NULL;
}

/* cvt (PTX ISA, "Data Movement and Conversion Instructions: cvt"): the legal pairs of types, and their modifiers. */
static const char *conversion_error(const struct ptx_spelling *spelling)
{
    const enum ptx_type to = spelling->types[0], from = spelling->types[1];
    const uint32_t numbers = T_INT8 | T_INT | T_F32 | T_F64 | T(F16) | T(BF16);
    const struct ptx_modifiers *mods = &spelling->mods;
    const bool is_short = (to == PTX_F16 || to == PTX_BF16) && from == PTX_F32;

    if (spelling->n_types > 2)
        return "too many types";
    if (!(numbers >> to & 1) || !(numbers >> from & 1))
        return alternate_error(spelling);
    if ((to == PTX_BF16 && T_INT8 >> from & 1) || (from == PTX_BF16 && T_INT8 >> to & 1))
        return "there is no conversion between these types";
    if (mods->ftz && from != PTX_F32 && to != PTX_F32)
        return ".ftz needs type .f32";
    if (mods->sat &&
        (to == PTX_BF16 || from == PTX_BF16 || (!ptx_type_is_float(to) && !ptx_type_is_float(from) && range_includes(to, from))))
        return ".sat does not apply to these types";
    if ((mods->relu || mods->satfinite) && (!is_short || mods->sat || mods->ftz || (mods->rounding != PTX_RN && mods->rounding != PTX_RZ)))
        return ".relu and .satfinite do not apply to this conversion";
    return rounding_error(spelling);
}

static bool is_half(enum ptx_type type)
{
    return T_HALF >> type & 1;
}

/* Cache operators, eviction priorities and .cv exclude each other; loads from .const accept few of them. */
static const char *cache_error(const struct ptx_spelling *spelling)
{
    const uint64_t operators = M(CACHE_LOAD) | M(CACHE_STORE) | M(CACHE_LEVEL), priorities = M(EVICT) | M(EVICT_L2);
    const bool is_operated = spelling->classes & operators, has_priority = spelling->classes & priorities;
    const bool is_const = spelling->opcode == PTX_OP_LD && spelling->mods.space == PTX_SPACE_CONST;

    if ((is_operated && has_priority) || (spelling->classes & M(CV) && (is_operated || has_priority)))
        return "mutually exclusive modifiers";
    if (is_const && (spelling->mods.semantics > PTX_WEAK || has_priority || spelling->classes & M(FETCH_SIZE)))
        return "this modifier does not apply to .const";
    return NULL;
}

/* Rules that the tables cannot express: modifiers that require or exclude others. */
static const char *combination_error(const struct ptx_spelling *spelling)
{
    const struct ptx_modifiers *mods = &spelling->mods;
    const enum ptx_type type = spelling->types[0];
    const char *no_scope = "a scope is missing", *exclusive = "mutually exclusive modifiers";

    switch ((unsigned)spelling->opcode) {
    case PTX_OP_DIV:
    case PTX_OP_SQRT:
    case PTX_OP_RCP:
        if (spelling->opcode == PTX_OP_RCP && type == PTX_F64 && mods->approx && !mods->ftz)
            return ".ftz is missing";
        return (mods->approx || mods->full) && (mods->rounding || (mods->approx && mods->full)) ? exclusive : NULL;
    case PTX_OP_EX2:
        return (type == PTX_BF16 || type == PTX_BF16X2) && !mods->ftz ? ".ftz is missing" : NULL;
    case PTX_OP_MAD:
        return mods->sat && type == PTX_S32 && (mods->half != PTX_HI_HALF || mods->cc) ? ".sat needs .hi and excludes .cc" : NULL;
    case PTX_OP_MAD24:
        return mods->sat && mods->half != PTX_HI_HALF ? ".sat needs .hi" : NULL;
    case PTX_OP_ADD:
    case PTX_OP_SUB:
        return mods->sat && mods->cc ? exclusive : NULL;
    case PTX_OP_FMA:
        return mods->sat && mods->relu ? exclusive : NULL;
    case PTX_OP_SET:
        return (1u << type & (T_I16 | T(F16X2) | T(BF16X2))) && !is_half(spelling->types[1]) ? "these types cannot be combined" : NULL;
    case PTX_OP_ATOM:
    case PTX_OP_RED:
        if (mods->vector && (mods->vector * ptx_type_bits(type) > 128 || (mods->space && mods->space != PTX_SPACE_GLOBAL)))
            return "vectors have at most 128 bits and must be in global memory";
        return is_half(type) && mods->operation != PTX_ADD && !mods->vector ? ".v2, .v4 or .v8 is missing" : NULL;
    case PTX_OP_FENCE:
        return mods->mode != PTX_MODE_PROXY && !mods->scope ? no_scope : NULL;
    case PTX_OP_MEMBAR:
        return mods->mode == PTX_MODE_PROXY || !(spelling->classes & M(GL)) != !(spelling->classes & M_SCOPE) ? NULL : no_scope;
    case PTX_OP_LDU:
        return mods->vector * ptx_type_bits(type) > 128 ? "the vector is too large" : NULL;
    case PTX_OP_LD:
    case PTX_OP_ST:
    case PTX_OP_PREFETCH:
        return cache_error(spelling);
    case PTX_OP_MATCH:
        return mods->mode != PTX_MODE_ALL && mods->mode != PTX_MODE_ANY ? ".all or .any is missing"
               : mods->sync                                             ? NULL
                                                                        : ".sync is missing";
    case PTX_OP_REDUX:
    case PTX_OP_ELECT:
        return mods->sync ? NULL : ".sync is missing";
    default:
        return NULL;
    }
}

static const char *proxy_error(const struct ptx_spelling *spelling)
{
    const bool has_kind = spelling->classes & M(PROXY_KIND), has_proxy = spelling->mods.mode == PTX_MODE_PROXY;
    const bool fences = spelling->opcode == PTX_OP_FENCE || spelling->opcode == PTX_OP_MEMBAR;

    if (fences && has_kind != has_proxy)
        return has_proxy ? "the proxy kind is missing" : ".proxy is missing";
    return NULL;
}

/* ld, st, atom and red (PTX ISA, "Memory Consistency Model"): an ordered access requires a scope. */
static const char *order_error(const struct ptx_spelling *spelling)
{
    const struct ptx_modifiers *mods = &spelling->mods;
    const bool is_plain = spelling->opcode == PTX_OP_LD || spelling->opcode == PTX_OP_ST;
    const bool is_ordered = mods->semantics > PTX_VOLATILE;

    if (mods->mmio && (mods->semantics != PTX_RELAXED || mods->scope != PTX_SYS))
        return ".mmio needs .relaxed and .sys";
    if (mods->nc && (mods->space != PTX_SPACE_GLOBAL || mods->semantics > PTX_WEAK))
        return ".nc needs .global and a weak access";
    if (is_plain && is_ordered != (mods->scope != PTX_SCOPE_NONE))
        return is_ordered ? "a scope is missing" : "a scope without a memory ordering";
    return NULL;
}

/* ---- old versions ---- */

static bool last_type_is(const struct ptx_spelling *spelling, enum ptx_type type)
{
    return spelling->n_types && spelling->types[spelling->n_types - 1] == type;
}

/* PTX ISA 1.0 to 1.3 has neither .approx nor rounding modifiers of f64 division, but implies them: "div.f32 defaults to
 * div.approx.ftz.f32 and div.f64 to div.rn.f64". mad.f32 has no rounding modifier up to 3.1. */
static bool has_default(const struct ptx_parser *p, const struct ptx_spelling *spelling)
{
    if (spelling->opcode == PTX_OP_MAD && (last_type_is(spelling, PTX_F32) || last_type_is(spelling, PTX_F64)))
        return p->module->isa_version <= (last_type_is(spelling, PTX_F32) ? 31 : 13);
    return p->module->isa_version < 14 && spelling->opcode != PTX_OP_CVT &&
           (last_type_is(spelling, PTX_F32) || last_type_is(spelling, PTX_F64)) &&
           !(ptx_opcode_infos[spelling->opcode].required & ~(M_RND | M_APPROX | M_FULL));
}

static void set_default(struct ptx_spelling *spelling)
{
    const bool approximates = last_type_is(spelling, PTX_F32) && spelling->opcode != PTX_OP_MAD;

    if (approximates || !(ptx_opcode_infos[spelling->opcode].modifiers & M_RND))
        spelling->mods.approx = true;
    else
        spelling->mods.rounding = PTX_RN;
}

/* Targets below sm_20 have no f32 subnormals: every instruction for which .ftz is legal flushes them. cvt between f32 and f64 does so
 * only since PTX ISA 1.5, cvt with f16 never. */
static bool flushes_always(const struct ptx_parser *p, const struct ptx_spelling *spelling)
{
    if (p->module->sm >= 20 || !(ptx_opcode_infos[spelling->opcode].modifiers & M_FTZ))
        return false;
    if (spelling->opcode != PTX_OP_CVT)
        return last_type_is(spelling, PTX_F32);
    if (spelling->types[0] == PTX_F16 || spelling->types[1] == PTX_F16 || (spelling->types[0] != PTX_F32 && spelling->types[1] != PTX_F32))
        return false;
    return p->module->isa_version >= 15 || (spelling->types[0] != PTX_F64 && spelling->types[1] != PTX_F64);
}

/* Checks the instruction as a whole: required types, required modifiers, modifiers that do not match the types. */
static bool check_instruction_spelling(const struct ptx_parser *p, struct ptx_spelling *spelling, uint32_t length)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[spelling->opcode];
    uint64_t required = info->required, wrong = 0;
    bool is_float = false;

    if (info->modifiers & M_LOOSE || spelling->mods.unsupported)
        return true;
    for (unsigned i = 0; i < 3; i++)
        if (info->types[i] && !(info->types[i] & T_OPT) && i >= spelling->n_types)
            return spelling_fail(spelling, "a type is missing", 0, length);
    for (unsigned i = 0; i < spelling->n_types; i++)
        is_float |= ptx_type_is_float(spelling->types[i]);
    if (spelling->n_types) {
        wrong = is_float ? M_INTEGER_ONLY : M_FLOAT_ONLY;
        required &= ~wrong;
    }
    if (spelling->classes & wrong)
        return spelling_fail(spelling,
                             is_float ? "a modifier of integer instructions with a floating point type"
                                      : "a modifier of floating point instructions with an integer type",
                             0, length);
    if (required && !(spelling->classes & required)) {
        if (!has_default(p, spelling))
            return spelling_fail(spelling, "a modifier is missing", 0, length);
        set_default(spelling);
    }
    if (spelling->mods.mode == PTX_MODE_PACK && packing_error(spelling))
        return spelling_fail(spelling, packing_error(spelling), 0, length);
    if (spelling->opcode == PTX_OP_CVT && spelling->mods.mode != PTX_MODE_PACK && conversion_error(spelling))
        return spelling_fail(spelling, conversion_error(spelling), 0, length);
    if (order_error(spelling))
        return spelling_fail(spelling, order_error(spelling), 0, length);
    if (combination_error(spelling))
        return spelling_fail(spelling, combination_error(spelling), 0, length);
    if (proxy_error(spelling))
        return spelling_fail(spelling, proxy_error(spelling), 0, length);
    if (!check_vector(spelling, length) || !check_restrictions(spelling, length))
        return false;
    if (spelling->mods.mmio)
        spelling->mods.semantics = PTX_MMIO;
    if (spelling->classes & M(CV))
        spelling->mods.semantics = PTX_VOLATILE;
    spelling->mods.ftz |= flushes_always(p, spelling);
    return true;
}

static void decode(struct ptx_parser *p, struct ptx_spelling *spelling, const struct ptx_name *text)
{
    uint32_t at = (uint32_t)strcspn(text->text, ".");
    const struct ptx_name *opcode = ptx_names_find(p->names, text->text, at);

    spelling->opcode = (enum ptx_opcode)opcode->opcode;
    if (!spelling->opcode) {
        spelling_fail(spelling, "unknown instruction", 0, at);
        return;
    }
    for (unsigned index = 1; at < text->length; index++) {
        const char *word = text->text + at + 1;
        const uint32_t length = (uint32_t)strcspn(word, ".");
        const struct ptx_name *name = ptx_names_find(p->names, word, length);

        if (index > 250) {
            spelling_fail(spelling, "too many modifiers", at, length + 1);
            return;
        }
        if (!(name->type ? add_type(spelling, (enum ptx_type)name->type, index, at, length + 1)
                         : add_modifier(spelling, word, index, at, length)))
            return;
        at += length + 1;
    }
    check_instruction_spelling(p, spelling, text->length);
}

struct ptx_spelling *ptx_decode_spelling(struct ptx_parser *p, struct ptx_name *text)
{
    if (!text->spelling) {
        text->spelling = CT_ARENA_NEW(p->names->arena, struct ptx_spelling);
        decode(p, text->spelling, text);
    }
    return text->spelling;
}
