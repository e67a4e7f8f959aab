/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the cache are those of one build of the library, so it is libcuda.so.1 that compiles here, not the copy of its code in this command. */
#include "precompile.h"

#include "code_file.h"
#include "library_folder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FILE = 3 };

/* The functions of the library that are called, by their types in cuda.h. */
#define FUNCTIONS(X)                                                                                                                       \
    X(cuInit)                                                                                                                              \
    X(cuDeviceGetName)                                                                                                                     \
    X(cuDevicePrimaryCtxRetain)                                                                                                            \
    X(cuCtxSetCurrent)                                                                                                                     \
    X(cuModuleLoad)                                                                                                                        \
    X(cuModuleLoadData)                                                                                                                    \
    X(cuModuleUnload)                                                                                                                      \
    X(cuModuleGetFunctionCount)                                                                                                            \
    X(cuModuleEnumerateFunctions)                                                                                                          \
    X(cuFuncGetName)                                                                                                                       \
    X(cuFuncLoad)

struct library {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
};

struct progress {
    unsigned done, count, n_refused;
    bool is_shown; /* standard error is a terminal */
};

static bool open_library(struct library *out)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    void *handle;

    if (!tool_library_folder(folder))
        return false;
    snprintf(path, sizeof path, "%s/%s", folder, TOOL_LIBRARY);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "cuttle cache: %s\n", dlerror());
        return false;
    }
#define LOOK_UP(name) out->name = (__typeof__(out->name))dlsym(handle, #name);
    FUNCTIONS(LOOK_UP)
    return true; /* Cuttle exports every function of the API */
}

/* Makes device 0's primary context current, and prints its name. */
static bool open_device(const struct library *library)
{
    char name[256];
    CUcontext context;
    CUresult r = library->cuInit(0);

    if (r == CUDA_SUCCESS)
        r = library->cuDeviceGetName(name, sizeof name, 0);
    if (r == CUDA_SUCCESS)
        r = library->cuDevicePrimaryCtxRetain(&context, 0);
    if (r == CUDA_SUCCESS)
        r = library->cuCtxSetCurrent(context);
    if (r == CUDA_SUCCESS)
        printf("compiling for %s\n", name);
    else
        fprintf(stderr, "cuttle cache: %s\n", r == CUDA_ERROR_NO_DEVICE ? "there is no device" : "the device cannot be used");
    return r == CUDA_SUCCESS;
}

static void show_progress(const struct progress *progress, const char *name)
{
    if (progress->is_shown)
        fprintf(stderr, "\r\033[K[%u/%u] %.60s", progress->done, progress->count, name);
}

static void compile_function(const struct library *library, CUfunction function, struct progress *progress)
{
    const char *name = "?";
    CUresult r;

    library->cuFuncGetName(&name, function);
    show_progress(progress, name);
    r = library->cuFuncLoad(function);
    progress->done++;
    if (r == CUDA_SUCCESS)
        return;
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    printf("kernel %s is refused with CUDA error %d (cuttle compile says why)\n", name, (int)r);
    progress->n_refused++;
}

static CUresult compile_module(const struct library *library, CUmodule module, struct progress *progress)
{
    unsigned count;
    CUfunction *functions;
    CUresult r = library->cuModuleGetFunctionCount(&count, module);

    functions = r == CUDA_SUCCESS ? calloc(count + 1, sizeof *functions) : NULL;
    if (!functions)
        return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
    r = count ? library->cuModuleEnumerateFunctions(functions, count, module) : CUDA_SUCCESS;
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        compile_function(library, functions[i], progress);
    free(functions);
    return r;
}

/* Loads text `index` as a module, as the runtime does for each source file; or all of the file, if they have to be linked. */
static CUresult load(const struct library *library, const struct tool_code *code, const char *path, unsigned index, CUmodule *out)
{
    const struct ct_ptx *text = &code->image.texts[index];
    char *copy;
    CUresult r;

    if (code->is_linked)
        return library->cuModuleLoad(out, path);
    copy = strndup(text->text, text->length); /* texts in fat binaries need not end with a NUL */
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = library->cuModuleLoadData(out, copy);
    free(copy);
    return r;
}

static unsigned compile_code(const struct library *library, const struct tool_code *code, const char *path, struct progress *progress)
{
    const unsigned count = code->is_linked ? 1 : code->image.count;
    unsigned n_failed = 0;

    for (unsigned i = 0; i < count; i++) {
        CUmodule module;
        CUresult r = load(library, code, path, i, &module);

        if (r == CUDA_SUCCESS) {
            r = compile_module(library, module, progress);
            library->cuModuleUnload(module);
        }
        n_failed += r != CUDA_SUCCESS;
    }
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    return n_failed;
}

int tool_precompile(const char *path)
{
    static const struct ptx2spv_options quiet;
    struct progress progress = {.is_shown = isatty(STDERR_FILENO)};
    struct library library;
    struct tool_code code;
    unsigned n_failed;
    CUresult r = tool_code_open(path, &quiet, &code);

    if (r != CUDA_SUCCESS) {
        fprintf(stderr, "cuttle cache: %s: %s\n", path, tool_code_failure(r));
        return EXIT_FILE;
    }
    if (!open_library(&library) || !open_device(&library)) {
        tool_code_finish(&code);
        return EXIT_FAILURE;
    }
    progress.count = tool_code_kernels(&code);
    n_failed = compile_code(&library, &code, path, &progress);
    printf("%u kernels are in the cache, %u were refused; %u PTX texts could not be loaded\n", progress.done - progress.n_refused,
           progress.n_refused, n_failed);
    tool_code_finish(&code);
    return progress.n_refused || n_failed || !progress.done ? EXIT_FAILURE : EXIT_SUCCESS;
}
