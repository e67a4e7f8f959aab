/* SPDX-License-Identifier: Apache-2.0 */
/* The `cuttle` command: dispatch by verbs.def, and the verbs that only print. */
#include "verbs.h"

#include "core/base/config.h"

#include <stdlib.h>
#include <string.h>

int verb_options(const struct tool_arguments *arguments)
{
    struct ct_option_help help;

    (void)arguments;
    for (unsigned i = 0; ct_config_help(i, &help); i++)
        printf("%-28s %s (default: %s)\n", help.variable, help.help, *help.value ? help.value : "none");
    return EXIT_SUCCESS;
}

/* The command that the operand names. NULL, with a message: none. */
static const struct tool_table *named_table(const struct tool_arguments *arguments)
{
    static const struct tool_table *const tables[] = {&cuttle_table, &ptx2spv_table};
    const char *name = arguments->n_operands ? arguments->operands[0] : cuttle_table.program;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(tables[i]->program, name))
            return tables[i];
    tool_wrong_usage(arguments, "unknown command ", name);
    return NULL;
}

/* The options of the library, for the manual page of cuttle. */
static void write_environment(void)
{
    struct ct_option_help help;

    tool_write_section("ENVIRONMENT", stdout);
    for (unsigned i = 0; ct_config_help(i, &help); i++)
        tool_write_row(help.variable, help.help, stdout);
}

int verb_manual(const struct tool_arguments *arguments)
{
    const struct tool_table *table = named_table(arguments);

    if (!table)
        return TOOL_USAGE;
    tool_write_manual(table, CUTTLE_RELEASE_DATE, stdout);
    if (table == &cuttle_table)
        write_environment();
    tool_write_section("SEE ALSO", stdout);
    printf("%s\n", table == &cuttle_table ? "\\fBptx2spv\\fR(1), \\fBld.so\\fR(8)" : "\\fBcuttle\\fR(1)");
    return EXIT_SUCCESS;
}

int verb_completion(const struct tool_arguments *arguments)
{
    const struct tool_table *table = named_table(arguments);

    if (!table)
        return TOOL_USAGE;
    tool_write_completion(table, stdout);
    return EXIT_SUCCESS;
}

static int (*const functions[])(const struct tool_arguments *arguments) = {
#define VERB(id, name, min, max, operands, help, text, usage_status) [CUTTLE_##id] = verb_##name,
#include "verbs.def"
};

int main(int argc, char **argv)
{
    struct tool_arguments arguments;
    int status = tool_parse(&cuttle_table, argc, argv, &arguments);

    if (status < 0)
        status = functions[arguments.verb - cuttle_table.verbs](&arguments);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}
