/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels.cl on the first OpenCL device, compiled by the runtime. */
#define CL_TARGET_OPENCL_VERSION 120
#include "example.h"
#include "handwritten.h"

#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>

#define MAX_BUFFERS 32

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel kernel;
static cl_mem buffers[MAX_BUFFERS];
static unsigned n_buffers;
static size_t global_size[2], local_size[2];
static unsigned times;

static void must(cl_int status, const char *what)
{
    if (status != CL_SUCCESS)
        hand_fail(what, status);
}

static void show_log(cl_device_id device)
{
    char log[8192] = "";

    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    fprintf(stderr, "%s\n", log);
}

static void open_opencl(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    size_t size;
    char *text = example_read_file(example_beside("handwritten/kernels.cl"), &size);

    must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    must(status, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &status);
    must(status, "clCreateCommandQueue");
    program = clCreateProgramWithSource(context, 1, (const char **)&text, &size, &status);
    must(status, "clCreateProgramWithSource");
    status = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (status != CL_SUCCESS)
        show_log(device);
    must(status, "clBuildProgram");
    free(text);
}

static unsigned make_buffer(const void *data, size_t size_bytes)
{
    const cl_uchar zero = 0;
    cl_int status;

    if (n_buffers == MAX_BUFFERS)
        hand_fail("too many buffers", 0);
    buffers[n_buffers] = clCreateBuffer(context, CL_MEM_READ_WRITE, size_bytes, NULL, &status);
    must(status, "clCreateBuffer");
    if (data)
        must(clEnqueueWriteBuffer(queue, buffers[n_buffers], CL_TRUE, 0, size_bytes, data, 0, NULL, NULL), "clEnqueueWriteBuffer");
    else
        must(clEnqueueFillBuffer(queue, buffers[n_buffers], &zero, 1, 0, size_bytes, 0, NULL, NULL), "clEnqueueFillBuffer");
    must(clFinish(queue), "clFinish");
    return n_buffers++;
}

static void prepare(const struct hand_launch *launch)
{
    cl_int status;

    if (kernel)
        clReleaseKernel(kernel);
    kernel = clCreateKernel(program, launch->kernel, &status);
    must(status, "clCreateKernel");
    for (unsigned i = 0; i < launch->n_buffers; i++)
        must(clSetKernelArg(kernel, i, sizeof(cl_mem), &buffers[launch->buffers[i]]), "clSetKernelArg");
    must(clSetKernelArg(kernel, launch->n_buffers, 4, &launch->scalars.n), "clSetKernelArg");
    must(clSetKernelArg(kernel, launch->n_buffers + 1, 4, &launch->scalars.x), "clSetKernelArg");
    times = launch->times;
    for (int i = 0; i < 2; i++) {
        local_size[i] = launch->local[i];
        global_size[i] = local_size[i] * launch->groups[i];
    }
}

static void run(void)
{
    for (unsigned i = 0; i < times; i++) /* the queue is in order */
        must(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global_size, local_size, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    must(clFinish(queue), "clFinish");
}

static void read_buffer(unsigned buffer, void *data, size_t size_bytes)
{
    must(clEnqueueReadBuffer(queue, buffers[buffer], CL_TRUE, 0, size_bytes, data, 0, NULL, NULL), "clEnqueueReadBuffer");
}

static void close_opencl(void)
{
    for (unsigned i = 0; i < n_buffers; i++)
        clReleaseMemObject(buffers[i]);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
}

const struct hand_api hand_opencl = {"opencl", open_opencl, make_buffer, prepare, run, read_buffer, close_opencl};
