/* SPDX-License-Identifier: Apache-2.0 */
/* The size of the disk cache, which CUDA_CACHE_MAXSIZE bounds. */
#ifndef CT_CORE_DISK_CACHE_SIZE_H
#define CT_CORE_DISK_CACHE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define CT_DISK_CACHE_DRAFT "draft-" /* the beginning of the names of files that are being written */

#define CT_DISK_CACHE_TALLY "tally" /* the file with the sum of the sizes */

/* Makes room for a file of so many bytes in the folder, by removing the files that were not used for the longest time. False: a file of that
 * size is not to be stored. */
bool ct_disk_cache_make_room(int folder, uint64_t bytes);
/* Whether an open file is a plain file of this user that nobody else can write. */
bool ct_disk_cache_owns(int file);

#endif
