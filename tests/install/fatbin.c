/* SPDX-License-Identifier: Apache-2.0 */
/* fatbin OUTPUT (ptx | cubin) FILE: a fat binary with one entry (docs/interoperability.md describes the layout). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char payload[1 << 20];

int main(int argc, char **argv)
{
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t payload_bytes;
        uint16_t kind, entry_version;
        uint32_t entry_header_bytes;
        uint64_t entry_payload_bytes;
        uint32_t compressed_bytes, options_offset;
        uint16_t minor, major;
        uint32_t sm, name_offset, name_bytes;
        uint64_t flags, reserved, raw_bytes;
    } head = {
        .magic = 0xba55ed50u, .version = 1, .header_bytes = 16, .entry_version = 0x0101, .entry_header_bytes = 64, .sm = 70, .flags = 0x11};
    FILE *in = argc == 4 ? fopen(argv[3], "rb") : NULL, *out = argc == 4 ? fopen(argv[1], "wb") : NULL;
    size_t size;

    if (!in || !out)
        return EXIT_FAILURE;
    size = (fread(payload, 1, sizeof payload - 8, in) + 8) / 8 * 8;
    head.kind = strcmp(argv[2], "ptx") == 0 ? 1 : 2;
    head.entry_payload_bytes = size;
    head.payload_bytes = 64 + size;
    return fwrite(&head, sizeof head, 1, out) == 1 && fwrite(payload, 1, size, out) == size && fclose(out) == 0 ? EXIT_SUCCESS
                                                                                                                : EXIT_FAILURE;
}
