/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle api`: the implemented part of the API. */
#ifndef CT_TOOLS_CUTTLE_API_H
#define CT_TOOLS_CUTTLE_API_H

/* Prints Markdown: for each chapter of the Driver API manual, the symbols that are implemented and those that are stubs. */
int command_api(int argc, char **argv);

#endif
