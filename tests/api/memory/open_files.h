/* SPDX-License-Identifier: Apache-2.0 */
/* The file descriptors of this process, for tests that let them run out or look whether any stays open. */
#ifndef CUTTLE_TESTS_MEMORY_OPEN_FILES_H
#define CUTTLE_TESTS_MEMORY_OPEN_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

/* How many there are, and always the same few beside them; 0: that cannot be told. */
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

/* RLIMIT_NOFILE, if there are to be `more` of them: a number that descriptors stay below, and there are holes in what is open. */
static inline rlim_t open_files_limit(unsigned more)
{
    int fd = 0;

    while (fcntl(fd, F_GETFD) >= 0 || more-- > 0)
        fd++;
    return (rlim_t)fd;
}

#endif
