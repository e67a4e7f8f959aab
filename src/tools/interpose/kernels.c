/* SPDX-License-Identifier: Apache-2.0 */
/* Programs may launch a CUkernel like a CUfunction, but other functions do not take one for the other. So all CUkernels are noted when a program gets them. */
#include "kernels.h"

#include "arguments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PARAM_BYTES_MAX 16u /* of a parameter that are recorded */
#define BUCKETS 256u

static struct {
    pthread_mutex_t lock; /* a leaf: the driver is asked without it */
    struct kernel *buckets[BUCKETS];
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The entry of a handle, which is made if there is none. NULL: no memory. */
static struct kernel *entry_locked(CUfunction function)
{
    struct kernel **bucket = &kernels.buckets[((uintptr_t)function * 0x9E3779B97F4A7C15ull) >> 56], *kernel;

    for (kernel = *bucket; kernel; kernel = kernel->next)
        if (kernel->function == function)
            return kernel;
    kernel = calloc(1, sizeof *kernel);
    if (kernel) {
        kernel->function = function;
        kernel->next = *bucket;
        *bucket = kernel;
    }
    return kernel;
}

static void ask_driver(struct kernel *kernel)
{
    const CUkernel library_kernel = (CUkernel)kernel->function;
    const char *name = NULL;
    size_t offset;
    CUresult result =
        kernel->is_library_kernel ? DRIVER(cuKernelGetName)(&name, library_kernel) : DRIVER(cuFuncGetName)(&name, kernel->function);

    strncpy(kernel->name, result == CUDA_SUCCESS && name ? name : "", sizeof kernel->name - 1);
    for (kernel->n_params = 0; kernel->n_params < KERNEL_PARAMS_MAX; kernel->n_params++) {
        size_t *size = &kernel->param_bytes[kernel->n_params];

        result = kernel->is_library_kernel ? DRIVER(cuKernelGetParamInfo)(library_kernel, kernel->n_params, &offset, size)
                                           : DRIVER(cuFuncGetParamInfo)(kernel->function, kernel->n_params, &offset, size);
        if (result != CUDA_SUCCESS)
            break;
    }
    kernel->is_asked = true;
}

static bool look_up(CUfunction function, struct kernel *out)
{
    struct kernel *entry;

    pthread_mutex_lock(&kernels.lock);
    entry = entry_locked(function);
    if (entry)
        *out = *entry;
    pthread_mutex_unlock(&kernels.lock);
    if (!entry || out->is_asked)
        return entry;
    ask_driver(out);
    pthread_mutex_lock(&kernels.lock);
    entry = entry_locked(function); /* it may be a new one */
    if (entry) {
        out->next = entry->next;
        *entry = *out;
    }
    pthread_mutex_unlock(&kernels.lock);
    return true;
}

static void forget_all(void)
{
    pthread_mutex_lock(&kernels.lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        while (kernels.buckets[i]) {
            struct kernel *kernel = kernels.buckets[i];

            kernels.buckets[i] = kernel->next;
            free(kernel);
        }
    pthread_mutex_unlock(&kernels.lock);
}

void kernels_before(const struct forward_call *call)
{
    if (call->plan->ends_kernels)
        forget_all();
}

static void note_library_kernel(CUkernel kernel)
{
    struct kernel *entry;

    pthread_mutex_lock(&kernels.lock);
    if ((entry = entry_locked((CUfunction)kernel)))
        entry->is_library_kernel = true;
    pthread_mutex_unlock(&kernels.lock);
}

void kernels_after(const struct forward_call *call)
{
    if (call->symbol == FORWARD_cuLibraryGetKernel) {
        note_library_kernel(*(CUkernel *)forward_argument(call, "pKernel"));
    } else if (call->symbol == FORWARD_cuLibraryEnumerateKernels) {
        const CUkernel *list = (const CUkernel *)forward_argument(call, "kernels");
        const uint64_t count = forward_argument(call, "numKernels");

        for (uint64_t i = 0; i < count; i++)
            if (list[i])
                note_library_kernel(list[i]);
    }
}

bool kernels_find(const struct forward_call *call, struct kernel *out)
{
    return call->plan->kernel_parameter >= 0 && look_up(*(CUfunction *)call->values[call->plan->kernel_parameter].address, out);
}

void kernels_record(struct trace_record *record, const struct forward_call *call, const struct kernel *kernel)
{
    const int params = signature_find(&call->plan->signature, "kernelParams");
    void *const *addresses = params < 0 ? NULL : *(void *const *const *)call->values[params].address;

    recorder_field(record, TRACE_NAME, (unsigned)call->plan->kernel_parameter, kernel->name, strlen(kernel->name));
    for (unsigned i = 0; addresses && i < kernel->n_params; i++) /* the driver is going to read them, too */
        recorder_field(record, TRACE_PARAM, i, addresses[i],
                       kernel->param_bytes[i] < PARAM_BYTES_MAX ? kernel->param_bytes[i] : PARAM_BYTES_MAX);
}

/* ---- facts ---- */

static struct kernel_shape shape_of(const struct forward_call *call)
{
    uint64_t x = 0, y = 0, z = 0, shared = 0;

    if (!forward_number(call, "blockDimX", &x) || !forward_number(call, "blockDimY", &y) || !forward_number(call, "blockDimZ", &z))
        return (struct kernel_shape){0}; /* cuLaunch: set by a call before */
    forward_number(call, "sharedMemBytes", &shared);
    return (struct kernel_shape){(uint32_t)(x * y * z), (uint32_t)shared};
}

/* Whether the shape is new; it is noted. *out_is_library_kernel is set in any case. */
static bool note_shape(CUfunction function, const struct kernel_shape *shape, bool *out_is_library_kernel)
{
    struct kernel *entry;
    unsigned i = 0;

    pthread_mutex_lock(&kernels.lock);
    entry = entry_locked(function);
    *out_is_library_kernel = entry && entry->is_library_kernel;
    while (entry && i < entry->n_shapes && memcmp(&entry->shapes[i], shape, sizeof *shape) != 0)
        i++;
    if (!entry || i < entry->n_shapes || i == KERNEL_SHAPES_MAX)
        i = KERNEL_SHAPES_MAX;
    else
        entry->shapes[entry->n_shapes++] = *shape;
    pthread_mutex_unlock(&kernels.lock);
    return i < KERNEL_SHAPES_MAX;
}

static int32_t function_attribute(CUfunction function, CUfunction_attribute attribute)
{
    int value;

    return DRIVER(cuFuncGetAttribute)(&value, attribute, function) == CUDA_SUCCESS ? value : -1;
}

void kernels_record_facts(const struct forward_call *call)
{
    const CUfunction handle = *(CUfunction *)call->values[call->plan->kernel_parameter].address;
    const struct kernel_shape shape = shape_of(call);
    struct trace_kernel_facts facts = {
        .function = (uint64_t)(uintptr_t)handle, .block_threads = shape.block_threads, .dynamic_shared_bytes = shape.dynamic_shared_bytes};
    CUfunction function = handle;
    struct trace_record *record;
    bool is_library_kernel;
    int blocks;

    if (!shape.block_threads || !note_shape(handle, &shape, &is_library_kernel) ||
        (is_library_kernel && DRIVER(cuKernelGetFunction)(&function, (CUkernel)handle) != CUDA_SUCCESS))
        return;
    facts.registers = function_attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    facts.static_shared_bytes = function_attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    facts.local_bytes = function_attribute(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    facts.blocks_per_multiprocessor = DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, (int)shape.block_threads,
                                                                                          shape.dynamic_shared_bytes) == CUDA_SUCCESS
                                          ? blocks
                                          : -1;
    record = recorder_open(TRACE_KERNEL, 0);
    if (!record)
        return;
    record->correlation = call->correlation;
    record->begin_ns = call->begin_ns;
    recorder_field(record, TRACE_FACTS, 0, &facts, sizeof facts);
    recorder_close(record);
}

void kernels_after_fork(void)
{
    pthread_mutex_init(&kernels.lock, NULL); /* another thread may have had it, but left the table as it was or complete */
}
