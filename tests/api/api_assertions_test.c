/* SPDX-License-Identifier: Apache-2.0 */
/* assert in kernels (CUDA C++ Programming Guide, "Assertion"): the messages on the standard error, and the error code. The context is
 * unusable afterwards, so each case runs in a process of its own. */
#include "api_kernels.h"
#include "api_test.h"

#include <sys/wait.h>
#include <unistd.h>

/* Threads whose number is a multiple of `every` fail unless `every` is 0; the others continue. out[0] is written after an assertion, out[1]
 * at the end. As a CUDA C++ compiler emits it: the texts are variables, and their addresses are generic. */
#define PTX_ASSERTS                                                                                                                        \
    ".extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 bytes);\n"      \
    ".global .align 1 .b8 message[13] = {120, 32, 37, 100, 32, 60, 32, 37, 115, 32, 34, 34, 0};\n"                  /* x %d < %s "" */     \
    ".global .align 1 .b8 file[9] = {100, 105, 114, 47, 97, 46, 99, 117, 0};\n"                                     /* dir/a.cu */         \
    ".global .align 1 .b8 function[16] = {118, 111, 105, 100, 32, 107, 40, 105, 110, 116, 44, 32, 42, 41, 0, 0};\n" /* void k(int, *) */   \
    ".visible .entry asserts(.param .u64 out, .param .u32 every)\n"                                                                        \
    "{\n"                                                                                                                                  \
    "    .reg .pred %p;\n"                                                                                                                 \
    "    .reg .b32 %r<6>;\n"                                                                                                               \
    "    .reg .b64 %d<6>;\n"                                                                                                               \
    "    ld.param.u64 %d1, [out];\n"                                                                                                       \
    "    ld.param.u32 %r1, [every];\n"                                                                                                     \
    "    setp.eq.u32 %p, %r1, 0;\n"                                                                                                        \
    "    @%p bra fine;\n"                                                                                                                  \
    "    mov.u32 %r2, %tid.x;\n"                                                                                                           \
    "    rem.u32 %r3, %r2, %r1;\n"                                                                                                         \
    "    setp.ne.u32 %p, %r3, 0;\n"                                                                                                        \
    "    @%p bra fine;\n"                                                                                                                  \
    "    mov.u64 %d2, message;\n"                                                                                                          \
    "    cvta.global.u64 %d2, %d2;\n"                                                                                                      \
    "    mov.u64 %d3, file;\n"                                                                                                             \
    "    cvta.global.u64 %d3, %d3;\n"                                                                                                      \
    "    mov.u64 %d4, function;\n"                                                                                                         \
    "    cvta.global.u64 %d4, %d4;\n"                                                                                                      \
    "    {\n"                                                                                                                              \
    "        .param .b64 a;\n"                                                                                                             \
    "        .param .b64 b;\n"                                                                                                             \
    "        .param .b32 c;\n"                                                                                                             \
    "        .param .b64 d;\n"                                                                                                             \
    "        .param .b64 e;\n"                                                                                                             \
    "        st.param.b64 [a], %d2;\n"                                                                                                     \
    "        st.param.b64 [b], %d3;\n"                                                                                                     \
    "        st.param.b32 [c], 123456;\n"                                                                                                  \
    "        st.param.b64 [d], %d4;\n"                                                                                                     \
    "        st.param.b64 [e], 1;\n"                                                                                                       \
    "        call.uni __assertfail, (a, b, c, d, e);\n"                                                                                    \
    "    }\n"                                                                                                                              \
    "    mov.u32 %r4, 77;\n"                                                                                                               \
    "    st.volatile.global.u32 [%d1], %r4;\n"                                                                                             \
    "fine:\n"                                                                                                                              \
    "    mov.u32 %r5, 99;\n"                                                                                                               \
    "    st.volatile.global.u32 [%d1+4], %r5;\n"                                                                                           \
    "    ret;\n"                                                                                                                           \
    "}\n"

struct launch {
    unsigned grid[3], block[3], every;
};

struct result {
    CUresult first, second; /* results of two calls that wait */
    unsigned after, others; /* written by the kernel */
};

/* The outcome of a process, and its output on standard error. */
struct report {
    struct result result;
    char text[1 << 19];
};

/* Standard error is redirected when the runtime has started: without /sys, Intel's prints a line of its own. */
static void launch_and_wait(const struct launch *launch, int errors, struct result *out)
{
    unsigned every = launch->every, *words;
    CUdeviceptr address;
    void *params[] = {&address, &every}, *host;
    CUfunction function;
    CUmodule module;

    if (with_context((void *[]){NULL}) != 0 || cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS ||
        cuMemHostGetDevicePointer(&address, host, 0) != CUDA_SUCCESS || cuModuleLoadData(&module, PTX_HEADER PTX_ASSERTS) != CUDA_SUCCESS ||
        cuModuleGetFunction(&function, module, "asserts") != CUDA_SUCCESS)
        _exit(EXIT_FAILURE);
    dup2(errors, STDERR_FILENO);
    words = host;
    words[0] = words[1] = 0;
    if (cuLaunchKernel(function, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2], 0,
                       NULL, params, NULL) != CUDA_SUCCESS)
        _exit(EXIT_FAILURE);
    out->first = cuCtxSynchronize();
    out->second = cuCtxSynchronize();
    out->after = words[0];
    out->others = words[1];
}

static void run(const struct launch *launch, struct report *out)
{
    int errors[2], results[2], status;
    size_t n = 0;
    ssize_t got;
    pid_t child;

    assert_true(pipe(errors) == 0 && pipe(results) == 0);
    fflush(stdout);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CUTTLE_LOG", "off", 1);
        close(errors[0]);
        launch_and_wait(launch, errors[1], &out->result);
        _exit(write(results[1], &out->result, sizeof out->result) != sizeof out->result);
    }
    close(errors[1]);
    close(results[1]);
    while (n < sizeof out->text - 1 && (got = read(errors[0], out->text + n, sizeof out->text - 1 - n)) > 0)
        n += (size_t)got;
    out->text[n] = 0;
    assert_int_equal(read(results[0], &out->result, sizeof out->result), sizeof out->result);
    close(errors[0]);
    close(results[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static unsigned count_lines(const char *text)
{
    unsigned lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Each thread that fails prints one line, in any order. */
static void tells_all(const struct launch *l)
{
    static struct report report;
    unsigned failing = 0;
    char line[256];

    run(l, &report);
    assert_int_equal(report.result.first, CUDA_ERROR_ASSERT);
    assert_int_equal(report.result.second, CUDA_ERROR_ASSERT);
    assert_int_equal(report.result.after, 0);
    for (unsigned b = 0; b < l->grid[0] * l->grid[1] * l->grid[2]; b++) {
        for (unsigned t = 0; t < l->block[0] * l->block[1] * l->block[2]; t++) {
            unsigned x = t % l->block[0];

            if (x % l->every)
                continue;
            snprintf(line, sizeof line,
                     "dir/a.cu:123456: void k(int, *): block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `x %%d < %%s \"\"` failed.\n",
                     b % l->grid[0], b / l->grid[0] % l->grid[1], b / l->grid[0] / l->grid[1], x, t / l->block[0] % l->block[1],
                     t / l->block[0] / l->block[1]);
            if (!strstr(report.text, line)) {
                print_error("not there: %s in: %s", line, report.text);
                fail();
            }
            failing++;
        }
    }
    assert_int_equal(count_lines(report.text), failing);
}

static void one_thread(void **state)
{
    (void)state;
    tells_all(&(struct launch){{1, 1, 1}, {1, 1, 1}, 1});
}

static void several_threads_of_several_blocks(void **state)
{
    (void)state;
    tells_all(&(struct launch){{2, 1, 1}, {96, 1, 1}, 16});
}

static void all_dimensions(void **state)
{
    (void)state;
    tells_all(&(struct launch){{2, 3, 2}, {2, 2, 3}, 1});
}

static void an_assertion_that_holds_is_silent(void **state)
{
    static struct report report;

    (void)state;
    run(&(struct launch){{2, 1, 1}, {64, 1, 1}, 0}, &report);
    assert_int_equal(report.result.first, CUDA_SUCCESS);
    assert_int_equal(report.result.others, 99);
    assert_string_equal(report.text, "");
}

/* More than NVIDIA's driver prints; our ring buffer is large enough. */
static void thousands_of_threads(void **state)
{
    (void)state;
    if (!on_cuttle())
        skip();
    tells_all(&(struct launch){{16, 1, 1}, {128, 1, 1}, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),           cmocka_unit_test(several_threads_of_several_blocks),
        cmocka_unit_test(all_dimensions),       cmocka_unit_test(an_assertion_that_holds_is_silent),
        cmocka_unit_test(thousands_of_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
