/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/self/maps (proc_pid_maps(5)): lines of `first-end perms offset major:minor inode path`, by address. */
#include "host_mappings.h"

#include "log.h"

#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define CT_CHANNEL "memory"

struct mapping {
    unsigned long long first, end, inode;
    char perms[5];
    const char *path; /* "" for anonymous memory */
};

static bool parse(char *line, struct mapping *out)
{
    int path = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %llu %n", &out->first, &out->end, out->perms, &out->inode, &path) < 4)
        return false;
    out->path = line + path;
    return true;
}

/* Files that are nothing but memory: those that Linux has made for shared memory without a name, and those of file systems in memory. */
static bool lies_in_memory(const char *path)
{
    static const char *const unnamed[] = {"/memfd:", "/dev/zero (deleted)", "/SYSV", "/anon_hugepage"};
    struct statfs system;

    for (size_t i = 0; i < sizeof unnamed / sizeof *unnamed; i++)
        if (!strncmp(path, unnamed[i], strlen(unnamed[i])))
            return true;
    return statfs(path, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

static CUresult check(const struct mapping *mapping)
{
    if (mapping->perms[0] != 'r' || mapping->perms[1] != 'w')
        return ct_fail(CUDA_ERROR_NOT_PERMITTED, "the pages at 0x%llx are %s, not to be written", mapping->first, mapping->perms);
    if (mapping->perms[3] == 's' && mapping->inode && !lies_in_memory(mapping->path))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the pages at 0x%llx are shared with %s, which the driver does not take", mapping->first,
                       mapping->path);
    return CUDA_SUCCESS;
}

CUresult ct_pages_can_be_locked(uint64_t first, uint64_t size_bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    CUresult r = CUDA_SUCCESS;
    struct mapping mapping;
    char *line = NULL;
    size_t room = 0;

    if (!maps)
        return CUDA_SUCCESS; /* no /proc: the driver has the last word anyway */
    while (r == CUDA_SUCCESS && getline(&line, &room, maps) > 0)
        if (parse(line, &mapping) && mapping.first < first + size_bytes && mapping.end > first)
            r = check(&mapping);
    free(line);
    fclose(maps);
    return r;
}
