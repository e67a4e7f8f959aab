/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache of probe results: one file for each device, driver and set of claims. A file is written under a temporary name and then
 * renamed, so that many processes may write it at once, and it is only valid if its length, its key and its checksum are correct. */
#include "probe.h"

#include "core/base/resource_limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Part of the key: incremented when the cases of probe.def change, or the conditions under which they run. */
#define CASES_VERSION 3u
#define PATH_BYTES 512

struct record {
    char magic[8];
    uint64_t key; /* hash of all that the result depends on */
    uint32_t wrong, reserved;
    uint64_t check; /* checksum of the members above */
};
static const char magic[8] = "ctprobe";

/* FNV-1a. */
static uint64_t hash(uint64_t state, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    return state;
}

static uint64_t key_of(const struct ct_device_info *info, uint32_t claims)
{
    const uint32_t versions[] = {CASES_VERSION,
                                 PTX2SPV_VERSION,
                                 claims,
                                 info->vendor_id,
                                 info->device_id,
                                 info->target.dialect,
                                 info->target.workarounds,
                                 info->target.warp_form,
                                 info->target.subgroup_size};
    uint64_t key = hash(UINT64_C(0xcbf29ce484222325), versions, sizeof versions);

    key = hash(key, info->uuid, sizeof info->uuid);
    key = hash(key, info->name, strlen(info->name) + 1);
    return hash(key, info->driver, strlen(info->driver) + 1);
}

static uint64_t check_of(const struct record *record)
{
    return hash(record->key, record, offsetof(struct record, check));
}

/* The folder, which is created if necessary. False: there is no usable folder, or the program has other rights than its user
 * (set-user-id), who could have files written anywhere by these variables. */
static bool find_folder(char *out)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int n;

    if (cache && *cache == '/')
        n = snprintf(out, PATH_BYTES, "%s", cache);
    else if (home && *home == '/')
        n = snprintf(out, PATH_BYTES, "%s/.cache", home);
    else
        return false;
    if (n < 0 || n > PATH_BYTES - 64)
        return false;
    (void)mkdir(out, 0700); /* it may exist; if it cannot be created, the next call fails */
    strcat(out, "/cuttle");
    (void)mkdir(out, 0700);
    return access(out, W_OK | X_OK) == 0;
}

static bool find_file(const struct ct_device_info *info, uint32_t claims, char *out)
{
    const size_t n = find_folder(out) ? strlen(out) : 0;

    if (n)
        snprintf(out + n, PATH_BYTES - n, "/probe-%016llx", (unsigned long long)key_of(info, claims));
    return n != 0;
}

bool ct_probe_cache_read(const struct ct_device_info *info, uint32_t claims, uint32_t *out_wrong)
{
    char path[PATH_BYTES], bytes[sizeof(struct record) + 1];
    struct record record;
    ssize_t n;
    int file;

    if (!find_file(info, claims, path) || (file = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    n = read(file, bytes, sizeof bytes);
    close(file);
    if (n != (ssize_t)sizeof record)
        return false;
    memcpy(&record, bytes, sizeof record);
    if (memcmp(record.magic, magic, sizeof magic) || record.key != key_of(info, claims) || record.check != check_of(&record))
        return false;
    *out_wrong = record.wrong & claims;
    return true;
}

void ct_probe_cache_write(const struct ct_device_info *info, uint32_t claims, uint32_t wrong)
{
    struct record record = {.key = key_of(info, claims), .wrong = wrong};
    char path[PATH_BYTES], aside[PATH_BYTES + 8];
    bool whole;
    int file;

    if (sizeof record > ct_limit_of_files() || !find_file(info, claims, path))
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
