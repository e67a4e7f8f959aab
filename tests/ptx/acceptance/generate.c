/* SPDX-License-Identifier: Apache-2.0 */
/* Writes snippets of PTX, generated from opcodes.def and modifiers.def, which ptxas then judges (README.md). Every row of the table of
 * opcodes is varied in one dimension at a time: types, modifiers, operands, vector widths, state spaces, and versions of the ISA and of the
 * target. handwritten.txt covers what the tables do not describe (patterns of "...", declarations).
 *
 * Snippets that both ptxas and the compiler should reject are as important as those that both should accept: all modifiers and types are
 * tried where at least one neighbour is legal. The output has no duplicates within a section. */
#include "ptx2spv/syntax/opcodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 512, MAX_WORDS = 12, N_BUCKETS = 1 << 16 };

struct word {
    const char *text;
    unsigned class, value;
};

#define ignored unsupported
static const struct word words[] = {
#define PTX_MODIFIER(word, class, value) {word, PTX_CLASS_##class, value},
#include "ptx2spv/syntax/modifiers.def"
};
#undef ignored
enum { N_ALL_WORDS = sizeof words / sizeof words[0] };

/* ---- the output, without duplicates ---- */

static char *seen[N_BUCKETS];
static unsigned n_written;

static void begin_section(const char *head)
{
    printf("= %s\n", head);
    for (unsigned i = 0; i < N_BUCKETS; i++) {
        free(seen[i]);
        seen[i] = NULL;
    }
}

static void put(const char *text)
{
    unsigned hash = 2166136261u;

    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (hash %= N_BUCKETS; seen[hash]; hash = (hash + 1) % N_BUCKETS)
        if (!strcmp(seen[hash], text))
            return;
    seen[hash] = strdup(text);
    n_written++;
    puts(text);
}

/* Appends to a string of MAX_TEXT characters. */
static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, MAX_TEXT - used, format, arguments);
    va_end(arguments);
}

/* ---- registers ---- */

static const char *register_stem(enum ptx_type type)
{
    static const char *const stems[PTX_TYPE_COUNT] = {
        [PTX_PRED] = "%p",   [PTX_B8] = "%h",     [PTX_B16] = "%h",   [PTX_B32] = "%r",   [PTX_B64] = "%q",   [PTX_B128] = "%x",
        [PTX_U8] = "%hu",    [PTX_U16] = "%hu",   [PTX_U32] = "%u",   [PTX_U64] = "%qu",  [PTX_S8] = "%hs",   [PTX_S16] = "%hs",
        [PTX_S32] = "%s",    [PTX_S64] = "%qs",   [PTX_F16] = "%h",   [PTX_F16X2] = "%r", [PTX_BF16] = "%h",  [PTX_BF16X2] = "%r",
        [PTX_TF32] = "%r",   [PTX_F32] = "%f",    [PTX_F32X2] = "%q", [PTX_F64] = "%d",   [PTX_U16X2] = "%r", [PTX_S16X2] = "%r",
        [PTX_E4M3X2] = "%h", [PTX_E5M2X2] = "%h",
    };

    return stems[type] ? stems[type] : "%r";
}

/* ---- one instruction ---- */

struct shape {
    enum ptx_opcode opcode;
    const char *words[MAX_WORDS]; /* in any order */
    unsigned n_words;
    enum ptx_type types[3];
    unsigned n_types;
    const char *operands[8]; /* replaces the usual operand; NULL: the usual operand */
    int n_operands;          /* -1: as many as the row requires */
};

/* The position of a modifier's class in an instruction. */
static unsigned rank_of_word(const char *text)
{
    static const unsigned char order[] = {
        PTX_CLASS_SYNC,        PTX_CLASS_TO,        PTX_CLASS_BAR_WARP,  PTX_CLASS_BAR_MODE,   PTX_CLASS_SEM,        PTX_CLASS_SCOPE,
        PTX_CLASS_SPACE,       PTX_CLASS_SHFL_MODE, PTX_CLASS_VOTE_MODE, PTX_CLASS_DIRECTION,  PTX_CLASS_WRAP,       PTX_CLASS_NC,
        PTX_CLASS_CMP,         PTX_CLASS_OPER,      PTX_CLASS_NOFTZ,     PTX_CLASS_HALF,       PTX_CLASS_APPROX,     PTX_CLASS_FULL,
        PTX_CLASS_RND,         PTX_CLASS_FTZ,       PTX_CLASS_NAN,       PTX_CLASS_XORSIGN,    PTX_CLASS_ABS,        PTX_CLASS_SATFINITE,
        PTX_CLASS_RELU,        PTX_CLASS_SAT,       PTX_CLASS_CC,        PTX_CLASS_SHIFTAMT,   PTX_CLASS_CACHE_LOAD, PTX_CLASS_CACHE_STORE,
        PTX_CLASS_CACHE_LEVEL, PTX_CLASS_EVICT,     PTX_CLASS_EVICT_L2,  PTX_CLASS_FETCH_SIZE, PTX_CLASS_CACHE_HINT, PTX_CLASS_VEC,
    };

    for (unsigned i = 0; i < sizeof order; i++)
        for (unsigned k = 0; k < N_ALL_WORDS; k++)
            if (words[k].class == order[i] && !strcmp(words[k].text, text))
                return i;
    return sizeof order;
}

static enum ptx_type widened(enum ptx_type type)
{
    return type == PTX_U16 ? PTX_U32 : type == PTX_S16 ? PTX_S32 : type == PTX_U32 ? PTX_U64 : type == PTX_S32 ? PTX_S64 : type;
}

static bool has_word(const struct shape *shape, const char *text)
{
    for (unsigned i = 0; i < shape->n_words; i++)
        if (!strcmp(shape->words[i], text))
            return true;
    return false;
}

static unsigned vector_width(const struct shape *shape)
{
    return has_word(shape, "v2") ? 2 : has_word(shape, "v4") ? 4 : has_word(shape, "v8") ? 8 : 0;
}

static enum ptx_type type_of_letter(const struct shape *shape, char letter)
{
    switch (letter) {
    case 'w':
        return has_word(shape, "wide") ? widened(shape->types[0]) : shape->types[0];
    case 'u':
        return PTX_U32;
    case 'v':
        return PTX_U64;
    case 'z':
        return PTX_PRED;
    case '1':
    case '^':
        return shape->types[1];
    case '2':
        return shape->types[2];
    case '-':
        return PTX_NONE;
    default:
        return shape->types[0];
    }
}

static void append_register(char *out, enum ptx_type type, unsigned number, unsigned width)
{
    const char *stem = register_stem(type);

    if (!width)
        append(out, "%s%u", stem, number);
    for (unsigned i = 0; i < width; i++)
        append(out, "%s%s%u%s", i ? ", " : "{", stem, i % 4, i + 1 == width ? "}" : "");
}

static const char *address_of(const struct shape *shape)
{
    return has_word(shape, "const")          ? "[co]"
           : has_word(shape, "shared")       ? "[sh]"
           : has_word(shape, "shared::cta")  ? "[sh]"
           : has_word(shape, "local")        ? "[lo]"
           : has_word(shape, "param")        ? "[out]"
           : has_word(shape, "param::entry") ? "[out]"
                                             : "[%q1]";
}

/* The usual operand for an item of the pattern. */
static void append_operand(char *out, const struct shape *shape, const char *item, unsigned number)
{
    const unsigned width = strchr("DSE", item[0]) && shape->opcode != PTX_OP_MOV ? vector_width(shape) : 0;

    switch (item[0]) {
    case 'p':
    case 'q':
    case 'P':
        append(out, "%%p%u", number % 4);
        return;
    case 'a':
        append(out, "%s", address_of(shape));
        return;
    case 'l':
        append(out, "L");
        return;
    case 'i':
        append(out, "1");
        return;
    case 'x':
        append(out, "%%p1");
        return;
    default:
        append_register(out, type_of_letter(shape, item[1]), number % 4, width);
    }
}

static const char *pattern_of(const struct shape *shape)
{
    return shape->opcode == PTX_OP_ATOM && has_word(shape, "cas") ? "E0 a- S0 S0 ?sv" : ptx_opcode_infos[shape->opcode].operands;
}

static void append_spelling(char *text, const struct shape *shape)
{
    append(text, "%s", ptx_opcode_infos[shape->opcode].name);
    for (unsigned rank = 0; rank <= 40; rank++)
        for (unsigned i = 0; i < shape->n_words; i++)
            if (rank_of_word(shape->words[i]) == rank)
                append(text, ".%s", shape->words[i]);
    for (unsigned i = 0; i < shape->n_types; i++)
        append(text, ".%s", ptx_type_name(shape->types[i]));
}

static void put_shape(const struct shape *shape)
{
    char text[MAX_TEXT] = "", operands[MAX_TEXT] = "", all[2 * MAX_TEXT + 64];
    const char *at = pattern_of(shape);
    unsigned number = 0;

    append_spelling(text, shape);
    for (bool optional = false; *at || shape->n_operands > (int)number; number++) {
        optional |= *at == '?';
        at += *at == '?';
        if (shape->n_operands < 0 ? optional && !shape->operands[number] : (int)number >= shape->n_operands)
            break;
        append(operands, "%s", number ? ", " : " ");
        if (shape->operands[number])
            append(operands, "%s", shape->operands[number]);
        else if (*at)
            append_operand(operands, shape, at, number);
        else
            append(operands, "%%r5");
        at += *at ? 2 : 0;
        at += *at == ' ';
    }
    snprintf(all, sizeof all, "%s%s%s;%s", strstr(operands, "%x") ? ".reg .b128 %x<4>; " : "", text, operands,
             shape->opcode == PTX_OP_BRA ? " L:" : "");
    put(all);
}

/* ---- mandatory modifiers of an instruction ---- */

static bool is_float(const struct shape *shape)
{
    return shape->n_types && (ptx_type_is_float(shape->types[0]) || (shape->n_types > 1 && ptx_type_is_float(shape->types[1])));
}

static const char *first_word(unsigned class)
{
    for (unsigned i = 0; i < N_ALL_WORDS; i++)
        if (words[i].class == class)
            return words[i].text;
    return "";
}

static const char *usual_word(const struct shape *shape, unsigned class)
{
    if (shape->opcode == PTX_OP_ATOM || shape->opcode == PTX_OP_RED || shape->opcode == PTX_OP_REDUX)
        return class == PTX_CLASS_OPER && ptx_type_is_float(shape->types[0])  ? shape->opcode == PTX_OP_REDUX ? "min" : "add"
               : class == PTX_CLASS_OPER && !(1u << shape->types[0] & T_BITS) ? "add"
                                                                              : first_word(class);
    return first_word(class);
}

static bool has_class(const struct shape *shape, unsigned class)
{
    for (unsigned i = 0; i < shape->n_words; i++)
        for (unsigned k = 0; k < N_ALL_WORDS; k++)
            if (words[k].class == class && !strcmp(words[k].text, shape->words[i]))
                return true;
    return false;
}

static void add_word(struct shape *shape, const char *text)
{
    if (shape->n_words < MAX_WORDS)
        shape->words[shape->n_words++] = text;
}

static void require(struct shape *shape, unsigned class)
{
    if (!has_class(shape, class))
        add_word(shape, usual_word(shape, class));
}

static bool is_warp_instruction(enum ptx_opcode opcode)
{
    return opcode == PTX_OP_SHFL || opcode == PTX_OP_VOTE || opcode == PTX_OP_MATCH || opcode == PTX_OP_REDUX || opcode == PTX_OP_ELECT;
}

/* Adds the mandatory modifiers according to the table. sm: of the target. */
static void complete(struct shape *shape, unsigned sm)
{
    uint64_t required = ptx_opcode_infos[shape->opcode].required & ~M_UNSUPPORTED;
    bool have = false;

    if (shape->n_types)
        required &= ~(is_float(shape) ? M_INTEGER_ONLY : M_FLOAT_ONLY);
    for (unsigned class = 0; class < PTX_CLASS_COUNT; class ++)
        have |= (required >> class & 1) && has_class(shape, class);
    for (unsigned class = 0; class < PTX_CLASS_COUNT && !have; class ++)
        if (required >> class & 1) {
            require(shape, class);
            have = true;
        }
    if (shape->opcode == PTX_OP_SHF)
        require(shape, PTX_CLASS_WRAP);
    if (is_warp_instruction(shape->opcode) && sm >= 70 && !has_word(shape, "sync")) {
        add_word(shape, "sync");
        if (shape->opcode != PTX_OP_ELECT && shape->opcode != PTX_OP_REDUX && shape->opcode != PTX_OP_MATCH)
            for (unsigned i = 0; i < 8; i++)
                if (!shape->operands[i] && i == (shape->opcode == PTX_OP_SHFL ? 4 : 2))
                    shape->operands[i] = "-1";
    }
    if ((shape->opcode == PTX_OP_ATOM || shape->opcode == PTX_OP_RED) && 1u << shape->types[0] & T_HALF && !has_word(shape, "noftz"))
        add_word(shape, "noftz");
}

/* ---- the dimensions ---- */

static enum ptx_type first_type(uint32_t mask)
{
    if (mask & T_B32 && mask != T_ANY)
        return PTX_B32;
    if (mask & T_U32)
        return PTX_U32;
    for (unsigned type = 1; type < PTX_TYPE_COUNT; type++)
        if (mask >> type & 1)
            return (enum ptx_type)type;
    return PTX_NONE;
}

static struct shape plain(enum ptx_opcode opcode)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[opcode];
    struct shape shape = {.opcode = opcode, .n_operands = -1};

    for (unsigned i = 0; i < 3; i++)
        if (info->types[i] && !(info->types[i] & T_OPT))
            shape.types[shape.n_types++] = first_type(info->types[i]);
    if (opcode == PTX_OP_CVT)
        shape.types[1] = PTX_U16;
    return shape;
}

static bool is_checked(enum ptx_opcode opcode)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[opcode];

    return opcode && info->operands[0] != '.' && !(info->modifiers & M_LOOSE);
}

/* Each type in each position, with the modifiers that it requires. */
static void vary_types(enum ptx_opcode opcode, unsigned sm)
{
    for (unsigned place = 0; place < plain(opcode).n_types && opcode != PTX_OP_CVT; place++)
        for (unsigned type = 1; type < PTX_TYPE_COUNT; type++) {
            struct shape shape = plain(opcode);

            shape.types[place] = (enum ptx_type)type;
            complete(&shape, sm);
            put_shape(&shape);
        }
}

static bool packs_two(enum ptx_type to, enum ptx_type from)
{
    return from == PTX_F32 && (1u << to & (T(F16X2) | T(BF16X2) | T(E4M3X2) | T(E5M2X2)));
}

static struct shape conversion(enum ptx_type to, enum ptx_type from)
{
    struct shape shape = {.opcode = PTX_OP_CVT, .types = {to, from}, .n_types = 2, .n_operands = 2 + packs_two(to, from)};

    if (packs_two(to, from))
        shape.operands[2] = "%f2";
    return shape;
}

static const char *const conversion_words[] = {NULL, "ftz", "sat", "relu", "satfinite"};

/* Pairs of types, one without and one with a rounding mode (to nearest or to an integer), and the other modifiers with those that such a
 * pair usually has. */
static void put_conversions(enum ptx_type to, enum ptx_type from)
{
    static const char *const roundings[] = {NULL, "rn", "rzi"};
    const bool legal = (T_CVT >> to & 1) && (T_CVT >> from & 1), to_float = ptx_type_is_float(to);
    const bool from_float = ptx_type_is_float(from);
    const unsigned usual = from_float && !to_float ? 2 : to == from || !to_float ? 0 : 1;

    for (unsigned r = 0; r < 3 && (legal || (r == 0 && to % 3 == from % 3)); r++)
        for (unsigned k = 0; k < 5 && (!k || (legal && r == usual)); k++) {
            struct shape shape = conversion(to, from);

            if (roundings[r])
                add_word(&shape, roundings[r]);
            if (k)
                add_word(&shape, conversion_words[k]);
            put_shape(&shape);
        }
}

static void vary_conversions(void)
{
    static const enum ptx_type pairs[][2] = {
        {PTX_F16, PTX_F32},      {PTX_BF16, PTX_F32},  {PTX_F32, PTX_F64},    {PTX_F32, PTX_F32},  {PTX_S32, PTX_F32},
        {PTX_F32, PTX_S32},      {PTX_F16X2, PTX_F32}, {PTX_BF16X2, PTX_F32}, {PTX_TF32, PTX_F32}, {PTX_E4M3X2, PTX_F32},
        {PTX_E5M2X2, PTX_F16X2}, {PTX_BF16, PTX_S64},  {PTX_F16, PTX_F16},    {PTX_F64, PTX_BF16}, {PTX_U8, PTX_F16},
        {PTX_F16X2, PTX_E5M2X2}, {PTX_F32, PTX_BF16},  {PTX_F16, PTX_BF16},
    };
    static const char *const roundings[] = {"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "rs"};

    for (unsigned to = 1; to < PTX_TYPE_COUNT; to++)
        for (unsigned from = 1; from < PTX_TYPE_COUNT; from++)
            put_conversions((enum ptx_type)to, (enum ptx_type)from);
    for (unsigned i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (unsigned r = 0; r < sizeof roundings / sizeof roundings[0]; r++)
            for (unsigned k = 0; k < 5; k++) {
                struct shape shape = conversion(pairs[i][0], pairs[i][1]);

                add_word(&shape, roundings[r]);
                if (k)
                    add_word(&shape, conversion_words[k]);
                put_shape(&shape);
            }
}

/* Every modifier of a legal class with every legal type. */
static void vary_words(enum ptx_opcode opcode, unsigned sm)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[opcode];

    for (unsigned w = 0; w < N_ALL_WORDS && opcode != PTX_OP_CVT; w++) {
        const bool legal = info->modifiers >> words[w].class & 1;

        if (!legal && words[w].class == PTX_CLASS_TESTP_MODE && words[w].value != PTX_MODE_FINITE)
            continue; /* ptxas ignores these everywhere: one is enough */
        for (unsigned type = 0; type < PTX_TYPE_COUNT; type++) {
            struct shape shape = plain(opcode);

            if (shape.n_types ? !(info->types[0] >> type & 1) || !type : type > 0)
                continue;
            if (shape.n_types && legal)
                shape.types[0] = (enum ptx_type)type;
            else if (type > 1 && shape.n_types)
                shape.types[0] = first_type(info->types[0]);
            add_word(&shape, words[w].text);
            complete(&shape, sm);
            put_shape(&shape);
        }
    }
}

/* Two modifiers at a time, of different legal classes, for one type of each kind. */
static void vary_pairs(enum ptx_opcode opcode, unsigned sm)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[opcode];
    static const enum ptx_type kinds[] = {PTX_S32, PTX_F32, PTX_F16X2, PTX_B64, PTX_F64};

    for (unsigned a = 0; a < PTX_CLASS_COUNT && opcode != PTX_OP_CVT; a++)
        for (unsigned b = a + 1; b < PTX_CLASS_COUNT; b++) {
            if (!(info->modifiers >> a & 1) || !(info->modifiers >> b & 1) || !*first_word(a) || !*first_word(b))
                continue;
            for (unsigned k = 0; k < 5; k++) {
                struct shape shape = plain(opcode);

                if (shape.n_types && !(info->types[0] >> kinds[k] & 1))
                    continue;
                if (shape.n_types)
                    shape.types[0] = kinds[k];
                add_word(&shape, usual_word(&shape, a));
                add_word(&shape, usual_word(&shape, b));
                complete(&shape, sm);
                put_shape(&shape);
            }
        }
}

/* Vector widths with state spaces. */
static void vary_memory(enum ptx_opcode opcode, unsigned sm)
{
    static const char *const spaces[] = {NULL, "global", "shared", "const", "local", "param", "shared::cta"};
    static const char *const widths[] = {NULL, "v2", "v4", "v8"};
    static const char *const semantics[] = {NULL, "weak", "volatile", "relaxed", "acquire", "release", "mmio", "sc", "acq_rel"};
    static const char *const scopes[] = {NULL, "cta", "gpu", "sys", "cluster"};
    static const enum ptx_type types[] = {PTX_B8, PTX_U16, PTX_F32, PTX_B64, PTX_B128};
    const struct ptx_opcode_info *info = &ptx_opcode_infos[opcode];

    if (!(info->modifiers & M(SPACE)) || !strchr(info->operands, 'a'))
        return;
    for (unsigned s = 0; s < 7; s++) {
        for (unsigned v = 0; v < 4; v++)
            for (unsigned t = 0; t < 5 && info->modifiers & M(VEC); t++) {
                struct shape shape = plain(opcode);

                shape.types[0] = info->types[0] >> types[t] & 1 ? types[t] : shape.types[0];
                if (spaces[s])
                    add_word(&shape, spaces[s]);
                if (widths[v])
                    add_word(&shape, widths[v]);
                complete(&shape, sm);
                put_shape(&shape);
            }
        for (unsigned m = 0; m < 9 && s < 4 && info->modifiers & M(SEM); m++)
            for (unsigned c = 0; c < 5; c++) {
                struct shape shape = plain(opcode);

                if (spaces[s])
                    add_word(&shape, spaces[s]);
                if (semantics[m])
                    add_word(&shape, semantics[m]);
                if (scopes[c])
                    add_word(&shape, scopes[c]);
                complete(&shape, sm);
                put_shape(&shape);
            }
    }
}

/* Operands of all kinds for each position. */
static void vary_operands(enum ptx_opcode opcode, enum ptx_type type, unsigned sm)
{
    static const char *const others[] = {
        "%p1",        "%h1",
        "%hu1",       "%hs1",
        "%r1",        "%u1",
        "%s1",        "%f1",
        "%q1",        "%qu1",
        "%qs1",       "%d1",
        "!%p1",       "-%r1",
        "1",          "-1",
        "0x12345678", "0x123456789abc",
        "300000",     "1.5",
        "0f3f800000", "0d3ff0000000000000",
        "%tid.x",     "%laneid",
        "%clock64",   "%tid",
        "WARP_SZ",    "_",
        "{%r1}",      "{%r1, %r2}",
        "{%h1, %h2}", "{1, 2}",
        "[%q1]",      "[gl]",
        "[%r1]",      "[16]",
        "gl",         "gl+4",
        "%r1+1",      "%q1+8",
        "sh",         "out",
        "%r1|%p1",    "%p1|%p2",
        "_|%p1",      "%r1|_",
        "no",         "k",
        "4 + 5",      "(1)",
        "1U",         "'1'",
        "%r1.x",      "%r1.b0",
        "[%q1+8]",    "[%q1+-8]",
        "[gl+4]",     "gl[4]",
        "[sh]",       "[co]",
    };
    struct shape shape = plain(opcode);
    unsigned n = 0;

    if (type)
        shape.types[0] = type;
    complete(&shape, sm);
    for (const char *at = pattern_of(&shape); *at; at++) {
        at += *at == '?';
        n++;
        at++;
        if (!at[1])
            break;
        at++;
    }
    for (unsigned place = 0; place < n; place++)
        for (unsigned k = 0; k < sizeof others / sizeof others[0]; k++) {
            struct shape other = shape;

            other.operands[place] = others[k];
            put_shape(&other);
        }
    for (unsigned count = 0; count <= n + 1; count++) {
        struct shape other = shape;

        other.n_operands = (int)count;
        put_shape(&other);
    }
}

static void put_base(enum ptx_opcode opcode, unsigned sm, bool completed)
{
    const struct ptx_opcode_info *info = &ptx_opcode_infos[opcode];

    for (unsigned type = 0; type < PTX_TYPE_COUNT; type++) {
        struct shape shape = plain(opcode);

        if (shape.n_types ? !(info->types[0] >> type & 1) || !type : type > 0)
            continue;
        if (shape.n_types)
            shape.types[0] = (enum ptx_type)type;
        if (completed)
            complete(&shape, sm);
        put_shape(&shape);
    }
}

static void put_special_registers(void)
{
    static const char *const names[] = {
#define PTX_SREG(id, spelling, type, vector) spelling,
#include "ptx2spv/syntax/sregs.def"
    };
    static const char *const forms[][2] = {
        /* text before and after the name */
        {"mov.u32 %r1, ", ""},          {"mov.b32 %r1, ", ""},
        {"mov.s32 %r1, ", ""},          {"mov.u16 %h1, ", ""},
        {"mov.u64 %q1, ", ""},          {"mov.u32 %r1, ", ".x"},
        {"mov.u16 %h1, ", ".w"},        {"cvt.u32.u16 %r1, ", ".y"},
        {"cvt.u64.u32 %q1, ", ""},      {"cvt.u32.u16 %r1, ", ""},
        {"cvt.rn.f32.u32 %f1, ", ".x"}, {"mov.pred %p1, ", ""},
        {"add.u32 %r1, ", ".x, 1"},     {"mov.v4.u32 {%r0, %r1, %r2, %r3}, ", ""},
    };
    char text[MAX_TEXT];

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        for (unsigned k = 0; k < sizeof forms / sizeof forms[0]; k++) {
            snprintf(text, sizeof text, "%s%s%s;", forms[k][0], names[i], forms[k][1]);
            put(text);
        }
}

/* Registers of types that older code does not have. */
static void put_typed_registers(void)
{
    static const char *const types[] = {"b8", "u8", "s8", "f16", "f16x2", "bf16", "bf16x2", "tf32", "b128", "e4m3x2", "f32x2", "u16x2"};
    static const char *const forms[] = {
        "mov.b16 %h1, z1;",          "mov.b32 %r1, z1;",          "mov.b32 z1, %r1;",         "ld.u8 z1, [%q1];",
        "ld.b16 z1, [%q1];",         "ld.b32 z1, [%q1];",         "st.b32 [%q1], z1;",        "st.b8 [%q1], z1;",
        "add.f16 z1, z1, z2;",       "add.f16x2 z1, z1, z2;",     "add.bf16 z1, z1, z2;",     "cvt.f32.f16 %f1, z1;",
        "cvt.u32.u8 %r1, z1;",       "cvt.rn.f16.f32 z1, %f1;",   "cvt.f32.bf16 %f1, z1;",    "add.u32 z1, z1, z2;",
        "and.b32 z1, z1, z2;",       "mov.b32 %r1, {z1, z2};",    "st.b16 [%q1], z1;",        "cvt.u8.u32 z1, %r1;",
        "selp.b32 z1, z1, z2, %p1;", "selp.b16 z1, z1, z2, %p1;", "setp.eq.f16 %p1, z1, z2;", "fma.rn.f16x2 z1, z1, z2, z1;",
        "shl.b32 z1, z1, 3;"};
    char text[MAX_TEXT];

    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
        for (unsigned k = 0; k < sizeof forms / sizeof forms[0]; k++) {
            snprintf(text, sizeof text, ".reg .%s z1, z2; %s", types[i], forms[k]);
            put(text);
        }
}

static void put_everything(unsigned sm)
{
    for (unsigned i = 1; i < PTX_OPCODE_COUNT; i++) {
        const enum ptx_opcode opcode = (enum ptx_opcode)i;

        if (!is_checked(opcode))
            continue;
        vary_types(opcode, sm);
        vary_words(opcode, sm);
        vary_pairs(opcode, sm);
        vary_memory(opcode, sm);
        vary_operands(opcode, PTX_NONE, sm);
        if (ptx_opcode_infos[opcode].types[0] & T_F32 && ptx_opcode_infos[opcode].types[0] != T_ANY && opcode != PTX_OP_CVT)
            vary_operands(opcode, PTX_F32, sm);
    }
    vary_conversions();
    put_special_registers();
    put_typed_registers();
}

int main(void)
{
    static const struct {
        const char *head;
        unsigned sm;
    } ladder[] = {
        {"1.0 sm_10", 10}, {"1.3 sm_13", 13},    {"1.4 sm_13", 13},   {"2.0 sm_20", 20}, {"2.3 sm_20", 20},
        {"3.1 sm_30", 30}, {"4.2 sm_53", 53},    {"6.0 sm_70", 70},   {"7.0 sm_80", 80}, {"7.8 sm_90", 90},
        {"8.1 sm_89", 89}, {"9.0 sm_100a", 100}, {"9.0 sm_120", 120},
    };

    begin_section("9.0 sm_90");
    put_everything(90);
    for (unsigned l = 0; l < sizeof ladder / sizeof ladder[0]; l++) {
        begin_section(ladder[l].head);
        for (unsigned i = 1; i < PTX_OPCODE_COUNT; i++)
            if (is_checked((enum ptx_opcode)i)) {
                put_base((enum ptx_opcode)i, ladder[l].sm, true);
                if (ladder[l].sm < 70)
                    put_base((enum ptx_opcode)i, ladder[l].sm, false);
                if (ladder[l].sm >= 100)
                    vary_words((enum ptx_opcode)i, ladder[l].sm);
            }
        if (ladder[l].sm < 30)
            put_special_registers();
        if (ladder[l].sm == 100)
            vary_conversions();
    }
    fprintf(stderr, "%u snippets\n", n_written);
    return 0;
}
