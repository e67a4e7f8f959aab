/* SPDX-License-Identifier: Apache-2.0 */
/* Completion for bash: verbs, then the options of the verb, else names of files. */
#include "tool.h"

static void write_options(const struct tool_table *table, unsigned verb, FILE *to)
{
    for (unsigned i = 0; i < table->n_options; i++)
        if (table->options[i].verb == verb)
            fprintf(to, "%s ", table->options[i].name);
    fputs(table->is_single ? "--help --version" : "--help", to);
}

void tool_write_completion(const struct tool_table *table, FILE *to)
{
    const char *name = table->program;

    fprintf(to, "# Completion of %s for bash, made from its table of verbs.\n_%s()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} words=\n",
            name, name);
    if (table->is_single) {
        fputs("    words=\"", to);
        write_options(table, 0, to);
        fputs("\"\n", to);
    } else {
        fputs("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"--help --version", to);
        for (unsigned i = 0; i < table->n_verbs; i++)
            fprintf(to, " %s", table->verbs[i].name);
        fputs("\"\n    else\n        case ${COMP_WORDS[1]} in\n", to);
        for (unsigned i = 0; i < table->n_verbs; i++) {
            fprintf(to, "            %s) words=\"", table->verbs[i].name);
            write_options(table, i, to);
            fputs("\" ;;\n", to);
        }
        fputs("        esac\n    fi\n", to);
    }
    fprintf(to,
            "    case $COMP_CWORD,$word in\n"
            "        %s) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;\n"
            "        *) COMPREPLY=() ;; # complete -o default then offers names of files\n"
            "    esac\n}\ncomplete -o default -F _%s %s\n",
            table->is_single ? "*,-*" : "1,* | *,-*", name, name);
}
