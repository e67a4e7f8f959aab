/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded arguments as members of a JSON object. */
#ifndef CT_TOOLS_ARGUMENTS_JSON_H
#define CT_TOOLS_ARGUMENTS_JSON_H

#include "records.h"
#include "tools/json.h"

/* Writes a member for each parameter of the call: for pointers to something of a known type what they point to, else the address. Handles and addresses
 * are texts that begin with 0x; enumerators are their names. Launches also have "kernelName", and their kernelParams are an array. */
void arguments_write(struct json *json, const struct records_entry *call);
/* The name of a CUresult, or NULL. */
const char *arguments_result_name(int result);

#endif
