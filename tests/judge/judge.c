/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a corpus with a judge.
 *
 *   judge [--ocloc LIBRARY DEVICE] [--valid KIND] [--spills N] [--scalar-spills N] [--crashes N] [--part K/N] [--batch N] [--chip NAME]
 *         [--table FILE] [--units NAME] [--probe WHAT] [--require TEXT] PATH..
 *     PATH        PTX files and folders that contain them; a missing folder is ignored
 *     --ocloc     Intel's OpenCL compiler; default: the Vulkan driver that the loader finds
 *     --valid     spirv-val, on the code for a kind of device (judge_valid.c)
 *     --spills    how many registers a kernel may spill (0); --scalar-spills: how many scalar ones (0)
 *     --crashes   how many kernels may crash the compiler (0)
 *     --part      K/N: the Kth (from 0) of N parts of all modules, chosen by their hashes
 *     --batch     compile up to N small modules as one, if the judge supports that (1). If that fails, or spills, each is compiled
 *     separately
 *     --units     how the chip distributes matrices over lanes, which only a probe on a device finds out: rdna3 (RDNA 3 ISA guide, "WMMA")
 *     --probe     sizes or loads: compile the kernel that finds that out in place of the kernels: the sizes of matrices in a lane, or, with --units,
 *                 which elements these are
 *     --require   text that the judge's name must contain, so that a test uses the right chip, and does not pass without a judge
 *     --table     write the statistics of each kernel there, one line each with tabs between, NAME first; needs --chip
 * Exit status: 0 success; 1 a kernel is rejected, or spills or crashes the compiler more than is allowed; 77 the judge is not available.
 * Each kernel, or batch, is compiled in a process of its own, except with spirv-val: if a compiler crashes, hangs or calls exit (Intel's
 * does), no other kernel is affected. */
#include "judge.h"

#include <spirv/unified1/spirv.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_GUILTY = 1, EXIT_USAGE = 2, EXIT_NO_JUDGE = 77 };

#define USUAL_BLOCK_THREADS 256
#define USUAL_DYNAMIC_SHARED_BYTES 1024
#define PATIENCE_S 60 /* seconds of processor time */
#define CALLS_MAX                                                                                                                          \
    24 /* of operations on f64, on a chip without them: each is a thousand instructions of Intel's GPUs, where the driver inlines it */
#define ASLEEP 8 /* factor for the limit of wall-clock time: the machine may be busy */
#define BATCH_MAX 256
#define SMALL_WORDS 3000   /* size of a module that is batched with others */
#define BATCH_WORDS 30000  /* size of a batch */
#define EXHIBITS_MAX 65536 /* a power of two, well above the number of modules that tests emit */

struct options {
    const char *library, *device, *kind, *chip, *table, *require, *units, *probe;
    uint64_t spills, scalar_spills, crashes, part, parts, batch;
    char **paths;
};

/* A module that waits for others in its batch. */
struct held {
    const char *path;
    char *name;
    struct ptx2spv_kernel kernel;
    struct exhibit exhibit;
};

struct trial {
    const struct options *options;
    struct judge judge;
    FILE *table;
    const char *path; /* of the current PTX */
    struct held held[BATCH_MAX];
    unsigned n_held;
    size_t held_words;
    uint64_t seen[EXHIBITS_MAX];
    unsigned n_seen, compiled, lacking, uncompilable, too_long, crashes, guilty;
    uint64_t most_spills, most_scalar_spills;
};

/* ---- a process for each kernel ---- */

/* The result that the process of a kernel sends. */
struct testimony {
    enum verdict verdict;
    struct statistics statistics;
    char why[256];
};

static struct testimony take(struct trial *trial, const struct exhibit *exhibit)
{
    struct testimony t = {.statistics = {NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED, NOT_REPORTED,
                                         NOT_REPORTED, NOT_REPORTED}};

    t.verdict = trial->judge.compile(&trial->judge, exhibit, &t.statistics, t.why, sizeof t.why);
    return t;
}

static void testify(struct trial *trial, const struct exhibit *exhibit, int out)
{
    struct testimony t;

    setrlimit(RLIMIT_CPU, &(struct rlimit){PATIENCE_S, RLIM_INFINITY});
    alarm(PATIENCE_S * ASLEEP);
    t = take(trial, exhibit);
    _exit(write(out, &t, sizeof t) == sizeof t ? 0 : EXIT_GUILTY);
}

static void describe_end(int status, struct testimony *out)
{
    out->verdict = VERDICT_REFUSED;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU))
        snprintf(out->why, sizeof out->why, "not compiled within %d seconds", PATIENCE_S);
    else if (WIFSIGNALED(status)) {
        out->verdict = VERDICT_CRASHED;
        snprintf(out->why, sizeof out->why, "the compiler crashes (%s)", strsignal(WTERMSIG(status)));
    } else
        snprintf(out->why, sizeof out->why, "the compiler ends the process (exit status %d)", WEXITSTATUS(status));
}

/* Returns false if no process can be created. */
static bool hear(struct trial *trial, const struct exhibit *exhibit, struct testimony *out)
{
    int ends[2], status = 0;
    pid_t child;
    bool told;

    if (trial->judge.is_safe) {
        *out = take(trial, exhibit);
        return true;
    }
    if (pipe(ends))
        return false;
    fflush(stdout);
    if ((child = fork()) == 0)
        testify(trial, exhibit, ends[1]);
    close(ends[1]);
    told = child > 0 && read(ends[0], out, sizeof *out) == sizeof *out; /* less than the size of a pipe's atomic write: all or nothing */
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return false;
    if (!told || status)
        describe_end(status, out);
    return true;
}

/* ---- one kernel ---- */

/* Returns true once for each hash. */
static bool is_new(struct trial *trial, uint64_t hash)
{
    hash += !hash;
    for (uint64_t i = hash;; i++) {
        uint64_t *slot = &trial->seen[i % EXHIBITS_MAX];

        if (*slot == hash)
            return false;
        if (!*slot && trial->n_seen < EXHIBITS_MAX / 2) {
            *slot = hash;
            trial->n_seen++;
            return true;
        }
        if (!*slot)
            return true; /* the table is full: at worst a module is compiled again */
    }
}

static void accuse(struct trial *trial, const char *kernel, const char *what)
{
    printf("%s: %s: %s\n", trial->path, kernel, what);
    trial->guilty++;
}

static void write_number(FILE *file, uint64_t number)
{
    if (number == NOT_REPORTED)
        fputs("\t-", file);
    else
        fprintf(file, "\t%llu", (unsigned long long)number);
}

static void write_row(const struct trial *trial, const char *kernel, const struct statistics *s)
{
    const char *file = strrchr(trial->path, '/');
    const uint64_t numbers[] = {s->lanes,  s->instructions, s->code_bytes, s->vector_registers, s->scalar_registers,
                                s->spills, s->scalar_spills};

    fprintf(trial->table, "%s\t%s\t%s", trial->options->chip, file ? file + 1 : trial->path, kernel);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        write_number(trial->table, numbers[i]);
    fputc('\n', trial->table);
}

static void weigh_spills(struct trial *trial, const char *kernel, uint64_t told, uint64_t budget, const char *what, uint64_t *most)
{
    char text[128];
    uint64_t spills = told == NOT_REPORTED ? 0 : told;

    if (spills > *most)
        *most = spills;
    if (spills <= budget)
        return;
    snprintf(text, sizeof text, "%llu %s spilled, %llu are allowed", (unsigned long long)spills, what, (unsigned long long)budget);
    accuse(trial, kernel, text);
}

static void weigh(struct trial *trial, const char *kernel, const struct statistics *statistics)
{
    trial->compiled++;
    if (trial->table)
        write_row(trial, kernel, statistics);
    weigh_spills(trial, kernel, statistics->spills, trial->options->spills, "registers", &trial->most_spills);
    weigh_spills(trial, kernel, statistics->scalar_spills, trial->options->scalar_spills, "scalar registers", &trial->most_scalar_spills);
}

/* The block size that the kernel requires, or a usual one. */
static void choose_block(const struct ptx2spv_kernel_decl *decl, uint32_t block[3])
{
    const uint32_t *stated = decl->req_ntid[0] ? decl->req_ntid : decl->max_ntid;

    block[0] = stated[0] ? stated[0] : USUAL_BLOCK_THREADS;
    block[1] = stated[0] && stated[1] ? stated[1] : 1;
    block[2] = stated[0] && stated[2] ? stated[2] : 1;
}

/* Fewer threads, if the kernel needs so much shared memory for each that the block would exceed the limit. */
static void fit_block(const struct ptx2spv_target *target, const struct ptx2spv_kernel_info *info, struct exhibit *exhibit)
{
    uint64_t fixed = (uint64_t)info->static_shared_bytes + info->exchange_bytes + exhibit->dynamic_shared_bytes;

    while (exhibit->block[0] > 32 &&
           fixed + (uint64_t)info->exchange_thread_bytes * exhibit->block[0] * exhibit->block[1] * exhibit->block[2] > target->shared_bytes)
        exhibit->block[0] /= 2;
}

static void judge_alone(struct trial *trial, const struct held *held)
{
    struct testimony testimony;

    trial->path = held->path;
    if (!hear(trial, &held->exhibit, &testimony))
        accuse(trial, held->name, "not judged: there is no process for it");
    else if (testimony.verdict == VERDICT_COMPILED)
        weigh(trial, held->name, &testimony.statistics);
    else if (testimony.verdict == VERDICT_CRASHED && trial->crashes < trial->options->crashes)
        printf("%s: %s: %s; crash %u of %llu that are allowed\n", trial->path, held->name, testimony.why, ++trial->crashes,
               (unsigned long long)trial->options->crashes);
    else
        accuse(trial, held->name, testimony.why);
}

/* Returns false if each module has to be compiled separately. */
static bool judge_together(struct trial *trial)
{
    const struct ptx2spv_kernel *kernels[BATCH_MAX];
    struct ptx2spv_kernel all = {0};
    const struct exhibit exhibit = {.name = "many", .kernel = &all};
    struct testimony testimony;
    bool good;

    for (unsigned i = 0; i < trial->n_held; i++)
        kernels[i] = &trial->held[i].kernel;
    if (trial->n_held < 2 || !(all.words = merge_modules(kernels, trial->n_held, &all.n_words)))
        return false;
    good =
        hear(trial, &exhibit, &testimony) && testimony.verdict == VERDICT_COMPILED && testimony.statistics.spills <= trial->options->spills;
    free(all.words);
    if (!good)
        return false;
    trial->compiled += trial->n_held;
    if (testimony.statistics.spills > trial->most_spills)
        trial->most_spills = testimony.statistics.spills;
    return true;
}

static void release(struct held *held)
{
    ptx2spv_kernel_finish(&held->kernel);
    free(held->name);
}

static void judge_held(struct trial *trial)
{
    const bool done = judge_together(trial);

    for (unsigned i = 0; i < trial->n_held; i++) {
        if (!done)
            judge_alone(trial, &trial->held[i]);
        release(&trial->held[i]);
    }
    trial->n_held = 0;
    trial->held_words = 0;
}

/* Adds the kernel to the batch. Large ones are compiled separately: compiling their batch again would take too long. */
static void judge_kernel(struct trial *trial, const struct ptx2spv_kernel_decl *decl, struct ptx2spv_kernel kernel)
{
    const bool waits = trial->judge.takes_many && trial->options->batch > 1 && kernel.n_words <= SMALL_WORDS;
    struct held alone, *held = waits ? &trial->held[trial->n_held++] : &alone;

    *held = (struct held){.path = trial->path, .name = strdup(decl->name), .kernel = kernel};
    held->exhibit = (struct exhibit){.name = held->name, .kernel = &held->kernel};
    choose_block(decl, held->exhibit.block);
    held->exhibit.dynamic_shared_bytes = kernel.info.uses_dynamic_shared ? USUAL_DYNAMIC_SHARED_BYTES : 0;
    fit_block(&trial->judge.target, &kernel.info, &held->exhibit);
    trial->held_words += waits ? kernel.n_words : 0;
    if (!waits) {
        judge_alone(trial, held);
        release(held);
    } else if (trial->n_held == trial->options->batch || trial->held_words > BATCH_WORDS) {
        judge_held(trial);
    }
}

/* ---- PTX that Cuttle itself rejects ---- */

static void keep_message(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    if (diagnostic->severity == PTX2SPV_ERROR)
        snprintf(user, 512, "%.500s", diagnostic->text);
}

static bool compiles_for(const struct ptx2spv_module *module, unsigned index, const struct ptx2spv_target *target)
{
    struct ptx2spv_kernel kernel;

    if (ptx2spv_kernel_compile(module, index, target, NULL, &kernel) != PTX2SPV_OK)
        return false;
    ptx2spv_kernel_finish(&kernel);
    return true;
}

static unsigned count_calls(const struct ptx2spv_kernel *kernel)
{
    unsigned n = 0;

    for (size_t at = 5; at < kernel->n_words; at += kernel->words[at] >> 16)
        n += (kernel->words[at] & 0xffff) == SpvOpFunctionCall;
    return n;
}

/* Whether a device with all features would accept the kernel. If not, no device does, and there is no module to judge. */
static bool compiles_anywhere(const struct trial *trial, const struct ptx2spv_module *module, unsigned index)
{
    struct ptx2spv_target all = trial->judge.target;

    all.float64 = all.float16 = all.int64 = all.int16 = all.int8 = all.storage8 = all.storage16 = 1;
    all.shared_explicit_layout = all.shared_explicit_layout8 = all.shared_explicit_layout16 = 1;
    all.atomic_int64_global = all.atomic_int64_shared = all.memory_model_device_scope = 1;
    all.shader_clock_subgroup = all.shader_clock_device = 1;
    return compiles_for(module, index, &all);
}

/* Clocks need an extension of OpenCL, for which a driver may be too old. */
static bool lacks_clock_only(const struct trial *trial, const struct ptx2spv_module *module, unsigned index)
{
    struct ptx2spv_target with_clock = trial->judge.target;

    with_clock.shader_clock_subgroup = 1;
    return compiles_for(module, index, &with_clock);
}

static void compile_kernel(struct trial *trial, const struct ptx2spv_module *module, unsigned index)
{
    const struct ptx2spv_kernel_decl *decl = ptx2spv_module_kernel(module, index);
    char message[512] = "no message";
    const struct ptx2spv_options options = {
        .on_diagnostic = keep_message, .user = message, .probe_matrices = trial->options->probe != NULL};
    struct ptx2spv_kernel kernel;
    enum ptx2spv_status status = ptx2spv_kernel_compile(module, index, &trial->judge.target, &options, &kernel);

    if (status == PTX2SPV_OK && !trial->judge.target.float64 && count_calls(&kernel) > CALLS_MAX) {
        trial->too_long++;
        ptx2spv_kernel_finish(&kernel);
    } else if (status == PTX2SPV_OK) {
        uint64_t hash = hash_bytes(kernel.words, kernel.n_words * sizeof *kernel.words);

        if (hash % trial->options->parts == trial->options->part && is_new(trial, hash))
            judge_kernel(trial, decl, kernel);
        else
            ptx2spv_kernel_finish(&kernel);
    } else if (!compiles_anywhere(trial, module, index)) {
        trial->uncompilable++;
    } else if (status == PTX2SPV_TARGET_LACKS && (trial->judge.may_lack || lacks_clock_only(trial, module, index))) {
        trial->lacking++;
    } else {
        accuse(trial, decl->name, message);
    }
}

static void judge_text(struct trial *trial, const struct ptx_text *text)
{
    struct ptx2spv_module *module;

    trial->path = text->path;
    if (ptx2spv_module_create(text->text, text->length, NULL, &module) != PTX2SPV_OK)
        return; /* PTX that no device accepts */
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++)
        compile_kernel(trial, module, i);
    ptx2spv_module_destroy(module);
}

/* ---- the command ---- */

static int wrong_usage(const char *what)
{
    fprintf(stderr, "judge: wrong usage: %s (see the top of judge.c)\n", what);
    return EXIT_USAGE;
}

static int parse(char **argv, struct options *out)
{
    char *end;

    for (argv++; *argv && !strncmp(*argv, "--", 2); argv += 2) {
        const char *name = *argv + 2;

        if (!argv[1])
            return wrong_usage(name);
        if (!strcmp(name, "ocloc") && argv[2])
            out->library = *++argv, out->device = argv[1];
        else if (!strcmp(name, "valid"))
            out->kind = argv[1];
        else if (!strcmp(name, "spills"))
            out->spills = strtoull(argv[1], NULL, 10);
        else if (!strcmp(name, "scalar-spills"))
            out->scalar_spills = strtoull(argv[1], NULL, 10);
        else if (!strcmp(name, "crashes"))
            out->crashes = strtoull(argv[1], NULL, 10);
        else if (!strcmp(name, "part"))
            out->part = strtoull(argv[1], &end, 10), out->parts = *end ? strtoull(end + 1, NULL, 10) : 0;
        else if (!strcmp(name, "batch"))
            out->batch = strtoull(argv[1], NULL, 10);
        else if (!strcmp(name, "chip"))
            out->chip = argv[1];
        else if (!strcmp(name, "table"))
            out->table = argv[1];
        else if (!strcmp(name, "units"))
            out->units = argv[1];
        else if (!strcmp(name, "probe"))
            out->probe = argv[1];
        else if (!strcmp(name, "require"))
            out->require = argv[1];
        else
            return wrong_usage(name);
    }
    out->paths = argv;
    if (!*argv || out->part >= out->parts || !out->batch || out->batch > BATCH_MAX)
        return wrong_usage("a path, --part below the number of parts, --batch of 1 to 256");
    if (out->probe && strcmp(out->probe, "sizes") != 0 && !(out->units && !strcmp(out->probe, "loads")))
        return wrong_usage("--probe sizes, or --probe loads with --units");
    return out->table && (!out->chip || out->batch > 1) ? wrong_usage("--table needs --chip, and excludes --batch") : 0;
}

/* Completes the matrices that the driver lists. False: it lists none, or the name is unknown. */
static bool fill_units(struct ptx2spv_target *target, const char *name)
{
    static const uint8_t components[PTX2SPV_MATRIX_USES] = {16, 16, 8};
    static const struct ptx2spv_matrix_layout layouts[PTX2SPV_MATRIX_USES] = {{"0123", "abcd"}, {"abcd", "0123"}, {"4abc", "0123"}};

    for (unsigned i = 0; !strcmp(name, "rdna3") && i < PTX2SPV_MATRICES_MAX && target->matrices[i].m; i++) {
        memcpy(target->matrices[i].components, components, sizeof components);
        memcpy(target->matrices[i].layouts, layouts, sizeof layouts);
    }
    return target->matrices[0].layouts[0].row[0];
}

static int open_judge(struct trial *trial)
{
    const struct options *options = trial->options;
    char why[512] = "";
    bool open = options->kind      ? judge_open_validator(&trial->judge, options->kind, why, sizeof why)
                : options->library ? judge_open_ocloc(&trial->judge, options->device, options->library, why, sizeof why)
                                   : judge_open_vulkan(&trial->judge, why, sizeof why);

    if (!open) {
        printf("no judge: %s\n", why);
        return options->require ? EXIT_GUILTY : EXIT_NO_JUDGE;
    }
    if (options->require && !strcasestr(trial->judge.name, options->require)) {
        printf("wanted a judge for %s, got %s\n", options->require, trial->judge.name);
        return EXIT_GUILTY;
    }
    if (options->units && !fill_units(&trial->judge.target, options->units)) {
        printf("no matrix units of %s\n", options->units);
        return EXIT_GUILTY;
    }
    return 0;
}

static int report(const struct trial *trial, const struct corpus *corpus)
{
    printf("%s: %zu texts; %u modules compiled, at most %llu registers and %llu scalar ones spilled; %u need what the chip lacks, "
           "%u compile for no device, %u have too much software f64; %u complaints\n",
           trial->judge.name, corpus->n, trial->compiled, (unsigned long long)trial->most_spills,
           (unsigned long long)trial->most_scalar_spills, trial->lacking, trial->uncompilable, trial->too_long, trial->guilty);
    if (!trial->compiled)
        printf("nothing was judged\n");
    return trial->guilty || !trial->compiled ? EXIT_GUILTY : 0;
}

int main(int argc, char **argv)
{
    static struct trial trial;
    static struct options options = {.parts = 1, .batch = 1}; /* lives as long as the trial */
    struct corpus corpus = {0};
    int result = parse(argv, &options);

    (void)argc;
    trial.options = &options;
    if (result || (result = open_judge(&trial)))
        return result;
    if (options.table && !(trial.table = fopen(options.table, "w")))
        return wrong_usage("the table's file cannot be written");
    for (char **path = options.paths; *path; path++)
        if (!corpus_add(&corpus, *path))
            printf("%s is not there\n", *path);
    for (size_t i = 0; i < corpus.n; i++)
        judge_text(&trial, &corpus.texts[i]);
    judge_held(&trial);
    result = report(&trial, &corpus);
    if (trial.table)
        fclose(trial.table);
    corpus_finish(&corpus);
    return result;
}
