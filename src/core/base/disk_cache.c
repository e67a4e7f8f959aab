/* SPDX-License-Identifier: Apache-2.0 */
/* One file for each result. A file is written under a temporary name and then renamed, so that many processes may write it at once, and it
 * is only valid if its length, its key and its checksum are correct. */
#include "disk_cache.h"

#include "resource_limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct record {
    char magic[8];
    uint64_t key;
    uint32_t value, reserved;
    uint64_t check; /* checksum of the members above */
};
static const char magic[8] = "ctprobe";

/* FNV-1a. */
uint64_t ct_hash(uint64_t state, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    return state;
}

static uint64_t check_of(const struct record *record)
{
    return ct_hash(record->key, record, offsetof(struct record, check));
}

/* The folder, which is created if necessary. False: there is no usable folder, or the program has other rights than its user
 * (set-user-id), who could have files written anywhere by these variables. */
static bool find_folder(char *out)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int n;

    if (cache && *cache == '/')
        n = snprintf(out, CT_DISK_CACHE_PATH_BYTES, "%s", cache);
    else if (home && *home == '/')
        n = snprintf(out, CT_DISK_CACHE_PATH_BYTES, "%s/.cache", home);
    else
        return false;
    if (n < 0 || n > CT_DISK_CACHE_PATH_BYTES - 64)
        return false;
    (void)mkdir(out, 0700); /* it may exist; if it cannot be created, the next call fails */
    strcat(out, "/cuttle");
    (void)mkdir(out, 0700);
    return access(out, W_OK | X_OK) == 0;
}

bool ct_disk_cache_path(const char *kind, uint64_t key, char out[CT_DISK_CACHE_PATH_BYTES])
{
    const size_t n = find_folder(out) ? strlen(out) : 0;

    if (n)
        snprintf(out + n, CT_DISK_CACHE_PATH_BYTES - n, "/%s-%016llx", kind, (unsigned long long)key);
    return n != 0;
}

bool ct_disk_cache_read(const char *kind, uint64_t key, uint32_t *out)
{
    char path[CT_DISK_CACHE_PATH_BYTES], bytes[sizeof(struct record) + 1];
    struct record record;
    ssize_t n;
    int file;

    if (!ct_disk_cache_path(kind, key, path) || (file = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    n = read(file, bytes, sizeof bytes);
    close(file);
    if (n != (ssize_t)sizeof record)
        return false;
    memcpy(&record, bytes, sizeof record);
    if (memcmp(record.magic, magic, sizeof magic) || record.key != key || record.check != check_of(&record))
        return false;
    *out = record.value;
    return true;
}

void ct_disk_cache_write(const char *kind, uint64_t key, uint32_t value)
{
    struct record record = {.key = key, .value = value};
    char path[CT_DISK_CACHE_PATH_BYTES], aside[CT_DISK_CACHE_PATH_BYTES + 8];
    bool whole;
    int file;

    if (sizeof record > ct_limit_of_files() || !ct_disk_cache_path(kind, key, path))
        return;
    memcpy(record.magic, magic, sizeof magic);
    record.check = check_of(&record);
    snprintf(aside, sizeof aside, "%s.XXXXXX", path);
    if ((file = mkstemp(aside)) < 0)
        return;
    whole = write(file, &record, sizeof record) == (ssize_t)sizeof record;
    whole = close(file) == 0 && whole;
    if (!whole || rename(aside, path))
        unlink(aside);
}
