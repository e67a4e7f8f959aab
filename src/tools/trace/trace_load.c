/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct load {
    bool (*take)(void *user, const struct json_value *event);
    void *user;
    bool is_ours;
};

/* An event, or a member of the outermost object, of which one says who wrote the file. */
static bool take(void *user, const struct json_value *value)
{
    struct load *load = user;

    if (!value->key)
        return load->take(load->user, value);
    if (!strcmp(value->key, "otherData"))
        load->is_ours = !strcmp(json_member_text(value, "made by", ""), "cuttle trace");
    return true;
}

/* Maps a file. NULL, with a message: it cannot be read, or is empty. */
static char *map_file(const char *verb, const char *path, size_t *out_length)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status = {0};
    char *text = MAP_FAILED;
    bool is_empty = false;

    if (file >= 0 && fstat(file, &status) == 0) {
        is_empty = !status.st_size;
        if (!is_empty)
            text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (text == MAP_FAILED)
        fprintf(stderr, "%s: %s: %s\n", verb, path, is_empty ? "the file is empty" : strerror(errno));
    if (file >= 0)
        close(file);
    *out_length = (size_t)status.st_size;
    return text == MAP_FAILED ? NULL : text;
}

bool trace_load(const char *verb, const char *path, bool (*take_event)(void *user, const struct json_value *event), void *user)
{
    struct load load = {.take = take_event, .user = user};
    size_t length, offset = 0;
    char *text = map_file(verb, path, &length);
    const char *error;

    if (!text)
        return false;
    error = json_read(text, length, "traceEvents", take, &load, &offset);
    munmap(text, length);
    if (error)
        fprintf(stderr, "%s: %s: %s, at byte %zu\n", verb, path, error, offset);
    else if (!load.is_ours)
        fprintf(stderr, "%s: %s was not made by cuttle trace\n", verb, path);
    return !error && load.is_ours;
}
