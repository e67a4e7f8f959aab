/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: images of any bytes, as they come out of a file. Whatever PTX is found lies within them, or was unpacked. */
#include "core/base/config.h"
#include "core/code/image.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

const char *__asan_default_options(void);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A header may claim any size: malloc refuses those that are too large. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

/* In place of core's, which read the environment and write lines. */
const struct ct_config *ct_config(void)
{
    static const struct ct_config config = {.compute_capability = "75"};

    return &config;
}

atomic_int ct_log_threshold;

void ct_log_write(enum ct_log_level level, const char *channel, const char *file, int line, const char *format, ...)
{
    (void)level, (void)channel, (void)file, (void)line, (void)format;
}

CUresult ct_log_failure(CUresult code, const char *channel, const char *file, int line, const char *format, ...)
{
    (void)channel, (void)file, (void)line, (void)format;
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* no byte more: reading beyond the end is seen */
    struct ct_image image;
    volatile size_t zeros = 0;

    if (!copy)
        return 0;
    memcpy(copy, bytes, size);
    if (ct_image_read(copy, size, &image) == CUDA_SUCCESS) {
        if (image.count == 0)
            abort();
        for (unsigned i = 0; i < image.count; i++)
            for (size_t at = 0; at < image.texts[i].length; at++)
                zeros += image.texts[i].text[at] == 0;
        if (zeros)
            abort(); /* the length goes up to the NUL */
        ct_image_finish(&image);
    }
    free(copy);
    return 0;
}
