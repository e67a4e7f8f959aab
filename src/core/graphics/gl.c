/* SPDX-License-Identifier: Apache-2.0 */
#include "gl.h"

#include "core/base/log.h"
#include "gl_names.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CT_CHANNEL "graphics"
#define OLDEST_VERSION 30
#define MAX_ERRORS 16 /* a context that is lost has an endless number of errors */

typedef void *get_current(void);
typedef void (*function)(void);
typedef function get_function(const char *name);

/* How a context is found: it belongs to one of these libraries. */
static const struct {
    const char *library, *get_current, *get_function;
} interfaces[] = {
    {"libEGL.so.1", "eglGetCurrentContext", "eglGetProcAddress"},
    {"libGLX.so.0", "glXGetCurrentContext", "glXGetProcAddressARB"},
    {"libGL.so.1", "glXGetCurrentContext", "glXGetProcAddressARB"},
};

static const struct {
    const char *name;
    size_t offset; /* in struct ct_gl */
    int version;   /* the first that has it */
} functions[] = {
#define NEEDED(result, name, parameters) {"gl" #name, offsetof(struct ct_gl, name), OLDEST_VERSION},
#define OPTIONAL(result, name, parameters, version) {"gl" #name, offsetof(struct ct_gl, name), version},
#include "gl_functions.def"
};

/* The context of one library, and the function that finds functions; NULL: none is current there. */
static get_function *find_context(size_t i, void **out_context)
{
    void *library = dlopen(interfaces[i].library, RTLD_NOW | RTLD_NOLOAD);
    get_current *current = library ? (get_current *)dlsym(library, interfaces[i].get_current) : NULL;
    get_function *found = library ? (get_function *)dlsym(library, interfaces[i].get_function) : NULL;

    *out_context = current && found ? current() : NULL;
    if (library)
        dlclose(library); /* the application's own use of it, which has made the context, remains */
    return *out_context ? found : NULL;
}

/* Stores the functions of the context's version in *gl. */
static CUresult find_functions(get_function *get, struct ct_gl *gl)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        function found = functions[i].version <= gl->version ? get(functions[i].name) : NULL;

        if (!found && functions[i].version <= OLDEST_VERSION && functions[i].version > 0)
            return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the OpenGL context lacks %s", functions[i].name);
        memcpy((char *)gl + functions[i].offset, &found, sizeof found);
    }
    return CUDA_SUCCESS;
}

/* Its text is "MAJOR.MINOR ...", or "OpenGL ES ...". */
static CUresult find_version(get_function *get, int *out)
{
    const unsigned char *(*get_string)(unsigned name) = (const unsigned char *(*)(unsigned))get("glGetString");
    const char *text = get_string ? (const char *)get_string(GL_VERSION) : NULL;
    int major, minor;

    if (!text || sscanf(text, "%d.%d", &major, &minor) != 2 || 10 * major + minor < OLDEST_VERSION)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED,
                       "the version of OpenGL is '%s': not supported are OpenGL ES, which cannot read textures back, and "
                       "versions before 3.0",
                       text ? text : "");
    *out = 10 * major + minor;
    return CUDA_SUCCESS;
}

CUresult ct_gl_enter(CUresult without, struct ct_gl *out)
{
    struct ct_gl gl = {0};
    get_function *get = NULL;
    CUresult r;

    for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces && !get; i++)
        get = find_context(i, &gl.context);
    if (!get)
        return ct_fail(without, "no OpenGL context is current in the calling thread");
    if ((r = find_version(get, &gl.version)) != CUDA_SUCCESS || (r = find_functions(get, &gl)) != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < MAX_ERRORS && gl.GetError() != GL_NO_ERROR; i++)
        ;
    *out = gl;
    return CUDA_SUCCESS;
}

CUresult ct_gl_check(const struct ct_gl *gl, const char *what)
{
    const unsigned error = gl->GetError();

    return error == GL_NO_ERROR ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_UNKNOWN, "OpenGL error 0x%x: %s", error, what);
}

/* ---- devices ---- */

bool ct_gl_has_extension(const struct ct_gl *gl, const char *name)
{
    int n = 0;

    gl->GetIntegerv(GL_NUM_EXTENSIONS, &n);
    for (int i = 0; i < n; i++) {
        const char *extension = (const char *)gl->GetStringi(GL_EXTENSIONS, (unsigned)i);

        if (extension && !strcmp(extension, name))
            return true;
    }
    return false;
}

bool ct_gl_draws_with(const struct ct_gl *gl, const uint8_t uuid[16])
{
    unsigned char theirs[16];
    int n = 0;

    if (!gl->GetUnsignedBytei_vEXT || !ct_gl_has_extension(gl, "GL_EXT_memory_object"))
        return false;
    gl->GetIntegerv(GL_NUM_DEVICE_UUIDS_EXT, &n);
    for (int i = 0; i < n; i++) {
        memset(theirs, 0, sizeof theirs);
        gl->GetUnsignedBytei_vEXT(GL_DEVICE_UUID_EXT, (unsigned)i, theirs);
        if (!memcmp(theirs, uuid, sizeof theirs))
            return true;
    }
    return false;
}

bool ct_gl_is_software(const struct ct_gl *gl)
{
    const char *renderer = (const char *)gl->GetString(GL_RENDERER);

    return renderer && (strstr(renderer, "llvmpipe") || strstr(renderer, "softpipe"));
}
