/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of driver memory cannot be opened through /proc, and taking one from another process needs the privileges of a debugger.
 * So a process that shares memory runs a thread that sends descriptors over a socket (share_server.c), whose name consists of the pid and a
 * random number. It serves only processes of the same user. */
#include "memory_share.h"

#include "share_server.h"
#include "share_socket.h"
#include "core/base/locks.h"
#include "core/base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CT_CHANNEL "ipc"
#define TIMEOUT_NS 5000000000 /* for all that is requested of another process */

#define MAX_PARTS 65536u /* more than the limit of file descriptors of any process */

static const struct timespec retry_pause = {.tv_nsec = 1000000}; /* before the next attempt to connect */

_Static_assert(sizeof(struct ct_share_name) == 32, "half of a handle");

struct entry {
    struct entry *next;
    uint64_t id;
    unsigned references; /* under the lock: 1 while it is in the list, and 1 while the server sends a descriptor of it */
    struct ct_shared_memory memory;
};

static struct {
    struct ct_mutex lock;
    uint64_t process; /* 0: no name was created yet */
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
    memcpy(out->magic, ct_share_magic, sizeof ct_share_magic);
    return CUDA_SUCCESS;
}

CUresult ct_share_name_check(enum ct_share_kind kind, const struct ct_share_name *name)
{
    if (memcmp(name->magic, ct_share_magic, sizeof ct_share_magic) || name->kind != (int32_t)kind || !name->id || !name->process)
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

/* ---- the server ---- */

static struct entry **find_locked(uint64_t id)
{
    struct entry **link = &shares.first;

    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

/* The entry stays until release(), without the lock: its memory may be freed meanwhile, its descriptors are not closed. */
static void *find(const struct ct_share_request *request, struct ct_share_reply *reply)
{
    struct entry *entry;

    ct_mutex_lock(&shares.lock);
    entry = *find_locked(request->id);
    if (entry && request->part >= entry->memory.n_parts)
        entry = NULL;
    if (entry) {
        entry->references++;
        reply->share = entry->memory.parts[request->part];
        memcpy(reply->uuid, entry->memory.uuid, sizeof reply->uuid);
    }
    ct_mutex_unlock(&shares.lock);
    return entry;
}

static void release(void *found)
{
    struct entry *entry = found;
    bool is_last;

    if (!entry)
        return;
    ct_mutex_lock(&shares.lock);
    is_last = --entry->references == 0;
    ct_mutex_unlock(&shares.lock);
    if (!is_last)
        return;
    ct_shared_memory_finish(&entry->memory);
    free(entry);
}

static CUresult listen_locked(void)
{
    static const struct ct_share_answerer answerer = {find, release};
    struct sockaddr_un address;
    socklen_t length;
    int fd, error;
    CUresult r = number_process_locked();

    if (r != CUDA_SUCCESS || shares.listens)
        return r;
    length = ct_share_address(getpid(), shares.process, &address);
    fd = ct_share_socket();
    error = fd < 0 || bind(fd, (const struct sockaddr *)&address, length) != 0 ? errno : ct_share_server_start(fd, &answerer);
    if (!error) {
        shares.listens = true;
        return CUDA_SUCCESS;
    }
    if (fd >= 0)
        close(fd);
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no socket or thread for sharing memory: %s", strerror(error));
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
        *entry = (struct entry){.next = shares.first, .id = id, .references = 1, .memory = *memory};
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
    release(entry);
}

/* ---- memory of other processes ---- */

/* A connection, which is made anew when the server closes it: it does so with the oldest ones when others need them. */
struct link {
    const struct ct_share_name *name;
    int64_t deadline_ns;
    int fd; /* -1: not connected */
};

/* Waits until the socket is ready, or the deadline. False: it is not. */
static bool await(const struct link *link, short events)
{
    struct pollfd polled = {.fd = link->fd, .events = events};

    for (;;) {
        const int64_t left_ns = link->deadline_ns - ct_share_now_ns();
        const int ready = left_ns > 0 ? poll(&polled, 1, (int)(left_ns / 1000000) + 1) : 0;

        if (ready >= 0 || errno != EINTR)
            return ready > 0;
    }
}

static void disconnect(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

/* A socket of this kind cannot wait for room in the server's queue without blocking, so this tries again. */
static bool try_to_connect(struct link *link)
{
    struct sockaddr_un address;
    const socklen_t length = ct_share_address(link->name->pid, link->name->process, &address);

    while (connect(link->fd, (const struct sockaddr *)&address, length) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return false;
        if (ct_share_now_ns() >= link->deadline_ns)
            return false;
        nanosleep(&retry_pause, NULL);
    }
    return true;
}

static CUresult connect_link(struct link *link)
{
    const int pid = (int)link->name->pid;
    pid_t peer;

    link->fd = ct_share_socket();
    if (link->fd < 0)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "a socket cannot be created: %s", strerror(errno));
    if (!try_to_connect(link))
        return errno == EAGAIN ? ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle does not respond", pid)
                               : ct_fail(CUDA_ERROR_INVALID_HANDLE, "process %d of the handle cannot be reached: %s", pid, strerror(errno));
    if (!ct_share_peer(link->fd, &peer))
        return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle belongs to another user", pid);
    return CUDA_SUCCESS;
}

/* Sends a request and waits for its reply. CT_SHARE_NOTHING_YET: the time is over. */
static enum ct_share_received ask(const struct link *link, const struct ct_share_request *request, struct ct_share_reply *out)
{
    if (send(link->fd, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return CT_SHARE_CLOSED;
    while (await(link, POLLIN)) {
        const enum ct_share_received received = ct_share_receive(link->fd, out);

        if (received != CT_SHARE_NOTHING_YET)
            return received;
    }
    return CT_SHARE_NOTHING_YET;
}

/* The same, with a new connection for one that was closed. */
static CUresult ask_until_answered(struct link *link, const struct ct_share_request *request, struct ct_share_reply *out)
{
    enum ct_share_received received = CT_SHARE_CLOSED;
    CUresult r;

    for (;;) {
        if (link->fd < 0 && (r = connect_link(link)) != CUDA_SUCCESS)
            return r;
        out->share.fd = -1;
        received = ask(link, request, out);
        if (received == CT_SHARE_REPLY)
            return CUDA_SUCCESS;
        if (out->share.fd >= 0)
            close(out->share.fd);
        if (received != CT_SHARE_CLOSED || ct_share_now_ns() >= link->deadline_ns)
            return ct_fail(CUDA_ERROR_OPERATING_SYSTEM, "process %d of the handle does not respond", (int)link->name->pid);
        disconnect(link);
        nanosleep(&retry_pause, NULL);
    }
}

/* Fetches one part; the caller owns out->share.fd. */
static CUresult request_part(struct link *link, uint32_t part, struct ct_share_reply *out)
{
    struct ct_share_request request = {.id = link->name->id, .part = part};
    const int pid = (int)link->name->pid;
    CUresult r;

    memcpy(request.magic, ct_share_magic, sizeof ct_share_magic);
    if ((r = ask_until_answered(link, &request, out)) != CUDA_SUCCESS)
        return r;
    if (out->share.size_bytes && out->share.fd >= 0)
        return CUDA_SUCCESS;
    if (out->share.fd >= 0)
        close(out->share.fd);
    if (!out->share.size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "process %d has freed the memory of the handle", pid);
    /* A descriptor was sent: Linux drops descriptors for which the receiver has no room. */
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no file descriptor is left for memory of process %d", pid);
}

/* The first part contains the number of parts. */
static CUresult begin(const struct ct_share_reply *reply, struct ct_shared_memory *memory)
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

static CUresult fetch_part(struct link *link, struct ct_shared_memory *memory)
{
    struct ct_share_reply reply;
    CUresult r = request_part(link, memory->n_parts, &reply);

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
    struct link link = {.name = name, .deadline_ns = ct_share_now_ns() + TIMEOUT_NS, .fd = -1};
    struct ct_shared_memory memory = {0};
    CUresult r;

    do
        r = fetch_part(&link, &memory);
    while (r == CUDA_SUCCESS && memory.n_parts < memory.parts[0].n_parts);
    disconnect(&link);
    if (r == CUDA_SUCCESS)
        *out = memory;
    else
        ct_shared_memory_finish(&memory);
    return r;
}
