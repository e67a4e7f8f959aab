/* SPDX-License-Identifier: Apache-2.0 */
/* A second process of a test, which executes requests that it receives through a socket: another instance of the program, since CUDA does not
 * survive a fork. The test defines the requests. */
#ifndef CUTTLE_TESTS_MEMORY_PEER_H
#define CUTTLE_TESTS_MEMORY_PEER_H

#include "../api/memory/virtual_memory.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PEER_SOCKET 20

extern char **environ;

struct peer {
    pid_t pid;
    int socket;
};

struct peer_message {
    int order;
    CUresult result;
    uint64_t numbers[4];
    unsigned char bytes[64]; /* a handle */
    int fd;                  /* sent and then closed if it is not negative; a received one is owned by the receiver */
};

static inline bool peer_send(int socket, struct peer_message *message)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {message, sizeof *message};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
    bool sent;

    memcpy(CMSG_DATA(&control.header), &message->fd, sizeof message->fd);
    if (message->fd >= 0) {
        header.msg_control = control.room;
        header.msg_controllen = sizeof control.room;
    }
    sent = sendmsg(socket, &header, MSG_NOSIGNAL) == (ssize_t)sizeof *message;
    if (message->fd >= 0)
        close(message->fd);
    return sent;
}

static inline bool peer_receive(int socket, struct peer_message *message)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {message, sizeof *message};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *part = got < 0 ? NULL : CMSG_FIRSTHDR(&header);

    message->fd = -1;
    if (part && part->cmsg_type == SCM_RIGHTS)
        memcpy(&message->fd, CMSG_DATA(part), sizeof message->fd);
    return got == (ssize_t)sizeof *message;
}

static inline void peer_start(struct peer *peer)
{
    char *arguments[] = {"/proc/self/exe", "peer", NULL};
    posix_spawn_file_actions_t actions;
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, sockets[1], PEER_SOCKET) != 0 ||
        posix_spawn(&peer->pid, "/proc/self/exe", &actions, NULL, arguments, environ) != 0)
        exit(2);
    posix_spawn_file_actions_destroy(&actions);
    close(sockets[1]);
    peer->socket = sockets[0];
}

/* The setup of a group: a context and the other process. The test is skipped if the device lacks the tested feature. */
static inline int peer_start_group(void **state, struct peer *peer, bool (*is_there)(void), const char *otherwise)
{
    if (with_context(state) != 0)
        return -1;
    if (is_there()) {
        peer_start(peer);
        return 0;
    }
    print_message("%s\n", otherwise);
    exit(77);
}

static inline void peer_kill(struct peer *peer)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    close(peer->socket);
}

/* Waits for the end of a peer, which destroys its context and returns from main, and returns its exit status. */
static inline int peer_finish(struct peer *peer)
{
    int status = -1;

    close(peer->socket);
    waitpid(peer->pid, &status, 0);
    return status;
}

/* Sends a request and waits for the reply; afterwards message->bytes, numbers and fd are those of the reply. */
static inline CUresult peer_tell(const struct peer *peer, int order, struct peer_message *message)
{
    message->order = order;
    assert_true(peer_send(peer->socket, message));
    assert_true(peer_receive(peer->socket, message));
    return message->result;
}

/* The main loop of the other process. `obey` executes a request and fills in the reply. */
static inline int peer_run(CUresult (*obey)(struct peer_message *message))
{
    struct peer_message message;
    void *context;

    if (with_context(&context) != 0)
        return 2;
    while (peer_receive(PEER_SOCKET, &message)) {
        message.result = obey(&message);
        if (!peer_send(PEER_SOCKET, &message))
            return 3;
    }
    return without_context(&context);
}

static inline uint32_t word_at(CUdeviceptr pointer)
{
    uint32_t word;

    ok(cuMemcpyDtoH(&word, pointer, sizeof word));
    return word;
}

#endif
