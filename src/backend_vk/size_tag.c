/* SPDX-License-Identifier: Apache-2.0 */
/* The size of exported memory, stored with its file descriptor.
 *
 * Importing memory into Vulkan needs its size; cuMemImportFromShareableHandle gets only a descriptor, and opaque descriptors of drivers do
 * not report their size. Locks, however, belong to an open file and are kept in all its duplicates, in every process ("open file description
 * locks", fcntl): so a lock on one byte encodes a size. It is released when the last descriptor is closed.
 *
 * Drivers export many open files of the same device node, on which all these locks are set: the locked byte is slot * 2^24 + size / 2 MiB,
 * with a different slot for each. A lock belongs to an open file if F_OFD_GETLK reports it to another open file of the node, but not to
 * this one. Dma-bufs, which some drivers export as their opaque type, cannot be opened again; their size is that of the file. */
#include "size_tag.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SIZE_BITS 24
#define SLOT_TRIES 1000000
/* The distance between the first slots of processes; the slots of one process are consecutive. */
#define SLOT_STEP 1024

static bool locks_byte(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Finds a lock of another open file in [first, end); false: there is none. */
static bool find_lock(int fd, off_t first, off_t end, off_t *out)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = end - first};

    if (first >= end || fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return false;
    *out = lock.l_start < first ? first : lock.l_start;
    return true;
}

/* Finds the lock in [first, end) that is reported to `other` but not to `fd`; 0: there is none. */
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

/* Opens the file of `fd` again as another open file; -1 on failure. */
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
    if ((before = ct_vk_size_tag_get(fd))) /* it was exported before, or it is a dma-buf */
        return before == size_bytes;
    for (int i = 0; i < SLOT_TRIES; i++)
        if (locks_byte(fd, (off_t)((slot + (uint64_t)i) << SIZE_BITS | units)))
            return true;
    return false;
}
