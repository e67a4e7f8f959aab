/* SPDX-License-Identifier: Apache-2.0 */
/* Saves the PTX that tests compile without libcuda, for the judges; libcuda saves the rest (src/core/code/ptx_dir.c). */
#include "spirv_machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void keep_ptx(const char *text)
{
    static unsigned n;
    const char *folder = getenv("CUTTLE_PTX_DIR");
    char path[1024];
    FILE *file;

    if (!folder || !*folder)
        return;
    snprintf(path, sizeof path, "%s/%s.%u.ptx", folder, program_invocation_short_name, n++);
    if ((file = fopen(path, "w"))) {
        fputs(text, file);
        fclose(file);
    }
}
