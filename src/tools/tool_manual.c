/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page of a command, in the language of man(7). */
#include "tool.h"

#include <ctype.h>
#include <string.h>

/* Writes text so that troff takes no character for a request or an escape; a newline begins a paragraph. */
static void write_words(FILE *to, const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '\n')
            fputs("\n.PP\n", to);
        else if (*at == '\\')
            fputs("\\e", to);
        else if (*at == '-')
            fputs("\\-", to);
        else if (*at == '\'')
            fputs("\\(aq", to);
        else if (*at == '.' && (at == text || at[-1] == '\n'))
            fputs("\\&.", to);
        else
            fputc(*at, to);
    }
}

static void write_text(FILE *to, const char *text)
{
    write_words(to, text);
    fputc('\n', to);
}

static void write_upper(FILE *to, const char *text)
{
    for (; *text; text++)
        fputc(toupper((unsigned char)*text), to);
}

static void write_option(FILE *to, const char *name, const char *value, const char *help)
{
    fputs(".TP\n\\fB", to);
    write_words(to, name);
    fputs("\\fR", to);
    if (value) {
        fputs(" \\fI", to);
        write_words(to, value);
        fputs("\\fR", to);
    }
    fputc('\n', to);
    write_text(to, help);
}

void tool_write_section(const char *title, FILE *to)
{
    fprintf(to, ".SH \"%s\"\n", title);
}

void tool_write_row(const char *name, const char *meaning, FILE *to)
{
    write_option(to, name, NULL, meaning);
}

static void write_usage(const struct tool_table *table, const struct tool_verb *verb, FILE *to)
{
    fprintf(to, ".B %s", table->program);
    if (!table->is_single)
        fprintf(to, " %s", verb->name);
    fputs("\n[\\fIOPTION\\fR...]\n", to);
    if (*verb->operands)
        write_text(to, verb->operands);
}

static void write_verb(const struct tool_table *table, unsigned index, FILE *to)
{
    const struct tool_verb *verb = &table->verbs[index];

    if (!table->is_single) {
        fputs(".SS ", to);
        write_text(to, verb->name);
        write_usage(table, verb, to);
        fputs(".PP\n", to);
        write_text(to, verb->help);
    }
    if (*verb->text) {
        fputs(".PP\n", to);
        write_text(to, verb->text);
    }
    for (unsigned i = 0; i < table->n_options; i++)
        if (table->options[i].verb == index)
            write_option(to, table->options[i].name, table->options[i].value, table->options[i].help);
    write_option(to, "--help", NULL, "print the options");
}

static void write_statuses(const struct tool_table *table, unsigned index, FILE *to)
{
    if (!table->is_single)
        fprintf(to, ".SS %s\n", table->verbs[index].name);
    for (unsigned i = 0; i < table->n_statuses; i++)
        if (table->statuses[i].verb == index) {
            fprintf(to, ".TP\n.B %s\n", table->statuses[i].code);
            write_text(to, table->statuses[i].meaning);
        }
}

void tool_write_manual(const struct tool_table *table, const char *date, FILE *to)
{
    fputs(".TH ", to);
    write_upper(to, table->program);
    fprintf(to, " 1 %s \"Cuttle %s\" \"User Commands\"\n.SH NAME\n%s \\- ", date, table->version, table->program);
    write_text(to, table->help);
    fputs(".SH SYNOPSIS\n", to);
    for (unsigned i = 0; i < table->n_verbs; i++) {
        write_usage(table, &table->verbs[i], to);
        if (i + 1 < table->n_verbs)
            fputs(".br\n", to);
    }
    fputs(".SH DESCRIPTION\n", to);
    write_text(to, table->intro);
    if (!table->is_single)
        fputs(".SH VERBS\n", to);
    for (unsigned i = 0; i < table->n_verbs; i++)
        write_verb(table, i, to);
    tool_write_section("EXIT STATUS", to);
    for (unsigned i = 0; i < table->n_verbs; i++)
        write_statuses(table, i, to);
}
