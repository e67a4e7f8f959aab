/* SPDX-License-Identifier: Apache-2.0 */
/* printf in kernels. A kernel passes format and arguments to vprintf as they are in memory, so that every format can be compared with the
 * host's own printf; other kernels print as compilers emit it. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)
#define MEMORY_BYTES 8192
#define TEXT_AT 4096 /* of the device memory: strings for %s */

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".extern .func (.param .b32 func_retval0) vprintf(.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);\n"
    ".global .align 1 .b8 line[20] = {108, 105, 110, 101, 32, 37, 100, 32, 111, 102, 32, 37, 108, 108, 100, 10, 0};\n" /* line %d of %lld\n */
    /* *result = vprintf(format, arguments) */
    ".visible .entry say(.param .u64 format, .param .u64 arguments, .param .u64 result)\n"
    "{\n"
    "    .reg .b32 %r1;\n"
    "    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [format];\n"
    "    ld.param.u64 %d2, [arguments];\n"
    "    ld.param.u64 %d3, [result];\n"
    "    {\n"
    "        .param .b64 a;\n        .param .b64 b;\n        .param .b32 r;\n"
    "        st.param.b64 [a], %d1;\n"
    "        st.param.b64 [b], %d2;\n"
    "        call.uni (r), vprintf, (a, b);\n"
    "        ld.param.b32 %r1, [r];\n"
    "    }\n"
    "    st.global.u32 [%d3], %r1;\n"
    "    ret;\n"
    "}\n"
    /* Each thread prints its number, `times` times, with its arguments in a local frame. */
    ".visible .entry lines(.param .u32 times)\n"
    "{\n"
    "    .local .align 8 .b8 depot[16];\n"
    "    .reg .b64 %SP, %SPL, %d<4>;\n"
    "    .reg .b32 %r<8>;\n"
    "    .reg .pred %p;\n"
    "    mov.u64 %SPL, depot;\n"
    "    cvta.local.u64 %SP, %SPL;\n"
    "    ld.param.u32 %r7, [times];\n"
    "    mov.u32 %r1, %ctaid.x;\n"
    "    mov.u32 %r2, %ntid.x;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "    mul.lo.u32 %r4, %r4, %r7;\n"
    "    cvt.u64.u32 %d3, %r7;\n"
    "again:\n"
    "    st.local.u32 [%SPL], %r4;\n"
    "    st.local.u64 [%SPL+8], %d3;\n"
    "    mov.u64 %d1, line;\n"
    "    cvta.global.u64 %d2, %d1;\n"
    "    {\n"
    "        .param .b64 a;\n        .param .b64 b;\n        .param .b32 r;\n"
    "        st.param.b64 [a], %d2;\n"
    "        st.param.b64 [b], %SP;\n"
    "        call.uni (r), vprintf, (a, b);\n"
    "        ld.param.b32 %r5, [r];\n"
    "    }\n"
    "    add.u32 %r4, %r4, 1;\n"
    "    sub.u32 %r7, %r7, 1;\n"
    "    setp.ne.u32 %p, %r7, 0;\n"
    "    @%p bra again;\n"
    "    ret;\n"
    "}\n";

struct setting {
    CUcontext context;
    CUmodule module;
    CUfunction say, lines;
    CUdeviceptr memory;
    FILE *file; /* the output while it is captured */
    int standard_output;
};

static struct setting here;

/* ---- the standard output ---- */

static void catch_output(void)
{
    fflush(stdout);
    here.file = tmpfile();
    here.standard_output = dup(1);
    assert_true(here.file && here.standard_output >= 0 && dup2(fileno(here.file), 1) == 1);
}

/* Returns the output since the last call; the caller frees it. */
static char *caught_output(void)
{
    char *text = NULL;
    long size;

    fflush(stdout);
    assert_int_equal(dup2(here.standard_output, 1), 1);
    close(here.standard_output);
    size = lseek(fileno(here.file), 0, SEEK_END);
    text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fileno(here.file), text, (size_t)size, 0), size);
    fclose(here.file);
    return text;
}

static void expect_output(const char *expected)
{
    char *text = caught_output();

    assert_string_equal(text, expected);
    free(text);
}

/* ---- formats ---- */

/* Arguments in the layout of the ABI, and the strings that some point to. */
struct arguments {
    unsigned char bytes[512];
    size_t n_bytes, n_text;
};

static void put(struct arguments *to, const void *value, size_t size)
{
    to->n_bytes = (to->n_bytes + size - 1) / size * size;
    memcpy(to->bytes + to->n_bytes, value, size);
    to->n_bytes += size;
}

static void put_text(struct arguments *to, const char *text)
{
    CUdeviceptr address = 0;

    if (text) {
        address = here.memory + TEXT_AT + to->n_text;
        ok(cuMemcpyHtoD(address, text, strlen(text) + 1));
        to->n_text += strlen(text) + 1;
    }
    put(to, &address, sizeof address);
}

static void lay_out(struct arguments *to, const char *types, va_list values)
{
    *to = (struct arguments){.n_bytes = 0};
    for (; *types; types++) {
        int i;
        long long l;
        double d;

        switch (*types) {
        case 'i':
            i = va_arg(values, int);
            put(to, &i, sizeof i);
            break;
        case 'l':
            l = va_arg(values, long long);
            put(to, &l, sizeof l);
            break;
        case 'd':
            d = va_arg(values, double);
            put(to, &d, sizeof d);
            break;
        case 's':
            put_text(to, va_arg(values, const char *));
            break;
        default:
            fail_msg("type %c", *types);
        }
    }
}

/* Returns vprintf's result for a format and arguments in that layout. */
static int say(const char *format, const struct arguments *arguments)
{
    CUdeviceptr format_at = here.memory + 1024, arguments_at = here.memory + 512, result_at = here.memory;
    void *params[] = {&format_at, &arguments_at, &result_at};
    int result = -100;

    ok(cuMemcpyHtoD(format_at, format, strlen(format) + 1));
    ok(cuMemcpyHtoD(arguments_at, arguments->bytes, sizeof arguments->bytes));
    ok(cuLaunchKernel(here.say, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(&result, result_at, sizeof result));
    return result;
}

/* The device prints the same as the host, and the result is the number of arguments.
 * types: for each argument i (int), l (long long, and pointers), d (double), s (a string). */
static void check(const char *types, const char *format, ...)
{
    struct arguments arguments;
    char expected[1024];
    va_list values, again;
    int result;

    va_start(values, format);
    va_copy(again, values);
    vsnprintf(expected, sizeof expected, format, again);
    va_end(again);
    lay_out(&arguments, types, values);
    va_end(values);
    catch_output();
    result = say(format, &arguments);
    expect_output(expected);
    assert_int_equal(result, strlen(types));
}

static void texts_without_arguments(void **state)
{
    (void)state;
    check("", "hello\n");
    check("", "");
    check("", "1234567");
    check("", "12345678");
    check("", "100%%, 50%% of it\n");
}

static void integers(void **state)
{
    (void)state;
    check("i", "%d", 42);
    check("ii", "%d %i\n", -1, INT32_MIN);
    check("iiii", "%u %o %x %X|", -1, 8, 0xbeef, 0xbeef);
    check("iii", "%5d|%-5d|%05d", 7, 7, 7);
    check("iii", "%+d % d %#x", 3, 3, 255);
    check("ii", "%.3d %8.3d", 5, -5);
    check("il", "%d %lld", 1, 1LL << 40);
    check("lil", "%ld %d %lx", -5LL, 6, 0x123456789abcLL);
    check("ilil", "%d %llu %d %llo", 1, -1LL, 2, 8LL);
    check("ii", "%hd %hhu", 70000, 300);
    check("iii", "%c%c%c", 'a', 'b', 'c');
    check("i", "[%3c]", 'z');
}

static void stars(void **state)
{
    (void)state;
    check("ii", "%*d|", 6, 42);
    check("ii", "%-*d|", 6, 42);
    check("ii", "%*d|", -6, 42);
    check("id", "%.*f|", 2, 3.14159);
    check("iid", "%*.*f|", 9, 3, 2.71828);
    check("id", "%.*f|", -1, 2.5);
    check("iis", "%*.*s|", 8, 3, "abcdef");
}

static void floats(void **state)
{
    (void)state;
    check("d", "%f", 1.5);
    check("dd", "%e %E", 12345.678, -0.00012);
    check("ddd", "%g %G %a", 1e10, 1e-10, 0.1);
    check("idi", "%d %8.3f %d", 1, 2.0, 3);
    check("dd", "%f %F", 1.0 / 0.0, -1.0 / 0.0);
    check("d", "%.0f", 2.5);
}

static void pointers_and_texts(void **state)
{
    (void)state;
    check("l", "%p", 0x1234LL);
    check("s", "%s", "word");
    check("s", "%s", "exactly8");
    check("sis", "<%s> %d <%s>", "", 5, "a longer text of more than one word");
    check("s", "%-10s|", "left");
    check("is", "%d%.3s", 1, "abcdef");
    check("isd", "%d:%s:%f", 9, "mixed", 0.25);
}

/* Formats that the host's printf would interpret differently are not passed to it. */
static void what_is_no_conversion(void **state)
{
    static const char *const formats[] = {"%k %d\n", "end %", "%", "%1$d\n", "%5"};
    static const char *const expected[] = {"%k 7\n", "end %", "%", "%1$d\n", "%5"};
    struct arguments arguments = {.n_bytes = 0};

    (void)state;
    memset(arguments.bytes, 0, sizeof arguments.bytes);
    arguments.bytes[0] = 7;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        catch_output();
        say(formats[i], &arguments);
        expect_output(expected[i]);
    }
}

static void no_format_at_all(void **state)
{
    CUdeviceptr nothing = 0;
    void *params[] = {&nothing, &nothing, &here.memory};
    int result = 0;

    (void)state;
    ok(cuLaunchKernel(here.say, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(&result, here.memory, sizeof result));
    assert_int_equal(result, -1);
}

/* ---- many threads, and the time of output ---- */

static void launch_lines(unsigned blocks, unsigned threads, unsigned times)
{
    void *params[] = {&times};

    ok(cuLaunchKernel(here.lines, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
}

/* A declaration without the result, and with too few parameters: ptxas accepts both, and the format is printed anyway. */
static void other_prototypes(void **state)
{
    static const struct {
        const char *parameters, *call;
    } rows[] = {
        {"(.param .b64 a, .param .b64 b)", "call vprintf, (format, arguments);"},
        {"(.param .b64 a)", "call vprintf, (format);"},
        {"(.param .b64 a, .param .b64 b, .param .b32 c)", "call vprintf, (format, arguments, 7);"},
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUmodule module;
        CUfunction kernel;

        snprintf(text, sizeof text,
                 ".version 6.0\n.target sm_50\n.address_size 64\n.extern .func vprintf%s;\n"
                 ".global .align 1 .b8 word[8] = {119, 111, 114, 100, 10, 0};\n.visible .entry k()\n{\n"
                 ".param .b64 format, arguments; .reg .b64 %%d1; mov.u64 %%d1, word; cvta.global.u64 %%d1, %%d1;\n"
                 "st.param.b64 [format], %%d1; st.param.b64 [arguments], 0;\n%s\nret;\n}\n",
                 rows[i].parameters, rows[i].call);
        ok(cuModuleLoadData(&module, text));
        ok(cuModuleGetFunction(&kernel, module, "k"));
        catch_output();
        ok(cuLaunchKernel(kernel, 1, 1, 1, 2, 1, 1, 0, NULL, NULL, NULL));
        ok(cuCtxSynchronize());
        expect_output("word\nword\n");
        ok(cuModuleUnload(module));
    }
}

/* Each of 4 x 100 threads prints 3 lines: each line is printed once, unbroken, and those of a thread in their order. */
static void many_threads_print(void **state)
{
    enum { THREADS = 400, TIMES = 3 };
    int last[THREADS], seen = 0;
    char *text;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        last[i] = -1;
    catch_output();
    launch_lines(4, 100, TIMES);
    ok(cuCtxSynchronize());
    text = caught_output();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int number, end = 0;

        assert_int_equal(sscanf(line, "line %d of 3%n", &number, &end), 1);
        assert_int_equal(line[end], 0);
        assert_in_range(number, 0, THREADS * TIMES - 1);
        assert_true(number > last[number / TIMES]);
        last[number / TIMES] = number;
        seen++;
    }
    assert_int_equal(seen, THREADS * TIMES);
    free(text);
}

static void CUDA_CB note_position(void *user)
{
    fflush(stdout);
    *(long *)user = lseek(fileno(here.file), 0, SEEK_END);
}

static void output_is_printed_by_every_wait(void **state)
{
    CUstream stream;
    CUevent event;
    unsigned word;
    long position = 0;

    (void)state;
    ok(cuStreamCreate(&stream, 0));
    ok(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    catch_output();
    launch_lines(1, 1, 1);
    ok(cuStreamSynchronize(NULL));
    expect_output("line 0 of 1\n");
    catch_output();
    launch_lines(1, 1, 1);
    ok(cuEventRecord(event, NULL));
    ok(cuEventSynchronize(event));
    expect_output("line 0 of 1\n");
    catch_output();
    launch_lines(1, 1, 1);
    ok(cuMemcpyDtoH(&word, here.memory, 4));
    expect_output("line 0 of 1\n");
    catch_output();
    launch_lines(1, 1, 1);
    while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
        continue;
    expect_output("line 0 of 1\n");
    catch_output();
    launch_lines(1, 1, 2);
    ok(cuLaunchHostFunc(NULL, note_position, &position));
    ok(cuStreamSynchronize(NULL));
    expect_output("line 0 of 2\nline 1 of 2\n");
    assert_true(position > 0); /* it had been printed when the function ran */
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(stream));
}

/* Destroying a context prints the output of its kernels. */
static void output_is_printed_by_context_destruction(void **state)
{
    CUcontext context;
    CUfunction lines;
    CUmodule module;
    unsigned times = 2;
    void *params[] = {&times};

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&lines, module, "lines"));
    catch_output();
    ok(cuLaunchKernel(lines, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuCtxDestroy(context));
    expect_output("line 0 of 2\nline 1 of 2\n");
}

/* New output overwrites the oldest: the last lines are printed, in order. */
static void more_than_the_buffer_holds(void **state)
{
    enum { TIMES = 2000 };
    CUcontext context;
    CUfunction lines;
    CUmodule module;
    unsigned times = TIMES;
    void *params[] = {&times};
    int expected = -1, count = 0;
    size_t size;
    char *text;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&lines, module, "lines"));
    ok(cuCtxGetLimit(&size, CU_LIMIT_PRINTF_FIFO_SIZE));
    assert_int_equal(size, 1 << 20);
    ok(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 5000)); /* also after the module was loaded */
    ok(cuCtxGetLimit(&size, CU_LIMIT_PRINTF_FIFO_SIZE));
    assert_in_range(size, 5000, 10000);
    catch_output();
    ok(cuLaunchKernel(lines, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuCtxSynchronize());
    text = caught_output();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int number;

        assert_int_equal(sscanf(line, "line %d of 2000", &number), 1);
        assert_true(expected < 0 || number == expected);
        expected = number + 1;
        count++;
    }
    assert_int_equal(expected, TIMES);
    assert_in_range(count, 50, TIMES / 2);
    free(text);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE); /* a kernel has been launched */
    ok(cuCtxDestroy(context));
}

/* The ring buffer wraps around: hundreds of kilobytes through 4 KiB, read often enough. */
static void the_buffer_is_used_again(void **state)
{
    CUcontext context;
    CUfunction lines;
    CUmodule module;
    unsigned times = 20;
    void *params[] = {&times};

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096));
    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&lines, module, "lines"));
    for (int round = 0; round < 300; round++) {
        char *text;

        catch_output();
        ok(cuLaunchKernel(lines, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        ok(cuCtxSynchronize());
        text = caught_output();
        assert_int_equal(strncmp(text, "line 0 of 20\nline 1 of 20\n", 26), 0);
        assert_non_null(strstr(text, "line 19 of 20\n"));
        free(text);
    }
    ok(cuCtxDestroy(context));
}

static int begin(void **state)
{
    (void)state;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&here.context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(here.context) != CUDA_SUCCESS || cuModuleLoadData(&here.module, ptx) != CUDA_SUCCESS ||
        cuModuleGetFunction(&here.say, here.module, "say") != CUDA_SUCCESS ||
        cuModuleGetFunction(&here.lines, here.module, "lines") != CUDA_SUCCESS)
        return -1;
    return cuMemAlloc(&here.memory, MEMORY_BYTES) == CUDA_SUCCESS ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    if (cuMemFree(here.memory) != CUDA_SUCCESS || cuModuleUnload(here.module) != CUDA_SUCCESS)
        return -1;
    return cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_without_arguments),
        cmocka_unit_test(integers),
        cmocka_unit_test(stars),
        cmocka_unit_test(floats),
        cmocka_unit_test(pointers_and_texts),
        cmocka_unit_test(what_is_no_conversion),
        cmocka_unit_test(no_format_at_all),
        cmocka_unit_test(other_prototypes),
        cmocka_unit_test(many_threads_print),
        cmocka_unit_test(output_is_printed_by_every_wait),
        cmocka_unit_test(output_is_printed_by_context_destruction),
        cmocka_unit_test(more_than_the_buffer_holds),
        cmocka_unit_test(the_buffer_is_used_again),
    };

    return cmocka_run_group_tests_name("printf", tests, begin, end);
}
