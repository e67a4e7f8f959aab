/* SPDX-License-Identifier: Apache-2.0 */
/* What is before the payload in a fat binary with one entry (docs/interoperability.md describes the layout). */
#ifndef TESTS_INSTALL_FATBIN_HEAD_H
#define TESTS_INSTALL_FATBIN_HEAD_H

#include <stdint.h>

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2, FATBIN_LTOIR = 8 };

struct fatbin_head {
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
};

/* For a payload that is not compressed; its size is a multiple of 8. */
static inline struct fatbin_head fatbin_head(enum fatbin_kind kind, uint64_t payload_bytes)
{
    return (struct fatbin_head){.magic = 0xba55ed50u,
                                .version = 1,
                                .header_bytes = 16,
                                .payload_bytes = 64 + payload_bytes,
                                .kind = (uint16_t)kind,
                                .entry_version = 0x0101,
                                .entry_header_bytes = 64,
                                .entry_payload_bytes = payload_bytes,
                                .sm = 70,
                                .flags = 0x11};
}

#endif
