/* SPDX-License-Identifier: Apache-2.0 */
/* Source places by lines of PTX (PTX ISA, "Debugging Directives: .loc, .file"). They are wanted for a few lines only, when something is reported, so
 * they are not kept with the code: the text is read again up to the line. Compilers put each directive on a line of its own.
 *
 *     .loc FILE LINE COLUMN [, function_name LABEL [+ OFFSET], inlined_at FILE LINE COLUMN]
 *
 * The call at the place after inlined_at may itself be in an inlined function: then an earlier .loc of the same function has that place, with an
 * inlined_at of its own. The name of a function is in the section .debug_str, as bytes behind a label. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

/* A .loc directive. */
struct loc {
    unsigned file, line, column;
    bool is_inlined;
    unsigned at_file, at_line, at_column;
    const char *label; /* of the function's name, which ends at a blank or comma; NULL: none */
    unsigned long label_offset;
};

struct text {
    const char *at, *end;
};

/* ---- lines ---- */

/* Returns the next line without leading blanks; false at the end. */
static bool next_line(struct text *text, struct text *out)
{
    const char *stop;

    if (text->at >= text->end)
        return false;
    stop = memchr(text->at, '\n', (size_t)(text->end - text->at));
    *out = (struct text){text->at, stop ? stop : text->end};
    text->at = stop ? stop + 1 : text->end;
    while (out->at < out->end && (*out->at == ' ' || *out->at == '\t'))
        out->at++;
    return true;
}

static bool starts_with(const struct text *line, const char *word)
{
    const size_t length = strlen(word);

    return (size_t)(line->end - line->at) >= length && !memcmp(line->at, word, length);
}

static bool contains(struct text line, const char *word)
{
    for (; line.at < line.end; line.at++)
        if (*line.at == *word && starts_with(&line, word))
            return true;
    return false;
}

/* Whether a line begins the code of a kernel or function. */
static bool begins_function(const struct text *line)
{
    return contains(*line, ".entry") || contains(*line, ".func");
}

static void skip_blanks(struct text *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t' || *line->at == ','))
        line->at++;
}

static bool take_word(struct text *line, const char *word)
{
    skip_blanks(line);
    if (!starts_with(line, word))
        return false;
    line->at += strlen(word);
    return true;
}

static unsigned take_number(struct text *line)
{
    unsigned number = 0;

    skip_blanks(line);
    for (; line->at < line->end && *line->at >= '0' && *line->at <= '9'; line->at++)
        number = number * 10 + (unsigned)(*line->at - '0');
    return number;
}

/* ---- directives ---- */

static bool read_loc(struct text line, struct loc *out)
{
    if (!take_word(&line, ".loc"))
        return false;
    *out = (struct loc){.file = take_number(&line)};
    out->line = take_number(&line);
    out->column = take_number(&line);
    if (take_word(&line, "function_name")) {
        skip_blanks(&line);
        out->label = line.at;
        while (line.at < line.end && *line.at != ' ' && *line.at != ',' && *line.at != '+')
            line.at++;
        if (take_word(&line, "+"))
            out->label_offset = take_number(&line);
    }
    if (take_word(&line, "inlined_at")) {
        out->is_inlined = true;
        out->at_file = take_number(&line);
        out->at_line = take_number(&line);
        out->at_column = take_number(&line);
    }
    return out->line != 0;
}

/* The last .loc that precedes a line in its function and has the given place (NULL: any). */
static bool find_loc(const struct ct_source *source, unsigned before, const struct loc *place_or_null, struct loc *out)
{
    struct text text = {source->text, source->text + source->length}, line;
    bool found = false;
    struct loc loc;

    for (unsigned number = 1; number <= before && next_line(&text, &line); number++) {
        if (begins_function(&line))
            found = false;
        if (!read_loc(line, &loc))
            continue;
        if (place_or_null && (loc.file != place_or_null->file || loc.line != place_or_null->line || loc.column != place_or_null->column))
            continue;
        *out = loc;
        found = true;
    }
    return found;
}

static void copy_end(const char *text, size_t length, char *out, size_t size)
{
    if (length >= size) {
        text += length - (size - 1);
        length = size - 1;
    }
    memcpy(out, text, length);
    out[length] = 0;
}

static void name_file(const struct ct_source *source, unsigned file, char *out, size_t size)
{
    struct text text = {source->text, source->text + source->length}, line;

    *out = 0;
    while (next_line(&text, &line)) {
        const char *begin, *stop;

        if (!take_word(&line, ".file") || take_number(&line) != file)
            continue;
        begin = memchr(line.at, '"', (size_t)(line.end - line.at));
        stop = begin ? memchr(begin + 1, '"', (size_t)(line.end - begin - 1)) : NULL;
        if (stop) {
            copy_end(begin + 1, (size_t)(stop - begin - 1), out, size);
            return;
        }
    }
}

/* Reads bytes of `.b8 95,90,0` lines from `offset` on, up to a 0. */
static void read_bytes(struct text text, unsigned long offset, char *out, size_t size)
{
    struct text line;
    size_t n = 0;

    while (next_line(&text, &line) && !starts_with(&line, "}")) {
        const char *colon = memchr(line.at, ':', (size_t)(line.end - line.at));

        if (colon)
            line.at = colon + 1;
        if (!take_word(&line, ".b8"))
            continue;
        for (skip_blanks(&line); line.at < line.end && *line.at >= '0' && *line.at <= '9'; skip_blanks(&line)) {
            const unsigned byte = take_number(&line);

            if (offset) {
                offset--;
                continue;
            }
            if (!byte || n + 1 >= size) {
                out[n] = 0;
                return;
            }
            out[n++] = (char)byte;
        }
    }
    out[n] = 0;
}

static void name_function(const struct ct_source *source, const struct loc *loc, char *out, size_t size)
{
    const char *end = source->text + source->length, *at = source->text;
    const size_t length = loc->label ? strcspn(loc->label, " ,+\t\r\n") : 0;

    *out = 0;
    while (length && (at = memmem(at, (size_t)(end - at), loc->label, length)) != NULL) {
        at += length;
        if (at < end && *at == ':') {
            read_bytes((struct text){at + 1, end}, loc->label_offset, out, size);
            return;
        }
    }
}

static void describe(const struct ct_source *source, const struct loc *loc, struct ptx2spv_place *out)
{
    *out = (struct ptx2spv_place){.line = loc->line, .column = loc->column};
    name_file(source, loc->file, out->file, sizeof out->file);
    name_function(source, loc, out->function, sizeof out->function);
}

unsigned ptx2spv_module_places(const struct ptx2spv_module *module, unsigned input, unsigned line,
                               struct ptx2spv_place out[PTX2SPV_PLACES_MAX])
{
    const struct ct_source *source = input < module->compilation.n_sources ? &module->compilation.sources[input] : NULL;
    unsigned n = 0;
    struct loc loc;

    if (!source || !source->text || !find_loc(source, line, NULL, &loc))
        return 0;
    describe(source, &loc, &out[n++]);
    while (loc.is_inlined && n < PTX2SPV_PLACES_MAX) {
        const struct loc call = {.file = loc.at_file, .line = loc.at_line, .column = loc.at_column};

        if (!find_loc(source, line, &call, &loc))
            loc = call;
        describe(source, &loc, &out[n++]);
    }
    return n;
}
