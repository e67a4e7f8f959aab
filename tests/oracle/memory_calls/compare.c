/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two traces of the same sequences. A sequence is compared up to the first line that differs; if that difference is allowed
 * (allowed.def) and the calls continue alike, the comparison continues. */
#include "calls.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *call, *native, *ours, *why;
} allowed[] = {
#define ALLOW(call, native, ours, why) {call, native, ours, why},
#include "allowed.def"
#undef ALLOW
};
#define ALLOWED (sizeof allowed / sizeof *allowed)

static unsigned long counts[ALLOWED];

struct trace {
    char **lines;
    size_t count, at;
};

static bool read_trace(const char *path, struct trace *t)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, lines = 0;
    ssize_t length;

    if (!file)
        return false;
    while ((length = getline(&line, &room, file)) >= 0) {
        if (length && line[length - 1] == '\n')
            line[length - 1] = 0;
        if (t->count == lines)
            t->lines = realloc(t->lines, (lines = lines ? lines * 2 : 1024) * sizeof *t->lines);
        if (!t->lines || !(t->lines[t->count++] = strdup(line)))
            abort();
    }
    free(line);
    fclose(file);
    return true;
}

static void forget(struct trace *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->lines[i]);
    free(t->lines);
}

static bool begins_sequence(const char *line)
{
    return strncmp(line, "== ", 3) == 0;
}

/* Returns the beginning of the result; the call extends up to there. */
static const char *result_of(const char *line)
{
    const char *found = strstr(line, ") = ");

    return found ? found + 4 : line + strlen(line);
}

static bool same_call(const char *a, const char *b)
{
    const size_t length = (size_t)(result_of(a) - a);

    return length == (size_t)(result_of(b) - b) && strncmp(a, b, length) == 0;
}

static bool is_allowed(const char *native, const char *ours)
{
    for (size_t i = 0; i < ALLOWED; i++)
        if (same_call(native, ours) && fnmatch(allowed[i].call, native, 0) == 0 && fnmatch(allowed[i].native, result_of(native), 0) == 0 &&
            fnmatch(allowed[i].ours, result_of(ours), 0) == 0)
            return ++counts[i];
    return false;
}

/* Whether both continued with the same state: queries change nothing, and other calls only if they succeed. */
static bool leaves_same_state(const char *a, const char *b)
{
    const char *get = strstr(a, "Get");

    return (get && get < strchr(a, '(')) || (strncmp(result_of(a), "SUCCESS", 7) == 0) == (strncmp(result_of(b), "SUCCESS", 7) == 0);
}

/* Returns true if there is no difference; prints a difference. */
static bool compare_sequence(const struct trace *n, size_t i, const struct trace *o, size_t k)
{
    const char *name = n->lines[i];

    for (i++, k++; i < n->count && k < o->count && !begins_sequence(n->lines[i]) && !begins_sequence(o->lines[k]); i++, k++) {
        const char *a = n->lines[i], *b = o->lines[k];

        if (strcmp(a, b) == 0 || strncmp(a, "(end", 4) == 0)
            continue;
        if (!strstr(a, ") = "))
            return true; /* NVIDIA's driver crashed here */
        if (!same_call(a, b) && strstr(b, ") = "))
            return true; /* after an allowed difference */
        if (is_allowed(a, b)) {
            if (leaves_same_state(a, b))
                continue;
            return true;
        }
        printf("%s\n  %.*s\n    native %s\n    ours   %s\n", name + 3, (int)(result_of(a) - a), a, result_of(a), result_of(b));
        return false;
    }
    return true;
}

static size_t next_sequence(const struct trace *t, size_t at)
{
    while (at < t->count && !begins_sequence(t->lines[at]))
        at++;
    return at;
}

static unsigned long long number_of(const char *line)
{
    return strtoull(line + 3, NULL, 10);
}

/* Both files contain their sequences in ascending order, but perhaps not all of them. */
int calls_compare(const char *of_native, const char *of_ours, bool all)
{
    struct trace n = {0}, o = {0};
    unsigned long sequences = 0, differ = 0;
    size_t k = 0;

    if (!read_trace(of_native, &n) || !read_trace(of_ours, &o)) {
        fprintf(stderr, "cannot read the traces\n");
        return EXIT_FAILURE;
    }
    k = next_sequence(&o, 0);
    for (size_t i = next_sequence(&n, 0); i < n.count; i = next_sequence(&n, i + 1)) {
        while (k < o.count && number_of(o.lines[k]) < number_of(n.lines[i]))
            k = next_sequence(&o, k + 1);
        if (k == o.count || number_of(o.lines[k]) != number_of(n.lines[i]))
            continue;
        sequences++;
        differ += !compare_sequence(&n, i, &o, k);
    }
    for (size_t i = 0; i < ALLOWED && all; i++)
        printf("%6lu allowed: %s %s, ours %s: %s\n", counts[i], allowed[i].call, allowed[i].native, allowed[i].ours, allowed[i].why);
    printf("%lu of %lu sequences differ\n", differ, sequences);
    forget(&n);
    forget(&o);
    return differ || !sequences ? EXIT_FAILURE : EXIT_SUCCESS;
}
