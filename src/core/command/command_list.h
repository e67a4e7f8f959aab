/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are kept to be executed later, any number of times: the bodies of conditional nodes of a graph that is launched. Their handles
 * and addresses are resolved when they are added, and stay valid while a command that was enqueued before is not complete. */
#ifndef CT_CORE_COMMAND_LIST_H
#define CT_CORE_COMMAND_LIST_H

#include "command.h"

struct ct_kept_command {
    struct ct_kept_command *next;
    struct ct_command command;
    struct ct_object *owned; /* what the command refers to, or NULL */
    unsigned char params[];  /* of a launch */
};
/* A zeroed struct is an empty list. */
struct ct_command_list {
    struct ct_kept_command *first, *last;
};

/* Appends a copy. OUT_OF_MEMORY. */
CUresult ct_command_list_add(struct ct_command_list *list, const struct ct_command *command);
/* The list takes over a reference to what its last command refers to. */
void ct_command_list_own(struct ct_command_list *list, struct ct_object *object);
void ct_command_list_finish(struct ct_command_list *list);

#endif
