/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and links with what its arguments name, as programs do, and runs the results.
 *
 *   program nvrtc LIBRARY MAJOR      a path or a soname, and the version that it must have
 *   program found LIBRARY PATH       looks for the library by its soname without loading it, then uses that at PATH
 *   program both LIBRARY LIBRARY     NVRTC of CUDA 12, and of CUDA 13
 *   program nvjitlink LIBRARY FOLDER     FOLDER: for files
 *   program nvidia NVRTC NVJITLINK   NVIDIA's own
 *
 * Status 3: NVRTC made machine code, as it does without `cuttle run`; 1: anything else is wrong. */
#include "../fatbin_head.h"

#include <cuda.h>

#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#define SEVENFOLD                                                                                                                          \
    ".visible .func (.param .b32 r) sevenfold(.param .b32 x)\n{\n .reg .b32 %v;\n ld.param.b32 %v, [x];\n mul.lo.u32 %v, %v, 7;\n"         \
    " st.param.b32 [r], %v;\n ret;\n}\n"
#define KERNEL                                                                                                                             \
    ".visible .entry k(.param .u64 p)\n{\n .reg .b64 %p;\n .reg .b32 %v;\n ld.param.u64 %p, [p];\n ld.global.u32 %v, [%p];\n"              \
    " { .param .b32 a; .param .b32 b; st.param.b32 [a], %v; call (b), sevenfold, (a); ld.param.b32 %v, [b]; }\n"                           \
    " st.global.u32 [%p], %v;\n ret;\n}\n"
#define DECLARATION ".extern .func (.param .b32 r) sevenfold(.param .b32 x);\n"
#define LTO                                                                                                                                \
    "\xed"                                                                                                                                 \
    "CN\x7f"
enum { MAX_INPUTS = 2, MAX_OPTIONS = 4, LOG_BYTES = 4096 };

#define check(condition)                                                                                                                   \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                                        \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);

    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    check(library);
    return library;
}

static void *function(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (!found)
        fprintf(stderr, "%s\n", dlerror());
    check(found);
    return found;
}

/* Loads an image, and lets its kernel multiply 3. */
static unsigned product(const void *image)
{
    void *driver = open_library("libcuda.so.1");
    unsigned value = 3;
    CUcontext context;
    CUdeviceptr memory;
    CUfunction kernel;
    CUmodule module;
    void *arguments[] = {&memory};

    check(((__typeof__(cuInit) *)function(driver, "cuInit"))(0) == CUDA_SUCCESS);
    check(((__typeof__(cuDevicePrimaryCtxRetain) *)function(driver, "cuDevicePrimaryCtxRetain"))(&context, 0) == CUDA_SUCCESS);
    check(((__typeof__(cuCtxSetCurrent) *)function(driver, "cuCtxSetCurrent"))(context) == CUDA_SUCCESS);
    check(((__typeof__(cuModuleLoadData) *)function(driver, "cuModuleLoadData"))(&module, image) == CUDA_SUCCESS);
    check(((__typeof__(cuModuleGetFunction) *)function(driver, "cuModuleGetFunction"))(&kernel, module, "k") == CUDA_SUCCESS);
    check(((__typeof__(cuMemAlloc) *)function(driver, "cuMemAlloc_v2"))(&memory, sizeof value) == CUDA_SUCCESS);
    check(((__typeof__(cuMemcpyHtoD) *)function(driver, "cuMemcpyHtoD_v2"))(memory, &value, sizeof value) == CUDA_SUCCESS);
    check(((__typeof__(cuLaunchKernel) *)function(driver, "cuLaunchKernel"))(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) ==
          CUDA_SUCCESS);
    check(((__typeof__(cuMemcpyDtoH) *)function(driver, "cuMemcpyDtoH_v2"))(&value, memory, sizeof value) == CUDA_SUCCESS);
    check(((__typeof__(cuMemFree) *)function(driver, "cuMemFree_v2"))(memory) == CUDA_SUCCESS);
    check(((__typeof__(cuModuleUnload) *)function(driver, "cuModuleUnload"))(module) == CUDA_SUCCESS);
    check(((__typeof__(cuCtxSetCurrent) *)function(driver, "cuCtxSetCurrent"))(NULL) == CUDA_SUCCESS);
    check(((__typeof__(cuDevicePrimaryCtxRelease) *)function(driver, "cuDevicePrimaryCtxRelease_v2"))(0) == CUDA_SUCCESS);
    return value;
}

/* ---- NVRTC ---- */

typedef int nvrtc_create(void **out, const char *source, const char *name, int n_headers, const char *const *headers,
                         const char *const *names);
typedef int nvrtc_compile(void *program, int count, const char *const *options);
typedef int nvrtc_size(void *program, size_t *out);
typedef int nvrtc_bytes(void *program, char *out);

static const struct {
    const char *options[MAX_OPTIONS];
    const char *passed; /* what NVRTC itself gets */
    bool without_code;
} compilations[] = {
    {{"-arch=sm_80"}, "-arch=compute_80", false},
    {{"--gpu-architecture=sm_90a"}, "--gpu-architecture=compute_90a", false},
    {{"-arch", "sm_75", "-I."}, "-arch compute_75 -I.", false},
    {{"--gpu-architecture", "sm_75"}, "--gpu-architecture compute_75", false},
    {{"-arch=compute_80"}, "-arch=compute_80", false},
    {{"-Dx=sm_80", "-architecture", "-arch="}, "-Dx=sm_80 -architecture -arch=", false},
    {{NULL}, "", false},
    {{"-arch=sm_80", "-dlto"}, "-arch=compute_80 -dlto", true},
};

static void compile(void *library, size_t row)
{
    const char *const *options = compilations[row].options;
    char log[LOG_BYTES], ptx[LOG_BYTES] = "", cubin[LOG_BYTES] = "";
    size_t ptx_size, cubin_size;
    void *program;
    int count = 0;

    while (count < MAX_OPTIONS && options[count])
        count++;
    check(((nvrtc_create *)function(library, "nvrtcCreateProgram"))(&program, HEAD SEVENFOLD KERNEL, NULL, 0, NULL, NULL) == 0);
    check(((nvrtc_compile *)function(library, "nvrtcCompileProgram"))(program, count, count ? options : NULL) == 0);
    check(((nvrtc_bytes *)function(library, "nvrtcGetProgramLog"))(program, log) == 0);
    check(((nvrtc_size *)function(library, "nvrtcGetPTXSize"))(program, &ptx_size) == 0);
    check(((nvrtc_bytes *)function(library, "nvrtcGetPTX"))(program, ptx) == 0);
    check(((nvrtc_size *)function(library, "nvrtcGetCUBINSize"))(program, &cubin_size) == 0);
    if (cubin_size)
        check(((nvrtc_bytes *)function(library, "nvrtcGetCUBIN"))(program, cubin) == 0);
    if (!strcmp(cubin, "machine code"))
        exit(3);
    check(!strcmp(log, compilations[row].passed));
    check(cubin_size == (compilations[row].without_code ? 0 : ptx_size));
    check(!strcmp(cubin, ptx));
    check(compilations[row].without_code || product(cubin) == 21);
    check(((int (*)(void **))function(library, "nvrtcDestroyProgram"))(&program) == 0);
}

/* MAJOR comes from a function that the stand-in has not. */
static void check_nvrtc(const char *name, int wanted)
{
    void *library = open_library(name);
    int major, minor;
    size_t size;

    check(((int (*)(int *, int *))function(library, "nvrtcVersion"))(&major, &minor) == 0);
    check(major == wanted);
    for (size_t row = 0; row < sizeof compilations / sizeof *compilations; row++)
        compile(library, row);
    check(((nvrtc_compile *)function(library, "nvrtcCompileProgram"))(NULL, 0, NULL) == 4);
    check(((nvrtc_size *)function(library, "nvrtcGetCUBINSize"))(NULL, &size) == 4);
}

/* ---- nvJitLink ---- */

enum { CUBIN = 1, PTX = 2, LTOIR = 3, FATBIN = 4, OBJECT = 5, ANY = 10 };
typedef int link_create(void **out, uint32_t count, const char **options);
typedef int link_add_data(void *link, int type, const void *data, size_t size, const char *name);
typedef int link_add_file(void *link, int type, const char *path);
typedef int link_complete(void *link);
typedef int link_size(void *link, size_t *out);
typedef int link_bytes(void *link, void *out);

static const struct {
    const char *name;
    const char *options[MAX_OPTIONS];
    struct {
        int type;
        const char *text;
        int result;
    } inputs[MAX_INPUTS];
    int complete;
    const char *log; /* some of it; NULL: it is empty */
} link_rows[] = {
    {"texts", {"-arch=sm_75"}, {{PTX, HEAD DECLARATION KERNEL, 0}, {PTX, HEAD SEVENFOLD, 0}}, 0, NULL},
    {"texts of any type", {"-arch=sm_75"}, {{ANY, HEAD DECLARATION KERNEL, 0}, {ANY, HEAD SEVENFOLD, 0}}, 0, NULL},
    {"machine code that is PTX", {"-arch=sm_75"}, {{CUBIN, HEAD DECLARATION KERNEL, 0}, {PTX, HEAD SEVENFOLD, 0}}, 0, NULL},
    {"LTO-IR", {"-arch=sm_75", "-lto"}, {{LTOIR, LTO HEAD SEVENFOLD KERNEL, 0}}, 0, NULL},
    {"LTO-IR of any type", {"-lto", "-arch=sm_75"}, {{ANY, LTO HEAD SEVENFOLD KERNEL, 0}}, 0, NULL},
    {"LTO-IR and a text", {"-arch=sm_75", "-lto"}, {{LTOIR, LTO HEAD DECLARATION KERNEL, 0}, {PTX, HEAD SEVENFOLD, 0}}, 0, NULL},
    {"texts with -lto", {"-arch=sm_75", "-lto"}, {{PTX, HEAD DECLARATION KERNEL, 0}, {PTX, HEAD SEVENFOLD, 0}}, 0, NULL},
    {"an undefined function", {"-arch=sm_75"}, {{PTX, HEAD DECLARATION KERNEL, 0}}, 6, "sevenfold"},
    {"what is not PTX", {"-arch=sm_75"}, {{PTX, "nonsense", 4}}, 4, "nonsense"},
    {"LTO-IR without -lto", {"-arch=sm_75"}, {{LTOIR, LTO HEAD KERNEL, 18}}, 6, NULL},
    {"no input", {"-arch=sm_75"}, {{0}}, 6, NULL},
};

static void check_log(void *library, void *link, const char *wanted_or_null)
{
    char log[16384];
    size_t size;

    check(((link_size *)function(library, "nvJitLinkGetErrorLogSize"))(link, &size) == 0);
    check(wanted_or_null ? size > 1 && size <= sizeof log : size == 1);
    if (!wanted_or_null)
        return;
    check(((link_bytes *)function(library, "nvJitLinkGetErrorLog"))(link, log) == 0);
    check(strlen(log) + 1 == size);
    check(strstr(log, wanted_or_null));
}

static void *create_link(void *library, const char *const *options)
{
    void *link;
    uint32_t count = 0;

    while (count < MAX_OPTIONS && options[count])
        count++;
    check(((link_create *)function(library, "__nvJitLinkCreate_13_0"))(&link, count, (const char **)options) == 0);
    return link;
}

/* The image that was linked gives the right number. */
static void check_linked(void *library, void *link)
{
    void *image;
    size_t size;

    check(((link_size *)function(library, "nvJitLinkGetLinkedCubinSize"))(link, &size) == 0);
    image = malloc(size);
    check(image);
    check(((link_bytes *)function(library, "nvJitLinkGetLinkedCubin"))(link, image) == 0);
    check(product(image) == 21);
    free(image);
}

static void check_link(void *library, size_t row)
{
    void *link = create_link(library, link_rows[row].options);
    size_t size;

    fprintf(stderr, "%s\n", link_rows[row].name);
    for (int i = 0; i < MAX_INPUTS && link_rows[row].inputs[i].text; i++) {
        const char *text = link_rows[row].inputs[i].text;

        check(((link_add_data *)function(library, "nvJitLinkAddData"))(link, link_rows[row].inputs[i].type, text, strlen(text), "input") ==
              link_rows[row].inputs[i].result);
    }
    check(((link_complete *)function(library, "nvJitLinkComplete"))(link) == link_rows[row].complete);
    check_log(library, link, link_rows[row].log);
    if (link_rows[row].complete)
        check(((link_size *)function(library, "nvJitLinkGetLinkedCubinSize"))(link, &size) != 0);
    else
        check_linked(library, link);
    check(((int (*)(void **))function(library, "nvJitLinkDestroy"))(&link) == 0);
}

static void check_files(void *library, const char *folder)
{
    static const char *const options[MAX_OPTIONS] = {"-arch=sm_75", "-maxrregcount=24"};
    void *link = create_link(library, options);
    link_add_file *add = function(library, "__nvJitLinkAddFile_13_9");
    char path[4096];
    Elf64_Ehdr *image;
    size_t size;
    FILE *file;

    check(snprintf(path, sizeof path, "%s/kernel.ptx", folder) < (int)sizeof path);
    file = fopen(path, "w");
    check(file && fputs(HEAD SEVENFOLD KERNEL, file) >= 0 && fclose(file) == 0);
    check(add(link, PTX, "/no/such/file") == 3);
    check(add(link, PTX, folder) == 3);
    check(add(link, PTX, NULL) == 3);
    check(add(link, PTX, path) == 0);
    check(((link_complete *)function(library, "nvJitLinkComplete"))(link) == 0);
    check(((link_size *)function(library, "nvJitLinkGetLinkedCubinSize"))(link, &size) == 0);
    image = malloc(size);
    check(image);
    check(((link_bytes *)function(library, "nvJitLinkGetLinkedCubin"))(link, image) == 0);
    check(image->e_flags == 24); /* where the driver's linker leaves the limit of registers */
    free(image);
    check(((int (*)(void **))function(library, "nvJitLinkDestroy"))(&link) == 0);
}

/* A fat binary whose one entry, of kind 8, is LTO-IR: the driver's linker has nothing to say of it. */
static void check_fat_binary(void *library)
{
    static const char *const options[MAX_OPTIONS] = {"-arch=sm_75", "-lto"};
    static const char code[] = LTO HEAD SEVENFOLD KERNEL;
    struct {
        struct fatbin_head head;
        char code[(sizeof code + 7) / 8 * 8];
    } fat = {.head = fatbin_head(FATBIN_LTOIR, sizeof fat.code)};
    void *link;

    memcpy(fat.code, code, sizeof code);
    link = create_link(library, options);
    check(((link_add_data *)function(library, "nvJitLinkAddData"))(link, FATBIN, &fat, sizeof fat, "input") == 0);
    check(((link_complete *)function(library, "nvJitLinkComplete"))(link) == 0);
    check_log(library, link, NULL);
    check_linked(library, link);
    check(((int (*)(void **))function(library, "nvJitLinkDestroy"))(&link) == 0);
}

/* The program's own -ptx, missing options and null pointers get what nvJitLink itself says. */
static void check_passed_on(void *library)
{
    static const char *const options[MAX_OPTIONS] = {"-arch=sm_75", "-lto", "-ptx"};
    static const char text[] = LTO HEAD SEVENFOLD KERNEL;
    void *link = create_link(library, options), *none;
    char ptx[LOG_BYTES];
    unsigned version[2];
    size_t size;

    check(((int (*)(unsigned *, unsigned *))function(library, "nvJitLinkVersion"))(&version[0], &version[1]) == 0 && version[0] == 13);
    check(((link_add_data *)function(library, "nvJitLinkAddData"))(link, LTOIR, text, sizeof text - 1, "input") == 0);
    check(((link_complete *)function(library, "nvJitLinkComplete"))(link) == 0);
    check(((link_size *)function(library, "nvJitLinkGetLinkedPtxSize"))(link, &size) == 0);
    check(((link_bytes *)function(library, "nvJitLinkGetLinkedPtx"))(link, ptx) == 0 && !strcmp(ptx, text + 4));
    check(((link_size *)function(library, "nvJitLinkGetLinkedCubinSize"))(link, &size) == 6);
    check(((link_add_data *)function(library, "nvJitLinkAddData"))(link, PTX, NULL, 0, "input") == 10);
    check(((int (*)(void **))function(library, "nvJitLinkDestroy"))(&link) == 0 && !link);
    check(((int (*)(void **))function(library, "nvJitLinkDestroy"))(NULL) == 10);
    check(((link_create *)function(library, "nvJitLinkCreate"))(&none, 0, NULL) == 2);
}

/* ---- NVIDIA's libraries ---- */

/* What NVRTC makes of CUDA C++ with these options, as one of its two functions for a kind of code gives it. Freed by the caller. */
static char *compiled(void *library, const char *source, const char *kind, const char *option, size_t *out_size)
{
    const char *const options[] = {"-arch=sm_75", "-rdc=true", option};
    char name[64], *code;
    void *program;

    check(((nvrtc_create *)function(library, "nvrtcCreateProgram"))(&program, source, NULL, 0, NULL, NULL) == 0);
    check(((nvrtc_compile *)function(library, "nvrtcCompileProgram"))(program, option ? 3 : 2, options) == 0);
    snprintf(name, sizeof name, "nvrtcGet%sSize", kind);
    check(((nvrtc_size *)function(library, name))(program, out_size) == 0);
    code = malloc(*out_size);
    check(code);
    snprintf(name, sizeof name, "nvrtcGet%s", kind);
    check(((nvrtc_bytes *)function(library, name))(program, code) == 0);
    check(((int (*)(void **))function(library, "nvrtcDestroyProgram"))(&program) == 0);
    return code;
}

/* A kernel and a function that it calls, each as machine code or as LTO-IR. */
static void link_compiled(void *nvrtc, void *nvjitlink, bool kernel_lto, bool function_lto)
{
    static const char *const options[MAX_OPTIONS] = {"-arch=sm_75", "-lto"};
    static const char *const sources[] = {
        "extern \"C\" __device__ int sevenfold(int); extern \"C\" __global__ void k(int *p) { *p = sevenfold(*p); }",
        "extern \"C\" __device__ int sevenfold(int x) { return 7 * x; }",
    };
    const bool lto[] = {kernel_lto, function_lto};
    void *link = create_link(nvjitlink, options), *image;
    size_t size;

    for (int i = 0; i < 2; i++) {
        char *code = compiled(nvrtc, sources[i], lto[i] ? "LTOIR" : "CUBIN", lto[i] ? "-dlto" : NULL, &size);

        check(((link_add_data *)function(nvjitlink, "nvJitLinkAddData"))(link, lto[i] ? LTOIR : CUBIN, code, size, "input") == 0);
        free(code);
    }
    check(((link_complete *)function(nvjitlink, "nvJitLinkComplete"))(link) == 0);
    check(((link_size *)function(nvjitlink, "nvJitLinkGetLinkedCubinSize"))(link, &size) == 0);
    image = malloc(size);
    check(image);
    check(((link_bytes *)function(nvjitlink, "nvJitLinkGetLinkedCubin"))(link, image) == 0);
    check(((int (*)(void **))function(nvjitlink, "nvJitLinkDestroy"))(&link) == 0);
    check(product(image) == 21);
    free(image);
}

static void check_nvidia(const char *nvrtc_name, const char *nvjitlink_name)
{
    void *nvrtc = open_library(nvrtc_name), *nvjitlink = open_library(nvjitlink_name);

    link_compiled(nvrtc, nvjitlink, false, false);
    link_compiled(nvrtc, nvjitlink, true, true);
    link_compiled(nvrtc, nvjitlink, true, false);
}

int main(int argc, char **argv)
{
    check(argc == 4);
    if (!strcmp(argv[1], "nvrtc")) {
        check_nvrtc(argv[2], atoi(argv[3]));
    } else if (!strcmp(argv[1], "found")) {
        check(!dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD));
        check_nvrtc(argv[3], 13);
        check_nvrtc(argv[2], 13); /* now it is the one that is loaded */
        check_nvrtc(argv[3], 13);
    } else if (!strcmp(argv[1], "both")) {
        check_nvrtc(argv[2], 12);
        check_nvrtc(argv[3], 13);
        check_nvrtc(argv[2], 12);
    } else if (!strcmp(argv[1], "nvidia")) {
        check_nvidia(argv[2], argv[3]);
    } else {
        void *library = open_library(argv[2]);

        check(!strcmp(argv[1], "nvjitlink"));
        for (size_t row = 0; row < sizeof link_rows / sizeof *link_rows; row++)
            check_link(library, row);
        check_fat_binary(library);
        check_files(library, argv[3]);
        check_passed_on(library);
    }
    printf("as wanted\n");
    return 0;
}
