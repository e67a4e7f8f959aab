/* SPDX-License-Identifier: Apache-2.0 */
/* Error Log Management, as cuda.h documents it. The failures are calls of cuGetErrorName with a nonexistent code, whose number is then in
 * the log. No device is needed. */
#include "api_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define LOG_BYTES 25600 /* the capacity of the log according to the manual */

static void fail_with(int code)
{
    const char *name;

    assert_int_equal(cuGetErrorName((CUresult)code, &name), CUDA_ERROR_INVALID_VALUE);
}

/* Returns the number of lines that contain the words. */
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

    size = sizeof text; /* the iterator has advanced */
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

    iterator = start; /* room for the note at the beginning and at most two lines */
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
    assert_int_not_equal(strncmp(text, "error", 5), 0); /* mentions that lines are missing */
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

/* The arguments of a callback. */
struct told {
    int calls, level;
    char text[256];
    CUlogsCallbackHandle remove_itself; /* NULL: it calls none */
    bool fails_itself;
};

static void hear(void *data, CUlogLevel level, char *message, size_t length)
{
    struct told *told = data;

    told->calls++;
    told->level = (int)level;
    assert_int_equal(length, strlen(message));
    snprintf(told->text, sizeof told->text, "%s", message);
    if (told->remove_itself)
        assert_int_equal(cuLogsUnregisterCallback(told->remove_itself), CUDA_SUCCESS);
    if (told->fails_itself)
        fail_with(5555);
}

static void callbacks_are_called_at_once(void **state)
{
    struct told first = {.fails_itself = true}, second = {0};
    CUlogsCallbackHandle handle, other;
    const char *name;

    (void)state;
    assert_int_equal(cuLogsRegisterCallback(hear, &first, &handle), CUDA_SUCCESS);
    assert_int_equal(cuLogsRegisterCallback(hear, &second, &other), CUDA_SUCCESS);
    assert_int_equal(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &name), CUDA_SUCCESS); /* nothing to report */
    assert_int_equal(first.calls, 0);
    fail_with(6666);
    assert_int_equal(first.calls, 1); /* not for its own failure */
    assert_int_equal(first.level, CU_LOG_LEVEL_ERROR);
    assert_non_null(strstr(first.text, "6666"));
    assert_string_equal(second.text, first.text);
    assert_int_equal(cuLogsUnregisterCallback(handle), CUDA_SUCCESS);
    fail_with(7777);
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 2);
    second.remove_itself = other;
    fail_with(8888);
    fail_with(9999);
    assert_int_equal(second.calls, 3);
    assert_non_null(strstr(second.text, "8888"));
    assert_int_equal(cuLogsUnregisterCallback(other), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsUnregisterCallback(NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLogsRegisterCallback(NULL, NULL, &handle), CUDA_ERROR_INVALID_VALUE);
}

/* Many threads fail while the callback is registered and unregistered: it is never called when it is not registered. */
static atomic_bool registered, stop;
static atomic_int heard;

static void hear_counted(void *data, CUlogLevel level, char *message, size_t length)
{
    (void)level, (void)message, (void)length;
    assert_true(atomic_load((atomic_bool *)data));
    atomic_fetch_add(&heard, 1);
}

static void *fail_all_the_time(void *user)
{
    while (!atomic_load(&stop))
        cuGetErrorName((CUresult)4444, &(const char *){NULL});
    return user;
}

static void callbacks_come_and_go_while_threads_fail(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_all_the_time, NULL), 0);
    for (int i = 0; i < 100; i++) {
        CUlogsCallbackHandle handle;

        atomic_store(&registered, true);
        assert_int_equal(cuLogsRegisterCallback(hear_counted, &registered, &handle), CUDA_SUCCESS);
        for (int n = atomic_load(&heard); atomic_load(&heard) < n + 3;)
            sched_yield();
        assert_int_equal(cuLogsUnregisterCallback(handle), CUDA_SUCCESS);
        atomic_store(&registered, false);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callbacks_are_called_at_once),
        cmocka_unit_test(callbacks_come_and_go_while_threads_fail),
        cmocka_unit_test(dump_gives_what_failed_since),
        cmocka_unit_test(small_buffer_gets_the_newest),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(file_gets_the_same),
        cmocka_unit_test(bad_arguments_are_refused),
    };

    if (!on_cuttle())
        return 77; /* the texts are ours */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
