/* SPDX-License-Identifier: Apache-2.0 */
/* The size of exported memory, told along with its file descriptor.
 *
 * Vulkan wants to be told the size of memory that it imports; cuMemImportFromShareableHandle gets a descriptor and nothing else, and the
 * opaque ones of drivers do not tell. What stays with an open file through every duplicate, in every process, are its locks ("open file
 * description locks", fcntl): so a lock on one byte stands for a size. It ends when the last descriptor is closed.
 *
 * Drivers give many open files of one and the same device node, on which all these locks lie beside each other: bytes are
 * slot * 2^24 + size / 2 MiB, with a slot of its own for each. A lock is ours if another open file of the node sees it, and ours does not.
 * Dma-bufs, which some drivers give as their opaque kind, cannot be opened again; they tell their size as the end of a file. */
#include "size_tag.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SIZE_BITS 24
#define SLOT_TRIES 1000000
/* Slots of processes lie apart; those of one follow each other. */
#define SLOT_STEP 1024

static bool locks_byte(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* A lock of another open file in [first, end); false: none. */
static bool find_lock(int fd, off_t first, off_t end, off_t *out)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = end - first};

    if (first >= end || fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return false;
    *out = lock.l_start < first ? first : lock.l_start;
    return true;
}

/* The lock in [first, end) that `other` sees and `fd` does not; 0: none. */
static off_t find_own(int fd, int other, off_t first, off_t end)
{
    off_t byte, foreign, own;

    if (!find_lock(other, first, end, &byte))
        return 0;
    if (!find_lock(fd, byte, byte + 1, &foreign))
        return byte;
    own = find_own(fd, other, first, byte);
    return own ? own : find_own(fd, other, byte + 1, end);
}

/* Another open file of what `fd` is of; -1. */
static int open_again(int fd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static uint64_t size_of_dma_buf(int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);

    return end > 0 && lseek(fd, 0, SEEK_SET) == 0 ? (uint64_t)end / CT_VK_SIZE_TAG_UNIT * CT_VK_SIZE_TAG_UNIT : 0;
}

uint64_t ct_vk_size_tag_get(int fd)
{
    int other = open_again(fd);
    off_t byte;

    if (other < 0)
        return size_of_dma_buf(fd);
    byte = find_own(fd, other, 1, INT64_MAX);
    close(other);
    return (uint64_t)(byte & (((off_t)1 << SIZE_BITS) - 1)) * CT_VK_SIZE_TAG_UNIT;
}

bool ct_vk_size_tag_set(int fd, uint64_t size_bytes)
{
    uint64_t units = size_bytes / CT_VK_SIZE_TAG_UNIT, slot = (uint64_t)getpid() * SLOT_STEP, before;

    if (!units || units >> SIZE_BITS || size_bytes % CT_VK_SIZE_TAG_UNIT)
        return false;
    if ((before = ct_vk_size_tag_get(fd))) /* it is one that was exported before, or tells it itself */
        return before == size_bytes;
    for (int i = 0; i < SLOT_TRIES; i++)
        if (locks_byte(fd, (off_t)((slot + (uint64_t)i) << SIZE_BITS | units)))
            return true;
    return false;
}
