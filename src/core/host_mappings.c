/* SPDX-License-Identifier: Apache-2.0 */
/* Asks Linux for the mappings in a range (PROCMAP_QUERY, since 6.11), or reads all of /proc/self/maps (proc_pid_maps(5)): lines of
 * `first-end perms offset major:minor inode path`, by address. Drivers make thousands of mappings, and a line takes some 1.5 us. */
#include "host_mappings.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

struct mapping {
    uint64_t first, end, inode;
    bool readable, writable, shared; /* what cannot be read counts as not writable */
    const char *path;                /* "" for anonymous memory */
};

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

typedef CUresult check(const struct mapping *mapping);

static CUresult check_readable(const struct mapping *mapping)
{
    return mapping->readable ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
}

static CUresult check_writable(const struct mapping *mapping)
{
    return mapping->writable ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
}

static CUresult check_lockable(const struct mapping *mapping)
{
    if (!mapping->writable)
        return ct_fail(CUDA_ERROR_NOT_PERMITTED, "the pages at 0x%llx are not to be written", (unsigned long long)mapping->first);
    if (mapping->shared && mapping->inode && !lies_in_memory(mapping->path))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the pages at 0x%llx are shared with %s, which the driver does not take",
                       (unsigned long long)mapping->first, mapping->path);
    return CUDA_SUCCESS;
}

/* ---- one mapping at a time ---- */

/* linux/fs.h, where headers are new enough. */
struct procmap_query {
    uint64_t size, flags, address;
    uint64_t first, end, vma_flags, page_bytes, offset, inode;
    uint32_t major, minor, name_bytes, build_id_bytes;
    uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct procmap_query)
#define READABLE 0x01u
#define WRITABLE 0x02u
#define SHARED 0x08u
#define THIS_OR_NEXT 0x10u

/* The mapping at `address`, or the first behind it. Returns an errno: ENOENT there is none, others that Linux does not tell. */
static int query(int maps, uint64_t address, char path[PATH_MAX], struct mapping *out)
{
    struct procmap_query q = {.size = sizeof q, .flags = THIS_OR_NEXT, .address = address, .name_bytes = PATH_MAX, .name = (uintptr_t)path};
    const unsigned both = READABLE | WRITABLE;

    path[0] = '\0';
    if (ioctl(maps, QUERY, &q) != 0)
        return errno;
    *out = (struct mapping){.first = q.first, .end = q.end, .inode = q.inode, .path = path};
    out->readable = q.vma_flags & READABLE;
    out->writable = (q.vma_flags & both) == both;
    out->shared = q.vma_flags & SHARED;
    return 0;
}

static bool ask(uint64_t first, uint64_t size_bytes, check *check, CUresult *out)
{
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct mapping mapping = {.end = first};
    char path[PATH_MAX];
    int error = 0;

    if (maps < 0)
        return false;
    *out = CUDA_SUCCESS;
    while (*out == CUDA_SUCCESS && mapping.end < first + size_bytes && !(error = query(maps, mapping.end, path, &mapping)))
        if (mapping.first < first + size_bytes)
            *out = check(&mapping);
    close(maps);
    return !error || error == ENOENT;
}

/* ---- all of them, as text ---- */

static bool parse(char *line, struct mapping *out)
{
    unsigned long long first, end, inode;
    char perms[5];
    int path = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %llu %n", &first, &end, perms, &inode, &path) < 4)
        return false;
    *out = (struct mapping){.first = first, .end = end, .inode = inode, .path = line + path};
    out->readable = perms[0] == 'r';
    out->writable = out->readable && perms[1] == 'w';
    out->shared = perms[3] == 's';
    return true;
}

static CUresult read_all(uint64_t first, uint64_t size_bytes, check *check)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    CUresult r = CUDA_SUCCESS;
    struct mapping mapping = {.first = 0};
    char *line = NULL;
    size_t room = 0;

    if (!maps)
        return CUDA_SUCCESS; /* no /proc: the driver has the last word anyway */
    while (r == CUDA_SUCCESS && mapping.first < first + size_bytes && getline(&line, &room, maps) > 0)
        if (parse(line, &mapping) && mapping.first < first + size_bytes && mapping.end > first)
            r = check(&mapping);
    free(line);
    fclose(maps);
    return r;
}

/* ---- public ---- */

bool ct_pages_ask(uint64_t first, uint64_t size_bytes, CUresult *out)
{
    return ask(first, size_bytes, check_lockable, out);
}

CUresult ct_pages_read(uint64_t first, uint64_t size_bytes)
{
    return read_all(first, size_bytes, check_lockable);
}

CUresult ct_pages_can_be_locked(uint64_t first, uint64_t size_bytes)
{
    CUresult r;

    return ct_pages_ask(first, size_bytes, &r) ? r : ct_pages_read(first, size_bytes);
}

static bool are_all(uint64_t first, uint64_t size_bytes, check *check)
{
    CUresult r;

    return (ask(first, size_bytes, check, &r) ? r : read_all(first, size_bytes, check)) == CUDA_SUCCESS;
}

bool ct_pages_are_readable(uint64_t first, uint64_t size_bytes)
{
    return are_all(first, size_bytes, check_readable);
}

bool ct_pages_are_writable(uint64_t first, uint64_t size_bytes)
{
    return are_all(first, size_bytes, check_writable);
}
