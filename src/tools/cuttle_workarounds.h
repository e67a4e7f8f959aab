/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle workarounds` (cuttle_workarounds.c). */
#ifndef CT_TOOLS_CUTTLE_WORKAROUNDS_H
#define CT_TOOLS_CUTTLE_WORKAROUNDS_H

/* Prints the faults of drivers that are worked around, as markdown. Gives the exit status. */
int command_workarounds(int argc, char **argv);

#endif
