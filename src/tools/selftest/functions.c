/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: errors of approximate instructions beside those that PTX allows, with the code that programs get: the device's own functions where the
 * library's probe found them precise enough, else the compiler's. */
#include "selftest.h"

#include "core/device/function_samples.h"

#include <math.h>
#include <stdlib.h>

static enum selftest_result compute(struct selftest *test, struct ct_sample *samples)
{
    const size_t size_bytes = CT_SAMPLE_COUNT * sizeof *samples;
    char ptx[CT_SAMPLE_TEXT_BYTES];
    CUdeviceptr memory;
    CUmodule module;
    CUfunction function;
    void *params[] = {&memory};

    ct_samples_write_kernel("check", ptx);
    ct_samples_write_arguments(samples);
    TRY(selftest_load(ptx, &module, &function));
    TRY(cuMemAlloc(&memory, size_bytes));
    TRY(cuMemcpyHtoD(memory, samples, size_bytes));
    TRY(cuLaunchKernel(function, CT_SAMPLE_ROWS * CT_SAMPLE_ROW_BLOCKS, 1, 1, CT_SAMPLE_BLOCK_THREADS, 1, 1, 0, NULL, params, NULL));
    TRY(cuMemcpyDtoH(samples, memory, size_bytes));
    TRY(cuMemFree(memory));
    TRY(cuModuleUnload(module));
    return SELFTEST_PASSED;
}

static enum selftest_result judge(struct selftest *test, const struct ct_sample *samples)
{
    enum selftest_result result = SELFTEST_PASSED;

    selftest_say(test, "errors, as powers of two, and limits:");
    for (unsigned row = 0; row < CT_SAMPLE_ROWS; row++) {
        const struct ct_sample_errors errors = ct_samples_errors(samples, row);

        selftest_say(test, "%s %s %.1f (%.1f)", row ? "," : "", errors.name, log2(errors.error), log2(errors.bound));
        if (errors.error > errors.bound)
            result = SELFTEST_FAILED;
    }
    return result;
}

enum selftest_result selftest_functions(struct selftest *test)
{
    struct ct_sample *samples = malloc(CT_SAMPLE_COUNT * sizeof *samples);
    enum selftest_result result = samples ? compute(test, samples) : SELFTEST_FAILED;

    if (result == SELFTEST_PASSED)
        result = judge(test, samples);
    free(samples);
    return result;
}
