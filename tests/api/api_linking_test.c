/* SPDX-License-Identifier: Apache-2.0 */
/* Module management, the linker: several inputs become one self-contained image. */
#include "api_test.h"

#include "containers.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER ".version 6.0\n.target sm_50\n.address_size 64\n"

/* out[thread] = f(thread) + *place. Here f and place are declared only. */
static char kernel[] = HEADER ".extern .func (.param .b32 r) f(.param .b32 x);\n"
                              ".extern .global .align 8 .u64 place;\n"
                              ".global .u32 own = 1;\n"
                              ".visible .entry apply(.param .u64 out)\n"
                              "{\n"
                              "    .reg .b32 %r<5>;\n"
                              "    .reg .b64 %d<5>;\n"
                              "    .param .b32 x, r;\n"
                              "    ld.param.u64 %d1, [out];\n"
                              "    mov.u32 %r1, %tid.x;\n"
                              "    st.param.b32 [x], %r1;\n"
                              "    call (r), f, (x);\n"
                              "    ld.param.b32 %r2, [r];\n"
                              "    ld.global.u64 %d2, [place];\n"
                              "    ld.u32 %r3, [%d2];\n"
                              "    add.u32 %r2, %r2, %r3;\n"
                              "    mul.wide.u32 %d3, %r1, 4;\n"
                              "    add.u64 %d4, %d1, %d3;\n"
                              "    st.global.u32 [%d4], %r2;\n"
                              "    ret;\n"
                              "}\n";
static char function[] = HEADER ".visible .func (.param .b32 r) f(.param .b32 x)\n"
                                "{\n"
                                "    .reg .b32 %r1;\n"
                                "    ld.param.b32 %r1, [x];\n"
                                "    mul.lo.u32 %r1, %r1, 10;\n"
                                "    st.param.b32 [r], %r1;\n"
                                "    ret;\n"
                                "}\n";
static char variable[] = HEADER ".global .u32 own = 3;\n.visible .global .align 8 .u64 place = generic(own);\n";

#define THREADS 32

static void expect_applied(CUmodule module)
{
    uint32_t got[THREADS];
    CUfunction apply;
    CUdeviceptr out;

    ok(cuModuleGetFunction(&apply, module, "apply"));
    ok(cuMemAlloc(&out, sizeof got));
    ok(cuLaunchKernel(apply, 1, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){&out}, NULL));
    ok(cuMemcpyDtoH(got, out, sizeof got));
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(got[i], 10 * i + 3);
    ok(cuMemFree(out));
}

static CUlinkState create(void)
{
    CUlinkState state = NULL;

    ok(cuLinkCreate(0, NULL, NULL, &state));
    assert_non_null(state);
    return state;
}

static CUresult add(CUlinkState state, CUjitInputType type, void *bytes, size_t size, const char *name)
{
    return cuLinkAddData(state, type, bytes, size, name, 0, NULL, NULL);
}

static CUresult add_text(CUlinkState state, char *text, const char *name)
{
    return add(state, CU_JIT_INPUT_PTX, text, strlen(text) + 1, name);
}

/* The three texts, linked. */
static CUlinkState linked(void **image, size_t *size)
{
    CUlinkState state = create();

    ok(add_text(state, kernel, "kernel.ptx"));
    ok(add_text(state, function, "function.ptx"));
    ok(add_text(state, variable, NULL));
    ok(cuLinkComplete(state, image, size));
    assert_non_null(*image);
    return state;
}

static void texts_become_one_module(void **unused)
{
    void *image;
    size_t size;
    CUlinkState state = linked(&image, &size);
    CUlibrary library;
    CUmodule module;

    (void)unused;
    assert_memory_equal(image, ELFMAG, SELFMAG); /* as programs expect */
    ok(cuModuleLoadData(&module, image));
    expect_applied(module);
    ok(cuModuleUnload(module));
    ok(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetModule(&module, library));
    expect_applied(module);
    ok(cuLibraryUnload(library));
    ok(cuLinkDestroy(state));
}

/* Runs this program again, with a file to load: see main. */
static void load_in_another_process(const char *name)
{
    extern char **environ;
    char self[] = "/proc/self/exe", *arguments[] = {self, (char *)(uintptr_t)name, NULL};
    int status = -1;
    pid_t child;

    assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void the_image_stands_on_its_own(void **unused)
{
    char name[] = "/tmp/linking_test_XXXXXX";
    void *image;
    size_t size;
    CUlinkState state = linked(&image, &size);
    char *copy = malloc(size);
    CUmodule module;

    (void)unused;
    assert_non_null(copy);
    memcpy(copy, image, size);
    ok(cuLinkDestroy(state));
    ok(cuModuleLoadData(&module, copy));
    make_file(copy, size, name);
    memset(copy, 0xff, size);
    free(copy); /* the linked image is not needed once it is loaded */
    expect_applied(module);
    ok(cuModuleUnload(module));
    ok(cuModuleLoad(&module, name));
    expect_applied(module);
    ok(cuModuleUnload(module));
    load_in_another_process(name);
    unlink(name);
}

/* ---- containers ---- */

/* Adds a member to an archive; frees it. */
static void put_member(struct bytes *archive, const char *name, struct bytes member)
{
    char header[61];

    if (!archive->size)
        put(archive, "!<arch>\n", 8);
    snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", name, 0, 0, 0, 644, member.size);
    put(archive, header, 60);
    put(archive, member.at, member.size);
    if (member.size & 1)
        put(archive, "\n", 1);
    free(member.at);
}

static struct bytes make_text(const char *text)
{
    struct bytes bytes = {0};

    put(&bytes, text, strlen(text));
    return bytes;
}

static CUresult add_bytes(CUlinkState state, CUjitInputType type, struct bytes bytes, const char *name)
{
    CUresult r = add(state, type, bytes.at, bytes.size, name);

    free(bytes.at);
    return r;
}

static void complete_and_apply(CUlinkState state)
{
    CUmodule module;
    void *image;
    size_t size;

    ok(cuLinkComplete(state, &image, &size));
    ok(cuModuleLoadData(&module, image));
    expect_applied(module);
    ok(cuModuleUnload(module));
    ok(cuLinkDestroy(state));
}

static void fat_binaries_and_object_files(void **unused)
{
    char name[] = "/tmp/linking_test_XXXXXX";
    struct bytes object = make_object("__nv_relfatbin", make_fatbin(1, function));
    CUlinkState state = create();

    (void)unused;
    if (!on_cuttle()) /* NVIDIA's linker requires object files made by nvcc */
        skip();
    ok(add_bytes(state, CU_JIT_INPUT_FATBINARY, make_fatbin(1, kernel), "kernel.fatbin"));
    make_file(object.at, object.size, name);
    free(object.at);
    ok(cuLinkAddFile(state, CU_JIT_INPUT_OBJECT, name, 0, NULL, NULL));
    unlink(name);
    ok(add_text(state, variable, NULL));
    complete_and_apply(state);
}

/* Members are linked only if they are needed: `spare` would not link. */
static void libraries(void **unused)
{
    static const char spare[] = HEADER ".visible .entry apply() { ret; }\n.extern .global .u32 nowhere;\n";
    struct bytes library = {0};
    CUlinkState state = create();

    (void)unused;
    if (!on_cuttle()) /* the same */
        skip();
    put_member(&library, "/", make_text("a table of symbols"));
    put_member(&library, "//", make_text("a_long_name_of_a_member.o/\nodd"));
    put_member(&library, "host.o/", make_object(".text", make_text("host code")));
    put_member(&library, "/0", make_object("__nv_relfatbin", make_fatbin(1, variable)));
    put_member(&library, "readme.txt/", make_text("no object file"));
    put_member(&library, "spare.o/", make_object("__nv_relfatbin", make_fatbin(1, spare)));
    put_member(&library, "function.o/", make_object("__nv_relfatbin", make_fatbin(1, function)));
    ok(add_bytes(state, CU_JIT_INPUT_LIBRARY, library, "libparts.a"));
    ok(add_text(state, kernel, NULL));
    complete_and_apply(state);
}

/* The result of a link can be the input of another one. */
static void images_are_inputs(void **unused)
{
    CUlinkState first = create(), second = create();
    void *image;
    size_t size;

    (void)unused;
    if (!on_cuttle()) /* its images are linked already */
        skip();
    ok(add_text(first, function, NULL));
    ok(add_text(first, variable, NULL));
    ok(cuLinkComplete(first, &image, &size));
    ok(add(second, CU_JIT_INPUT_CUBIN, image, size, NULL));
    ok(cuLinkDestroy(first));
    ok(add_text(second, kernel, NULL));
    complete_and_apply(second);
}

/* ---- options ---- */

static void logs_and_hints(void **unused)
{
    char info[1000] = "", error[1000] = "";
    CUjit_option options[] = {
        CU_JIT_WALL_TIME,
        CU_JIT_INFO_LOG_BUFFER,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_ERROR_LOG_BUFFER,
        CU_JIT_LOG_VERBOSE,
        CU_JIT_OPTIMIZATION_LEVEL,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_TARGET_FROM_CUCONTEXT,
        CU_JIT_GENERATE_DEBUG_INFO,
        CU_JIT_GENERATE_LINE_INFO,
        CU_JIT_MAX_REGISTERS,
    };
    void *values[] = {0, info, (void *)sizeof info, error, (void *)1, (void *)4, (void *)sizeof error, 0, 0, (void *)1, (void *)32};
    CUjit_option hint = CU_JIT_MAX_REGISTERS;
    void *thirty = (void *)30, *image;
    CUlinkState state;
    float milliseconds;
    size_t size;

    (void)unused;
    ok(cuLinkCreate(sizeof options / sizeof *options, options, values, &state));
    ok(add_text(state, kernel, "kernel.ptx"));
    ok(cuLinkAddData(state, CU_JIT_INPUT_PTX, function, sizeof function, "function.ptx", 1, &hint, &thirty));
    ok(add_text(state, variable, NULL));
    ok(cuLinkComplete(state, &image, &size));
    memcpy(&milliseconds, &values[0], sizeof milliseconds);
    assert_true(milliseconds > 0 && milliseconds < 60000);
    assert_in_range((size_t)values[2], strlen(info), strlen(info) + 1); /* NVIDIA's driver counts the terminating 0 after truncation */
    assert_true(strlen(info) > 0);                                      /* because of the option for verbose output */
    assert_int_equal((size_t)values[6], 0);
    assert_string_equal(error, "");
    ok(cuLinkDestroy(state));
}

/* PTX of a kernel "many" with `LIVE` values that are live together. */
#define LIVE 60
static void write_many(char *out, size_t size)
{
    size_t at = (size_t)snprintf(
        out, size, HEADER ".visible .entry many(.param .u64 p)\n{\n .reg .b64 %%d1;\n .reg .b32 %%r<%d>;\n ld.param.u64 %%d1, [p];\n",
        LIVE);

    for (int i = 0; i < LIVE; i++)
        at += (size_t)snprintf(out + at, size - at, " ld.volatile.global.u32 %%r%d, [%%d1+%d];\n", i, 4 * i);
    for (int i = LIVE - 1; i >= 0; i--)
        at += (size_t)snprintf(out + at, size - at, " st.volatile.global.u32 [%%d1+%d], %%r%d;\n", 4 * i, i);
    at += (size_t)snprintf(out + at, size - at, " ret;\n}\n");
    assert_true(at < size);
}

/* The number of registers of the kernel of an image that is loaded with this limit; 0: none. */
static int registers_of(const void *image, unsigned limit)
{
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *value = (void *)(uintptr_t)limit;
    CUfunction many;
    CUmodule module;
    int registers;

    ok(cuModuleLoadDataEx(&module, image, limit ? 1 : 0, &option, &value));
    ok(cuModuleGetFunction(&many, module, "many"));
    ok(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, many));
    ok(cuModuleUnload(module));
    return registers;
}

/* Links and loads may limit the registers of kernels. */
static void limits_of_registers(void **unused)
{
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *value = (void *)32, *image;
    char text[LIVE * 120];
    CUlinkState state;

    (void)unused;
    write_many(text, sizeof text);
    assert_in_range(registers_of(text, 0), LIVE, 255);
    assert_in_range(registers_of(text, 40), 1, 40);
    assert_in_range(registers_of(text, 24), 1, 24);
    ok(cuLinkCreate(1, &option, &value, &state));
    ok(add_text(state, text, "many.ptx"));
    ok(cuLinkComplete(state, &image, NULL));
    assert_in_range(registers_of(image, 0), 1, 32);
    assert_in_range(registers_of(image, 24), 1, 24);
    assert_in_range(registers_of(image, 200), 1, 32);
    ok(cuLinkDestroy(state));
}

/* A linker state with an error log. */
static CUlinkState create_with_log(char *log, size_t size)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    static void *values[2];
    CUlinkState state = NULL;

    memset(log, 0, size);
    values[0] = log;
    values[1] = (void *)size;
    ok(cuLinkCreate(2, options, values, &state));
    return state;
}

static void link_errors_are_reported(void **unused)
{
    static char twice[] = HEADER ".visible .global .u32 place;\n", wrong[] = HEADER ".visible .entry k() { nonsense; }\n";
    char log[2000];
    void *image = &image;
    size_t size = 1;
    CUlinkState state = create_with_log(log, sizeof log);

    (void)unused;
    ok(add_text(state, kernel, "kernel.ptx"));
    gives(CUDA_ERROR_INVALID_SOURCE, add_text(state, twice, "twice.ptx")); /* the kernel's own value is larger */
    assert_non_null(strstr(log, "Size doesn't match for 'place' in 'twice.ptx', first specified in 'kernel.ptx'"));
    ok(cuLinkDestroy(state));

    state = create_with_log(log, sizeof log);
    ok(add_text(state, function, "a.ptx"));
    gives(CUDA_ERROR_INVALID_SOURCE, add_text(state, function, "b.ptx"));
    assert_non_null(strstr(log, "Multiple definition of 'f' in 'b.ptx', first defined in 'a.ptx'"));
    ok(cuLinkDestroy(state));

    state = create_with_log(log, sizeof log);
    ok(add_text(state, kernel, "kernel.ptx"));
    ok(add_text(state, variable, NULL));
    gives(CUDA_ERROR_INVALID_SOURCE, cuLinkComplete(state, &image, &size));
    assert_ptr_equal(image, &image);
    assert_int_equal(size, 1);
    assert_non_null(strstr(log, "Undefined reference to 'f' in 'kernel.ptx'"));
    ok(cuLinkDestroy(state));

    state = create_with_log(log, sizeof log);
    gives(CUDA_ERROR_INVALID_PTX, add_text(state, wrong, "wrong.ptx"));
    assert_non_null(strstr(log, ", line 4")); /* of "wrong.ptx" here, of "application ptx input" with NVIDIA's driver */
    ok(cuLinkDestroy(state));
}

/* The same for a single text that is loaded. */
static void a_module_must_be_complete(void **unused)
{
    char log[1000] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;

    (void)unused;
    gives(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, kernel, 2, options, values));
    assert_non_null(strstr(log, "Unresolved extern function 'f'"));
}

/* ---- errors ---- */

static void inputs_that_are_none(void **unused)
{
    static const char cut[] = "!<arch>\nmember.o/       0           0     0     644     1000      `\n";
    Elf64_Ehdr cubin = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8}, .e_machine = 190};
    CUlinkState state = create();
    void *image;
    size_t size;

    (void)unused;
    gives(CUDA_ERROR_INVALID_VALUE, add(state, CU_JIT_INPUT_PTX, NULL, 5, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, add(state, CU_JIT_INPUT_PTX, kernel, 0, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, add(state, (CUjitInputType)99, kernel, sizeof kernel, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLinkAddFile(state, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL));
    gives(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nowhere/at all", 0, NULL, NULL));
    gives(CUDA_ERROR_INVALID_IMAGE, add_bytes(state, CU_JIT_INPUT_LIBRARY, make_text("!<arch>"), NULL));
    gives(CUDA_ERROR_INVALID_IMAGE, add_bytes(state, CU_JIT_INPUT_LIBRARY, make_text(cut), NULL));
    gives(CUDA_ERROR_INVALID_IMAGE, add_bytes(state, CU_JIT_INPUT_FATBINARY, make_text("\x50\xed\x55\xba"), NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(state, NULL, &size));
    if (on_cuttle()) { /* the library has no compiler for NVIDIA's machine code or intermediate code */
        gives(CUDA_ERROR_NO_BINARY_FOR_GPU, add(state, CU_JIT_INPUT_CUBIN, &cubin, sizeof cubin, "some.cubin"));
        gives(CUDA_ERROR_NO_BINARY_FOR_GPU, add_bytes(state, CU_JIT_INPUT_FATBINARY, make_fatbin(2, "\177ELF"), NULL));
        gives(CUDA_ERROR_NOT_SUPPORTED, add_bytes(state, CU_JIT_INPUT_NVVM, make_text("BC"), NULL));
    }
    ok(add_text(state, function, NULL)); /* the state is still usable after all these errors */
    ok(cuLinkComplete(state, &image, &size));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, add_text(state, kernel, NULL));
        ok(cuLinkComplete(state, &image, NULL));
    }
    ok(cuLinkDestroy(state));
}

static void options_that_are_none(void **unused)
{
    CUjit_option of_the_whole[] = {CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_TARGET_FROM_CUCONTEXT};
    CUjit_option unknown = (CUjit_option)1000;
    CUlinkState state = create();
    void *value = NULL;

    (void)unused;
    gives(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(0, NULL, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(1, NULL, NULL, &state));
    gives(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(1, &unknown, &value, &state));
    if (on_cuttle())
        for (size_t i = 0; i < sizeof of_the_whole / sizeof *of_the_whole; i++)
            gives(CUDA_ERROR_INVALID_VALUE,
                  cuLinkAddData(state, CU_JIT_INPUT_PTX, function, sizeof function, NULL, 1, &of_the_whole[i], &value));
    ok(cuLinkDestroy(state));
}

static void handles_that_are_no_link_states(void **unused)
{
    CUlinkState states[] = {NULL, MADE_UP(CUlinkState), create()};
    CUcontext context;
    void *image;
    size_t size;

    (void)unused;
    ok(cuLinkDestroy(states[2]));
    if (!on_cuttle())
        return;
    ok(cuCtxGetCurrent(&context));
    for (int i = 0; i < 4; i++) {
        CUlinkState state = i < 3 ? states[i] : (CUlinkState)context;

        gives(CUDA_ERROR_INVALID_HANDLE, add_text(state, function, NULL));
        gives(CUDA_ERROR_INVALID_HANDLE, cuLinkAddFile(state, CU_JIT_INPUT_PTX, "x", 0, NULL, NULL));
        gives(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete(state, &image, &size));
        gives(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(state));
    }
}

static void links_need_a_context(void **unused)
{
    CUcontext context;
    CUlinkState state;

    (void)unused;
    ok(cuCtxPopCurrent(&context));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuLinkCreate(0, NULL, NULL, &state));
    ok(cuCtxPushCurrent(context));
}

/* The child process: loads the file and runs its kernel. */
static void load_file(void **name)
{
    CUmodule module;

    with_context(&(void *){NULL});
    ok(cuModuleLoad(&module, *name));
    expect_applied(module);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_a_file[] = {cmocka_unit_test_prestate(load_file, argv[argc - 1])};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_one_module),
        cmocka_unit_test(the_image_stands_on_its_own),
        cmocka_unit_test(fat_binaries_and_object_files),
        cmocka_unit_test(libraries),
        cmocka_unit_test(images_are_inputs),
        cmocka_unit_test(logs_and_hints),
        cmocka_unit_test(limits_of_registers),
        cmocka_unit_test(link_errors_are_reported),
        cmocka_unit_test(a_module_must_be_complete),
        cmocka_unit_test(inputs_that_are_none),
        cmocka_unit_test(options_that_are_none),
        cmocka_unit_test(handles_that_are_no_link_states),
        cmocka_unit_test(links_need_a_context),
    };

    if (argc > 1)
        return cmocka_run_group_tests(of_a_file, NULL, NULL);
    return cmocka_run_group_tests(tests, with_context, without_context);
}
