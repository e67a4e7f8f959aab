/* SPDX-License-Identifier: Apache-2.0 */
/* ptx2spv: compiles kernels of a PTX file to SPIR-V modules. */
#include "ptx2spv_table.h"
#include "targets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- the command line ---- */

struct arguments {
    const struct tool_arguments *parsed;
    const char *input, *output, *kernel, *dump;
    const struct ptx2spv_target *target;
    bool list, check, races, blocks, launches, written;
};

/* Returns 0, or the exit status. */
static int take_arguments(struct arguments *out, const struct tool_arguments *parsed)
{
    const char *const *values = parsed->values;
    const char *target = values[PTX2SPV_ARGUMENT_TARGET] ? values[PTX2SPV_ARGUMENT_TARGET] : "vulkan";

    *out = (struct arguments){.parsed = parsed,
                              .input = parsed->operands[0],
                              .output = values[PTX2SPV_ARGUMENT_OUTPUT],
                              .kernel = values[PTX2SPV_ARGUMENT_KERNEL],
                              .dump = values[PTX2SPV_ARGUMENT_DUMP],
                              .check = values[PTX2SPV_ARGUMENT_CHECK] != NULL,
                              .races = values[PTX2SPV_ARGUMENT_RACES] != NULL,
                              .blocks = values[PTX2SPV_ARGUMENT_BLOCKS] != NULL,
                              .launches = values[PTX2SPV_ARGUMENT_LAUNCHES] != NULL,
                              .written = values[PTX2SPV_ARGUMENT_WRITTEN] != NULL,
                              .target = tool_target(target),
                              .list = values[PTX2SPV_ARGUMENT_LIST]};
    return out->target ? 0 : tool_wrong_usage(parsed, "unknown target ", target);
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
        return tool_wrong_usage(arguments->parsed, "several kernels and one output: name one with --kernel (see --list)", "");
    for (unsigned i = 0; i < count; i++)
        if (is_selected(arguments, ptx2spv_module_kernel(module, i))) {
            const int status = compile_one(arguments, module, i, options);

            result = status ? status : result;
        }
    return result;
}

static int run(struct arguments *arguments)
{
    const struct ptx2spv_options options = {.on_diagnostic = print_diagnostic,
                                            .on_dump = print_dump,
                                            .user = arguments,
                                            .dump = arguments->dump,
                                            .check = arguments->check,
                                            .check_races = arguments->races,
                                            .check_blocks = arguments->blocks,
                                            .check_launches = arguments->launches,
                                            .check_written = arguments->written};
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
    struct tool_arguments parsed;
    struct arguments arguments;
    int status = tool_parse(&ptx2spv_table, argc, argv, &parsed);

    if (status < 0)
        status = take_arguments(&arguments, &parsed);
    else
        return status;
    return status ? status : run(&arguments);
}
