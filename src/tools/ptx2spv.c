/* SPDX-License-Identifier: Apache-2.0 */
/* ptx2spv: compiles kernels of a PTX file to SPIR-V modules.
 * Exit status: 0 success, 1 the PTX or the target does not permit it (messages give the reason), 2 wrong usage, 3 a file could not be
 * read or written. */
#include "core/device/workarounds.h"
#include "cuttle/ptx2spv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_NOT_COMPILED = 1, EXIT_USAGE = 2, EXIT_FILE = 3 };

static const char usage_text[] = "usage: ptx2spv [options] file.ptx\n"
                                 "  -o FILE          write the SPIR-V of one kernel to FILE (default: compile only)\n"
                                 "  --kernel NAME    compile this kernel; -o requires it if the file has several\n"
                                 "  --target NAME    the device to compile for: vulkan (default), lavapipe, h200, opencl, intel_cpu, pocl\n"
                                 "  --dump PASSES    print the IR after these passes (separated by commas, or all)\n"
                                 "  --list           print the kernels and the size of their parameters in bytes\n"
                                 "  --help           print this text\n"
                                 "A file named - is the standard input or output.\n";

/* ---- targets ---- */

/* The workarounds for the drivers that the targets are named after. A target of no driver in particular has all of its dialect. */
enum {
    VULKAN_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVERS_VULKAN ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    LAVAPIPE_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_LAVAPIPE ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    NVIDIA_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_NVIDIA ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    INTEL_CPU_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_INTEL_CL_CPU ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    POCL_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_POCL ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    OPENCL_WORKAROUNDS = PTX2SPV_WORKAROUNDS & ~VULKAN_WORKAROUNDS
};

/* The features that the compiler requires of every Vulkan 1.3 device that Cuttle supports. */
#define EVERY_DEVICE                                                                                                                       \
    .dialect = PTX2SPV_VULKAN, .pointer_rule = PTX2SPV_POINTER_SAME, .max_block_threads = 1024, .float64 = 1, .float16 = 1, .int64 = 1,    \
    .int16 = 1, .int8 = 1, .storage8 = 1, .storage16 = 1, .atomic_int64_global = 1, .memory_model_device_scope = 1

/* The same for every OpenCL 3.0 device with 64-bit addresses and shared virtual memory. */
#define EVERY_OPENCL                                                                                                                       \
    .dialect = PTX2SPV_OPENCL, .pointer_rule = PTX2SPV_POINTER_SAME, .max_block_threads = 1024, .float64 = 1, .int64 = 1, .int16 = 1,      \
    .int8 = 1, .atomic_int64_global = 1, .atomic_int64_shared = 1, .exact_fma64 = 1, .exact_div64 = 1, .exact_sqrt64 = 1, .exact_zeros = 1

static const struct {
    const char *name;
    struct ptx2spv_target target;
} targets[] = {
    {"vulkan",
     {EVERY_DEVICE, .workarounds = VULKAN_WORKAROUNDS, .push_constant_bytes = 128, .shared_bytes = 32768, .subgroup_size = 32,
      .warp_form = PTX2SPV_WARP_COLLECTIVE}},
    {"lavapipe",
     {EVERY_DEVICE,
      .workarounds = LAVAPIPE_WORKAROUNDS,
      .push_constant_bytes = 256,
      .shared_bytes = 32768,
      .subgroup_size = 8,
      .warp_form = PTX2SPV_WARP_COLLECTIVE,
      .atomic_int64_shared = 1,
      .atomic_float32_add_global = 1,
      .atomic_float32_add_shared = 1,
      .rounding_rte16 = 1,
      .rounding_rte32 = 1,
      .rounding_rte64 = 1,
      .signed_zero_inf_nan16 = 1,
      .signed_zero_inf_nan32 = 1,
      .signed_zero_inf_nan64 = 1,
      .maximal_reconvergence = 1,
      .shader_clock_subgroup = 1,
      .shader_clock_device = 1,
      .exact_div32 = 1,
      .exact_div64 = 1,
      .exact_sqrt32 = 1,
      .exact_sqrt64 = 1,
      .keeps_subnormals32 = 1,
      .inlines = 1,
      .vectors = PTX2SPV_VECTORS_SPLIT}},
    {"h200",
     {EVERY_DEVICE,
      .workarounds = NVIDIA_WORKAROUNDS,
      .push_constant_bytes = 256,
      .shared_bytes = 49152,
      .subgroup_size = 32,
      .warp_form = PTX2SPV_WARP_NATIVE,
      .shared_explicit_layout = 1,
      .shared_explicit_layout8 = 1,
      .shared_explicit_layout16 = 1,
      .atomic_int64_shared = 1,
      .atomic_float32_add_global = 1,
      .atomic_float32_add_shared = 1,
      .atomic_float64_add_global = 1,
      .atomic_float64_add_shared = 1,
      .denorm_preserve16 = 1,
      .denorm_preserve64 = 1,
      .rounding_rte16 = 1,
      .rounding_rte32 = 1,
      .rounding_rte64 = 1,
      .signed_zero_inf_nan16 = 1,
      .signed_zero_inf_nan32 = 1,
      .signed_zero_inf_nan64 = 1,
      .maximal_reconvergence = 1,
      .shader_clock_subgroup = 1,
      .shader_clock_device = 1,
      .exact_fma32 = 1,
      .exact_fma64 = 1,
      .exact_div32 = 1,
      .exact_div64 = 1,
      .exact_sqrt64 = 1,
      .fma32_flushes = 1,
      .guards_fma32 = 1,
      .refined_sqrt32 = 1,
      .refined_roots64 = 1,
      .near_exp2 = 1,
      .exact_zeros = 1,
      .unroll_hint = 1}},
    {"opencl",
     {EVERY_OPENCL, .workarounds = OPENCL_WORKAROUNDS, .shared_bytes = 32768, .subgroup_size = 8, .warp_form = PTX2SPV_WARP_COLLECTIVE}},
    {"intel_cpu",
     {EVERY_OPENCL, .workarounds = INTEL_CPU_WORKAROUNDS, .shared_bytes = 262144, .subgroup_size = 32, .warp_form = PTX2SPV_WARP_NATIVE,
      .threads_in_turn = 1, .float16 = 1, .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1, .atomic_float64_add_global = 1,
      .atomic_float64_add_shared = 1, .exact_fma32 = 1, .exact_div32 = 1, .exact_sqrt32 = 1, .near_exp2 = 1, .vectorizes = 1,
      .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
    {"pocl",
     {EVERY_OPENCL, .workarounds = POCL_WORKAROUNDS, .shared_bytes = 1048576, .subgroup_size = 32, .warp_form = PTX2SPV_WARP_COLLECTIVE,
      .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1, .atomic_float64_add_global = 1, .atomic_float64_add_shared = 1,
      .exact_fma32 = 1, .exact_div32 = 1, .exact_sqrt32 = 1, .llvm_functions = 1, .vectorizes = 1, .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
};

static const struct ptx2spv_target *find_target(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i].target;
    return NULL;
}

/* ---- the command line ---- */

struct arguments {
    const char *input, *output, *kernel, *dump;
    const struct ptx2spv_target *target;
    bool list, help;
};

static int wrong_usage(const char *what, const char *argument)
{
    fprintf(stderr, "ptx2spv: %s%s\n%s", what, argument, usage_text);
    return EXIT_USAGE;
}

/* Parses the option at argv[*at], with its value. Returns 0, or the exit status. */
static int take_option(struct arguments *out, char *const *argv, int *at)
{
    const char *name = argv[*at];
    const char **text = !strcmp(name, "-o")         ? &out->output
                        : !strcmp(name, "--kernel") ? &out->kernel
                        : !strcmp(name, "--dump")   ? &out->dump
                                                    : NULL;

    if (!strcmp(name, "--list")) {
        out->list = true;
        return 0;
    }
    if (!strcmp(name, "--help")) {
        out->help = true;
        return 0;
    }
    if (!text && strcmp(name, "--target") != 0)
        return wrong_usage("unknown option ", name);
    if (!argv[++*at])
        return wrong_usage("no value for ", name);
    if (text)
        *text = argv[*at];
    else if (!(out->target = find_target(argv[*at])))
        return wrong_usage("unknown target ", argv[*at]);
    return 0;
}

static int parse_arguments(struct arguments *out, char *const *argv)
{
    *out = (struct arguments){.target = find_target("vulkan")};
    for (int at = 1; argv[at]; at++) {
        int status = 0;

        if (argv[at][0] == '-' && argv[at][1])
            status = take_option(out, argv, &at);
        else if (out->input)
            status = wrong_usage("more than one input: ", argv[at]);
        else
            out->input = argv[at];
        if (status)
            return status;
    }
    return out->input || out->help ? 0 : wrong_usage("no input", "");
}

/* ---- files ---- */

static int file_failed(const char *what, const char *path)
{
    fprintf(stderr, "ptx2spv: %s %s: %s\n", what, path, strerror(errno));
    return EXIT_FILE;
}

/* Reads a whole file into malloc'ed memory; NULL with errno set. */
static char *read_all(FILE *file, size_t *length)
{
    size_t used = 0, size = 65536;
    char *text = malloc(size);

    while (text && !feof(file) && !ferror(file)) {
        if (used == size) {
            char *grown = realloc(text, size *= 2);

            if (!grown)
                break;
            text = grown;
        }
        used += fread(text + used, 1, size - used, file);
    }
    if (text && (ferror(file) || !feof(file))) {
        free(text);
        return NULL;
    }
    *length = used;
    return text;
}

static char *read_input(const char *path, size_t *length)
{
    const bool is_stdin = !strcmp(path, "-");
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    char *text;

    if (!file)
        return NULL;
    text = read_all(file, length);
    if (!is_stdin)
        fclose(file);
    return text;
}

static int write_words(const char *path, const struct ptx2spv_kernel *kernel)
{
    const bool is_stdout = !strcmp(path, "-");
    FILE *file = is_stdout ? stdout : fopen(path, "wb");
    bool written;

    if (!file)
        return file_failed("cannot write", path);
    written = fwrite(kernel->words, sizeof *kernel->words, kernel->n_words, file) == kernel->n_words;
    written &= (is_stdout ? fflush(file) : fclose(file)) == 0;
    return written ? 0 : file_failed("cannot write", path);
}

/* ---- the work ---- */

static void print_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    static const char *const severities[] = {"error", "warning", "note"};
    const struct arguments *arguments = user;

    fprintf(stderr, "%s:", arguments->input);
    if (diagnostic->line)
        fprintf(stderr, "%u:%u:", diagnostic->line, diagnostic->column);
    fprintf(stderr, " %s: %s\n", severities[diagnostic->severity], diagnostic->text);
}

static void print_dump(void *user, const char *pass, const char *text)
{
    (void)user;
    printf("; ---- after %s ----\n%s\n", pass, text);
}

static int refused(const struct arguments *arguments, enum ptx2spv_status status)
{
    fprintf(stderr, "ptx2spv: %s: %s\n", arguments->input, ptx2spv_status_string(status));
    return EXIT_NOT_COMPILED;
}

static int list_kernels(const struct ptx2spv_module *module)
{
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++) {
        const struct ptx2spv_kernel_decl *kernel = ptx2spv_module_kernel(module, i);

        printf("%s %u\n", kernel->name, kernel->param_bytes);
    }
    return 0;
}

static bool is_selected(const struct arguments *arguments, const struct ptx2spv_kernel_decl *kernel)
{
    return !arguments->kernel || !strcmp(arguments->kernel, kernel->name);
}

static int compile_one(const struct arguments *arguments, const struct ptx2spv_module *module, unsigned index,
                       const struct ptx2spv_options *options)
{
    struct ptx2spv_kernel kernel;
    const enum ptx2spv_status status = ptx2spv_kernel_compile(module, index, arguments->target, options, &kernel);
    int result;

    if (status != PTX2SPV_OK) {
        fprintf(stderr, "ptx2spv: kernel %s: %s\n", ptx2spv_module_kernel(module, index)->name, ptx2spv_status_string(status));
        return EXIT_NOT_COMPILED;
    }
    result = arguments->output ? write_words(arguments->output, &kernel) : 0;
    ptx2spv_kernel_finish(&kernel);
    return result;
}

/* Compiles the selected kernels: one if there is an output, else all that match, so that all errors are reported. */
static int compile_kernels(const struct arguments *arguments, const struct ptx2spv_module *module, const struct ptx2spv_options *options)
{
    const unsigned count = ptx2spv_module_kernel_count(module);
    unsigned wanted = 0;
    int result = 0;

    for (unsigned i = 0; i < count; i++)
        wanted += is_selected(arguments, ptx2spv_module_kernel(module, i));
    if (!wanted) {
        fprintf(stderr, "ptx2spv: %s: no kernel%s%s\n", arguments->input, arguments->kernel ? " of the name " : "",
                arguments->kernel ? arguments->kernel : "");
        return EXIT_NOT_COMPILED;
    }
    if (wanted > 1 && arguments->output)
        return wrong_usage("several kernels and one output: name one with --kernel (see --list)", "");
    for (unsigned i = 0; i < count; i++)
        if (is_selected(arguments, ptx2spv_module_kernel(module, i))) {
            const int status = compile_one(arguments, module, i, options);

            result = status ? status : result;
        }
    return result;
}

static int run(struct arguments *arguments)
{
    const struct ptx2spv_options options = {
        .on_diagnostic = print_diagnostic, .on_dump = print_dump, .user = arguments, .dump = arguments->dump};
    struct ptx2spv_module *module = NULL;
    enum ptx2spv_status status;
    size_t length = 0;
    char *text = read_input(arguments->input, &length);
    int result;

    if (!text)
        return file_failed("cannot read", arguments->input);
    status = ptx2spv_module_create(text, length, &options, &module);
    if (status != PTX2SPV_OK)
        result = refused(arguments, status);
    else if (arguments->list)
        result = list_kernels(module);
    else
        result = compile_kernels(arguments, module, &options);
    ptx2spv_module_destroy(module);
    free(text);
    return result;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    const int status = parse_arguments(&arguments, argv);

    (void)argc;
    if (status)
        return status;
    if (arguments.help) {
        fputs(usage_text, stdout);
        return 0;
    }
    return run(&arguments);
}
