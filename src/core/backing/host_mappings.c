/* SPDX-License-Identifier: Apache-2.0 */
/* Queries Linux for the mappings in a range (PROCMAP_QUERY, since 6.11), or reads all of /proc/self/maps (proc_pid_maps(5)): lines of
 * `first-end perms offset major:minor inode path`, by address. Drivers make thousands of mappings, and a line takes some 1.5 us. */
#include "host_mappings.h"

#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CT_CHANNEL "memory"

struct mapping {
    uint64_t first, end, inode;      /* inode: 0 for anonymous memory of small pages */
    uint32_t major, minor;           /* of the file system */
    bool readable, writable, shared; /* an unreadable mapping counts as not writable */
    const char *path;                /* "" for anonymous memory */
};

/* Whether the file system with that device number is in memory. It is identified by number and not by path: shared memory is usually
 * unlinked as soon as it is mapped. Lines of mountinfo (proc_pid_mountinfo(5)): `id parent major:minor root point options .. - type ..`. */
static bool is_file_system_in_memory(uint32_t major, uint32_t minor)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    unsigned line_major, line_minor;
    bool found = false, good = false;
    char *line = NULL;
    size_t room = 0;

    while (mounts && !found && getline(&line, &room, mounts) > 0) {
        const char *type = strstr(line, " - ");

        found = type && sscanf(line, "%*s %*s %u:%u", &line_major, &line_minor) == 2 && line_major == major && line_minor == minor;
        good = found && (!strncmp(type, " - tmpfs ", 9) || !strncmp(type, " - hugetlbfs ", 13));
    }
    free(line);
    if (mounts)
        fclose(mounts);
    return good;
}

/* Whether the file exists only in memory: Linux created it for unnamed shared memory, or its file system is in memory. */
static bool lies_in_memory(const struct mapping *mapping)
{
    static const char *const unnamed[] = {"/memfd:", "/dev/zero (deleted)", "/SYSV", "/anon_hugepage"};

    for (size_t i = 0; i < sizeof unnamed / sizeof *unnamed; i++)
        if (!strncmp(mapping->path, unnamed[i], strlen(unnamed[i])))
            return true;
    return is_file_system_in_memory(mapping->major, mapping->minor);
}

/* A predicate of a mapping, or of the part of it in the queried range. */
typedef bool check(const struct mapping *mapping);

static bool is_readable(const struct mapping *mapping)
{
    return mapping->readable;
}

static bool is_writable(const struct mapping *mapping)
{
    return mapping->writable;
}

static bool is_lockable(const struct mapping *mapping)
{
    const char *why = NULL;

    if (!mapping->writable)
        why = "are not writable";
    else if (mapping->shared && mapping->inode && !lies_in_memory(mapping))
        why = "are shared with a file";
    else if (mapping->inode && ct_pages_populate(mapping->first, mapping->end - mapping->first) == CT_PAGES_MISSING)
        why = "do not all exist";
    if (why)
        ct_log(CT_LOG_INFO, "the pages at 0x%llx cannot be locked: they %s (%s)", (unsigned long long)mapping->first, why, mapping->path);
    return !why;
}

static bool check_part(const struct mapping *mapping, uint64_t first, uint64_t size_bytes, check *check)
{
    struct mapping part = *mapping;

    if (mapping->first >= first + size_bytes || mapping->end <= first)
        return true;
    part.first = part.first > first ? part.first : first;
    part.end = part.end < first + size_bytes ? part.end : first + size_bytes;
    return check(&part);
}

/* ---- one mapping at a time ---- */

/* As in linux/fs.h, which older headers lack. */
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

/* The mapping at `address`, or the first after it. Returns an errno: ENOENT: there is none; others: Linux does not support the query. */
static int query(int maps, uint64_t address, char path[PATH_MAX], struct mapping *out)
{
    struct procmap_query q = {.size = sizeof q, .flags = THIS_OR_NEXT, .address = address, .name_bytes = PATH_MAX, .name = (uintptr_t)path};
    const unsigned both = READABLE | WRITABLE;

    path[0] = '\0';
    if (ioctl(maps, QUERY, &q) != 0)
        return errno;
    *out = (struct mapping){.first = q.first, .end = q.end, .inode = q.inode, .major = q.major, .minor = q.minor, .path = path};
    out->readable = q.vma_flags & READABLE;
    out->writable = (q.vma_flags & both) == both;
    out->shared = q.vma_flags & SHARED;
    return 0;
}

static bool query_range(uint64_t first, uint64_t size_bytes, check *check, bool *out)
{
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct mapping mapping = {.end = first};
    char path[PATH_MAX];
    int error = 0;

    if (maps < 0)
        return false;
    *out = true;
    while (*out && mapping.end < first + size_bytes && !(error = query(maps, mapping.end, path, &mapping)))
        *out = check_part(&mapping, first, size_bytes, check);
    close(maps);
    return !error || error == ENOENT;
}

/* ---- all of them, as text ---- */

static bool parse(char *line, struct mapping *out)
{
    unsigned long long first, end, inode;
    unsigned major, minor;
    char perms[5];
    int path = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %4s %*x %x:%x %llu %n", &first, &end, perms, &major, &minor, &inode, &path) < 6)
        return false;
    *out = (struct mapping){.first = first, .end = end, .inode = inode, .major = major, .minor = minor, .path = line + path};
    out->readable = perms[0] == 'r';
    out->writable = out->readable && perms[1] == 'w';
    out->shared = perms[3] == 's';
    return true;
}

static bool read_all(uint64_t first, uint64_t size_bytes, check *check)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct mapping mapping = {.first = 0};
    char *line = NULL;
    size_t room = 0;
    bool result = true;

    if (!maps)
        return true; /* there is no /proc: the driver decides in the end anyway */
    while (result && mapping.first < first + size_bytes && getline(&line, &room, maps) > 0)
        if (parse(line, &mapping))
            result = check_part(&mapping, first, size_bytes, check);
    free(line);
    fclose(maps);
    return result;
}

/* ---- public ---- */

/* MADV_POPULATE_*, since Linux 5.14. EFAULT: touching a page would raise SIGBUS; EINVAL: the pages are not writable, or not readable. */
enum ct_pages ct_pages_populate(uint64_t first, uint64_t size_bytes)
{
    void *pages = (void *)(uintptr_t)first;
    int error;

    if (madvise(pages, size_bytes, MADV_POPULATE_WRITE) == 0)
        return CT_PAGES_WRITABLE;
    if (madvise(pages, size_bytes, MADV_POPULATE_READ) == 0)
        return CT_PAGES_EXIST;
    error = errno;
    ct_log(CT_LOG_DEBUG, "pages at %p are not populated: %s", pages, strerror(error));
    return error == EFAULT ? CT_PAGES_MISSING : CT_PAGES_EXIST;
}

bool ct_pages_query(uint64_t first, uint64_t size_bytes, bool *out)
{
    return query_range(first, size_bytes, is_lockable, out);
}

bool ct_pages_read(uint64_t first, uint64_t size_bytes)
{
    return read_all(first, size_bytes, is_lockable);
}

static bool are_all(uint64_t first, uint64_t size_bytes, check *check)
{
    bool result;

    return query_range(first, size_bytes, check, &result) ? result : read_all(first, size_bytes, check);
}

bool ct_pages_can_be_locked(uint64_t first, uint64_t size_bytes)
{
    return are_all(first, size_bytes, is_lockable);
}

bool ct_pages_are_readable(uint64_t first, uint64_t size_bytes)
{
    return are_all(first, size_bytes, is_readable);
}

bool ct_pages_are_writable(uint64_t first, uint64_t size_bytes)
{
    return are_all(first, size_bytes, is_writable);
}
