/* SPDX-License-Identifier: Apache-2.0 */
/* One thread polls the socket and all connections; none of its calls waits for a peer.
 *
 * A proper peer sends a request at once after it has connected, and reads each reply before its next request. So whoever does otherwise is
 * disconnected: who sends anything else, or leaves a reply unread. That bounds what a peer can take to one reply and one descriptor in
 * flight for each connection (Linux counts descriptors in flight against the limit of the sender's user).
 *
 * Connections take descriptors of the application, so there are few, and those that were silent the longest are closed for new ones: first
 * the peer's own. A proper peer that loses its connection so connects again (memory_share.c). */
#include "share_server.h"

#include "core/base/thread.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MAX_CLIENTS 64
#define MAX_OF_PEER 16
#define MAX_ACCEPTED 8     /* at a time, before requests are answered again */
#define BACKLOG 1024       /* connections that wait to be accepted; they take no descriptor */
#define IDLE_NS 5000000000 /* then a silent connection is closed */
#define PAUSE_MS 20        /* before the next attempt to accept, when the process has no descriptor left */

struct client {
    pid_t peer;
    int64_t active_ns; /* when it connected, or sent its latest request */
};

/* Only the server's thread uses it. polled[0] is the listening socket, and polled[i + 1] that of clients[i]. */
static struct {
    const struct ct_share_answerer *answerer;
    unsigned n_clients;
    struct client clients[MAX_CLIENTS];
    struct pollfd polled[1 + MAX_CLIENTS];
} server;

static void drop(unsigned i)
{
    const unsigned last = --server.n_clients;

    close(server.polled[1 + i].fd);
    server.clients[i] = server.clients[last];
    server.polled[1 + i] = server.polled[1 + last];
}

/* Drops the client that has been silent the longest: of all, or of those of one peer. */
static void drop_oldest(const pid_t *peer_or_null)
{
    unsigned oldest = MAX_CLIENTS;

    for (unsigned i = 0; i < server.n_clients; i++)
        if ((!peer_or_null || server.clients[i].peer == *peer_or_null) &&
            (oldest == MAX_CLIENTS || server.clients[i].active_ns < server.clients[oldest].active_ns))
            oldest = i;
    if (oldest < MAX_CLIENTS)
        drop(oldest);
}

static unsigned count_of_peer(pid_t peer)
{
    unsigned count = 0;

    for (unsigned i = 0; i < server.n_clients; i++)
        count += server.clients[i].peer == peer;
    return count;
}

static void add(int fd)
{
    pid_t peer;

    if (!ct_share_peer(fd, &peer)) {
        close(fd);
        return;
    }
    if (count_of_peer(peer) >= MAX_OF_PEER)
        drop_oldest(&peer);
    else if (server.n_clients == MAX_CLIENTS)
        drop_oldest(NULL);
    server.clients[server.n_clients] = (struct client){peer, ct_share_now_ns()};
    server.polled[1 + server.n_clients++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* False: no descriptor is free, even after a client has lost its own. */
static bool accept_some(void)
{
    for (unsigned i = 0; i < MAX_ACCEPTED; i++) {
        int fd = accept4(server.polled[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            const bool can_retry = server.n_clients > 0;

            drop_oldest(NULL);
            if (can_retry)
                continue;
            return false;
        }
        if (fd < 0)
            return true; /* none is waiting any more, or the peer has gone */
        add(fd);
    }
    return true;
}

/* Whether the peer has read all replies. */
static bool has_read_all(int fd)
{
    int bytes = 0;

    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

/* False: the peer has disconnected, or is not a proper one. */
static bool serve(int fd)
{
    struct ct_share_request request;
    struct ct_share_reply reply = {.share = {.fd = -1}};
    const ssize_t got = recv(fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC); /* the message's whole size */
    void *found;
    bool sent;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got != (ssize_t)sizeof request || memcmp(request.magic, ct_share_magic, sizeof ct_share_magic) || !has_read_all(fd))
        return false;
    memcpy(reply.magic, ct_share_magic, sizeof ct_share_magic);
    found = server.answerer->find(&request, &reply);
    sent = ct_share_send(fd, &reply);
    server.answerer->release(found);
    return sent;
}

/* Backwards, since drop() moves the last client to the place of the dropped one. */
static void serve_all(void)
{
    const int64_t now = ct_share_now_ns();

    for (unsigned i = server.n_clients; i-- > 0;) {
        if (server.polled[1 + i].revents && serve(server.polled[1 + i].fd))
            server.clients[i].active_ns = now;
        else if (server.polled[1 + i].revents || now - server.clients[i].active_ns > IDLE_NS)
            drop(i);
    }
}

static void *run(void *user)
{
    bool can_accept = true;

    (void)user;
    for (;;) {
        const int timeout_ms = !can_accept ? PAUSE_MS : server.n_clients ? (int)(IDLE_NS / 1000000) : -1;

        server.polled[0].events = can_accept ? POLLIN : 0;
        if (poll(server.polled, 1 + server.n_clients, timeout_ms) <
            0) { /* no memory, or more connections than the process may have files */
            drop_oldest(NULL);
            usleep(PAUSE_MS * 1000);
            continue;
        }
        serve_all();
        if (!can_accept || server.polled[0].revents)
            can_accept = accept_some();
    }
    return NULL;
}

int ct_share_server_start(int socket, const struct ct_share_answerer *answerer)
{
    if (listen(socket, BACKLOG) != 0)
        return errno;
    server.answerer = answerer;
    server.polled[0] = (struct pollfd){.fd = socket};
    return ct_thread_start_detached(run, NULL);
}
