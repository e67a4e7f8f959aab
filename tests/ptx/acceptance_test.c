/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler accepts what ptxas accepts and rejects what ptxas rejects: acceptance/snippets.txt holds snippets with the verdict of ptxas,
 * acceptance/differences.txt the intended differences, with their reasons (acceptance/README.md). A difference without a reason is a
 * failure, and so is a reason without a difference.
 *
 *   ptx_acceptance_test [--list] [file of snippets]     prints differences without a reason; with --list all of them
 *   ptx_acceptance_test --refused docs/ptx.md           checks the list of refused instructions: the compiler refuses every example in it,
 *                                                       and there is an example for each opcode that cannot be built, and for each reason
 *                                                       of a class not-yet-* or no-such-register
 * Runs in the folder that contains acceptance/. */
#include "cuttle/ptx2spv.h"
#include "ptx2spv/syntax/opcodes.h"

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNIPPETS "acceptance/snippets.txt"
#define DIFFERENCES "acceptance/differences.txt"
#define PRELUDE "acceptance/prelude.txt"

enum { MAX_LINE = 4096, MAX_PRELUDE = 4096, MAX_USES = 8192, AT_LEAST = 1000 /* snippets: running in a wrong folder must not pass */ };

/* A device that lacks nothing: whatever is rejected is rejected because of the PTX. */
static const struct ptx2spv_target device = {
    .dialect = PTX2SPV_VULKAN,
    .pointer_rule = PTX2SPV_POINTER_SAME,
    .max_block_threads = 1024,
    .push_constant_bytes = 256,
    .shared_bytes = 49152,
    .subgroup_size = 32,
    .warp_form = PTX2SPV_WARP_NATIVE,
    .float64 = 1,
    .float16 = 1,
    .int64 = 1,
    .int16 = 1,
    .int8 = 1,
    .storage8 = 1,
    .storage16 = 1,
    .atomic_int64_global = 1,
    .atomic_int64_shared = 1,
    .atomic_float32_add_global = 1,
    .atomic_float32_add_shared = 1,
    .atomic_float64_add_global = 1,
    .atomic_float64_add_shared = 1,
    .memory_model_device_scope = 1,
    .maximal_reconvergence = 1,
    .shared_explicit_layout = 1,
    .shared_explicit_layout8 = 1,
    .shared_explicit_layout16 = 1,
    .shader_clock_subgroup = 1,
    .shader_clock_device = 1,
    .exact_fma32 = 1,
    .exact_fma64 = 1,
    .exact_div32 = 1,
    .exact_div64 = 1,
    .exact_sqrt32 = 1,
    .exact_sqrt64 = 1,
    .exact_zeros = 1,
    .keeps_subnormals32 = 1,
    .near_functions = PTX2SPV_NEAR_ALL,
};

/* A row of differences.txt. */
struct reason {
    char verdict; /* of ptxas */
    char class[32];
    char text[MAX_LINE]; /* the source of the pattern */
    regex_t pattern;
    unsigned hits;
};

struct state {
    char prelude[MAX_PRELUDE], version[16], target[64];
    struct reason *reasons;
    unsigned n_reasons, n_snippets, n_same, n_explained, n_unexplained;
    bool list;
};

static _Noreturn void die(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", what, name);
    exit(1);
}

static FILE *open_file(const char *name)
{
    FILE *file = fopen(name, "r");

    if (!file)
        die("cannot be opened", name);
    return file;
}

static void cut_newline(char *line)
{
    line[strcspn(line, "\n")] = 0;
}

/* ---- the table of reasons ---- */

/* A verdict of ptxas, a class, and a pattern; '#' begins a comment. */
static void add_reason(struct state *state, const char *line)
{
    struct reason *reason;
    int at = 0;

    state->reasons = realloc(state->reasons, (state->n_reasons + 1) * sizeof *state->reasons);
    if (!state->reasons)
        die("out of memory", DIFFERENCES);
    reason = &state->reasons[state->n_reasons++];
    *reason = (struct reason){.verdict = line[0]};
    if (sscanf(line + 1, " %31s %n", reason->class, &at) != 1 || !at)
        die("not a row", line);
    snprintf(reason->text, sizeof reason->text, "%s", line + 1 + at);
    if (regcomp(&reason->pattern, reason->text, REG_EXTENDED | REG_NOSUB))
        die("not a regular expression", reason->text);
}

static void read_reasons(struct state *state)
{
    FILE *file = open_file(DIFFERENCES);
    char line[MAX_LINE];

    while (fgets(line, sizeof line, file)) {
        cut_newline(line);
        if (line[0] == '+' || line[0] == '-' || line[0] == 'v')
            add_reason(state, line);
    }
    fclose(file);
}

/* The reason of a difference, or NULL. Patterns are matched against "version target: snippet". */
static struct reason *find_reason(struct state *state, char verdict, const char *snippet)
{
    char text[MAX_LINE + 128];

    snprintf(text, sizeof text, "%s %s: %s", state->version, state->target, snippet);
    for (unsigned i = 0; i < state->n_reasons; i++)
        if (state->reasons[i].verdict == verdict && !regexec(&state->reasons[i].pattern, text, 0, NULL, 0))
            return &state->reasons[i];
    return NULL;
}

/* ---- the compiler ---- */

static void keep_first(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    char *first = user;

    if (!*first && diagnostic->severity == PTX2SPV_ERROR)
        snprintf(first, 256, "%.*s", (int)strcspn(diagnostic->text, "\n"), diagnostic->text);
}

/* Stores every register of the prelude: code without uses is not compiled to the end. */
static size_t put_uses(char *out, size_t size)
{
    static const struct {
        const char *stem, *type;
        unsigned n;
    } registers[] = {
        {"h", "b16", 8}, {"hu", "u16", 4}, {"hs", "s16", 4}, {"r", "b32", 12}, {"u", "u32", 8}, {"s", "s32", 8},
        {"f", "f32", 8}, {"q", "b64", 8},  {"qu", "u64", 6}, {"qs", "s64", 6}, {"d", "f64", 8},
    };
    size_t used = 0;

    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        for (unsigned k = 0; k < registers[i].n; k++)
            used += (size_t)snprintf(out + used, size - used, "st.global.%s [%%q0], %%%s%u;\n", registers[i].type, registers[i].stem, k);
    for (unsigned k = 0; k < 4; k++)
        used += (size_t)snprintf(out + used, size - used, "@%%p%u st.global.u32 [%%q0], %%r0;\n", k);
    return used;
}

/* A snippet is the body of a kernel, or, after "M " or "A ", module-level text; '@' represents a part of a name. */
static void make_module(const struct state *state, const char *snippet, char *out, size_t size)
{
    const bool sized = atof(state->version) >= 2.3;
    size_t used = (size_t)snprintf(out, size, ".version %s\n.target %s\n%s.global .align 16 .b8 gl[64];\n.const .align 16 .b8 co[64];\n",
                                   state->version, state->target, sized ? ".address_size 64\n" : "");

    if (strncmp(snippet, "M ", 2) && strncmp(snippet, "A ", 2)) {
        /* Up to PTX ISA 1.3 parameters are declared in the body. */
        used += (size_t)snprintf(out + used, size - used, ".entry k %s %s\n%s\n",
                                 atof(state->version) >= 1.4 ? "(.param .u64 out) {" : "{ .param .u64 out;", state->prelude, snippet);
        used += put_uses(out + used, size - used);
        snprintf(out + used, size - used, "}\n");
        return;
    }
    for (const char *c = snippet + 2; *c && used + 2 < size; c++)
        out[used++] = *c == '@' ? 'n' : *c;
    out[used] = 0;
}

static bool compiles(const struct state *state, const char *snippet, char *message)
{
    const struct ptx2spv_options options = {.on_diagnostic = keep_first, .user = message};
    char text[MAX_LINE + MAX_PRELUDE + MAX_USES + 512];
    struct ptx2spv_module *module;
    bool ok = true;

    *message = 0;
    make_module(state, snippet, text, sizeof text);
    if (ptx2spv_module_create(text, strlen(text), &options, &module) != PTX2SPV_OK)
        return false;
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module) && ok; i++) {
        struct ptx2spv_kernel kernel;

        ok = ptx2spv_kernel_compile(module, i, &device, &options, &kernel) == PTX2SPV_OK;
        if (ok)
            ptx2spv_kernel_finish(&kernel);
    }
    ptx2spv_module_destroy(module);
    return ok;
}

/* ---- snippets ---- */

static void check_snippet(struct state *state, char verdict, const char *snippet)
{
    char message[256];
    struct reason *reason;

    state->n_snippets++;
    if (compiles(state, snippet, message) == (verdict == '+')) {
        state->n_same++;
        return;
    }
    reason = find_reason(state, verdict, snippet);
    if (reason)
        reason->hits++;
    state->n_explained += reason != NULL;
    state->n_unexplained += reason == NULL;
    if (!reason || state->list)
        printf("%c %s %s: %s%s%s%s%s\n", verdict, state->version, state->target, snippet, *message ? "   // " : "", message,
               reason ? "   class " : "", reason ? reason->class : "");
}

static void read_head(struct state *state, const char *line)
{
    if (sscanf(line, "= %15s %63[^\n]", state->version, state->target) != 2)
        die("not a head", line);
}

static void check_file(struct state *state, const char *name)
{
    FILE *file = open_file(name);
    char line[MAX_LINE];

    while (fgets(line, sizeof line, file)) {
        cut_newline(line);
        if (line[0] == '=')
            read_head(state, line);
        else if (line[0] == '+' || line[0] == '-' || line[0] == 'v')
            check_snippet(state, line[0], line + 2);
        else if (line[0] && line[0] != '#')
            die("neither a head nor a snippet with a verdict", line);
    }
    fclose(file);
}

static void read_prelude(struct state *state)
{
    FILE *file = open_file(PRELUDE);

    state->prelude[fread(state->prelude, 1, sizeof state->prelude - 1, file)] = 0;
    fclose(file);
}

/* The number of differences that each class explains; rows that explain none are stale. */
static unsigned report(const struct state *state)
{
    unsigned stale = 0;

    for (unsigned i = 0; i < state->n_reasons; i++) {
        const struct reason *reason = &state->reasons[i];
        unsigned hits = 0;
        bool is_first = true;

        for (unsigned k = 0; k < state->n_reasons; k++)
            if (state->reasons[k].verdict == reason->verdict && !strcmp(state->reasons[k].class, reason->class)) {
                is_first &= k >= i;
                hits += state->reasons[k].hits;
            }
        if (is_first)
            printf("%6u %s, %s\n", hits, reason->class,
                   reason->verdict == '+' ? "refused although ptxas takes it" : "taken although ptxas refuses it");
        if (!reason->hits) {
            printf("no difference has this reason: %s %s\n", reason->class, reason->text);
            stale++;
        }
    }
    printf("%u snippets: %u as ptxas, %u explained, %u unexplained\n", state->n_snippets, state->n_same, state->n_explained,
           state->n_unexplained);
    return stale;
}

/* ---- the list of what is refused ---- */

static const char *const opcodes[] = {
#define PTX_OPCODE(id, spelling, ...) [PTX_OP_##id] = spelling,
#include "ptx2spv/syntax/opcodes.def"
};

/* Opcodes without a row in build.def whose instructions are in async_forms.def. */
static const char *const built[] = {
#define BUILD(opcode, ...) [PTX_OP_##opcode] = "",
#include "ptx2spv/build/build.def"
    [PTX_OP_MBARRIER] = "",
};

struct examples {
    bool shown[sizeof opcodes / sizeof *opcodes];
    unsigned n, wrong;
};

static void note_opcode(struct examples *examples, const char *example)
{
    const size_t length = strcspn(example, ". ;");

    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (opcodes[i] && strlen(opcodes[i]) == length && !strncmp(opcodes[i], example, length))
            examples->shown[i] = true;
}

/* A row of the table: | `example` | target | what it is |. Other lines are none. */
static void check_example(struct state *state, struct examples *examples, const char *line)
{
    char example[MAX_LINE], message[256];
    struct reason *reason;

    if (sscanf(line, "| `%[^`]` | %63[^ |] |", example, state->target) != 2)
        return;
    snprintf(state->version, sizeof state->version, "9.0");
    examples->n++;
    note_opcode(examples, example);
    reason = find_reason(state, '+', example);
    if (reason)
        reason->hits++;
    if (compiles(state, example, message) || !strstr(message, "not supported")) {
        printf("%s: %s\n", example, *message ? message : "it is not refused");
        examples->wrong++;
    }
}

static bool is_missing_feature(const struct reason *reason)
{
    return reason->verdict == '+' && (!strncmp(reason->class, "not-yet-", 8) || !strcmp(reason->class, "no-such-register"));
}

static bool check_refused(struct state *state, const char *name)
{
    FILE *file = open_file(name);
    struct examples examples = {.n = 0};
    char line[MAX_LINE];

    while (fgets(line, sizeof line, file))
        check_example(state, &examples, line);
    fclose(file);
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (opcodes[i] && (i >= sizeof built / sizeof *built || !built[i]) && !examples.shown[i]) {
            printf("the list has no example of %s\n", opcodes[i]);
            examples.wrong++;
        }
    for (unsigned i = 0; i < state->n_reasons; i++)
        if (is_missing_feature(&state->reasons[i]) && !state->reasons[i].hits) {
            printf("the list has no example of %s %s\n", state->reasons[i].class, state->reasons[i].text);
            examples.wrong++;
        }
    printf("%u examples, %u mistakes\n", examples.n, examples.wrong);
    return examples.n && !examples.wrong;
}

static void free_reasons(struct state *state)
{
    for (unsigned i = 0; i < state->n_reasons; i++)
        regfree(&state->reasons[i].pattern);
    free(state->reasons);
}

int main(int argc, char **argv)
{
    struct state state = {0};
    const char *name = SNIPPETS;
    unsigned stale;

    read_prelude(&state);
    read_reasons(&state);
    if (argc == 3 && !strcmp(argv[1], "--refused")) {
        const bool good = check_refused(&state, argv[2]);

        free_reasons(&state);
        return !good;
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list"))
            state.list = true;
        else
            name = argv[i];
    }
    check_file(&state, name);
    stale = report(&state);
    free_reasons(&state);
    return state.n_unexplained || stale || state.n_snippets < AT_LEAST;
}
