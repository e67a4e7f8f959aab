/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping is one of the library if it is of the same file: by the device and inode in the process' maps or, where the file system shows others
 * there (overlays, btrfs), by those of the path as the process sees it. */
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Whether a line of /proc/<pid>/maps is of the library, which has this file name and status. */
static bool is_mapping(unsigned pid, const char *line, const char *name, const struct stat *library)
{
    const char *path = strchr(line, '/'), *file = path ? strrchr(path, '/') + 1 : NULL;
    char seen[PATH_MAX + 64];
    struct stat status;
    unsigned major, minor;
    unsigned long long inode;

    if (!path || strncmp(file, name, strlen(name)) != 0)
        return false;
    if (sscanf(line, "%*s %*s %*s %x:%x %llu", &major, &minor, &inode) == 3 && inode == library->st_ino &&
        makedev(major, minor) == library->st_dev)
        return true;
    return snprintf(seen, sizeof seen, "/proc/%u/root%s", pid, path) < (int)sizeof seen && stat(seen, &status) == 0 &&
           status.st_dev == library->st_dev && status.st_ino == library->st_ino;
}

static bool maps_library(unsigned pid, const char *name, const struct stat *library)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    bool is_found = false;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    while (!is_found && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        is_found = is_mapping(pid, line, name, library);
    }
    free(line);
    fclose(file);
    return is_found;
}

static int compare(const void *a, const void *b)
{
    const unsigned first = *(const unsigned *)a, second = *(const unsigned *)b;

    return (first > second) - (first < second);
}

size_t nvml_processes_of(const char *library, unsigned *out, size_t max)
{
    const char *slash = strrchr(library, '/'), *name = slash ? slash + 1 : library;
    struct stat status;
    struct dirent *entry;
    size_t count = 0;
    DIR *processes;

    if (stat(library, &status) != 0)
        return 0;
    processes = opendir("/proc");
    if (!processes)
        return 0;
    while ((entry = readdir(processes))) {
        const unsigned pid = isdigit((unsigned char)*entry->d_name) ? (unsigned)strtoul(entry->d_name, NULL, 10) : 0;

        if (!pid || !maps_library(pid, name, &status))
            continue;
        if (count < max)
            out[count] = pid;
        count++;
    }
    closedir(processes);
    qsort(out, count < max ? count : max, sizeof *out, compare);
    return count;
}

/* Reads up to the first NUL or line break. False: there is no such file, or it is empty. */
static bool read_word(const char *format, unsigned pid, char *out, size_t size)
{
    char path[64], text[PATH_MAX] = "";
    FILE *file;

    snprintf(path, sizeof path, format, pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    if (!*text)
        return false;
    snprintf(out, size, "%.*s", (int)size - 1, text);
    return true;
}

bool nvml_process_name(unsigned pid, char *out, size_t size)
{
    return read_word("/proc/%u/cmdline", pid, out, size) || read_word("/proc/%u/comm", pid, out, size);
}
