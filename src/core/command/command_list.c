/* SPDX-License-Identifier: Apache-2.0 */
#include "command_list.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "stream"

CUresult ct_command_list_add(struct ct_command_list *list, const struct ct_command *command)
{
    const size_t param_bytes = command->kind == CT_COMMAND_LAUNCH ? command->launch.runs->info.param_bytes : 0;
    struct ct_kept_command *kept = malloc(sizeof *kept + param_bytes);

    if (!kept)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a command of a graph");
    *kept = (struct ct_kept_command){.command = *command};
    if (command->kind == CT_COMMAND_LAUNCH) {
        if (param_bytes)
            memcpy(kept->params, command->launch.params, param_bytes);
        kept->command.launch.params = kept->params;
        kept->command.launch.owns_params = false;
        kept->command.launch.variant = NULL; /* the caller's reference; the launch will look it up */
    }
    if (list->last)
        list->last->next = kept;
    else
        list->first = kept;
    list->last = kept;
    return CUDA_SUCCESS;
}

void ct_command_list_own(struct ct_command_list *list, struct ct_object *object)
{
    list->last->owned = object;
}

void ct_command_list_finish(struct ct_command_list *list)
{
    while (list->first) {
        struct ct_kept_command *kept = list->first;

        list->first = kept->next;
        ct_object_release(kept->owned);
        free(kept);
    }
    list->last = NULL;
}
