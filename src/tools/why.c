/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle run --why`. The loader says which libraries it would load (as for ldd); the code for GPUs in them is compiled. What a program opens while
 * it runs cannot be seen before. */
#include "why.h"

#include "code_file.h"
#include "device_target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_REFUSALS 20 /* kernels that are named for each file */

struct why {
    const struct ptx2spv_target *target;
    const char *target_name;
    unsigned problems;
};

static void problem(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void problem(struct why *why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    printf("  problem: ");
    vprintf(format, arguments);
    va_end(arguments);
    why->problems++;
}

/* ---- the code of one file ---- */

static void compile_module(struct why *why, const struct ptx2spv_module *module, unsigned *refused)
{
    for (unsigned i = 0; i < ptx2spv_module_kernel_count(module); i++) {
        struct tool_message message = {0};
        const struct ptx2spv_options options = {
            .on_diagnostic = tool_message_keep, .user = &message, .shared_form = PTX2SPV_SHARED_AS_NEEDED};
        struct ptx2spv_kernel kernel;
        const enum ptx2spv_status status = ptx2spv_kernel_compile(module, i, why->target, &options, &kernel);

        if (status == PTX2SPV_OK) {
            ptx2spv_kernel_finish(&kernel);
        } else if ((*refused)++ < MOST_REFUSALS) {
            problem(why, "kernel %s is refused", ptx2spv_module_kernel(module, i)->name);
            tool_message_print(&message, status);
        }
    }
}

static void compile_all(struct why *why, const struct tool_code *code)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < code->n_modules; i++)
        compile_module(why, code->modules[i], &refused);
    if (refused > MOST_REFUSALS)
        problem(why, "and %u more kernels\n", refused - MOST_REFUSALS);
    printf("  %u of %u kernels compile for %s\n", tool_code_kernels(code) - refused, tool_code_kernels(code), why->target_name);
}

/* Examines the code in a file of the program's own. */
static void examine_code(struct why *why, const char *path)
{
    struct tool_message message = {0};
    const struct ptx2spv_options options = {.on_diagnostic = tool_message_keep, .user = &message};
    struct tool_code code;
    const CUresult r = tool_code_open(path, &options, &code);

    if (r != CUDA_SUCCESS) {
        problem(why, "the code for GPUs in %s: %s\n", path, tool_code_failure(r));
        return;
    }
    if (code.image.count || code.image.n_without_ptx)
        printf("code in %s: %u PTX texts, %u parts with machine code only\n", path, code.image.count, code.image.n_without_ptx);
    if (code.image.n_without_ptx && !code.image.count)
        problem(why, "there is machine code for NVIDIA's GPUs only; it takes PTX: nvcc -gencode arch=compute_75,code=compute_75\n");
    else if (code.image.n_without_ptx)
        printf("  note: kernels that are in a part with machine code only cannot run (nvcc adds one such part without kernels)\n");
    if (code.n_refused) {
        problem(why, "%u PTX texts are refused", code.n_refused);
        tool_message_print(&message, PTX2SPV_INVALID_PTX);
    }
    if (code.n_modules)
        compile_all(why, &code);
    tool_code_finish(&code);
}

/* Code of a closed library is not compiled: there are thousands of kernels in some. runs: it is known to work, whatever its code is. */
static void examine_closed(struct why *why, const char *path, bool runs)
{
    char *bytes;
    size_t size;
    struct ct_image image = {0};

    if (ct_image_read_file(path, &bytes, &size) != CUDA_SUCCESS)
        return;
    if (ct_image_read_part(bytes, size, &image) == CUDA_SUCCESS && image.count + image.n_without_ptx) {
        printf("  %u PTX texts, %u parts with machine code only\n", image.count, image.n_without_ptx);
        if (!image.count && !runs)
            problem(why, "%s has no PTX\n", path);
    }
    ct_image_finish(&image);
    free(bytes);
}

/* ---- libraries ---- */

static const struct closed_library {
    const char *prefix, *name, *remark;
    bool runs;
} closed_libraries[] = {
#define LIBRARY(prefix, name, runs, remark) {prefix, name, remark, runs},
#include "closed_libraries.def"
};

static const struct closed_library *find_closed(const char *name)
{
    for (size_t i = 0; i < sizeof closed_libraries / sizeof *closed_libraries; i++)
        if (!strncmp(name, closed_libraries[i].prefix, strlen(closed_libraries[i].prefix)))
            return &closed_libraries[i];
    return NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Whether a library is part of the system, and so has no code for GPUs. Reading each of them would take long. */
static bool is_system(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(path, folders[i], strlen(folders[i])))
            return true;
    return false;
}

/* path NULL: the loader does not find it. */
static void examine_library(struct why *why, const char *name, const char *path)
{
    const struct closed_library *closed = find_closed(base_name(name));
    const bool is_driver = !strncmp(base_name(name), "libcuda.so", strlen("libcuda.so"));

    if (closed || is_driver || !path)
        printf("library %s: %s\n", base_name(name), path ? path : "not found");
    if (closed)
        printf("  %s: %s\n", closed->name, closed->remark);
    if (!path)
        problem(why, "%s is missing, so the program cannot start\n", name);
    else if (closed)
        examine_closed(why, path, closed->runs);
    else if (!is_driver && !is_system(path))
        examine_code(why, path);
}

/* A line of the loader's list: "\tNAME => PATH (ADDRESS)", "\tNAME => not found" or "\tPATH (ADDRESS)". */
static void examine_line(struct why *why, char *line)
{
    char *name = line + strspn(line, " \t"), *arrow = strstr(name, " => "), *path = arrow ? arrow + 4 : name, *end;

    line[strcspn(line, "\n")] = 0;
    if (arrow)
        *arrow = 0;
    if (arrow && !strcmp(path, "not found")) {
        examine_library(why, name, NULL);
        return;
    }
    end = strstr(path, " (0x");
    if (!end || *path != '/')
        return; /* the kernel's own, which is no file */
    *end = 0;
    examine_library(why, name, path);
}

/* Lets the loader list the libraries of a program in the environment of `cuttle run`. */
static void examine_libraries(struct why *why, const char *program)
{
    char *line = NULL;
    size_t size = 0;
    int pipes[2], status;
    FILE *list;
    pid_t child;

    fflush(stdout);
    if (pipe2(pipes, O_CLOEXEC) || (child = fork()) < 0) {
        problem(why, "the loader cannot be asked for libraries: %s\n", strerror(errno));
        return;
    }
    if (child == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        if (setenv("LD_TRACE_LOADED_OBJECTS", "1", 1) == 0)
            execl(program, program, (char *)NULL);
        _exit(RUN_FAILED);
    }
    close(pipes[1]);
    list = fdopen(pipes[0], "r");
    while (list && getline(&line, &size, list) > 0)
        examine_line(why, line);
    free(line);
    if (list)
        fclose(list);
    if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        problem(why, "the loader does not load %s\n", program);
}

/* ---- the program ---- */

/* What the loader has to know about an executable. */
struct kind {
    bool is_elf, is_foreign, is_static;
    char interpreter[256]; /* of a script, with its argument; empty: it is no script */
};

static bool has_loader(int file, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr part;

        if (pread(file, &part, sizeof part, (off_t)(header->e_phoff + i * sizeof part)) != (ssize_t)sizeof part)
            return false;
        if (part.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static struct kind kind_of(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    char first[256] = "";
    Elf64_Ehdr header = {0}, own = {0};
    struct kind kind = {0};
    const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    if (file >= 0 && pread(file, first, sizeof first - 1, 0) > 2 && !memcmp(first, "#!", 2)) {
        first[strcspn(first, "\n")] = 0;
        snprintf(kind.interpreter, sizeof kind.interpreter, "%s", first + 2 + strspn(first + 2, " \t"));
    } else if (file >= 0 && pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header && !memcmp(header.e_ident, ELFMAG, SELFMAG)) {
        kind.is_elf = true;
        kind.is_foreign = header.e_ident[EI_CLASS] != ELFCLASS64 || pread(self, &own, sizeof own, 0) != (ssize_t)sizeof own ||
                          header.e_machine != own.e_machine;
        kind.is_static = !kind.is_foreign && !has_loader(file, &header);
    }
    if (file >= 0)
        close(file);
    if (self >= 0)
        close(self);
    return kind;
}

/* Reports what keeps Cuttle out of a program. False: the loader cannot be asked about it. */
static bool examine_kind(struct why *why, const char *path, const struct kind *kind)
{
    struct stat status;

    if (stat(path, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID) && geteuid() != 0)
        problem(why, "%s runs with other rights than its user's, so the loader ignores Cuttle\n", path);
    if (!kind->is_elf)
        problem(why, "%s is neither an ELF file nor a script that names its interpreter\n", path);
    else if (kind->is_foreign)
        problem(why, "%s is for another machine or for 32 bits\n", path);
    else if (kind->is_static)
        problem(why, "%s is linked statically, so no loader runs that could load Cuttle\n", path);
    return kind->is_elf && !kind->is_foreign && !kind->is_static;
}

/* The interpreter of a script: the program that it names, or the one that env(1) would start. */
static bool find_interpreter(const char *line, char out[PATH_MAX])
{
    char words[256], *program, *argument, *save;

    snprintf(words, sizeof words, "%s", line);
    program = strtok_r(words, " \t", &save);
    argument = strtok_r(NULL, " \t", &save);
    if (!program)
        return false;
    if (strcmp(base_name(program), "env") != 0 || !argument)
        return tool_find_program(program, out);
    if (!strcmp(argument, "-S"))
        argument = strtok_r(NULL, " \t", &save);
    return argument && tool_find_program(argument, out);
}

static void examine_program(struct why *why, const char *path)
{
    char interpreter[PATH_MAX];
    struct kind kind = kind_of(path);

    if (*kind.interpreter) {
        printf("program: %s, a script; what it starts and opens is not examined, only its interpreter\n", path);
        if (!find_interpreter(kind.interpreter, interpreter)) {
            problem(why, "there is no interpreter %s\n", kind.interpreter);
            return;
        }
        path = interpreter;
        kind = kind_of(path);
    }
    printf("program: %s\n", path);
    if (!examine_kind(why, path, &kind))
        return;
    examine_code(why, path);
    examine_libraries(why, path);
}

int tool_why(const char *program, enum tool_launch_method method, const char *target)
{
    struct why why = {0};
    char path[PATH_MAX];

    if (!tool_find_program(program, path)) {
        const bool exists = strchr(program, '/') && access(program, F_OK) == 0;

        fprintf(stderr, "cuttle run: %s: %s\n", program, exists ? "it cannot be executed" : "there is no such program");
        return exists ? RUN_NOT_EXECUTABLE : RUN_NOT_FOUND;
    }
    why.target = tool_device_target(target, &why.target_name);
    if (!why.target || !tool_launch_environment(method, NULL))
        return RUN_FAILED;
    examine_program(&why, path);
    if (why.problems)
        printf("result: %u problems\n", why.problems);
    else
        printf("result: nothing was found that will not work; libraries that the program opens while it runs were not seen\n");
    return why.problems ? EXIT_FAILURE : EXIT_SUCCESS;
}
