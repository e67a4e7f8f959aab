/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer target: archives of any bytes. Each member lies within them, and has a name that ends. */
#include "core/code/archive.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

CUresult ct_log_failure(CUresult code, const char *channel, const char *file, int line, const char *format, ...)
{
    (void)channel, (void)file, (void)line, (void)format;
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* no byte more: reading beyond the end is seen */
    struct ct_archive archive;
    struct ct_archive_member member;
    bool found = true;
    size_t total = 0;

    if (!copy)
        return 0;
    memcpy(copy, bytes, size);
    if (ct_archive_open(copy, size, &archive) == CUDA_SUCCESS)
        while (ct_archive_next(&archive, &member, &found) == CUDA_SUCCESS && found) {
            const uint8_t *at = (const uint8_t *)member.bytes;

            if (!memchr(member.name, 0, sizeof member.name) || at < copy || (size_t)(at - copy) > size ||
                member.size > size - (size_t)(at - copy))
                abort();
            total += member.size;
        }
    if (total > size)
        abort(); /* members do not overlap */
    free(copy);
    return 0;
}
