/* SPDX-License-Identifier: Apache-2.0 */
/* Checks native_facts.def against the libcuda that it finds, and prints every row that differs; with -v all rows. Run on NVIDIA's own
 * driver it checks the list, run on ours it checks us.
 *
 * A call that crashes takes the process of its group along. The group then runs again without that row, in silence up to where it was:
 * later rows may need what earlier ones did. Crashes of NVIDIA's driver are told and no difference; ours has to answer. */
#include "api_kernels.h"
#include "which_driver.h"

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char good_ptx[] =
    PTX_HEADER ".visible .global .align 4 .u32 seen = 1;\n"
               ".global .align 4 .u32 hidden = 2;\n" PTX_NOTHING PTX_RAMP PTX_BOUNDED PTX_REQUIRED PTX_COUNTED PTX_TRAP;

/* What rows refer to. */
static CUdevice device;
static CUcontext context;
static CUmodule module, loaded;
static CUfunction function, nothing, ramp, bounded, required, counted;
static CUdeviceptr address, memory;
static char text[256];
static int number;
static unsigned word;
static size_t size;
static unsigned long long id;
static CUjit_option bad_option = (CUjit_option)1000;
static void *values[1];
static uint32_t one = 1;
static void *params[3] = {&memory, &one, &one};
static struct {
    CUdeviceptr out;
    uint32_t a, count;
    char more[16];
} block;
static size_t exact = 16, one_more = 17, large = 32, small = 8;
static void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &exact, CU_LAUNCH_PARAM_END};
static void *extra_one_more[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &one_more, CU_LAUNCH_PARAM_END};
static void *extra_large[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &large, CU_LAUNCH_PARAM_END};
static void *extra_small[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &small, CU_LAUNCH_PARAM_END};
static void *extra_sizeless[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_END};
static void *extra_unknown[] = {(void *)17, NULL, CU_LAUNCH_PARAM_END};

static CUresult shape(CUfunction f, unsigned grid, unsigned threads, unsigned shared, CUstream stream)
{
    return cuLaunchKernel(f, grid, 1, 1, threads, 1, 1, shared, stream, NULL, NULL);
}

static CUresult with_attribute(int which, int value)
{
    CUlaunchAttribute attribute;
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .attrs = &attribute, .numAttrs = 1};

    memset(&attribute, 0, sizeof attribute);
    attribute.id = (CUlaunchAttributeID)which;
    memcpy(&attribute.value, &value, sizeof value);
    return cuLaunchKernelEx(&config, nothing, NULL, NULL);
}

static CUresult in_another_context(CUfunction f)
{
    CUcontext other;
    CUresult r = cuCtxCreate(&other, NULL, 0, device);

    if (r != CUDA_SUCCESS)
        return r;
    r = shape(f, 1, 1, 0, NULL);
    cuCtxDestroy(other);
    return r;
}

/* A context that is destroyed while the calling thread has it twice: it stays current. */
static CUresult device_of_destroyed(void)
{
    CUresult r;

    if ((r = cuCtxCreate(&context, NULL, 0, device)) != CUDA_SUCCESS || (r = cuCtxPushCurrent(context)) != CUDA_SUCCESS ||
        (r = cuCtxDestroy(context)) != CUDA_SUCCESS)
        return r;
    r = cuCtxGetDevice(&number);
    cuCtxPopCurrent(NULL);
    return r;
}

static CUresult unload_after_context(void)
{
    CUcontext other;
    CUresult r;

    if ((r = cuCtxCreate(&other, NULL, 0, device)) != CUDA_SUCCESS || (r = cuModuleLoadData(&module, good_ptx)) != CUDA_SUCCESS ||
        (r = cuCtxDestroy(other)) != CUDA_SUCCESS)
        return r;
    return cuModuleUnload(module);
}

/* Into `word`. */
static CUresult count_threads(void)
{
    CUresult r;

    if ((r = cuMemsetD32(memory, 0, 1)) != CUDA_SUCCESS ||
        (r = cuLaunchKernel(counted, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)) != CUDA_SUCCESS)
        return r;
    return cuMemcpyDtoH(&word, memory, sizeof word);
}

static CUresult largest_block_is_64(CUfunction f)
{
    CUresult r = cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);

    return r == CUDA_SUCCESS && number != 64 ? CUDA_ERROR_UNKNOWN : r;
}

/* ---- fixtures ---- */
enum group { GROUP_device, GROUP_primary, GROUP_context, GROUP_module, GROUP_launch, GROUP_trap, GROUP_COUNT };

static bool prepare(enum group group)
{
    CUfunction stops;

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS)
        return false;
    if (group < GROUP_module)
        return true;
    if (cuCtxCreate(&context, NULL, 0, device) != CUDA_SUCCESS)
        return false;
    if (group == GROUP_module)
        return true;
    if (cuModuleLoadData(&loaded, good_ptx) != CUDA_SUCCESS || cuModuleGetFunction(&nothing, loaded, "nothing") != CUDA_SUCCESS ||
        cuModuleGetFunction(&ramp, loaded, "ramp") != CUDA_SUCCESS || cuModuleGetFunction(&bounded, loaded, "bounded") != CUDA_SUCCESS ||
        cuModuleGetFunction(&required, loaded, "required") != CUDA_SUCCESS ||
        cuModuleGetFunction(&counted, loaded, "counted") != CUDA_SUCCESS || cuMemAlloc(&memory, 4096) != CUDA_SUCCESS)
        return false;
    block.out = memory;
    block.count = 1;
    if (group != GROUP_trap)
        return true;
    return cuModuleGetFunction(&stops, loaded, "stops") == CUDA_SUCCESS && shape(stops, 1, 32, 0, NULL) == CUDA_SUCCESS;
}

/* ---- rows ---- */
enum row_kind { ROW_FACT, ROW_NUMBER, ROW_OURS };

struct fact {
    enum group group;
    const char *label;
    enum row_kind kind;
    CUresult code;
    size_t value;
    CUresult (*call)(size_t *out);
};

static const char *name_of(CUresult code)
{
    const char *name = NULL;

    return cuGetErrorName(code, &name) == CUDA_SUCCESS && name ? name : "(no error code)";
}

#define JOIN(a, b) a##b
#define NAME(line) JOIN(call_, line)
#define FACT(group, label, code, call)                                                                                                     \
    static CUresult NAME(__LINE__)(size_t * out)                                                                                           \
    {                                                                                                                                      \
        (void)out;                                                                                                                         \
        return call;                                                                                                                       \
    }
#define NUMBER(group, label, value, call, variable)                                                                                        \
    static CUresult NAME(__LINE__)(size_t * out)                                                                                           \
    {                                                                                                                                      \
        CUresult r = call;                                                                                                                 \
        *out = (size_t)variable;                                                                                                           \
        return r;                                                                                                                          \
    }
#define OURS FACT
#include "native_facts.def"

static const struct fact facts[] = {
#define FACT(group, label, code, call) {GROUP_##group, #group ": " label, ROW_FACT, code, 0, NAME(__LINE__)},
#define NUMBER(group, label, value, call, variable) {GROUP_##group, #group ": " label, ROW_NUMBER, CUDA_SUCCESS, value, NAME(__LINE__)},
#define OURS(group, label, code, call) {GROUP_##group, #group ": " label, ROW_OURS, code, 0, NAME(__LINE__)},
#include "native_facts.def"
};
#define FACTS (sizeof facts / sizeof *facts)

/* Between the process of a group and the first one, which never calls CUDA. */
struct progress {
    size_t row;  /* about to be called; FACTS: none yet */
    size_t told; /* rows before are told already */
    int differences;
    bool crashes[FACTS]; /* on this driver */
};

/* The call, and what it gave. */
static void check(const struct fact *fact, struct progress *progress, bool verbose)
{
    size_t value = 0;
    CUresult code = fact->call(&value);
    bool same = code == fact->code && (fact->kind != ROW_NUMBER || value == fact->value);
    bool deliberate = !same && fact->kind == ROW_OURS && !on_cuttle();

    if (progress->row < progress->told)
        return;
    progress->told = progress->row + 1;
    progress->differences += !same && !deliberate;
    if (same && !verbose)
        return;
    printf("%-8s %-60s %s", same ? "same" : deliberate ? "ours" : "DIFFERS", fact->label, name_of(code));
    if (fact->kind == ROW_NUMBER && code == CUDA_SUCCESS)
        printf(" %zd", (ssize_t)value);
    if (!same && fact->kind == ROW_NUMBER)
        printf(", not %zd", (ssize_t)fact->value);
    else if (!same)
        printf(", not %s", name_of(fact->code));
    printf("\n");
    fflush(stdout);
}

static int run_group(enum group group, struct progress *progress, bool verbose)
{
    if (!prepare(group)) {
        printf("group %d: cannot be prepared\n", (int)group);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < FACTS; i++) {
        if (facts[i].group != group || progress->crashes[i])
            continue;
        progress->row = i;
        check(&facts[i], progress, verbose);
    }
    return EXIT_SUCCESS;
}

/* In processes of its own, until one comes to the end. False: not even the fixture works. */
static bool run_in_child(enum group group, struct progress *progress, bool verbose)
{
    for (;;) {
        int status = 0;
        pid_t child;

        progress->row = FACTS;
        fflush(stdout); /* what is in the buffer would be printed twice */
        child = fork(); /* before cuInit */
        if (child < 0)
            return false;
        if (child == 0) {
            status = run_group(group, progress, verbose);
            fflush(stdout);
            _exit(status);
        }
        if (waitpid(child, &status, 0) != child)
            return false;
        if (WIFEXITED(status))
            return WEXITSTATUS(status) == EXIT_SUCCESS;
        if (progress->row >= FACTS || progress->crashes[progress->row])
            return false;
        progress->crashes[progress->row] = true;
        progress->told = progress->row + 1;
        progress->differences += on_cuttle();
        printf("CRASHES  %-60s signal %d\n", facts[progress->row].label, WTERMSIG(status));
    }
}

int main(int count, char **arguments)
{
    bool verbose = count > 1 && !strcmp(arguments[1], "-v");
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0;

    if (progress == MAP_FAILED)
        return EXIT_FAILURE;
    for (int group = 0; group < GROUP_COUNT; group++)
        failures += !run_in_child((enum group)group, progress, verbose);
    failures += progress->differences;
    printf("%zu facts; %s\n", FACTS, failures ? "some differ" : "all the same");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
