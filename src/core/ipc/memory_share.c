/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers' descriptors of memory cannot be opened through /proc, and to take one from another process needs the rights of a debugger. So a
 * process that shares memory has a thread that hands descriptors out, over a socket whose name (in Linux's abstract name space: nothing is
 * left of it when the process ends) is made of its pid and a random number. It answers processes of the same user only. */
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
#define PATIENCE_S 5 /* for somebody who connected and says nothing, and for an answer */

#define MAX_PARTS 65536u /* more than anybody has file descriptors */

static const char magic[8] = {'C', 'u', 't', 't', 'l', 'e', 'M', '2'};
_Static_assert(sizeof(struct ct_share_name) == 32, "half of a handle");

struct entry {
    struct entry *next;
    uint64_t id;
    struct ct_shared_memory memory;
};

/* One for each part, over one connection. */
struct request {
    char magic[8];
    uint64_t id, part;
};

struct reply {
    char magic[8];
    struct ct_memory_share share; /* size_bytes 0: there is no such part, and no descriptor comes */
    uint8_t uuid[16];
};

static struct {
    struct ct_mutex lock;
    uint64_t process; /* 0: no name was made yet */
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
            return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "no random number: %s", strerror(errno));
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
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "no handle of that kind");
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
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
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

/* fd -1: none goes along. */
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

/* The descriptor that came along goes to *out_fd: the caller's, -1 none. */
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

/* ---- the thread that answers ---- */

static struct entry **find_locked(uint64_t id)
{
    struct entry **link = &shares.first;

    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

/* False: nobody asks any more. */
static bool answer(int client)
{
    struct request request;
    struct reply reply = {.share = {.fd = -1}};
    const struct entry *entry;
    bool sent;

    if (recv(client, &request, sizeof request, 0) != (ssize_t)sizeof request || memcmp(request.magic, magic, sizeof magic))
        return false;
    memcpy(reply.magic, magic, sizeof magic);
    ct_mutex_lock(&shares.lock); /* until it is sent: then the other process has a descriptor of its own */
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
    const struct timeval patience = {.tv_sec = PATIENCE_S};

    (void)user;
    for (;;) {
        int client = accept4(shares.socket, NULL, NULL, SOCK_CLOEXEC);

        if (client < 0) { /* nobody came in time, or no descriptor is free */
            if (errno != EAGAIN && errno != EINTR)
                sleep(1);
            continue;
        }
        (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (is_same_user(client))
            while (answer(client))
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
    r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no socket or thread that hands memory out: %s", strerror(errno));
    if (shares.socket >= 0)
        close(shares.socket);
    return r;
}

/* ---- what is shared ---- */

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

/* ---- what others share ---- */

static CUresult connect_to(const struct ct_share_name *name, int *out)
{
    struct sockaddr_un address;
    socklen_t length = address_of(name->pid, name->process, &address);
    int to = make_socket();
    CUresult r;

    if (to < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no socket: %s", strerror(errno));
    if (connect(to, (const struct sockaddr *)&address, length) != 0) {
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "process %d of the handle: %s", (int)name->pid, strerror(errno));
    } else if (!is_same_user(to)) {
        r = ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle is of another user", (int)name->pid);
    } else {
        *out = to;
        return CUDA_SUCCESS;
    }
    close(to);
    return r;
}

/* One part; out->share.fd is the caller's. */
static CUresult ask(int to, const struct ct_share_name *name, uint32_t part, struct reply *out)
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
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle does not answer: %s", (int)name->pid, strerror(errno));
    if (!out->share.size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "process %d has freed what the handle stood for", (int)name->pid);
    /* It was sent: Linux drops what there is no room for. */
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no file descriptor is left for memory of process %d", (int)name->pid);
}

/* The first part tells how many there are. */
static CUresult begin(const struct reply *reply, struct ct_shared_memory *memory)
{
    const uint32_t n = reply->share.n_parts;

    if (!n || n > MAX_PARTS)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "memory of %u parts", (unsigned)n);
    memory->parts = calloc(n, sizeof *memory->parts);
    if (!memory->parts)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "memory of another process");
    memcpy(memory->uuid, reply->uuid, sizeof memory->uuid);
    return CUDA_SUCCESS;
}

static CUresult fetch_part(int to, const struct ct_share_name *name, struct ct_shared_memory *memory)
{
    struct reply reply;
    CUresult r = ask(to, name, memory->n_parts, &reply);

    if (r != CUDA_SUCCESS)
        return r;
    if (!memory->n_parts)
        r = begin(&reply, memory);
    else if (reply.share.n_parts != memory->parts[0].n_parts)
        r = ct_fail(CUDA_ERROR_INVALID_HANDLE, "parts of different memory");
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
