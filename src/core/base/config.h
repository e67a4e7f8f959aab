/* SPDX-License-Identifier: Apache-2.0 */
/* The options of config.def, read from the environment once. */
#ifndef CT_CORE_CONFIG_H
#define CT_CORE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct ct_config {
#define CT_CONFIG_STRING const char *
#define CT_CONFIG_PATH const char *
#define CT_CONFIG_CHOICE const char *
#define CT_CONFIG_BOOL bool
#define CT_CONFIG_INT int
#define CT_CONFIG_SIZE uint64_t
#define OPTION(member, variable, type, value, words, help) CT_CONFIG_##type member;
#include "config.def"
};

/* Reads the environment at the first call; the strings are never freed. Any thread. */
const struct ct_config *ct_config(void);
/* For `cuttle options`: one line per option. The index starts at 0; NULL after the last option. */
struct ct_option_help {
    const char *variable, *value, *help;
};
bool ct_config_help(unsigned index, struct ct_option_help *out);
/* For start-up, which reports them: the variables with values that they cannot have. False: there are no more. */
struct ct_option_fault {
    const char *variable, *text, *expected;
};
bool ct_config_fault(unsigned index, struct ct_option_fault *out);

#endif
