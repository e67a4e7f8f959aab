/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus: PTX files; each distinct text is included once. */
#include "judge.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

uint64_t hash_bytes(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void *need(void *memory)
{
    if (!memory) {
        fputs("judge: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static char *read_file(const char *path, size_t *out_length)
{
    FILE *file = fopen(path, "rb");
    size_t length = 0, capacity = 1 << 16;
    char *text = need(malloc(capacity));

    if (!file) {
        free(text);
        return NULL;
    }
    for (size_t n; (n = fread(text + length, 1, capacity - length, file)); length += n)
        if (length + n == capacity)
            text = need(realloc(text, capacity *= 2));
    fclose(file);
    *out_length = length;
    return text;
}

static bool is_known(const struct corpus *corpus, const char *text, size_t length)
{
    for (size_t i = 0; i < corpus->n; i++)
        if (corpus->texts[i].length == length && !memcmp(corpus->texts[i].text, text, length))
            return true;
    return false;
}

static bool add_file(struct corpus *corpus, const char *path)
{
    size_t length = 0;
    char *text = read_file(path, &length);

    if (!text)
        return false;
    if (is_known(corpus, text, length)) {
        free(text);
        return true;
    }
    if (corpus->n == corpus->capacity) {
        corpus->capacity = corpus->capacity ? corpus->capacity * 2 : 256;
        corpus->texts = need(realloc(corpus->texts, corpus->capacity * sizeof *corpus->texts));
    }
    corpus->texts[corpus->n++] = (struct ptx_text){need(strdup(path)), text, length};
    return true;
}

static int is_ptx(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && !strcmp(entry->d_name + length - 4, ".ptx");
}

static bool add_folder(struct corpus *corpus, const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_ptx, alphasort);
    bool ok = n >= 0;

    for (int i = 0; i < n; i++) {
        char *name = need(malloc(strlen(path) + strlen(entries[i]->d_name) + 2));

        sprintf(name, "%s/%s", path, entries[i]->d_name);
        ok = add_file(corpus, name) && ok;
        free(name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return ok;
}

bool corpus_add(struct corpus *corpus, const char *path)
{
    struct stat status;

    if (stat(path, &status))
        return false;
    return S_ISDIR(status.st_mode) ? add_folder(corpus, path) : add_file(corpus, path);
}

void corpus_finish(struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->n; i++) {
        free(corpus->texts[i].path);
        free(corpus->texts[i].text);
    }
    free(corpus->texts);
    *corpus = (struct corpus){0};
}
