/* SPDX-License-Identifier: Apache-2.0 */
/* A copy runtime that nobody named (backend_vk/copier.c): made in the background once enough was copied, used for memory that is copied
 * often, given up when device memory runs out, and at no moment in the way of a process that ends, forks or starts anew. With
 * CUTTLE_COPY_RUNTIME_MIB=64. On lavapipe the runtime is copy_runtime_stub.c; what is said of any driver also holds for NVIDIA's. */
#include "../api/api_test.h"

#include "copy_runtime_stub.h"

#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BYTES (16 * MIB)
#define ENOUGH 4          /* copies until the runtime is made */
#define HOST_TIMES 32     /* copies until it learns of host memory */
#define REAL_START_MS 700 /* NVIDIA's took 340 to 530 */
#define PATIENCE_S 20
#define FAILED 7 /* what a process ends with in which something was wrong */

extern char **environ;
static struct copy_stub *stub; /* NULL: the runtime is a real one */
static unsigned char *host;
static CUdeviceptr there;
static CUstream stream;

static int make_memory(void)
{
    if (cuMemHostAlloc((void **)&host, 2 * BYTES, 0) || cuMemAlloc(&there, BYTES) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return -1;
    for (size_t i = 0; i < BYTES; i += sizeof i)
        memcpy(host + i, &i, sizeof i);
    return 0;
}

static int make(void **state)
{
    stub = copy_stub_or_null();
    return with_context(state) ? -1 : make_memory();
}

static int finish(void **state)
{
    return cuStreamDestroy(stream) || cuMemFreeHost(host) || cuMemFree(there) || without_context(state);
}

/* ---- copies ---- */

static CUresult up(unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    while (count-- && r == CUDA_SUCCESS)
        r = cuMemcpyHtoDAsync(there, host, BYTES, stream);
    return r == CUDA_SUCCESS ? cuStreamSynchronize(stream) : r;
}

static bool came_back(void)
{
    memset(host + BYTES, 0, BYTES);
    return cuMemcpyDtoHAsync(host + BYTES, there, BYTES, stream) == CUDA_SUCCESS && cuStreamSynchronize(stream) == CUDA_SUCCESS &&
           !memcmp(host, host + BYTES, BYTES);
}

/* Copies until the stub has made one, as it does for memory that is copied so often; a real one by then has. */
static bool becomes_ready(void)
{
    const int before = stub ? stub->uploads : 0;

    if (!stub) {
        const bool fine = up(ENOUGH) == CUDA_SUCCESS;

        usleep(REAL_START_MS * 1000);
        return fine && up(HOST_TIMES) == CUDA_SUCCESS;
    }
    for (int i = 0; stub->uploads == before && i < 1000; i++) {
        if (up(1) != CUDA_SUCCESS)
            return false;
        if (!stub->contexts)
            usleep(10000);
    }
    return stub->uploads > before;
}

/* ---- in this process, one after the other ---- */

static void nobody_waits(void **state)
{
    (void)state;
    if (!stub)
        skip();
    stub->start_ms = 50;
    ok(up(ENOUGH - 1));
    assert_int_equal(stub->starts, 0);
    ok(up(1));
    assert_int_equal(stub->contexts, 0); /* it is on its way */
    assert_true(came_back());
    assert_int_equal(stub->uploads + stub->downloads, 0);
    assert_true(becomes_ready());
    assert_true(came_back());
    assert_int_equal(stub->downloads, 1);
    assert_int_equal(stub->starts, 1);
}

static void what_is_copied_seldom_stays_as_it_is(void **state)
{
    const int pins = stub ? stub->pins : 0, uploads = stub ? stub->uploads : 0;
    unsigned char *fresh;

    (void)state;
    if (!stub)
        skip();
    ok(cuMemHostAlloc((void **)&fresh, BYTES, 0));
    for (int i = 1; i < HOST_TIMES; i++)
        ok(cuMemcpyHtoDAsync(there, fresh, BYTES, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(stub->pins, pins);
    assert_int_equal(stub->uploads, uploads);
    ok(cuMemcpyHtoDAsync(there, fresh, BYTES, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(stub->pins, pins + 1);
    assert_int_equal(stub->uploads, uploads + 1);
    ok(cuMemFreeHost(fresh));
    assert_int_equal(stub->pins, pins);
}

static void CUDA_CB wait_for_flag(void *flag)
{
    while (!atomic_load((atomic_int *)flag))
        usleep(1000);
}

/* All there is, of which a part is taken. */
static CUresult ask_for_too_much(void)
{
    CUdeviceptr pointer;
    size_t free_bytes, total;

    ok(cuMemGetInfo(&free_bytes, &total));
    return cuMemAlloc(&pointer, total);
}

static void not_given_up_while_it_is_in_use(void **state)
{
    const int uploads = stub ? stub->uploads : 0;
    atomic_int flag = 0;
    int contexts;
    CUresult r;

    (void)state;
    if (!stub)
        skip();
    ok(cuLaunchHostFunc(stream, wait_for_flag, &flag));
    ok(cuMemcpyHtoDAsync(there, host, BYTES, stream));
    r = ask_for_too_much();
    contexts = stub->contexts;
    atomic_store(&flag, 1);
    gives(CUDA_ERROR_OUT_OF_MEMORY, r);
    assert_int_equal(contexts, 1);
    ok(cuStreamSynchronize(stream));
    assert_int_equal(stub->uploads, uploads + 1);
}

static void given_up_when_memory_runs_out(void **state)
{
    const int uploads = stub ? stub->uploads : 0;

    (void)state;
    if (!stub)
        skip();
    gives(CUDA_ERROR_OUT_OF_MEMORY, ask_for_too_much());
    assert_int_equal(stub->contexts + stub->pins + stub->imports, 0);
    ok(up(ENOUGH + 1));
    assert_true(came_back());
    assert_int_equal(stub->uploads, uploads);
    assert_int_equal(stub->starts, 1); /* for good */
    assert_int_equal(stub->faults, 0);
}

/* ---- processes of their own ---- */

static bool cross(int start_ms)
{
    if (stub)
        stub->start_ms = start_ms;
    return up(ENOUGH) == CUDA_SUCCESS;
}

static int ends_at_once(const char *word)
{
    (void)word;
    return cross(50) ? 0 : FAILED;
}

/* `word`: after so many milliseconds. */
static int ends_later(const char *word)
{
    const bool fine = cross(0);

    usleep((useconds_t)atoi(word) * 1000);
    return fine && came_back() ? 0 : FAILED;
}

/* A handler that stood before the runtime was made runs when that is gone: copies that were under way have been made, new ones are made the
 * ordinary way. */
static void use_late(void)
{
    if (!came_back() || cuMemFreeHost(host) != CUDA_SUCCESS || cuMemFree(there) != CUDA_SUCCESS)
        _exit(FAILED);
}

static int ends_before_copies(const char *word)
{
    bool fine = atexit(use_late) == 0 && becomes_ready();

    (void)word;
    if (stub)
        stub->copy_ms = 50;
    host[5]++; /* other bytes than those that are there */
    for (int i = 0; i < 2; i++)
        fine = fine && cuMemcpyHtoDAsync(there, host, BYTES, stream) == CUDA_SUCCESS;
    return fine ? 0 : FAILED;
}

static int fails_to_start(const char *word)
{
    (void)word;
    if (stub)
        stub->fails_start = 1;
    if (!cross(0))
        return FAILED;
    usleep(50000);
    return up(ENOUGH) == CUDA_SUCCESS && came_back() && (!stub || stub->starts == 1) ? 0 : FAILED;
}

static int has_no_library(const char *word)
{
    (void)word;
    if (!cross(0))
        return FAILED;
    usleep(50000);
    return up(ENOUGH) == CUDA_SUCCESS && came_back() ? 0 : FAILED;
}

static int exit_of(pid_t child)
{
    int status = -1;

    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int exit_of_fork(void)
{
    const pid_t child = fork();

    if (child)
        return exit_of(child);
    alarm(PATIENCE_S);
    exit(0);
}

/* While the runtime is being made, and when it is there. */
static int forks(const char *word)
{
    int status;

    (void)word;
    if (!cross(50))
        return FAILED;
    while (stub && !stub->starts)
        usleep(1000);
    if ((status = exit_of_fork()) != 0)
        return status;
    if (!becomes_ready() || (status = exit_of_fork()) != 0)
        return status ? status : FAILED;
    return came_back() ? 0 : FAILED;
}

static int starts_anew(const char *word)
{
    void *state = NULL;

    (void)word;
    if (!cross(50) || cuDevicePrimaryCtxReset(0) != CUDA_SUCCESS || make(&state) != 0)
        return FAILED;
    return becomes_ready() && came_back() ? 0 : FAILED;
}

/* The context would take more than a small part of what is free: after some seconds of copies it is not there. A GPU's memory only. */
static int has_no_room(const char *word)
{
    size_t before, after, total;
    CUdeviceptr most;

    (void)word;
    if (cuMemGetInfo(&before, &total) != CUDA_SUCCESS || before < 24 * 1024 * MIB ||
        cuMemAlloc(&most, before - 8 * 1024 * MIB) != CUDA_SUCCESS || cuMemGetInfo(&before, &total) != CUDA_SUCCESS || !cross(0))
        return FAILED;
    usleep(1500000);
    return cuMemGetInfo(&after, &total) == CUDA_SUCCESS && after + 64 * MIB > before ? 0 : FAILED;
}

static const struct scenario {
    const char *name;
    int (*run)(const char *word);
} scenarios[] = {
    {"ends_at_once", ends_at_once},     {"ends_later", ends_later},         {"ends_before_copies", ends_before_copies},

    {"fails_to_start", fails_to_start}, {"has_no_library", has_no_library}, {"forks", forks},
    {"starts_anew", starts_anew},       {"has_no_room", has_no_room},
};

static int run_scenario(const char *name, const char *word)
{
    void *state = NULL;

    alarm(PATIENCE_S);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (!strcmp(scenarios[i].name, name))
            return make(&state) ? FAILED : scenarios[i].run(word);
    return FAILED;
}

static int exit_of_scenario(const char *name, const char *word)
{
    char *arguments[] = {"/proc/self/exe", (char *)(uintptr_t)name, (char *)(uintptr_t)word, NULL};
    pid_t child;

    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    return exit_of(child);
}

#define IN_A_PROCESS(name)                                                                                                                 \
    static void process_##name(void **state)                                                                                               \
    {                                                                                                                                      \
        (void)state;                                                                                                                       \
        assert_int_equal(exit_of_scenario(#name, "0"), 0);                                                                                 \
    }
IN_A_PROCESS(ends_at_once)
IN_A_PROCESS(ends_before_copies)
IN_A_PROCESS(fails_to_start)
IN_A_PROCESS(forks)
IN_A_PROCESS(starts_anew)

static void process_has_no_room(void **state)
{
    (void)state;
    if (stub)
        skip();
    assert_int_equal(exit_of_scenario("has_no_room", "0"), 0);
}

static size_t read_log(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(out, 1, room - 1, file) : 0;

    out[bytes] = 0;
    if (file)
        fclose(file);
    return bytes;
}

/* Where the library is not there, one line says so to those who ask, and none to others. */
static void a_process_without_the_library(void **state)
{
    char path[] = "/tmp/copier_test_XXXXXX", text[1000], *named = getenv("CUTTLE_COPY_RUNTIME"), *kept = named ? strdup(named) : NULL;
    const int fd = mkstemp(path);

    (void)state;
    if (!stub)
        skip();
    assert_true(fd >= 0);
    assert_int_equal(setenv("CUTTLE_COPY_RUNTIME", "/nowhere/libcopies.so", 1), 0);
    assert_int_equal(setenv("CUTTLE_LOG_FILE", path, 1), 0);
    assert_int_equal(setenv("CUTTLE_LOG", "info:copy", 1), 0);
    assert_int_equal(exit_of_scenario("has_no_library", "0"), 0);
    assert_true(read_log(path, text, sizeof text) > 0);
    assert_non_null(strstr(text, "/nowhere/libcopies.so"));
    assert_int_equal(strncmp(text, "cuttle info", strlen("cuttle info")), 0);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_int_equal(setenv("CUTTLE_COPY_RUNTIME", kept, 1), 0);
    unsetenv("CUTTLE_LOG_FILE");
    unsetenv("CUTTLE_LOG");
    unlink(path);
    free(kept);
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits),
        cmocka_unit_test(what_is_copied_seldom_stays_as_it_is),
        cmocka_unit_test(not_given_up_while_it_is_in_use),
        cmocka_unit_test(given_up_when_memory_runs_out),
        cmocka_unit_test(process_ends_at_once),
        cmocka_unit_test(process_ends_before_copies),
        cmocka_unit_test(process_fails_to_start),
        cmocka_unit_test(process_forks),
        cmocka_unit_test(process_starts_anew),
        cmocka_unit_test(process_has_no_room),
        cmocka_unit_test(a_process_without_the_library),
    };

    if (argc > 2)
        return run_scenario(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, make, finish);
}
