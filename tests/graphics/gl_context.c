/* SPDX-License-Identifier: Apache-2.0 */
#include "gl_context.h"

#include "../api/api_kernels.h"

#include <EGL/eglext.h>

struct gl_functions gl;

static EGLDisplay display = EGL_NO_DISPLAY;
static EGLContext context_of_group = EGL_NO_CONTEXT;
static CUmodule module;

static const char invert_ptx[] = PTX_HEADER ".visible .entry invert(.param .u64 words, .param .u32 count)\n"
                                            "{\n"
                                            "    .reg .pred %p;\n"
                                            "    .reg .b32 %r<6>;\n"
                                            "    .reg .b64 %d<4>;\n"
                                            "    ld.param.u64 %d1, [words];\n"
                                            "    ld.param.u32 %r2, [count];\n"
                                            "    mov.u32 %r3, %ctaid.x;\n"
                                            "    mov.u32 %r4, %ntid.x;\n"
                                            "    mov.u32 %r5, %tid.x;\n"
                                            "    mad.lo.u32 %r3, %r3, %r4, %r5;\n"
                                            "    setp.ge.u32 %p, %r3, %r2;\n"
                                            "    @%p bra done;\n"
                                            "    mul.wide.u32 %d2, %r3, 4;\n"
                                            "    add.u64 %d3, %d1, %d2;\n"
                                            "    ld.global.u32 %r1, [%d3];\n"
                                            "    not.b32 %r1, %r1;\n"
                                            "    st.global.u32 [%d3], %r1;\n"
                                            "done:\n"
                                            "    ret;\n"
                                            "}\n";

void gl_invert(CUdeviceptr words, unsigned count, CUstream stream)
{
    void *arguments[] = {&words, &count};
    CUfunction function;

    if (!module)
        ok(cuModuleLoadData(&module, invert_ptx));
    ok(cuModuleGetFunction(&function, module, "invert"));
    ok(cuLaunchKernel(function, (count + 63) / 64, 1, 1, 64, 1, 1, 0, stream, arguments, NULL));
}

unsigned gl_random(void)
{
    static unsigned state = 1;

    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static bool open_display(void)
{
    PFNEGLGETPLATFORMDISPLAYEXTPROC get = (PFNEGLGETPLATFORMDISPLAYEXTPROC)eglGetProcAddress("eglGetPlatformDisplayEXT");
    const char *extensions = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);

    if (display != EGL_NO_DISPLAY)
        return true;
    if (!get || !extensions || !strstr(extensions, "EGL_MESA_platform_surfaceless"))
        return false;
    display = get(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (display != EGL_NO_DISPLAY && !eglInitialize(display, NULL, NULL))
        display = EGL_NO_DISPLAY;
    return display != EGL_NO_DISPLAY;
}

void gl_make_current(EGLContext context_or_null)
{
    assert_true(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context_or_null));
}

EGLContext gl_create(enum gl_profile profile, EGLContext shared_or_null)
{
    const EGLint desktop[] = {EGL_CONTEXT_MAJOR_VERSION,
                              profile == GL_CORE ? 4 : 3,
                              EGL_CONTEXT_MINOR_VERSION,
                              profile == GL_CORE ? 5 : 0,
                              profile == GL_CORE ? EGL_CONTEXT_OPENGL_PROFILE_MASK : EGL_NONE,
                              EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                              EGL_NONE};
    const EGLint es[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_NONE};
    EGLContext context;

    if (!open_display() || !eglBindAPI(profile == GL_ES ? EGL_OPENGL_ES_API : EGL_OPENGL_API))
        return EGL_NO_CONTEXT;
    context = eglCreateContext(display, EGL_NO_CONFIG_KHR, shared_or_null, profile == GL_ES ? es : desktop);
    if (context == EGL_NO_CONTEXT)
        return context;
    gl_make_current(context);
#define GL_FIND(type, name) gl.name = (PFNGL##type##PROC)eglGetProcAddress("gl" #name);
    GL_FUNCTIONS(GL_FIND)
    return context;
}

void gl_destroy(EGLContext context)
{
    eglDestroyContext(display, context);
}

int gl_with_context(void **state)
{
    context_of_group = gl_create(GL_CORE, EGL_NO_CONTEXT);
    if (context_of_group == EGL_NO_CONTEXT) {
        print_message("there is no EGL for OpenGL 4.5 without a window system\n");
        exit(77);
    }
    print_message("OpenGL draws with %s\n", (const char *)gl.GetString(GL_RENDERER));
    return with_context(state);
}

int gl_without_context(void **state)
{
    if (module && cuModuleUnload(module) != CUDA_SUCCESS)
        return -1;
    module = NULL;
    gl_make_current(EGL_NO_CONTEXT);
    gl_destroy(context_of_group);
    eglTerminate(display);
    display = EGL_NO_DISPLAY;
    return without_context(state);
}
