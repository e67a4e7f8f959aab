/* SPDX-License-Identifier: Apache-2.0 */
/* Queries Linux about the mappings at host addresses. */
#ifndef CT_CORE_HOST_MAPPINGS_H
#define CT_CORE_HOST_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether Linux lets a driver lock the pages for writing for an unlimited time: the process must be able to write them, and they must not
 * be shared with a file on a disk, since Linux could not track a device's writes to them (mm/gup.c, since Linux 6.5). Pages of files, and
 * huge pages, are populated to find out whether they exist. The reason for a refusal is logged. */
bool ct_pages_can_be_locked(uint64_t first, uint64_t size_bytes);
enum ct_pages {
    CT_PAGES_WRITABLE, /* all of them exist and are writable */
    CT_PAGES_EXIST,    /* they exist, or are created when they are touched; whether they are writable is unknown */
    CT_PAGES_MISSING,  /* some cannot be created (beyond the end of a file, no free huge pages): touching them raises SIGBUS */
};
/* Makes Linux populate the pages, if its version supports that. */
enum ct_pages ct_pages_populate(uint64_t first, uint64_t size_bytes);
/* Whether the process may read all of them, and whether it may write them, too. */
bool ct_pages_are_readable(uint64_t first, uint64_t size_bytes);
bool ct_pages_are_writable(uint64_t first, uint64_t size_bytes);
/* The two implementations of ct_pages_can_be_locked. The first is fast, but returns false if Linux does not support it. */
bool ct_pages_query(uint64_t first, uint64_t size_bytes, bool *out);
bool ct_pages_read(uint64_t first, uint64_t size_bytes);

#endif
