/* SPDX-License-Identifier: Apache-2.0 */
/* All processes share a tally of what has been stored, in a file of the folder. A process adds its file to it before it writes the file. When
 * the tally would exceed the limit, the process that notices lists the folder, removes the files with the oldest times until three quarters of
 * the limit are left, and starts the tally again with what it has seen. That also happens once an hour, since the tally misses what was added
 * while it was locked for long, and since processes that were killed leave drafts. */
#include "disk_cache_size.h"

#include "config.h"
#include "disk_cache.h"
#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "cache"
#define TALLY CT_DISK_CACHE_TALLY
#define LIMIT_MAX (UINT64_C(4) << 30) /* CUDA C++ Programming Guide, CUDA environment variables: CUDA_CACHE_MAXSIZE */
#define PERIOD_S 3600                 /* after which the folder is listed again, and drafts are taken for abandoned */
#define BLOCK_BYTES 4096              /* files are counted in whole blocks of file systems */
#define LOCK_TRIES 20                 /* a millisecond apart */

struct tally {
    char magic[8];
    uint64_t bytes;
    int64_t listed_at_s;
    uint64_t check;
};
static const char magic[8] = "cttally";

struct entry {
    struct timespec used;
    uint64_t bytes;
    char name[48];
};

struct listing {
    struct entry *entries;
    size_t count, capacity;
    uint64_t bytes;
};

static _Atomic uint64_t not_counted_bytes; /* stored by this process while the tally was locked */

static uint64_t in_blocks(uint64_t bytes)
{
    return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

bool ct_disk_cache_owns(int file)
{
    struct stat status;

    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* ---- the folder ---- */

static bool is_entry(const char *name)
{
    static const char *const kinds[] = {
#define KIND(id, name, is_optional) [CT_DISK_##id] = name "-",
#include "disk_cache_kinds.def"
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return strlen(name) < sizeof(struct entry){0}.name;
    return false;
}

static bool append(struct listing *listing, const char *name, const struct stat *status)
{
    struct entry *entry;

    if (listing->count == listing->capacity) {
        const size_t capacity = listing->capacity ? 2 * listing->capacity : 256;
        struct entry *entries = realloc(listing->entries, capacity * sizeof *entries);

        if (!entries)
            return false;
        listing->entries = entries;
        listing->capacity = capacity;
    }
    entry = &listing->entries[listing->count++];
    *entry = (struct entry){.used = status->st_mtim, .bytes = in_blocks((uint64_t)status->st_size)};
    strcpy(entry->name, name); /* is_entry has checked the length */
    listing->bytes += entry->bytes;
    return true;
}

/* Lists the entries, and removes the drafts that nobody writes any more. */
static void list(int folder, int64_t now_s, struct listing *out)
{
    const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *found;
    struct stat status;

    if (copy >= 0 && !stream)
        close(copy);
    while (stream && (found = readdir(stream))) {
        const bool is_draft = !strncmp(found->d_name, CT_DISK_CACHE_DRAFT, strlen(CT_DISK_CACHE_DRAFT));

        if ((!is_draft && !is_entry(found->d_name)) || fstatat(folder, found->d_name, &status, AT_SYMLINK_NOFOLLOW))
            continue;
        if (is_draft && status.st_mtim.tv_sec < now_s - PERIOD_S)
            unlinkat(folder, found->d_name, 0);
        else if (is_draft)
            out->bytes += in_blocks((uint64_t)status.st_size);
        else if (!append(out, found->d_name, &status))
            break;
    }
    if (stream)
        closedir(stream);
}

static int compare_ages(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;

    if (left->used.tv_sec != right->used.tv_sec)
        return left->used.tv_sec < right->used.tv_sec ? -1 : 1;
    return (left->used.tv_nsec > right->used.tv_nsec) - (left->used.tv_nsec < right->used.tv_nsec);
}

/* Makes room for `bytes` more if they would exceed the limit. Returns the bytes that are in the folder then. */
static uint64_t shrink(int folder, int64_t now_s, uint64_t limit, uint64_t bytes)
{
    const uint64_t most = limit / 4 * 3 > bytes ? limit / 4 * 3 - bytes : 0;
    struct listing listing = {0};
    size_t n_removed = 0;

    list(folder, now_s, &listing);
    if (listing.bytes + bytes > limit) {
        qsort(listing.entries, listing.count, sizeof *listing.entries, compare_ages);
        while (listing.bytes > most && n_removed < listing.count) {
            const struct entry *oldest = &listing.entries[n_removed++];

            if (unlinkat(folder, oldest->name, 0) == 0 || errno == ENOENT)
                listing.bytes -= oldest->bytes;
        }
        ct_log(CT_LOG_DEBUG, "%zu of %zu files were removed, %llu bytes are left", n_removed, listing.count,
               (unsigned long long)listing.bytes);
    }
    free(listing.entries);
    return listing.bytes;
}

/* ---- the tally ---- */

static uint64_t check_of(const struct tally *tally)
{
    return ct_hash_joined(&(struct ct_bytes){tally, offsetof(struct tally, check)}, 1).low;
}

/* Returns the tally's file with its lock, or a negative number. */
static int open_tally(int folder)
{
    const int file = openat(folder, TALLY, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (file < 0)
        return -1;
    for (int i = 0; i < LOCK_TRIES && ct_disk_cache_owns(file); i++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return file;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    close(file);
    return -1;
}

/* False: there is none, it is damaged, or it is too old. */
static bool read_tally(int file, int64_t now_s, struct tally *out)
{
    return pread(file, out, sizeof *out, 0) == (ssize_t)sizeof *out && !memcmp(out->magic, magic, sizeof magic) &&
           out->check == check_of(out) && out->listed_at_s <= now_s && out->listed_at_s >= now_s - PERIOD_S;
}

/* Adds to the tally, after making room if necessary. */
static void count(int folder, int file, uint64_t bytes, uint64_t limit)
{
    const int64_t now_s = time(NULL);
    struct tally tally;

    if (!read_tally(file, now_s, &tally) || tally.bytes > limit || bytes > limit - tally.bytes) {
        tally = (struct tally){.bytes = shrink(folder, now_s, limit, bytes), .listed_at_s = now_s};
        memcpy(tally.magic, magic, sizeof magic);
    }
    tally.bytes += bytes;
    tally.check = check_of(&tally);
    if (pwrite(file, &tally, sizeof tally, 0) != (ssize_t)sizeof tally) /* the next process finds it damaged */
        ct_log(CT_LOG_DEBUG, "the tally cannot be written: %s", strerror(errno));
}

bool ct_disk_cache_make_room(int folder, uint64_t bytes)
{
    const uint64_t set = ct_config()->cache_max_bytes, limit = set < LIMIT_MAX ? set : LIMIT_MAX;
    int tally;

    if (bytes > LIMIT_MAX || in_blocks(bytes) > limit)
        return false;
    bytes = in_blocks(bytes) + atomic_exchange_explicit(&not_counted_bytes, 0, memory_order_relaxed);
    if ((tally = open_tally(folder)) >= 0) {
        count(folder, tally, bytes, limit);
        close(tally);
    } else {
        atomic_fetch_add_explicit(&not_counted_bytes, bytes, memory_order_relaxed); /* relaxed: only a sum */
    }
    return true;
}
