/* SPDX-License-Identifier: Apache-2.0 */
/* Files appear atomically: each is written under a unique name and then renamed. */
#include "ptx_dir.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CT_CHANNEL "module"

/* FNV-1a of 64 bits */
static uint64_t hash(const char *text, size_t length)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        value = (value ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return value;
}

void ct_ptx_dir_keep(const char *text, size_t length)
{
    const char *folder = ct_config()->ptx_dir;
    const char *end = memchr(text, '\0', length); /* PTX ends at a NUL, or at the end of the image */
    size_t n = end ? (size_t)(end - text) : length;
    char path[1024], draft[1100];
    FILE *file;

    if (!*folder)
        return;
    snprintf(path, sizeof path, "%s/%016llx.ptx", folder, (unsigned long long)hash(text, n));
    if (!access(path, F_OK))
        return;
    snprintf(draft, sizeof draft, "%s.%ld.%p", path, (long)getpid(), (void *)&file); /* the address differs between threads */
    file = fopen(draft, "wb");
    if (!file || fwrite(text, 1, n, file) != n || fflush(file) || rename(draft, path))
        ct_log(CT_LOG_WARN, "cannot write %s: %s", path, strerror(errno));
    if (file)
        fclose(file);
}
