/* SPDX-License-Identifier: Apache-2.0 */
/* Host files that contain fat binaries, loaded as modules and libraries; and images without any code that could run here. */
#include "api_test.h"

#include "api_kernels.h"
#include "containers.h"

#include <spawn.h>
#include <sys/wait.h>

#define NAME "/tmp/images_test_XXXXXX"

/* A kernel that needs another translation unit: out[thread] = 3 * thread. */
static const char calls[] = PTX_HEADER ".extern .func (.param .b32 r) triple(.param .b32 x);\n"
                                       ".visible .entry apply(.param .u64 out)\n"
                                       "{\n"
                                       "    .reg .b32 %r<3>;\n"
                                       "    .reg .b64 %d<3>;\n"
                                       "    .param .b32 x, r;\n"
                                       "    ld.param.u64 %d1, [out];\n"
                                       "    mov.u32 %r1, %tid.x;\n"
                                       "    st.param.b32 [x], %r1;\n"
                                       "    call (r), triple, (x);\n"
                                       "    ld.param.b32 %r2, [r];\n"
                                       "    mul.wide.u32 %d2, %r1, 4;\n"
                                       "    add.u64 %d1, %d1, %d2;\n"
                                       "    st.global.u32 [%d1], %r2;\n"
                                       "    ret;\n"
                                       "}\n";
static const char called[] = PTX_HEADER ".visible .func (.param .b32 r) triple(.param .b32 x)\n"
                                        "{\n"
                                        "    .reg .b32 %r1;\n"
                                        "    ld.param.b32 %r1, [x];\n"
                                        "    mul.lo.u32 %r1, %r1, 3;\n"
                                        "    st.param.b32 [r], %r1;\n"
                                        "    ret;\n"
                                        "}\n";

/* Launches out[thread] = factor * thread + first. */
static void expect_written(CUfunction function, uint32_t factor, uint32_t first)
{
    uint32_t got[32], count = 32;
    CUdeviceptr out;
    void *params[] = {&out, &first, &count};

    ok(cuMemAlloc(&out, sizeof got));
    ok(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(got, out, sizeof got));
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(got[i], factor * i + first);
    ok(cuMemFree(out));
}

/* One after the other, as the linker concatenates them into a section, padded with zeros. */
static struct bytes make_two(struct bytes first, struct bytes second)
{
    put(&first, "\0\0\0\0\0\0\0", 8);
    put(&first, second.at, second.size);
    free(second.at);
    return first;
}

/* The output of nvcc for a source file, without -rdc: machine code beside the PTX in one section. */
static void host_files_are_modules(void **state)
{
    struct bytes object = make_object(".nv_fatbin", make_two(make_fatbin(2, "\177ELF"), make_fatbin(1, PTX_HEADER PTX_RAMP)));
    char name[] = NAME;
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    CUmodule module;

    (void)state;
    if (!on_cuttle())
        skip(); /* NVIDIA's driver accepts machine code alone */
    make_file(object.at, object.size, name);
    free(object.at);
    ok(cuModuleLoad(&module, name));
    ok(cuLibraryLoadFromFile(&library, name, NULL, NULL, 0, NULL, NULL, 0));
    unlink(name);
    ok(cuModuleGetFunction(&function, module, "ramp"));
    expect_written(function, 1, 5);
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    expect_written((CUfunction)kernel, 1, 7);
    ok(cuModuleUnload(module));
    ok(cuLibraryUnload(library));
}

/* With -rdc the parts are in a section of their own, and are linked. */
static void parts_in_host_files_are_linked(void **state)
{
    struct bytes object = make_object("__nv_relfatbin", make_two(make_fatbin(1, calls), make_fatbin(1, called)));
    char name[] = NAME;
    CUfunction function;
    CUmodule module;

    (void)state;
    if (!on_cuttle())
        skip();
    make_file(object.at, object.size, name);
    free(object.at);
    ok(cuModuleLoad(&module, name));
    unlink(name);
    ok(cuModuleGetFunction(&function, module, "apply"));
    expect_written(function, 3, 0);
    ok(cuModuleUnload(module));
}

static struct bytes make_cubin(void)
{
    const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8},
                               .e_machine = 190};
    struct bytes bytes = {0};

    put(&bytes, &header, sizeof header);
    return bytes;
}

/* In any kind of container. */
static void machine_code_alone_is_refused(void **state)
{
    struct bytes images[] = {make_cubin(), make_fatbin(2, "\177ELF"), make_object(".nv_fatbin", make_fatbin(2, "\177ELF")),
                             make_object("__nv_relfatbin", make_fatbin(2, "\177ELF"))};
    CUlibrary library;
    CUmodule module;

    (void)state;
    if (!on_cuttle())
        skip();
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        char name[] = NAME, told[2000] = "";
        size_t size = sizeof told;
        CUlogIterator before;

        make_file(images[i].at, images[i].size, name);
        ok(cuLogsCurrent(&before, 0));
        gives(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, name));
        ok(cuLogsDumpToMemory(&before, told, &size, 0));
        assert_non_null(strstr(told, "nvcc -gencode arch=compute_75,code=compute_75"));
        gives(CUDA_ERROR_NO_BINARY_FOR_GPU, cuLibraryLoadFromFile(&library, name, NULL, NULL, 0, NULL, NULL, 0));
        unlink(name);
        if (i < 2)
            gives(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, images[i].at));
        free(images[i].at);
    }
}

/* Runs this program again, with standard error in a pipe: the message is printed without any option. */
static void a_message_explains_how_to_rebuild(void **state)
{
    extern char **environ;
    char self[] = "/proc/self/exe", word[] = "refused", *arguments[] = {self, word, NULL}, text[4000] = "";
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1;
    size_t size = 0;
    pid_t child;

    (void)state;
    if (!on_cuttle())
        skip();
    unsetenv("CUTTLE_LOG");
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    assert_int_equal(posix_spawn(&child, self, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (ssize_t n = 1; n > 0 && size < sizeof text - 1; size += (size_t)(n > 0 ? n : 0))
        n = read(ends[0], text + size, sizeof text - 1 - size);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_non_null(strstr(text, "rebuild it with PTX in it: nvcc -gencode arch=compute_75,code=compute_75"));
}

/* The child process. */
static int be_refused(void)
{
    struct bytes cubin = make_cubin();
    CUcontext context;
    CUmodule module;
    CUresult r;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return 2;
    r = cuModuleLoadData(&module, cubin.at);
    free(cubin.at);
    cuDevicePrimaryCtxRelease(0);
    return r != CUDA_ERROR_NO_BINARY_FOR_GPU;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_files_are_modules),
        cmocka_unit_test(parts_in_host_files_are_linked),
        cmocka_unit_test(machine_code_alone_is_refused),
        cmocka_unit_test(a_message_explains_how_to_rebuild),
    };

    (void)argv;
    if (argc > 1)
        return be_refused();
    return cmocka_run_group_tests(tests, with_context, without_context);
}
