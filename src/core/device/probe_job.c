/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and runs the kernel of a probe. */
#include "probe_job.h"

#include "core/base/log.h"

#include <string.h>

#define CT_CHANNEL "probe"
#define TIMEOUT_NS UINT64_C(10000000000)

static bool compile(const struct ptx2spv_target *target, const struct ct_probe_job *job, struct ptx2spv_kernel *out)
{
    const struct ptx2spv_options options = {.probe_matrices = job->probe_matrices};
    struct ptx2spv_target plain = *target;
    struct ptx2spv_module *module = NULL;
    enum ptx2spv_status status;

    plain.pointer_rule = PTX2SPV_POINTER_SAME;
    status = ptx2spv_module_create(job->text, strlen(job->text), &options, &module);
    if (status == PTX2SPV_OK)
        status = ptx2spv_kernel_compile(module, 0, &plain, &options, out);
    ptx2spv_module_destroy(module);
    if (status != PTX2SPV_OK)
        ct_log(CT_LOG_INFO, "the probe does not compile: %s", ptx2spv_status_string(status));
    return status == PTX2SPV_OK;
}

struct run {
    const struct ct_backend *backend;
    struct ct_kernel_image *image;
    struct ct_memory *memory; /* the job's memory, followed by the fault word and the timer's constants */
    size_t fault_offset;
    struct ct_queue *queue;
};

static CUresult prepare(struct run *run, struct ct_backend_device *opened, const struct ptx2spv_kernel *kernel)
{
    const struct ct_memory_request request = {
        .size_bytes = run->fault_offset + PTX2SPV_TIMER_OFFSET + sizeof(struct ptx2spv_timer), .align = 256, .kind = CT_MEMORY_HOST};
    const struct ct_queue_desc desc = {0};
    CUresult r;

    if ((r = run->backend->kernels->create(opened, "probe", kernel, &run->image)) != CUDA_SUCCESS)
        return r;
    if ((r = run->backend->memory->create(opened, &request, &run->memory)) != CUDA_SUCCESS)
        return r;
    return run->backend->queues->create(opened, &desc, &run->queue);
}

static CUresult launch(const struct run *run, const struct ct_probe_job *job)
{
    const uint64_t parameter = run->memory->address.v;
    const struct ct_launch launch = {
        .kernel = run->image,
        .grid = {job->blocks, 1, 1},
        .block = {job->threads, 1, 1},
        .params = &parameter,
        .fault = {run->memory->address.v + run->fault_offset},
    };
    CUresult r = run->backend->queues->launch(run->queue, &launch);

    if (r != CUDA_SUCCESS || (r = run->backend->queues->flush(run->queue)) != CUDA_SUCCESS)
        return r;
    return run->backend->queues->await(run->queue, run->backend->queues->point(run->queue), TIMEOUT_NS, false);
}

/* After a timeout everything is leaked, since the kernel may still write to the memory. */
static void finish(struct run *run, CUresult r)
{
    if (r == CUDA_ERROR_NOT_READY)
        return;
    run->backend->queues->destroy(run->queue);
    run->backend->memory->destroy(run->memory);
    run->backend->kernels->destroy(run->image);
}

static CUresult play(const struct run *run, const struct ct_probe_job *job)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; r == CUDA_SUCCESS && i < (job->rounds ? job->rounds : 1); i++) {
        if (job->before)
            job->before(job->user, i);
        r = launch(run, job);
        if (r == CUDA_SUCCESS && job->after)
            job->after(job->user, i, run->memory->host);
    }
    return r;
}

CUresult ct_probe_execute(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                          const struct ct_probe_job *job)
{
    const struct ptx2spv_timer ticks = {.whole_ns = 1};
    struct run run = {.backend = backend, .fault_offset = (job->size_bytes + 15) / 16 * 16};
    struct ptx2spv_kernel kernel;
    CUresult r;

    if (!compile(target, job, &kernel))
        return CUDA_ERROR_NOT_SUPPORTED;
    r = prepare(&run, opened, &kernel);
    ptx2spv_kernel_finish(&kernel);
    if (r == CUDA_SUCCESS) {
        char *host = run.memory->host;

        memcpy(host, job->input, job->size_bytes);
        memset(host + run.fault_offset, 0, PTX2SPV_TIMER_OFFSET);
        memcpy(host + run.fault_offset + PTX2SPV_TIMER_OFFSET, &ticks, sizeof ticks);
        r = play(&run, job);
    }
    if (r == CUDA_SUCCESS)
        memcpy(job->output, run.memory->host, job->size_bytes);
    finish(&run, r);
    return r;
}
