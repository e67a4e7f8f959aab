/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of OpenGL in CUDA (Driver API: OpenGL Interoperability, Graphics Interoperability). */
#include "gl_context.h"

#include <pthread.h>
#include <semaphore.h>

#define WORDS 10001u
#define BYTES ((size_t)WORDS * 4)

static GLuint make_buffer(const uint32_t *words)
{
    GLuint buffer;

    gl.GenBuffers(1, &buffer);
    gl.BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl.BufferData(GL_ARRAY_BUFFER, BYTES, words, GL_DYNAMIC_DRAW);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    gl_ok();
    return buffer;
}

static void set_words(GLuint buffer, const uint32_t *words)
{
    gl.BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl.BufferSubData(GL_ARRAY_BUFFER, 0, BYTES, words);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    gl_ok();
}

static void get_words(GLuint buffer, uint32_t *words)
{
    gl.BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl.GetBufferSubData(GL_ARRAY_BUFFER, 0, BYTES, words);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    gl_ok();
}

static void count_from(uint32_t *words, uint32_t first)
{
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = first + i * 2654435761u;
}

static void check_inverted(GLuint buffer, uint32_t first)
{
    static uint32_t got[WORDS], expected[WORDS];

    get_words(buffer, got);
    count_from(expected, first);
    for (unsigned i = 0; i < WORDS; i++)
        assert_int_equal(got[i], ~expected[i]);
}

static CUdeviceptr pointer_of(CUgraphicsResource resource)
{
    CUdeviceptr pointer = 0;
    size_t bytes = 0;

    ok(cuGraphicsResourceGetMappedPointer(&pointer, &bytes, resource));
    assert_int_equal(bytes, BYTES);
    assert_true(pointer != 0);
    return pointer;
}

/* ---- contents ---- */

static void a_kernel_changes_a_buffer(void **state)
{
    static uint32_t words[WORDS];
    CUgraphicsResource resource;
    GLuint buffer;

    (void)state;
    count_from(words, 7);
    buffer = make_buffer(words);
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, CU_GRAPHICS_REGISTER_FLAGS_NONE));
    for (unsigned round = 0; round < 3; round++) { /* OpenGL changes it between the mappings */
        count_from(words, 7 + round);
        set_words(buffer, words);
        ok(cuGraphicsMapResources(1, &resource, NULL));
        gl_invert(pointer_of(resource), WORDS, NULL);
        ok(cuGraphicsUnmapResources(1, &resource, NULL));
        check_inverted(buffer, 7 + round);
    }
    ok(cuGraphicsUnregisterResource(resource));
    check_inverted(buffer, 9);
    gl.DeleteBuffers(1, &buffer);
}

/* glBufferStorage without GL_DYNAMIC_STORAGE_BIT: the host cannot write it. */
static void a_buffer_that_is_immutable(void **state)
{
    static uint32_t words[WORDS];
    CUgraphicsResource resource;
    GLuint buffer;

    (void)state;
    count_from(words, 1);
    gl.GenBuffers(1, &buffer);
    gl.BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl.BufferStorage(GL_ARRAY_BUFFER, BYTES, words, 0);
    gl_ok();
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    ok(cuGraphicsMapResources(1, &resource, NULL));
    gl_invert(pointer_of(resource), WORDS, NULL);
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    check_inverted(buffer, 1);
    ok(cuGraphicsUnregisterResource(resource));
    gl.DeleteBuffers(1, &buffer);
}

/* Several in one call, in a stream of their own. */
static void several_buffers_at_once(void **state)
{
    enum { N = 5 };
    static uint32_t words[WORDS];
    CUgraphicsResource resources[N];
    GLuint buffers[N];
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < N; i++) {
        count_from(words, i);
        buffers[i] = make_buffer(words);
        ok(cuGraphicsGLRegisterBuffer(&resources[i], buffers[i], 0));
    }
    ok(cuGraphicsMapResources(N, resources, stream));
    for (unsigned i = 0; i < N; i++)
        gl_invert(pointer_of(resources[i]), WORDS, stream);
    ok(cuGraphicsUnmapResources(N, resources, stream));
    for (unsigned i = 0; i < N; i++) {
        check_inverted(buffers[i], i);
        ok(cuGraphicsUnregisterResource(resources[i]));
    }
    gl.DeleteBuffers(N, buffers);
    ok(cuStreamDestroy(stream));
}

/* "CUDA will not write to this resource": if it does, the results are undefined; here OpenGL does not see them. */
static void flags_of_registration_and_mapping(void **state)
{
    static uint32_t words[WORDS], got[WORDS];
    CUgraphicsResource resource;
    GLuint buffer;

    (void)state;
    count_from(words, 3);
    buffer = make_buffer(words);
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY));
    ok(cuGraphicsMapResources(1, &resource, NULL));
    ok(cuMemcpyDtoH(got, pointer_of(resource), BYTES));
    assert_memory_equal(got, words, BYTES);
    if (on_cuttle())
        ok(cuMemsetD32(pointer_of(resource), 1, WORDS));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    get_words(buffer, got);
    assert_memory_equal(got, words, BYTES);

    ok(cuGraphicsResourceSetMapFlags(resource, CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD));
    count_from(words, 4);
    ok(cuGraphicsMapResources(1, &resource, NULL));
    ok(cuMemcpyHtoD(pointer_of(resource), words, BYTES));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    get_words(buffer, got);
    assert_memory_equal(got, words, BYTES);

    ok(cuGraphicsResourceSetMapFlags(resource, CU_GRAPHICS_MAP_RESOURCE_FLAGS_NONE));
    ok(cuGraphicsMapResources(1, &resource, NULL));
    gl_invert(pointer_of(resource), WORDS, NULL);
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    check_inverted(buffer, 4);
    ok(cuGraphicsUnregisterResource(resource));
    gl.DeleteBuffers(1, &buffer);
}

static void CUDA_CB await_semaphore(void *semaphore)
{
    sem_wait(semaphore);
}

static void *open_later(void *semaphore)
{
    const struct timespec time = {.tv_nsec = 50000000};

    nanosleep(&time, NULL);
    sem_post(semaphore);
    return NULL;
}

/* "Any CUDA work issued in stream before cuGraphicsUnmapResources() will complete before any subsequently issued graphics work begins", and work that is
 * in the stream before the mapping is not overtaken. */
static void mappings_are_ordered_with_the_stream(void **state)
{
    static uint32_t words[WORDS];
    CUgraphicsResource resource;
    pthread_t thread;
    CUstream stream;
    GLuint buffer;
    sem_t gate;

    (void)state;
    count_from(words, 5);
    buffer = make_buffer(words);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    sem_init(&gate, 0, 0);
    ok(cuGraphicsMapResources(1, &resource, stream));
    ok(cuLaunchHostFunc(stream, await_semaphore, &gate));
    gl_invert(pointer_of(resource), WORDS, stream);
    assert_int_equal(pthread_create(&thread, NULL, open_later, &gate), 0);
    ok(cuGraphicsUnmapResources(1, &resource, stream));
    check_inverted(buffer, 5);
    pthread_join(thread, NULL);

    count_from(words, 6);
    set_words(buffer, words);
    ok(cuLaunchHostFunc(stream, await_semaphore, &gate));
    assert_int_equal(pthread_create(&thread, NULL, open_later, &gate), 0);
    ok(cuGraphicsMapResources(1, &resource, stream));
    gl_invert(pointer_of(resource), WORDS, stream);
    ok(cuGraphicsUnmapResources(1, &resource, stream));
    check_inverted(buffer, 6);
    pthread_join(thread, NULL);
    ok(cuGraphicsUnregisterResource(resource));
    gl.DeleteBuffers(1, &buffer);
    ok(cuStreamDestroy(stream));
    sem_destroy(&gate);
}

static void CUDA_CB set_flag(void *flag)
{
    *(volatile int *)flag = 1;
}

/* The same without a copy. */
static void unmapping_waits_for_the_stream(void **state)
{
    static uint32_t words[WORDS];
    GLuint buffer = make_buffer(words);
    CUgraphicsResource resource;
    pthread_t thread;
    CUstream stream;
    int flag = 0;
    sem_t gate;

    (void)state;
    if (!on_cuttle())
        skip(); /* the manual only says that it is before later work of OpenGL */
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY));
    sem_init(&gate, 0, 0);
    ok(cuGraphicsMapResources(1, &resource, stream));
    ok(cuLaunchHostFunc(stream, await_semaphore, &gate));
    ok(cuLaunchHostFunc(stream, set_flag, &flag));
    assert_int_equal(pthread_create(&thread, NULL, open_later, &gate), 0);
    ok(cuGraphicsUnmapResources(1, &resource, stream));
    assert_int_equal(flag, 1);
    pthread_join(thread, NULL);
    ok(cuGraphicsUnregisterResource(resource));
    ok(cuStreamDestroy(stream));
    sem_destroy(&gate);
    gl.DeleteBuffers(1, &buffer);
}

/* Bindings that the application has made stay. */
static void bindings_stay(void **state)
{
    static const GLenum targets[] = {GL_ARRAY_BUFFER, GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER};
    static const GLenum queries[] = {GL_ARRAY_BUFFER_BINDING, GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER};
    static uint32_t words[WORDS];
    CUgraphicsResource resource;
    GLuint buffer, others[3];

    (void)state;
    count_from(words, 5);
    gl.GenBuffers(1, &buffer);
    gl.BindBuffer(GL_ARRAY_BUFFER, buffer);
    gl.BufferStorage(GL_ARRAY_BUFFER, BYTES, words, 0);
    for (unsigned i = 0; i < 3; i++) {
        others[i] = make_buffer(words);
        gl.BindBuffer(targets[i], others[i]);
    }
    gl.BindBuffer(targets[0], others[0]);
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    ok(cuGraphicsMapResources(1, &resource, NULL));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    ok(cuGraphicsUnregisterResource(resource));
    for (unsigned i = 0; i < 3; i++) {
        GLint bound = 0;

        gl.GetIntegerv(queries[i], &bound);
        assert_int_equal(bound, others[i]);
    }
    gl_ok();
    gl.DeleteBuffers(1, &buffer);
    gl.DeleteBuffers(3, others);
}

/* A context that shares its objects with that of the registration may map them. */
static void a_context_that_shares_objects(void **state)
{
    static uint32_t words[WORDS];
    EGLContext first = eglGetCurrentContext(), second;
    CUgraphicsResource resource;
    GLuint buffer;

    (void)state;
    count_from(words, 11);
    buffer = make_buffer(words);
    gl.Finish();
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    second = gl_create(GL_CORE, first);
    assert_true(second != EGL_NO_CONTEXT);
    ok(cuGraphicsMapResources(1, &resource, NULL));
    gl_invert(pointer_of(resource), WORDS, NULL);
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    gl.Finish();
    gl_make_current(first);
    gl_destroy(second);
    check_inverted(buffer, 11);
    ok(cuGraphicsUnregisterResource(resource));
    gl.DeleteBuffers(1, &buffer);
}

/* ---- errors ---- */

static void errors_of_registration(void **state)
{
    CUgraphicsResource resource = MADE_UP(CUgraphicsResource), other;
    static uint32_t words[WORDS];
    EGLContext context = eglGetCurrentContext();
    GLuint buffer = make_buffer(words), empty, unused;

    (void)state;
    gl.GenBuffers(1, &empty);
    gl.BindBuffer(GL_ARRAY_BUFFER, empty);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    gl.GenBuffers(1, &unused); /* a name that is not that of a buffer until it is bound */
    if (!on_cuttle())
        skip();
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterBuffer(NULL, buffer, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsGLRegisterBuffer(&resource, 0, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsGLRegisterBuffer(&resource, 12345, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsGLRegisterBuffer(&resource, unused, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterBuffer(&resource, empty, 0));
    for (unsigned flags = 3; flags < 64; flags++) /* NONE, READ_ONLY and WRITE_DISCARD are 0, 1, 2 */
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsGLRegisterBuffer(&resource, buffer, flags));
    gl_make_current(EGL_NO_CONTEXT);
    gives(CUDA_ERROR_OPERATING_SYSTEM, cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    gl_make_current(context);
    assert_ptr_equal(resource, MADE_UP(CUgraphicsResource));

    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    ok(cuGraphicsGLRegisterBuffer(&other, buffer, 0)); /* "ALREADY_MAPPED" only while it is mapped */
    ok(cuGraphicsMapResources(1, &resource, NULL));
    gives(CUDA_ERROR_ALREADY_MAPPED, cuGraphicsGLRegisterBuffer(&other, buffer, 0));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    ok(cuGraphicsUnregisterResource(other));
    ok(cuGraphicsUnregisterResource(resource));
    gl_ok();
    gl.DeleteBuffers(1, &buffer);
    gl.DeleteBuffers(1, &empty);
}

static void errors_of_mapping(void **state)
{
    static uint32_t words[WORDS];
    GLuint buffers[2] = {make_buffer(words), make_buffer(words)};
    EGLContext context = eglGetCurrentContext();
    CUgraphicsResource resources[3], made_up = MADE_UP(CUgraphicsResource);
    CUmipmappedArray mipmapped;
    CUdeviceptr pointer = 1;
    CUarray array;
    size_t bytes = 1;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuGraphicsGLRegisterBuffer(&resources[0], buffers[0], 0));
    ok(cuGraphicsGLRegisterBuffer(&resources[1], buffers[1], 0));
    resources[2] = resources[0];

    gives(CUDA_ERROR_NOT_MAPPED, cuGraphicsUnmapResources(1, resources, NULL));
    gives(CUDA_ERROR_NOT_MAPPED, cuGraphicsResourceGetMappedPointer(&pointer, &bytes, resources[0]));
    gives(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, cuGraphicsSubResourceGetMappedArray(&array, resources[0], 0, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(3, resources, NULL)); /* "If resources includes any duplicate entries" */
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, NULL, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, &made_up, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnmapResources(1, &made_up, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(made_up));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsResourceSetMapFlags(made_up, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsResourceGetMappedPointer(&pointer, &bytes, made_up));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsSubResourceGetMappedArray(&array, made_up, 0, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsResourceGetMappedMipmappedArray(&mipmapped, made_up));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsResourceSetMapFlags(resources[0], 3));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsResourceSetMapFlags(resources[0], CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsSubResourceGetMappedArray(NULL, resources[0], 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphicsResourceGetMappedMipmappedArray(NULL, resources[0]));

    ok(cuGraphicsMapResources(1, &resources[1], NULL));
    gives(CUDA_ERROR_ALREADY_MAPPED, cuGraphicsMapResources(1, &resources[1], NULL));
    gives(CUDA_ERROR_ALREADY_MAPPED, cuGraphicsMapResources(2, resources, NULL)); /* and the first one is not mapped by that */
    gives(CUDA_ERROR_NOT_MAPPED, cuGraphicsUnmapResources(2, resources, NULL));
    gives(CUDA_ERROR_NOT_MAPPED, cuGraphicsResourceGetMappedPointer(&pointer, &bytes, resources[0]));
    gives(CUDA_ERROR_ALREADY_MAPPED, cuGraphicsResourceSetMapFlags(resources[1], 0));
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsUnregisterResource(resources[1]));
    gives(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, cuGraphicsResourceGetMappedMipmappedArray(&mipmapped, resources[1]));
    ok(cuGraphicsResourceGetMappedPointer(NULL, NULL, resources[1]));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer_of(resources[1])));
    gl_make_current(EGL_NO_CONTEXT);
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsUnmapResources(1, &resources[1], NULL));
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsMapResources(1, &resources[0], NULL));
    gl_make_current(context);
    ok(cuGraphicsUnmapResources(1, &resources[1], NULL));
    assert_true(pointer == 1 && bytes == 1);
    ok(cuGraphicsMapResources(0, NULL, NULL));

    ok(cuGraphicsUnregisterResource(resources[0]));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(resources[0]));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, resources, NULL));
    ok(cuGraphicsUnregisterResource(resources[1]));
    gl_ok();
    gl.DeleteBuffers(2, buffers);
}

/* What happened to the buffer since it was registered. */
static void buffers_that_changed(void **state)
{
    static uint32_t words[WORDS];
    GLuint buffer = make_buffer(words);
    CUgraphicsResource resource;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    gl.BindBuffer(GL_ARRAY_BUFFER, buffer);
    assert_non_null(gl.MapBufferRange(GL_ARRAY_BUFFER, 0, BYTES, GL_MAP_WRITE_BIT));
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsMapResources(1, &resource, NULL));
    gl.UnmapBuffer(GL_ARRAY_BUFFER);
    ok(cuGraphicsMapResources(1, &resource, NULL));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    gl.BufferData(GL_ARRAY_BUFFER, BYTES / 2, words, GL_STATIC_DRAW);
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsMapResources(1, &resource, NULL));
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    gl.DeleteBuffers(1, &buffer);
    gives(CUDA_ERROR_UNKNOWN, cuGraphicsMapResources(1, &resource, NULL));
    ok(cuGraphicsUnregisterResource(resource));
    gl_ok();
}

/* In a context without resources, and after the context of the resource was destroyed. */
static void other_contexts(void **state)
{
    static uint32_t words[WORDS];
    GLuint buffer = make_buffer(words);
    CUgraphicsResource resource, theirs;
    CUcontext mine = *state, other;

    if (!on_cuttle())
        skip();
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    ok(cuGLInit());
    ok(cuGLCtxCreate_v2(&other, 0, 0));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGraphicsMapResources(1, &resource, NULL));
    ok(cuGraphicsGLRegisterBuffer(&theirs, buffer, 0));
    ok(cuGraphicsMapResources(1, &theirs, NULL));
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(mine));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnmapResources(1, &theirs, NULL));
    ok(cuGraphicsMapResources(1, &resource, NULL));
    ok(cuGraphicsUnmapResources(1, &resource, NULL));
    ok(cuCtxSetCurrent(NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGraphicsUnregisterResource(resource));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGraphicsMapResources(1, &resource, NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGLInit());
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGLRegisterBufferObject(buffer));
    ok(cuCtxSetCurrent(mine));
    ok(cuGraphicsUnregisterResource(resource));
    gl.DeleteBuffers(1, &buffer);
}

static void streams_that_are_captured(void **state)
{
    static uint32_t words[WORDS];
    GLuint buffer = make_buffer(words);
    CUgraphicsResource resource;
    CUgraph graph = NULL;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuGraphicsGLRegisterBuffer(&resource, buffer, 0));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (on_cuttle())
        gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGraphicsMapResources(1, &resource, stream));
    cuStreamEndCapture(stream, &graph);
    ok(cuGraphicsMapResources(1, &resource, stream));
    ok(cuGraphicsUnmapResources(1, &resource, stream));
    ok(cuGraphicsUnregisterResource(resource));
    ok(cuStreamDestroy(stream));
    gl.DeleteBuffers(1, &buffer);
}

/* ---- by their names ---- */

static void buffers_by_name(void **state)
{
    static uint32_t words[WORDS];
    GLuint buffer;
    CUdeviceptr pointer;
    CUstream stream;
    size_t bytes;

    (void)state;
    count_from(words, 21);
    buffer = make_buffer(words);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, cuGLMapBufferObject_v2(&pointer, &bytes, buffer));
        gives(CUDA_ERROR_INVALID_VALUE, cuGLUnmapBufferObject(buffer));
        gives(CUDA_ERROR_INVALID_VALUE, cuGLUnregisterBufferObject(buffer));
        gives(CUDA_ERROR_INVALID_HANDLE, cuGLSetBufferObjectMapFlags(buffer, 0));
    }
    ok(cuGLRegisterBufferObject(buffer));
    if (on_cuttle())
        gives(CUDA_ERROR_ALREADY_MAPPED, cuGLRegisterBufferObject(buffer));
    ok(cuGLMapBufferObject_v2(&pointer, &bytes, buffer));
    assert_int_equal(bytes, BYTES);
    gl_invert(pointer, WORDS, NULL);
    if (on_cuttle()) {
        gives(CUDA_ERROR_MAP_FAILED, cuGLMapBufferObject_v2(&pointer, &bytes, buffer));
        gives(CUDA_ERROR_ALREADY_MAPPED, cuGLSetBufferObjectMapFlags(buffer, 0));
        gives(CUDA_ERROR_UNKNOWN, cuGLUnregisterBufferObject(buffer));
    }
    ok(cuGLUnmapBufferObject(buffer));
    check_inverted(buffer, 21);
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, cuGLUnmapBufferObject(buffer));
        gives(CUDA_ERROR_INVALID_VALUE, cuGLSetBufferObjectMapFlags(buffer, 3));
    }

    ok(cuGLSetBufferObjectMapFlags(buffer, 2)); /* WRITE_DISCARD */
    ok(cuGLMapBufferObjectAsync_v2(&pointer, NULL, buffer, stream));
    count_from(words, 22);
    ok(cuMemcpyHtoDAsync(pointer, words, BYTES, stream));
    gl_invert(pointer, WORDS, stream);
    ok(cuGLUnmapBufferObjectAsync(buffer, stream));
    check_inverted(buffer, 22);
    ok(cuGLUnregisterBufferObject(buffer));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, cuGLUnregisterBufferObject(buffer));
    ok(cuStreamDestroy(stream));
    gl.DeleteBuffers(1, &buffer);
}

/* ---- devices and other contexts of OpenGL ---- */

static void devices_of_a_context(void **state)
{
    EGLContext context = eglGetCurrentContext();
    CUdevice devices[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    unsigned count = 99;

    (void)state;
    for (unsigned list = 1; list <= 3; list++) {
        count = 99;
        ok(cuGLGetDevices_v2(&count, devices, 8, list));
        assert_true(count >= 1 && count <= 8);
        assert_int_equal(devices[0], 0);
    }
    ok(cuGLGetDevices_v2(&count, NULL, 0, 1));
    if (!on_cuttle())
        return;
    gives(CUDA_ERROR_INVALID_VALUE, cuGLGetDevices_v2(NULL, devices, 8, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGLGetDevices_v2(&count, NULL, 8, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGLGetDevices_v2(&count, devices, 8, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGLGetDevices_v2(&count, devices, 8, 4));
    gl_make_current(EGL_NO_CONTEXT);
    gives(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLGetDevices_v2(&count, devices, 8, 1));
    gl_make_current(context);
}

/* OpenGL ES cannot read textures back. */
static void opengl_es_is_not_supported(void **state)
{
    EGLContext context = eglGetCurrentContext(), es = gl_create(GL_ES, EGL_NO_CONTEXT);
    CUgraphicsResource resource;

    (void)state;
    if (es != EGL_NO_CONTEXT && on_cuttle())
        gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphicsGLRegisterBuffer(&resource, 1, 0));
    gl_make_current(EGL_NO_CONTEXT);
    gl_destroy(es);
    eglBindAPI(EGL_OPENGL_API);
    gl_make_current(context);
}

/* ---- random calls against a model ---- */

struct model {
    GLuint buffer;
    CUgraphicsResource resource;
    bool is_registered, is_mapped;
};

static CUresult expected_for(const struct model *models, const unsigned *list, unsigned n, bool maps)
{
    for (unsigned i = 0; i < n; i++)
        if (!models[list[i]].is_registered)
            return CUDA_ERROR_INVALID_HANDLE;
        else
            for (unsigned k = 0; k < i; k++)
                if (list[k] == list[i])
                    return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < n; i++)
        if (models[list[i]].is_mapped == maps)
            return maps ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_NOT_MAPPED;
    return CUDA_SUCCESS;
}

static void random_change(struct model *models, unsigned count, bool maps)
{
    CUgraphicsResource resources[3];
    unsigned list[3], n = 1 + gl_random() % 3;
    CUresult expected;

    for (unsigned i = 0; i < n; i++) {
        list[i] = gl_random() % count;
        resources[i] = models[list[i]].resource;
    }
    expected = expected_for(models, list, n, maps);
    gives(expected, maps ? cuGraphicsMapResources(n, resources, NULL) : cuGraphicsUnmapResources(n, resources, NULL));
    for (unsigned i = 0; i < n && expected == CUDA_SUCCESS; i++)
        models[list[i]].is_mapped = maps;
}

static void random_calls(void **state)
{
    enum { N = 6 };
    static uint32_t words[WORDS];
    struct model models[N] = {0};

    (void)state;
    if (!on_cuttle())
        skip();
    for (unsigned i = 0; i < N; i++) {
        count_from(words, i);
        models[i].buffer = make_buffer(words);
        models[i].resource = MADE_UP(CUgraphicsResource);
    }
    for (unsigned i = 0; i < 1500; i++) {
        struct model *m = &models[gl_random() % N];
        CUdeviceptr pointer;
        CUresult expected;

        switch (gl_random() % 6) {
        case 0:
            if (!m->is_registered) {
                ok(cuGraphicsGLRegisterBuffer(&m->resource, m->buffer, 0));
                m->is_registered = true;
            }
            break;
        case 1: /* handles of resources that were unregistered are tried again */
            expected = !m->is_registered ? CUDA_ERROR_INVALID_HANDLE : m->is_mapped ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
            gives(expected, cuGraphicsUnregisterResource(m->resource));
            m->is_registered = m->is_registered && expected != CUDA_SUCCESS;
            break;
        case 2:
            expected = !m->is_registered ? CUDA_ERROR_INVALID_HANDLE : m->is_mapped ? CUDA_SUCCESS : CUDA_ERROR_NOT_MAPPED;
            gives(expected, cuGraphicsResourceGetMappedPointer(&pointer, NULL, m->resource));
            break;
        case 3:
            expected = !m->is_registered ? CUDA_ERROR_INVALID_HANDLE : m->is_mapped ? CUDA_ERROR_ALREADY_MAPPED : CUDA_SUCCESS;
            gives(expected, cuGraphicsResourceSetMapFlags(m->resource, 0));
            break;
        default:
            random_change(models, N, gl_random() % 2);
        }
    }
    for (unsigned i = 0; i < N; i++) { /* nothing was changed by all this */
        uint32_t got[WORDS];

        if (models[i].is_mapped)
            ok(cuGraphicsUnmapResources(1, &models[i].resource, NULL));
        if (models[i].is_registered)
            ok(cuGraphicsUnregisterResource(models[i].resource));
        get_words(models[i].buffer, got);
        count_from(words, i);
        assert_memory_equal(got, words, BYTES);
        gl.DeleteBuffers(1, &models[i].buffer);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_changes_a_buffer),
        cmocka_unit_test(a_buffer_that_is_immutable),
        cmocka_unit_test(several_buffers_at_once),
        cmocka_unit_test(flags_of_registration_and_mapping),
        cmocka_unit_test(mappings_are_ordered_with_the_stream),
        cmocka_unit_test(unmapping_waits_for_the_stream),
        cmocka_unit_test(bindings_stay),
        cmocka_unit_test(a_context_that_shares_objects),
        cmocka_unit_test(errors_of_registration),
        cmocka_unit_test(errors_of_mapping),
        cmocka_unit_test(buffers_that_changed),
        cmocka_unit_test(other_contexts),
        cmocka_unit_test(streams_that_are_captured),
        cmocka_unit_test(buffers_by_name),
        cmocka_unit_test(devices_of_a_context),
        cmocka_unit_test(opengl_es_is_not_supported),
        cmocka_unit_test(random_calls),
    };

    return cmocka_run_group_tests(tests, gl_with_context, gl_without_context);
}
