/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of the process a kernel driver accepts as a buffer (get_user_pages): all are there and may be accessed, and for amdgpu, whose
 * user-space driver asks for that, none are those of a file. */
#include "pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES 512

struct mapping {
    uint64_t start, end;
    char rights[8];
    uint64_t inode;
};

static int check(const struct mapping *mapping, unsigned wanted)
{
    if (mapping->rights[0] != 'r' || (wanted & DRM_PAGES_WRITTEN && mapping->rights[1] != 'w'))
        return EFAULT;
    return wanted & DRM_PAGES_ANONYMOUS && mapping->inode ? EPERM : 0;
}

/* Whether the pages of a file's mapping lie within the file is not looked at: the file may be without a name. */
int drm_pages_check(uint64_t start, uint64_t bytes, unsigned wanted)
{
    const uint64_t end = start + bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[LINE_BYTES];
    int error = 0;

    if (!maps)
        return ENOMEM;
    /* The kernel's list is sorted. */
    while (!error && start < end && fgets(line, sizeof line, maps)) {
        struct mapping mapping;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &mapping.start, &mapping.end, mapping.rights, &mapping.inode) !=
                4 ||
            mapping.end <= start)
            continue;
        if (mapping.start > start)
            break;
        error = check(&mapping, wanted);
        start = mapping.end;
    }
    fclose(maps);
    return error ? error : start < end ? EFAULT : 0;
}
