/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle check --host-accesses`: accesses of the program's own code to page-locked or managed memory that a stream still uses. */
#ifndef CT_CORE_HOST_ACCESSES_H
#define CT_CORE_HOST_ACCESSES_H

#include "command.h"

/* Executes a command. Without the option that is all that it does. */
CUresult ct_host_accesses_execute(struct ct_stream *stream, const struct ct_command *command,
                                  CUresult (*execute)(struct ct_stream *stream, const struct ct_command *command));

#endif
