/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one case in the oracle and on the device. */
#include "differential.h"
#include "oracle.h"

#include <cuda.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_LIMIT 50000000
#define UNTOUCHED 0xcd /* contents of `out` before the kernel */

struct memory {
    uint8_t *out;
    size_t out_bytes;
    uint8_t acc[GENERATOR_ACC_BYTES];
};

const char *differential_verdict_name(enum verdict verdict)
{
    static const char *const names[] = {
        [VERDICT_SAME] = "same",
        [VERDICT_DIFFERENT] = "differs",
        [VERDICT_NOT_COMPILED] = "is not compiled",
        [VERDICT_NOT_RUN] = "does not run",
        [VERDICT_DIES] = "ends or hangs the process",
        [VERDICT_UNDEFINED] = "is undefined by the oracle",
        [VERDICT_NO_DEVICE] = "no device",
    };

    return names[verdict];
}

static bool conclude(struct trial *trial, enum verdict verdict, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool conclude(struct trial *trial, enum verdict verdict, const char *format, ...)
{
    va_list arguments;

    trial->verdict = verdict;
    va_start(arguments, format);
    vsnprintf(trial->message, sizeof trial->message, format, arguments);
    va_end(arguments);
    return false;
}

static void *allocate(size_t n)
{
    void *memory = malloc(n ? n : 1);

    if (!memory)
        exit(1);
    return memory;
}

/* ---- the oracle ---- */

#define IN_ADDRESS UINT64_C(0x10000000)
#define ACC_ADDRESS UINT64_C(0x20000000)
#define OUT_ADDRESS UINT64_C(0x30000000)

static bool run_in_oracle(const struct differential_case *c, uint32_t schedule, struct memory *memory, struct trial *trial)
{
    struct generator_data data = *c->data;
    struct oracle_result result;
    struct oracle_module *module = oracle_module_create(c->text, &result);
    const struct oracle_range ranges[] = {
        {IN_ADDRESS, sizeof data.in, data.in, true},
        {ACC_ADDRESS, sizeof memory->acc, memory->acc, false},
        {OUT_ADDRESS, memory->out_bytes, memory->out, false},
    };
    struct oracle_launch launch = {.kernel = GENERATOR_KERNEL,
                                   .dynamic_shared_bytes = c->launch->dynamic_shared_bytes,
                                   .params = &data.params,
                                   .params_bytes = sizeof data.params,
                                   .ranges = ranges,
                                   .n_ranges = 3,
                                   .find_races = true,
                                   .find_grid_races = true,
                                   .schedule = schedule,
                                   .step_limit = STEP_LIMIT};

    if (!module)
        return conclude(trial, VERDICT_UNDEFINED, "%s", result.message);
    memcpy(launch.grid, c->launch->grid, sizeof launch.grid);
    memcpy(launch.block, c->launch->block, sizeof launch.block);
    data.params.in = IN_ADDRESS + GENERATOR_IN_START;
    data.params.acc = ACC_ADDRESS;
    data.params.out = OUT_ADDRESS;
    oracle_run(module, &launch, &result);
    oracle_module_destroy(module);
    if (result.status != ORACLE_OK)
        return conclude(trial, VERDICT_UNDEFINED, "%s: %s", oracle_status_name(result.status), result.message);
    return true;
}

/* ---- the device ---- */

static bool open_device(struct trial *trial)
{
    static bool is_open;
    CUdevice device;
    CUcontext context;

    if (is_open)
        return true;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return conclude(trial, VERDICT_NO_DEVICE, "no CUDA device");
    return is_open = true;
}

static bool ok(CUresult result, const char *what, struct trial *trial)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS)
        return true;
    cuGetErrorName(result, &name);
    return conclude(trial, result == CUDA_ERROR_NOT_SUPPORTED ? VERDICT_NOT_COMPILED : VERDICT_NOT_RUN, "%s gave %s", what,
                    name ? name : "an unknown error");
}

struct device_memory {
    CUdeviceptr in, acc, out;
};

static bool upload(const struct differential_case *c, const struct memory *memory, struct device_memory *device, struct trial *trial)
{
    return ok(cuMemAlloc(&device->in, sizeof c->data->in), "cuMemAlloc", trial) &&
           ok(cuMemAlloc(&device->acc, sizeof memory->acc), "cuMemAlloc", trial) &&
           ok(cuMemAlloc(&device->out, memory->out_bytes), "cuMemAlloc", trial) &&
           ok(cuMemcpyHtoD(device->in, c->data->in, sizeof c->data->in), "cuMemcpyHtoD", trial) &&
           ok(cuMemcpyHtoD(device->acc, memory->acc, sizeof memory->acc), "cuMemcpyHtoD", trial) &&
           ok(cuMemcpyHtoD(device->out, memory->out, memory->out_bytes), "cuMemcpyHtoD", trial);
}

static bool launch_on(CUfunction function, const struct differential_case *c, const struct device_memory *device, struct trial *trial)
{
    const uint32_t *grid = c->launch->grid, *block = c->launch->block;
    struct generator_params p = c->data->params;
    void *params[] = {&p.in, &p.out, &p.acc, &p.a, &p.b, p.table};

    p.in = device->in + GENERATOR_IN_START;
    p.acc = device->acc;
    p.out = device->out;
    return ok(cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], c->launch->dynamic_shared_bytes, NULL,
                             params, NULL),
              "cuLaunchKernel", trial) &&
           ok(cuCtxSynchronize(), "cuCtxSynchronize", trial);
}

static bool run_module(CUmodule module, const struct differential_case *c, struct memory *memory, struct trial *trial)
{
    struct device_memory device = {0};
    CUfunction function;
    bool done = ok(cuModuleGetFunction(&function, module, GENERATOR_KERNEL), "cuModuleGetFunction", trial) &&
                upload(c, memory, &device, trial) && launch_on(function, c, &device, trial) &&
                ok(cuMemcpyDtoH(memory->out, device.out, memory->out_bytes), "cuMemcpyDtoH", trial) &&
                ok(cuMemcpyDtoH(memory->acc, device.acc, sizeof memory->acc), "cuMemcpyDtoH", trial);

    cuMemFree(device.in);
    cuMemFree(device.acc);
    cuMemFree(device.out);
    return done;
}

static bool run_on_device(const struct differential_case *c, struct memory *memory, struct trial *trial)
{
    char log[400] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUfunction function;
    CUmodule module;
    bool done;

    if (!open_device(trial))
        return false;
    if (cuModuleLoadDataEx(&module, c->text, 2, options, values) != CUDA_SUCCESS)
        return conclude(trial, VERDICT_NOT_COMPILED, "%s", log);
    if (cuModuleGetFunction(&function, module, GENERATOR_KERNEL) != CUDA_SUCCESS) { /* compiled as it is first asked for */
        cuModuleUnload(module);
        return conclude(trial, VERDICT_NOT_COMPILED, "%s", log[0] ? log : "no such kernel");
    }
    done = run_module(module, c, memory, trial);
    cuModuleUnload(module);
    return done;
}

/* ---- comparison ---- */

static void compare(const struct memory *want, const struct memory *got, struct trial *trial)
{
    for (size_t i = 0; i < want->out_bytes; i += 4) {
        if (memcmp(want->out + i, got->out + i, 4) == 0)
            continue;
        conclude(trial, VERDICT_DIFFERENT, "thread %zu, byte %zu of its slot: oracle %02x%02x%02x%02x, device %02x%02x%02x%02x",
                 i / GENERATOR_SLOT_BYTES, i % GENERATOR_SLOT_BYTES, want->out[i + 3], want->out[i + 2], want->out[i + 1], want->out[i],
                 got->out[i + 3], got->out[i + 2], got->out[i + 1], got->out[i]);
        return;
    }
    for (size_t i = 0; i < sizeof want->acc; i++) {
        if (want->acc[i] != got->acc[i]) {
            conclude(trial, VERDICT_DIFFERENT, "byte %zu of the atomics: oracle %02x, device %02x", i, want->acc[i], got->acc[i]);
            return;
        }
    }
    conclude(trial, VERDICT_SAME, "%s", "");
}

static void prepare(const struct differential_case *c, struct memory *memory)
{
    memory->out_bytes = generator_out_bytes(c->launch);
    memory->out = allocate(memory->out_bytes);
    memset(memory->out, UNTOUCHED, memory->out_bytes);
    memcpy(memory->acc, c->data->acc, sizeof memory->acc);
}

void differential_try(const struct differential_case *c, struct trial *out)
{
    struct memory want, got;

    prepare(c, &want);
    prepare(c, &got);
    if (run_in_oracle(c, 0, &want, out) && run_on_device(c, &got, out))
        compare(&want, &got, out);
    free(want.out);
    free(got.out);
}

void differential_try_orders(const struct differential_case *c, struct trial *out)
{
    struct memory want, got;

    prepare(c, &want);
    prepare(c, &got);
    if (run_in_oracle(c, 0, &want, out) && run_in_oracle(c, 12345, &got, out))
        compare(&want, &got, out);
    free(want.out);
    free(got.out);
}

/* ---- in a process of its own ---- */

/* factor between wall-clock and processor time: a thread that waits uses no processor time, one on a busy machine hardly any */
#define ASLEEP 8

static unsigned patience_s = 120;

void differential_set_patience(unsigned seconds)
{
    patience_s = seconds;
}

void differential_start_clock(void)
{
    const struct itimerval processor = {.it_value.tv_sec = patience_s};

    setitimer(ITIMER_PROF, &processor, NULL);
    alarm(patience_s * ASLEEP);
}

void differential_stop_clock(void)
{
    setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
    alarm(0);
}

static void die_with(struct trial *trial, int status)
{
    if (WIFSIGNALED(status))
        conclude(trial, VERDICT_DIES, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        conclude(trial, VERDICT_DIES, "exit status %d", WEXITSTATUS(status));
}

void differential_try_apart(const struct differential_case *c, struct trial *out)
{
    int ends[2], status;
    pid_t child;
    bool told;

    if (pipe(ends) != 0 || (child = fork()) < 0)
        exit(1);
    if (child == 0) {
        differential_start_clock();
        differential_try(c, out);
        _exit(write(ends[1], out, sizeof *out) != (ssize_t)sizeof *out);
    }
    close(ends[1]);
    told = read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || !told)
        die_with(out, status);
}
