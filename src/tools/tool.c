/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of arguments by table, and --help. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

static const struct tool_verb *find_verb(const struct tool_table *table, const char *name)
{
    for (unsigned i = 0; i < table->n_verbs; i++)
        if (!strcmp(table->verbs[i].name, name))
            return &table->verbs[i];
    return NULL;
}

/* ---- help ---- */

static void print_verbs(const struct tool_table *table, FILE *to)
{
    fprintf(to, "usage: %s VERB [OPTION...] [ARGUMENT...]\n%s\n\n", table->program, table->help);
    for (unsigned i = 0; i < table->n_verbs; i++)
        fprintf(to, "  %-12s %s\n", table->verbs[i].name, table->verbs[i].help);
    fprintf(to, "\n%s VERB --help describes a verb, and %s(1) all of them; %s --version prints the version.\n", table->program,
            table->program, table->program);
}

static void print_row(FILE *to, const char *name, const char *value, const char *help)
{
    char left[64];

    snprintf(left, sizeof left, "%s%s%s", name, value ? " " : "", value ? value : "");
    fprintf(to, "  %-20s %s\n", left, help);
}

static void print_verb(const struct tool_table *table, const struct tool_verb *verb, FILE *to)
{
    const unsigned index = (unsigned)(verb - table->verbs);

    fprintf(to, "usage: %s%s%s [OPTION...]%s%s\n%s\n\n", table->program, table->is_single ? "" : " ", table->is_single ? "" : verb->name,
            *verb->operands ? " " : "", verb->operands, verb->help);
    for (unsigned i = 0; i < table->n_options; i++)
        if (table->options[i].verb == index)
            print_row(to, table->options[i].name, table->options[i].value, table->options[i].help);
    print_row(to, "--help", NULL, "print this text");
    if (table->is_single)
        print_row(to, "--version", NULL, "print the version");
    fprintf(to, "\nExit status:\n");
    for (unsigned i = 0; i < table->n_statuses; i++)
        if (table->statuses[i].verb == index)
            fprintf(to, "  %-4s %s\n", table->statuses[i].code, table->statuses[i].meaning);
    if (*verb->text)
        fprintf(to, "\n%s\n", verb->text);
}

int tool_wrong_usage(const struct tool_arguments *arguments, const char *what, const char *argument)
{
    const struct tool_table *table = arguments->table;
    const char *verb = table->is_single ? "" : arguments->verb->name, *space = table->is_single ? "" : " ";

    fprintf(stderr, "%s%s%s: %s%s\n", table->program, space, verb, what, argument);
    fprintf(stderr, "%s%s%s --help describes the arguments.\n", table->program, space, verb);
    return arguments->verb->usage_status;
}

/* ---- parsing ---- */

/* The option whose name is the beginning of the argument, up to its end or, if the option has a value, to a '='. NULL: none. */
static const struct tool_option *find_option(const struct tool_arguments *arguments, const char *argument)
{
    const struct tool_table *table = arguments->table;
    const unsigned verb = (unsigned)(arguments->verb - table->verbs);

    for (unsigned i = 0; i < table->n_options; i++) {
        const struct tool_option *option = &table->options[i];
        const size_t length = strlen(option->name);

        if (option->verb == verb && !strncmp(argument, option->name, length) &&
            (!argument[length] || (option->value && argument[length] == '=')))
            return option;
    }
    return NULL;
}

/* Takes the option at argv[*at], and its value. Negative: done. */
static int take_option(struct tool_arguments *out, char **argv, int *at)
{
    const struct tool_option *option;
    const char *argument = argv[*at], *value;

    if (!strcmp(argument, "--help")) {
        print_verb(out->table, out->verb, stdout);
        return 0;
    }
    option = find_option(out, argument);
    if (!option)
        return tool_wrong_usage(out, "unknown option ", argument);
    value = option->name;
    if (option->value) {
        value = strchr(argument, '=');
        value = value ? value + 1 : argv[++*at];
        if (!value)
            return tool_wrong_usage(out, "no value for ", option->name);
    }
    out->values[option - out->table->options] = value;
    return -1;
}

/* Parses the arguments of the verb, from argv[at] on. Operands are moved to argv[at] and following, in their order, over options that have been
 * parsed. */
static int parse_verb(struct tool_arguments *out, char **argv, int at)
{
    char **operands = argv + at;

    for (; argv[at]; at++) {
        if (!strcmp(argv[at], "--")) {
            for (at++; argv[at]; at++)
                operands[out->n_operands++] = argv[at];
            break;
        }
        if (argv[at][0] != '-' || !argv[at][1]) {
            operands[out->n_operands++] = argv[at];
            if (out->verb->max_operands == TOOL_REST) {
                for (at++; argv[at]; at++)
                    operands[out->n_operands++] = argv[at];
                break;
            }
        } else {
            const int status = take_option(out, argv, &at);

            if (status >= 0)
                return status;
        }
    }
    operands[out->n_operands] = NULL;
    out->operands = operands;
    if (out->n_operands < out->verb->min_operands)
        return tool_wrong_usage(out, "too few arguments: the usage is ", *out->verb->operands ? out->verb->operands : "without any");
    if (out->n_operands > out->verb->max_operands)
        return tool_wrong_usage(out, "unexpected argument ", operands[out->verb->max_operands]);
    return -1;
}

int tool_parse(const struct tool_table *table, int argc, char **argv, struct tool_arguments *out)
{
    *out = (struct tool_arguments){.table = table};
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        printf("%s %s\n", table->program, table->version);
        return EXIT_SUCCESS;
    }
    if (table->is_single) {
        out->verb = &table->verbs[0];
        return parse_verb(out, argv, argc < 1 ? 0 : 1);
    }
    if (argc < 2) {
        print_verbs(table, stderr);
        return TOOL_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
        print_verbs(table, stdout);
        return EXIT_SUCCESS;
    }
    out->verb = find_verb(table, argv[1]);
    if (!out->verb) {
        fprintf(stderr, "%s: unknown verb %s\n%s --help lists the verbs.\n", table->program, argv[1], table->program);
        return TOOL_USAGE;
    }
    return parse_verb(out, argv, 2);
}
