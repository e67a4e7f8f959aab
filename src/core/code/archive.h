/* SPDX-License-Identifier: Apache-2.0 */
/* Archives: libraries of object files, as created by ar. */
#ifndef CT_CORE_ARCHIVE_H
#define CT_CORE_ARCHIVE_H

#include "cuda.h"

#include <stdbool.h>
#include <stddef.h>

/* The state of an iteration over an archive in memory. */
struct ct_archive {
    const char *bytes;
    size_t size, at;
    const char *names; /* the table of long names, once it has been found */
    size_t names_size;
};

struct ct_archive_member {
    char name[256]; /* truncated if longer */
    const char *bytes;
    size_t size;
};

/* INVALID_IMAGE: not an archive, or one that only names its members (ar's option T). */
CUresult ct_archive_open(const void *bytes, size_t size, struct ct_archive *out);
/* Advances to the next member that is a file; *found is false after the last one. INVALID_IMAGE: the archive is damaged. */
CUresult ct_archive_next(struct ct_archive *archive, struct ct_archive_member *out, bool *found);

#endif
