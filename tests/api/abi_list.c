/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a preprocessed cuda.h (cc -E -P -dD) and lists its contents, for abi_table.c:
 *   ENUMERATOR(name)   TYPE(name)   FIELD(type, path)   MACRO(name)   RENAME("name", name)
 * Run at build time on our header and on NVIDIA's. It parses only as much of C as such headers use: typedefs of enums, structs, unions,
 * plain types and function pointers, and macros without parameters. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A token is a word or one other character; it points into the file's buffer. */
struct token {
    const char *text;
    int length;
};

struct tokens {
    struct token *items;
    size_t count, next;
};

static void fail(const char *what)
{
    fprintf(stderr, "abi_list: %s\n", what);
    exit(EXIT_FAILURE);
}

static bool is_word(struct token token)
{
    return token.length > 0 && (isalpha((unsigned char)token.text[0]) || token.text[0] == '_');
}

static bool is(struct token token, const char *text)
{
    return (size_t)token.length == strlen(text) && !memcmp(token.text, text, strlen(text));
}

static bool starts(struct token token, const char *prefix)
{
    return (size_t)token.length >= strlen(prefix) && !memcmp(token.text, prefix, strlen(prefix));
}

static struct token peek(const struct tokens *tokens)
{
    return tokens->next < tokens->count ? tokens->items[tokens->next] : (struct token){"", 0};
}

static struct token take(struct tokens *tokens)
{
    const struct token token = peek(tokens);

    if (token.length)
        tokens->next++;
    return token;
}

static struct token word_at(const char *text)
{
    struct token token = {text, 0};

    while (isalnum((unsigned char)text[token.length]) || text[token.length] == '_')
        token.length++;
    return token;
}

/* "#define name value": names of values of the API begin with capitals, names of renamed functions with cu; others are not part of the
 * API. */
static void list_macro(const char *line, const char *all)
{
    const struct token name = word_at(line);
    const char *value = name.text + name.length;
    char undefined[256];

    snprintf(undefined, sizeof undefined, "#undef %.*s\n", name.length, name.text);
    if (*value == '(' || strspn(value, " ") == strcspn(value, "\n") || strstr(all, undefined))
        return;
    if (starts(name, "cu"))
        printf("RENAME(\"%.*s\", %.*s)\n", name.length, name.text, name.length, name.text);
    else if (starts(name, "CU") || starts(name, "RESOURCE_ABI"))
        printf("MACRO(%.*s)\n", name.length, name.text);
}

/* Splits the text into tokens; macros are listed here, since they end at the end of their line. */
static struct tokens scan(const char *all)
{
    struct tokens tokens = {0};
    size_t capacity = 0;

    for (const char *at = all; *at;) {
        struct token token = word_at(at);

        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        if (*at == '#') {
            if (!strncmp(at, "#define ", 8))
                list_macro(at + 8, all);
            at += strcspn(at, "\n");
            continue;
        }
        if (!token.length)
            token.length = 1;
        if (tokens.count == capacity) {
            capacity = capacity ? 2 * capacity : 4096;
            tokens.items = realloc(tokens.items, capacity * sizeof *tokens.items);
            if (!tokens.items)
                fail("out of memory");
        }
        tokens.items[tokens.count++] = token;
        at += token.length;
    }
    return tokens;
}

/* Returns the position after the closing brace; the opening one has been consumed. */
static void skip_to_close(struct tokens *tokens, const char *open, const char *close)
{
    for (int depth = 1; depth > 0;) {
        const struct token token = take(tokens);

        if (!token.length)
            fail("a bracket is not closed");
        depth += is(token, open) - is(token, close);
    }
}

/* enum { A = .., B }: an enumerator stands at the beginning and after each comma. */
static void list_enumerators(struct tokens *tokens)
{
    bool expected = true;

    for (struct token token = take(tokens); !is(token, "}"); token = take(tokens)) {
        if (!token.length)
            fail("an enum is not closed");
        if (expected && (starts(token, "CU") || starts(token, "NVCL")))
            printf("ENUMERATOR(%.*s)\n", token.length, token.text);
        expected = is(token, ",");
    }
}

/* Collects the paths of the members up to the closing brace, each followed by a newline. */
static void collect_members(struct tokens *tokens, const char *prefix, char *paths, size_t size);

static void add_path(char *paths, size_t size, const char *prefix, struct token name)
{
    const size_t used = strlen(paths);

    if ((size_t)snprintf(paths + used, size - used, "%s%.*s\n", prefix, name.length, name.text) >= size - used)
        fail("too many members");
}

/* struct { .. } name; inside a struct. The members are collected first, since the name follows them. */
static void collect_nested(struct tokens *tokens, const char *prefix, char *paths, size_t size)
{
    char inner[4096] = "", inner_prefix[256];
    struct token name;

    collect_members(tokens, "", inner, sizeof inner);
    name = take(tokens);
    snprintf(inner_prefix, sizeof inner_prefix, is_word(name) ? "%s%.*s." : "%s", prefix, name.length, name.text);
    if (is_word(name)) {
        add_path(paths, size, prefix, name);
        if (!is(take(tokens), ";"))
            fail("an array of unnamed structs");
    }
    for (char *line = strtok(inner, "\n"); line; line = strtok(NULL, "\n"))
        add_path(paths, size, inner_prefix, (struct token){line, (int)strlen(line)});
}

static void collect_members(struct tokens *tokens, const char *prefix, char *paths, size_t size)
{
    struct token last = {"", 0};

    for (struct token token = take(tokens); !is(token, "}"); token = take(tokens)) {
        if (!token.length)
            fail("a struct is not closed");
        if (is(token, "{")) {
            collect_nested(tokens, prefix, paths, size);
            last.length = 0;
        } else if (is(token, "[")) {
            skip_to_close(tokens, "[", "]");
        } else if (is(token, "(")) { /* alignment, or a pointer to a function, whose name is the last word in the parentheses */
            while (!is(token = take(tokens), ")"))
                if (is_word(token))
                    last = token;
            if (is(peek(tokens), "(")) {
                take(tokens);
                skip_to_close(tokens, "(", ")");
            }
        } else if (is_word(token)) {
            last = token;
        } else if ((is(token, ",") || is(token, ";")) && last.length) {
            add_path(paths, size, prefix, last);
            last.length = 0;
        }
    }
}

/* Lists the names after a typedef's body, up to the semicolon; returns the first one. */
static struct token list_names(struct tokens *tokens)
{
    struct token first = {"", 0};

    for (struct token token = take(tokens); token.length && !is(token, ";"); token = take(tokens)) {
        if (!is_word(token))
            continue;
        printf("TYPE(%.*s)\n", token.length, token.text);
        if (!first.length)
            first = token;
    }
    return first;
}

/* typedef int A, B;   typedef struct T *H;   typedef void (*F)(..); */
static void list_plain(struct tokens *tokens)
{
    struct token name = {"", 0};

    for (struct token token = take(tokens); token.length; token = take(tokens)) {
        if (is(token, "(") && name.length && is(peek(tokens), "*")) {
            while (!is(token = take(tokens), ")"))
                name = token;
            while (!is(take(tokens), "("))
                ;
            skip_to_close(tokens, "(", ")");
        } else if (is_word(token)) {
            name = token;
        } else if (is(token, ",") || is(token, ";")) {
            if (starts(name, "CU") || starts(name, "cuuint"))
                printf("TYPE(%.*s)\n", name.length, name.text);
            if (is(token, ";"))
                return;
        }
    }
}

static void list_typedef(struct tokens *tokens)
{
    const size_t start = tokens->next;
    const struct token keyword = take(tokens);
    char paths[16384] = "";

    if (is_word(peek(tokens)))
        take(tokens); /* the tag */
    if (!is(peek(tokens), "{")) {
        tokens->next = start;
        list_plain(tokens);
        return;
    }
    take(tokens);
    if (is(keyword, "enum")) {
        list_enumerators(tokens);
        list_names(tokens);
        return;
    }
    collect_members(tokens, "", paths, sizeof paths);
    if (starts(peek(tokens), "CU")) {
        const struct token name = list_names(tokens);

        for (char *line = strtok(paths, "\n"); line; line = strtok(NULL, "\n"))
            printf("FIELD(%.*s, %s)\n", name.length, name.text, line);
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    static char text[1 << 22];
    struct tokens tokens;

    if (!file)
        fail("usage: abi_list PREPROCESSED_HEADER");
    if (fread(text, 1, sizeof text - 1, file) == sizeof text - 1)
        fail("the header is too long");
    fclose(file);
    tokens = scan(text);
    while (tokens.next < tokens.count)
        if (is(take(&tokens), "typedef"))
            list_typedef(&tokens);
    free(tokens.items);
    return EXIT_SUCCESS;
}
