/* SPDX-License-Identifier: Apache-2.0 */
/* Linked images: header, the fat binaries, the names of the sections, the table of sections. */
#include "linked_image.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "image"
#define CT_OSABI ELFOSABI_STANDALONE /* NVIDIA's are 0x33 and 0x41 */
#define CT_VERSION 1                 /* of the format */
#define CT_MAX_BYTES ((uint64_t)1 << 40)

enum section { SECTION_NONE, SECTION_PTX, SECTION_NAMES, SECTION_COUNT };

static const char names[] = "\0" CT_LINKED_SECTION "\0.shstrtab"; /* the names of the sections, at offset 1 and after it */

bool ct_linked_image_is(const Elf64_Ehdr *header)
{
    return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_machine == CT_EM_CUDA && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_OSABI] == CT_OSABI && header->e_ident[EI_ABIVERSION] == CT_VERSION;
}

size_t ct_linked_image_bytes(const Elf64_Ehdr *header)
{
    if (header->e_shoff < sizeof *header || header->e_shoff > CT_MAX_BYTES || header->e_shnum != SECTION_COUNT)
        return 0;
    return header->e_shoff + SECTION_COUNT * sizeof(Elf64_Shdr);
}

unsigned ct_linked_image_max_registers(const Elf64_Ehdr *header)
{
    return header->e_flags;
}

static Elf64_Ehdr make_header(uint64_t sections_offset, unsigned max_registers)
{
    return (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, CT_OSABI, CT_VERSION},
        .e_type = ET_EXEC,
        .e_machine = CT_EM_CUDA,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shoff = sections_offset,
        .e_flags = max_registers,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTION_COUNT,
        .e_shstrndx = SECTION_NAMES,
    };
}

CUresult ct_linked_image_write(const struct ct_ptx *texts, unsigned count, unsigned max_registers, unsigned char **out, size_t *out_size)
{
    const size_t names_bytes = (sizeof names + 7) / 8 * 8;
    size_t at = sizeof(Elf64_Ehdr), ptx_bytes = 0, size;
    Elf64_Shdr sections[SECTION_COUNT] = {0};
    unsigned char *bytes;
    Elf64_Ehdr header;

    for (unsigned i = 0; i < count; i++)
        ptx_bytes += ct_fatbin_bytes(&texts[i]);
    header = make_header(at + ptx_bytes + names_bytes, max_registers);
    size = header.e_shoff + sizeof sections;
    bytes = calloc(1, size);
    if (!bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a linked image of %zu bytes", size);
    sections[SECTION_PTX] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = ptx_bytes, .sh_addralign = 8};
    sections[SECTION_NAMES] = (Elf64_Shdr){
        .sh_name = 1 + sizeof CT_LINKED_SECTION,
        .sh_type = SHT_STRTAB,
        .sh_offset = at + ptx_bytes,
        .sh_size = sizeof names,
        .sh_addralign = 1,
    };
    memcpy(bytes, &header, sizeof header);
    for (unsigned i = 0; i < count; i++) {
        ct_fatbin_write(&texts[i], bytes + at);
        at += ct_fatbin_bytes(&texts[i]);
    }
    memcpy(bytes + at, names, sizeof names);
    memcpy(bytes + header.e_shoff, sections, sizeof sections);
    *out = bytes;
    *out_size = size;
    return CUDA_SUCCESS;
}
