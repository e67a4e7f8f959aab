/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the two runs belong together by the order of their first calls, and calls of two threads by the longest common subsequence of their functions.
 *
 * Handles and device addresses differ from run to run, so what counts is whether they are the same thing: when a call first has one of A where its partner
 * has one of B, the two are partners from then on. A call that makes something may make it at an address that was used before, and then begins a new
 * partnership. Host addresses are not compared. */
#include "trace_diff.h"

#include "align.h"
#include "grow.h"
#include "profile.h"
#include "signature.h"
#include "trace_load.h"

#include "entry_points.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 40 /* of a section */

struct argument {
    char *key, *value;
};

struct call {
    unsigned symbol; /* index in entry_points.def; CT_ENTRY_POINT_COUNT and greater: unknown here */
    struct argument *arguments;
    unsigned n_arguments; /* with the result */
};

struct thread {
    uint64_t process, thread;
    struct call *calls;
    size_t n_calls;
};

struct run {
    struct thread *threads; /* in the order of their first calls */
    unsigned n_threads;
};

/* How often something is different, by a text that describes it. */
struct difference {
    UT_hash_handle hh;
    char *text;
    unsigned long count;
};

struct partner {
    UT_hash_handle hh;
    char *address, *other;
};

struct diff {
    struct run a, b;
    struct partner *partners; /* of addresses of A */
    struct difference *only_a, *only_b, *results, *arguments;
    unsigned long n_a, n_b, n_common;
    bool has_no_memory;
};

/* ---- reading ---- */

static unsigned symbol_index(const char *name)
{
    unsigned i = 0;

    while (i < CT_ENTRY_POINT_COUNT && strcmp(signature_symbol(i), name) != 0)
        i++;
    return i;
}

static struct thread *find_thread(struct run *run, uint64_t process, uint64_t thread)
{
    struct thread *grown;

    for (unsigned i = run->n_threads; i-- > 0;)
        if (run->threads[i].process == process && run->threads[i].thread == thread)
            return &run->threads[i];
    grown = GROW(run->threads, run->n_threads);
    if (!grown)
        return NULL;
    run->threads = grown;
    grown[run->n_threads] = (struct thread){.process = process, .thread = thread};
    return &grown[run->n_threads++];
}

static bool add_text(struct call *call, const char *key, const char *value)
{
    struct argument *grown = GROW(call->arguments, call->n_arguments);

    if (!grown)
        return false;
    call->arguments = grown;
    grown[call->n_arguments] = (struct argument){strdup(key), strdup(value)};
    call->n_arguments++;
    return grown[call->n_arguments - 1].key && grown[call->n_arguments - 1].value;
}

/* Adds an argument; those of structs and lists one by one, as "config.gridDimX" and "kernelParams[1]". */
static bool add_argument(struct call *call, const char *key, const struct json_value *value)
{
    char part[256];
    unsigned i = 0;

    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        return add_text(call, key, value->text);
    for (const struct json_value *member = value->first; member; member = member->next, i++) {
        if (member->key)
            snprintf(part, sizeof part, "%s.%s", key, member->key);
        else
            snprintf(part, sizeof part, "%s[%u]", key, i);
        if (!add_argument(call, part, member))
            return false;
    }
    return true;
}

static bool take_call(void *user, const struct json_value *event)
{
    struct run *run = user;
    const struct json_value *args = json_member(event, "args");
    struct thread *thread;
    struct call *grown;

    if (strcmp(json_member_text(event, "cat", ""), "call") != 0)
        return true;
    thread = find_thread(run, (uint64_t)json_member_number(event, "pid", 0), (uint64_t)json_member_number(event, "tid", 0));
    grown = thread ? GROW(thread->calls, thread->n_calls) : NULL;
    if (!grown)
        return false;
    thread->calls = grown;
    grown[thread->n_calls] = (struct call){.symbol = symbol_index(json_member_text(event, "name", ""))};
    for (const struct json_value *value = args ? args->first : NULL; value; value = value->next)
        if (value->key && strcmp(value->key, "correlation") != 0 && !add_argument(&grown[thread->n_calls], value->key, value))
            return false;
    thread->n_calls++;
    return true;
}

static void finish_run(struct run *run)
{
    for (unsigned i = 0; i < run->n_threads; i++) {
        for (size_t k = 0; k < run->threads[i].n_calls; k++) {
            struct call *call = &run->threads[i].calls[k];

            for (unsigned j = 0; j < call->n_arguments; j++) {
                free(call->arguments[j].key);
                free(call->arguments[j].value);
            }
            free(call->arguments);
        }
        free(run->threads[i].calls);
    }
    free(run->threads);
}

/* ---- counting ---- */

static void count(struct diff *diff, struct difference **table, char *text)
{
    struct difference *difference = NULL;

    if (text)
        HASH_FIND_STR(*table, text, difference);
    if (difference || !text) {
        diff->has_no_memory = diff->has_no_memory || !text;
        free(text);
    } else if ((difference = calloc(1, sizeof *difference))) {
        difference->text = text;
        HASH_ADD_KEYPTR(hh, *table, difference->text, strlen(text), difference);
    } else {
        diff->has_no_memory = true;
        free(text);
        return;
    }
    if (difference)
        difference->count++;
}

static const char *name_of(const struct call *call)
{
    return call->symbol < CT_ENTRY_POINT_COUNT ? signature_symbol(call->symbol) : "unknown";
}

/* ---- comparing calls ---- */

static const char *argument_value(const struct call *call, const char *key)
{
    for (unsigned i = 0; i < call->n_arguments; i++)
        if (!strcmp(call->arguments[i].key, key))
            return call->arguments[i].value;
    return NULL;
}

enum comparison { COMPARE_NOT, COMPARE_TEXT, COMPARE_PARTNERS };

/* What is compared of an argument depends on its type: nothing of host addresses, of addresses in structs, and of 8 bytes and more that are passed to a
 * kernel, which may be one. */
static enum comparison comparison_of(const struct call *call, const struct argument *argument)
{
    struct signature signature;
    int index;

    if (strncmp(argument->value, "0x", 2) != 0)
        return COMPARE_TEXT;
    if (strpbrk(argument->key, ".["))
        return !strncmp(argument->key, "kernelParams[", 13) && strlen(argument->value) <= strlen("0x12345678") ? COMPARE_TEXT : COMPARE_NOT;
    if (call->symbol >= CT_ENTRY_POINT_COUNT)
        return COMPARE_NOT;
    signature_parse(call->symbol, &signature);
    index = signature_find(&signature, argument->key);
    return index >= 0 && signature.parameters[index].type && signature.parameters[index].type->kind == API_ADDRESS ? COMPARE_PARTNERS
                                                                                                                   : COMPARE_NOT;
}

/* Whether the call may make, or give out, what its arguments name. */
static bool makes_handles(const char *name)
{
    static const char *const words[] = {"Create", "Alloc",  "Get", "Load",    "Retain",   "Instantiate", "Clone", "Add",
                                        "Open",   "Import", "Map", "Reserve", "Register", "Capture",     "Pop",   "Enumerate"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* Whether two addresses stand for the same thing. */
static bool are_partners(struct diff *diff, const char *a, const char *b, bool is_new)
{
    struct partner *partner;

    if (!strcmp(a, "0x0") || !strcmp(b, "0x0"))
        return !strcmp(a, b);
    HASH_FIND_STR(diff->partners, a, partner);
    if (partner && !strcmp(partner->other, b))
        return true;
    if (partner && !is_new)
        return false;
    if (!partner && (partner = calloc(1, sizeof *partner)) && (partner->address = strdup(a)))
        HASH_ADD_KEYPTR(hh, diff->partners, partner->address, strlen(a), partner);
    if (!partner || !partner->address) {
        free(partner);
        diff->has_no_memory = true;
        return true;
    }
    free(partner->other);
    partner->other = strdup(b);
    diff->has_no_memory = diff->has_no_memory || !partner->other;
    return true;
}

/* "cuDeviceGetAttribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE)": with the enumerators, which say what the call is about. */
static char *describe(const struct call *call)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    unsigned n = 0;

    if (!memory)
        return NULL;
    fputs(name_of(call), memory);
    for (unsigned i = 0; i < call->n_arguments; i++)
        if (!strncmp(call->arguments[i].value, "CU_", 3))
            fprintf(memory, "%s%s", n++ ? ", " : "(", call->arguments[i].value);
    if (n)
        putc(')', memory);
    fclose(memory);
    return text;
}

static void compare_calls(struct diff *diff, const struct call *a, const struct call *b)
{
    const char *result_a = argument_value(a, "result"), *result_b = argument_value(b, "result");
    const bool is_new = makes_handles(name_of(a));
    char *what = describe(a), *text;

    diff->n_common++;
    if (!what || !result_a || !result_b) {
        diff->has_no_memory = diff->has_no_memory || !what;
    } else if (strcmp(result_a, result_b) != 0) {
        count(diff, &diff->results, asprintf(&text, "%s: %s | %s", what, result_a, result_b) < 0 ? NULL : text);
    } else {
        for (unsigned i = 0; i < a->n_arguments; i++) {
            const char *value = argument_value(b, a->arguments[i].key);
            const enum comparison comparison = value ? comparison_of(a, &a->arguments[i]) : COMPARE_NOT;

            if (comparison == COMPARE_PARTNERS && !are_partners(diff, a->arguments[i].value, value, is_new))
                count(diff, &diff->arguments, asprintf(&text, "%s %s: another object", what, a->arguments[i].key) < 0 ? NULL : text);
            else if (comparison == COMPARE_TEXT && strcmp(a->arguments[i].value, value) != 0)
                count(diff, &diff->arguments,
                      asprintf(&text, "%s %s: %s | %s", what, a->arguments[i].key, a->arguments[i].value, value) < 0 ? NULL : text);
        }
    }
    free(what);
}

/* Counts what only one run has. */
static void count_only(struct diff *diff, struct difference **table, const struct call *call)
{
    count(diff, table, strdup(name_of(call)));
}

/* Compares two threads, of which one may have no calls. Returns whether all of their calls were aligned. */
static bool compare_threads(struct diff *diff, const struct thread *a, const struct thread *b)
{
    unsigned *symbols_a = malloc((a->n_calls + 1) * sizeof *symbols_a), *symbols_b = malloc((b->n_calls + 1) * sizeof *symbols_b);
    size_t *partners = malloc((a->n_calls + 1) * sizeof *partners), next = 0;
    int result = -1;

    if (symbols_a && symbols_b && partners) {
        for (size_t i = 0; i < a->n_calls; i++)
            symbols_a[i] = a->calls[i].symbol;
        for (size_t i = 0; i < b->n_calls; i++)
            symbols_b[i] = b->calls[i].symbol;
        result = align(symbols_a, a->n_calls, symbols_b, b->n_calls, partners);
    }
    diff->has_no_memory = diff->has_no_memory || result < 0;
    for (size_t i = 0; i < a->n_calls && result >= 0; i++) {
        if (partners[i] == ALIGN_NONE) {
            count_only(diff, &diff->only_a, &a->calls[i]);
            continue;
        }
        for (; next < partners[i]; next++)
            count_only(diff, &diff->only_b, &b->calls[next]);
        compare_calls(diff, &a->calls[i], &b->calls[next++]);
    }
    for (; next < b->n_calls && result >= 0; next++)
        count_only(diff, &diff->only_b, &b->calls[next]);
    diff->n_a += a->n_calls;
    diff->n_b += b->n_calls;
    free(symbols_a);
    free(symbols_b);
    free(partners);
    return result <= 0;
}

/* ---- the report ---- */

static int compare_counts(const struct difference *a, const struct difference *b)
{
    return a->count != b->count ? (a->count > b->count ? -1 : 1) : strcmp(a->text, b->text);
}

static void write_differences(const char *title, struct difference **table, FILE *to)
{
    unsigned lines = 0;

    if (!*table)
        return;
    HASH_SORT(*table, compare_counts);
    fprintf(to, "\n%s\n", title);
    for (struct difference *difference = *table; difference; difference = difference->hh.next)
        if (lines++ < LINES_MAX)
            fprintf(to, "%8lu  %s\n", difference->count, difference->text);
    if (lines > LINES_MAX)
        fprintf(to, "          and %u more\n", lines - LINES_MAX);
}

static void free_differences(struct difference **table)
{
    struct difference *difference, *next;

    HASH_ITER(hh, *table, difference, next)
    {
        HASH_DEL(*table, difference);
        free(difference->text);
        free(difference);
    }
}

static const struct profile_row *find_row(const struct profile *profile, const struct profile_row *like)
{
    for (unsigned i = 0; i < profile->n_rows; i++)
        if (profile->sorted[i]->section == like->section && !strcmp(profile->sorted[i]->name, like->name))
            return profile->sorted[i];
    return NULL;
}

/* The times of what both runs did, in the order of A's profile. */
static void write_times(const struct profile *a, const struct profile *b, FILE *to)
{
    static const char *const titles[] = {
        [PROFILE_KERNELS] = "Kernels",
        [PROFILE_TRANSFERS] = "Copies, fills and graphs",
        [PROFILE_COMPILATIONS] = "Compilations, and calls that load code",
        [PROFILE_CALLS] = "Calls",
    };
    enum profile_section last = PROFILE_SECTION_COUNT;
    unsigned lines = 0;

    for (unsigned i = 0; i < a->n_rows; i++) {
        const struct profile_row *row = a->sorted[i], *other = find_row(b, row);
        char mean_a[24], mean_b[24];

        if (!other)
            continue;
        lines = row->section == last ? lines + 1 : 0;
        if (row->section != last)
            fprintf(to, "\n%s: mean times\n%12s %12s %8s\n", titles[row->section], "A", "B", "B/A");
        last = row->section;
        if (lines >= LINES_MAX)
            continue;
        profile_format_time(row->total_us / (double)row->count, mean_a);
        profile_format_time(other->total_us / (double)other->count, mean_b);
        fprintf(to, "%12s %12s %8.2f  %s\n", mean_a, mean_b,
                other->total_us / (double)other->count / (row->total_us > 0 ? row->total_us / (double)row->count : 1e-3), row->name);
    }
}

static bool compare_runs(const char *verb, struct diff *diff)
{
    static const struct thread none;
    bool is_aligned = true;

    for (unsigned i = 0; i < diff->a.n_threads || i < diff->b.n_threads; i++) {
        const struct thread *a = i < diff->a.n_threads ? &diff->a.threads[i] : &none,
                            *b = i < diff->b.n_threads ? &diff->b.threads[i] : &none;

        is_aligned = compare_threads(diff, a, b) && is_aligned;
    }
    if (diff->has_no_memory)
        fprintf(stderr, "%s: no memory\n", verb);
    else if (!is_aligned)
        fprintf(stderr, "%s: a thread differs in more than %d calls; what follows them was not compared\n", verb, ALIGN_DIFFERENCES_MAX);
    return !diff->has_no_memory;
}

enum trace_diff_result trace_diff(const char *verb, const char *path_a, const char *path_b, FILE *to)
{
    struct profile profile_a = {0}, profile_b = {0};
    struct partner *partner, *next;
    struct diff diff = {0};
    enum trace_diff_result result = TRACE_DIFF_FAILED;

    if (profile_load(verb, path_a, PROFILE_ALL, &profile_a) && profile_load(verb, path_b, PROFILE_ALL, &profile_b) &&
        trace_load(verb, path_a, take_call, &diff.a) && trace_load(verb, path_b, take_call, &diff.b) && compare_runs(verb, &diff)) {
        const bool is_same = !diff.only_a && !diff.only_b && !diff.results && !diff.arguments;

        fprintf(to, "A: %s\nB: %s\n%lu calls in A, %lu in B, %lu in both%s\n", path_a, path_b, diff.n_a, diff.n_b, diff.n_common,
                is_same ? "; nothing differs but times" : "");
        write_differences("Calls only in A", &diff.only_a, to);
        write_differences("Calls only in B", &diff.only_b, to);
        write_differences("Other results: A | B", &diff.results, to);
        write_differences("Other arguments: A | B", &diff.arguments, to);
        write_times(&profile_a, &profile_b, to);
        result = is_same ? TRACE_DIFF_SAME : TRACE_DIFF_DIFFERENT;
    }
    free_differences(&diff.only_a);
    free_differences(&diff.only_b);
    free_differences(&diff.results);
    free_differences(&diff.arguments);
    HASH_ITER(hh, diff.partners, partner, next)
    {
        HASH_DEL(diff.partners, partner);
        free(partner->address);
        free(partner->other);
        free(partner);
    }
    finish_run(&diff.a);
    finish_run(&diff.b);
    profile_finish(&profile_a);
    profile_finish(&profile_b);
    return result;
}
