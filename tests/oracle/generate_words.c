/* SPDX-License-Identifier: Apache-2.0 */
/* Expands templates of simple statements to PTX. */
#include "generate_tree.h"

#include <string.h>

static const struct word {
    unsigned weight, features;
    bool kernel_only;
    const char *pattern;
} words[] = {
#define WORD(weight, features, pattern) {weight, features, false, pattern},
#include "words.def"
#define WORD(weight, features, pattern) {weight, features, true, pattern},
#include "kernel_words.def"
};
#define N_WORDS (sizeof words / sizeof *words)

/* ---- constants ---- */

static const uint64_t numbers[] = {0,          1,          2,          3,          5,          7,          8,
                                   15,         16,         31,         32,         33,         63,         64,
                                   255,        256,        0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffffff,
                                   0x80000000, 0xffffffff, 0x55555555, 0xaaaaaaaa, 0x01020304, 0xfffffffe, 0x12345678};
/* Zeros, ones, pi, the limits of the subnormal, normal and finite numbers, infinities, a NaN; neighbours of one, of a half and of the
 * integers' limits; ties of roundings to integers, and to f16 (its greatest and least numbers, and half of that). */
static const uint32_t singles[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40490fdb, 0x00000001, 0x807fffff,
                                   0x00800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x4f000000, 0xcf000001, 0x4b800001,
                                   0x34000000, 0x3f7fffff, 0x3f800001, 0x3effffff, 0xbf000000, 0x3fc00000, 0xc0200000, 0x4afffffd,
                                   0x4effffff, 0xcf000000, 0x4f7fffff, 0x4f800000, 0x5effffff, 0x5f000000, 0xdf000000, 0x5f800000,
                                   0x477fe000, 0x477ff000, 0xc77fefff, 0x33800000, 0x33000000, 0xb3000001, 0x387fc000, 0x81000000};
/* The same for doubles; and f32's limits and ties between its numbers. */
static const uint64_t doubles[] = {0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff8000000000000, 0x400921fb54442d18,
                                   0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
                                   0xfff0000000000000, 0x7ff8000000000000, 0x41e0000000000000, 0x43e0000000000000, 0x3cb0000000000000,
                                   0x380fffffe0000000, 0x36a0000000000000, 0x47efffffe0000000, 0x3ff0000000000001, 0x3fefffffffffffff,
                                   0x3fdfffffffffffff, 0xc004000000000000, 0x432fffffffffffff, 0x4340000000000000, 0x41dfffffffc00000,
                                   0xc1e0000000200000, 0x41efffffffe00000, 0x43dfffffffffffff, 0xc3e0000000000000, 0x43efffffffffffff,
                                   0x43f0000000000000, 0x47efffffefffffff, 0x47effffff0000000, 0xb690000000000000, 0x3690000000000001,
                                   0x3ff0000010000000, 0xbff0000030000000, 0x380fffffffffffff, 0x8020000000000000, 0x3fe0000000000000};

#define ONE_OF(g, list) (list)[pick((g), sizeof(list) / sizeof *(list))]

static uint64_t number(struct generator *g)
{
    return pick(g, 4) ? ONE_OF(g, numbers) : generator_random(g);
}

/* ---- placeholders ---- */

struct registers {
    char name; /* as in PTX's names: %r0.. */
    unsigned n;
};

static struct registers registers_of(char letter)
{
    switch (letter) {
    case 'r':
    case 's':
    case 'R':
        return (struct registers){'r', 12};
    case 'q':
    case 'w':
    case 'Q':
        return (struct registers){'q', 6};
    case 'h':
    case 'v':
    case 'H':
        return (struct registers){'h', 6};
    case 'f':
    case 'e':
    case 'F':
        return (struct registers){'f', 6};
    case 'd':
    case 'k':
    case 'D':
        return (struct registers){'d', 4};
    default:
        return (struct registers){'p', 6};
    }
}

static void put_register(const struct context *c, struct text *out, char letter)
{
    const struct registers registers = registers_of(letter);

    text_put(out, "%%%c%u", registers.name, pick(c->g, registers.n));
}

static void put_constant(struct generator *g, struct text *out, char letter)
{
    if (letter == 'R')
        text_put(out, "0x%x", (unsigned)number(g));
    else if (letter == 'H')
        text_put(out, "0x%x", (unsigned)number(g) & 0xffff);
    else if (letter == 'Q')
        text_put(out, "0x%llx", (unsigned long long)(number(g) << (pick(g, 3) ? 0 : 32)));
    else if (letter == 'F')
        text_put(out, "0f%08x", ONE_OF(g, singles));
    else
        text_put(out, "0d%016llx", (unsigned long long)ONE_OF(g, doubles));
}

static void put_guard(const struct context *c, struct text *out)
{
    if (pick(c->g, 4) == 0)
        text_put(out, "@%s%%p%u ", pick(c->g, 2) ? "!" : "", pick(c->g, 6));
}

/* Temporaries of one statement get their numbers at their first occurrence. */
struct temporaries {
    unsigned number[128]; /* by placeholder; 0: not yet, else number + 1 */
};

static void put_temporary(const struct context *c, struct text *out, struct temporaries *t, char letter)
{
    static const char *const names[TEMP_COUNT] = {"th", "tr", "tq", "tf", "td", "tp"};
    const enum temporary kind = letter == 'c'   ? TEMP_B16
                                : letter == 'a' ? TEMP_F32
                                : letter == 'z' ? TEMP_F64
                                : letter <= '4' ? TEMP_B32
                                : letter <= '7' ? TEMP_B64
                                                : TEMP_PRED;
    unsigned *number_of = &t->number[(unsigned char)letter & 127];

    if (!*number_of)
        *number_of = ++c->function->temporaries[kind];
    text_put(out, "%%%s%u", names[kind], *number_of - 1);
}

static void put_placeholder(const struct context *c, struct text *out, struct temporaries *t, char letter)
{
    struct generator *g = c->g;

    if (letter == 'g')
        put_guard(c, out);
    else if (letter == 'm')
        text_put(out, "%%m%u", c->mask - 1);
    else if (letter == 'i' || letter == 'j' || letter == 'b')
        text_put(out, "%u", pick(g, letter == 'i' ? 32 : letter == 'j' ? 64 : 256));
    else if (letter == 'x')
        text_put(out, "0x%x", (unsigned)generator_random(g));
    else if (letter == 'y')
        text_put(out, "0x%llx", (unsigned long long)generator_random(g));
    else if ((letter >= '0' && letter <= '9') || letter == 'a' || letter == 'c' || letter == 'z')
        put_temporary(c, out, t, letter);
    else if (letter != 'P' && letter >= 'A' && letter <= 'Z' && pick(g, 5) == 0)
        put_constant(g, out, letter);
    else
        put_register(c, out, letter);
}

/* ---- patterns ---- */

/* `at` is behind '<': returns where the pattern continues, and the chosen alternative. */
static const char *choose(struct generator *g, const char *at, const char **choice, size_t *length)
{
    const char *const end = strchr(at, '>');
    unsigned n = 1, chosen;

    for (const char *c = at; c < end; c++)
        n += *c == '|';
    chosen = pick(g, n);
    while (chosen--)
        at = strchr(at, '|') + 1;
    *choice = at;
    *length = strcspn(at, "|>");
    return end + 1;
}

static void expand_part(const struct context *c, struct text *out, struct temporaries *t, const char *pattern, size_t length)
{
    const char *const end = pattern + length;

    while (pattern < end) {
        const char *choice;

        if (*pattern == '<') {
            pattern = choose(c->g, pattern + 1, &choice, &length);
            expand_part(c, out, t, choice, length);
        } else if (*pattern == '$') {
            put_placeholder(c, out, t, pattern[1]);
            pattern += 2;
        } else if (*pattern == ';') {
            text_append(out, ";\n    ", 6);
            pattern++;
        } else {
            text_append(out, pattern++, 1);
        }
    }
}

void expand(const struct context *c, struct text *out, const char *pattern)
{
    struct temporaries t = {{0}};

    text_append(out, "    ", 4);
    expand_part(c, out, &t, pattern, strlen(pattern));
    out->used -= 4; /* the last line's indentation */
    out->bytes[out->used] = 0;
}

static bool fits(const struct context *c, const struct word *word)
{
    return has(c, word->features) && (c->is_kernel || !word->kernel_only);
}

struct node *word_create(const struct context *c)
{
    struct node *node = node_create(c->g, 1);
    unsigned total = 0, chosen;

    for (unsigned i = 0; i < N_WORDS; i++)
        total += fits(c, &words[i]) ? words[i].weight : 0;
    chosen = pick(c->g, total);
    for (unsigned i = 0; i < N_WORDS; i++) {
        const unsigned weight = fits(c, &words[i]) ? words[i].weight : 0;

        if (chosen < weight) {
            expand(c, &node->parts[0].text, words[i].pattern);
            break;
        }
        chosen -= weight;
    }
    return node;
}
