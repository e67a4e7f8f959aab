/* SPDX-License-Identifier: Apache-2.0 */
/* The file descriptors of this process, for tests that let them run out or check that none stays open. */
#ifndef CUTTLE_TESTS_MEMORY_OPEN_FILES_H
#define CUTTLE_TESTS_MEMORY_OPEN_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

/* Returns their number, including a constant few of the query itself; 0: it cannot be determined. */
static inline unsigned open_files_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned n = 0;

    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

/* Returns the RLIMIT_NOFILE that allows `more` further descriptors: the limit applies to the numbers of descriptors, and the open numbers
 * have gaps. */
static inline rlim_t open_files_limit(unsigned more)
{
    int fd = 0;

    while (fcntl(fd, F_GETFD) >= 0 || more-- > 0)
        fd++;
    return (rlim_t)fd;
}

#endif
