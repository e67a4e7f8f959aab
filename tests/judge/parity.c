/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what a GPU's compiler makes of kernels in CUDA, as Cuttle translates them, and of the same kernels written by hand in GLSL
 * (bench/parity, bench/handwritten). Nothing is executed.
 *
 *   parity [--exact] [--precise] CHIP PTX FTZ_PTX SPIRV_FOLDER
 *     --exact        with CUTTLE_MATH=exact
 *     --precise      as on a device whose own functions are as precise as PTX's (core/device/probe_functions.c)
 *     CHIP           text that the judge's name must contain
 *     PTX            the file with our side's kernels
 *     FTZ_PTX        the same kernels with .ftz: those that compute with f32 are compared a second time, as NAME .ftz
 *     SPIRV_FOLDER   NAME.spv is the other side of the kernel NAME
 * Prints the compiler's name in a line that begins with #, then a line for each kernel, with tabs between: NAME, then for each number (instructions, registers,
 * spilled registers of both kinds, bytes of code, inverse throughput, latency) ours and the other's.
 * Exit status: 0 success; 1 a kernel is refused; 77 the judge is not available. */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_NO_JUDGE = 77 };

static const struct kernel {
    const char *name;
    uint32_t block[2];
    bool computes; /* with f32 */
} kernels[] = {
    {"copy", {256, 1}, false},         {"sgemm", {16, 16}, true}, {"nbody", {256, 1}, true},      {"reduction", {256, 1}, true},
    {"stencil", {32, 8}, true},        {"scan", {256, 1}, false}, {"histogram", {256, 1}, false}, {"transpose", {32, 8}, false},
    {"black_scholes", {256, 1}, true}, {"spmv", {256, 1}, true},
};

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long length;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && (bytes = calloc(1, (size_t)length + 1))) {
        rewind(file);
        *size = fread(bytes, 1, (size_t)length, file);
    }
    fclose(file);
    return bytes;
}

static bool compile_ours(struct judge *judge, const struct ptx2spv_module *module, const struct kernel *kernel, struct statistics *out)
{
    char why[256] = "no such kernel";

    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++) {
        struct ptx2spv_kernel compiled;
        struct exhibit exhibit = {.name = kernel->name, .kernel = &compiled, .block = {kernel->block[0], kernel->block[1], 1}};
        enum verdict verdict;

        if (strcmp(ptx2spv_module_kernel(module, i)->name, kernel->name) != 0)
            continue;
        if (ptx2spv_kernel_compile(module, i, &judge->target, NULL, &compiled) != PTX2SPV_OK)
            break;
        verdict = judge->compile(judge, &exhibit, out, why, sizeof why);
        ptx2spv_kernel_finish(&compiled);
        if (verdict == VERDICT_COMPILED)
            return true;
    }
    printf("%s: %s\n", kernel->name, why);
    return false;
}

static bool compile_theirs(struct judge *judge, const char *folder, const struct kernel *kernel, struct statistics *out)
{
    char path[4096];
    uint32_t *words;
    size_t size = 0;
    bool good;

    snprintf(path, sizeof path, "%s/%s.spv", folder, kernel->name);
    words = read_file(path, &size);
    good = words && judge_compile_foreign(judge, words, size / sizeof *words, out) == VERDICT_COMPILED;
    free(words);
    if (!good)
        printf("%s is not compiled\n", path);
    return good;
}

static void print_row(const struct kernel *kernel, const char *variant, const struct statistics *a, const struct statistics *b)
{
    const uint64_t pairs[][2] = {
        {a->instructions, b->instructions},
        {a->vector_registers, b->vector_registers},
        {a->spills + a->scalar_spills, b->spills + b->scalar_spills},
        {a->code_bytes, b->code_bytes},
        {a->inverse_throughput, b->inverse_throughput},
        {a->latency, b->latency},
    };

    printf("%s%s", kernel->name, variant);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        printf("\t%" PRIu64 "\t%" PRIu64, pairs[i][0], pairs[i][1]);
    printf("\n");
}

static struct ptx2spv_module *module_or_null(const char *path)
{
    struct ptx2spv_module *module = NULL;
    size_t size = 0;
    char *text = read_file(path, &size);

    if (!text || ptx2spv_module_create(text, size, NULL, &module) != PTX2SPV_OK)
        printf("%s is not PTX\n", path);
    free(text);
    return module;
}

static int compare(struct judge *judge, const char *ptx, bool flushes, const char *folder)
{
    struct ptx2spv_module *module = module_or_null(ptx);
    int result = 0;

    if (!module)
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct statistics ours = {0}, theirs = {0};

        if (flushes && !kernels[i].computes)
            continue;
        if (compile_ours(judge, module, &kernels[i], &ours) && compile_theirs(judge, folder, &kernels[i], &theirs))
            print_row(&kernels[i], flushes ? " .ftz" : "", &ours, &theirs);
        else
            result = EXIT_REFUSED;
    }
    ptx2spv_module_destroy(module);
    return result;
}

int main(int argc, char **argv)
{
    static struct judge judge; /* lives as long as the process */
    char why[512] = "";
    bool exact = false, precise = false;
    int result;

    for (; argc > 1 && !strncmp(argv[1], "--", 2); argv++, argc--) {
        exact |= !strcmp(argv[1], "--exact");
        precise |= !strcmp(argv[1], "--precise");
    }
    if (argc != 5) {
        fprintf(stderr, "usage: parity [--exact] [--precise] CHIP PTX FTZ_PTX SPIRV_FOLDER\n");
        return EXIT_USAGE;
    }
    if (!judge_open_vulkan(&judge, why, sizeof why)) {
        printf("no judge: %s\n", why);
        return EXIT_NO_JUDGE;
    }
    if (!strcasestr(judge.name, argv[1])) {
        printf("wanted a judge for %s, got %s\n", argv[1], judge.name);
        return EXIT_REFUSED;
    }
    if (exact)
        judge.target.exact_fma32 = judge.target.splits_fma32 = 0;
    if (precise)
        judge.target.near_functions = PTX2SPV_NEAR_ALL;
    printf("# %s\n", judge.name);
    result = compare(&judge, argv[2], false, argv[4]);
    return result ? result : compare(&judge, argv[3], true, argv[4]);
}
