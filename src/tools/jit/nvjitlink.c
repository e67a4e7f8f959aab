/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in before nvJitLink, which links while a program runs and makes machine code. Here the result is an image with PTX, as the driver's
 * own linker makes it (cuLinkComplete):
 *
 *   inputs with PTX                  are linked by the driver
 *   LTO-IR                           is compiled by nvJitLink, which alone can read it, to PTX (its option -ptx), which is linked with the others
 *
 * What no kernel of the LTO-IR uses is not in that PTX. So a function in LTO-IR that only an input with PTX calls is undefined then.
 *
 * Handles are nvJitLink's, so that functions that only it has work on them (real_library.h); what else a link has is found by its handle.
 * Source: nvJitLink, User Guide. */
#include "real_library.h"

#include <cuda.h>

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

typedef int nvJitLinkResult; /* enumerations */
typedef int nvJitLinkInputType;
typedef struct nvJitLink *nvJitLinkHandle;

enum {
    NVJITLINK_SUCCESS = 0,
    NVJITLINK_ERROR_INVALID_INPUT = 3,
    NVJITLINK_ERROR_PTX_COMPILE = 4,
    NVJITLINK_ERROR_INTERNAL = 6,
};
enum {
    NVJITLINK_INPUT_CUBIN = 1,
    NVJITLINK_INPUT_PTX = 2,
    NVJITLINK_INPUT_LTOIR = 3,
    NVJITLINK_INPUT_FATBIN = 4,
    NVJITLINK_INPUT_OBJECT = 5,
    NVJITLINK_INPUT_LIBRARY = 6,
    NVJITLINK_INPUT_ANY = 10,
};
enum { LOG_BYTES = 16384 };

nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *out, uint32_t count, const char **options);
nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *handle);
nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle handle, nvJitLinkInputType type, const void *data, size_t size, const char *name);
nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle handle, nvJitLinkInputType type, const char *path);
nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle handle);
nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t *out);
nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void *out);
nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t *out);
nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle handle, char *out);

/* What a link has here. */
struct link {
    nvJitLinkHandle handle;
    bool has_lto;           /* option -lto */
    bool wants_ptx;         /* the program's own option -ptx */
    unsigned max_registers; /* option -maxrregcount=N; 0: no limit */
    bool real_has_inputs;   /* nvJitLink itself got some: LTO-IR */
    CUlinkState state;      /* the driver's; NULL: there was no other input yet */
    const void *image;      /* the result, which the driver's link state owns; NULL: not complete */
    size_t image_size;
    char log[LOG_BYTES]; /* errors of the driver's linker */
    void *options[3];    /* the values of the driver's options, which it uses as long as its link state lives */
    UT_hash_handle hh;
};

/* The driver's functions. It is opened when the first input needs it: programs may use nvJitLink without a driver. */
#define DRIVER_FUNCTIONS(X)                                                                                                                \
    X(cuInit)                                                                                                                              \
    X(cuCtxGetCurrent)                                                                                                                     \
    X(cuCtxPushCurrent_v2)                                                                                                                 \
    X(cuCtxPopCurrent_v2)                                                                                                                  \
    X(cuDevicePrimaryCtxRetain)                                                                                                            \
    X(cuDevicePrimaryCtxRelease_v2)                                                                                                        \
    X(cuLinkCreate_v2)                                                                                                                     \
    X(cuLinkAddData_v2)                                                                                                                    \
    X(cuLinkComplete)                                                                                                                      \
    X(cuLinkDestroy)
static struct {
#define MEMBER(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(MEMBER)
} driver;
static bool driver_is_open;
static pthread_once_t driver_opened = PTHREAD_ONCE_INIT;

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    driver_is_open = library;
#define LOOK_UP(name) driver_is_open = driver_is_open && (driver.name = (__typeof__(driver.name))dlsym(library, #name));
    DRIVER_FUNCTIONS(LOOK_UP)
}

static struct link *links; /* by handle; the lock guards the table, while a link is used by one thread at a time, as nvJitLink demands */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct link *find_or_null(nvJitLinkHandle handle)
{
    struct link *found;

    pthread_mutex_lock(&lock);
    HASH_FIND_PTR(links, &handle, found);
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- creation ---- */

static bool has_option(uint32_t count, const char **options, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(options[i], name))
            return true;
    return false;
}

/* The value of the option -maxrregcount=N; 0: there is none. */
static unsigned max_registers(uint32_t count, const char **options)
{
    static const char name[] = "-maxrregcount=";

    for (uint32_t i = 0; i < count; i++)
        if (!strncmp(options[i], name, sizeof name - 1))
            return (unsigned)strtoul(options[i] + sizeof name - 1, NULL, 10);
    return 0;
}

static nvJitLinkResult create_real(nvJitLinkHandle *out, uint32_t count, const char **options)
{
    nvJitLinkResult (*real)(nvJitLinkHandle *, uint32_t, const char **) = ct_real_function_or_null("nvJitLinkCreate");

    return real ? real(out, count, options) : NVJITLINK_ERROR_INTERNAL;
}

/* Creates nvJitLink's own, which makes PTX of LTO-IR. */
static nvJitLinkResult create_for_ptx(nvJitLinkHandle *out, uint32_t count, const char **options)
{
    const char **more = calloc((size_t)count + 1, sizeof *more);
    nvJitLinkResult result;

    if (!more)
        return NVJITLINK_ERROR_INTERNAL;
    memcpy(more, options, count * sizeof *more);
    more[count] = "-ptx";
    result = create_real(out, count + 1, more);
    free(more);
    return result;
}

/* As nvJitLink's, which checks the options. */
CT_EXPORTED nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *out, uint32_t count, const char **options)
{
    const uint32_t n_readable = options ? count : 0;
    const bool has_lto = has_option(n_readable, options, "-lto"), wants_ptx = has_option(n_readable, options, "-ptx");
    struct link *link = calloc(1, sizeof *link);
    nvJitLinkResult result;

    if (!link)
        return NVJITLINK_ERROR_INTERNAL;
    result = has_lto && !wants_ptx ? create_for_ptx(out, count, options) : create_real(out, count, options);
    if (result != NVJITLINK_SUCCESS) {
        free(link);
        return result;
    }
    link->handle = *out;
    link->has_lto = has_lto;
    link->wants_ptx = wants_ptx;
    link->max_registers = max_registers(n_readable, options);
    pthread_mutex_lock(&lock);
    HASH_ADD_PTR(links, handle, link);
    pthread_mutex_unlock(&lock);
    return NVJITLINK_SUCCESS;
}

/* As nvJitLink's. */
CT_EXPORTED nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *handle)
{
    nvJitLinkResult (*real)(nvJitLinkHandle *) = ct_real_function_or_null("nvJitLinkDestroy");
    struct link *link = handle ? find_or_null(*handle) : NULL;

    if (link) {
        pthread_mutex_lock(&lock);
        HASH_DEL(links, link);
        pthread_mutex_unlock(&lock);
        if (link->state)
            driver.cuLinkDestroy(link->state);
        free(link);
    }
    return real ? real(handle) : NVJITLINK_ERROR_INTERNAL;
}

/* ---- the driver's linker ---- */

/* Creates a link state in the current context, or in that of device 0 if there is none, which nvJitLink does not need. */
static CUresult create_link_state(struct link *link)
{
    static CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS};
    CUcontext context = NULL;
    CUresult r;

    pthread_once(&driver_opened, open_driver);
    if (!driver_is_open)
        return CUDA_ERROR_NOT_INITIALIZED;
    link->options[0] = link->log;
    link->options[1] = (void *)(uintptr_t)sizeof link->log;
    link->options[2] = (void *)(uintptr_t)link->max_registers;
    if ((r = driver.cuInit(0)) == CUDA_SUCCESS)
        r = driver.cuCtxGetCurrent(&context);
    if (r != CUDA_SUCCESS)
        return r;
    if (context)
        return driver.cuLinkCreate_v2(3, options, link->options, &link->state);
    if ((r = driver.cuDevicePrimaryCtxRetain(&context, 0)) != CUDA_SUCCESS)
        return r;
    if ((r = driver.cuCtxPushCurrent_v2(context)) == CUDA_SUCCESS) {
        r = driver.cuLinkCreate_v2(3, options, link->options, &link->state);
        driver.cuCtxPopCurrent_v2(&context);
    }
    driver.cuDevicePrimaryCtxRelease_v2(0);
    return r;
}

static CUresult add_to_driver(struct link *link, CUjitInputType type, const void *data, size_t size, const char *name)
{
    CUresult r = link->state ? CUDA_SUCCESS : create_link_state(link);

    return r == CUDA_SUCCESS ? driver.cuLinkAddData_v2(link->state, type, (void *)data, size, name, 0, NULL, NULL) : r;
}

static nvJitLinkResult result_of(CUresult r)
{
    switch (r) {
    case CUDA_SUCCESS:
        return NVJITLINK_SUCCESS;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return NVJITLINK_ERROR_PTX_COMPILE;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return NVJITLINK_ERROR_INVALID_INPUT;
    default:
        return NVJITLINK_ERROR_INTERNAL;
    }
}

/* ---- inputs ---- */

static nvJitLinkResult add_to_real(nvJitLinkHandle handle, nvJitLinkInputType type, const void *data, size_t size, const char *name)
{
    nvJitLinkResult (*real)(nvJitLinkHandle, nvJitLinkInputType, const void *, size_t, const char *) =
        ct_real_function_or_null("nvJitLinkAddData");

    return real ? real(handle, type, data, size, name) : NVJITLINK_ERROR_INTERNAL;
}

/* The type of an input of type "any", by its first bytes. What begins like nothing else is PTX, a text. */
static nvJitLinkInputType type_of(const void *data, size_t size)
{
    static const struct {
        const char *magic;
        nvJitLinkInputType type;
    } rows[] = {
        {ELFMAG, NVJITLINK_INPUT_OBJECT}, /* or machine code; the driver's linker looks into either for PTX */
        {"\x50\xed\x55\xba", NVJITLINK_INPUT_FATBIN},
        {"!<arch>\n", NVJITLINK_INPUT_LIBRARY},
        {"\355CN\177", NVJITLINK_INPUT_LTOIR},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (size >= strlen(rows[i].magic) && !memcmp(data, rows[i].magic, strlen(rows[i].magic)))
            return rows[i].type;
    return NVJITLINK_INPUT_PTX;
}

/* Whether the driver's linker knows the type, and then as what. */
static bool type_for_driver(nvJitLinkInputType type, CUjitInputType *out)
{
    static const struct {
        nvJitLinkInputType type;
        CUjitInputType driver;
    } rows[] = {
        {NVJITLINK_INPUT_CUBIN, CU_JIT_INPUT_CUBIN},      {NVJITLINK_INPUT_PTX, CU_JIT_INPUT_PTX},
        {NVJITLINK_INPUT_FATBIN, CU_JIT_INPUT_FATBINARY}, {NVJITLINK_INPUT_OBJECT, CU_JIT_INPUT_OBJECT},
        {NVJITLINK_INPUT_LIBRARY, CU_JIT_INPUT_LIBRARY},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].type == type) {
            *out = rows[i].driver;
            return true;
        }
    }
    return false;
}

/* Whether a fat binary has LTO-IR and no PTX: the driver's linker would say that it cannot be linked. (The layout is that of
 * src/core/code/fatbin.c. nvcc gives LTO-IR the kind 8.) */
static bool has_lto_only(const void *data, size_t size)
{
    enum { KIND_PTX = 1, KIND_LTOIR = 8 };
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t payload_bytes;
    } container;
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t payload_bytes;
    } entry;
    const unsigned char *bytes = data;
    bool has_lto = false;

    if (size < sizeof container)
        return false;
    memcpy(&container, bytes, sizeof container);
    for (uint64_t at = container.header_bytes; at <= size && size - at >= sizeof entry; at += entry.header_bytes + entry.payload_bytes) {
        memcpy(&entry, bytes + at, sizeof entry);
        if (entry.kind == KIND_PTX || entry.header_bytes < sizeof entry || entry.payload_bytes > size)
            return false;
        has_lto |= entry.kind == KIND_LTOIR;
    }
    return has_lto;
}

/* As nvJitLink's. What has no PTX may have LTO-IR, if that was asked for. INVALID_INPUT: machine code only. */
CT_EXPORTED nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle handle, nvJitLinkInputType type, const void *data, size_t size,
                                             const char *name)
{
    struct link *link = find_or_null(handle);
    CUjitInputType driver_type;
    nvJitLinkInputType known_type;
    nvJitLinkResult result;

    if (!link || !data || !size)
        return add_to_real(handle, type, data, size, name);
    known_type = type == NVJITLINK_INPUT_ANY ? type_of(data, size) : type;
    if (!(link->has_lto && known_type == NVJITLINK_INPUT_FATBIN && has_lto_only(data, size)) && type_for_driver(known_type, &driver_type)) {
        const CUresult r = add_to_driver(link, driver_type, data, size, name);

        if (r != CUDA_ERROR_NO_BINARY_FOR_GPU || !link->has_lto)
            return result_of(r);
    }
    result = add_to_real(handle, type, data, size, name);
    if (result == NVJITLINK_SUCCESS)
        link->real_has_inputs = true;
    return result;
}

/* The bytes of a file, on the heap, or NULL. */
static void *read_file_or_null(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    long size;

    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0 && (bytes = malloc((size_t)size))) {
        *out_size = fread(bytes, 1, (size_t)size, file);
        if (*out_size != (size_t)size) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}

/* As nvJitLink's. INVALID_INPUT: the file cannot be read, or is empty. */
CT_EXPORTED nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle handle, nvJitLinkInputType type, const char *path)
{
    nvJitLinkResult result;
    size_t size;
    void *bytes = path ? read_file_or_null(path, &size) : NULL;

    if (!bytes)
        return NVJITLINK_ERROR_INVALID_INPUT;
    result = nvJitLinkAddData(handle, type, bytes, size, path);
    free(bytes);
    return result;
}

/* ---- results ---- */

static nvJitLinkResult real_get(const char *function, nvJitLinkHandle handle, void *out)
{
    return ct_real_get(function, handle, out, NVJITLINK_ERROR_INTERNAL);
}

/* Gives the driver's linker the PTX that nvJitLink made of all LTO-IR. */
static nvJitLinkResult add_compiled(struct link *link)
{
    size_t size = 0;
    nvJitLinkResult result = real_get("nvJitLinkGetLinkedPtxSize", link->handle, &size);
    char *ptx;

    if (result != NVJITLINK_SUCCESS)
        return result;
    if (!(ptx = calloc(1, size + 1)))
        return NVJITLINK_ERROR_INTERNAL;
    result = real_get("nvJitLinkGetLinkedPtx", link->handle, ptx);
    if (result == NVJITLINK_SUCCESS)
        result = result_of(add_to_driver(link, CU_JIT_INPUT_PTX, ptx, strlen(ptx), "LTO-IR"));
    free(ptx);
    return result;
}

static nvJitLinkResult complete_real(nvJitLinkHandle handle)
{
    nvJitLinkResult (*real)(nvJitLinkHandle) = ct_real_function_or_null("nvJitLinkComplete");

    return real ? real(handle) : NVJITLINK_ERROR_INTERNAL;
}

/* Whether the result is nvJitLink's own: PTX of LTO-IR alone, as the program asked, or the error that there is no input. */
static bool is_left_to_real(const struct link *link)
{
    return !link->state && (link->wants_ptx || !link->real_has_inputs);
}

static nvJitLinkResult complete_driver(struct link *link)
{
    void *image;
    const nvJitLinkResult result = result_of(driver.cuLinkComplete(link->state, &image, &link->image_size));

    if (result == NVJITLINK_SUCCESS)
        link->image = image;
    return result;
}

/* As nvJitLink's. INTERNAL: as there, a symbol is not defined; the error log names it. */
CT_EXPORTED nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle handle)
{
    struct link *link = find_or_null(handle);
    nvJitLinkResult result = NVJITLINK_SUCCESS;

    if (!link || is_left_to_real(link))
        return complete_real(handle);
    if (link->real_has_inputs && (result = complete_real(handle)) == NVJITLINK_SUCCESS)
        result = add_compiled(link);
    return result == NVJITLINK_SUCCESS ? complete_driver(link) : result;
}

/* As nvJitLink's. */
CT_EXPORTED nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle handle, size_t *out)
{
    const struct link *link = find_or_null(handle);

    if (!link || !link->image || !out)
        return real_get("nvJitLinkGetLinkedCubinSize", handle, out);
    *out = link->image_size;
    return NVJITLINK_SUCCESS;
}

/* As nvJitLink's; an image that cuModuleLoadData and cuLibraryLoadData accept. */
CT_EXPORTED nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle handle, void *out)
{
    const struct link *link = find_or_null(handle);

    if (!link || !link->image || !out)
        return real_get("nvJitLinkGetLinkedCubin", handle, out);
    memcpy(out, link->image, link->image_size);
    return NVJITLINK_SUCCESS;
}

/* As nvJitLink's; the log of the driver's linker, if there is anything in it. */
CT_EXPORTED nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle handle, size_t *out)
{
    const struct link *link = find_or_null(handle);

    if (!link || !*link->log || !out)
        return real_get("nvJitLinkGetErrorLogSize", handle, out);
    *out = strlen(link->log) + 1;
    return NVJITLINK_SUCCESS;
}

CT_EXPORTED nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle handle, char *out)
{
    const struct link *link = find_or_null(handle);

    if (!link || !*link->log || !out)
        return real_get("nvJitLinkGetErrorLog", handle, out);
    memcpy(out, link->log, strlen(link->log) + 1);
    return NVJITLINK_SUCCESS;
}
