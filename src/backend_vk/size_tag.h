/* SPDX-License-Identifier: Apache-2.0 */
/* The size of memory, stored with a file descriptor and all its duplicates, in every process. */
#ifndef CT_VK_SIZE_TAG_H
#define CT_VK_SIZE_TAG_H

#include <stdbool.h>
#include <stdint.h>

#define CT_VK_SIZE_TAG_UNIT ((uint64_t)2 << 20)

/* size_bytes must be a multiple of the unit and less than 2^24 units. False: the file cannot have a tag, or has another one. */
bool ct_vk_size_tag_set(int fd, uint64_t size_bytes);
uint64_t ct_vk_size_tag_get(int fd); /* 0: it has none */

#endif
