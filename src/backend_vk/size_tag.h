/* SPDX-License-Identifier: Apache-2.0 */
/* The size of memory, kept with a file descriptor and all its duplicates, in every process. */
#ifndef CT_VK_SIZE_TAG_H
#define CT_VK_SIZE_TAG_H

#include <stdbool.h>
#include <stdint.h>

#define CT_VK_SIZE_TAG_UNIT ((uint64_t)2 << 20)

/* size_bytes is a multiple of the unit, below 2^24 of them. False: the file takes no tag, or has another one. */
bool ct_vk_size_tag_set(int fd, uint64_t size_bytes);
uint64_t ct_vk_size_tag_get(int fd); /* 0: there is none */

#endif
