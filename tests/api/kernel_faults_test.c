/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of kernels on CPU devices: a stray pointer gives CUDA_ERROR_ILLEGAL_ADDRESS, and the process goes on, without the device; faults of
 * the application are none of the library's business. Each case is a process of its own: this program with the name of a scenario. */
#include "api_test.h"

#include "api_kernels.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
/* Stores to out, at any address. */
#define PTX_STRAY                                                                         \
    ".visible .entry stray_store(.param .u64 out)\n"                                      \
    "{\n"                                                                                 \
    "    .reg .b64 %d;\n"                                                                 \
    "    ld.param.u64 %d, [out];\n"                                                       \
    "    st.global.u32 [%d], 1;\n"                                                        \
    "    ret;\n"                                                                          \
    "}\n"
/* Prints with the format at an address. */
#define PTX_BAD_PRINT                                                                     \
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"             \
    ".visible .entry bad_print(.param .u64 format)\n"                                     \
    "{\n"                                                                                 \
    "    .reg .b64 %d<3>;\n"                                                              \
    "    ld.param.u64 %d1, [format];\n"                                                   \
    "    mov.u64 %d2, 0;\n"                                                               \
    "    {\n"                                                                             \
    "    .param .b64 p0;\n"                                                               \
    "    .param .b64 p1;\n"                                                               \
    "    .param .b32 r0;\n"                                                               \
    "    st.param.b64 [p0], %d1;\n"                                                       \
    "    st.param.b64 [p1], %d2;\n"                                                       \
    "    call.uni (r0), vprintf, (p0, p1);\n"                                             \
    "    }\n"                                                                             \
    "    ret;\n"                                                                          \
    "}\n"
/* Stores to shared memory of 64 bytes at a byte offset, and copies what it reads back to out. */
#define PTX_WILD_INDEX                                                                    \
    ".visible .entry wild_index(.param .u64 out, .param .u32 offset)\n"                   \
    "{\n"                                                                                 \
    "    .shared .align 4 .b8 room[64];\n"                                                \
    "    .reg .b64 %d;\n"                                                                 \
    "    .reg .b32 %r<4>;\n"                                                              \
    "    ld.param.u64 %d, [out];\n"                                                       \
    "    ld.param.u32 %r1, [offset];\n"                                                   \
    "    mov.u32 %r2, room;\n"                                                            \
    "    add.u32 %r2, %r2, %r1;\n"                                                        \
    "    st.shared.u32 [%r2], %r1;\n"                                                     \
    "    bar.sync 0;\n"                                                                   \
    "    ld.shared.u32 %r3, [%r2];\n"                                                     \
    "    st.global.u32 [%d], %r3;\n"                                                      \
    "    ret;\n"                                                                          \
    "}\n"
/* Stops with an error, in a function that it calls. */
#define PTX_DEEP_TRAP                                                                     \
    ".func deep()\n{\n    trap;\n    ret;\n}\n"                                            \
    ".visible .entry traps_deep()\n{\n    call deep;\n    ret;\n}\n"
/* Runs until the word at flag is not 0. */
#define PTX_ENDLESS                                                                       \
    ".visible .entry endless(.param .u64 flag)\n"                                         \
    "{\n"                                                                                 \
    "    .reg .pred %p;\n"                                                                \
    "    .reg .b32 %r;\n"                                                                 \
    "    .reg .b64 %d;\n"                                                                 \
    "    ld.param.u64 %d, [flag];\n"                                                      \
    "again:\n"                                                                            \
    "    ld.volatile.global.u32 %r, [%d];\n"                                              \
    "    setp.eq.u32 %p, %r, 0;\n"                                                        \
    "    @%p bra again;\n"                                                                \
    "    ret;\n"                                                                          \
    "}\n"
/* clang-format on */

#define ALL_KERNELS PTX_HEADER PTX_NOTHING PTX_STRAY PTX_BAD_PRINT PTX_WILD_INDEX PTX_ENDLESS PTX_DEEP_TRAP

enum {
    BYTES = 4096,
    STRAY = 0x12340, /* an address at which nothing is mapped */
    LIMIT_S = 30,    /* of a scenario; none takes more than a few seconds */
    EXIT_CODE = 42,  /* of a scenario that did what it should */
    OUTPUT_BYTES = 16384,
    SECOND_US = 1000000,
    SHORT_US = 200000,
    RESERVED_BYTES = 64 << 20,
    NO_ACCESS_BYTES = 1 << 30,
};

/* ---- in the child process ---- */

#define REQUIRE(condition)                                                                                                                 \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                                        \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

static CUcontext context;
static CUmodule module;
static CUfunction nothing, stores_astray, prints_badly, indexes_wildly, endless;
static CUdeviceptr memory;
static CUstream other_stream;

static void set_up(void)
{
    CUdevice device;

    REQUIRE(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    REQUIRE(create_context(&context, device) == CUDA_SUCCESS);
    REQUIRE(cuModuleLoadData(&module, ALL_KERNELS) == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&nothing, module, "nothing") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&stores_astray, module, "stray_store") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&prints_badly, module, "bad_print") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&indexes_wildly, module, "wild_index") == CUDA_SUCCESS);
    REQUIRE(cuModuleGetFunction(&endless, module, "endless") == CUDA_SUCCESS);
    REQUIRE(cuMemAlloc(&memory, BYTES) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD32(memory, 0, BYTES / 4) == CUDA_SUCCESS);
    REQUIRE(cuStreamCreate(&other_stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
}

static CUresult launch(CUfunction function, void **params)
{
    return cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

/* The kernel may have failed before the launch returns. */
static void launch_failing(CUfunction function, CUdeviceptr at)
{
    CUresult r = launch(function, (void *[]){&at});

    REQUIRE(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void launch_stray(CUdeviceptr at)
{
    launch_failing(stores_astray, at);
}

static void require_lost(void)
{
    CUdeviceptr more;
    CUcontext another;
    CUdevice device;
    int word;

    REQUIRE(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(launch(nothing, NULL) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(cuStreamSynchronize(other_stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(cuMemAlloc(&more, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(cuMemcpyDtoH(&word, memory, sizeof word) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    REQUIRE(create_context(&another, device) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(cuDevicePrimaryCtxRetain(&another, device) == CUDA_ERROR_ILLEGAL_ADDRESS);
    REQUIRE(cuCtxDestroy(context) == CUDA_SUCCESS); /* waits for nothing */
    REQUIRE(create_context(&another, device) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void stray_store(void)
{
    set_up();
    launch_stray(STRAY);
    require_lost();
}

static void store_in_a_reservation(void)
{
    CUdeviceptr range;

    set_up();
    REQUIRE(cuMemAddressReserve(&range, RESERVED_BYTES, 0, 0, 0) == CUDA_SUCCESS);
    launch_stray(range + 4096);
    require_lost();
}

static void store_beside_allocations(void)
{
    char *pages = mmap(NULL, NO_ACCESS_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    REQUIRE(pages != MAP_FAILED);
    set_up();
    launch_stray((uintptr_t)pages + NO_ACCESS_BYTES / 2);
    require_lost();
}

static void bad_print(void)
{
    set_up();
    launch_failing(prints_badly, STRAY);
    require_lost();
}

/* What is there is not known, so the kernel may run or fail, even before its launch returns; the process goes on. */
static void wild_index(void)
{
    unsigned offset = 0x70000000;
    CUresult r;

    set_up();
    r = launch(indexes_wildly, (void *[]){&memory, &offset});
    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    REQUIRE(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The process ends although threads of the driver do not. */
static void exits_without_waiting(void)
{
    set_up();
    launch_stray(STRAY);
}

static void *wait_in_thread(void *result)
{
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    *(CUresult *)result = cuStreamSynchronize(NULL);
    return NULL;
}

static void threads_that_wait_return(void)
{
    CUresult results[4];
    pthread_t threads[4];

    set_up();
    launch_stray(STRAY);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, wait_in_thread, &results[i]) == 0);
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        REQUIRE(results[i] == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

static void CUDA_CB note_status(CUstream stream, CUresult status, void *user)
{
    (void)stream;
    *(CUresult *)user = status;
}

static void callbacks_are_told(void)
{
    CUresult status = CUDA_SUCCESS;

    set_up();
    launch_stray(STRAY);
    if (cuStreamAddCallback(NULL, note_status, &status, 0) != CUDA_SUCCESS)
        status = CUDA_ERROR_ILLEGAL_ADDRESS; /* the fault was noticed before */
    require_lost();                          /* destroys the context, which waits for callbacks */
    REQUIRE(status == CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void fault_here(void)
{
    *(volatile int *)(uintptr_t)STRAY = 1;
}

/* ends by SIGSEGV */
static void own_fault(void)
{
    set_up();
    fault_here();
}

static void *fault_in_thread(void *unused)
{
    (void)unused;
    fault_here();
    return NULL;
}

static void own_fault_in_a_thread(void)
{
    pthread_t thread;

    set_up();
    REQUIRE(pthread_create(&thread, NULL, fault_in_thread, NULL) == 0);
    pthread_join(thread, NULL);
}

static void own_fault_after_a_kernels(void)
{
    set_up();
    launch_stray(STRAY);
    REQUIRE(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    fault_here();
}

static void sent_signal(void)
{
    set_up();
    kill(getpid(), SIGSEGV);
    pause();
}

static void own_fault_while_ignored(void)
{
    signal(SIGSEGV, SIG_IGN);
    set_up();
    kill(getpid(), SIGSEGV); /* ignored; a fault cannot be */
    fprintf(stderr, "alive\n");
    fault_here();
}

static sigjmp_buf back;
static volatile sig_atomic_t n_handled, masked_well;
static char alternate_stack[1 << 18]; /* PoCL's LLVM replaces one of 64 KiB */

static void handle_own(int signal, siginfo_t *info, void *user)
{
    sigset_t mask;
    char here;

    (void)user;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    masked_well = sigismember(&mask, signal) && sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2) && &here >= alternate_stack &&
                  &here < alternate_stack + sizeof alternate_stack && info->si_addr == (void *)(uintptr_t)STRAY;
    n_handled++;
    siglongjmp(back, 1);
}

static void handle_faults(void)
{
    struct sigaction action = {.sa_sigaction = handle_own, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    REQUIRE(sigaltstack(&(stack_t){.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack}, NULL) == 0);
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
}

static void require_handled(int times)
{
    for (volatile int i = 1; i <= times; i++) {
        masked_well = 0;
        if (!sigsetjmp(back, 1))
            fault_here();
        REQUIRE(n_handled == i && masked_well);
    }
}

static void handler_from_before(void)
{
    handle_faults();
    set_up();
    require_handled(3);
    launch_stray(STRAY);
    require_lost();
    REQUIRE(n_handled == 3);
}

static void handler_for_one_fault(void)
{
    struct sigaction action;

    handle_faults();
    REQUIRE(sigaction(SIGSEGV, NULL, &action) == 0);
    action.sa_flags |= (int)SA_RESETHAND;
    REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
    set_up();
    require_handled(1);
    fault_here();
}

static void handler_from_afterwards(void)
{
    set_up();
    handle_faults();
    require_handled(3);
}

/* A handler that passes on what is not its own, as runtimes of languages do. */
static struct sigaction passed_to;

static void pass(int signal, siginfo_t *info, void *user)
{
    passed_to.sa_sigaction(signal, info, user);
}

static void handler_that_passes_on(void)
{
    struct sigaction action = {.sa_sigaction = pass, .sa_flags = SA_SIGINFO};

    set_up();
    REQUIRE(sigaction(SIGSEGV, &action, &passed_to) == 0 && (passed_to.sa_flags & SA_SIGINFO));
    launch_stray(STRAY);
    require_lost();
}

static void endless_kernel(void)
{
    CUcontext another;

    set_up();
    REQUIRE(launch(endless, (void *[]){&memory}) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(NULL) == CUDA_ERROR_LAUNCH_TIMEOUT);
    REQUIRE(launch(nothing, NULL) == CUDA_ERROR_LAUNCH_TIMEOUT);
    REQUIRE(cuCtxDestroy(context) == CUDA_SUCCESS);
    REQUIRE(create_context(&another, 0) == CUDA_ERROR_LAUNCH_TIMEOUT);
}

static void trap_in_a_function(void)
{
    CUfunction traps;

    set_up();
    REQUIRE(cuModuleGetFunction(&traps, module, "traps_deep") == CUDA_SUCCESS);
    REQUIRE(launch(nothing, NULL) == CUDA_SUCCESS && launch(traps, NULL) == CUDA_SUCCESS);
    (void)launch(nothing, NULL);
    REQUIRE(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
}

/* The process ends, with or without a limit. */
static void exit_behind_an_endless_kernel(void)
{
    set_up();
    REQUIRE(launch(endless, (void *[]){&memory}) == CUDA_SUCCESS);
    usleep(SHORT_US);
}

/* Many kernels that are together longer than the limit; one that waits for the host, which is no reason either. */
static void CUDA_CB sleep_on_host(void *user)
{
    (void)user;
    usleep(3 * SECOND_US / 2);
}

static void *end_kernel(void *unused)
{
    unsigned one = 1;

    (void)unused;
    usleep(SECOND_US / 2);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    REQUIRE(cuMemcpyHtoDAsync(memory, &one, sizeof one, other_stream) == CUDA_SUCCESS);
    return NULL;
}

static void kernels_within_the_limit(void)
{
    pthread_t thread;

    set_up();
    REQUIRE(cuLaunchHostFunc(NULL, sleep_on_host, NULL) == CUDA_SUCCESS);
    REQUIRE(launch(nothing, NULL) == CUDA_SUCCESS);
    REQUIRE(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    for (int i = 0; i < 3; i++) {
        REQUIRE(cuMemsetD32(memory, 0, 1) == CUDA_SUCCESS);
        REQUIRE(pthread_create(&thread, NULL, end_kernel, NULL) == 0);
        REQUIRE(launch(endless, (void *[]){&memory}) == CUDA_SUCCESS);
        REQUIRE(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
#define SCENARIO(name) {#name, name}
    SCENARIO(stray_store),
    SCENARIO(store_in_a_reservation),
    SCENARIO(store_beside_allocations),
    SCENARIO(bad_print),
    SCENARIO(wild_index),
    SCENARIO(exits_without_waiting),
    SCENARIO(threads_that_wait_return),
    SCENARIO(callbacks_are_told),
    SCENARIO(own_fault),
    SCENARIO(own_fault_in_a_thread),
    SCENARIO(own_fault_after_a_kernels),
    SCENARIO(sent_signal),
    SCENARIO(own_fault_while_ignored),
    SCENARIO(handler_from_before),
    SCENARIO(handler_for_one_fault),
    SCENARIO(handler_from_afterwards),
    SCENARIO(handler_that_passes_on),
    SCENARIO(trap_in_a_function),
    SCENARIO(endless_kernel),
    SCENARIO(exit_behind_an_endless_kernel),
    SCENARIO(kernels_within_the_limit),
};

static int play(const char *name)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (!strcmp(scenarios[i].name, name)) {
            alarm(LIMIT_S);
            scenarios[i].run();
            return EXIT_CODE;
        }
    return 1;
}

/* ---- in the test's process ---- */

static char output[OUTPUT_BYTES]; /* standard error of the last scenario */

static int run_scenario(const char *name)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t n;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl("/proc/self/exe", "kernel_faults_test", name, NULL);
        _exit(1);
    }
    close(ends[1]);
    while ((n = read(ends[0], output + used, sizeof output - 1 - used)) > 0 || (n < 0 && errno == EINTR))
        used += n > 0 ? (size_t)n : 0;
    output[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void require_survived(const char *name)
{
    int status = run_scenario(name);

    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_CODE) {
        print_error("%s: status 0x%x\n%s", name, (unsigned)status, output);
        fail();
    }
}

static void require_killed(const char *name, int signal)
{
    int status = run_scenario(name);

    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal) {
        print_error("%s: status 0x%x\n%s", name, (unsigned)status, output);
        fail();
    }
}

static void require_said(const char *text)
{
    if (!strstr(output, text)) {
        print_error("\"%s\" is not in:\n%s", text, output);
        fail();
    }
}

static void test_a_stray_store_gives_an_error(void **state)
{
    (void)state;
    require_survived("stray_store");
    require_said("kernel stray_store accessed the illegal address 0x12340");
}

static void test_the_reservation_is_named(void **state)
{
    (void)state;
    require_survived("store_in_a_reservation");
    require_said("it is byte 4096 of the reservation of 67108864 bytes");
}

/* The allocation's position and its distance from the address fit together. */
static void test_the_nearest_allocation_is_named(void **state)
{
    unsigned long long address, bytes, start, distance;
    const char *said;
    char verb[8];

    (void)state;
    require_survived("store_beside_allocations");
    said = strstr(output, "the illegal address");
    assert_non_null(said);
    assert_int_equal(sscanf(said, "the illegal address 0x%llx: the nearest allocation has %llu bytes at 0x%llx and %7s %llu bytes",
                            &address, &bytes, &start, verb, &distance),
                     5);
    assert_true(distance > NO_ACCESS_BYTES / 2 - 1);
    if (!strcmp(verb, "begins"))
        assert_true(start == address + distance);
    else
        assert_true(start + bytes - 1 + distance == address);
}

static void test_a_bad_format_gives_an_error(void **state)
{
    (void)state;
    require_survived("bad_print");
    require_said("kernel bad_print accessed the illegal address 0x12340");
}

static void test_a_wild_shared_index_does_not_end_the_process(void **state)
{
    (void)state;
    require_survived("wild_index");
}

static void test_exit_does_not_wait_for_a_kernel_that_faulted(void **state)
{
    (void)state;
    require_survived("exits_without_waiting");
}

static void test_all_threads_that_wait_return(void **state)
{
    (void)state;
    require_survived("threads_that_wait_return");
}

static void test_callbacks_are_told_of_a_fault(void **state)
{
    (void)state;
    require_survived("callbacks_are_told");
}

static void test_faults_of_the_application_end_it(void **state)
{
    (void)state;
    require_killed("own_fault", SIGSEGV);
    require_killed("own_fault_in_a_thread", SIGSEGV);
    require_killed("own_fault_after_a_kernels", SIGSEGV);
    require_killed("sent_signal", SIGSEGV);
}

static void test_an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    require_killed("own_fault_while_ignored", SIGSEGV);
    require_said("alive");
}

static void test_the_applications_handler_gets_its_faults(void **state)
{
    (void)state;
    require_survived("handler_from_before");
    require_survived("handler_from_afterwards");
    require_survived("handler_that_passes_on");
    require_killed("handler_for_one_fault", SIGSEGV);
}

static void test_faults_need_not_be_caught(void **state)
{
    (void)state;
    setenv("CUTTLE_CATCH_FAULTS", "0", 1);
    require_killed("stray_store", SIGSEGV);
    unsetenv("CUTTLE_CATCH_FAULTS");
}

static void test_an_endless_kernel_is_given_up(void **state)
{
    (void)state;
    setenv("CUTTLE_KERNEL_TIMEOUT", "1", 1);
    require_survived("endless_kernel");
    require_said("kernel endless has run for more than 1 s");
    require_survived("kernels_within_the_limit");
    unsetenv("CUTTLE_KERNEL_TIMEOUT");
}

static void test_a_kernel_that_runs_for_long_is_mentioned(void **state)
{
    (void)state;
    setenv("CUTTLE_KERNEL_TIMEOUT", "3", 1);
    setenv("CUTTLE_LOG", "info:device", 1);
    require_survived("endless_kernel");
    require_said("kernel endless has run for 2 s on device 0");
    require_said("kernel endless has run for more than 3 s");
    unsetenv("CUTTLE_LOG");
    unsetenv("CUTTLE_KERNEL_TIMEOUT");
}

static void test_exit_does_not_wait_for_an_endless_kernel(void **state)
{
    (void)state;
    require_survived("exit_behind_an_endless_kernel");
}

static void test_a_trap_names_its_kernel(void **state)
{
    (void)state;
    require_survived("trap_in_a_function");
    require_said("kernel traps_deep failed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stray_store_gives_an_error),
        cmocka_unit_test(test_the_reservation_is_named),
        cmocka_unit_test(test_the_nearest_allocation_is_named),
        cmocka_unit_test(test_a_bad_format_gives_an_error),
        cmocka_unit_test(test_a_wild_shared_index_does_not_end_the_process),
        cmocka_unit_test(test_exit_does_not_wait_for_a_kernel_that_faulted),
        cmocka_unit_test(test_all_threads_that_wait_return),
        cmocka_unit_test(test_callbacks_are_told_of_a_fault),
        cmocka_unit_test(test_faults_of_the_application_end_it),
        cmocka_unit_test(test_an_ignored_signal_stays_ignored),
        cmocka_unit_test(test_the_applications_handler_gets_its_faults),
        cmocka_unit_test(test_faults_need_not_be_caught),
        cmocka_unit_test(test_an_endless_kernel_is_given_up),
        cmocka_unit_test(test_a_kernel_that_runs_for_long_is_mentioned),
        cmocka_unit_test(test_exit_does_not_wait_for_an_endless_kernel),
        cmocka_unit_test(test_a_trap_names_its_kernel),
    };

    return argc > 1 ? play(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
