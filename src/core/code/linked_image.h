/* SPDX-License-Identifier: Apache-2.0 */
/* Linked images: what cuLinkComplete returns. An ELF file for NVIDIA's machine, as programs expect, with PTX where machine code would be:
 * one section of fat binaries, one for each text. It says how long it is, so that it loads from memory, too. */
#ifndef CT_CORE_LINKED_IMAGE_H
#define CT_CORE_LINKED_IMAGE_H

#include "fatbin.h"

#include <elf.h>

#define CT_EM_CUDA 190 /* in ELF's header: machine code of NVIDIA's */
#define CT_LINKED_SECTION ".cuttle.ptx"

/* Whether the header is that of a linked image, and not of machine code. */
bool ct_linked_image_is(const Elf64_Ehdr *header);
/* Bytes of the whole, by the header; 0: it makes no sense. */
size_t ct_linked_image_bytes(const Elf64_Ehdr *header);
/* *out is on the heap. OUT_OF_MEMORY. */
CUresult ct_linked_image_write(const struct ct_ptx *texts, unsigned count, unsigned char **out, size_t *out_size);

#endif
