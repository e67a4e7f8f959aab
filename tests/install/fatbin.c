/* SPDX-License-Identifier: Apache-2.0 */
/* fatbin OUTPUT (ptx | cubin) FILE: a fat binary with one entry (docs/interoperability.md describes the layout). */
#include "fatbin_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char payload[1 << 20];

int main(int argc, char **argv)
{
    struct fatbin_head head;
    FILE *in = argc == 4 ? fopen(argv[3], "rb") : NULL, *out = argc == 4 ? fopen(argv[1], "wb") : NULL;
    size_t size;

    if (!in || !out)
        return EXIT_FAILURE;
    size = (fread(payload, 1, sizeof payload - 8, in) + 8) / 8 * 8;
    head = fatbin_head(strcmp(argv[2], "ptx") == 0 ? FATBIN_PTX : FATBIN_CUBIN, size);
    return fwrite(&head, sizeof head, 1, out) == 1 && fwrite(payload, 1, size, out) == size && fclose(out) == 0 ? EXIT_SUCCESS
                                                                                                                : EXIT_FAILURE;
}
