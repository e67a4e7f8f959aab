/* SPDX-License-Identifier: Apache-2.0 */
/* CUTTLE_PTX_DIR: a folder that collects the PTX of every module that is loaded. */
#ifndef CT_CORE_PTX_DIR_H
#define CT_CORE_PTX_DIR_H

#include <stddef.h>

/* Writes the text to the folder, if one is set, as <hash of the text>.ptx, unless the file exists. This is a debugging aid: a failure is
 * logged and otherwise ignored. Several threads and processes may write at once. */
void ct_ptx_dir_keep(const char *text, size_t length);

#endif
