/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a record of device-side printf to text. Conversions are those of the CUDA C++ Programming Guide ("Format Specifiers"):
 * %[flags][width][.precision][size]type with flags `#', ` ', `0', `+', `-', sizes h, l, ll, and types cdiouxXpeEfgGaAs. Each is passed
 * to the host's printf with an argument of the type that its size specifies; text that is not a conversion is copied. The number of
 * words of a conversion is determined as in ptx2spv/module/system_functions.c. */
#include "print.h"

#include <stdint.h>
#include <string.h>

#define CT_SPEC_MAX 64 /* bytes of one conversion; longer ones are copied as text */
#define CT_SPEC_TYPE 5 /* of which this is room for size, type and the final NUL */

/* The rest of the record. */
struct words {
    const uint64_t *at;
    unsigned n;
};

static uint64_t take_word(struct words *words)
{
    if (words->n == 0)
        return 0; /* the record was overwritten while it was read */
    words->n--;
    return *words->at++;
}

/* Reads a text and its NUL in whole words; NULL if the record ends before it. */
static const char *take_text(struct words *words)
{
    const char *text = (const char *)words->at;
    size_t length = strnlen(text, (size_t)words->n * sizeof *words->at);
    unsigned taken = (unsigned)(length / sizeof *words->at + 1);

    if (taken > words->n)
        return NULL;
    words->at += taken;
    words->n -= taken;
    return text;
}

/* A conversion for the host's printf: its letters without the size, with the numbers that replace `*'. */
struct spec {
    char text[CT_SPEC_MAX];
    unsigned length;
    char type;
    unsigned longs, halves; /* the number of `l' or equivalent, and of `h' */
    bool bad;               /* it is too long, or contains something that the host's printf must not see */
};

static void add_char(struct spec *spec, char c)
{
    if (spec->length + CT_SPEC_TYPE < sizeof spec->text)
        spec->text[spec->length++] = c;
    else
        spec->bad = true;
}

static void add_number(struct spec *spec, int number)
{
    char digits[16];

    snprintf(digits, sizeof digits, "%d", number);
    for (const char *at = digits; *at; at++)
        add_char(spec, *at);
}

/* `*': a negative width means `-', a negative precision means none. */
static void add_star(struct spec *spec, int number)
{
    if (number < 0 && spec->length && spec->text[spec->length - 1] == '.')
        spec->length--;
    else
        add_number(spec, number);
}

/* Reads a conversion after its '%' and returns its end. The type is 0 at the end of the text. */
static const char *read_spec(const char *from, struct words *words, struct spec *spec)
{
    *spec = (struct spec){.text = "%", .length = 1};
    for (; *from; from++) {
        if (*from == '*') {
            add_star(spec, (int)take_word(words));
        } else if (*from == 'h') {
            spec->halves++;
        } else if (strchr("lzjtLq", *from)) {
            spec->longs++;
        } else if ((unsigned char)*from < 64 && *from != '%') {
            spec->bad |= !strchr("#0- +.123456789", *from);
            add_char(spec, *from);
        } else {
            spec->type = *from;
            return from + 1;
        }
    }
    return from;
}

static void print_signed(struct spec *spec, uint64_t word, FILE *to)
{
    const long long value = spec->longs         ? (long long)word
                            : spec->halves > 1  ? (signed char)word
                            : spec->halves == 1 ? (short)word
                                                : (int)word;

    strcat(spec->text, "lld");
    fprintf(to, spec->text, value);
}

static void print_unsigned(struct spec *spec, uint64_t word, FILE *to)
{
    const unsigned long long value = spec->longs         ? word
                                     : spec->halves > 1  ? (unsigned char)word
                                     : spec->halves == 1 ? (unsigned short)word
                                                         : (unsigned)word;

    strcat(spec->text, "ll");
    strncat(spec->text, &spec->type, 1);
    fprintf(to, spec->text, value);
}

static void print_double(struct spec *spec, uint64_t word, FILE *to)
{
    double value;

    memcpy(&value, &word, sizeof value);
    strncat(spec->text, &spec->type, 1);
    fprintf(to, spec->text, value);
}

static void print_text(struct spec *spec, struct words *words, FILE *to)
{
    const char *text = take_text(words);

    strcat(spec->text, "s");
    fprintf(to, spec->text, text ? text : "");
}

/* Copies the conversion as text and skips its argument. */
static void print_bad(const struct spec *spec, struct words *words, FILE *to)
{
    if (spec->type == 's')
        take_text(words);
    else if (spec->type && strchr("cdiouxXpeEfFgGaA", spec->type))
        take_word(words);
    fwrite(spec->text, 1, spec->length, to);
    if (spec->type)
        fputc(spec->type, to);
}

static void print_spec(struct spec *spec, struct words *words, FILE *to)
{
    switch (spec->type) {
    case 'd':
    case 'i':
        print_signed(spec, take_word(words), to);
        break;
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        print_unsigned(spec, take_word(words), to);
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        print_double(spec, take_word(words), to);
        break;
    case 'c':
        strcat(spec->text, "c");
        fprintf(to, spec->text, (int)take_word(words));
        break;
    case 'p':
        strcat(spec->text, "p");
        fprintf(to, spec->text, (void *)(uintptr_t)take_word(words));
        break;
    case 's':
        print_text(spec, words, to);
        break;
    case '%':
        fputc('%', to);
        break;
    default: /* not a conversion */
        print_bad(spec, words, to);
        break;
    }
}

void ct_print_record(const uint64_t *from, unsigned n, FILE *to)
{
    struct words words = {from, n};
    const char *format = take_text(&words);
    struct spec spec;

    while (format && *format) {
        size_t plain = strcspn(format, "%");

        fwrite(format, 1, plain, to);
        format += plain;
        if (*format == '%') {
            format = read_spec(format + 1, &words, &spec);
            spec.text[spec.length] = 0;
            if (spec.bad)
                print_bad(&spec, &words, to);
            else
                print_spec(&spec, &words, to);
        }
    }
}
