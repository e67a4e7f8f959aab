/* SPDX-License-Identifier: Apache-2.0 */
/* Checks native_facts.def against the libcuda that it finds, and prints every row that differs; with -v all rows. Run on NVIDIA's own
 * driver it checks the list, run on ours it checks us. */
#include "api_kernels.h"

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char good_ptx[] = PTX_HEADER ".visible .global .align 4 .u32 seen = 1;\n"
                                          ".global .align 4 .u32 hidden = 2;\n" PTX_NOTHING PTX_RAMP PTX_BOUNDED PTX_REQUIRED PTX_TRAP;

/* What rows refer to. */
static CUdevice device;
static CUcontext context;
static CUmodule module, loaded;
static CUfunction function, nothing, ramp, bounded, required;
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
static size_t exact = 16, large = 32, small = 8;
static void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &exact, CU_LAUNCH_PARAM_END};
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
        cuModuleGetFunction(&required, loaded, "required") != CUDA_SUCCESS || cuMemAlloc(&memory, 4096) != CUDA_SUCCESS)
        return false;
    block.out = memory;
    block.count = 1;
    if (group != GROUP_trap)
        return true;
    return cuModuleGetFunction(&stops, loaded, "stops") == CUDA_SUCCESS && shape(stops, 1, 32, 0, NULL) == CUDA_SUCCESS;
}

/* ---- rows ---- */
struct fact {
    enum group group;
    const char *label;
    CUresult code;
    bool is_number;
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
#include "native_facts.def"

static const struct fact facts[] = {
#define FACT(group, label, code, call) {GROUP_##group, #group ": " label, code, false, 0, NAME(__LINE__)},
#define NUMBER(group, label, value, call, variable) {GROUP_##group, #group ": " label, CUDA_SUCCESS, true, value, NAME(__LINE__)},
#include "native_facts.def"
};

static bool check(const struct fact *fact, bool verbose)
{
    size_t value = 0;
    CUresult code = fact->call(&value);
    bool same = code == fact->code && (!fact->is_number || value == fact->value);

    if (same && !verbose)
        return true;
    printf("%-8s %-60s %s", same ? "same" : "DIFFERS", fact->label, name_of(code));
    if (fact->is_number && code == CUDA_SUCCESS)
        printf(" %zd", (ssize_t)value);
    if (!same && fact->is_number)
        printf(", not %zd", (ssize_t)fact->value);
    else if (!same)
        printf(", not %s", name_of(fact->code));
    printf("\n");
    return same;
}

static int run_group(enum group group, bool verbose)
{
    int differences = 0;

    if (!prepare(group)) {
        printf("group %d: cannot be prepared\n", (int)group);
        return 1;
    }
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].group == group)
            differences += !check(&facts[i], verbose);
    fflush(stdout);
    return differences ? 1 : 0;
}

int main(int count, char **arguments)
{
    bool verbose = count > 1 && !strcmp(arguments[1], "-v");
    int failures = 0;

    for (int group = 0; group < GROUP_COUNT; group++) {
        int status = 0;
        pid_t child = fork(); /* before cuInit */

        if (child < 0)
            return EXIT_FAILURE;
        if (child == 0)
            _exit(run_group((enum group)group, verbose));
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
            printf("group %d: ended by signal %d\n", group, WTERMSIG(status));
            failures++;
        } else {
            failures += WEXITSTATUS(status);
        }
    }
    printf("%zu facts; %s\n", sizeof facts / sizeof *facts, failures ? "some differ" : "all the same");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
