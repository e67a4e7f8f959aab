/* SPDX-License-Identifier: Apache-2.0 */
/* A file is written under a name of its own and then renamed, so a file with the name of an entry is complete, unless the machine lost its power
 * or the disk its bits: the checksum tells. Files are opened relative to the open folder, whose owner and permissions have been checked, so that
 * the folder cannot be replaced between the check and the use. */
#include "disk_cache.h"

#include "config.h"
#include "disk_cache_size.h"
#include "log.h"
#include "resource_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "cache"
#define NAME_BYTES 48
#define USED_PERIOD_S 300 /* a file that was used within this time is not marked as used again */

/* The header of a file. A reader compares the magic number and the key with the expected ones, the size with the size of the file, and the
 * checksum with that of the bytes after the header. */
struct header {
    char magic[8];
    struct ct_hash key;
    uint64_t size_bytes;
    struct ct_hash check;
};
static const char magic[8] = "ctcache";

static const struct {
    const char *name;
    bool is_optional;
} kinds[] = {
#define KIND(id, name, is_optional) [CT_DISK_##id] = {name, is_optional},
#include "disk_cache_kinds.def"
};
_Static_assert(sizeof kinds / sizeof *kinds == CT_DISK_KINDS, "a row for each kind");

struct ct_disk_key ct_disk_key_make(enum ct_disk_kind kind, const struct ct_bytes *parts, size_t n_parts)
{
    return (struct ct_disk_key){kind, ct_hash_parts(parts, n_parts)};
}

bool ct_disk_cache_takes_code(void)
{
    return !ct_config()->cache_disable;
}

static bool takes(enum ct_disk_kind kind)
{
    return !kinds[kind].is_optional || ct_disk_cache_takes_code();
}

static void name_file(const struct ct_disk_key *key, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%s-%016llx%016llx", kinds[key->kind].name, (unsigned long long)key->hash.high,
             (unsigned long long)key->hash.low);
}

/* ---- the folder ---- */

/* False: no variable names it. A program that has other rights than its user (set-user-id) does not follow these variables, by which the user
 * could have files written anywhere. */
static bool name_folder(char out[CT_DISK_CACHE_PATH_BYTES])
{
    const char *own = ct_config()->cache_path, *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    const char *base = *own ? own : cache && *cache == '/' ? cache : home ? home : "";
    const char *rest = *own ? "" : base == cache ? "/cuttle" : "/.cache/cuttle";
    const int n = snprintf(out, CT_DISK_CACHE_PATH_BYTES, "%s%s", base, rest);

    return *base == '/' && n > 0 && n < CT_DISK_CACHE_PATH_BYTES - NAME_BYTES - 1;
}

/* Creates the folder and the one that contains it; what exists stays as it is. */
static void make_folder(const char *path)
{
    char *slash, parent[CT_DISK_CACHE_PATH_BYTES];

    if (mkdir(path, 0700) == 0 || errno != ENOENT)
        return;
    strcpy(parent, path);
    slash = strrchr(parent, '/');
    *slash = 0;
    (void)mkdir(parent, 0700);
    (void)mkdir(path, 0700);
}

/* Returns the folder, or a negative number: there is none that belongs to this user and to nobody else. */
static int open_folder(bool is_made)
{
    static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    char path[CT_DISK_CACHE_PATH_BYTES];
    struct stat status;
    int folder;

    if (!name_folder(path))
        return -1;
    folder = open(path, flags);
    if (folder < 0 && errno == ENOENT && is_made) {
        make_folder(path);
        folder = open(path, flags);
    }
    if (folder < 0)
        return -1;
    if (fstat(folder, &status) == 0 && status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return folder;
    ct_log(CT_LOG_DEBUG, "%s is not used: others may write there", path);
    close(folder);
    return -1;
}

bool ct_disk_cache_folder(char out[CT_DISK_CACHE_PATH_BYTES])
{
    return name_folder(out);
}

int ct_disk_cache_open_folder(void)
{
    return open_folder(false);
}

const char *ct_disk_kind_name(enum ct_disk_kind kind)
{
    return kinds[kind].name;
}

bool ct_disk_cache_path(const struct ct_disk_key *key, char out[CT_DISK_CACHE_PATH_BYTES])
{
    const int folder = open_folder(true);
    char name[NAME_BYTES];

    if (folder < 0)
        return false;
    close(folder);
    name_file(key, name);
    if (!name_folder(out)) /* the environment may have changed */
        return false;
    strcat(strcat(out, "/"), name);
    return true;
}

/* ---- loading ---- */

static bool read_all(int file, void *data, size_t size)
{
    char *to = data;

    while (size) {
        const ssize_t n = read(file, to, size);

        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        if (n > 0) {
            to += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static bool is_header(const struct header *header, const struct ct_disk_key *key, uint64_t file_bytes)
{
    return !memcmp(header->magic, magic, sizeof magic) && !memcmp(&header->key, &key->hash, sizeof key->hash) &&
           file_bytes >= sizeof *header && header->size_bytes == file_bytes - sizeof *header && header->size_bytes < SIZE_MAX;
}

static bool read_entry(int file, const struct ct_disk_key *key, void **out_data, size_t *out_size)
{
    struct header header;
    struct ct_hash check;
    struct stat status;
    void *data;

    if (fstat(file, &status) || !read_all(file, &header, sizeof header) || !is_header(&header, key, (uint64_t)status.st_size) ||
        !(data = malloc((size_t)header.size_bytes + 1)))
        return false;
    if (read_all(file, data, (size_t)header.size_bytes)) {
        check = ct_hash_joined(&(struct ct_bytes){data, (size_t)header.size_bytes}, 1);
        if (!memcmp(&check, &header.check, sizeof check)) {
            *out_data = data;
            *out_size = (size_t)header.size_bytes;
            return true;
        }
    }
    free(data);
    return false;
}

/* For the choice of the files to remove (disk_cache_size.c). Where the folder can only be read this fails, and does not matter. */
static void mark_used(int file)
{
    const int64_t now_s = time(NULL);
    struct stat status;

    if (fstat(file, &status) == 0 && (status.st_mtim.tv_sec < now_s - USED_PERIOD_S || status.st_mtim.tv_sec > now_s))
        (void)futimens(file, NULL);
}

static int open_entry(const struct ct_disk_key *key)
{
    const int folder = open_folder(false);
    char name[NAME_BYTES];
    int file;

    if (folder < 0)
        return -1;
    name_file(key, name);
    file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    close(folder);
    if (file < 0 || ct_disk_cache_owns(file))
        return file;
    close(file);
    return -1;
}

bool ct_disk_cache_load(const struct ct_disk_key *key, void **out_data, size_t *out_size)
{
    const int file = takes(key->kind) ? open_entry(key) : -1;
    bool is_read;

    if (file < 0)
        return false;
    is_read = read_entry(file, key, out_data, out_size);
    if (is_read)
        mark_used(file);
    else
        ct_log(CT_LOG_DEBUG, "an entry of kind %s is damaged", kinds[key->kind].name);
    close(file);
    return is_read;
}

/* ---- storing ---- */

static bool write_all(int file, const void *data, size_t size)
{
    const char *from = data;

    while (size) {
        const ssize_t n = write(file, from, size);

        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        if (n > 0) {
            from += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static bool write_entry(int file, const struct header *header, const struct ct_bytes *parts, size_t n_parts)
{
    bool is_written = write_all(file, header, sizeof *header);

    for (size_t i = 0; i < n_parts && is_written; i++)
        is_written = write_all(file, parts[i].data, parts[i].size);
    return is_written;
}

/* The name differs between processes, also between those of containers that share the folder. */
static int create_draft(int folder, char out_name[NAME_BYTES])
{
    struct ct_hash random;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        return -1;
    snprintf(out_name, NAME_BYTES, CT_DISK_CACHE_DRAFT "%016llx%016llx", (unsigned long long)random.high, (unsigned long long)random.low);
    return openat(folder, out_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static bool store(int folder, const struct ct_disk_key *key, const struct header *header, const struct ct_bytes *parts, size_t n_parts)
{
    char draft[NAME_BYTES], name[NAME_BYTES];
    const int file = create_draft(folder, draft);
    bool is_written;

    if (file < 0)
        return false;
    name_file(key, name);
    is_written = write_entry(file, header, parts, n_parts);
    is_written = close(file) == 0 && is_written; /* the disk may be full */
    if (is_written && renameat(folder, draft, folder, name) == 0)
        return true;
    unlinkat(folder, draft, 0);
    return false;
}

void ct_disk_cache_store(const struct ct_disk_key *key, const struct ct_bytes *parts, size_t n_parts)
{
    struct header header = {.key = key->hash};
    int folder;

    for (size_t i = 0; i < n_parts; i++)
        header.size_bytes += parts[i].size;
    if (!takes(key->kind) || header.size_bytes + sizeof header > ct_limit_of_files() || (folder = open_folder(true)) < 0)
        return;
    memcpy(header.magic, magic, sizeof magic);
    header.check = ct_hash_joined(parts, n_parts);
    if (!ct_disk_cache_make_room(folder, header.size_bytes + sizeof header) || !store(folder, key, &header, parts, n_parts))
        ct_log(CT_LOG_DEBUG, "an entry of kind %s with %llu bytes is not stored: %s", kinds[key->kind].name,
               (unsigned long long)header.size_bytes, strerror(errno));
    close(folder);
}

/* ---- numbers ---- */

bool ct_disk_cache_load_number(const struct ct_disk_key *key, uint32_t *out)
{
    size_t size = 0;
    void *data = NULL;
    const bool is_found = ct_disk_cache_load(key, &data, &size) && size == sizeof *out;

    if (is_found)
        memcpy(out, data, sizeof *out);
    free(data);
    return is_found;
}

void ct_disk_cache_store_number(const struct ct_disk_key *key, uint32_t number)
{
    ct_disk_cache_store(key, &(struct ct_bytes){&number, sizeof number}, 1);
}
