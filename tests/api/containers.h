/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of PTX and machine code, built by hand, byte for byte as nvcc and the host's assembler write them. */
#ifndef CUTTLE_TESTS_CONTAINERS_H
#define CUTTLE_TESTS_CONTAINERS_H

#include "api_test.h"

#include <elf.h>
#include <unistd.h>

struct bytes {
    char *at;
    size_t size;
};

static inline void put(struct bytes *bytes, const void *more, size_t size)
{
    bytes->at = realloc(bytes->at, bytes->size + size + 1);
    assert_non_null(bytes->at);
    memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
}

/* A fat binary with one entry: of kind 1, PTX, or 2, machine code. */
static inline struct bytes make_fatbin(unsigned kind, const char *payload)
{
    const uint64_t payload_bytes = (strlen(payload) + 8) / 8 * 8;
    struct bytes bytes = {0};
    struct {
        uint16_t kind, version;
        uint32_t header_bytes;
        uint64_t payload_bytes;
        uint32_t compressed_bytes, options_offset;
        uint16_t minor, major;
        uint32_t sm, name_offset, name_bytes;
        uint64_t flags, reserved, raw_bytes;
    } entry = {
        .kind = (uint16_t)kind, .version = 0x0101, .header_bytes = 64, .payload_bytes = payload_bytes, .major = 6, .sm = 50, .flags = 0x11};
    const struct {
        uint32_t magic;
        uint16_t version, header;
        uint64_t size;
    } header = {0xba55ed50, 1, 16, sizeof entry + payload_bytes};
    char padded[4096] = {0};

    assert_true(payload_bytes <= sizeof padded);
    strcpy(padded, payload);
    put(&bytes, &header, sizeof header);
    put(&bytes, &entry, sizeof entry);
    put(&bytes, padded, payload_bytes);
    return bytes;
}

/* A host's object file with one section of that name; frees its contents. */
static inline struct bytes make_object(const char *section, struct bytes content)
{
    struct bytes bytes = {0};
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof header,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 3,
        .e_shstrndx = 2,
    };
    Elf64_Shdr sections[3] = {{0},
                              {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = sizeof header, .sh_size = content.size},
                              {.sh_type = SHT_STRTAB, .sh_offset = sizeof header + content.size, .sh_size = strlen(section) + 2}};

    header.e_shoff = sections[2].sh_offset + sections[2].sh_size;
    put(&bytes, &header, sizeof header);
    put(&bytes, content.at, content.size);
    put(&bytes, "", 1);
    put(&bytes, section, strlen(section) + 1);
    put(&bytes, sections, sizeof sections);
    free(content.at);
    return bytes;
}

/* The name is a template of mkstemp. */
static inline void make_file(const void *bytes, size_t size, char *name)
{
    int file = mkstemp(name);

    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

#endif
