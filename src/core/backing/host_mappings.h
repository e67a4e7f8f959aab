/* SPDX-License-Identifier: Apache-2.0 */
/* What lies behind host addresses, as Linux tells it. */
#ifndef CT_CORE_HOST_MAPPINGS_H
#define CT_CORE_HOST_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether Linux lets a driver lock the pages for writing, for as long as it likes: pages that the process may write, and none that are
 * shared with a file on a disk, since what a device writes there would not be seen to be written (mm/gup.c, since Linux 6.5). Those of
 * files, and huge ones, are populated to find out whether they are there. What is wrong goes to the log. */
bool ct_pages_can_be_locked(uint64_t first, uint64_t size_bytes);
enum ct_pages {
    CT_PAGES_WRITABLE, /* all of them are there, and may be written */
    CT_PAGES_THERE,    /* they are there, or come when they are touched; whether they may be written was not found out */
    CT_PAGES_MISSING,  /* some never come, as behind the end of a file, or where no huge pages are left: SIGBUS for whoever touches them */
};
/* Makes Linux find the pages, where it is new enough for that. */
enum ct_pages ct_pages_populate(uint64_t first, uint64_t size_bytes);
/* Whether the process may read all of them, and whether it may write them, too. */
bool ct_pages_are_readable(uint64_t first, uint64_t size_bytes);
bool ct_pages_are_writable(uint64_t first, uint64_t size_bytes);
/* Its two ways. The first is quick, but false where Linux does not offer it. */
bool ct_pages_ask(uint64_t first, uint64_t size_bytes, bool *out);
bool ct_pages_read(uint64_t first, uint64_t size_bytes);

#endif
