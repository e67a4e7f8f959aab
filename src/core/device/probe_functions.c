/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how precise the device's own functions of f32 are. Vulkan and OpenCL allow greater errors than PTX, and no driver says which it has. Functions
 * that are as precise as PTX's are used; the compiler's own take the place of others (ptx2spv/exact/elementary.c). */
#include "probe.h"

#include "function_samples.h"
#include "probe_job.h"
#include "core/base/log.h"

#include <math.h>
#include <stdlib.h>

#define CT_CHANNEL "probe"

static uint32_t functions_within_bounds(const struct ct_sample *samples)
{
    uint32_t within = PTX2SPV_NEAR_ALL;

    for (unsigned row = 0; row < CT_SAMPLE_ROWS; row++) {
        const struct ct_sample_errors errors = ct_samples_errors(samples, row);

        ct_log(CT_LOG_INFO, "the driver's %s from %g to %g has a%s error of 2^%.1f; PTX allows 2^%.1f", errors.name, (double)errors.least,
               (double)errors.greatest, errors.relative ? " relative" : "n absolute", log2(errors.error), log2(errors.bound));
        if (errors.error > errors.bound)
            within &= ~(uint32_t)errors.function;
    }
    return within;
}

CUresult ct_probe_functions(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                            uint32_t *out_near)
{
    const size_t size_bytes = CT_SAMPLE_COUNT * sizeof(struct ct_sample);
    struct ct_sample *samples = malloc(size_bytes);
    struct ptx2spv_target own = *target;
    char text[CT_SAMPLE_TEXT_BYTES];
    const struct ct_probe_job job = {.text = text,
                                     .blocks = CT_SAMPLE_ROWS * CT_SAMPLE_ROW_BLOCKS,
                                     .threads = CT_SAMPLE_BLOCK_THREADS,
                                     .input = samples,
                                     .output = samples,
                                     .size_bytes = size_bytes};
    CUresult r;

    if (!samples)
        return CUDA_ERROR_OUT_OF_MEMORY;
    own.near_functions = PTX2SPV_NEAR_ALL;
    ct_samples_write_kernel("probe", text);
    ct_samples_write_arguments(samples);
    r = ct_probe_execute(backend, opened, &own, &job);
    if (r == CUDA_SUCCESS)
        *out_near = functions_within_bounds(samples);
    free(samples);
    return r;
}
