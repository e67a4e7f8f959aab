/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory runs out inside the library while buffers and textures of OpenGL are registered, mapped and unmapped: the n-th allocation of a
 * call fails, for n = 0, 1, .. until the call succeeds. The call returns OUT_OF_MEMORY, changes nothing, and succeeds as soon as no allocation
 * fails. Allocations of OpenGL do not fail. This program is not for other CUDA drivers. */
#include "../failing_allocations.h"
#include "gl_context.h"

#define MOST 200 /* maximum number of allocations of one call */
#define WORDS 5000u
#define BYTES ((size_t)WORDS * 4)
#define SIDE 20

static struct {
    GLuint buffer, texture;
    CUgraphicsResource resources[2]; /* of the buffer and of the texture */
    CUgraphicsResource more;
    CUarray array;
} at;

static CUresult register_buffer(void)
{
    return cuGraphicsGLRegisterBuffer(&at.more, at.buffer, 0);
}

static CUresult register_texture(void)
{
    return cuGraphicsGLRegisterImage(&at.more, at.texture, GL_TEXTURE_2D_ARRAY, 0);
}

static void unregister(void)
{
    ok(cuGraphicsUnregisterResource(at.more));
}

static CUresult register_name(void)
{
    return cuGLRegisterBufferObject(at.buffer);
}

static void unregister_name(void)
{
    ok(cuGLUnregisterBufferObject(at.buffer));
}

static CUresult map(void)
{
    return cuGraphicsMapResources(2, at.resources, NULL);
}

static void unmap_again(void)
{
    ok(cuGraphicsUnmapResources(2, at.resources, NULL));
}

static CUresult unmap(void)
{
    return cuGraphicsUnmapResources(2, at.resources, NULL);
}

static void map_again(void)
{
    ok(cuGraphicsMapResources(2, at.resources, NULL));
}

static CUresult find_layer(void)
{
    return cuGraphicsSubResourceGetMappedArray(&at.array, at.resources[1], 1, 0);
}

static void nothing(void)
{
}

static const struct row {
    const char *name;
    CUresult (*call)(void);
    void (*undo)(void);
    bool while_mapped;
} rows[] = {
    {"cuGraphicsGLRegisterBuffer", register_buffer, unregister, false},  {"cuGraphicsGLRegisterImage", register_texture, unregister, false},
    {"cuGLRegisterBufferObject", register_name, unregister_name, false}, {"cuGraphicsMapResources", map, unmap_again, false},
    {"cuGraphicsSubResourceGetMappedArray", find_layer, nothing, true},  {"cuGraphicsUnmapResources", unmap, map_again, true},
};

/* Returns the number of allocations of the call. */
static long exhaust(const struct row *row)
{
    for (long n = 0; n < MOST; n++) {
        bool has_failed;
        CUresult r;

        allocations_left = n;
        r = row->call();
        has_failed = allocations_left < 0;
        allocations_left = -1;
        if (r == CUDA_SUCCESS)
            row->undo();
        else if (r != CUDA_ERROR_OUT_OF_MEMORY)
            fail_msg("%s, allocation %ld: %s", row->name, n, api_error_name(r));
        if (!has_failed) {
            assert_int_equal(r, CUDA_SUCCESS);
            return n;
        }
        ok(row->call()); /* nothing has changed */
        row->undo();
    }
    fail_msg("%s makes over %d allocations", row->name, MOST);
    return MOST;
}

static void make_objects(const uint32_t *words)
{
    gl.GenBuffers(1, &at.buffer);
    gl.BindBuffer(GL_ARRAY_BUFFER, at.buffer);
    gl.BufferData(GL_ARRAY_BUFFER, BYTES, words, GL_DYNAMIC_DRAW);
    gl.BindBuffer(GL_ARRAY_BUFFER, 0);
    gl.GenTextures(1, &at.texture);
    gl.BindTexture(GL_TEXTURE_2D_ARRAY, at.texture);
    gl.TexImage3D(GL_TEXTURE_2D_ARRAY, 0, GL_R32UI, SIDE, SIDE, 3, 0, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    gl.BindTexture(GL_TEXTURE_2D_ARRAY, 0);
    gl_ok();
    ok(cuGraphicsGLRegisterBuffer(&at.resources[0], at.buffer, 0));
    ok(cuGraphicsGLRegisterImage(&at.resources[1], at.texture, GL_TEXTURE_2D_ARRAY, 0));
}

static void check_contents(const uint32_t *words)
{
    static uint32_t got[WORDS];

    gl.BindBuffer(GL_ARRAY_BUFFER, at.buffer);
    gl.GetBufferSubData(GL_ARRAY_BUFFER, 0, BYTES, got);
    assert_memory_equal(got, words, BYTES);
    gl.BindTexture(GL_TEXTURE_2D_ARRAY, at.texture);
    gl.GetTexImage(GL_TEXTURE_2D_ARRAY, 0, GL_RED_INTEGER, GL_UNSIGNED_INT, got);
    assert_memory_equal(got, words, SIDE * SIDE * 3 * 4);
    gl_ok();
}

static void every_allocation_fails_once(void **state)
{
    static uint32_t words[WORDS];
    bool is_mapped = false;

    (void)state;
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
    make_objects(words);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].while_mapped && !is_mapped)
            map_again();
        is_mapped = rows[i].while_mapped;
        assert_true(exhaust(&rows[i]) >= 1);
    }
    unmap_again();
    check_contents(words);
    ok(cuGraphicsUnregisterResource(at.resources[0]));
    ok(cuGraphicsUnregisterResource(at.resources[1]));
    gl.DeleteBuffers(1, &at.buffer);
    gl.DeleteTextures(1, &at.texture);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
    };

    return cmocka_run_group_tests(tests, gl_with_context, gl_without_context);
}
