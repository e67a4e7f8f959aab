/* SPDX-License-Identifier: Apache-2.0 */
/* Error Log Management, as cuda.h documents it. The failures are calls of cuGetErrorName with a code that does not exist, whose number
 * then stands in the log. No device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_BYTES 25600 /* what the manual says the log can hold */

static void fail_with(int code)
{
    const char *name;

    assert_int_equal(cuGetErrorName((CUresult)code, &name), CUDA_ERROR_INVALID_VALUE);
}

/* How many lines of the text hold the words. */
static int lines_with(const char *text, const char *words)
{
    int n = 0;

    for (; (text = strstr(text, words)); text += strlen(words))
        n++;
    return n;
}

static void dump_gives_what_failed_since(void **state)
{
    char text[4096];
    size_t size = sizeof text;
    CUlogIterator iterator;

    (void)state;
    fail_with(1111);
    assert_int_equal(cuLogsCurrent(&iterator, 0), CUDA_SUCCESS);
    fail_with(2222);
    fail_with(3333);
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 0), CUDA_SUCCESS);
    assert_int_equal(size, strlen(text));
    assert_int_equal(lines_with(text, "\n"), 2);
    assert_null(strstr(text, "1111"));
    assert_non_null(strstr(text, "2222"));
    assert_true(strstr(text, "3333") > strstr(text, "2222"));

    size = sizeof text; /* the iterator has moved on */
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 0), CUDA_SUCCESS);
    assert_int_equal(size, 0);
    assert_string_equal(text, "");
    size = sizeof text;
    assert_int_equal(cuLogsDumpToMemory(NULL, text, &size, 0), CUDA_SUCCESS);
    assert_non_null(strstr(text, "1111"));
}

static void small_buffer_gets_the_newest(void **state)
{
    char text[4096];
    size_t size = sizeof text, one_line;
    CUlogIterator start, iterator;

    (void)state;
    assert_int_equal(cuLogsCurrent(&start, 0), CUDA_SUCCESS);
    fail_with(4444);
    iterator = start;
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 0), CUDA_SUCCESS);
    one_line = size;
    fail_with(5555);
    fail_with(6666);

    iterator = start; /* room for the note at the head and at most two lines */
    size = 2 * one_line + 1;
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 0), CUDA_SUCCESS);
    assert_in_range(size, 1, 2 * one_line);
    assert_null(strstr(text, "4444"));
    assert_non_null(strstr(text, "6666"));
    assert_int_not_equal(strncmp(text, "error", 5), 0); /* the note */

    iterator = start;
    size = 8;
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(size, 0);
    assert_int_equal(iterator, start);
}

static void memory_is_bounded(void **state)
{
    static char text[2 * LOG_BYTES];
    size_t size = sizeof text;
    CUlogIterator iterator;

    (void)state;
    assert_int_equal(cuLogsCurrent(&iterator, 0), CUDA_SUCCESS);
    for (int i = 0; i < 2000; i++)
        fail_with(700000 + i);
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 0), CUDA_SUCCESS);
    assert_in_range(size, LOG_BYTES / 2, LOG_BYTES + 200);
    assert_null(strstr(text, "700000"));
    assert_non_null(strstr(text, "701999"));
    assert_int_not_equal(strncmp(text, "error", 5), 0); /* says that lines are missing */
}

static void file_gets_the_same(void **state)
{
    char path[] = "/tmp/cuttle-error-log-XXXXXX", text[4096] = "";
    const int fd = mkstemp(path);
    CUlogIterator iterator;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(cuLogsCurrent(&iterator, 0), CUDA_SUCCESS);
    fail_with(8888);
    assert_int_equal(cuLogsDumpToFile(&iterator, path, 0), CUDA_SUCCESS);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "8888"));
    assert_int_equal(lines_with(text, "\n"), 1);
    close(fd);
    unlink(path);
}

static void bad_arguments_are_refused(void **state)
{
    char text[64];
    size_t size = sizeof text;
    CUlogIterator iterator = 0;

    (void)state;
    assert_int_equal(cuLogsCurrent(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsCurrent(&iterator, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsDumpToMemory(&iterator, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsDumpToMemory(&iterator, text, &size, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsDumpToFile(&iterator, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsDumpToFile(&iterator, "/tmp", 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsDumpToFile(&iterator, "/no/such/folder/file", 0), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dump_gives_what_failed_since), cmocka_unit_test(small_buffer_gets_the_newest), cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(file_gets_the_same),           cmocka_unit_test(bad_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
