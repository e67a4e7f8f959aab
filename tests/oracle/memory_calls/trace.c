/* SPDX-License-Identifier: Apache-2.0 */
/* The trace: a line for each call, in terms that are independent of the driver. */
#include "calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The error codes that any call may return: states of the library and of its contexts, and invalid arguments. */
static const char codes_of_all[] =
    " SUCCESS INVALID_VALUE INVALID_CONTEXT CONTEXT_IS_DESTROYED INVALID_HANDLE INVALID_DEVICE NOT_SUPPORTED ";

static char begun[400]; /* the call, for messages */

static const char *code_name(CUresult r)
{
    const char *name = NULL;

    if (cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
        return "(no error code)";
    return strncmp(name, "CUDA_ERROR_", 11) == 0 ? name + 11 : strncmp(name, "CUDA_", 5) == 0 ? name + 5 : name;
}

void calls_begin(struct calls *c, const char *format, ...)
{
    va_list arguments;

    (void)c;
    va_start(arguments, format);
    vsnprintf(begun, sizeof begun, format, arguments);
    va_end(arguments);
    printf("%s)", begun);
    fflush(stdout); /* the call may end the process */
}

void calls_append(struct calls *c, const char *format, ...)
{
    va_list arguments;

    (void)c;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

static bool knows(const char *codes, const char *name)
{
    char word[80];

    snprintf(word, sizeof word, " %s ", name);
    return strstr(codes, word) != NULL;
}

bool calls_result(struct calls *c, CUresult r)
{
    const char *name = code_name(r);

    printf(" = %s", name);
    if (c->check && !knows(codes_of_all, name) && !(c->row && knows(c->row->codes, name))) {
        fprintf(stderr, "%s) gives %s, which the manual does not list\n", begun, name);
        c->failed = true;
    }
    return r == CUDA_SUCCESS;
}

void calls_line(struct calls *c)
{
    (void)c;
    putchar('\n');
}

bool calls_end(struct calls *c, CUresult r)
{
    calls_result(c, r);
    putchar('\n');
    return r == CUDA_SUCCESS;
}

/* ---- names ---- */
const char *calls_object_name(char text[16], const struct calls_object *o)
{
    static const char *const letters[] = {"dev",    "host", "reg",  "man",   "pooled", "res", "map",
                                          "opened", "phys", "pool", "array", "level",  "mip"};

    snprintf(text, 16, "%s%u", letters[__builtin_ctz(o->kind)], o->number);
    return text;
}

const char *calls_stream_name(const struct calls *c, CUstream stream)
{
    static const char *const names[CALLS_STREAMS] = {"null", "legacy", "per_thread", "blocking", "nonblocking", "other's"};

    for (unsigned i = 0; i < CALLS_STREAMS; i++)
        if (c->streams[i] == stream)
            return names[i];
    return "?";
}

static bool say_area(struct calls *c, uint64_t address)
{
    static const char *const names[CALLS_AREAS] = {"heap", "window", "constant", "hole"};

    for (unsigned i = 0; i < CALLS_AREAS; i++)
        if (address - (uintptr_t)c->areas[i] < CALLS_AREA_BYTES)
            return printf("%s+%llu", names[i], (unsigned long long)(address - (uintptr_t)c->areas[i])) > 0;
    return false;
}

/* Names the newest object that contains the address; parts take precedence over the whole, and objects over the areas that contain them. */
void calls_append_address(struct calls *c, const char *name, uint64_t address)
{
    char text[16];

    printf(" %s=", name);
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = c->n_objects; i-- > 0;) {
            const struct calls_object *o = &c->objects[i];

            if (!(o->kind & CALLS_ADDRESSED) || o->live != !pass || address - o->address >= o->size)
                continue;
            printf("%s%s+%llu", calls_object_name(text, o), pass ? "(gone)" : "", (unsigned long long)(address - o->address));
            return;
        }
    if (!say_area(c, address))
        printf(address ? "elsewhere" : "0");
}

void calls_append_context(struct calls *c, const char *name, CUcontext context)
{
    static const char *const names[CALLS_CONTEXTS] = {"primary", "second", "third"};

    for (unsigned i = 0; i < CALLS_CONTEXTS; i++)
        if (context && c->contexts[i] == context) {
            printf(" %s=%s", name, names[i]);
            return;
        }
    printf(" %s=%s", name, context ? "?" : "none");
}

void calls_append_handle(struct calls *c, const char *name, unsigned kinds, uint64_t handle)
{
    char text[16];

    for (unsigned i = c->n_objects; i-- > 0;)
        if ((c->objects[i].kind & kinds) && c->objects[i].handle == handle) {
            printf(" %s=%s", name, calls_object_name(text, &c->objects[i]));
            return;
        }
    printf(" %s=%s", name, handle ? "another" : "0");
}

/* ---- contents ---- */
#define MOST_BYTES (64 * CALLS_KIB)

void calls_append_host_contents(struct calls *c, const void *at, size_t bytes)
{
    const unsigned char *p = at;
    uint32_t sum = 2166136261U;

    (void)c;
    for (size_t i = 0; i < (bytes < MOST_BYTES ? bytes : MOST_BYTES); i++)
        sum = (sum ^ p[i]) * 16777619U;
    printf(" bytes=%08x", sum);
}

void calls_append_contents(struct calls *c, CUdeviceptr at, size_t bytes)
{
    static unsigned char copy[MOST_BYTES];
    const size_t part = bytes < sizeof copy ? bytes : sizeof copy;
    const CUresult r = part ? cuMemcpyDtoH(copy, at, part) : CUDA_SUCCESS;

    if (r != CUDA_SUCCESS)
        printf(" reading=%s", code_name(r));
    else
        calls_append_host_contents(c, copy, part);
}

void calls_append_array_contents(struct calls *c, const struct calls_object *array)
{
    static unsigned char copy[MOST_BYTES];
    const size_t row = array->shape.Width * array->texel, rows = array->shape.Height ? array->shape.Height : 1;
    const size_t slices = array->shape.Depth ? array->shape.Depth : 1;
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = (CUarray)(uintptr_t)array->handle,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = copy,
                         .dstPitch = row,
                         .dstHeight = rows,
                         .WidthInBytes = row,
                         .Height = rows,
                         .Depth = slices};
    CUresult r;

    if (!array->plain || row * rows * slices > sizeof copy)
        return;
    r = cuMemcpy3D(&box);
    if (r != CUDA_SUCCESS)
        printf(" reading=%s", code_name(r));
    else
        calls_append_host_contents(c, copy, row * rows * slices);
}

void calls_wait(struct calls *c, CUstream stream)
{
    const CUresult r = cuStreamSynchronize(stream);

    (void)c;
    if (r != CUDA_SUCCESS)
        printf(" waiting=%s", code_name(r));
}

void calls_fill(struct calls *c, struct calls_object *o)
{
    const unsigned char value = (unsigned char)(0x20 + o->number);
    CUresult r = CUDA_SUCCESS;

    (void)c;
    if (o->kind & CALLS_HOST)
        memset((void *)(uintptr_t)o->address, value, o->size);
    else
        r = cuMemsetD8(o->address, value, o->size);
    o->plain = r == CUDA_SUCCESS && cuStreamSynchronize(NULL) == CUDA_SUCCESS;
    if (!o->plain)
        printf(" filling=%s", code_name(r));
}
