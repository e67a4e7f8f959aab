/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines by table: the verbs of a command, their options and exit statuses. One table drives the parsing of arguments, --help, the
 * manual page, and the completion of the shell. */
#ifndef CT_TOOLS_TOOL_H
#define CT_TOOLS_TOOL_H
/* Parts: tool_manual.c, tool_completion.c. */

#include <stdio.h>

#define TOOL_OPTIONS_MAX 48
/* max_operands of a verb whose operands are the command line of another program: what follows the first one is not parsed. */
#define TOOL_REST 0xffffu

enum { TOOL_USAGE = 2 /* the status of most verbs for wrong arguments */ };

struct tool_verb {
    const char *name;
    unsigned min_operands, max_operands;
    const char *operands; /* as --help shows them */
    const char *help;     /* one line, without a period */
    const char *text;     /* for the manual page: paragraphs, separated by "\n"; may be empty */
    int usage_status;     /* the exit status for wrong arguments */
};

struct tool_option {
    unsigned verb;     /* index of the verb that has this option */
    const char *name;  /* with its dashes */
    const char *value; /* what --help calls its value; NULL: it has none */
    const char *help;
};

struct tool_status {
    unsigned verb;
    const char *code, *meaning;
};

struct tool_table {
    const char *program, *version;
    const char *help;   /* one line about the program */
    const char *intro;  /* the first paragraph of the manual page */
    unsigned is_single; /* the program has one verb, whose name is not written on the command line */
    const struct tool_verb *verbs;
    unsigned n_verbs;
    const struct tool_option *options;
    unsigned n_options;
    const struct tool_status *statuses;
    unsigned n_statuses;
};

struct tool_arguments {
    const struct tool_table *table;
    const struct tool_verb *verb;
    const char *values[TOOL_OPTIONS_MAX]; /* by index of the option: its value, or its name if it has none; NULL: not given */
    char *const *operands;                /* ends with NULL */
    unsigned n_operands;
};

extern const struct tool_table cuttle_table, ptx2spv_table;

/* Parses what follows the name of the program (argv[0]). Returns a negative number if *out is valid, or the exit status: 0 after --help, else a
 * message has been printed. *out refers to argv, in which the operands are moved to the front. */
int tool_parse(const struct tool_table *table, int argc, char **argv, struct tool_arguments *out);
/* Prints to standard error what is wrong with the arguments, and how to get help. Returns the verb's status for that. */
int tool_wrong_usage(const struct tool_arguments *arguments, const char *what, const char *argument);
/* Writes the manual page in the man(7) language, with the version and date of the release, so that the same source makes the same page. */
void tool_write_manual(const struct tool_table *table, const char *date, FILE *to);
/* Adds to it: a section, and a row of a list with a name and what it means. */
void tool_write_section(const char *title, FILE *to);
void tool_write_row(const char *name, const char *meaning, FILE *to);
/* Writes a completion function for bash. */
void tool_write_completion(const struct tool_table *table, FILE *to);

#endif
