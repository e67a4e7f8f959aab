/* SPDX-License-Identifier: Apache-2.0 */
/* Linked images: the results of cuLinkComplete. An ELF file for NVIDIA's machine, as programs expect, with PTX in place of machine code:
 * one section of fat binaries, one for each text. It contains its own size, so that it can be loaded from memory, too. */
#ifndef CT_CORE_LINKED_IMAGE_H
#define CT_CORE_LINKED_IMAGE_H

#include "fatbin.h"

#include <elf.h>

#define CT_EM_CUDA 190 /* in ELF's header: NVIDIA's machine code */
#define CT_LINKED_SECTION ".cuttle.ptx"

/* Whether the header is that of a linked image, and not that of machine code. */
bool ct_linked_image_is(const Elf64_Ehdr *header);
/* The size of the whole image according to the header; 0: the header is invalid. */
size_t ct_linked_image_bytes(const Elf64_Ehdr *header);
/* The limit of the registers of a thread that the link was given; 0: none. */
unsigned ct_linked_image_max_registers(const Elf64_Ehdr *header);
/* *out is on the heap. OUT_OF_MEMORY. */
CUresult ct_linked_image_write(const struct ct_ptx *texts, unsigned count, unsigned max_registers, unsigned char **out, size_t *out_size);

#endif
