/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of OpenGL without a window system (EGL_MESA_platform_surfaceless), and its functions. */
#ifndef CUTTLE_TESTS_GL_CONTEXT_H
#define CUTTLE_TESTS_GL_CONTEXT_H

#include "../api/api_test.h"

#include <EGL/egl.h>
#include <GL/glcorearb.h>
#include <stdbool.h>

/* The functions, in upper case as in their types, and by name. */
#define GL_FUNCTIONS(F)                                                                                                                    \
    F(GETERROR, GetError)                                                                                                                  \
    F(GETSTRING, GetString)                                                                                                                \
    F(GETINTEGERV, GetIntegerv)                                                                                                            \
    F(FINISH, Finish)                                                                                                                      \
    F(PIXELSTOREI, PixelStorei)                                                                                                            \
    F(GENBUFFERS, GenBuffers)                                                                                                              \
    F(DELETEBUFFERS, DeleteBuffers)                                                                                                        \
    F(BINDBUFFER, BindBuffer)                                                                                                              \
    F(BUFFERDATA, BufferData)                                                                                                              \
    F(BUFFERSTORAGE, BufferStorage)                                                                                                        \
    F(BUFFERSUBDATA, BufferSubData)                                                                                                        \
    F(GETBUFFERSUBDATA, GetBufferSubData)                                                                                                  \
    F(MAPBUFFERRANGE, MapBufferRange)                                                                                                      \
    F(UNMAPBUFFER, UnmapBuffer)                                                                                                            \
    F(GENTEXTURES, GenTextures)                                                                                                            \
    F(DELETETEXTURES, DeleteTextures)                                                                                                      \
    F(BINDTEXTURE, BindTexture)                                                                                                            \
    F(TEXPARAMETERI, TexParameteri)                                                                                                        \
    F(TEXIMAGE2D, TexImage2D)                                                                                                              \
    F(TEXIMAGE3D, TexImage3D)                                                                                                              \
    F(TEXSTORAGE2D, TexStorage2D)                                                                                                          \
    F(TEXSTORAGE2DMULTISAMPLE, TexStorage2DMultisample)                                                                                    \
    F(TEXSUBIMAGE2D, TexSubImage2D)                                                                                                        \
    F(TEXSUBIMAGE3D, TexSubImage3D)                                                                                                        \
    F(GETTEXIMAGE, GetTexImage)                                                                                                            \
    F(GENRENDERBUFFERS, GenRenderbuffers)                                                                                                  \
    F(DELETERENDERBUFFERS, DeleteRenderbuffers)                                                                                            \
    F(BINDRENDERBUFFER, BindRenderbuffer)                                                                                                  \
    F(RENDERBUFFERSTORAGE, RenderbufferStorage)                                                                                            \
    F(RENDERBUFFERSTORAGEMULTISAMPLE, RenderbufferStorageMultisample)                                                                      \
    F(GENFRAMEBUFFERS, GenFramebuffers)                                                                                                    \
    F(DELETEFRAMEBUFFERS, DeleteFramebuffers)                                                                                              \
    F(BINDFRAMEBUFFER, BindFramebuffer)                                                                                                    \
    F(FRAMEBUFFERTEXTURE2D, FramebufferTexture2D)                                                                                          \
    F(FRAMEBUFFERRENDERBUFFER, FramebufferRenderbuffer)                                                                                    \
    F(CHECKFRAMEBUFFERSTATUS, CheckFramebufferStatus)                                                                                      \
    F(READPIXELS, ReadPixels)                                                                                                              \
    F(VIEWPORT, Viewport)                                                                                                                  \
    F(CREATESHADER, CreateShader)                                                                                                          \
    F(SHADERSOURCE, ShaderSource)                                                                                                          \
    F(COMPILESHADER, CompileShader)                                                                                                        \
    F(DELETESHADER, DeleteShader)                                                                                                          \
    F(CREATEPROGRAM, CreateProgram)                                                                                                        \
    F(ATTACHSHADER, AttachShader)                                                                                                          \
    F(LINKPROGRAM, LinkProgram)                                                                                                            \
    F(USEPROGRAM, UseProgram)                                                                                                              \
    F(DELETEPROGRAM, DeleteProgram)                                                                                                        \
    F(GETPROGRAMIV, GetProgramiv)                                                                                                          \
    F(GENVERTEXARRAYS, GenVertexArrays)                                                                                                    \
    F(DELETEVERTEXARRAYS, DeleteVertexArrays)                                                                                              \
    F(BINDVERTEXARRAY, BindVertexArray)                                                                                                    \
    F(DRAWARRAYS, DrawArrays)

#define GL_MEMBER(type, name) PFNGL##type##PROC name;
struct gl_functions {
    GL_FUNCTIONS(GL_MEMBER)
};
extern struct gl_functions gl;

/* The kind of context to make. */
enum gl_profile { GL_CORE, GL_COMPATIBILITY, GL_ES };

/* Creates a context that shares its objects with `shared`, or with none, and makes it current. NULL: this EGL has none. */
EGLContext gl_create(enum gl_profile profile, EGLContext shared_or_null);
void gl_make_current(EGLContext context_or_null);
void gl_destroy(EGLContext context);

/* Group fixtures: with_context of api_test.h, and a current context of the core profile; skipped if there is none. */
int gl_with_context(void **state);
int gl_without_context(void **state);

/* Fails the test if OpenGL has recorded an error. */
#define gl_ok() assert_int_equal(gl.GetError(), GL_NO_ERROR)

/* The declarations of CUDA's cudaGL.h. */
CUresult cuGLGetDevices_v2(unsigned *count, CUdevice *devices, unsigned room, unsigned list);
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *resource, GLuint buffer, unsigned flags);
CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *resource, GLuint image, GLenum target, unsigned flags);
CUresult cuGLInit(void);
CUresult cuGLCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuGLRegisterBufferObject(GLuint buffer);
CUresult cuGLMapBufferObject_v2(CUdeviceptr *pointer, size_t *size, GLuint buffer);
CUresult cuGLMapBufferObjectAsync_v2(CUdeviceptr *pointer, size_t *size, GLuint buffer, CUstream stream);
CUresult cuGLUnmapBufferObject(GLuint buffer);
CUresult cuGLUnmapBufferObjectAsync(GLuint buffer, CUstream stream);
CUresult cuGLUnregisterBufferObject(GLuint buffer);
CUresult cuGLSetBufferObjectMapFlags(GLuint buffer, unsigned flags);

/* Random numbers, the same in each run. */
unsigned gl_random(void);

/* A kernel that inverts the bits of `count` words at `words`. */
void gl_invert(CUdeviceptr words, unsigned count, CUstream stream);

#endif
