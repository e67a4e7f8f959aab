/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors over sockets of Linux. */
#include "share_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

socklen_t ct_share_address(int32_t pid, uint64_t process, struct sockaddr_un *out)
{
    int length;

    *out = (struct sockaddr_un){.sun_family = AF_UNIX}; /* sun_path begins with 0: an abstract name */
    length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "cuttle-%d-%016llx", (int)pid, (unsigned long long)process);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int64_t ct_share_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int ct_share_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

bool ct_share_peer(int fd, pid_t *out)
{
    struct ucred peer;
    socklen_t length = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != geteuid())
        return false;
    *out = peer.pid;
    return true;
}

bool ct_share_send(int to, const struct ct_share_reply *reply)
{
    const int fd = reply->share.fd;
    union control control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {(void *)(uintptr_t)reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
    }
    return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *reply;
}

enum ct_share_received ct_share_receive(int from, struct ct_share_reply *reply)
{
    union control control;
    struct iovec data = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    const ssize_t got = recvmsg(from, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *part = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    int fd = -1;

    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(part), sizeof fd);
    reply->share.fd = fd; /* not the number that it had in the other process */
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? CT_SHARE_NOTHING_YET : CT_SHARE_CLOSED;
    if (got == 0)
        return CT_SHARE_CLOSED;
    return got == (ssize_t)sizeof *reply && !memcmp(reply->magic, ct_share_magic, sizeof ct_share_magic) ? CT_SHARE_REPLY
                                                                                                         : CT_SHARE_NO_REPLY;
}
