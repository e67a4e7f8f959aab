/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenCL backend when the runtime fails: each call that a function makes fails once; the function returns CUDA's code for the failure,
 * nothing leaks (address sanitizer), and the next attempt succeeds. The device gets a table of functions in which one call fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend_cl/cl.h"
#include "backend_cl_kernels.h"
#include "core/device/backend.h"

#include <spirv-tools/libspirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ENOUGH UINT64_C(60000000000)
#define BYTES 4096

static const struct ct_backend *const cl = &ct_backend_cl;

/* Functions that fail, by the way in which they return their result; the caller's other arguments are ignored. */
static cl_int fail_memory(void)
{
    return CL_OUT_OF_HOST_MEMORY;
}

static cl_int fail_build(void)
{
    return CL_BUILD_PROGRAM_FAILURE;
}

static cl_int fail_resources(void)
{
    return CL_OUT_OF_RESOURCES;
}

static void *fail_second(void *a, cl_int *result)
{
    (void)a;
    *result = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static void *fail_third(void *a, void *b, cl_int *result)
{
    (void)a, (void)b;
    *result = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static void *fail_fourth(void *a, void *b, void *c, cl_int *result)
{
    (void)a, (void)b, (void)c;
    *result = CL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static void *fail_null(void)
{
    return NULL;
}

struct fixture {
    struct ct_backend_device *device;
    const struct ct_cl_api *good;
    struct ct_cl_api broken;
    struct ct_queue *queue;
    struct ct_memory *memory;
    struct ct_kernel_image *kernel;
};

/* ---- the operations that fail: each releases all it has made ---- */

static struct ct_kernel_image *kernel_or_null(struct ct_backend_device *device, CUresult *out)
{
    spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_2);
    struct ct_kernel_image *image = NULL;
    spv_binary binary = NULL;

    assert_int_equal(spvTextToBinary(context, cl_kernel_step, strlen(cl_kernel_step), &binary, NULL), SPV_SUCCESS);
    *out = cl->kernels->create(device, "step",
                               &(struct ptx2spv_kernel){binary->code, binary->wordCount, {.param_bytes = 16, .linear_block = 1}}, &image);
    spvBinaryDestroy(binary);
    spvContextDestroy(context);
    return image;
}

static CUresult make_kernel(struct fixture *f)
{
    CUresult r;

    cl->kernels->destroy(kernel_or_null(f->device, &r));
    return r;
}

static CUresult make_memory(struct fixture *f)
{
    const struct ct_memory_request request = {.size_bytes = BYTES, .align = 256, .kind = CT_MEMORY_DEVICE};
    struct ct_memory *memory;
    CUresult r = cl->memory->create(f->device, &request, &memory);

    if (r == CUDA_SUCCESS)
        cl->memory->destroy(memory);
    return r;
}

static CUresult make_queue(struct fixture *f)
{
    struct ct_queue *queue;
    CUresult r = cl->queues->create(f->device, &(struct ct_queue_desc){0}, &queue);

    if (r == CUDA_SUCCESS)
        cl->queues->destroy(queue);
    return r;
}

static CUresult launch(struct fixture *f)
{
    const unsigned char params[16] = {0}; /* no thread is inside */
    const struct ct_launch launch = {.kernel = f->kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params};

    return cl->queues->launch(f->queue, &launch);
}

static CUresult copy_run(struct fixture *f)
{
    const struct ct_copy_region region = {.dst_offset = 1024, .row_bytes = 64, .rows = 1, .slices = 1};

    return cl->queues->copy(f->queue, f->memory, f->memory, &region, 1);
}

static CUresult copy_rows(struct fixture *f)
{
    const struct ct_copy_region region = {.dst_offset = 1024, .row_bytes = 8, .rows = 2, .dst_pitch = 16, .src_pitch = 32, .slices = 1};

    return cl->queues->copy(f->queue, f->memory, f->memory, &region, 1);
}

static CUresult fill(struct fixture *f)
{
    return cl->queues->fill(f->queue, f->memory, 0, 64, 7);
}

static CUresult take_time(struct fixture *f)
{
    struct ct_timestamp *timestamp;
    CUresult r;

    assert_int_equal(cl->timestamps->create(f->device, &timestamp), CUDA_SUCCESS);
    r = cl->queues->timestamp(f->queue, timestamp);
    cl->timestamps->destroy(timestamp);
    return r;
}

static CUresult signal_timeline(struct fixture *f)
{
    struct ct_timeline *timeline;
    CUresult r;

    assert_int_equal(cl->timelines->create(f->device, &timeline), CUDA_SUCCESS);
    if ((r = cl->queues->signal(f->queue, timeline, 1)) == CUDA_SUCCESS)
        r = cl->timelines->await(timeline, 1, LONG_ENOUGH);
    cl->timelines->destroy(timeline);
    return r;
}

static CUresult wait_for_timeline(struct fixture *f)
{
    struct ct_timeline *timeline;
    CUresult r;

    assert_int_equal(cl->timelines->create(f->device, &timeline), CUDA_SUCCESS);
    if ((r = cl->queues->wait(f->queue, timeline, 1)) == CUDA_SUCCESS && (r = cl->timelines->signal(timeline, 1)) == CUDA_SUCCESS)
        r = cl->queues->await(f->queue, cl->queues->point(f->queue), LONG_ENOUGH, false);
    cl->timelines->destroy(timeline);
    return r;
}

/* ---- fixture ---- */

static int setup(void **state)
{
    const struct ct_memory_request request = {.size_bytes = BYTES, .align = 256, .kind = CT_MEMORY_DEVICE};
    struct fixture *f = calloc(1, sizeof *f);
    CUresult r;

    assert_non_null(f);
    assert_int_equal(cl->device_open(0, &f->device), CUDA_SUCCESS);
    f->good = f->device->api;
    assert_int_equal(cl->queues->create(f->device, &(struct ct_queue_desc){0}, &f->queue), CUDA_SUCCESS);
    assert_int_equal(cl->memory->create(f->device, &request, &f->memory), CUDA_SUCCESS);
    f->kernel = kernel_or_null(f->device, &r);
    assert_int_equal(r, CUDA_SUCCESS);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->device->api = f->good;
    cl->queues->destroy(f->queue);
    cl->kernels->destroy(f->kernel);
    cl->memory->destroy(f->memory);
    cl->device_close(f->device);
    free(f);
    return 0;
}

/* ---- tests ---- */

struct failure {
    const char *call;
    size_t offset;
    void (*with)(void);
};

#define FAILS(call, with) {#call, offsetof(struct ct_cl_api, call), (void (*)(void))(with)}

static void inject(struct fixture *f, const struct failure *failure)
{
    f->broken = *f->good;
    memcpy((char *)&f->broken + failure->offset, &failure->with, sizeof failure->with);
    f->device->api = &f->broken;
}

enum where { EVERYWHERE, SYSTEM_ONLY, BUFFER_ONLY };

static void test_calls_that_fail(void **state)
{
    struct fixture *f = *state;
    static const struct {
        CUresult (*attempt)(struct fixture *f);
        struct failure failure;
        CUresult want;
        enum where where; /* the calls happen */
    } rows[] = {
        {make_memory, FAILS(clSVMAlloc, fail_null), CUDA_ERROR_OUT_OF_MEMORY, BUFFER_ONLY},
        {make_kernel, FAILS(clCreateProgramWithIL, fail_fourth), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {make_kernel, FAILS(clBuildProgram, fail_build), CUDA_ERROR_INVALID_IMAGE, EVERYWHERE},
        {make_kernel, FAILS(clCreateKernel, fail_third), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {make_kernel, FAILS(clSetKernelExecInfo, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, SYSTEM_ONLY},
        {make_queue, FAILS(clCreateCommandQueueWithProperties, fail_fourth), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {launch, FAILS(clSetKernelExecInfo, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, BUFFER_ONLY},
        {launch, FAILS(clSetKernelArgSVMPointer, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {launch, FAILS(clEnqueueNDRangeKernel, fail_resources), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, EVERYWHERE},
        {copy_run, FAILS(clEnqueueSVMMemcpy, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {copy_rows, FAILS(clEnqueueNativeKernel, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {fill, FAILS(clEnqueueNativeKernel, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {take_time, FAILS(clEnqueueMarkerWithWaitList, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {signal_timeline, FAILS(clEnqueueMarkerWithWaitList, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {signal_timeline, FAILS(clSetEventCallback, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {wait_for_timeline, FAILS(clCreateUserEvent, fail_second), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
        {wait_for_timeline, FAILS(clEnqueueBarrierWithWaitList, fail_memory), CUDA_ERROR_OUT_OF_MEMORY, EVERYWHERE},
    };
    const enum where other = f->device->physical->memory_form == CT_CL_SYSTEM ? BUFFER_ONLY : SYSTEM_ONLY;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t point = cl->queues->point(f->queue);
        CUresult got;

        if (rows[i].where == other)
            continue;
        inject(f, &rows[i].failure);
        got = rows[i].attempt(f);
        f->device->api = f->good;
        if (got != rows[i].want)
            fail_msg("%s: %d", rows[i].failure.call, (int)got);
        assert_int_equal(cl->queues->point(f->queue), point); /* nothing was recorded */
        assert_int_equal(rows[i].attempt(f), CUDA_SUCCESS);
        assert_int_equal(cl->queues->await(f->queue, cl->queues->point(f->queue), LONG_ENOUGH, false), CUDA_SUCCESS);
    }
}

/* A lost device: the call that detects it and every later one return the error, waits return, all objects can be destroyed. */
static void lose_device(struct fixture *f, const struct failure *failure, uint64_t timeout_ns)
{
    struct ct_queue *held;
    struct ct_timeline *timeline;
    uint64_t done;

    assert_int_equal(cl->timelines->create(f->device, &timeline), CUDA_SUCCESS);
    assert_int_equal(cl->queues->create(f->device, &(struct ct_queue_desc){0}, &held), CUDA_SUCCESS);
    assert_int_equal(cl->queues->wait(held, timeline, 1), CUDA_SUCCESS); /* will never complete */
    assert_int_equal(cl->queues->wait_queue(f->queue, held, cl->queues->point(held)), CUDA_SUCCESS);
    inject(f, failure);
    assert_int_not_equal(cl->queues->await(f->queue, cl->queues->point(f->queue), timeout_ns, false), CUDA_SUCCESS);
    f->device->api = f->good;
    assert_int_equal(launch(f), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cl->queues->completed(f->queue, &done), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cl->queues->await(held, 1, LONG_ENOUGH, false), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cl->queues->flush(held), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cl->timelines->await(timeline, 1, LONG_ENOUGH), CUDA_ERROR_LAUNCH_FAILED);
    cl->queues->destroy(held);
    cl->timelines->destroy(timeline);
}

static cl_int fail_event(void)
{
    return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

static void test_lost_at_wait(void **state)
{
    lose_device(*state, &(struct failure)FAILS(clWaitForEvents, fail_event), UINT64_MAX);
}

static void test_lost_at_query(void **state)
{
    lose_device(*state, &(struct failure)FAILS(clGetEventInfo, fail_event), LONG_ENOUGH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls_that_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_at_query, setup, teardown),
    };
    const struct ct_device_info *infos;
    unsigned count;

    if (cl->enumerate(&infos, &count) != CUDA_SUCCESS || !count) {
        printf("no OpenCL device\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
