/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle cache`: the disk cache (core/base/disk_cache.h). */
#include "verbs.h"

#include "core/base/config.h"
#include "core/base/disk_cache.h"
#include "core/base/disk_cache_size.h"
#include "precompile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a file of the folder is: a kind of entries, or one of these; other files are not the cache's. */
enum { FILE_UNFINISHED = CT_DISK_KINDS, FILE_TALLY, FILE_KINDS };

static const char *const file_names[FILE_KINDS - CT_DISK_KINDS] = {"unfinished", "tally"};

static const char *kind_name(unsigned kind)
{
    return kind < CT_DISK_KINDS ? ct_disk_kind_name((enum ct_disk_kind)kind) : file_names[kind - CT_DISK_KINDS];
}

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* FILE_KINDS: not the cache's. Entries and drafts end with 32 hexadecimal digits. */
static unsigned kind_of(const char *name)
{
    const char *dash = strrchr(name, '-');

    if (!strcmp(name, CT_DISK_CACHE_TALLY))
        return FILE_TALLY;
    if (!dash || strspn(dash + 1, "0123456789abcdef") != 32 || dash[33])
        return FILE_KINDS;
    if (begins_with(name, CT_DISK_CACHE_DRAFT))
        return FILE_UNFINISHED;
    for (unsigned i = 0; i < CT_DISK_KINDS; i++) {
        const char *prefix = ct_disk_kind_name((enum ct_disk_kind)i);

        if (strlen(prefix) == (size_t)(dash - name) && begins_with(name, prefix))
            return i;
    }
    return FILE_KINDS;
}

struct contents {
    unsigned count[FILE_KINDS];
    uint64_t bytes[FILE_KINDS];
    unsigned n_failed; /* files that could not be removed */
};

/* Counts the files of the folder, and removes them if that is wanted. */
static void walk(DIR *folder, bool is_removed, struct contents *out)
{
    const struct dirent *entry;

    *out = (struct contents){0};
    while ((entry = readdir(folder))) {
        const unsigned kind = kind_of(entry->d_name);
        struct stat status;

        if (kind == FILE_KINDS || fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISREG(status.st_mode))
            continue;
        if (is_removed && unlinkat(dirfd(folder), entry->d_name, 0) && errno != ENOENT) {
            out->n_failed++;
            continue;
        }
        out->count[kind]++;
        out->bytes[kind] += (uint64_t)status.st_size;
    }
}

static void sum(const struct contents *contents, unsigned *out_count, uint64_t *out_bytes)
{
    *out_count = 0;
    *out_bytes = 0;
    for (unsigned i = 0; i < FILE_KINDS; i++) {
        *out_count += contents->count[i];
        *out_bytes += contents->bytes[i];
    }
}

/* Opens the folder. *out NULL: it does not exist yet, or the status is not 0. */
static int open_cache(const char *path, DIR **out)
{
    const int folder = ct_disk_cache_open_folder();

    *out = folder < 0 ? NULL : fdopendir(folder);
    if (*out || (folder < 0 && access(path, F_OK) != 0 && errno == ENOENT))
        return EXIT_SUCCESS;
    fprintf(stderr, "cuttle cache: %s is not used: it is no folder that belongs to this user alone\n", path);
    return EXIT_FAILURE;
}

/* Looks at the files of the folder, or removes them; there are none if it does not exist. Returns an exit status. */
static int go_through(const char *path, bool removes, struct contents *contents, bool *out_exists)
{
    DIR *folder;
    const int status = open_cache(path, &folder);

    *out_exists = folder != NULL;
    if (folder) {
        walk(folder, removes, contents);
        closedir(folder);
    }
    return status;
}

static int show(const struct tool_arguments *arguments, const char *path)
{
    struct contents contents = {0};
    unsigned count;
    uint64_t bytes;
    bool exists;
    const int status = go_through(path, false, &contents, &exists);

    (void)arguments;
    if (status)
        return status;
    printf("folder %s%s\n", path, exists ? "" : " (does not exist yet)");
    for (unsigned i = 0; i < FILE_KINDS; i++)
        if (contents.count[i])
            printf("  %-10s %6u files %12llu bytes\n", kind_name(i), contents.count[i], (unsigned long long)contents.bytes[i]);
    sum(&contents, &count, &bytes);
    printf("%u files, %llu of at most %llu bytes%s\n", count, (unsigned long long)bytes, (unsigned long long)ct_config()->cache_max_bytes,
           ct_disk_cache_takes_code() ? "" : "; CUDA_CACHE_DISABLE is set: compiled code is neither stored nor loaded");
    return EXIT_SUCCESS;
}

static int clear(const struct tool_arguments *arguments, const char *path)
{
    struct contents contents = {0};
    unsigned count;
    uint64_t bytes;
    bool exists;
    const int status = go_through(path, true, &contents, &exists);

    (void)arguments;
    if (status)
        return status;
    sum(&contents, &count, &bytes);
    printf("%u files with %llu bytes removed from %s\n", count, (unsigned long long)bytes, path);
    if (contents.n_failed)
        fprintf(stderr, "cuttle cache: %u files could not be removed\n", contents.n_failed);
    return contents.n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int precompile(const struct tool_arguments *arguments, const char *path)
{
    if (!ct_disk_cache_takes_code()) {
        fprintf(stderr, "cuttle cache: CUDA_CACHE_DISABLE is set, so nothing would be kept in %s\n", path);
        return EXIT_FAILURE;
    }
    return tool_precompile(arguments->operands[1]);
}

static const struct action {
    const char *name;
    unsigned n_operands; /* including the name */
    int (*run)(const struct tool_arguments *arguments, const char *path);
} actions[] = {{"show", 1, show}, {"clear", 1, clear}, {"precompile", 2, precompile}};

int verb_cache(const struct tool_arguments *arguments)
{
    char path[CT_DISK_CACHE_PATH_BYTES];

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(actions[i].name, arguments->operands[0]) != 0)
            continue;
        if (arguments->n_operands != actions[i].n_operands)
            return tool_wrong_usage(arguments, "wrong number of arguments for ", actions[i].name);
        if (ct_disk_cache_folder(path))
            return actions[i].run(arguments, path);
        fprintf(stderr, "cuttle cache: there is no folder: neither CUDA_CACHE_PATH nor XDG_CACHE_HOME nor HOME is an absolute path\n");
        return EXIT_FAILURE;
    }
    return tool_wrong_usage(arguments, "unknown action ", arguments->operands[0]);
}
