/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle compile`: compiles the kernels of a file to SPIR-V, and says how large they become. */
#include "verbs.h"

#include "code_file.h"
#include "device_target.h"
#include "disassemble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { EXIT_REFUSED = 1, EXIT_FILE = 3 };

#define NAME_BYTES 200 /* of a kernel's name in the name of its file; names of C++ are longer at times */

struct job {
    const char *kernel, *folder; /* NULL: all kernels; no files */
    bool disassembles, has_equal_names;
    const struct ptx2spv_target *target;
    unsigned n_compiled, n_refused;
    uint64_t n_words;
    bool file_failed;
};

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Writes a kernel to FOLDER/NAME.spv; with its number in the name if that is cut. A file of the name is replaced. */
static bool write_file(const struct job *job, const char *name, unsigned number, const struct ptx2spv_kernel *kernel)
{
    char suffix[16] = "", *path;
    FILE *file;
    bool is_written;

    if (strlen(name) > NAME_BYTES || job->has_equal_names)
        snprintf(suffix, sizeof suffix, "-%u", number);
    if (asprintf(&path, "%s/%.*s%s.spv", job->folder, NAME_BYTES, name, suffix) < 0)
        return false;
    file = fopen(path, "wb");
    is_written = file && fwrite(kernel->words, sizeof *kernel->words, kernel->n_words, file) == kernel->n_words;
    if (file)
        is_written = fclose(file) == 0 && is_written;
    if (!is_written)
        fprintf(stderr, "cuttle compile: cannot write %s: %s\n", path, strerror(errno));
    free(path);
    return is_written;
}

/* Whether kernels of several modules have the same name; within a module they are different. */
static bool has_equal_names(const struct tool_code *code)
{
    for (unsigned i = 0; i < code->n_modules; i++)
        for (unsigned k = 0; k < ptx2spv_module_kernel_count(code->modules[i]); k++)
            for (unsigned other = 0; other < i; other++)
                for (unsigned l = 0; l < ptx2spv_module_kernel_count(code->modules[other]); l++)
                    if (!strcmp(ptx2spv_module_kernel(code->modules[i], k)->name, ptx2spv_module_kernel(code->modules[other], l)->name))
                        return true;
    return false;
}

static void report(struct job *job, const struct ptx2spv_kernel_decl *decl, unsigned number, const struct ptx2spv_kernel *kernel,
                   double time_ms)
{
    const struct ptx2spv_kernel_info *info = &kernel->info;
    const char *name = decl->name;

    printf("%skernel %s: %zu words of SPIR-V, %u registers, %u bytes of parameters, %u of static shared memory%s, %u of local memory, %.1f "
           "ms\n",
           job->disassembles ? "; " : "", name, kernel->n_words, info->registers, decl->param_bytes, info->static_shared_bytes,
           info->shared_in_memory ? " (in device memory)" : "", info->local_bytes, time_ms);
    if (job->disassembles)
        job->file_failed |= !tool_disassemble(kernel->words, kernel->n_words);
    if (job->folder)
        job->file_failed |= !write_file(job, name, number, kernel);
}

static void compile(struct job *job, const struct ptx2spv_module *module, unsigned index, unsigned number)
{
    const struct ptx2spv_kernel_decl *decl = ptx2spv_module_kernel(module, index);
    struct tool_message message = {0};
    const struct ptx2spv_options options = {.on_diagnostic = tool_message_keep, .user = &message, .shared_form = PTX2SPV_SHARED_AS_NEEDED};
    struct ptx2spv_kernel kernel;
    const double start_ms = now_ms();
    const enum ptx2spv_status status = ptx2spv_kernel_compile(module, index, job->target, &options, &kernel);

    if (status != PTX2SPV_OK) {
        printf("%skernel %s is refused", job->disassembles ? "; " : "", decl->name);
        tool_message_print(&message, status);
        job->n_refused++;
        return;
    }
    job->n_compiled++;
    job->n_words += kernel.n_words;
    report(job, decl, number, &kernel, now_ms() - start_ms);
    ptx2spv_kernel_finish(&kernel);
}

static void compile_all(struct job *job, const struct tool_code *code)
{
    unsigned number = 0;

    for (unsigned i = 0; i < code->n_modules; i++)
        for (unsigned k = 0; k < ptx2spv_module_kernel_count(code->modules[i]); k++, number++)
            if (!job->kernel || !strcmp(job->kernel, ptx2spv_module_kernel(code->modules[i], k)->name))
                compile(job, code->modules[i], k, number);
}

/* Compiles what was opened. Returns the exit status. */
static int finish(struct job *job, const struct tool_code *code, const char *target_name, const char *path)
{
    job->has_equal_names = job->folder && has_equal_names(code);
    compile_all(job, code);
    if (job->kernel && !job->n_compiled && !job->n_refused) {
        fprintf(stderr, "cuttle compile: %s has no kernel %s\n", path, job->kernel);
        return EXIT_REFUSED;
    }
    printf("%s%u kernels, %llu words of SPIR-V for %s; %u kernels and %u PTX texts refused, %u parts with machine code only\n",
           job->disassembles ? "; " : "", job->n_compiled, (unsigned long long)job->n_words, target_name, job->n_refused, code->n_refused,
           code->image.n_without_ptx);
    if (job->file_failed)
        return EXIT_FILE;
    return job->n_refused || code->n_refused || !job->n_compiled ? EXIT_REFUSED : EXIT_SUCCESS;
}

static bool make_folder(const char *path)
{
    struct stat status;

    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode)))
        return true;
    fprintf(stderr, "cuttle compile: cannot make the folder %s: %s\n", path, strerror(errno));
    return false;
}

int verb_compile(const struct tool_arguments *arguments)
{
    const char *const *values = arguments->values, *path = arguments->operands[0], *target_name;
    struct job job = {.kernel = values[CUTTLE_COMPILE_KERNEL],
                      .folder = values[CUTTLE_COMPILE_OUTPUT],
                      .disassembles = values[CUTTLE_COMPILE_DISASSEMBLE]};
    struct tool_message message = {0};
    const struct ptx2spv_options options = {.on_diagnostic = tool_message_keep, .user = &message};
    struct tool_code code;
    CUresult r;
    int status;

    if (job.disassembles && !tool_can_disassemble())
        return tool_wrong_usage(arguments, "this build lacks SPIRV-Tools, which --disassemble needs", "");
    job.target = tool_device_target(values[CUTTLE_COMPILE_TARGET], &target_name);
    if (!job.target)
        return TOOL_USAGE;
    r = tool_code_open(path, &options, &code);
    if (r != CUDA_SUCCESS) {
        fprintf(stderr, "cuttle compile: %s: %s\n", path, tool_code_failure(r));
        return EXIT_FILE;
    }
    if (code.n_refused) {
        printf("%s%s is refused", job.disassembles ? "; " : "", path);
        tool_message_print(&message, PTX2SPV_INVALID_PTX);
    }
    status = job.folder && !make_folder(job.folder) ? EXIT_FILE : finish(&job, &code, target_name, path);
    tool_code_finish(&code);
    return status;
}
