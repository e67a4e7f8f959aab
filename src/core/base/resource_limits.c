/* SPDX-License-Identifier: Apache-2.0 */
/* Reads limits each time, since the application may change them. */
#include "resource_limits.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

static uint64_t limit_of(__rlimit_resource_t resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

uint64_t ct_limit_of_files(void)
{
    return limit_of(RLIMIT_FSIZE);
}

bool ct_limit_allows_mapping(uint64_t bytes)
{
    void *room;

    if (limit_of(RLIMIT_AS) == UINT64_MAX && limit_of(RLIMIT_DATA) == UINT64_MAX)
        return true;
    room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    munmap(room, bytes);
    return true;
}
