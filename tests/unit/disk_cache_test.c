/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache in folders that are small, full, damaged, read-only or somebody else's, and with many processes that are killed at any time.
 * Each case has a folder of its own and runs in a child process, since the options are read once in a process. */
#include "core/base/disk_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
#define HEADER_BYTES 48

/* In child processes, where cmocka's assertions do not work. */
#define CHECK(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                                \
            _exit(1);                                                                                                                      \
        }                                                                                                                                  \
    } while (0)

static char base[64], folder[128]; /* folder: base/cuttle */

/* ---- a full disk ---- */

static long room_bytes = -1; /* what write() still takes; negative: all */

ssize_t __real_write(int file, const void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size);
ssize_t __wrap_write(int file, const void *data, size_t size)
{
    ssize_t n;

    if (room_bytes == 0 && size) {
        errno = ENOSPC;
        return -1;
    }
    n = __real_write(file, data, room_bytes >= 0 && size > (size_t)room_bytes ? (size_t)room_bytes : size);
    if (n > 0 && room_bytes > 0)
        room_bytes -= n;
    return n;
}

/* ---- entries ---- */

static struct ct_disk_key key_of(uint32_t number)
{
    return ct_disk_key_make(CT_DISK_SPIRV, &(struct ct_bytes){&number, sizeof number}, 1);
}

/* The content follows from the number: a wrong one is recognized. */
static void *content_of(uint32_t number, size_t size)
{
    unsigned char *data = malloc(size + 1);

    CHECK(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)((number * 2654435761u + i * 40503u) >> 8);
    return data;
}

static void store(uint32_t number, size_t size)
{
    const struct ct_disk_key key = key_of(number);
    char *data = content_of(number, size);

    ct_disk_cache_store(&key, (const struct ct_bytes[]){{data, size / 3}, {data + size / 3, size - size / 3}}, 2);
    free(data);
}

/* Whether it is there; it must then be what was stored. */
static bool load(uint32_t number, size_t size)
{
    const struct ct_disk_key key = key_of(number);
    void *data, *expected;
    size_t n;

    if (!ct_disk_cache_load(&key, &data, &n))
        return false;
    expected = content_of(number, size);
    CHECK(n == size && !memcmp(data, expected, size));
    free(data);
    free(expected);
    return true;
}

static const char *path_of(uint32_t number)
{
    static char path[CT_DISK_CACHE_PATH_BYTES];
    const struct ct_disk_key key = key_of(number);

    CHECK(ct_disk_cache_path(&key, path));
    return path;
}

/* The number of files in the folder whose names begin so, and their bytes. */
static unsigned files(const char *prefix, uint64_t *out_bytes)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;
    unsigned count = 0;

    *out_bytes = 0;
    while (listing && (entry = readdir(listing))) {
        struct stat status;

        if (*entry->d_name == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) ||
            fstatat(dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
            continue;
        count++;
        *out_bytes += (uint64_t)status.st_size;
    }
    if (listing)
        closedir(listing);
    return count;
}

static unsigned count_files(const char *prefix)
{
    uint64_t bytes;

    return files(prefix, &bytes);
}

static void set_age(const char *path, long seconds)
{
    const struct timespec now = {.tv_sec = time(NULL) - seconds}, times[2] = {now, now};

    CHECK(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0);
}

static size_t read_file(const char *path, unsigned char *out, size_t capacity)
{
    const int file = open(path, O_RDONLY);
    const ssize_t n = read(file, out, capacity);

    CHECK(n >= 0);
    close(file);
    return (size_t)n;
}

static void write_file(const char *path, const void *data, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(file >= 0 && write(file, data, size) == (ssize_t)size && close(file) == 0);
}

/* ---- processes ---- */

static pid_t start(void (*run)(unsigned), unsigned argument)
{
    const pid_t child = fork();

    if (child == 0) {
        run(argument);
        _exit(0);
    }
    return child;
}

static bool has_ended_well(pid_t child)
{
    int status;

    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_in_child(void (*run)(unsigned))
{
    assert_true(has_ended_well(start(run, 0)));
}

/* Root may do everything, so it becomes somebody else. */
static void become_plain_user(void)
{
    if (geteuid() == 0)
        CHECK(chown(base, NOBODY, NOBODY) == 0 && seteuid(NOBODY) == 0);
}

/* ---- cases ---- */

static void hit_and_miss(unsigned argument)
{
    static const size_t sizes[] = {0, 1, 2, 100, 5000, 3000000};

    (void)argument;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(!load(i, sizes[i]));
        store(i, sizes[i]);
        CHECK(load(i, sizes[i]));
        store(i, sizes[i] + 1); /* another process may store another result: the last one stays */
        CHECK(load(i, sizes[i] + 1));
    }
    CHECK(count_files("") == sizeof sizes / sizeof *sizes + 1 && count_files("tally") == 1);
}

static void damage(unsigned argument)
{
    unsigned char bytes[HEADER_BYTES + 101], damaged[HEADER_BYTES + 101];
    const char *path;
    size_t n;

    (void)argument;
    store(1, 100);
    path = path_of(1);
    n = read_file(path, bytes, sizeof bytes);
    CHECK(n == HEADER_BYTES + 100);
    for (size_t i = 0; i < 8 * n; i++) {
        memcpy(damaged, bytes, n);
        damaged[i / 8] ^= (unsigned char)(1u << i % 8);
        write_file(path, damaged, n);
        CHECK(!load(1, 100));
    }
    bytes[n] = 0;
    for (size_t cut = 0; cut <= n + 1; cut++) {
        write_file(path, bytes, cut);
        CHECK(load(1, 100) == (cut == n));
    }
    CHECK(!load(1, 100));
    store(1, 100); /* it is replaced */
    CHECK(load(1, 100));
}

static void entry_of_another_key(unsigned argument)
{
    char other[CT_DISK_CACHE_PATH_BYTES];

    (void)argument;
    store(1, 100);
    strcpy(other, path_of(2));
    CHECK(rename(path_of(1), other) == 0 && !load(2, 100));
}

static size_t size_of(uint32_t number)
{
    return number * 7919 % 40000;
}

enum { PROCESSES = 100, OWN = 5, SHARED = 10 };

static void use_many(unsigned argument)
{
    for (uint32_t i = 0; i < OWN; i++) {
        const uint32_t own = 1000 + argument * OWN + i, shared = (argument + i) % SHARED,
                       others = 1000 + (argument * 37 + i * 11) % (PROCESSES * OWN);

        store(own, size_of(own));
        CHECK(load(own, size_of(own)));
        store(shared, size_of(shared));
        CHECK(load(shared, size_of(shared)));
        (void)load(others, size_of(others));
    }
}

static void hundred_processes(unsigned argument)
{
    pid_t children[PROCESSES];

    (void)argument;
    for (unsigned i = 0; i < PROCESSES; i++)
        children[i] = start(use_many, i);
    for (unsigned i = 0; i < PROCESSES; i++)
        CHECK(has_ended_well(children[i]));
    CHECK(count_files("spirv-") == PROCESSES * OWN + SHARED && count_files("draft-") == 0);
    for (uint32_t i = 0; i < PROCESSES * OWN; i++)
        CHECK(load(1000 + i, size_of(1000 + i)));
}

static void store_for_ever(unsigned argument)
{
    (void)argument;
    for (uint32_t i = 0;; i++)
        store(i % SHARED, 1000000 + i % SHARED);
}

static void killed_at_any_time(unsigned argument)
{
    char draft[256], tally[256];

    (void)argument;
    for (unsigned i = 0; i < 60; i++) {
        const pid_t child = start(store_for_ever, 0);

        CHECK(child > 0);
        usleep(500 + i * 271 % 5000);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        for (uint32_t k = 0; k < SHARED; k++)
            (void)load(k, 1000000 + k); /* which checks its content */
    }
    snprintf(draft, sizeof draft, "%s/draft-0123456789abcdef0123456789abcdef", folder); /* at least this one */
    write_file(draft, "x", 1);
    store(77, 10);
    CHECK(count_files("draft-") > 0); /* they may be another process's that is at work */
    snprintf(draft, sizeof draft, "cd '%s' && touch -d '2 hours ago' draft-*", folder);
    CHECK(system(draft) == 0);
    snprintf(tally, sizeof tally, "%s/tally", folder);
    CHECK(unlink(tally) == 0); /* it would be renewed after an hour */
    store(78, 10);
    CHECK(count_files("draft-") == 0 && load(77, 10) && load(78, 10));
}

static void full_disk(unsigned argument)
{
    (void)argument;
    for (long room = 0; room < HEADER_BYTES + 100; room++) {
        room_bytes = room;
        store(1, 100);
        room_bytes = -1;
        CHECK(!load(1, 100) && count_files("draft-") == 0);
    }
    room_bytes = HEADER_BYTES + 100;
    store(1, 100);
    room_bytes = -1;
    CHECK(load(1, 100));
    room_bytes = 70;
    store(1, 100);
    room_bytes = -1;
    CHECK(load(1, 100)); /* the earlier one stays */
}

static void limit_on_files(unsigned argument)
{
    const struct rlimit limit = {1000, 1000};

    (void)argument;
    signal(SIGXFSZ, SIG_DFL); /* it ends the process */
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    store(1, 2000);
    store(2, 1000 - HEADER_BYTES + 1);
    store(3, 1000 - HEADER_BYTES);
    CHECK(!load(1, 2000) && !load(2, 1000 - HEADER_BYTES + 1) && load(3, 1000 - HEADER_BYTES));
}

static void read_only_folder(unsigned argument)
{
    (void)argument;
    become_plain_user();
    store(1, 100);
    set_age(path_of(1), 1000);
    CHECK(chmod(folder, 0500) == 0);
    store(2, 100);
    CHECK(load(1, 100) && !load(2, 100));
    CHECK(chmod(folder, 0000) == 0);
    store(2, 100);
    CHECK(!load(1, 100));
    CHECK(chmod(folder, 0700) == 0 && load(1, 100) && count_files("spirv-") == 1);
}

static void folder_of_others(unsigned argument)
{
    static const mode_t open_modes[] = {0777, 0770, 0720, 0702, 01777};
    char aside[256];

    (void)argument;
    store(1, 100);
    for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        CHECK(chmod(folder, open_modes[i]) == 0);
        store(2, 100);
        CHECK(!load(1, 100) && count_files("spirv-") == 1);
    }
    CHECK(chmod(folder, 0755) == 0 && load(1, 100)); /* others may read */
    if (geteuid() == 0) {
        CHECK(chown(folder, NOBODY, NOBODY) == 0 && !load(1, 100));
        store(2, 100);
        CHECK(chown(folder, 0, 0) == 0 && load(1, 100) && count_files("spirv-") == 1);
    }
    snprintf(aside, sizeof aside, "%s/aside", base);
    CHECK(rename(folder, aside) == 0 && symlink(aside, folder) == 0 && !load(1, 100));
    CHECK(unlink(folder) == 0);
    write_file(folder, "x", 1); /* no folder at all */
    store(1, 100);
    CHECK(!load(1, 100));
}

static void hostile_entries(unsigned argument)
{
    char path[CT_DISK_CACHE_PATH_BYTES], aside[256];

    (void)argument;
    store(1, 100);
    strcpy(path, path_of(1));
    CHECK(chmod(path, 0622) == 0 && !load(1, 100) && chmod(path, 0600) == 0 && load(1, 100));
    if (geteuid() == 0)
        CHECK(chown(path, NOBODY, NOBODY) == 0 && !load(1, 100) && chown(path, 0, 0) == 0);
    snprintf(aside, sizeof aside, "%s/aside", base);
    CHECK(rename(path, aside) == 0 && symlink(aside, path) == 0 && !load(1, 100));
    store(1, 100); /* takes the place of the link */
    CHECK(load(1, 100) && unlink(path) == 0 && mkfifo(path, 0600) == 0 && !load(1, 100));
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0 && !load(1, 100));
    store(1, 100);
    CHECK(!load(1, 100) && count_files("draft-") == 0);
}

static void oldest_go_first(unsigned argument)
{
    uint64_t bytes;

    (void)argument;
    CHECK(setenv("CUDA_CACHE_MAXSIZE", "262144", 1) == 0);
    for (uint32_t i = 0; i < 10; i++) { /* 240 KiB in blocks */
        store(i, 24576 - HEADER_BYTES);
        set_age(path_of(i), 10000 - (long)i * 100);
    }
    CHECK(count_files("spirv-") == 10 && load(0, 24576 - HEADER_BYTES)); /* now it is the one that was used last */
    store(10, 24576 - HEADER_BYTES);
    CHECK(files("spirv-", &bytes) == 8 && bytes == UINT64_C(262144) / 4 * 3); /* three quarters of the limit */
    CHECK(load(0, 24576 - HEADER_BYTES) && load(10, 24576 - HEADER_BYTES));
    for (uint32_t i = 1; i < 10; i++)
        CHECK(load(i, 24576 - HEADER_BYTES) == (i >= 4));
    store(11, 262144); /* with its header it exceeds the limit */
    CHECK(!load(11, 262144) && count_files("spirv-") == 8);
}

static void store_into_small_cache(unsigned argument)
{
    for (uint32_t i = 0; i < 20; i++)
        store(argument * 20 + i, 10000);
}

static void bound_holds_for_many(unsigned argument)
{
    enum { LIMIT = 1000000, MANY = 30 };
    unsigned char tally[64];
    char path[256];
    pid_t children[MANY];
    uint64_t bytes;
    size_t n;

    (void)argument;
    CHECK(setenv("CUDA_CACHE_MAXSIZE", "1000000", 1) == 0);
    for (unsigned i = 0; i < MANY; i++)
        children[i] = start(store_into_small_cache, i);
    for (unsigned i = 0; i < MANY; i++)
        CHECK(has_ended_well(children[i]));
    CHECK(files("", &bytes) > 20 && bytes <= LIMIT);
    snprintf(path, sizeof path, "%s/tally", folder);
    n = read_file(path, tally, sizeof tally);
    for (size_t i = 0; i < n; i++) { /* a damaged tally is made again */
        tally[i] ^= 0x40;
        write_file(path, tally, n);
        tally[i] ^= 0x40;
        store_into_small_cache((unsigned)(MANY + i));
        CHECK(files("", &bytes) > 20 && bytes <= LIMIT);
    }
}

static void variables(unsigned argument)
{
    static const struct {
        const char *name, *value, *file; /* the file's folder, in `base` */
        bool is_stored;
    } rows[] = {
        {"CUDA_CACHE_PATH", "/own", "own", true},
        {"CUDA_CACHE_PATH", "/not/there/at/all", "not", false},
        {"CUDA_CACHE_DISABLE", "1", "cuttle", false},
        {"CUDA_CACHE_DISABLE", "0", "cuttle", true},
        {"CUDA_CACHE_MAXSIZE", "0", "cuttle", false},
        {"CUDA_CACHE_MAXSIZE", "4095", "cuttle", false},
        {"CUDA_CACHE_MAXSIZE", "8192", "cuttle", true},
        {"CUDA_CACHE_MAXSIZE", "99999999999999999999999", "cuttle", true}, /* no number: the default */
        {"CUDA_CACHE_MAXSIZE", "-1", "cuttle", true},
    };
    char value[128];

    if (argument >= sizeof rows / sizeof *rows)
        _exit(2);
    snprintf(value, sizeof value, "%s%s", *rows[argument].value == '/' ? base : "", rows[argument].value);
    CHECK(setenv(rows[argument].name, value, 1) == 0);
    snprintf(folder, sizeof folder, "%s/%s", base, rows[argument].file);
    store(argument, 100);
    CHECK(load(argument, 100) == rows[argument].is_stored && count_files("spirv-") == rows[argument].is_stored);
    if (rows[argument].is_stored)
        CHECK(unlink(path_of(argument)) == 0);
}

static void relative_path(unsigned argument)
{
    (void)argument;
    CHECK(chdir(base) == 0 && setenv("CUDA_CACHE_PATH", "relative", 1) == 0);
    store(1, 100);
    CHECK(!load(1, 100) && access("relative", F_OK) != 0 && access("cuttle", F_OK) != 0);
}

static void in_home(unsigned argument)
{
    (void)argument;
    CHECK(unsetenv("XDG_CACHE_HOME") == 0 && setenv("HOME", base, 1) == 0);
    store(1, 100);
    snprintf(folder, sizeof folder, "%s/.cache/cuttle", base);
    CHECK(load(1, 100) && count_files("spirv-") == 1);
    CHECK(unsetenv("HOME") == 0 && !load(1, 100));
}

static void facts_stay_enabled(unsigned argument)
{
    const struct ct_disk_key key = ct_disk_key_make(CT_DISK_PROBE, NULL, 0);
    uint32_t number = 0;

    (void)argument;
    CHECK(setenv("CUDA_CACHE_DISABLE", "1", 1) == 0);
    ct_disk_cache_store_number(&key, 42);
    CHECK(ct_disk_cache_load_number(&key, &number) && number == 42);
}

static void keys_differ(unsigned argument)
{
    const struct ct_bytes together[] = {{"ab", 2}, {"c", 1}}, apart[] = {{"a", 1}, {"bc", 2}};
    const struct ct_disk_key one = ct_disk_key_make(CT_DISK_SPIRV, together, 2), other = ct_disk_key_make(CT_DISK_SPIRV, apart, 2);

    (void)argument;
    CHECK(memcmp(&one.hash, &other.hash, sizeof one.hash));
}

/* ---- the program ---- */

#define CASE(name)                                                                                                                         \
    static void test_##name(void **state)                                                                                                  \
    {                                                                                                                                      \
        (void)state;                                                                                                                       \
        run_in_child(name);                                                                                                                \
    }
CASE(hit_and_miss)
CASE(damage)
CASE(entry_of_another_key)
CASE(hundred_processes)
CASE(killed_at_any_time)
CASE(full_disk)
CASE(limit_on_files)
CASE(read_only_folder)
CASE(folder_of_others)
CASE(hostile_entries)
CASE(oldest_go_first)
CASE(bound_holds_for_many)
CASE(relative_path)
CASE(in_home)
CASE(facts_stay_enabled)
CASE(keys_differ)
#undef CASE

static void test_variables(void **state)
{
    unsigned row = 0;
    int status = 0;

    (void)state;
    do {
        assert_true(waitpid(start(variables, row), &status, 0) > 0 && WIFEXITED(status));
        if (WEXITSTATUS(status) == 1)
            fail_msg("row %u", row);
        row++;
    } while (WEXITSTATUS(status) == 0);
    assert_true(row > 1);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(base, "/tmp/cuttle-cache-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(folder, sizeof folder, "%s/cuttle", base);
    return setenv("XDG_CACHE_HOME", base, 1);
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)
        TEST(hit_and_miss),
        TEST(damage),
        TEST(entry_of_another_key),
        TEST(hundred_processes),
        TEST(killed_at_any_time),
        TEST(full_disk),
        TEST(limit_on_files),
        TEST(read_only_folder),
        TEST(folder_of_others),
        TEST(hostile_entries),
        TEST(oldest_go_first),
        TEST(bound_holds_for_many),
        TEST(variables),
        TEST(relative_path),
        TEST(in_home),
        TEST(facts_stay_enabled),
        TEST(keys_differ),
#undef TEST
    };

    unsetenv("CUDA_CACHE_DISABLE");
    unsetenv("CUDA_CACHE_PATH");
    unsetenv("CUDA_CACHE_MAXSIZE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
