/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of driver memory cannot be opened through /proc, and taking one from another process needs the privileges of a debugger.
 * So a process that shares memory runs a thread that sends descriptors over a socket, whose name (in Linux's abstract name space, where
 * nothing is left when the process ends) consists of the pid and a random number. It serves only processes of the same user. */
#include "memory_share.h"

#include "core/base/locks.h"
#include "core/base/log.h"
#include "core/base/thread.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define CT_CHANNEL "ipc"
#define TIMEOUT_S 5 /* the timeout for a client that connects and sends nothing, and for a reply */

#define MAX_PARTS 65536u /* more than the limit of file descriptors of any process */

static const char magic[8] = {'C', 'u', 't', 't', 'l', 'e', 'M', '2'};
_Static_assert(sizeof(struct ct_share_name) == 32, "half of a handle");

struct entry {
    struct entry *next;
    uint64_t id;
    struct ct_shared_memory memory;
};

/* One request for each part, over one connection. */
struct request {
    char magic[8];
    uint64_t id, part;
};

struct reply {
    char magic[8];
    struct ct_memory_share share; /* size_bytes 0: the part does not exist, and no descriptor is sent */
    uint8_t uuid[16];
};

static struct {
    struct ct_mutex lock;
    uint64_t process; /* 0: no name was created yet */
    int socket;
    bool listens;
    struct entry *first;
} shares = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_SHARES)};

/* ---- names ---- */

static CUresult number_process_locked(void)
{
    uint64_t number = 0;

    while (!shares.process) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number && errno != EINTR)
            return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "no random number is available: %s", strerror(errno));
        shares.process = number;
    }
    return CUDA_SUCCESS;
}

CUresult ct_share_name_make(enum ct_share_kind kind, uint64_t id, struct ct_share_name *out)
{
    CUresult r;

    ct_mutex_lock(&shares.lock);
    r = number_process_locked();
    ct_mutex_unlock(&shares.lock);
    if (r != CUDA_SUCCESS)
        return r;
    *out = (struct ct_share_name){.process = shares.process, .pid = getpid(), .kind = (int32_t)kind, .id = id};
    memcpy(out->magic, magic, sizeof magic);
    return CUDA_SUCCESS;
}

CUresult ct_share_name_check(enum ct_share_kind kind, const struct ct_share_name *name)
{
    if (memcmp(name->magic, magic, sizeof magic) || name->kind != (int32_t)kind || !name->id || !name->process)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the handle is not of this kind");
    return CUDA_SUCCESS;
}

bool ct_share_name_is_own(const struct ct_share_name *name)
{
    bool own;

    ct_mutex_lock(&shares.lock);
    own = name->process == shares.process;
    ct_mutex_unlock(&shares.lock);
    return own;
}

static socklen_t address_of(int32_t pid, uint64_t process, struct sockaddr_un *out)
{
    int length;

    *out = (struct sockaddr_un){.sun_family = AF_UNIX}; /* sun_path begins with 0: an abstract name */
    length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "cuttle-%d-%016llx", (int)pid, (unsigned long long)process);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int make_socket(void)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return fd;
}

static bool is_same_user(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

/* ---- messages with a descriptor ---- */

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

/* fd -1: no descriptor is sent. */
static bool send_reply(int to, struct reply *reply, int fd)
{
    union control control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *reply;
}

/* Stores the received descriptor in *out_fd, which the caller owns; -1: none. */
static bool receive_reply(int from, struct reply *reply, int *out_fd)
{
    union control control;
    struct iovec data = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    const struct cmsghdr *part;
    ssize_t got;

    *out_fd = -1;
    do
        got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    part = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
        memcpy(out_fd, CMSG_DATA(part), sizeof *out_fd);
    return got == (ssize_t)sizeof *reply && !memcmp(reply->magic, magic, sizeof magic);
}

/* ---- the server thread ---- */

static struct entry **find_locked(uint64_t id)
{
    struct entry **link = &shares.first;

    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

/* False: the client sends no more requests. */
static bool serve(int client)
{
    struct request request;
    struct reply reply = {.share = {.fd = -1}};
    const struct entry *entry;
    bool sent;

    if (recv(client, &request, sizeof request, 0) != (ssize_t)sizeof request || memcmp(request.magic, magic, sizeof magic))
        return false;
    memcpy(reply.magic, magic, sizeof magic);
    ct_mutex_lock(&shares.lock); /* held until it is sent: then the other process has its own descriptor */
    entry = *find_locked(request.id);
    if (entry && request.part < entry->memory.n_parts) {
        reply.share = entry->memory.parts[request.part];
        memcpy(reply.uuid, entry->memory.uuid, sizeof reply.uuid);
    }
    sent = send_reply(client, &reply, reply.share.fd);
    ct_mutex_unlock(&shares.lock);
    return sent;
}

static void *listen_to_others(void *user)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};

    (void)user;
    for (;;) {
        int client = accept4(shares.socket, NULL, NULL, SOCK_CLOEXEC);

        if (client < 0) { /* a timeout, or no descriptor is free */
            if (errno != EAGAIN && errno != EINTR)
                sleep(1);
            continue;
        }
        (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        if (is_same_user(client))
            while (serve(client))
                ;
        close(client);
    }
    return NULL;
}

static CUresult listen_locked(void)
{
    struct sockaddr_un address;
    socklen_t length;
    CUresult r = number_process_locked();

    if (r != CUDA_SUCCESS || shares.listens)
        return r;
    length = address_of(getpid(), shares.process, &address);
    shares.socket = make_socket();
    if (shares.socket >= 0 && bind(shares.socket, (const struct sockaddr *)&address, length) == 0 && listen(shares.socket, 16) == 0 &&
        ct_thread_start_detached(listen_to_others, NULL) == 0) {
        shares.listens = true;
        return CUDA_SUCCESS;
    }
    r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no socket or thread for sharing memory: %s", strerror(errno));
    if (shares.socket >= 0)
        close(shares.socket);
    return r;
}

/* ---- shared memory of this process ---- */

void ct_shared_memory_finish(struct ct_shared_memory *memory)
{
    for (uint32_t i = 0; i < memory->n_parts; i++)
        close(memory->parts[i].fd);
    free(memory->parts);
    *memory = (struct ct_shared_memory){0};
}

CUresult ct_share_publish(uint64_t id, struct ct_shared_memory *memory)
{
    struct entry *entry = malloc(sizeof *entry);
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    ct_mutex_lock(&shares.lock);
    if (entry && (r = listen_locked()) == CUDA_SUCCESS) {
        *entry = (struct entry){.next = shares.first, .id = id, .memory = *memory};
        shares.first = entry;
    }
    ct_mutex_unlock(&shares.lock);
    if (r == CUDA_SUCCESS)
        return r;
    free(entry);
    ct_shared_memory_finish(memory);
    return ct_fail(r, "memory %llu cannot be shared", (unsigned long long)id);
}

void ct_share_retract(uint64_t id)
{
    struct entry **link, *entry = NULL;

    if (!id)
        return;
    ct_mutex_lock(&shares.lock);
    link = find_locked(id);
    if ((entry = *link))
        *link = entry->next;
    ct_mutex_unlock(&shares.lock);
    if (entry)
        ct_shared_memory_finish(&entry->memory);
    free(entry);
}

/* ---- memory of other processes ---- */

static CUresult connect_to(const struct ct_share_name *name, int *out)
{
    struct sockaddr_un address;
    socklen_t length = address_of(name->pid, name->process, &address);
    int to = make_socket();
    CUresult r;

    if (to < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a socket cannot be created: %s", strerror(errno));
    if (connect(to, (const struct sockaddr *)&address, length) != 0) {
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "process %d of the handle cannot be reached: %s", (int)name->pid, strerror(errno));
    } else if (!is_same_user(to)) {
        r = ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle belongs to another user", (int)name->pid);
    } else {
        *out = to;
        return CUDA_SUCCESS;
    }
    close(to);
    return r;
}

/* Fetches one part; the caller owns out->share.fd. */
static CUresult request_part(int to, const struct ct_share_name *name, uint32_t part, struct reply *out)
{
    struct request request = {.id = name->id, .part = part};
    int fd = -1;
    bool answered;

    memcpy(request.magic, magic, sizeof magic);
    answered = send(to, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request && receive_reply(to, out, &fd);
    if (answered && out->share.size_bytes && fd >= 0) {
        out->share.fd = fd;
        return CUDA_SUCCESS;
    }
    if (fd >= 0)
        close(fd);
    if (!answered)
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle does not respond: %s", (int)name->pid, strerror(errno));
    if (!out->share.size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "process %d has freed the memory of the handle", (int)name->pid);
    /* A descriptor was sent: Linux drops descriptors for which the receiver has no room. */
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no file descriptor is left for memory of process %d", (int)name->pid);
}

/* The first part contains the number of parts. */
static CUresult begin(const struct reply *reply, struct ct_shared_memory *memory)
{
    const uint32_t n = reply->share.n_parts;

    if (!n || n > MAX_PARTS)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "invalid number of parts of memory: %u", (unsigned)n);
    memory->parts = calloc(n, sizeof *memory->parts);
    if (!memory->parts)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for imported memory");
    memcpy(memory->uuid, reply->uuid, sizeof memory->uuid);
    return CUDA_SUCCESS;
}

static CUresult fetch_part(int to, const struct ct_share_name *name, struct ct_shared_memory *memory)
{
    struct reply reply;
    CUresult r = request_part(to, name, memory->n_parts, &reply);

    if (r != CUDA_SUCCESS)
        return r;
    if (!memory->n_parts)
        r = begin(&reply, memory);
    else if (reply.share.n_parts != memory->parts[0].n_parts)
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "the parts belong to different memory");
    if (r == CUDA_SUCCESS)
        memory->parts[memory->n_parts++] = reply.share;
    else
        close(reply.share.fd);
    return r;
}

CUresult ct_share_fetch(const struct ct_share_name *name, struct ct_shared_memory *out)
{
    struct ct_shared_memory memory = {0};
    int to;
    CUresult r = connect_to(name, &to);

    if (r != CUDA_SUCCESS)
        return r;
    do
        r = fetch_part(to, name, &memory);
    while (r == CUDA_SUCCESS && memory.n_parts < memory.parts[0].n_parts);
    close(to);
    if (r == CUDA_SUCCESS)
        *out = memory;
    else
        ct_shared_memory_finish(&memory);
    return r;
}
